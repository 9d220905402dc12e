// Inference of result types, one overload of inferTypes for each op's adaptor in the family's .cpp; shared helpers here.
// `location` is where errors go; none means silent.
#ifndef LATHE_DIALECTS_HLO_INFER_H
#define LATHE_DIALECTS_HLO_INFER_H

#include "dialects/hlo/Hlo.h"

#include "mlir/IR/TypeUtilities.h"

namespace lathe::hlo {

using MaybeLocation = std::optional<mlir::Location>;
using TypeList = llvm::SmallVectorImpl<mlir::Type>;

/// Fails silently when an operand is the result of a failed inference, loudly when it is no ranked tensor.
llvm::LogicalResult checkOperands(MaybeLocation location, mlir::ValueRange operands);
/// The stand-in for a type that cannot be inferred: the first operand's shape with element type index.
mlir::Type poisonType(mlir::MLIRContext *context, mlir::ValueRange operands);
llvm::LogicalResult emitTypeMismatch(MaybeLocation location, llvm::StringRef opName, mlir::TypeRange inferred,
                                     mlir::TypeRange given);
/// Equal element types, ranks and sizes; unknown sizes fit everything.
bool areCompatible(mlir::TypeRange inferred, mlir::TypeRange given);
/// The same without element types.
bool areCompatibleShapes(mlir::TypeRange inferred, mlir::TypeRange given);

/// How many results an op with these operands has.
template <typename OpT>
size_t resultCount(mlir::ValueRange operands) {
  if constexpr (OpT::template hasTrait<mlir::OpTrait::OneResult>())
    return 1;
  else if constexpr (OpT::template hasTrait<mlir::OpTrait::NResults<2>::template Impl>())
    return 2;
  else if constexpr (OpT::template hasTrait<mlir::OpTrait::NResults<3>::template Impl>())
    return 3;
  else if constexpr (std::is_same_v<OpT, ReduceOp> || std::is_same_v<OpT, ReduceWindowOp> ||
                     std::is_same_v<OpT, ScatterOp>)
    return operands.size() / 2;
  else
    return operands.size();
}

/// Merges shapes that must agree; an unknown size takes the other's. Null (with an error) when they differ.
mlir::FailureOr<llvm::SmallVector<AffineExpr>> mergeDims(MaybeLocation location, mlir::TypeRange types);
/// The lists are within [0, rank) and without repetition.
llvm::LogicalResult checkDims(MaybeLocation location, llvm::StringRef what, llvm::ArrayRef<int64_t> dims, int64_t rank);
/// The size of a window's result along one dimension, or of the dilated/padded input.
AffineExpr dilated(AffineExpr size, int64_t dilation);
AffineExpr windowedSize(AffineExpr size, int64_t window, int64_t stride, int64_t low, int64_t high,
                        int64_t baseDilation, int64_t windowDilation);

inline RankedTensorType typeOf(mlir::Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

/// complex<T> gives T.
mlir::Type realType(mlir::Type elementType);

} // namespace lathe::hlo

#endif
