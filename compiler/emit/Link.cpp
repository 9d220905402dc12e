// Archives and shared libraries from an object.
#include "compiler/emit/Emit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <cstdlib>
#include <dlfcn.h>

using namespace llvm;

namespace lathe {
namespace {

Error writeFile(StringRef path, StringRef bytes) {
  std::error_code ec;
  raw_fd_ostream os(path, ec);
  if (ec)
    return createStringError("cannot write '" + path.str() + "': " + ec.message());
  os << bytes;
  os.close();
  if (os.has_error()) {
    ec = os.error();
    os.clear_error();
    return createStringError("cannot write '" + path.str() + "': " + ec.message());
  }
  return Error::success();
}

/// Removes the files when it goes.
struct TemporaryFiles {
  SmallVector<SmallString<128>> paths;
  ~TemporaryFiles() {
    for (auto &p : paths)
      sys::fs::remove(p);
  }
  Expected<StringRef> add(StringRef suffix, StringRef bytes) {
    SmallString<128> path;
    if (std::error_code ec = sys::fs::createTemporaryFile("lathe", suffix, path))
      return createStringError("cannot make a temporary file: " + ec.message());
    paths.push_back(path);
    if (Error e = writeFile(path, bytes))
      return std::move(e);
    return StringRef(paths.back());
  }
};

/// What a linker may look at. By name, not as `environ`: that is empty for a library which takes its own symbols first
/// (RTLD_DEEPBIND) in a program with a copy of the variable.
std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (const char *name : {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"})
    if (const char *value = std::getenv(name))
      variables.push_back(std::string(name) + "=" + value);
  return variables;
}

/// The archive that objects with launches link with: it lies in lib/, beside the folder of this program or with this library.
Expected<std::string> findCudaArchive() {
  SmallVector<std::string> folders;
  folders.push_back(sys::path::parent_path(sys::path::parent_path(sys::fs::getMainExecutable(nullptr, nullptr))).str() + "/lib");
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&findCudaArchive), &info) && info.dli_fname)
    folders.push_back(sys::path::parent_path(info.dli_fname).str());
  for (const std::string &folder : folders)
    if (sys::fs::exists(folder + "/liblathe_cuda.a"))
      return folder + "/liblathe_cuda.a";
  return createStringError("liblathe_cuda.a is not in " + join(folders, " or "));
}

} // namespace

Expected<std::string> makeArchive(const CompiledArtifact &artifact, StringRef memberName) {
  std::vector<NewArchiveMember> members;
  members.emplace_back(MemoryBufferRef(artifact.object, memberName));
  auto buffer = writeArchiveToBuffer(members, SymtabWritingMode::NormalSymtab, object::Archive::K_GNU,
                                     /*Deterministic=*/true, /*Thin=*/false);
  if (!buffer)
    return buffer.takeError();
  return (*buffer)->getBuffer().str();
}

Error linkSharedLibrary(const CompiledArtifact &artifact, StringRef path) {
  TemporaryFiles files;
  files.paths.reserve(4);
  Expected<StringRef> object = files.add("o", artifact.object);
  if (!object)
    return object.takeError();
  std::string exports = "{ global: lathe_module_query; " + artifact.prefix + "_*; local: *; };\n";
  Expected<StringRef> script = files.add("map", exports);
  if (!script)
    return script.takeError();
  Expected<StringRef> log = files.add("log", "");
  if (!log)
    return log.takeError();

  // every module has its own PREFIX_module; only a library can also answer under one common name
  std::string query = "--defsym=lathe_module_query=" + artifact.prefix + "_module";
  std::string scriptOption = "--version-script=" + script->str();
  bool native = Triple(artifact.triple).getArch() == Triple(sys::getProcessTriple()).getArch();
  struct Linker {
    const char *name;
    bool driver;
  };
  for (Linker l : {Linker{"cc", true}, {"clang", true}, {"ld.lld", false}, {"ld.lld-22", false}, {"ld", false}}) {
    if (!native && !StringRef(l.name).starts_with("ld.lld"))
      continue;
    ErrorOr<std::string> program = sys::findProgramByName(l.name);
    if (!program)
      continue;
    std::vector<std::string> args = {*program, "-shared", "-o", path.str(), object->str()};
    if (artifact.onDevice) {
      Expected<std::string> archive = findCudaArchive();
      if (!archive)
        return archive.takeError();
      args.push_back(*archive);
    }
    for (const std::string &option : {query, scriptOption, std::string("--build-id=none"), std::string("-znoexecstack")})
      args.push_back(l.driver ? "-Wl," + option : option);
    if (l.driver) {
      args.push_back("-nostartfiles");
      if (artifact.onDevice)
        args.push_back("-ldl");
      args.push_back("-lm");
    }
    SmallVector<StringRef> argv(args.begin(), args.end());
    std::vector<std::string> variables = environment();
    SmallVector<StringRef> env(variables.begin(), variables.end());
    std::optional<StringRef> redirects[] = {StringRef(""), *log, *log};
    std::string error;
    int status = sys::ExecuteAndWait(*program, argv, ArrayRef<StringRef>(env), redirects, 0, 0, &error);
    if (status == 0)
      return Error::success();
    auto text = MemoryBuffer::getFile(*log);
    return createStringError(std::string(l.name) + " failed: " +
                             (error.empty() && text ? (*text)->getBuffer().trim().str() : error));
  }
  return createStringError("no linker found for a shared library: tried cc, clang, ld.lld and ld");
}

} // namespace lathe
