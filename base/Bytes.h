// A bounded cursor over bytes for the hand-written readers, and whole-file reading.
#ifndef LATHE_BASE_BYTES_H
#define LATHE_BASE_BYTES_H

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe {

/// Debian's abseil is built with a string_view of its own.
inline absl::string_view view(std::string_view s) { return absl::string_view(s.data(), s.size()); }

/// Reads forward; every function returns false, and stays where it was, when too few bytes are left.
class ByteReader {
public:
  explicit ByteReader(std::string_view bytes) : bytes(bytes) {}

  size_t remaining() const { return bytes.size() - at; }
  size_t position() const { return at; }

  bool readByte(uint8_t &out) {
    if (!remaining())
      return false;
    out = static_cast<uint8_t>(bytes[at++]);
    return true;
  }

  bool readBytes(uint64_t size, std::string_view &out) {
    if (size > remaining())
      return false;
    out = bytes.substr(at, size);
    at += size;
    return true;
  }

  /// A little-endian number of 1 to 8 bytes.
  bool readLittle(int size, uint64_t &out) {
    if (static_cast<size_t>(size) > remaining())
      return false;
    uint64_t v = 0;
    for (int i = 0; i < size; ++i)
      v |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
    at += size;
    out = v;
    return true;
  }

  bool readVarint(uint64_t &out) {
    uint64_t v = 0;
    for (size_t i = 0; i < 10 && at + i < bytes.size(); ++i) {
      uint8_t b = static_cast<uint8_t>(bytes[at + i]);
      if (i == 9 && b > 1)
        return false;
      v |= static_cast<uint64_t>(b & 0x7f) << (7 * i);
      if (!(b & 0x80)) {
        at += i + 1;
        out = v;
        return true;
      }
    }
    return false;
  }

private:
  std::string_view bytes;
  size_t at = 0;
};

/// The whole file; an error when it is no regular file, cannot be read, or is larger than maxBytes.
absl::StatusOr<std::string> readFile(const std::string &path, uint64_t maxBytes = UINT64_C(1) << 40);
absl::Status writeFile(const std::string &path, std::string_view bytes);

} // namespace lathe

#endif
