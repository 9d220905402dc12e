// Reading files forward, plain or compressed by zlib or gzip, without holding them whole.
#ifndef LATHE_BASE_BYTESTREAM_H
#define LATHE_BASE_BYTESTREAM_H

#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lathe {

enum class Compression { None, Zlib, Gzip };
/// "" (none), "ZLIB" or "GZIP"; INVALID_ARGUMENT otherwise.
absl::StatusOr<Compression> parseCompression(std::string_view name);

class ByteStream {
public:
  virtual ~ByteStream() = default;
  /// NOT_FOUND when there is no such file; FAILED_PRECONDITION for a folder.
  static absl::StatusOr<std::unique_ptr<ByteStream>> open(const std::string &path, Compression compression);

  /// Reads `n` bytes into `out`, fewer only at the end; memory grows with what is there, not with what is asked for.
  /// DATA_LOSS for damaged compression.
  absl::Status read(uint64_t n, std::string &out);
  /// Passes over bytes; fewer at the end.
  absl::StatusOr<uint64_t> skip(uint64_t n);
  /// The next line without its end; false at the end of the file. Carriage returns are left out everywhere, or one before
  /// the end of the line (TensorFlow's datasets do the former, its readers the latter).
  enum class Returns { DropAll, DropLast };
  absl::StatusOr<bool> readLine(std::string &line, Returns returns);
  /// Bytes read so far, uncompressed.
  uint64_t position() const { return consumed; }

protected:
  /// Replaces `buffer` by what comes next; leaves it empty at the end.
  virtual absl::Status fill() = 0;
  std::string buffer;

private:
  /// False at the end.
  absl::StatusOr<bool> more();
  size_t at = 0;
  uint64_t consumed = 0;
};

} // namespace lathe

#endif
