// Random programs of updates, views, loops and branches: compiled code against the reference evaluator, bit
// for bit. What is tested is the memory plan: a buffer shared by mistake gives wrong numbers. Once more with
// sides of any length (passes/lower/SideBySide.cpp), in order, last first and on threads.
#include "CompileText.h"
#include "dialects/hlo/Evaluator.h"
#include "runtime/cpu/ThreadPool.h"
#include <cstdlib>
#include <random>

using namespace lathe;

namespace {

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::string module() {
    text = "func.func @main(%a0: tensor<8xi32>, %a1: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>, tensor<8xi32>) {\n";
    std::vector<std::string> values = {"%a0", "%a1"};
    block(values, 8, 0);
    text += "  return " + pick(values) + ", " + pick(values) + ", " + pick(values) +
            " : tensor<8xi32>, tensor<8xi32>, tensor<8xi32>\n}\n";
    return text;
  }

private:
  static constexpr const char *v = "tensor<8xi32>";
  std::mt19937 random;
  std::string text;
  int next = 0;

  int below(int n) { return static_cast<int>(random() % n); }
  std::string name() { return "%v" + std::to_string(next++); }
  // late values more often
  std::string pick(const std::vector<std::string> &values) {
    int n = static_cast<int>(values.size());
    return values[std::max(below(n), below(n))];
  }
  std::string scalar(int value) {
    std::string s = name();
    text += s + " = \"hlo.constant\"() {value = dense<" + std::to_string(value) + "> : tensor<i32>} : () -> tensor<i32>\n";
    return s;
  }
  std::string predicate(const std::vector<std::string> &values) {
    std::string x = name(), y = name(), p = name();
    text += x + " = \"hlo.slice\"(" + pick(values) +
            ") {start_indices = array<i64: 3>, limit_indices = array<i64: 4>, strides = array<i64: 1>} : (tensor<8xi32>) "
            "-> tensor<1xi32>\n";
    text += y + " = \"hlo.reshape\"(" + x + ") : (tensor<1xi32>) -> tensor<i32>\n";
    std::string zero = scalar(below(3) - 1);
    text += p + " = \"hlo.compare\"(" + y + ", " + zero +
            ") {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n";
    return p;
  }

  void block(std::vector<std::string> &values, int ops, int depth) {
    for (int i = 0; i < ops; ++i) {
      int kind = below(depth < 2 ? 10 : 8);
      std::string r = name();
      if (kind < 3) {
        text += r + " = \"hlo." + (below(2) ? "add" : "subtract") + "\"(" + pick(values) + ", " + pick(values) +
                ") : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>\n";
        values.push_back(r);
      } else if (kind < 5) {
        std::string u = name(), at = scalar(below(7));
        text += u + " = \"hlo.slice\"(" + pick(values) +
                ") {start_indices = array<i64: 2>, limit_indices = array<i64: 4>, strides = array<i64: 1>} : "
                "(tensor<8xi32>) -> tensor<2xi32>\n";
        text += r + " = \"hlo.dynamic_update_slice\"(" + pick(values) + ", " + u + ", " + at +
                ") : (tensor<8xi32>, tensor<2xi32>, tensor<i32>) -> tensor<8xi32>\n";
        values.push_back(r);
      } else if (kind == 5) {
        std::string w = name();
        text += w + " = \"hlo.reshape\"(" + pick(values) + ") : (tensor<8xi32>) -> tensor<2x4xi32>\n";
        text += r + " = \"hlo.reshape\"(" + w + ") : (tensor<2x4xi32>) -> tensor<8xi32>\n";
        values.push_back(r);
      } else if (kind < 8) {
        text += r + " = \"hlo.constant\"() {value = dense<" + std::to_string(below(5)) + "> : tensor<8xi32>} : () -> tensor<8xi32>\n";
        values.push_back(r);
      } else if (kind == 8) {
        loop(values, depth);
      } else {
        branches(values, depth);
      }
    }
  }

  void results(const std::string &r, int n, std::vector<std::string> &values) {
    for (int i = 0; i < n; ++i)
      values.push_back(r + "#" + std::to_string(i));
  }
  std::string list(int n, const std::string &item) {
    std::string s;
    for (int i = 0; i < n; ++i)
      s += (i ? ", " : "") + item;
    return s;
  }

  void branches(std::vector<std::string> &values, int depth) {
    std::string p = predicate(values), r = name();
    int n = 2 + below(2);
    text += r + ":" + std::to_string(n) + " = \"hlo.if\"(" + p + ") ({\n";
    for (int side = 0; side < 2; ++side) {
      std::vector<std::string> inner = values;
      block(inner, 1 + below(4), depth + 1);
      text += "\"hlo.return\"(";
      for (int i = 0; i < n; ++i)
        text += (i ? ", " : "") + pick(inner);
      text += ") : (" + list(n, v) + ") -> ()\n" + (side ? "})" : "}, {\n");
    }
    text += " : (tensor<i1>) -> (" + list(n, v) + ")\n";
    results(r, n, values);
  }

  void loop(std::vector<std::string> &values, int depth) {
    int n = 2 + below(3);
    std::string zero = scalar(0), limit = scalar(below(4)), r = name();
    std::string inits, args = "%i" + std::to_string(next) + ": tensor<i32>", i = "%i" + std::to_string(next);
    std::vector<std::string> carried;
    for (int k = 0; k < n; ++k) {
      inits += ", " + pick(values);
      carried.push_back(name());
      args += ", " + carried.back() + ": " + v;
    }
    std::string types = "tensor<i32>, " + list(n, v);
    text += r + ":" + std::to_string(n + 1) + " = \"hlo.while\"(" + zero + inits + ") ({\n^bb0(" + args + "):\n";
    std::string p = name();
    text += p + " = \"hlo.compare\"(" + i + ", " + limit +
            ") {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            "\"hlo.return\"(" + p + ") : (tensor<i1>) -> ()\n}, {\n^bb0(" + args + "):\n";
    std::vector<std::string> inner = values;
    inner.insert(inner.end(), carried.begin(), carried.end());
    block(inner, 2 + below(5), depth + 1);
    std::string one = scalar(1), step = name();
    text += step + " = \"hlo.add\"(" + i + ", " + one + ") : (tensor<i32>, tensor<i32>) -> tensor<i32>\n";
    text += "\"hlo.return\"(" + step;
    for (int k = 0; k < n; ++k)
      text += ", " + pick(inner);
    text += ") : (" + types + ") -> ()\n}) : (" + types + ") -> (" + types + ")\n";
    for (int k = 0; k < n; ++k)
      values.push_back(r + "#" + std::to_string(k + 1));
  }
};

int backwards(void *, void (*fn)(void *, int64_t, int64_t), void *arg, int64_t n) {
  for (int64_t i = n - 1; i >= 0; --i)
    fn(arg, i, i + 1);
  return 0;
}

TEST(RandomPrograms, EqualTheEvaluator) {
  // LATHE_RANDOM_PROGRAMS=first:count looks at more
  unsigned first = 350, count = 40;
  if (const char *range = std::getenv("LATHE_RANDOM_PROGRAMS"))
    sscanf(range, "%u:%u", &first, &count);
  Tensor a = Tensor::allocate(DType::Int32, {8}), b = Tensor::allocate(DType::Int32, {8});
  for (int i = 0; i < 8; ++i) {
    a.data<int32_t>()[i] = 3 * i - 10;
    b.data<int32_t>()[i] = i * i - 5;
  }
  ThreadPool pool(3);
  unsigned grouped = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    std::string text = Generator(seed).module();
    EmitOptions options;
    options.optLevel = 1;
    auto c = compile(text, options);
    ASSERT_TRUE(c) << text;
    auto func = *c->module->getOps<mlir::func::FuncOp>().begin();
    auto want = hlo::evaluateFunction(func, {a, b});
    ASSERT_TRUE(mlir::succeeded(want)) << text;
    auto check = [&](const std::vector<Tensor> &got, const char *how) {
      ASSERT_EQ(got.size(), want->size());
      for (size_t k = 0; k < got.size(); ++k)
        ASSERT_EQ(memcmp(got[k].data(), (*want)[k].data(), 32), 0)
            << how << ", seed " << seed << " result " << k << "\n"
            << text;
    };
    check(call(*c, {a, b}), "one thread");

    options.threads = 3;
    options.parallelWork = 0;
    options.wantLlvm = true;
    c = compile(text, options);
    ASSERT_TRUE(c) << text;
    grouped += c->artifact.llvmIr.find("_group0_side1") != std::string::npos;
    check(call(*c, {a, b}), "sides in order");
    ModuleRunner reversed(c->loaded, 0), threaded(c->loaded, 0);
    reversed.setParallelFor(backwards, nullptr, 3);
    threaded.setParallelFor(&ThreadPool::parallelFor, &pool, 3);
    for (int i = 0; i < 5; ++i) {
      auto last = reversed.call({a, b}), beside = threaded.call({a, b});
      ASSERT_TRUE(last && beside);
      check(*last, "last side first");
      check(*beside, "sides on threads");
    }
  }
  EXPECT_GT(4 * grouped, count) << "few programs had sides";
}

} // namespace
