// Instructions of a whole warp (shfl, vote, match, redux) and barriers. Every lane that a mask names has to
// arrive; lanes of a fragment that came too early wait.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"

#include <algorithm>

namespace lathe::emu {

// in Shadow.cpp
void orderLanes(Exec &x, Mask m);
void orderBlock(Block &block);
void fenceProxy(Exec &x, Mask m);

bool haveAll(Exec &x, const Instr &i, Mask m, Mask members) {
  Mask missing = members & x.warp->live & ~m;
  if (!missing)
    return true;
  if (m != x.mask) {
    // lanes whose guard does not hold need not wait
    Fragment rest = x.current;
    rest.mask = x.mask & ~m;
    rest.pc = &i + 1;
    x.warp->fragments.push_back(std::move(rest));
    x.current.mask = x.mask = m;
  }
  x.current.state = Fragment::AtWarpSync;
  x.current.waitMask = missing | m;
  x.next = &i;
  x.stop = true;
  return false;
}

namespace {

/// Calls f(group) for the lanes of each member mask once all of them are here; else lets the fragment wait.
template <class F>
void together(Exec &x, const Instr &i, Mask m, uint32_t maskPlace, F f) {
  const uint32_t *members = x.reg<uint32_t>(maskPlace);
  Mask missing = 0; // all that any lane names
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1) {
      if (!(members[l] >> l & 1))
        return report(x, i, Mask(1) << l, Finding::Synccheck, "the lane is not in the mask that it names");
      missing |= members[l];
    }
  if (!haveAll(x, i, m, missing | m))
    return;
  for (Mask left = m; left && !x.stop;) {
    uint32_t named = members[lowestLane(left)];
    Mask group = left & lanesWhere([=](unsigned l) { return members[l] == named; });
    // lanes that one mask names have to name the same one
    if ((named & m) != group)
      return report(x, i, group, Finding::Synccheck, "lanes of one mask name different masks");
    f(group);
    left &= ~group;
  }
}

enum ShuffleMode : uint8_t { Up, Down, Bfly, Idx };

void shuffle(Exec &x, const Instr &i, Mask m) {
  together(x, i, m, i.extra->places[0], [&](Mask group) {
    const uint32_t *a = x.reg<uint32_t>(i.a), *b = x.reg<uint32_t>(i.b), *c = x.reg<uint32_t>(i.c);
    uint32_t result[WarpSize];
    Mask valid = 0;
    for (unsigned l = 0; l < WarpSize; ++l) {
      if (!(group >> l & 1))
        continue;
      unsigned bval = b[l] & 31, cval = c[l] & 31, segment = c[l] >> 8 & 31;
      unsigned most = (l & segment) | (cval & ~segment), least = l & segment;
      int j = 0;
      bool p = false;
      switch (i.flag) {
      case Up:
        j = static_cast<int>(l) - static_cast<int>(bval);
        p = j >= static_cast<int>(most);
        break;
      case Down:
        j = static_cast<int>(l + bval);
        p = j <= static_cast<int>(most);
        break;
      case Bfly:
        j = static_cast<int>(l ^ bval);
        p = j <= static_cast<int>(most);
        break;
      default:
        j = static_cast<int>(least | (bval & ~segment));
        p = j <= static_cast<int>(most);
      }
      if (!p)
        j = static_cast<int>(l);
      if (!(group >> j & 1))
        return report(x, i, Mask(1) << l, Finding::Synccheck,
                      "shfl reads lane " + std::to_string(j) + ", which takes no part");
      result[l] = a[j];
      valid |= static_cast<Mask>(p) << l;
    }
    eachLane(x.reg<uint32_t>(i.d), group, [&](unsigned l) { return result[l]; });
    if (i.extra->places.size() > 1) {
      Mask &p = x.pred(i.extra->places[1]);
      p = (p & ~group) | valid;
    }
  });
}

enum VoteMode : uint8_t { All, Any, Uni, Ballot };

void vote(Exec &x, const Instr &i, Mask m) {
  together(x, i, m, i.b, [&](Mask group) {
    Mask p = x.pred(i.a);
    if (i.count)
      p = ~p;
    p &= group;
    if (i.flag == Ballot) {
      eachLane(x.reg<uint32_t>(i.d), group, [p](unsigned) { return p; });
      return;
    }
    bool r = i.flag == All ? p == group : i.flag == Any ? p != 0 : p == 0 || p == group;
    x.pred(i.d) = (x.pred(i.d) & ~group) | (r ? group : 0);
  });
}

template <class T>
void match(Exec &x, const Instr &i, Mask m) {
  together(x, i, m, i.b, [&](Mask group) {
    const T *a = x.reg<T>(i.a);
    uint32_t r[WarpSize] = {};
    T first = a[lowestLane(group)];
    bool all = true;
    for (unsigned l = 0; l < WarpSize; ++l)
      if (group >> l & 1) {
        all &= a[l] == first;
        r[l] = group & lanesWhere([=](unsigned k) { return a[k] == a[l]; });
      }
    if (i.flag)
      for (uint32_t &v : r)
        v = all ? group : 0;
    eachLane(x.reg<uint32_t>(i.d), group, [&](unsigned l) { return r[l]; });
    if (i.c != None)
      x.pred(i.c) = (x.pred(i.c) & ~group) | (all ? group : 0);
  });
}

enum ReduxMode : uint8_t { RAdd, RMin, RMax, RAnd, ROr, RXor };

template <class T>
void redux(Exec &x, const Instr &i, Mask m) {
  together(x, i, m, i.b, [&](Mask group) {
    const T *a = x.reg<T>(i.a);
    T r = a[lowestLane(group)];
    for (unsigned l = lowestLane(group) + 1; l < WarpSize; ++l)
      if (group >> l & 1)
        switch (i.flag) {
        case RAdd:
          r = static_cast<T>(static_cast<uint32_t>(r) + static_cast<uint32_t>(a[l]));
          break;
        case RMin:
          r = std::min(r, a[l]);
          break;
        case RMax:
          r = std::max(r, a[l]);
          break;
        case RAnd:
          r &= a[l];
          break;
        case ROr:
          r |= a[l];
          break;
        default:
          r ^= a[l];
        }
    eachLane(x.reg<T>(i.d), group, [r](unsigned) { return r; });
  });
}

void warpBarrier(Exec &x, const Instr &i, Mask m) {
  together(x, i, m, i.a, [&](Mask group) { orderLanes(x, group); });
}

enum BarrierKind : uint8_t { Sync = 0, Arrive = 1, RedPopc = 2, RedAnd = 3, RedOr = 4 };

/// Lets all that wait at barrier n go on; results of bar.red are written here.
void release(Block &block, unsigned n, Exec &x) {
  Barrier &b = block.barriers[n];
  for (Warp &w : block.warps) {
    const Instr *place = nullptr;
    for (Fragment &f : w.fragments) {
      if (f.state != Fragment::AtBarrier || f.barrier != n)
        continue;
      const Instr &i = *f.pc;
      if (place && place != f.pc && i.bytes) {
        x.warp = &w;
        report(x, i, f.mask, Finding::Synccheck,
               "lanes of one warp are at different barriers, and this one is for a whole warp");
      }
      place = f.pc;
      if (i.flag == RedPopc)
        eachLane(reinterpret_cast<uint32_t *>(f.frame->regs + i.d), f.mask,
                 [&](unsigned) { return b.holds; });
      if (i.flag == RedAnd || i.flag == RedOr) {
        bool r = i.flag == RedAnd ? b.holds == b.voted : b.holds != 0;
        Mask &p = *reinterpret_cast<Mask *>(f.frame->regs + i.d);
        p = (p & ~f.mask) | (r ? f.mask : 0);
      }
      f.state = Fragment::Ready;
      ++f.pc;
    }
    mergeFragments(w);
  }
  b = Barrier();
  orderBlock(block);
}

void barrier(Exec &x, const Instr &i, Mask m) {
  Block &block = *x.block;
  unsigned lane = lowestLane(m);
  uint32_t n = x.reg<uint32_t>(i.a)[lane];
  uint32_t count = i.b == None ? block.threads : x.reg<uint32_t>(i.b)[lane];
  if (n > 15)
    return report(x, i, m, Finding::Synccheck, "there are barriers 0 to 15, not " + std::to_string(n));
  if (i.b != None && (count % WarpSize || !count || count > (block.threads + 31) / 32 * 32))
    return report(x, i, m, Finding::Synccheck, "a barrier of " + std::to_string(count) + " threads");
  Barrier &b = block.barriers[n];
  if (b.arrived && b.expected != count)
    return report(x, i, m, Finding::Synccheck,
                  "barrier " + std::to_string(n) + " is for " + std::to_string(b.expected) +
                      " threads and for " + std::to_string(count));
  b.expected = count;
  // a count is one of whole warps, also where the last warp is not full
  b.arrived += i.b != None && m == x.warp->all ? WarpSize : static_cast<unsigned>(__builtin_popcount(m));
  if (i.flag >= RedPopc) {
    Mask p = x.pred(i.c) & m;
    if (i.count)
      p = ~x.pred(i.c) & m;
    b.holds += static_cast<unsigned>(__builtin_popcount(p));
    b.voted += static_cast<unsigned>(__builtin_popcount(m));
  }
  if (b.arrived > b.expected)
    return report(x, i, m, Finding::Synccheck, "more threads than barrier " + std::to_string(n) + " is for");
  bool full = b.arrived == b.expected;
  if (i.flag != Arrive) {
    // the fragment goes into the list of its warp with the others
    Fragment f = x.current;
    f.mask = m;
    f.pc = &i;
    f.state = Fragment::AtBarrier;
    f.barrier = static_cast<uint8_t>(n);
    x.warp->fragments.push_back(std::move(f));
    x.current.mask &= ~m;
    x.mask = x.current.mask;
    x.stop = true;
  }
  if (full) {
    Warp *self = x.warp;
    release(block, n, x);
    x.warp = self;
  }
}

void decodeBarrier(Decoder &d, bool aligned) {
  d.take("cta");
  d.i.bytes = d.take("aligned") || aligned;
  if (d.take("warp")) {
    if (!d.take("sync"))
      d.fail("no such barrier");
    d.done(1);
    d.i.fn = warpBarrier;
    d.i.a = d.source(0, Type{'b', 32, false});
    return;
  }
  Type u32{'u', 32, false};
  d.i.fn = barrier;
  int kind = d.takeOneOf({"sync", "arrive", "red"});
  if (kind < 0)
    d.fail("no such barrier");
  size_t n = d.s.operands.size(), at = 0;
  if (kind == 2) {
    int op = d.takeOneOf({"popc", "and", "or"});
    Type t = d.takeType();
    if (op < 0 || (op == 0) != (t == u32) || n < 3 || n > 4)
      d.fail("no such reduction");
    d.i.flag = static_cast<uint8_t>(RedPopc + op);
    bool negated = false;
    d.i.c = d.predicate(n - 1, &negated);
    d.i.count = negated;
    at = 1;
    --n;
  } else {
    d.i.flag = static_cast<uint8_t>(kind);
  }
  d.done(d.s.operands.size());
  if (n <= at || n > at + 2 || (kind == 1 && n != 2))
    d.fail("another number of operands");
  d.i.a = d.source(at, u32);
  if (n == at + 2)
    d.i.b = d.source(at + 1, u32);
  if (kind == 2)
    d.i.d = d.i.flag == RedPopc ? d.destination(0, u32) : d.predicateDestination(d.s.operands[0].name);
}

} // namespace

void addWarp(DecodeTable &table) {
  static const Type b32{'b', 32, false};
  table["shfl"] = [](Decoder &d) {
    if (!d.take("sync"))
      d.fail("the form without a mask is gone since sm_70");
    int mode = d.takeOneOf({"up", "down", "bfly", "idx"});
    Type t = d.takeType();
    d.done(5);
    if (mode < 0 || t.totalBits() != 32)
      d.fail("no such shuffle");
    d.i.fn = shuffle;
    d.i.flag = static_cast<uint8_t>(mode);
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, b32);
    d.i.c = d.source(3, b32);
    std::vector<uint32_t> places = {d.source(4, b32)};
    const Operand &o = d.s.operands[0];
    d.i.d = d.destinationOf(o.kind == Operand::Sink ? "_" : o.name, t);
    if (!o.pair.empty())
      places.push_back(d.predicateDestination(o.pair));
    d.extra().places = places;
  };
  table["vote"] = [](Decoder &d) {
    if (!d.take("sync"))
      d.fail("the form without a mask is gone since sm_70");
    int mode = d.takeOneOf({"all", "any", "uni", "ballot"});
    d.takeType();
    d.done(3);
    if (mode < 0)
      d.fail("no such vote");
    d.i.fn = vote;
    d.i.flag = static_cast<uint8_t>(mode);
    bool negated = false;
    d.i.a = d.predicate(1, &negated);
    d.i.count = negated;
    d.i.b = d.source(2, b32);
    d.i.d = mode == Ballot ? d.destination(0, b32) : d.predicateDestination(d.s.operands[0].name);
  };
  table["match"] = [](Decoder &d) {
    int mode = d.takeOneOf({"any", "all"});
    if (!d.take("sync") || mode < 0)
      d.fail("no such match");
    Type t = d.takeType();
    d.done(3);
    d.i.fn = t.bits == 64 ? match<uint64_t> : match<uint32_t>;
    d.i.flag = static_cast<uint8_t>(mode);
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, b32);
    const Operand &o = d.s.operands[0];
    d.i.d = d.destinationOf(o.name, b32);
    if (!o.pair.empty())
      d.i.c = d.predicateDestination(o.pair);
  };
  table["redux"] = [](Decoder &d) {
    if (!d.take("sync"))
      d.fail("no such reduction");
    int op = d.takeOneOf({"add", "min", "max", "and", "or", "xor"});
    Type t = d.takeType();
    d.done(3);
    if (op < 0 || t.bits != 32 || t.isFloat())
      d.fail("no such reduction");
    d.i.fn = t.isSigned() ? redux<int32_t> : redux<uint32_t>;
    d.i.flag = static_cast<uint8_t>(op);
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, b32);
    d.i.d = d.destination(0, t);
  };
  table["activemask"] = [](Decoder &d) {
    d.takeType();
    d.done(1);
    d.i.fn = [](Exec &x, const Instr &i, Mask m) {
      eachLane(x.reg<uint32_t>(i.d), m, [m](unsigned) { return m; });
    };
    d.i.d = d.destination(0, b32);
  };
  table["bar"] = [](Decoder &d) { decodeBarrier(d, true); };
  table["barrier"] = [](Decoder &d) { decodeBarrier(d, false); };
  for (const char *name : {"membar", "fence"})
    table[name] = [](Decoder &d) {
      if (d.name() == "fence" && d.take("proxy")) {
        if (!d.take("async") || d.takeOneOf({"shared::cta", "shared"}) < 0)
          d.fail("no such proxy, or none that is supported");
        d.done(0);
        d.i.fn = [](Exec &x, const Instr &, Mask m) { fenceProxy(x, m); };
        return;
      }
      d.takeOneOf({"acq_rel", "sc"});
      if (d.takeOneOf({"cta", "gl", "gpu", "sys", "cluster"}) < 0)
        d.fail("no scope");
      d.done(0);
      d.i.fn = [](Exec &, const Instr &, Mask) {};
    };
}

} // namespace lathe::emu
