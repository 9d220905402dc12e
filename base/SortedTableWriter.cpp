#include "base/Crc32c.h"
#include "base/ProtoWire.h"
#include "base/SortedTable.h"

#include <algorithm>

namespace lathe {
namespace {

constexpr size_t kBlockBytes = 4096;
constexpr int kRestartInterval = 16;

/// Entries with shared prefixes, then the offsets of those that share nothing.
class Block {
public:
  void add(std::string_view key, std::string_view value) {
    size_t shared = 0;
    if (count % kRestartInterval == 0)
      restarts.push_back(static_cast<uint32_t>(bytes.size()));
    else
      while (shared < std::min(last.size(), key.size()) && last[shared] == key[shared])
        ++shared;
    appendVarint(bytes, shared);
    appendVarint(bytes, key.size() - shared);
    appendVarint(bytes, value.size());
    bytes.append(key.substr(shared));
    bytes.append(value);
    last = std::string(key);
    ++count;
  }
  bool empty() const { return count == 0; }
  size_t size() const { return bytes.size(); }
  const std::string &lastKey() const { return last; }

  /// Appends the block with its trailer to the file and gives its handle.
  std::string finish(std::string &file) {
    if (restarts.empty())
      restarts.push_back(0);
    for (uint32_t restart : restarts)
      appendLittle(bytes, restart, 4);
    appendLittle(bytes, restarts.size(), 4);
    std::string handle;
    appendVarint(handle, file.size());
    appendVarint(handle, bytes.size());
    bytes.push_back(0); // not compressed
    uint32_t crc = crc32cMask(crc32c(bytes.data(), bytes.size()));
    appendLittle(bytes, crc, 4);
    file += bytes;
    *this = Block();
    return handle;
  }

private:
  std::string bytes, last;
  std::vector<uint32_t> restarts;
  int count = 0;
};

} // namespace

std::string writeSortedTable(const TableEntries &entries) {
  std::string file;
  Block block, index;
  for (const auto &[key, value] : entries) {
    block.add(key, value);
    if (block.size() >= kBlockBytes) {
      std::string last = block.lastKey();
      index.add(last, block.finish(file));
    }
  }
  if (!block.empty()) {
    std::string last = block.lastKey();
    index.add(last, block.finish(file));
  }
  std::string footer = Block().finish(file);
  footer += index.finish(file);
  footer.resize(40, '\0');
  appendLittle(footer, 0xdb4775248b80fb57u, 8);
  return file + footer;
}

} // namespace lathe
