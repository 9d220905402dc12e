// Passes of the seam itself; those of a backend lie in its folder.
#ifndef LATHE_PASSES_CODEGEN_PASSES_TD
#define LATHE_PASSES_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def KernelSetTarget : Pass<"kernel-set-target", "::mlir::ModuleOp"> {
  let summary = "Says what the module is compiled for.";
  let description = [{
    Sets the attribute `lathe.target` (passes/codegen/Target.h), which passes behind it read. `lathe` sets it from its
    options; this is for tests and for `lathe-opt`.
  }];
  let options = [
    Option<"backend", "backend", "std::string", /*default=*/"\"\"", "who emits kernels, by name; empty: the default one">,
    Option<"triple", "triple", "std::string", /*default=*/"\"x86_64-unknown-linux-gnu\"", "target triple">,
    Option<"cpu", "cpu", "std::string", /*default=*/"\"\"", "LLVM's name of the CPU, for messages">,
    Option<"features", "features", "std::string", /*default=*/"\"+avx,+avx2,+fma,+f16c\"", "features of the CPU, resolved">,
    Option<"threads", "threads", "int", /*default=*/"1", "threads that share a kernel">,
    Option<"exact", "exact", "bool", /*default=*/"false", "no algorithm that trades accuracy for speed">,
    Option<"bf16", "bf16", "bool", /*default=*/"false", "products and convolutions of bf16 operands, where the processor has them">
  ];
}

#endif
