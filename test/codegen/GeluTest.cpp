// GELU and swish in the spellings of graphs: code by tables where there is AVX-512, the formulas' functions elsewhere.
#include "Text.h"

#include <cmath>

namespace lathe::test {

static const std::string T = "tensor<4099xf32>";

static std::string splat(const char *name, const char *number) {
  return std::string(name) + " = \"hlo.constant\"() {value = dense<" + number + "> : " + T + "} : () -> " + T + "\n";
}
static std::string unary(const char *r, const char *op, const char *x) {
  return std::string(r) + " = \"hlo." + op + "\"(" + x + ") : (" + T + ") -> " + T + "\n";
}
static std::string binary(const char *r, const char *op, const char *x, const char *y) {
  return std::string(r) + " = \"hlo." + op + "\"(" + x + ", " + y + ") : (" + T + ", " + T + ") -> " + T + "\n";
}
static const std::string half = splat("%half", "0.5"), one = splat("%one", "1.0");

// 0.5 x erfc(-x * 0.7071...)
static std::string byErfc(const char *slope = "0.707106769") {
  return half + splat("%c", slope) + binary("%h", "multiply", "%a0", "%half") + unary("%n", "negate", "%a0") +
         binary("%u", "multiply", "%n", "%c") + unary("%e", "erfc", "%u") + binary("%y", "multiply", "%h", "%e");
}
// x (0.5 (1 + erf(x / sqrt 2)))
static std::string byErf() {
  return half + one + splat("%c", "1.41421354") + binary("%u", "divide", "%a0", "%c") + unary("%e", "erf", "%u") +
         binary("%s", "add", "%one", "%e") + binary("%p", "multiply", "%half", "%s") + binary("%y", "multiply", "%a0", "%p");
}
// 0.5 x (1 + tanh(0.7978... (x + 0.044715 x^3)))
static std::string byTanh(const char *cubic = "4.471500e-02") {
  return half + one + splat("%c", cubic) + splat("%d", "0.797884583") + binary("%h", "multiply", "%a0", "%half") +
         binary("%q", "multiply", "%a0", "%a0") + binary("%k", "multiply", "%q", "%a0") + binary("%l", "multiply", "%k", "%c") +
         binary("%m", "add", "%a0", "%l") + binary("%u", "multiply", "%m", "%d") + unary("%e", "tanh", "%u") +
         binary("%s", "add", "%e", "%one") + binary("%y", "multiply", "%h", "%s");
}
// x (1 + 0.044715 x x) in the tanh
static std::string byFactoredTanh() {
  return half + one + splat("%c", "4.471500e-02") + splat("%d", "0.797884583") + binary("%q", "multiply", "%a0", "%a0") +
         binary("%l", "multiply", "%c", "%q") + binary("%m", "add", "%one", "%l") + binary("%g", "multiply", "%d", "%a0") +
         binary("%u", "multiply", "%g", "%m") + unary("%e", "tanh", "%u") + binary("%s", "add", "%e", "%one") +
         binary("%p", "multiply", "%s", "%half") + binary("%y", "multiply", "%p", "%a0");
}

static std::string swish(bool first) {
  return unary("%l", "logistic", "%a0") + (first ? binary("%y", "multiply", "%a0", "%l") : binary("%y", "multiply", "%l", "%a0"));
}

static Tensor arguments(float from, float to) {
  Tensor x = Tensor::allocate(DType::Float32, {4099});
  for (int i = 0; i < 4099; ++i)
    x.data<float>()[i] = from + (to - from) * i / 4098;
  return x;
}

using Exact = double (*)(double);
static double geluErf(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }
static double geluTanh(double x) {
  double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));
}
static double exactSwish(double x) { return x / (1 + std::exp(-x)); }

/// Errors in units of the last place of a float, the largest of a sample.
static double worstUlp(const std::string &body, float from, float to, Exact exact) {
  Tensor x = arguments(from, to);
  KernelRun run = runKernel(kernelOf("loop", {T}, T, body), {x}, "host");
  if (!run.ok || run.error)
    return INFINITY;
  double worst = 0;
  for (int i = 0; i < 4099; ++i) {
    double want = exact(x.data<float>()[i]), got = run.outputs[0].data<float>()[i];
    int e;
    std::frexp(want, &e);
    double error = want == 0 ? (got == 0 ? 0 : INFINITY) : std::abs(got - want) / std::ldexp(1.0, e - 24);
    worst = std::max(worst, std::isnan(error) ? INFINITY : error);
  }
  return worst;
}

// The formulas lose what erf and tanh round away: at -3 some hundred units.
TEST(Gelu, EverySpellingIsMoreAccurateThanItsFormula) {
  if (!targetFor("host").avx512)
    GTEST_SKIP() << "no tables";
  for (const std::string &body : {byErfc(), byErf()}) {
    EXPECT_LE(worstUlp(body, -3.5f, 20, geluErf), 4) << body;
    EXPECT_LE(worstUlp(body, -0.01f, 0.01f, geluErf), 3) << body;
    EXPECT_LE(worstUlp(body, -7.5f, -3.5f, geluErf), 600) << body;
  }
  for (const std::string &body : {byTanh(), byFactoredTanh()}) {
    EXPECT_LE(worstUlp(body, -3.5f, 20, geluTanh), 6) << body;
    EXPECT_LE(worstUlp(body, -7.5f, -3.5f, geluTanh), 16000) << body;
  }
}

TEST(Swish, IsAsAccurateAsItsFormula) {
  if (!targetFor("host").avx512)
    GTEST_SKIP() << "no tables";
  for (const std::string &body : {swish(true), swish(false)}) {
    EXPECT_LE(worstUlp(body, -0.01f, 0.01f, exactSwish), 3) << body;
    EXPECT_LE(worstUlp(body, -16, 100, exactSwish), 3) << body;
    EXPECT_LE(worstUlp(body, -88, -16, exactSwish), 6) << body;
  }
}

TEST(Gelu, AgreesWithTheReference) {
  Tensor special = arguments(-40, 40);
  const float values[] = {0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 3e38f, -3e38f, 1e-20f, -1e-20f};
  std::copy(std::begin(values), std::end(values), special.data<float>());
  for (const std::string &body : {byErfc(), byErf(), byTanh(), byFactoredTanh(), swish(true), swish(false)})
    EXPECT_MATCH(kernelOf("loop", {T}, T, body), {special}, 2e-6) << body;
}

// Functions that only look like one stay what they are.
TEST(Gelu, OtherConstants) {
  for (const std::string &body : {byErfc("0.7"), byTanh("0.05")})
    EXPECT_MATCH(kernelOf("loop", {T}, T, body), {arguments(-9, 9)}, 2e-6) << body;
  const std::string ofTwice = binary("%t", "add", "%a0", "%a0") + unary("%l", "logistic", "%t") + binary("%y", "multiply", "%a0", "%l");
  EXPECT_MATCH(kernelOf("loop", {T}, T, ofTwice), {arguments(-9, 9)}, 2e-6);
}

} // namespace lathe::test
