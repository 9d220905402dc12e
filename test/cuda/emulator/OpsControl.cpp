// Branches, calls, returns, and how lanes part and come together again.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"

#include <algorithm>
#include <cstring>

namespace lathe::emu {

namespace {

void stopWaiting(Warp &warp, const std::shared_ptr<Join> &join) {
  auto &w = warp.waiting;
  w.erase(std::remove(w.begin(), w.end(), join), w.end());
}

Fragment at(const std::shared_ptr<Join> &join, Mask mask) {
  Fragment f;
  f.pc = join->at;
  f.mask = mask;
  f.frame = join->frame;
  f.join = join->parent;
  return f;
}

/// Goes on as that fragment.
void become(Exec &x, Fragment f) {
  x.current = std::move(f);
  x.mask = x.current.mask;
  x.next = x.current.pc;
  x.regs = x.current.frame->regs;
}

/// Lanes arrive where others are waited for; the last ones go on with all of them.
void arrive(Exec &x, std::shared_ptr<Join> join, Mask m) {
  join->arrived |= m;
  if (join->arrived != join->expected) {
    auto &w = x.warp->waiting;
    if (std::find(w.begin(), w.end(), join) == w.end())
      w.push_back(join);
    return;
  }
  stopWaiting(*x.warp, join);
  x.warp->fragments.push_back(at(join, join->arrived));
}

/// Takes lanes off a join; those that waited for them only may go on.
void forget(Warp &warp, const std::shared_ptr<Join> &join, Mask m) {
  join->expected &= ~m;
  if (join->arrived && join->arrived == join->expected) {
    stopWaiting(warp, join);
    warp.fragments.push_back(at(join, join->arrived));
  }
}

void leave(Exec &x, Mask m) {
  x.current.mask &= ~m;
  x.mask = x.current.mask;
  if (!x.mask)
    x.stop = true;
}

/// Lanes m go to `target`, the others of the fragment to `other`.
void part(Exec &x, const Instr &i, Mask m, const Instr *target, const Instr *other) {
  Fragment &f = x.current;
  if (i.join && !(f.join && f.join->at == i.join && f.join->frame == f.frame)) {
    auto join = std::make_shared<Join>();
    join->at = i.join;
    join->frame = f.frame;
    join->expected = f.mask;
    join->parent = f.join;
    f.join = std::move(join);
  }
  Fragment rest = f;
  rest.mask = f.mask & ~m;
  f.mask = m;
  f.pc = target;
  rest.pc = other;
  if (x.launch->random() & 1)
    std::swap(f, rest);
  x.warp->fragments.push_back(std::move(rest));
  x.mask = f.mask;
  x.next = f.pc;
}

void countBranch(Exec &x, const Instr &i) {
  if (x.next <= &i && --x.budget < 0)
    x.stop = true;
}

void branch(Exec &x, const Instr &i, Mask m) {
  if (m == x.mask)
    x.next = i.target;
  else
    part(x, i, m, i.target, &i + 1);
  countBranch(x, i);
}

void branchIndexed(Exec &x, const Instr &i, Mask m) {
  const uint32_t *index = x.reg<uint32_t>(i.a);
  const auto &targets = i.extra->targets;
  Mask outside = lanesWhere([&](unsigned l) { return index[l] >= targets.size(); }) & m;
  if (outside)
    return report(x, i, outside, Finding::Instruction, "an index beyond the list of labels");
  while (m) {
    const Instr *target = targets[index[lowestLane(m)]];
    Mask same =
        m & lanesWhere([&](unsigned l) { return index[l] < targets.size() && targets[index[l]] == target; });
    if (same == x.mask) {
      x.next = target;
      break;
    }
    // those that go there leave the fragment; the others stay at this instruction for the next round
    Fragment &f = x.current;
    if (i.join && !(f.join && f.join->at == i.join && f.join->frame == f.frame)) {
      auto join = std::make_shared<Join>();
      join->at = i.join;
      join->frame = f.frame;
      join->expected = f.mask;
      join->parent = f.join;
      f.join = std::move(join);
    }
    Fragment gone = f;
    gone.mask = same;
    gone.pc = target;
    x.warp->fragments.push_back(std::move(gone));
    f.mask &= ~same;
    x.mask = f.mask;
    m &= ~same;
    if (!m)
      x.next = &i + 1; // lanes whose guard does not hold
  }
  countBranch(x, i);
}

void copyArea(const char *from, char *to, const Extra::Copy &c, Mask m, bool back) {
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1) {
      const char *source = back ? to + c.to + l * c.stride : from + c.from + l * c.stride;
      char *target = back ? const_cast<char *>(from) + c.from + l * c.stride : to + c.to + l * c.stride;
      std::memcpy(target, source, c.bytes);
    }
}

void call(Exec &x, const Instr &i, Mask m) {
  Fragment &f = x.current;
  auto join = std::make_shared<Join>();
  join->at = x.next;
  join->frame = f.frame;
  join->expected = f.mask;
  join->parent = f.join;
  if (m != f.mask) {
    join->arrived = f.mask & ~m;
    x.warp->waiting.push_back(join);
  }
  auto frame = makeFrame(*i.extra->callee, *x.warp);
  frame->caller = f.frame;
  frame->call = &i;
  for (const Extra::Copy &c : i.extra->arguments)
    copyArea(f.frame->regs, frame->regs, c, m, false);
  Fragment inside;
  inside.pc = i.extra->callee->instrs.data();
  inside.mask = m;
  inside.frame = std::move(frame);
  inside.join = std::move(join);
  become(x, std::move(inside));
}

} // namespace

/// Starts a block where lanes that parted meet. Not a name of PTX: the decoder places it.
void joinLanes(Exec &x, const Instr &i, Mask m) {
  Fragment &f = x.current;
  if (!f.join || f.join->at != &i || f.join->frame != f.frame)
    return;
  std::shared_ptr<Join> join = f.join;
  join->arrived |= m;
  if (join->arrived == join->expected) {
    stopWaiting(*x.warp, join);
    f.mask = x.mask = join->arrived;
    f.join = join->parent;
    return;
  }
  auto &w = x.warp->waiting;
  if (std::find(w.begin(), w.end(), join) == w.end())
    w.push_back(join);
  leave(x, m);
}

void endLanes(Exec &x, Mask m) {
  for (std::shared_ptr<Join> j = x.current.join; j; j = j->parent)
    forget(*x.warp, j, m);
  x.warp->live &= ~m;
  x.block->live -= static_cast<unsigned>(__builtin_popcount(m));
  leave(x, m);
}

void returnLanes(Exec &x, const Instr &, Mask m) {
  std::shared_ptr<Frame> frame = x.current.frame;
  if (!frame->caller)
    return endLanes(x, m);
  std::shared_ptr<Join> j = x.current.join;
  for (; j && j->frame == frame; j = j->parent)
    forget(*x.warp, j, m);
  for (const Extra::Copy &c : frame->call->extra->results)
    copyArea(frame->caller->regs, frame->regs, c, m, true);
  if (j && j->at == frame->call + 1 && j->frame == frame->caller) {
    arrive(x, j, m);
  } else {
    // nobody waits for these lanes any more
    Fragment f;
    f.pc = frame->call + 1;
    f.mask = m;
    f.frame = frame->caller;
    f.join = j;
    x.warp->fragments.push_back(std::move(f));
  }
  leave(x, m);
}

bool wakeWarp(Warp &warp, bool apart) {
  // lanes of one warp-wide instruction, come in parts
  for (size_t a = 0; a < warp.fragments.size(); ++a) {
    Fragment &f = warp.fragments[a];
    if (f.state != Fragment::AtWarpSync)
      continue;
    Mask together = 0;
    for (const Fragment &o : warp.fragments)
      if (o.state == Fragment::AtWarpSync && o.pc == f.pc && o.frame == f.frame)
        together |= o.mask;
    if ((f.waitMask & warp.live & ~together) != 0)
      continue;
    Fragment all = f;
    all.mask = together;
    all.state = Fragment::Ready;
    const Instr *pc = f.pc;
    auto frame = f.frame;
    // where the parts were to meet others, all of them are let go
    bool sameJoin = true;
    for (const Fragment &o : warp.fragments)
      if (o.state == Fragment::AtWarpSync && o.pc == pc && o.frame == frame)
        sameJoin &= o.join == all.join;
    if (!sameJoin) {
      for (Fragment &o : warp.fragments)
        if (o.state == Fragment::AtWarpSync && o.pc == pc && o.frame == frame)
          for (std::shared_ptr<Join> j = o.join; j && j->frame == frame; j = o.join) {
            j->expected &= ~o.mask;
            o.join = j->parent;
          }
      for (const Fragment &o : warp.fragments)
        if (o.state == Fragment::AtWarpSync && o.pc == pc && o.frame == frame)
          all.join = o.join;
    }
    auto &list = warp.fragments;
    list.erase(std::remove_if(list.begin(), list.end(),
                              [&](const Fragment &o) {
                                return o.state == Fragment::AtWarpSync && o.pc == pc && o.frame == frame;
                              }),
               list.end());
    list.push_back(std::move(all));
    return true;
  }
  // nobody else can go on: lanes that wait to meet others go on alone
  if (!apart || warp.waiting.empty())
    return false;
  auto waiting = std::move(warp.waiting);
  warp.waiting.clear();
  for (const auto &join : waiting) {
    join->expected &= ~join->arrived;
    warp.fragments.push_back(at(join, join->arrived));
    join->arrived = 0;
  }
  return true;
}

void mergeFragments(Warp &warp) {
  auto &list = warp.fragments;
  for (size_t a = 0; a < list.size(); ++a)
    for (size_t b = a + 1; b < list.size();) {
      Fragment &f = list[a], &o = list[b];
      if (f.state == Fragment::Ready && o.state == Fragment::Ready && f.pc == o.pc && f.frame == o.frame &&
          f.join == o.join) {
        f.mask |= o.mask;
        list.erase(list.begin() + static_cast<long>(b));
      } else {
        ++b;
      }
    }
}

namespace {
void decodeCall(Decoder &d) {
  d.take("uni");
  const auto &o = d.s.operands;
  size_t k = 0;
  const Operand *results = nullptr, *arguments = nullptr;
  if (k < o.size() && o[k].kind == Operand::List)
    results = &o[k++];
  if (k >= o.size() || o[k].kind != Operand::Name)
    d.fail("no name of a function");
  std::string name = o[k++].name;
  if (k < o.size() && o[k].kind == Operand::List)
    arguments = &o[k++];
  d.done(k);
  const Code *callee = d.callee(name);
  Extra &e = d.extra();
  e.callee = callee;
  d.i.fn = call;
  auto copies = [&](const Operand *list, const std::vector<Code::Area> &areas,
                    std::vector<Extra::Copy> &into) {
    size_t n = list ? list->elements.size() : 0;
    if (n != areas.size())
      d.fail("'" + name + "' takes or returns another number of values");
    for (size_t a = 0; a < n; ++a) {
      uint32_t place, size, stride;
      d.parameterArea(list->elements[a], place, size, stride);
      if (size != areas[a].size)
        d.fail("a parameter of another size than '" + name + "' has");
      into.push_back({place, areas[a].place, size, stride});
    }
  };
  copies(arguments, callee->parameterAreas, e.arguments);
  copies(results, callee->resultAreas, e.results);
}
} // namespace

void addControl(DecodeTable &table) {
  table["bra"] = [](Decoder &d) {
    d.take("uni");
    d.done(1);
    d.i.fn = branch;
  };
  table["brx"] = [](Decoder &d) {
    d.take("uni");
    if (!d.take("idx"))
      d.fail("no such branch");
    d.done(2);
    d.i.fn = branchIndexed;
    d.i.a = d.source(0, Type{'u', 32, false});
    d.extra().labels = d.branchTargets(1);
  };
  table["call"] = decodeCall;
  table["ret"] = [](Decoder &d) {
    d.take("uni");
    d.done(0);
    d.i.fn = returnLanes;
  };
  table["exit"] = [](Decoder &d) {
    d.done(0);
    d.i.fn = [](Exec &x, const Instr &, Mask m) { endLanes(x, m); };
  };
  table["trap"] = [](Decoder &d) {
    d.done(0);
    d.i.fn = [](Exec &x, const Instr &i, Mask m) { report(x, i, m, Finding::Instruction, "trap"); };
  };
  for (const char *name : {"brkpt", "nanosleep", "pmevent"})
    table[name] = [](Decoder &d) {
      d.tryType();
      d.i.fn = [](Exec &, const Instr &, Mask) {};
    };
}

} // namespace lathe::emu
