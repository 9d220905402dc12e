//===- FunctionalizeControlFlow.cpp - v1 control flow as functions --------===//
//
// Before: Enter, Merge, NextIteration, Switch, LoopCond and Exit nodes with cycles between them.
// After: While and If nodes on private graph.funcs.
//
//===----------------------------------------------------------------------===//
#include "passes/cluster/Outline.h"
#include "passes/cluster/Passes.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace lathe::cluster {

#define GEN_PASS_DEF_FUNCTIONALIZECONTROLFLOW
#include "passes/cluster/Passes.h.inc"

namespace {
class FunctionalizeControlFlow : public impl::FunctionalizeControlFlowBase<FunctionalizeControlFlow> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    SmallVector<graph::FuncOp> work(module.getOps<graph::FuncOp>());
    unsigned loops = 0, conditionals = 0;
    bool failedAny = false;
    // functions made of loops may hold conditionals; those made of conditionals are complete
    for (size_t i = 0; i < work.size(); ++i) {
      graph::FuncOp func = work[i];
      if (failed(functionalizeLoops(func, module, symbols, work, loops)) ||
          failed(functionalizeConditionals(func, module, symbols, work, conditionals)))
        failedAny = true;
    }
    // slices come out in the order they were found in
    if (loops || conditionals)
      for (graph::FuncOp func : work)
        cleanUp(func);
    numLoops += loops;
    numConditionals += conditionals;
    if (failedAny)
      signalPassFailure();
  }
};
} // namespace

} // namespace lathe::cluster
