// Products by Strassen's algorithm compiled and run for several processors, against a plain loop.
#include "KernelRunner.h"

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Strassen.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace lathe;
using namespace lathe::testing;

namespace {

struct Sizes {
  int64_t m, k, n, depth = 0, batch = 1;
};

/// A right operand in the order that Strassen.h describes.
std::vector<float> packed(const std::vector<float> &y, const Sizes &s, int64_t width, int64_t depth,
                          int64_t group) {
  const int64_t panels = (s.n + width - 1) / width, half = depth / 2;
  std::vector<float> out;
  auto add = [&](int64_t panel, int64_t from) {
    for (int64_t i = from; i < from + half; ++i)
      for (int64_t c = panel * width; c < (panel + 1) * width; ++c)
        out.push_back(c < s.n && i < s.k ? y[i * s.n + c] : 0.f);
  };
  for (int64_t g = 0; 2 * g * group < panels; ++g)
    for (int64_t k0 = 0; k0 < s.k; k0 += depth)
      for (int64_t p = 2 * g * group; p < std::min(panels, 2 * (g + 1) * group); p += 2) {
        add(p, k0);
        add(p, k0 + half);
        if (p + 1 == panels)
          continue;
        add(p + 1, k0 + half);
        add(p + 1, k0);
      }
  return out;
}

void check(const Sizes &s, const Processor &processor) {
  SCOPED_TRACE(processor.cpu + " " + std::to_string(s.batch) + "x" + std::to_string(s.m) + "x" +
               std::to_string(s.k) + "x" + std::to_string(s.n));
  if (!processor.isRunnable())
    return;
  OpBuilder b(&testContext());
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  Type f32 = b.getF32Type();
  const codegen::KernelTarget target = processor.target();
  cpu::KernelPlan plan;
  if (s.depth)
    plan.depth = s.depth;
  const int64_t width = cpu::chooseTile(target, f32, (s.m + 1) / 2, s.n).columns();
  const int64_t sum = cpu::strassenSum(s.k), depth = cpu::strassenDepth(target, plan, s.m, s.n, sum, width);
  const int64_t group = cpu::strassenGroup(target, s.m, s.n, sum, width, depth);
  ASSERT_EQ(sum % depth, 0);
  ASSERT_EQ(depth % 2, 0);
  SmallVector<int64_t> left = {s.m, s.k}, right = {(s.n + width - 1) / width, sum, width}, out = {s.m, s.n},
                       dims = {0, 1};
  if (s.batch > 1) {
    left.insert(left.begin(), s.batch);
    out.insert(out.begin(), s.batch);
    dims = {0, 1, 2};
  }
  auto lhs = RankedTensorType::get(left, f32), rhs = RankedTensorType::get(right, f32),
       result = RankedTensorType::get(out, f32);
  b.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(b, loc, "main", b.getFunctionType({lhs, rhs}, {result}));
  b.setInsertionPointToStart(func.addEntryBlock());
  auto op = kernel::DotOp::create(
      b, loc, TypeRange{result}, func.getArgument(0), func.getArgument(1), ValueRange{}, dims,
      ArrayRef<int64_t>{0, 1, 2}, dims, f32,
      [](OpBuilder &, Location, ValueRange args) -> SmallVector<Value> { return {args[0]}; });
  op.setLayoutAttr(cpu::StrassenAttr::get(op.getContext(), width));
  plan.attach(op);
  func::ReturnOp::create(b, loc, op.getResults());
  ASSERT_TRUE(succeeded(op.verify()));
  CompiledKernel *kernel = CompiledKernel::compileOnce(op, processor);
  ASSERT_TRUE(kernel);

  std::mt19937 random(1);
  std::uniform_real_distribution<float> dist(-1, 1);
  std::vector<float> x(s.batch * s.m * s.k), y(s.k * s.n), z(s.batch * s.m * s.n + 64, -77.f);
  for (float &v : x)
    v = dist(random);
  for (float &v : y)
    v = dist(random);
  const std::vector<float> panels = packed(y, s, width, depth, group);
  EXPECT_EQ(kernel->run({x.data(), panels.data()}, {z.data()}), 0);
  double worst = 0;
  for (int64_t r = 0; r < s.batch * s.m; ++r)
    for (int64_t c = 0; c < s.n; ++c) {
      double want = 0;
      for (int64_t i = 0; i < s.k; ++i)
        want += double(x[r * s.k + i]) * y[i * s.n + c];
      worst = std::max(worst, std::abs(want - z[r * s.n + c]));
    }
  EXPECT_LT(worst, 3e-6 * std::sqrt(double(s.k)) + 1e-6);
  for (size_t i = z.size() - 64; i < z.size(); ++i)
    EXPECT_EQ(z[i], -77.f) << "written beyond the result";
  // units in any portions give the same bits
  const int64_t units = kernel->units();
  std::vector<float> w(z.size(), -77.f);
  for (int64_t from = 0, step = 1; from < units; from += step, step = step % 3 + 1)
    kernel->run({x.data(), panels.data()}, {w.data()}, {}, from, std::min(units, from + step));
  EXPECT_EQ(w, z);
  EXPECT_EQ(compareRowsApart(op, processor, {x.data(), panels.data()}, z.data()), "");
}

void checkAll(const Sizes &s) {
  for (const Processor &p : {Processor::host(), Processor::avx2(), Processor::baseline()})
    check(s, p);
}

TEST(KernelStrassen, Rows) {
  for (int64_t m : {1, 2, 27, 79})
    checkAll({m, 64, 128});
}

TEST(KernelStrassen, Columns) {
  for (int64_t n : {1, 33, 64, 70, 96, 128, 161})
    checkAll({30, 32, n});
}

TEST(KernelStrassen, Depths) {
  for (int64_t k : {1, 2, 33, 34, 50})
    checkAll({31, k, 100});
}

TEST(KernelStrassen, BlocksOfTheDepth) {
  checkAll({31, 96, 128, 32});
  checkAll({31, 96, 90, 16});
  checkAll({30, 60, 170, 20});
  checkAll({30, 59, 170, 20}); // the last block is a step shorter
  checkAll({30, 95, 100, 32});
}

// More sums than stay near: groups of panels.
TEST(KernelStrassen, Groups) {
  const Sizes s{664, 128, 300, 64};
  const codegen::KernelTarget target = Processor::host().target();
  if (target.avx512 && target.l2 == 1 << 20)
    EXPECT_LT(cpu::strassenGroup(target, s.m, s.n, s.k, 32, s.depth), 5);
  checkAll(s);
}

TEST(KernelStrassen, Batches) { checkAll({21, 40, 100, 0, 3}); }

float smooth(int64_t k, int64_t n) { return std::sin(0.37f * k + 0.11f * n); }

TEST(KernelStrassen, SampledErrors) {
  const double error = cpu::sampleStrassenError(768, 768, 384, 32, smooth);
  EXPECT_GT(error, 1e-8);
  EXPECT_LT(error, 5e-6);
  // what is not finite would reach other columns
  auto hole = [](int64_t k, int64_t n) { return k == 5 ? INFINITY : smooth(k, n); };
  EXPECT_TRUE(std::isinf(cpu::sampleStrassenError(64, 64, 64, 32, hole)));
}

} // namespace
