// Logic, shifts (which clamp their amount) and operations on bit fields.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"

namespace lathe::emu {
namespace {

template <class T>
struct And {
  static T run(T a, T b) { return a & b; }
};
template <class T>
struct Or {
  static T run(T a, T b) { return a | b; }
};
template <class T>
struct Xor {
  static T run(T a, T b) { return a ^ b; }
};
template <class T>
struct Not {
  static T run(T a) { return static_cast<T>(~a); }
};
template <class T>
struct Cnot {
  static T run(T a) { return a == 0; }
};

template <class T>
void shiftLeft(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a);
  const uint32_t *b = x.reg<uint32_t>(i.b);
  eachLane(x.reg<T>(i.d), m, [=](unsigned l) {
    return static_cast<T>(b[l] >= 8 * sizeof(T) ? 0 : static_cast<uint64_t>(a[l]) << (b[l] & 63));
  });
}
template <class T>
void shiftRight(Exec &x, const Instr &i, Mask m) {
  constexpr uint32_t Bits = 8 * sizeof(T);
  const T *a = x.reg<T>(i.a);
  const uint32_t *b = x.reg<uint32_t>(i.b);
  eachLane(x.reg<T>(i.d), m, [=](unsigned l) {
    T sign = static_cast<T>(a[l] < 0 ? -1 : 0);
    return b[l] >= Bits ? sign : static_cast<T>(a[l] >> (b[l] & (Bits - 1)));
  });
}

template <class T>
struct Popc {
  static uint32_t run(T a) { return static_cast<uint32_t>(__builtin_popcountll(a)); }
};
template <class T>
struct Clz {
  static uint32_t run(T a) {
    return a ? static_cast<uint32_t>(__builtin_clzll(a)) - (64 - 8 * sizeof(T)) : 8 * sizeof(T);
  }
};
template <class T>
struct Brev {
  static T run(T a) {
    T r = 0;
    for (unsigned k = 0; k < 8 * sizeof(T); ++k)
      r |= static_cast<T>((a >> k & 1) << (8 * sizeof(T) - 1 - k));
    return r;
  }
};
/// The highest bit that differs from the sign; all ones when there is none.
template <class T, bool ShiftAmount>
struct Bfind {
  static uint32_t run(T a) {
    uint64_t v = a < 0 ? static_cast<uint64_t>(~a) : static_cast<uint64_t>(a);
    if (!v)
      return ~0u;
    uint32_t at = 63 - static_cast<uint32_t>(__builtin_clzll(v));
    return ShiftAmount ? 8 * sizeof(T) - 1 - at : at;
  }
};

/// Start and length are taken from the low bytes; bits beyond the value are the sign's.
template <class T>
void extractField(Exec &x, const Instr &i, Mask m) {
  constexpr uint32_t Top = 8 * sizeof(T) - 1;
  const T *a = x.reg<T>(i.a);
  const uint32_t *b = x.reg<uint32_t>(i.b), *c = x.reg<uint32_t>(i.c);
  eachLane(x.reg<T>(i.d), m, [=](unsigned l) {
    uint32_t pos = b[l] & 255, len = c[l] & 255;
    uint64_t v = static_cast<uint64_t>(static_cast<int64_t>(a[l]));
    if (!(static_cast<T>(-1) < 0))
      v = static_cast<uint64_t>(a[l]);
    bool sign = false;
    if (static_cast<T>(-1) < 0 && len) {
      uint32_t at = pos + len - 1 < Top ? pos + len - 1 : Top;
      sign = static_cast<uint64_t>(a[l]) >> at & 1;
    }
    uint64_t r = 0;
    for (uint32_t k = 0; k <= Top; ++k) {
      bool bit = k < len && pos + k <= Top ? v >> (pos + k) & 1 : sign;
      r |= static_cast<uint64_t>(bit) << k;
    }
    return static_cast<T>(r);
  });
}

/// bfi d, a, b, pos, len: the low bits of a into b.
template <class T>
void insertField(Exec &x, const Instr &i, Mask m) {
  constexpr uint32_t Bits = 8 * sizeof(T);
  const T *a = x.reg<T>(i.a), *b = x.reg<T>(i.b);
  const uint32_t *pos = x.reg<uint32_t>(i.c), *len = x.reg<uint32_t>(i.extra->places[0]);
  eachLane(x.reg<T>(i.d), m, [=](unsigned l) {
    uint32_t p = pos[l] & 255, n = len[l] & 255;
    if (p >= Bits || n == 0)
      return b[l];
    uint64_t field = n >= 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1;
    field <<= p;
    return static_cast<T>((b[l] & ~field) | ((static_cast<uint64_t>(a[l]) << p) & field));
  });
}

/// lop3: any function of three bits, as a table of eight.
void lop3(Exec &x, const Instr &i, Mask m) {
  const uint32_t *a = x.reg<uint32_t>(i.a), *b = x.reg<uint32_t>(i.b), *c = x.reg<uint32_t>(i.c);
  uint32_t table = i.flag;
  eachLane(x.reg<uint32_t>(i.d), m, [=](unsigned l) {
    uint32_t r = 0;
    for (unsigned k = 0; k < 8; ++k) {
      uint32_t term = (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
      r |= table >> k & 1 ? term : 0;
    }
    return r;
  });
}

uint32_t permute(uint32_t a, uint32_t b, uint32_t selector, int mode) {
  uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  auto byte = [&](uint32_t at) { return static_cast<uint32_t>(bytes >> (8 * (at & 7)) & 255); };
  uint32_t r = 0, s = selector & 3;
  for (uint32_t k = 0; k < 4; ++k) {
    uint32_t v = 0;
    switch (mode) {
    case 0: { // f4e
      v = byte(s + k);
      break;
    }
    case 1: // b4e
      v = byte(s + 8 - k);
      break;
    case 2: // rc8
      v = byte(s);
      break;
    case 3: // ecl: clamped to the left
      v = byte(k < s ? s : k);
      break;
    case 4: // ecr
      v = byte(k > s ? s : k);
      break;
    case 5: // rc16
      v = byte((s & 1) * 2 + (k & 1));
      break;
    default: {
      uint32_t n = selector >> (4 * k) & 15;
      v = byte(n);
      if (n & 8)
        v = v & 128 ? 255 : 0;
    }
    }
    r |= v << (8 * k);
  }
  return r;
}
void prmt(Exec &x, const Instr &i, Mask m) {
  const uint32_t *a = x.reg<uint32_t>(i.a), *b = x.reg<uint32_t>(i.b), *c = x.reg<uint32_t>(i.c);
  int mode = i.flag;
  eachLane(x.reg<uint32_t>(i.d), m, [=](unsigned l) { return permute(a[l], b[l], c[l], mode); });
}

/// shf: a shift of two words; flag bit 0: to the right, bit 1: the amount wraps instead of being clamped.
void funnel(Exec &x, const Instr &i, Mask m) {
  const uint32_t *a = x.reg<uint32_t>(i.a), *b = x.reg<uint32_t>(i.b), *c = x.reg<uint32_t>(i.c);
  bool right = i.flag & 1, wrap = i.flag & 2;
  eachLane(x.reg<uint32_t>(i.d), m, [=](unsigned l) {
    uint32_t n = wrap ? c[l] & 31 : c[l] < 32 ? c[l] : 32;
    uint64_t v = static_cast<uint64_t>(b[l]) << 32 | a[l];
    return right ? static_cast<uint32_t>(v >> n) : static_cast<uint32_t>((v << n) >> 32);
  });
}

void predicateLogic(Exec &x, const Instr &i, Mask m) {
  Mask a = x.pred(i.a), b = i.b == None ? 0 : x.pred(i.b), r = 0;
  switch (i.flag) {
  case 0:
    r = a & b;
    break;
  case 1:
    r = a | b;
    break;
  case 2:
    r = a ^ b;
    break;
  default:
    r = ~a;
  }
  x.pred(i.d) = (x.pred(i.d) & ~m) | (r & m);
}

template <template <class> class Op>
void logic(Decoder &d, uint8_t flag) {
  Type t = d.takeType();
  d.done(3);
  d.i.flag = flag;
  if (t.kind == 'p') {
    d.i.fn = predicateLogic;
    d.i.a = d.predicate(1);
    d.i.b = d.predicate(2);
    d.i.d = d.predicateDestination(d.s.operands[0].name);
    return;
  }
  if (t.kind != 'b')
    d.fail("no such type");
  d.i.fn = t.bits == 16   ? binaryLanes<uint16_t, uint16_t, Op<uint16_t>>
           : t.bits == 32 ? binaryLanes<uint32_t, uint32_t, Op<uint32_t>>
           : t.bits == 64 ? Handler(binaryLanes<uint64_t, uint64_t, Op<uint64_t>>)
                          : nullptr;
  if (!d.i.fn)
    d.fail("no such type");
  d.i.a = d.source(1, t);
  d.i.b = d.source(2, t);
  d.i.d = d.destination(0, t);
}

template <class F>
void countBits(Decoder &d, F pick) {
  Type t = d.takeType();
  d.done(2);
  d.i.fn = pick(t);
  if (!d.i.fn)
    d.fail("no such type");
  d.i.a = d.source(1, t);
  d.i.d = d.destination(0, Type{'b', 32, false});
}

void shift(Decoder &d, bool right) {
  Type t = d.takeType(), amount{'u', 32, false};
  d.done(3);
  if (!right || t.kind != 's') {
    d.i.fn = t.bits == 16   ? (right ? shiftRight<uint16_t> : shiftLeft<uint16_t>)
             : t.bits == 32 ? (right ? shiftRight<uint32_t> : shiftLeft<uint32_t>)
                            : (right ? shiftRight<uint64_t> : shiftLeft<uint64_t>);
  } else {
    d.i.fn = t.bits == 16   ? shiftRight<int16_t>
             : t.bits == 32 ? shiftRight<int32_t>
                            : Handler(shiftRight<int64_t>);
  }
  if (t.isFloat() || t.packed || t.bits < 16 || t.bits > 64)
    d.fail("no such type");
  d.i.a = d.source(1, t);
  d.i.b = d.source(2, amount);
  d.i.d = d.destination(0, t);
}

void field(Decoder &d, bool insert) {
  Type t = d.takeType(), amount{'u', 32, false};
  d.done(insert ? 5 : 4);
  if (t.bits != 32 && t.bits != 64)
    d.fail("no such type");
  if (insert) {
    d.i.fn = t.bits == 32 ? insertField<uint32_t> : insertField<uint64_t>;
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, t);
    d.i.c = d.source(3, amount);
    d.extra().places.push_back(d.source(4, amount));
  } else {
    bool s = t.isSigned();
    d.i.fn = t.bits == 32 ? (s ? extractField<int32_t> : extractField<uint32_t>)
                          : (s ? extractField<int64_t> : extractField<uint64_t>);
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, amount);
    d.i.c = d.source(3, amount);
  }
  d.i.d = d.destination(0, t);
}

} // namespace

void addBits(DecodeTable &table) {
  table["and"] = [](Decoder &d) { logic<And>(d, 0); };
  table["or"] = [](Decoder &d) { logic<Or>(d, 1); };
  table["xor"] = [](Decoder &d) { logic<Xor>(d, 2); };
  table["not"] = [](Decoder &d) {
    Type t = d.takeType();
    d.done(2);
    if (t.kind == 'p') {
      d.i.fn = predicateLogic;
      d.i.flag = 3;
      d.i.a = d.predicate(1);
      d.i.d = d.predicateDestination(d.s.operands[0].name);
      return;
    }
    d.i.fn = t.bits == 16   ? unaryLanes<uint16_t, uint16_t, Not<uint16_t>>
             : t.bits == 32 ? unaryLanes<uint32_t, uint32_t, Not<uint32_t>>
                            : Handler(unaryLanes<uint64_t, uint64_t, Not<uint64_t>>);
    d.i.a = d.source(1, t);
    d.i.d = d.destination(0, t);
  };
  table["cnot"] = [](Decoder &d) {
    Type t = d.takeType();
    d.done(2);
    d.i.fn = t.bits == 16   ? unaryLanes<uint16_t, uint16_t, Cnot<uint16_t>>
             : t.bits == 32 ? unaryLanes<uint32_t, uint32_t, Cnot<uint32_t>>
                            : Handler(unaryLanes<uint64_t, uint64_t, Cnot<uint64_t>>);
    d.i.a = d.source(1, t);
    d.i.d = d.destination(0, t);
  };
  table["shl"] = [](Decoder &d) { shift(d, false); };
  table["shr"] = [](Decoder &d) { shift(d, true); };
  table["bfe"] = [](Decoder &d) { field(d, false); };
  table["bfi"] = [](Decoder &d) { field(d, true); };
  table["popc"] = [](Decoder &d) {
    countBits(d, [](Type t) {
      return t.bits == 32   ? unaryLanes<uint32_t, uint32_t, Popc<uint32_t>>
             : t.bits == 64 ? unaryLanes<uint32_t, uint64_t, Popc<uint64_t>>
                            : nullptr;
    });
  };
  table["clz"] = [](Decoder &d) {
    countBits(d, [](Type t) {
      return t.bits == 32   ? unaryLanes<uint32_t, uint32_t, Clz<uint32_t>>
             : t.bits == 64 ? unaryLanes<uint32_t, uint64_t, Clz<uint64_t>>
                            : nullptr;
    });
  };
  table["bfind"] = [](Decoder &d) {
    bool amount = d.take("shiftamt");
    countBits(d, [amount](Type t) -> Handler {
      bool s = t.isSigned();
      if (t.bits == 32)
        return s ? (amount ? unaryLanes<uint32_t, int32_t, Bfind<int32_t, true>>
                           : unaryLanes<uint32_t, int32_t, Bfind<int32_t, false>>)
                 : (amount ? unaryLanes<uint32_t, uint32_t, Bfind<uint32_t, true>>
                           : unaryLanes<uint32_t, uint32_t, Bfind<uint32_t, false>>);
      if (t.bits == 64)
        return s ? (amount ? unaryLanes<uint32_t, int64_t, Bfind<int64_t, true>>
                           : unaryLanes<uint32_t, int64_t, Bfind<int64_t, false>>)
                 : (amount ? unaryLanes<uint32_t, uint64_t, Bfind<uint64_t, true>>
                           : unaryLanes<uint32_t, uint64_t, Bfind<uint64_t, false>>);
      return nullptr;
    });
  };
  table["brev"] = [](Decoder &d) {
    Type t = d.takeType();
    d.done(2);
    d.i.fn = t.bits == 32 ? unaryLanes<uint32_t, uint32_t, Brev<uint32_t>>
                          : unaryLanes<uint64_t, uint64_t, Brev<uint64_t>>;
    if (t.bits != 32 && t.bits != 64)
      d.fail("no such type");
    d.i.a = d.source(1, t);
    d.i.d = d.destination(0, t);
  };
  table["lop3"] = [](Decoder &d) {
    Type t = d.takeType();
    d.done(5);
    if (t.bits != 32)
      d.fail("no such type");
    d.i.fn = lop3;
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, t);
    d.i.c = d.source(3, t);
    d.i.flag = static_cast<uint8_t>(d.immediate(4));
    d.i.d = d.destination(0, t);
  };
  table["prmt"] = [](Decoder &d) {
    Type t = d.takeType();
    int mode = d.takeOneOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
    d.done(4);
    if (t.bits != 32)
      d.fail("no such type");
    d.i.fn = prmt;
    d.i.flag = static_cast<uint8_t>(mode < 0 ? 255 : mode);
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, t);
    d.i.c = d.source(3, t);
    d.i.d = d.destination(0, t);
  };
  table["shf"] = [](Decoder &d) {
    bool right = d.take("r");
    if (!right && !d.take("l"))
      d.fail("neither l nor r");
    bool wrap = d.take("wrap");
    if (!wrap && !d.take("clamp"))
      d.fail("neither clamp nor wrap");
    Type t = d.takeType();
    d.done(4);
    if (t.bits != 32)
      d.fail("no such type");
    d.i.fn = funnel;
    d.i.flag = static_cast<uint8_t>((right ? 1 : 0) | (wrap ? 2 : 0));
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, t);
    d.i.c = d.source(3, t);
    d.i.d = d.destination(0, t);
  };
}

} // namespace lathe::emu
