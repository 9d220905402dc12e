// Which convolutions Winograd's algorithm computes, in which blocks, and their filters.
#include "base/Float.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/conv/Winograd.h"
#include "passes/codegen/cpu/product/Tile.h"
#include "passes/codegen/cpu/target/Blocking.h"

#include <cmath>
#include <limits>
#include <random>

using namespace mlir;

namespace lathe::cpu {

llvm::StringRef describe(WinogradRefusal refusal) {
  switch (refusal) {
  case WinogradRefusal::None:
    return "chosen";
  case WinogradRefusal::Exact:
    return "exact results are asked for";
  case WinogradRefusal::Window:
    return "not a window of known size and stride 1 without groups";
  case WinogradRefusal::Types:
    return "operands are not f32, or narrower floats summed up in f32";
  case WinogradRefusal::NoVectors:
    return "the target has no vectors of f32";
  case WinogradRefusal::NotFaster:
    return "direct code is estimated to be as fast";
  case WinogradRefusal::Inexact:
    return "the filter would lose too much accuracy";
  case WinogradRefusal::Overflow:
    return "integers might not fit once they are transformed";
  }
  return "";
}

WinogradSizes WinogradSizes::of(kernel::ConvOp op) {
  RankedTensorType acc = op.getAccType();
  auto size = [&](int64_t i) {
    return acc.isDynamicDim(i) ? std::nullopt : std::optional<int64_t>(acc.getDimSize(i));
  };
  // a packed filter's type tells no sizes
  const ArrayRef<int64_t> taps = op.getKernelShape()
                                     ? *op.getKernelShape()
                                     : cast<RankedTensorType>(op.getFilter().getType()).getShape();
  auto dilation = [&](int64_t i) { return taps[i] == 1 ? 1 : op.getRhsDilation()[i]; };
  const bool integers = isa<IntegerType>(acc.getElementType());
  return {cast<RankedTensorType>(op.getInput().getType()).getShape().back(),
          acc.getShape().back(),
          size(1),
          size(2),
          size(0),
          dilation(0),
          dilation(1),
          op.getBf16() || integers,
          taps[0],
          taps[1],
          integers};
}

//===----------------------------------------------------------------------===//
// Estimates
//===----------------------------------------------------------------------===//

// Sizes known only at run time are taken for these.
constexpr int64_t assumedSize = 56;

int64_t winogradTiles(const WinogradSizes &s, int64_t m) {
  const WinogradTile tile = s.tile(m);
  auto along = [&](std::optional<int64_t> size, int64_t dilation, int64_t m) {
    return dilation * llvm::divideCeil(llvm::divideCeil(size.value_or(assumedSize), dilation), m);
  };
  return s.images.value_or(1) * along(s.height, s.rowDilation, tile.down.m) *
         along(s.width, s.columnDilation, tile.across.m);
}

namespace {
/// Loads, arithmetic and stores of one vector of one tile, the epilogue included.
struct TransformCycles {
  double in, out;
  TransformCycles(const KernelTarget &target, const WinogradTile &tile);
};
} // namespace

TransformCycles::TransformCycles(const KernelTarget &target, const WinogradTile &tile) {
  const WinogradAxis &y = tile.down, &x = tile.across;
  const codegen::WinogradRates &rates = target.winograd;
  if (y.r == 3 && x.r == 3) {
    in = y.m == 4 ? rates.in4 : rates.in2;
    out = y.m == 4 ? rates.out4 : rates.out2;
  } else {
    auto inSteps = [](const WinogradAxis &a) { return a.r == 1 ? 0 : a.points() * a.points() / 3; };
    auto outSteps = [](const WinogradAxis &a) {
      return a.r == 1 ? 0 : int64_t(a.pairs().size()) * (2 + a.m) + 1;
    };
    in = rates.step * (2 * tile.points() + x.points() * inSteps(y) + y.points() * inSteps(x));
    out = rates.step * (tile.points() + tile.pixels() + x.points() * outSteps(y) + y.m * outSteps(x)) +
          rates.pixel * tile.pixels();
  }
  if (target.numVectorRegs < 32) { // spills
    in *= rates.spills;
    out *= rates.spills;
  }
}

/// A product of whole vectors, in multiply-adds: of integers it may take an addition apart, which other units than the two for
/// products can do.
static double productCost(const KernelTarget &target, const WinogradSizes &s) { return s.integers && !target.avx512vnni ? 4.0 / 3 : 1; }

KernelTarget tileTarget(const KernelTarget &target, const WinogradSizes &s) {
  return s.integers ? tileTarget(target, OperandFormat{OperandFormat::Kind::Words}) : target;
}

WinogradPlan planWinograd(const KernelTarget &of, const WinogradSizes &s, int64_t m, int64_t panel, int64_t panelsPerUnit) {
  const KernelTarget target = tileTarget(of, s);
  WinogradPlan best;
  const int64_t threads = std::max(1, target.threads);
  const WinogradTile tile = s.tile(m);
  const int64_t points = tile.points(), panels = llvm::divideCeil(s.outChannels, panel);
  const int64_t lanes = std::max(1, target.vectorBits / 32), vecs = std::max<int64_t>(1, panel / lanes);
  const unsigned maxRows = maxTileRows(target, vecs);
  const int64_t tiles = std::max<int64_t>(1, winogradTiles(s, m));
  const int64_t groups = std::max<int64_t>(1, panels / panelsPerUnit);
  int64_t inLanes = s.integers ? 2 * lanes : lanes;
  while (inLanes > std::max<int64_t>(1, s.inChannels))
    inLanes /= 2;
  const double inVecs = llvm::divideCeil(s.inChannels, inLanes), outVecs = panels * vecs;
  const TransformCycles transforms(target, tile);
  // two products a step, operands of two bytes
  const double operand = s.pairs ? 2 : 4, steps = s.inChannels / (s.pairs ? 2.0 : 1), product = productCost(target, s) / target.fmas;
  const double weights = operand * points * s.inChannels * panels * panel;
  for (int64_t blocks = 1; blocks <= tiles; ++blocks) {
    int64_t perBlock = llvm::divideCeil(tiles, blocks);
    if (blocks > threads && perBlock < maxRows && best.tilesPerBlock > 0 && best.tile)
      break;
    if (static_cast<int64_t>(llvm::divideCeil(tiles, perBlock)) != blocks)
      continue;
    RowTiles rows(perBlock, maxRows);
    auto tileCost = [&](double r) {
      return std::max({r * vecs * product, (r + vecs) / target.fmas, double(target.fmaLatency)}) * target.winograd.overhead;
    };
    double gemm = points * steps * double(panels) * blocks *
                  (rows.numHigh * tileCost(rows.low + 1) + (rows.numTiles - rows.numHigh) * tileCost(rows.low));
    double transformed = operand * points * perBlock * s.inChannels, sums = 4.0 * points * perBlock * panelsPerUnit * panel;
    // the slowest thread's share, as if all took as long; a block that two of them enter is transformed twice
    const int64_t units = blocks * groups;
    const int64_t mine = llvm::divideCeil(units, threads);
    const double share = double(mine) / units;
    const int64_t across = mine % groups ? llvm::divideCeil(mine - 1, groups) + 1 : mine / groups;
    const double entered = std::min<double>(blocks, across) / blocks;
    double traffic = weights / groups * (weights + transformed + sums < target.l2 ? std::min(mine, groups) : mine);
    if (transformed > target.ofL2(target.l2Transformed))
      traffic += transformed * mine;
    if (sums > target.ofL2(target.l2Sums))
      traffic += 2 * sums * mine;
    // threads split units evenly only when there are a few
    double uneven = units == 1 ? 1.02 : 1;
    double cycles = threads * (combined(gemm * share, traffic / target.streamBytes) * uneven +
                               tiles * (entered * inVecs * transforms.in + share * outVecs * transforms.out));
    if (!best.tile || cycles < best.cycles)
      best = {m, panel, panelsPerUnit, perBlock, cycles};
  }
  return best;
}

WinogradPlan planWinograd(const KernelTarget &target, const WinogradSizes &s, int64_t m) {
  WinogradPlan best;
  const int64_t lanes = std::max(1, target.vectorBits / 32);
  for (int64_t vecs : {2, 3, 4, 1}) {
    if (vecs > 1 && s.outChannels <= (vecs - 1) * lanes)
      continue;
    if (maxTileRows(tileTarget(target, s), vecs) * vecs < 8)
      continue;
    int64_t panels = llvm::divideCeil(s.outChannels, vecs * lanes);
    for (int64_t perUnit = 1; perUnit <= panels; ++perUnit) {
      if (panels % perUnit)
        continue;
      WinogradPlan plan = planWinograd(target, s, m, vecs * lanes, perUnit);
      if (!best.tile || plan.cycles < best.cycles * 0.98)
        best = plan;
    }
  }
  return best;
}

/// The same for the direct kernel; where `bf16` with AVX512_BF16: twice as many products a cycle,
/// half the bytes.
static double directCycles(const KernelTarget &target, const WinogradSizes &s, bool bf16 = false) {
  const int64_t lanes = std::max(1, target.vectorBits / 32);
  double pixels = double(s.images.value_or(1)) * s.height.value_or(assumedSize) * s.width.value_or(assumedSize);
  double columns = llvm::alignTo(s.outChannels, lanes);
  // Short rows make low register tiles, unless windows are gathered to the rows of a product. An unknown batch may be a
  // large one, which pays for larger filters.
  const int64_t width = s.width.value_or(assumedSize);
  const bool gathered = s.images && s.columnDilation == 1 && width <= gatheredWidth && s.outChannels >= gatheredChannels;
  double efficiency = gathered ? 0.9 : width < 12 ? 0.82 : 0.87;
  // taps that reach far mostly lie beside the image and are left out
  auto inside = [](std::optional<int64_t> size, int64_t dilation, int64_t window) {
    double taps = 1;
    for (int64_t i = 1; i < window; ++i)
      taps += std::max(0.0, 1 - double((i + 1) / 2 * dilation) / size.value_or(assumedSize));
    return taps / window;
  };
  const double share =
      inside(s.height, s.rowDilation, s.windowHeight) * inside(s.width, s.columnDilation, s.windowWidth);
  if (share < 0.8)
    pixels *= share;
  const double weights = double(s.windowHeight * s.windowWidth) * s.inChannels * columns,
               products = pixels * weights;
  if (s.integers)
    return combined(products / (2 * target.fmas * lanes) * productCost(target, s) / efficiency, weights / target.streamBytes);
  if (bf16)
    return combined(products / (2 * target.fmas * lanes) / efficiency, 2 * weights / target.streamBytes);
  return combined(products / (target.fmas * lanes) / efficiency, 4 * weights / target.streamBytes);
}

WinogradRefusal whyNoWinogradWindow(kernel::ConvOp op) {
  auto isFloat = [](RankedTensorType type) {
    const Type e = type.getElementType();
    return e.isF32() || e.isBF16() || e.isF16();
  };
  auto input = cast<RankedTensorType>(op.getInput().getType()), filter = cast<RankedTensorType>(op.getFilter().getType());
  auto ones = [](ArrayRef<int64_t> list) { return llvm::all_of(list, [](int64_t v) { return v == 1; }); };
  const bool window = filter.getRank() == 4 && !filter.isDynamicDim(0) && !filter.isDynamicDim(1) &&
         !winogradTileSizes(filter.getDimSize(0), filter.getDimSize(1)).empty() && ones(op.getStrides()) &&
         ones(op.getLhsDilation()) && op.getGroups() == 1 && op.getBatchGroups() == 1 &&
         !input.isDynamicDim(3) && !op.getAccType().isDynamicDim(3);
  const Type sum = op.getAccType().getElementType(), taps = filter.getElementType();
  if (window && sum.isInteger(32) && input.getElementType().isInteger(8) && (taps.isInteger(8) || taps.isInteger(16)) && !taps.isUnsignedInteger())
    return WinogradRefusal::None;
  if (!window || !isa<FloatType>(sum))
    return WinogradRefusal::Window;
  return isFloat(input) && isFloat(filter) && op.getAccType().getElementType().isF32() ? WinogradRefusal::None : WinogradRefusal::Types;
}

/// Whether transformed taps fit 16 bits and four times the sum of any output channel 32. (Sums of single points may wrap.)
static bool integersFit(const Tensor &filter, bool isUnsigned) {
  const int64_t oc = filter.dim(3), largest = isUnsigned ? 255 : 128;
  std::vector<int64_t> magnitudes(oc);
  for (int64_t i = 0; i < filter.numElements(); ++i) {
    const int64_t v = std::abs(narrowAt(filter, i));
    // nine taps add up at a point
    if (9 * v > std::numeric_limits<int16_t>::max())
      return false;
    magnitudes[i % oc] += v;
  }
  return llvm::all_of(magnitudes, [&](int64_t sum) { return 4 * largest * sum <= std::numeric_limits<int32_t>::max(); });
}

WinogradChoice chooseWinograd(kernel::ConvOp op, const Tensor &filter, const KernelTarget &target, int64_t force) {
  WinogradChoice choice;
  auto refuse = [&](WinogradRefusal r) {
    choice.refusal = r;
    return choice;
  };
  if (WinogradRefusal why = whyNoWinogradWindow(op); why != WinogradRefusal::None)
    return refuse(why);
  if (target.lanes(op.getAccType().getElementType()) == 1)
    return refuse(WinogradRefusal::NoVectors);
  WinogradSizes sizes = WinogradSizes::of(op);
  const Type in = hlo::elementType(op.getInput());
  if (sizes.integers && integerFormat(target, in, IntegerType::get(op.getContext(), 8), op.getAccType().getElementType()).kind != OperandFormat::Kind::Words)
    return refuse(WinogradRefusal::NotFaster); // bytes are multiplied by fours
  if (sizes.integers && !integersFit(filter, in.isUnsignedInteger()))
    return refuse(WinogradRefusal::Overflow);
  // taps that always lie beside the image: more phases than pixels, most of them empty
  if (sizes.rowDilation > sizes.height.value_or(assumedSize) || sizes.columnDilation > sizes.width.value_or(assumedSize))
    return refuse(WinogradRefusal::Window);
  WinogradRefusal reason = WinogradRefusal::NotFaster;
  // the algorithm is chosen as for one thread: how many there are must not change a bit
  KernelTarget alone = target;
  alone.threads = 1;
  double spreadShare = 1;
  const bool spread = whyNotSpread(op, target, spreadShare).takes();
  double limit = directCycles(target, sizes) * (spread ? spreadShare : 1) * 0.97;
  for (int64_t m : winogradTileSizes(sizes.windowHeight, sizes.windowWidth)) {
    if ((force && force != m) || (sizes.integers && !sizes.tile(m).isExact()))
      continue;
    WinogradPlan plan = planWinograd(alone, sizes, m);
    if (!force && plan.cycles > limit)
      continue;
    if (!force && !sizes.integers && sampleWinogradError(filter, m) > winogradErrorLimit) {
      reason = WinogradRefusal::Inexact;
      continue;
    }
    limit = plan.cycles;
    choice.plan = target.threads > 1 ? planWinograd(target, sizes, m) : plan;
  }
  if (!choice.plan)
    choice.refusal = reason;
  return choice;
}

Bf16Choice chooseBf16(kernel::ConvOp op, const KernelTarget &target, llvm::function_ref<FailureOr<Tensor>()> filter) {
  Bf16Choice choice;
  if (whyNoWinogradWindow(op) != WinogradRefusal::None)
    return choice;
  KernelTarget alone = target;
  alone.threads = 1;
  WinogradSizes wide = WinogradSizes::of(op), paired = wide;
  wide.pairs = false;
  paired.pairs = true;
  const double direct = directCycles(alone, wide, /*bf16=*/true) * 0.97, never = std::numeric_limits<double>::infinity();
  double f32 = never;
  for (int64_t m : winogradTileSizes(wide.windowHeight, wide.windowWidth))
    f32 = std::min(f32, planWinograd(alone, wide, m).cycles);
  const WinogradTile small = wide.tile(2);
  const bool hasFewPoints = small.isKnown() && small.down.points() <= 4 && small.across.points() <= 4;
  const double bf16 = hasFewPoints && wide.inChannels % 2 == 0 ? planWinograd(alone, paired, 2).cycles : never;
  // filters are read, and errors sampled, only where that may matter
  if (std::min(f32, bf16) > direct)
    return choice;
  FailureOr<Tensor> values = filter();
  if (failed(values))
    return choice;
  WinogradChoice inF32 = chooseWinograd(op, *values, alone);
  f32 = inF32.plan ? inF32.plan->cycles : never;
  choice.winogradF32 = f32 <= std::min(direct, bf16);
  if (!choice.winogradF32 && bf16 <= direct && sampleWinogradError(*values, 2) <= winogradErrorLimit)
    choice.paired = planWinograd(target, paired, 2);
  return choice;
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

/// The same in f32.
static Tensor widened(const Tensor &filter) {
  if (filter.dtype() == DType::Float32)
    return filter;
  Tensor out = Tensor::allocate(DType::Float32, {filter.dim(0), filter.dim(1), filter.dim(2), filter.dim(3)});
  const auto *in = static_cast<const uint16_t *>(filter.data());
  auto at = [&](int64_t i) {
    switch (filter.dtype()) {
    case DType::Float16: return halfToFloat(in[i]);
    case DType::BFloat16: return bfloat16ToFloat(in[i]);
    default: return static_cast<float>(narrowAt(filter, i));
    }
  };
  for (int64_t i = 0; i < filter.numElements(); ++i)
    out.data<float>()[i] = at(i);
  return out;
}

Tensor transformFilter(const Tensor &narrow, const WinogradPlan &plan) {
  const Tensor filter = widened(narrow);
  const int64_t height = filter.dim(0), width = filter.dim(1), ic = filter.dim(2), oc = filter.dim(3);
  const int64_t panel = plan.panel, q = plan.panelsPerUnit, panels = llvm::divideCeil(oc, panel);
  const WinogradTile tile(plan.tile, height, width);
  const int64_t rows = tile.down.points(), columns = tile.across.points();
  const std::vector<double> down = tile.down.filter(), across = tile.across.filter();
  Tensor out = Tensor::allocate(DType::Float32, {panels / q, tile.points(), q, ic, panel});
  const float *in = filter.data<float>();
  float *to = out.data<float>();
  std::vector<double> half(rows * width * panel);
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t c = 0; c < ic; ++c) {
      const int64_t valid = std::min(panel, oc - p * panel);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t x = 0; x < width; ++x)
          for (int64_t y = 0; y < height; ++y) {
            const float *source = in + ((y * width + x) * ic + c) * oc + p * panel;
            double *h = &half[(i * width + x) * panel];
            const double g = down[i * height + y];
            for (int64_t o = 0; o < valid; ++o)
              h[o] = y ? h[o] + g * source[o] : g * source[o];
          }
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          float *target = to + ((((p / q) * tile.points() + i * columns + j) * q + p % q) * ic + c) * panel;
          const double *h = &half[i * width * panel], *g = &across[j * width];
          for (int64_t o = 0; o < valid; ++o) {
            double sum = g[0] * h[o];
            for (int64_t x = 1; x < width; ++x)
              sum += g[x] * h[x * panel + o];
            target[o] = static_cast<float>(sum);
          }
        }
    }
  return out;
}

/// Elements of two bytes, two input channels side by side, with zeros behind an odd number of them.
static Tensor pairUp(const Tensor &transformed, DType type, llvm::function_ref<uint16_t(float)> convert) {
  const int64_t ic = transformed.dim(3), panel = transformed.dim(4), pairs = llvm::divideCeil(ic, 2);
  Tensor out = Tensor::allocate(type, {transformed.dim(0), transformed.dim(1), transformed.dim(2), pairs, 2 * panel});
  const float *in = transformed.data<float>();
  auto *to = static_cast<uint16_t *>(out.data());
  std::fill_n(to, out.numElements(), uint16_t(0));
  for (int64_t i = transformed.numElements() / (ic * panel); i > 0; --i, in += ic * panel, to += 2 * pairs * panel)
    for (int64_t c = 0; c < ic; ++c)
      for (int64_t o = 0; o < panel; ++o)
        to[(c / 2 * panel + o) * 2 + c % 2] = convert(in[c * panel + o]);
  return out;
}

Tensor pairFilter(const Tensor &transformed) { return pairUp(transformed, DType::BFloat16, floatToBFloat16); }

Tensor transformIntegerFilter(const Tensor &filter, const WinogradPlan &plan) {
  // quarters of numbers of 16 bits, which f32 holds
  const int64_t scale = int64_t(1) << WinogradTile(plan.tile, filter.dim(0), filter.dim(1)).halvings();
  return pairUp(transformFilter(filter, plan), DType::Int16, [&](float x) { return static_cast<uint16_t>(static_cast<int16_t>(scale * x)); });
}

/// `left`, rows x columns, times `right`, columns x n; sums in T.
template <typename T>
static void multiply(const std::vector<double> &left, int64_t columns, const T *right, int64_t n, T *to) {
  const int64_t rows = left.size() / columns;
  std::fill_n(to, rows * n, T(0));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k) {
      const T factor = static_cast<T>(left[i * columns + k]);
      for (int64_t j = 0; j < n; ++j)
        to[i * n + j] += factor * right[k * n + j];
    }
}

/// Both directions of `n` tiles, a tile's element being `n` further than the one before: down x in x
/// across^T.
template <typename T>
static std::vector<T> bothWays(const std::vector<double> &down, const std::vector<double> &across,
                               int64_t height, int64_t width, int64_t n, const T *in) {
  const int64_t rows = down.size() / height, columns = across.size() / width;
  std::vector<T> half(rows * width * n), to(rows * columns * n);
  multiply(down, height, in, width * n, half.data());
  for (int64_t i = 0; i < rows; ++i)
    multiply(across, width, &half[i * width * n], n, &to[i * columns * n]);
  return to;
}

double sampleWinogradError(const Tensor &narrow, int64_t m) {
  const Tensor filter = widened(narrow);
  const int64_t height = filter.dim(0), width = filter.dim(1), taps = height * width, ic = filter.dim(2),
                oc = filter.dim(3);
  const WinogradTile tile(m, height, width);
  const int64_t rows = tile.down.points(), columns = tile.across.points(), points = tile.points();
  const std::vector<double> inDown = tile.down.input(), inAcross = tile.across.input(),
                            filterDown = tile.down.filter(), filterAcross = tile.across.filter(),
                            outDown = tile.down.output(), outAcross = tile.across.output();
  const float *f = filter.data<float>();
  const int64_t step = std::max<int64_t>(1, oc / 16), samples = llvm::divideCeil(oc, step);
  std::mt19937 random(1);
  // inputs around zero, and positive ones as after relu
  struct Sample {
    float low;
    std::vector<float> x = {}, v = {}, sums = {};
    std::vector<double> exact = {};
  } both[] = {{-1}, {0}};
  for (Sample &a : both) {
    a.x.resize(points * ic);
    for (int64_t c = 0; c < ic; ++c)
      for (int64_t i = 0; i < points; ++i)
        a.x[i * ic + c] = a.low + (1 - a.low) * static_cast<float>(random() >> 8) * 0x1p-24f;
    a.v = bothWays(inDown, inAcross, rows, columns, ic, a.x.data());
    a.sums.assign(points * samples, 0.f);
    a.exact.assign(tile.pixels() * samples, 0.0);
  }
  std::vector<double> window(taps * samples);
  for (int64_t c = 0; c < ic; ++c) {
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t s = 0; s < samples; ++s)
        window[t * samples + s] = f[(t * ic + c) * oc + s * step];
    const std::vector<double> u = bothWays(filterDown, filterAcross, height, width, samples, window.data());
    for (Sample &a : both) {
      for (int64_t i = 0; i < points; ++i)
        for (int64_t s = 0; s < samples; ++s)
          a.sums[i * samples + s] =
              static_cast<float>(double(a.v[i * ic + c]) * static_cast<float>(u[i * samples + s]) +
                                 a.sums[i * samples + s]); // as fused
      for (int64_t i = 0; i < tile.pixels(); ++i)
        for (int64_t t = 0; t < taps; ++t) {
          const double pixel =
              a.x[((i / tile.across.m + t / width) * columns + i % tile.across.m + t % width) * ic + c];
          for (int64_t s = 0; s < samples; ++s)
            a.exact[i * samples + s] += window[t * samples + s] * pixel;
        }
    }
  }
  double share = 0;
  bool finite = true;
  for (Sample &a : both) {
    const std::vector<float> y = bothWays(outDown, outAcross, rows, columns, samples, a.sums.data());
    double worst = 0, largest = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      worst = std::max(worst, std::abs(a.exact[i] - y[i]));
      largest = std::max(largest, std::abs(a.exact[i]));
      finite &= std::isfinite(y[i]);
    }
    if (largest > 0)
      share = std::max(share, worst / largest);
  }
  // what is not finite shall not be spread over a tile
  return finite ? share : std::numeric_limits<double>::infinity();
}

} // namespace lathe::cpu
