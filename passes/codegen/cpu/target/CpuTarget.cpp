#include "passes/codegen/cpu/target/CpuTarget.h"

#include "passes/codegen/Target.h"

#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace lathe::cpu {

bool spellsOutDots(const codegen::Processor &processor) {
  return llvm::StringRef(processor.features).ends_with("+lathe-spells-out-dots");
}

codegen::KernelTarget cpuTarget(const codegen::Processor &processor) {
  codegen::KernelTarget target = codegen::KernelTarget::get(processor.triple, processor.features);
  // the permission is asked for as Linux wants it, and tile registers cannot be written out in plain operations
  const bool tiles = llvm::Triple(llvm::Triple::normalize(processor.triple)).isOSLinux() && !spellsOutDots(processor);
  target.amxBf16 &= tiles;
  target.amxInt8 &= tiles;
  target.threads = processor.threads;
  target.fastBf16 = processor.bf16 && target.avx512bf16;
  return target;
}

FailureOr<ModuleTarget> cpuTargetOf(ModuleOp module) {
  FailureOr<codegen::Target> target = codegen::targetOf(module);
  if (failed(target))
    return failure();
  return ModuleTarget{cpuTarget(target->processor), target->processor};
}

} // namespace lathe::cpu
