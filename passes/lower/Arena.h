// Packs buffers with known life times into one block of memory.
#ifndef LATHE_PASSES_LOWER_ARENA_H
#define LATHE_PASSES_LOWER_ARENA_H

#include "mlir/IR/AffineExpr.h"
#include <cstdint>
#include <utility>
#include <vector>

namespace lathe::lower {

struct ArenaItem {
  int64_t begin, end; ///< closed interval of positions
  int64_t size;       ///< bytes (or multiples of a run-time unit)
  int64_t offset;     ///< result, a multiple of 64
};

/// Sets the offsets so that items alive at the same time do not overlap; returns the bytes used. Deterministic.
int64_t placeItems(std::vector<ArenaItem> &items);

/// `bytes` as unit * factor with a constant factor of at least 64 (rounded up if need be); the unit of a constant is 1.
std::pair<mlir::AffineExpr, int64_t> splitFactor(mlir::AffineExpr bytes);

} // namespace lathe::lower

#endif
