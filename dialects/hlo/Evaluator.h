// The reference evaluator: any hlo op on host tensors, any element type, precise rather than fast; used for folding and
// by `lathe verify`. Sizes that depend on data are allowed. Errors are emitted at the op.
#ifndef LATHE_DIALECTS_HLO_EVALUATOR_H
#define LATHE_DIALECTS_HLO_EVALUATOR_H

#include "base/Tensor.h"
#include "dialects/hlo/Hlo.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>

namespace lathe::hlo {

struct EvalOptions {
  /// Bytes of results alive at a time (one op's results for evaluateOp).
  int64_t maxBytes = int64_t(8) << 30;
  /// Iterations of all loops together.
  int64_t maxIterations = int64_t(1) << 32;
  /// Rough limit on scalar operations, for folding; -1 for none.
  int64_t maxWork = -1;
  /// Values of symbols for evaluateOp, -1 for unknown; evaluateFunction finds them from the inputs.
  std::vector<int64_t> symbols;
  /// Sees each op's results in a function's top block after it ran.
  std::function<void(mlir::Operation *, llvm::ArrayRef<Tensor>)> tap;
  /// No diagnostics on failure.
  bool silent = false;
};

/// Results of one op (with its regions) on operands; values captured by regions must be constants.
mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateOp(mlir::Operation *op, llvm::ArrayRef<Tensor> operands,
                                                      const EvalOptions &options = {});

/// Results of a function. A failed hlo.check is an error with its message.
mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateFunction(mlir::func::FuncOp function,
                                                            llvm::ArrayRef<Tensor> inputs,
                                                            const EvalOptions &options = {});

} // namespace lathe::hlo

#endif
