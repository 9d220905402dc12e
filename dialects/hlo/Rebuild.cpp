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

} // namespace lathe::hlo
