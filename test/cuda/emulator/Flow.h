// Blocks of a function, where branches that part come together again, and which registers may be read before
// they are written.
#ifndef LATHE_TEST_CUDA_EMULATOR_FLOW_H
#define LATHE_TEST_CUDA_EMULATOR_FLOW_H

#include "test/cuda/emulator/Ptx.h"

namespace lathe::emu {

struct BasicBlock {
  size_t begin = 0, end = 0; ///< statements
  std::vector<size_t> next;  ///< blocks
  long join = -1;            ///< the block that all ways to the end lead through, -1: none
};

class Flow {
public:
  /// Throws PtxError for a branch to a label that is not there.
  explicit Flow(const PtxFunction &function);

  std::vector<BasicBlock> blocks;
  std::vector<size_t> blockOf; ///< by statement
  /// Whether lanes can part at the end of that block.
  bool parts(size_t block) const { return blocks[block].next.size() > 1; }
  size_t blockAt(const std::string &label, int line) const;

private:
  const PtxFunction &function;
  void findBlocks();
  void findJoins();
};

/// What a statement reads and writes; numbers of registers.
struct Uses {
  std::vector<uint32_t> reads, writes;
  bool conditional = false; ///< writes happen under a guard
};

/// For each statement the registers it reads that some way to it leaves unwritten.
std::vector<std::vector<uint32_t>> maybeUndefined(const Flow &flow, const std::vector<Uses> &uses,
                                                  uint32_t registers);

} // namespace lathe::emu

#endif
