// Scales and zero points as TensorFlow Lite chooses them, and the integers of weights.
#ifndef LATHE_PASSES_QUANTIZE_CHOOSE_H
#define LATHE_PASSES_QUANTIZE_CHOOSE_H

#include "base/Tensor.h"
#include "passes/quantize/Arithmetic.h"
#include "passes/quantize/Units.h"

namespace lathe::quantize {

/// Of values in [low, high], which is widened to hold 0: with 8 bits asymmetric, the zero point rounded so that 0 is exact;
/// with 16 symmetric. Scale 1 where the range is 0 alone.
Params chooseParams(double low, double high, int64_t bits);

/// Weights as 8-bit integers around 0, one scale a channel (the dimension that the result's last one comes from).
struct Weights {
  Tensor values;             ///< int8, the shape of the constant
  int64_t channelDim = 0;
  std::vector<float> scales; ///< one a channel
  std::vector<int64_t> bias; ///< one a channel at input scale x weight scale, or none
};
/// Those of Conv, Dot and Scale. A scale is widened where the bias would not fit into 32 bits otherwise (48 with 16-bit
/// inputs). Failure for numbers that are not finite.
mlir::FailureOr<Weights> quantizeWeights(const Unit &unit, Params input, int64_t bits);

/// The same of f32 numbers with one bias, one for each channel, or none.
mlir::FailureOr<Weights> quantizeChannels(const Tensor &real, int64_t channelDim, ArrayRef<double> biases, Params input, int64_t bits);
/// The numbers of f32 rounded to f16; none where one is beyond its range or no number.
std::optional<Tensor> toHalf(const Tensor &values);

} // namespace lathe::quantize

#endif
