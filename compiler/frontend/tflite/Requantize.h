// The arithmetic of quantized operators (passes/quantize/Arithmetic.h) for what a file says of its tensors.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_REQUANTIZE_H
#define LATHE_COMPILER_FRONTEND_TFLITE_REQUANTIZE_H

#include "compiler/frontend/tflite/OpContext.h"
#include "passes/quantize/Arithmetic.h"

namespace lathe::tflite {

using quantize::finish;
using quantize::lookUp;
using quantize::Multiplier;
using quantize::multiplierOf;
using quantize::multiplyBy;
using quantize::multiplyByEach;
using quantize::multiplyWide;
using quantize::requantize;
using quantize::roundingShift;
using quantize::widen;

/// Lowest and highest element of a type.
std::pair<int64_t, int64_t> rangeOf(tfl::TensorType type);
/// The parameters of a tensor quantized as a whole, from OpContext::perTensor.
inline quantize::Params paramsOf(std::pair<float, int64_t> q) { return {q.first, q.second}; }
/// The range that a fused activation leaves of a quantized output.
FailureOr<std::pair<int64_t, int64_t>> activationRange(OpContext &c, const TensorInfo &output, Activation activation);
/// Input `i` as real numbers, f32: quantized ones by their scale, others as they are. Null after an error.
Value realInput(OpContext &c, unsigned i);
/// The table of a function on real numbers between two quantized types of 8 bits, rounded as the reference kernels do.
FailureOr<SmallVector<int64_t>> tableOf(OpContext &c, llvm::function_ref<float(float)> function);

} // namespace lathe::tflite

#endif
