// Reductions, windows, scatter, sort, map, top_k: inference, verification of regions, builders.
#include "dialects/hlo/Infer.h"
#include "dialects/hlo/Running.h"

using namespace mlir;

namespace lathe::hlo {

using BodyFn = llvm::function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

// Fills a region with one block of `types` that returns what `body` computes.
static void buildBody(OpBuilder &b, Location loc, Region *region, TypeRange types, BodyFn body) {
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(region, region->end(), types, SmallVector<Location>(types.size(), loc));
  auto results = body(b, loc, block->getArguments());
  ReturnOp::create(b, loc, results);
}

// Scalar types of the values' elements, the list repeated `times`.
static SmallVector<Type> scalarTypes(ValueRange values, unsigned times) {
  SmallVector<Type> types;
  for (unsigned i = 0; i < times; ++i)
    for (Value value : values)
      types.push_back(RankedTensorType::get({}, getElementTypeOrSelf(value.getType())));
  return types;
}
static SmallVector<Type> pairTypes(ValueRange values) {
  SmallVector<Type> types;
  for (Value value : values)
    types.append(2, RankedTensorType::get({}, getElementTypeOrSelf(value.getType())));
  return types;
}

// The block's arguments and what it returns.
static LogicalResult verifyBody(Operation *op, Region &region, TypeRange arguments, TypeRange results) {
  if (region.empty())
    return op->emitOpError("expected a body");
  Block &block = region.front();
  if (block.getArgumentTypes() != arguments)
    return op->emitOpError("expected a body with arguments ")
           << arguments << ", found " << TypeRange(block.getArgumentTypes());
  auto terminator = block.empty() ? ReturnOp() : dyn_cast<ReturnOp>(block.back());
  if (!terminator)
    return op->emitOpError("expected the body to end in hlo.return");
  if (!areCompatible(results, terminator.getResults().getTypes()))
    return op->emitOpError("expected the body to return ")
           << results << ", found " << TypeRange(terminator.getResults().getTypes());
  return success();
}

static SmallVector<Type> scalarsOf(ValueRange values, unsigned times = 1) { return scalarTypes(values, times); }

static LogicalResult checkReduced(MaybeLocation location, ValueRange inputs, ValueRange inits) {
  if (inputs.empty() || inputs.size() != inits.size())
    return emitOptionalError(location, "expected as many inputs as initial values, at least one");
  if (failed(mergeDims(location, inputs.getTypes())))
    return failure();
  for (auto [input, init] : llvm::zip(inputs, inits))
    if (typeOf(init).getRank() != 0)
      return emitOptionalError(location, "C2: initial values must be scalars, found ", init.getType());
    else if (typeOf(init).getElementType() != typeOf(input).getElementType())
      return emitOptionalError(location, "C2: initial value of ", typeOf(init).getElementType(), " does not fit ",
                               input.getType());
  return success();
}

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

static LogicalResult inferTypes(ReduceOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  if (failed(checkReduced(location, adaptor.getInputs(), adaptor.getInitValues())))
    return failure();
  auto merged = mergeDims(location, adaptor.getInputs().getTypes());
  if (failed(merged) || failed(checkDims(location, "C4: dimensions", adaptor.getDimensions(), merged->size())))
    return failure();
  SmallVector<AffineExpr> dims;
  for (auto [i, dim] : llvm::enumerate(*merged))
    if (!llvm::is_contained(adaptor.getDimensions(), static_cast<int64_t>(i)))
      dims.push_back(dim);
  for (Value init : adaptor.getInitValues())
    types.push_back(makeType(dims, typeOf(init).getElementType()));
  return success();
}
void ReduceOp::build(OpBuilder &b, OperationState &state, ValueRange inputs, ValueRange inits,
                     ArrayRef<int64_t> dimensions, BodyFn body) {
  build(b, state, inputs, inits, b.getDenseI64ArrayAttr(dimensions));
  buildBody(b, state.location, state.regions.front().get(), scalarsOf(inits, 2), body);
}
LogicalResult ReduceOp::verifyRegions() {
  return verifyBody(*this, getBody(), scalarsOf(getInitValues(), 2), scalarsOf(getInitValues()));
}

//===----------------------------------------------------------------------===//
// reduce_window, select_and_scatter
//===----------------------------------------------------------------------===//

static LogicalResult checkWindow(MaybeLocation location, int64_t rank, std::initializer_list<ArrayRef<int64_t>> lists,
                                 Attribute padding) {
  for (ArrayRef<int64_t> list : lists) {
    if (static_cast<int64_t>(list.size()) != rank)
      return emitOptionalError(location, "C4: expected ", rank, " window dimensions, strides and dilations");
    for (int64_t value : list)
      if (value <= 0)
        return emitOptionalError(location, "C5: window dimensions, strides and dilations must be positive");
  }
  auto elements = dyn_cast_or_null<DenseIntElementsAttr>(padding);
  if (padding && (!elements || elements.getNumElements() != 2 * rank))
    return emitOptionalError(location, "C12: expected a padding of ", rank, "x2");
  return success();
}

static LogicalResult inferTypes(ReduceWindowOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  if (failed(checkReduced(location, adaptor.getInputs(), adaptor.getInitValues())))
    return failure();
  auto merged = mergeDims(location, adaptor.getInputs().getTypes());
  if (failed(merged))
    return failure();
  size_t rank = merged->size();
  ArrayRef<int64_t> window = adaptor.getWindowDimensions();
  auto strides = getListOr(adaptor.getWindowStrides(), rank, 1);
  auto baseDilations = getListOr(adaptor.getBaseDilations(), rank, 1);
  auto windowDilations = getListOr(adaptor.getWindowDilations(), rank, 1);
  if (failed(checkWindow(location, rank, {window, strides, baseDilations, windowDilations}, adaptor.getPaddingAttr())))
    return failure();
  auto padding = getPadding(dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getPaddingAttr()), rank);
  SmallVector<AffineExpr> dims;
  for (size_t i = 0; i < rank; ++i)
    dims.push_back(windowedSize((*merged)[i], window[i], strides[i], padding[i].first, padding[i].second,
                                baseDilations[i], windowDilations[i]));
  for (Value init : adaptor.getInitValues())
    types.push_back(makeType(dims, typeOf(init).getElementType()));
  return success();
}

static DenseI64ArrayAttr listAttr(OpBuilder &b, ArrayRef<int64_t> values) {
  return values.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(values);
}
static DenseIntElementsAttr paddingAttr(OpBuilder &b, const PaddingList &padding) {
  return padding.empty() ? DenseIntElementsAttr() : makePaddingAttr(b.getContext(), padding);
}

void ReduceWindowOp::build(OpBuilder &b, OperationState &state, ValueRange inputs, ValueRange inits,
                           ArrayRef<int64_t> windowDimensions, const ReduceWindow &window, BodyFn body) {
  build(b, state, inputs, inits, b.getDenseI64ArrayAttr(windowDimensions), listAttr(b, window.strides),
        listAttr(b, window.baseDilations), listAttr(b, window.windowDilations), paddingAttr(b, window.padding));
  buildBody(b, state.location, state.regions.front().get(), scalarsOf(inits, 2), body);
}
std::optional<RunningWindow> runningWindow(ReduceWindowOp op, ArrayRef<AffineExpr> dims) {
  size_t rank = dims.size();
  auto strides = getListOr(op.getWindowStrides(), rank, 1), base = getListOr(op.getBaseDilations(), rank, 1);
  auto dilations = getListOr(op.getWindowDilations(), rank, 1);
  auto padding = getPadding(dyn_cast_or_null<DenseIntElementsAttr>(op.getPaddingAttr()), rank);
  std::optional<RunningWindow> found;
  for (size_t i = 0; i < rank; ++i) {
    int64_t n = op.getWindowDimensions()[i];
    auto [low, high] = padding[i];
    if (strides[i] != 1 || base[i] != 1 || dilations[i] != 1)
      return std::nullopt;
    if (n == 1 && low == 0 && high == 0)
      continue;
    std::optional<int64_t> size = constantValue(dims[i]);
    if (found || (n < kUnboundedWindow && (!size || n < *size)))
      return std::nullopt;
    bool reverse = low <= 0;
    int64_t near = reverse ? low : high;
    if (low + high != n - 1 || (near != 0 && near != -1))
      return std::nullopt;
    found = {int64_t(i), reverse, near == -1};
  }
  return found;
}
std::optional<RunningWindow> runningWindow(ReduceWindowOp op) {
  return runningWindow(op, getDims(tensorType(op.getInputs().front())));
}

LogicalResult ReduceWindowOp::verifyRegions() {
  return verifyBody(*this, getBody(), scalarsOf(getInitValues(), 2), scalarsOf(getInitValues()));
}

static LogicalResult inferTypes(SelectAndScatterOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto operand = typeOf(adaptor.getOperand()), source = typeOf(adaptor.getSource());
  size_t rank = operand.getRank();
  if (failed(checkReduced(location, adaptor.getOperand(), adaptor.getInitValue())))
    return failure();
  auto window = getListOr(adaptor.getWindowDimensions(), rank, 1), strides = getListOr(adaptor.getWindowStrides(), rank, 1);
  if (failed(checkWindow(location, rank, {window, strides}, adaptor.getPaddingAttr())))
    return failure();
  auto padding = getPadding(dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getPaddingAttr()), rank);
  SmallVector<AffineExpr> dims;
  for (size_t i = 0; i < rank; ++i)
    dims.push_back(windowedSize(getDim(operand, i), window[i], strides[i], padding[i].first, padding[i].second, 1, 1));
  Type expected = makeType(dims, operand.getElementType());
  if (!areCompatible(expected, source))
    return emitOptionalError(location, "C2: source ", source, " does not fit the windows, expected ", expected);
  types.push_back(operand);
  return success();
}
void SelectAndScatterOp::build(OpBuilder &b, OperationState &state, Value operand, Value source, Value init,
                               ArrayRef<int64_t> windowDimensions, const ReduceWindow &window, BodyFn select,
                               BodyFn scatter) {
  build(b, state, operand, source, init, b.getDenseI64ArrayAttr(windowDimensions), listAttr(b, window.strides),
        paddingAttr(b, window.padding));
  buildBody(b, state.location, state.regions[0].get(), scalarsOf(init, 2), select);
  buildBody(b, state.location, state.regions[1].get(), scalarsOf(init, 2), scatter);
}
LogicalResult SelectAndScatterOp::verifyRegions() {
  Type pred = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  if (failed(verifyBody(*this, getSelect(), scalarsOf(getInitValue(), 2), pred)))
    return failure();
  return verifyBody(*this, getScatter(), scalarsOf(getInitValue(), 2), scalarsOf(getInitValue()));
}

//===----------------------------------------------------------------------===//
// scatter
//===----------------------------------------------------------------------===//

static LogicalResult inferTypes(ScatterOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  ValueRange inputs = adaptor.getInputs(), updates = adaptor.getUpdates();
  if (inputs.empty() || inputs.size() != updates.size())
    return emitOptionalError(location, "expected as many inputs as updates, at least one");
  auto inputDims = mergeDims(location, inputs.getTypes()), updateDims = mergeDims(location, updates.getTypes());
  if (failed(inputDims) || failed(updateDims))
    return failure();
  for (auto [input, update] : llvm::zip(inputs, updates))
    if (typeOf(input).getElementType() != typeOf(update).getElementType())
      return emitOptionalError(location, "C6: element types differ: ", input.getType(), " and ", update.getType());
  auto indices = typeOf(adaptor.getScatterIndices());
  ScatterDimensionNumbersAttr numbers = adaptor.getScatterDimensionNumbers();
  int64_t rank = inputDims->size(), updateRank = updateDims->size(), vectorDim = numbers.getIndexVectorDim();
  if (vectorDim < 0 || vectorDim > indices.getRank())
    return emitOptionalError(location, "C22: index_vector_dim ", vectorDim, " is not in [0, ", indices.getRank(), "]");
  AffineExpr count = vectorDim < indices.getRank() ? getDim(indices, vectorDim) : constantExpr(indices.getContext(), 1);
  if (constantValue(count) &&
      *constantValue(count) != static_cast<int64_t>(numbers.getScatterDimsToOperandDims().size()))
    return emitOptionalError(location, "C19: scatter_dims_to_operand_dims has ",
                             numbers.getScatterDimsToOperandDims().size(), " entries and index vectors have ",
                             dimToString(count), " elements");
  SmallVector<int64_t> dropped(numbers.getInsertedWindowDims());
  dropped.append(numbers.getInputBatchingDims().begin(), numbers.getInputBatchingDims().end());
  if (failed(checkDims(location, "C7: update_window_dims", numbers.getUpdateWindowDims(), updateRank)) ||
      failed(checkDims(location, "C9: inserted_window_dims and input_batching_dims", dropped, rank)) ||
      failed(checkDims(location, "C20: scatter_dims_to_operand_dims", numbers.getScatterDimsToOperandDims(), rank)) ||
      failed(checkDims(location, "scatter_indices_batching_dims", numbers.getScatterIndicesBatchingDims(),
                       indices.getRank())))
    return failure();
  if (!llvm::is_sorted(numbers.getUpdateWindowDims()) || !llvm::is_sorted(numbers.getInsertedWindowDims()))
    return emitOptionalError(location, "C7: update_window_dims and inserted_window_dims must be sorted");
  if (numbers.getInputBatchingDims().size() != numbers.getScatterIndicesBatchingDims().size())
    return emitOptionalError(location, "input_batching_dims and scatter_indices_batching_dims differ in number");
  if (llvm::is_contained(numbers.getScatterIndicesBatchingDims(), vectorDim))
    return emitOptionalError(location, "scatter_indices_batching_dims contains index_vector_dim");
  if (static_cast<int64_t>(numbers.getUpdateWindowDims().size() + dropped.size()) != rank)
    return emitOptionalError(location, "C2: update_window_dims, inserted_window_dims and input_batching_dims must name ",
                             rank, " dimensions");
  int64_t batchRank = indices.getRank() - (vectorDim < indices.getRank() ? 1 : 0);
  if (updateRank != batchRank + static_cast<int64_t>(numbers.getUpdateWindowDims().size()))
    return emitOptionalError(location, "C4: updates have rank ", updateRank, ", expected ",
                             batchRank + numbers.getUpdateWindowDims().size());
  unsigned next = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (llvm::is_contained(dropped, i))
      continue;
    AffineExpr window = (*updateDims)[numbers.getUpdateWindowDims()[next++]], size = (*inputDims)[i];
    auto difference = window && size ? constantValue(simplify(size - window)) : std::nullopt;
    if (difference && *difference < 0)
      return emitOptionalError(location, "C4: window of ", dimToString(window), " exceeds dimension ", i, " of ",
                               dimToString(size));
  }
  int64_t batch = 0;
  for (int64_t i = 0; i < updateRank; ++i) {
    if (llvm::is_contained(numbers.getUpdateWindowDims(), i))
      continue;
    if (batch == vectorDim)
      ++batch;
    AffineExpr a = (*updateDims)[i], b = getDim(indices, batch++);
    if (a && b && !equalDims(a, b))
      return emitOptionalError(location, "C4: dimension ", i, " of the updates is ", dimToString(a),
                               " and that of the indices ", dimToString(b));
  }
  llvm::append_range(types, inputs.getTypes());
  return success();
}
void ScatterOp::build(OpBuilder &b, OperationState &state, ValueRange inputs, Value indices, ValueRange updates,
                      ScatterDimensionNumbersAttr dims, bool sorted, bool unique, BodyFn body) {
  build(b, state, inputs, indices, updates, dims, b.getBoolAttr(sorted), b.getBoolAttr(unique));
  buildBody(b, state.location, state.regions.front().get(), scalarsOf(inputs, 2), body);
}
LogicalResult ScatterOp::verifyRegions() {
  return verifyBody(*this, getUpdateComputation(), scalarsOf(getInputs(), 2), scalarsOf(getInputs()));
}

//===----------------------------------------------------------------------===//
// sort, map, top_k
//===----------------------------------------------------------------------===//

static LogicalResult inferTypes(SortOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  ValueRange inputs = adaptor.getInputs();
  if (inputs.empty())
    return emitOptionalError(location, "C1: expected at least one input");
  if (failed(mergeDims(location, inputs.getTypes())))
    return failure();
  int64_t rank = typeOf(inputs.front()).getRank(), dim = adaptor.getDimension();
  if (dim < -rank || dim >= rank)
    return emitOptionalError(location, "C4: dimension ", dim, " is not in [", -rank, ", ", rank, ")");
  llvm::append_range(types, inputs.getTypes());
  return success();
}
void SortOp::build(OpBuilder &b, OperationState &state, ValueRange inputs, int64_t dimension, bool stable,
                   BodyFn body) {
  build(b, state, inputs, b.getI64IntegerAttr(dimension), b.getBoolAttr(stable));
  buildBody(b, state.location, state.regions.front().get(), pairTypes(inputs), body);
}
LogicalResult SortOp::verifyRegions() {
  Type pred = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  return verifyBody(*this, getComparator(), pairTypes(getInputs()), pred);
}

static LogicalResult inferTypes(MapOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(location, "expected at least one input");
  auto dims = mergeDims(location, adaptor.getInputs().getTypes());
  if (failed(dims))
    return failure();
  for (auto [i, dim] : llvm::enumerate(adaptor.getDimensions()))
    if (dim != static_cast<int64_t>(i))
      return emitOptionalError(location, "C3: dimensions must be 0, 1, ...");
  if (adaptor.getDimensions().size() != dims->size())
    return emitOptionalError(location, "C3: dimensions must be 0, 1, ...");
  Type element = typeOf(adaptor.getInputs().front()).getElementType();
  Region &body = adaptor.getComputation();
  if (!body.empty() && !body.front().empty())
    if (auto terminator = dyn_cast<ReturnOp>(body.front().back()); terminator && terminator->getNumOperands() == 1)
      element = getElementTypeOrSelf(terminator->getOperand(0).getType());
  types.push_back(makeType(*dims, element));
  return success();
}
LogicalResult MapOp::verifyRegions() {
  return verifyBody(*this, getComputation(), scalarsOf(getInputs()), scalarsOf(getResult()));
}

static LogicalResult inferTypes(TopKOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  int64_t k = adaptor.getK();
  if (type.getRank() < 1)
    return emitOptionalError(location, "expected rank of at least 1");
  auto size = constantValue(getDim(type, type.getRank() - 1));
  if (k < 0 || (size && k > *size))
    return emitOptionalError(location, "k = ", k, " is not in [0, ", dimToString(getDim(type, type.getRank() - 1)),
                             "]");
  SmallVector<AffineExpr> dims = getDims(type);
  dims.back() = constantExpr(type.getContext(), k);
  types.push_back(makeType(dims, type.getElementType()));
  types.push_back(makeType(dims, IntegerType::get(type.getContext(), 32)));
  return success();
}

} // namespace lathe::hlo

using namespace lathe::hlo;
#define GET_OP_CLASSES
#include "dialects/hlo/HloReduce.cpp.inc"
