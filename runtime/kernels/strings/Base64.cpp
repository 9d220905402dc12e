// EncodeBase64, DecodeBase64 (the web-safe alphabet), DecodeCompressed.
#include "runtime/kernels/Common.h"

#include <zlib.h>

namespace lathe::rt {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(const std::string &s, bool pad) {
  std::string out;
  out.reserve((s.size() + 2) / 3 * 4);
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : 0u; };
  for (size_t i = 0; i < s.size(); i += 3) {
    uint32_t word = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    size_t digits = std::min<size_t>(s.size() - i, 3) + 1;
    for (size_t d = 0; d < 4; ++d)
      if (d < digits)
        out += kAlphabet[word >> (18 - 6 * d) & 63];
      else if (pad)
        out += '=';
  }
  return out;
}

int digitOf(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool decode(std::string_view s, std::string &out) {
  if (s.size() % 4 == 0)
    for (int i = 0; i < 2 && !s.empty() && s.back() == '='; ++i)
      s.remove_suffix(1);
  if (s.size() % 4 == 1)
    return false;
  uint32_t word = 0;
  int bits = 0;
  for (char c : s) {
    int digit = digitOf(c);
    if (digit < 0)
      return false;
    word = word << 6 | static_cast<uint32_t>(digit);
    if ((bits += 6) >= 8) {
      bits -= 8;
      out += static_cast<char>(word >> bits & 255);
    }
  }
  return true;
}

absl::Status encodeBase64(KernelContext &context) {
  bool pad = *attrOf<bool>(*context.node, "pad");
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  for (int64_t i = 0; i < in.numElements(); ++i)
    out.mutableStrings()[i] = encode(in.strings()[i], pad);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(EncodeBase64, encodeBase64);

absl::Status decodeBase64(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  for (int64_t i = 0; i < in.numElements(); ++i)
    if (!decode(in.strings()[i], out.mutableStrings()[i]))
      return invalid("Invalid character found in base64.");
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DecodeBase64, decodeBase64);

/// What one string may unpack to: a small file can name any size.
constexpr size_t kMaxInflated = size_t(1) << 31;

absl::Status inflateAll(const std::string &in, bool gzip, std::string &out) {
  z_stream stream{};
  if (inflateInit2(&stream, gzip ? 16 + MAX_WBITS : MAX_WBITS) != Z_OK)
    return absl::InternalError("zlib does not start");
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  int state = Z_OK;
  while (state == Z_OK) {
    char piece[1 << 15];
    stream.next_out = reinterpret_cast<Bytef *>(piece);
    stream.avail_out = sizeof piece;
    state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END)
      break;
    out.append(piece, sizeof piece - stream.avail_out);
    if (out.size() > kMaxInflated) {
      inflateEnd(&stream);
      return absl::ResourceExhaustedError(absl::StrCat("decompressed to more than ", kMaxInflated, " bytes"));
    }
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END)
    return absl::DataLossError("compressed bytes are damaged or cut short");
  return absl::OkStatus();
}

absl::Status decodeCompressed(KernelContext &context) {
  const std::string &type = *attrOf<std::string>(*context.node, "compression_type");
  if (type != "" && type != "ZLIB" && type != "GZIP")
    return invalid("Only ZLIB, GZIP or NONE are supported compressions");
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  for (int64_t i = 0; i < in.numElements(); ++i) {
    if (type.empty())
      out.mutableStrings()[i] = in.strings()[i];
    else
      LATHE_TRY(inflateAll(in.strings()[i], type == "GZIP", out.mutableStrings()[i]));
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DecodeCompressed, decodeCompressed);

} // namespace
} // namespace lathe::rt
