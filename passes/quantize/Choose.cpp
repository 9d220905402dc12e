#include "passes/quantize/Choose.h"

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

#include <cmath>

using namespace mlir;

namespace lathe::quantize {

Params chooseParams(double low, double high, int64_t bits) {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  Params p;
  if (bits == 16) {
    const double most = std::max(-low, high);
    p.scale = most > 0 ? float(most / 32767) : 1;
  } else if (high > low) {
    p.scale = float((high - low) / 255);
    if (p.scale > 0)
      p.zeroPoint = std::llround(std::clamp(-128 - low / p.scale, -128.0, 127.0));
  }
  if (!(p.scale > 0)) // below the smallest float
    p = {std::numeric_limits<float>::min(), 0};
  return p;
}

/// Channels of a Scale: those of its factors or its terms.
static int64_t channelsOf(const Unit &unit) {
  return cast<RankedTensorType>(unit.out.getType()).getShape().back();
}

FailureOr<Weights> quantizeWeights(const Unit &unit, Params input, int64_t bits) {
  Tensor real;
  int64_t channelDim = 0;
  if (unit.kind == UnitKind::Scale) {
    // one factor a channel: what a convolution of one tap over each channel does
    const int64_t channels = channelsOf(unit);
    if (ShapedType::isDynamic(channels))
      return failure();
    real = Tensor::allocate(DType::Float32, {channels});
    std::fill_n(real.data<float>(), channels, 1.0f);
    if (unit.weights) {
      auto given = matchChannelConstant(unit.weights);
      auto t = hlo::readConstant(given && constantValue(given->value) ? given->value : unit.weights);
      if (failed(t))
        return failure();
      for (int64_t c = 0; c < channels; ++c)
        real.data<float>()[c] = t->data<float>()[t->numElements() >= channels ? c : 0];
    }
  } else {
    auto t = hlo::readConstant(unit.weights);
    if (failed(t))
      return failure();
    real = *t;
    channelDim = real.rank() - 1;
    if (auto dot = dyn_cast<hlo::DotGeneralOp>(unit.root))
      channelDim = 1 - dot.getDotDimensionNumbers().getRhsContractingDimensions()[0];
  }
  return quantizeChannels(real, channelDim, unit.bias, input, bits);
}

/// The step of numbers that are whole multiples of one, at most 127 of it; 0 where they are not, or too few to tell.
static double stepOf(ArrayRef<double> numbers, double most) {
  constexpr double tolerance = 1e-4; // of a step: for what f32 loses
  if (numbers.size() < 8)
    return 0;
  for (int count = 127; count > 0; --count) {
    const double step = most / count;
    if (llvm::all_of(numbers, [&](double x) { return std::abs(x / step - std::round(x / step)) < tolerance; }))
      return step;
  }
  return 0;
}

FailureOr<Weights> quantizeChannels(const Tensor &real, int64_t channelDim, ArrayRef<double> biases, Params input, int64_t bits) {
  Weights w;
  w.channelDim = channelDim;
  const int64_t channels = real.dim(w.channelDim), n = real.numElements();
  int64_t inner = 1;
  for (int64_t d = w.channelDim + 1; d < real.rank(); ++d)
    inner *= real.dim(d);
  auto channelOf = [&](int64_t i) { return i / inner % channels; };
  std::vector<double> most(channels, 0);
  std::vector<std::vector<double>> numbers(channels);
  const float *x = real.data<float>();
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i]))
      return failure();
    most[channelOf(i)] = std::max<double>(most[channelOf(i)], std::abs(x[i]));
    if (x[i] != 0)
      numbers[channelOf(i)].push_back(x[i]);
  }
  auto biasOf = [&](int64_t c) { return biases.empty() ? 0.0 : biases[biases.size() == 1 ? 0 : size_t(c)]; };
  // sums need room beside the bias
  const double room = bits == 16 ? double(int64_t(1) << 46) : double(1 << 30);
  for (int64_t c = 0; c < channels; ++c) {
    double scale = most[c] / 127;
    if (double step = stepOf(numbers[c], most[c]); step > 0) // weights that are rounded already keep their steps
      scale = step;
    const double bias = std::abs(biasOf(c));
    if (!std::isfinite(bias))
      return failure();
    if (scale == 0) // the bias is all that there is
      scale = bias > 0 ? bias / (double(input.scale) * (1 << 24)) : 1e-6;
    scale = std::max(scale, bias / (double(input.scale) * room));
    w.scales.push_back(std::max(float(scale), std::numeric_limits<float>::min()));
  }
  w.values = Tensor::allocate(DType::Int8, real.dims());
  for (int64_t i = 0; i < n; ++i)
    w.values.data<int8_t>()[i] = int8_t(std::clamp<double>(std::round(double(x[i]) / w.scales[channelOf(i)]), -127, 127));
  if (!biases.empty())
    for (int64_t c = 0; c < channels; ++c)
      w.bias.push_back(std::llround(std::clamp(biasOf(c) / (double(input.scale) * w.scales[c]), -room, room)));
  return w;
}

} // namespace lathe::quantize
