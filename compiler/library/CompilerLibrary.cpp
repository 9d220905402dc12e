// liblathe_compiler.so: the compiler as a library that sessions load at first need. Two symbols (the other is in CompileFiles.cpp), so that neither MLIR nor
// anything of ours meets the symbols of the program that loads it.
#include "compiler/jit/ClusterCompiler.h"

extern "C" const lathe_cluster_compiler *lathe_get_cluster_compiler(void) { return lathe::getClusterCompiler(); }
