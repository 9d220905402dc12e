//===- Operators.h - TensorFlow Lite's operators within hlo -----*- C++ -*-===//
//
// Raised: an op of hlo that one or a few TensorFlow Lite operators compute is replaced by
//   "hlo.custom_call"(%x, %w, %b) {call_target_name = "tfl.CONV_2D", backend_config = {padding = "SAME", ...}}
// named as in the format, with its options as a dictionary. Operands and results are tensors of hlo, their sizes symbolic.
// Constants, hlo.while and hlo.if stay as they are: the writer knows them.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_EXPORT_TFLITE_OPERATORS_H
#define LATHE_COMPILER_EXPORT_TFLITE_OPERATORS_H

#include "dialects/hlo/Hlo.h"

#include <optional>

namespace lathe::tflwrite {

constexpr llvm::StringLiteral operatorPrefix = "tfl.";

/// The operator's name without prefix; empty for ops that are none.
llvm::StringRef operatorName(mlir::Operation *op);

/// An option of an operator, or the value that the format gives it when it is absent.
int64_t intOption(mlir::Operation *op, llvm::StringRef name, int64_t otherwise = 0);
double floatOption(mlir::Operation *op, llvm::StringRef name, double otherwise = 0);
llvm::ArrayRef<double> scalesOption(mlir::Operation *op); ///< of a constant; none where its type says the scale
llvm::ArrayRef<int64_t> numbersOption(mlir::Operation *op, llvm::StringRef name);
mlir::ArrayAttr listOption(mlir::Operation *op, llvm::StringRef name); ///< empty where there is none
llvm::StringRef textOption(mlir::Operation *op, llvm::StringRef name);
void setOption(mlir::Operation *op, llvm::StringRef name, mlir::Attribute value);

/// A constant with scales: its operand is hlo.constant. No operator of the format but one of its tensors.
constexpr llvm::StringLiteral constantOperator = "CONSTANT";

/// An operator as a file has it, that is written again as it stands. Its config has what other operators derive from types:
///   name, code, version; options (the kind of table) and fields (place, kind '1', '4' or 'v', value; of a vector a number of values first)
///   custom_options: the bytes of a custom operator's
///   inputs: "absent", [operand, scales] or a tensor that keeps a state; outputs: scales; intermediates: tensors
/// where scales is a dictionary of scales, zero_points and dimension, or unit for none, and a tensor one of number, type, dims and
/// quantization. Operands and results are integers; a value's scales are those that its operators and hlo.quantized of ports give.
constexpr llvm::StringLiteral asIsOperator = "AS_IS";

/// f32, or integers with a scale.
bool isReal(mlir::Type element);
/// Whether the kernels of an operator take this element type, with a scale and zero point where it is quantized.
bool takesType(llvm::StringRef name, mlir::Type element);
/// The largest rank of tensors that an operator broadcasts.
int64_t broadcastRank(llvm::StringRef name);
/// Whether an operator has a fused activation, by its options.
bool hasActivation(llvm::StringRef name);

} // namespace lathe::tflwrite

#endif
