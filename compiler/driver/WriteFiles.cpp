#include "compiler/driver/WriteFiles.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <sys/resource.h>

namespace lathe {

bool namesFiles(llvm::StringRef prefix) {
  const llvm::StringRef stem = llvm::sys::path::filename(prefix);
  return !stem.empty() && stem != "." && stem != ".." && !prefix.ends_with("/");
}

llvm::Error writeTextFile(const std::string &path, llvm::StringRef content) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << content;
    os.close();
    error = os.error();
  }
  os.clear_error();
  if (error)
    return llvm::createStringError("cannot write " + path + ": " + error.message());
  return llvm::Error::success();
}

llvm::Error writeArtifact(const CompiledArtifact &artifact, const std::string &prefix, const std::set<std::string> &wanted,
                          const std::string &weights) {
  const std::pair<const char *, std::pair<const char *, const std::string *>> texts[] = {{"obj", {".o", &artifact.object}},
                                                                                        {"header", {".h", &artifact.header}},
                                                                                        {"asm", {".s", &artifact.assembly}},
                                                                                        {"llvm", {".ll", &artifact.llvmIr}}};
  for (auto &[kind, file] : texts)
    if (wanted.count(kind))
      if (llvm::Error error = writeTextFile(prefix + file.first, *file.second))
        return error;
  if (wanted.count("ptx"))
    for (const codegen::Image &image : artifact.deviceCode) {
      const std::string name = &image == &artifact.deviceCode.front() ? "" : "." + image.target;
      if (llvm::Error error = writeTextFile(prefix + name + (image.machineCode ? ".cubin" : ".ptx"), image.code))
        return error;
    }
  if (weights != "embed")
    if (llvm::Error error = writeTextFile(weights, artifact.weights))
      return error;
  if (wanted.count("a")) {
    auto archive = makeArchive(artifact, llvm::sys::path::filename(prefix).str() + ".o");
    if (!archive)
      return archive.takeError();
    if (llvm::Error error = writeTextFile(prefix + ".a", *archive))
      return error;
  }
  if (wanted.count("so"))
    return linkSharedLibrary(artifact, prefix + ".so");
  return llvm::Error::success();
}

std::string reportJson(const EmitReport &r, llvm::ArrayRef<PhaseTime> times) {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  double seconds = 0;
  llvm::json::Object phases;
  for (const PhaseTime &t : times) {
    phases[phaseName(t.phase)] = t.seconds;
    seconds += t.seconds;
  }
  llvm::json::Object j{{"compile_s", seconds},
                       {"phases_s", std::move(phases)},
                       {"peak_memory_bytes", static_cast<int64_t>(usage.ru_maxrss) * 1024},
                       {"arena_bytes", r.arenaBytes},
                       {"sum_of_buffers_bytes", r.sumOfBuffers},
                       {"constant_bytes", r.constantBytes},
                       {"code_bytes", r.codeBytes},
                       {"device_code_bytes", r.deviceCodeBytes},
                       {"kernels", r.kernels},
                       {"kernel_calls", r.kernelCalls},
                       {"copies", r.copies},
                       {"planned_calls", r.planned}};
  llvm::json::Object fallbacks;
  for (const auto &[form, kernels] : r.fallbacks)
    fallbacks[form] = kernels;
  j["fallbacks"] = std::move(fallbacks);
  return llvm::formatv("{0}", llvm::json::Value(std::move(j))).str();
}

} // namespace lathe
