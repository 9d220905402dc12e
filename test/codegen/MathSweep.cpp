// See MathSweep.h.
#include "MathSweep.h"

#include "KernelHarness.h"

#include "mlir/IR/BuiltinOps.h"

#include <cmath>
#include <cstring>
#include <vector>

using namespace mlir;

namespace lathe::test {

static double logistic(double x) { return 1 / (1 + std::exp(-x)); }
static double rsqrt(double x) { return 1 / std::sqrt(x); }

const std::vector<MathCase> &mathCases() {
  using codegen::Fn;
  static const std::vector<MathCase> cases = {
      {"exp", Fn::Exp, std::exp, 1.1},          {"log", Fn::Log, std::log, 1.1},
      {"log1p", Fn::Log1p, std::log1p, 1.1},    {"expm1", Fn::Expm1, std::expm1, 1.6},
      {"tanh", Fn::Tanh, std::tanh, 2},       {"logistic", Fn::Logistic, logistic, 2},
      {"erf", Fn::Erf, std::erf, 1.6},          {"sin", Fn::Sin, std::sin, 1.7},
      {"cos", Fn::Cos, std::cos, 1.7},          {"rsqrt", Fn::Rsqrt, rsqrt, 1.6},
      {"erfc", Fn::Erfc, std::erfc, 5},         {"tan", Fn::Tan, std::tan, 3.6},
      {"sqrt", Fn::Sqrt, std::sqrt, 0.501},     {"cbrt", Fn::Cbrt, std::cbrt, 0.6},
      {"atan", Fn::Atan, std::atan, 2},         {"asin", Fn::Asin, std::asin, 2.6},
      {"acos", Fn::Acos, std::acos, 2},         {"sinh", Fn::Sinh, std::sinh, 2.4},
      {"cosh", Fn::Cosh, std::cosh, 2},         {"asinh", Fn::Asinh, std::asinh, 3},
      {"acosh", Fn::Acosh, std::acosh, 3},      {"atanh", Fn::Atanh, std::atanh, 3.3},
      {"lgamma", Fn::Lgamma, std::lgamma, 1.1},
  };
  return cases;
}

static double ulpOf(double want) {
  float f = std::fabs(static_cast<float>(want));
  if (!std::isfinite(f))
    return std::ldexp(1.0, 104);
  int e;
  std::frexp(std::max(std::fabs(want), 1e-300), &e);
  return std::ldexp(1.0, std::max(e - 24, -149));
}

SweepResult sweep(const MathCase &c, uint32_t stride, const std::string &cpuName, unsigned lanes) {
  SweepResult result;
  auto context = makeContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context.get()));
  OpBuilder ob(context.get());
  // an op that only gives the signature: one operand, one result
  auto t = RankedTensorType::get({16}, ob.getF32Type());
  OwningOpRef<ModuleOp> holder = ModuleOp::create(UnknownLoc::get(context.get()));
  ob.setInsertionPointToEnd(holder->getBody());
  auto source = UnrealizedConversionCastOp::create(ob, ob.getUnknownLoc(), TypeRange{t}, ValueRange{});
  auto op = UnrealizedConversionCastOp::create(ob, ob.getUnknownLoc(), TypeRange{t}, source.getResults());
  codegen::KernelTarget target = targetFor(cpuName);
  {
    codegen::KernelBuilder b(op, *module, "f", target);
    b.loop(b.begin, b.end, b.i64(lanes), [&](Value i) {
      Value x = b.loadElem(b.getF32Type(), b.operands[0], i, lanes);
      b.storeElem(b.getF32Type(), codegen::emitMath(b, c.fn, x), b.results[0], i);
    });
  }
  auto jit = JitModule::compile(*module, cpuName);
  void *f = jit ? jit->lookup("f") : nullptr;
  if (!f)
    return result;
  result.ok = true;
  constexpr int64_t block = 4096;
  alignas(64) static float in[block], out[block];
  int64_t dummy[8] = {};
  // whatever the stride: zeros, infinities, NaN, the least and largest numbers
  std::vector<uint32_t> always = {0x80000000, 0, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff};
  uint64_t bits = 0;
  while (bits < (uint64_t(1) << 32)) {
    int64_t n = 0;
    for (; n < block; ++n) {
      uint32_t u = static_cast<uint32_t>(std::min<uint64_t>(bits, 0xffffffffu));
      if (!always.empty()) {
        u = always.back();
        always.pop_back();
      } else {
        bits += stride;
      }
      std::memcpy(&in[n], &u, 4);
    }
    JitModule::call(f, {in, out, dummy, dummy, dummy}, 0, n);
    for (int64_t i = 0; i < n; ++i) {
      double want = c.reference(in[i]);
      float rounded = static_cast<float>(want), got = out[i];
      bool special = std::isnan(want) || std::isinf(rounded) || want == 0;
      if (special && std::isinf(rounded) && !std::isinf(want) && std::isfinite(got))
        special = false; // the last step to infinity may be off by the error
      if (special) {
        bool fine = std::isnan(want) ? std::isnan(got) : got == rounded && std::signbit(got) == std::signbit(rounded);
        if (!fine && !(want != 0 && got != 0 && std::isfinite(got))) {
          if (!result.wrongSpecial++)
            result.specialAt = in[i];
        }
        continue;
      }
      double err = std::fabs(double(got) - want) / ulpOf(want);
      if (!std::isfinite(got) && std::fabs(want) > 3.4028e38)
        err = 1;
      if (!(err <= result.worstUlp)) {
        result.worstUlp = std::isnan(err) ? 1e30 : err;
        result.worstAt = in[i];
        result.got = got;
        result.want = want;
      }
    }
  }
  return result;
}

} // namespace lathe::test
