#include "base/Records.h"

#include "base/Crc32c.h"
#include "base/ProtoWire.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <zlib.h>

namespace lathe {

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::open(const std::string &path, Compression compression,
                                                                 uint64_t maxRecordBytes) {
  auto stream = ByteStream::open(path, compression);
  if (!stream.ok())
    return stream.status();
  auto reader = std::make_unique<RecordReader>();
  reader->stream = *std::move(stream);
  reader->limit = maxRecordBytes;
  return reader;
}

absl::Status RecordReader::skipTo(uint64_t offset) {
  if (offset < stream->position())
    return absl::InvalidArgumentError(absl::StrCat("cannot go back to offset ", offset));
  uint64_t missing = offset - stream->position();
  auto skipped = stream->skip(missing);
  if (!skipped.ok())
    return skipped.status();
  if (*skipped != missing)
    return absl::OutOfRangeError(absl::StrCat("the file ends before offset ", offset));
  return absl::OkStatus();
}

absl::StatusOr<bool> RecordReader::next(std::string &record) {
  uint64_t start = stream->position();
  auto damaged = [&](const char *how) { return absl::DataLossError(absl::StrCat(how, " record at ", start)); };
  std::string header;
  if (absl::Status s = stream->read(12, header); !s.ok())
    return s;
  if (header.empty())
    return false;
  if (header.size() < 12)
    return damaged("truncated");
  ByteReader in(header);
  uint64_t length = 0, crc = 0;
  in.readLittle(8, length);
  in.readLittle(4, crc);
  if (crc32cUnmask(static_cast<uint32_t>(crc)) != crc32c(header.data(), 8))
    return damaged("corrupted");
  if (length > limit)
    return absl::ResourceExhaustedError(absl::StrCat("the record at ", start, " has ", length, " bytes"));
  if (absl::Status s = stream->read(length, record); !s.ok())
    return s;
  std::string trailer;
  if (absl::Status s = stream->read(4, trailer); !s.ok())
    return s;
  if (record.size() < length || trailer.size() < 4)
    return damaged("truncated");
  ByteReader(trailer).readLittle(4, crc);
  if (crc32cUnmask(static_cast<uint32_t>(crc)) != crc32c(record.data(), record.size()))
    return damaged("corrupted");
  return true;
}

struct RecordWriter::State {
  std::unique_ptr<FILE, int (*)(FILE *)> file{nullptr, std::fclose};
  bool compresses = false;
  z_stream deflater = {};
};

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::create(const std::string &path, Compression compression) {
  auto writer = std::make_unique<RecordWriter>();
  writer->state = std::make_unique<State>();
  writer->state->file.reset(std::fopen(path.c_str(), "wb"));
  if (!writer->state->file)
    return absl::NotFoundError(absl::StrCat("cannot create '", path, "': ", std::strerror(errno)));
  if (compression != Compression::None) {
    int bits = compression == Compression::Gzip ? MAX_WBITS + 16 : MAX_WBITS;
    if (deflateInit2(&writer->state->deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      return absl::ResourceExhaustedError("out of memory for compression");
    writer->state->compresses = true;
  }
  return writer;
}

RecordWriter::~RecordWriter() {
  if (state)
    (void)close();
}

absl::Status RecordWriter::put(std::string_view bytes, bool last) {
  auto emit = [&](const void *data, size_t size) {
    return std::fwrite(data, 1, size, state->file.get()) == size;
  };
  bool ok = true;
  if (!state->compresses) {
    ok = emit(bytes.data(), bytes.size());
  } else {
    char out[1 << 14];
    z_stream &z = state->deflater;
    z.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
    z.avail_in = static_cast<uInt>(bytes.size());
    int result;
    do {
      z.next_out = reinterpret_cast<Bytef *>(out);
      z.avail_out = sizeof(out);
      result = deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
      ok &= result != Z_STREAM_ERROR && emit(out, sizeof(out) - z.avail_out);
    } while (ok && (last ? result != Z_STREAM_END : z.avail_out == 0));
  }
  return ok ? absl::OkStatus() : absl::DataLossError(absl::StrCat("cannot write records: ", std::strerror(errno)));
}

absl::Status RecordWriter::write(std::string_view record) {
  if (!state->file)
    return absl::FailedPreconditionError("the writer is closed");
  std::string header, trailer;
  appendLittle(header, record.size(), 8);
  appendLittle(header, crc32cMask(crc32c(header.data(), 8)), 4);
  appendLittle(trailer, crc32cMask(crc32c(record.data(), record.size())), 4);
  absl::Status status = put(header, false);
  for (size_t at = 0; status.ok() && at < record.size(); at += 1 << 30) // zlib counts in 32 bits
    status = put(record.substr(at, 1 << 30), false);
  if (status.ok())
    status = put(trailer, false);
  return status;
}

absl::Status RecordWriter::flush() {
  if (!state->file)
    return absl::FailedPreconditionError("the writer is closed");
  return std::fflush(state->file.get()) == 0 ? absl::OkStatus()
                                             : absl::DataLossError(absl::StrCat("cannot write records: ", std::strerror(errno)));
}

absl::Status RecordWriter::close() {
  if (!state->file)
    return absl::OkStatus();
  absl::Status status;
  if (state->compresses) {
    status = put({}, true);
    deflateEnd(&state->deflater);
  }
  if (std::fclose(state->file.release()) != 0 && status.ok())
    status = absl::DataLossError(absl::StrCat("cannot write records: ", std::strerror(errno)));
  return status;
}

} // namespace lathe
