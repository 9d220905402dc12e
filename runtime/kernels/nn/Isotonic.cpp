// IsotonicRegression: the values nearest to those of a row, by squares, of which none is larger than the one before.
#include "runtime/kernels/Common.h"

namespace lathe::rt {
namespace {

/// Neighbours that have one value: the mean of theirs.
struct Block {
  double sum;
  int64_t count;
  double mean() const { return sum / static_cast<double>(count); }
};

absl::Status isotonicRegression(KernelContext &context) {
  Tensor input = context.input(0);
  LATHE_TRY_VALUE(output, context.allocateOutput(0, input.dims()));
  LATHE_TRY_VALUE(segments, context.allocateOutput(1, input.dims()));
  const int64_t width = input.rank() ? input.dim(input.rank() - 1) : 1, rows = width ? input.numElements() / width : 0;
  return withType(output.dtype(), [&](auto type) -> absl::Status {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T>) {
      return invalid("no regression to type ", dtypeName(output.dtype()));
    } else {
      std::vector<Block> blocks;
      for (int64_t row = 0; row < rows; ++row) {
        blocks.clear();
        for (int64_t i = 0; i < width; ++i) {
          blocks.push_back({realAt(input, row * width + i), 1});
          // what is no number stays by itself
          while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() < blocks.back().mean()) {
            Block last = blocks.back();
            blocks.pop_back();
            blocks.back().sum += last.sum;
            blocks.back().count += last.count;
          }
        }
        int64_t at = row * width;
        for (size_t b = 0; b < blocks.size(); ++b)
          for (int64_t i = 0; i < blocks[b].count; ++i, ++at) {
            output.template data<T>()[at] = static_cast<T>(blocks[b].mean());
            segments.template data<int32_t>()[at] = static_cast<int32_t>(b);
          }
      }
      return absl::OkStatus();
    }
  });
}
LATHE_HOST_FUNCTION(IsotonicRegression, isotonicRegression);

} // namespace
} // namespace lathe::rt
