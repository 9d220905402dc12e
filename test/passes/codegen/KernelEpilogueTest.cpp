// Epilogues of products and convolutions, given as text, against hand-written sums.
#include "KernelRunner.h"

#include "mlir/Parser/Parser.h"

#include "dialects/kernel/Kernel.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>
#include <sstream>

using namespace mlir;
using namespace lathe;
using namespace lathe::testing;

namespace {

std::vector<float> randomFloats(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> dist(-1, 1);
  std::vector<float> v(n);
  for (float &x : v)
    x = dist(random);
  return v;
}

CompiledKernel *compileText(const std::string &text, const Processor &processor) {
  // kept: compileOnce refers to types of the context only, but the op must live during the call
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &testContext());
  if (!module)
    return nullptr;
  CompiledKernel *kernel = nullptr;
  module->walk([&](Operation *op) {
    if (kernel::hasCore(op))
      kernel = CompiledKernel::compileOnce(op, processor);
  });
  return kernel;
}

std::string t(const std::string &shape, const char *elem = "f32") { return "tensor<" + shape + "x" + elem + ">"; }

/// relu(x * w + bias) * scale + residual, as text; `elem` is the type of the operands and the result.
std::string dotText(int64_t m, int64_t k, int64_t n, const std::string &nonlinear, const char *elem = "f32") {
  std::string M = std::to_string(m), K = std::to_string(k), N = std::to_string(n), MN = M + "x" + N;
  std::string T = t(MN), R = t(MN, elem);
  bool narrow = std::string(elem) != "f32";
  return "func.func @f(%x: " + t(M + "x" + K, elem) + ", %w: " + t(K + "x" + N, elem) + ", %b: " + t(N) + ", %r: " + T + ") -> " + R + " {\n"
         "  %0 = kernel.dot(%x, %w, %b, %r) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (" +
         t(M + "x" + K, elem) + ", " + t(K + "x" + N, elem) + ", " + t(N) + ", " + T + ") -> " + R + " {\n"
         "  ^bb0(%acc: " + T + ", %bias: " + t(N) + ", %res: " + T + "):\n"
         "    %1 = \"hlo.broadcast_in_dim\"(%bias) {broadcast_dimensions = array<i64: 1>} : (" + t(N) + ") -> " + T + "\n"
         "    %2 = \"hlo.add\"(%acc, %1) : (" + T + ", " + T + ") -> " + T + "\n"
         "    %3 = \"hlo." + nonlinear + "\"(%2) : (" + T + ") -> " + T + "\n"
         "    %4 = \"hlo.add\"(%3, %res) : (" + T + ", " + T + ") -> " + T + "\n" +
         (narrow ? "    %5 = \"hlo.convert\"(%4) : (" + T + ") -> " + R + "\n    kernel.yield %5 : " + R + "\n" : "    kernel.yield %4 : " + T + "\n") +
         "  }\n  return %0 : " + R + "\n}\n";
}

TEST(KernelEpilogue, BiasNonlinearityResidual) {
  for (const char *nonlinear : {"abs", "tanh"})
    for (auto [m, k, n] : {std::tuple(1, 20, 10), {30, 16, 64}, {27, 30, 43}, {40, 1024, 70}})
      for (const Processor &p : {Processor::host(), Processor::avx2()}) {
        CompiledKernel *kernel = compileText(dotText(m, k, n, nonlinear), p);
        ASSERT_TRUE(kernel);
        auto x = randomFloats(m * k, 1), w = randomFloats(k * n, 2), bias = randomFloats(n, 3), res = randomFloats(m * n, 4);
        std::vector<float> z(m * n);
        EXPECT_EQ(kernel->run({x.data(), w.data(), bias.data(), res.data()}, {z.data()}), 0);
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            double s = bias[j];
            for (int l = 0; l < k; ++l)
              s += double(x[i * k + l]) * w[l * n + j];
            s = (nonlinear[0] == 'a' ? std::abs(s) : std::tanh(s)) + res[i * n + j];
            ASSERT_NEAR(z[i * n + j], s, 2e-5 * std::sqrt(k)) << i << " " << j;
          }
      }
}

// The last columns of a row take one vector, whatever their number, where loads and stores have masks.
TEST(KernelEpilogue, TailIsOneVector) {
  for (const Processor &p : {Processor{"skylake-avx512", ""}, Processor::avx2()})
    for (int64_t n : {3, 6, 7, 13, 27}) {
      CompiledKernel *kernel = compileText(dotText(40, 24, n, "sqrt"), p);
      ASSERT_TRUE(kernel);
      EXPECT_NE(kernel->assembly().find("vsqrtps"), std::string::npos) << p.cpu << " " << n;
      EXPECT_EQ(kernel->assembly().find("vsqrtss"), std::string::npos) << p.cpu << " " << n;
    }
}

float fromBf16(uint16_t b) {
  uint32_t u = uint32_t(b) << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
uint16_t toBf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return (u + 0x7fff + ((u >> 16) & 1)) >> 16;
}

TEST(KernelEpilogue, Bfloat16) {
  for (auto [m, k, n] : {std::tuple(1, 20, 10), {30, 16, 64}, {27, 30, 43}}) {
    CompiledKernel *kernel = compileText(dotText(m, k, n, "abs", "bf16"), Processor::host());
    ASSERT_TRUE(kernel);
    std::vector<uint16_t> x, w, z(m * n);
    for (float f : randomFloats(m * k, 1))
      x.push_back(toBf16(f));
    for (float f : randomFloats(k * n, 2))
      w.push_back(toBf16(f));
    auto bias = randomFloats(n, 3), res = randomFloats(m * n, 4);
    EXPECT_EQ(kernel->run({x.data(), w.data(), bias.data(), res.data()}, {z.data()}), 0);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double s = bias[j];
        for (int l = 0; l < k; ++l)
          s += double(fromBf16(x[i * k + l])) * fromBf16(w[l * n + j]);
        s = std::abs(s) + res[i * n + j];
        ASSERT_NEAR(fromBf16(z[i * n + j]), s, std::abs(s) / 200 + 1e-4) << i << " " << j;
      }
  }
}

/// Integers and complex numbers: the sum alone.
std::string plainText(int64_t m, int64_t k, int64_t n, const char *in, const char *out) {
  std::string M = std::to_string(m), K = std::to_string(k), N = std::to_string(n);
  std::string X = t(M + "x" + K, in), W = t(K + "x" + N, in), R = t(M + "x" + N, out);
  return "func.func @f(%x: " + X + ", %w: " + W + ") -> " + R + " {\n  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, "
         "rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (" + X + ", " + W + ") -> " + R + " {\n  ^bb0(%acc: " + R +
         "):\n    kernel.yield %acc : " + R + "\n  }\n  return %0 : " + R + "\n}\n";
}

/// The basic block with the most multiply-adds.
std::string hottestBlock(const std::string &assembly) {
  std::string block, best;
  size_t bestCount = 0, count = 0;
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] == '.' && line.find(':') != std::string::npos) {
      block.clear();
      count = 0;
    }
    block += line + "\n";
    count += line.find("vfmadd") != std::string::npos;
    // the loop ends at its backward jump
    if (count > bestCount && line.find("\tj") == 0) {
      best = block;
      bestCount = count;
      count = 0;
    }
  }
  return best;
}

TEST(KernelDot, InnerLoopStaysInRegisters) {
  for (auto [m, n] : {std::pair(128, 256), {7, 512}, {1, 512}, {56, 48}})
    for (const Processor &p : {Processor{"x86-64-v4", ""}, Processor::avx2()}) {
      if (!p.isRunnable())
        continue;
      CompiledKernel *kernel = compileText(plainText(m, 256, n, "f32", "f32"), p);
      ASSERT_TRUE(kernel);
      std::string block = hottestBlock(kernel->assembly());
      EXPECT_NE(block.find("vfmadd"), std::string::npos);
      EXPECT_EQ(block.find("%rsp"), std::string::npos) << p.cpu << " " << m << "x" << n << "\n" << block;
    }
}

TEST(KernelDot, OtherTypes) {
  const int m = 14, k = 19, n = 37;
  for (const Processor &p : {Processor::host(), Processor::baseline()}) {
    CompiledKernel *kernel = compileText(plainText(m, k, n, "i8", "i32"), p);
    ASSERT_TRUE(kernel);
    std::vector<int8_t> x(m * k), w(k * n);
    std::vector<int32_t> z(m * n);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = i * 37 % 255 - 127;
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = i * 91 % 255 - 127;
    EXPECT_EQ(kernel->run({x.data(), w.data()}, {z.data()}), 0);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        int32_t s = 0;
        for (int l = 0; l < k; ++l)
          s += x[i * k + l] * w[l * n + j];
        ASSERT_EQ(z[i * n + j], s);
      }
    for (const char *type : {"f64", "complex<f32>", "i64"})
      ASSERT_TRUE(compileText(plainText(m, k, n, type, type), p)) << type;
    kernel = compileText(plainText(m, k, n, "complex<f32>", "complex<f32>"), p);
    auto a = randomFloats(2 * m * k, 1), b = randomFloats(2 * k * n, 2);
    std::vector<float> c(2 * m * n);
    kernel->run({a.data(), b.data()}, {c.data()});
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double re = 0, im = 0;
        for (int l = 0; l < k; ++l) {
          double ar = a[2 * (i * k + l)], ai = a[2 * (i * k + l) + 1], br = b[2 * (l * n + j)], bi = b[2 * (l * n + j) + 1];
          re += ar * br - ai * bi;
          im += ar * bi + ai * br;
        }
        ASSERT_NEAR(c[2 * (i * n + j)], re, 1e-4);
        ASSERT_NEAR(c[2 * (i * n + j) + 1], im, 1e-4);
      }
  }
}

} // namespace
