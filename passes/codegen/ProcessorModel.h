// What estimates know of a processor beyond its instructions: sizes of caches, rates of memory, and how long threads take
// to meet. Every number of ours of this kind is here or in the table of ProcessorModel.cpp, with where it comes from;
// generators and passes name the field that they mean.
#ifndef LATHE_PASSES_CODEGEN_PROCESSORMODEL_H
#define LATHE_PASSES_CODEGEN_PROCESSORMODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <numeric>

namespace lathe::codegen {

struct ProcessorModel {
  llvm::StringRef name = "generic"; ///< the row of the table

  // The caches of a core, in bytes. Ways are what the processor has; all from the makers' manuals.
  int64_t l1 = 32 << 10, l2 = 1 << 20;
  int64_t l1Sets = 64, l1Ways = 8, cacheLine = 64;

  // Cycles.
  double fmas = 2;                ///< multiply-adds of whole vectors a cycle, and loads from the first cache
  bool fastDivision = false;      ///< of 16 floats: it takes less than an estimate and Newton's step
  int64_t memoryLatency = 400;    ///< until a line comes from memory
  double meeting = 2200;          ///< until all threads have begun a kernel and are done with it, beyond their work
  double recurrentElement = 0.6;  ///< an element of elementwise code in recurrent steps, mostly exponentials

  // Bytes a cycle that one core reads; measured on server cores (docs/performance.md).
  double streamBytes = 4;         ///< of weights, from beyond L2
  double coldBytes = 6;           ///< of panels, from memory or the last cache
  double warmBytes = 40;          ///< of panels, from its own caches
  double remoteBytes = 8;         ///< of rows that another core wrote
  double keptBytes = 28;          ///< of a loop's weights that stay in its own cache, from turn to turn
  double fetchedBytes = 8;        ///< of a loop's weights that do not

  /// Sets of the first cache that lines so many bytes apart fall into.
  int64_t l1SetsBetween(int64_t bytes) const {
    return bytes % cacheLine ? l1Sets : l1Sets / std::gcd(l1Sets, bytes / cacheLine);
  }
};

/// The table's row for a processor with these LLVM features ("+avx,+fma,..."); features and not names decide, so that
/// `--cpu host` and `--cpu znver4` make the same code.
const ProcessorModel &modelOf(llvm::StringRef triple, llvm::StringRef features);
/// All rows.
llvm::ArrayRef<ProcessorModel> processorModels();

/// Whether a feature is switched on at the end of the list.
bool hasFeature(llvm::StringRef features, llvm::StringRef name);

} // namespace lathe::codegen

#endif
