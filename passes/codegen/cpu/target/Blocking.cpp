#include "passes/codegen/cpu/target/Blocking.h"
#include <cmath>

using namespace mlir;

namespace lathe::cpu {
namespace {

constexpr int64_t wantedUnits = 32;

/// Cycles of the thread that runs units [first, last) and whose rows of other kernels are [home, homeEnd).
double threadCycles(const KernelTarget &target, const BlockedWork &w, int64_t perBlock, int64_t first, int64_t last,
                    int64_t home, int64_t homeEnd) {
  const int64_t blocks = llvm::divideCeil(w.rows, perBlock);
  const bool stays = w.panels * w.panelBytes <= target.ofL2(target.l2Rows);
  double cycles = 0;
  bool warm = false;
  for (int64_t g = first / w.panels; g * w.panels < last; ++g) {
    int64_t panels = std::min(last, (g + 1) * w.panels) - std::max(first, g * w.panels);
    const int64_t at = firstOfBlock(g % blocks, blocks, w.rows), rows = firstOfBlock(g % blocks + 1, blocks, w.rows) - at;
    const int64_t row = g / blocks * w.rows + at;
    cycles += panels * combined(rows * w.rowCycles, w.panelBytes / (warm && stays ? target.warmBytes : target.coldBytes));
    int64_t near = std::max<int64_t>(0, std::min(row + rows, homeEnd) - std::max(row, home));
    cycles += rows * w.enterCycles + (rows - near) * w.rowBytes / target.remoteBytes;
    warm = true;
  }
  return cycles;
}

} // namespace

int64_t rowsPerBlock(const KernelTarget &target, const BlockedWork &w, int64_t most) {
  const int64_t threads = std::max(target.threads, 1);
  if (w.rows <= 0)
    return 1;
  // blocks of fewer rows keep more of the left operand near; below four rows a panel is fetched for too little
  int64_t least = llvm::divideCeil(w.rows, std::max<int64_t>(1, std::min(most, w.rows)));
  const double others = std::max(1.0, double(w.outer) * w.panels);
  if (others * least < wantedUnits)
    least = std::max(least, std::min<int64_t>(std::ceil(wantedUnits / others), w.rows / 4));
  // plenty of work outside of the rows shares evenly as it is
  if (threads == 1 || w.outer >= 16 * threads)
    return llvm::divideCeil(w.rows, least);
  int64_t best = 0;
  double bestCycles = 0;
  for (int64_t count = least; count <= std::min(w.rows, std::max(least, 8 * threads)); ++count) {
    const int64_t perBlock = llvm::divideCeil(w.rows, count);
    if (perBlock == best)
      continue;
    const int64_t units = w.outer * llvm::divideCeil(w.rows, perBlock) * w.panels, rows = w.outer * w.rows;
    double slowest = 0;
    for (int64_t t = 0; t < threads; ++t)
      slowest = std::max(slowest, threadCycles(target, w, perBlock, units * t / threads, units * (t + 1) / threads,
                                               rows * t / threads, rows * (t + 1) / threads));
    if (best == 0 || slowest < 0.99 * bestCycles) {
      best = perBlock;
      bestCycles = slowest;
    }
  }
  return best;
}

int64_t vectorsPerStrip(int64_t vectors, int64_t most, int64_t threads) {
  threads = std::max<int64_t>(threads, 1);
  auto largestShare = [&](int64_t strip) {
    return std::min<int64_t>(vectors, strip * llvm::divideCeil(llvm::divideCeil(vectors, strip), threads));
  };
  int64_t best = most;
  for (int64_t strip = most - 1; strip > 0; --strip)
    if (largestShare(strip) < largestShare(best))
      best = strip;
  return best;
}

} // namespace lathe::cpu
