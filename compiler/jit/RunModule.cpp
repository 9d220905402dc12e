#include "compiler/jit/RunModule.h"

#include "compiler/jit/Jit.h"

namespace lathe {

llvm::Expected<RunFunction> makeRunnable(mlir::OwningOpRef<mlir::ModuleOp> module) {
  mlir::MLIRContext *context = module->getContext();
  CompilerOptions options;
  options.cpu = "host";
  options.symbolPrefix = "calibrated";
  Compiler compiler(*context, options);
  compiler.adopt(std::move(module), Phase::Legalize);
  auto artifact = compiler.emit();
  if (!artifact)
    return artifact.takeError();
  auto loaded = loadObject(artifact->object, artifact->prefix);
  if (!loaded)
    return loaded.takeError();
  auto runner = std::make_shared<ModuleRunner>(*loaded, 0);
  return RunFunction([runner](llvm::ArrayRef<Tensor> inputs) { return runner->call(inputs); });
}

} // namespace lathe
