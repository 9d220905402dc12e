// See Special.h.
#include "passes/codegen/cpu/Special.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace lathe::cpu {

bool chooseSpecial(KernelBuilder &b, Operation *op, llvm::StringRef form, const WhyNot &why) {
  const remark::RemarkOpts options = remark::RemarkOpts::name(form).category("kernel").function(b.func.getName());
  if (why.takes()) {
    remark::passed(op->getLoc(), options);
    return true;
  }
  if (!why.isFallback())
    return false;
  remark::missed(op->getLoc(), options) << remark::reason("{0}", why.reason());
  b.func->setAttr(fallbackAttribute, b.getI64IntegerAttr(b.attribute(fallbackAttribute) + 1));
  return false;
}

} // namespace lathe::cpu
