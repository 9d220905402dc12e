// The plain backend behind the seam. Nothing is prepared: kernels are what fusion made, in the layouts that it left.
#include "passes/codegen/plain/PlainBackend.h"

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/plain/Nest.h"

using namespace mlir;

namespace lathe::plain {
namespace {

/// The processor for code of single elements: no vectors, and of its instructions those alone that multiply and add, or
/// round.
codegen::KernelTarget scalarTarget(const codegen::Processor &processor) {
  const codegen::KernelTarget all = codegen::KernelTarget::get(processor.triple, processor.features);
  codegen::KernelTarget t;
  static_cast<codegen::ProcessorModel &>(t) = all; // caches and rates of memory are those of any code
  t.vectorBits = 8; // of the narrowest element: one lane of any
  t.x86 = t.avx = t.avx2 = t.f16c = false;
  t.fma = all.fma;
  t.rounds = all.rounds;
  t.fmas = 1;
  return t;
}

class PlainBackend : public codegen::Backend {
public:
  explicit PlainBackend(const codegen::Processor &processor) : target(scalarTarget(processor)) {}

  codegen::Properties properties() const override { return {0, target.fma, 1, target}; }
  void loadDialects(MLIRContext &context) const override { codegen::loadKernelDialects(context); }
  FailureOr<codegen::EmittedKernel> emitKernel(Operation *op, ModuleOp module, StringRef name) const override;

private:
  codegen::KernelTarget target;
};

} // namespace

FailureOr<codegen::EmittedKernel> PlainBackend::emitKernel(Operation *op, ModuleOp module, StringRef name) const {
  if (failed(checkSizes(op)))
    return failure();
  codegen::KernelBuilder b(op, module, name, target);
  // sorts, decompositions, scatters: functions that count in units of their own
  if (failed(hasNest(op) ? emitNest(op, b) : codegen::emitLibraryOp(op, b))) {
    b.func.erase();
    return failure();
  }
  return codegen::describeKernel(b.func);
}

std::unique_ptr<codegen::Backend> makePlainBackend(const codegen::Processor &processor) {
  return std::make_unique<PlainBackend>(processor);
}

} // namespace lathe::plain
