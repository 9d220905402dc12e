#include "base/Memory.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace lathe {
namespace {

constexpr size_t smallestCounted = 4096;

std::atomic<int64_t> inUse{0};

/// The limit of version 2's control group at the root of what this process sees; "max" reads as none.
int64_t groupLimit() {
  int64_t limit = INT64_MAX;
  if (FILE *f = std::fopen("/sys/fs/cgroup/memory.max", "r")) {
    long long value;
    if (std::fscanf(f, "%lld", &value) == 1 && value > 0)
      limit = value;
    std::fclose(f);
  }
  return limit;
}

/// What LATHE_MAX_MEMORY says; 0 where that is no number of bytes.
int64_t chosenLimit() {
  const char *text = std::getenv("LATHE_MAX_MEMORY");
  if (!text || !*text)
    return 0;
  char *end;
  const long long value = std::strtoll(text, &end, 10);
  return *end || value < 0 ? 0 : value;
}

std::atomic<int64_t> &budget() {
  static std::atomic<int64_t> bytes{defaultMemoryBudget()};
  return bytes;
}

} // namespace

int64_t defaultMemoryBudget() {
  if (int64_t chosen = chosenLimit())
    return chosen;
  int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::max(std::min(machine, groupLimit()) / 10 * 9, int64_t(4) << 30);
}

int64_t memoryBudget() { return budget().load(std::memory_order_relaxed); }
void setMemoryBudget(int64_t bytes) { budget().store(bytes, std::memory_order_relaxed); }
int64_t memoryInUse() { return inUse.load(std::memory_order_relaxed); }

bool takeMemory(size_t bytes) {
  if (bytes < smallestCounted)
    return true;
  int64_t most = memoryBudget();
  if (bytes > static_cast<size_t>(most))
    return false;
  if (inUse.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed) > most - static_cast<int64_t>(bytes)) {
    inUse.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    return false;
  }
  return true;
}

void giveMemoryBack(size_t bytes) {
  if (bytes >= smallestCounted)
    inUse.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

} // namespace lathe
