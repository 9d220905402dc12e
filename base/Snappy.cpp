// A stream is a varint length, then tags: literals, or copies from what was written so far.
#include "base/Snappy.h"

#include "base/Bytes.h"

namespace lathe {

static absl::Status bad(const char *what) {
  return absl::DataLossError(std::string("bad snappy stream: ") + what);
}

absl::StatusOr<std::string> snappyUncompress(std::string_view input, uint64_t maxBytes) {
  ByteReader in(input);
  uint64_t size;
  if (!in.readVarint(size))
    return bad("no length");
  if (size > maxBytes)
    return absl::ResourceExhaustedError("snappy stream is larger than the limit");
  // a copy of at most 64 bytes takes at least 2 bytes: the stream bounds what it can yield
  if (size > (in.remaining() + 1) * 64)
    return bad("length exceeds what the stream can hold");
  std::string out;
  out.reserve(size);
  while (in.remaining()) {
    uint8_t tag = 0;
    in.readByte(tag);
    uint64_t length, offset = 0;
    if ((tag & 3) == 0) {
      length = tag >> 2;
      if (length >= 60 && !in.readLittle(static_cast<int>(length) - 59, length))
        return bad("truncated literal length");
      ++length;
      std::string_view bytes;
      if (length > size - out.size() || !in.readBytes(length, bytes))
        return bad("literal is too long");
      out.append(bytes);
      continue;
    }
    if ((tag & 3) == 1) {
      uint64_t low;
      if (!in.readLittle(1, low))
        return bad("truncated copy");
      length = ((tag >> 2) & 7) + 4;
      offset = (static_cast<uint64_t>(tag >> 5) << 8) | low;
    } else {
      if (!in.readLittle((tag & 3) == 2 ? 2 : 4, offset))
        return bad("truncated copy");
      length = (tag >> 2) + 1;
    }
    if (offset == 0 || offset > out.size() || length > size - out.size())
      return bad("copy out of range");
    // source and target may overlap, which repeats the pattern
    size_t from = out.size() - offset;
    for (uint64_t i = 0; i < length; ++i)
      out.push_back(out[from + i]);
  }
  if (out.size() != size)
    return bad("shorter than its length");
  return out;
}

} // namespace lathe
