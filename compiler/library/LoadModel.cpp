// lathe_load_model: a whole model compiled into the memory of a program that loaded the compiler.
#include "compiler/driver/Compiler.h"
#include "compiler/jit/CompileCluster.h"
#include "compiler/jit/DiskCache.h"
#include "compiler/jit/Jit.h"
#include "compiler/support/Diagnostics.h"
#include "runtime/abi/load_model.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

#include <cstdlib>
#include <cstring>

namespace lathe {
namespace {

/// The inputs that are constants, with their values.
std::vector<std::pair<std::string, Tensor>> valuesOf(const lathe_load_request &r) {
  std::vector<std::pair<std::string, Tensor>> values;
  // those who were built before there were any pass a shorter structure
  if (r.struct_size < sizeof(r))
    return values;
  for (int32_t i = 0; i < r.num_values; ++i) {
    const lathe_cluster_arg &arg = *r.values[i];
    Tensor value = Tensor::allocate(static_cast<DType>(arg.dtype), {arg.dims, arg.dims + arg.rank});
    if (value.sizeBytes())
      std::memcpy(value.data(), arg.data, value.sizeBytes());
    values.emplace_back(r.value_names[i], std::move(value));
  }
  return values;
}

/// Of the bytes, the options, the values and this build.
std::string keyOf(const lathe_load_request &r) {
  llvm::BLAKE3 hash;
  auto add = [&](llvm::StringRef text) {
    const uint64_t size = text.size();
    hash.update(llvm::StringRef(reinterpret_cast<const char *>(&size), sizeof(size)));
    hash.update(text);
  };
  add("model");
  add(buildIdentity());
  add({r.model.data, r.model.size});
  for (int32_t i = 0; i < 2 * r.num_options; ++i)
    add(r.options[i]);
  for (const auto &[name, value] : valuesOf(r)) {
    add(name);
    add(std::string(dtypeName(value.dtype())) + dimsToString(value.dims()));
    add({static_cast<const char *>(value.data()), static_cast<size_t>(value.sizeBytes())});
  }
  return llvm::toHex(hash.final<16>(), true);
}

llvm::Expected<std::shared_ptr<LoadedModule>> load(const lathe_load_request &r, std::string &text) {
  CompilerOptions options;
  options.cpu = "host";
  for (int32_t i = 0; i < r.num_options; ++i)
    if (absl::Status s = setOption(options, r.options[2 * i], r.options[2 * i + 1]); !s.ok())
      return llvm::createStringError(std::string(s.message()));
  options.constantFeeds = valuesOf(r);
  options.symbolPrefix = "model";
  // what reads or writes files of its own is compiled each time
  const bool hasFiles = !options.tuneCache.empty() || !options.dumpDir.empty() || !options.quantize.calibrate.empty() ||
                        !options.quantize.report.empty() || options.weights != "embed";
  const std::string folder = hasFiles ? "" : cacheFolder(nullptr), key = folder.empty() ? "" : keyOf(r);
  const DiskCache disk(folder);
  CompiledObject kept;
  std::vector<std::string> values;
  if (disk.load(key, 0, [](auto &, auto &) { return true; }, kept, values)) {
    // a file whose object cannot be linked is as good as none
    if (auto module = loadObject(kept.object, kept.prefix))
      return module;
    else
      llvm::consumeError(module.takeError());
    disk.drop(key);
  }
  options.releaseConstants = true; // nothing else lives in this context
  std::unique_ptr<mlir::MLIRContext> context = makeCompileContext();
  CollectedDiagnostics diagnostics(*context);
  Compiler compiler(*context, options);
  llvm::Expected<CompiledArtifact> artifact = llvm::createStringError("");
  if (mlir::succeeded(compiler.importBytes({r.model.data, r.model.size}))) {
    llvm::consumeError(artifact.takeError());
    artifact = compiler.emit();
  }
  text = diagnostics.text();
  if (!artifact)
    return artifact.takeError();
  auto module = loadObject(artifact->object, artifact->prefix);
  if (module && artifact->deviceCode.empty())
    disk.store(key, {std::move(artifact->object), artifact->prefix, {}, {}}, {});
  return module;
}

} // namespace
} // namespace lathe

extern "C" int32_t lathe_load_model(const lathe_load_request *request, lathe_loaded_model *loaded, lathe_bytes *messages) {
  *messages = {nullptr, 0};
  std::string text;
  auto module = lathe::load(*request, text);
  if (module) {
    loaded->module = &(*module)->abi();
    loaded->variables = (*module)->variables();
    loaded->owner = new std::shared_ptr<lathe::LoadedModule>(std::move(*module));
    return LATHE_OK;
  }
  std::string more = llvm::toString(module.takeError());
  if (text.find(more) == std::string::npos)
    text += (text.empty() ? "" : "\n") + more;
  if (text.empty())
    text = "compiling failed without a message";
  if (char *data = static_cast<char *>(std::malloc(text.size() + 1))) {
    std::memcpy(data, text.c_str(), text.size() + 1);
    *messages = {data, text.size()};
  }
  return LATHE_INVALID_ARGUMENT;
}

extern "C" void lathe_release_model(lathe_loaded_model *loaded) {
  delete static_cast<std::shared_ptr<lathe::LoadedModule> *>(loaded->owner);
  loaded->owner = nullptr;
}
