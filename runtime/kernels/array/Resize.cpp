// ResizeNearestNeighbor and ResizeBilinear, whose sizes may be known only when they run (in files of TensorFlow Lite:
// graph/tflite/NodeMaker.cpp).
#include "runtime/kernels/array/MoveBy.h"

#include <algorithm>
#include <cmath>

namespace lathe::rt {
namespace {

/// Along one dimension: where each pixel of the result lies between those of the image. In float, as the compiled forms have it.
struct Line {
  std::vector<int64_t> lower, upper, nearest;
  std::vector<float> share; ///< of the upper one
};

absl::StatusOr<Line> lineOf(int64_t from, int64_t to, bool alignCorners, bool halfPixel) {
  constexpr int64_t largest = int64_t(1) << 22; // as compiled forms have it
  if (from <= 0 || to <= 0 || to > largest)
    return invalid("sizes of images must be positive, and of results at most ", largest, ": ", from, " ", to);
  const float scale = alignCorners && from > 1 && to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                                                         : static_cast<float>(from) / static_cast<float>(to);
  auto inside = [&](float at) { return std::clamp<int64_t>(static_cast<int64_t>(at), 0, from - 1); };
  Line line;
  for (int64_t x = 0; x < to; ++x) {
    const float plain = (halfPixel ? static_cast<float>(x) + 0.5f : static_cast<float>(x)) * scale, at = halfPixel ? plain - 0.5f : plain;
    line.nearest.push_back(inside(alignCorners ? std::round(plain) : std::floor(plain)));
    line.lower.push_back(inside(std::floor(at)));
    line.upper.push_back(inside(std::ceil(at)));
    line.share.push_back(at - std::floor(at));
  }
  return line;
}

absl::StatusOr<std::pair<Line, Line>> linesOf(const KernelContext &context) {
  Tensor in = context.input(0), size = context.input(1);
  if (in.rank() != 4)
    return invalid("input must be 4-dimensional: ", dimsToString(in.dims()));
  if (size.rank() != 1 || size.dim(0) != 2)
    return invalid("shape_t must be two numbers: ", dimsToString(size.dims()));
  const bool align = *attrOf<bool>(*context.node, "align_corners"), half = *attrOf<bool>(*context.node, "half_pixel_centers");
  if (align && half)
    return invalid("If half_pixel_centers is True, align_corners must be False.");
  LATHE_TRY_VALUE(rows, lineOf(in.dim(1), intAt(size, 0), align, half));
  LATHE_TRY_VALUE(columns, lineOf(in.dim(2), intAt(size, 1), align, half));
  return std::make_pair(std::move(rows), std::move(columns));
}

std::vector<int64_t> dimsOf(const Tensor &in, const std::pair<Line, Line> &lines) {
  return {in.dim(0), static_cast<int64_t>(lines.first.lower.size()), static_cast<int64_t>(lines.second.lower.size()), in.dim(3)};
}

absl::Status resizeNearest(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(lines, linesOf(context));
  return moveBy(context, 0, in, dimsOf(in, lines), [&](const std::vector<int64_t> &at) {
    return ((at[0] * in.dim(1) + lines.first.nearest[at[1]]) * in.dim(2) + lines.second.nearest[at[2]]) * in.dim(3) + at[3];
  });
}
LATHE_HOST_FUNCTION(ResizeNearestNeighbor, resizeNearest);

absl::Status resizeBilinear(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(lines, linesOf(context));
  const auto &[rows, columns] = lines;
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dimsOf(in, lines)));
  float *to = out.data<float>();
  const int64_t depth = in.dim(3);
  return withType(in.dtype(), [&, &rows = rows, &columns = columns](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (std::is_convertible_v<T, float> && !std::is_same_v<T, bool>) {
      const T *x = in.data<T>();
      auto pixel = [&](int64_t image, int64_t row, int64_t column) { return x + ((image * in.dim(1) + row) * in.dim(2) + column) * depth; };
      for (int64_t n = 0; n < in.dim(0); ++n)
        for (size_t r = 0; r < rows.lower.size(); ++r)
          for (size_t c = 0; c < columns.lower.size(); ++c) {
            const T *a = pixel(n, rows.lower[r], columns.lower[c]), *b = pixel(n, rows.lower[r], columns.upper[c]);
            const T *d = pixel(n, rows.upper[r], columns.lower[c]), *e = pixel(n, rows.upper[r], columns.upper[c]);
            const float right = columns.share[c], below = rows.share[r];
            for (int64_t k = 0; k < depth; ++k) {
              const float top = static_cast<float>(a[k]) * (1 - right) + static_cast<float>(b[k]) * right;
              const float bottom = static_cast<float>(d[k]) * (1 - right) + static_cast<float>(e[k]) * right;
              *to++ = top * (1 - below) + bottom * below;
            }
          }
      return absl::OkStatus();
    } else {
      return absl::UnimplementedError(absl::StrCat("no images of type ", dtypeName(in.dtype())));
    }
  });
}
LATHE_HOST_FUNCTION(ResizeBilinear, resizeBilinear);

} // namespace
} // namespace lathe::rt
