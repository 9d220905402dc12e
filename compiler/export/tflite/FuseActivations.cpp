// The pass tflite-fuse-activations: RELU(CONV_2D(x) {}) becomes CONV_2D(x) {activation = "RELU"}.
#include "compiler/export/tflite/Operators.h"
#include "compiler/export/tflite/Passes.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace lathe::tflwrite {

#define GEN_PASS_DEF_TFLITEFUSEACTIVATIONS
#include "compiler/export/tflite/Passes.h.inc"

namespace {
struct FusePass : impl::TfliteFuseActivationsBase<FusePass> {
  void runOnOperation() override {
    SmallVector<Operation *> activations;
    getOperation().walk([&](Operation *op) {
      if (llvm::is_contained({"RELU", "RELU6", "RELU_N1_TO_1"}, operatorName(op)))
        activations.push_back(op);
    });
    for (Operation *op : activations) {
      Operation *producer = op->getOperand(0).getDefiningOp();
      while (operatorName(producer) == "RESHAPE" && producer->hasOneUse())
        producer = producer->getOperand(0).getDefiningOp();
      if (!producer || !hasActivation(operatorName(producer)) || !producer->hasOneUse() || !textOption(producer, "activation").empty() ||
          !cast<RankedTensorType>(producer->getResult(0).getType()).getElementType().isF32())
        continue;
      setOption(producer, "activation", StringAttr::get(&getContext(), operatorName(op)));
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
      ++numFused;
    }
  }
};
} // namespace

} // namespace lathe::tflwrite
