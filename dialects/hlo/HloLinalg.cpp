// Products, convolutions, factorisations: inference and builders.
#include "dialects/hlo/Infer.h"

using namespace mlir;

namespace lathe::hlo {

static LogicalResult inferTypes(DotOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto lhs = typeOf(adaptor.getLhs()), rhs = typeOf(adaptor.getRhs());
  if (lhs.getRank() < 1 || lhs.getRank() > 2 || rhs.getRank() < 1 || rhs.getRank() > 2)
    return emitOptionalError(location, "expected vectors or matrices, found ", lhs, " and ", rhs);
  AffineExpr a = getDim(lhs, lhs.getRank() - 1), b = getDim(rhs, 0);
  if (a && b && !equalDims(a, b))
    return emitOptionalError(location, "inner dimensions differ: ", dimToString(a), " and ", dimToString(b));
  SmallVector<AffineExpr> dims;
  if (lhs.getRank() == 2)
    dims.push_back(getDim(lhs, 0));
  if (rhs.getRank() == 2)
    dims.push_back(getDim(rhs, 1));
  types.push_back(makeType(dims, lhs.getElementType()));
  return success();
}

static LogicalResult inferTypes(DotGeneralOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto lhs = typeOf(adaptor.getLhs()), rhs = typeOf(adaptor.getRhs());
  DotDimensionNumbersAttr numbers = adaptor.getDotDimensionNumbers();
  ArrayRef<int64_t> lb = numbers.getLhsBatchingDimensions(), rb = numbers.getRhsBatchingDimensions(),
                    lc = numbers.getLhsContractingDimensions(), rc = numbers.getRhsContractingDimensions();
  if (lb.size() != rb.size())
    return emitOptionalError(location, "C1: batching dimensions differ in number: ", lb.size(), " and ", rb.size());
  if (lc.size() != rc.size())
    return emitOptionalError(location, "C2: contracting dimensions differ in number: ", lc.size(), " and ", rc.size());
  SmallVector<int64_t> left(lb), right(rb);
  left.append(lc.begin(), lc.end());
  right.append(rc.begin(), rc.end());
  if (failed(checkDims(location, "C3: lhs", left, lhs.getRank())) ||
      failed(checkDims(location, "C4: rhs", right, rhs.getRank())))
    return failure();
  SmallVector<AffineExpr> dims;
  for (auto [i, j] : llvm::zip(lb, rb)) {
    AffineExpr a = getDim(lhs, i), b = getDim(rhs, j);
    if (a && b && !equalDims(a, b))
      return emitOptionalError(location, "C9: batching dimensions differ: ", dimToString(a), " and ", dimToString(b));
    dims.push_back(a ? a : b);
  }
  for (auto [i, j] : llvm::zip(lc, rc)) {
    AffineExpr a = getDim(lhs, i), b = getDim(rhs, j);
    if (a && b && !equalDims(a, b))
      return emitOptionalError(location, "C10: inner dimensions differ: ", dimToString(a), " and ", dimToString(b));
  }
  for (int64_t i = 0; i < lhs.getRank(); ++i)
    if (!llvm::is_contained(left, i))
      dims.push_back(getDim(lhs, i));
  for (int64_t i = 0; i < rhs.getRank(); ++i)
    if (!llvm::is_contained(right, i))
      dims.push_back(getDim(rhs, i));
  types.push_back(makeType(dims, lhs.getElementType()));
  return success();
}

// After a build with inferred types: another element type for the result.
static void overrideElementType(OperationState &state, Type elementType) {
  if (!elementType || isInvalid(state.types.front()))
    return;
  state.types.front() = withElementType(cast<RankedTensorType>(state.types.front()), elementType);
}

void DotGeneralOp::build(OpBuilder &b, OperationState &state, Value lhs, Value rhs, DotDimensionNumbersAttr dims,
                         Type elementType) {
  build(b, state, lhs, rhs, dims, ArrayAttr());
  overrideElementType(state, elementType);
}

template <typename Adaptor>
static LogicalResult inferConvolution(Adaptor adaptor, bool paddingKnown, MaybeLocation location, TypeList &types) {
  auto lhs = typeOf(adaptor.getLhs()), rhs = typeOf(adaptor.getRhs());
  ConvDimensionNumbersAttr numbers = adaptor.getDimensionNumbers();
  int64_t rank = lhs.getRank(), spatial = rank - 2;
  if (rhs.getRank() != rank || spatial < 0)
    return emitOptionalError(location, "C1: expected operands of equal rank of at least 2, found ", lhs, " and ", rhs);
  auto check = [&](StringRef what, int64_t a, int64_t b, ArrayRef<int64_t> rest) -> LogicalResult {
    SmallVector<int64_t> all(rest);
    all.push_back(a);
    all.push_back(b);
    if (static_cast<int64_t>(all.size()) != rank)
      return emitOptionalError(location, "C13: ", what, " names ", all.size(), " dimensions, expected ", rank);
    return checkDims(location, what, all, rank);
  };
  if (failed(check("input dimensions", numbers.getInputBatchDimension(), numbers.getInputFeatureDimension(),
                   numbers.getInputSpatialDimensions())) ||
      failed(check("kernel dimensions", numbers.getKernelInputFeatureDimension(),
                   numbers.getKernelOutputFeatureDimension(), numbers.getKernelSpatialDimensions())) ||
      failed(check("output dimensions", numbers.getOutputBatchDimension(), numbers.getOutputFeatureDimension(),
                   numbers.getOutputSpatialDimensions())))
    return failure();
  auto strides = getListOr(adaptor.getWindowStrides(), spatial, 1);
  auto lhsDilation = getListOr(adaptor.getLhsDilation(), spatial, 1);
  auto rhsDilation = getListOr(adaptor.getRhsDilation(), spatial, 1);
  for (auto *list : {&strides, &lhsDilation, &rhsDilation}) {
    if (static_cast<int64_t>(list->size()) != spatial)
      return emitOptionalError(location, "C2: expected ", spatial, " window strides and dilations");
    for (int64_t value : *list)
      if (value <= 0)
        return emitOptionalError(location, "C3: window strides and dilations must be positive");
  }
  auto paddingAttr = dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getPaddingAttr());
  if (paddingAttr && paddingAttr.getNumElements() != 2 * spatial)
    return emitOptionalError(location, "C4: expected a padding of ", spatial, "x2");
  if (adaptor.getWindowReversal() && static_cast<int64_t>(adaptor.getWindowReversal()->size()) != spatial)
    return emitOptionalError(location, "C9: expected ", spatial, " entries in window_reversal");
  auto padding = getPadding(paddingAttr, spatial);
  int64_t groups = adaptor.getFeatureGroupCount(), batchGroups = adaptor.getBatchGroupCount();
  if (groups <= 0 || batchGroups <= 0)
    return emitOptionalError(location, "C21: group counts must be positive");
  if (groups > 1 && batchGroups > 1)
    return emitOptionalError(location, "C23: only one of feature_group_count and batch_group_count may exceed 1");
  AffineExpr inFeature = getDim(lhs, numbers.getInputFeatureDimension());
  AffineExpr kernelIn = getDim(rhs, numbers.getKernelInputFeatureDimension());
  AffineExpr kernelOut = getDim(rhs, numbers.getKernelOutputFeatureDimension());
  AffineExpr batch = getDim(lhs, numbers.getInputBatchDimension());
  if (inFeature && kernelIn && !equalDims(inFeature, simplify(kernelIn * groups)))
    return emitOptionalError(location, "C14: input has ", dimToString(inFeature), " features, expected ", groups,
                             " groups of the kernel's ", dimToString(kernelIn));
  if (auto out = constantValue(kernelOut); out && (*out % groups != 0 || *out % batchGroups != 0))
    return emitOptionalError(location, "C15: ", *out, " output features are not divisible by the group count");
  if (auto size = constantValue(batch); size && *size % batchGroups != 0)
    return emitOptionalError(location, "C10: batch ", *size, " is not divisible by batch_group_count");
  SmallVector<AffineExpr> dims(rank);
  dims[numbers.getOutputBatchDimension()] = batch && batchGroups > 1 ? simplify(batch.floorDiv(batchGroups)) : batch;
  dims[numbers.getOutputFeatureDimension()] = kernelOut;
  for (int64_t i = 0; i < spatial; ++i) {
    auto window = constantValue(getDim(rhs, numbers.getKernelSpatialDimensions()[i]));
    AffineExpr &dim = dims[numbers.getOutputSpatialDimensions()[i]];
    AffineExpr size = getDim(lhs, numbers.getInputSpatialDimensions()[i]);
    if (window && paddingKnown) {
      dim = windowedSize(size, *window, strides[i], padding[i].first, padding[i].second, lhsDilation[i],
                         rhsDilation[i]);
    } else if (paddingKnown && size) {
      // a kernel of symbolic size
      if (AffineExpr kernel = getDim(rhs, numbers.getKernelSpatialDimensions()[i])) {
        AffineExpr padded = dilated(size, lhsDilation[i]) + (padding[i].first + padding[i].second);
        dim = simplify((padded - dilated(kernel, rhsDilation[i])).floorDiv(strides[i]) + 1);
      }
    }
  }
  types.push_back(makeType(dims, lhs.getElementType()));
  return success();
}

static LogicalResult inferTypes(ConvolutionOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  return inferConvolution(adaptor, true, location, types);
}

void ConvolutionOp::build(OpBuilder &b, OperationState &state, Value lhs, Value rhs, const ConvWindow &window,
                          ConvDimensionNumbersAttr dims, int64_t featureGroupCount, int64_t batchGroupCount,
                          Type elementType) {
  auto list = [&](ArrayRef<int64_t> values) {
    return values.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(values);
  };
  build(b, state, lhs, rhs, list(window.strides),
        window.padding.empty() ? DenseIntElementsAttr() : makePaddingAttr(b.getContext(), window.padding),
        list(window.lhsDilation), list(window.rhsDilation),
        window.reversal.empty() ? DenseBoolArrayAttr() : b.getDenseBoolArrayAttr(window.reversal), dims,
        b.getI64IntegerAttr(featureGroupCount), b.getI64IntegerAttr(batchGroupCount), ArrayAttr());
  overrideElementType(state, elementType);
}

LogicalResult DynamicConvOp::verify() {
  SmallVector<Type> types;
  if (failed(inferConvolution(*this, false, getLoc(), types)))
    return failure();
  if (!areCompatibleShapes(types, getOperation()->getResultTypes()))
    return emitTypeMismatch(getLoc(), getOperationName(), types, getOperation()->getResultTypes());
  return success();
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

static LogicalResult checkMatrix(MaybeLocation location, RankedTensorType type, bool square) {
  if (type.getRank() < 2)
    return emitOptionalError(location, "C2: expected matrices, found ", type);
  if (!square)
    return success();
  AffineExpr m = getDim(type, type.getRank() - 2), n = getDim(type, type.getRank() - 1);
  if (m && n && !equalDims(m, n))
    return emitOptionalError(location, "C3: expected square matrices, found ", type);
  return success();
}

// Batch dimensions of the type followed by the given ones.
static Type batched(RankedTensorType type, ArrayRef<AffineExpr> last, Type elementType) {
  SmallVector<AffineExpr> dims = getDims(type);
  dims.resize(dims.size() - 2);
  dims.append(last.begin(), last.end());
  return makeType(dims, elementType);
}

static LogicalResult inferTypes(CholeskyOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  types.push_back(adaptor.getA().getType());
  return checkMatrix(location, typeOf(adaptor.getA()), true);
}

static LogicalResult inferTypes(TriangularSolveOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto a = typeOf(adaptor.getA()), b = typeOf(adaptor.getB());
  if (a.getElementType() != b.getElementType())
    return emitOptionalError(location, "C1: element types differ: ", a, " and ", b);
  if (failed(checkMatrix(location, a, true)) || failed(checkMatrix(location, b, false)))
    return failure();
  if (a.getRank() != b.getRank())
    return emitOptionalError(location, "C2: ranks differ: ", a, " and ", b);
  int64_t rank = a.getRank();
  for (int64_t i = 0; i < rank - 2; ++i)
    if (AffineExpr x = getDim(a, i), y = getDim(b, i); x && y && !equalDims(x, y))
      return emitOptionalError(location, "C3: batch dimensions differ: ", a, " and ", b);
  AffineExpr x = getDim(a, rank - 1), y = getDim(b, adaptor.getLeftSide() ? rank - 2 : rank - 1);
  if (x && y && !equalDims(x, y))
    return emitOptionalError(location, "C3: sizes differ: ", dimToString(x), " and ", dimToString(y));
  if (adaptor.getTransposeA() == Transpose::TRANSPOSE_INVALID)
    return emitOptionalError(location, "transpose_a is not valid");
  types.push_back(b);
  return success();
}

static LogicalResult inferTypes(FftOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  ArrayRef<int64_t> length = adaptor.getFftLength();
  int64_t rank = type.getRank(), n = length.size();
  if (n < 1 || n > 3)
    return emitOptionalError(location, "C3: expected 1 to 3 entries in fft_length");
  if (n > rank)
    return emitOptionalError(location, "C1: fft_length has more entries than ", type, " dimensions");
  FftType kind = adaptor.getFftType();
  bool isComplex = isa<ComplexType>(type.getElementType());
  if (isComplex == (kind == FftType::RFFT))
    return emitOptionalError(location, "C2: element type ", type.getElementType(), " does not fit the transform");
  for (int64_t l : length)
    if (l < 0)
      return emitOptionalError(location, "fft_length must not be negative");
  SmallVector<AffineExpr> dims = getDims(type);
  MLIRContext *context = type.getContext();
  for (int64_t i = 0; i < n; ++i) {
    AffineExpr &dim = dims[rank - n + i];
    AffineExpr expected = constantExpr(context, length[i]);
    bool last = i == n - 1;
    if (last && kind == FftType::IRFFT)
      expected = constantExpr(context, length[i] == 0 ? 0 : length[i] / 2 + 1);
    if (dim && !equalDims(dim, expected))
      return emitOptionalError(location, "C4: dimension ", rank - n + i, " is ", dimToString(dim), ", expected ",
                               dimToString(expected));
    dim = constantExpr(context, length[i]);
    if (last && kind == FftType::RFFT)
      dim = constantExpr(context, length[i] == 0 ? 0 : length[i] / 2 + 1);
  }
  Type element = type.getElementType();
  if (kind == FftType::RFFT)
    element = ComplexType::get(element);
  if (kind == FftType::IRFFT)
    element = realType(element);
  types.push_back(makeType(dims, element));
  return success();
}

// min(m, n), null for symbolic sizes.
static AffineExpr smaller(AffineExpr m, AffineExpr n) {
  auto a = constantValue(m), b = constantValue(n);
  if (a && b)
    return *a < *b ? m : n;
  return equalDims(m, n) ? m : AffineExpr();
}

static LogicalResult inferTypes(QrOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getA());
  if (failed(checkMatrix(location, type, false)))
    return failure();
  AffineExpr m = getDim(type, type.getRank() - 2), n = getDim(type, type.getRank() - 1);
  AffineExpr k = adaptor.getFullMatrices() ? m : smaller(m, n);
  types.push_back(batched(type, {m, k}, type.getElementType()));
  types.push_back(batched(type, {k, n}, type.getElementType()));
  return success();
}

static LogicalResult inferTypes(EighOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getA());
  if (failed(checkMatrix(location, type, true)))
    return failure();
  types.push_back(batched(type, {getDim(type, type.getRank() - 1)}, realType(type.getElementType())));
  types.push_back(type);
  return success();
}

static LogicalResult inferTypes(EigOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getA());
  if (failed(checkMatrix(location, type, true)))
    return failure();
  Type element = type.getElementType();
  if (!isa<ComplexType>(element)) {
    if (!element.isF32() && !element.isF64())
      return emitOptionalError(location, "expected f32, f64 or complex numbers, found ", element);
    element = ComplexType::get(element);
  }
  types.push_back(batched(type, {getDim(type, type.getRank() - 1)}, element));
  types.push_back(withElementType(type, element));
  return success();
}

static LogicalResult inferTypes(SvdOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getA());
  if (failed(checkMatrix(location, type, false)))
    return failure();
  AffineExpr m = getDim(type, type.getRank() - 2), n = getDim(type, type.getRank() - 1), k = smaller(m, n);
  bool full = adaptor.getFullMatrices();
  types.push_back(batched(type, {k}, realType(type.getElementType())));
  types.push_back(batched(type, {m, full ? m : k}, type.getElementType()));
  types.push_back(batched(type, {n, full ? n : k}, type.getElementType()));
  return success();
}

static LogicalResult inferTypes(LuOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getA());
  if (failed(checkMatrix(location, type, false)))
    return failure();
  types.push_back(type);
  types.push_back(batched(type, {getDim(type, type.getRank() - 2)}, IntegerType::get(type.getContext(), 32)));
  return success();
}

//===----------------------------------------------------------------------===//
// Batch normalisation
//===----------------------------------------------------------------------===//

static LogicalResult checkBatchNorm(MaybeLocation location, RankedTensorType type, int64_t feature,
                                    ValueRange vectors, Type &vectorType) {
  if (feature < 0 || feature >= type.getRank())
    return emitOptionalError(location, "C1: feature_index ", feature, " is not in [0, ", type.getRank(), ")");
  vectorType = makeType(ArrayRef<AffineExpr>{getDim(type, feature)}, type.getElementType());
  for (Value vector : vectors)
    if (!areCompatible(vectorType, vector.getType()))
      return emitOptionalError(location, "C3: expected ", vectorType, ", found ", vector.getType());
  return success();
}

static LogicalResult inferTypes(BatchNormInferenceOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  Type vector;
  types.push_back(adaptor.getOperand().getType());
  return checkBatchNorm(location, typeOf(adaptor.getOperand()), adaptor.getFeatureIndex(),
                        adaptor.getOperands().drop_front(), vector);
}

static LogicalResult inferTypes(BatchNormTrainingOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  Type vector;
  if (failed(checkBatchNorm(location, typeOf(adaptor.getOperand()), adaptor.getFeatureIndex(),
                            adaptor.getOperands().drop_front(), vector)))
    return failure();
  types.append({adaptor.getOperand().getType(), vector, vector});
  return success();
}

static LogicalResult inferTypes(BatchNormGradOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  Type vector;
  if (failed(checkBatchNorm(location, typeOf(adaptor.getOperand()), adaptor.getFeatureIndex(),
                            {adaptor.getScale(), adaptor.getMean(), adaptor.getVariance()}, vector)))
    return failure();
  if (!areCompatible(adaptor.getOperand().getType(), adaptor.getGradOutput().getType()))
    return emitOptionalError(location, "C2: grad_output must have the type of the operand");
  types.append({adaptor.getOperand().getType(), vector, vector});
  return success();
}

} // namespace lathe::hlo

using namespace lathe::hlo;
#define GET_OP_CLASSES
#include "dialects/hlo/HloLinalg.cpp.inc"
