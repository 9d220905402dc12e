// The kernel dialect: one op per generated function, each a loop nest around a region of hlo ops.
#ifndef LATHE_DIALECTS_KERNEL_KERNEL_H
#define LATHE_DIALECTS_KERNEL_KERNEL_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace lathe::kernel {
/// Fills the region of a kernel op: receives the block arguments, returns the values to yield.
using BodyBuilder =
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Location, mlir::ValueRange args)>;

/// True for the ops that become one function each (all of the dialect but kernel.yield).
bool isKernelOp(mlir::Operation *op);

/// True for dot, conv, depthwise_conv and pool: the first argument of the region is the accumulator.
bool hasCore(mlir::Operation *op);

/// Attribute of kernel ops and of hlo.concatenate: elements from row to row, of the last dimension, for each
/// result (0: dense).
constexpr llvm::StringLiteral resultRowsAttr = "kernel.result_rows";
/// The same for each operand.
constexpr llvm::StringLiteral operandRowsAttr = "kernel.operand_rows";
/// Attribute of hlo.concatenate: whether each operand lies in the result from the beginning.
constexpr llvm::StringLiteral joinedAttr = "kernel.joined";

/// Elements from one row of a result to the next, or 0 where they are dense.
int64_t resultRow(mlir::OpResult result);

/// The same for an operand.
int64_t operandRow(mlir::Operation *op, unsigned operand);

/// Whether an operand of an hlo.concatenate lies in the result from the beginning.
bool isJoined(mlir::OpOperand &part);

/// The element type in which products of these operand types are summed: f32 for floats up to 32 bits, else the
/// result's element type.
mlir::Type accumulatorType(mlir::Type lhs, mlir::Type rhs, mlir::Type result);
} // namespace lathe::kernel

#include "dialects/kernel/KernelDialect.h.inc"
#include "dialects/kernel/KernelInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/kernel/KernelOps.h.inc"

#endif
