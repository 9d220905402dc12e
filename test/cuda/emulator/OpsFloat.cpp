// f32 and f64 arithmetic rounded to nearest, and the approximate functions. Results that are no number are
// PTX's NaN. Approximate functions give the correctly rounded value, which is within the bounds of any
// device.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Numeric.h"

namespace lathe::emu {

// the other families' forms of the same words
bool decodeIntegerForm(Decoder &d, Type t);
bool decodeHalfForm(Decoder &d, Type t);
bool decodeRoundedForm(Decoder &d, Type t);

namespace {

struct Add {
  template <class T>
  static T run(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  static T run(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  static T run(T a, T b) {
    return a * b;
  }
};
struct Fma {
  static float run(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double run(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Div {
  template <class T>
  static T run(T a, T b) {
    return a / b;
  }
};
struct DivApprox {
  static float run(float a, float b) {
    float m = __builtin_fabsf(b);
    // the reciprocal of such a divisor is flushed by the hardware
    if (m > 0x1p126f && m < __builtin_inff())
      return __builtin_isinf(a) ? __builtin_nanf("")
             : a == 0 || a != a ? a * 0.0f
                                : std::copysign(0.0f, std::copysign(1.0f, a) * b);
    return a / b;
  }
};
struct Rcp {
  template <class T>
  static T run(T a) {
    return T(1) / a;
  }
};
/// The host's NaN for a negative operand has a sign; compilers may take a test of the root for one of the
/// operand.
struct Sqrt {
  static float run(float a) { return a < 0 ? bitsTo<float>(0x7fffffffu) : __builtin_sqrtf(a); }
  static double run(double a) { return __builtin_sqrt(a); }
};
struct Rsqrt {
  static float run(float a) {
    return a < 0 ? bitsTo<float>(0x7fffffffu)
                 : static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a)));
  }
  static double run(double a) { return 1.0 / __builtin_sqrt(a); }
};
struct Ex2 {
  static float run(float a) { return static_cast<float>(std::exp2(static_cast<double>(a))); }
};
struct Lg2 {
  static float run(float a) { return static_cast<float>(std::log2(static_cast<double>(a))); }
};
struct Sin {
  static float run(float a) { return static_cast<float>(std::sin(static_cast<double>(a))); }
};
struct Cos {
  static float run(float a) { return static_cast<float>(std::cos(static_cast<double>(a))); }
};
struct Tanh {
  static float run(float a) { return static_cast<float>(std::tanh(static_cast<double>(a))); }
};
struct Neg {
  static float run(float a) { return bitsTo<float>(bitsTo<uint32_t>(a) ^ 0x80000000u); }
  static double run(double a) { return bitsTo<double>(bitsTo<uint64_t>(a) ^ (uint64_t(1) << 63)); }
};
struct Abs {
  static float run(float a) { return bitsTo<float>(bitsTo<uint32_t>(a) & 0x7fffffffu); }
  static double run(double a) { return bitsTo<double>(bitsTo<uint64_t>(a) & ~(uint64_t(1) << 63)); }
};
template <class T>
bool negative(T v) {
  if constexpr (sizeof(T) == 4)
    return bitsTo<uint32_t>(v) >> 31;
  else
    return bitsTo<uint64_t>(v) >> 63;
}
/// -0 is below +0; one operand that is no number gives the other.
template <bool KeepNan>
struct Min {
  template <class T>
  static T run(T a, T b) {
    T r = a < b ? a : b < a ? b : negative(a) ? a : b;
    if (a != a || b != b)
      r = KeepNan ? a + b : a != a ? b : a;
    return r;
  }
};
template <bool KeepNan>
struct Max {
  template <class T>
  static T run(T a, T b) {
    T r = a > b ? a : b > a ? b : negative(a) ? b : a;
    if (a != a || b != b)
      r = KeepNan ? a + b : a != a ? b : a;
    return r;
  }
};
/// The magnitude of b with the sign of a.
struct Copysign {
  static float run(float a, float b) {
    return bitsTo<float>((bitsTo<uint32_t>(a) & 0x80000000u) | (bitsTo<uint32_t>(b) & 0x7fffffffu));
  }
  static double run(double a, double b) {
    uint64_t s = uint64_t(1) << 63;
    return bitsTo<double>((bitsTo<uint64_t>(a) & s) | (bitsTo<uint64_t>(b) & ~s));
  }
};

/// An operation with PTX's NaN, and .ftz and .sat around it.
template <class Op, bool Ftz, bool Sat>
struct With {
  template <class T>
  static T in(T v) {
    if constexpr (Ftz && sizeof(T) == 4)
      return flush(v);
    else
      return v;
  }
  template <class T>
  static T out(T v) {
    if constexpr (Sat && sizeof(T) == 4)
      v = saturate(v);
    if constexpr (Ftz && sizeof(T) == 4)
      v = flush(v);
    return canonical(v);
  }
  template <class T>
  static T run(T a) {
    return out(Op::run(in(a)));
  }
  template <class T>
  static T run(T a, T b) {
    return out(Op::run(in(a), in(b)));
  }
  template <class T>
  static T run(T a, T b, T c) {
    return out(Op::run(in(a), in(b), in(c)));
  }
};

/// The handler of an operation with that many sources.
template <class T, class Op, unsigned Sources>
constexpr Handler lanes() {
  if constexpr (Sources == 1)
    return unaryLanes<T, T, Op>;
  else if constexpr (Sources == 2)
    return binaryLanes<T, T, Op>;
  else
    return ternaryLanes<T, T, T, Op>;
}

/// Takes .ftz and .sat and chooses the handler; nullptr for types without the operation.
template <class Op, unsigned Sources>
Handler choose(Decoder &d, Type t) {
  bool ftz = d.take("ftz"), sat = d.take("sat");
  if (t.packed || t.kind != 'f')
    return nullptr;
  if (t.bits == 32) {
    if (ftz)
      return sat ? lanes<float, With<Op, true, true>, Sources>()
                 : lanes<float, With<Op, true, false>, Sources>();
    return sat ? lanes<float, With<Op, false, true>, Sources>()
               : lanes<float, With<Op, false, false>, Sources>();
  }
  if (ftz || sat || t.bits != 64)
    return nullptr;
  return lanes<double, With<Op, false, false>, Sources>();
}
template <class Op, unsigned Sources>
Handler chooseSingle(Decoder &d, Type t) {
  bool ftz = d.take("ftz");
  if (t.packed || t.kind != 'f' || t.bits != 32)
    return nullptr;
  return ftz ? lanes<float, With<Op, true, false>, Sources>()
             : lanes<float, With<Op, false, false>, Sources>();
}

void finish(Decoder &d, Type t, Handler fn, size_t sources) {
  if (!fn)
    d.fail("no such type or modifier");
  d.done(sources + 1);
  d.i.fn = fn;
  d.i.a = d.source(1, t);
  if (sources > 1)
    d.i.b = d.source(2, t);
  if (sources > 2)
    d.i.c = d.source(3, t);
  d.i.d = d.destination(0, t);
}

template <class Op, unsigned Sources>
void arithmetic(Decoder &d) {
  Type t = d.takeType();
  if (decodeIntegerForm(d, t) || decodeHalfForm(d, t))
    return;
  if (decodeRoundedForm(d, t))
    return;
  d.take("rn");
  finish(d, t, choose<Op, Sources>(d, t), Sources);
}

void minMax(Decoder &d) {
  Type t = d.takeType();
  if (decodeIntegerForm(d, t) || decodeHalfForm(d, t))
    return;
  bool nan = d.take("NaN"), min = d.name() == "min";
  Handler fn = min ? (nan ? choose<Min<true>, 2>(d, t) : choose<Min<false>, 2>(d, t))
                   : (nan ? choose<Max<true>, 2>(d, t) : choose<Max<false>, 2>(d, t));
  finish(d, t, fn, 2);
}

void division(Decoder &d) {
  Type t = d.takeType();
  if (decodeIntegerForm(d, t))
    return;
  if (d.take("approx"))
    return finish(d, t, chooseSingle<DivApprox, 2>(d, t), 2);
  if (d.take("full"))
    return finish(d, t, chooseSingle<Div, 2>(d, t), 2);
  if (decodeRoundedForm(d, t))
    return;
  if (!d.take("rn"))
    d.fail("no rounding");
  finish(d, t, choose<Div, 2>(d, t), 2);
}

/// rcp and sqrt: rounded as said or approximate.
template <class Op>
void root(Decoder &d) {
  Type t = d.takeType();
  if (!d.take("approx")) {
    if (decodeRoundedForm(d, t))
      return;
    if (!d.take("rn"))
      d.fail("no rounding");
  } else if (t.bits == 64) {
    // only the upper half of the result counts
    d.take("ftz");
    return finish(d, t, lanes<double, With<Op, false, false>, 1>(), 1);
  }
  finish(d, t, choose<Op, 1>(d, t), 1);
}

template <class Op>
void approximate(Decoder &d) {
  Type t = d.takeType();
  if (decodeHalfForm(d, t))
    return;
  if (!d.take("approx"))
    d.fail("approximate only");
  finish(d, t, chooseSingle<Op, 1>(d, t), 1);
}

/// testp: flag is the class asked for.
template <class T>
void testClass(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a);
  int which = i.flag;
  Mask r = lanesWhere([=](unsigned l) {
    int c = std::fpclassify(a[l]);
    switch (which) {
    case 0:
      return c != FP_NAN && c != FP_INFINITE;
    case 1:
      return c == FP_INFINITE;
    case 2:
      return c != FP_NAN;
    case 3:
      return c == FP_NAN;
    case 4:
      return c == FP_NORMAL;
    default:
      return c == FP_SUBNORMAL;
    }
  });
  x.pred(i.d) = (x.pred(i.d) & ~m) | (r & m);
}

} // namespace

void addFloat(DecodeTable &table) {
  table["add"] = arithmetic<Add, 2>;
  table["sub"] = arithmetic<Sub, 2>;
  table["mul"] = arithmetic<Mul, 2>;
  table["fma"] = arithmetic<Fma, 3>;
  table["mad"] = arithmetic<Fma, 3>;
  table["min"] = minMax;
  table["max"] = minMax;
  table["div"] = division;
  table["rcp"] = root<Rcp>;
  table["sqrt"] = root<Sqrt>;
  table["rsqrt"] = [](Decoder &d) {
    Type t = d.takeType();
    if (!d.take("approx"))
      d.fail("approximate only");
    finish(d, t, choose<Rsqrt, 1>(d, t), 1);
  };
  table["ex2"] = approximate<Ex2>;
  table["lg2"] = approximate<Lg2>;
  table["sin"] = approximate<Sin>;
  table["cos"] = approximate<Cos>;
  table["tanh"] = approximate<Tanh>;
  for (const char *name : {"neg", "abs"})
    table[name] = [](Decoder &d) {
      Type t = d.takeType();
      if (decodeIntegerForm(d, t) || decodeHalfForm(d, t))
        return;
      // only the sign changes, also of what is no number
      bool neg = d.name() == "neg", ftz = d.take("ftz");
      Handler fn = t.bits == 64 ? (neg ? unaryLanes<double, double, Neg> : unaryLanes<double, double, Abs>)
                   : ftz        ? (neg ? unaryLanes<float, float, With<Neg, true, false>>
                                       : unaryLanes<float, float, With<Abs, true, false>>)
                                : (neg ? unaryLanes<float, float, Neg> : unaryLanes<float, float, Abs>);
      if (t.kind != 'f' || t.packed || t.bits < 32 || (ftz && t.bits == 64))
        d.fail("no such type");
      finish(d, t, fn, 1);
    };
  table["copysign"] = [](Decoder &d) {
    Type t = d.takeType();
    finish(d, t,
           t.kind != 'f'  ? nullptr
           : t.bits == 64 ? binaryLanes<double, double, Copysign>
                          : binaryLanes<float, float, Copysign>,
           2);
  };
  table["testp"] = [](Decoder &d) {
    int which = d.takeOneOf({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    Type t = d.takeType();
    d.done(2);
    if (which < 0 || t.kind != 'f' || t.bits < 32)
      d.fail("no such test");
    d.i.fn = t.bits == 32 ? testClass<float> : testClass<double>;
    d.i.flag = static_cast<uint8_t>(which);
    d.i.a = d.source(1, t);
    d.i.d = d.predicateDestination(d.s.operands[0].name);
  };
}

} // namespace lathe::emu
