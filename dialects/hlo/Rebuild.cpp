#include "dialects/hlo/Rebuild.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace lathe::hlo {

Operation *rebuild(Operation *op, ArrayRef<Value> operands, ArrayRef<Type> results) {
  OpBuilder b(op);
  OperationState state(op->getLoc(), op->getName(), operands, results, op->getAttrs());
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  Operation *made = b.create(state);
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    made->getRegion(i).takeBody(op->getRegion(i));
  op->replaceAllUsesWith(made->getResults().take_front(op->getNumResults()));
  op->erase();
  return made;
}

void setResults(func::FuncOp function, ArrayRef<Value> values) {
  Builder b(function.getContext());
  SmallVector<DictionaryAttr> attrs;
  function.getAllResultAttrs(attrs);
  const size_t own = function.getNumResults();
  attrs.resize(values.size(), b.getDictionaryAttr({}));
  SmallVector<Type> types;
  for (auto [i, v] : llvm::enumerate(values)) {
    types.push_back(v.getType());
    if (!attrs[i])
      attrs[i] = b.getDictionaryAttr({});
    if (i >= own)
      attrs[i] = b.getDictionaryAttr(b.getNamedAttr("hlo.name", b.getStringAttr("tap" + std::to_string(i - own))));
  }
  function.getBody().front().getTerminator()->setOperands(values);
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(), types));
  function.setAllResultAttrs(attrs);
}

} // namespace lathe::hlo
