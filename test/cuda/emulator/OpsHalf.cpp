// f16 and bf16, one value or two in a word. Sums, products and fma are computed exactly enough that one
// rounding follows.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Numeric.h"

namespace lathe::emu {
namespace {

struct Half {
  static float value(uint16_t v) { return halfToFloat(v); }
  static uint16_t round(float v) { return floatToHalf(v); }
  static uint16_t roundOdd(double v) {
    return static_cast<uint16_t>(roundDouble(v, HalfFormat, Rounding::Nearest));
  }
};
struct BFloat {
  static float value(uint16_t v) { return bfloatToFloat(v); }
  static uint16_t round(float v) { return floatToBfloat(v); }
  static uint16_t roundOdd(double v) {
    return static_cast<uint16_t>(roundDouble(v, BFloatFormat, Rounding::Nearest));
  }
};

constexpr uint16_t Nan = 0x7fff;

// f32 has more than twice the bits of either format, so that rounding a sum or product twice is rounding
// once; sums of bf16 may need more than f32 has
template <class F>
struct Add {
  static uint16_t run(uint16_t a, uint16_t b) { return F::roundOdd(fmaOdd(1.0, F::value(a), F::value(b))); }
};
template <>
struct Add<Half> {
  static uint16_t run(uint16_t a, uint16_t b) { return Half::round(Half::value(a) + Half::value(b)); }
};
template <class F>
struct Sub {
  static uint16_t run(uint16_t a, uint16_t b) { return Add<F>::run(a, b ^ 0x8000); }
};
template <class F>
struct Mul {
  static uint16_t run(uint16_t a, uint16_t b) {
    return F::roundOdd(static_cast<double>(F::value(a)) * F::value(b));
  }
};
template <class F>
struct Fma {
  static uint16_t run(uint16_t a, uint16_t b, uint16_t c) {
    return F::roundOdd(fmaOdd(F::value(a), F::value(b), F::value(c)));
  }
};
template <class F>
struct FmaRelu {
  static uint16_t run(uint16_t a, uint16_t b, uint16_t c) {
    uint16_t r = Fma<F>::run(a, b, c);
    return r & 0x8000 ? uint16_t(0) : r;
  }
};
template <class F, bool KeepNan>
struct Min {
  static uint16_t run(uint16_t a, uint16_t b) {
    float x = F::value(a), y = F::value(b);
    if (x != x || y != y)
      return KeepNan || (x != x && y != y) ? Nan : x != x ? b : a;
    return x < y ? a : y < x ? b : a & 0x8000 ? a : b;
  }
};
template <class F, bool KeepNan>
struct Max {
  static uint16_t run(uint16_t a, uint16_t b) {
    float x = F::value(a), y = F::value(b);
    if (x != x || y != y)
      return KeepNan || (x != x && y != y) ? Nan : x != x ? b : a;
    return x > y ? a : y > x ? b : a & 0x8000 ? b : a;
  }
};
struct Neg {
  static uint16_t run(uint16_t a) { return a ^ 0x8000; }
};
struct Abs {
  static uint16_t run(uint16_t a) { return a & 0x7fff; }
};
template <class F>
struct Ex2 {
  static uint16_t run(uint16_t a) { return F::roundOdd(std::exp2(static_cast<double>(F::value(a)))); }
};
template <class F>
struct Tanh {
  static uint16_t run(uint16_t a) { return F::roundOdd(std::tanh(static_cast<double>(F::value(a)))); }
};
/// .sat of f16: to [0, 1]
template <class Op>
struct Sat {
  static uint16_t clamp(uint16_t v) {
    return v & 0x8000 || (v & 0x7fff) > 0x7c00 ? uint16_t(0) : v > 0x3c00 ? uint16_t(0x3c00) : v;
  }
  static uint16_t run(uint16_t a, uint16_t b) { return clamp(Op::run(a, b)); }
  static uint16_t run(uint16_t a, uint16_t b, uint16_t c) { return clamp(Op::run(a, b, c)); }
};
/// .ftz of f16
template <class Op>
struct Ftz {
  static uint16_t flush(uint16_t v) { return v & 0x7c00 ? v : v & 0x8000; }
  static uint16_t run(uint16_t a) { return flush(Op::run(flush(a))); }
  static uint16_t run(uint16_t a, uint16_t b) { return flush(Op::run(flush(a), flush(b))); }
  static uint16_t run(uint16_t a, uint16_t b, uint16_t c) {
    return flush(Op::run(flush(a), flush(b), flush(c)));
  }
};
/// Both values of a word.
template <class Op>
struct Pair {
  static uint32_t join(uint16_t lo, uint16_t hi) { return static_cast<uint32_t>(hi) << 16 | lo; }
  static uint16_t lo(uint32_t v) { return static_cast<uint16_t>(v); }
  static uint16_t hi(uint32_t v) { return static_cast<uint16_t>(v >> 16); }
  static uint32_t run(uint32_t a) { return join(Op::run(lo(a)), Op::run(hi(a))); }
  static uint32_t run(uint32_t a, uint32_t b) { return join(Op::run(lo(a), lo(b)), Op::run(hi(a), hi(b))); }
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    return join(Op::run(lo(a), lo(b), lo(c)), Op::run(hi(a), hi(b), hi(c)));
  }
};

template <class Op, unsigned Sources>
Handler lanes(Type t) {
  if constexpr (Sources == 1)
    return t.packed ? unaryLanes<uint32_t, uint32_t, Pair<Op>> : unaryLanes<uint16_t, uint16_t, Op>;
  else if constexpr (Sources == 2)
    return t.packed ? binaryLanes<uint32_t, uint32_t, Pair<Op>> : binaryLanes<uint16_t, uint16_t, Op>;
  else
    return t.packed ? ternaryLanes<uint32_t, uint32_t, uint32_t, Pair<Op>>
                    : ternaryLanes<uint16_t, uint16_t, uint16_t, Op>;
}

template <template <class> class Op, unsigned Sources>
Handler either(Decoder &d, Type t) {
  if (t.kind == 'h')
    return lanes<Op<BFloat>, Sources>(t);
  if (d.take("ftz"))
    return lanes<Ftz<Op<Half>>, Sources>(t);
  if constexpr (Sources > 1)
    if (d.take("sat"))
      return lanes<Sat<Op<Half>>, Sources>(t);
  return lanes<Op<Half>, Sources>(t);
}

void finish(Decoder &d, Type t, Handler fn, size_t sources) {
  d.done(sources + 1);
  d.i.fn = fn;
  d.i.a = d.source(1, t);
  if (sources > 1)
    d.i.b = d.source(2, t);
  if (sources > 2)
    d.i.c = d.source(3, t);
  d.i.d = d.destination(0, t);
}

} // namespace

/// The 16-bit forms of arithmetic; false when the type is another.
bool decodeHalfForm(Decoder &d, Type t) {
  if (!((t.kind == 'f' || t.kind == 'h') && t.bits == 16))
    return false;
  const std::string &n = d.name();
  bool bf = t.kind == 'h';
  if (n == "add" || n == "sub" || n == "mul") {
    d.take("rn");
    finish(d, t,
           n == "add"   ? either<Add, 2>(d, t)
           : n == "sub" ? either<Sub, 2>(d, t)
                        : either<Mul, 2>(d, t),
           2);
  } else if (n == "fma") {
    if (!d.take("rn"))
      d.fail("no rounding");
    if (d.take("relu"))
      finish(d, t, bf ? lanes<FmaRelu<BFloat>, 3>(t) : lanes<FmaRelu<Half>, 3>(t), 3);
    else
      finish(d, t, either<Fma, 3>(d, t), 3);
  } else if (n == "min" || n == "max") {
    d.take("ftz");
    bool nan = d.take("NaN");
    Handler fn;
    if (n == "min")
      fn = bf ? (nan ? lanes<Min<BFloat, true>, 2>(t) : lanes<Min<BFloat, false>, 2>(t))
              : (nan ? lanes<Min<Half, true>, 2>(t) : lanes<Min<Half, false>, 2>(t));
    else
      fn = bf ? (nan ? lanes<Max<BFloat, true>, 2>(t) : lanes<Max<BFloat, false>, 2>(t))
              : (nan ? lanes<Max<Half, true>, 2>(t) : lanes<Max<Half, false>, 2>(t));
    finish(d, t, fn, 2);
  } else if (n == "neg") {
    finish(d, t, lanes<Neg, 1>(t), 1);
  } else if (n == "abs") {
    finish(d, t, lanes<Abs, 1>(t), 1);
  } else if (n == "ex2" || n == "tanh") {
    if (!d.take("approx"))
      d.fail("approximate only");
    if (bf)
      d.take("ftz"); // always there for bf16, whose subnormal results are flushed
    finish(d, t, n == "ex2" ? either<Ex2, 1>(d, t) : either<Tanh, 1>(d, t), 1);
  } else {
    d.fail("no form for 16-bit values");
  }
  return true;
}

} // namespace lathe::emu
