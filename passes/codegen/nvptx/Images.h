// Which images an object holds, and what is in one.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_IMAGES_H
#define LATHE_PASSES_CODEGEN_NVPTX_IMAGES_H

#include "passes/codegen/Backend.h"

namespace lathe::nvptx {

/// An architecture that code is made for.
struct Arch {
  const char *name; ///< "sm_90a"
  int number;       ///< 90
  const char *isa;  ///< the least PTX that knows it, as LLVM's feature: the more drivers take it
  bool own() const { return llvm::StringRef(name).ends_with("a"); } ///< its code runs on no other
};

/// The one that always is there.
const Arch &portableArch();
/// Null for what is not known.
const Arch *findArch(llvm::StringRef name);

/// The architecture that kernels have a form of their own for, and what the name of its function ends with: Form::emitHopper.
constexpr llvm::StringLiteral hopperArch = "sm_90a", hopperSuffix = "_sm_90a";

/// What keeps the wishes of --arch and --cubin from being granted, or nothing.
std::string refuseImages(const codegen::Processor &processor);

/// The images of `processor`, the portable one first, of functions in the LLVM dialect that `launches` names; sets their blocks. Needs the
/// translations of the builtin and LLVM dialects, which the context's registry gets here.
mlir::FailureOr<std::vector<codegen::Image>> makeImages(mlir::ModuleOp kernels, llvm::MutableArrayRef<codegen::Launch> launches,
                                                        const codegen::Processor &processor);

/// What PTX text says of its kernels, and ptxas of their registers where it is installed.
std::vector<codegen::KernelFacts> kernelFacts(const codegen::Image &image);

} // namespace lathe::nvptx

#endif
