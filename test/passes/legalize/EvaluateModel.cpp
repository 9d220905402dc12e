// lathe-evaluate MODEL [--inputs F.npz] [--expected F.npz] [--unknown-leading] [--print] [--input NAME=DIMS]: imports and
// legalizes a model, runs the hlo on the reference evaluator and compares. Numerics of legalization without codegen.
#include "base/Npz.h"
#include "compiler/import/Import.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"
#include "dialects/hlo/Evaluator.h"
#include "dialects/hlo/Hlo.h"
#include "passes/cluster/Passes.h"
#include "passes/legalize/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

#include <cmath>

using namespace mlir;

static llvm::cl::opt<std::string> model(llvm::cl::Positional, llvm::cl::Required);
static llvm::cl::opt<std::string> inputsFile("inputs");
static llvm::cl::opt<std::string> expectedFile("expected");
static llvm::cl::opt<std::string> entryName("entry", llvm::cl::init("main"));
static llvm::cl::list<std::string> inputShapes("input");
static llvm::cl::list<std::string> outputs("output");
static llvm::cl::opt<bool> unknownLeading("unknown-leading");
static llvm::cl::opt<bool> print("print");
static llvm::cl::opt<bool> printGraph("print-graph");
static llvm::cl::opt<double> tolerance("tolerance", llvm::cl::init(1e-4));

static double element(const lathe::Tensor &t, int64_t i) {
  switch (t.dtype()) {
  case lathe::DType::Float32: return t.data<float>()[i];
  case lathe::DType::Float64: return t.data<double>()[i];
  case lathe::DType::Int32: return t.data<int32_t>()[i];
  case lathe::DType::Int64: return double(t.data<int64_t>()[i]);
  case lathe::DType::Bool:
  case lathe::DType::UInt8: return t.data<uint8_t>()[i];
  default: return 0;
  }
}

static int compare(StringRef name, const lathe::Tensor &got, const lathe::Tensor &want) {
  if (got.dims() != want.dims() || got.dtype() != want.dtype()) {
    llvm::outs() << name << ": " << lathe::dtypeName(got.dtype()) << lathe::dimsToString(got.dims()) << ", expected "
                 << lathe::dtypeName(want.dtype()) << lathe::dimsToString(want.dims()) << "\n";
    return 1;
  }
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < want.numElements(); ++i) {
    double a = element(got, i), b = element(want, i);
    if (std::isnan(a) != std::isnan(b))
      worst = INFINITY;
    if (!std::isnan(b) && a != b)
      worst = std::max(worst, std::fabs(a - b));
    largest = std::max(largest, std::fabs(b));
  }
  bool bad = !(worst <= tolerance * std::max(1.0, largest));
  llvm::outs() << name << ": " << lathe::dimsToString(want.dims()) << " largest difference " << worst << " of "
               << largest << (bad ? " WRONG" : "") << "\n";
  return bad;
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv);
  MLIRContext context;
  context.loadDialect<lathe::graph::GraphDialect, lathe::hlo::HloDialect, func::FuncDialect>();
  lathe::installDiagnosticPrinter(context);
  lathe::ImportOptions options;
  options.unknownLeading = unknownLeading;
  options.outputs.assign(outputs.begin(), outputs.end());
  for (StringRef text : inputShapes) {
    auto [name, dims] = text.split('=');
    std::vector<int64_t> shape;
    SmallVector<StringRef> parts;
    dims.split(parts, 'x', -1, false);
    for (StringRef part : parts) {
      int64_t d = -1;
      if (part != "?")
        part.getAsInteger(10, d);
      shape.push_back(d);
    }
    options.inputs.push_back({name.str(), shape});
  }
  auto imported = lathe::importModel(&context, model, options);
  if (failed(imported))
    return 1;
  ModuleOp module = *imported->module;
  if (printGraph)
    module.print(llvm::outs());
  PassManager pm(&context);
  lathe::cluster::buildClusterPipeline(pm);
  lathe::legalize::buildLegalizePipeline(pm);
  if (failed(pm.run(module)))
    return 1;
  if (print)
    module.print(llvm::outs(), OpPrintingFlags().useLocalScope().elideLargeElementsAttrs(32).elideLargeResourceString(32));
  auto function = module.lookupSymbol<func::FuncOp>(entryName);
  if (!function)
    return 1;
  size_t ops = 0;
  function.walk([&](Operation *) { ++ops; });
  llvm::outs() << ops << " ops\n";
  if (inputsFile.empty())
    return 0;
  auto given = lathe::readNpz(inputsFile);
  if (!given.ok()) {
    llvm::outs() << std::string(given.status().message()) << "\n";
    return 1;
  }
  auto find = [](const lathe::NamedTensors &list, StringRef name, StringRef tensor) -> const lathe::Tensor * {
    for (auto &[key, value] : list)
      if (key == name || key == tensor || key == tensor.split(':').first)
        return &value;
    return nullptr;
  };
  auto nameOf = [](DictionaryAttr attrs, StringRef key) {
    auto s = attrs ? attrs.getAs<StringAttr>(key) : StringAttr();
    return s ? s.getValue() : StringRef();
  };
  SmallVector<lathe::Tensor> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    StringRef name = nameOf(function.getArgAttrDict(i), "hlo.name");
    auto *tensor = find(*given, name, nameOf(function.getArgAttrDict(i), "hlo.tensor"));
    if (!tensor) {
      llvm::outs() << "no input '" << name << "'\n";
      return 1;
    }
    inputs.push_back(*tensor);
  }
  auto results = lathe::hlo::evaluateFunction(function, inputs);
  if (failed(results))
    return 1;
  if (expectedFile.empty())
    return 0;
  auto expected = lathe::readNpz(expectedFile);
  if (!expected.ok())
    return 1;
  int bad = 0;
  for (auto [i, result] : llvm::enumerate(*results)) {
    StringRef name = nameOf(function.getResultAttrDict(i), "hlo.name");
    auto *want = find(*expected, name, nameOf(function.getResultAttrDict(i), "hlo.tensor"));
    if (!want)
      llvm::outs() << name << ": not expected\n";
    else
      bad += compare(name, result, *want);
  }
  return bad ? 2 : 0;
}
