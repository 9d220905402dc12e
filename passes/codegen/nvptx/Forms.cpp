#include "passes/codegen/nvptx/Forms.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/ElementEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace lathe::nvptx {

static constexpr Form forms[] = {
    {"mma", whyNoMmaProduct, emitMmaProduct},
    {"mma", whyNoMmaConv, emitMmaConv},
    {"tile", whyNoProduct, emitProduct},
    {"skinny", whyNoSkinny, emitSkinny},
    {"tile", whyNoConv, emitConv},
    {"team", whyNoRows, emitRows},
    {"columns", whyNoReduceColumns, emitReduceColumns},
    {"team", whyNoReduceRows, emitReduceRows},
    {"transpose", whyNoTranspose, emitTranspose},
    {"wide", whyNoWide, emitWide},
};

const Form *findForm(Operation *op) {
  for (const Form &form : forms)
    if (form.whyNot(op).empty())
      return &form;
  return nullptr;
}

std::string whyNoEpilogue(Operation *op) {
  if (!kernel::hasCore(op))
    return {};
  Block &body = op->getRegion(0).front();
  llvm::DenseSet<Value> fromSum{body.getArgument(0)};
  for (Operation &inner : body.without_terminator()) {
    if (llvm::none_of(inner.getOperands(), [&](Value v) { return fromSum.contains(v); }))
      continue;
    if (!codegen::isElementwise(&inner))
      return ("its epilogue moves sums: " + inner.getName().getStringRef()).str();
    fromSum.insert(inner.result_begin(), inner.result_end());
  }
  for (Value root : body.getTerminator()->getOperands())
    if (hlo::getDims(hlo::tensorType(root)) != hlo::getDims(hlo::tensorType(body.getArgument(0))))
      return "a result has another shape than the sums";
  return {};
}

LogicalResult storeResults(codegen::KernelBuilder &b, const plain::Elements &elements, Value core, ArrayRef<Value> index, Value sum,
                           Value place) {
  codegen::ElementEmitter &e = *elements.emitter;
  codegen::ElementEmitter::Scope scope(e);
  e.bindElement(core, [sum](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return sum; });
  return plain::storeRoots(b, elements, index, place);
}

Value loadAligned(codegen::KernelBuilder &b, Type element, Value pointer, Value index, unsigned lanes, unsigned align) {
  Value v = b.loadElem(element, pointer, index, lanes);
  // what a narrow element is converted from lies a few ops behind
  SmallVector<Operation *> work{v.getDefiningOp()};
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (auto load = dyn_cast_or_null<LLVM::LoadOp>(op)) {
      load.setAlignment(align);
      return v;
    }
    if (op)
      for (Value operand : op->getOperands())
        work.push_back(operand.getDefiningOp());
  }
  return v;
}

} // namespace lathe::nvptx
