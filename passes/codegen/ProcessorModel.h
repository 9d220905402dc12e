// What estimates know of a processor beyond its instructions: what its units do in a cycle, its caches, rates of memory, how
// much of a cache a plan may count on, and how long threads take to meet. Each number of this kind stands here, with where
// it comes from; the table in ProcessorModel.cpp has what differs between processors. Generators and passes name the field
// that they mean.
//
// The defaults are those of the row "generic". "Fitted" is a number that was chosen so that estimates order measured kernels as
// the machines did; it holds for the code of this compiler and not for the hardware alone.
#ifndef LATHE_PASSES_CODEGEN_PROCESSORMODEL_H
#define LATHE_PASSES_CODEGEN_PROCESSORMODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <numeric>

namespace lathe::codegen {

/// Cycles of the parts of Winograd convolutions, for vectors that two multiply-adds a cycle are done of. Fitted on Zen 4.
struct WinogradRates {
  double in4 = 170, in2 = 50;     ///< a vector of an input tile, F(4, 3) and F(2, 3) both ways
  double out4 = 250, out2 = 90;   ///< a vector of a result tile, with its epilogue
  double step = 0.8, pixel = 11;  ///< of other tiles: an instruction of a transform, and a pixel's epilogue
  double spills = 1.4;            ///< how much longer transforms take with 16 vector registers
  double overhead = 1.08;         ///< of the products, beside their multiply-adds
};

/// Cycles of the parts of Strassen's algorithm, by which `fmas` of 2 are multiplied. Fitted on Zen 4 and a Xeon.
struct StrassenRates {
  double rowSum = 1.6;            ///< a vector of each product's left operand
  double panelSum = 2;            ///< a vector of a sum of panels
  double tile = 10, tileAgain = 25; ///< a vector of a result beside its sum; where blocks of the sum add to it
};

struct ProcessorModel {
  llvm::StringRef name = "generic"; ///< the row of the table
  /// The processor whose scheduling model in LLVM has this row's latencies and ports; a test compares them.
  llvm::StringRef schedule;

  // --- units
  double fmas = 2;               ///< multiply-adds of whole vectors a cycle, and loads from the first cache
  int64_t fmaLatency = 4;        ///< cycles
  double division = 10;          ///< cycles that 16 divisions of f32 keep the divider
  double ownFactor = 0.69;       ///< cycles of a multiply-add that loads its own factor; measured: 72 % of two a cycle
  /// Whether a division takes less than an estimate and Newton's step; measured with 6 and 10.
  bool fastDivision() const { return division < 8; }

  // --- the caches of a core in bytes, from the makers' manuals
  int64_t l1 = 32 << 10, l2 = 1 << 20;
  int64_t l1Sets = 64, cacheLine = 64;
  int64_t l1Ways = 8;            ///< that a window's lines may fill; what has twelve keeps the rest for results and filters
  int64_t sharedCache = 16 << 20; ///< of the last cache: half of what a few cores of a server share

  // --- how much of L2 a plan fills with what is read again; the rest is for what passes through. Fitted.
  double l2Rows = 0.5;           ///< rows of a block, or panels, beside the other operand
  double l2Tiles = 0.75;         ///< the tiles of a block of a plain product, or all of a chain
  double l2Panels = 0.375;       ///< all panels of a product in bf16
  double l2Between = 0.25;       ///< what a kernel of a chain leaves for the next
  double l2Scores = 0.125;       ///< attention's scores, beside keys and values
  double l2Sums = 0.4;           ///< sums that parts of a product add to
  double l2Transformed = 0.6;    ///< pixels that Winograd's algorithm has transformed
  int64_t ofL2(double share) const { return static_cast<int64_t>(static_cast<double>(l2) * share); }

  // --- bytes a cycle that one core reads; measured on server cores while others were idle
  double streamBytes = 4;        ///< of weights, from beyond L2
  double coldBytes = 6;          ///< of panels, from memory or the last cache
  double warmBytes = 40;         ///< of panels, from its own caches
  double remoteBytes = 8;        ///< of rows that another core wrote
  double keptBytes = 28;         ///< of a loop's weights that stay in its own cache from turn to turn
  double fetchedBytes = 8;       ///< of a loop's weights that do not
  double slabBytes = 16;         ///< copied with their border, to where windows are read
  double sumBytes = 32;          ///< of rows that are added before they are multiplied
  double copyWork = 3;           ///< of an element that comes from L2 and returns, in sixteenths of a cycle

  // --- the time that a batch saves a few images at a time, as a share of what its traffic beyond L2 takes. Fitted.
  double keptTraffic = 0.8;      ///< of tensors that then fit L2
  double lessTraffic = 0.4;      ///< of others
  double refetched = 0.25;       ///< lost by reading weights again that are at most half of L2

  // --- cycles
  int64_t memoryLatency = 400;   ///< until a line comes from memory
  double meeting = 2200;         ///< until all threads have begun a kernel and are done with it, beyond their work; measured
  double recurrentElement = 0.6; ///< an element of elementwise code in recurrent steps, mostly exponentials; measured

  WinogradRates winograd;
  StrassenRates strassen;

  /// Sets of the first cache that lines so many bytes apart fall into.
  int64_t l1SetsBetween(int64_t bytes) const {
    return bytes % cacheLine ? l1Sets : l1Sets / std::gcd(l1Sets, bytes / cacheLine);
  }
};

/// The table's row for a processor with these LLVM features ("+avx,+fma,..."): features and not names decide, so that
/// `--cpu host` and `--cpu znver4` make the same code.
const ProcessorModel &modelOf(llvm::StringRef triple, llvm::StringRef features);
/// All rows.
llvm::ArrayRef<ProcessorModel> processorModels();

/// Whether a feature is switched on at the end of the list.
bool hasFeature(llvm::StringRef features, llvm::StringRef name);

} // namespace lathe::codegen

#endif
