// What convolutions and products share: factors from scales, the end of a whole-integer sum, and inputs that are quantized as
// the operator runs (float inputs with int8 weights).
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_HYBRID_H
#define LATHE_COMPILER_FRONTEND_TFLITE_HYBRID_H

#include "compiler/frontend/tflite/Requantize.h"
#include "passes/quantize/Kernels.h"

namespace lathe::tflite {

/// input scale x weight scale / output scale, for the tensor or for each index of `channelAxis` of the weights.
FailureOr<SmallVector<Multiplier>> convolutionFactors(OpContext &c, const TensorInfo &input, const TensorInfo &weights,
                                                      int64_t channelAxis);
/// The type in which 16-bit inputs are summed: that of the bias, i64 without one.
Type sumType16(OpContext &c, unsigned bias);
/// sums + bias - less (null: 0; for each output channel), times the factors along the last axis, clamped, in the output's type.
Value finishSums(OpContext &c, Value sums, unsigned bias, ArrayRef<Multiplier> factors, std::pair<float, int64_t> output,
                 std::pair<int64_t, int64_t> range, Value less = {});
/// sums + bias - less, where the two become one constant.
Value addBias(OpContext &c, Value sums, unsigned bias, Value less);

using quantize::convolveRows;
using quantize::quantizeRows;
using quantize::QuantizedRows;
using quantize::scaleSums;
/// The scales of int8 weights: a scalar, or a vector whose only axis is `axis` of a result of rank `axis` + 1.
FailureOr<Value> weightScales(OpContext &c, unsigned input, int64_t channelAxis, int64_t axis);

} // namespace lathe::tflite

#endif
