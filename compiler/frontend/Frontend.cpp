#include "compiler/frontend/Frontend.h"

#include "compiler/frontend/Recorded.h"
#include "compiler/frontend/tflite/Tflite.h"
#include "compiler/import/Import.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using llvm::StringRef;

namespace lathe {

static const std::pair<Phase, const char *> phases[] = {
    {Phase::Import, "import"},     {Phase::Cluster, "cluster"}, {Phase::Legalize, "legalize"},
    {Phase::Simplify, "simplify"}, {Phase::Fuse, "fuse"},       {Phase::Prepare, "prepare"},
    {Phase::Lower, "lower"},       {Phase::Emit, "emit"}};

const char *phaseName(Phase phase) {
  for (auto &p : phases)
    if (p.first == phase)
      return p.second;
  return "unknown";
}

std::optional<Phase> parsePhase(const std::string &name) {
  for (auto &p : phases)
    if (name == p.second)
      return p.first;
  return std::nullopt;
}

namespace {
class GraphFrontend : public Frontend {
public:
  StringRef name() const override { return "TensorFlow"; }
  // It has no identifier; the importer tells its kinds apart.
  bool recognizes(StringRef) const override { return true; }
  Phase entersAfter() const override { return Phase::Import; }
  FailureOr<ImportedModel> importFile(MLIRContext *context, StringRef path, const ImportOptions &options) const override {
    return importModel(context, path, options);
  }
  FailureOr<ImportedModel> importBytes(MLIRContext *context, StringRef bytes, StringRef name,
                                       const ImportOptions &options) const override {
    return importModelBytes(context, bytes, name, options);
  }
};
} // namespace

const Frontend &graphFrontend() {
  static const GraphFrontend frontend;
  return frontend;
}

const Frontend &frontendOfBytes(StringRef bytes) {
  for (const Frontend *frontend : {&tflite::frontend(), &recordedFrontend(), &graphFrontend()})
    if (frontend->recognizes(bytes))
      return *frontend;
  return graphFrontend();
}

const Frontend &frontendOfFile(StringRef path) {
  // Only the head is read: files may be large, and the frontend reads them in its own way.
  constexpr uint64_t headBytes = 512;
  uint64_t size = 0;
  if (llvm::sys::fs::is_directory(path) || llvm::sys::fs::file_size(path, size))
    return graphFrontend();
  auto head = llvm::MemoryBuffer::getFileSlice(path, std::min(size, headBytes), 0);
  return head ? frontendOfBytes((*head)->getBuffer()) : graphFrontend();
}

} // namespace lathe
