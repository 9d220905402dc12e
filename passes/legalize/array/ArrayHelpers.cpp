#include "passes/legalize/array/ArrayHelpers.h"

#include "dialects/hlo/Evaluator.h"

using namespace mlir;

namespace lathe::legalize {

std::string textOf(AffineExpr expr) { return hlo::dimToString(expr); }

bool sameDims(NodeContext &c, ArrayRef<Value> values, int64_t except) {
  for (auto [k, v] : llvm::enumerate(values)) {
    if (!v)
      return false;
    if (c.rank(v) != c.rank(values[0])) {
      (void)c.error("ranks differ: " + Twine(c.rank(values[0])) + " and " + Twine(c.rank(v)));
      return false;
    }
    for (int64_t i = 0; i < c.rank(v); ++i) {
      AffineExpr a = c.dim(values[0], i), b = c.dim(v, i);
      if (i == except || c.ctx.unify(a, b, c.name()))
        continue;
      (void)c.error("dimension " + Twine(i) + " differs: " + textOf(a) + " and " + textOf(b));
      return false;
    }
  }
  return true;
}

/// Lowest and highest value of an integer tensor that is known now.
static std::optional<std::pair<int64_t, int64_t>> knownRange(NodeContext &c, Value v) {
  std::optional<Tensor> t = c.ctx.fold(v);
  if (!t)
    return std::nullopt;
  int64_t lo = INT64_MAX, hi = INT64_MIN;
  for (int64_t i = 0; i < t->numElements(); ++i) {
    int64_t x;
    switch (t->dtype()) {
    case DType::Int64:
      x = t->data<int64_t>()[i];
      break;
    case DType::Int32:
      x = t->data<int32_t>()[i];
      break;
    case DType::Int16:
      x = t->data<int16_t>()[i];
      break;
    case DType::UInt8:
      x = t->data<uint8_t>()[i];
      break;
    default:
      return std::nullopt;
    }
    lo = std::min(lo, x);
    hi = std::max(hi, x);
  }
  return std::make_pair(lo, hi);
}

static void checkIndices(NodeContext &c, Value indices, AffineExpr limit, StringRef what, bool negativeFails, Value unless = {}) {
  auto size = constantOf(c.ctx.resolve(limit));
  if (auto range = knownRange(c, indices))
    if (range->first > range->second || (size && (range->first >= 0 || !negativeFails) && range->second < *size))
      return;
  Type element = c.elementType(indices);
  if (!isa<IntegerType>(element)) {
    (void)c.poison("expected indices of an integer type");
    return;
  }
  Value n;
  if (size) {
    // a type too narrow for the limit cannot exceed it
    unsigned width = element.getIntOrFloatBitWidth();
    int64_t most = c.isUnsigned(indices) ? (width >= 63 ? INT64_MAX : (int64_t(1) << width) - 1)
                                         : (width >= 64 ? INT64_MAX : (int64_t(1) << (width - 1)) - 1);
    if (*size <= most)
      n = c.scalarInt(*size, element);
  } else {
    n = c.sizeValue(limit, element);
  }
  Value ok;
  if (n)
    ok = c.compare(Compare::LT, indices, n);
  if (negativeFails && !c.isUnsigned(indices)) {
    Value positive = c.compare(Compare::GE, indices, c.scalarInt(0, element));
    ok = ok ? c.logicalAnd(ok, positive) : positive;
  }
  if (ok && unless)
    ok = c.logicalOr(ok, c.broadcastTo(unless, c.dims(ok)));
  if (ok)
    c.check(ok, what);
}

void checkRange(NodeContext &c, Value indices, AffineExpr limit, StringRef what, Value unless) {
  checkIndices(c, indices, limit, what, true, unless);
}

void checkBelow(NodeContext &c, Value indices, AffineExpr limit, StringRef what) {
  checkIndices(c, indices, limit, what, false);
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> sequence(int64_t from, int64_t to) {
  return llvm::to_vector(llvm::seq<int64_t>(from, std::max(from, to)));
}

Value gather(NodeContext &c, Value params, Value indices, int64_t axis, int64_t batchDims, bool checked) {
  if (!params || !indices)
    return {};
  int64_t rank = c.rank(params), indexRank = c.rank(indices);
  if (batchDims < 0 || batchDims > axis || batchDims > indexRank) {
    (void)c.error("batch_dims " + Twine(batchDims) + " exceeds the axis or the rank of the indices");
    return {};
  }
  if (axis >= rank) {
    (void)c.error("axis " + Twine(axis) + " is none of " + Twine(rank) + " dimensions");
    return {};
  }
  for (int64_t i = 0; i < batchDims; ++i)
    if (!c.ctx.unify(c.dim(params, i), c.dim(indices, i), c.name())) {
      (void)c.error("batch dimension " + Twine(i) + " differs: " + textOf(c.dim(params, i)) + " and " +
                    textOf(c.dim(indices, i)));
      return {};
    }
  Dims paramDims = c.dims(params), indexDims = c.dims(indices), resultDims(paramDims.begin(), paramDims.begin() + axis);
  resultDims.append(indexDims.begin() + batchDims, indexDims.end());
  resultDims.append(paramDims.begin() + axis + 1, paramDims.end());
  if (checked)
    checkRange(c, indices, c.dim(params, axis), "an index is out of range");
  auto none = [](AffineExpr n) { return constantOf(n) == int64_t(0); };
  if (none(c.dim(params, axis)) || llvm::any_of(resultDims, none)) // no slice of one fits into nothing
    return c.splat(0, resultDims, c.elementType(params));
  SmallVector<int64_t> offsets = sequence(batchDims, axis), sizes, batch = sequence(0, batchDims);
  int64_t indexDimsLeft = indexRank - batchDims;
  for (int64_t i = axis + 1; i < rank; ++i)
    offsets.push_back(i - 1 + indexDimsLeft);
  for (int64_t i = 0; i < rank; ++i) {
    auto n = constantOf(c.dim(params, i));
    sizes.push_back(i < batchDims || i == axis ? 1 : n ? *n : ShapedType::kDynamic);
  }
  auto numbers = hlo::GatherDimensionNumbersAttr::get(c.b.getContext(), offsets, {axis}, batch, batch, {axis}, indexRank);
  return c.make<hlo::GatherOp>(params, indices, numbers, sizes, false);
}

/// TensorFlow takes nothing from a tensor without elements, not even empty slices.
static void checkNotEmpty(NodeContext &c, Value params, Value indices) {
  AffineExpr size = c.ctx.resolve(productOf(c.dims(params), c.b.getContext()));
  AffineExpr tuples = productOf(ArrayRef<AffineExpr>(c.dims(indices)).drop_back(), c.b.getContext());
  auto most = constantOf(size), wanted = constantOf(tuples);
  if (wanted == int64_t(0) || (most && *most > 0))
    return;
  Type wide = c.b.getI64Type();
  auto isZero = [&](AffineExpr n) { return c.compare(Compare::EQ, c.sizeValue(n, wide), c.scalarInt(0, wide)); };
  c.check(c.logicalOr(c.logicalNot(isZero(size)), isZero(tuples)), "more than 0 entries are requested, but params is empty");
}

Value gatherNd(NodeContext &c, Value params, Value indices, int64_t batchDims, bool checked) {
  if (!params || !indices)
    return {};
  int64_t rank = c.rank(params), indexRank = c.rank(indices);
  if (indexRank < 1 || batchDims < 0 || batchDims >= indexRank || batchDims > rank) {
    (void)c.error("batch_dims " + Twine(batchDims) + " exceeds the rank of an input");
    return {};
  }
  auto depth = constantOf(c.dim(indices, indexRank - 1));
  if (!depth || *depth + batchDims > rank) {
    (void)c.error("the last dimension of the indices must be known and at most the rank of params");
    return {};
  }
  for (int64_t i = 0; i < batchDims; ++i)
    if (!c.ctx.unify(c.dim(params, i), c.dim(indices, i), c.name())) {
      (void)c.error("batch dimension " + Twine(i) + " differs");
      return {};
    }
  Dims paramDims = c.dims(params), resultDims = c.dims(indices);
  resultDims.pop_back();
  resultDims.append(paramDims.begin() + batchDims + *depth, paramDims.end());
  if (checked)
    checkNotEmpty(c, params, indices);
  if (*depth == 0) {
    SmallVector<int64_t> map = sequence(0, batchDims);
    for (int64_t i = batchDims; i < rank; ++i)
      map.push_back(indexRank - 1 + i - batchDims);
    return c.broadcastInDim(params, resultDims, map);
  }
  bool empty = false;
  for (int64_t k = 0; k < *depth; ++k) {
    Value part = c.sliceDim(indices, indexRank - 1, c.size(k), c.size(k + 1));
    if (checked)
      checkRange(c, part, c.dim(params, batchDims + k), "an index is out of range");
    empty |= constantOf(c.dim(params, batchDims + k)) == int64_t(0);
  }
  if (empty)
    return c.splat(0, resultDims, c.elementType(params));
  SmallVector<int64_t> sizes, batch = sequence(0, batchDims), mapped = sequence(batchDims, batchDims + *depth);
  for (int64_t i = 0; i < rank; ++i) {
    auto n = constantOf(c.dim(params, i));
    sizes.push_back(i < batchDims + *depth ? 1 : n ? *n : ShapedType::kDynamic);
  }
  SmallVector<int64_t> offsets = sequence(indexRank - 1, indexRank - 1 + rank - batchDims - *depth);
  auto numbers =
      hlo::GatherDimensionNumbersAttr::get(c.b.getContext(), offsets, mapped, batch, batch, mapped, indexRank - 1);
  return c.make<hlo::GatherOp>(params, indices, numbers, sizes, false);
}

Value scatterNd(NodeContext &c, Value operand, Value indices, Value updates, Combine combine, bool checked) {
  if (!operand || !indices || !updates)
    return {};
  int64_t rank = c.rank(operand), indexRank = c.rank(indices);
  if (indexRank < 1) {
    (void)c.error("the indices must have rank 1 or more");
    return {};
  }
  auto depth = constantOf(c.dim(indices, indexRank - 1));
  if (!depth || *depth > rank) {
    (void)c.error("the last dimension of the indices must be known and at most the rank of the result");
    return {};
  }
  // The updates may come with fewer dimensions (a scalar for all).
  Dims wanted = c.dims(indices), operandDims = c.dims(operand);
  wanted.pop_back();
  wanted.append(operandDims.begin() + *depth, operandDims.end());
  updates = c.broadcastTo(updates, wanted);
  if (!updates)
    return {};
  if (checked)
    for (int64_t k = 0; k < *depth; ++k)
      checkRange(c, c.sliceDim(indices, indexRank - 1, c.size(k), c.size(k + 1)), c.dim(operand, k),
                 "an index is out of range");
  SmallVector<int64_t> window = sequence(indexRank - 1, indexRank - 1 + rank - *depth), inserted = sequence(0, *depth);
  auto numbers = hlo::ScatterDimensionNumbersAttr::get(c.b.getContext(), window, inserted, {}, {}, inserted, indexRank - 1);
  return c.make<hlo::ScatterOp>(ValueRange(operand), indices, ValueRange(updates), numbers, false, false,
                                [&](OpBuilder &b, Location loc, ValueRange args) -> SmallVector<Value> {
                                  return {combine ? combine(b, loc, args[0], args[1]) : Value(args[1])};
                                });
}

Value scatterRows(NodeContext &c, Value operand, Value indices, Value updates, Combine combine, bool checked) {
  if (!indices)
    return {};
  Dims dims = c.dims(indices);
  dims.push_back(c.size(1));
  return scatterNd(c, operand, c.reshape(indices, dims), updates, combine, checked);
}

std::optional<SmallVector<Value>> foldDataSized(NodeContext &c, Operation *op) {
  SmallVector<Tensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Tensor> t = c.ctx.fold(operand);
    if (!t)
      return std::nullopt;
    operands.push_back(*t);
  }
  hlo::EvalOptions options;
  options.silent = true;
  auto results = hlo::evaluateOp(op, operands, options);
  if (failed(results))
    return std::nullopt;
  SmallVector<Value> values;
  for (const Tensor &t : *results)
    values.push_back(c.constant(t));
  op->erase();
  c.ctx.clearFolded();
  return values;
}

Value whereTrue(NodeContext &c, Value mask) {
  AffineExpr count = c.ctx.newDataSymbol(c.name(), productOf(c.dims(mask), c.b.getContext()));
  auto op = hlo::WhereOp::create(c.b, c.loc, mask, int64_t(cast<AffineSymbolExpr>(count).getPosition()));
  if (auto known = foldDataSized(c, op))
    return (*known)[0];
  return op->getResult(0);
}

SmallVector<Value> compress(NodeContext &c, Value mask, ArrayRef<Value> values) {
  Value places = whereTrue(c, mask);
  places = c.reshape(places, ArrayRef<AffineExpr>{c.dim(places, 0)});
  SmallVector<Value> results;
  for (Value v : values)
    results.push_back(gather(c, v, places, 0, 0, /*checked=*/false));
  return results;
}

SmallVector<Value> whileLoop(Emitter &c, ArrayRef<Value> init, llvm::function_ref<Value(ValueRange)> condition,
                             llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  SmallVector<Type> types(ValueRange(init).getTypes());
  SmallVector<Location> locs(types.size(), c.loc);
  OperationState state(c.loc, hlo::WhileOp::getOperationName());
  state.addOperands(init);
  state.addTypes(types);
  state.addRegion();
  state.addRegion();
  Operation *op = c.b.create(state);
  OpBuilder::InsertionGuard guard(c.b);
  Block *block = c.b.createBlock(&op->getRegion(0), {}, types, locs);
  hlo::ReturnOp::create(c.b, c.loc, condition(block->getArguments()));
  block = c.b.createBlock(&op->getRegion(1), {}, types, locs);
  hlo::ReturnOp::create(c.b, c.loc, body(block->getArguments()));
  return SmallVector<Value>(op->getResults());
}

Value chooseUnless(OpBuilder &b, Location loc, Value x, Value y, Compare direction) {
  if (isa<FloatType>(Emitter::elementType(x)))
    return hlo::SelectOp::create(b, loc, hlo::CompareOp::create(b, loc, x, y, direction), x, y);
  return direction == Compare::LT ? Value(hlo::MinOp::create(b, loc, x, y)) : Value(hlo::MaxOp::create(b, loc, x, y));
}

Value combineAdd(OpBuilder &b, Location loc, Value x, Value y) {
  if (Emitter::elementType(x).isInteger(1))
    return hlo::OrOp::create(b, loc, x, y);
  return hlo::AddOp::create(b, loc, x, y);
}
Value combineSub(OpBuilder &b, Location loc, Value x, Value y) {
  if (Emitter::elementType(x).isInteger(1))
    return hlo::XorOp::create(b, loc, x, y);
  return hlo::SubtractOp::create(b, loc, x, y);
}
Value combineMul(OpBuilder &b, Location loc, Value x, Value y) { return hlo::MulOp::create(b, loc, x, y); }
Value combineMin(OpBuilder &b, Location loc, Value x, Value y) { return chooseUnless(b, loc, y, x, Compare::LT); }
Value combineMax(OpBuilder &b, Location loc, Value x, Value y) { return chooseUnless(b, loc, y, x, Compare::GT); }

} // namespace lathe::legalize
