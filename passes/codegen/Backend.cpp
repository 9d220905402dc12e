#include "passes/codegen/Backend.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace lathe::codegen {

Backend::~Backend() = default;

std::string Backend::kernelName(Operation *op) const { return op->getName().stripDialect().str(); }

static AffineExpr exprAttr(func::FuncOp func, StringRef name, int64_t otherwise) {
  if (auto map = func->getAttrOfType<AffineMapAttr>(name); map && map.getValue().getNumResults() == 1)
    return map.getValue().getResult(0);
  return getAffineConstantExpr(otherwise, func.getContext());
}

EmittedKernel describeKernel(func::FuncOp function) {
  EmittedKernel kernel;
  kernel.function = function;
  kernel.extent = exprAttr(function, "kernel.extent", 1);
  kernel.scratch = exprAttr(function, "kernel.scratch", 0);
  if (auto work = function->getAttrOfType<IntegerAttr>("kernel.work"))
    kernel.workPerUnit = work.getInt();
  kernel.mayFail = !function.getArgument(function.getNumArguments() - 3).use_empty();
  return kernel;
}

} // namespace lathe::codegen
