#ifndef LATHE_PASSES_CODEGEN_CPU_PASSES_TD
#define LATHE_PASSES_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def PackWeights : Pass<"kernel-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Lay constant operands of products and convolutions out in panels";
  let description = [{
    Rewrites the constant right operand of `kernel.dot` and the constant filter of `kernel.conv` to zero-padded
    panels `[n / panel][k][panel]` in the order in which the register tiles of the target read them, and sets `panel`.
    Equal constants are packed once. Operands of unknown size, complex ones and those that are not constant stay
    as they are. Packed ops are left alone, so the pass is idempotent.
  }];
  let options = [
    Option<"triple", "triple", "std::string", "\"x86_64-linux-gnu\"", "Target triple">,
    Option<"features", "features", "std::string", "\"\"", "LLVM feature string of the target, e.g. +avx2,+fma">
  ];
  let statistics = [
    Statistic<"numPacked", "num-packed", "Operands that were packed">
  ];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect"];
}

#endif
