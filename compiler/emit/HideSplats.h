// Works around a wrong instruction that LLVM 22 selects for AVX-512.
#ifndef LATHE_COMPILER_EMIT_HIDESPLATS_H
#define LATHE_COMPILER_EMIT_HIDESPLATS_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace lathe {

/// Hides splats of one element of eight i64 that are factors of products, where `machine` has 512-bit vectors: of a product of which only the
/// first two lanes are read LLVM narrows its operands, and what was element 1 everywhere becomes element 0 if both factors are known to be
/// sign-extended from 32 bits (vpmuldq). Runs behind all other passes. An empty piece of assembly costs nothing.
void hideSplats(llvm::Module &module, const llvm::TargetMachine &machine);

} // namespace lathe

#endif
