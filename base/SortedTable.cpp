// The file ends in a footer that points to an index block, whose values point to the data blocks. A block holds entries
// with shared key prefixes, then restart offsets (only needed for searching) and their count.
#include "base/SortedTable.h"

#include "base/Bytes.h"
#include "base/Crc32c.h"
#include "base/Snappy.h"

namespace lathe {
namespace {

absl::Status bad(const char *what) { return absl::DataLossError(std::string("bad checkpoint index: ") + what); }

class Parser {
public:
  Parser(std::string_view file, int64_t maxBytes) : file(file), left(maxBytes) {}

  absl::StatusOr<std::string> block(ByteReader &handle) {
    uint64_t offset, size;
    if (!handle.readVarint(offset) || !handle.readVarint(size))
      return bad("truncated block handle");
    if (offset > file.size() || file.size() - offset < 5 || size > file.size() - offset - 5)
      return bad("block lies outside the file");
    std::string_view body = file.substr(offset, size + 5);
    ByteReader trailer(body.substr(size + 1));
    uint64_t stored = 0;
    trailer.readLittle(4, stored);
    if (crc32cUnmask(static_cast<uint32_t>(stored)) != crc32c(body.data(), size + 1))
      return bad("checksum of a block does not match");
    char kind = body[size];
    std::string out;
    if (kind == 0) {
      out = std::string(body.substr(0, size));
    } else if (kind == 1) {
      absl::StatusOr<std::string> r = snappyUncompress(body.substr(0, size), left);
      if (!r.ok())
        return r.status();
      out = std::move(*r);
    } else {
      return bad("unknown compression of a block");
    }
    left -= static_cast<int64_t>(out.size());
    if (left < 0)
      return absl::ResourceExhaustedError("checkpoint index exceeds its limit");
    return out;
  }

  absl::Status entries(std::string_view block, TableEntries &out) {
    if (block.size() < 4)
      return bad("truncated block");
    ByteReader tail(block.substr(block.size() - 4));
    uint64_t restarts = 0;
    tail.readLittle(4, restarts);
    if (restarts > (block.size() - 4) / 4)
      return bad("more restarts than the block can hold");
    ByteReader in(block.substr(0, block.size() - 4 - 4 * restarts));
    std::string key;
    while (in.remaining()) {
      uint64_t shared, rest, length;
      std::string_view suffix, value;
      if (!in.readVarint(shared) || !in.readVarint(rest) || !in.readVarint(length) || shared > key.size() ||
          !in.readBytes(rest, suffix) || !in.readBytes(length, value))
        return bad("truncated entry");
      key.resize(shared);
      key += suffix;
      // shared prefixes let keys grow quadratically with the file
      left -= static_cast<int64_t>(key.size());
      if (left < 0)
        return absl::ResourceExhaustedError("checkpoint index exceeds its limit");
      out.emplace_back(key, std::string(value));
    }
    return absl::OkStatus();
  }

private:
  std::string_view file;
  int64_t left;
};

} // namespace

absl::StatusOr<TableEntries> parseSortedTable(std::string_view file, int64_t maxBytes) {
  constexpr size_t kFooter = 48;
  if (file.size() < kFooter)
    return bad("too short");
  ByteReader magic(file.substr(file.size() - 8));
  uint64_t number = 0;
  magic.readLittle(8, number);
  if (number != 0xdb4775248b80fb57u)
    return bad("no table magic");
  ByteReader footer(file.substr(file.size() - kFooter, kFooter - 8));
  uint64_t metaOffset, metaSize;
  if (!footer.readVarint(metaOffset) || !footer.readVarint(metaSize))
    return bad("truncated footer");
  Parser parser(file, maxBytes);
  absl::StatusOr<std::string> index = parser.block(footer);
  if (!index.ok())
    return index.status();
  TableEntries handles, result;
  if (absl::Status s = parser.entries(*index, handles); !s.ok())
    return s;
  for (const auto &[last, handle] : handles) {
    ByteReader in(handle);
    absl::StatusOr<std::string> block = parser.block(in);
    if (!block.ok())
      return block.status();
    if (absl::Status s = parser.entries(*block, result); !s.ok())
      return s;
  }
  return result;
}

} // namespace lathe
