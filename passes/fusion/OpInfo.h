//===- OpInfo.h - what fusion knows about each operation --------------------===//
//
// Every hlo op falls into one class; the policy speaks of classes and costs only.
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_PASSES_FUSION_OPINFO_H
#define LATHE_PASSES_FUSION_OPINFO_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace lathe {

enum class OpClass {
  Elementwise, ///< result element i needs operand elements i only (rank-0 operands of select and clamp apart)
  Broadcast,   ///< broadcast_in_dim
  Index,       ///< transpose, slice, pad, reverse, a gather by constants: one operand element per result element
  Generator,   ///< splats and iota: made again wherever needed
  Reduce,      ///< reduce with a body that codegen folds
  Core,        ///< dot_general, convolution, reduce_window that become kernels with an epilogue
  View,        ///< reshape: no code at all
  Constant,    ///< any other constant
  Opaque       ///< everything else: a kernel of its own, or control flow
};

/// The class of an operation.
OpClass classify(mlir::Operation *op);

/// Rough cost of one element: 0 for moves and conversions, 1 for arithmetic, 4 for divisions and square roots, 10 and
/// more for transcendental functions.
unsigned elementCost(mlir::Operation *op);

/// True for the classes whose elements can be computed one by one inside another op's loop.
inline bool isElemental(OpClass c) {
  return c == OpClass::Elementwise || c == OpClass::Broadcast || c == OpClass::Index || c == OpClass::Generator;
}

/// True when both tensors have the same dimensions, symbolic ones included.
bool sameShape(mlir::Type a, mlir::Type b);

/// True when `op` reads one of its operands' elements more than once, so that computing that operand inside the same
/// loop would repeat work.
bool replicatesOperand(mlir::Operation *op, mlir::Value operand);

} // namespace lathe

#endif
