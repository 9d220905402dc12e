// ImageProjectiveTransformV2 and V3: each pixel of the output looks up where a projective map takes it in the image.
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <cmath>

namespace lathe::rt {
namespace {

enum class Fill { Constant, Nearest, Reflect, Wrap };

/// A place outside of [0, length - 1] brought inside as the mode says. TensorFlow's formulas, which are SciPy's, in float.
float inside(float at, int64_t length, Fill fill) {
  if (fill == Fill::Constant)
    return at;
  float last = static_cast<float>(length - 1);
  // beyond this a float no longer tells pixels apart, and whole numbers of lengths no longer fit
  bool countable = std::abs(at) < 1e12f;
  if (fill != Fill::Nearest && countable && (at < 0 || at > last)) {
    int64_t period = fill == Fill::Reflect ? 2 * length : length;
    if (length <= 1) {
      at = 0;
    } else if (fill == Fill::Reflect) {
      float whole = static_cast<float>(period * static_cast<int64_t>(std::abs(at) / static_cast<float>(period)));
      if (at < 0) {
        at += whole;
        at = at < static_cast<float>(-length) ? at + static_cast<float>(period) : -at - 1;
      } else {
        at -= whole;
        at = at >= static_cast<float>(length) ? static_cast<float>(period) - at - 1 : at;
      }
    } else {
      int64_t times = static_cast<int64_t>(std::abs(at) / last);
      at = at < 0 ? at + static_cast<float>(period * (times + 1)) : at - static_cast<float>(period * times);
    }
  }
  return std::min(std::max(at, 0.0f), last);
}

template <typename T>
T fromFloat(float v) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(integerOf(v));
  else
    return T(v);
}

/// One image of height x width x channels.
template <typename T>
struct Image {
  const T *data;
  int64_t height, width, channels;
  T fill;

  T at(int64_t y, int64_t x, int64_t c) const {
    return y >= 0 && y < height && x >= 0 && x < width ? data[(y * width + x) * channels + c] : fill;
  }
  T between(float y, float x, int64_t c) const {
    float top = std::floor(y), left = std::floor(x), down = y - top, right = x - left;
    int64_t row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
    auto across = [&](int64_t r) {
      return (left + 1 - x) * static_cast<float>(at(r, column, c)) + right * static_cast<float>(at(r, column + 1, c));
    };
    return fromFloat<T>((top + 1 - y) * across(row) + down * across(row + 1));
  }
};

class Projective : public HostKernel {
public:
  explicit Projective(KernelInit &init) {
    std::string how = init.attr<std::string>("interpolation"), mode = init.attr<std::string>("fill_mode");
    bilinear = how == "BILINEAR";
    if (!bilinear && how != "NEAREST")
      init.fail(invalid("Invalid interpolation ", how, ". Supported types: NEAREST, BILINEAR"));
    static const std::pair<const char *, Fill> modes[] = {
        {"CONSTANT", Fill::Constant}, {"NEAREST", Fill::Nearest}, {"REFLECT", Fill::Reflect}, {"WRAP", Fill::Wrap}};
    auto known = std::find_if(std::begin(modes), std::end(modes), [&](const auto &m) { return mode == m.first; });
    if (known == std::end(modes))
      init.fail(invalid("Invalid mode ", mode, ". Supported types: REFLECT, WRAP, CONSTANT, NEAREST"));
    else
      fill = known->second;
  }

  absl::Status compute(KernelContext &context) override {
    Tensor images = context.input(0), maps = context.input(1), shape = context.input(2);
    if (images.rank() != 4)
      return invalid("Input images must have rank 4");
    if (maps.rank() != 2 || (maps.dim(0) != images.dim(0) && maps.dim(0) != 1) || maps.dim(1) != 8)
      return invalid("Input transform should be num_images x 8 or 1 x 8");
    if (shape.rank() != 1 || shape.numElements() != 2)
      return invalid("output shape must be 1-dimensional with two elements, got shape ", dimsToString(shape.dims()));
    int64_t height = intAt(shape, 0), width = intAt(shape, 1);
    if (height <= 0 || width <= 0)
      return invalid("output dimensions must be positive");
    float value = 0;
    if (context.numInputs() > 3) {
      if (context.input(3).rank() != 0)
        return invalid("fill_value must be a scalar, got shape ", dimsToString(context.input(3).dims()));
      value = *context.input(3).data<float>();
    }
    LATHE_TRY_VALUE(out, context.allocateOutput(0, {images.dim(0), height, width, images.dim(3)}));
    return withType(images.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      if constexpr (isComplexType<T>) {
        return absl::UnimplementedError("images are not complex");
      } else {
        Image<T> image{nullptr, images.dim(1), images.dim(2), images.dim(3), fromFloat<T>(value)};
        for (int64_t i = 0; i < images.dim(0); ++i) {
          image.data = images.data<T>() + i * image.height * image.width * image.channels;
          draw(image, maps.data<float>() + (maps.dim(0) == 1 ? 0 : i * 8), height, width,
               out.template data<T>() + i * height * width * image.channels);
        }
        return absl::OkStatus();
      }
    });
  }

private:
  template <typename T>
  static constexpr bool isComplexType = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

  template <typename T>
  void draw(const Image<T> &image, const float *map, int64_t height, int64_t width, T *to) const {
    for (int64_t row = 0; row < height; ++row)
      for (int64_t column = 0; column < width; ++column, to += image.channels) {
        float ox = static_cast<float>(column), oy = static_cast<float>(row), scale = map[6] * ox + map[7] * oy + 1.0f;
        float x = inside((map[0] * ox + map[1] * oy + map[2]) / scale, image.width, fill);
        float y = inside((map[3] * ox + map[4] * oy + map[5]) / scale, image.height, fill);
        // neither infinitely far nor further than any image reaches
        bool found = scale != 0 && std::abs(x) < 1e12f && std::abs(y) < 1e12f;
        for (int64_t c = 0; c < image.channels; ++c)
          to[c] = !found ? image.fill
                  : bilinear ? image.between(y, x, c)
                             : image.at(static_cast<int64_t>(std::round(y)), static_cast<int64_t>(std::round(x)), c);
      }
  }

  bool bilinear = false;
  Fill fill = Fill::Constant;
};
LATHE_HOST_KERNEL(ImageProjectiveTransformV2, Projective);
LATHE_HOST_KERNEL(ImageProjectiveTransformV3, Projective);

} // namespace
} // namespace lathe::rt
