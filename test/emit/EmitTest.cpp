// Text of a module -> object -> JIT -> results, for everything that is this room's: buffers, control flow, constants,
// run-time sizes, variables, threads.
#include "CompileText.h"
#include "compiler/emit/Elf.h"
#include "runtime/cpu/ThreadPool.h"
#include <cmath>

using namespace lathe;

namespace {

TEST(Emit, AddWithConstant) {
  auto c = compile(R"(
    func.func @main(%x: tensor<4xf32> {hlo.name = "x"}) -> (tensor<4xf32> {hlo.name = "y"}) {
      %c = "hlo.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
      %0 = "hlo.add"(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = "hlo.multiply"(%0, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    })");
  ASSERT_TRUE(c);
  auto r = call(*c, {floats({1, 1, 1, 1})});
  ASSERT_EQ(r.size(), 1u);
  EXPECT_EQ(values(r[0]), (std::vector<float>{4, 9, 16, 25}));
  EXPECT_EQ(c->artifact.report.kernels, 2);
  EXPECT_EQ(c->artifact.report.arenaBytes, 64);
  EXPECT_STREQ(c->loaded->abi().entries[0]->inputs[0]->name, "x");
  auto summary = llvm::cantFail(summarizeObject(c->artifact.object));
  EXPECT_EQ(summary.undefined, std::vector<std::string>{});
  EXPECT_EQ(summary.exported, (std::vector<std::string>{"model_module", "model_run", "model_workspace_size"}));
}

TEST(Emit, SameBytesTwice) {
  const char *text = R"(
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "hlo.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = "hlo.add"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    })";
  auto a = compile(text, {}, false), b = compile(text, {}, false);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->artifact.object, b->artifact.object);
  EXPECT_EQ(a->artifact.header, b->artifact.header);
  EXPECT_EQ(a->artifact.report.kernels, 1);
}

// A result that is an input, a constant, another result.
TEST(Emit, ResultsThatNeedCopies) {
  auto c = compile(R"(
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1x2xf32>, tensor<300xf32>) {
      %c = "hlo.constant"() {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
      %s = "hlo.constant"() {value = dense<2.5> : tensor<300xf32>} : () -> tensor<300xf32>
      %0 = "hlo.add"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "hlo.reshape"(%0) : (tensor<2xf32>) -> tensor<1x2xf32>
      return %x, %c, %0, %1, %s : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1x2xf32>, tensor<300xf32>
    })");
  ASSERT_TRUE(c);
  auto r = call(*c, {floats({1, 2})});
  ASSERT_EQ(r.size(), 5u);
  EXPECT_EQ(values(r[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(values(r[1]), (std::vector<float>{5, 6}));
  EXPECT_EQ(values(r[2]), (std::vector<float>{6, 8}));
  EXPECT_EQ(values(r[3]), (std::vector<float>{6, 8}));
  EXPECT_EQ(values(r[4]), std::vector<float>(300, 2.5f));
}

// fib: (i, a, b) -> (i + 1, b, a + b): values change places.
TEST(Emit, WhileSwaps) {
  auto c = compile(R"(
    func.func @main(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
      %z = "hlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %one = "hlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %r:3 = "hlo.while"(%z, %z, %one) ({
      ^bb0(%i: tensor<i32>, %a: tensor<i32>, %b: tensor<i32>):
        %p = "hlo.compare"(%i, %n) {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "hlo.return"(%p) : (tensor<i1>) -> ()
      }, {
      ^bb0(%i: tensor<i32>, %a: tensor<i32>, %b: tensor<i32>):
        %i1 = "hlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %s = "hlo.add"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "hlo.return"(%i1, %b, %s) : (tensor<i32>, tensor<i32>, tensor<i32>) -> ()
      }) : (tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>, tensor<i32>)
      return %r#1, %r#2 : tensor<i32>, tensor<i32>
    })");
  ASSERT_TRUE(c);
  int32_t want[][2] = {{0, 1}, {1, 1}, {1, 2}, {2, 3}, {3, 5}, {5, 8}, {8, 13}};
  for (int n = 0; n < 7; ++n) {
    auto r = call(*c, {Tensor::scalar<int32_t>(DType::Int32, n)});
    ASSERT_EQ(r.size(), 2u);
    EXPECT_EQ(*r[0].data<int32_t>(), want[n][0]) << n;
    EXPECT_EQ(*r[1].data<int32_t>(), want[n][1]) << n;
  }
}

// A buffer written row by row: updated in place, the loop's result lies where it is returned.
TEST(Emit, WhileUpdatesInPlace) {
  auto c = compile(R"(
    func.func @main(%n: tensor<1xi32>, %u: tensor<1xf32>) -> tensor<1000xf32> {
      %z = "hlo.constant"() {value = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
      %one = "hlo.constant"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
      %init = "hlo.constant"() {value = dense<0.5> : tensor<1000xf32>} : () -> tensor<1000xf32>
      %r:3 = "hlo.while"(%z, %init, %u) ({
      ^bb0(%i: tensor<1xi32>, %a: tensor<1000xf32>, %b: tensor<1xf32>):
        %p = "hlo.compare"(%i, %n) {comparison_direction = #hlo<comparison_direction LT>} : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
        %q = "hlo.reshape"(%p) : (tensor<1xi1>) -> tensor<i1>
        "hlo.return"(%q) : (tensor<i1>) -> ()
      }, {
      ^bb0(%i: tensor<1xi32>, %a: tensor<1000xf32>, %b: tensor<1xf32>):
        %i1 = "hlo.add"(%i, %one) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
        %at = "hlo.reshape"(%i) : (tensor<1xi32>) -> tensor<i32>
        %d = "hlo.dynamic_update_slice"(%a, %b, %at) : (tensor<1000xf32>, tensor<1xf32>, tensor<i32>) -> tensor<1000xf32>
        %s = "hlo.add"(%b, %u) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
        "hlo.return"(%i1, %d, %s) : (tensor<1xi32>, tensor<1000xf32>, tensor<1xf32>) -> ()
      }) : (tensor<1xi32>, tensor<1000xf32>, tensor<1xf32>) -> (tensor<1xi32>, tensor<1000xf32>, tensor<1xf32>)
      return %r#1 : tensor<1000xf32>
    })");
  ASSERT_TRUE(c);
  auto r = call(*c, {Tensor::vector<int32_t>(DType::Int32, {5}), floats({2})});
  ASSERT_EQ(r.size(), 1u);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(r[0].data<float>()[i], i < 5 ? 2.0f * (i + 1) : 0.5f) << i;
  // nothing of the big buffer's size in the arena, and no copy of it in the loop
  EXPECT_LT(c->artifact.report.arenaBytes, 1024);
}

TEST(Emit, IfAndCase) {
  auto c = compile(R"(
    func.func @main(%p: tensor<i1>, %k: tensor<i32>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "hlo.if"(%p) ({
        %t = "hlo.add"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        "hlo.return"(%t) : (tensor<2xf32>) -> ()
      }, {
        "hlo.return"(%x) : (tensor<2xf32>) -> ()
      }) : (tensor<i1>) -> tensor<2xf32>
      %1 = "hlo.case"(%k) ({
        "hlo.return"(%x) : (tensor<2xf32>) -> ()
      }, {
        %t = "hlo.multiply"(%0, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        "hlo.return"(%t) : (tensor<2xf32>) -> ()
      }, {
        "hlo.return"(%0) : (tensor<2xf32>) -> ()
      }) : (tensor<i32>) -> tensor<2xf32>
      return %0, %1 : tensor<2xf32>, tensor<2xf32>
    })");
  ASSERT_TRUE(c);
  for (bool p : {false, true})
    for (int k = -1; k < 4; ++k) {
      auto r = call(*c, {Tensor::scalar<bool>(DType::Bool, p), Tensor::scalar<int32_t>(DType::Int32, k), floats({3, 5})});
      ASSERT_EQ(r.size(), 2u);
      std::vector<float> first = p ? std::vector<float>{6, 10} : std::vector<float>{3, 5}, second = first;
      if (k == 0)
        second = {3, 5};
      if (k == 1)
        second = {first[0] * 3, first[1] * 5};
      EXPECT_EQ(values(r[0]), first);
      EXPECT_EQ(values(r[1]), second) << k;
    }
}

const char *dynamicText = R"(
  module attributes {hlo.symbols = [{name = "batch", bound = -1 : i64, kind = "input"}]} {
  func.func @main(%x: tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>) -> tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>> {
    %0 = "hlo.add"(%x, %x) : (tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>, tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>) -> tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>
    %1 = "hlo.multiply"(%0, %x) : (tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>, tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>) -> tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>
    %2 = "hlo.add"(%0, %1) : (tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>, tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>) -> tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>
    return %2 : tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>
  }})";

TEST(Emit, RunTimeBatch) {
  auto c = compile(dynamicText);
  ASSERT_TRUE(c);
  for (int64_t batch : {1, 7, 0, 100}) {
    Tensor x = Tensor::allocate(DType::Float32, {batch, 3});
    for (int64_t i = 0; i < 3 * batch; ++i)
      x.data<float>()[i] = static_cast<float>(i);
    auto r = call(*c, {x});
    ASSERT_EQ(r.size(), 1u);
    EXPECT_EQ(r[0].dims(), (std::vector<int64_t>{batch, 3}));
    for (int64_t i = 0; i < 3 * batch; ++i)
      EXPECT_EQ(r[0].data<float>()[i], 2.0f * i * i + 2 * i);
  }
  const lathe_entry &e = *c->loaded->abi().entries[0];
  int64_t sizes[] = {1000};
  EXPECT_GE(e.workspace_size(sizes, 1), 2 * 12000);
  sizes[0] = int64_t(1) << 60;
  EXPECT_LT(e.workspace_size(sizes, 1), 0);
  sizes[0] = -1;
  EXPECT_LT(e.workspace_size(sizes, 1), 0);
}

// Two entries over one variable.
TEST(Emit, Variables) {
  auto c = compile(R"(
    module attributes {hlo.variables = [{name = "W", type = tensor<2xf32>, value = dense<[10.0, 20.0]> : tensor<2xf32>}]} {
    func.func @step(%g: tensor<2xf32> {hlo.name = "g"}, %w: tensor<2xf32> {hlo.variable = "W"})
        -> (tensor<2xf32> {hlo.name = "before"}, tensor<2xf32> {hlo.variable = "W"}) {
      %0 = "hlo.add"(%w, %g) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %w, %0 : tensor<2xf32>, tensor<2xf32>
    }
    func.func @read(%w: tensor<2xf32> {hlo.variable = "W"}) -> (tensor<2xf32> {hlo.name = "W"}) {
      return %w : tensor<2xf32>
    }})");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->loaded->findEntry("read"), 1);
  EXPECT_EQ(values(call(*c, {}, 1)[0]), (std::vector<float>{10, 20}));
  EXPECT_EQ(values(call(*c, {floats({1, 2})}, 0)[0]), (std::vector<float>{10, 20}));
  EXPECT_EQ(values(call(*c, {floats({1, 2})}, 0)[0]), (std::vector<float>{11, 22}));
  EXPECT_EQ(values(call(*c, {}, 1)[0]), (std::vector<float>{12, 24}));
}

// One block of memory under two shapes, as the tied embedding of a language model: the product has its own
// copy, the other reader needs what it was made of.
TEST(Emit, ReleasesConstantsAfterTheirLastReader) {
  std::string text = R"(
    func.func @main(%x: tensor<1x2xf32>, %y: tensor<1x2x8xf32>) -> (tensor<1x8xf32>, tensor<1x2x8xf32>) {
      %w = "hlo.constant"() {value = dense_resource<w> : tensor<2x8xf32>} : () -> tensor<2x8xf32>
      %v = "hlo.constant"() {value = dense_resource<w> : tensor<1x2x8xf32>} : () -> tensor<1x2x8xf32>
      %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>}
          : (tensor<1x2xf32>, tensor<2x8xf32>) -> tensor<1x8xf32> {
      ^bb0(%acc: tensor<1x8xf32>):
        kernel.yield %acc : tensor<1x8xf32>
      }
      %1 = "hlo.add"(%y, %v) : (tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
      return %0, %1 : tensor<1x8xf32>, tensor<1x2x8xf32>
    }
    {-# dialect_resources: { builtin: { w: "0x04000000)";
  for (int i = 0; i < 16; ++i)
    text += "00000040"; // 2
  text += "\" } } #-}";
  EmitOptions options;
  options.releaseConstants = true;
  auto c = compile(text, options);
  ASSERT_TRUE(c);
  Tensor x = Tensor::allocate(DType::Float32, {1, 2}), y = Tensor::allocate(DType::Float32, {1, 2, 8});
  std::fill_n(x.data<float>(), 2, 1.0f);
  std::fill_n(y.data<float>(), 16, 0.0f);
  auto r = call(*c, {x, y});
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(values(r[0]), std::vector<float>(8, 4.0f));
  EXPECT_EQ(values(r[1]), std::vector<float>(16, 2.0f));
}

TEST(Emit, ExternalWeights) {
  EmitOptions options;
  options.externalWeights = true;
  auto c = compile(R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %c = "hlo.constant"() {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
      %0 = "hlo.add"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    })", options);
  ASSERT_TRUE(c);
  ModuleRunner runner(c->loaded);
  auto early = runner.call({floats({1, 2})});
  ASSERT_FALSE(bool(early));
  EXPECT_EQ(llvm::toString(early.takeError()), "the weights have not been bound");
  Tensor file = Tensor::allocate(DType::UInt8, {static_cast<int64_t>(c->artifact.weights.size())});
  memcpy(file.data(), c->artifact.weights.data(), c->artifact.weights.size());
  llvm::cantFail(c->loaded->bindWeights(file.data(), file.sizeBytes()));
  EXPECT_EQ(values(call(*c, {floats({1, 2})})[0]), (std::vector<float>{6, 8}));
  file.data<char>()[16] ^= 1;
  llvm::Error wrong = c->loaded->bindWeights(file.data(), file.sizeBytes());
  EXPECT_TRUE(bool(wrong));
  llvm::consumeError(std::move(wrong));
}

TEST(Emit, AArch64ObjectHasItsConstants) {
  EmitOptions options;
  options.triple = "aarch64-linux-gnu";
  auto c = compile(R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %c = "hlo.constant"() {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
      %0 = "hlo.add"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    })", options, false);
  ASSERT_TRUE(c);
  auto summary = llvm::cantFail(summarizeObject(c->artifact.object));
  EXPECT_EQ(summary.undefined, std::vector<std::string>{});
}

TEST(Emit, ManyOpsAreCutIntoFunctions) {
  std::string text = "func.func @main(%v0: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {\n";
  const int n = 1500;
  for (int i = 0; i < n; ++i)
    text += "  %v" + std::to_string(i + 1) + " = \"hlo.add\"(%v" + std::to_string(i) +
            (i ? ", %v0)" : ", %y)") + " : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n";
  text += "  return %v" + std::to_string(n) + " : tensor<4xf32>\n}";
  auto c = compile(text);
  ASSERT_TRUE(c);
  EXPECT_EQ(values(call(*c, {floats({1, 2, 3, 4}), floats({1, 2, 3, 4})})[0])[3], 4.0f * (n + 1));
  EXPECT_EQ(c->artifact.report.arenaBytes, 128);
  EXPECT_EQ(c->artifact.report.kernels, 1);
}

// A kernel of many units through parallel_for: the same bits with one thread, two, and without a pool.
TEST(Emit, ThreadsGiveTheSameBits) {
  EmitOptions options;
  options.threads = 2;
  auto c = compile(R"(
    func.func @main(%x: tensor<300x1000xf32>, %i: tensor<3xi32>) -> tensor<300x1000xf32> {
      %0 = "hlo.exponential"(%x) : (tensor<300x1000xf32>) -> tensor<300x1000xf32>
      %1 = "hlo.divide"(%x, %0) : (tensor<300x1000xf32>, tensor<300x1000xf32>) -> tensor<300x1000xf32>
      return %1 : tensor<300x1000xf32>
    })", options);
  ASSERT_TRUE(c);
  Tensor x = Tensor::allocate(DType::Float32, {300, 1000}), i = Tensor::allocate(DType::Int32, {3});
  for (int k = 0; k < 300000; ++k)
    x.data<float>()[k] = static_cast<float>(k % 977) * 0.01f;
  std::vector<float> first;
  for (int threads : {0, 1, 2, 3}) {
    ThreadPool pool(threads);
    ModuleRunner runner(c->loaded);
    if (threads)
      runner.setParallelFor(&ThreadPool::parallelFor, &pool, threads);
    for (int turn = 0; turn < 20; ++turn) {
      auto r = runner.call({x, i});
      ASSERT_TRUE(bool(r)) << llvm::toString(r.takeError());
      if (first.empty())
        first = values((*r)[0]);
      EXPECT_EQ(values((*r)[0]), first) << threads;
    }
  }
  EXPECT_NEAR(first[100], std::exp(-1.0f), 1e-6);
}

TEST(Emit, FailedCheckNamesItsNode) {
  auto c = compile(R"(
    func.func @main(%p: tensor<3xi1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      "hlo.check"(%p) {message = "no luck", node = "a/Assert"} : (tensor<3xi1>) -> () loc("a/Assert"("Assert"))
      %0 = "hlo.add"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    })");
  ASSERT_TRUE(c);
  ModuleRunner runner(c->loaded);
  Tensor p = Tensor::allocate(DType::Bool, {3});
  p.data<bool>()[0] = p.data<bool>()[1] = true;
  auto bad = runner.call({p, floats({1, 2})});
  ASSERT_FALSE(bool(bad));
  EXPECT_EQ(llvm::toString(bad.takeError()), "node 'a/Assert' (Assert): no luck");
  p.data<bool>()[2] = true;
  EXPECT_EQ(values(call(*c, {p, floats({1, 2})})[0]), (std::vector<float>{2, 4}));
}

// where: a size that depends on data, up to its bound.
TEST(Emit, DataDependentSize) {
  auto c = compile(R"(
    module attributes {hlo.symbols = [{name = "count", bound = 4 : i64, kind = "data"}]} {
    func.func @main(%x: tensor<4xi1>) -> tensor<?x1xi64, affine_map<()[s0] -> (s0, 1)>> {
      %0 = "hlo.where"(%x) {symbol = 0 : i64} : (tensor<4xi1>) -> tensor<?x1xi64, affine_map<()[s0] -> (s0, 1)>>
      return %0 : tensor<?x1xi64, affine_map<()[s0] -> (s0, 1)>>
    }})");
  ASSERT_TRUE(c);
  Tensor x = Tensor::allocate(DType::Bool, {4});
  x.data<bool>()[1] = x.data<bool>()[3] = true;
  auto r = call(*c, {x});
  ASSERT_EQ(r.size(), 1u);
  ASSERT_EQ(r[0].dims(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(r[0].data<int64_t>()[0], 1);
  EXPECT_EQ(r[0].data<int64_t>()[1], 3);
}

} // namespace
