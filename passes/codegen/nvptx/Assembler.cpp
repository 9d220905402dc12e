#include "passes/codegen/nvptx/Assembler.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <vector>

using namespace llvm;

namespace lathe::nvptx {
namespace {

constexpr unsigned mostSeconds = 1800;

/// A file that is gone with this.
struct Temporary {
  SmallString<128> path;
  std::error_code error;
  explicit Temporary(StringRef suffix) : error(sys::fs::createTemporaryFile("lathe", suffix, path)) {}
  ~Temporary() {
    if (!error)
      sys::fs::remove(path);
  }
  std::string read() const {
    auto text = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    return text ? (*text)->getBuffer().str() : std::string();
  }
};

/// Runs the program; what it says comes back.
Expected<std::string> execute(const std::string &program, ArrayRef<std::string> options) {
  Temporary log("log");
  if (log.error)
    return createStringError("cannot make a temporary file: " + log.error.message());
  SmallVector<StringRef> args = {program};
  args.append(options.begin(), options.end());
  std::optional<StringRef> redirects[] = {StringRef(""), log.path.str(), log.path.str()};
  std::string error;
  if (int status = sys::ExecuteAndWait(program, args, std::nullopt, redirects, mostSeconds, 0, &error)) {
    std::string said = log.read();
    return createStringError("'" + program + "' failed (" + std::to_string(status) + "): " +
                             StringRef(error.empty() ? said : error).rtrim().substr(0, 2000).str());
  }
  return log.read();
}

} // namespace

std::optional<std::string> findAssembler() {
  if (const char *named = std::getenv("LATHE_PTXAS"); named && *named)
    return named;
  if (ErrorOr<std::string> found = sys::findProgramByName("ptxas"))
    return *found;
  if (const char *home = std::getenv("CUDA_HOME"); home && *home)
    if (std::string path = std::string(home) + "/bin/ptxas"; sys::fs::can_execute(path))
      return path;
  return std::nullopt;
}

Expected<std::string> assemblerVersion(const std::string &program) {
  Expected<std::string> said = execute(program, {"--version"});
  if (!said)
    return said.takeError();
  // "Cuda compilation tools, release 13.0, V13.0.88"
  StringRef version = StringRef(*said).split(", V").second;
  version = version.take_while([](char c) { return isDigit(c) || c == '.'; });
  if (version.empty())
    return createStringError("'" + program + "' tells no version");
  return version.str();
}

Expected<Assembled> assemble(const std::string &program, StringRef ptx, StringRef target) {
  Temporary text("ptx"), code("cubin");
  if (text.error || code.error)
    return createStringError("cannot make a temporary file: " + (text.error ? text.error : code.error).message());
  std::error_code error;
  raw_fd_ostream os(text.path, error);
  if (!error) {
    os << ptx;
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return createStringError("cannot write '" + text.path.str().str() + "': " + error.message());
  Expected<std::string> said = execute(program, {"-v", "-arch=" + target.str(), "-o", code.path.str().str(), text.path.str().str()});
  if (!said)
    return said.takeError();
  Assembled result{code.read(), std::move(*said)};
  if (!StringRef(result.code).starts_with("\177ELF"))
    return createStringError("'" + program + "' wrote no machine code");
  return result;
}

} // namespace lathe::nvptx
