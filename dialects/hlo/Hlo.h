// The hlo dialect: StableHLO's ops with symbolic sizes. Ops are declared in Hlo<Family>.td.
//
// Builders infer result types and never abort: where operands do not fit, the error is emitted at the op's location and
// the result gets the element type `index` (isInvalid below), which the verifier refuses.
#ifndef LATHE_DIALECTS_HLO_HLO_H
#define LATHE_DIALECTS_HLO_HLO_H

#include "dialects/hlo/Shape.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/hlo/HloEnums.h.inc"

namespace lathe::hlo {

/// Marks ops whose result elements depend on the operand elements at the same index (or a rank-0 operand) only.
template <typename ConcreteOp>
class HloElementwise : public mlir::OpTrait::TraitBase<ConcreteOp, HloElementwise> {};

using PaddingList = llvm::SmallVector<std::pair<int64_t, int64_t>>;

/// The window of a convolution; an empty list stands for ones (dilations, strides), zeros (padding) or false.
struct ConvWindow {
  llvm::SmallVector<int64_t> strides, lhsDilation, rhsDilation;
  PaddingList padding;
  llvm::SmallVector<bool> reversal;
};

/// The window of reduce_window besides its size; empty lists as in ConvWindow.
struct ReduceWindow {
  llvm::SmallVector<int64_t> strides, baseDilations, windowDilations;
  PaddingList padding;
};

/// [n,2] elements attribute of a list and back (zeros of `rank` for a null attribute).
mlir::DenseIntElementsAttr makePaddingAttr(mlir::MLIRContext *context, llvm::ArrayRef<std::pair<int64_t, int64_t>> padding);
PaddingList getPadding(mlir::DenseIntElementsAttr attr, size_t rank);
/// The values of an optional list attribute, `rank` copies of `otherwise` for a null one.
llvm::SmallVector<int64_t> getListOr(std::optional<llvm::ArrayRef<int64_t>> list, size_t rank, int64_t otherwise);

/// A result whose types did not fit; the error has been emitted.
bool isInvalid(mlir::Value value);
bool isInvalid(mlir::Type type);

/// Unit attribute of a while loop that one thread runs, beside others that do.
constexpr const char *oneThreadAttr = "hlo.one_thread";

/// The element type of a tensor value.
mlir::Type elementType(mlir::Value value);
RankedTensorType tensorType(mlir::Value value);

/// Whether an element type is a number quantized per tensor or per axis, with storage and expressed type as hlo has them.
bool isQuantized(mlir::Type elementType);
/// The dimension whose elements have scales of their own; none for other types.
std::optional<int64_t> quantizedAxis(mlir::Type elementType);
/// The integers that hold a quantized element type's numbers; other types give themselves.
mlir::Type storageType(mlir::Type elementType);

} // namespace lathe::hlo

#include "dialects/hlo/HloDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/hlo/HloAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/hlo/HloElementwise.h.inc"
#define GET_OP_CLASSES
#include "dialects/hlo/HloShapeOps.h.inc"
#define GET_OP_CLASSES
#include "dialects/hlo/HloLinalg.h.inc"
#define GET_OP_CLASSES
#include "dialects/hlo/HloReduce.h.inc"
#define GET_OP_CLASSES
#include "dialects/hlo/HloControl.h.inc"
#define GET_OP_CLASSES
#include "dialects/hlo/HloRandom.h.inc"
#define GET_OP_CLASSES
#include "dialects/hlo/HloQuant.h.inc"

#endif
