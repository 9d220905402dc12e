// What runs: a warp's lanes that are at one place form a fragment. Lanes that part meet again at the block
// that all their ways lead to (a Join), or stay apart when one side has to wait for the other.
#ifndef LATHE_TEST_CUDA_EMULATOR_EXEC_H
#define LATHE_TEST_CUDA_EMULATOR_EXEC_H

#include "test/cuda/emulator/Code.h"
#include "test/cuda/emulator/Findings.h"
#include "test/cuda/emulator/Memory.h"

#include <array>
#include <random>

namespace lathe::emu {

struct Block;
struct Launch;
struct Warp;

/// Registers of one call.
struct Frame {
  const Code *code = nullptr;
  char *regs = nullptr; ///< aligned, within owned
  std::unique_ptr<char[]> owned;
  std::shared_ptr<Frame> caller;
  const Instr *call = nullptr;
};

/// Where lanes that parted meet.
struct Join {
  const Instr *at = nullptr;
  std::shared_ptr<Frame> frame;
  Mask expected = 0, arrived = 0;
  std::shared_ptr<Join> parent;
};

struct Fragment {
  enum State : uint8_t { Ready, AtBarrier, AtWarpSync };
  const Instr *pc = nullptr;
  Mask mask = 0;
  State state = Ready;
  uint8_t barrier = 0;
  Mask waitMask = 0; ///< lanes that a warp-wide instruction waits for
  std::shared_ptr<Frame> frame;
  std::shared_ptr<Join> join;
};

/// A group of copies by cp.async: done when waited for.
struct AsyncCopy {
  char *to;
  uint64_t shared; ///< offset of the destination
  uint8_t bytes;
  uint8_t data[16];
};

struct Warp {
  Block *block = nullptr;
  unsigned index = 0;
  Mask all = 0; ///< lanes that exist
  Mask live = 0;
  std::vector<Fragment> fragments;
  std::vector<std::shared_ptr<Join>> waiting; ///< joins that some lanes have reached
  std::shared_ptr<Frame> entryFrame;
  unsigned patience = 0; ///< turns that some lanes have waited for others to come together with them
  std::vector<char> local; ///< of each lane, one after the other
  uint32_t localStride = 0;
  std::vector<std::vector<AsyncCopy>> copies[WarpSize]; ///< groups of each lane, the last one open
  std::shared_ptr<struct Products> products;            ///< of its warpgroup's, what it has under way; null: none yet
  std::vector<uint32_t> laneClock;                      ///< racecheck: [lane][other]
};

struct Barrier {
  unsigned arrived = 0, expected = 0;
  unsigned holds = 0, voted = 0; ///< of bar.red: lanes whose predicate holds, all lanes
};

struct Block {
  Launch *launch = nullptr;
  unsigned ctaid[3] = {0, 0, 0};
  uint64_t number = 0; ///< in the grid
  unsigned sm = 0;
  std::vector<Warp> warps;
  std::vector<char> shared;
  std::vector<uint8_t> sharedState;            ///< a byte each, when checked: see Shadow.cpp
  std::vector<uint16_t> writers;               ///< with products of warpgroups, threads that have not fenced what they wrote, + 1
  std::vector<std::vector<std::array<uint64_t, 3>>> products; ///< that each warpgroup has begun: instruction and descriptors
  std::unique_ptr<struct SharedShadow> shadow; ///< of racecheck
  Block();
  Block(Block &&) noexcept;
  ~Block();
  Barrier barriers[16];
  unsigned threads = 0, live = 0;
};

/// The running fragment, as handlers see it.
struct Exec {
  char *regs = nullptr;
  Mask mask = 0;
  const Instr *next = nullptr;
  bool stop = false;
  int64_t budget = 0;
  Fragment current; ///< is in no list while it runs; mask and regs repeat what it has
  Warp *warp = nullptr;
  Block *block = nullptr;
  Launch *launch = nullptr;

  template <class T>
  T *reg(uint32_t place) {
    return reinterpret_cast<T *>(regs + place);
  }
  Mask &pred(uint32_t place) { return *reinterpret_cast<Mask *>(regs + place); }
};

/// One launch of a kernel.
struct Launch {
  const Image *image = nullptr;
  const Code *code = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t dynamicShared = 0;
  std::vector<char> params;
  Memory *memory = nullptr;
  Findings *findings = nullptr;
  uint64_t id = 0;
  std::mt19937_64 random;
  bool failed = false; ///< a finding that ends the launch
  uint64_t instructions = 0;
  uint64_t branches = 0, maxBranches = 0; ///< taken backwards; more than that is a kernel that does not end
  unsigned sms = 1, residentBlocks = 1;
  std::vector<const Region *> hints; ///< by Instr::id: where it last found its memory
  bool initcheck = false, racecheck = false;
};

/// The registers of a call, or of an entry: immediate values, special registers.
std::shared_ptr<Frame> makeFrame(const Code &code, Warp &warp);
void fillSpecials(const Code &code, Warp &warp, char *regs);

/// Lanes that reached the end of all calls: they are gone, and nobody waits for them.
void endLanes(Exec &x, Mask m);
/// For a warp none of whose fragments can go on: lets lanes meet that wait for each other in a warp-wide
/// instruction; with `apart`, lanes that wait where branches come together go on without the others. False
/// when nothing changed.
bool wakeWarp(Warp &warp, bool apart);
/// Puts fragments at one place together.
void mergeFragments(Warp &warp);
/// What a warp's fragments wait for, for messages.
std::string waitsOf(const Block &block);

/// Runs all blocks. Findings tell what went wrong.
void runLaunch(Launch &launch);

/// Reports for the lowest lane of `lanes`; ends the launch when the finding is one that no kernel survives.
void report(Exec &x, const Instr &i, Mask lanes, Finding::Kind kind, const std::string &what);

/// How the addresses of a warp's access lie.
enum class Pattern : uint8_t { Failed, Uniform, Consecutive, Scattered };
/// The addresses of an access of `bytes` in the space of the instruction; lanes not in m get that of one
/// which is.
void accessAddresses(Exec &x, const Instr &i, Mask m, uint64_t *address);
/// Checks an access and replaces addresses by host addresses; Failed after a finding.
Pattern resolve(Exec &x, const Instr &i, Mask m, Space space, uint64_t *address, unsigned bytes, bool write);
/// initcheck and racecheck of an access, before resolve. See Shadow.cpp.
enum class Access : uint8_t { Read, Write, Atomic };
void checkAccess(Exec &x, const Instr &i, Mask m, Space space, const uint64_t *address, unsigned bytes,
                 Access access);
inline bool checked(const Exec &x) { return x.launch->initcheck || x.launch->racecheck; }

/// Whether all living lanes of `members` run the instruction now; else the fragment waits for them and this is false.
bool haveAll(Exec &x, const Instr &i, Mask m, Mask members);

/// The coordinates of a lane's thread.
void threadOf(const Exec &x, unsigned lane, unsigned (&tid)[3]);

inline unsigned lowestLane(Mask m) { return static_cast<unsigned>(__builtin_ctz(m)); }

#if defined(__clang__)
#define LATHE_LANES _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < WarpSize; ++l)
#else
#define LATHE_LANES _Pragma("GCC ivdep") for (unsigned l = 0; l < WarpSize; ++l)
#endif

/// d[l] = f(l) for the lanes of m. `f` has no effect, so that it may run for the others too.
template <class R, class F>
inline void eachLane(R *d, Mask m, F f) {
  if (m == Full) {
    LATHE_LANES d[l] = f(l);
    return;
  }
  R r[WarpSize];
  LATHE_LANES r[l] = f(l);
  LATHE_LANES d[l] = (m >> l & 1) ? r[l] : d[l];
}

/// Mask of the lanes for which f(l) holds.
template <class F>
inline Mask lanesWhere(F f) {
  Mask r = 0;
  LATHE_LANES r |= static_cast<Mask>(f(l)) << l;
  return r;
}

template <class R, class T, class Op>
void unaryLanes(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a);
  eachLane(x.reg<R>(i.d), m, [a](unsigned l) { return Op::run(a[l]); });
}
template <class R, class T, class Op>
void binaryLanes(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a), *b = x.reg<T>(i.b);
  eachLane(x.reg<R>(i.d), m, [a, b](unsigned l) { return Op::run(a[l], b[l]); });
}
template <class R, class T, class C, class Op>
void ternaryLanes(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a), *b = x.reg<T>(i.b);
  const C *c = x.reg<C>(i.c);
  eachLane(x.reg<R>(i.d), m, [a, b, c](unsigned l) { return Op::run(a[l], b[l], c[l]); });
}

} // namespace lathe::emu

#endif
