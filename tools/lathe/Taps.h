// Taps for lathe verify: the results of every kernel become outputs, those inside loops and branches too, without
// changing what is fused.
#ifndef LATHE_TOOLS_LATHE_TAPS_H
#define LATHE_TOOLS_LATHE_TAPS_H

#include "base/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace lathe::cli {

/// One output behind the function's own.
struct Tap {
  std::string node; ///< empty for values that are no kernel's result: what a loop's body started from
  std::string kernel; ///< the op, and the other nodes that it computes
  int inLoop = 0; ///< depth; inside a loop the tap holds what its last turn computed
  bool rounds = false; ///< the kernel makes integers of floats, so that a last bit may decide between two of them
};

/// Adds the taps to a function of kernels, in program order. Values of a loop's body are carried out of it (zeros if it
/// never turns); those whose size is known at run time only, and kernels of a loop's condition, are left out.
std::vector<Tap> addTaps(mlir::func::FuncOp main);

/// What became of the kernels that were judged by themselves.
struct Judgement {
  int wrong = -1; ///< the first tap whose kernel computes something else; -1 if there is none
  bool complete = true; ///< all suspects were judged: the operands of each are known
};

/// Looks for a kernel that computes something else than the evaluator on the operands that it had, going by the compiled
/// taps (`first` of them are the function's own outputs): where a difference arose, in whatever turn. Only taps that are
/// suspect are looked at: those of a branch not taken hold zeros. `main` has taps, and its kernels are not expanded.
Judgement judgeKernels(mlir::func::FuncOp main, llvm::ArrayRef<Tensor> inputs, llvm::ArrayRef<Tensor> outputs, size_t first,
                       llvm::function_ref<bool(int tap)> suspect,
                       llvm::function_ref<bool(int tap, const Tensor &got, const Tensor &want)> differs);

/// Negates a result of the first op inside a kernel that stands for the node: a wrong lowering, for tests. False if
/// the node has no such op.
bool injectFault(mlir::func::FuncOp main, llvm::StringRef node);

} // namespace lathe::cli

#endif
