// How often a loop runs is seen while its condition is a comparison; behind fusion that is a kernel. Whoever launches kernels
// on a device wants to know it, since else it waits for each condition.
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Loops.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOCOUNTLOOPS
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

struct CountLoops : simplify::impl::HloCountLoopsBase<CountLoops> {
  void runOnOperation() override {
    getOperation().walk([&](hlo::WhileOp loop) {
      loop->removeAttr(hlo::tripsAttrName);
      std::optional<int64_t> count = tripCount(loop);
      if (!count)
        return;
      loop->setAttr(hlo::tripsAttrName, Builder(&getContext()).getI64IntegerAttr(*count));
      ++numCounted;
    });
  }
};

} // namespace
