// Convolutions and pooling compiled and run for several processors, against plain loops.
#include "KernelRunner.h"
#include "base/Float.h"

#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Winograd.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Tile.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace lathe;
using namespace lathe::testing;

namespace {

using Ints = std::vector<int64_t>;

struct ConvCase {
  int64_t n;
  Ints size;
  int64_t ic, oc;
  Ints taps;
  Ints strides = {}, padding = {}, inDilation = {}, tapDilation = {};
  int64_t groups = 1, batchGroups = 1;
  bool packed = false, depthwise = false;
  std::vector<bool> dynamic = {}; // by input dimension, the last is the image count
  int64_t winograd = 0;
  bool spread = false;
  bool half = false; ///< operands of f16, with Winograd's algorithm
};

/// Calls f for every index below the sizes.
template <typename F>
void forEach(const Ints &sizes, F f) {
  int64_t count = 1;
  for (int64_t s : sizes)
    count *= s;
  Ints index(sizes.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t d = sizes.size(); d-- > 0;) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    f(index);
  }
}

int64_t product(const Ints &v) {
  int64_t p = 1;
  for (int64_t x : v)
    p *= x;
  return p;
}

void fill(std::vector<float> &v, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> dist(-1, 1);
  for (float &x : v)
    x = dist(random);
}

/// Runs whole and in chunks; both must agree, and nothing may be written beyond the result.
std::vector<float> runBothWays(CompiledKernel &kernel, const std::vector<const void *> &operands, int64_t size,
                               const Ints &symbols) {
  std::vector<float> z(size + 64, -77.f), w = z;
  int64_t units = kernel.units(symbols);
  EXPECT_GT(units, 0);
  EXPECT_EQ(kernel.run(operands, {z.data()}, symbols), 0);
  for (int64_t from = 0, step = 1; from < units; from += step, step = step % 3 + 1)
    kernel.run(operands, {w.data()}, symbols, from, std::min(units, from + step));
  EXPECT_EQ(w, z);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(z[size + i], -77.f);
  z.resize(size);
  return z;
}

void check(ConvCase c, const Processor &processor) {
  size_t rank = c.size.size();
  c.strides.resize(rank, 1);
  c.padding.resize(2 * rank, 0);
  c.inDilation.resize(rank, 1);
  c.tapDilation.resize(rank, 1);
  c.dynamic.resize(rank + 1, false);
  if (!processor.isRunnable())
    return;
  MLIRContext &context = testContext();
  OpBuilder b(&context);
  Type f32 = b.getF32Type();
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  auto constant = [&](int64_t v) { return getAffineConstantExpr(v, &context); };

  Ints out(rank), symbols;
  SmallVector<AffineExpr> inDims, outDims;
  auto symbol = [&](int64_t v) {
    symbols.push_back(v);
    return getAffineSymbolExpr(symbols.size() - 1, &context);
  };
  AffineExpr images = c.dynamic[rank] ? symbol(c.n) : constant(c.n);
  inDims.push_back(images);
  outDims.push_back(hlo::simplify(images.floorDiv(c.batchGroups)));
  for (size_t d = 0; d < rank; ++d) {
    AffineExpr in = c.dynamic[d] ? symbol(c.size[d]) : constant(c.size[d]);
    AffineExpr dilated = (in - 1) * c.inDilation[d] + 1;
    AffineExpr e = (dilated + (c.padding[2 * d] + c.padding[2 * d + 1] - (c.taps[d] - 1) * c.tapDilation[d] - 1)).floorDiv(c.strides[d]) + 1;
    inDims.push_back(in);
    outDims.push_back(hlo::simplify(e));
    out[d] = *hlo::evaluate(e, symbols);
  }
  inDims.push_back(constant(c.ic));
  outDims.push_back(constant(c.oc));
  SCOPED_TRACE(processor.cpu + " " + std::to_string(c.size[0]) + " " + std::to_string(c.ic) + "->" + std::to_string(c.oc));

  int64_t icg = c.ic / c.groups, taps = product(c.taps), fgroups = c.groups * c.batchGroups, ocg = c.oc / fgroups;
  RankedTensorType input = hlo::makeType(inDims, c.half ? Type(b.getF16Type()) : f32),
                   result = hlo::makeType(outDims, f32);
  Ints filterShape = c.taps;
  filterShape.push_back(icg);
  filterShape.push_back(c.oc);
  int64_t panel = c.packed ? cpu::chooseTile(processor.target(), f32, out[rank - 1], ocg).columns() : 0;
  int64_t panels = c.packed ? (ocg + panel - 1) / panel : 0;
  if (c.spread)
    panel = llvm::alignTo(c.taps.back() * c.oc, processor.target().lanes(f32));
  cpu::WinogradPlan plan;
  if (c.winograd) {
    cpu::WinogradSizes sizes = {c.ic,
                                c.oc,
                                out[0],
                                out[1],
                                c.n,
                                c.taps[0] == 1 ? 1 : c.tapDilation[0],
                                c.taps[1] == 1 ? 1 : c.tapDilation[1],
                                false,
                                c.taps[0],
                                c.taps[1]};
    plan = cpu::planWinograd(processor.target(), sizes, c.winograd);
    panel = plan.panel;
    panels = (c.oc + panel - 1) / panel;
  }
  RankedTensorType filter =
      c.winograd ? RankedTensorType::get({panels / plan.panelsPerUnit,
                                          cpu::WinogradTile(c.winograd, c.taps[0], c.taps[1]).points(),
                                          plan.panelsPerUnit, c.ic, panel},
                                         f32)
      : c.spread ? RankedTensorType::get({1, 1, taps / c.taps.back() * c.ic, panel}, f32)
      : c.packed ? RankedTensorType::get({fgroups, panels, taps * icg, panel}, f32)
                 : RankedTensorType::get(filterShape, f32);
  b.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(b, loc, "main", b.getFunctionType({input, filter}, {result}));
  b.setInsertionPointToStart(func.addEntryBlock());
  auto yieldAcc = [](OpBuilder &, Location, ValueRange v) -> SmallVector<Value> { return {v[0]}; };
  Operation *op;
  if (c.depthwise) {
    op = kernel::DepthwiseConvOp::create(b, loc, TypeRange{result}, func.getArgument(0), func.getArgument(1), ValueRange{},
                                         c.strides, c.padding, c.inDilation, c.tapDilation, c.groups, c.batchGroups, f32, yieldAcc);
  } else {
    auto conv = kernel::ConvOp::create(b, loc, TypeRange{result}, func.getArgument(0), func.getArgument(1), ValueRange{},
                                       c.strides, c.padding, c.inDilation, c.tapDilation, c.groups, c.batchGroups, f32, yieldAcc);
    if (c.packed || c.winograd || c.spread) {
      MLIRContext *context = conv.getContext();
      conv.setLayoutAttr(c.winograd ? kernel::LayoutAttr(cpu::WinogradAttr::get(context, c.winograd, panel))
                         : c.spread ? kernel::LayoutAttr(cpu::SpreadAttr::get(context, panel))
                                    : kernel::LayoutAttr(cpu::PanelsAttr::get(context, panel, 1)));
      conv.setKernelShape(c.taps);
    }
    op = conv;
  }
  CompiledKernel *kernel = CompiledKernel::compileOnce(op, processor);
  ASSERT_TRUE(kernel);

  std::vector<float> x(c.n * product(c.size) * c.ic), f(taps * icg * c.oc);
  fill(x, 1);
  fill(f, 2);
  std::vector<uint16_t> halves(c.half ? x.size() : 0);
  for (size_t i = 0; i < halves.size(); ++i)
    x[i] = halfToFloat(halves[i] = floatToHalf(x[i]));
  std::vector<float> packed(fgroups * panels * taps * icg * panel, 0.f);
  for (int64_t k = 0; c.packed && k < taps * icg; ++k)
    for (int64_t o = 0; o < c.oc; ++o) {
      int64_t g = o / ocg, p = o % ocg / panel;
      packed[((g * panels + p) * taps * icg + k) * panel + o % ocg % panel] = f[k * c.oc + o];
    }
  if (c.winograd) {
    Tensor plain = Tensor::allocate(c.half ? DType::Float16 : DType::Float32, filterShape);
    if (c.half)
      for (size_t i = 0; i < f.size(); ++i)
        f[i] = halfToFloat(static_cast<uint16_t *>(plain.data())[i] = floatToHalf(f[i]));
    else
      std::copy(f.begin(), f.end(), plain.data<float>());
    Tensor transformed = cpu::transformFilter(plain, plan);
    packed.assign(transformed.data<float>(), transformed.data<float>() + transformed.numElements());
  }
  if (c.spread) {
    packed.assign(taps / c.taps.back() * c.ic * panel, 0.f);
    for (int64_t k = 0; k < taps * c.ic; ++k)
      for (int64_t o = 0; o < c.oc; ++o) {
        int64_t tap = k / c.ic, x = tap % c.taps.back(), row = tap / c.taps.back() * c.ic + k % c.ic;
        packed[row * panel + x * c.oc + o] = f[k * c.oc + o];
      }
  }
  int64_t outImages = c.n / c.batchGroups;
  const std::vector<const void *> operands = {c.half ? static_cast<const void *>(halves.data()) : x.data(),
                                              c.packed || c.winograd || c.spread ? packed.data() : f.data()};
  std::vector<float> z = runBothWays(*kernel, operands, outImages * product(out) * c.oc, symbols);
  EXPECT_EQ(compareRowsApart(op, processor, operands, z.data(), symbols), "");

  double worst = 0;
  for (int64_t n = 0; n < outImages; ++n) {
    int64_t pixel = n * product(out);
    forEach(out, [&](const Ints &at) {
      for (int64_t o = 0; o < c.oc; ++o) {
        double want = 0;
        int64_t image = n + o / (c.oc / c.batchGroups) * outImages;
        int64_t tap = 0;
        forEach(c.taps, [&](const Ints &t) {
          int64_t source = image;
          bool inside = true;
          for (size_t d = 0; d < rank; ++d) {
            int64_t p = at[d] * c.strides[d] + t[d] * c.tapDilation[d] - c.padding[2 * d];
            inside &= p >= 0 && p % c.inDilation[d] == 0 && p / c.inDilation[d] < c.size[d];
            source = source * c.size[d] + p / c.inDilation[d];
          }
          int64_t g = c.groups > 1 ? o / (c.oc / c.groups) : 0;
          for (int64_t i = 0; inside && i < icg; ++i)
            want += double(x[source * c.ic + g * icg + i]) * f[(tap * icg + i) * c.oc + o];
          ++tap;
        });
        worst = std::max(worst, std::abs(want - z[pixel * c.oc + o]));
      }
      ++pixel;
    });
  }
  EXPECT_LT(worst, (c.winograd ? 4e-5 : 1e-5) * std::sqrt(double(taps * icg)) + 1e-6);
}

void checkPool(const char *kind, int64_t n, const Ints &size, int64_t channels, const Ints &window, const Ints &strides,
               const Ints &padding) {
  MLIRContext &context = testContext();
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  size_t rank = size.size();
  Ints in = size, out(rank), inShape = {n}, outShape = {n};
  for (size_t d = 0; d < rank; ++d) {
    out[d] = (size[d] + padding[2 * d] + padding[2 * d + 1] - window[d]) / strides[d] + 1;
    inShape.push_back(size[d]);
    outShape.push_back(out[d]);
  }
  inShape.push_back(channels);
  outShape.push_back(channels);
  auto input = RankedTensorType::get(inShape, b.getF32Type()), result = RankedTensorType::get(outShape, b.getF32Type());
  b.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(b, loc, "main", b.getFunctionType({input}, {result}));
  b.setInsertionPointToStart(func.addEntryBlock());
  auto op = kernel::PoolOp::create(b, loc, TypeRange{result}, func.getArgument(0), ValueRange{}, kind, window, strides, padding,
                                   ArrayRef<int64_t>{}, b.getF32Type(),
                                   [](OpBuilder &, Location, ValueRange v) -> SmallVector<Value> { return {v[0]}; });
  for (const Processor &processor : {Processor::host(), Processor::avx2(), Processor::baseline()}) {
    CompiledKernel *kernel = CompiledKernel::compileOnce(op, processor);
    ASSERT_TRUE(kernel);
    std::vector<float> x(product(inShape));
    fill(x, 3);
    std::vector<float> z = runBothWays(*kernel, {x.data()}, product(outShape), {});
    EXPECT_EQ(compareRowsApart(op, processor, {x.data()}, z.data()), "");
    int64_t pixel = 0;
    for (int64_t i = 0; i < n; ++i)
      forEach(out, [&](const Ints &at) {
        for (int64_t c = 0; c < channels; ++c) {
          double sum = 0, high = -INFINITY, low = INFINITY;
          int64_t count = 0;
          forEach(window, [&](const Ints &t) {
            int64_t source = i;
            for (size_t d = 0; d < rank; ++d) {
              int64_t p = at[d] * strides[d] + t[d] - padding[2 * d];
              if (p < 0 || p >= size[d])
                return;
              source = source * size[d] + p;
            }
            float v = x[source * channels + c];
            sum += v;
            high = std::max<double>(high, v);
            low = std::min<double>(low, v);
            ++count;
          });
          std::string k = kind;
          double want = k == "max" || k == "max_number" ? high : k == "min" ? low : k == "sum" ? sum : sum / std::max<int64_t>(count, 1);
          EXPECT_NEAR(z[pixel * channels + c], want, 1e-5);
        }
        ++pixel;
      });
  }
}

void checkAll(const ConvCase &c) {
  for (const Processor &p : {Processor::host(), Processor::avx2()})
    check(c, p);
}

ConvCase packed(ConvCase c) {
  c.packed = true;
  return c;
}

TEST(KernelConv, Pointwise) {
  checkAll({2, {5, 7}, 24, 40, {1, 1}});
  checkAll(packed({1, {9, 9}, 16, 65, {1, 1}}));
  checkAll(packed({2, {8, 8}, 16, 32, {1, 1}, {2, 2}}));
  checkAll(packed({2, {9, 13}, 20, 40, {1, 1}, {2, 3}, {0, 0, -1, -2}})); // rows gathered to scratch
  checkAll({3, {7, 8}, 8, 12, {1, 1}, {2, 2}, {}, {}, {}, 1, 1, false, false, {true, true, true}});
  checkAll(packed({1, {14, 14}, 64, 256, {1, 1}, {2, 2}}));
}

TEST(KernelConv, Padded) {
  checkAll(packed({1, {14, 14}, 16, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}}));
  checkAll(packed({2, {15, 13}, 3, 20, {7, 7}, {2, 2}, {3, 3, 2, 3}}));
  checkAll({1, {9, 8}, 5, 7, {3, 2}, {1, 2}, {0, 1, 1, 0}});
  checkAll({1, {9, 8}, 5, 7, {3, 3}, {1, 1}, {-1, 1, 2, -2}});
  checkAll(packed({1, {7, 7}, 96, 64, {3, 3}, {1, 1}, {1, 1, 1, 1}})); // sums in parts
}

// one panel: only the tiles at the border are copied
TEST(KernelConv, BorderTiles) {
  checkAll(packed({2, {17, 61}, 3, 32, {3, 3}, {2, 2}, {0, 1, 0, 1}}));
  checkAll(packed({1, {9, 60}, 3, 24, {3, 3}, {1, 1}, {1, 1, 1, 1}}));
  checkAll(packed({1, {5, 44}, 4, 16, {2, 5}, {1, 1}, {3, 2, 9, 7}})); // windows beside the image
  checkAll(packed({1, {3, 4}, 3, 32, {7, 7}, {1, 1}, {3, 3, 20, 20}})); // wider than the image
  checkAll(packed({1, {16, 40}, 3, 17, {3, 3}, {2, 1}, {2, 2, 2, 2}, {}, {2, 2}}));
  checkAll(packed({1, {12, 50}, 5, 32, {3, 3}, {1, 2}, {-1, 1, 2, -2}}));
  checkAll({2, {8, 33}, 3, 8, {3, 3}, {1, 1}, {1, 1, 0, 2}});
  checkAll(packed({3, {9, 30}, 4, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {}, {}, 1, 1, false, false, {false, false, true}}));
}

TEST(KernelConv, GatheredWindows) {
  checkAll(packed({2, {9, 7}, 20, 72, {3, 3}, {1, 1}, {1, 1, 1, 1}}));
  checkAll(packed({1, {14, 15}, 33, 64, {3, 3}, {2, 2}, {0, 1, 0, 1}}));
  checkAll({1, {8, 8}, 24, 64, {1, 3}, {1, 1}, {0, 0, 1, 1}});
  checkAll(packed({1, {8, 8}, 400, 70, {7, 1}, {1, 1}, {3, 3, 0, 0}}));
  checkAll(packed({1, {6, 5}, 16, 64, {4, 7}, {1, 1}, {2, 1, 5, 4}}));
  checkAll(packed({1, {9, 8}, 16, 64, {3, 3}, {1, 1}, {-1, 1, 2, -2}}));
  checkAll(packed({1, {9, 9}, 8, 64, {3, 3}, {1, 1}, {2, 2, 2, 2}, {}, {2, 2}})); // dilated in the row: not gathered
  checkAll(packed({3, {9, 7}, 20, 64, {3, 3}, {1, 1}, {1, 1, 1, 1}, {}, {}, 1, 1, false, false, {true, false, true}}));
}

TEST(KernelConv, Dilated) {
  checkAll(packed({1, {12, 12}, 8, 16, {3, 3}, {1, 1}, {2, 2, 2, 2}, {}, {2, 2}}));
  checkAll({1, {6, 5}, 8, 9, {3, 3}, {1, 1}, {1, 2, 2, 1}, {2, 2}});
  checkAll({1, {6, 5}, 4, 9, {4, 4}, {1, 1}, {-1, 2, 2, 1}, {3, 2}});
}

TEST(KernelConv, Groups) {
  checkAll(packed({1, {8, 8}, 16, 48, {3, 3}, {1, 1}, {1, 1, 1, 1}, {}, {}, 2}));
  checkAll({1, {8, 8}, 12, 8, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, {}, 4});
  checkAll({4, {6, 6}, 3, 10, {3, 3}, {1, 1}, {1, 1, 1, 1}, {}, {}, 1, 2});
}

TEST(KernelConv, NarrowGroups) {
  checkAll({1, {8, 9}, 32, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {}, {}, 8});
  checkAll({2, {9, 35}, 48, 48, {3, 3}, {2, 2}, {0, 1, 0, 1}, {}, {}, 6});
  checkAll({1, {5, 16}, 30, 30, {1, 3}, {1, 1}, {0, 0, 1, 1}, {}, {}, 15}); // vectors of four widths
  checkAll({1, {12, 12}, 16, 16, {3, 3}, {1, 1}, {2, 2, 2, 2}, {}, {2, 2}, 4});
  checkAll({1, {3, 2}, 16, 16, {5, 5}, {1, 1}, {2, 2, 2, 2}, {}, {}, 4}); // window larger than the image
  checkAll({1, {9, 40}, 16, 16, {3, 3}, {1, 2}, {-1, 1, 2, -2}, {}, {}, 8});
  checkAll({3, {40}, 16, 16, {5}, {1}, {2, 2}, {}, {}, 2});
  checkAll({1, {4, 5, 16}, 8, 8, {3, 2, 3}, {1, 2, 1}, {1, 1, 0, 1, 1, 1}, {}, {}, 2});
  checkAll({3, {7, 15}, 16, 16, {3, 3}, {1, 1}, {1, 1, 1, 1}, {}, {}, 4, 1, false, false, {true, false, true}});
}

ConvCase spread(ConvCase c) {
  c.spread = true;
  return c;
}

TEST(KernelConv, Spread) {
  checkAll(spread({1, {20, 21}, 16, 3, {9, 9}, {1, 1}, {4, 4, 4, 4}}));
  checkAll(spread({2, {9, 30}, 33, 1, {5, 5}, {2, 1}, {2, 2, 2, 2}}));
  checkAll(spread({1, {12, 12}, 8, 5, {3, 3}, {1, 1}, {0, 0, 0, 0}})); // nothing beside the image
  checkAll(spread({1, {12, 12}, 8, 6, {3, 3}, {1, 1}, {2, 2, 2, 2}, {}, {2, 2}}));
  checkAll(spread({1, {8, 40}, 5, 9, {3, 3}, {1, 1}, {-1, 1, 2, -2}}));
  checkAll(spread({3, {50}, 24, 2, {7}, {1}, {6, 0}}));
  checkAll(spread({1, {4, 5, 16}, 8, 3, {3, 2, 3}, {1, 2, 1}, {1, 1, 0, 1, 1, 1}}));
  checkAll(spread({3, {11, 13}, 20, 3, {5, 5}, {1, 1}, {2, 2, 2, 2}, {}, {}, 1, 1, false, false, {true, true, true}}));
}

TEST(KernelConv, TapsBesideTheImage) {
  checkAll(packed({1, {16, 16}, 32, 40, {3, 3}, {1, 1}, {12, 12, 12, 12}, {}, {12, 12}}));
  checkAll(packed({2, {16, 13}, 33, 70, {3, 3}, {1, 1}, {18, 18, 18, 18}, {}, {18, 18}})); // the middle tap alone
  checkAll({1, {17, 16}, 40, 24, {3, 3}, {2, 2}, {6, 6, 6, 6}, {}, {6, 6}});
  checkAll({1, {9, 12}, 600, 16, {3, 5}, {1, 1}, {8, 8, 8, 8}, {}, {8, 4}});
  checkAll(packed({1, {6, 12}, 1024, 128, {3, 3}, {1, 1}, {4, 4, 5, 5}, {}, {4, 5}})); // pixels 4 KiB apart
  checkAll(packed({2, {20}, 32, 20, {3}, {1}, {24, 0}, {}, {12}}));
}

TEST(KernelConv, OtherRanks) {
  checkAll(packed({2, {40}, 6, 18, {5}, {1}, {2, 2}}));
  checkAll({1, {5, 6, 7}, 3, 17, {3, 2, 3}, {1, 2, 1}, {1, 1, 0, 1, 1, 1}});
  checkAll({1, {30, 1}, 4, 8, {3, 1}, {1, 1}, {1, 1, 0, 0}}); // trivial last dimension
}

ConvCase depthwise(ConvCase c) {
  c.depthwise = true;
  c.groups = c.ic;
  return c;
}

TEST(KernelDepthwise, Static) {
  checkAll(depthwise({1, {14, 14}, 32, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}}));
  checkAll(depthwise({2, {15, 17}, 24, 24, {3, 3}, {2, 2}, {0, 1, 0, 1}}));
  checkAll(depthwise({1, {7, 30}, 9, 9, {5, 5}, {1, 1}, {2, 2, 2, 2}}));
  checkAll(depthwise({1, {9, 9}, 16, 16, {3, 3}, {1, 1}, {2, 2, 2, 2}, {}, {2, 2}}));
  checkAll(depthwise({1, {3, 2}, 5, 5, {5, 5}, {1, 1}, {2, 2, 2, 2}})); // window larger than the image
}

// Blocks of rows that half of L2 holds, 16 of them here, and which end in the middle of an image.
TEST(KernelDepthwise, RowsTogether) {
  checkAll(depthwise({2, {21, 100}, 80, 80, {3, 3}, {1, 1}, {1, 1, 1, 1}}));
  checkAll(depthwise({2, {23, 20}, 40, 40, {5, 5}, {2, 2}, {2, 2, 2, 2}}));
  checkAll(depthwise({2, {4, 6, 9}, 32, 32, {3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}}));
}

TEST(KernelDepthwise, Other) {
  checkAll(depthwise({1, {8, 8}, 16, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}}));
  checkAll(depthwise({1, {8, 8}, 5, 15, {3, 3}, {1, 1}, {1, 1, 1, 1}}));
  checkAll(depthwise({1, {8, 8}, 6, 6, {3, 3}, {1, 1}, {1, 1, 1, 1}, {2, 2}}));
  checkAll(depthwise({1, {20}, 16, 16, {4}, {1}, {3, 0}}));
  checkAll(depthwise({2, {9, 11}, 20, 20, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, {}, 1, 1, false, true, {true, true, true}}));
}

TEST(KernelPool, Kinds) {
  for (const char *kind : {"max", "min", "sum", "avg"})
    for (int64_t channels : {1, 20, 64}) {
      checkPool(kind, 2, {9, 8}, channels, {3, 2}, {2, 1}, {0, 1, 1, 0});
      checkPool(kind, 1, {7, 7}, channels, {7, 7}, {1, 1}, {0, 0, 0, 0});
    }
  checkPool("max", 1, {30}, 8, {4}, {2}, {1, 1});
}

// Tiles of several heights, at both borders and between them, and channels that leave a rest; windows in part, and wholly,
// beside the image.
TEST(KernelPool, Tiles) {
  for (const char *kind : {"max", "max_number", "sum", "avg"})
    for (int64_t channels : {3, 16, 44}) {
      checkPool(kind, 1, {6, 35}, channels, {3, 3}, {1, 1}, {1, 1, 1, 1});
      checkPool(kind, 2, {9, 31}, channels, {3, 3}, {2, 2}, {0, 1, 0, 1});
    }
  for (const char *kind : {"max_number", "avg"}) {
    checkPool(kind, 1, {7, 3}, 24, {3, 5}, {1, 1}, {1, 1, 2, 2});
    checkPool(kind, 1, {5, 40}, 8, {2, 9}, {1, 3}, {0, 1, 4, 4});
    checkPool(kind, 1, {40, 12}, 96, {3, 3}, {1, 1}, {1, 1, 1, 1}); // rows in several strips where L2 is small
    checkPool(kind, 1, {3, 4, 20}, 16, {2, 2, 3}, {1, 1, 1}, {0, 0, 1, 0, 1, 1});
  }
}

// max_number never takes a NaN, and gives the lowest number where there is nothing else.
TEST(KernelPool, MaxOfNumbers) {
  MLIRContext &context = testContext();
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  const int64_t h = 5, w = 21, channels = 20;
  auto type = RankedTensorType::get({1, h, w, channels}, b.getF32Type());
  b.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(b, loc, "main", b.getFunctionType({type}, {type}));
  b.setInsertionPointToStart(func.addEntryBlock());
  auto op = kernel::PoolOp::create(b, loc, TypeRange{type}, func.getArgument(0), ValueRange{}, "max_number", Ints{3, 3}, Ints{1, 1},
                                   Ints{1, 1, 1, 1}, ArrayRef<int64_t>{}, b.getF32Type(),
                                   [](OpBuilder &, Location, ValueRange v) -> SmallVector<Value> { return {v[0]}; });
  std::vector<float> x(h * w * channels);
  fill(x, 3);
  for (size_t i = 0; i < x.size(); ++i)
    if (i % 3 == 0 || i / channels % w < 6)
      x[i] = NAN;
  for (const Processor &processor : {Processor::host(), Processor::avx2(), Processor::baseline()}) {
    CompiledKernel *kernel = CompiledKernel::compileOnce(op, processor);
    ASSERT_TRUE(kernel);
    std::vector<float> z = runBothWays(*kernel, {x.data()}, x.size(), {});
    for (int64_t i = 0; i < h; ++i)
      for (int64_t j = 0; j < w; ++j)
        for (int64_t c = 0; c < channels; ++c) {
          float want = std::numeric_limits<float>::lowest();
          for (int64_t y = std::max<int64_t>(i - 1, 0); y <= std::min(i + 1, h - 1); ++y)
            for (int64_t k = std::max<int64_t>(j - 1, 0); k <= std::min(j + 1, w - 1); ++k)
              if (float v = x[(y * w + k) * channels + c]; v > want)
                want = v;
          EXPECT_EQ(z[(i * w + j) * channels + c], want) << i << " " << j << " " << c;
        }
  }
}

void checkWinograd(ConvCase c) {
  if (c.taps.empty())
    c.taps = {3, 3};
  for (int64_t m : cpu::winogradTileSizes(c.taps[0], c.taps[1])) {
    c.winograd = m;
    for (const Processor &p : {Processor::host(), Processor::avx2(), Processor::baseline()})
      check(c, p);
  }
}

TEST(KernelWinograd, Sizes) {
  checkWinograd({1, {8, 8}, 16, 32, {}, {}, {1, 1, 1, 1}});
  checkWinograd({1, {56, 20}, 32, 64, {}, {}, {1, 1, 1, 1}});
  checkWinograd({1, {3, 3}, 16, 16, {}});
  checkWinograd({1, {1, 1}, 16, 16, {}, {}, {1, 1, 1, 1}});
  checkWinograd({2, {13, 7}, 20, 33, {}, {}, {1, 1, 1, 1}}); // tails in every direction
  checkWinograd({3, {5, 6}, 7, 3, {}, {}, {0, 1, 1, 0}});
  checkWinograd({1, {6, 6}, 1, 1, {}, {}, {1, 1, 1, 1}});
  checkWinograd({8, {7, 7}, 48, 112, {}, {}, {1, 1, 1, 1}});
}

TEST(KernelWinograd, Halves) {
  for (ConvCase c : {ConvCase{1, {13, 9}, 20, 33, {}, {}, {-1, 1, 2, -2}},
                     {1, {9, 10}, 24, 16, {5, 5}, {}, {2, 2, 2, 2}}}) {
    c.half = true;
    checkWinograd(c);
  }
}

TEST(KernelWinograd, Padding) {
  checkWinograd({1, {9, 8}, 16, 16, {}, {}, {3, 2, 5, 4}}); // tiles wholly outside of the image
  checkWinograd({1, {12, 11}, 16, 16, {}, {}, {-1, 1, 2, -2}});
  checkWinograd({1, {9, 10}, 16, 16, {}, {}, {0, 0, 0, 0}});
}

TEST(KernelWinograd, DilatedTaps) {
  checkWinograd({1, {16, 16}, 16, 32, {}, {}, {2, 2, 2, 2}, {}, {2, 2}});
  checkWinograd({2, {13, 27}, 20, 33, {}, {}, {3, 3, 5, 5}, {}, {3, 5}}); // phases of several sizes
  checkWinograd({1, {5, 9}, 16, 16, {}, {}, {7, 7, 1, 1}, {}, {7, 1}});   // more phases than pixels
  checkWinograd({1, {30, 12}, 16, 16, {}, {}, {0, 0, 4, 3}, {}, {4, 2}});
  checkWinograd({1, {12, 12}, 16, 16, {}, {}, {-1, 3, 5, -2}, {}, {2, 2}});
}

TEST(KernelWinograd, LongSums) {
  checkWinograd({1, {14, 14}, 600, 40, {}, {}, {1, 1, 1, 1}});
  checkWinograd({1, {7, 7}, 512, 512, {}, {}, {1, 1, 1, 1}});
}

TEST(KernelWinograd, Windows) {
  for (const Ints &taps : {Ints{5, 5}, {5, 3}, {1, 3}, {1, 7}, {4, 1}, {7, 1}}) {
    SCOPED_TRACE(std::to_string(taps[0]) + "x" + std::to_string(taps[1]));
    const int64_t up = (taps[0] - 1) / 2, down = taps[0] / 2, left = (taps[1] - 1) / 2, right = taps[1] / 2;
    EXPECT_FALSE(cpu::winogradTileSizes(taps[0], taps[1]).empty());
    checkWinograd({2, {13, 9}, 20, 33, taps, {}, {up, down, left, right}}); // tails in every direction
    checkWinograd(
        {1, {9, 8}, 16, 16, taps, {}, {up + 5, down, left - 1, right + 6}}); // tiles outside of the image
    checkWinograd({1, {21, 25}, 7, 16, taps, {}, {3 * up, 3 * down, 2 * left, 2 * right}, {}, {3, 2}});
  }
  checkWinograd({1, {1, 203}, 40, 48, {1, 3}, {}, {0, 0, 1, 1}}); // as one-dimensional ones come
  checkWinograd({2, {1, 203}, 40, 48, {1, 5}, {}, {0, 0, 16, 0}, {}, {1, 4}});
  for (const Ints &other : {Ints{1, 1}, {8, 1}, {3, 2}, {9, 9}})
    EXPECT_TRUE(cpu::winogradTileSizes(other[0], other[1]).empty());
}

// A direct computation of one tile from the three matrices, which kernels follow term by term.
TEST(KernelWinograd, Matrices) {
  for (int64_t r = 2; r <= 7; ++r)
    for (int64_t m : {2, 3, 4, 6}) {
      const cpu::WinogradAxis axis{m, r};
      if (!axis.isKnown())
        continue;
      const std::vector<double> in = axis.input(), filter = axis.filter(), out = axis.output();
      const int64_t a = axis.points();
      for (int64_t pixel = 0; pixel < a; ++pixel)
        for (int64_t tap = 0; tap < r; ++tap)
          for (int64_t i = 0; i < m; ++i) {
            double sum = 0;
            for (int64_t p = 0; p < a; ++p)
              sum += out[i * a + p] * in[p * a + pixel] * filter[p * r + tap];
            EXPECT_NEAR(sum, pixel == i + tap, 1e-12) << m << " " << r;
          }
    }
}

TEST(KernelWinograd, SampledErrorOfWindows) {
  for (const Ints &taps : {Ints{5, 5}, {7, 7}, {3, 5}, {1, 3}, {1, 5}, {1, 7}, {7, 1}, {4, 4}})
    for (int64_t m : cpu::winogradTileSizes(taps[0], taps[1])) {
      Tensor filter = Tensor::allocate(DType::Float32, {taps[0], taps[1], 64, 32});
      std::vector<float> values(filter.numElements());
      fill(values, 4);
      std::copy(values.begin(), values.end(), filter.data<float>());
      const double error = cpu::sampleWinogradError(filter, m);
      EXPECT_GT(error, 1e-8);
      EXPECT_LT(error, 1e-4) << taps[0] << "x" << taps[1] << " " << m;
    }
}

TEST(KernelWinograd, SampledError) {
  for (int64_t ic : {16, 64, 512}) {
    Tensor filter = Tensor::allocate(DType::Float32, {3, 3, ic, 32});
    std::vector<float> values(filter.numElements());
    fill(values, 4);
    std::copy(values.begin(), values.end(), filter.data<float>());
    double two = cpu::sampleWinogradError(filter, 2), four = cpu::sampleWinogradError(filter, 4);
    EXPECT_GT(two, 1e-8);
    EXPECT_GT(four, two);
    EXPECT_LT(four, cpu::winogradErrorLimit) << ic;
    filter.data<float>()[0] = INFINITY;
    EXPECT_EQ(cpu::sampleWinogradError(filter, 4), INFINITY);
  }
}

TEST(KernelWinograd, RunTimeSizes) {
  checkWinograd({3, {8, 8}, 16, 32, {}, {}, {1, 1, 1, 1}, {}, {}, 1, 1, false, false, {false, false, true}});
  checkWinograd({2, {11, 17}, 20, 24, {}, {}, {1, 1, 1, 1}, {}, {}, 1, 1, false, false, {true, true, true}});
  checkWinograd({1, {50, 3}, 20, 24, {}, {}, {1, 1, 1, 1}, {}, {}, 1, 1, false, false, {true, true, false}});
}

TEST(KernelConv, RunTimeSizes) {
  checkAll(packed({3, {8, 8}, 4, 16, {3, 3}, {1, 1}, {1, 1, 1, 1}, {}, {}, 1, 1, false, false, {false, false, true}}));
  checkAll(packed({2, {11, 17}, 4, 24, {3, 3}, {2, 1}, {1, 1, 1, 1}, {}, {}, 1, 1, false, false, {true, true, true}}));
  checkAll({2, {3, 5}, 4, 24, {1, 1}, {}, {}, {}, {}, 1, 1, false, false, {true, true, true}});
}

} // namespace
