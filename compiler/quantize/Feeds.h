// Calibration feeds: arrays from npz files, cut into runs of the model.
#ifndef LATHE_COMPILER_QUANTIZE_FEEDS_H
#define LATHE_COMPILER_QUANTIZE_FEEDS_H

#include "base/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::quantize {

using Feed = std::vector<Tensor>; ///< one tensor an input, in order

/// Reads every npz that `paths` name (all of a folder, by name). An array may hold several runs: of a multiple of the input's
/// leading size, with one more dimension in front, or of any size where that is a run-time one (then at most 32 rows a run).
/// Errors, for all files, name file and input.
mlir::FailureOr<std::vector<Feed>> readFeeds(mlir::func::FuncOp function, const std::vector<std::string> &paths, int64_t maxBytes);

} // namespace lathe::quantize

#endif
