// Post-training quantization of a module of hlo: calibrates it, rewrites it to integers, and measures what that does.
//
// Unit: what is computed in integers as one (passes/quantize/Units.h). Held out: every second feed; they are not calibrated
// with, so that errors measured on them are those of unseen inputs.
#ifndef LATHE_COMPILER_QUANTIZE_QUANTIZE_H
#define LATHE_COMPILER_QUANTIZE_QUANTIZE_H

#include "base/Tensor.h"
#include "compiler/driver/QuantizeOptions.h"
#include "compiler/driver/Runnable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <string>
#include <vector>

namespace lathe::quantize {

/// What a quantization needs of its surroundings.
struct Session {
  QuantizeOptions options;
  int64_t foldBytes = int64_t(1) << 30;
  int64_t maxBytes = int64_t(16) << 30; ///< of feeds
  bool annotate = false;                ///< leave the float model with hlo.quantized on each unit, for an exporter
  MakeRunnable makeRunnable;
  std::function<mlir::LogicalResult(mlir::PassManager &)> configurePassManager;
  std::function<void(const std::string &)> progress;
};

/// One line of the table.
struct UnitReport {
  std::string node, kind;
  bool quantized = true;      ///< else kept float
  int64_t multiplyAdds = 0;
  int64_t floatBytes = 0, bytes = 0; ///< of its weights
  double sqnr = 0;            ///< decibels; of the unit alone, from float inputs; infinite where nothing differs, NaN in loops
  double largestError = 0;    ///< of the unit alone, as a share of its result's range
  double floatSeconds = 0, seconds = 0; ///< of its kernels in the float model and in the final one; NaN where others' kernels do its work
};

/// An output compared with the float model over the held-out feeds.
struct OutputReport {
  std::string name;
  double sqnr = 0;
  double largestError = 0; ///< as a share of the range of the float output over all feeds
  double likelyError = 0;  ///< that 99 of 100 inputs stay below (Tail.h), at least the largest: what --max-error asks about
  std::string law;         ///< the distribution that likelyError was taken from
  bool exact = false;      ///< of integers: largestError is the share of elements that differ
};

/// What the search for --max-error tried.
struct Trial {
  int64_t kept = 0; ///< units kept float
  double largestError = 0, likelyError = 0; ///< the largest of the outputs, as in OutputReport
};

struct Report {
  std::string kind;
  std::vector<UnitReport> units;
  std::vector<OutputReport> outputs;
  int64_t feeds = 0, heldOut = 0;
  int64_t unreached = 0; ///< units that no feed of those calibrated with comes to: they stay float
  double outside = 0; ///< the share of ranges that a held-out feed leaves
  std::vector<Trial> trials; ///< in order; one without --max-error
  double floatSeconds = 0, seconds = 0; ///< of all kernels of the float model and of the final one
  /// The share of all multiply-adds that is computed in integers.
  double share() const;
  std::string text() const;
  std::string json() const;
};

/// Kinds that store weights in fewer bits and need no feeds.
inline bool isWeightsOnly(llvm::StringRef kind) { return kind == "dynamic" || kind == "float16"; }

/// Quantizes the entries of a legalized module in place, or says how on their ops (Session::annotate). Of several, each is calibrated and
/// searched by itself, with the feeds that name it (KEY=PATH; the first one's need not). Errors are diagnostics with the node's name.
mlir::FailureOr<Report> quantizeModule(mlir::ModuleOp module, const Session &session);

/// The same of a module with one entry.
mlir::FailureOr<Report> quantizeEntry(mlir::ModuleOp module, const Session &session);

} // namespace lathe::quantize

#endif
