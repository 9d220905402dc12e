// Files of TensorFlow Lite into modules of hlo.
#include "compiler/frontend/tflite/Tflite.h"

#include "compiler/frontend/tflite/Translator.h"
#include "dialects/hlo/Hlo.h"

#include "mlir/IR/Iterators.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace lathe::tflite {

using import::Problems;

std::unique_ptr<llvm::MemoryBuffer> readFile(StringRef path, const ImportOptions &options, Problems &problems) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) {
    problems.add(Twine("cannot read ") + import::printable(path) + ": " + file.getError().message());
    return nullptr;
  }
  if (int64_t((*file)->getBufferSize()) > options.maxBytes) {
    problems.add(Twine(import::printable(path)) + ": the file has " + Twine((*file)->getBufferSize()) +
                 " bytes, more than the limit of " + Twine(options.maxBytes));
    return nullptr;
  }
  return std::move(*file);
}

namespace {

/// Bytes at an address that the flatbuffer's numbers are aligned at.
std::unique_ptr<llvm::MemoryBuffer> aligned(StringRef bytes) { return llvm::MemoryBuffer::getMemBufferCopy(bytes); }

/// Removes what nobody reads, loops too: the compiled forms of operators that stand as the file has them. Checks in there go with them, as all
/// do in a file that is written; operators that keep a state stay.
void eraseUnread(ModuleOp module) {
  auto keepsState = [](Operation *op) { return op->walk([](hlo::CustomCallOp) { return WalkResult::interrupt(); }).wasInterrupted(); };
  module.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op->use_empty() && (isOpTriviallyDead(op) || (isa<hlo::WhileOp, hlo::IfOp>(op) && !keepsState(op))))
      op->erase();
  });
}

FailureOr<ImportedModel> importVerified(MLIRContext *context, StringRef bytes, StringRef name,
                                        const ImportOptions &options, Problems &problems, bool keepOperators = false) {
  context->getOrLoadDialect<hlo::HloDialect>();
  context->getOrLoadDialect<func::FuncDialect>();
  std::unique_ptr<ModelFile> file = ModelFile::open(bytes, name, problems);
  if (!file)
    return failure();
  auto plans = planEntries(*file, options, problems);
  if (failed(plans))
    return failure();
  ImportedModel result;
  result.module = ModuleOp::create(UnknownLoc::get(context));
  result.phase = Phase::Legalize;
  result.hasSignature = file->model().signature_defs() && file->model().signature_defs()->size();
  Translator translator(*result.module, *file, options);
  translator.keepsOperators = keepOperators;
  bool ok = true;
  for (const EntryPlan &plan : *plans) {
    ok &= succeeded(translator.translate(plan)) && !translator.sawError;
    result.entries.push_back(describe(*file, plan));
  }
  if (!ok || failed(translator.finishModule()))
    return failure();
  if (keepOperators)
    eraseUnread(*result.module);
  PassManager passes(context);
  // as after the legalization of graphs: constants that several operators made are one
  passes.addPass(createCSEPass());
  if (failed(verify(*result.module)) || failed(passes.run(*result.module)))
    return failure();
  return result;
}

class TfliteFrontend : public Frontend {
public:
  StringRef name() const override { return "TensorFlow Lite"; }
  bool recognizes(StringRef head) const override {
    return head.size() >= 8 && flatbuffers::BufferHasIdentifier(head.data(), tfl::ModelIdentifier());
  }
  Phase entersAfter() const override { return Phase::Legalize; }
  FailureOr<ImportedModel> importFile(MLIRContext *context, StringRef path, const ImportOptions &options) const override {
    Problems problems(context);
    auto file = readFile(path, options, problems);
    FailureOr<ImportedModel> model = failure();
    if (file)
      model = importVerified(context, file->getBuffer(), path, options, problems);
    problems.finish();
    return model;
  }
  FailureOr<ImportedModel> importBytes(MLIRContext *context, StringRef bytes, StringRef name,
                                       const ImportOptions &options) const override {
    Problems problems(context);
    auto copy = aligned(bytes);
    auto model = importVerified(context, copy->getBuffer(), name, options, problems);
    problems.finish();
    return model;
  }
};

} // namespace

const Frontend &frontend() {
  static const TfliteFrontend frontend;
  return frontend;
}

FailureOr<ImportedModel> importForWriting(MLIRContext *context, StringRef path, const ImportOptions &options) {
  Problems problems(context);
  auto file = readFile(path, options, problems);
  FailureOr<ImportedModel> model = failure();
  if (file)
    model = importVerified(context, file->getBuffer(), path, options, problems, /*keepOperators=*/true);
  problems.finish();
  return model;
}

FailureOr<Report> checkFile(MLIRContext *context, StringRef path, const ImportOptions &options) {
  Problems problems(context);
  struct Finish {
    Problems &problems;
    ~Finish() { problems.finish(); }
  } finish{problems};
  auto bytes = readFile(path, options, problems);
  auto file = bytes ? ModelFile::open(bytes->getBuffer(), path, problems) : nullptr;
  if (!file)
    return failure();
  auto plans = planEntries(*file, options, problems);
  if (failed(plans))
    return failure();
  Report report;
  for (const EntryPlan &plan : *plans)
    report.entries.push_back(describe(*file, plan));
  for (unsigned s = 0; s < file->numSubgraphs(); ++s) {
    const tfl::SubGraph &graph = file->subgraph(s);
    if (!graph.operators())
      continue;
    for (const tfl::Operator *op : *graph.operators()) {
      std::string name = ModelFile::opName(file->code(*op)), why = Translator::whyNot(*file, s, *op);
      Report::Count &count = report.ops[name];
      ++count.count;
      if (why.empty())
        continue;
      ++count.unsupported;
      std::string node = op->outputs() && op->outputs()->size()
                             ? import::printable(file->tensor(s, op->outputs()->Get(0)).name)
                             : "";
      std::string subgraph = graph.name() && graph.name()->size() ? import::printable(graph.name()->string_view())
                                                                   : std::to_string(s);
      report.problems.push_back({node, name, subgraph, why});
    }
  }
  return report;
}

} // namespace lathe::tflite
