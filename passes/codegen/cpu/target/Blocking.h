// How many rows of a product or convolution make a block of work.
#ifndef LATHE_PASSES_CODEGEN_CPU_TARGET_BLOCKING_H
#define LATHE_PASSES_CODEGEN_CPU_TARGET_BLOCKING_H

#include "passes/codegen/cpu/Emit.h"

#include <algorithm>

namespace lathe::cpu {

/// Work whose units are numbered (outer, block of rows, panel), the panel innermost. Rows are whatever a block is made
/// of: register tiles, or rows of an image.
struct BlockedWork {
  int64_t outer = 1;         ///< batches, images
  int64_t rows = 1;          ///< in each of them
  int64_t panels = 1;
  double rowCycles = 1;      ///< arithmetic for one row of one panel
  double rowBytes = 0;       ///< of the left operand in a row
  double panelBytes = 0;
  double enterCycles = 0;    ///< for each row of a block that a thread enters: what it copies or transforms
};

/// Rows of a block, at most `most`, such that the slowest thread of `target.threads` is done soonest: each takes a run
/// of the units, reads panels from memory and again from a cache, and fetches rows that another one's run of the
/// kernel before is likely to have written. Larger blocks where that is equal. The blocks that these make share the rows
/// evenly, see firstOfBlock.
int64_t rowsPerBlock(const KernelTarget &target, const BlockedWork &work, int64_t most);

/// Where block `block` of the `blocks` begins, and the one before it ends, that share `rows` rows evenly.
inline int64_t firstOfBlock(int64_t block, int64_t blocks, int64_t rows) { return block * rows / blocks; }
inline mlir::Value firstOfBlock(KernelBuilder &b, mlir::Value block, int64_t blocks, int64_t rows) {
  return rows % blocks == 0 ? b.mul(block, b.i64(rows / blocks)) : b.divU(b.mul(block, b.i64(rows)), b.i64(blocks));
}

/// Vectors of a strip, at most `most`, when `threads` share the strips of `vectors` vectors: as many as leave no thread
/// more than another size would.
int64_t vectorsPerStrip(int64_t vectors, int64_t most, int64_t threads);

/// Cycles of arithmetic and of traffic together: most of the traffic is hidden behind the arithmetic.
inline double combined(double compute, double traffic) {
  return std::max(compute, traffic) + 0.25 * std::min(compute, traffic);
}

} // namespace lathe::cpu

#endif
