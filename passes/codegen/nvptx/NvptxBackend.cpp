// The backend behind the seam: what the plain backend emits, checked for what a device cannot do.
#include "passes/codegen/nvptx/NvptxBackend.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/nvptx/Assembler.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Images.h"
#include "passes/codegen/nvptx/Libm.h"
#include "passes/codegen/plain/Nest.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace lathe::nvptx {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/codegen/nvptx/Passes.h.inc"

namespace {

/// One lane of anything; multiply-adds and roundings are instructions.
codegen::KernelTarget threadTarget() {
  codegen::KernelTarget t;
  t.vectorBits = 8;
  t.x86 = t.avx = t.avx2 = false;
  t.fma = t.rounds = t.f16c = true; // f16c: f16 from and to f32 are instructions
  t.fmas = 1;
  t.l2 = 0; // what a multiprocessor keeps is of no use to the next kernel
  return t;
}

class NvptxBackend : public codegen::Backend {
public:
  explicit NvptxBackend(const codegen::Processor &processor) : processor(processor) {}
  codegen::Properties properties() const override { return {0, true, 1, target, /*bf16=*/true, /*tf32=*/true}; }
  void addPreparePasses(OpPassManager &pm, const codegen::PrepareOptions &) const override {
    pm.addPass(createNarrowProducts());
    pm.addPass(createSplitProducts());
    pm.addPass(createSplitReductions());
    pm.addPass(createSplitSorts());
    pm.addPass(createSplitScans());
    pm.addPass(createSplitFfts());
  }
  void loadDialects(MLIRContext &context) const override { codegen::loadKernelDialects(context); }
  std::string kernelName(Operation *op) const override {
    const Form *form = findForm(op);
    return codegen::Backend::kernelName(op) + (form ? std::string("_") + form->name : "");
  }
  FailureOr<codegen::EmittedKernel> emitKernel(Operation *op, ModuleOp module, StringRef name) const override;
  bool launches() const override { return true; }
  FailureOr<std::vector<codegen::Image>> makeImages(ModuleOp kernels, llvm::MutableArrayRef<codegen::Launch> launches) const override {
    return nvptx::makeImages(kernels, launches, processor);
  }
  std::string refuseImages() const override { return nvptx::refuseImages(processor); }
  std::string tools() const override;
  std::vector<codegen::KernelFacts> kernelFacts(const codegen::Image &image) const override { return nvptx::kernelFacts(image); }

private:
  bool wantsHopper() const;
  const codegen::Processor processor;
  const codegen::KernelTarget target = threadTarget();
};

} // namespace

/// Any thread may fail, at the same time as others: the largest code stays, whoever is first.
static void makeErrorsAtomic(func::FuncOp func) {
  Value err = func.getArgument(func.getNumArguments() - 3);
  for (Operation *user : llvm::to_vector(err.getUsers())) {
    auto store = dyn_cast<LLVM::StoreOp>(user);
    if (!store || store.getAddr() != err)
      continue;
    OpBuilder b(store);
    LLVM::AtomicRMWOp::create(b, store.getLoc(), LLVM::AtomicBinOp::umax, err, store.getValue(),
                              LLVM::AtomicOrdering::monotonic);
    store.erase();
  }
}

/// A remark for a product or convolution of f32 that the user lets round and that tensor cores do not take: it stays as exact and as
/// slow as without --precision.
static void tellOfPrecision(Operation *op, const codegen::Processor &wish, StringRef kernel) {
  if (!wish.bf16 && !wish.tf32)
    return;
  const bool conv = isa<kernel::ConvOp>(op);
  if (!conv && !isa<kernel::DotOp, hlo::DotOp, hlo::DotGeneralOp>(op))
    return;
  if (llvm::none_of(op->getOperands().take_front(2), [](Value v) { return hlo::elementType(v).isF32(); }))
    return;
  const remark::RemarkOpts options = remark::RemarkOpts::name("mma").category("kernel").function(kernel);
  if (std::string why = conv ? whyNoMmaConv(op) : whyNoMmaProduct(op); !why.empty())
    remark::missed(op->getLoc(), options) << remark::reason("{0}", why);
}

/// A remark for a kernel that has much to do for few threads.
static void tellOfFewThreads(Operation *op, codegen::KernelBuilder &b) {
  constexpr int64_t enough = 4096, much = 1 << 14, each = 64;
  const int64_t threads = b.func->hasAttr("kernel.extent") ? b.attribute("kernel.extent") : 1;
  int64_t elements = 0;
  for (Type t : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (auto type = dyn_cast<RankedTensorType>(t); type && type.hasStaticShape())
      elements = std::max(elements, type.getNumElements());
  if (threads <= 0 || threads >= enough || elements < std::max(much, each * threads))
    return;
  const remark::RemarkOpts options = remark::RemarkOpts::name("threads").category("kernel").function(b.func.getName());
  remark::missed(op->getLoc(), options) << remark::reason("{0} threads for {1} elements", threads, elements);
}

bool NvptxBackend::wantsHopper() const {
  return llvm::is_contained(processor.archs, hopperArch) || llvm::is_contained(processor.cubins, hopperArch);
}

/// What every kernel's function needs once it is emitted; one that is not goes.
static LogicalResult finish(LogicalResult emitted, Operation *op, codegen::KernelBuilder &b, ModuleOp module) {
  if (std::string missing = succeeded(emitted) ? expandLibm(b, module) : std::string(); !missing.empty())
    emitted = op->emitError() << "not supported on a CUDA device yet: the function '" << missing << "' in double precision";
  if (failed(emitted))
    b.func.erase();
  else
    makeErrorsAtomic(b.func);
  return emitted;
}

FailureOr<codegen::EmittedKernel> NvptxBackend::emitKernel(Operation *op, ModuleOp module, StringRef name) const {
  if (failed(plain::checkSizes(op)))
    return failure();
  codegen::KernelBuilder b(op, module, name, target);
  const Form *form = findForm(op);
  tellOfPrecision(op, processor, b.func.getName());
  LogicalResult emitted = form                 ? form->emit(op, b)
                          : plain::hasNest(op) ? plain::emitNest(op, b)
                                               : codegen::emitLibraryOp(op, b);
  if (failed(finish(emitted, op, b, module)))
    return failure();
  if (!form)
    tellOfFewThreads(op, b);
  if (form && form->emitHopper && wantsHopper() && form->whyNotHopper(op).empty()) {
    codegen::KernelBuilder hopper(op, module, (name + hopperSuffix).str(), target);
    if (failed(finish(form->emitHopper(op, hopper), op, hopper, module)))
      return failure();
    assert(hopper.func->getAttr(blockAttribute) == b.func->getAttr(blockAttribute) &&
           hopper.func->getAttr("kernel.extent") == b.func->getAttr("kernel.extent") && "one launch serves both");
  }
  return codegen::describeKernel(b.func);
}

void registerNvptxPasses() { registerCodegenCudaPasses(); }

std::string NvptxBackend::tools() const {
  std::optional<std::string> program = processor.cubins.empty() ? std::nullopt : findAssembler();
  if (!program)
    return {};
  llvm::Expected<std::string> version = assemblerVersion(*program);
  if (version)
    return "ptxas " + *version;
  llvm::consumeError(version.takeError()); // refuseImages tells
  return {};
}

std::unique_ptr<codegen::Backend> makeNvptxBackend(const codegen::Processor &processor) {
  return std::make_unique<NvptxBackend>(processor);
}

} // namespace lathe::nvptx
