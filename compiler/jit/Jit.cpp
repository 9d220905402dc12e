// Loading. Objects go through LLJIT's object layer (JITLink); nothing is compiled here.
#include "compiler/jit/Jit.h"
#include "runtime/abi/cuda_abi.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include <dlfcn.h>
#include <mutex>

using namespace llvm;

namespace lathe {
namespace {

Error checkModule(const lathe_module *m) {
  if (!m || m->struct_size < sizeof(lathe_module) || m->abi_version != LATHE_ABI_VERSION)
    return createStringError("module was made for another version of the ABI");
  return Error::success();
}

/// PREFIX_unload and PREFIX_device of modules that hold memory of a device.
using Unload = void (*)();
using DeviceQuery = const lathe_device_module *(*)();

class JitModule : public LoadedModule {
public:
  JitModule(std::unique_ptr<orc::LLJIT> j, const lathe_module *m, const lathe_device_module *d, Unload unload)
      : jit(std::move(j)), unload(unload) {
    module = m;
    device = d;
  }
  ~JitModule() override {
    if (unload)
      unload();
  }

private:
  std::unique_ptr<orc::LLJIT> jit;
  Unload unload;
};

class LibraryModule : public LoadedModule {
public:
  LibraryModule(void *h, const lathe_module *m) : handle(h) { module = m; }
  ~LibraryModule() override {
    if (auto unload = reinterpret_cast<Unload>(dlsym(handle, (std::string(module->name) + "_unload").c_str())))
      unload();
    dlclose(handle);
  }

private:
  void *handle;
};

orc::SymbolMap deviceFunctions(orc::LLJIT &jit) {
  orc::SymbolMap symbols;
  auto add = [&](const char *name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  };
#define LATHE_DEVICE_FUNCTION(name) add(#name, name)
  LATHE_DEVICE_FUNCTION(lathe_cuda_load_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_unload_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_open_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_close_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_reserve_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_finish_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_get_memory_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_free_memory_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_transfer_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_begin_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_end_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_cells_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_check_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_bind_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_store_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_allocate_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_release_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_upload_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_read_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_copy_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_fill_2);
  LATHE_DEVICE_FUNCTION(lathe_cuda_launch_2);
#undef LATHE_DEVICE_FUNCTION
  return symbols;
}

} // namespace

Expected<std::shared_ptr<LoadedModule>> loadObject(StringRef object, StringRef prefix) {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
  auto jit = orc::LLJITBuilder()
                 .setPlatformSetUp(orc::setUpInactivePlatform)
                 .setObjectLinkingLayerCreator([](orc::ExecutionSession &session)
                                                   -> Expected<std::unique_ptr<orc::ObjectLayer>> {
                   return std::make_unique<orc::ObjectLinkingLayer>(session);
                 })
                 .create();
  if (!jit)
    return jit.takeError();
  orc::JITDylib &main = (*jit)->getMainJITDylib();
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  main.addGenerator(std::move(*process));
  // what code with launches calls; this program need not export it
  if (Error e = main.define(orc::absoluteSymbols(deviceFunctions(**jit))))
    return std::move(e);
  if (Error e = (*jit)->addObjectFile(main, MemoryBuffer::getMemBufferCopy(object, prefix)))
    return std::move(e);
  auto query = (*jit)->lookup((prefix + "_module").str());
  if (!query)
    return query.takeError();
  const lathe_module *m = query->toPtr<lathe_module_query_fn>()();
  if (Error e = checkModule(m))
    return std::move(e);
  Unload unload = nullptr;
  const lathe_device_module *device = nullptr;
  if (auto symbol = (*jit)->lookup((prefix + "_unload").str())) {
    unload = symbol->toPtr<Unload>();
    auto query = (*jit)->lookup((prefix + "_device").str());
    if (!query)
      return query.takeError();
    device = query->toPtr<DeviceQuery>()();
  } else {
    consumeError(symbol.takeError()); // it holds nothing
  }
  return std::make_shared<JitModule>(std::move(*jit), m, device, unload);
}

Expected<std::shared_ptr<LoadedModule>> loadSharedLibrary(StringRef path) {
  // a name without a slash would be looked up in the system's folders
  std::string file = path.contains('/') ? path.str() : "./" + path.str();
  void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return createStringError(std::string("cannot load library: ") + dlerror());
  auto query = reinterpret_cast<lathe_module_query_fn>(dlsym(handle, "lathe_module_query"));
  const lathe_module *m = query ? query() : nullptr;
  Error e = query ? checkModule(m) : createStringError("'" + path.str() + "' does not export lathe_module_query");
  if (e) {
    dlclose(handle);
    return std::move(e);
  }
  return std::make_shared<LibraryModule>(handle, m);
}

} // namespace lathe
