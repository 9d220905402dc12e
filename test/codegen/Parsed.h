// Shared by the parts of the harness.
#ifndef LATHE_TEST_CODEGEN_PARSED_H
#define LATHE_TEST_CODEGEN_PARSED_H

#include "KernelHarness.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace lathe::test {
using namespace mlir;

inline KernelRun fail(std::string message) {
  KernelRun r;
  r.message = std::move(message);
  return r;
}

struct Parsed {
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp f;
  std::string messages;
};

inline bool parse(const std::string &text, Parsed &p) {
  p.context = makeContext();
  p.context->getDiagEngine().registerHandler([&p](Diagnostic &d) { p.messages += d.str() + "\n"; });
  p.module = parseSourceString<ModuleOp>(text, p.context.get());
  if (!p.module)
    return false;
  p.f = p.module->lookupSymbol<func::FuncOp>("f");
  return p.f != nullptr;
}

double valueAt(const Tensor &t, int64_t i, int part);

} // namespace lathe::test

#endif // LATHE_TEST_CODEGEN_PARSED_H
