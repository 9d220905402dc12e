// Products and convolutions of bf16 operands against f64 sums of the rounded operands, for AVX512_BF16 and AMX.
#include "KernelRunner.h"

#include "base/Float.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Amx.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mlir;
using namespace lathe;
using namespace lathe::testing;

namespace {

using Ints = std::vector<int64_t>;

/// Whether this process may use AMX; Linux wants to be asked.
bool amxAllowed() {
  static bool allowed = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return allowed;
}

std::vector<Processor> processors() {
  std::vector<Processor> list;
  codegen::KernelTarget host = Processor::host().target();
  if (host.avx512bf16)
    list.push_back({"cooperlake", ""});
  if (host.amxBf16 && amxAllowed())
    list.push_back(Processor::host());
  return list;
}

float rounded(float v) { return bfloat16ToFloat(floatToBFloat16(v)); }

std::vector<float> randomValues(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> dist(-1, 1);
  std::vector<float> v(count);
  for (float &x : v)
    x = dist(random);
  return v;
}

/// -2 to 2 times `step`.
std::vector<float> randomIntegers(int64_t count, unsigned seed, float step) {
  std::vector<float> v = randomValues(count, seed);
  for (float &x : v)
    x = std::round(2 * x) * step;
  return v;
}

std::vector<uint16_t> toBits(const std::vector<float> &v) {
  std::vector<uint16_t> bits;
  for (float x : v)
    bits.push_back(floatToBFloat16(x));
  return bits;
}

int64_t product(const Ints &v) {
  int64_t p = 1;
  for (int64_t x : v)
    p *= x;
  return p;
}

/// Strides of an operand whose dims list is a permutation of the logical sizes; `stored` gets the stored sizes.
Ints stridesFor(const Ints &dims, const Ints &logical, Ints &stored) {
  stored.assign(dims.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i)
    stored[dims[i]] = logical[i];
  Ints strides(dims.size()), out(dims.size());
  int64_t s = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = s;
    s *= stored[i];
  }
  for (size_t i = 0; i < dims.size(); ++i)
    out[i] = strides[dims[i]];
  return out;
}

/// The one kernel op of a module after useBf16, compiled; its operands in order, constants taken from the module.
struct Prepared {
  Operation *op = nullptr;
  Processor processor;
  CompiledKernel *kernel = nullptr;
  std::vector<const void *> operands; ///< null: an argument of the function
  std::vector<Tensor> constants;
};

Prepared prepare(ModuleOp module, const Processor &processor, bool exact = true) {
  Prepared p;
  codegen::KernelTarget target = processor.target();
  FailureOr<unsigned> marked = cpu::useBf16(module, target, exact);
  EXPECT_TRUE(succeeded(marked) && *marked == 1);
  Operation *op = nullptr;
  module.walk([&](Operation *o) {
    if (kernel::isKernelOp(o))
      op = o;
  });
  for (Value v : op->getOperands()) {
    p.operands.push_back(nullptr);
    if (auto c = v.getDefiningOp<hlo::ConstantOp>()) {
      p.constants.push_back(*hlo::readConstant(c.getValue()));
      p.operands.back() = p.constants.back().data();
    }
  }
  p.op = op;
  p.processor = processor;
  p.kernel = CompiledKernel::compileOnce(op, processor);
  return p;
}

/// Whole and in chunks: equal bits, nothing beyond the result.
std::vector<float> run(const Prepared &p, int64_t size, const Ints &symbols) {
  std::vector<float> z(size + 64, -77.f), w = z;
  int64_t units = p.kernel->units(symbols);
  EXPECT_GT(units, 0);
  EXPECT_EQ(p.kernel->run(p.operands, {z.data()}, symbols), 0);
  for (int64_t from = 0, step = 1; from < units; from += step, step = step % 3 + 1)
    p.kernel->run(p.operands, {w.data()}, symbols, from, std::min(units, from + step));
  EXPECT_EQ(w, z);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(z[size + i], -77.f);
  EXPECT_EQ(compareRowsApart(p.op, p.processor, p.operands, z.data(), symbols), "");
  z.resize(size);
  return z;
}

struct DotCase {
  int64_t batch, m, k, n;
  bool constantRhs = true, narrowLhs = false, narrowRhs = false, dynamicM = false;
  Ints lhsDims = {0, 1, 2}, rhsDims = {0, 1, 2}, resultDims = {0, 1, 2};
};

void checkDot(const DotCase &c, const Processor &processor) {
  SCOPED_TRACE(processor.cpu + " " + std::to_string(c.batch) + "x" + std::to_string(c.m) + "x" + std::to_string(c.k) + "x" +
               std::to_string(c.n) + (c.narrowLhs ? " bf16" : "") + (c.constantRhs ? " constant" : ""));
  MLIRContext &context = testContext();
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  Ints xs, ys, zs;
  Ints xStrides = stridesFor(c.lhsDims, {c.batch, c.m, c.k}, xs), yStrides = stridesFor(c.rhsDims, {c.batch, c.k, c.n}, ys);
  Ints zStrides = stridesFor(c.resultDims, {c.batch, c.m, c.n}, zs);
  std::vector<float> x = randomValues(product(xs), 1), y = randomValues(product(ys), 2);
  std::vector<uint16_t> xBits = toBits(x), yBits = toBits(y);
  auto typeOf = [&](const Ints &sizes, int64_t mAt, bool narrow) {
    SmallVector<AffineExpr> dims;
    for (size_t i = 0; i < sizes.size(); ++i)
      dims.push_back(c.dynamicM && int64_t(i) == mAt ? getAffineSymbolExpr(0, &context) : getAffineConstantExpr(sizes[i], &context));
    return hlo::makeType(dims, narrow ? Type(b.getBF16Type()) : Type(b.getF32Type()));
  };
  RankedTensorType lhs = typeOf(xs, c.lhsDims[1], c.narrowLhs), rhs = typeOf(ys, -1, c.narrowRhs), out = typeOf(zs, c.resultDims[1], false);
  b.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(b, loc, "main", b.getFunctionType({lhs, rhs}, {out}));
  b.setInsertionPointToStart(func.addEntryBlock());
  Value right = func.getArgument(1);
  if (c.constantRhs) {
    Tensor t = Tensor::allocate(DType::Float32, ys);
    std::copy(y.begin(), y.end(), static_cast<float *>(t.data()));
    right = hlo::makeConstant(b, loc, t);
  }
  auto op = kernel::DotOp::create(b, loc, TypeRange{out}, func.getArgument(0), right, ValueRange{}, c.lhsDims, c.rhsDims,
                                  c.resultDims, b.getF32Type(),
                                  [](OpBuilder &, Location, ValueRange args) -> SmallVector<Value> { return {args[0]}; });
  func::ReturnOp::create(b, loc, op.getResults());
  Prepared p = prepare(*module, processor);
  ASSERT_TRUE(p.kernel);
  p.operands[0] = c.narrowLhs ? static_cast<const void *>(xBits.data()) : x.data();
  if (!c.constantRhs)
    p.operands[1] = c.narrowRhs ? static_cast<const void *>(yBits.data()) : y.data();
  std::vector<float> z = run(p, product(zs), {c.m});
  double worst = 0;
  for (int64_t i = 0; i < c.batch; ++i)
    for (int64_t r = 0; r < c.m; ++r)
      for (int64_t j = 0; j < c.n; ++j) {
        double want = 0, size = 1e-6;
        for (int64_t k = 0; k < c.k; ++k) {
          double t = double(rounded(x[i * xStrides[0] + r * xStrides[1] + k * xStrides[2]])) *
                     rounded(y[i * yStrides[0] + k * yStrides[1] + j * yStrides[2]]);
          want += t;
          size += std::abs(t);
        }
        worst = std::max(worst, std::abs(z[i * zStrides[0] + r * zStrides[1] + j * zStrides[2]] - want) / size);
      }
  EXPECT_LT(worst, 2e-6);
}

struct ConvCase {
  int64_t n;
  Ints size;
  int64_t ic, oc;
  Ints taps;
  Ints strides = {}, padding = {}, dilation = {};
  int64_t groups = 1;
  bool narrow = false, dynamicImages = false;
  /// By F(2,3) in both directions or one, on operands that are whole once they are transformed: nothing is
  /// rounded.
  bool winograd = false;
};

void checkConv(ConvCase c, const Processor &processor) {
  size_t rank = c.size.size();
  c.strides.resize(rank, 1);
  c.padding.resize(2 * rank, 0);
  c.dilation.resize(rank, 1);
  MLIRContext &context = testContext();
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  AffineExpr images = c.dynamicImages ? getAffineSymbolExpr(0, &context) : getAffineConstantExpr(c.n, &context);
  SmallVector<AffineExpr> inDims = {images}, outDims = {images};
  Ints out(rank), xSizes = {c.n}, zSizes = {c.n};
  auto constant = [&](int64_t v) { return getAffineConstantExpr(v, &context); };
  for (size_t d = 0; d < rank; ++d) {
    out[d] = (c.size[d] + c.padding[2 * d] + c.padding[2 * d + 1] - (c.taps[d] - 1) * c.dilation[d] - 1) / c.strides[d] + 1;
    inDims.push_back(constant(c.size[d]));
    outDims.push_back(constant(out[d]));
    xSizes.push_back(c.size[d]);
    zSizes.push_back(out[d]);
  }
  inDims.push_back(constant(c.ic));
  outDims.push_back(constant(c.oc));
  SCOPED_TRACE(processor.cpu + " " + std::to_string(c.size[0]) + "x" + std::to_string(c.size.back()) + " " + std::to_string(c.ic) +
               "->" + std::to_string(c.oc) + " taps " + std::to_string(c.taps[0]) + (c.narrow ? " bf16" : ""));
  int64_t icg = c.ic / c.groups, ocg = c.oc / c.groups;
  Ints filterSizes = c.taps;
  filterSizes.push_back(icg);
  filterSizes.push_back(c.oc);
  std::vector<float> x = randomValues(product(xSizes) * c.ic, 1), y = randomValues(product(filterSizes), 2);
  if (c.winograd) {
    x = randomIntegers(x.size(), 1, 1);
    y = randomIntegers(y.size(), 2, 4);
  }
  std::vector<uint16_t> xBits = toBits(x);
  RankedTensorType input = hlo::makeType(inDims, c.narrow ? Type(b.getBF16Type()) : Type(b.getF32Type()));
  RankedTensorType result = hlo::makeType(outDims, b.getF32Type());
  b.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(b, loc, "main", b.getFunctionType({input}, {result}));
  b.setInsertionPointToStart(func.addEntryBlock());
  Tensor t = Tensor::allocate(DType::Float32, filterSizes);
  std::copy(y.begin(), y.end(), static_cast<float *>(t.data()));
  auto op = kernel::ConvOp::create(b, loc, TypeRange{result}, func.getArgument(0), hlo::makeConstant(b, loc, t), ValueRange{},
                                   c.strides, c.padding, Ints(), c.dilation, c.groups, 1, b.getF32Type(),
                                   [](OpBuilder &, Location, ValueRange v) -> SmallVector<Value> { return {v[0]}; });
  func::ReturnOp::create(b, loc, op.getResults());
  Prepared p = prepare(*module, processor, !c.winograd);
  EXPECT_EQ(cpu::winogradTile(op).value_or(0), c.winograd && !processor.target().amxBf16 ? 2 : 0);
  ASSERT_TRUE(p.kernel);
  p.operands[0] = c.narrow ? static_cast<const void *>(xBits.data()) : x.data();
  int64_t positions = product(out), taps = product(c.taps);
  std::vector<float> z = run(p, c.n * positions * c.oc, {c.n});
  double worst = 0;
  std::vector<double> want(c.oc), size(c.oc);
  for (int64_t i = 0; i < c.n; ++i)
    for (int64_t q = 0; q < positions; ++q) {
      std::fill(want.begin(), want.end(), 0);
      std::fill(size.begin(), size.end(), 1e-6);
      for (int64_t tap = 0; tap < taps; ++tap) {
        int64_t qRest = q, tapRest = tap, from = 0, step = 1;
        bool inside = true;
        for (size_t d = rank; d-- > 0;) {
          int64_t at = qRest % out[d] * c.strides[d] + tapRest % c.taps[d] * c.dilation[d] - c.padding[2 * d];
          inside &= at >= 0 && at < c.size[d];
          from += at * step;
          step *= c.size[d];
          qRest /= out[d];
          tapRest /= c.taps[d];
        }
        for (int64_t g = 0; inside && g < c.groups; ++g)
          for (int64_t k = 0; k < icg; ++k) {
            double a = rounded(x[(i * step + from) * c.ic + g * icg + k]);
            for (int64_t o = g * ocg; o < (g + 1) * ocg; ++o) {
              double term = a * rounded(y[(tap * icg + k) * c.oc + o]);
              want[o] += term;
              size[o] += std::abs(term);
            }
          }
      }
      for (int64_t o = 0; o < c.oc; ++o)
        worst = std::max(worst, std::abs(z[(i * positions + q) * c.oc + o] - want[o]) / size[o]);
    }
  EXPECT_LT(worst, 2e-6);
}

} // namespace

TEST(Bf16Dot, Tails) {
  for (const Processor &p : processors())
    for (int64_t m : {1, 2, 13, 16, 17, 32, 33, 49, 100})
      for (int64_t k : {8, 9, 16, 31, 32, 40, 64, 97, 144})
        for (int64_t n : {8, 16, 17, 24, 32, 33, 48, 70})
          if ((m * 7 + k * 3 + n) % 11 == 0)
            checkDot({1, m, k, n, true, m % 2 == 0}, p);
}

TEST(Bf16Dot, LongRows) {
  for (const Processor &p : processors()) {
    checkDot({1, 20, 2048, 100, true, true}, p); // rows 4 KiB apart
    checkDot({1, 300, 1024, 40, true, true}, p);
    checkDot({1, 7, 3072, 64, true, false}, p);
  }
}

TEST(Bf16Dot, RowsKnownAtRunTime) {
  for (const Processor &p : processors())
    for (int64_t m : {1, 15, 16, 40, 77}) {
      DotCase c{1, m, 64, 40};
      c.dynamicM = true;
      checkDot(c, p);
      c.narrowLhs = true;
      c.k = 33;
      checkDot(c, p);
    }
}

TEST(Bf16Dot, RightOperandKnownAtRunTime) {
  for (const Processor &p : processors())
    for (bool narrow : {false, true})
      for (int64_t k : {8, 33, 80}) {
        DotCase c{3, 20, k, 37, false, narrow, narrow};
        checkDot(c, p);
        c.rhsDims = {0, 2, 1}; // k along memory
        checkDot(c, p);
        c.rhsDims = {2, 1, 0}; // neither
        checkDot(c, p);
      }
}

TEST(Bf16Dot, Attention) {
  // heads in place: [s, h, d] operands, scores [h, s, s], result [s, h, d]
  for (const Processor &p : processors())
    for (bool narrow : {false, true}) {
      DotCase scores{4, 24, 16, 24, false, narrow, narrow, false, {1, 0, 2}, {1, 2, 0}, {0, 1, 2}};
      checkDot(scores, p);
      DotCase context{4, 24, 24, 16, false, narrow, narrow, false, {0, 1, 2}, {1, 0, 2}, {1, 0, 2}};
      checkDot(context, p);
    }
}

TEST(Bf16Dot, TransposedOperands) {
  for (const Processor &p : processors()) {
    DotCase c{1, 20, 40, 24};
    c.lhsDims = {0, 2, 1};
    checkDot(c, p);
    c.resultDims = {0, 2, 1};
    checkDot(c, p);
    DotCase batched{3, 20, 40, 24};
    checkDot(batched, p);
  }
}

TEST(Bf16Conv, Pointwise) {
  for (const Processor &p : processors())
    for (bool narrow : {false, true}) {
      checkConv({1, {7, 7}, 32, 40, {1, 1}, {}, {}, {}, 1, narrow}, p);
      checkConv({2, {5, 9}, 24, 72, {1, 1}, {}, {}, {}, 1, narrow}, p);
      checkConv({2, {9, 9}, 32, 40, {1, 1}, {2, 2}, {}, {}, 1, narrow}, p);
      checkConv({3, {4, 4}, 17, 16, {1, 1}, {}, {}, {}, 1, narrow, true}, p);
    }
}

TEST(Bf16Conv, Windows) {
  for (const Processor &p : processors())
    for (bool narrow : {false, true}) {
      checkConv({1, {12, 12}, 32, 40, {3, 3}, {}, {1, 1, 1, 1}, {}, 1, narrow}, p);
      checkConv({2, {7, 7}, 64, 33, {3, 3}, {}, {1, 1, 1, 1}, {}, 1, narrow}, p);
      checkConv({1, {28, 28}, 32, 32, {3, 3}, {2, 2}, {0, 1, 0, 1}, {}, 1, narrow}, p);
      checkConv({1, {15, 21}, 16, 24, {3, 3}, {}, {}, {}, 1, narrow}, p);
      checkConv({1, {16, 16}, 24, 24, {5, 3}, {1, 2}, {2, 2, 1, 1}, {}, 1, narrow}, p);
      checkConv({1, {16, 16}, 32, 16, {3, 3}, {}, {2, 2, 2, 2}, {2, 2}, 1, narrow}, p);
      checkConv({1, {33, 40}, 3, 16, {7, 7}, {2, 2}, {3, 3, 3, 3}, {}, 1, narrow}, p);
      checkConv({2, {20, 20}, 3, 24, {3, 3}, {2, 2}, {0, 1, 0, 1}, {}, 1, narrow}, p);
      checkConv({1, {14, 14}, 8, 16, {3, 3}, {}, {1, 1, 1, 1}, {}, 1, narrow}, p);
      checkConv({1, {10, 10}, 13, 19, {3, 3}, {}, {1, 1, 1, 1}, {2, 1}, 1, narrow}, p);
      checkConv({2, {10, 10}, 32, 16, {3, 3}, {}, {1, 1, 1, 1}, {}, 1, narrow, true}, p);
      checkConv({1, {10, 10}, 32, 16, {3, 3}, {}, {-1, 1, 1, -2}, {}, 1, narrow}, p);
    }
}

TEST(Bf16Conv, GatheredWindows) {
  for (const Processor &p : processors())
    for (bool narrow : {false, true}) {
      checkConv({1, {17, 17}, 32, 144, {1, 7}, {}, {0, 0, 3, 3}, {}, 1, narrow}, p);
      checkConv({2, {8, 8}, 48, 72, {3, 3}, {}, {1, 1, 1, 1}, {}, 1, narrow}, p);
      checkConv({2, {9, 9}, 20, 64, {3, 3}, {2, 2}, {0, 1, 1, 0}, {}, 1, narrow, true}, p);
      checkConv({1, {7, 10}, 32, 80, {3, 3}, {}, {-1, 1, 1, -2}, {2, 1}, 1, narrow}, p);
      checkConv({1, {4, 5, 6}, 16, 64, {3, 1, 3}, {}, {1, 1, 0, 0, 1, 1}, {}, 1, narrow}, p);
      checkConv({1, {9}, 32, 64, {5}, {}, {}, {}, 1, narrow}, p);
    }
}

TEST(Bf16Conv, Winograd) {
  for (const Processor &p : processors())
    for (bool narrow : {false, true})
      for (ConvCase c :
           {ConvCase{1, {14, 14}, 64, 64, {3, 3}, {}, {1, 1, 1, 1}},
            ConvCase{1, {9, 13}, 96, 80, {3, 3}, {}, {1, 1, 1, 1}}, ConvCase{2, {9, 11}, 70, 40, {3, 3}},
            ConvCase{1, {16, 16}, 64, 72, {3, 3}, {}, {2, 2, 2, 2}, {2, 2}},
            ConvCase{1, {12, 12}, 1026, 64, {3, 3}, {}, {1, 1, 1, 1}},
            ConvCase{1, {14, 14}, 384, 384, {1, 3}, {}, {0, 0, 1, 1}},
            ConvCase{1, {14, 14}, 384, 384, {3, 1}, {}, {1, 1, 0, 0}}}) {
        c.narrow = narrow;
        c.winograd = true;
        checkConv(c, p);
      }
}

TEST(Bf16Conv, OtherRanks) {
  for (const Processor &p : processors()) {
    checkConv({2, {30}, 32, 24, {3}, {}, {1, 1}}, p);
    checkConv({1, {5, 6, 7}, 16, 24, {3, 3, 3}, {}, {1, 1, 1, 1, 1, 1}}, p);
    checkConv({1, {6, 6, 6}, 3, 16, {3, 3, 3}, {2, 2, 2}, {0, 1, 0, 1, 0, 1}}, p);
  }
}

TEST(Bf16Conv, Groups) {
  for (const Processor &p : processors())
    for (bool narrow : {false, true}) {
      checkConv({1, {9, 9}, 32, 64, {3, 3}, {}, {1, 1, 1, 1}, {}, 4, narrow}, p);
      checkConv({1, {9, 9}, 64, 80, {1, 1}, {}, {}, {}, 2, narrow}, p);
      checkConv({1, {8, 8}, 40, 40, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 2, narrow}, p);
    }
}
