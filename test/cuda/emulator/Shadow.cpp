// initcheck: memory that nobody has written is read. racecheck: two threads touch a word, one of them writes,
// and nothing orders them. What orders: barriers within a block, bar.warp.sync among the lanes it names, the
// end of a launch. Atomic accesses do not race with each other. Blocks of one launch are never ordered. A
// barrier for part of a block counts as one for all of it, which may miss a race but never invents one.
#include "test/cuda/emulator/Shadow.h"
#include "test/cuda/emulator/Exec.h"

#include <algorithm>

namespace lathe::emu {

namespace {
constexpr uint8_t Initialized = 1, Pending = 2;
} // namespace

void orderLanes(Exec &x, Mask m) {
  if (!x.launch->racecheck)
    return;
  std::vector<uint32_t> &k = x.warp->laneClock;
  uint32_t joined[WarpSize] = {};
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1)
      for (unsigned o = 0; o < WarpSize; ++o)
        joined[o] = std::max(joined[o], k[l * WarpSize + o]);
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1) {
      std::copy(joined, joined + WarpSize, &k[l * WarpSize]);
      ++k[l * WarpSize + l];
    }
}

void orderBlock(Block &block) {
  if (block.shadow)
    ++block.shadow->epoch;
}

/// Notes what a thread has written to shared memory and products of warpgroups must not read before it has fenced that.
static void markWriter(Block &block, uint64_t at, unsigned bytes, unsigned thread) {
  if (!block.writers.empty())
    std::fill_n(block.writers.begin() + static_cast<long>(at), bytes, static_cast<uint16_t>(thread + 1));
}

namespace {

class RaceCheck {
public:
  RaceCheck(Exec &x, const Instr &i, Access access) : x(x), i(i) {
    atomic = access == Access::Atomic || i.flag;
    writes = access != Access::Read;
  }

  /// One lane's access to some bytes of a word; false after a finding.
  bool touch(WordShadow &word, unsigned lane, uint8_t bytes) {
    Touch now;
    now.launch = x.launch->id;
    now.block = x.block->number;
    now.epoch = x.block->shadow->epoch;
    now.laneClock = x.warp->laneClock[lane * WarpSize + lane];
    now.line = i.line;
    now.thread = static_cast<uint16_t>(x.warp->index * WarpSize + lane);
    now.bytes = bytes;
    now.atomic = atomic;
    if (races(word.write, now, lane))
      return tell(word.write, lane, writes ? "write" : "read",
                  word.write.atomic ? "an atomic access" : "a write");
    if (writes && (races(word.read, now, lane) || races(word.earlier, now, lane)))
      return tell(races(word.read, now, lane) ? word.read : word.earlier, lane, "write", "a read");
    if (writes) {
      word.write = now;
    } else {
      if (word.read.launch == now.launch && (word.read.block != now.block || word.read.thread != now.thread))
        word.earlier = word.read;
      word.read = now;
    }
    return true;
  }

private:
  Exec &x;
  const Instr &i;
  bool atomic, writes;

  bool races(const Touch &old, const Touch &now, unsigned lane) const {
    if (old.launch != now.launch || !(old.bytes & now.bytes) || (old.atomic && now.atomic))
      return false;
    if (old.block != now.block)
      return true;
    if (old.thread == now.thread || old.epoch != now.epoch)
      return false;
    bool sameWarp = old.thread / WarpSize == now.thread / WarpSize;
    return !(sameWarp && x.warp->laneClock[lane * WarpSize + old.thread % WarpSize] >= old.laneClock);
  }

  bool tell(const Touch &old, unsigned lane, const char *what, const char *other) {
    report(x, i, Mask(1) << lane, Finding::Racecheck,
           std::string(what) + " races with " + other + " by thread " + std::to_string(old.thread) +
               " of block " + std::to_string(old.block) + " at line " + std::to_string(old.line));
    return false;
  }
};

void checkLane(Exec &x, const Instr &i, unsigned l, Space space, uint64_t address, unsigned bytes,
               Access access, RaceCheck &race) {
  Launch &launch = *x.launch;
  Block &block = *x.block;
  std::vector<WordShadow> *words = nullptr;
  uint8_t *state = nullptr;
  uint64_t at = 0;
  if (space == Space::Shared) {
    at = address - SharedBase;
    if (at > block.shared.size() || bytes > block.shared.size() - at)
      return;
    if (launch.initcheck)
      state = &block.sharedState[at];
    if (launch.racecheck)
      words = &block.shadow->words;
  } else {
    Region *r = launch.memory->find(address, bytes);
    if (!r || r->kind == Region::Constant || r->kind == Region::Pinned)
      return;
    at = address - r->begin;
    if (launch.initcheck && !r->initialized.empty())
      state = &r->initialized[at];
    if (launch.racecheck) {
      if (!r->shadow) {
        r->shadow = std::make_unique<GlobalShadow>();
        r->shadow->words.resize((r->size + 3) / 4);
      }
      words = &r->shadow->words;
    }
  }
  if (state) {
    if (access != Access::Write)
      for (unsigned b = 0; b < bytes; ++b)
        if (!(state[b] & Initialized) || (state[b] & Pending)) {
          report(x, i, Mask(1) << l, Finding::Initcheck,
                 std::string(space == Space::Shared ? "shared" : "global") + " memory is read " +
                     (state[b] & Pending ? "before the asynchronous copy to it was waited for"
                                         : "that nobody has written") +
                     ", byte " + std::to_string(at + b));
          break;
        }
    if (access != Access::Read) {
      if (std::any_of(state, state + bytes, [](uint8_t s) { return s & Pending; }))
        report(x, i, Mask(1) << l, Finding::Racecheck,
               "shared memory is written while an asynchronous copy to it is under way, byte " + std::to_string(at));
      std::fill(state, state + bytes, Initialized);
      if (space == Space::Shared)
        markWriter(block, at, bytes, x.warp->index * WarpSize + l);
    }
  }
  if (words)
    for (uint64_t w = at / 4; w <= (at + bytes - 1) / 4; ++w) {
      uint8_t mask = 0;
      for (uint64_t b = 0; b < 4; ++b)
        if (w * 4 + b >= at && w * 4 + b < at + bytes)
          mask |= static_cast<uint8_t>(1 << b);
      if (!race.touch((*words)[w], l, mask))
        break;
    }
}

} // namespace

void checkAccess(Exec &x, const Instr &i, Mask m, Space space, const uint64_t *address, unsigned bytes,
                 Access access) {
  if (space == Space::Reg || space == Space::Param || space == Space::Local || space == Space::Const)
    return;
  RaceCheck race(x, i, access);
  for (unsigned l = 0; l < WarpSize; ++l) {
    if (!(m >> l & 1))
      continue;
    uint64_t a = address[l];
    Space s = space;
    if (space == Space::Generic) {
      uint64_t window = a & WindowMask;
      if (window == LocalWindow)
        continue;
      s = window == SharedWindow ? Space::Shared : Space::Global;
      if (window == SharedWindow)
        a -= window;
    }
    checkLane(x, i, l, s, a, bytes, access, race);
  }
}

void fenceProxy(Exec &x, Mask m) {
  const unsigned first = x.warp->index * WarpSize + 1;
  for (uint16_t &w : x.block->writers)
    if (w - first < WarpSize && (m >> (w - first) & 1))
      w = 0;
}

bool isUnfenced(const Block &block, uint64_t offset, unsigned bytes) {
  if (block.writers.empty())
    return false;
  auto from = block.writers.begin() + static_cast<long>(offset - SharedBase);
  return std::any_of(from, from + bytes, [](uint16_t w) { return w != 0; });
}

/// Marks shared memory as the destination of an asynchronous copy of a thread's that is under way, or as written.
void markCopy(Block &block, uint64_t offset, unsigned bytes, bool pending, unsigned thread) {
  if (block.sharedState.empty())
    return;
  markWriter(block, offset - SharedBase, bytes, thread);
  for (uint64_t at = offset - SharedBase; bytes--; ++at)
    block.sharedState[at] = pending ? Pending : Initialized;
}

} // namespace lathe::emu
