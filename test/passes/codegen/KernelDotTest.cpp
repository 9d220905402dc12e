// kernel.dot compiled and run for several processors, against a plain loop.
#include "KernelRunner.h"

#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Tile.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace lathe;
using namespace lathe::testing;

namespace {

struct DotCase {
  int64_t batch, m, k, n;
  std::vector<int64_t> lhsDims = {0, 1, 2}, rhsDims = {0, 1, 2}, resultDims = {0, 1, 2};
  bool packed = false;
  int64_t interleaved = 1; ///< steps side by side in the panels, all columns in one
  bool dynamicM = false, dynamicN = false, dynamicK = false;
};

int64_t panelOf(const DotCase &c, const Processor &p, MLIRContext *context) {
  return cpu::chooseTile(p.target(), Float32Type::get(context), c.m, c.n).columns();
}

/// Stored strides of an operand whose dims list is a permutation of the logical sizes.
std::vector<int64_t> stridesFor(const std::vector<int64_t> &dims, const std::vector<int64_t> &logical) {
  std::vector<int64_t> stored(dims.size()), strides(dims.size()), out(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    stored[dims[i]] = logical[i];
  int64_t s = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = s;
    s *= stored[i];
  }
  for (size_t i = 0; i < dims.size(); ++i)
    out[i] = strides[dims[i]];
  return out;
}

RankedTensorType storedType(MLIRContext *context, const std::vector<int64_t> &dims, std::vector<AffineExpr> logical) {
  SmallVector<AffineExpr> stored(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    stored[dims[i]] = logical[i];
  return hlo::makeType(stored, Float32Type::get(context));
}

void check(const DotCase &c, const Processor &processor) {
  SCOPED_TRACE(processor.cpu + " " + std::to_string(c.batch) + "x" + std::to_string(c.m) + "x" + std::to_string(c.k) + "x" +
               std::to_string(c.n));
  if (!processor.isRunnable())
    return;
  MLIRContext &context = testContext();
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  auto constant = [&](int64_t v) { return getAffineConstantExpr(v, &context); };
  AffineExpr batch = constant(c.batch), m = constant(c.m), k = constant(c.k), n = constant(c.n);
  std::vector<int64_t> symbols = {c.m, c.n, c.k};
  if (c.dynamicM)
    m = getAffineSymbolExpr(0, &context);
  if (c.dynamicN)
    n = getAffineSymbolExpr(1, &context);
  if (c.dynamicK)
    k = getAffineSymbolExpr(2, &context);
  RankedTensorType lhs = storedType(&context, c.lhsDims, {batch, m, k});
  RankedTensorType rhs = storedType(&context, c.rhsDims, {batch, k, n});
  RankedTensorType result = storedType(&context, c.resultDims, {batch, m, n});
  int64_t panel = 0;
  const int64_t depth = (c.k + c.interleaved - 1) / c.interleaved * c.interleaved; // of the panels
  if (c.packed) {
    const int64_t each = processor.target().lanes(b.getF32Type()) / c.interleaved;
    panel = c.interleaved > 1 ? (c.n + each - 1) / each * each : panelOf(c, processor, &context);
    int64_t panels = (c.n + panel - 1) / panel;
    rhs = RankedTensorType::get({c.batch, panels, depth, panel}, Float32Type::get(&context));
  }
  b.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(b, loc, "main", b.getFunctionType({lhs, rhs}, {result}));
  b.setInsertionPointToStart(func.addEntryBlock());
  auto op = kernel::DotOp::create(b, loc, TypeRange{result}, func.getArgument(0), func.getArgument(1), ValueRange{},
                                  c.lhsDims, c.packed ? std::vector<int64_t>{0, 1, 2, 3} : c.rhsDims, c.resultDims,
                                  b.getF32Type(), [](OpBuilder &, Location, ValueRange args) -> SmallVector<Value> { return {args[0]}; });
  if (c.packed)
    op.setLayoutAttr(cpu::PanelsAttr::get(op.getContext(), panel, std::max<int64_t>(1, c.interleaved)));
  func::ReturnOp::create(b, loc, op.getResults());
  ASSERT_TRUE(succeeded(op.verify()));
  CompiledKernel *kernel = CompiledKernel::compileOnce(op, processor);
  ASSERT_TRUE(kernel);

  std::mt19937 random(1);
  std::uniform_real_distribution<float> dist(-1, 1);
  std::vector<float> x(c.batch * c.m * c.k), y(c.batch * c.k * c.n), z(c.batch * c.m * c.n + 64, -77.f);
  for (float &v : x)
    v = dist(random);
  for (float &v : y)
    v = dist(random);
  auto xs = stridesFor(c.lhsDims, {c.batch, c.m, c.k}), ys = stridesFor(c.rhsDims, {c.batch, c.k, c.n});
  auto zs = stridesFor(c.resultDims, {c.batch, c.m, c.n});
  std::vector<float> packed;
  const float *yData = y.data();
  if (c.packed) {
    int64_t panels = (c.n + panel - 1) / panel;
    packed.assign(c.batch * panels * depth * panel, 0.f);
    for (int64_t i = 0; i < c.batch; ++i)
      for (int64_t kk = 0; kk < c.k; ++kk)
        for (int64_t j = 0; j < c.n; ++j)
          packed[((i * panels + j / panel) * depth + kk / c.interleaved * c.interleaved) * panel +
                 j % panel * c.interleaved + kk % c.interleaved] = y[i * ys[0] + kk * ys[1] + j * ys[2]];
    yData = packed.data();
  }
  int64_t units = kernel->units(symbols);
  ASSERT_GT(units, 0);
  EXPECT_EQ(kernel->run({x.data(), yData}, {z.data()}, symbols), 0);
  double worst = 0;
  for (int64_t i = 0; i < c.batch; ++i)
    for (int64_t r = 0; r < c.m; ++r)
      for (int64_t j = 0; j < c.n; ++j) {
        double want = 0;
        for (int64_t kk = 0; kk < c.k; ++kk)
          want += double(x[i * xs[0] + r * xs[1] + kk * xs[2]]) * y[i * ys[0] + kk * ys[1] + j * ys[2]];
        worst = std::max(worst, std::abs(want - z[i * zs[0] + r * zs[1] + j * zs[2]]));
      }
  EXPECT_LT(worst, 1e-5 * std::sqrt(double(c.k)) + 1e-6);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(z[c.batch * c.m * c.n + i], -77.f) << "written beyond the result";
  // chunks give the same bits
  std::vector<float> w(z.size(), -77.f);
  for (int64_t from = 0, step = 1; from < units; from += step, step = step % 3 + 1)
    kernel->run({x.data(), yData}, {w.data()}, symbols, from, std::min(units, from + step));
  EXPECT_EQ(w, z);
  EXPECT_EQ(compareRowsApart(op, processor, {x.data(), yData}, z.data(), symbols), "");
}

void checkAll(const DotCase &c) {
  for (const Processor &p : {Processor::host(), Processor::baseline()})
    check(c, p);
}

TEST(KernelDot, Plain) {
  for (auto [m, n] : {std::pair(1, 1), {1, 100}, {2, 3}, {7, 33}, {13, 16}, {13, 48}, {40, 100}, {40, 3}})
    checkAll({1, m, 37, n});
}

TEST(KernelDot, Packed) {
  for (auto [m, n] : {std::pair(1, 64), {1, 129}, {5, 10}, {29, 1}, {29, 24}, {29, 129}}) {
    DotCase c{1, m, 64, n};
    c.packed = true;
    checkAll(c);
  }
}

TEST(KernelDot, Interleaved) {
  const auto lanes = Processor::host().target().lanes(Float32Type::get(&testContext()));
  struct Few {
    int64_t k, n, steps;
  };
  // a depth that is no multiple ends in zeros, which meet no element of the left operand
  for (auto [k, n, steps] : {Few{36, 24, 2},
                             {36, 16, 2},
                             {36, 40, 2},
                             {36, 19, 2},
                             {36, 8, 2},
                             {36, 4, 4},
                             {36, 3, 4},
                             {36, 12, 4},
                             {36, 1, 4},
                             {64, 8, 8},
                             {64, 1, 8},
                             {64, 6, 16},
                             {64, 1, 16},
                             {61, 24, 2},
                             {61, 3, 4},
                             {61, 5, 8},
                             {61, 3, 16},
                             {61, 1, 16}})
    for (int64_t m : {1, 9, 30}) {
      if (steps > lanes)
        continue;
      DotCase c{1, m, k, n};
      c.packed = true;
      c.interleaved = steps;
      check(c, Processor::host());
      c.dynamicM = true;
      check(c, Processor::host());
    }
}

// Few columns and a right operand that is only known at run time: interleaved as it is copied.
TEST(KernelDot, InterleavedCopies) {
  for (int64_t n : {1, 2, 3, 8, 16, 20, 24, 40})
    for (int64_t k : {36, 64})
      checkAll({2, 40, k, n});
  checkAll({2, 40, 64, 1, {0, 1, 2}, {0, 2, 1}, {0, 1, 2}});
  checkAll({2, 40, 36, 24, {0, 1, 2}, {0, 2, 1}, {0, 1, 2}}); // columns not side by side
  checkAll({2, 40, 36, 24, {0, 1, 2}, {1, 0, 2}, {0, 2, 1}});
  cpu::TileShape tile;
  const Type f32 = Float32Type::get(&testContext());
  const auto why = cpu::whyNotFewColumns(
      codegen::KernelTarget::get("x86_64-linux-gnu", "+avx,+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl"),
      {f32, f32, f32}, 784, 24, 144, /*padded=*/false, tile);
  ASSERT_TRUE(why.takes());
  EXPECT_EQ(tile.steps, 2u);
  EXPECT_EQ(tile.columns(), 24u);
}

// Zen 4 takes two cycles for what Zen 5 and Intel's processors do in one.
TEST(KernelDot, EstimatesKnowTheMultiplyAddsOfACycle) {
  const std::string avx512 = "+avx,+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl";
  auto target = [&](StringRef more) { return codegen::KernelTarget::get("x86_64-linux-gnu", avx512 + more.str()); };
  const codegen::KernelTarget intel = target(""), zen4 = target(",+sse4a"),
                       zen5 = target(",+sse4a,+avxvnni,+avx512vp2intersect");
  EXPECT_EQ(intel.fmas, 2);
  EXPECT_EQ(zen4.fmas, 1);
  EXPECT_EQ(zen5.fmas, 2);
  const cpu::TileShape tile{13, 2, 16};
  EXPECT_EQ(cpu::rowsAhead(zen5, tile, 16), 26); // two tiles of 208 cycles
  EXPECT_EQ(cpu::rowsAhead(zen4, tile, 16), 13);
}

TEST(KernelDot, SmallDepths) {
  for (int64_t k : {1, 3, 5})
    checkAll({1, 9, k, 20});
}

TEST(KernelDot, BatchedAndTransposed) {
  checkAll({3, 20, 19, 35});
  checkAll({2, 30, 40, 70, {0, 2, 1}, {0, 1, 2}, {0, 1, 2}});
  checkAll({2, 30, 40, 70, {0, 1, 2}, {0, 2, 1}, {0, 1, 2}});
  checkAll({4, 33, 64, 33, {1, 0, 2}, {1, 2, 0}, {0, 1, 2}}); // heads read in place
  checkAll({4, 33, 33, 64, {0, 1, 2}, {1, 0, 2}, {1, 0, 2}}); // heads written in place
  checkAll({2, 9, 10, 11, {0, 1, 2}, {0, 1, 2}, {0, 2, 1}});  // columns not last
}

TEST(KernelDot, RunTimeSizes) {
  for (int64_t m : {1, 3, 11, 64, 301}) {
    DotCase c{2, m, 31, 50};
    c.dynamicM = true;
    checkAll(c);
    c.packed = true;
    checkAll(c);
  }
  for (int64_t s : {1, 17, 70}) {
    DotCase c{2, s, 16, s, {1, 0, 2}, {1, 2, 0}, {0, 1, 2}}; // attention over a run-time length
    c.dynamicM = c.dynamicN = true;
    checkAll(c);
    DotCase d{2, s, s, 16};
    d.dynamicM = d.dynamicK = true;
    checkAll(d);
  }
}

TEST(KernelDot, AliasingRowsAndLongSums) { checkAll({1, 40, 1024, 130}); }

} // namespace
