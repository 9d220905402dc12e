// Two ops are equal when they print equally without locations and operand names: name, attributes, types, regions.
#include "passes/lower/KernelSet.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;

namespace lathe::lower {

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
  const std::string group = backend.kernelName(op), name = "k" + std::to_string(kernels.size()) + "_" + group;
  const auto start = std::chrono::steady_clock::now();
  FailureOr<codegen::EmittedKernel> kernel = backend.emitKernel(op, module, name);
  if (times) {
    KernelTime &time = (*times)[group];
    ++time.kernels;
    time.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (failed(kernel)) {
    it->second = -1;
    return failure();
  }
  KernelInfo info;
  info.name = kernel->function.getName().str();
  info.pointers = op->getNumOperands() + op->getNumResults();
  info.extent = kernel->extent;
  info.scratch = kernel->scratch;
  info.workPerUnit = kernel->workPerUnit;
  info.mayFail = kernel->mayFail;
  info.writesSizes = kernel->writesSizes;
  info.fallbacks = std::move(kernel->fallbacks);
  indexOf[op] = static_cast<int>(kernels.size());
  kernels.push_back(std::move(info));
  return success();
}

} // namespace lathe::lower
