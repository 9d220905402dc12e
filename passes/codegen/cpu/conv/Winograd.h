// Winograd's F(m x m, r x r), F(1 x m, 1 x r) and F(m x 1, r x 1): convolutions with fewer multiplications,
// at some cost in accuracy.
//
// Of bytes with sums of 32 bits the algorithm is exact, with four points in a direction: the transforms of pixels are sums of at most
// two each way, those of filters are whole numbers once they are multiplied by two each way, both fit 16 bits, and their products
// are summed in pairs (vpmaddwd). What comes out is four times the sum (twice with taps in one direction), without a remainder.
//
// Words used here: along a direction of r > 1 taps a tile has m output pixels, computed from m + r - 1 input
// pixels; along one of a single tap it has one. Tiles and filters are transformed to as many points as the
// tile has input pixels; at every point the sum over the input channels is a matrix product (tiles x
// channels) x (channels x output channels), and its result is transformed back. A block is the tiles
// transformed together, a group the panels of output channels that one unit of work computes for a block.
#ifndef LATHE_PASSES_CODEGEN_CPU_CONV_WINOGRAD_H
#define LATHE_PASSES_CODEGEN_CPU_CONV_WINOGRAD_H

#include "base/Tensor.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Emit.h"

#include <optional>
#include <vector>

namespace lathe::cpu {

/// Points of a direction of Winograd's F(m, r), r taps for m outputs, or 0 where its transforms are not
/// known: they are for 4, 6 and 8 points, and a single tap, which has one.
constexpr int64_t winogradPoints(int64_t m, int64_t r) {
  const int64_t points = r == 1 ? 1 : m + r - 1;
  return (r == 1 || (r > 1 && m > 1)) && (points == 1 || points == 4 || points == 6 || points == 8) ? points
                                                                                                    : 0;
}

/// One direction of a tile: F(m, r), and the steps of its transforms. B^T is points x points, G points x r
/// and A^T m x points, from the interpolation points 0, infinity and pairs p and -p, whose rows share their even
/// and their odd terms.
struct WinogradAxis {
  int64_t m = 1, r = 1;

  int64_t points() const { return m + r - 1; }
  /// Whether its transforms are known.
  bool isKnown() const { return winogradPoints(m, r) == points(); }
  /// The p of the pairs.
  llvm::ArrayRef<double> pairs() const;
  /// Rows of B^T for 0 and for infinity; the latter's result is to be multiplied by `sign`.
  std::vector<double> zeroRow() const, infinityRow() const;
  double infinitySign() const { return points() % 4 ? 1 : -1; }
  /// The odd terms of the rows for p and -p, the even ones being the same a place further on: even + p * odd
  /// and even - p * odd.
  std::vector<double> oddTerms(double p) const;
  /// The three matrices, row-major.
  std::vector<double> input() const, filter() const, output() const;
};

/// Both directions of a tile.
struct WinogradTile {
  WinogradAxis down, across;
  WinogradTile(int64_t m, int64_t windowHeight, int64_t windowWidth)
      : down{windowHeight == 1 ? 1 : m, windowHeight}, across{windowWidth == 1 ? 1 : m, windowWidth} {}
  bool isKnown() const { return down.isKnown() && across.isKnown() && pixels() > 1; }
  int64_t points() const { return down.points() * across.points(); }
  int64_t pixels() const { return down.m * across.m; }
  /// Whether integers stay integers: transforms by 1 and -1, and halves in those of filters.
  bool isExact() const { return isKnown() && down.points() <= 4 && across.points() <= 4; }
  /// How many directions have halves.
  int64_t halvings() const { return (down.r > 1) + (across.r > 1); }
};
/// The values of m that a window's tiles may have, large ones first.
llvm::SmallVector<int64_t> winogradTileSizes(int64_t windowHeight, int64_t windowWidth);

/// Sizes that decide; nullopt: known only at run time.
struct WinogradSizes {
  int64_t inChannels = 0, outChannels = 0;
  std::optional<int64_t> height, width, images; ///< of the result
  int64_t rowDilation = 1, columnDilation = 1;  ///< of the taps
  bool pairs = false;                           ///< products of pairs of operands of two bytes: bf16, or transformed integers
  int64_t windowHeight = 3, windowWidth = 3;
  bool integers = false;                        ///< bytes with sums of 32 bits
  WinogradTile tile(int64_t m) const { return {m, windowHeight, windowWidth}; }
  static WinogradSizes of(kernel::ConvOp op);
};

/// The target as the choice of tiles sees it.
KernelTarget tileTarget(const KernelTarget &target, const WinogradSizes &sizes);

/// How one layer is done.
struct WinogradPlan {
  int64_t tile = 0;          ///< m
  int64_t panel = 0;         ///< output channels of a panel
  int64_t panelsPerUnit = 1; ///< divides the number of panels
  int64_t tilesPerBlock = 1;
  double cycles = 0;         ///< estimate for the whole layer
};

/// Tiles of all images, with dilated taps of each phase by itself; unknown sizes are taken for what estimates assume.
int64_t winogradTiles(const WinogradSizes &sizes, int64_t m);
/// The best plan for tiles of `m` pixels along each direction of several taps.
WinogradPlan planWinograd(const KernelTarget &target, const WinogradSizes &sizes, int64_t m);
/// The best plan whose filter is packed in this way.
WinogradPlan planWinograd(const KernelTarget &target, const WinogradSizes &sizes, int64_t m, int64_t panel, int64_t panelsPerUnit);

/// Why a convolution is computed directly.
enum class WinogradRefusal {
  None,
  Exact,     ///< --exact
  Window,    ///< of other sizes, or strided or grouped
  Types,     ///< floats that it is not made for
  NoVectors, ///< the target has none for f32
  NotFaster, ///< by the estimates
  Inexact,   ///< the filter loses too much accuracy
  Overflow,  ///< of integers: four times a sum may not fit 32 bits, or a transformed number 16
};
constexpr unsigned numWinogradRefusals = 8;
llvm::StringRef describe(WinogradRefusal refusal);

/// The largest error of a layer, as a share of its result's largest magnitude, that is accepted: with independent
/// errors some forty layers stay below 1e-4.
constexpr double winogradErrorLimit = 1.5e-5;

/// None where the window, the groups and the element types are those of Winograd's algorithm; else Window or Types.
WinogradRefusal whyNoWinogradWindow(kernel::ConvOp op);

/// The plan for a convolution, whose constant filter is `filter`, or the reason why there is none. `force`
/// (m) skips the estimates.
struct WinogradChoice {
  std::optional<WinogradPlan> plan;
  WinogradRefusal refusal = WinogradRefusal::None;
};
WinogradChoice chooseWinograd(kernel::ConvOp op, const Tensor &filter, const KernelTarget &target, int64_t force = 0);

/// How a convolution that could be computed from bf16 operands by AVX512_BF16 is done fastest, by the
/// estimates: directly, in f32 by Winograd's algorithm, which multiplies as little as a fourth as often, or
/// by F(2,3) along each direction from transformed operands rounded to bf16. (More than four points, as of
/// F(4,3), would make their errors ten times as large.) `filter` reads the constant filter.
struct Bf16Choice {
  bool winogradF32 = false;
  std::optional<WinogradPlan> paired;
};
Bf16Choice chooseBf16(kernel::ConvOp op, const KernelTarget &target, llvm::function_ref<mlir::FailureOr<Tensor>()> filter);

/// A filter [height, width, ic, oc] of f32, f16, bf16, i8 or i16 transformed (in double) and packed as
/// [ceil(oc / panel) / panelsPerUnit, points, panelsPerUnit, ic, panel].
Tensor transformFilter(const Tensor &filter, const WinogradPlan &plan);
/// The same rounded to bf16, as pairs of input channels: [..., ic / 2, 2 * panel].
Tensor pairFilter(const Tensor &transformed);
/// A filter of i8 or i16 transformed, times two for each direction of several taps, as i16 in pairs of input channels:
/// [..., ceil(ic / 2), 2 * panel], with zeros behind an odd number of them.
Tensor transformIntegerFilter(const Tensor &filter, const WinogradPlan &plan);

/// Largest error of sampled results as a share of their largest magnitude, from pseudo-random inputs in f32
/// against double: what this filter loses with tiles of m pixels a direction.
double sampleWinogradError(const Tensor &filter, int64_t m);

/// The kernel of a convolution whose filter is packed for Winograd.
mlir::LogicalResult emitWinograd(kernel::ConvOp op, KernelBuilder &b);

} // namespace lathe::cpu

#endif
