// Emitted functions against MPFR at random points: f64, and powers, for which no sweep over all arguments is possible. Built where
// libmpfr-dev is installed. With LATHE_MPFR_POINTS=N, N points each, and the largest errors are printed.
#include "KernelHarness.h"

#include "passes/codegen/element/MathEmitter.h"

#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

using namespace mlir;

namespace lathe::test {
namespace {

using codegen::Fn;

/// Enough that what is rounded to nearest again is the exact result's neighbour: sums below lose some.
constexpr mpfr_prec_t kPrecision = 256;

struct Number {
  mpfr_t v;
  Number() { mpfr_init2(v, kPrecision); }
  ~Number() { mpfr_clear(v); }
  Number(const Number &) = delete;
};

struct Case {
  const char *name;
  Fn fn;
  bool isF64;
  int operands;
  double low, high; ///< of the magnitudes of arguments, as powers of two
  bool negative;
  double maxUlp;
  void (*exact)(mpfr_t out, const mpfr_t x, const mpfr_t y);
};

#define UNARY(F) [](mpfr_t o, const mpfr_t x, const mpfr_t) { F(o, x, MPFR_RNDN); }

void logistic(mpfr_t o, const mpfr_t x, const mpfr_t) {
  mpfr_neg(o, x, MPFR_RNDN);
  mpfr_exp(o, o, MPFR_RNDN);
  mpfr_add_ui(o, o, 1, MPFR_RNDN);
  mpfr_ui_div(o, 1, o, MPFR_RNDN);
}
void power(mpfr_t o, const mpfr_t x, const mpfr_t y) { mpfr_pow(o, x, y, MPFR_RNDN); }

// The range of exponents is where results are finite, and a bit more. Limits above 2 are those of glibc, whose functions f64 calls.
const Case kCases[] = {
    {"exp", Fn::Exp, true, 1, -40, 10, true, 2, UNARY(mpfr_exp)},
    {"log", Fn::Log, true, 1, -1070, 1023, false, 2, UNARY(mpfr_log)},
    {"log1p", Fn::Log1p, true, 1, -60, 1023, false, 2, UNARY(mpfr_log1p)},
    {"expm1", Fn::Expm1, true, 1, -60, 10, true, 2, UNARY(mpfr_expm1)},
    {"tanh", Fn::Tanh, true, 1, -40, 6, true, 2.5, UNARY(mpfr_tanh)},
    {"logistic", Fn::Logistic, true, 1, -40, 9.4, true, 2, logistic},
    {"erf", Fn::Erf, true, 1, -40, 4, true, 2, UNARY(mpfr_erf)},
    {"erfc", Fn::Erfc, true, 1, -40, 4.7, true, 4, UNARY(mpfr_erfc)},
    {"sin", Fn::Sin, true, 1, -40, 1000, true, 2, UNARY(mpfr_sin)},
    {"cos", Fn::Cos, true, 1, -40, 1000, true, 2, UNARY(mpfr_cos)},
    {"tan", Fn::Tan, true, 1, -40, 1000, true, 2, UNARY(mpfr_tan)},
    {"sqrt", Fn::Sqrt, true, 1, -1070, 1023, false, 0.5, UNARY(mpfr_sqrt)},
    {"rsqrt", Fn::Rsqrt, true, 1, -1020, 1023, false, 2, UNARY(mpfr_rec_sqrt)},
    {"cbrt", Fn::Cbrt, true, 1, -1020, 1023, true, 4, UNARY(mpfr_cbrt)},
    {"atan", Fn::Atan, true, 1, -40, 60, true, 2, UNARY(mpfr_atan)},
    {"asin", Fn::Asin, true, 1, -40, 0, true, 2, UNARY(mpfr_asin)},
    {"acos", Fn::Acos, true, 1, -40, 0, true, 2, UNARY(mpfr_acos)},
    {"sinh", Fn::Sinh, true, 1, -40, 9.4, true, 2.5, UNARY(mpfr_sinh)},
    {"cosh", Fn::Cosh, true, 1, -40, 9.4, true, 2, UNARY(mpfr_cosh)},
    {"asinh", Fn::Asinh, true, 1, -40, 1000, true, 2.5, UNARY(mpfr_asinh)},
    {"acosh", Fn::Acosh, true, 1, 0, 1000, false, 2.5, UNARY(mpfr_acosh)},
    {"atanh", Fn::Atanh, true, 1, -40, 0, true, 2.5, UNARY(mpfr_atanh)},
    {"power", Fn::Pow, true, 2, -20, 20, false, 2, power},
    {"power", Fn::Pow, false, 2, -20, 20, false, 2, power},
    {"exp", Fn::Exp, false, 1, -40, 6.5, true, 2, UNARY(mpfr_exp)},
    {"log", Fn::Log, false, 1, -149, 127, false, 2, UNARY(mpfr_log)},
    {"log1p", Fn::Log1p, false, 1, -40, 127, false, 2, UNARY(mpfr_log1p)},
    {"expm1", Fn::Expm1, false, 1, -40, 6.5, true, 2, UNARY(mpfr_expm1)},
    {"tanh", Fn::Tanh, false, 1, -40, 5, true, 2, UNARY(mpfr_tanh)},
    {"logistic", Fn::Logistic, false, 1, -40, 6.5, true, 2, logistic},
    {"erf", Fn::Erf, false, 1, -40, 3, true, 2, UNARY(mpfr_erf)},
    {"sin", Fn::Sin, false, 1, -40, 127, true, 2, UNARY(mpfr_sin)},
    {"cos", Fn::Cos, false, 1, -40, 127, true, 2, UNARY(mpfr_cos)},
    {"rsqrt", Fn::Rsqrt, false, 1, -149, 127, false, 2, UNARY(mpfr_rec_sqrt)},
};

/// One unit in the last place at an exact result, as a power of two: 2^(exponent - digits), not below the smallest denormal.
double errorInUlp(const mpfr_t exact, double got, bool isF64) {
  Number d;
  mpfr_sub_d(d.v, exact, got, MPFR_RNDN);
  mpfr_abs(d.v, d.v, MPFR_RNDN);
  long e = mpfr_zero_p(exact) ? -2000 : mpfr_get_exp(exact) - (isF64 ? 53 : 24);
  e = std::max(e, isF64 ? -1074L : -149L);
  mpfr_mul_2si(d.v, d.v, -e, MPFR_RNDN);
  return mpfr_get_d(d.v, MPFR_RNDU);
}

struct Worst {
  double ulp = 0, x = 0, y = 0, got = 0, want = 0;
  int64_t points = 0;
  bool ok = false;
};

template <typename T>
Worst sample(const Case &c, int64_t count, const std::string &cpuName, unsigned lanes, uint64_t seed) {
  Worst worst;
  auto context = makeContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context.get())), holder = ModuleOp::create(UnknownLoc::get(context.get()));
  OpBuilder ob(context.get());
  ob.setInsertionPointToEnd(holder->getBody());
  Type element = c.isF64 ? Type(ob.getF64Type()) : Type(ob.getF32Type());
  auto t = RankedTensorType::get({16}, element);
  auto source = UnrealizedConversionCastOp::create(ob, ob.getUnknownLoc(), SmallVector<Type>(c.operands, t), ValueRange{});
  auto op = UnrealizedConversionCastOp::create(ob, ob.getUnknownLoc(), TypeRange{t}, source.getResults());
  codegen::KernelTarget target = targetFor(cpuName);
  {
    codegen::KernelBuilder b(op, *module, "f", target);
    b.loop(b.begin, b.end, b.i64(lanes), [&](Value i) {
      SmallVector<Value> args;
      for (int k = 0; k < c.operands; ++k)
        args.push_back(b.loadElem(element, b.operands[k], i, lanes));
      b.storeElem(element, codegen::emitMath(b, c.fn, args), b.results[0], i);
    });
  }
  auto jit = JitModule::compile(*module, cpuName);
  void *f = jit ? jit->lookup("f") : nullptr;
  if (!f)
    return worst;
  worst.ok = true;
  constexpr int64_t block = 1024;
  alignas(64) static T x[block], y[block], out[block];
  int64_t dummy[8] = {};
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(0, 1), exponent(c.low, c.high), powers(-60, 60);
  Number mx, my, exact;
  for (int64_t done = 0; done < count; done += block) {
    for (int64_t i = 0; i < block; ++i) {
      x[i] = static_cast<T>(std::exp2(std::min(exponent(random), c.isF64 ? 1023.9 : 127.9)) * (c.negative && random() % 2 ? -1 : 1));
      // exponents that give finite results, and whole ones
      double l = std::log2(std::fabs(static_cast<double>(x[i])));
      y[i] = static_cast<T>(c.operands < 2 ? 0 : (c.isF64 ? 1000. : 120.) * (2 * unit(random) - 1) / std::max(1e-6, std::fabs(l)));
      if (c.operands == 2 && random() % 8 == 0)
        y[i] = std::round(y[i]);
    }
    std::vector<void *> pointers{x};
    if (c.operands == 2)
      pointers.push_back(y);
    pointers.insert(pointers.end(), {out, dummy, dummy, dummy});
    JitModule::call(f, pointers, 0, block);
    for (int64_t i = 0; i < block; ++i) {
      mpfr_set_d(mx.v, x[i], MPFR_RNDN);
      mpfr_set_d(my.v, y[i], MPFR_RNDN);
      c.exact(exact.v, mx.v, my.v);
      double want = mpfr_get_d(exact.v, MPFR_RNDN);
      if (!std::isfinite(static_cast<T>(want)) || std::isnan(want))
        continue; // near the largest number; special values are MathExhaustive's
      ++worst.points;
      double ulp = std::isfinite(out[i]) ? errorInUlp(exact.v, out[i], c.isF64) : 1e30;
      if (ulp > worst.ulp) {
        worst.ulp = ulp;
        worst.x = x[i], worst.y = y[i], worst.got = out[i], worst.want = want;
      }
    }
  }
  return worst;
}

class Mpfr : public testing::TestWithParam<Case> {};

TEST_P(Mpfr, WithinUlp) {
  const Case &c = GetParam();
  const char *more = std::getenv("LATHE_MPFR_POINTS");
  int64_t count = more ? std::atoll(more) : 4096;
  struct Config {
    const char *cpu;
    unsigned lanes;
  };
  for (Config k : {Config{"host", 8}, Config{"x86-64-v3", 4}, Config{"x86-64-v3", 1}}) {
    if (!hostRuns(k.cpu))
      continue;
    Worst w = c.isF64 ? sample<double>(c, count, k.cpu, k.lanes, 1) : sample<float>(c, count, k.cpu, k.lanes, 1);
    ASSERT_TRUE(w.ok);
    EXPECT_GT(w.points, count / 2);
    EXPECT_LE(w.ulp, c.maxUlp) << c.name << " at " << w.x << ", " << w.y << ": " << w.got << ", expected " << w.want;
    if (more)
      printf("%-9s %s %-9s %u lanes: %.3f ulp in %lld points, at %a %a\n", c.name, c.isF64 ? "f64" : "f32", k.cpu, k.lanes, w.ulp,
             static_cast<long long>(w.points), w.x, w.y);
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, Mpfr, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name) + (info.param.isF64 ? "_f64" : "_f32"); });

} // namespace
} // namespace lathe::test
