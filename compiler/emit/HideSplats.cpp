#include "compiler/emit/HideSplats.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace lathe {

/// Element k > 0 of eight i64 in every lane, or in none that matters.
static bool isSplat(Value *v) {
  auto *shuffle = dyn_cast<ShuffleVectorInst>(v);
  auto *type = dyn_cast<FixedVectorType>(v->getType());
  if (!shuffle || !type || type->getNumElements() < 8 || !type->getElementType()->isIntegerTy(64))
    return false;
  return getSplatIndex(shuffle->getShuffleMask()) > 0;
}

void hideSplats(Module &module, const TargetMachine &machine) {
  if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx512f"))
    return;
  for (Function &f : module) {
    SmallVector<Use *> factors;
    for (Instruction &i : instructions(f))
      if (i.getOpcode() == Instruction::Mul)
        for (Use &use : i.operands())
          if (isSplat(use))
            factors.push_back(&use);
    for (Use *use : factors) {
      Type *type = (*use)->getType();
      IRBuilder<> b(cast<Instruction>(use->getUser()));
      auto *nothing = InlineAsm::get(FunctionType::get(type, {type}, false), "", "=v,0", /*hasSideEffects=*/false);
      use->set(b.CreateCall(nothing, {use->get()}));
    }
  }
}

} // namespace lathe
