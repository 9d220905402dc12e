// See Parts.h.
#include "passes/codegen/cpu/passes/Parts.h"

#include "dialects/kernel/Kernel.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace lathe::cpu {

/// Sets `kernel.cost` of an op that stands for several: the sum of theirs, less the bytes that stay in the
/// cache.
static void addCosts(Operation *whole, ArrayRef<Operation *> parts, int64_t keptBytes) {
  SmallVector<int64_t> cost;
  for (Operation *op : parts)
    if (auto part = op->getAttrOfType<DenseI64ArrayAttr>("kernel.cost")) {
      cost.resize(part.size());
      for (auto [sum, x] : llvm::zip(cost, part.asArrayRef()))
        sum += x;
    }
  if (cost.size() != 3)
    return;
  cost[2] -= keptBytes;
  whole->setAttr("kernel.cost", DenseI64ArrayAttr::get(whole->getContext(), cost));
}

void joinParts(ArrayRef<Operation *> parts, int64_t keptBytes,
               function_ref<Operation *(OpBuilder &, Location, TypeRange, ValueRange)> create) {
  llvm::SetVector<Value> inputs;
  SmallVector<Location> locations;
  for (Operation *part : parts) {
    for (Value v : part->getOperands())
      if (!llvm::is_contained(parts, v.getDefiningOp()))
        inputs.insert(v);
    locations.push_back(part->getLoc());
  }
  Operation *last = parts.back();
  OpBuilder b(last);
  Location loc = b.getFusedLoc(locations);
  Operation *whole = create(b, loc, last->getResultTypes(), inputs.getArrayRef());
  Block &body = whole->getRegion(0).front();
  IRMapping map;
  map.map(inputs.getArrayRef(), body.getArguments());
  b.setInsertionPointToEnd(&body);
  for (Operation *part : parts)
    b.clone(*part, map);
  kernel::YieldOp::create(b, loc, map.lookup(last->getResult(0)));
  addCosts(whole, parts, keptBytes);
  last->replaceAllUsesWith(whole);
  for (Operation *part : llvm::reverse(parts))
    part->erase();
}

} // namespace lathe::cpu
