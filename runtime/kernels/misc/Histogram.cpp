// HistogramFixedWidth: how many values fall into each of the bins of equal width that make up a range.
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <cmath>

namespace lathe::rt {
namespace {

/// a - b for a >= b as a double; the difference of two integers need not fit their type.
template <typename T>
double distance(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return static_cast<double>(a - b);
}

template <typename T>
absl::Status count(const Tensor &values, const Tensor &range, int64_t bins, const std::function<void(int64_t)> &add) {
  T low = range.data<T>()[0], high = range.data<T>()[1];
  if (!(low < high))
    return invalid("value_range should satisfy value_range[0] < value_range[1], but got '[", low, ", ", high, "]'");
  double step = distance(high, low) / static_cast<double>(bins);
  for (int64_t i = 0; i < values.numElements(); ++i) {
    T v = values.data<T>()[i];
    if (v != v)
      return invalid("Histogram values must not contain NaN");
    // what lies outside of the range counts for the first or last bin
    double place = distance(std::max(v, low), low) / step;
    add(place < static_cast<double>(bins - 1) ? static_cast<int64_t>(place) : bins - 1);
  }
  return absl::OkStatus();
}

absl::Status histogram(KernelContext &context) {
  Tensor values = context.input(0), range = context.input(1), number = context.input(2);
  if (range.rank() != 1)
    return invalid("value_range should be a vector.");
  if (range.numElements() != 2)
    return invalid("value_range should be a vector of 2 elements.");
  if (number.rank() != 0)
    return invalid("nbins should be a scalar.");
  int64_t bins = intAt(number, 0);
  if (bins <= 0)
    return invalid("nbins should be a positive number, but got '", bins, "'");
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {bins}));
  return withIndexType(out.dtype(), [&](auto index) {
    auto add = [to = out.template data<decltype(index)>()](int64_t bin) { ++to[bin]; };
    switch (values.dtype()) {
    case DType::Int32:
      return count<int32_t>(values, range, bins, add);
    case DType::Int64:
      return count<int64_t>(values, range, bins, add);
    case DType::Float32:
      return count<float>(values, range, bins, add);
    case DType::Float64:
      return count<double>(values, range, bins, add);
    default:
      return invalid("no histogram of type ", dtypeName(values.dtype()));
    }
  });
}
LATHE_HOST_FUNCTION(HistogramFixedWidth, histogram);

} // namespace
} // namespace lathe::rt
