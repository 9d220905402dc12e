#include "compiler/jit/RunModule.h"

#include "compiler/emit/Target.h"
#include "compiler/jit/Jit.h"
#include "compiler/jit/Tune.h"

#include <algorithm>
#include <chrono>

namespace lathe {
namespace {

/// The trace hook's view of a module: how long each of its steps took at best.
struct StepClock {
  std::vector<double> start, best;

  static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
  static void trace(void *ctx, int32_t step, int32_t phase) {
    auto &clock = *static_cast<StepClock *>(ctx);
    if (phase == 0)
      clock.start[step] = now();
    else
      clock.best[step] = std::min(clock.best[step], now() - clock.start[step]);
  }
};

} // namespace

llvm::Expected<Runnable> makeRunnable(mlir::OwningOpRef<mlir::ModuleOp> module, const CompilerOptions &target, bool forTarget) {
  mlir::MLIRContext *context = module->getContext();
  CompilerOptions options;
  options.cpu = "host";
  options.symbolPrefix = "calibrated";
  options.profile = true;
  if (forTarget) {
    options.cpu = target.cpu;
    options.triple = target.triple;
    EmitOptions emit;
    emit.triple = options.triple;
    emit.cpu = options.cpu;
    emit.symbolPrefix = options.symbolPrefix;
    auto resolved = resolveTarget(emit);
    if (!resolved)
      return resolved.takeError();
    if (std::string why = whyNotHere(*resolved); !why.empty())
      return llvm::createStringError("this machine cannot run code for " + resolved->triple + " " + resolved->cpu + ": " + why);
  }
  Compiler compiler(*context, options);
  compiler.adopt(std::move(module), Phase::Legalize);
  auto artifact = compiler.emit();
  if (!artifact)
    return artifact.takeError();
  auto loaded = loadObject(artifact->object, artifact->prefix);
  if (!loaded)
    return loaded.takeError();
  const lathe_module &abi = (*loaded)->abi();
  auto clock = std::make_shared<StepClock>();
  clock->start.resize(abi.num_steps);
  clock->best.resize(abi.num_steps, 1e30);
  auto runner = std::make_shared<ModuleRunner>(*loaded, 0);
  runner->setTrace(StepClock::trace, clock.get());
  Runnable made;
  made.run = [runner, clock](llvm::ArrayRef<Tensor> inputs) { return runner->call(inputs); };
  made.times = [runner, clock, &abi, keep = *loaded] {
    std::vector<KernelTime> times;
    for (int32_t i = 0; i < abi.num_steps; ++i)
      if (clock->best[i] < 1e30)
        times.push_back({abi.steps[i]->nodes, clock->best[i]});
    return times;
  };
  return made;
}

void useQuantizing(Compiler &compiler) {
  compiler.makeRunnable = [&options = compiler.options()](mlir::OwningOpRef<mlir::ModuleOp> module, bool forTarget) {
    return makeRunnable(std::move(module), options, forTarget);
  };
}

} // namespace lathe
