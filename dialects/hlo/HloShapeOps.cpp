// Shape ops: inference, verification, builders.
#include "dialects/hlo/Infer.h"
#include "dialects/hlo/Quant.h"

#include "mlir/IR/AffineMap.h"

using namespace mlir;

namespace lathe::hlo {

static AffineMapAttr makeMap(MLIRContext *context, ArrayRef<AffineExpr> exprs) {
  unsigned numSymbols = 0;
  SmallVector<AffineExpr> simple;
  for (AffineExpr expr : exprs) {
    simple.push_back(simplify(expr));
    for (unsigned symbol : getSymbols(simple.back()))
      numSymbols = std::max(numSymbols, symbol + 1);
  }
  return AffineMapAttr::get(AffineMap::get(0, numSymbols, simple, context));
}

// Constants go to the list, the rest to a map (null if there are none).
static SmallVector<int64_t> splitExprs(MLIRContext *context, ArrayRef<AffineExpr> exprs, AffineMapAttr &map) {
  SmallVector<int64_t> list;
  bool symbolic = false;
  for (AffineExpr expr : exprs) {
    auto value = constantValue(simplify(expr));
    symbolic |= !value;
    list.push_back(value.value_or(ShapedType::kDynamic));
  }
  if (symbolic)
    map = makeMap(context, exprs);
  return list;
}

static LogicalResult checkMap(MaybeLocation location, StringRef name, std::optional<AffineMap> map, int64_t rank) {
  if (!map)
    return success();
  if (map->getNumDims() != 0 || map->getNumResults() != static_cast<unsigned>(rank))
    return emitOptionalError(location, name, ": expected ", rank, " expressions over symbols");
  return success();
}

// Entry i of a list with symbolic entries put in; `otherwise` for a symbolic entry without map.
static AffineExpr entry(ArrayRef<int64_t> list, std::optional<AffineMap> map, unsigned i, AffineExpr otherwise) {
  if (list[i] != ShapedType::kDynamic)
    return getAffineConstantExpr(list[i], otherwise.getContext());
  if (map && i < map->getNumResults())
    return map->getResult(i);
  return otherwise;
}

//===----------------------------------------------------------------------===//
// constant, size
//===----------------------------------------------------------------------===//

static LogicalResult inferTypes(ConstantOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = dyn_cast<RankedTensorType>(adaptor.getValue().getType());
  if (!type || !type.hasStaticShape())
    return emitOptionalError(location, "expected a static tensor, found ", adaptor.getValue().getType());
  types.push_back(type);
  return success();
}

void SizeOp::build(OpBuilder &b, OperationState &state, AffineExpr expr, Type elementType) {
  if (!elementType)
    elementType = b.getI64Type();
  build(b, state, RankedTensorType::get({}, elementType), makeMap(b.getContext(), expr));
}
void SizeOp::build(OpBuilder &b, OperationState &state, ArrayRef<AffineExpr> exprs, Type elementType) {
  if (!elementType)
    elementType = b.getI64Type();
  build(b, state, RankedTensorType::get({static_cast<int64_t>(exprs.size())}, elementType),
        makeMap(b.getContext(), exprs));
}
LogicalResult SizeOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  AffineMap map = getMap();
  bool fits = map.getNumDims() == 0 && type.hasStaticShape() && type.getRank() <= 1 &&
              type.getNumElements() == static_cast<int64_t>(map.getNumResults());
  if (!fits)
    return emitOpError("expected a scalar or vector with one element for each expression of a map over symbols");
  return success();
}

LogicalResult SetSizeOp::verify() {
  if (typeOf(getOperand()).getRank() != 0)
    return emitOpError("expected a scalar, found ") << getOperand().getType();
  if (static_cast<int64_t>(getSymbol()) < 0)
    return emitOpError("symbol must not be negative");
  return success();
}

LogicalResult AssumeShapeOp::verify() {
  auto from = typeOf(getOperand()), to = cast<RankedTensorType>(getType());
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return emitOpError("expected equal element type and rank, found ") << from << " and " << to;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (!from.isDynamicDim(i) && !to.isDynamicDim(i) && from.getDimSize(i) != to.getDimSize(i))
      return emitOpError("dimension ") << i << " can't be both " << from.getDimSize(i) << " and " << to.getDimSize(i);
  return success();
}

//===----------------------------------------------------------------------===//
// iota, reshape, broadcasts
//===----------------------------------------------------------------------===//

static LogicalResult verifyIota(Operation *op, int64_t dim, Type type) {
  int64_t rank = cast<RankedTensorType>(type).getRank();
  if (dim < 0 || dim >= rank)
    return op->emitOpError("C1: iota_dimension ") << dim << " is not in [0, " << rank << ")";
  return success();
}
LogicalResult IotaOp::verify() { return verifyIota(*this, getIotaDimension(), getType()); }

// A vector operand with one element for each of `rank` dimensions.
static LogicalResult verifyShapeOperand(Operation *op, Value shape, int64_t rank, StringRef what) {
  auto type = typeOf(shape);
  if (type.getRank() != 1 || (!type.isDynamicDim(0) && type.getDimSize(0) != rank))
    return op->emitOpError() << what << ": expected a vector of " << rank << " elements, found " << type;
  return success();
}
static LogicalResult verifySameElement(Operation *op, Type a, Type b) {
  if (getElementTypeOrSelf(a) != getElementTypeOrSelf(b))
    return op->emitOpError("element types differ: ") << getElementTypeOrSelf(a) << " and " << getElementTypeOrSelf(b);
  return success();
}

LogicalResult DynamicIotaOp::verify() {
  if (failed(verifyIota(*this, getIotaDimension(), getType())))
    return failure();
  return verifyShapeOperand(*this, getOutputShape(), cast<RankedTensorType>(getType()).getRank(), "output_shape");
}

void ReshapeOp::build(OpBuilder &b, OperationState &state, Value operand, ArrayRef<AffineExpr> dims) {
  Type type = poisonType(b.getContext(), operand);
  if (succeeded(checkOperands(state.location, operand)))
    type = makeType(dims, elementType(operand));
  build(b, state, type, operand);
}
void ReshapeOp::build(OpBuilder &b, OperationState &state, Value operand, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : dims)
    exprs.push_back(constantExpr(b.getContext(), dim));
  build(b, state, operand, exprs);
}
// Element types are equal, up to the axis of one quantized per axis: it has the same elements, behind as many others.
static LogicalResult verifyReshapedElement(Operation *op, RankedTensorType from, RankedTensorType to) {
  auto x = quantizedAxis(from.getElementType()), y = quantizedAxis(to.getElementType());
  if (!x || !y)
    return verifySameElement(op, from, to);
  if (failed(checkQuantized(op->getLoc(), "C2", from)) || failed(checkQuantized(op->getLoc(), "C2", to)))
    return failure();
  const SmallVector<AffineExpr> fromDims = getDims(from), toDims = getDims(to);
  AffineExpr a = numElements(ArrayRef<AffineExpr>(fromDims).take_front(*x), op->getContext());
  AffineExpr b = numElements(ArrayRef<AffineExpr>(toDims).take_front(*y), op->getContext());
  if (withQuantizedAxis(from.getElementType(), *y) != to.getElementType() || (a && b && constantValue(simplify(a - b)).value_or(0) != 0))
    return op->emitOpError("C2: quantized dimension ") << *x << " of " << from << " is not dimension " << *y << " of " << to;
  return success();
}
LogicalResult ReshapeOp::verify() {
  auto from = typeOf(getOperand()), to = cast<RankedTensorType>(getType());
  if (failed(verifyReshapedElement(*this, from, to)))
    return failure();
  AffineExpr a = numElements(from), b = numElements(to);
  // symbolic sizes may be equal for reasons that only a check of sizes states
  if (a && b && constantValue(simplify(a - b)).value_or(0) != 0)
    return emitOpError("C1: number of elements differs: ") << dimToString(a) << " and " << dimToString(b);
  return success();
}
LogicalResult DynamicReshapeOp::verify() {
  auto from = typeOf(getOperand()), to = cast<RankedTensorType>(getType());
  if (failed(verifySameElement(*this, from, to)) ||
      failed(verifyShapeOperand(*this, getOutputShape(), to.getRank(), "output_shape")))
    return failure();
  return success();
}

static LogicalResult verifyBroadcast(Operation *op, RankedTensorType from, RankedTensorType to, ArrayRef<int64_t> map,
                                     bool dynamic) {
  if (static_cast<int64_t>(map.size()) != from.getRank())
    return op->emitOpError("C2: expected ") << from.getRank() << " broadcast_dimensions, found " << map.size();
  if (failed(checkDims(op->getLoc(), "C4: broadcast_dimensions", map, to.getRank())) || failed(checkQuantized(op->getLoc(), "C6", from)) ||
      failed(checkQuantized(op->getLoc(), "C6", to)))
    return failure();
  auto axis = quantizedAxis(from.getElementType());
  if (failed(verifySameElement(op, axis ? withQuantizedAxis(from.getElementType(), map[*axis]) : from.getElementType(), to)))
    return failure();
  for (auto [i, dim] : llvm::enumerate(map)) {
    AffineExpr a = getDim(from, i), b = getDim(to, dim);
    if (!a || !b || constantValue(a) == 1 || equalDims(a, b) || (dynamic && from.isDynamicDim(i)))
      continue;
    return op->emitOpError("C5: operand dimension ")
           << i << " is " << dimToString(a) << " and the result's dimension " << dim << " " << dimToString(b);
  }
  return success();
}
// A type quantized per axis whose dimension k becomes dimensions[k]; other types give themselves.
static Type movedElement(Type element, ArrayRef<int64_t> dimensions) {
  auto axis = quantizedAxis(element);
  return axis && *axis >= 0 && *axis < static_cast<int64_t>(dimensions.size()) ? withQuantizedAxis(element, dimensions[*axis]) : element;
}
void BroadcastInDimOp::build(OpBuilder &b, OperationState &state, Value operand, ArrayRef<AffineExpr> dims,
                             ArrayRef<int64_t> broadcastDimensions) {
  Type type = poisonType(b.getContext(), operand);
  if (succeeded(checkOperands(state.location, operand)))
    type = makeType(dims, movedElement(elementType(operand), broadcastDimensions));
  build(b, state, type, operand, broadcastDimensions);
}
LogicalResult BroadcastInDimOp::verify() {
  return verifyBroadcast(*this, typeOf(getOperand()), cast<RankedTensorType>(getType()), getBroadcastDimensions(),
                         false);
}
LogicalResult DynamicBroadcastInDimOp::verify() {
  auto to = cast<RankedTensorType>(getType());
  if (failed(verifyShapeOperand(*this, getOutputDimensions(), to.getRank(), "output_dimensions")))
    return failure();
  return verifyBroadcast(*this, typeOf(getOperand()), to, getBroadcastDimensions(), true);
}

static LogicalResult inferTypes(BroadcastOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  SmallVector<AffineExpr> dims;
  for (int64_t size : adaptor.getBroadcastSizes()) {
    if (size < 0)
      return emitOptionalError(location, "C1: broadcast_sizes must not be negative");
    dims.push_back(constantExpr(type.getContext(), size));
  }
  dims.append(getDims(type));
  types.push_back(makeType(dims, type.getElementType()));
  return success();
}

//===----------------------------------------------------------------------===//
// transpose, reverse, concatenate
//===----------------------------------------------------------------------===//

static LogicalResult inferTypes(TransposeOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  if (static_cast<int64_t>(permutation.size()) != type.getRank())
    return emitOptionalError(location, "C2: expected a permutation of ", type.getRank(), " dimensions");
  if (failed(checkDims(location, "C2: permutation", permutation, type.getRank())))
    return failure();
  SmallVector<AffineExpr> dims;
  SmallVector<int64_t> places(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation)) {
    dims.push_back(getDim(type, dim));
    places[dim] = static_cast<int64_t>(i);
  }
  if (failed(checkQuantized(location, "C3", type)))
    return failure();
  types.push_back(makeType(dims, movedElement(type.getElementType(), places)));
  return success();
}

static LogicalResult inferTypes(ReverseOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  types.push_back(type);
  return checkDims(location, "C2: dimensions", adaptor.getDimensions(), type.getRank());
}

static LogicalResult inferTypes(ConcatenateOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(location, "C3: expected at least one input");
  auto first = typeOf(adaptor.getInputs().front());
  int64_t axis = adaptor.getDimension();
  if (axis < 0 || axis >= first.getRank())
    return emitOptionalError(location, "C4: dimension ", axis, " is not in [0, ", first.getRank(), ")");
  SmallVector<AffineExpr> dims = getDims(first);
  for (Value input : adaptor.getInputs().drop_front()) {
    auto type = typeOf(input);
    if (type.getElementType() != first.getElementType())
      return emitOptionalError(location, "C5: element types differ: ", first.getElementType(), " and ",
                               type.getElementType());
    if (type.getRank() != first.getRank())
      return emitOptionalError(location, "C2: shapes differ in rank: ", first, " and ", type);
    for (int64_t i = 0; i < type.getRank(); ++i) {
      AffineExpr dim = getDim(type, i);
      if (i == axis)
        dims[i] = dims[i] && dim ? simplify(dims[i] + dim) : AffineExpr();
      else if (!dims[i])
        dims[i] = dim;
      else if (dim && !equalDims(dims[i], dim))
        return emitOptionalError(location, "C2: shapes differ in dimension ", i, ": ", dimToString(dims[i]), " and ",
                                 dimToString(dim));
    }
  }
  types.push_back(makeType(dims, first.getElementType()));
  return success();
}

//===----------------------------------------------------------------------===//
// slices
//===----------------------------------------------------------------------===//

static LogicalResult inferTypes(SliceOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  ArrayRef<int64_t> starts = adaptor.getStartIndices(), limits = adaptor.getLimitIndices(),
                    strides = adaptor.getStrides();
  size_t rank = type.getRank();
  if (starts.size() != rank || limits.size() != rank || strides.size() != rank)
    return emitOptionalError(location, "C2: expected ", rank, " start_indices, limit_indices and strides");
  if (failed(checkMap(location, "start_map", adaptor.getStartMap(), rank)) ||
      failed(checkMap(location, "limit_map", adaptor.getLimitMap(), rank)))
    return failure();
  SmallVector<AffineExpr> dims;
  MLIRContext *context = type.getContext();
  for (size_t i = 0; i < rank; ++i) {
    if (strides[i] <= 0)
      return emitOptionalError(location, "C4: stride of dimension ", i, " must be positive");
    AffineExpr size = getDim(type, i);
    if (!size && limits[i] == ShapedType::kDynamic && !adaptor.getLimitMap()) {
      dims.push_back({});
      continue;
    }
    AffineExpr start = entry(starts, adaptor.getStartMap(), i, constantExpr(context, 0));
    AffineExpr limit = entry(limits, adaptor.getLimitMap(), i, size ? size : constantExpr(context, 0));
    auto s = constantValue(start), l = constantValue(limit), n = constantValue(size);
    if ((s && *s < 0) || (s && l && *s > *l) || (l && n && *l > *n) || (s && n && *s > *n))
      return emitOptionalError(location, "C3: slice [", dimToString(start), ", ", dimToString(limit),
                               ") of dimension ", i, " leaves [0, ", dimToString(size), ")");
    dims.push_back(ceilDiv(simplify(limit - start), strides[i]));
  }
  types.push_back(makeType(dims, type.getElementType()));
  return success();
}

void SliceOp::build(OpBuilder &b, OperationState &state, Value operand, ArrayRef<int64_t> starts,
                    ArrayRef<int64_t> limits, ArrayRef<int64_t> strides) {
  build(b, state, operand, b.getDenseI64ArrayAttr(starts), b.getDenseI64ArrayAttr(limits),
        b.getDenseI64ArrayAttr(strides), AffineMapAttr(), AffineMapAttr());
}
void SliceOp::build(OpBuilder &b, OperationState &state, Value operand, ArrayRef<AffineExpr> starts,
                    ArrayRef<AffineExpr> limits, ArrayRef<int64_t> strides) {
  AffineMapAttr startMap, limitMap;
  auto startList = splitExprs(b.getContext(), starts, startMap);
  auto limitList = splitExprs(b.getContext(), limits, limitMap);
  build(b, state, operand, b.getDenseI64ArrayAttr(startList), b.getDenseI64ArrayAttr(limitList),
        b.getDenseI64ArrayAttr(strides), startMap, limitMap);
}
SmallVector<AffineExpr> SliceOp::getStartExprs() {
  SmallVector<AffineExpr> exprs;
  for (size_t i = 0; i < getStartIndices().size(); ++i)
    exprs.push_back(entry(getStartIndices(), getStartMap(), i, constantExpr(getContext(), 0)));
  return exprs;
}
SmallVector<AffineExpr> SliceOp::getLimitExprs() {
  SmallVector<AffineExpr> exprs, sizes = getDims(typeOf(getOperand()));
  for (size_t i = 0; i < getLimitIndices().size(); ++i)
    exprs.push_back(getLimitIndices()[i] == ShapedType::kDynamic && !getLimitMap()
                        ? sizes[i]
                        : entry(getLimitIndices(), getLimitMap(), i, constantExpr(getContext(), 0)));
  return exprs;
}

LogicalResult RealDynamicSliceOp::verify() {
  int64_t rank = typeOf(getOperand()).getRank();
  if (failed(verifySameElement(*this, getOperand().getType(), getType())))
    return failure();
  if (cast<RankedTensorType>(getType()).getRank() != rank)
    return emitOpError("C1: expected a result of rank ") << rank;
  for (auto [value, what] : llvm::zip(ValueRange({getStartIndices(), getLimitIndices(), getStrides()}),
                                      ArrayRef<StringRef>{"start_indices", "limit_indices", "strides"}))
    if (failed(verifyShapeOperand(*this, value, rank, what)))
      return failure();
  return success();
}

static LogicalResult checkScalars(MaybeLocation location, ValueRange indices, int64_t rank) {
  if (static_cast<int64_t>(indices.size()) != rank)
    return emitOptionalError(location, "C2: expected ", rank, " start indices, found ", indices.size());
  for (Value index : indices)
    if (typeOf(index).getRank() != 0 || index.getType() != indices.front().getType())
      return emitOptionalError(location, "C3: start indices must be scalars of one type, found ", index.getType());
  return success();
}

static LogicalResult inferTypes(DynamicSliceOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  ArrayRef<int64_t> sizes = adaptor.getSliceSizes();
  size_t rank = type.getRank();
  if (failed(checkScalars(location, adaptor.getStartIndices(), rank)) ||
      failed(checkMap(location, "size_map", adaptor.getSizeMap(), rank)))
    return failure();
  if (sizes.size() != rank)
    return emitOptionalError(location, "C2: expected ", rank, " slice_sizes, found ", sizes.size());
  SmallVector<AffineExpr> dims;
  for (size_t i = 0; i < rank; ++i) {
    AffineExpr size = getDim(type, i);
    AffineExpr dim = sizes[i] == ShapedType::kDynamic && !adaptor.getSizeMap()
                         ? size
                         : entry(sizes, adaptor.getSizeMap(), i, constantExpr(type.getContext(), 0));
    auto d = constantValue(dim), n = constantValue(size);
    if (d && (*d < 0 || (n && *d > *n)))
      return emitOptionalError(location, "C4: slice size ", *d, " of dimension ", i, " is not in [0, ",
                               dimToString(size), "]");
    dims.push_back(dim);
  }
  types.push_back(makeType(dims, type.getElementType()));
  return success();
}
void DynamicSliceOp::build(OpBuilder &b, OperationState &state, Value operand, ValueRange starts,
                           ArrayRef<int64_t> sizes) {
  build(b, state, operand, starts, b.getDenseI64ArrayAttr(sizes), AffineMapAttr());
}
void DynamicSliceOp::build(OpBuilder &b, OperationState &state, Value operand, ValueRange starts,
                           ArrayRef<AffineExpr> sizes) {
  AffineMapAttr map;
  auto list = splitExprs(b.getContext(), sizes, map);
  build(b, state, operand, starts, b.getDenseI64ArrayAttr(list), map);
}

static LogicalResult inferTypes(DynamicUpdateSliceOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand()), update = typeOf(adaptor.getUpdate());
  if (type.getElementType() != update.getElementType())
    return emitOptionalError(location, "C2: element types differ: ", type.getElementType(), " and ",
                             update.getElementType());
  if (type.getRank() != update.getRank())
    return emitOptionalError(location, "C3: ranks differ: ", type, " and ", update);
  if (failed(checkScalars(location, adaptor.getStartIndices(), type.getRank())))
    return failure();
  for (int64_t i = 0; i < type.getRank(); ++i) {
    AffineExpr a = getDim(type, i), b = getDim(update, i);
    auto difference = a && b ? constantValue(simplify(a - b)) : std::nullopt;
    if (difference && *difference < 0)
      return emitOptionalError(location, "C6: update is larger than the operand in dimension ", i, ": ", type,
                               " and ", update);
  }
  types.push_back(type);
  return success();
}

//===----------------------------------------------------------------------===//
// pad
//===----------------------------------------------------------------------===//

static LogicalResult inferTypes(PadOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand()), value = typeOf(adaptor.getPaddingValue());
  if (value.getRank() != 0 || value.getElementType() != type.getElementType())
    return emitOptionalError(location, "C1: expected a scalar of ", type.getElementType(), " to pad with, found ",
                             value);
  ArrayRef<int64_t> low = adaptor.getEdgePaddingLow(), high = adaptor.getEdgePaddingHigh(),
                    interior = adaptor.getInteriorPadding();
  size_t rank = type.getRank();
  if (low.size() != rank || high.size() != rank || interior.size() != rank)
    return emitOptionalError(location, "C2: expected ", rank, " paddings low, high and interior");
  SmallVector<AffineExpr> dims;
  for (size_t i = 0; i < rank; ++i) {
    if (interior[i] < 0)
      return emitOptionalError(location, "C3: interior padding must not be negative");
    AffineExpr size = getDim(type, i);
    if (size) {
      size = simplify(dilated(size, interior[i] + 1) + low[i] + high[i]);
      if (constantValue(size).value_or(0) < 0)
        return emitOptionalError(location, "C4: dimension ", i, " gets a negative size");
    }
    dims.push_back(size);
  }
  types.push_back(makeType(dims, type.getElementType()));
  return success();
}

LogicalResult DynamicPadOp::verify() {
  auto type = typeOf(getOperand()), value = typeOf(getPaddingValue());
  if (value.getRank() != 0 || value.getElementType() != type.getElementType())
    return emitOpError("C1: expected a scalar of ") << type.getElementType() << " to pad with, found " << value;
  if (cast<RankedTensorType>(getType()).getRank() != type.getRank())
    return emitOpError("expected a result of rank ") << type.getRank();
  for (auto [operand, what] :
       llvm::zip(ValueRange({getEdgePaddingLow(), getEdgePaddingHigh(), getInteriorPadding()}),
                 ArrayRef<StringRef>{"edge_padding_low", "edge_padding_high", "interior_padding"}))
    if (failed(verifyShapeOperand(*this, operand, type.getRank(), what)))
      return failure();
  return verifySameElement(*this, type, getType());
}

//===----------------------------------------------------------------------===//
// gather
//===----------------------------------------------------------------------===//

static LogicalResult inferGather(RankedTensorType operand, RankedTensorType indices,
                                 GatherDimensionNumbersAttr numbers, ArrayRef<AffineExpr> sliceSizes,
                                 MaybeLocation location, TypeList &types) {
  int64_t rank = operand.getRank(), vectorDim = numbers.getIndexVectorDim();
  if (vectorDim < 0 || vectorDim > indices.getRank())
    return emitOptionalError(location, "C2: index_vector_dim ", vectorDim, " is not in [0, ", indices.getRank(), "]");
  AffineExpr count = vectorDim < indices.getRank() ? getDim(indices, vectorDim) : constantExpr(operand.getContext(), 1);
  if (constantValue(count) && *constantValue(count) != static_cast<int64_t>(numbers.getStartIndexMap().size()))
    return emitOptionalError(location, "C3: start_index_map has ", numbers.getStartIndexMap().size(),
                             " entries and index vectors have ", dimToString(count), " elements");
  SmallVector<int64_t> dropped(numbers.getCollapsedSliceDims());
  dropped.append(numbers.getOperandBatchingDims().begin(), numbers.getOperandBatchingDims().end());
  int64_t batchRank = indices.getRank() - (vectorDim < indices.getRank() ? 1 : 0);
  int64_t resultRank = batchRank + static_cast<int64_t>(numbers.getOffsetDims().size());
  if (failed(checkDims(location, "C4: offset_dims", numbers.getOffsetDims(), resultRank)) ||
      failed(checkDims(location, "C6: collapsed_slice_dims and operand_batching_dims", dropped, rank)) ||
      failed(checkDims(location, "C8: start_index_map", numbers.getStartIndexMap(), rank)) ||
      failed(checkDims(location, "start_indices_batching_dims", numbers.getStartIndicesBatchingDims(),
                       indices.getRank())))
    return failure();
  if (!llvm::is_sorted(numbers.getOffsetDims()) || !llvm::is_sorted(numbers.getCollapsedSliceDims()))
    return emitOptionalError(location, "C4: offset_dims and collapsed_slice_dims must be sorted");
  if (numbers.getOperandBatchingDims().size() != numbers.getStartIndicesBatchingDims().size())
    return emitOptionalError(location, "operand_batching_dims and start_indices_batching_dims differ in number");
  if (llvm::is_contained(numbers.getStartIndicesBatchingDims(), vectorDim))
    return emitOptionalError(location, "start_indices_batching_dims contains index_vector_dim");
  for (int64_t dim : numbers.getOperandBatchingDims())
    if (llvm::is_contained(numbers.getStartIndexMap(), dim))
      return emitOptionalError(location, "start_index_map contains the batching dimension ", dim);
  if (static_cast<int64_t>(sliceSizes.size()) != rank)
    return emitOptionalError(location, "C11: expected ", rank, " slice_sizes, found ", sliceSizes.size());
  if (static_cast<int64_t>(numbers.getOffsetDims().size() + dropped.size()) != rank)
    return emitOptionalError(location, "C1: offset_dims, collapsed_slice_dims and operand_batching_dims must name ",
                             rank, " dimensions");
  for (int64_t i = 0; i < rank; ++i) {
    auto size = constantValue(sliceSizes[i]), limit = constantValue(getDim(operand, i));
    if (size && (*size < 0 || (limit && *size > *limit)))
      return emitOptionalError(location, "C12: slice size ", *size, " of dimension ", i, " is not in [0, ",
                               dimToString(getDim(operand, i)), "]");
    if (llvm::is_contained(dropped, i) && size && *size > 1)
      return emitOptionalError(location, "C13: slice size of the collapsed dimension ", i, " must be at most 1");
  }
  SmallVector<AffineExpr> dims(resultRank);
  SmallVector<bool> isOffset(resultRank, false);
  unsigned next = 0;
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(dropped, i)) {
      int64_t at = numbers.getOffsetDims()[next++];
      dims[at] = sliceSizes[i];
      isOffset[at] = true;
    }
  int64_t batch = 0;
  for (int64_t i = 0; i < resultRank; ++i) {
    if (isOffset[i])
      continue;
    if (batch == vectorDim)
      ++batch;
    dims[i] = getDim(indices, batch++);
  }
  types.push_back(makeType(dims, operand.getElementType()));
  return success();
}

static LogicalResult inferTypes(GatherOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto operand = typeOf(adaptor.getOperand());
  SmallVector<AffineExpr> sizes;
  for (auto [i, size] : llvm::enumerate(adaptor.getSliceSizes()))
    sizes.push_back(size != ShapedType::kDynamic            ? constantExpr(operand.getContext(), size)
                    : static_cast<int64_t>(i) < operand.getRank() ? getDim(operand, i)
                                                            : AffineExpr());
  return inferGather(operand, typeOf(adaptor.getStartIndices()), adaptor.getDimensionNumbers(), sizes, location, types);
}

LogicalResult DynamicGatherOp::verify() {
  SmallVector<Type> types;
  auto operand = typeOf(getOperand());
  if (failed(verifyShapeOperand(*this, getSliceSizes(), operand.getRank(), "slice_sizes")))
    return failure();
  SmallVector<AffineExpr> sizes(operand.getRank());
  if (failed(inferGather(operand, typeOf(getStartIndices()), getDimensionNumbers(), sizes, getLoc(), types)))
    return failure();
  if (!areCompatible(types, getType()))
    return emitTypeMismatch(getLoc(), getOperationName(), types, getOperation()->getResultTypes());
  return success();
}

LogicalResult TorchIndexSelectOp::verify() {
  auto operand = typeOf(getOperand()), index = typeOf(getIndex());
  int64_t dim = getDim(), batch = getBatchDims();
  if (dim < 0 || dim >= operand.getRank() || batch < 0 || batch > dim || batch > index.getRank())
    return emitOpError("dim and batch_dims do not fit the operands");
  SmallVector<AffineExpr> dims;
  for (int64_t i = 0; i < dim; ++i)
    dims.push_back(hlo::getDim(operand, i));
  for (int64_t i = batch; i < index.getRank(); ++i)
    dims.push_back(hlo::getDim(index, i));
  for (int64_t i = dim + 1; i < operand.getRank(); ++i)
    dims.push_back(hlo::getDim(operand, i));
  Type expected = makeType(dims, operand.getElementType());
  if (!areCompatible(expected, getType()))
    return emitTypeMismatch(getLoc(), getOperationName(), expected, getType());
  return success();
}

//===----------------------------------------------------------------------===//
// sizes and data-dependent results
//===----------------------------------------------------------------------===//

static LogicalResult inferTypes(GetDimensionSizeOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  int64_t dim = adaptor.getDimension();
  if (dim < 0 || dim >= type.getRank())
    return emitOptionalError(location, "C1: dimension ", dim, " is not in [0, ", type.getRank(), ")");
  types.push_back(RankedTensorType::get({}, IntegerType::get(type.getContext(), 32)));
  return success();
}

LogicalResult SetDimensionSizeOp::verify() {
  auto from = typeOf(getOperand()), to = cast<RankedTensorType>(getType());
  int64_t dim = getDimension();
  if (dim < 0 || dim >= from.getRank())
    return emitOpError("C2: dimension ") << dim << " is not in [0, " << from.getRank() << ")";
  SmallVector<AffineExpr> dims = getDims(from);
  dims[dim] = {};
  if (typeOf(getSize()).getRank() != 0 || !areCompatible(makeType(dims, from.getElementType()), to))
    return emitOpError("expected a scalar size and a result that differs in dimension ") << dim << " only";
  return success();
}

static SmallVector<Type> uniqueTypes(RankedTensorType type, int64_t symbol, int64_t axis, Type indexType) {
  SmallVector<AffineExpr> dims = getDims(type);
  AffineExpr count = symbolExpr(type.getContext(), symbol), size = dims[axis];
  dims[axis] = count;
  return {makeType(dims, type.getElementType()), makeType(ArrayRef<AffineExpr>{size}, indexType),
          makeType(ArrayRef<AffineExpr>{count}, indexType)};
}
void UniqueOp::build(OpBuilder &b, OperationState &state, Value operand, int64_t symbol, int64_t axis,
                     Type indexType) {
  SmallVector<Type> types(3, poisonType(b.getContext(), operand));
  if (succeeded(checkOperands(state.location, operand))) {
    if (axis >= 0 && axis < typeOf(operand).getRank())
      types = uniqueTypes(typeOf(operand), symbol, axis, indexType);
    else
      mlir::emitError(state.location, "unique: axis ") << axis << " does not fit " << operand.getType();
  }
  build(b, state, types, operand, static_cast<uint64_t>(symbol), static_cast<uint64_t>(axis));
}
LogicalResult UniqueOp::verify() {
  auto type = typeOf(getOperand());
  int64_t axis = getAxis(), symbol = getSymbol();
  if (axis < 0 || axis >= type.getRank() || symbol < 0)
    return emitOpError("axis ") << axis << " or symbol " << symbol << " is out of range";
  if (elementType(getIndices()) != elementType(getCounts()))
    return emitOpError("indices and counts must have one element type");
  auto expected = uniqueTypes(type, symbol, axis, elementType(getIndices()));
  if (!areCompatible(expected, getOperation()->getResultTypes()))
    return emitTypeMismatch(getLoc(), getOperationName(), expected, getOperation()->getResultTypes());
  return success();
}

static Type whereType(RankedTensorType type, int64_t symbol, Type indexType) {
  MLIRContext *context = type.getContext();
  return makeType({symbolExpr(context, symbol), constantExpr(context, type.getRank())}, indexType);
}
void WhereOp::build(OpBuilder &b, OperationState &state, Value operand, int64_t symbol) {
  Type type = poisonType(b.getContext(), operand);
  if (succeeded(checkOperands(state.location, operand)))
    type = whereType(typeOf(operand), symbol, b.getI64Type());
  build(b, state, type, operand, static_cast<uint64_t>(symbol));
}
LogicalResult WhereOp::verify() {
  if (static_cast<int64_t>(getSymbol()) < 0)
    return emitOpError("symbol must not be negative");
  Type expected = whereType(typeOf(getOperand()), getSymbol(), elementType(getIndices()));
  if (!areCompatible(expected, getType()))
    return emitTypeMismatch(getLoc(), getOperationName(), expected, getType());
  return success();
}

} // namespace lathe::hlo

using namespace lathe::hlo;
#define GET_OP_CLASSES
#include "dialects/hlo/HloShapeOps.cpp.inc"
