// The target of TensorFlow Lite files: reader, translation and folding, and where files are cut. Mutants are bytes of a flatbuffer changed in place, so
// that most of them still pass its verifier.
#include "Mutator.h"
#include "Targets.h"

#include "compiler/frontend/tflite/ModelFile.h"
#include "compiler/frontend/tflite/Tflite.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"
#include "dialects/hlo/Hlo.h"
#include "graph/tflite/Cut.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <cstring>

namespace lathe::fuzz {
namespace {

/// The steps of every subgraph, as if all operators of TensorFlow had kernels for the host and nothing else; then with some operators
/// compiled alone for values of their inputs, whatever those are.
void cutTflite(mlir::MLIRContext &context, llvm::StringRef bytes) {
  CollectedDiagnostics diagnostics(context);
  import::Problems problems(&context);
  auto copy = llvm::MemoryBuffer::getMemBufferCopy(bytes); // aligned
  auto file = tflite::ModelFile::open(copy->getBuffer(), "model.tflite", problems);
  const tflgraph::Kernels kernels = {[](const std::string &) { return true; }, [](const std::string &) { return false; }};
  tflgraph::CutOptions plain, valued;
  for (unsigned op = 0; op < 64; op += 3)
    valued.apart.valued[op] = {0u, op % 4, op};
  for (unsigned i = 0; file && i < file->numSubgraphs(); ++i)
    for (const tflgraph::CutOptions *options : {&plain, &valued}) {
      tflgraph::NodeMaker maker(file->model(), i, kernels);
      auto steps = tflgraph::cut(maker, *options);
      if (!steps.ok()) {
        expect(!steps.status().message().empty(), "a file was not cut, without a message");
        continue;
      }
      for (const tflgraph::Step &step : *steps) {
        expect(step.first < step.last && (step.kind != tflgraph::Step::Kind::Compiled || !step.operators.empty()), "a step has no operators");
        for (int value : step.values)
          expect(llvm::is_contained(step.inputs, value), "a step is compiled for the value of what is no input");
      }
    }
}

void runTflite(std::string_view bytes) {
  static std::unique_ptr<mlir::MLIRContext> context;
  static int runs = 0;
  if (runs++ % contextInputs == 0) {
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    context->loadDialect<graph::GraphDialect, hlo::HloDialect, mlir::func::FuncDialect>();
    context->printOpOnDiagnostic(false);
  }
  cutTflite(*context, llvm::StringRef(bytes.data(), bytes.size()));
  CollectedDiagnostics diagnostics(*context);
  auto model = tflite::frontend().importBytes(context.get(), llvm::StringRef(bytes.data(), bytes.size()), "model.tflite",
                                              smallOptions());
  if (failed(model))
    return expect(!diagnostics.errors().empty(), "import failed without a message");
  expect(succeeded(mlir::verify(*model->module)), "import made an invalid module");
}

/// A number of 1, 2 or 4 bytes at a place that is aligned for it.
void mutateTflite(std::string &bytes, uint32_t seed) {
  Mutator m(seed);
  if (bytes.size() < 16 || m.below(16) == 0)
    return m.mutateBytes(bytes);
  const uint32_t width = 1u << m.below(3);
  const uint32_t at = m.below(uint32_t(bytes.size() / width)) * width;
  static const int32_t bad[] = {-1, 0, 1, 2, 3, 4, 127, 128, 255, 32767, -32768, 0x7fffffff, -0x7fffffff - 1};
  int32_t value = 0;
  memcpy(&value, bytes.data() + at, width);
  value = m.below(2) ? bad[m.below(sizeof bad / sizeof *bad)] : value + int32_t(m.below(9)) - 4;
  memcpy(bytes.data() + at, &value, width);
}

} // namespace

const Target tflite = {"tflite", runTflite, mutateTflite};

} // namespace lathe::fuzz
