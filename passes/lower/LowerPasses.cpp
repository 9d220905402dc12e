// kernel-to-llvm is the phase `lower`; the others show parts of what it does, for lathe-opt and tests.
#include "passes/lower/Passes.h"
#include "passes/codegen/Target.h"
#include "passes/lower/Lower.h"
#include "passes/lower/SideBySide.h"

namespace lathe::lower {
#define GEN_PASS_DEF_KERNELPLANMEMORY
#define GEN_PASS_DEF_KERNELTOLLVM
#define GEN_PASS_DEF_SIDEBYSIDE
#define GEN_PASS_REGISTRATION
#include "passes/lower/Passes.h.inc"
} // namespace lathe::lower

using namespace mlir;

namespace lathe::lower {
namespace {

/// `part`: bytes from its begin.
std::string place(const Buffer &b, int64_t part = 0) {
  if (part)
    return place(b) + ", " + std::to_string(part) + " bytes in";
  std::string n = std::to_string(b.index);
  switch (b.kind) {
  case Buffer::Input: return "input " + n;
  case Buffer::Output: return "output " + n;
  case Buffer::Variable: return "variable " + n;
  case Buffer::Constant: return "constant +" + n;
  case Buffer::Fill: return "fill";
  case Buffer::Arena: break;
  }
  return "arena " + std::to_string(b.group) + " +" + std::to_string(b.offset);
}

struct PlanMemory : impl::KernelPlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<int64_t> variables;
    if (auto list = module->getAttrOfType<ArrayAttr>("hlo.variables"))
      for (auto v : list.getAsRange<DictionaryAttr>())
        if (auto name = v.getAs<StringAttr>("name"))
          variables.try_emplace(name.getValue(), variables.size());
    ConstantPool pool;
    for (auto func : module.getOps<func::FuncOp>()) {
      if (!func.isPublic() || func.isExternal())
        continue;
      FailureOr<MemoryPlan> plan = MemoryPlan::create(func, pool, variables);
      if (failed(plan))
        return signalPassFailure();
      annotate(func, *plan);
      const PlanStatistics &s = plan->statistics();
      if (static_cast<uint64_t>(s.arenaBytes) >= arenaBytes.getValue()) {
        arenaBytes = s.arenaBytes;
        sumOfBuffers = s.sumOfBuffers;
        numBuffers = s.buffers;
      }
      numCopies += s.copies;
      numInPlace += s.inPlace;
    }
  }

  void annotate(func::FuncOp func, const MemoryPlan &plan) {
    OpBuilder b(func);
    SmallVector<Attribute> groups;
    for (const ArenaGroup &g : plan.groups()) {
      std::string text;
      llvm::raw_string_ostream(text) << g.bytes << " x " << g.unit;
      groups.push_back(b.getStringAttr(text));
    }
    func->setAttr("memory.groups", b.getArrayAttr(groups));
    func.walk([&](Operation *op) {
      if (op == func || (op->getParentOp() != func && !isControlFlow(op->getParentOp())))
        return;
      SmallVector<Attribute> places, copies;
      if (!isView(op))
        for (Value v : op->getResults())
          places.push_back(b.getStringAttr(place(plan.of(v), plan.offsetOf(v))));
      for (const Copy &c : plan.copiesAt(op))
        copies.push_back(b.getStringAttr(place(plan.buffer(c.from)) + " -> " + place(plan.buffer(c.to))));
      if (!places.empty())
        op->setAttr("memory.at", b.getArrayAttr(places));
      if (!copies.empty())
        op->setAttr("memory.copies", b.getArrayAttr(copies));
    });
  }
};

struct MarkSides : impl::SideBySideBase<MarkSides> {
  using SideBySideBase::SideBySideBase;
  void getDependentDialects(DialectRegistry &registry) const override { codegen::registerKernelDialects(registry); }
  void runOnOperation() override {
    FailureOr<codegen::Target> target = codegen::targetOf(getOperation());
    FailureOr<std::unique_ptr<codegen::Backend>> made = codegen::backendOf(getOperation());
    if (failed(target) || failed(made))
      return signalPassFailure();
    LowerOptions options;
    options.backend = made->get();
    options.threads = target->processor.threads;
    options.parallelWork = parallelWork;
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(UnknownLoc::get(&getContext()));
    KernelSet kernels(*scratch, **made);
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func.isPublic() || func.isExternal())
        continue;
      if (failed(addKernels(func, kernels)))
        return signalPassFailure();
      const SideStatistics s = placeSideBySide(func, kernels, options);
      numGroups += s.groups;
      numSides += s.sides;
      refusedAlone += s.refusedAlone;
      refusedNotFaster += s.refusedNotFaster;
    }
  }
};

struct ToLlvm : impl::KernelToLlvmBase<ToLlvm> {
  using KernelToLlvmBase::KernelToLlvmBase;
  ToLlvm(const KernelToLlvmOptions &options, KernelTimes &times) : KernelToLlvmBase(options), times(&times) {}
  ToLlvm(const ToLlvm &) = default;
  KernelTimes *times = nullptr; ///< clones add to the same
  void getDependentDialects(DialectRegistry &registry) const override { codegen::registerKernelDialects(registry); }
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<codegen::Target> target = codegen::targetOf(module);
    FailureOr<std::unique_ptr<codegen::Backend>> made = codegen::backendOf(module);
    if (failed(target) || failed(made))
      return signalPassFailure();
    LowerOptions options;
    options.backend = made->get();
    options.threads = (*made)->launches() ? 1 : target->processor.threads; // the device's are enough
    options.profile = profile;
    options.externalWeights = externalWeights;
    options.amx = (*made)->usesTiles(module);
    options.parallelWork = parallelWork;
    options.separateBuffers = separateBuffers;
    options.times = times;
    (*made)->loadDialects(getContext());
    FailureOr<LoweredModule> lowered = lowerModule(module, options);
    if (failed(lowered))
      return signalPassFailure();
    numKernels += lowered->kernels;
    numCalls += lowered->kernelCalls;
    for (const auto &[form, kernels] : lowered->fallbacks)
      numFallbacks += kernels;
    module.getBody()->clear();
    module.getBody()->getOperations().splice(module.getBody()->end(), lowered->module->getBody()->getOperations());
    for (StringRef name : {"hlo.symbols", "hlo.variables"})
      module->removeAttr(name);
    noteLowered(module, *lowered);
  }
};

} // namespace

std::unique_ptr<Pass> createTimedKernelToLlvm(const KernelToLlvmOptions &options, KernelTimes &times) {
  return std::make_unique<ToLlvm>(options, times);
}

void registerLowerPhase() { registerLowerPasses(); }

} // namespace lathe::lower
