#include "base/Zip.h"

#include "base/Bytes.h"

#include "absl/strings/str_cat.h"

#include <zlib.h>

namespace lathe {
namespace {

absl::Status bad(std::string_view what) { return absl::DataLossError(absl::StrCat("bad zip file: ", view(what))); }

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;

uint64_t little(std::string_view bytes, size_t at, int size) {
  uint64_t v = 0;
  for (int i = 0; i < size; ++i)
    v |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return v;
}

uint32_t crcOf(std::string_view data) {
  uLong crc = crc32(0, nullptr, 0);
  while (!data.empty()) {
    size_t n = std::min<size_t>(data.size(), 1u << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef *>(data.data()), static_cast<uInt>(n));
    data.remove_prefix(n);
  }
  return static_cast<uint32_t>(crc);
}

absl::StatusOr<std::string> inflateRaw(std::string_view in, uint64_t size) {
  // deflate cannot expand by more than this, so a small file cannot ask for much memory
  if (size / 1100 > in.size() + 64)
    return bad("size of a deflated entry is impossible");
  std::string out(size, '\0');
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
    return absl::InternalError("zlib does not start");
  size_t inAt = 0, outAt = 0;
  int rc = Z_OK;
  while (rc == Z_OK) {
    if (z.avail_in == 0 && inAt < in.size()) {
      size_t n = std::min<size_t>(in.size() - inAt, 1u << 30);
      z.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(in.data() + inAt));
      z.avail_in = static_cast<uInt>(n);
      inAt += n;
    }
    if (z.avail_out == 0 && outAt < size) {
      size_t n = std::min<size_t>(size - outAt, 1u << 30);
      z.next_out = reinterpret_cast<Bytef *>(out.data() + outAt);
      z.avail_out = static_cast<uInt>(n);
      outAt += n;
    }
    rc = inflate(&z, Z_NO_FLUSH);
  }
  bool complete = rc == Z_STREAM_END && outAt - z.avail_out == size;
  inflateEnd(&z);
  if (!complete)
    return bad("deflated entry does not have its size");
  return out;
}

void put(std::string &out, uint64_t v, int size) {
  for (int i = 0; i < size; ++i)
    out.push_back(static_cast<char>(v >> (8 * i)));
}

} // namespace

absl::StatusOr<ZipEntries> parseZip(std::string_view bytes, int64_t maxBytes) {
  if (bytes.size() < 22)
    return bad("too short");
  size_t end = std::string_view::npos;
  size_t lowest = bytes.size() > 65557 ? bytes.size() - 65557 : 0;
  for (size_t at = bytes.size() - 22;; --at) {
    if (little(bytes, at, 4) == kEnd && at + 22 + little(bytes, at + 20, 2) <= bytes.size()) {
      end = at;
      break;
    }
    if (at == lowest)
      break;
  }
  if (end == std::string_view::npos)
    return bad("no end of directory");
  uint64_t count = little(bytes, end + 10, 2), size = little(bytes, end + 12, 4), at = little(bytes, end + 16, 4);
  if (end >= 20 && little(bytes, end - 20, 4) == kLocator64) {
    uint64_t e64 = little(bytes, end - 12, 8);
    if (e64 > bytes.size() || bytes.size() - e64 < 56 || little(bytes, e64, 4) != kEnd64)
      return bad("bad zip64 end of directory");
    count = little(bytes, e64 + 32, 8);
    size = little(bytes, e64 + 40, 8);
    at = little(bytes, e64 + 48, 8);
  }
  if (at > bytes.size() || size > bytes.size() - at)
    return bad("directory lies outside the file");
  if (count > size / 46)
    return bad("more entries than the directory can hold");
  ByteReader dir(bytes.substr(at, size));
  ZipEntries entries;
  uint64_t total = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view head, name, extra, comment;
    if (!dir.readBytes(46, head) || little(head, 0, 4) != kCentral ||
        !dir.readBytes(little(head, 28, 2), name) || !dir.readBytes(little(head, 30, 2), extra) ||
        !dir.readBytes(little(head, 32, 2), comment))
      return bad("truncated directory");
    uint64_t flags = little(head, 8, 2), method = little(head, 10, 2), crc = little(head, 16, 4);
    uint64_t packed = little(head, 20, 4), plain = little(head, 24, 4), local = little(head, 42, 4);
    for (ByteReader e(extra); e.remaining() >= 4;) {
      uint64_t id, length;
      e.readLittle(2, id);
      e.readLittle(2, length);
      std::string_view field;
      if (!e.readBytes(length, field))
        return bad("truncated extra field");
      if (id != 1)
        continue;
      ByteReader f(field);
      for (uint64_t *v : {&plain, &packed, &local})
        if (*v == 0xffffffffu && !f.readLittle(8, *v))
          return bad("truncated zip64 field");
    }
    if (flags & 1)
      return bad("encrypted entry");
    if (method != 0 && method != 8)
      return absl::UnimplementedError(absl::StrCat("zip entry '", view(name), "' uses compression method ", method));
    if (local > bytes.size() || bytes.size() - local < 30 || little(bytes, local, 4) != kLocal)
      return bad("entry lies outside the file");
    uint64_t data = local + 30 + little(bytes, local + 26, 2) + little(bytes, local + 28, 2);
    if (data > bytes.size() || packed > bytes.size() - data)
      return bad("entry lies outside the file");
    if (plain > static_cast<uint64_t>(maxBytes) || (total += plain) > static_cast<uint64_t>(maxBytes))
      return absl::ResourceExhaustedError(absl::StrCat("contents of the zip exceed ", maxBytes, " bytes"));
    std::string_view body = bytes.substr(data, packed);
    std::string content;
    if (method == 0) {
      if (plain != packed)
        return bad("stored entry has two sizes");
      content = std::string(body);
    } else {
      absl::StatusOr<std::string> r = inflateRaw(body, plain);
      if (!r.ok())
        return r.status();
      content = std::move(*r);
    }
    if (crcOf(content) != crc)
      return bad(absl::StrCat("checksum of '", view(name), "' does not match"));
    entries.emplace_back(std::string(name), std::move(content));
  }
  return entries;
}

std::string zipBytes(const ZipEntries &entries) {
  std::string out, dir;
  bool any64 = false;
  for (const auto &entry : entries) {
    const std::string &name = entry.first, &content = entry.second;
    uint64_t size = content.size(), offset = out.size();
    uint32_t crc = crcOf(content);
    bool big = size >= 0xffffffffu, far = offset >= 0xffffffffu;
    any64 |= big || far;
    auto common = [&](std::string &to) {
      put(to, big || far ? 45 : 20, 2);
      put(to, 0x800, 2); // names are UTF-8
      put(to, 0, 2);
      put(to, 0, 2);
      put(to, (1 << 5) | 1, 2); // 1980-01-01
      put(to, crc, 4);
      put(to, big ? 0xffffffffu : size, 4);
      put(to, big ? 0xffffffffu : size, 4);
      put(to, name.size(), 2);
    };
    put(out, kLocal, 4);
    common(out);
    put(out, big ? 20 : 0, 2);
    out += name;
    if (big) {
      put(out, 1, 2);
      put(out, 16, 2);
      put(out, size, 8);
      put(out, size, 8);
    }
    out += content;
    put(dir, kCentral, 4);
    put(dir, 45, 2);
    common(dir);
    int extra = (big ? 16 : 0) + (far ? 8 : 0);
    put(dir, extra ? extra + 4 : 0, 2);
    put(dir, 0, 2); // comment
    put(dir, 0, 2);
    put(dir, 0, 2);
    put(dir, 0, 4);
    put(dir, far ? 0xffffffffu : offset, 4);
    dir += name;
    if (extra) {
      put(dir, 1, 2);
      put(dir, extra, 2);
      if (big) {
        put(dir, size, 8);
        put(dir, size, 8);
      }
      if (far)
        put(dir, offset, 8);
    }
  }
  uint64_t at = out.size(), n = entries.size();
  out += dir;
  if (any64 || at >= 0xffffffffu || n >= 0xffff) {
    uint64_t e64 = out.size();
    put(out, kEnd64, 4);
    put(out, 44, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 4);
    put(out, 0, 4);
    put(out, n, 8);
    put(out, n, 8);
    put(out, dir.size(), 8);
    put(out, at, 8);
    put(out, kLocator64, 4);
    put(out, 0, 4);
    put(out, e64, 8);
    put(out, 1, 4);
  }
  put(out, kEnd, 4);
  put(out, 0, 4);
  put(out, std::min<uint64_t>(n, 0xffff), 2);
  put(out, std::min<uint64_t>(n, 0xffff), 2);
  put(out, dir.size(), 4);
  put(out, std::min<uint64_t>(at, 0xffffffffu), 4);
  put(out, 0, 2);
  return out;
}

} // namespace lathe
