// DecodeWav, EncodeWav: sounds of 16 bits a sample, as numbers from -1 to below 1.
#include "base/Bytes.h"
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe::rt {
namespace {

struct Sound {
  uint64_t channels = 0, rate = 0;
  std::string_view samples; ///< 16 bits each, the channels of a moment together
  int64_t moments() const { return static_cast<int64_t>(samples.size() / (2 * channels)); }
  float at(int64_t moment, int64_t channel) const {
    size_t i = 2 * static_cast<size_t>(moment * static_cast<int64_t>(channels) + channel);
    uint32_t bits = static_cast<uint8_t>(samples[i]) | static_cast<uint32_t>(static_cast<uint8_t>(samples[i + 1])) << 8;
    return static_cast<float>(static_cast<int16_t>(bits)) / 32768;
  }
};

absl::Status expectText(ByteReader &reader, std::string_view text) {
  std::string_view found;
  if (!reader.readBytes(text.size(), found))
    return invalid("Data too short when trying to read string");
  if (found != text)
    return invalid("Header mismatch: Expected ", av(text), " but found ", av(found));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> number(ByteReader &reader, int bytes) {
  uint64_t value = 0;
  if (!reader.readLittle(bytes, value))
    return invalid("Data too short when trying to read value");
  return value;
}

absl::StatusOr<Sound> readWav(std::string_view contents) {
  ByteReader reader(contents);
  LATHE_TRY(expectText(reader, "RIFF"));
  LATHE_TRY(number(reader, 4).status()); // the file's size, which nobody keeps to
  LATHE_TRY(expectText(reader, "WAVE"));
  LATHE_TRY(expectText(reader, "fmt "));
  LATHE_TRY_VALUE(header, number(reader, 4));
  if (header != 16 && header != 18)
    return invalid("Bad format chunk size for WAV: Expected 16 or 18, but got ", header);
  Sound sound;
  LATHE_TRY_VALUE(format, number(reader, 2));
  if (format != 1)
    return invalid("Bad audio format for WAV: Expected 1 (PCM), but got", format);
  LATHE_TRY_VALUE(channels, number(reader, 2));
  if (channels < 1)
    return invalid("Bad number of channels for WAV: Expected at least 1, but got ", channels);
  LATHE_TRY_VALUE(rate, number(reader, 4));
  LATHE_TRY_VALUE(bytesASecond, number(reader, 4));
  LATHE_TRY_VALUE(bytesAMoment, number(reader, 2));
  LATHE_TRY_VALUE(bits, number(reader, 2));
  if (bits != 16)
    return invalid("Can only read 16-bit WAV files, but received ", bits);
  if (bytesAMoment != 2 * channels)
    return invalid("Bad bytes per sample in WAV header: Expected ", 2 * channels, " but got ", bytesAMoment);
  if (bytesASecond != bytesAMoment * rate)
    return invalid("Bad bytes per second in WAV header: Expected ", bytesAMoment * rate, " but got ", bytesASecond, " (sample_rate=", rate,
                   ", bytes_per_sample=", bytesAMoment, ")");
  sound.channels = channels;
  sound.rate = rate;
  if (header == 18)
    LATHE_TRY(number(reader, 2).status());
  bool found = false;
  while (reader.remaining()) {
    std::string_view name, content;
    if (!reader.readBytes(4, name))
      return invalid("Data too short when trying to read string");
    LATHE_TRY_VALUE(size, number(reader, 4));
    if (size > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
      return invalid("WAV data chunk '", av(name), "' is too large: ", size, " bytes, but the limit is ",
                     std::numeric_limits<int32_t>::max());
    if (name == "data") {
      if (found)
        return invalid("More than one data chunk found in WAV");
      found = true;
      size -= size % bytesAMoment;
    } else {
      size = std::min<uint64_t>(size, reader.remaining()); // what nobody reads may be cut off
    }
    if (!reader.readBytes(size, content))
      return invalid("Data too short when trying to read ", size, " bytes of a chunk");
    if (name == "data")
      sound.samples = content;
  }
  if (!found)
    return invalid("No data chunk found in WAV");
  return sound;
}

/// In as many samples and channels as asked for: silence at the end, the last channel again.
class DecodeWav : public HostKernel {
public:
  explicit DecodeWav(KernelInit &init)
      : wantedChannels(init.attr<int64_t>("desired_channels")), wantedSamples(init.attr<int64_t>("desired_samples")) {
    if (wantedChannels < -1 || wantedSamples < -1)
      init.fail(invalid("desired_channels and desired_samples must be -1 or more: ", wantedChannels, " and ", wantedSamples));
  }
  absl::Status compute(KernelContext &context) override {
    LATHE_TRY_VALUE(contents, oneString(context.input(0), "contents"));
    if (contents.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      return invalid("WAV contents are too large for int: ", contents.size());
    LATHE_TRY_VALUE(sound, readWav(contents));
    int64_t samples = wantedSamples < 0 ? sound.moments() : wantedSamples;
    int64_t channels = wantedChannels < 0 ? static_cast<int64_t>(sound.channels) : wantedChannels;
    LATHE_TRY_VALUE(audio, context.allocateOutput(0, {samples, channels}));
    for (int64_t i = 0; i < std::min(samples, sound.moments()); ++i)
      for (int64_t c = 0; c < channels; ++c)
        audio.data<float>()[i * channels + c] = sound.at(i, std::min<int64_t>(c, static_cast<int64_t>(sound.channels) - 1));
    context.setOutput(1, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(sound.rate)));
    return absl::OkStatus();
  }

private:
  int64_t wantedChannels, wantedSamples;
};
LATHE_HOST_KERNEL(DecodeWav, DecodeWav);

absl::Status encode(KernelContext &context) {
  Tensor audio = context.input(0);
  if (audio.rank() != 2)
    return invalid("audio must be 2-dimensional", dimsToString(audio.dims()));
  LATHE_TRY_VALUE(rate, oneInt(context.input(1), "sample_rate"));
  int64_t channels = audio.dim(1);
  if (rate <= 0)
    return invalid("sample_rate must be in (0, 2^32), got: ", rate);
  if (channels == 0 || channels > std::numeric_limits<uint16_t>::max())
    return invalid("num_channels must be in (0, 2^16), got: ", channels);
  constexpr int64_t kHeader = 44;
  if (audio.numElements() > (std::numeric_limits<int32_t>::max() - kHeader) / 2)
    return invalid("Provided channels and frames cannot be encoded as a WAV.");
  std::string out;
  auto put = [&](int64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out += static_cast<char>(value >> (8 * i));
  };
  int64_t bytes = 2 * audio.numElements();
  out.reserve(static_cast<size_t>(kHeader + bytes));
  out += "RIFF";
  put(kHeader - 8 + bytes, 4);
  out += "WAVEfmt ";
  put(16, 4);
  put(1, 2);
  put(channels, 2);
  put(rate, 4);
  put(rate * 2 * channels, 4);
  put(2 * channels, 2);
  put(16, 2);
  out += "data";
  put(bytes, 4);
  for (int64_t i = 0; i < audio.numElements(); ++i) {
    float scaled = std::round(audio.data<float>()[i] * 32768.0f);
    put(static_cast<int16_t>(scaled > -32768.0f ? std::min(scaled, 32767.0f) : -32768.0f), 2);
  }
  context.setOutput(0, Tensor::fromStrings({}, {std::move(out)}));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(EncodeWav, encode);

} // namespace
} // namespace lathe::rt
