// Reading and writing at indices: GATHER, GATHER_ND, SLICE at run-time places, DYNAMIC_UPDATE_SLICE, SCATTER_ND, TOPK_V2, WHERE, UNIQUE.
#include "compiler/export/tflite/Raiser.h"

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

using namespace mlir;

namespace lathe::tflwrite {
namespace {

bool isIndexType(Type t) { return t.isSignlessInteger(32) || t.isSignlessInteger(64); }

/// Whether all numbers of a constant lie in [0, limit).
bool inRange(Value v, int64_t limit) {
  auto tensor = hlo::readConstant(v);
  if (failed(tensor))
    return false;
  auto all = [&](auto *values) {
    return std::all_of(values, values + tensor->numElements(), [&](int64_t n) { return n >= 0 && n < limit; });
  };
  if (tensor->dtype() == DType::Int32)
    return all(tensor->data<int32_t>());
  return tensor->dtype() == DType::Int64 && all(tensor->data<int64_t>());
}

/// Indices as hlo reads them, which moves those outside to the edge. Where the model checks them, an index outside is an error to
/// the kernels as it is to the model.
Value clampIndices(Value indices, ArrayRef<int64_t> limits, bool checked, Raiser &r) {
  if (!indices || checked)
    return indices;
  RankedTensorType type = hlo::tensorType(indices);
  Type element = type.getElementType();
  bool uniform = llvm::all_equal(limits);
  if (llvm::is_contained(limits, ShapedType::kDynamic)) {
    (void)r.refuse("indices that nothing checks into a dimension of run-time size");
    return {};
  }
  if (uniform && inRange(indices, limits[0]))
    return indices;
  SmallVector<int64_t> last;
  for (int64_t limit : limits)
    last.push_back(std::max<int64_t>(limit - 1, 0));
  Value high = uniform ? r.scalar(double(last[0]), element) : hlo::makeVector(r.b, r.loc, last, element);
  if (type.getRank() > broadcastRank("MAXIMUM") && !uniform) {
    (void)r.refuse("indices of too many dimensions");
    return {};
  }
  return r.binary("MINIMUM", r.binary("MAXIMUM", indices, r.scalar(0, element), type), high, type);
}

bool isFull(hlo::GatherOp op, int64_t d) {
  RankedTensorType type = hlo::tensorType(op.getOperand());
  int64_t size = op.getSliceSizes()[d];
  return size == std::numeric_limits<int64_t>::min() || size == type.getDimSize(d);
}

/// The result, whose dimensions come as `labels` say, in the order that `wanted` says.
Value arrange(Value v, ArrayRef<int64_t> labels, ArrayRef<int64_t> wanted, Raiser &r) {
  SmallVector<int64_t> permutation;
  for (int64_t label : wanted)
    permutation.push_back(llvm::find(labels, label) - labels.begin());
  return r.transpose(v, permutation);
}

/// Dimensions of the result of a gather in order: k for dimension k of the operand, ~k for dimension k of the indices (without the
/// dimension that holds them).
SmallVector<int64_t> resultLabels(hlo::GatherOp op, int64_t indexRank) {
  auto dims = op.getDimensionNumbers();
  SmallVector<int64_t> labels;
  int64_t operandDim = 0, indexDim = 0;
  const int64_t rank = hlo::tensorType(op.getResult()).getRank();
  auto skipped = [&](int64_t d) {
    return llvm::is_contained(dims.getCollapsedSliceDims(), d) || llvm::is_contained(dims.getOperandBatchingDims(), d);
  };
  for (int64_t d = 0; d < rank; ++d) {
    if (!llvm::is_contained(dims.getOffsetDims(), d)) {
      labels.push_back(~indexDim++);
      continue;
    }
    while (skipped(operandDim))
      ++operandDim;
    labels.push_back(operandDim++);
  }
  return labels;
}

LogicalResult gather(Operation *operation, Raiser &r) {
  auto op = cast<hlo::GatherOp>(operation);
  auto dims = op.getDimensionNumbers();
  Value params = op.getOperand(), indices = op.getStartIndices();
  RankedTensorType paramsType = hlo::tensorType(params), type = hlo::tensorType(op.getResult());
  const int64_t rank = paramsType.getRank();
  ArrayRef<int64_t> map = dims.getStartIndexMap(), collapsed = dims.getCollapsedSliceDims(), batch = dims.getOperandBatchingDims();
  for (int64_t d = 0; d < rank; ++d) {
    bool indexed = llvm::is_contained(map, d) || llvm::is_contained(batch, d);
    if (indexed ? op.getSliceSizes()[d] != 1 : !isFull(op, d))
      return r.refuse("it reads parts of more than one element along a dimension");
    if (!indexed && llvm::is_contained(collapsed, d))
      return r.refuse("it drops a dimension that is not indexed");
  }
  const bool checked = r.isChecked(indices);
  if (!isIndexType(hlo::elementType(indices)))
    indices = r.cast(indices, r.b.getI32Type());
  if (!indices || map.empty())
    return r.refuse("it has no index");
  // dimensions of one that the slices keep
  SmallVector<int64_t> kept;
  for (int64_t d : map)
    if (!llvm::is_contained(collapsed, d))
      kept.push_back(d);
  const int64_t indexRank = hlo::tensorType(indices).getRank(), vector = dims.getIndexVectorDim();
  SmallVector<AffineExpr> indexDims = hlo::getDims(hlo::tensorType(indices));
  SmallVector<int64_t> wanted = resultLabels(op, indexRank), have;
  llvm::erase_if(wanted, [&](int64_t label) { return llvm::is_contained(kept, label); });
  Value result;
  auto typeOf = [&](ArrayRef<AffineExpr> indexDims) {
    SmallVector<AffineExpr> sizes;
    for (int64_t label : have)
      sizes.push_back(label < 0 ? indexDims[~label] : hlo::getDim(paramsType, label));
    return hlo::makeType(sizes, paramsType.getElementType());
  };
  if (map.size() == 1) {
    const int64_t axis = map[0], batches = batch.size();
    if (!llvm::equal(batch, llvm::seq<int64_t>(0, batches)) || !llvm::equal(dims.getStartIndicesBatchingDims(), llvm::seq<int64_t>(0, batches)))
      return r.refuse("its dimensions of the batch are not the first ones");
    if (vector < indexRank) {
      indexDims.erase(indexDims.begin() + vector);
      indices = r.reshape(indices, indexDims);
    }
    indices = clampIndices(indices, {paramsType.getDimSize(axis)}, checked, r);
    for (int64_t d = 0; d < axis; ++d)
      have.push_back(d < batches ? ~d : d);
    for (int64_t d = batches; d < static_cast<int64_t>(indexDims.size()); ++d)
      have.push_back(~d);
    for (int64_t d = axis + 1; d < rank; ++d)
      have.push_back(d);
    result = indices ? r.make("GATHER", {params, indices}, typeOf(indexDims), {{"axis", r.number(axis)}, {"batch_dims", r.number(batches)}}) : Value();
  } else {
    if (!batch.empty() || vector != indexRank - 1)
      return r.refuse("its indices of several dimensions are not the last dimension, or have a batch");
    // the indexed dimensions first
    SmallVector<int64_t> order(map.begin(), map.end()), limits;
    for (int64_t d = 0; d < rank; ++d)
      if (!llvm::is_contained(map, d))
        order.push_back(d);
    for (int64_t d : map)
      limits.push_back(paramsType.getDimSize(d));
    indices = clampIndices(indices, limits, checked, r);
    indexDims.pop_back();
    for (int64_t d = 0; d < static_cast<int64_t>(indexDims.size()); ++d)
      have.push_back(~d);
    for (int64_t d : ArrayRef<int64_t>(order).drop_front(map.size()))
      have.push_back(d);
    Value moved = r.transpose(params, order);
    result = indices && moved ? r.make("GATHER_ND", {moved, indices}, typeOf(indexDims)) : Value();
  }
  return r.replace(op, result ? r.reshape(arrange(result, have, wanted, r), type) : Value());
}

/// Starts as one vector of i32, moved so that what begins there fits.
Value startVector(OperandRange starts, RankedTensorType whole, ArrayRef<int64_t> sizes, Raiser &r) {
  SmallVector<Value> parts;
  bool dynamic = false;
  SmallVector<int64_t> last;
  for (auto [d, start] : llvm::enumerate(starts)) {
    if (whole.isDynamicDim(d) || sizes[d] == ShapedType::kDynamic) {
      // where all is taken there is one place
      if (!isSplat(start, 0)) {
        (void)r.refuse("a run-time place in a dimension of run-time size");
        return {};
      }
      last.push_back(0);
    } else {
      last.push_back(whole.getDimSize(d) - sizes[d]);
    }
    if (auto number = splatNumber(start)) {
      parts.push_back(r.numbers({std::clamp<int64_t>(int64_t(*number), 0, last.back())}));
      continue;
    }
    if (last.back() == 0) {
      parts.push_back(r.numbers({0}));
      continue;
    }
    dynamic = true;
    parts.push_back(r.reshape(r.cast(start, r.b.getI32Type()), {r.expr(1)}));
    if (!parts.back())
      return {};
  }
  RankedTensorType type = RankedTensorType::get({static_cast<int64_t>(parts.size())}, r.b.getI32Type());
  Value vector = parts.size() == 1 ? parts[0] : r.make("CONCATENATION", parts, type, {{"axis", r.number(0)}});
  if (!dynamic)
    return vector;
  return r.binary("MINIMUM", r.binary("MAXIMUM", vector, r.numbers({0}), type), r.numbers(last), type);
}

LogicalResult dynamicSlice(Operation *operation, Raiser &r) {
  auto op = cast<hlo::DynamicSliceOp>(operation);
  RankedTensorType whole = hlo::tensorType(op.getOperand()), type = hlo::tensorType(op.getResult());
  if (type.getRank() == 0)
    return r.replace(op, op.getOperand());
  if (type.getRank() > 5)
    return r.refuse("SLICE takes at most 5 dimensions");
  Value starts = startVector(op.getStartIndices(), whole, type.getShape(), r);
  return r.replace(op, starts ? r.make("SLICE", {op.getOperand(), starts, r.sizes(hlo::getDims(type))}, type) : Value());
}

LogicalResult dynamicUpdateSlice(Operation *operation, Raiser &r) {
  auto op = cast<hlo::DynamicUpdateSliceOp>(operation);
  RankedTensorType whole = hlo::tensorType(op.getOperand());
  if (whole.getRank() == 0)
    return r.replace(op, op.getUpdate());
  Value starts = startVector(op.getStartIndices(), whole, hlo::tensorType(op.getUpdate()).getShape(), r);
  return r.replace(op, starts ? r.make("DYNAMIC_UPDATE_SLICE", {op.getOperand(), op.getUpdate(), starts}, whole) : Value());
}

/// Sums of rows into a tensor, where indices are the last dimension and lead the tensor's dimensions.
LogicalResult scatter(Operation *operation, Raiser &r) {
  auto op = cast<hlo::ScatterOp>(operation);
  if (op.getInputs().size() != 1)
    return r.refuse("it writes several tensors");
  auto dims = op.getScatterDimensionNumbers();
  Value input = op.getInputs()[0], indices = op.getScatterIndices(), updates = op.getUpdates()[0];
  RankedTensorType type = hlo::tensorType(input), indexType = hlo::tensorType(indices), updateType = hlo::tensorType(updates);
  Operation *combiner = simpleCombiner(op.getUpdateComputation());
  if (!combiner || !isa<hlo::AddOp>(combiner))
    return r.refuse("it does more than add");
  const int64_t depth = dims.getScatterDimsToOperandDims().size(), batch = updateType.getRank() - (type.getRank() - depth);
  bool plain = llvm::equal(dims.getInsertedWindowDims(), llvm::seq<int64_t>(0, depth)) &&
               llvm::equal(dims.getScatterDimsToOperandDims(), llvm::seq<int64_t>(0, depth)) && dims.getInputBatchingDims().empty() &&
               llvm::equal(dims.getUpdateWindowDims(), llvm::seq<int64_t>(batch, updateType.getRank()));
  for (int64_t d = depth; plain && d < type.getRank(); ++d)
    plain = hlo::equalDims(hlo::getDim(type, d), hlo::getDim(updateType, batch + d - depth));
  if (!plain)
    return r.refuse("it writes parts that SCATTER_ND does not");
  if (dims.getIndexVectorDim() == indexType.getRank()) {
    SmallVector<AffineExpr> sizes = hlo::getDims(indexType);
    sizes.push_back(r.expr(1));
    indices = r.reshape(indices, sizes);
  } else if (dims.getIndexVectorDim() != indexType.getRank() - 1) {
    return r.refuse("its indices are not the last dimension");
  }
  if (!r.isChecked(op.getScatterIndices())) {
    SmallVector<int64_t> limits;
    for (int64_t d = 0; d < depth; ++d)
      limits.push_back(type.isDynamicDim(d) ? 0 : type.getDimSize(d));
    if (!llvm::all_equal(limits) || !inRange(op.getScatterIndices(), limits[0]))
      return r.refuse("an index outside would be an error instead of nothing");
  }
  indices = r.cast(indices, r.b.getI32Type());
  Value sums = indices ? r.make("SCATTER_ND", {indices, updates, r.sizes(hlo::getDims(type))}, type) : Value();
  if (!sums || isSplat(input, 0))
    return r.replace(op, sums);
  return r.replace(op, r.make("ADD", {input, sums}, type));
}

LogicalResult topK(Operation *operation, Raiser &r) {
  auto op = cast<hlo::TopKOp>(operation);
  auto values = cast<RankedTensorType>(op.getResult(0).getType()), places = cast<RankedTensorType>(op.getResult(1).getType());
  if (!takesType("TOPK_V2", values.getElementType()) || !places.getElementType().isSignlessInteger(32))
    return r.refuse("TOPK_V2 does not take elements of this type");
  Value k = r.scalar(double(op.getK()), r.b.getI32Type());
  return r.replace(op, r.makeMany("TOPK_V2", {op.getOperand(), k}, {values, places})->getResults());
}

LogicalResult where(Operation *operation, Raiser &r) {
  auto op = cast<hlo::WhereOp>(operation);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value x = op.getOperand();
  RankedTensorType from = hlo::tensorType(x);
  if (!from.getElementType().isInteger(1))
    x = r.make("NOT_EQUAL", {x, r.scalar(0, from.getElementType())}, hlo::withElementType(from, r.b.getI1Type()));
  Value places = x ? r.make("WHERE", {x}, hlo::withElementType(type, r.b.getI64Type())) : Value();
  return r.replace(op, r.cast(places, type.getElementType()));
}

LogicalResult unique(Operation *operation, Raiser &r) {
  auto op = cast<hlo::UniqueOp>(operation);
  auto values = cast<RankedTensorType>(op.getValues().getType()), places = cast<RankedTensorType>(op.getIndices().getType());
  if (hlo::tensorType(op.getOperand()).getRank() != 1 || !op.getCounts().use_empty())
    return r.refuse("only of vectors, and without counts");
  if (!takesType("UNIQUE", values.getElementType()) || !isIndexType(places.getElementType()))
    return r.refuse("UNIQUE does not take elements of this type");
  Operation *made = r.makeMany("UNIQUE", {op.getOperand()}, {values, places}, {{"index_bits", r.number(places.getElementTypeBitWidth())}});
  op.getValues().replaceAllUsesWith(made->getResult(0));
  op.getIndices().replaceAllUsesWith(made->getResult(1));
  return success();
}

/// All of a dimension in order, of numbers that are compared as such: what TOPK_V2 gives, of the negative numbers where the smallest
/// come first.
LogicalResult sort(Operation *operation, Raiser &r) {
  auto op = cast<hlo::SortOp>(operation);
  RankedTensorType type = hlo::tensorType(op.getInputs()[0]);
  const int64_t rank = type.getRank(), dim = static_cast<int64_t>(op.getDimension()) < 0 ? op.getDimension() + rank : op.getDimension();
  Block &block = op.getComparator().front();
  auto compare = definedBy<hlo::CompareOp>(block.getTerminator()->getOperand(0));
  using D = hlo::ComparisonDirection;
  if (op.getInputs().size() > 2 || !compare || compare.getLhs() != block.getArgument(0) || compare.getRhs() != block.getArgument(1) ||
      (compare.getComparisonDirection() != D::LT && compare.getComparisonDirection() != D::GT))
    return r.refuse("its order is not that of one tensor's numbers");
  if (!type.getElementType().isF32() || type.isDynamicDim(dim))
    return r.refuse("only for f32 along a dimension of known size");
  Type places = r.b.getI32Type();
  if (op.getInputs().size() == 2) {
    auto iota = definedBy<hlo::IotaOp>(op.getInputs()[1]);
    if (!iota || static_cast<int64_t>(iota.getIotaDimension()) != dim)
      return r.refuse("it moves a second tensor");
  }
  SmallVector<int64_t> swap = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(swap[dim], swap.back());
  bool ascending = compare.getComparisonDirection() == D::LT;
  Value x = r.transpose(op.getInputs()[0], swap);
  RankedTensorType moved = x ? hlo::tensorType(x) : type;
  if (x && ascending)
    x = r.make("NEG", {x}, moved);
  if (!x)
    return failure();
  Operation *top = r.makeMany("TOPK_V2", {x, r.scalar(double(type.getDimSize(dim)), r.b.getI32Type())},
                              {moved, hlo::withElementType(moved, places)});
  Value values = top->getResult(0);
  if (ascending)
    values = r.make("NEG", {values}, moved);
  SmallVector<Value> results = {r.transpose(values, swap)};
  if (op.getInputs().size() == 2)
    results.push_back(r.cast(r.transpose(top->getResult(1), swap), hlo::elementType(op.getInputs()[1])));
  return r.replace(op, results);
}

} // namespace

void addIndexHandlers(HandlerTable &t) {
  const std::pair<const char *, Handler> all[] = {
      {"gather", gather}, {"dynamic_slice", dynamicSlice}, {"dynamic_update_slice", dynamicUpdateSlice}, {"scatter", scatter},
      {"top_k", topK}, {"where", where}, {"unique", unique}, {"sort", sort}};
  for (auto &[name, handler] : all)
    t[name].push_back(handler);
}

} // namespace lathe::tflwrite
