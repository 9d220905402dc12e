// DecodePng, DecodeBmp, DecodeImage of both formats.
#include "runtime/kernels/Common.h"

#include <png.h>

#include <algorithm>
#include <cstring>

namespace lathe::rt {
namespace {

/// Decoded pixels: 8 or 16 bits (in the machine's order) a channel.
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  int bits = 8;
  std::string pixels;
};

/// No picture of honest origin is larger.
constexpr int64_t kMaxPixels = INT64_C(1) << 28;

absl::Status checkSize(int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPixels || height > kMaxPixels / width)
    return invalid("an image of ", width, " x ", height, " pixels is not decoded");
  return absl::OkStatus();
}

struct PngSource {
  const std::string &bytes;
  size_t at = 0;
  bool failed = false;
};

void readPng(png_structp png, png_bytep out, png_size_t size) {
  auto *source = static_cast<PngSource *>(png_get_io_ptr(png));
  if (size > source->bytes.size() - source->at)
    png_error(png, "the data ends early");
  std::memcpy(out, source->bytes.data() + source->at, size);
  source->at += size;
}

[[noreturn]] void failPng(png_structp png, png_const_charp) { longjmp(png_jmpbuf(png), 1); }
void ignoreWarning(png_structp, png_const_charp) {}

/// `channels` 0 keeps the file's own. Nothing with a destructor lives in the frame that longjmp returns to.
bool decodePngInto(PngSource *source, int channels, int bits, Image *image, std::vector<png_bytep> *rows, absl::Status *why) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, failPng, ignoreWarning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (!info || setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  png_set_read_fn(png, source, readPng);
  png_read_info(png, info);
  *why = checkSize(png_get_image_width(png, info), png_get_image_height(png, info));
  if (!why->ok())
    png_error(png, "too large");
  bool hasAlpha = (png_get_color_type(png, info) & PNG_COLOR_MASK_ALPHA) || png_get_valid(png, info, PNG_INFO_tRNS);
  bool isGray = !(png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR);
  int want = channels ? channels : (isGray ? 1 : 3) + hasAlpha;
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(png);
  if (isGray && png_get_bit_depth(png, info) < 8)
    png_set_expand_gray_1_2_4_to_8(png);
  if (png_get_valid(png, info, PNG_INFO_tRNS))
    png_set_tRNS_to_alpha(png);
  if (bits == 8 && png_get_bit_depth(png, info) == 16)
    png_set_strip_16(png);
  if (bits == 16 && png_get_bit_depth(png, info) < 16)
    png_set_expand_16(png);
  if (bits == 16)
    png_set_swap(png);
  bool wantAlpha = want == 2 || want == 4, wantGray = want < 3;
  if (hasAlpha && !wantAlpha)
    png_set_strip_alpha(png);
  if (!hasAlpha && wantAlpha)
    png_set_add_alpha(png, bits == 16 ? 0xffff : 0xff, PNG_FILLER_AFTER);
  if (isGray && !wantGray)
    png_set_gray_to_rgb(png);
  if (!isGray && wantGray)
    png_set_rgb_to_gray(png, 1, 0.299, 0.587);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  image->width = png_get_image_width(png, info);
  image->height = png_get_image_height(png, info);
  image->channels = png_get_channels(png, info);
  image->bits = png_get_bit_depth(png, info);
  size_t stride = png_get_rowbytes(png, info);
  image->pixels.resize(stride * static_cast<size_t>(image->height));
  rows->resize(static_cast<size_t>(image->height));
  for (size_t r = 0; r < rows->size(); ++r)
    (*rows)[r] = reinterpret_cast<png_bytep>(image->pixels.data()) + r * stride;
  png_read_image(png, rows->data());
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

absl::StatusOr<Image> decodePng(const std::string &bytes, int64_t channels, int bits) {
  PngSource source{bytes};
  Image image;
  std::vector<png_bytep> rows;
  absl::Status why;
  if (!decodePngInto(&source, static_cast<int>(channels), bits, &image, &rows, &why))
    return why.ok() ? invalid("Invalid PNG data, size ", bytes.size()) : why;
  if (image.bits != bits || (channels && image.channels != channels))
    return invalid("Invalid PNG data: unexpected depth or channels");
  return image;
}

absl::StatusOr<Image> decodeBmp(const std::string &bytes, int64_t channels) {
  auto number = [&](size_t at, int size) {
    uint32_t v = 0;
    std::memcpy(&v, bytes.data() + at, size);
    return v;
  };
  if (bytes.size() < 54 || bytes.compare(0, 2, "BM") != 0)
    return invalid("Incomplete bmp content, requires at least 54 bytes to find the header");
  int64_t start = number(10, 4), width = static_cast<int32_t>(number(18, 4)), height = static_cast<int32_t>(number(22, 4));
  int64_t own = number(28, 2) / 8;
  bool topDown = height < 0;
  height = std::abs(height);
  LATHE_TRY(checkSize(width, height));
  if (number(28, 2) % 8 || (own != 1 && own != 3 && own != 4))
    return invalid("Number of channels inherent in the image must be 1, 3 or 4, was ", own);
  if (channels && channels != own)
    return invalid("channels attribute ", channels, " does not match bits per pixel from file ", own);
  int64_t stride = (own * width + 3) / 4 * 4;
  if (start < 0 || start + stride * height > static_cast<int64_t>(bytes.size()))
    return invalid("Incomplete bmp content, requires at least ", start + stride * height, " bytes, got ", bytes.size());
  Image image{height, width, own, 8, std::string(static_cast<size_t>(own * width * height), '\0')};
  for (int64_t y = 0; y < height; ++y) {
    const char *from = bytes.data() + start + (topDown ? y : height - 1 - y) * stride;
    char *to = image.pixels.data() + y * width * own;
    std::memcpy(to, from, static_cast<size_t>(own * width));
    for (int64_t x = 0; own >= 3 && x < width; ++x)
      std::swap(to[x * own], to[x * own + 2]); // blue comes first in the file
  }
  return image;
}

absl::Status output(KernelContext &context, const Image &image) {
  DType type = context.node->outputTypes[0];
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {image.height, image.width, image.channels}));
  if (type == DType::Float32) {
    double most = image.bits == 16 ? 65535 : 255;
    for (int64_t i = 0; i < out.numElements(); ++i) {
      uint16_t v = static_cast<uint8_t>(image.pixels[image.bits == 16 ? 0 : i]);
      if (image.bits == 16)
        std::memcpy(&v, image.pixels.data() + 2 * i, 2);
      out.data<float>()[i] = static_cast<float>(v / most);
    }
    return absl::OkStatus();
  }
  if (out.sizeBytes() != static_cast<int64_t>(image.pixels.size()))
    return invalid("the image has ", image.bits, " bits a channel, not those of ", dtypeName(type));
  std::memcpy(out.data(), image.pixels.data(), image.pixels.size());
  return absl::OkStatus();
}

absl::Status decode(KernelContext &context) {
  const NodeInfo &node = *context.node;
  LATHE_TRY_VALUE(bytes, oneString(context.input(0), "contents"));
  int64_t channels = *attrOf<int64_t>(node, "channels");
  if (channels < 0 || channels > 4 || channels == 2)
    return invalid("channels must be 0, 1, 3 or 4, got ", channels);
  int bits = node.outputTypes[0] == DType::UInt16 || node.outputTypes[0] == DType::Float32 ? 16 : 8;
  bool isBmp = bytes.compare(0, 2, "BM") == 0, isPng = bytes.compare(0, 4, "\211PNG") == 0;
  if (isBmp && node.op != "DecodePng") {
    LATHE_TRY_VALUE(image, decodeBmp(bytes, channels));
    return output(context, image);
  }
  if (isPng) {
    LATHE_TRY_VALUE(image, decodePng(bytes, channels, bits));
    return output(context, image);
  }
  if (node.op == "DecodeImage" && (bytes.compare(0, 3, "\377\330\377") == 0 || bytes.compare(0, 4, "GIF8") == 0))
    return absl::UnimplementedError("JPEG and GIF are not decoded");
  return invalid(node.op == "DecodeBmp" ? "Incomplete bmp content or no BMP file" : "Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
}
LATHE_HOST_FUNCTION(DecodePng, decode);
LATHE_HOST_FUNCTION(DecodeBmp, decode);
LATHE_HOST_FUNCTION(DecodeImage, decode);

} // namespace
} // namespace lathe::rt
