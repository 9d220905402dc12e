// Spectra of sounds and what is made of them: AudioSpectrogram, Mfcc. Both are computed in f64 and rounded once, as in TensorFlow.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

/// [samples, channels] -> [channels, windows, frequencies]: windows of Hann's form, filled up with zeros to a power of two.
LogicalResult lowerSpectrogram(NodeContext &c) {
  Value x = c.input(0);
  if (failed(c.expectRank(0, 2)))
    return failure();
  auto samples = constantOf(c.dim(x, 0));
  if (!samples)
    return c.error("the number of samples must be known");
  int64_t window = c.attrInt("window_size"), stride = c.attrInt("stride");
  if (window < 2 || window > int64_t(1) << 22 || stride < 1)
    return c.error("expected a window of 2 to 2^22 samples and a positive stride, found " + Twine(window) + " and " + Twine(stride));
  int64_t length = 1;
  while (length < window)
    length *= 2;
  int64_t count = *samples < window ? 0 : 1 + (*samples - window) / stride;
  AffineExpr channels = c.dim(x, 1), frequencies = c.size(length / 2 + 1);
  if (count == 0)
    return c.setResult(0, c.splat(0, Dims{channels, c.size(0), frequencies}, c.resultType(0)));
  Type i32 = c.b.getI32Type(), f64 = c.b.getF64Type();
  Dims places{c.size(count), c.size(window)};
  Value at = c.add(c.mul(c.iota(places, 0, i32), c.scalarInt(stride, i32)), c.iota(places, 1, i32));
  Value parts = gather(c, c.transpose(x, {1, 0}), at, 1, 0, /*checked=*/false);
  if (!parts)
    return failure();
  Tensor hann = Tensor::allocate(DType::Float64, {window});
  for (int64_t i = 0; i < window; ++i)
    hann.data<double>()[i] = 0.5 - 0.5 * std::cos(2 * M_PI * double(i) / double(window));
  parts = c.mul(c.convert(parts, f64), c.constant(hann));
  parts = c.pad(parts, c.scalar(0, f64), {0, 0, 0}, {0, 0, length - window});
  Value spectrum = c.make<hlo::FftOp>(parts, hlo::FftType::RFFT, ArrayRef<int64_t>{length});
  Value real = c.unary<hlo::RealOp>(spectrum), imaginary = c.unary<hlo::ImagOp>(spectrum);
  Value result = c.convert(c.add(c.mul(real, real), c.mul(imaginary, imaginary)), c.resultType(0));
  return c.setResult(0, c.attrBool("magnitude_squared") ? result : c.unary<hlo::SqrtOp>(result));
}

Value mel(NodeContext &c, Value frequency) {
  Value x = c.unary<hlo::Log1pOp>(c.mul(frequency, c.like(frequency, 1 / 700.0)));
  return c.mul(x, c.like(x, 1127));
}

/// What each frequency counts in each filter: triangles between centres at equal distances in mel. [frequencies, filters]
Value filterWeights(NodeContext &c, Value rate, int64_t frequencies, int64_t filters, double lowest, double highest) {
  Type f64 = c.b.getF64Type();
  auto melOf = [](double f) { return 1127.0 * std::log1p(f / 700.0); };
  double from = melOf(lowest), spacing = (melOf(highest) - from) / double(filters + 1);
  Dims table{c.size(frequencies), c.size(filters)};
  Value step = c.div(c.mul(c.convert(rate, f64), c.scalar(0.5, f64)), c.scalar(double(frequencies - 1), f64));
  Value bin = c.iota(table, 0, f64), place = mel(c, c.mul(bin, step));
  Value centre = c.add(c.mul(c.iota(table, 1, f64), c.like(bin, spacing)), c.like(bin, from + spacing));
  Value rising = c.div(c.sub(place, c.sub(centre, c.like(bin, spacing))), c.like(bin, spacing));
  Value falling = c.div(c.sub(c.add(centre, c.like(bin, spacing)), place), c.like(bin, spacing));
  // before the first centre a frequency rises to it from wherever it is
  Value weight = c.select(c.compare(Compare::LT, centre, place), falling, rising);
  Value first = c.unary<hlo::FloorOp>(c.add(c.div(c.scalar(lowest, f64), step), c.scalar(1.5, f64)));
  Value last = c.unary<hlo::FloorOp>(c.div(c.scalar(highest, f64), step));
  Value distance = c.unary<hlo::AbsOp>(c.sub(place, centre));
  Value isNear = c.compare(Compare::LT, distance, c.like(bin, spacing));
  Value isUsed = c.logicalAnd(c.compare(Compare::GE, bin, first), c.compare(Compare::LE, bin, last));
  return c.select(c.logicalAnd(isNear, isUsed), weight, c.like(bin, 0));
}

/// Coefficients of a cosine transform of what the filters let through, as a logarithm.
LogicalResult lowerMfcc(NodeContext &c) {
  Value x = c.input(0), rate = c.input(1);
  if (failed(c.expectRank(0, 3)) || failed(c.expectRank(1, 0)))
    return failure();
  auto frequencies = constantOf(c.dim(x, 2));
  if (!frequencies)
    return c.error("the number of frequencies must be known");
  double lowest = c.attrFloat("lower_frequency_limit", 20), highest = c.attrFloat("upper_frequency_limit", 4000);
  int64_t filters = c.attrInt("filterbank_channel_count", 40), wanted = c.attrInt("dct_coefficient_count", 13);
  constexpr int64_t kMost = 1 << 12;
  if (*frequencies > int64_t(1) << 18)
    return c.error("filters for " + Twine(*frequencies) + " frequencies are not supported");
  if (*frequencies < 2 || filters < 1 || filters > kMost || wanted < 1 || wanted > filters)
    return c.error("expected two frequencies or more, 1 to " + Twine(kMost) + " filters and no more coefficients than these, found " +
                   Twine(*frequencies) + ", " + Twine(filters) + " and " + Twine(wanted));
  if (!(lowest >= 0) || !(highest > lowest) || !std::isfinite(highest))
    return c.error("expected frequency limits that rise from 0 or more");
  Type f64 = c.b.getF64Type();
  c.check(c.compare(Compare::GT, rate, c.scalarInt(0, c.elementType(rate))), "sample_rate must be positive");
  // a spectrum without negative numbers is squared magnitudes
  Value magnitudes = c.unary<hlo::SqrtOp>(c.convert(x, f64));
  Value weights = filterWeights(c, rate, *frequencies, filters, lowest, highest);
  Value bands = c.dot(magnitudes, weights, {}, {}, {2}, {0});
  bands = c.unary<hlo::LogOp>(c.max(bands, c.like(bands, 1e-12)));
  Tensor cosines = Tensor::allocate(DType::Float64, {filters, wanted});
  for (int64_t j = 0; j < filters; ++j)
    for (int64_t i = 0; i < wanted; ++i)
      cosines.data<double>()[j * wanted + i] =
          std::sqrt(2.0 / double(filters)) * std::cos(double(i) * M_PI / double(filters) * (double(j) + 0.5));
  return c.setResult(0, c.convert(c.dot(bands, c.constant(cosines), {}, {}, {2}, {0}), c.resultType(0)));
}

} // namespace

void registerAudio(HandlerTable &t) {
  t.add("AudioSpectrogram", 1, lowerSpectrogram);
  t.add("Mfcc", 2, lowerMfcc);
}

} // namespace lathe::legalize
