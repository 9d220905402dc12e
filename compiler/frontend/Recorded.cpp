#include "compiler/frontend/Recorded.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace mlir;

namespace lathe {

static constexpr llvm::StringLiteral kPhaseAttr = "lathe.phase", kOptionsAttr = "lathe.options";

llvm::Error writeRecorded(ModuleOp module, Phase phase, const std::vector<std::pair<std::string, std::string>> &options,
                          llvm::StringRef path) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return llvm::createStringError("cannot write " + path + ": " + error.message());
  Builder b(module.getContext());
  SmallVector<NamedAttribute> items;
  for (const auto &[name, value] : options)
    items.push_back(b.getNamedAttr(name, b.getStringAttr(value)));
  module->setAttr(kPhaseAttr, b.getStringAttr(phaseName(phase)));
  module->setAttr(kOptionsAttr, b.getDictionaryAttr(items));
  LogicalResult written = writeBytecodeToFile(module, os);
  module->removeAttr(kPhaseAttr);
  module->removeAttr(kOptionsAttr);
  os.close();
  if (failed(written) || os.has_error()) {
    os.clear_error();
    return llvm::createStringError("cannot write " + path);
  }
  return llvm::Error::success();
}

namespace {

class RecordedFrontend : public Frontend {
public:
  llvm::StringRef name() const override { return "Lathe bytecode"; }
  bool recognizes(llvm::StringRef head) const override {
    return isBytecode(llvm::MemoryBufferRef(head, "head"));
  }
  // What a session would run is gone, also where the module is still a graph.
  Phase entersAfter() const override { return Phase::Legalize; }
  FailureOr<ImportedModel> importFile(MLIRContext *context, llvm::StringRef path, const ImportOptions &options) const override {
    auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!file)
      return emitError(UnknownLoc::get(context)) << "cannot read " << path << ": " << file.getError().message();
    return read(context, std::move(*file), options);
  }
  FailureOr<ImportedModel> importBytes(MLIRContext *context, llvm::StringRef bytes, llvm::StringRef name,
                                       const ImportOptions &options) const override {
    return read(context, llvm::MemoryBuffer::getMemBufferCopy(bytes, name), options);
  }

private:
  static FailureOr<ImportedModel> read(MLIRContext *context, std::unique_ptr<llvm::MemoryBuffer> buffer,
                                       const ImportOptions &options) {
    auto error = [&](const llvm::Twine &text) {
      emitError(UnknownLoc::get(context)) << buffer->getBufferIdentifier() << ": " << text;
      return failure();
    };
    if (int64_t(buffer->getBufferSize()) > options.maxBytes)
      return error("the file has " + llvm::Twine(buffer->getBufferSize()) + " bytes, more than the limit of " +
                   llvm::Twine(options.maxBytes));
    ImportedModel model;
    // sections lie at multiples of what their constants need, and the reader refuses a buffer that is aligned to less
    auto aligned = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(buffer->getBufferSize(), buffer->getBufferIdentifier(), llvm::Align(4096));
    if (!aligned)
      return error("no memory for the file");
    std::memcpy(aligned->getBufferStart(), buffer->getBufferStart(), buffer->getBufferSize());
    model.module = parseSourceString<ModuleOp>(StringRef(aligned->getBufferStart(), aligned->getBufferSize()), ParserConfig(context), buffer->getBufferIdentifier());
    if (!model.module)
      return failure();
    auto phaseText = (*model.module)->getAttrOfType<StringAttr>(kPhaseAttr);
    std::optional<Phase> phase = phaseText ? parsePhase(phaseText.getValue().str()) : std::nullopt;
    auto recorded = (*model.module)->getAttrOfType<DictionaryAttr>(kOptionsAttr);
    if (!phase || !recorded || *phase == Phase::Emit)
      return error("not a module that --dump-dir wrote: " + llvm::Twine(kPhaseAttr) + " or " + llvm::Twine(kOptionsAttr) +
                   " is missing");
    model.phase = *phase;
    for (NamedAttribute item : recorded)
      if (auto value = dyn_cast<StringAttr>(item.getValue()))
        model.recorded.emplace_back(item.getName().str(), value.getValue().str());
    (*model.module)->removeAttr(kPhaseAttr);
    (*model.module)->removeAttr(kOptionsAttr);
    return model;
  }
};

} // namespace

const Frontend &recordedFrontend() {
  static const RecordedFrontend frontend;
  return frontend;
}

} // namespace lathe
