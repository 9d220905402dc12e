// Helpers of type inference, see Infer.h.
#include "dialects/hlo/Infer.h"

using namespace mlir;

namespace lathe::hlo {

bool isInvalid(Type type) {
  auto tensor = dyn_cast_if_present<RankedTensorType>(type);
  return !tensor || tensor.getElementType().isIndex();
}
bool isInvalid(Value value) { return !value || isInvalid(value.getType()); }

Type elementType(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }
RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

LogicalResult checkOperands(MaybeLocation location, ValueRange operands) {
  for (Value operand : operands) {
    if (!operand)
      return failure();
    if (!isa<RankedTensorType>(operand.getType()))
      return emitOptionalError(location, "expected ranked tensors, found ", operand.getType());
    if (isInvalid(operand))
      return failure();
  }
  return success();
}

Type poisonType(MLIRContext *context, ValueRange operands) {
  SmallVector<int64_t> shape;
  if (!operands.empty() && operands.front())
    if (auto type = dyn_cast<RankedTensorType>(operands.front().getType()))
      shape.assign(type.getShape().begin(), type.getShape().end());
  return RankedTensorType::get(shape, IndexType::get(context));
}

LogicalResult emitTypeMismatch(MaybeLocation location, StringRef opName, TypeRange inferred, TypeRange given) {
  if (inferred.size() == 1 && given.size() == 1)
    return emitOptionalError(location, "'", opName, "' op result type ", given.front(), " does not fit, expected ",
                             inferred.front());
  return emitOptionalError(location, "'", opName, "' op result types ", given, " do not fit, expected ", inferred);
}

bool areCompatibleShapes(TypeRange inferred, TypeRange given) {
  if (inferred.size() != given.size())
    return false;
  for (auto [a, b] : llvm::zip(inferred, given)) {
    auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
    if (!x || !y || x.getRank() != y.getRank())
      return false;
    if (x.getShape() == y.getShape() && x.getEncoding() == y.getEncoding())
      continue;
    for (int64_t i = 0; i < x.getRank(); ++i) {
      AffineExpr p = getDim(x, i), q = getDim(y, i);
      if (p && q && !equalDims(p, q))
        return false;
    }
  }
  return true;
}

bool areCompatible(TypeRange inferred, TypeRange given) {
  if (!areCompatibleShapes(inferred, given))
    return false;
  for (auto [a, b] : llvm::zip(inferred, given))
    if (cast<RankedTensorType>(a).getElementType() != cast<RankedTensorType>(b).getElementType())
      return false;
  return true;
}

FailureOr<SmallVector<AffineExpr>> mergeDims(MaybeLocation location, TypeRange types) {
  auto first = cast<RankedTensorType>(types.front());
  SmallVector<AffineExpr> dims = getDims(first);
  for (Type type : types.drop_front()) {
    auto other = cast<RankedTensorType>(type);
    if (other.getRank() != first.getRank())
      return emitOptionalError(location, "shapes differ in rank: ", first, " and ", other);
    if (other.getShape() == first.getShape() && other.getEncoding() == first.getEncoding())
      continue;
    for (int64_t i = 0; i < other.getRank(); ++i) {
      AffineExpr dim = getDim(other, i);
      if (!dims[i])
        dims[i] = dim;
      else if (dim && !equalDims(dims[i], dim))
        return emitOptionalError(location, "shapes differ in dimension ", i, ": ", dimToString(dims[i]), " and ",
                                 dimToString(dim), " (", first, " and ", other, ")");
    }
  }
  return dims;
}

LogicalResult checkDims(MaybeLocation location, StringRef what, ArrayRef<int64_t> dims, int64_t rank) {
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank)
      return emitOptionalError(location, what, ": dimension ", dim, " is not in [0, ", rank, ")");
    if (!seen.insert(dim).second)
      return emitOptionalError(location, what, ": dimension ", dim, " occurs twice");
  }
  return success();
}

AffineExpr dilated(AffineExpr size, int64_t dilation) {
  if (!size || dilation == 1)
    return size;
  if (auto value = constantValue(size))
    return constantExpr(size.getContext(), *value == 0 ? 0 : (*value - 1) * dilation + 1);
  return simplify((size - 1) * dilation + 1); // symbols are taken to be positive here
}

AffineExpr windowedSize(AffineExpr size, int64_t window, int64_t stride, int64_t low, int64_t high,
                        int64_t baseDilation, int64_t windowDilation) {
  if (!size)
    return {};
  AffineExpr padded = simplify(dilated(size, baseDilation) + low + high);
  int64_t reach = window == 0 ? 0 : (window - 1) * windowDilation + 1;
  if (auto value = constantValue(padded)) {
    int64_t count = *value <= 0 || *value < reach ? 0 : (*value - reach) / stride + 1;
    return constantExpr(size.getContext(), count);
  }
  return simplify((padded - reach).floorDiv(stride) + 1);
}

Type realType(Type elementType) {
  if (auto complex = dyn_cast<ComplexType>(elementType))
    return complex.getElementType();
  return elementType;
}

DenseIntElementsAttr makePaddingAttr(MLIRContext *context, ArrayRef<std::pair<int64_t, int64_t>> padding) {
  SmallVector<int64_t> flat;
  for (auto [low, high] : padding) {
    flat.push_back(low);
    flat.push_back(high);
  }
  auto type = RankedTensorType::get({static_cast<int64_t>(padding.size()), 2}, IntegerType::get(context, 64));
  return DenseIntElementsAttr::get(type, flat);
}

PaddingList getPadding(DenseIntElementsAttr attr, size_t rank) {
  PaddingList list(rank, {0, 0});
  if (!attr || attr.getNumElements() != static_cast<int64_t>(2 * rank))
    return list;
  size_t i = 0;
  for (const APInt &value : attr.getValues<APInt>()) {
    (i % 2 ? list[i / 2].second : list[i / 2].first) = value.getSExtValue();
    ++i;
  }
  return list;
}

SmallVector<int64_t> getListOr(std::optional<ArrayRef<int64_t>> list, size_t rank, int64_t otherwise) {
  if (list)
    return SmallVector<int64_t>(*list);
  return SmallVector<int64_t>(rank, otherwise);
}

} // namespace lathe::hlo
