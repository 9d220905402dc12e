// cp.async: what is copied is read when the instruction runs and written when its group is waited for; until
// then the destination holds poison.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"

#include <algorithm>
#include <cstring>

namespace lathe::emu {

// in Shadow.cpp
void markCopy(Block &block, uint64_t offset, unsigned bytes, bool pending, unsigned thread);

namespace {

/// b: places of the second address; c: bytes to read, the rest is zeros. imm of the second address is in
/// extra.
void copyAsync(Exec &x, const Instr &i, Mask m) {
  Instr from = i;
  from.a = i.b;
  from.imm = static_cast<int32_t>(i.extra->places[0]);
  from.wideAddress = i.extra->places[1];
  uint64_t target[WarpSize], shared[WarpSize], source[WarpSize];
  accessAddresses(x, i, m, target);
  accessAddresses(x, from, m, source);
  std::memcpy(shared, target, sizeof(shared));
  const uint32_t *size = i.c == None ? nullptr : x.reg<uint32_t>(i.c);
  if (checked(x)) {
    checkAccess(x, i, m, Space::Global, source, i.bytes, Access::Read);
    checkAccess(x, i, m, Space::Shared, target, i.bytes, Access::Write);
  }
  // bytes that are not read may lie anywhere
  Mask reads = m;
  if (size)
    reads &= lanesWhere([size](unsigned l) { return size[l] != 0; });
  if (resolve(x, i, m, Space::Shared, target, i.bytes, true) == Pattern::Failed)
    return;
  if (reads) {
    uint64_t first = source[lowestLane(reads)];
    LATHE_LANES source[l] = (reads >> l & 1) ? source[l] : first;
    if (resolve(x, i, reads, Space::Global, source, i.bytes, false) == Pattern::Failed)
      return;
  }
  for (unsigned l = 0; l < WarpSize; ++l) {
    if (!(m >> l & 1))
      continue;
    AsyncCopy copy{};
    copy.to = reinterpret_cast<char *>(target[l]);
    copy.shared = shared[l];
    copy.bytes = i.bytes;
    unsigned n = size ? std::min<unsigned>(size[l], i.bytes) : i.bytes;
    if (n)
      std::memcpy(copy.data, reinterpret_cast<const char *>(source[l]), n);
    std::memset(copy.to, 0xdb, i.bytes);
    markCopy(*x.block, copy.shared, i.bytes, true, x.warp->index * WarpSize + l);
    auto &groups = x.warp->copies[l];
    if (groups.empty())
      groups.emplace_back();
    groups.back().push_back(copy);
  }
}

void finish(Exec &x, std::vector<AsyncCopy> &group, unsigned lane) {
  for (const AsyncCopy &c : group) {
    std::memcpy(c.to, c.data, c.bytes);
    markCopy(*x.block, c.shared, c.bytes, false, x.warp->index * WarpSize + lane);
  }
}

void commitGroup(Exec &x, const Instr &, Mask m) {
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1) {
      auto &groups = x.warp->copies[l];
      if (groups.empty())
        groups.emplace_back();
      groups.emplace_back();
    }
}

/// Waits until at most imm groups are under way; imm < 0: for all copies, committed or not.
void waitGroup(Exec &x, const Instr &i, Mask m) {
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1) {
      auto &groups = x.warp->copies[l];
      size_t keep = i.imm < 0 ? 0 : static_cast<size_t>(i.imm) + 1;
      while (groups.size() > keep) {
        finish(x, groups.front(), l);
        groups.erase(groups.begin());
      }
    }
}

} // namespace

void addCopy(DecodeTable &table) {
  table["cp"] = [](Decoder &d) {
    if (!d.take("async"))
      d.fail("no such copy");
    if (d.take("commit_group")) {
      d.done(0);
      d.i.fn = commitGroup;
      return;
    }
    if (d.take("wait_all")) {
      d.done(0);
      d.i.fn = waitGroup;
      d.i.imm = -1;
      return;
    }
    if (d.take("wait_group")) {
      d.done(1);
      d.i.fn = waitGroup;
      d.i.imm = d.immediate(0);
      if (d.i.imm < 0)
        d.fail("a negative number of groups");
      return;
    }
    bool cg = d.take("cg");
    if (!cg && !d.take("ca"))
      d.fail("neither ca nor cg");
    d.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
    if ((!d.take("shared") && !d.take("shared::cta")) || !d.take("global"))
      d.fail("copies from global to shared memory only");
    size_t n = d.s.operands.size();
    d.done(n == 4 ? 4 : 3);
    int64_t bytes = d.immediate(2);
    if (bytes != 16 && (cg || (bytes != 4 && bytes != 8)))
      d.fail("no such size");
    d.i.bytes = static_cast<uint8_t>(bytes);
    d.i.space = Space::Shared;
    Space from = Space::Global, to = Space::Shared;
    d.address(d.s.operands[1], from);
    uint32_t place = d.i.a;
    int64_t offset = d.i.imm;
    bool wide = d.i.wideAddress;
    d.i.wideAddress = true;
    d.address(d.s.operands[0], to);
    d.i.b = place;
    if (offset != static_cast<int32_t>(offset))
      d.fail("an offset that is not supported");
    d.extra().places = {static_cast<uint32_t>(offset), wide};
    if (n == 4)
      d.i.c = d.source(3, Type{'u', 32, false});
    d.i.fn = copyAsync;
  };
}

} // namespace lathe::emu
