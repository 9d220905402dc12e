// Graphs around one kernel, for fuzzing the emitters (diff-fuzz --kernels).
#ifndef LATHE_TEST_FUZZ_GENERATEKERNELS_H
#define LATHE_TEST_FUZZ_GENERATEKERNELS_H

#include "GraphGenerator.h"

#include <array>
#include <string>

namespace lathe::fuzz {

class GraphBuilder;

/// What a graph stands for: emitter (empty where none could be made), type, size class, epilogue.
using KernelCell = std::array<std::string, 4>;

/// Whether graphs of an emitter are made of a type: products and convolutions are not made of all integers.
bool kernelTakes(llvm::StringRef emitter, llvm::StringRef type);

/// Adds the function `name` to the module: the op of one emitter and an epilogue, of a size class and a type. Kinds Exact and Real.
Graph generateKernelGraph(mlir::ModuleOp module, llvm::StringRef name, uint64_t seed, Kind kind, KernelCell &cell);

/// The function's results and type: the last value, what nobody reads, and some others.
Graph finishGraph(GraphBuilder &g);

} // namespace lathe::fuzz

#endif
