// Constants, sizes and shapes for handlers.
#include "compiler/export/tflite/Raiser.h"

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace lathe::tflwrite {

void Raiser::startFunction(func::FuncOp f) {
  function = f;
  knownSizes.clear();
  checked.clear();
  SmallVector<std::pair<Value, int>> work;
  function.walk([&](hlo::CheckOp check) { work.push_back({check.getPred(), 0}); });
  while (!work.empty()) {
    auto [v, depth] = work.pop_back_val();
    Operation *op = v.getDefiningOp();
    if (depth > 8 || !checked.insert(v).second || !op || !op->hasTrait<hlo::HloElementwise>())
      continue;
    for (Value operand : op->getOperands())
      work.push_back({operand, depth + 1});
  }
}

void Raiser::start(Operation *op) {
  b.setInsertionPoint(op);
  loc = op->getLoc();
}

LogicalResult Raiser::refuse(const Twine &why) {
  reason = why.str();
  return failure();
}

LogicalResult Raiser::replace(Operation *op, ValueRange values) {
  for (Value v : values)
    if (!v)
      return failure();
  op->replaceAllUsesWith(values);
  return success();
}

Operation *Raiser::makeMany(StringRef name, ValueRange operands, ArrayRef<Type> types, ArrayRef<Option> options) {
  NamedAttrList list;
  for (auto &[key, value] : options)
    list.set(key, value);
  return hlo::CustomCallOp::create(b, loc, TypeRange(types), operands, b.getStringAttr((operatorPrefix + name).str()), b.getBoolAttr(false),
                                   list.getDictionary(b.getContext()), IntegerAttr());
}

Value Raiser::make(StringRef name, ValueRange operands, RankedTensorType type, ArrayRef<Option> options) {
  for (Value v : operands)
    if (!v)
      return {};
  // what comes first may be a condition, indices or sizes
  const unsigned subject = name == "TRANSPOSE_CONV" ? 2 : name == "SELECT_V2" || name == "SCATTER_ND" ? 1 : 0;
  Type element = hlo::elementType(operands[subject]);
  if (!takesType(name, element)) {
    std::string type;
    llvm::raw_string_ostream(type) << element;
    (void)refuse(name + " does not take elements of type " + type);
    return {};
  }
  return makeMany(name, operands, {type}, options)->getResult(0);
}

Value Raiser::numbers(ArrayRef<int64_t> values) { return hlo::makeVector(b, loc, values, b.getI32Type()); }

Value Raiser::scalar(double value, Type elementType) { return hlo::makeScalar(b, loc, value, elementType); }

Value Raiser::quantized(const Tensor &values, Type element) {
  Value integers = hlo::makeConstant(b, loc, values);
  return makeMany(constantOperator, integers, hlo::withElementType(hlo::tensorType(integers), element))->getResult(0);
}

Value Raiser::scaled(Value constant, ArrayRef<double> scales, int64_t dimension) {
  return makeMany(constantOperator, constant, constant.getType(), {{"scales", b.getDenseF64ArrayAttr(scales)}, {"dimension", number(dimension)}})
      ->getResult(0);
}

/// Where a symbol's value comes from: the size of an argument, or what an op of the function writes at run time.
Value Raiser::symbol(unsigned position) {
  AffineExpr wanted = hlo::symbolExpr(b.getContext(), position);
  auto sizeOf = [&](Value v) -> Value {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    for (int64_t d = 0; type && d < type.getRank(); ++d) {
      if (hlo::getDim(type, d) != wanted)
        continue;
      Value shape = make("SHAPE", {v}, RankedTensorType::get({type.getRank()}, b.getI32Type()));
      if (!shape)
        return {};
      return make("STRIDED_SLICE", {shape, numbers({d}), numbers({d + 1}), numbers({1})}, RankedTensorType::get({1}, b.getI32Type()));
    }
    return {};
  };
  for (BlockArgument arg : function.getArguments())
    if (Value size = sizeOf(arg))
      return size;
  Value found;
  function.walk([&](Operation *op) {
    auto written = op->getAttrOfType<IntegerAttr>("symbol");
    if (found || !written || written.getInt() != position)
      return;
    if (auto set = dyn_cast<hlo::SetSizeOp>(op))
      found = reshape(cast(set.getOperand(), b.getI32Type()), {expr(1)});
    else
      for (Value result : op->getResults())
        if (!found)
          found = sizeOf(result);
  });
  if (!found)
    (void)refuse("a size that is only known when the model runs");
  return found;
}

Value Raiser::makeSize(AffineExpr dim) {
  RankedTensorType type = RankedTensorType::get({1}, b.getI32Type());
  if (auto s = dyn_cast<AffineSymbolExpr>(dim))
    return symbol(s.getPosition());
  auto pair = dyn_cast<AffineBinaryOpExpr>(dim);
  if (!pair)
    return {};
  // expressions are shallow: a few products and quotients (hlo::simplify)
  Value lhs = size(pair.getLHS()), rhs = size(pair.getRHS());
  if (!lhs || !rhs)
    return {};
  switch (pair.getKind()) {
  case AffineExprKind::Add: return make("ADD", {lhs, rhs}, type);
  case AffineExprKind::Mul: return make("MUL", {lhs, rhs}, type);
  case AffineExprKind::FloorDiv: return make("FLOOR_DIV", {lhs, rhs}, type);
  case AffineExprKind::Mod: return make("FLOOR_MOD", {lhs, rhs}, type);
  case AffineExprKind::CeilDiv: {
    Value quotient = make("FLOOR_DIV", {make("MUL", {lhs, numbers({-1})}, type), rhs}, type);
    return make("MUL", {quotient, numbers({-1})}, type);
  }
  default: return {};
  }
}

Value Raiser::size(AffineExpr dim) {
  if (auto value = hlo::constantValue(dim))
    return numbers({*value});
  if (auto at = knownSizes.find(dim); at != knownSizes.end())
    return at->second;
  // what the arguments settle is made once, at the start of the function
  bool early = llvm::all_of(hlo::getSymbols(dim), [&](unsigned k) {
    auto info = hlo::lookupSymbol(module, k);
    return info && !info->isData;
  });
  OpBuilder::InsertionGuard guard(b);
  if (early) {
    if (knownSizes.empty())
      b.setInsertionPointToStart(&function.getBody().front());
    else
      b.setInsertionPointAfter(knownSizes.back().second.getDefiningOp());
  }
  Value result = makeSize(dim);
  if (!result && reason.empty())
    (void)refuse("a size that is only known when the model runs");
  if (result && early)
    knownSizes[dim] = result;
  return result;
}

Value Raiser::sizes(ArrayRef<AffineExpr> dims, bool forReshape) {
  SmallVector<int64_t> known;
  int64_t unknown = 0;
  bool empty = false;
  for (AffineExpr d : dims) {
    if (!d) {
      (void)refuse("a size that is not known");
      return {};
    }
    auto value = hlo::constantValue(d);
    unknown += !value;
    empty |= value && *value == 0;
    known.push_back(value ? *value : -1);
  }
  // what is left of an element count of 0 is anything
  if (unknown == 0 || (forReshape && unknown == 1 && !empty))
    return numbers(known);
  SmallVector<Value> parts;
  SmallVector<int64_t> run;
  auto flush = [&] {
    if (!run.empty())
      parts.push_back(numbers(run));
    run.clear();
  };
  for (auto [d, value] : llvm::zip(dims, known)) {
    if (value >= 0) {
      run.push_back(value);
      continue;
    }
    flush();
    Value part = size(d);
    if (!part)
      return {};
    parts.push_back(part);
  }
  flush();
  if (parts.size() == 1)
    return parts[0];
  return make("CONCATENATION", parts, RankedTensorType::get({static_cast<int64_t>(dims.size())}, b.getI32Type()), {{"axis", number(0)}});
}

hlo::ConvertOp widenedWeights(Value v) {
  auto convert = definedBy<hlo::ConvertOp>(v);
  return convert && hlo::elementType(v).isF32() && hlo::elementType(convert.getOperand()).isF16() && constantValue(convert.getOperand())
             ? convert
             : hlo::ConvertOp();
}

bool isWeights(Value v) { return constantValue(v) || widenedWeights(v); }

/// What moves elements of widened weights moves them as they are stored.
static Value widened(Value stored, Raiser &r) {
  return stored ? Value(hlo::ConvertOp::create(r.b, r.loc, hlo::withElementType(hlo::tensorType(stored), r.b.getF32Type()), stored)) : Value();
}

Value Raiser::reshape(Value v, ArrayRef<AffineExpr> dims) {
  if (!v)
    return {};
  RankedTensorType from = hlo::tensorType(v), to = hlo::makeType(dims, from.getElementType());
  if (from == to)
    return v;
  if (auto weights = widenedWeights(v))
    return widened(reshape(weights.getOperand(), dims), *this);
  if (ElementsAttr value = constantValue(v)) {
    if (auto dense = dyn_cast<DenseElementsAttr>(value))
      return hlo::makeConstant(b, loc, dense.reshape(to));
    if (auto blob = dyn_cast<DenseResourceElementsAttr>(value))
      return hlo::makeConstant(b, loc, DenseResourceElementsAttr::get(to, blob.getRawHandle()));
  }
  Value shape = sizes(dims, true);
  return shape ? make("RESHAPE", {v, shape}, to) : Value();
}

/// Dimension d of the result is dimension permutation[d] of `from`, backwards where `flips` has it.
static FailureOr<Tensor> rearranged(const Tensor &from, ArrayRef<int64_t> permutation, ArrayRef<int64_t> flips = {}) {
  std::vector<int64_t> dims;
  const int64_t rank = from.rank();
  SmallVector<int64_t> strides(rank, 1), steps;
  for (int64_t d = rank - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * from.dim(d + 1);
  int64_t offset = 0;
  for (int64_t p : permutation) {
    dims.push_back(from.dim(p));
    bool flip = llvm::is_contained(flips, p);
    steps.push_back(flip ? -strides[p] : strides[p]);
    offset += flip ? strides[p] * (from.dim(p) - 1) : 0;
  }
  auto to = Tensor::tryAllocate(from.dtype(), dims, int64_t(1) << 31);
  if (!to.ok())
    return failure();
  const size_t bytes = dtypeSize(from.dtype());
  const char *source = static_cast<const char *>(from.data());
  char *out = static_cast<char *>(to->data());
  SmallVector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < from.numElements(); ++i, out += bytes) {
    std::memcpy(out, source + offset * int64_t(bytes), bytes);
    for (int64_t d = rank - 1; d >= 0; --d) {
      offset += steps[d];
      if (++index[d] < dims[d])
        break;
      offset -= steps[d] * dims[d];
      index[d] = 0;
    }
  }
  return *to;
}

Value Raiser::reverse(Value v, ArrayRef<int64_t> dims) {
  if (!v || dims.empty())
    return v;
  if (auto weights = widenedWeights(v))
    return widened(reverse(weights.getOperand(), dims), *this);
  RankedTensorType type = hlo::tensorType(v);
  if (ElementsAttr value = constantValue(v))
    if (auto tensor = hlo::readConstant(value); succeeded(tensor))
      if (auto flipped = rearranged(*tensor, llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())), dims); succeeded(flipped))
        return hlo::makeConstant(b, loc, *flipped);
  for (int64_t d : dims) // the kernel turns neighbouring dimensions only
    if (v)
      v = make("REVERSE_V2", {v, numbers({d})}, type);
  return v;
}

Value Raiser::pad(Value v, ArrayRef<int64_t> low, ArrayRef<int64_t> high, Value value) {
  if (!v)
    return {};
  auto grow = [&](RankedTensorType type, bool outwards) {
    SmallVector<AffineExpr> dims = hlo::getDims(type);
    for (auto [d, dim] : llvm::enumerate(dims))
      if (dim)
        dim = hlo::simplify(outwards ? dim + std::max<int64_t>(low[d], 0) + std::max<int64_t>(high[d], 0)
                                     : dim + std::min<int64_t>(low[d], 0) + std::min<int64_t>(high[d], 0));
    return hlo::makeType(dims, type.getElementType());
  };
  auto negative = [](int64_t n) { return n < 0; };
  if (llvm::any_of(low, negative) || llvm::any_of(high, negative)) {
    SmallVector<AffineExpr> start;
    for (int64_t n : low)
      start.push_back(expr(std::max<int64_t>(-n, 0)));
    v = slice(v, start, grow(hlo::tensorType(v), false));
  }
  SmallVector<int32_t> sizes;
  for (auto [l, h] : llvm::zip_equal(low, high)) {
    sizes.push_back(std::max<int64_t>(l, 0));
    sizes.push_back(std::max<int64_t>(h, 0));
  }
  if (!v || llvm::all_of(sizes, [](int32_t n) { return n == 0; }))
    return v;
  if (low.size() > 5) {
    (void)refuse("PAD takes at most 5 dimensions");
    return {};
  }
  auto table = RankedTensorType::get({static_cast<int64_t>(low.size()), 2}, b.getI32Type());
  Value amounts = hlo::makeConstant(b, loc, DenseElementsAttr::get(table, ArrayRef<int32_t>(sizes)));
  RankedTensorType type = grow(hlo::tensorType(v), true);
  if (!value || (constantValue(value) && isSplat(value, 0)))
    return make("PAD", {v, amounts}, type);
  return make("PADV2", {v, amounts, value}, type);
}

Value Raiser::slice(Value v, ArrayRef<AffineExpr> start, RankedTensorType type, ArrayRef<int64_t> strides) {
  if (!v || hlo::tensorType(v) == type)
    return v;
  RankedTensorType from = hlo::tensorType(v);
  const int64_t rank = type.getRank();
  bool steps = llvm::any_of(strides, [](int64_t s) { return s != 1; });
  if (!steps) {
    if (rank > 5) {
      (void)refuse("SLICE takes at most 5 dimensions");
      return {};
    }
    SmallVector<AffineExpr> dims = hlo::getDims(type);
    for (int64_t d = 0; d < rank; ++d) // -1: all that is left
      if (type.isDynamicDim(d) && hlo::equalDims(start[d] + dims[d], hlo::getDim(from, d)))
        dims[d] = expr(-1);
    return make("SLICE", {v, sizes(start), sizes(dims)}, type);
  }
  if (rank > 5) {
    (void)refuse("STRIDED_SLICE takes at most 5 dimensions");
    return {};
  }
  SmallVector<AffineExpr> end;
  for (int64_t d = 0; d < rank; ++d)
    end.push_back(hlo::simplify(start[d] + (hlo::getDim(type, d) - 1) * strides[d] + 1));
  return make("STRIDED_SLICE", {v, sizes(start), sizes(end), numbers(strides)}, type);
}

Value Raiser::transpose(Value v, ArrayRef<int64_t> permutation) {
  if (!v || llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return v;
  if (auto weights = widenedWeights(v))
    return widened(transpose(weights.getOperand(), permutation), *this);
  RankedTensorType from = hlo::tensorType(v);
  SmallVector<AffineExpr> dims;
  for (int64_t p : permutation)
    dims.push_back(hlo::getDim(from, p));
  RankedTensorType to = hlo::makeType(dims, from.getElementType());
  if (ElementsAttr value = constantValue(v)) {
    if (auto splat = dyn_cast<SplatElementsAttr>(value))
      return hlo::makeConstant(b, loc, splat.resizeSplat(to));
    auto tensor = hlo::readConstant(value);
    if (succeeded(tensor))
      if (auto moved = rearranged(*tensor, permutation); succeeded(moved))
        return hlo::makeConstant(b, loc, *moved);
  }
  // dimensions of one may go anywhere: a reshape moves nothing
  SmallVector<int64_t> large;
  for (int64_t p : permutation)
    if (from.getDimSize(p) != 1)
      large.push_back(p);
  if (llvm::is_sorted(large))
    return reshape(v, dims);
  if (from.getRank() > 6) {
    (void)refuse("TRANSPOSE takes at most 6 dimensions");
    return {};
  }
  return make("TRANSPOSE", {v, numbers(permutation)}, to);
}

Value Raiser::cast(Value v, Type elementType) {
  if (!v || hlo::elementType(v) == elementType)
    return v;
  return make("CAST", {v}, hlo::withElementType(hlo::tensorType(v), elementType));
}

Value Raiser::narrow(Value v) {
  if (ElementsAttr value = constantValue(v)) {
    auto splat = dyn_cast<SplatElementsAttr>(value);
    if (splat && hlo::tensorType(v).getRank() > 0)
      return hlo::makeConstant(b, loc, splat.resizeSplat(RankedTensorType::get({}, hlo::elementType(v))));
    return v;
  }
  auto broadcast = definedBy<hlo::BroadcastInDimOp>(v);
  if (!broadcast)
    return v;
  Value source = broadcast.getOperand();
  if (Value inner = narrow(source); hlo::tensorType(inner).getRank() == 0)
    return inner;
  RankedTensorType from = hlo::tensorType(source), to = hlo::tensorType(v);
  ArrayRef<int64_t> places = broadcast.getBroadcastDimensions();
  int64_t first = to.getRank();
  for (auto [d, place] : llvm::enumerate(places))
    if (from.getDimSize(d) != 1)
      first = std::min(first, place);
  SmallVector<AffineExpr> dims(to.getRank() - first, expr(1));
  for (auto [d, place] : llvm::enumerate(places))
    if (place >= first)
      dims[place - first] = hlo::getDim(from, d);
  return reshape(source, dims);
}

SmallVector<Value> Raiser::narrowOperands(ValueRange operands, RankedTensorType result, int64_t limit) {
  SmallVector<Value> values(operands.begin(), operands.end());
  auto scalarOnly = [](Value v) { return hlo::tensorType(v).getRank() == 0; };
  for (Value &v : values) {
    Value narrowed = narrow(v);
    // every kernel takes one element against a tensor of any rank
    if (narrowed && (result.getRank() <= limit || scalarOnly(narrowed)))
      v = narrowed;
  }
  for (int64_t d = 0; d < result.getRank(); ++d) {
    auto covers = [&](Value v) {
      RankedTensorType type = hlo::tensorType(v);
      int64_t at = d - (result.getRank() - type.getRank());
      return at >= 0 && hlo::equalDims(hlo::getDim(type, at), hlo::getDim(result, d));
    };
    if (result.getDimSize(d) != 1 ? llvm::none_of(values, covers)
                                  : llvm::none_of(values, [&](Value v) { return hlo::tensorType(v).getRank() >= result.getRank() - d; })) {
      values[0] = operands[0];
      if (llvm::none_of(values, covers))
        for (auto [to, from] : llvm::zip(values, operands))
          to = from;
    }
  }
  return values;
}

} // namespace lathe::tflwrite
