// cvt between all types: integers clamp, floating point rounds as said and saturates; and cvta, which for
// this emulator adds or removes a window's base.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Numeric.h"

#include <limits>

namespace lathe::emu {
namespace {

/// What a conversion that has no loop of its own does, by lane.
struct Conversion {
  Type from, to;
  Rounding rounding = Rounding::Nearest;
  bool integerRounding = false, ftz = false, sat = false, relu = false;
};

double roundToIntegral(double v, Rounding r) {
  switch (r) {
  case Rounding::Zero:
    return std::trunc(v);
  case Rounding::Down:
    return std::floor(v);
  case Rounding::Up:
    return std::ceil(v);
  default:
    return std::nearbyint(v);
  }
}

uint64_t readLane(const char *place, unsigned bytes, unsigned lane) {
  uint64_t v = 0;
  std::memcpy(&v, place + lane * bytes, bytes);
  return v;
}

double floatValue(uint64_t bits, Type t) {
  if (t.kind == 'h')
    return bfloatToFloat(static_cast<uint16_t>(bits));
  if (t.bits == 16)
    return halfToFloat(static_cast<uint16_t>(bits));
  if (t.bits == 32)
    return bitsTo<float>(static_cast<uint32_t>(bits));
  return bitsTo<double>(bits);
}

Format formatOf(Type t) {
  if (t.kind == 'h')
    return BFloatFormat;
  return t.bits == 16 ? HalfFormat : t.bits == 32 ? FloatFormat : DoubleFormat;
}

uint64_t floatToInteger(double v, Type from, Type to, Rounding r) {
  if (v != v)
    return from.bits == 64 || to.bits == 64 ? uint64_t(1) << (to.bits - 1) : 0;
  v = roundToIntegral(v, r);
  double upper = std::ldexp(1.0, to.bits - (to.isSigned() ? 1 : 0)), lower = to.isSigned() ? -upper : 0;
  if (v >= upper)
    return to.isSigned()   ? (uint64_t(1) << (to.bits - 1)) - 1
           : to.bits == 64 ? ~uint64_t(0)
                           : (uint64_t(1) << to.bits) - 1;
  if (v <= lower)
    return to.isSigned() ? ~uint64_t(0) << (to.bits - 1) : 0;
  return to.isSigned() ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v);
}

uint64_t convert(const Conversion &c, uint64_t bits) {
  if (!c.from.isFloat()) {
    int64_t s = static_cast<int64_t>(bits << (64 - c.from.bits)) >> (64 - c.from.bits);
    bool negative = c.from.isSigned() && s < 0;
    uint64_t magnitude = negative            ? 0 - static_cast<uint64_t>(s)
                         : c.from.bits == 64 ? bits
                                             : bits & ((uint64_t(1) << c.from.bits) - 1);
    if (c.to.isFloat())
      return magnitude ? roundTo(negative, magnitude, 0, formatOf(c.to), c.rounding) : 0;
    uint64_t value = negative ? static_cast<uint64_t>(s) : magnitude;
    if (!c.sat)
      return value;
    uint64_t most = c.to.isSigned()   ? (uint64_t(1) << (c.to.bits - 1)) - 1
                    : c.to.bits == 64 ? ~uint64_t(0)
                                      : (uint64_t(1) << c.to.bits) - 1;
    if (!negative)
      return magnitude > most ? most : value;
    return !c.to.isSigned() ? 0 : magnitude > most + 1 ? ~most : value;
  }
  double v = floatValue(bits, c.from);
  if (c.ftz && c.from.bits == 32)
    v = flush(static_cast<float>(v));
  if (!c.to.isFloat())
    return floatToInteger(v, c.from, c.to, c.rounding);
  if (c.integerRounding)
    v = roundToIntegral(v, c.rounding);
  if (c.sat)
    v = v >= 0 ? (v > 1 ? 1.0 : v + 0.0) : 0.0;
  if (c.relu && v <= 0)
    v = 0;
  uint64_t r;
  if (v != v && c.from.bits == 32 && c.from.kind == 'f' && c.to.kind == 't')
    r = bits & 0xffffe000; // as sm_90 does it: what is left may be an infinity
  else if (v != v && c.from.bits == 64 && c.to.kind == 'f' && c.to.bits == 32)
    r = bitsTo<uint32_t>(static_cast<float>(v)); // NaN keeps its highest bits from and to f64
  else if (c.to.kind == 't')
    // 10 bits of mantissa in the place of f32
    r = roundDouble(v, Format{10, 8}, c.rounding) << 13;
  else if (v != v && c.to.bits == 64)
    r = bitsTo<uint64_t>(v);
  else
    r = roundDouble(v, formatOf(c.to), c.rounding);
  if (c.ftz && c.to.kind == 'f' && c.to.bits == 32)
    r = bitsTo<uint32_t>(flush(bitsTo<float>(static_cast<uint32_t>(r))));
  return r;
}

/// bytes: of the source's register; count: of the destination's. imm points nowhere: the conversion is packed
/// into it.
int64_t pack(const Conversion &c) {
  auto type = [](Type t) { return static_cast<int64_t>(t.kind) << 8 | t.bits; };
  return type(c.from) | type(c.to) << 16 | static_cast<int64_t>(c.rounding) << 32 |
         static_cast<int64_t>(c.integerRounding) << 36 | static_cast<int64_t>(c.ftz) << 37 |
         static_cast<int64_t>(c.sat) << 38 | static_cast<int64_t>(c.relu) << 39;
}
Conversion unpack(int64_t v) {
  Conversion c;
  c.from = {static_cast<char>(v >> 8 & 255), static_cast<uint8_t>(v & 255), false};
  c.to = {static_cast<char>(v >> 24 & 255), static_cast<uint8_t>(v >> 16 & 255), false};
  c.rounding = static_cast<Rounding>(v >> 32 & 15);
  c.integerRounding = v >> 36 & 1;
  c.ftz = v >> 37 & 1;
  c.sat = v >> 38 & 1;
  c.relu = v >> 39 & 1;
  return c;
}

void writeLane(char *place, unsigned bytes, unsigned lane, uint64_t v) {
  std::memcpy(place + lane * bytes, &v, bytes);
}

void convertLanes(Exec &x, const Instr &i, Mask m) {
  Conversion c = unpack(i.imm);
  const char *a = x.regs + i.a;
  char *d = x.regs + i.d;
  // an integer in a larger register is extended by its sign
  bool extend = !c.to.isFloat() && c.to.isSigned();
  for (unsigned l = 0; l < WarpSize; ++l) {
    if (!(m >> l & 1))
      continue;
    uint64_t r = convert(c, readLane(a, i.bytes, l));
    if (!c.to.isFloat() && c.to.bits < 64) {
      r &= (uint64_t(1) << c.to.bits) - 1;
      if (extend)
        r = static_cast<uint64_t>(static_cast<int64_t>(r << (64 - c.to.bits)) >> (64 - c.to.bits));
    }
    writeLane(d, i.count, l, r);
  }
}

/// Two values into a word: the first operand is the upper half.
void convertPair(Exec &x, const Instr &i, Mask m) {
  Conversion c = unpack(i.imm);
  const char *a = x.regs + i.a, *b = x.regs + i.b;
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1)
      writeLane(x.regs + i.d, 4, l,
                (convert(c, readLane(a, 4, l)) & 0xffff) << 16 | (convert(c, readLane(b, 4, l)) & 0xffff));
}

template <class From, class To>
void simple(Exec &x, const Instr &i, Mask m) {
  const From *a = x.reg<From>(i.a);
  eachLane(x.reg<To>(i.d), m, [a](unsigned l) { return static_cast<To>(a[l]); });
}
void halfToSingle(Exec &x, const Instr &i, Mask m) {
  const uint16_t *a = x.reg<uint16_t>(i.a);
  eachLane(x.reg<float>(i.d), m, [a](unsigned l) { return canonical(halfToFloat(a[l])); });
}
void singleToHalf(Exec &x, const Instr &i, Mask m) {
  const float *a = x.reg<float>(i.a);
  eachLane(x.reg<uint16_t>(i.d), m, [a](unsigned l) { return floatToHalf(a[l]); });
}

/// Loops of their own for what index arithmetic and common code do; nullptr for the rest.
Handler quick(const Conversion &c, unsigned fromBytes, unsigned toBytes) {
  if (c.sat || c.ftz || c.relu || c.integerRounding)
    return nullptr;
  auto is = [&](const char *from, const char *to) {
    return c.from == parseType(from) && c.to == parseType(to);
  };
  bool exact = fromBytes * 8 == c.from.bits && toBytes * 8 == c.to.bits;
  if (!exact)
    return nullptr;
  if (is("u32", "u64"))
    return simple<uint32_t, uint64_t>;
  if (is("s32", "s64"))
    return simple<int32_t, int64_t>;
  if (is("u64", "u32") || is("s64", "s32") || is("s64", "u32") || is("u64", "s32"))
    return simple<uint64_t, uint32_t>;
  if (is("u16", "u32"))
    return simple<uint16_t, uint32_t>;
  if (is("s16", "s32"))
    return simple<int16_t, int32_t>;
  if (is("u32", "u16"))
    return simple<uint32_t, uint16_t>;
  if (is("s32", "f32") && c.rounding == Rounding::Nearest)
    return simple<int32_t, float>;
  if (is("u32", "f32") && c.rounding == Rounding::Nearest)
    return simple<uint32_t, float>;
  if (is("s32", "f64"))
    return simple<int32_t, double>;
  if (is("f16", "f32"))
    return halfToSingle;
  if (is("f32", "f16") && c.rounding == Rounding::Nearest)
    return singleToHalf;
  return nullptr;
}

void decodeConvert(Decoder &d) {
  Conversion c;
  int r = d.takeOneOf({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"});
  static const Rounding modes[] = {Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up};
  if (r >= 5) {
    c.integerRounding = true;
    c.rounding = modes[r - 5];
  } else if (r == 4) {
    c.rounding = Rounding::Away;
  } else if (r >= 0) {
    c.rounding = modes[r];
  }
  c.ftz = d.take("ftz");
  c.sat = d.take("sat");
  c.relu = d.take("relu");
  c.to = d.takeType();
  c.from = d.takeType();
  if (c.to.packed) {
    d.done(3);
    if (c.from.bits != 32 || c.from.kind != 'f' || r < 0)
      d.fail("no such conversion");
    d.i.a = d.source(1, c.from);
    d.i.b = d.source(2, c.from);
    d.i.d = d.destination(0, c.to);
    c.to.packed = false;
    d.i.imm = pack(c);
    d.i.fn = convertPair;
    return;
  }
  d.done(2);
  bool narrows =
      c.from.isFloat() && c.to.isFloat() && (c.to.bits < c.from.bits || c.to.kind == 't' || c.to.kind == 'h');
  if (c.from.isFloat() != c.to.isFloat() || narrows) {
    if (r < 0)
      d.fail("no rounding");
    if (!c.to.isFloat() && !c.integerRounding)
      d.fail("no rounding to an integer");
  }
  if (c.from.kind == 'b' || c.to.kind == 'b' || c.from.kind == 'p' || c.from.packed)
    d.fail("no such conversion");
  unsigned bytes = 2, from = std::max(2, c.from.bits / 8);
  const Operand &o = d.s.operands[1];
  d.i.a = d.source(1, c.from, true);
  if (o.kind == Operand::Name && d.registerBytes(o.name))
    from = d.registerBytes(o.name);
  d.i.d = d.destination(0, c.to, true, &bytes);
  d.i.bytes = static_cast<uint8_t>(from);
  d.i.count = static_cast<uint8_t>(bytes);
  d.i.imm = pack(c);
  d.i.fn = quick(c, from, bytes);
  if (!d.i.fn)
    d.i.fn = convertLanes;
}

/// cvta: imm is added, or removed where flag says so; addresses that are no part of the window are kept as
/// they are.
void convertAddress(Exec &x, const Instr &i, Mask m) {
  const uint64_t *a = x.reg<uint64_t>(i.a);
  uint64_t window = static_cast<uint64_t>(i.imm);
  bool to = i.flag;
  eachLane(x.reg<uint64_t>(i.d), m, [=](unsigned l) { return to ? a[l] - window : a[l] + window; });
}

} // namespace

void addConvert(DecodeTable &table) {
  table["cvt"] = decodeConvert;
  table["cvta"] = [](Decoder &d) {
    d.i.flag = d.take("to");
    Space space = d.takeSpace();
    Type t = d.takeType();
    d.done(2);
    if (t.bits != 64 || space == Space::Generic)
      d.fail("no such conversion");
    if (space == Space::Param)
      d.fail("generic addresses of parameters are not supported");
    d.i.fn = convertAddress;
    d.i.imm = static_cast<int64_t>(space == Space::Shared  ? SharedWindow
                                   : space == Space::Local ? LocalWindow
                                                           : 0);
    d.i.a = d.source(1, t);
    d.i.d = d.destination(0, t);
  };
  table["isspacep"] = [](Decoder &d) {
    Space space = d.takeSpace();
    d.done(2);
    if (space != Space::Global && space != Space::Shared && space != Space::Local)
      d.fail("no such space");
    d.i.imm = static_cast<int64_t>(space == Space::Shared  ? SharedWindow
                                   : space == Space::Local ? LocalWindow
                                                           : 0);
    d.i.a = d.source(1, Type{'u', 64, false});
    d.i.d = d.predicateDestination(d.s.operands[0].name);
    d.i.fn = [](Exec &x, const Instr &i, Mask m) {
      const uint64_t *a = x.reg<uint64_t>(i.a);
      uint64_t window = static_cast<uint64_t>(i.imm);
      Mask r = lanesWhere([=](unsigned l) {
        uint64_t w = a[l] & WindowMask;
        return window ? w == window : w != SharedWindow && w != LocalWindow;
      });
      x.pred(i.d) = (x.pred(i.d) & ~m) | (r & m);
    };
  };
}

} // namespace lathe::emu
