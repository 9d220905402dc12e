#include "tools/lathe/Session.h"

#include "compiler/support/Diagnostics.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"

#include <chrono>

namespace lathe::cli {

int fail(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  // a phase that reported through diagnostics leaves an empty text
  return text.empty() ? static_cast<int>(BadInput) : fail(text);
}

std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false); // messages name the node
  installDiagnosticPrinter(*context);
  return context;
}

Runner::Runner(std::shared_ptr<LoadedModule> module, int entry, int threads) : runner(std::move(module), entry) {
  if (threads > 1) {
    pool = std::make_unique<ThreadPool>(threads);
    runner.setParallelFor(ThreadPool::parallelFor, pool.get(), threads);
  }
}

void useMlirFlags(Compiler &compiler) {
  compiler.configurePassManager = [](mlir::PassManager &pm) { return mlir::applyPassManagerCLOptions(pm); };
}

int load(ModelArgs &args, Loaded &out) {
  llvm::StringRef model = args.options.model;
  if (model.ends_with(".so")) {
    auto module = loadSharedLibrary(model);
    if (!module)
      return fail(module.takeError());
    out.module = *module;
    return Fine;
  }
  auto start = std::chrono::steady_clock::now();
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  Compiler compiler(*context, args.options);
  useMlirFlags(compiler);
  if (failed(compiler.import()))
    return BadInput;
  auto artifact = compiler.emit();
  if (!artifact)
    return fail(artifact.takeError());
  out.artifact = std::move(*artifact);
  auto module = loadObject(out.artifact.object, out.artifact.prefix);
  if (!module)
    return fail(module.takeError());
  out.module = *module;
  out.compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Fine;
}

} // namespace lathe::cli
