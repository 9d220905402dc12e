// The shapes of register tiles: rows, vectors of columns and interleaved steps, by estimates.
#include "passes/codegen/cpu/product/Tile.h"

using namespace mlir;

namespace lathe::cpu {

unsigned maxTileRows(const KernelTarget &target, unsigned vecs) {
  // AVX-512 multiplies by a broadcast memory operand; elsewhere the broadcast takes a register, and without fused
  // multiply-add the product another one.
  int free = target.numVectorRegs - vecs;
  if (target.neon) // four steps of each row lie in a register, from where lanes are multiplied
    return std::clamp<int>((free - 1) / static_cast<int>(vecs + 1), 1, 12);
  if (!target.avx512)
    free -= target.fma ? 1 : 3;
  int rows = std::max(1, free / static_cast<int>(vecs));
  // two registers of slack at 14 x 2: measured, 28 accumulators with 14 row addresses still fit
  return std::min<unsigned>(rows, target.avx512 ? 13 : 12);
}

TileShape chooseTile(const KernelTarget &target, Type accElem, std::optional<int64_t> rows, std::optional<int64_t> columns) {
  TileShape best;
  best.lanes = std::max(1u, target.lanes(accElem));
  if (best.lanes == 1) {
    best.rows = rows ? std::min<int64_t>(*rows, 4) : 4;
    return best;
  }
  // Cycles per step of the reduction: two multiply-adds or two loads a cycle, or one, and no less than the
  // latency of the accumulators allows; columns beyond the last one are wasted work.
  const double each = 1 / target.fmas;
  double bestCost = 0;
  for (unsigned vecs : {2u, 3u, 4u, 1u}) {
    unsigned height = maxTileRows(target, vecs);
    if (vecs != 1 && (height * vecs < 8 || (columns && *columns <= (vecs - 1) * best.lanes)))
      continue;
    unsigned width = vecs * best.lanes;
    int64_t m = rows.value_or(1000), n = columns.value_or(1000 * width);
    int64_t panels = n / width, tail = llvm::divideCeil(n % width, best.lanes);
    RowTiles split(std::max<int64_t>(m, 1), height);
    // where every multiply-add loads its own factor, two a cycle are not reached
    const double single = std::max(each, target.ownFactor);
    // Eight sums just hide the latency of multiply-adds if none is ever late: a few rows want wide tiles. 4 x 128 x 512
    // takes 0.87 of the time with 16 sums, 0.94 with 6 x 4 instead of 6 x 2.
    auto slack = [&](double sums) {
      sums *= 2 * each;
      return !target.avx512 || m > 6 || sums >= 16 ? 1 : sums >= 12 ? 1.05 : sums >= 8 ? 1.1 : 1.2;
    };
    auto tileCost = [&](double r, double v) {
      return (std::max({r * v * (v == 1 ? single : each), r / 2 + v * each, target.fmaLatency / 2.0}) +
              0.04 * each * v * 8 / (r + 1)) *
             slack(r * v);
    };
    double cost = 0;
    for (auto [r, count] : {std::pair(split.low + 1, split.numHigh), std::pair(split.low, split.numTiles - split.numHigh)}) {
      cost += count * panels * tileCost(r, vecs);
      if (tail)
        cost += count * tileCost(r, tail);
    }
    if (bestCost == 0 || cost < bestCost * 0.97) {
      bestCost = cost;
      best.vecs = vecs;
      best.rows = rows ? split.height : height;
    }
  }
  return best;
}

TileShape chooseTile(const KernelTarget &target, Type accElem, std::optional<int64_t> rows, std::optional<int64_t> columns,
                     const KernelPlan &plan) {
  TileShape tile = chooseTile(target, accElem, rows, columns);
  if (tile.lanes == 1 || (!plan.vecs && !plan.rows))
    return tile;
  if (plan.vecs) {
    tile.vecs = *plan.vecs;
    tile.rows = maxTileRows(target, tile.vecs);
  }
  if (plan.rows)
    tile.rows = *plan.rows;
  if (rows)
    tile.rows = RowTiles(std::max<int64_t>(*rows, 1), tile.rows).height;
  return tile;
}

/// Rows beside `vecs` vectors of interleaved steps: a row's factors take a register.
static unsigned maxInterleavedRows(const KernelTarget &target, unsigned vecs) {
  return std::clamp<int>((target.numVectorRegs - 1) / static_cast<int>(vecs) - 1, 1, 13);
}

WhyNot whyNotFewColumns(const KernelTarget &target, const ProductTypes &types, std::optional<int64_t> rows, int64_t columns, int64_t depth,
                        bool padded, TileShape &tile) {
  // A few rows wait for the weights anyway, unless most of a vector would be padding.
  constexpr int64_t mostVecs = 6, leastRows = 8, fewColumns = 8;
  const Type accElem = types.acc;
  const int64_t m = rows.value_or(1000), lanes = target.lanes(accElem);
  if (lanes == 1 || depth <= 0 || (columns > fewColumns && (m < leastRows || depth > 1024)))
    return WhyNot::notMeant("columns are many, rows few, or there are no vectors");
  if (!types.left.isF32() || !types.right.isF32() || !accElem.isF32())
    return isa<FloatType>(accElem) && columns <= fewColumns ? WhyNot::lacks("operands or sums are not f32")
                                                            : WhyNot::notMeant("operands or sums are not f32");
  padded &= target.hasMaskedMemory(accElem);
  const TileShape plain = chooseTile(target, accElem, rows, columns);
  const double each = 1 / target.fmas;
  // cycles a row and step
  auto cycles = [&](int64_t vecs, int64_t steps, unsigned height) {
    const double r = RowTiles(m, height).height,
                 loads = (steps == 1 && vecs == 1 ? std::max(each, 0.69) : each) * r * vecs;
    double fold = 0;
    for (int64_t s = steps, v = vecs; s > 1; s /= 2)
      fold += 3 * each * r * (v = llvm::divideCeil(v, 2));
    const double padding = double(llvm::alignTo(depth, steps)) / depth;
    return (std::max({loads, r / 2 + vecs * each, target.fmaLatency / 2.0}) / steps * padding + fold / depth) / r;
  };
  std::optional<TileShape> best;
  double limit = 0.93 * llvm::divideCeil(columns, plain.columns()) * cycles(plain.vecs, 1, plain.rows);
  // Only AVX-512 repeats some floats over a vector as it loads them; whole vectors everything loads.
  for (unsigned steps = target.avx512 ? 2 : lanes; steps <= lanes; steps *= 2) {
    const int64_t vecs = llvm::divideCeil(columns * steps, lanes);
    if (depth < steps || (depth % steps && !padded) || vecs > mostVecs)
      continue;
    const unsigned height = maxInterleavedRows(target, vecs);
    if (const double c = cycles(vecs, steps, height); c < limit) {
      limit = c * 0.97;
      best = TileShape{rows ? RowTiles(m, height).height : height, static_cast<unsigned>(vecs),
                       static_cast<unsigned>(lanes), steps};
    }
  }
  if (!best)
    return WhyNot::notMeant("a step of the sum fills vectors as well");
  tile = *best;
  return WhyNot::none();
}

TileShape panelTile(const KernelTarget &target, Type accElem, int64_t panel, std::optional<int64_t> rows,
                    const KernelPlan &plan, unsigned steps) {
  TileShape tile;
  tile.lanes = std::max(1u, target.lanes(accElem));
  tile.steps = steps;
  while (panel * steps % tile.lanes)
    tile.lanes /= 2;
  tile.vecs = panel * steps / tile.lanes;
  tile.rows = plan.rows   ? *plan.rows
              : steps > 1 ? maxInterleavedRows(target, tile.vecs)
                          : maxTileRows(target, tile.vecs);
  if (rows)
    tile.rows = RowTiles(std::max<int64_t>(*rows, 1), tile.rows).height;
  return tile;
}

} // namespace lathe::cpu
