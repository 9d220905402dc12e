#include "test/cuda/emulator/Memory.h"
#include "test/cuda/emulator/Code.h"
#include "test/cuda/emulator/Shadow.h"

#include <cstring>
#include <sys/mman.h>

namespace lathe::emu {
namespace {
// never used twice: a stale address stays one that is freed
constexpr uint64_t MostReserved = uint64_t(1) << 40, LeastReserved = uint64_t(1) << 32;
constexpr uint64_t Page = 4096;
// allocations are aligned as a device's are, and no better
constexpr uint64_t Lead = 256;
uint64_t roundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
} // namespace

Region::Region() = default;
Region::~Region() = default;

Memory::~Memory() {
  for (auto &r : regions)
    if (r.second->kind == Region::Pinned)
      munmap(r.second->host, roundUp(r.second->size, Page));
  if (next)
    munmap(reinterpret_cast<void *>(next), reserved);
}

Region *Memory::allocate(uint64_t bytes, uint64_t align, Region::Kind kind, const std::string &name) {
  if (!next) {
    void *p = MAP_FAILED; // under valgrind there is less
    for (reserved = MostReserved; reserved >= LeastReserved; reserved /= 2) {
      p = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p != MAP_FAILED)
        break;
    }
    if (p == MAP_FAILED)
      return nullptr;
    next = reinterpret_cast<uint64_t>(p);
    nextDevice = Page;
  }
  uint64_t size = roundUp(bytes + Lead, Page);
  if (bytes == 0 || bytes > total || usedBytes + bytes > total || nextDevice + size + Page > reserved ||
      align > Lead)
    return nullptr;
  char *host = reinterpret_cast<char *>(next + nextDevice);
  if (mprotect(host, size, PROT_READ | PROT_WRITE))
    return nullptr;
  // a page that nobody may touch follows
  nextDevice += size + Page;
  host += Lead;
  std::memset(host, poison, bytes);
  auto region = std::make_unique<Region>();
  region->kind = kind;
  region->begin = DeviceBase + reinterpret_cast<uint64_t>(host);
  region->size = bytes;
  region->host = host;
  region->name = name;
  if (initcheck)
    region->initialized.assign(bytes, 0);
  usedBytes += bytes;
  Region *r = region.get();
  regions[r->begin] = std::move(region);
  return r;
}

Region *Memory::allocatePinned(uint64_t bytes) {
  if (!bytes || bytes > total)
    return nullptr;
  void *p = mmap(nullptr, roundUp(bytes, Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return nullptr;
  auto region = std::make_unique<Region>();
  region->kind = Region::Pinned;
  region->host = static_cast<char *>(p);
  region->begin = reinterpret_cast<uint64_t>(p);
  region->size = bytes;
  region->name = "pinned memory";
  Region *r = region.get();
  regions[r->begin] = std::move(region);
  return r;
}

bool Memory::release(uint64_t address, Region::Kind kind) {
  auto found = regions.find(address);
  if (found == regions.end() || found->second->kind != kind)
    return false;
  Region &r = *found->second;
  if (kind == Region::Pinned) {
    munmap(r.host, roundUp(r.size, Page));
  } else {
    madvise(r.host - Lead, roundUp(r.size + Lead, Page), MADV_DONTNEED);
    mprotect(r.host - Lead, roundUp(r.size + Lead, Page), PROT_NONE);
    usedBytes -= r.size;
  }
  freed[address] = r.size;
  regions.erase(found);
  return true;
}

Region *Memory::find(uint64_t address) {
  auto after = regions.upper_bound(address);
  if (after == regions.begin())
    return nullptr;
  Region *r = std::prev(after)->second.get();
  return address - r->begin < r->size ? r : nullptr;
}

Region *Memory::find(uint64_t address, uint64_t bytes) {
  Region *r = find(address);
  return r && bytes <= r->size - (address - r->begin) ? r : nullptr;
}

std::string Memory::describe(uint64_t address) {
  auto near = [&](uint64_t begin, uint64_t size, const char *what) {
    uint64_t at = address - begin;
    return std::to_string(at < size ? at : at - size) +
           (at < size ? " bytes into " : " bytes after the end of ") + what + " of " + std::to_string(size) +
           " bytes";
  };
  if (address < Page)
    return "a null pointer with the offset " + std::to_string(address);
  std::string text = "no allocation";
  auto after = regions.upper_bound(address);
  uint64_t best = uint64_t(1) << 30;
  if (after != regions.begin()) {
    const Region &r = *std::prev(after)->second;
    uint64_t past = address - r.begin;
    if (past < r.size + best) {
      best = past;
      text = near(r.begin, r.size, r.name.empty() ? "an allocation" : r.name.c_str());
    }
  }
  auto old = freed.upper_bound(address);
  if (old != freed.begin()) {
    --old;
    if (address - old->first < old->second)
      return near(old->first, old->second, "freed memory");
  }
  if (after != regions.end() && after->first - address < 4096 && best >= Page)
    return std::to_string(after->first - address) + " bytes before an allocation of " +
           std::to_string(after->second->size) + " bytes";
  return text;
}

size_t Memory::count(Region::Kind kind) const {
  size_t n = 0;
  for (const auto &r : regions)
    n += r.second->kind == kind;
  return n;
}

} // namespace lathe::emu
