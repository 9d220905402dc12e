// Range and TopKV2, whose lengths are numbers that may be known only when they run (in files of TensorFlow Lite: graph/tflite/NodeMaker.cpp).
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lathe::rt {
namespace {

template <typename T>
constexpr bool isReal = !std::is_same_v<T, bool> && !std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>;

/// How many numbers there are from start on, `delta` apart, before the limit. Integers in 128 bits, where no difference overflows.
template <typename T>
absl::StatusOr<int64_t> lengthOf(T start, T limit, T delta) {
  if (delta == T(0))
    return invalid("Requires delta != 0: 0");
  const bool up = delta > T(0);
  if (up ? start > limit : start < limit)
    return invalid(up ? "Requires start <= limit when delta > 0" : "Requires start >= limit when delta < 0");
  if constexpr (std::is_integral_v<T>) {
    const __int128 way = static_cast<__int128>(limit) - static_cast<__int128>(start), step = delta;
    const __int128 count = ((way < 0 ? -way : way) + (step < 0 ? -step : step) - 1) / (step < 0 ? -step : step);
    return count > INT64_MAX ? absl::StatusOr<int64_t>(absl::ResourceExhaustedError("a range of more than 2^63 numbers")) : static_cast<int64_t>(count);
  } else {
    const double count = std::ceil(std::abs((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta)));
    if (!(count < 0x1p62))
      return invalid("Requires ((limit - start) / delta) <= 2^62");
    return static_cast<int64_t>(count);
  }
}

absl::Status range(KernelContext &context) {
  Tensor start = context.input(0), limit = context.input(1), delta = context.input(2);
  for (const Tensor *t : {&start, &limit, &delta})
    if (t->rank() != 0 && !(t->rank() == 1 && t->numElements() == 1))
      return invalid("start, limit and delta must be scalars, found shape ", dimsToString(t->dims()));
  return withType(start.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (isReal<T>) {
      T value = start.data<T>()[0], step = delta.data<T>()[0];
      LATHE_TRY_VALUE(count, lengthOf<T>(value, limit.data<T>()[0], step));
      LATHE_TRY_VALUE(out, context.allocateOutput(0, {count}));
      T *to = out.template data<T>();
      for (int64_t i = 0; i < count; ++i, value = added(value, step))
        to[i] = value;
      return absl::OkStatus();
    } else {
      return absl::UnimplementedError(absl::StrCat("no range of type ", dtypeName(start.dtype())));
    }
  });
}
LATHE_HOST_FUNCTION(Range, range);

/// The largest k of each row, the first of equal ones first; a NaN is larger than any number.
absl::Status topK(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(k, oneInt(context.input(1), "k"));
  if (in.rank() < 1)
    return invalid("input must be >= 1-D, got shape ", dimsToString(in.dims()));
  const int64_t row = in.dim(in.rank() - 1);
  if (k < 0)
    return invalid("Need k >= 0, got ", k);
  if (k > row)
    return invalid("input must have at least k columns. Had ", row, ", needed ", k);
  std::vector<int64_t> dims = in.dims();
  dims.back() = k;
  LATHE_TRY_VALUE(values, context.allocateOutput(0, dims));
  LATHE_TRY_VALUE(indices, context.allocateOutput(1, dims));
  return withType(in.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (isReal<T>) {
      std::vector<int64_t> order(row);
      const int64_t rows = row ? in.numElements() / row : 0;
      for (int64_t r = 0; r < rows; ++r) {
        const T *x = in.data<T>() + r * row;
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
          const bool noA = x[a] != x[a], noB = x[b] != x[b];
          if (noA != noB)
            return noA;
          return !noA && x[a] != x[b] ? x[a] > x[b] : a < b;
        });
        for (int64_t i = 0; i < k; ++i) {
          values.template data<T>()[r * k + i] = x[order[i]];
          switch (indices.dtype()) {
          case DType::Int64: indices.template data<int64_t>()[r * k + i] = order[i]; break;
          case DType::Int16: indices.template data<int16_t>()[r * k + i] = static_cast<int16_t>(order[i]); break;
          default: indices.template data<int32_t>()[r * k + i] = static_cast<int32_t>(order[i]);
          }
        }
      }
      return absl::OkStatus();
    } else {
      return absl::UnimplementedError(absl::StrCat("no largest numbers of type ", dtypeName(in.dtype())));
    }
  });
}
LATHE_HOST_FUNCTION(TopKV2, topK);

} // namespace
} // namespace lathe::rt
