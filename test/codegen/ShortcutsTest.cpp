// Quantized results that are rounded in f32 where that is sure to give what the reference kernels' integers give: beside
// those kernels' arithmetic written out, for sums close to halves, all shifts, and sums that saturate.
#include "Parsed.h"
#include "Text.h"

#include "passes/fusion/Passes.h"
#include "passes/quantize/FloatSteps.h"
#include "passes/quantize/Kernels.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <cmath>
#include <random>

namespace lathe::test {
namespace {

using namespace quantize;

const char *processors[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "icelake-server"};

/// The text of a function of values of these types, fused to one kernel.
std::string fused(ArrayRef<std::string> types, llvm::function_ref<Value(Emitter &e, ArrayRef<Value> x)> make) {
  Parsed p;
  std::string args;
  for (auto [i, t] : llvm::enumerate(types))
    args += (i ? ", %x" : "%x") + std::to_string(i) + ": " + t;
  if (!parse("func.func @f(" + args + ") { return }", p))
    return "";
  Operation *end = p.f.getBody().front().getTerminator();
  legalize::HloContext context(*p.module);
  context.function = p.f;
  context.builder.setInsertionPoint(end);
  Emitter e(context, p.f.getLoc(), "");
  Value y = make(e, SmallVector<Value>(p.f.getArguments()));
  if (!y)
    return "";
  end->setOperands(y);
  p.f.setFunctionType(FunctionType::get(p.context.get(), p.f.getArgumentTypes(), y.getType()));
  PassManager pm(p.context.get());
  pm.addPass(createCanonicalizerPass());
  fusion::buildFusionPipeline(pm);
  if (failed(pm.run(*p.module)))
    return "";
  std::string text;
  llvm::raw_string_ostream os(text);
  p.module->print(os);
  return text;
}

int32_t highProduct(int32_t a, int32_t b) {
  const int64_t product = int64_t(a) * b;
  return int32_t((product + (product >= 0 ? int64_t(1) << 30 : 1 - (int64_t(1) << 30))) / (int64_t(1) << 31));
}

int32_t divideByPower(int32_t x, int exponent) {
  const int32_t mask = int32_t((int64_t(1) << exponent) - 1), remainder = x & mask;
  return (x >> exponent) + (remainder > (mask >> 1) + (x < 0 ? 1 : 0) ? 1 : 0);
}

int32_t multiplied(int32_t x, Multiplier m) {
  return divideByPower(highProduct(int32_t(uint32_t(x) << std::max(m.shift, 0)), m.value), std::max(-m.shift, 0));
}

int8_t finished(int64_t x, int64_t zeroPoint, Range range) { return int8_t(std::clamp(x + zeroPoint, range.first, range.second)); }

/// Sums around the halves between numbers of the output, at random and at the ends.
int32_t drawSum(std::mt19937 &random, double factor, bool everywhere) {
  const uint32_t draw = random();
  const double half = double(int(random() % 300)) - 150 + 0.5;
  if (!everywhere || draw % 4 == 0)
    return int32_t(std::clamp(std::round(half / factor) + double(int(draw / 4 % 5)) - 2, -2147483648.0, 2147483647.0));
  if (draw % 4 == 1)
    return int32_t(std::clamp((half + double(random() % 1000) / 1000) / factor, -2147483648.0, 2147483647.0));
  return draw % 4 == 2 ? int32_t(random()) : draw % 3 ? int32_t(draw % 2000) - 1000 : draw % 2 ? INT32_MAX : INT32_MIN;
}

void checkSums(bool real, bool everywhere) {
  std::mt19937 random(real ? 7 : 8);
  for (int round = 0; round < 12; ++round) {
    const int64_t channels = round % 3 == 0 ? 1 : 48, rows = round % 3 == 0 ? 3000 : 70;
    const int64_t zeroPoint = round % 4 == 0 ? -128 : int64_t(random() % 256) - 128;
    const Range range = round % 4 == 0 ? Range(-128, 100) : Range(-128, 127);
    SmallVector<double> factors;
    for (int64_t c = 0; c < channels; ++c) {
      const int shift = round % 3 == 2 ? int(random() % 34) - 1 : 1 + round + int(random() % 4);
      factors.push_back(std::ldexp(0.5 + double(random() % (c % 7 ? 1u << 31 : 8)) / (c % 7 ? double(1u << 31) * 2 : 16), -shift));
    }
    SmallVector<Multiplier> multipliers = llvm::map_to_vector(factors, multiplierOf);
    Tensor sums = Tensor::allocate(DType::Int32, {rows, channels});
    for (int64_t i = 0; i < rows * channels; ++i)
      sums.data<int32_t>()[i] = drawSum(random, factors[i % channels], everywhere);
    const std::string text = fused(type({rows, channels}, "i32"), [&](Emitter &e, ArrayRef<Value> x) {
      return real ? requantizeReal(e, x[0], factors, zeroPoint, range, e.b.getI8Type())
                  : requantize(e, x[0], multipliers, 1, zeroPoint, range, e.b.getI8Type());
    });
    ASSERT_NE(text, "");
    for (const char *cpu : processors) {
      if (!hostRuns(cpu))
        continue;
      KernelRun run = runKernel(text, {sums}, cpu);
      ASSERT_TRUE(run.ok) << run.message;
      int wrong = 0;
      for (int64_t i = 0; i < rows * channels && wrong < 3; ++i) {
        const int32_t x = sums.data<int32_t>()[i];
        const double scaled = std::clamp(std::round(double(x) * factors[i % channels]), -1073741824.0, 1073741824.0);
        const int8_t want = finished(real ? int64_t(scaled) : multiplied(x, multipliers[i % channels]), zeroPoint, range);
        EXPECT_EQ(int(run.outputs[0].data<int8_t>()[i]), int(want))
            << cpu << " round " << round << " sum " << x << " factor " << factors[i % channels] << (wrong++ ? "" : ".");
      }
    }
  }
}

TEST(Shortcuts, IntegerFactors) { checkSums(false, true); }
TEST(Shortcuts, IntegerFactorsNearHalves) { checkSums(false, false); }
TEST(Shortcuts, RealFactors) { checkSums(true, true); }
TEST(Shortcuts, RealFactorsNearHalves) { checkSums(true, false); }

// All pairs of bytes.
TEST(Shortcuts, SumsOfTwo) {
  std::mt19937 random(9);
  Tensor x = Tensor::allocate(DType::Int8, {256, 256}), y = Tensor::allocate(DType::Int8, {256, 256});
  for (int64_t i = 0; i < 65536; ++i) {
    x.data<int8_t>()[i] = int8_t(i / 256 - 128);
    y.data<int8_t>()[i] = int8_t(i % 256 - 128);
  }
  for (int round = 0; round < 12; ++round) {
    auto params = [&] { return Params{float(std::ldexp(1 + double(random() % 1024) / 1024, -int(random() % 8))), int64_t(random() % 256) - 128}; };
    // powers of two give halves that are exact
    const Params xp = round % 4 ? params() : Params{0.5f, 3}, yp = round % 4 ? params() : Params{0.25f, -7}, out = round % 4 ? params() : Params{1, 1};
    const bool subtract = round % 2;
    const double twice = 2 * std::max(xp.scale, yp.scale);
    const Multiplier ofX = multiplierOf(xp.scale / twice), ofY = multiplierOf(yp.scale / twice), last = multiplierOf(twice / (double(1 << 20) * out.scale));
    const Range range(-128, 127);
    const std::string bytes = type({256, 256}, "i8");
    const std::string text = fused({bytes, bytes}, [&](Emitter &e, ArrayRef<Value> v) {
      return sum(e, v[0], xp, v[1], yp, out, range, 20, subtract, e.b.getI8Type());
    });
    ASSERT_NE(text, "");
    for (const char *cpu : processors) {
      if (!hostRuns(cpu))
        continue;
      KernelRun run = runKernel(text, {x, y}, cpu);
      ASSERT_TRUE(run.ok) << run.message;
      for (int64_t i = 0, wrong = 0; i < 65536 && wrong < 3; ++i) {
        const int32_t u = multiplied(int32_t(x.data<int8_t>()[i] - xp.zeroPoint) * (1 << 20), ofX),
                      v = multiplied(int32_t(y.data<int8_t>()[i] - yp.zeroPoint) * (1 << 20), ofY);
        const int8_t want = finished(multiplied(subtract ? u - v : u + v, last), out.zeroPoint, range);
        if (run.outputs[0].data<int8_t>()[i] != want)
          ++wrong;
        EXPECT_EQ(int(run.outputs[0].data<int8_t>()[i]), int(want)) << cpu << " round " << round << " pair " << i;
      }
    }
  }
}

// The test of many elements at once is there, and has the mark that lets code leave out the exact form; where f32 alone is proved to do,
// there is neither.
TEST(Shortcuts, AreMarked) {
  auto text = [](double factor) {
    return fused(type({64}, "i32"), [&](Emitter &e, ArrayRef<Value> x) {
      return requantizeReal(e, x[0], factor, 0, {-128, 127}, e.b.getI8Type());
    });
  };
  auto has = [](const std::string &in, const char *what) { return in.find(what) != std::string::npos; };
  EXPECT_TRUE(has(text(1e-6), "hlo.shortcut"));
  EXPECT_FALSE(has(text(0.75), "hlo.shortcut")); // sums times this may leave what f32 converts
  EXPECT_TRUE(has(text(0.75), "f64"));
  EXPECT_FALSE(has(text(0.01), "hlo.shortcut"));
  EXPECT_FALSE(has(text(0.01), "f64"));
  EXPECT_TRUE(has(text(0.01), "hlo.round_nearest_even"));
}

// Where numbers for f32 are found they hold for each sum that the range does not cut, for the ends and for others, with a product that is
// rounded as with one that is not.
TEST(Shortcuts, FloatSteps) {
  std::mt19937 random(10);
  int found = 0;
  for (int round = 0; round < 60; ++round) {
    const bool real = round % 2;
    const double factor = std::ldexp(0.5 + double(random() % 4096) / 8192, -round / 5), part = round % 7 ? 1 : 0;
    const Multiplier m = multiplierOf(factor * part);
    const int64_t zeroPoint = round % 3 ? int64_t(random() % 256) - 128 : -128;
    const Range range = round % 3 == 1 ? Range(zeroPoint, 127) : Range(-128, 127);
    auto exact = [&](int32_t x) { return (real ? int64_t(std::round(x * factor * part)) : multiplied(x, m)) + zeroPoint; };
    const double tie = real || !m.value ? 0 : std::ldexp(1.0, m.shift - 1);
    std::optional<FloatSteps> steps =
        findFloatSteps(exact, real ? factor * part : std::ldexp(double(m.value), m.shift - 31), tie, zeroPoint, range);
    EXPECT_TRUE(steps || factor < 0.003 || factor >= 0.5) << factor;
    if (!steps)
      continue;
    ++found;
    EXPECT_TRUE(!real || steps->add == steps->below);
    int wrong = 0;
    auto check = [&](int32_t x) {
      const float add = x < 0 ? steps->below : steps->add, product = float(double(float(x)) * double(steps->factor));
      const auto want = std::clamp(exact(x), range.first, range.second);
      for (float y : {product + add, std::fma(float(x), steps->factor, add)})
        if (std::clamp(int64_t(std::nearbyint(y)), range.first, range.second) != want && ++wrong < 3)
          ADD_FAILURE() << "factor " << factor << " zero point " << zeroPoint << " sum " << x << ": " << y << " for " << want;
    };
    const auto widest = int64_t(std::min(260 / factor, 5e5));
    for (int64_t x = -widest; x <= widest; ++x)
      check(int32_t(x));
    for (int32_t x : {INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX})
      check(x);
    for (int i = 0; i < 1000; ++i)
      check(int32_t(random()));
  }
  EXPECT_GT(found, 35);
}

} // namespace
} // namespace lathe::test
