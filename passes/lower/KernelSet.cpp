// Two ops are equal when they print equally without locations and operand names: name, attributes, types, regions.
#include "passes/lower/KernelSet.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace lathe::lower {

static AffineExpr exprAttr(func::FuncOp func, StringRef name, int64_t otherwise) {
  if (auto map = func->getAttrOfType<AffineMapAttr>(name); map && map.getValue().getNumResults() == 1)
    return map.getValue().getResult(0);
  return getAffineConstantExpr(otherwise, func.getContext());
}

LogicalResult KernelSet::add(Operation *op) {
  if (numUpdatedOperands(op))
    op->setAttr("kernel.inplace", UnitAttr::get(op->getContext()));
  std::string key;
  llvm::raw_string_ostream os(key);
  // detached, so that values are numbered from here and operands have no names
  Operation *alone = op->clone();
  alone->removeAttr("kernel.side");
  alone->print(os, OpPrintingFlags().useLocalScope().printGenericOpForm());
  alone->destroy();
  // which operands are one value: a generator may read them through one pointer
  for (auto [i, v] : llvm::enumerate(op->getOperands())) {
    unsigned first = 0;
    while (op->getOperand(first) != v)
      ++first;
    if (first != i)
      os << ' ' << i << '=' << first;
  }
  auto [it, isNew] = byKey.try_emplace(key, static_cast<int>(kernels.size()));
  if (!isNew) {
    if (it->second < 0)
      return failure();
    indexOf[op] = it->second;
    return success();
  }
  std::string name = "k" + std::to_string(kernels.size()) + "_" + op->getName().stripDialect().str();
  if (auto winograd = op->getAttrOfType<IntegerAttr>("winograd")) // so that profiles tell
    name += "_winograd" + std::to_string(winograd.getInt());
  if (op->hasAttr("strassen"))
    name += "_strassen";
  if (op->hasAttr("spread"))
    name += "_spread";
  FailureOr<func::FuncOp> func = cpu::emitKernel(op, module, name, target);
  if (failed(func)) {
    it->second = -1;
    return failure();
  }
  KernelInfo info;
  info.name = func->getName().str();
  info.pointers = op->getNumOperands() + op->getNumResults();
  info.extent = exprAttr(*func, "kernel.extent", 1);
  info.scratch = exprAttr(*func, "kernel.scratch", 0);
  if (auto flops = (*func)->getAttrOfType<IntegerAttr>("kernel.work"))
    info.workPerUnit = flops.getInt();
  info.mayFail = !func->getArgument(info.pointers + 2).use_empty();
  indexOf[op] = static_cast<int>(kernels.size());
  kernels.push_back(std::move(info));
  return success();
}

} // namespace lathe::lower
