#include "compiler/emit/OptimizeTimes.h"

#include "llvm/Analysis/LazyCallGraph.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Function.h"

using namespace llvm;

namespace lathe {

/// The function that a pass gets, or null: it gets several, or the module.
static const Function *functionOf(const Any &unit) {
  if (const auto *function = any_cast<const Function *>(&unit))
    return *function;
  if (const auto *loop = any_cast<const Loop *>(&unit))
    return (*loop)->getHeader()->getParent();
  if (const auto *component = any_cast<const LazyCallGraph::SCC *>(&unit); component && (*component)->size() == 1)
    return &(*component)->begin()->getFunction();
  return nullptr;
}

OptimizeTimes::OptimizeTimes(PassInstrumentationCallbacks &callbacks, lower::KernelTimes &times) : times(times) {
  callbacks.registerBeforeNonSkippedPassCallback([this](StringRef, Any unit) {
    const Function *function = functionOf(unit);
    enter(this->times[function ? lower::kernelGroup(function->getName()).str() : ""]);
  });
  callbacks.registerAfterPassCallback([this](StringRef, Any, const PreservedAnalyses &) { leave(); });
  callbacks.registerAfterPassInvalidatedCallback([this](StringRef, const PreservedAnalyses &) { leave(); });
}

void OptimizeTimes::charge() {
  const auto now = std::chrono::steady_clock::now();
  if (!inside.empty())
    inside.back()->seconds += std::chrono::duration<double>(now - since).count();
  since = now;
}

void OptimizeTimes::enter(lower::KernelTime &group) {
  charge();
  inside.push_back(&group);
}

void OptimizeTimes::leave() {
  charge();
  inside.pop_back();
}

} // namespace lathe
