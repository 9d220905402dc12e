#include "base/TensorBundle.h"

#include "base/Bytes.h"
#include "base/Crc32c.h"
#include "base/ProtoWire.h"
#include "base/SortedTable.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cstdio>
#include <cstring>
#include <sys/stat.h>

namespace lathe {
namespace {

absl::Status bad(std::string_view what) { return absl::DataLossError(absl::StrCat("bad checkpoint: ", view(what))); }

bool parseEntry(std::string_view bytes, TensorBundleReader::Entry &entry) {
  ByteReader in(bytes);
  ProtoField f;
  while (in.remaining()) {
    if (!readProtoField(in, f))
      return false;
    switch (f.number) {
    case 1:
      entry.dtype = dtypeFromNumber(static_cast<int64_t>(f.value)).value_or(DType::Invalid);
      break;
    case 2:
      if (!parseShape(f.bytes, entry.dims))
        return false;
      break;
    case 3:
      entry.shard = static_cast<int64_t>(f.value);
      break;
    case 4:
      entry.offset = static_cast<int64_t>(f.value);
      break;
    case 5:
      entry.size = static_cast<int64_t>(f.value);
      break;
    case 6:
      entry.maskedCrc = static_cast<uint32_t>(f.value);
      break;
    case 7:
      entry.slices.emplace_back();
      if (!parseSlice(f.bytes, entry.slices.back()))
        return false;
      break;
    default:
      break;
    }
  }
  return true;
}

} // namespace

absl::StatusOr<std::unique_ptr<TensorBundleReader>> TensorBundleReader::open(const std::string &prefix,
                                                                             int64_t maxIndexBytes) {
  absl::StatusOr<std::string> file = readFile(prefix + ".index", static_cast<uint64_t>(maxIndexBytes));
  if (!file.ok())
    return file.status();
  absl::StatusOr<TableEntries> table = parseSortedTable(*file, maxIndexBytes);
  if (!table.ok())
    return absl::Status(table.status().code(), absl::StrCat("'", prefix, ".index': ", table.status().message()));
  auto reader = std::make_unique<TensorBundleReader>();
  reader->prefix = prefix;
  bool header = false;
  for (const auto &[key, value] : *table) {
    if (key.empty()) {
      header = true;
      ByteReader in(value);
      ProtoField f;
      while (in.remaining()) {
        if (!readProtoField(in, f))
          return bad("broken header");
        if (f.number == 1)
          reader->numShards = static_cast<int64_t>(f.value);
        if (f.number == 2 && f.value != 0)
          return absl::UnimplementedError("the checkpoint is big-endian");
      }
      continue;
    }
    Entry entry;
    if (!parseEntry(value, entry))
      return bad(absl::StrCat("broken entry '", key, "'"));
    // names of slices start with a zero byte, which no tensor's name does
    (key[0] == '\0' ? reader->parts : reader->named).emplace(key, std::move(entry));
  }
  if (!header || reader->numShards < 1 || reader->numShards > 99999)
    return bad("no header, or an impossible number of shards");
  return reader;
}

const TensorBundleReader::Entry *TensorBundleReader::find(const std::string &name) const {
  auto it = named.find(name);
  return it == named.end() ? nullptr : &it->second;
}

std::string TensorBundleReader::shardPath(int64_t shard) const {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, numShards);
}

absl::Status TensorBundleReader::readInto(const Entry &entry, char *to) const {
  std::string path = shardPath(entry.shard);
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    return absl::NotFoundError(absl::StrCat("cannot open '", path, "'"));
  if (fseeko(file.get(), entry.offset, SEEK_SET) != 0 ||
      std::fread(to, 1, static_cast<size_t>(entry.size), file.get()) != static_cast<size_t>(entry.size))
    return bad(absl::StrCat("'", path, "' is shorter than its entries say"));
  return absl::OkStatus();
}

/// Before anything is allocated: the entry's bytes must lie inside its shard.
static absl::Status checkPlace(const TensorBundleReader::Entry &entry, int64_t numShards, const std::string &path) {
  if (entry.shard < 0 || entry.shard >= numShards || entry.offset < 0 || entry.size < 0)
    return bad("an entry names no place");
  struct stat st;
  if (stat(path.c_str(), &st) != 0)
    return absl::NotFoundError(absl::StrCat("cannot open '", path, "'"));
  if (!S_ISREG(st.st_mode))
    return bad(absl::StrCat("'", path, "' is no regular file"));
  if (entry.offset > st.st_size || entry.size > st.st_size - entry.offset)
    return bad(absl::StrCat("'", path, "' is shorter than its entries say"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> TensorBundleReader::readBytes(const Entry &entry) const {
  std::string bytes(static_cast<size_t>(entry.size), '\0');
  if (absl::Status s = readInto(entry, bytes.data()); !s.ok())
    return s;
  return bytes;
}

/// Varint lengths, a masked CRC of them (as 32-bit numbers, or 64-bit where they need it), then the bytes.
static absl::StatusOr<Tensor> parseStrings(std::string_view bytes, std::vector<int64_t> dims, int64_t count,
                                           uint32_t maskedCrc) {
  if (count > static_cast<int64_t>(bytes.size()))
    return bad("more strings than bytes");
  ByteReader in(bytes);
  std::vector<uint64_t> lengths(count);
  uint32_t crc = 0;
  for (uint64_t &length : lengths) {
    if (!in.readVarint(length))
      return bad("truncated string lengths");
    crc = crc32cExtend(crc, &length, length > UINT32_MAX ? 8 : 4);
  }
  uint64_t stored;
  if (!in.readLittle(4, stored) || crc32cUnmask(static_cast<uint32_t>(stored)) != crc)
    return bad("checksum of string lengths does not match");
  uint32_t stored32 = static_cast<uint32_t>(stored);
  crc = crc32cExtend(crc, &stored32, 4);
  std::vector<std::string> values(count);
  for (int64_t i = 0; i < count; ++i) {
    std::string_view text;
    if (!in.readBytes(lengths[i], text))
      return bad("truncated strings");
    crc = crc32cExtend(crc, text.data(), text.size());
    values[i] = std::string(text);
  }
  if (crc32cUnmask(maskedCrc) != crc)
    return bad("checksum of strings does not match");
  return Tensor::fromStrings(std::move(dims), std::move(values));
}

absl::StatusOr<Tensor> TensorBundleReader::readEntry(const std::string &name, const Entry &entry) const {
  absl::StatusOr<int64_t> count = checkedNumElements(entry.dims);
  if (!count.ok())
    return count.status();
  if (absl::Status s = checkPlace(entry, numShards, shardPath(entry.shard)); !s.ok())
    return s;
  if (entry.dtype == DType::String) {
    absl::StatusOr<std::string> bytes = readBytes(entry);
    if (!bytes.ok())
      return bytes.status();
    return parseStrings(*bytes, entry.dims, *count, entry.maskedCrc);
  }
  int64_t size = static_cast<int64_t>(dtypeSize(entry.dtype));
  if (size == 0)
    return absl::UnimplementedError(absl::StrCat("tensors of type ", dtypeName(entry.dtype), " cannot be read"));
  int64_t needed;
  if (__builtin_mul_overflow(*count, size, &needed) || needed != entry.size)
    return bad("the size of an entry does not fit its shape");
  absl::StatusOr<Tensor> t = Tensor::tryAllocate(entry.dtype, entry.dims, needed);
  if (!t.ok())
    return t;
  if (absl::Status s = readInto(entry, t->data<char>()); !s.ok())
    return s;
  if (crc32c(t->data(), needed) != crc32cUnmask(entry.maskedCrc))
    return bad("checksum of the data does not match");
  return t;
}

absl::StatusOr<Tensor> TensorBundleReader::readSliced(const std::string &name, const Entry &entry) const {
  size_t size = dtypeSize(entry.dtype), rank = entry.dims.size();
  int64_t covered = 0;
  std::vector<std::pair<const Slice *, Tensor>> pieces;
  for (const Slice &slice : entry.slices) {
    auto it = parts.find(sliceKey(name, slice));
    if (it == parts.end() || slice.start.size() != rank || it->second.dims.size() != rank ||
        it->second.dtype != entry.dtype || size == 0)
      return bad("a part is missing or does not fit");
    for (size_t d = 0; d < rank; ++d) {
      int64_t n = it->second.dims[d];
      if (slice.start[d] < 0 || n < 0 || slice.start[d] > entry.dims[d] || n > entry.dims[d] - slice.start[d])
        return bad("a part lies outside its tensor");
    }
    absl::StatusOr<Tensor> piece = readEntry(name, it->second);
    if (!piece.ok())
      return piece;
    covered += piece->numElements();
    pieces.emplace_back(&slice, std::move(*piece));
  }
  absl::StatusOr<int64_t> count = checkedNumElements(entry.dims);
  if (!count.ok())
    return count.status();
  // so the parts bound what is allocated
  if (covered != *count)
    return bad("the parts do not fill the tensor");
  Tensor result = Tensor::allocate(entry.dtype, entry.dims);
  for (const auto &[slice, piece] : pieces) {
    if (piece.numElements() == 0)
      continue;
    int64_t row = rank ? piece.dims().back() : 1;
    std::vector<int64_t> index(rank, 0);
    for (int64_t done = 0; done < piece.numElements(); done += row) {
      int64_t at = 0;
      for (size_t d = 0; d < rank; ++d)
        at = at * entry.dims[d] + slice->start[d] + index[d];
      std::memcpy(result.data<char>() + at * size, piece.data<char>() + done * size, row * size);
      for (size_t d = rank; d-- > 0;) {
        if (d + 1 == rank)
          continue;
        if (++index[d] < piece.dims()[d])
          break;
        index[d] = 0;
      }
    }
  }
  return result;
}

absl::StatusOr<Tensor> TensorBundleReader::read(const std::string &name) const {
  const Entry *entry = find(name);
  if (!entry)
    return absl::NotFoundError(absl::StrCat("the checkpoint has no tensor '", name, "'"));
  absl::StatusOr<Tensor> t = entry->slices.empty() ? readEntry(name, *entry) : readSliced(name, *entry);
  if (!t.ok())
    return absl::Status(t.status().code(), absl::StrCat("tensor '", name, "': ", t.status().message()));
  return t;
}

} // namespace lathe
