// The backends of this build (LATHE_BACKENDS): the one place outside their folders that knows them.
#include "passes/codegen/Target.h"
#ifdef LATHE_BACKEND_CPU
#include "passes/codegen/cpu/CpuBackend.h"
#include "passes/codegen/cpu/passes/Passes.h"
#endif
#ifdef LATHE_BACKEND_PLAIN
#include "passes/codegen/plain/PlainBackend.h"
#endif
#ifdef LATHE_BACKEND_CUDA
#include "passes/codegen/nvptx/NvptxBackend.h"
#endif

namespace lathe::codegen {

static const BackendInfo all[] = {
#ifdef LATHE_BACKEND_CPU
    {"cpu", cpu::makeCpuBackend, cpu::registerCodegenCpuPhase, cpu::registerLayouts},
#endif
#ifdef LATHE_BACKEND_PLAIN
    {"plain", plain::makePlainBackend, nullptr, nullptr},
#endif
#ifdef LATHE_BACKEND_CUDA
    {"cuda", nvptx::makeNvptxBackend, nvptx::registerNvptxPasses, nullptr, /*launches=*/true},
#endif
};

llvm::ArrayRef<BackendInfo> backends() { return all; }

std::string backendNames() {
  std::string names;
  for (const BackendInfo &info : backends())
    names += (names.empty() ? "" : ", ") + info.name.str();
  return names;
}

std::unique_ptr<Backend> makeBackend(llvm::StringRef name, const Processor &processor) {
  for (const BackendInfo &info : backends())
    if (name.empty() || info.name == name)
      return info.create(processor);
  return nullptr;
}

mlir::FailureOr<std::unique_ptr<Backend>> backendOf(mlir::ModuleOp module) {
  mlir::FailureOr<Target> target = targetOf(module);
  if (mlir::failed(target))
    return mlir::failure();
  std::unique_ptr<Backend> made = makeBackend(target->backend, target->processor);
  if (!made)
    return module.emitError() << "this build has no backend '" << target->backend << "': expected one of " << backendNames();
  return made;
}

bool launchesKernels(llvm::StringRef name) {
  for (const BackendInfo &info : backends())
    if (name.empty() || info.name == name)
      return info.launches;
  return false;
}

void registerBackendDialects(mlir::DialectRegistry &registry) {
  for (const BackendInfo &info : backends())
    if (info.registerDialects)
      info.registerDialects(registry);
}

void registerBackendPasses() {
  registerSetTarget();
  for (const BackendInfo &info : backends())
    if (info.registerPasses)
      info.registerPasses();
}

} // namespace lathe::codegen
