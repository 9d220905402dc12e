#include "passes/codegen/cpu/target/CpuTarget.h"

#include "passes/codegen/Target.h"

#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace lathe::cpu {

codegen::KernelTarget cpuTarget(const codegen::Processor &processor) {
  codegen::KernelTarget target = codegen::KernelTarget::get(processor.triple, processor.features);
  target.amxBf16 &= llvm::Triple(llvm::Triple::normalize(processor.triple)).isOSLinux(); // the permission is asked for as Linux wants it
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
