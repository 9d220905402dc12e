// ImageSummary and AudioSummary: pictures as PNG and sounds as WAV within Summary messages.
#include "runtime/kernels/image/Image.h"
#include "runtime/kernels/summary/Summary.h"

#include "base/ProtoWire.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe::rt {
namespace summary {
namespace {

/// "tag/image/0", or "tag/image" where there is at most one.
std::string partTag(std::string_view tag, const char *kind, int64_t i, int64_t most) {
  std::string name = absl::StrCat(av(tag), "/", kind);
  return most > 1 ? absl::StrCat(name, "/", i) : name;
}

/// One image of floats as bytes: values from 0 are spread over 0 to 255; where there are values below 0, 0 becomes 128.
template <typename T>
void toBytes(const T *pixels, int64_t count, int64_t depth, const uint8_t *bad, uint8_t *out) {
  auto finite = [&](int64_t p) {
    return std::all_of(pixels + p * depth, pixels + (p + 1) * depth, [](T v) { return std::isfinite(static_cast<double>(v)); });
  };
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (int64_t p = 0; p < count; ++p)
    if (finite(p))
      for (int64_t c = 0; c < depth; ++c) {
        double v = static_cast<double>(pixels[p * depth + c]);
        low = std::min(low, v);
        high = std::max(high, v);
      }
  constexpr double kNothing = 1e-6; // what is as flat as this is shown as zero
  double reach = low < 0 ? std::max(std::fabs(low), std::fabs(high)) : high;
  T scale(static_cast<float>(reach < kNothing ? 0 : (low < 0 ? 127 : 255) / reach));
  T offset(low < 0 ? 128.0f : 0.0f);
  if constexpr (std::is_same_v<T, double>)
    scale = reach < kNothing ? 0 : (low < 0 ? 127 : 255) / static_cast<double>(static_cast<float>(reach));
  for (int64_t p = 0; p < count; ++p) {
    bool shown = finite(p);
    for (int64_t c = 0; c < depth; ++c) {
      int64_t at = p * depth + c;
      // what lies at the ends may round to just outside of a byte
      out[at] = !shown ? bad[c] : static_cast<uint8_t>(std::clamp(static_cast<float>(T(T(pixels[at] * scale) + offset)), 0.0f, 255.0f));
    }
  }
}

} // namespace

absl::StatusOr<std::string> images(std::string_view tag, const Tensor &value, const Tensor &badColor, int64_t most) {
  if (value.rank() != 4 || (value.dim(3) != 1 && value.dim(3) != 3 && value.dim(3) != 4))
    return invalid("Tensor must be 4-D with last dim 1, 3, or 4, not ", dimsToString(value.dims()));
  int64_t height = value.dim(1), width = value.dim(2), depth = value.dim(3);
  if (badColor.dtype() != DType::UInt8 || badColor.rank() != 1 || badColor.dim(0) < depth)
    return invalid("expected the bad color to be a vector of at least ", depth, " uint8, found ", dtypeName(badColor.dtype()),
                   dimsToString(badColor.dims()));
  if (height < 1 || width < 1 || height >= INT32_MAX || width >= INT32_MAX / 2 / depth)
    return invalid("an image of ", width, " x ", height, " pixels cannot be encoded");
  int64_t count = height * width;
  std::vector<uint8_t> bytes(value.dtype() == DType::UInt8 ? 0 : static_cast<size_t>(count * depth));
  std::string out;
  for (int64_t i = 0; i < std::min(value.dim(0), most); ++i) {
    const uint8_t *pixels = bytes.data();
    int64_t at = i * count * depth;
    if (value.dtype() == DType::UInt8)
      pixels = value.data<uint8_t>() + at;
    else if (value.dtype() == DType::Float32)
      toBytes(value.data<float>() + at, count, depth, badColor.data<uint8_t>(), bytes.data());
    else if (value.dtype() == DType::Float64)
      toBytes(value.data<double>() + at, count, depth, badColor.data<uint8_t>(), bytes.data());
    else if (value.dtype() == DType::Float16)
      toBytes(value.data<Half>() + at, count, depth, badColor.data<uint8_t>(), bytes.data());
    else
      return invalid("no images of type ", dtypeName(value.dtype()));
    std::string png, image, part;
    LATHE_TRY(image::encodePng(pixels, height, width, depth, 8, -1, png));
    writeVarintField(image, 1, static_cast<uint64_t>(height));
    writeVarintField(image, 2, static_cast<uint64_t>(width));
    writeVarintField(image, 3, static_cast<uint64_t>(depth));
    writeBytesField(image, 4, png);
    writeBytesField(part, kTag, partTag(tag, "image", i, most));
    writeBytesField(part, kImage, image);
    out += ofValue(part);
  }
  return out;
}

absl::StatusOr<std::string> sounds(std::string_view tag, const Tensor &value, float rate, int64_t most) {
  if (value.rank() != 2 && value.rank() != 3)
    return invalid("Tensor must be 3-D or 2-D, got: ", dimsToString(value.dims()));
  int64_t frames = value.dim(1), channels = value.rank() == 3 ? value.dim(2) : 1, samples = frames * channels;
  if (!(rate > 0) || rate >= 4294967296.0f)
    return invalid("sample_rate must be in (0, 2^32), got: ", rate);
  if (channels < 1 || channels > 65535 || samples > (INT64_C(1) << 30))
    return invalid("a sound of ", frames, " frames and ", channels, " channels cannot be encoded");
  std::string out;
  for (int64_t i = 0; i < std::min(value.dim(0), most); ++i) {
    std::string wav, audio, part;
    uint64_t bytes = static_cast<uint64_t>(samples) * 2, perSecond = static_cast<uint32_t>(rate);
    wav += "RIFF";
    appendLittle(wav, bytes + 36, 4);
    wav += "WAVEfmt ";
    appendLittle(wav, 16, 4);
    appendLittle(wav, 1, 2); // plain integers
    appendLittle(wav, static_cast<uint64_t>(channels), 2);
    appendLittle(wav, perSecond, 4);
    appendLittle(wav, perSecond * static_cast<uint64_t>(channels) * 2, 4);
    appendLittle(wav, static_cast<uint64_t>(channels) * 2, 2);
    appendLittle(wav, 16, 2);
    wav += "data";
    appendLittle(wav, bytes, 4);
    for (int64_t s = 0; s < samples; ++s) {
      float v = std::round(value.data<float>()[i * samples + s] * 32768.0f);
      appendLittle(wav, static_cast<uint64_t>(static_cast<int64_t>(v == v ? std::clamp(v, -32768.0f, 32767.0f) : 0.0f)), 2);
    }
    writeFloat(audio, 1, rate);
    writeVarintField(audio, 2, static_cast<uint64_t>(channels));
    if (frames)
      writeVarintField(audio, 3, static_cast<uint64_t>(frames));
    writeBytesField(audio, 4, wav);
    writeBytesField(audio, 5, "audio/wav");
    writeBytesField(part, kTag, partTag(tag, "audio", i, most));
    writeBytesField(part, kAudio, audio);
    out += ofValue(part);
  }
  return out;
}

namespace {

class ImageSummary : public HostKernel {
public:
  explicit ImageSummary(KernelInit &init) : most(init.attr<int64_t>("max_images")), badColor(init.attr<Tensor>("bad_color")) {}
  absl::Status compute(KernelContext &context) override {
    LATHE_TRY_VALUE(tag, oneString(context.input(0), "Tags"));
    LATHE_TRY_VALUE(bytes, images(tag, context.input(1), badColor, most));
    context.setOutput(0, Tensor::fromStrings({}, {std::move(bytes)}));
    return absl::OkStatus();
  }

private:
  int64_t most;
  Tensor badColor;
};
LATHE_HOST_KERNEL(ImageSummary, ImageSummary);

absl::Status audio(KernelContext &context, float rate) {
  LATHE_TRY_VALUE(tag, oneString(context.input(0), "Tag"));
  LATHE_TRY_VALUE(bytes, sounds(tag, context.input(1), rate, *attrOf<int64_t>(*context.node, "max_outputs")));
  context.setOutput(0, Tensor::fromStrings({}, {std::move(bytes)}));
  return absl::OkStatus();
}

absl::Status audioSummary(KernelContext &context) { return audio(context, *attrOf<float>(*context.node, "sample_rate")); }
LATHE_HOST_FUNCTION(AudioSummary, audioSummary);

absl::Status audioSummaryV2(KernelContext &context) {
  Tensor rate = context.input(2);
  if (rate.numElements() != 1)
    return invalid("sample_rate must be a scalar");
  return audio(context, rate.data<float>()[0]);
}
LATHE_HOST_FUNCTION(AudioSummaryV2, audioSummaryV2);

} // namespace
} // namespace summary
} // namespace lathe::rt
