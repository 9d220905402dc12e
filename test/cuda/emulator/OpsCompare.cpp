// setp, set, selp, slct.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Numeric.h"

namespace lathe::emu {
namespace {

enum Comparison : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, NotNum };

/// One comparison of each lane; unordered ones hold when an operand is no number.
template <class T, Comparison C>
Mask compareAll(const T *a, const T *b) {
  return lanesWhere([a, b](unsigned l) {
    T p = a[l], q = b[l];
    switch (C) {
    case Eq:
      return p == q;
    case Ne:
      return p < q || p > q;
    case Lt:
      return p < q;
    case Le:
      return p <= q;
    case Gt:
      return p > q;
    case Ge:
      return p >= q;
    case Equ:
      return !(p < q || p > q);
    case Neu:
      return p != q;
    case Ltu:
      return !(p >= q);
    case Leu:
      return !(p > q);
    case Gtu:
      return !(p <= q);
    case Geu:
      return !(p < q);
    case Num:
      return p == p && q == q;
    default:
      return p != p || q != q;
    }
  });
}

template <class T>
Mask compare(Comparison c, const T *a, const T *b) {
  switch (c) {
  case Eq:
    return compareAll<T, Eq>(a, b);
  case Ne:
    return compareAll<T, Ne>(a, b);
  case Lt:
    return compareAll<T, Lt>(a, b);
  case Le:
    return compareAll<T, Le>(a, b);
  case Gt:
    return compareAll<T, Gt>(a, b);
  case Ge:
    return compareAll<T, Ge>(a, b);
  case Equ:
    return compareAll<T, Equ>(a, b);
  case Neu:
    return compareAll<T, Neu>(a, b);
  case Ltu:
    return compareAll<T, Ltu>(a, b);
  case Leu:
    return compareAll<T, Leu>(a, b);
  case Gtu:
    return compareAll<T, Gtu>(a, b);
  case Geu:
    return compareAll<T, Geu>(a, b);
  case Num:
    return compareAll<T, Num>(a, b);
  case NotNum:
    return compareAll<T, NotNum>(a, b);
  }
  return 0;
}

/// How the comparison is joined with a predicate; kept in count: 0 not at all, 1 and, 2 or, 3 xor; bit 2:
/// that is negated.
Mask joined(Mask r, Mask with, unsigned how) {
  if (how & 4)
    with = ~with;
  switch (how & 3) {
  case 1:
    return r & with;
  case 2:
    return r | with;
  case 3:
    return r ^ with;
  }
  return r;
}

void store(Exec &x, const Instr &i, Mask m, Mask r) {
  if (i.count) {
    Mask with = x.pred(i.c);
    if (i.extra && !i.extra->places.empty()) {
      Mask &q = x.pred(i.extra->places[0]);
      q = (q & ~m) | (joined(~r, with, i.count) & m);
    }
    r = joined(r, with, i.count);
  } else if (i.extra && !i.extra->places.empty()) {
    Mask &q = x.pred(i.extra->places[0]);
    q = (q & ~m) | (~r & m);
  }
  x.pred(i.d) = (x.pred(i.d) & ~m) | (r & m);
}

template <class T>
void setPredicate(Exec &x, const Instr &i, Mask m) {
  store(x, i, m, compare(static_cast<Comparison>(i.flag), x.reg<T>(i.a), x.reg<T>(i.b)));
}

/// Values as f32 in which they compare: bytes tells how they are stored: 2 f16, 3 bf16, 4 f32 flushed.
const float *widened(Exec &x, uint32_t place, unsigned how, float *to) {
  if (how == 4) {
    const float *v = x.reg<float>(place);
    LATHE_LANES to[l] = flush(v[l]);
  } else {
    const uint16_t *v = x.reg<uint16_t>(place);
    for (unsigned l = 0; l < WarpSize; ++l)
      to[l] = how == 2 ? halfToFloat(v[l]) : bfloatToFloat(v[l]);
  }
  return to;
}
void setPredicateWidened(Exec &x, const Instr &i, Mask m) {
  float a[WarpSize], b[WarpSize];
  widened(x, i.a, i.bytes, a);
  widened(x, i.b, i.bytes, b);
  store(x, i, m, compare<float>(static_cast<Comparison>(i.flag), a, b));
}

/// set: the comparison as a value: all ones, or 1.0.
template <class T>
void setValue(Exec &x, const Instr &i, Mask m) {
  Mask r = compare(static_cast<Comparison>(i.flag), x.reg<T>(i.a), x.reg<T>(i.b));
  if (i.count)
    r = joined(r, x.pred(i.c), i.count);
  uint32_t yes = static_cast<uint32_t>(i.imm);
  eachLane(x.reg<uint32_t>(i.d), m, [=](unsigned l) { return r >> l & 1 ? yes : 0; });
}

template <class T>
void select(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a), *b = x.reg<T>(i.b);
  Mask p = x.pred(i.c);
  eachLane(x.reg<T>(i.d), m, [=](unsigned l) { return p >> l & 1 ? a[l] : b[l]; });
}
void selectPredicate(Exec &x, const Instr &i, Mask m) {
  Mask p = x.pred(i.c), r = (x.pred(i.a) & p) | (x.pred(i.b) & ~p);
  x.pred(i.d) = (x.pred(i.d) & ~m) | (r & m);
}
/// slct: a where c >= 0; what is no number selects b, -0 selects a.
template <class T, class C>
void selectSign(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a), *b = x.reg<T>(i.b);
  const C *c = x.reg<C>(i.c);
  eachLane(x.reg<T>(i.d), m, [=](unsigned l) { return c[l] >= 0 ? a[l] : b[l]; });
}

Comparison takeComparison(Decoder &d, Type t) {
  static const struct {
    const char *name;
    Comparison ordered, other; // for floating point, for integers
  } names[] = {{"eq", Eq, Equ}, {"ne", Ne, Neu}, {"lt", Lt, Lt},
               {"le", Le, Le},  {"gt", Gt, Gt},  {"ge", Ge, Ge}};
  for (const auto &n : names)
    if (d.take(n.name))
      return t.isFloat() ? n.ordered : n.other;
  static const std::pair<const char *, Comparison> floats[] = {{"equ", Equ}, {"neu", Neu},   {"ltu", Ltu},
                                                               {"leu", Leu}, {"gtu", Gtu},   {"geu", Geu},
                                                               {"num", Num}, {"nan", NotNum}};
  static const std::pair<const char *, Comparison> unsignedOnes[] = {
      {"lo", Lt}, {"ls", Le}, {"hi", Gt}, {"hs", Ge}};
  if (t.isFloat()) {
    for (const auto &n : floats)
      if (d.take(n.first))
        return n.second;
  } else if (t.kind == 'u') {
    for (const auto &n : unsignedOnes)
      if (d.take(n.first))
        return n.second;
  }
  d.fail("no comparison for that type");
}

template <template <class> class H>
Handler pick(Type t) {
  if (t.packed)
    return nullptr;
  if (t.kind == 'f')
    return t.bits == 32 ? H<float>::fn : t.bits == 64 ? H<double>::fn : nullptr;
  bool s = t.isSigned();
  switch (t.bits) {
  case 16:
    return s ? H<int16_t>::fn : H<uint16_t>::fn;
  case 32:
    return s ? H<int32_t>::fn : H<uint32_t>::fn;
  case 64:
    return s ? H<int64_t>::fn : H<uint64_t>::fn;
  }
  return nullptr;
}
template <class T>
struct SetPredicate {
  static constexpr Handler fn = setPredicate<T>;
};
template <class T>
struct SetValue {
  static constexpr Handler fn = setValue<T>;
};

void operands(Decoder &d, Type t) {
  bool negated = false;
  if (d.i.count)
    d.i.c = d.predicate(3, &negated);
  if (negated)
    d.i.count |= 4;
  d.i.a = d.source(1, t);
  d.i.b = d.source(2, t);
}

} // namespace

void addCompare(DecodeTable &table) {
  table["setp"] = [](Decoder &d) {
    Type t = d.takeType();
    if (t.kind == 'p')
      d.fail("no such type");
    d.i.flag = takeComparison(d, t);
    d.i.count = static_cast<uint8_t>(d.takeOneOf({"and", "or", "xor"}) + 1);
    bool ftz = d.take("ftz");
    d.done(d.i.count ? 4 : 3);
    if (t.bits == 16 && t.isFloat() && !t.packed) {
      d.i.fn = setPredicateWidened;
      d.i.bytes = t.kind == 'f' ? 2 : 3;
    } else if (ftz && t.kind == 'f' && t.bits == 32) {
      d.i.fn = setPredicateWidened;
      d.i.bytes = 4;
    } else {
      d.i.fn = pick<SetPredicate>(t);
    }
    if (!d.i.fn)
      d.fail("no such type");
    operands(d, t);
    const Operand &o = d.s.operands[0];
    d.i.d = d.predicateDestination(o.kind == Operand::Sink ? "_" : o.name);
    if (!o.pair.empty())
      d.extra().places.push_back(d.predicateDestination(o.pair));
  };
  table["set"] = [](Decoder &d) {
    Type to = d.takeType(), t = d.takeType();
    d.i.flag = takeComparison(d, t);
    d.i.count = static_cast<uint8_t>(d.takeOneOf({"and", "or", "xor"}) + 1);
    d.done(d.i.count ? 4 : 3);
    if (to.totalBits() != 32 || to.packed)
      d.fail("no such type");
    d.i.fn = pick<SetValue>(t);
    if (!d.i.fn)
      d.fail("no such type");
    d.i.imm = to.kind == 'f' ? 0x3f800000 : 0xffffffff;
    operands(d, t);
    d.i.d = d.destination(0, to);
  };
  table["selp"] = [](Decoder &d) {
    Type t = d.takeType();
    d.done(4);
    d.i.c = d.predicate(3);
    if (t.kind == 'p') {
      d.i.fn = selectPredicate;
      d.i.a = d.predicate(1);
      d.i.b = d.predicate(2);
      d.i.d = d.predicateDestination(d.s.operands[0].name);
      return;
    }
    d.i.fn = t.totalBits() == 16   ? select<uint16_t>
             : t.totalBits() == 32 ? select<uint32_t>
                                   : Handler(select<uint64_t>);
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, t);
    d.i.d = d.destination(0, t);
  };
  table["slct"] = [](Decoder &d) {
    d.take("ftz");
    Type t = d.takeType(), c = d.takeType();
    d.done(4);
    bool f = c.kind == 'f';
    if (c.bits != 32 || (!f && c.kind != 's'))
      d.fail("no such type");
    d.i.fn = t.bits == 16   ? (f ? selectSign<uint16_t, float> : selectSign<uint16_t, int32_t>)
             : t.bits == 32 ? (f ? selectSign<uint32_t, float> : selectSign<uint32_t, int32_t>)
                            : (f ? selectSign<uint64_t, float> : Handler(selectSign<uint64_t, int32_t>));
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, t);
    d.i.c = d.source(3, c);
    d.i.d = d.destination(0, t);
  };
}

} // namespace lathe::emu
