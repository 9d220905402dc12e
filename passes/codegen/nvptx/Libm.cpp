// What CPUs call C's library for, as code of our own: a device has none. Every call in a kernel's function is replaced by the
// expansion of its function.
#include "passes/codegen/nvptx/Libm.h"

#include "passes/codegen/element/MathParts.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace lathe::nvptx {

using namespace codegen;

/// x - n y for the whole n that leaves less than |y|, of the sign of x: exact, digit by digit.
static E fmodE(E x, E y) {
  KernelBuilder &b = *x.b;
  const bool wide = x.elem().isF64();
  const int64_t width = wide ? 64 : 32, digits = wide ? 52 : 23, hidden = int64_t(1) << digits;
  E signMask = x.bits().cI(wide ? std::numeric_limits<int64_t>::min() : int64_t(0x80000000));
  E sign = x.bits() & signMask, ux = x.bits() ^ sign, uy = absE(y).bits();
  // exponents, 1 for denormals, whose digits have no leading one
  auto exponent = [&](E u) { return sel((u >> digits) == 0, 1, u >> digits); };
  auto mantissa = [&](E u) {
    E low = u & (hidden - 1);
    return sel((u >> digits) == 0, low, low | hidden);
  };
  auto leadingZeros = [&](E m) { return E(b, math::CountLeadingZerosOp::create(b, m.v)) - (width - 1 - digits); };
  E ex = exponent(ux), ey = exponent(uy), mx = mantissa(ux), my = mantissa(uy);
  E zerosOfY = leadingZeros(my); // so that one subtraction a digit is enough
  my = E(b, arith::ShLIOp::create(b, my, zerosOfY));
  ey = ey - zerosOfY;
  SmallVector<Value> r = b.whileLoop(
      ValueRange{ex, mx}, [&](ValueRange v) -> Value { return E(b, v[0]) > ey; },
      [&](ValueRange v) {
        E e(b, v[0]), m(b, v[1]);
        m = sel(m >= my, m - my, m);
        return SmallVector<Value>{e - 1, m << 1};
      });
  E e(b, r[0]), m(b, r[1]);
  m = sel((ex >= ey) & (m >= my), m - my, m);
  // back to a leading one, or to a denormal
  E zeros = leadingZeros(m), most = e - 1;
  E shift = sel(zeros > most, most, zeros);
  E left = sel(shift < 0, 0, shift), right = sel(shift < 0, 0 - shift, shift.cI(0));
  m = E(b, arith::ShRUIOp::create(b, E(b, arith::ShLIOp::create(b, m, left)), right));
  e = e - shift;
  E packed = sel((m & hidden) == 0, m, (m & (hidden - 1)) | E(b, arith::ShLIOp::create(b, e, e.cI(digits))));
  E result = (sel(m == 0, m.cI(0), packed) | sign).asFloat();
  result = sel(absE(x) < absE(y), x, result);
  return sel(isNan(x) | isNan(y) | (absE(x) == kInf) | (y == 0.0), kNan, result);
}

// --- pairs: a number as the sum of two, of which the second is at most half a unit of the first
struct Pair {
  E hi, lo;
};
static Pair twoSum(E a, E b) { // |a| >= |b|, or a == 0
  E s = a + b;
  return {s, b - (s - a)};
}
static Pair twoProduct(E a, E b) {
  E p = a * b;
  return {p, fma(a, b, -p)};
}
static Pair product(Pair a, Pair b) {
  Pair p = twoProduct(a.hi, b.hi);
  return twoSum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

// --- exponentials and logarithms
static E expm1E(E x) {
  E u = exp64(x), less = u - 1.0; // u carries an error of x, which its logarithm tells
  E r = less * x / log64(u);
  r = sel(u == 1.0, x, r);
  r = sel(less == -1.0, -1.0, r);
  return sel(u == kInf, u, r);
}

static E log1pE(E x) {
  E u = x + 1.0, l = log64(u);
  E r = l - ((u - 1.0) - x) / u;
  r = sel((absE(u) == kInf) | (u == 0.0), l, r);
  return sel(u == 1.0, x, r);
}

static E sinhE(E x) {
  E a = absE(x), t = expm1E(a), half = exp64(a * 0.5);
  return copysignE(sel(a > 22.0, (half * 0.5) * half, (t + t / (t + 1.0)) * 0.5), x);
}
static E coshE(E x) {
  E a = absE(x), t = exp64(a), half = exp64(a * 0.5);
  return sel(a > 22.0, (half * 0.5) * half, t * 0.5 + 0.5 / t);
}
static E tanhE(E x) {
  E a = absE(x), t = expm1E(a * 2.0);
  return copysignE(sel(a > 22.0, 1.0, t / (t + 2.0)), x);
}
static E asinhE(E x) {
  E a = absE(x), square = a * a;
  E r = log1pE(a + square / (sqrtE(square + 1.0) + 1.0));
  return copysignE(sel(a > 1e10, log64(a) + kLn2, r), x);
}
static E acoshE(E x) {
  E t = x - 1.0;
  return sel(x > 1e10, log64(x) + kLn2, log1pE(t + sqrtE(t * 2.0 + t * t)));
}
static E atanhE(E x) {
  E a = absE(x), twice = a * 2.0;
  E r = log1pE(sel(a < 0.5, twice + twice * a / (1.0 - a), twice / (1.0 - a))) * 0.5;
  return copysignE(r, x);
}

static E cbrtE(E x) {
  E a = absE(x), up = a < 0x1p-900, down = a > 0x1p900;
  E s = sel(up, a * 0x1p108, sel(down, a * 0x1p-108, a));
  E t = (s.bits() / 3 + int64_t(0x2a9f7893) * (int64_t(1) << 32)).asFloat();
  for (int i = 0; i < 3; ++i) { // Halley: thrice the digits
    E cube = t * t * t;
    t = t * ((cube + s * 2.0) / (cube * 2.0 + s));
  }
  E square = t * t;
  t = t - fma(square, t, -s) / (square * 3.0);
  t = sel(up, t * 0x1p-36, sel(down, t * 0x1p36, t));
  return sel((a > 0.0) & (a < kInf), copysignE(t, x), x);
}

/// log(x) of a positive number to about 2^-65 of itself.
static Pair longLog(E x) {
  E small = x < 0x1p-1022, scaled = sel(small, x * 0x1p54, x);
  // m from sqrt(1/2) to sqrt(2)
  E bits = scaled.bits() + int64_t(0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
  E e = (bits >> 52) - 1023;
  E m = ((bits & int64_t(0x000fffffffffffff)) + int64_t(0x3fe6a09e667f3bcd)).asFloat();
  E n = fromS(e - sel(small, 54, e.cI(0)), x.b->getF64Type());
  E top = m - 1.0, bottom = m + 1.0, rest = m - (bottom - 1.0);
  E s = top / bottom;
  Pair q = twoSum(s, (fma(-s, bottom, top) - s * rest) / bottom);
  Pair square = product(q, q), third = product(product(q, square), {s.c(0.6666666666666666), s.c(3.700743415417188e-17)});
  E t = square.hi, tail = s.c(2.0 / 25);
  for (int k = 23; k >= 5; k -= 2)
    tail = fma(tail, t, 2.0 / k);
  tail = tail * t * t * q.hi;
  Pair sum = twoSum(n * 6.93147180369123816490e-01, q.hi * 2.0);
  Pair more = twoSum(sum.hi, third.hi);
  return twoSum(more.hi, more.lo + (sum.lo + (n * 1.90821492927058770002e-10 + (q.lo * 2.0 + (third.lo + tail)))));
}

static E powE(E x, E y) {
  E a = absE(x), ay = absE(y);
  Pair l = longLog(a), p = twoProduct(l.hi, y);
  E low = fma(l.lo, y, p.lo), r = exp64(p.hi);
  E tuned = fma(r, low, r);
  r = sel((absE(p.hi) < 800.0) & (r < kInf), tuned, r);
  // the results of limits; here y is not 0
  E grows = (a > 1.0) ^ (y < 0.0); // a^|y| has no limit, or its inverse does not
  r = sel((a == 0.0) | (a == kInf) | (ay == kInf), sel(a == 1.0, 1.0, sel(grows, r.c(kInf), r.c(0.0))), r);
  E whole = floorE(y) == y, half = y * 0.5, odd = whole & (floorE(half) != half) & (ay < 0x1p53);
  E negative = x.bits() < 0;
  r = sel(negative & odd, -r, r);
  r = sel((x < 0.0) & !whole & (a < kInf) & (ay < kInf), kNan, r);
  r = sel(isNan(x) | isNan(y), kNan, r);
  return sel((y == 0.0) | (x == 1.0), 1.0, r);
}

// --- angles
static E atanE(E x) {
  E a = absE(x);
  // shifted by atan of 0.5, 1, 1.5 or infinity
  E far = a > 2.4375, one = a > 1.1875, half = a > 0.6875, low = a > 0.4375;
  E t = sel(far, -1.0 / sel(far, a, 1.0),
            sel(one, (a - 1.5) / (a * 1.5 + 1.0), sel(half, (a - 1.0) / (a + 1.0), sel(low, (a * 2.0 - 1.0) / (a + 2.0), a))));
  E hi = sel(far, 1.57079632679489655800e+00, sel(one, 9.82793723247329054082e-01, sel(half, 7.85398163397448278999e-01, sel(low, 4.63647609000806093515e-01, a.c(0)))));
  E lo = sel(far, 6.12323399573676603587e-17, sel(one, 1.39033110312309984516e-17, sel(half, 3.06161699786838301793e-17, sel(low, 2.26987774529616870924e-17, a.c(0)))));
  E z = t * t, w = z * z;
  E even = z * poly(w, {3.33333333333329318027e-01, 1.42857142725034663711e-01, 9.09088713343650656196e-02, 6.66107313738753120669e-02,
                        4.97687799461593236017e-02, 1.62858201153657823623e-02});
  E uneven = w * poly(w, {-1.99999999998764832476e-01, -1.11111104054623557880e-01, -7.69187620504482999495e-02,
                          -5.83357013379057348645e-02, -3.65315727442169155270e-02});
  E r = hi - ((t * (even + uneven) - lo) - t);
  return copysignE(sel(isNan(x), x, r), x);
}

static E atan2E(E y, E x) {
  E ax = absE(x), ay = absE(y), steep = ay > ax;
  E top = sel(steep, ax, ay), bottom = sel(steep, ay, ax);
  E q = top / sel(bottom == 0.0, 1.0, bottom);
  q = sel((ax == kInf) & (ay == kInf), 1.0, q);
  E r = atanE(q);
  r = sel(steep, 1.57079632679489655800e+00 - (r - 6.12323399573676603587e-17), r);
  r = sel(x.bits() < 0, kPi - (r - 1.2246467991473532e-16), r);
  return sel(isNan(x) | isNan(y), kNan, copysignE(r, y));
}
static E asinE(E x) { return atan2E(x, sqrtE((1.0 - x) * (x + 1.0))); }
static E acosE(E x) { return atan2E(sqrtE(1.0 - x), sqrtE(x + 1.0)) * 2.0; }

/// 64 zeros and the bits of 2 / pi.
static const uint64_t twoOverPi[] = {
    0x0000000000000000ull, 0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
    0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull,
    0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull,
    0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull,
    0xf0cfbc209af4361dull};

namespace {
/// x = quarter * pi / 2 + angle, from -pi / 4 to pi / 4.
struct Turn {
  E quarter; ///< modulo 4
  Pair angle;
};
} // namespace

/// x times 2 / pi modulo 4 in 192 bits: those digits of 2 / pi that decide it are 192 from a place that x's exponent tells.
static Turn reduceAngle(E x) {
  KernelBuilder &b = *x.b;
  Value table = b.constantData(StringRef(reinterpret_cast<const char *>(twoOverPi), sizeof(twoOverPi)));
  E a = absE(x), bits = a.bits(), small = a < 0.78539816339744828;
  E exponent = bits >> 52;
  E place = sel(small, 0, exponent - (1075 + 2 - 64)); // of the first digit, behind the zeros
  E m = (bits & int64_t(0x000fffffffffffff)) | (int64_t(1) << 52);
  E word = place >> 6, shift = place & 63;
  SmallVector<E> w;
  for (int i = 0; i < 4; ++i)
    w.push_back(E(b, b.loadElem(b.getI64Type(), table, E(word + i))));
  auto digits = [&](int i) { // two shifts, since one by 64 has no result
    E high(b, arith::ShLIOp::create(b, w[i], shift));
    E low(b, arith::ShRUIOp::create(b, w[i + 1] >> 1, 63 - shift));
    return high | low;
  };
  auto multiply = [&](E y) {
    auto op = arith::MulUIExtendedOp::create(b, m, y);
    return std::pair<E, E>(E(b, op.getLow()), E(b, op.getHigh()));
  };
  auto [lowC, highC] = multiply(digits(2));
  auto [lowB, highB] = multiply(digits(1));
  E p2 = highB + m * digits(0), p1 = highC + lowB;
  p2 = p2 + extU(E(b, arith::CmpIOp::create(b, arith::CmpIPredicate::ult, p1, highC)), 64);
  E quarter = p2 >> 62, high = (p2 << 2) | (p1 >> 62), low = (p1 << 2) | (lowC >> 62);
  // the nearest quarter; what is left of it, as a magnitude
  E above = high < 0;
  quarter = quarter + extU(above, 64);
  high = sel(above, high ^ -1, high);
  low = sel(above, low ^ -1, low); // but for a unit of 2^-128
  E zeros(b, math::CountLeadingZerosOp::create(b, high.v));
  zeros = sel(zeros > 62, 62, zeros);
  E left = E(b, arith::ShLIOp::create(b, high, zeros)) | E(b, arith::ShRUIOp::create(b, low >> 1, 63 - zeros));
  E rest(b, arith::ShLIOp::create(b, low, zeros));
  auto number = [&](E v) { return E(b, arith::UIToFPOp::create(b, b.getF64Type(), v)); };
  E first = number(left & ~int64_t(0x7ff)), second = number(((left & 0x7ff) << 53) | (rest >> 11)) * 0x1p-53;
  // 2^-64 - zeros as a number
  E scale = ((959 - zeros) << 52).asFloat();
  Pair y = product({first * scale, second * scale}, {x.c(1.57079632679489655800e+00), x.c(6.12323399573676603587e-17)});
  E negative = above ^ (x.bits() < 0);
  auto signedPart = [&](E v) { return sel(negative, -v, v); };
  quarter = sel(x.bits() < 0, 0 - quarter, quarter);
  return {sel(small, 0, quarter & 3), {sel(small, x, signedPart(y.hi)), sel(small, 0.0, signedPart(y.lo))}};
}

static E sinOf(Pair x) {
  E z = x.hi * x.hi, v = z * x.hi;
  E r = poly(z, {8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06, -2.50507602534068634195e-08,
                 1.58969099521155010221e-10});
  return x.hi - ((z * (x.lo * 0.5 - v * r) - x.lo) - v * -1.66666666666666324348e-01);
}
static E cosOf(Pair x) {
  E z = x.hi * x.hi, half = z * 0.5, w = 1.0 - half;
  E r = z * poly(z, {4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05, -2.75573143513906633035e-07,
                     2.08757232129817482790e-09, -1.13596475577881948265e-11});
  return w + (((1.0 - w) - half) + (z * r - x.hi * x.lo));
}
/// sin(x), or sin(x + pi / 2).
static E sineE(E x, bool shifted) {
  Turn t = reduceAngle(x);
  E quarter = shifted ? t.quarter + 1 : t.quarter;
  E r = sel((quarter & 1) != 0, cosOf(t.angle), sinOf(t.angle));
  r = sel((quarter & 2) != 0, -r, r);
  return sel(absE(x) < kInf, r, kNan);
}
static E tanE(E x) {
  Turn t = reduceAngle(x);
  E s = sinOf(t.angle), c = cosOf(t.angle), turned = (t.quarter & 1) != 0;
  E r = sel(turned, -c, s) / sel(turned, s, c);
  return sel(absE(x) < kInf, r, kNan);
}

// --- the error function: a polynomial near 0, further out exp(-x^2) times what is smooth
/// erf(x) for |x| <= 1
static E erfNear(E x) {
  return fma(x, poly(x * x, {0.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.026866170645129854, 0.005223977625423455,
                             -0.0008548327021945428, 0.00012055332903350668, -1.4925647581008593e-05, 1.6462045711013026e-06,
                             -1.6364645854816389e-07, 1.479243542696247e-08, -1.2164764337224506e-09, 8.709755232851789e-11,
                             -4.2320376764874594e-12}), x);
}
/// erfc(x) for x >= 0.5: (1 + 2x) exp(x^2) erfc(x) is a polynomial of (x - 4) / (x + 4)
static E erfcFar(E x) {
  E y = sel(x > 28.0, 28.0, x), sum = y + 4.0, t = (y - 4.0) / sum;
  t = fma(fma(-t, y, fma(t + 1.0, -4.0, y)), 1.0 / sum, t);
  E r = poly(t, {1.2329951186255526, -0.1396211168405625, 0.01537965210262004, 0.06809705425469147, -0.10103906603632494,
                 0.09373283499840049, -0.06633036581165151, 0.03716751553653356, -0.016197734065882097, 0.00503196998737639,
                 -0.0007577732205405833, -0.00019925674820856447, 0.00015062131607767654, -2.439903147664118e-05,
                 -1.1220799554057614e-05, 5.709361326111002e-06, 2.910654072962603e-07, -8.250167609201461e-07,
                 7.85762829387315e-08, 1.0991250733504708e-07, -2.1398645862687242e-08, -1.4243277166228826e-08,
                 3.519982805773362e-09, 1.378881859576179e-09, -3.24992104510202e-10}) / fma(y, 2.0, 1.0);
  E square = y * y, rest = fma(y, y, -square);
  E tiny = square > 680.0; // where its exponential has fewer digits: the root of that, twice
  E e = exp64(-sel(tiny, square * 0.5, square));
  r = r * e;
  r = fma(r, -rest, r) * sel(tiny, e, 1.0);
  return sel(x > 28.0, 0.0, r);
}
static E erfE(E x) {
  E ax = absE(x);
  return copysignE(sel(ax < 1.0, erfNear(ax), 1.0 - erfcFar(ax)), x);
}
static E erfcE(E x) {
  E far = erfcFar(absE(x));
  return sel((x > -1.0) & (x < 0.5), 1.0 - erfNear(x), sel(x < 0.0, 2.0 - far, far));
}

static std::optional<Value> expand(StringRef name, ArrayRef<E> a) {
  using Unary = E (*)(E);
  static const std::pair<StringRef, Unary> unary[] = {
      {"expm1", expm1E}, {"log1p", log1pE}, {"sinh", sinhE}, {"cosh", coshE}, {"tanh", tanhE}, {"asinh", asinhE}, {"acosh", acoshE},
      {"atanh", atanhE}, {"cbrt", cbrtE}, {"atan", atanE}, {"asin", asinE}, {"acos", acosE}, {"tan", tanE}, {"erf", erfE}, {"erfc", erfcE},
      {"exp", exp64}, {"log", log64}, {"sin", [](E x) { return sineE(x, false); }}, {"cos", [](E x) { return sineE(x, true); }}};
  for (auto &[known, function] : unary)
    if (name == known && a.size() == 1)
      return function(a[0]);
  if (name == "fmod" || name == "fmodf")
    return fmodE(a[0], a[1]);
  if (name == "pow")
    return powE(a[0], a[1]);
  if (name == "atan2")
    return atan2E(a[0], a[1]);
  return std::nullopt;
}

// --- complex numbers: signed zeros, infinities and NaN as C's annex G has them in the cases that TensorFlow's tests show
namespace {
struct Complex {
  E re, im;
};
} // namespace
static Complex operator+(Complex a, double x) { return {a.re + x, a.im}; }
static Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static Complex conjugate(Complex a) { return {a.re, -a.im}; }
static Complex timesI(Complex a) { return {-a.im, a.re}; }
static Complex overI(Complex a) { return {a.im, -a.re}; }
static Complex sel(E when, Complex a, Complex b) { return {codegen::sel(when, a.re, b.re), codegen::sel(when, a.im, b.im)}; }

/// sqrt(x^2 + y^2)
static E hypotE(E x, E y) {
  E ax = absE(x), ay = absE(y), hi = codegen::sel(ax > ay, ax, ay), lo = codegen::sel(ax > ay, ay, ax);
  E t = lo / codegen::sel(hi == 0.0, 1.0, hi), r = hi * sqrtE(fma(t, t, 1.0));
  r = codegen::sel(isNan(x) | isNan(y), kNan, r);
  return codegen::sel((ax == kInf) | (ay == kInf), kInf, r);
}

static Complex sqrtC(Complex z) {
  E big = absE(z.re) > 0x1p1000;
  Complex s = sel(big, Complex{z.re * 0.25, z.im * 0.25}, z);
  E t = sqrtE((absE(s.re) + hypotE(s.re, s.im)) * 0.5), other = s.im / codegen::sel(t == 0.0, 1.0, t * 2.0);
  t = codegen::sel(big, t + t, t);
  E negative = z.re < 0.0;
  return {codegen::sel(negative, absE(other), t), codegen::sel(negative, copysignE(t, z.im), other)};
}

static Complex expC(Complex z) {
  E half = exp64(z.re * 0.5), c = sineE(z.im, true), s = sineE(z.im, false), none = z.re == -kInf;
  E re = codegen::sel(none, copysignE(c.c(0.0), c), half * c * half), im = codegen::sel(none, copysignE(s.c(0.0), s), half * s * half);
  // the limit of a circle without direction
  re = codegen::sel((z.re == kInf) & !(absE(z.im) < kInf), kInf, re);
  return {codegen::sel(z.im == 0.0, exp64(z.re), re), codegen::sel(z.im == 0.0, z.im, im)};
}
static Complex sinhC(Complex z) {
  E re = sinhE(z.re) * sineE(z.im, true), im = coshE(z.re) * sineE(z.im, false);
  return {codegen::sel(z.im == 0.0, sinhE(z.re), re), codegen::sel(z.im == 0.0, z.im, im)};
}
static Complex coshC(Complex z) {
  E re = coshE(z.re) * sineE(z.im, true), im = sinhE(z.re) * sineE(z.im, false);
  return {codegen::sel(z.im == 0.0, coshE(z.re), re), codegen::sel((z.im == 0.0) | (z.re == 0.0), z.re * z.im, im)};
}
static Complex tanhC(Complex z) { // after Kahan
  E t = tanE(z.im), s = sinhE(z.re), beta = fma(t, t, 1.0), rho = sqrtE(fma(s, s, 1.0));
  E bottom = fma(beta * s, s, 1.0), a = absE(z.re), far = a > 22.0;
  E tail = sineE(z.im, false) * sineE(z.im, true) * exp64(a * -2.0) * 4.0;
  Complex near = {beta * rho * s / bottom, t / bottom};
  near = sel(absE(t) == kInf, Complex{rho / s, codegen::sel(t == kInf, 0.0, t.c(-0.0))}, near);
  tail = codegen::sel(absE(z.im) < kInf, tail, copysignE(tail.c(0.0), z.im));
  return sel(far, Complex{copysignE(a.c(1.0), z.re), tail}, near);
}

static Complex asinC(Complex z) { // after Kahan, as the others below
  Complex left = sqrtC({1.0 - z.re, -z.im}), right = sqrtC(z + 1.0);
  return {atan2E(z.re, (left * right).re), asinhE((conjugate(left) * right).im)};
}
static Complex acosC(Complex z) {
  Complex left = sqrtC({1.0 - z.re, -z.im}), right = sqrtC(z + 1.0);
  return {atan2E(left.re, right.re) * 2.0, asinhE((conjugate(right) * left).im)};
}
static Complex acoshC(Complex z) {
  Complex left = sqrtC(z + -1.0), right = sqrtC(z + 1.0);
  return {asinhE((conjugate(left) * right).re), atan2E(left.im, right.re) * 2.0};
}
static Complex atanhC(Complex z) {
  E rest = 1.0 - z.re, square = z.im * z.im;
  E re = log1pE(z.re * 4.0 / fma(rest, rest, square)) * 0.25;
  return {re, atan2E(z.im * 2.0, rest * (z.re + 1.0) - square) * 0.5};
}
static Complex powC(Complex z, Complex w) {
  Complex l = {log64(hypotE(z.re, z.im)), atan2E(z.im, z.re)};
  return expC(w * l);
}

static std::optional<Complex> expand(StringRef name, ArrayRef<Complex> a) {
  Complex z = a[0];
  if (name == "cexp")
    return expC(z);
  if (name == "cpow")
    return powC(z, a[1]);
  if (name == "csinh")
    return sinhC(z);
  if (name == "ccosh")
    return coshC(z);
  if (name == "ctanh")
    return tanhC(z);
  if (name == "csin")
    return overI(sinhC(timesI(z)));
  if (name == "ccos")
    return coshC(timesI(z));
  if (name == "ctan")
    return overI(tanhC(timesI(z)));
  if (name == "casin")
    return asinC(z);
  if (name == "cacos")
    return acosC(z);
  if (name == "cacosh")
    return acoshC(z);
  if (name == "catanh")
    return atanhC(z);
  if (name == "casinh")
    return overI(asinC(timesI(z)));
  if (name == "catan")
    return overI(atanhC(timesI(z)));
  return std::nullopt;
}

std::string expandLibm(KernelBuilder &b, ModuleOp module) {
  std::string missing;
  SmallVector<func::CallOp> calls;
  b.func.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (callee && !callee.isExternal())
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(call);
    SmallVector<E> arguments;
    for (Value v : call.getOperands())
      arguments.push_back(E(b, v));
    SmallVector<Value> values;
    if (call.getNumResults() == 2) { // complex numbers are passed and returned as their parts
      SmallVector<Complex> numbers;
      for (size_t i = 0; i + 1 < arguments.size(); i += 2)
        numbers.push_back({arguments[i], arguments[i + 1]});
      if (std::optional<Complex> z = expand(call.getCallee(), numbers))
        values = {z->re, z->im};
    } else if (std::optional<Value> value = expand(call.getCallee(), arguments)) {
      values = {*value};
    }
    if (values.empty()) {
      missing = call.getCallee().str();
      continue;
    }
    call.replaceAllUsesWith(values);
    call.erase();
  }
  return missing;
}

} // namespace lathe::nvptx
