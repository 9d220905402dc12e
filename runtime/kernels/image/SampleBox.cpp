// SampleDistortedBoundingBox in all forms: a window of an image at random, of a wanted area and ratio, that covers enough of one of
// the given boxes; the whole image where none is found.
#include "runtime/kernels/random/Generator.h"

#include <optional>

namespace lathe::rt {
namespace {

/// What a processor makes of a float that is too large for the integer, so that odd ratios give what TensorFlow gives.
int32_t nearest(float v) { return std::abs(v) < 9e18f ? static_cast<int32_t>(std::lrint(v)) : 0; }

int32_t wrapped(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); }

/// In pixels; the second corner is outside.
struct Window {
  int32_t x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  float area() const { return static_cast<float>(wrapped(int64_t(wrapped(int64_t(x2) - x1)) * wrapped(int64_t(y2) - y1))); }
  Window both(const Window &o) const {
    Window w{std::max(x1, o.x1), std::max(y1, o.y1), std::min(x2, o.x2), std::min(y2, o.y2)};
    return w.x1 > w.x2 || w.y1 > w.y2 ? Window() : w;
  }
};

/// Numbers as TensorFlow's plain generator gives them.
class Draws {
public:
  explicit Draws(const Philox &generator) : numbers(generator) {}
  float unit() { return detail::bitCast<float>((numbers.next() & 0x7fffffu) | 0x3f800000u) - 1.0f; }
  /// Below n without bias; any number for 0.
  uint32_t below(uint32_t n) {
    if ((n & (n - 1)) == 0)
      return numbers.next() & (n - 1);
    uint32_t rejected = ~uint32_t(0) % n + 1, v;
    do
      v = numbers.next();
    while (v < rejected);
    return v % n;
  }

private:
  Numbers numbers;
};

/// A window of the given ratio of width to height.
std::optional<Window> draw(int32_t width, int32_t height, float leastArea, float mostArea, float ratio, Draws &draws) {
  if (width <= 0 || height <= 0 || mostArea <= 0 || !(ratio > 0) || leastArea > mostArea)
    return std::nullopt;
  const float least = leastArea * width * height, most = mostArea * width * height;
  auto widthAt = [&](int32_t h) { return std::lrint(std::min(h * ratio, 9e18f)); };
  int32_t h = nearest(std::sqrt(least / ratio)), highest = nearest(std::sqrt(most / ratio));
  if (widthAt(highest) > width) {
    const double fits = (width + 0.5 - 0.0000001f) / ratio;
    highest = fits < 2147483648.0 ? static_cast<int32_t>(fits) : std::numeric_limits<int32_t>::min();
    if (widthAt(highest) > width)
      highest = wrapped(int64_t(highest) - 1);
  }
  highest = std::min(highest, height);
  h = std::min(h, highest);
  if (h < highest)
    h = wrapped(h + int64_t(draws.below(static_cast<uint32_t>(int64_t(highest) - h + 1))));
  int32_t w = nearest(h * ratio);
  // by one row more or less where rounding led out of the limits
  auto area = [&] { return static_cast<float>(wrapped(int64_t(w) * h)); };
  if (area() < least) {
    h = wrapped(int64_t(h) + 1);
    w = nearest(h * ratio);
  }
  if (area() > most) {
    h = wrapped(int64_t(h) - 1);
    w = nearest(h * ratio);
  }
  if (area() < least || area() > most || w > width || h > height || w <= 0 || h <= 0)
    return std::nullopt;
  Window window;
  window.y1 = h < height ? static_cast<int32_t>(draws.below(static_cast<uint32_t>(height - h))) : 0;
  window.x1 = w < width ? static_cast<int32_t>(draws.below(static_cast<uint32_t>(width - w))) : 0;
  window.x2 = window.x1 + w;
  window.y2 = window.y1 + h;
  return window;
}

/// What the attributes ask for.
struct Wish {
  float leastRatio, mostRatio, leastArea, mostArea;
  int64_t attempts;
  bool wholeImage;

  static absl::StatusOr<Wish> of(const NodeInfo &node) {
    const auto *ratios = attrOf<std::vector<float>>(node, "aspect_ratio_range");
    const auto *areas = attrOf<std::vector<float>>(node, "area_range");
    const auto *attempts = attrOf<int64_t>(node, "max_attempts");
    const auto *whole = attrOf<bool>(node, "use_image_if_no_bounding_boxes");
    Wish wish{0.75f, 1.33f, 0.05f, 1, attempts ? *attempts : 100, whole && *whole};
    if (ratios) {
      if (ratios->size() != 2 || !((*ratios)[0] > 0 && (*ratios)[1] > 0))
        return invalid("aspect_ratio_range must be two positive numbers");
      wish.leastRatio = (*ratios)[0], wish.mostRatio = (*ratios)[1];
    }
    if (areas) {
      if (areas->size() != 2 || !((*areas)[0] > 0 && (*areas)[1] > 0 && (*areas)[0] <= 1 && (*areas)[1] <= 1))
        return invalid("area_range must be two positive numbers up to 1");
      wish.leastArea = (*areas)[0], wish.mostArea = (*areas)[1];
    }
    if (wish.attempts <= 0 || wish.attempts > std::numeric_limits<int32_t>::max())
      return invalid("max_attempts must be positive, got ", wish.attempts);
    return wish;
  }
};

absl::StatusOr<int32_t> sideOf(const Tensor &size, int64_t i) {
  int64_t v = intAt(size, i);
  if (v < 0 || v >= std::numeric_limits<int32_t>::max())
    return invalid("an image's side must be an int32, got ", v);
  return static_cast<int32_t>(v);
}

/// `start` gives the generator once all inputs are found right.
template <typename Start>
absl::Status sample(KernelContext &context, const Wish &wish, float covered, Start start) {
  Tensor size = context.input(0), boxes = context.input(1);
  if (size.rank() != 1 || size.dim(0) != 3)
    return invalid("image_size must be a vector of 3 elements, found shape ", dimsToString(size.dims()));
  LATHE_TRY_VALUE(height, sideOf(size, 0));
  LATHE_TRY_VALUE(width, sideOf(size, 1));
  if (boxes.rank() != 3 || boxes.dim(2) != 4)
    return invalid("bounding boxes must be 3-D with 4 columns, found shape ", dimsToString(boxes.dims()));
  if (!(covered >= 0))
    return invalid("min_object_covered must be non-negative: ", covered);
  const Window image{0, 0, width, height};
  std::vector<Window> objects;
  for (int64_t b = 0; b < boxes.numElements(); b += 4) {
    const float *c = boxes.data<float>() + b;
    for (int i = 0; i < 4; ++i)
      if (!(c[i] >= 0 && c[i] <= 1))
        return invalid("all coordinates of bounding boxes must be in [0, 1]: ", c[i]);
    auto at = [](float v, int32_t side) {
      float p = v * static_cast<float>(side);
      return p < 2147483648.0f ? static_cast<int32_t>(p) : std::numeric_limits<int32_t>::min();
    };
    objects.push_back({at(c[1], width), at(c[0], height), at(c[3], width), at(c[2], height)});
  }
  if (objects.empty()) {
    if (!wish.wholeImage)
      return invalid("no bounding boxes, and use_image_if_no_bounding_boxes is not set");
    objects.push_back(image);
  }
  LATHE_TRY_VALUE(generator, start());
  Draws draws(generator);
  auto coversOne = [&](const Window &window) {
    return window.area() >= 1 && std::any_of(objects.begin(), objects.end(), [&](const Window &object) {
             return object.area() >= 1 && window.both(object).area() / object.area() >= covered;
           });
  };
  // what no window can meet is not tried for, however many attempts are asked for
  const bool hopeless = width == 0 || height == 0 || wish.leastArea > wish.mostArea || covered > 1 ||
                        std::none_of(objects.begin(), objects.end(), [](const Window &object) { return object.area() >= 1; });
  Window found = image;
  for (int64_t i = 0; i < wish.attempts && !hopeless; ++i) {
    if (i % 4096 == 4095 && context.cancellation && context.cancellation->isCancelled())
      return absl::CancelledError("the search for a box was cancelled");
    const float ratio = draws.unit() * (wish.mostRatio - wish.leastRatio) + wish.leastRatio;
    auto window = draw(width, height, wish.leastArea, wish.mostArea, ratio, draws);
    if (window && coversOne(*window)) {
      found = *window;
      break;
    }
  }
  LATHE_TRY_VALUE(begin, context.allocateOutput(0, {3}));
  LATHE_TRY_VALUE(extent, context.allocateOutput(1, {3}));
  LATHE_TRY_VALUE(box, context.allocateOutput(2, {1, 1, 4}));
  const float h = static_cast<float>(height), w = static_cast<float>(width);
  const float corners[4] = {found.y1 / h, found.x1 / w, found.y2 / h, found.x2 / w};
  std::copy(corners, corners + 4, box.template data<float>());
  return withType(begin.dtype(), [&, &begin = begin, &extent = extent](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const int32_t first[3] = {found.y1, found.x1, 0}, sizes[3] = {found.y2 - found.y1, found.x2 - found.x1, -1};
      for (int i = 0; i < 3; ++i) {
        begin.template data<T>()[i] = static_cast<T>(first[i]);
        extent.template data<T>()[i] = static_cast<T>(sizes[i]);
      }
      return absl::OkStatus();
    } else {
      return absl::UnimplementedError(absl::StrCat("no window of type ", dtypeName(begin.dtype())));
    }
  });
}

absl::StatusOr<float> coveredOf(const Tensor &t) {
  if (t.rank() != 0 || t.dtype() != DType::Float32)
    return invalid("min_object_covered must be 0-D, got shape ", dimsToString(t.dims()));
  return t.data<float>()[0];
}

class SampleBox : public HostKernel {
public:
  explicit SampleBox(KernelInit &init) : generator(init), wish(Wish::of(init.node())), second(init.node().op.back() == '2') {
    if (!second)
      covered = init.attr<float>("min_object_covered");
  }
  absl::Status compute(KernelContext &context) override {
    if (!wish.ok())
      return wish.status();
    float least = covered;
    if (second) {
      LATHE_TRY_VALUE(given, coveredOf(context.input(2)));
      least = given;
    }
    // as many blocks as attempts are set aside, however many numbers an attempt takes
    return sample(context, *wish, least,
                  [&]() -> absl::StatusOr<Philox> { return generator.reserve(static_cast<uint64_t>(wish->attempts)); });
  }

private:
  StatefulGenerator generator;
  const absl::StatusOr<Wish> wish;
  const bool second;
  float covered = 0;
};
LATHE_HOST_KERNEL(SampleDistortedBoundingBox, SampleBox);
LATHE_HOST_KERNEL(SampleDistortedBoundingBoxV2, SampleBox);

absl::Status statelessSampleBox(KernelContext &context) {
  LATHE_TRY_VALUE(wish, Wish::of(*context.node));
  LATHE_TRY_VALUE(covered, coveredOf(context.input(2)));
  Tensor seed = context.input(3);
  if (seed.rank() != 1 || seed.numElements() != 2)
    return invalid("seed must have shape [2], not ", dimsToString(seed.dims()));
  return sample(context, wish, covered, [&]() -> absl::StatusOr<Philox> {
    return Philox::fromStatelessSeed(static_cast<uint64_t>(intAt(seed, 0)), static_cast<uint64_t>(intAt(seed, 1)));
  });
}
LATHE_HOST_FUNCTION(StatelessSampleDistortedBoundingBox, statelessSampleBox);

} // namespace
} // namespace lathe::rt
