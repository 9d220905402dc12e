// What the files of one picture format each share: limits, and the decoders that the ops of Decode.cpp choose from.
#ifndef LATHE_RUNTIME_KERNELS_IMAGE_IMAGE_H
#define LATHE_RUNTIME_KERNELS_IMAGE_IMAGE_H

#include "runtime/kernels/Common.h"

#include <array>

namespace lathe::rt::image {

/// No picture of honest origin is larger; all frames of an animation count together.
constexpr int64_t kMaxPixels = INT64_C(1) << 28;

inline absl::Status checkSize(int64_t width, int64_t height, int64_t frames = 1) {
  if (width < 1 || height < 1 || frames < 1 || width > kMaxPixels || height > kMaxPixels / width ||
      frames > kMaxPixels / (width * height))
    return invalid("an image of ", width, " x ", height, " pixels", frames > 1 ? absl::StrCat(" and ", frames, " frames") : "",
                   " is not decoded");
  return absl::OkStatus();
}

struct JpegOptions {
  int64_t channels = 0; ///< 0 keeps the file's own; CMYK becomes RGB
  int64_t ratio = 1;    ///< 1, 2, 4 or 8
  bool fancyUpscaling = true, recoverTruncated = false, accurate = false;
  float acceptableFraction = 1;        ///< of the rows, where data ends early
  bool crops = false;
  std::array<int64_t, 4> crop = {};    ///< y, x, height, width
};

/// [height, width, channels] in uint8, or of PNG in uint16 where `bits` is 16. `channels` 0 keeps the file's own.
absl::StatusOr<Tensor> decodeJpeg(const KernelContext &context, const std::string &bytes, const JpegOptions &options);
absl::StatusOr<Tensor> decodePng(const KernelContext &context, const std::string &bytes, int64_t channels, int bits);
absl::StatusOr<Tensor> decodeBmp(const KernelContext &context, const std::string &bytes, int64_t channels);
/// [frames, height, width, 3]: each frame drawn over those before it. With `firstOnly` just the first frame, on a canvas that
/// would hold all.
absl::StatusOr<Tensor> decodeGif(const KernelContext &context, const std::string &bytes, bool firstOnly);

/// PNG of rows of `channels` (1 to 4) interleaved samples of `bits` (8 or 16); compression -1 is zlib's default.
absl::Status encodePng(const void *pixels, int64_t height, int64_t width, int64_t channels, int bits, int compression, std::string &out);

} // namespace lathe::rt::image

#endif
