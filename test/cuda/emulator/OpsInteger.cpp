// Integer arithmetic: add, sub, mul, mad, div, rem, min, max, carries, dot products of bytes.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"

#include <limits>
#include <type_traits>

namespace lathe::emu {
namespace {

template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;
template <class T>
using U = std::make_unsigned_t<T>;

template <class T>
struct Add {
  static T run(T a, T b) { return static_cast<T>(static_cast<U<T>>(a) + static_cast<U<T>>(b)); }
};
template <class T>
struct Sub {
  static T run(T a, T b) { return static_cast<T>(static_cast<U<T>>(a) - static_cast<U<T>>(b)); }
};
template <class T>
struct AddSat {
  static T run(T a, T b) {
    Wide<T> r = Wide<T>(a) + b;
    return static_cast<T>(r > std::numeric_limits<T>::max()   ? std::numeric_limits<T>::max()
                          : r < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min()
                                                              : r);
  }
};
template <class T>
struct SubSat {
  static T run(T a, T b) {
    Wide<T> r = Wide<T>(a) - b;
    return static_cast<T>(r > std::numeric_limits<T>::max()   ? std::numeric_limits<T>::max()
                          : r < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min()
                                                              : r);
  }
};
template <class T>
struct MulLo {
  // 16-bit operands would be promoted to int, whose product may overflow
  static T run(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }
};
template <class T>
struct MulHi {
  static T run(T a, T b) { return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T))); }
};
template <class T>
struct MulWide {
  static Wide<T> run(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
};
template <class T>
struct MadLo {
  static T run(T a, T b, T c) { return Add<T>::run(MulLo<T>::run(a, b), c); }
};
template <class T>
struct MadHi {
  static T run(T a, T b, T c) { return Add<T>::run(MulHi<T>::run(a, b), c); }
};
template <class T>
struct MadWide {
  static Wide<T> run(T a, T b, Wide<T> c) { return Add<Wide<T>>::run(Wide<T>(a) * Wide<T>(b), c); }
};
template <class T>
struct Min {
  static T run(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Max {
  static T run(T a, T b) { return a > b ? a : b; }
};
template <class T>
struct Sad {
  static T run(T a, T b, T c) {
    return static_cast<T>(static_cast<U<T>>(c) + (a < b ? static_cast<U<T>>(b) - static_cast<U<T>>(a)
                                                        : static_cast<U<T>>(a) - static_cast<U<T>>(b)));
  }
};
template <class T>
struct Neg {
  static T run(T a) { return static_cast<T>(U<T>(0) - static_cast<U<T>>(a)); }
};
template <class T>
struct Abs {
  static T run(T a) { return a < 0 ? Neg<T>::run(a) : a; }
};
/// 24-bit operands: the low 24 bits, extended by their sign.
template <class T>
struct Low24 {
  static int64_t value(T a) {
    if (std::is_signed_v<T>)
      return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8);
    return static_cast<uint32_t>(a) & 0xffffffu;
  }
};
template <class T>
struct Mul24Lo {
  static T run(T a, T b) { return static_cast<T>(Low24<T>::value(a) * Low24<T>::value(b)); }
};
template <class T>
struct Mul24Hi {
  static T run(T a, T b) { return static_cast<T>((Low24<T>::value(a) * Low24<T>::value(b)) >> 16); }
};

template <template <class> class Op>
Handler binary(Type t) {
  bool s = t.isSigned();
  switch (t.bits) {
  case 16:
    return s ? binaryLanes<int16_t, int16_t, Op<int16_t>> : binaryLanes<uint16_t, uint16_t, Op<uint16_t>>;
  case 32:
    return s ? binaryLanes<int32_t, int32_t, Op<int32_t>> : binaryLanes<uint32_t, uint32_t, Op<uint32_t>>;
  case 64:
    return s ? binaryLanes<int64_t, int64_t, Op<int64_t>> : binaryLanes<uint64_t, uint64_t, Op<uint64_t>>;
  }
  return nullptr;
}
template <template <class> class Op>
Handler ternary(Type t) {
  bool s = t.isSigned();
  switch (t.bits) {
  case 16:
    return s ? ternaryLanes<int16_t, int16_t, int16_t, Op<int16_t>>
             : ternaryLanes<uint16_t, uint16_t, uint16_t, Op<uint16_t>>;
  case 32:
    return s ? ternaryLanes<int32_t, int32_t, int32_t, Op<int32_t>>
             : ternaryLanes<uint32_t, uint32_t, uint32_t, Op<uint32_t>>;
  case 64:
    return s ? ternaryLanes<int64_t, int64_t, int64_t, Op<int64_t>>
             : ternaryLanes<uint64_t, uint64_t, uint64_t, Op<uint64_t>>;
  }
  return nullptr;
}
template <template <class> class Op>
Handler unarySigned(Type t) {
  switch (t.bits) {
  case 16:
    return unaryLanes<int16_t, int16_t, Op<int16_t>>;
  case 32:
    return unaryLanes<int32_t, int32_t, Op<int32_t>>;
  case 64:
    return unaryLanes<int64_t, int64_t, Op<int64_t>>;
  }
  return nullptr;
}

/// What a real device leaves unspecified when the divisor is zero is a finding here.
template <class T, bool Remainder>
void divide(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a), *b = x.reg<T>(i.b);
  Mask zero = lanesWhere([b](unsigned l) { return b[l] == 0; }) & m;
  if (zero)
    return report(x, i, zero, Finding::Instruction, "integer division by zero");
  T *d = x.reg<T>(i.d);
  for (unsigned l = 0; l < WarpSize; ++l) {
    if (!(m >> l & 1))
      continue;
    // the one quotient that overflows wraps
    bool wraps = std::is_signed_v<T> && b[l] == static_cast<T>(-1);
    if (Remainder)
      d[l] = wraps ? T(0) : static_cast<T>(a[l] % b[l]);
    else
      d[l] = wraps ? Neg<T>::run(a[l]) : static_cast<T>(a[l] / b[l]);
  }
}
template <bool Remainder>
Handler division(Type t) {
  bool s = t.isSigned();
  switch (t.bits) {
  case 16:
    return s ? divide<int16_t, Remainder> : divide<uint16_t, Remainder>;
  case 32:
    return s ? divide<int32_t, Remainder> : divide<uint32_t, Remainder>;
  case 64:
    return s ? divide<int64_t, Remainder> : divide<uint64_t, Remainder>;
  }
  return nullptr;
}

/// add/sub with the carry flag, a mask at place c: flag bit 0 writes it, bit 1 reads it, bit 2 subtracts.
template <class T>
void carry(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a), *b = x.reg<T>(i.b);
  T *d = x.reg<T>(i.d);
  Mask &flag = x.pred(i.c);
  for (unsigned l = 0; l < WarpSize; ++l) {
    if (!(m >> l & 1))
      continue;
    unsigned __int128 in = (i.flag & 2) ? flag >> l & 1 : 0;
    unsigned __int128 r = (i.flag & 4) ? static_cast<unsigned __int128>(a[l]) - b[l] - in
                                       : static_cast<unsigned __int128>(a[l]) + b[l] + in;
    d[l] = static_cast<T>(r);
    if (i.flag & 1)
      flag = (flag & ~(Mask(1) << l)) | (static_cast<Mask>(r >> (8 * sizeof(T)) & 1) << l);
  }
}

/// dp4a: four products of bytes. flag bit 0: a is signed, bit 1: b is signed.
void dotBytes(Exec &x, const Instr &i, Mask m) {
  const uint32_t *a = x.reg<uint32_t>(i.a), *b = x.reg<uint32_t>(i.b), *c = x.reg<uint32_t>(i.c);
  bool sa = i.flag & 1, sb = i.flag & 2;
  eachLane(x.reg<uint32_t>(i.d), m, [=](unsigned l) {
    uint32_t r = c[l];
    for (int k = 0; k < 32; k += 8) {
      uint32_t p = a[l] >> k & 255, q = b[l] >> k & 255;
      int32_t u = sa ? static_cast<int8_t>(p) : static_cast<int32_t>(p),
              v = sb ? static_cast<int8_t>(q) : static_cast<int32_t>(q);
      r += static_cast<uint32_t>(u * v);
    }
    return r;
  });
}

bool isInteger(Type t) { return (t.kind == 's' || t.kind == 'u') && !t.packed; }

void decodeBinary(Decoder &d, Handler fn, Type t) {
  if (!fn)
    d.fail("no such type");
  d.done(3);
  d.i.fn = fn;
  d.i.a = d.source(1, t);
  d.i.b = d.source(2, t);
  d.i.d = d.destination(0, t);
}

void decodeCarry(Decoder &d, Type t, uint8_t flag) {
  d.done(3);
  if (t.bits != 32 && t.bits != 64)
    d.fail("no such type");
  d.i.flag = flag;
  d.i.fn = t.bits == 32 ? carry<uint32_t> : carry<uint64_t>;
  d.i.c = d.temporary("carry", 4);
  d.i.a = d.source(1, t);
  d.i.b = d.source(2, t);
  d.i.d = d.destination(0, t);
}

void decodeMul(Decoder &d, Type t) {
  int part = d.takeOneOf({"lo", "hi", "wide"});
  d.done(3);
  Handler fn = part == 0 ? binary<MulLo>(t) : part == 1 ? binary<MulHi>(t) : nullptr;
  Type result = t;
  if (part == 2) {
    result.bits = static_cast<uint8_t>(t.bits * 2);
    bool s = t.isSigned();
    if (t.bits == 16)
      fn = s ? binaryLanes<int32_t, int16_t, MulWide<int16_t>>
             : binaryLanes<uint32_t, uint16_t, MulWide<uint16_t>>;
    else if (t.bits == 32)
      fn = s ? binaryLanes<int64_t, int32_t, MulWide<int32_t>>
             : binaryLanes<uint64_t, uint32_t, MulWide<uint32_t>>;
  }
  if (!fn)
    d.fail("no such product");
  d.i.fn = fn;
  d.i.a = d.source(1, t);
  d.i.b = d.source(2, t);
  d.i.d = d.destination(0, result);
}

void decodeMad(Decoder &d, Type t) {
  int part = d.takeOneOf({"lo", "hi", "wide"});
  d.done(4);
  Handler fn = part == 0 ? ternary<MadLo>(t) : part == 1 ? ternary<MadHi>(t) : nullptr;
  Type result = t;
  if (part == 2) {
    result.bits = static_cast<uint8_t>(t.bits * 2);
    bool s = t.isSigned();
    if (t.bits == 16)
      fn = s ? ternaryLanes<int32_t, int16_t, int32_t, MadWide<int16_t>>
             : ternaryLanes<uint32_t, uint16_t, uint32_t, MadWide<uint16_t>>;
    else if (t.bits == 32)
      fn = s ? ternaryLanes<int64_t, int32_t, int64_t, MadWide<int32_t>>
             : ternaryLanes<uint64_t, uint32_t, uint64_t, MadWide<uint32_t>>;
  }
  if (!fn)
    d.fail("no such product");
  d.i.fn = fn;
  d.i.a = d.source(1, t);
  d.i.b = d.source(2, t);
  d.i.c = d.source(3, result);
  d.i.d = d.destination(0, result);
}

} // namespace

/// The integer forms of instructions that floating point has too; false when the type is not an integer.
bool decodeIntegerForm(Decoder &d, Type t) {
  if (!isInteger(t))
    return false;
  const std::string &n = d.name();
  if (n == "add" || n == "sub") {
    if (d.take("cc")) {
      decodeCarry(d, t, n == "add" ? 1 : 5);
    } else if (d.take("sat")) {
      if (t.kind != 's' || t.bits != 32)
        d.fail("saturation is for s32 only");
      decodeBinary(d,
                   n == "add" ? binaryLanes<int32_t, int32_t, AddSat<int32_t>>
                              : binaryLanes<int32_t, int32_t, SubSat<int32_t>>,
                   t);
    } else {
      decodeBinary(d, n == "add" ? binary<Add>(t) : binary<Sub>(t), t);
    }
  } else if (n == "mul") {
    decodeMul(d, t);
  } else if (n == "mad") {
    decodeMad(d, t);
  } else if (n == "div") {
    decodeBinary(d, division<false>(t), t);
  } else if (n == "min") {
    decodeBinary(d, binary<Min>(t), t);
  } else if (n == "max") {
    decodeBinary(d, binary<Max>(t), t);
  } else if (n == "neg" || n == "abs") {
    d.done(2);
    d.i.fn = n == "neg" ? unarySigned<Neg>(t) : unarySigned<Abs>(t);
    if (!d.i.fn || t.kind != 's')
      d.fail("no such type");
    d.i.a = d.source(1, t);
    d.i.d = d.destination(0, t);
  } else {
    d.fail("no form for integers");
  }
  return true;
}

void addInteger(DecodeTable &table) {
  table["rem"] = [](Decoder &d) {
    Type t = d.takeType();
    decodeBinary(d, isInteger(t) ? division<true>(t) : nullptr, t);
  };
  table["addc"] = [](Decoder &d) {
    bool writes = d.take("cc");
    decodeCarry(d, d.takeType(), writes ? 3 : 2);
  };
  table["subc"] = [](Decoder &d) {
    bool writes = d.take("cc");
    decodeCarry(d, d.takeType(), writes ? 7 : 6);
  };
  table["sad"] = [](Decoder &d) {
    Type t = d.takeType();
    d.done(4);
    d.i.fn = isInteger(t) ? ternary<Sad>(t) : nullptr;
    if (!d.i.fn)
      d.fail("no such type");
    d.i.a = d.source(1, t);
    d.i.b = d.source(2, t);
    d.i.c = d.source(3, t);
    d.i.d = d.destination(0, t);
  };
  table["mul24"] = [](Decoder &d) {
    Type t = d.takeType();
    int part = d.takeOneOf({"lo", "hi"});
    if (t.bits != 32 || !isInteger(t) || part < 0)
      d.fail("no such type");
    bool s = t.isSigned();
    decodeBinary(d,
                 part == 0 ? (s ? binaryLanes<int32_t, int32_t, Mul24Lo<int32_t>>
                                : binaryLanes<uint32_t, uint32_t, Mul24Lo<uint32_t>>)
                           : (s ? binaryLanes<int32_t, int32_t, Mul24Hi<int32_t>>
                                : binaryLanes<uint32_t, uint32_t, Mul24Hi<uint32_t>>),
                 t);
  };
  table["dp4a"] = [](Decoder &d) {
    Type a = d.takeType(), b = d.takeType();
    d.done(4);
    if (a.bits != 32 || b.bits != 32 || !isInteger(a) || !isInteger(b))
      d.fail("no such type");
    d.i.fn = dotBytes;
    d.i.flag = static_cast<uint8_t>((a.isSigned() ? 1 : 0) | (b.isSigned() ? 2 : 0));
    d.i.a = d.source(1, a);
    d.i.b = d.source(2, b);
    Type c{a.isSigned() || b.isSigned() ? 's' : 'u', 32, false};
    d.i.c = d.source(3, c);
    d.i.d = d.destination(0, c);
  };
}

} // namespace lathe::emu
