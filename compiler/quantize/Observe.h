// Observers: from the values of calibration runs to the ranges that parameters are chosen for.
#ifndef LATHE_COMPILER_QUANTIZE_OBSERVE_H
#define LATHE_COMPILER_QUANTIZE_OBSERVE_H

#include "compiler/quantize/Feeds.h"
#include "compiler/quantize/Quantize.h"

namespace lathe::quantize {

/// Runs a module made from a clone of the function's; false (said) where it cannot be compiled or a run fails. `seen` gets each
/// feed's results. `times`: those of the kernels.
mlir::LogicalResult runOn(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::ArrayRef<Feed> feeds, const Session &session,
                          llvm::function_ref<void(size_t, std::vector<Tensor> &)> seen, std::vector<KernelTime> *times = nullptr,
                          bool forTarget = false);

/// Whether the ends of ranges are those that are expected of inputs to come (Tail.h): where a bound on errors is asked for, and with 16 bits.
bool widensRanges(const QuantizeOptions &options);

/// Sets hlo.ranges on the chosen units of the module's function, from `feeds`. `outside`: the share of ranges that one of `others` leaves, a
/// mean over these; without others, where ranges are widened, that which each feed leaves of those made from the rest.
mlir::LogicalResult observe(mlir::func::FuncOp function, llvm::ArrayRef<Feed> feeds, llvm::ArrayRef<Feed> others, const Session &session,
                            double &outside);

/// The ends of the range that an observer takes from a histogram of equal bins over [low, high].
std::pair<double, double> percentileRange(llvm::ArrayRef<int64_t> bins, double low, double high, double share);
std::pair<double, double> entropyRange(llvm::ArrayRef<int64_t> bins, double low, double high);

} // namespace lathe::quantize

#endif
