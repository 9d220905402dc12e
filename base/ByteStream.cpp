#include "base/ByteStream.h"

#include "base/Bytes.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <zlib.h>

namespace lathe {
namespace {

constexpr size_t kChunk = 1 << 16;
using File = std::unique_ptr<FILE, int (*)(FILE *)>;

class PlainStream : public ByteStream {
public:
  PlainStream(File file, std::string path) : file(std::move(file)), path(std::move(path)) {}

protected:
  absl::Status fill() override {
    buffer.resize(kChunk);
    buffer.resize(std::fread(buffer.data(), 1, kChunk, file.get()));
    if (buffer.empty() && std::ferror(file.get()))
      return absl::DataLossError(absl::StrCat("cannot read '", path, "'"));
    return absl::OkStatus();
  }

private:
  File file;
  std::string path;
};

class InflateStream : public ByteStream {
public:
  InflateStream(File file, std::string path, bool gzip) : file(std::move(file)), path(std::move(path)) {
    broken = inflateInit2(&state, gzip ? MAX_WBITS + 16 : MAX_WBITS) != Z_OK;
    input.resize(kChunk);
  }
  ~InflateStream() override { inflateEnd(&state); }

protected:
  absl::Status fill() override {
    buffer.resize(kChunk);
    state.next_out = reinterpret_cast<Bytef *>(buffer.data());
    state.avail_out = kChunk;
    while (!broken && state.avail_out == kChunk) {
      if (state.avail_in == 0) {
        state.next_in = reinterpret_cast<Bytef *>(input.data());
        state.avail_in = static_cast<uInt>(std::fread(input.data(), 1, input.size(), file.get()));
        if (state.avail_in == 0) {
          buffer.clear();
          return atStart ? absl::OkStatus()
                         : absl::DataLossError(absl::StrCat("'", path, "' ends inside its compressed data"));
        }
      }
      atStart = false;
      int result = inflate(&state, Z_NO_FLUSH);
      if (result == Z_STREAM_END) { // another member may follow
        atStart = true;
        broken = inflateReset(&state) != Z_OK;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        broken = true;
      }
    }
    if (broken)
      return absl::DataLossError(absl::StrCat("'", path, "' is not what its compression says"));
    buffer.resize(kChunk - state.avail_out);
    return absl::OkStatus();
  }

private:
  File file;
  std::string path, input;
  z_stream state = {};
  bool broken = false, atStart = true;
};

} // namespace

absl::StatusOr<Compression> parseCompression(std::string_view name) {
  if (name.empty())
    return Compression::None;
  if (name == "ZLIB")
    return Compression::Zlib;
  if (name == "GZIP")
    return Compression::Gzip;
  return absl::InvalidArgumentError(absl::StrCat("unsupported compression type '", view(name), "'"));
}

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::open(const std::string &path, Compression compression) {
  File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    return absl::NotFoundError(absl::StrCat(path, "; ", std::strerror(errno)));
  struct stat st;
  if (fstat(fileno(file.get()), &st) != 0 || S_ISDIR(st.st_mode))
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' is a folder"));
  if (compression == Compression::None)
    return std::unique_ptr<ByteStream>(new PlainStream(std::move(file), path));
  return std::unique_ptr<ByteStream>(new InflateStream(std::move(file), path, compression == Compression::Gzip));
}

absl::StatusOr<bool> ByteStream::more() {
  if (at < buffer.size())
    return true;
  at = 0;
  buffer.clear();
  if (absl::Status filled = fill(); !filled.ok()) {
    buffer.clear();
    return filled;
  }
  return !buffer.empty();
}

absl::Status ByteStream::read(uint64_t n, std::string &out) {
  out.clear();
  while (out.size() < n) {
    auto any = more();
    if (!any.ok())
      return any.status();
    if (!*any)
      break;
    size_t part = static_cast<size_t>(std::min<uint64_t>(n - out.size(), buffer.size() - at));
    out.append(buffer, at, part);
    at += part;
    consumed += part;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ByteStream::skip(uint64_t n) {
  uint64_t done = 0;
  while (done < n) {
    auto any = more();
    if (!any.ok())
      return any.status();
    if (!*any)
      break;
    uint64_t part = std::min<uint64_t>(n - done, buffer.size() - at);
    at += static_cast<size_t>(part);
    done += part;
  }
  consumed += done;
  return done;
}

absl::StatusOr<bool> ByteStream::readLine(std::string &line, Returns returns) {
  line.clear();
  bool found = false;
  while (!found) {
    auto any = more();
    if (!any.ok())
      return any.status();
    if (!*any)
      break;
    size_t end = buffer.find('\n', at);
    found = end != std::string::npos;
    size_t stop = found ? end : buffer.size();
    for (size_t i = at; i < stop; ++i)
      if (buffer[i] != '\r' || returns == Returns::DropLast)
        line.push_back(buffer[i]);
    stop += found;
    consumed += stop - at;
    at = stop;
  }
  if (returns == Returns::DropLast && !line.empty() && line.back() == '\r')
    line.pop_back();
  return found || !line.empty();
}

} // namespace lathe
