#include "passes/codegen/Backend.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace lathe::codegen {

Backend::~Backend() = default;

void registerKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, vector::VectorDialect>();
}

std::string Backend::kernelName(Operation *op) const { return op->getName().stripDialect().str(); }

FailureOr<std::vector<Image>> Backend::makeImages(ModuleOp kernels, llvm::MutableArrayRef<Launch>) const {
  return kernels.emitError("internal error: a backend that launches nothing was asked for an image");
}

std::string Backend::refuseImages() const { return "--arch and --cubin are for kernels of a device: see --backend cuda"; }

static AffineExpr exprAttr(func::FuncOp func, StringRef name, int64_t otherwise) {
  if (auto map = func->getAttrOfType<AffineMapAttr>(name); map && map.getValue().getNumResults() == 1)
    return map.getValue().getResult(0);
  return getAffineConstantExpr(otherwise, func.getContext());
}

/// Whether anything but a load may use memory that `pointer` leads to.
static bool mayStoreTo(Value pointer) {
  return llvm::any_of(pointer.getUsers(), [](Operation *user) {
    if (auto at = dyn_cast<LLVM::GEPOp>(user))
      return mayStoreTo(at);
    return !isa<LLVM::LoadOp>(user);
  });
}

EmittedKernel describeKernel(func::FuncOp function) {
  EmittedKernel kernel;
  kernel.function = function;
  kernel.extent = exprAttr(function, "kernel.extent", 1);
  kernel.scratch = exprAttr(function, "kernel.scratch", 0);
  if (auto work = function->getAttrOfType<IntegerAttr>("kernel.work"))
    kernel.workPerUnit = work.getInt();
  kernel.mayFail = !function.getArgument(function.getNumArguments() - 3).use_empty();
  kernel.writesSizes = mayStoreTo(function.getArgument(function.getNumArguments() - 4));
  if (auto fallbacks = function->getAttrOfType<ArrayAttr>(fallbackAttribute))
    for (auto text : fallbacks.getAsRange<StringAttr>())
      kernel.fallbacks.push_back(text.str());
  return kernel;
}

} // namespace lathe::codegen
