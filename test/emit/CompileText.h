// Text of a module to a loaded module, for the tests of this folder.
#ifndef LATHE_TEST_EMIT_COMPILETEXT_H
#define LATHE_TEST_EMIT_COMPILETEXT_H

#include "compiler/emit/Emit.h"
#include "compiler/jit/Jit.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace lathe {

struct Compiled {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompiledArtifact artifact;
  std::shared_ptr<LoadedModule> loaded;
};

inline std::unique_ptr<Compiled> compile(llvm::StringRef text, EmitOptions options = {}, bool load = true) {
  auto c = std::make_unique<Compiled>();
  c->context.loadDialect<mlir::func::FuncDialect, hlo::HloDialect, kernel::KernelDialect>();
  c->module = mlir::parseSourceString<mlir::ModuleOp>(text, &c->context);
  if (!c->module) {
    ADD_FAILURE() << "parse error";
    return nullptr;
  }
  options.cpu = options.triple.empty() ? "host" : options.cpu;
  mlir::OwningOpRef<mlir::ModuleOp> emitted = c->module->clone(); // tests look at the module afterwards
  auto artifact = emitModule(*emitted, options);
  if (!artifact) {
    ADD_FAILURE() << llvm::toString(artifact.takeError());
    return nullptr;
  }
  c->artifact = std::move(*artifact);
  if (!load)
    return c;
  auto loaded = loadObject(c->artifact.object, options.symbolPrefix);
  if (!loaded) {
    ADD_FAILURE() << llvm::toString(loaded.takeError());
    return nullptr;
  }
  c->loaded = *loaded;
  return c;
}

inline std::vector<Tensor> call(Compiled &c, llvm::ArrayRef<Tensor> inputs, int entry = 0) {
  ModuleRunner runner(c.loaded, entry);
  auto result = runner.call(inputs);
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }
  return *result;
}

inline Tensor floats(std::vector<float> v) { return Tensor::vector<float>(DType::Float32, v); }
inline std::vector<float> values(const Tensor &t) {
  return std::vector<float>(t.data<float>(), t.data<float>() + t.numElements());
}

} // namespace lathe

#endif
