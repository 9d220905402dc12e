// Long sums against exact ones: |error| <= (2 log2(n) + 8) eps sum|x|, for every kind of kernel that adds up, along every dimension. The numbers are
// those that lose most: all alike, so that roundings have one sign, or all positive.
#include "Text.h"

#include <cmath>

namespace lathe::test {
namespace {

const std::string s = "tensor<f32>";

/// Values of a kind: 0 all alike, 1 in [0, 1), 2 of both signs.
Tensor values(const std::vector<int64_t> &dims, int kind) {
  Tensor t = randomTensor(DType::Float32, dims, 7, 1);
  float *x = t.data<float>();
  for (int64_t i = 0; i < t.numElements(); ++i)
    x[i] = kind == 0 ? 0.1f : kind == 1 ? std::fabs(x[i]) : x[i];
  return t;
}

std::string reduceOf(const std::string &r, const std::string &of, const std::string &in, const std::string &dims, const std::string &out) {
  return "%i = \"hlo.constant\"() {value = dense<0.0> : " + s + "} : () -> " + s + "\n" + r + " = \"hlo.reduce\"(" + of +
         ", %i) ({\n^bb0(%p: " + s + ", %q: " + s + "):\n%w = \"hlo.add\"(%p, %q) : (" + s + ", " + s + ") -> " + s +
         "\n\"hlo.return\"(%w) : (" + s + ") -> ()\n}) {dimensions = array<i64: " + dims + ">} : (" + in + ", " + s + ") -> " + out;
}

std::string windowOf(const std::string &in, const std::string &out, const std::string &sizes, const std::string &padding, size_t rank) {
  return function({in}, out,
                  "%i = \"hlo.constant\"() {value = dense<0.0> : " + s + "} : () -> " + s +
                      "\n%r = \"hlo.reduce_window\"(%x0, %i) ({\n^bb0(%p: " + s + ", %q: " + s + "):\n%w = \"hlo.add\"(%p, %q) : (" + s +
                      ", " + s + ") -> " + s + "\n\"hlo.return\"(%w) : (" + s + ") -> ()\n}) {window_dimensions = array<i64: " + sizes +
                      ">, padding = dense<" + padding + "> : tensor<" + std::to_string(rank) + "x2xi64>} : (" + in + ", " + s + ") -> " + out);
}

double limit(int64_t n, double magnitude) {
  return (2 * std::log2(double(n)) + 8) * std::ldexp(1.0, -23) * magnitude;
}

/// Result k is the sum of the elements that `terms(k)` calls its function with.
using Terms = std::function<void(int64_t k, const std::function<void(double)> &)>;

void check(const std::string &text, const std::vector<Tensor> &inputs, const Terms &terms) {
  for (const char *cpu : cpus) {
    if (!hostRuns(cpu))
      continue;
    KernelRun run = runKernel(text, inputs, cpu);
    ASSERT_TRUE(run.ok) << run.message << text;
    const Tensor &out = run.outputs[0];
    const int64_t step = std::max<int64_t>(1, out.numElements() / 50);
    for (int64_t k = step - 1; k < out.numElements(); k += step) {
      long double sum = 0, magnitude = 0;
      int64_t n = 0;
      terms(k, [&](double x) {
        sum += x;
        magnitude += std::fabs(x);
        ++n;
      });
      ASSERT_LE(std::fabs(double(out.data<float>()[k] - sum)), limit(n, magnitude)) << cpu << " result " << k << " of " << n << "\n" << text;
    }
  }
}

TEST(Sums, Reductions) {
  struct Case {
    std::vector<int64_t> dims;
    std::string over;
    std::vector<bool> reduced;
  };
  for (const Case &c : {Case{{100}, "0", {true}}, Case{{300007}, "0", {true}}, Case{{3, 70001}, "1", {false, true}},
                        Case{{40001, 37}, "0", {true, false}}, Case{{300, 5, 211}, "0, 2", {true, false, true}},
                        Case{{7, 400, 19}, "1", {false, true, false}}, Case{{50, 9, 300, 18}, "0, 2", {true, false, true, false}},
                        Case{{3000, 17, 6}, "0, 2", {true, false, true}}})
    for (int kind = 0; kind < 3; ++kind) {
      std::vector<int64_t> kept;
      std::vector<int64_t> strides(c.dims.size(), 1);
      for (size_t i = c.dims.size() - 1; i > 0; --i)
        strides[i - 1] = strides[i] * c.dims[i];
      for (size_t i = 0; i < c.dims.size(); ++i)
        if (!c.reduced[i])
          kept.push_back(c.dims[i]);
      Tensor x = values(c.dims, kind);
      auto terms = [&](int64_t k, const std::function<void(double)> &add) {
        int64_t base = 0;
        for (size_t i = c.dims.size(); i-- > 0;)
          if (!c.reduced[i]) {
            base += k % c.dims[i] * strides[i];
            k /= c.dims[i];
          }
        std::function<void(size_t, int64_t)> level = [&](size_t i, int64_t at) {
          if (i == c.dims.size())
            return add(x.data<float>()[at]);
          for (int64_t j = 0; j < (c.reduced[i] ? c.dims[i] : 1); ++j)
            level(i + 1, at + j * strides[i]);
        };
        level(0, base);
      };
      check(function({type(c.dims)}, type(kept), reduceOf("%r", "%x0", type(c.dims), c.over, type(kept))), {x}, terms);
    }
}

// x * sum(x): a row's elements are all the sum, where x is divided out again by the test.
TEST(Sums, Rows) {
  const int64_t rows = 3, n = 65536;
  const std::string x = type({rows, n}), m = type({rows});
  for (int kind = 0; kind < 3; ++kind) {
    Tensor in = values({rows, n}, kind);
    check(kernelOf("rows", {x}, x,
                   reduceOf("%s", "%a0", x, "1", m) + "\n%y = \"hlo.broadcast_in_dim\"(%s) {broadcast_dimensions = array<i64: 0>} : (" + m +
                       ") -> " + x),
          {in}, [&](int64_t k, const std::function<void(double)> &add) {
            for (int64_t j = 0; j < n; ++j)
              add(in.data<float>()[k / n * n + j]);
          });
  }
}

TEST(Sums, Products) {
  struct Case {
    int64_t m, k, n;
  };
  for (const Case &c : {Case{1, 100, 1}, Case{1, 200001, 1}, Case{1, 40000, 33}, Case{5, 3000, 16}, Case{40, 5000, 70}, Case{64, 700, 3}})
    for (int kind = 0; kind < 3; ++kind) {
      Tensor x = values({c.m, c.k}, kind), w = values({c.k, c.n}, kind ? 2 : 0);
      const std::string a = type({c.m, c.k}), b = type({c.k, c.n}), r = type({c.m, c.n});
      check(function({a, b}, r,
                     "%r = kernel.dot(%x0, %x1) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : ("
                     + a + ", " + b + ") -> " + r + " {\n^bb0(%acc: " + r + "):\n kernel.yield %acc : " + r + "\n}"),
            {x, w}, [&](int64_t k, const std::function<void(double)> &add) {
              for (int64_t j = 0; j < c.k; ++j)
                add(double(x.data<float>()[k / c.n * c.k + j]) * w.data<float>()[j * c.n + k % c.n]);
            });
    }
}

TEST(Sums, RunningSums) {
  for (int kind = 0; kind < 3; ++kind) {
    Tensor row = values({2, 60001}, kind);
    const std::string x = type({2, 60001});
    check(windowOf(x, x, "1, 60001", "[[0, 0], [60000, 0]]", 2), {row}, [&](int64_t k, const std::function<void(double)> &add) {
      for (int64_t j = k / 60001 * 60001; j <= k; ++j)
        add(row.data<float>()[j]);
    });
    Tensor column = values({5000, 75}, kind);
    const std::string y = type({5000, 75});
    check(windowOf(y, y, "5000, 1", "[[4999, 0], [0, 0]]", 2), {column}, [&](int64_t k, const std::function<void(double)> &add) {
      for (int64_t j = k % 75; j <= k; j += 75)
        add(column.data<float>()[j]);
    });
  }
}

TEST(Sums, Windows) {
  for (int kind = 0; kind < 3; ++kind) {
    Tensor x = values({1, 120, 110, 20}, kind);
    auto terms = [&](int64_t k, const std::function<void(double)> &add) {
      for (int64_t i = 0; i < 120 * 110; ++i)
        add(x.data<float>()[i * 20 + k]);
    };
    const std::string in = type({1, 120, 110, 20}), out = type({1, 1, 1, 20});
    check(windowOf(in, out, "1, 120, 110, 1", "0", 4), {x}, terms);
    check(function({in}, out,
                   "%r = kernel.pool(%x0) {kind = \"sum\", window = " + list({120, 110}) + ", strides = " + list({1, 1}) + ", padding = " +
                       list({0, 0, 0, 0}) + ", window_dilation = " + list({1, 1}) + "} : (" + in + ") -> " + out + " {\n^bb0(%acc: " + out +
                       "):\nkernel.yield %acc : " + out + "\n}"),
          {x}, terms);
  }
}

} // namespace
} // namespace lathe::test
