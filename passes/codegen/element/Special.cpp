// See Special.h.
#include "passes/codegen/element/Special.h"

#include "passes/codegen/Backend.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace lathe::codegen {

/// Notes a fallback on `noted`, which is a kernel op or the function of one. That a form is not meant for an op is an analysis, not
/// something missed: who asks for these remarks sees each answer.
static bool choose(Operation *noted, Location loc, llvm::StringRef kernel, llvm::StringRef form, const WhyNot &why) {
  const remark::RemarkOpts options = remark::RemarkOpts::name(form).category("kernel").function(kernel);
  if (why.takes()) {
    remark::passed(loc, options);
    return true;
  }
  if (!why.isFallback()) {
    remark::analysis(loc, options) << remark::reason("{0}", why.reason());
    return false;
  }
  remark::missed(loc, options) << remark::reason("{0}", why.reason());
  SmallVector<Attribute> all;
  if (auto before = noted->getAttrOfType<ArrayAttr>(fallbackAttribute))
    all.append(before.begin(), before.end());
  Attribute text = StringAttr::get(noted->getContext(), form + ": " + why.reason());
  if (!llvm::is_contained(all, text)) { // once, however often it is asked
    all.push_back(text);
    noted->setAttr(fallbackAttribute, ArrayAttr::get(noted->getContext(), all));
  }
  return false;
}

bool chooseSpecial(Operation *op, llvm::StringRef form, const WhyNot &why) {
  return choose(op, op->getLoc(), op->getName().getStringRef(), form, why);
}

bool chooseSpecial(KernelBuilder &b, llvm::StringRef form, const WhyNot &why) {
  return choose(b.func, b.getLoc(), b.func.getName(), form, why);
}

} // namespace lathe::codegen
