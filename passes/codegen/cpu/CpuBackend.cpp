// CPUs behind the seam: which preparations run in which order, and what tuning may choose.
#include "passes/codegen/cpu/CpuBackend.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/passes/Passes.h"
#include "passes/codegen/cpu/product/Amx.h"
#include "passes/codegen/cpu/product/SpellOut.h"
#include "passes/codegen/cpu/product/Tile.h"
#include "passes/codegen/cpu/target/CpuTarget.h"
#include "passes/codegen/Target.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

/// Bytes of all constants beside those that kernels hold.
int64_t constantBytes(ModuleOp module) {
  int64_t bytes = 0;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa_and_nonnull<kernel::KernelDialect>(op->getDialect()))
      return WalkResult::skip();
    if (auto constant = dyn_cast<hlo::ConstantOp>(op)) {
      auto type = cast<RankedTensorType>(constant.getType());
      Type element = type.getElementType();
      if (element.isIntOrFloat() || isa<ComplexType>(element))
        bytes += type.getNumElements() * elemBytes(element);
    }
    return WalkResult::advance();
  });
  return bytes;
}

hlo::ConstantOp constantBehind(Value v) {
  while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape->getOperand(0);
  return v.getDefiningOp<hlo::ConstantOp>();
}

class CpuBackend : public codegen::Backend {
public:
  explicit CpuBackend(const codegen::Processor &processor)
      : bf16(processor.bf16), target(cpuTarget(processor)),
        spellsOutDots(cpu::spellsOutDots(processor)) {}

  codegen::Properties properties() const override {
    return {target.vectorBits, target.fma, target.fmas * target.vectorBits / 32, target, /*bf16=*/true};
  }
  void loadDialects(MLIRContext &context) const override { loadKernelDialects(context); }

  void addPreparePasses(OpPassManager &pm, const codegen::PrepareOptions &options) const override;
  bool usesTiles(ModuleOp module) const override;
  void beginKernels(ModuleOp module) override { target.weightsInCache = constantBytes(module) <= target.sharedCache; }
  std::string kernelName(Operation *op) const override;
  FailureOr<codegen::EmittedKernel> emitKernel(Operation *op, ModuleOp module, StringRef name) const override {
    FailureOr<func::FuncOp> function = cpu::emitKernel(op, module, name, target);
    if (failed(function))
      return failure();
    if (spellsOutDots)
      spellOutDots(*function);
    return codegen::describeKernel(*function);
  }
  bool hasPlans() const override { return true; }
  std::optional<SmallVector<KernelPlan>> plansToTry(Operation *op, const KernelPlan &best, int round, bool exact) const override;

private:
  bool bf16;
  KernelTarget target;
  bool spellsOutDots; ///< instead of instructions that the machine of a test may lack
};

} // namespace

void CpuBackend::addPreparePasses(OpPassManager &pm, const codegen::PrepareOptions &options) const {
  if (bf16)
    pm.addPass(createUseBf16());
  if (options.plans)
    pm.addPass(codegen::createAttachPlansPass(*options.plans));
  PackWeightsOptions pack;
  pack.release = options.releaseConstants;
  pm.addPass(createPackWeights(pack));
  pm.addPass(createChainKernels());
  pm.addPass(createFuseAttention());
  pm.addPass(createPadWindows());
  pm.addPass(createPlaceParts()); // what kernels write settles last
}

bool CpuBackend::usesTiles(ModuleOp module) const {
  return module.walk([&](Operation *op) { return inTileRegisters(op, target) ? WalkResult::interrupt() : WalkResult::advance(); }).wasInterrupted();
}

std::string CpuBackend::kernelName(Operation *op) const {
  auto layout = op->getAttrOfType<kernel::LayoutAttr>("layout");
  return Backend::kernelName(op) + (layout ? layout.nameSuffix() : "");
}

// One coordinate after the other: the algorithm first, then the width of tiles, their height, blocks and the depth.
std::optional<SmallVector<KernelPlan>> CpuBackend::plansToTry(Operation *op, const KernelPlan &best, int round,
                                                              bool exact) const {
  SmallVector<KernelPlan> plans;
  auto add = [&](std::optional<int64_t> KernelPlan::*item, int64_t value) {
    plans.push_back(best);
    plans.back().*item = value;
  };
  auto dot = dyn_cast<kernel::DotOp>(op);
  auto conv = dyn_cast<kernel::ConvOp>(op);
  RankedTensorType result = dot ? dot.getAccType() : conv.getAccType();
  const int64_t columns = result.getShape().back();
  switch (round) {
  case 0: {
    if (!conv || exact || whyNoWinogradWindow(conv) != WinogradRefusal::None || !constantBehind(conv.getFilter()))
      break;
    ArrayRef<int64_t> window = cast<RankedTensorType>(conv.getFilter().getType()).getShape();
    SmallVector<int64_t> sizes = winogradTileSizes(window[0], window[1]);
    sizes.push_back(0);
    for (int64_t m : llvm::reverse(sizes))
      add(&KernelPlan::winograd, m);
    break;
  }
  case 1:
    for (int64_t vecs : {1, 2, 3, 4})
      if (vecs == 1 || columns > (vecs - 1) * int64_t(target.lanes(Float32Type::get(op->getContext()))))
        add(&KernelPlan::vecs, vecs);
    break;
  case 2: {
    const int64_t most = maxTileRows(target, best.vecs.value_or(2));
    for (int64_t rows : {most + 1, most - 1, most - 2, most - 3, most / 2})
      if (rows >= 2 && best.vecs)
        add(&KernelPlan::rows, rows);
    break;
  }
  case 3:
    if (best.winograd.value_or(0))
      for (int64_t perUnit : {1, 2, 4, 8, 16})
        add(&KernelPlan::perUnit, perUnit);
    break;
  case 4:
    for (int64_t block : {1, 2, 4, 8, 16, 32, 64, 128})
      if (columns > 0 && block <= result.getNumElements() / columns)
        add(&KernelPlan::block, block);
    break;
  case 5:
    for (int64_t depth : {0, 256, 512, 1024})
      if (codegen::sumSteps(op) > std::max<int64_t>(depth, 256) && !best.winograd.value_or(0))
        add(&KernelPlan::depth, depth);
    break;
  default:
    return std::nullopt;
  }
  return plans;
}

void registerLayouts(DialectRegistry &registry) { registry.insert<CpuDialect>(); }

std::unique_ptr<codegen::Backend> makeCpuBackend(const codegen::Processor &processor) {
  return std::make_unique<CpuBackend>(processor);
}

} // namespace lathe::cpu
