#include "passes/codegen/Target.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace lathe::codegen {

#define GEN_PASS_DECL
#define GEN_PASS_DEF_KERNELSETTARGET
#define GEN_PASS_REGISTRATION
#include "passes/codegen/Passes.h.inc"

void setTarget(ModuleOp module, const Target &target) {
  MLIRContext *context = module.getContext();
  context->getOrLoadDialect<DLTIDialect>();
  Builder b(context);
  auto entry = [&](StringRef key, Attribute value) { return DataLayoutEntryAttr::get(b.getStringAttr(key), value); };
  const Processor &p = target.processor;
  SmallVector<DataLayoutEntryInterface> entries = {
      entry("backend", b.getStringAttr(target.backend)), entry("triple", b.getStringAttr(p.triple)),
      entry("cpu", b.getStringAttr(p.cpu)),              entry("features", b.getStringAttr(p.features)),
      entry("threads", b.getI32IntegerAttr(p.threads)),  entry("exact", b.getBoolAttr(p.exact)),
      entry("precision", b.getStringAttr(p.bf16 ? "bf16" : p.tf32 ? "tf32" : "f32"))};
  if (!p.archs.empty())
    entries.push_back(entry("archs", b.getStringAttr(llvm::join(p.archs, ","))));
  if (!p.cubins.empty())
    entries.push_back(entry("cubins", b.getStringAttr(llvm::join(p.cubins, ","))));
  module->setAttr(kTargetAttr, TargetDeviceSpecAttr::get(context, entries));
}

bool hasTarget(ModuleOp module) { return module->hasAttr(kTargetAttr); }

FailureOr<Target> targetOf(ModuleOp module) {
  Target target;
  Processor &p = target.processor;
  p.triple = "x86_64-unknown-linux-gnu";
  p.features = "+avx,+avx2,+fma,+f16c";
  Attribute attr = module->getAttr(kTargetAttr);
  if (!attr)
    return target;
  auto spec = dyn_cast<TargetDeviceSpecAttr>(attr);
  if (!spec)
    return module.emitError() << kTargetAttr << " is not a #dlti.target_device_spec";
  for (DataLayoutEntryInterface entry : spec.getEntries()) {
    auto key = dyn_cast<StringAttr>(entry.getKey());
    auto wrong = [&] { return module.emitError() << "unknown entry or type in " << kTargetAttr << ": " << entry; };
    if (!key)
      return wrong();
    const StringRef name = key.getValue();
    std::string *text = name == "backend"    ? &target.backend
                        : name == "triple"   ? &p.triple
                        : name == "cpu"      ? &p.cpu
                        : name == "features" ? &p.features
                                             : nullptr;
    if (auto value = dyn_cast<StringAttr>(entry.getValue()); value && text)
      *text = value.getValue().str();
    else if (auto value = dyn_cast<StringAttr>(entry.getValue()); value && (name == "archs" || name == "cubins"))
      for (StringRef one : llvm::split(value.getValue(), ','))
        (name == "archs" ? p.archs : p.cubins).push_back(one.str());
    else if (auto value = dyn_cast<StringAttr>(entry.getValue()); value && name == "precision") {
      p.bf16 = value.getValue() == "bf16";
      p.tf32 = value.getValue() == "tf32";
    } else if (auto value = dyn_cast<BoolAttr>(entry.getValue()); value && name == "exact")
      p.exact = value.getValue();
    else if (auto value = dyn_cast<IntegerAttr>(entry.getValue()); value && name == "threads" && value.getInt() >= 1)
      p.threads = int(value.getInt());
    else
      return wrong();
  }
  return target;
}

namespace {

struct SetTarget : impl::KernelSetTargetBase<SetTarget> {
  using KernelSetTargetBase::KernelSetTargetBase;
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<DLTIDialect>(); }
  void runOnOperation() override {
    setTarget(getOperation(), {backend, {triple, cpu, features, threads, exact, bf16, false, {}, {}}});
  }
};

struct AttachPlans : PassWrapper<AttachPlans, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AttachPlans)
  explicit AttachPlans(const PlanTable &plans) : plans(&plans) {}
  AttachPlans(const AttachPlans &other) : PassWrapper(other), plans(other.plans) {}
  StringRef getArgument() const override { return "kernel-attach-plans"; }
  StringRef getDescription() const override { return "Give products and convolutions the plans of a tuning file"; }
  void runOnOperation() override { numAttached += attachPlans(getOperation(), *plans); }

  const PlanTable *plans;
  Statistic numAttached{this, "num-attached", "Ops whose plan the table named"};
};

} // namespace

std::unique_ptr<Pass> createAttachPlansPass(const PlanTable &plans) { return std::make_unique<AttachPlans>(plans); }

void registerSetTarget() { registerCodegenPasses(); }

} // namespace lathe::codegen
