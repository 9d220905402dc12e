// The pass tflite-raise:
//   %1 = hlo.convolution(%x, %w); %2 = hlo.add %1, broadcast(%bias); %3 = hlo.maximum %2, 0
// becomes
//   %1 = hlo.custom_call "tfl.CONV_2D"(%x, %w', %bias); %2 = hlo.custom_call "tfl.RELU"(%1)
#include "compiler/export/tflite/Passes.h"
#include "compiler/export/tflite/Raiser.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace lathe::tflwrite {

#define GEN_PASS_DEF_TFLITERAISE
#include "compiler/export/tflite/Passes.h.inc"

namespace {

const HandlerTable &handlers() {
  static const HandlerTable table = [] {
    HandlerTable t;
    addSoftmaxHandlers(t);
    addResizeHandlers(t);
    addActivationHandlers(t);
    addConvHandlers(t);
    addProductHandlers(t);
    addWindowHandlers(t);
    addReduceHandlers(t);
    addElementwiseHandlers(t);
    addIndexHandlers(t);
    addShapeHandlers(t);
    return t;
  }();
  return table;
}

/// Ops that the writer takes as they are.
bool staysAsIs(Operation *op) {
  return isa<hlo::ConstantOp, hlo::WhileOp, hlo::IfOp, hlo::ReturnOp, func::ReturnOp>(op) || !operatorName(op).empty();
}

/// Nothing reads it and nothing happens by it.
bool isDead(Operation *op) {
  if (!op->use_empty() || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  return isa<hlo::CheckOp>(op) || !operatorName(op).empty() || isOpTriviallyDead(op);
}

struct RaisePass : impl::TfliteRaiseBase<RaisePass> {
  void runOnOperation() override {
    Raiser r(getOperation());
    bool ok = true;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      r.startFunction(function);
      // products and convolutions are to find weights in f16 where they stand
      function.walk([&](Operation *op) {
        if (!isa<hlo::TransposeOp, hlo::ReshapeOp, hlo::ReverseOp>(op) || !widenedWeights(op->getOperand(0)))
          return;
        r.start(op);
        (void)raiseOp(op, r);
      });
      // inner blocks first: what they read from outside is hlo still
      SmallVector<Block *> blocks;
      // of reductions and the like a handler reads the body
      function.walk<WalkOrder::PostOrder>([&](Block *block) {
        if (isa<func::FuncOp, hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(block->getParentOp()))
          blocks.push_back(block);
      });
      for (Block *block : blocks)
        ok &= raise(*block, r);
      if (ok)
        for (Block *block : llvm::reverse(blocks))
          for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
            if (isDead(&op))
              op.erase();
    }
    if (!ok)
      signalPassFailure();
  }

  bool raise(Block &block, Raiser &r) {
    bool ok = true;
    for (Operation *op = block.empty() ? nullptr : &block.back(); op;) {
      Operation *next = op->getPrevNode();
      if (isDead(op)) {
        op->erase();
      } else if (!staysAsIs(op)) {
        bool done = raise(op, r);
        next = op->getPrevNode(); // what the handler made stands there, and may be hlo
        if (done && op->use_empty())
          op->erase();
        ok &= done;
      }
      op = next;
    }
    return ok;
  }

  bool raise(Operation *op, Raiser &r) {
    r.start(op);
    (void)r.takeReason();
    if (succeeded(raiseOp(op, r))) {
      ++numRaised;
      return true;
    }
    std::string reason = r.takeReason();
    emitError(op->getLoc()) << op->getName() << " has no TensorFlow Lite operator" << (reason.empty() ? "" : ": ") << reason;
    return false;
  }
};

} // namespace

LogicalResult raiseOp(Operation *op, Raiser &r) {
  if (auto at = handlers().find(op->getName().stripDialect()); at != handlers().end())
    for (Handler handler : at->second)
      if (succeeded(handler(op, r)))
        return success();
  return failure();
}

void buildTflitePipeline(OpPassManager &pm, const std::string &io, const std::string &weights) {
  TfliteRaiseQuantizedOptions quantized;
  quantized.io = io;
  pm.addPass(createTfliteRaiseQuantized(quantized));
  pm.addPass(createTfliteRaise());
  pm.addPass(createTfliteFuseActivations());
  if (!weights.empty()) {
    TfliteNarrowWeightsOptions narrow;
    narrow.kind = weights;
    pm.addPass(createTfliteNarrowWeights(narrow));
  }
}

#define GEN_PASS_REGISTRATION
#include "compiler/export/tflite/Passes.h.inc"

void registerTflitePhase() {
  registerTflitePasses();
  PassPipelineRegistration<>("lathe-tflite", "simplified hlo to TensorFlow Lite's operators",
                             [](OpPassManager &pm) { buildTflitePipeline(pm); });
}

} // namespace lathe::tflwrite
