// The target that runs passes: apart from the others, which are built without them.
#include "Mutator.h"
#include "Targets.h"

#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"
#include "dialects/hlo/Hlo.h"
#include "passes/cluster/Passes.h"
#include "passes/legalize/Passes.h"
#include "passes/simplify/Passes.h"

#include "google/protobuf/stubs/logging.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

namespace pb = google::protobuf;

namespace lathe::fuzz {
namespace {

/// A context and the passes; their patterns take longer to make than most inputs to compile.
struct Compiler {
  Compiler() : context(mlir::MLIRContext::Threading::DISABLED), passes(&context) {
    context.loadDialect<graph::GraphDialect, hlo::HloDialect, mlir::func::FuncDialect>();
    context.printOpOnDiagnostic(false);
    cluster::buildClusterPipeline(passes);
    legalize::buildLegalizePipeline(passes);
    simplify::SimplifyOptions options;
    options.foldBytes = 1 << 20;
    simplify::buildSimplifyPipeline(passes, options);
  }
  mlir::MLIRContext context;
  mlir::PassManager passes;
};

void runLegalize(std::string_view bytes) {
  static std::unique_ptr<Compiler> compiler;
  static int runs = 0;
  if (runs++ % contextInputs == 0) {
    compiler.reset();
    compiler = std::make_unique<Compiler>();
  }
  CollectedDiagnostics diagnostics(compiler->context);
  auto model = importModelBytes(&compiler->context, llvm::StringRef(bytes.data(), bytes.size()), "graph.pb", smallOptions());
  if (failed(model))
    return;
  if (failed(compiler->passes.run(*model->module)))
    expect(!diagnostics.errors().empty(), "a pass failed without a message");
}

void mutateLegalize(std::string &bytes, uint32_t seed) {
  Mutator m(seed);
  tf::GraphDef graph;
  pb::LogSilencer silence;
  if (!graph.ParsePartialFromString(bytes))
    graph.Clear();
  if (m.below(2) || graph.node_size() == 0)
    m.addNode(graph);
  else
    m.mutate(graph);
  bytes = graph.SerializePartialAsString();
}

} // namespace

const Target legalize = {"legalize", runLegalize, mutateLegalize};

} // namespace lathe::fuzz
