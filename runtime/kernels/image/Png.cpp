// PNG, by libpng: decoding for Decode.cpp, and EncodePng.
#include "runtime/kernels/image/Image.h"

#include <png.h>

#include <cstring>

namespace lathe::rt {
namespace image {
namespace {

struct PngSource {
  const std::string &bytes;
  size_t at = 0;
};

void readPng(png_structp png, png_bytep out, png_size_t size) {
  auto *source = static_cast<PngSource *>(png_get_io_ptr(png));
  if (size > source->bytes.size() - source->at)
    png_error(png, "the data ends early");
  std::memcpy(out, source->bytes.data() + source->at, size);
  source->at += size;
}

void writePng(png_structp png, png_bytep data, png_size_t size) {
  static_cast<std::string *>(png_get_io_ptr(png))->append(reinterpret_cast<const char *>(data), size);
}
void flushPng(png_structp) {}

[[noreturn]] void failPng(png_structp png, png_const_charp) { longjmp(png_jmpbuf(png), 1); }
void ignoreWarning(png_structp, png_const_charp) {}

struct PngReader {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, failPng, ignoreWarning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }

  // Nothing with a destructor lives in the frames that longjmp leaves or returns to.
  bool readSize() {
    if (setjmp(png_jmpbuf(png)))
      return false;
    png_read_info(png, info);
    return true;
  }
  bool choose(int channels, int bits) {
    if (setjmp(png_jmpbuf(png)))
      return false;
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
    return true;
  }
  bool readRows(png_bytep *rows) {
    if (setjmp(png_jmpbuf(png)))
      return false;
    png_read_image(png, rows);
    png_read_end(png, nullptr);
    return true;
  }
};

/// Where each row of a tensor of rows begins.
std::vector<png_bytep> rowsOf(const void *data, int64_t height, size_t stride) {
  std::vector<png_bytep> rows(static_cast<size_t>(height));
  for (size_t r = 0; r < rows.size(); ++r)
    rows[r] = static_cast<png_bytep>(const_cast<void *>(data)) + r * stride;
  return rows;
}

struct PngWriter {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, failPng, ignoreWarning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }

  bool write(png_bytep *rows, uint32_t height, uint32_t width, int channels, int bits, int compression) {
    static constexpr int kColorTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(png)))
      return false;
    png_set_compression_level(png, compression);
    png_set_IHDR(png, info, width, height, bits, kColorTypes[channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (bits == 16)
      png_set_swap(png);
    png_write_image(png, rows);
    png_write_end(png, nullptr);
    return true;
  }
};

class EncodePng : public HostKernel {
public:
  explicit EncodePng(KernelInit &init) : compression(init.attr<int64_t>("compression")) {
    if (compression < -1 || compression > 9)
      init.fail(invalid("compression should be in [-1,9], got ", compression));
  }

  absl::Status compute(KernelContext &context) override {
    Tensor images = context.input(0);
    if (images.rank() < 3)
      return invalid("images must be at least rank 3, got rank ", images.rank());
    size_t batch = static_cast<size_t>(images.rank() - 3);
    int64_t height = images.dim(batch), width = images.dim(batch + 1), channels = images.dim(batch + 2);
    if (channels < 1 || channels > 4)
      return invalid("image must have 1, 2, 3, or 4 channels, got ", channels);
    if (images.numElements() >= INT32_MAX || width > INT32_MAX / 2 / channels || height > INT32_MAX)
      return invalid("an image of ", width, " x ", height, " pixels is too large to encode");
    LATHE_TRY_VALUE(out, context.allocateOutput(0, std::vector<int64_t>(images.dims().begin(), images.dims().begin() + batch)));
    int64_t bytes = height * width * channels * static_cast<int64_t>(dtypeSize(images.dtype()));
    for (int64_t i = 0; i < out.numElements(); ++i)
      LATHE_TRY(encodePng(images.data<char>() + i * bytes, height, width, channels, images.dtype() == DType::UInt16 ? 16 : 8,
                          static_cast<int>(compression), out.mutableStrings()[i]));
    return absl::OkStatus();
  }

private:
  int64_t compression;
};

} // namespace

absl::Status encodePng(const void *pixels, int64_t height, int64_t width, int64_t channels, int bits, int compression, std::string &out) {
  PngWriter writer;
  if (!writer.info)
    return absl::ResourceExhaustedError("no memory to encode PNG");
  png_set_write_fn(writer.png, &out, writePng, flushPng);
  auto rows = rowsOf(pixels, height, static_cast<size_t>(width * channels * (bits / 8)));
  if (!writer.write(rows.data(), static_cast<uint32_t>(height), static_cast<uint32_t>(width), static_cast<int>(channels), bits, compression))
    return absl::InternalError("PNG encoding failed");
  return absl::OkStatus();
}

absl::StatusOr<Tensor> decodePng(const KernelContext &context, const std::string &bytes, int64_t channels, int bits) {
  auto refused = [&] { return invalid("Invalid PNG data, size ", bytes.size()); };
  PngSource source{bytes};
  PngReader reader;
  if (!reader.info)
    return absl::ResourceExhaustedError("no memory to decode PNG");
  png_set_read_fn(reader.png, &source, readPng);
  if (!reader.readSize())
    return refused();
  int64_t width = png_get_image_width(reader.png, reader.info), height = png_get_image_height(reader.png, reader.info);
  LATHE_TRY(checkSize(width, height));
  if (!reader.choose(static_cast<int>(channels), bits))
    return refused();
  int64_t got = png_get_channels(reader.png, reader.info);
  if (png_get_bit_depth(reader.png, reader.info) != bits || (channels && got != channels))
    return invalid("Invalid PNG data: unexpected depth or channels");
  LATHE_TRY_VALUE(image, context.allocate(bits == 16 ? DType::UInt16 : DType::UInt8, {height, width, got}));
  size_t stride = static_cast<size_t>(width * got * (bits / 8));
  if (png_get_rowbytes(reader.png, reader.info) != stride)
    return refused();
  auto rows = rowsOf(image.data(), height, stride);
  if (!reader.readRows(rows.data()))
    return refused();
  return image;
}

} // namespace image

LATHE_HOST_KERNEL(EncodePng, image::EncodePng);

} // namespace lathe::rt
