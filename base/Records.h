// TFRecord files: each record is its length, a masked CRC-32C of that, the bytes, and a masked CRC-32C of these.
#ifndef LATHE_BASE_RECORDS_H
#define LATHE_BASE_RECORDS_H

#include "base/ByteStream.h"

namespace lathe {

class RecordReader {
public:
  /// As ByteStream::open. A record larger than `maxRecordBytes` is RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<RecordReader>> open(const std::string &path, Compression compression,
                                                            uint64_t maxRecordBytes = UINT64_C(1) << 32);
  /// The next record; false at the end of the file. DATA_LOSS for a damaged or truncated one.
  absl::StatusOr<bool> next(std::string &record);
  /// Where the next record starts, in uncompressed bytes.
  uint64_t offset() const { return stream->position(); }
  /// Starts at a later offset; OUT_OF_RANGE when the file ends before.
  absl::Status skipTo(uint64_t offset);

private:
  std::unique_ptr<ByteStream> stream;
  uint64_t limit = 0;
};

class RecordWriter {
public:
  /// NOT_FOUND when the file cannot be created.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> create(const std::string &path, Compression compression);
  ~RecordWriter();
  absl::Status write(std::string_view record);
  /// Hands what was written to the file system; compressed records stay in the compressor.
  absl::Status flush();
  /// Writes what is left; further writes are errors.
  absl::Status close();

private:
  struct State;
  absl::Status put(std::string_view bytes, bool last);
  std::unique_ptr<State> state;
};

} // namespace lathe

#endif
