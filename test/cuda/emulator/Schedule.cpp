// Runs a launch: which block, which warp and which side of a divergence goes on is drawn from the seed.
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Shadow.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace lathe::emu {

Block::Block() = default;
Block::Block(Block &&) noexcept = default;
Block::~Block() = default;

void threadOf(const Exec &x, unsigned lane, unsigned (&tid)[3]) {
  const unsigned *n = x.launch->block;
  unsigned t = x.warp->index * WarpSize + lane;
  tid[0] = t % n[0];
  tid[1] = t / n[0] % n[1];
  tid[2] = t / n[0] / n[1];
}

namespace {
std::string triple(const unsigned *v) {
  return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}
} // namespace

void report(Exec &x, const Instr &i, Mask lanes, Finding::Kind kind, const std::string &what) {
  unsigned tid[3];
  threadOf(x, lowestLane(lanes), tid);
  const auto &lines = x.launch->image->lines;
  std::string source = i.line && i.line <= lines.size() ? lines[i.line - 1] : "";
  size_t begin = source.find_first_not_of(" \t");
  source = begin == std::string::npos ? "" : source.substr(begin);
  for (char &c : source)
    if (c == '\t')
      c = ' ';
  x.launch->findings->add(kind, x.launch->code->name, static_cast<int>(i.line),
                          "kernel '" + x.launch->code->name + "', block " + triple(x.block->ctaid) +
                              ", thread " + triple(tid) + ", line " + std::to_string(i.line) + " '" + source +
                              "': " + what);
  // races and unset memory are told and gone past, so that one run shows all of them
  bool ends = kind != Finding::Racecheck && kind != Finding::Initcheck;
  if (ends) {
    x.launch->failed = true;
    x.stop = true;
  }
}

void fillSpecials(const Code &code, Warp &warp, char *regs) {
  const Block &b = *warp.block;
  const Launch &launch = *b.launch;
  const unsigned *n = launch.block;
  for (const Code::Fill &f : code.fills)
    for (unsigned l = 0; l < WarpSize; ++l) {
      unsigned t = warp.index * WarpSize + l;
      uint64_t v = 0;
      switch (f.which) {
      case Special::TidX:
        v = t % n[0];
        break;
      case Special::TidY:
        v = t / n[0] % n[1];
        break;
      case Special::TidZ:
        v = t / n[0] / n[1];
        break;
      case Special::NtidX:
      case Special::NtidY:
      case Special::NtidZ:
        v = n[static_cast<int>(f.which) - static_cast<int>(Special::NtidX)];
        break;
      case Special::CtaidX:
      case Special::CtaidY:
      case Special::CtaidZ:
        v = b.ctaid[static_cast<int>(f.which) - static_cast<int>(Special::CtaidX)];
        break;
      case Special::NctaidX:
      case Special::NctaidY:
      case Special::NctaidZ:
        v = launch.grid[static_cast<int>(f.which) - static_cast<int>(Special::NctaidX)];
        break;
      case Special::Laneid:
        v = l;
        break;
      case Special::Warpid:
        v = warp.index;
        break;
      case Special::Nwarpid:
        v = 64;
        break;
      case Special::Smid:
        v = b.sm;
        break;
      case Special::Nsmid:
        v = launch.sms;
        break;
      case Special::Gridid:
        v = launch.id;
        break;
      case Special::LaneEq:
        v = 1u << l;
        break;
      case Special::LaneLt:
        v = (1u << l) - 1;
        break;
      case Special::LaneLe:
        v = (2u << l) - 1u;
        break;
      case Special::LaneGt:
        v = ~((2u << l) - 1u);
        break;
      case Special::LaneGe:
        v = ~((1u << l) - 1u);
        break;
      case Special::DynamicShared:
        v = launch.dynamicShared;
        break;
      case Special::TotalShared:
        v = launch.code->staticShared + launch.dynamicShared;
        break;
      }
      if (f.bytes < 8)
        v &= (uint64_t(1) << (8 * f.bytes)) - 1;
      std::memcpy(regs + f.place + l * f.bytes, &v, f.bytes);
    }
}

std::shared_ptr<Frame> makeFrame(const Code &code, Warp &warp) {
  auto frame = std::make_shared<Frame>();
  frame->code = &code;
  frame->owned.reset(new char[code.initial.size() + 64]);
  uint64_t p = reinterpret_cast<uint64_t>(frame->owned.get());
  frame->regs = frame->owned.get() + ((64 - p % 64) % 64);
  std::memcpy(frame->regs, code.initial.data(), code.initial.size());
  fillSpecials(code, warp, frame->regs);
  return frame;
}

namespace {

/// An instruction with registers that may be undefined.
void runTracked(Exec &x, const Instr &i, Mask m) {
  for (const auto &r : i.extra->reads)
    if (Mask undefined = m & ~x.pred(r.first))
      report(x, i, undefined, Finding::Initcheck,
             "the register " + r.second + " is read before it is written");
  char *regs = x.regs;
  i.fn(x, i, m);
  for (const auto &r : i.extra->writes)
    *reinterpret_cast<Mask *>(regs + r.first) |= m;
}

void runFragment(Exec &x) {
  x.mask = x.current.mask;
  x.regs = x.current.frame->regs;
  x.stop = false;
  const Instr *pc = x.current.pc;
  for (;;) {
    const Instr &i = *pc;
    Mask m = x.mask;
    if (i.guard != None) {
      Mask p = x.pred(i.guard);
      m &= i.guardNegated ? ~p : p;
      if (!m) {
        ++pc;
        continue;
      }
    }
    x.next = pc + 1;
    if (i.tracked)
      runTracked(x, i, m);
    else
      i.fn(x, i, m);
    pc = x.next;
    if (x.stop)
      break;
  }
  x.current.pc = pc;
}

/// One turn of a warp with a fragment that can go on.
void runWarp(Exec &x, Warp &warp) {
  auto &list = warp.fragments;
  size_t n = list.size(), start = n > 1 ? x.launch->random() % n : 0;
  for (size_t k = 0; k < n; ++k) {
    size_t at = (start + k) % n;
    if (list[at].state != Fragment::Ready)
      continue;
    x.warp = &warp;
    x.block = warp.block;
    x.current = std::move(list[at]);
    list.erase(list.begin() + static_cast<long>(at));
    // turns are short enough that a loop which waits for others does not keep them from going on for long
    int64_t budget = warp.patience ? 32 : 32 + static_cast<int64_t>(x.launch->random() % 512);
    x.budget = budget;
    runFragment(x);
    x.launch->branches += static_cast<uint64_t>(budget - x.budget) + 1;
    if (x.current.mask)
      list.push_back(std::move(x.current));
    x.current = Fragment();
    return;
  }
}

bool canRun(const Warp &warp) {
  for (const Fragment &f : warp.fragments)
    if (f.state == Fragment::Ready)
      return true;
  return false;
}

enum class Outcome { Done, Spinning, Failed };

/// Runs a block until it ends, or for some turns.
Outcome runBlock(Launch &launch, Block &block, unsigned turns) {
  Exec x;
  x.launch = &launch;
  for (unsigned turn = 0; turn < turns;) {
    if (launch.failed)
      return Outcome::Failed;
    if (!block.live)
      return Outcome::Done;
    size_t n = block.warps.size(), start = n > 1 ? launch.random() % n : 0;
    Warp *chosen = nullptr;
    for (size_t k = 0; k < n && !chosen; ++k) {
      Warp &w = block.warps[(start + k) % n];
      if (w.live && (canRun(w) || wakeWarp(w, false)))
        chosen = &w;
    }
    for (size_t k = 0; k < n && !chosen; ++k) {
      Warp &w = block.warps[(start + k) % n];
      if (w.live && wakeWarp(w, true))
        chosen = &w;
    }
    if (!chosen) {
      x.block = &block;
      for (Warp &w : block.warps)
        if (!w.fragments.empty()) {
          x.warp = &w;
          report(x, *w.fragments[0].pc, w.fragments[0].mask, Finding::Synccheck,
                 "the block cannot go on: " + waitsOf(block));
          return Outcome::Failed;
        }
      return Outcome::Done;
    }
    // lanes that spin until others have done something must not keep those waiting
    chosen->patience = chosen->waiting.empty() ? 0 : chosen->patience + 1;
    if (chosen->patience > 16 && wakeWarp(*chosen, true))
      chosen->patience = 0;
    runWarp(x, *chosen);
    ++turn;
    if (launch.branches > launch.maxBranches && !launch.failed) {
      x.block = &block;
      x.warp = chosen;
      const Instr &where = chosen->fragments.empty() ? *launch.code->instrs.data() : *chosen->fragments[0].pc;
      report(x, where, chosen->live ? chosen->live : 1, Finding::Synccheck,
             "the kernel does not end: " + std::to_string(launch.branches) + " branches taken backwards");
      return Outcome::Failed;
    }
  }
  return block.live ? Outcome::Spinning : Outcome::Done;
}

void startBlock(Launch &launch, Block &block, uint64_t number) {
  block.launch = &launch;
  block.number = number;
  block.ctaid[0] = static_cast<unsigned>(number % launch.grid[0]);
  block.ctaid[1] = static_cast<unsigned>(number / launch.grid[0] % launch.grid[1]);
  block.ctaid[2] = static_cast<unsigned>(number / launch.grid[0] / launch.grid[1]);
  block.sm = static_cast<unsigned>(launch.random() % launch.sms);
  block.threads = block.live = launch.block[0] * launch.block[1] * launch.block[2];
  uint64_t shared = launch.code->sharedEnd + launch.dynamicShared;
  block.shared.assign(shared, static_cast<char>(0xa5 + number));
  if (launch.initcheck)
    block.sharedState.assign(shared, 0);
  block.products.clear();
  if (launch.initcheck && launch.image->ptx.target == "sm_90a")
    block.writers.assign(shared, 0);
  if (launch.racecheck) {
    block.shadow = std::make_unique<SharedShadow>();
    block.shadow->words.resize((shared + 3) / 4);
  }
  for (Barrier &b : block.barriers)
    b = Barrier();
  unsigned warps = (block.threads + WarpSize - 1) / WarpSize;
  block.warps.resize(warps);
  for (unsigned n = 0; n < warps; ++n) {
    Warp &w = block.warps[n];
    w.block = &block;
    w.index = n;
    unsigned lanes = std::min(WarpSize, block.threads - n * WarpSize);
    w.all = w.live = lanes == WarpSize ? Full : (Mask(1) << lanes) - 1;
    w.fragments.clear();
    w.waiting.clear();
    w.patience = 0;
    for (auto &c : w.copies)
      c.clear();
    w.products.reset();
    if (launch.racecheck) {
      // what a lane knows of itself is ahead of what others know of it
      w.laneClock.assign(WarpSize * WarpSize, 0);
      for (unsigned l = 0; l < WarpSize; ++l)
        w.laneClock[l * WarpSize + l] = 1;
    }
    w.localStride = launch.code->localEnd;
    if (w.localStride)
      w.local.assign(static_cast<size_t>(w.localStride) * WarpSize, static_cast<char>(0x5a));
    // registers of an earlier block's warp serve again; nothing reads them before it is written, or it is
    // found
    if (w.entryFrame && w.entryFrame->code == launch.code) {
      fillSpecials(*launch.code, w, w.entryFrame->regs);
      for (uint32_t place : launch.code->definedMasks)
        std::memset(w.entryFrame->regs + place, 0, 4);
    } else {
      w.entryFrame = makeFrame(*launch.code, w);
    }
    Fragment f;
    f.pc = launch.code->instrs.data();
    f.mask = w.all;
    f.frame = w.entryFrame;
    w.fragments.push_back(std::move(f));
  }
}

} // namespace

std::string waitsOf(const Block &block) {
  std::string text;
  unsigned ended = block.threads - block.live;
  for (int n = 0; n < 16; ++n) {
    const Barrier &b = block.barriers[n];
    if (b.arrived)
      text += (text.empty() ? "" : ", ") + std::string("barrier ") + std::to_string(n) + " has " +
              std::to_string(b.arrived) + " of " + std::to_string(b.expected) + " threads";
  }
  for (const Warp &w : block.warps)
    for (const Fragment &f : w.fragments)
      if (f.state == Fragment::AtWarpSync && text.size() < 400) {
        char lanes[64];
        std::snprintf(lanes, sizeof(lanes), "lanes 0x%08x of warp %u never arrive",
                      f.waitMask & ~f.mask & w.live, w.index);
        text += (text.empty() ? "" : ", ") + std::string(lanes);
      }
  if (ended)
    text += ", " + std::to_string(ended) + " threads have ended";
  return text;
}

void runLaunch(Launch &launch) {
  uint64_t n = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  // a walk through all blocks in an order that the seed draws: a stride without a common divisor
  uint64_t stride = 1, offset = n > 1 ? launch.random() % n : 0;
  if (n > 2)
    do
      stride = 1 + launch.random() % (n - 1);
    while (std::gcd(stride, n) != 1);
  launch.hints.assign(launch.image->instructions, nullptr);
  std::vector<std::unique_ptr<Block>> resident, idle;
  uint64_t started = 0, ended = 0;
  while (ended < n && !launch.failed) {
    bool room = resident.size() < launch.residentBlocks && started < n;
    if (resident.empty() || (room && launch.random() % 4 == 0)) {
      std::unique_ptr<Block> b;
      if (idle.empty()) {
        b = std::make_unique<Block>();
      } else {
        b = std::move(idle.back());
        idle.pop_back();
      }
      unsigned __int128 number = static_cast<unsigned __int128>(started) * stride + offset;
      startBlock(launch, *b, static_cast<uint64_t>(number % n));
      ++started;
      resident.push_back(std::move(b));
    }
    size_t at = resident.size() > 1 ? launch.random() % resident.size() : 0;
    // the more warps, the more turns: a block is left before its end now and then
    unsigned turns =
        static_cast<unsigned>(resident[at]->warps.size()) * (4 + static_cast<unsigned>(launch.random() % 60));
    Outcome o = runBlock(launch, *resident[at], turns);
    if (o == Outcome::Done) {
      idle.push_back(std::move(resident[at]));
      resident.erase(resident.begin() + static_cast<long>(at));
      ++ended;
    }
  }
}

} // namespace lathe::emu
