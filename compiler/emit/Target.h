// The machine that code is made for: options resolved to LLVM's terms.
#ifndef LATHE_COMPILER_EMIT_TARGET_H
#define LATHE_COMPILER_EMIT_TARGET_H

#include "compiler/emit/Emit.h"
#include "passes/codegen/Target.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace lathe {

struct ResolvedTarget {
  std::string triple, cpu;
  std::string features;    ///< what was asked for, sorted
  std::string allFeatures; ///< everything the CPU has: "+avx,+avx2,..."
  std::string kernelFeatures; ///< those that kernels are made for: the same but in a test with --cpu CPU:OTHER
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<codegen::Backend> backend;

  /// As modules say it, in their attribute lathe.target.
  codegen::Target description(const EmitOptions &options) const;
};

/// LLVM's name of a CPU: "x86-64-v3" for "v3"; others are names already.
std::string fullCpuName(llvm::StringRef name);
/// Diagnoses options that do not fit, those that only code generation reads included.
llvm::Expected<ResolvedTarget> resolveTarget(const EmitOptions &options);

/// The target as tuning files name it: plans for one are none for another.
std::string tuningTarget(const ResolvedTarget &target);

} // namespace lathe

#endif
