#include "passes/codegen/Plan.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace lathe::codegen {

static constexpr const char *planAttribute = "kernel.plan";

namespace {
struct Item {
  llvm::StringRef name;
  std::optional<int64_t> KernelPlan::*field;
  int64_t least, most;
};
} // namespace

static const Item planItems[] = {
    {"vecs", &KernelPlan::vecs, 1, 4},         {"rows", &KernelPlan::rows, 1, 16},
    {"block", &KernelPlan::block, 1, 1 << 20}, {"depth", &KernelPlan::depth, 0, 1 << 20},
    {"winograd", &KernelPlan::winograd, 0, 6}, {"per_unit", &KernelPlan::perUnit, 1, 1 << 16},
};

bool KernelPlan::operator==(const KernelPlan &o) const { return items() == o.items(); }

SmallVector<std::pair<llvm::StringRef, int64_t>> KernelPlan::items() const {
  SmallVector<std::pair<llvm::StringRef, int64_t>> all;
  for (const Item &i : planItems)
    if (this->*i.field)
      all.push_back({i.name, *(this->*i.field)});
  return all;
}

std::string KernelPlan::set(llvm::StringRef name, int64_t value) {
  for (const Item &i : planItems) {
    if (i.name != name)
      continue;
    bool fits = value >= i.least && value <= i.most;
    if (name == "winograd")
      fits &= value != 1 && value != 5;
    if (name == "depth")
      fits &= value % 4 == 0;
    if (!fits)
      return ("'" + name + "' cannot be " + llvm::Twine(value)).str();
    this->*i.field = value;
    return "";
  }
  return ("unknown item '" + name + "'").str();
}

KernelPlan KernelPlan::of(Operation *op) {
  KernelPlan plan;
  if (auto dict = op->getAttrOfType<DictionaryAttr>(planAttribute))
    for (NamedAttribute a : dict)
      if (auto value = dyn_cast<IntegerAttr>(a.getValue()))
        (void)plan.set(a.getName(), value.getInt());
  return plan;
}

void KernelPlan::attach(Operation *op) const {
  Builder b(op->getContext());
  SmallVector<NamedAttribute> list;
  for (auto [name, value] : items())
    list.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(value)));
  if (list.empty())
    op->removeAttr(planAttribute);
  else
    op->setAttr(planAttribute, b.getDictionaryAttr(list));
}

bool isTunable(Operation *op) {
  auto open = [](auto o) { return !o.getLayout() && o.getAccType().getElementType().isF32(); };
  auto dot = dyn_cast<kernel::DotOp>(op);
  auto conv = dyn_cast<kernel::ConvOp>(op);
  if ((!dot || !open(dot)) && (!conv || !open(conv)))
    return false;
  auto isStatic = [](Type t) {
    auto ranked = dyn_cast<RankedTensorType>(t);
    return ranked && ranked.hasStaticShape() && ranked.getNumElements() > 0;
  };
  return !op->hasAttr("bf16") && llvm::all_of(op->getOperandTypes(), isStatic) && llvm::all_of(op->getResultTypes(), isStatic);
}

int64_t sumSteps(Operation *op) {
  if (auto dot = dyn_cast<kernel::DotOp>(op))
    return cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(dot.getLhsDims().back());
  auto filter = cast<RankedTensorType>(op->getOperand(1).getType());
  return filter.getNumElements() / filter.getShape().back();
}

std::string planSignature(Operation *op) {
  Operation *alone = op->clone(); // values are numbered from here, and operands have no names
  for (const char *name : {planAttribute, "kernel.cost", "kernel.inplace"})
    alone->removeAttr(name);
  std::string text, key;
  llvm::raw_string_ostream os(text), name(key);
  alone->print(os, OpPrintingFlags().useLocalScope().printGenericOpForm());
  alone->destroy();
  auto shape = [&](Value v) {
    llvm::interleave(cast<RankedTensorType>(v.getType()).getShape(), name, "x");
    name << ' ';
  };
  name << op->getName().stripDialect() << ' ';
  shape(op->getOperand(0));
  shape(op->getOperand(1));
  name << llvm::format_hex_no_prefix(llvm::xxh3_64bits(text), 16);
  return key;
}

unsigned attachPlans(ModuleOp module, const PlanTable &plans) {
  unsigned count = 0;
  if (plans.empty())
    return 0;
  module.walk([&](Operation *op) {
    if (!isTunable(op))
      return;
    auto found = plans.find(planSignature(op));
    if (found == plans.end() || found->second.isEmpty())
      return;
    found->second.attach(op);
    ++count;
  });
  return count;
}

} // namespace lathe::codegen
