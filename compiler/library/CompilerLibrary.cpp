// liblathe_compiler.so: the compiler as a library that sessions load at first need. It exports five symbols (exports.map; the others are in
// CompileFiles.cpp and LoadModel.cpp), so that neither MLIR and LLVM, which are in it, nor anything of ours meets the symbols of the
// program that loads it, even where that has MLIR and LLVM too.
#include "compiler/jit/ClusterCompiler.h"

extern "C" const lathe_cluster_compiler *lathe_get_cluster_compiler(void) { return lathe::getClusterCompiler(); }
