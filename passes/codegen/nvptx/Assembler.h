// NVIDIA's assembler ptxas, a program that only --cubin and listings of kernels need: machine code from PTX.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_ASSEMBLER_H
#define LATHE_PASSES_CODEGEN_NVPTX_ASSEMBLER_H

#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace lathe::nvptx {

/// The program: what LATHE_PTXAS names, else ptxas in PATH, else in bin/ of CUDA_HOME.
std::optional<std::string> findAssembler();
/// Its version, "13.0.88".
llvm::Expected<std::string> assemblerVersion(const std::string &program);

struct Assembled {
  std::string code; ///< an ELF file
  std::string log;  ///< registers and memory of each kernel (-v)
};
/// Machine code of `ptx` for `target` ("sm_90"). Same text, target and version: same bytes.
llvm::Expected<Assembled> assemble(const std::string &program, llvm::StringRef ptx, llvm::StringRef target);

} // namespace lathe::nvptx

#endif
