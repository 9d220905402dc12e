// lathe-evaluate-cases --cases DIR --report FILE: the conformance adapter (batch mode) on the reference evaluator: import,
// clusters' preparation, legalization, no codegen. Tells faults of legalization from faults of code generation.
#include "base/Npz.h"
#include "compiler/import/Import.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "dialects/hlo/Hlo.h"
#include "passes/cluster/Passes.h"
#include "passes/legalize/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace mlir;

static llvm::cl::opt<std::string> cases("cases", llvm::cl::Required);
static llvm::cl::opt<std::string> report("report", llvm::cl::Required);
static llvm::cl::opt<bool> unknownLeading("unknown-leading");
static llvm::cl::opt<bool> print("print");

namespace {

struct Outcome {
  std::string status = "ok", message;
};

class Runner {
public:
  explicit Runner(std::string folder) : folder(std::move(folder)) {}
  Outcome run();

private:
  /// With `constantFeeds` the fed values are part of the program, as for models whose shapes depend on them.
  bool step(const llvm::json::Object &step, int64_t index, const llvm::json::Object &dtypes, bool several,
            bool constantFeeds);
  std::string path(StringRef file) const { return folder + "/" + file.str(); }

  std::string folder, message;
  std::map<std::string, lathe::Tensor> state;
};

std::vector<std::string> strings(const llvm::json::Array *list) {
  std::vector<std::string> result;
  if (list)
    for (const auto &v : *list)
      result.push_back(v.getAsString().value_or("").str());
  return result;
}

bool Runner::step(const llvm::json::Object &step, int64_t index, const llvm::json::Object &dtypes, bool several,
                  bool constantFeeds) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<lathe::graph::GraphDialect, lathe::hlo::HloDialect, func::FuncDialect>();
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &d) {
    if (d.getSeverity() == DiagnosticSeverity::Error)
      message += (message.empty() ? "" : "; ") + lathe::formatDiagnostic(d);
    return success();
  });
  lathe::ImportOptions options;
  options.onlyListedInputs = true;
  options.keepVariables = several;
  options.unknownLeading = unknownLeading;
  options.outputs = strings(step.getArray("fetches"));
  options.targets = strings(step.getArray("targets"));
  std::vector<lathe::Tensor> feeds;
  std::vector<std::string> feedNames;
  if (const auto *feedFiles = step.getObject("feeds")) {
    for (const auto &[name, file] : *feedFiles)
      feedNames.push_back(std::string(name.str()));
    llvm::sort(feedNames);
    for (const std::string &name : feedNames) {
      StringRef file = feedFiles->getString(name).value_or("");
      auto dtype = lathe::parseDType(dtypes.getString(file).value_or("").str());
      auto tensor = lathe::readTensorFile(path(file), dtype);
      if (!tensor.ok()) {
        message = std::string(tensor.status().message());
        return false;
      }
      if (constantFeeds) {
        options.constantFeeds.push_back({name, *tensor});
        continue;
      }
      options.inputs.push_back({name, tensor->dims()});
      feeds.push_back(*tensor);
    }
  }
  auto imported = lathe::importModel(&context, path("graph.pb"), options);
  if (failed(imported))
    return false;
  ModuleOp module = *imported->module;
  PassManager pm(&context);
  lathe::cluster::buildClusterPipeline(pm);
  lathe::legalize::buildLegalizePipeline(pm);
  if (failed(pm.run(module)))
    return false;
  if (print)
    module.dump();
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function) {
    message = "no function main";
    return false;
  }
  // Variables: what the last step left, else the initial value.
  auto variables = module->getAttrOfType<ArrayAttr>("hlo.variables");
  SmallVector<lathe::Tensor> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto variable = function.getArgAttrOfType<StringAttr>(i, "hlo.variable");
    if (!variable) {
      if (i >= feeds.size()) {
        message = "more inputs than feeds";
        return false;
      }
      inputs.push_back(feeds[i]);
      continue;
    }
    std::string name = variable.getValue().str();
    if (!state.count(name) && variables)
      for (auto entry : variables.getAsRange<DictionaryAttr>())
        if (entry.getAs<StringAttr>("name").getValue() == name)
          if (auto value = entry.getAs<ElementsAttr>("value"))
            if (auto tensor = lathe::hlo::readConstant(value); succeeded(tensor))
              state[name] = tensor->clone(); // the attribute's memory ends with the context
    if (!state.count(name)) {
      message = "variable " + name + " has no value";
      return false;
    }
    inputs.push_back(state[name]);
  }
  auto results = lathe::hlo::evaluateFunction(function, inputs);
  if (failed(results))
    return false;
  size_t output = 0;
  for (auto [i, tensor] : llvm::enumerate(*results)) {
    if (auto variable = function.getResultAttrOfType<StringAttr>(i, "hlo.variable")) {
      state[variable.getValue().str()] = tensor.clone();
      continue;
    }
    auto status = lathe::writeTensorFile(path("actual_" + std::to_string(index) + "_" + std::to_string(output++)), tensor);
    if (!status.ok()) {
      message = std::string(status.message());
      return false;
    }
  }
  return true;
}

Outcome Runner::run() {
  auto text = llvm::MemoryBuffer::getFile(path("case.json"));
  if (!text)
    return {"error", "no case.json"};
  auto json = llvm::json::parse((*text)->getBuffer());
  if (!json) {
    llvm::consumeError(json.takeError());
    return {"error", "bad case.json"};
  }
  const auto *object = json->getAsObject();
  const auto *steps = object ? object->getArray("steps") : nullptr;
  const auto *dtypes = object ? object->getObject("dtypes") : nullptr;
  if (!steps || !dtypes)
    return {"error", "bad case.json"};
  for (auto [i, s] : llvm::enumerate(*steps)) {
    bool several = steps->size() > 1, ok = step(*s.getAsObject(), i, *dtypes, several, false);
    if (!ok && (StringRef(message).contains("compile-time constant") || StringRef(message).contains("at compile time"))) {
      message.clear();
      ok = step(*s.getAsObject(), i, *dtypes, several, true);
    }
    if (!ok) {
      bool unsupported = StringRef(message).contains("no compiled form");
      return {unsupported ? "unsupported" : "error", message};
    }
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv);
  std::error_code ec;
  std::vector<std::string> folders;
  for (llvm::sys::fs::directory_iterator it(cases, ec), end; it != end && !ec; it.increment(ec))
    folders.push_back(it->path());
  llvm::sort(folders);
  llvm::raw_fd_ostream out(report, ec, llvm::sys::fs::OF_Append);
  if (ec)
    return 1;
  for (const std::string &folder : folders) {
    Outcome outcome = Runner(folder).run();
    llvm::json::Object line{{"name", llvm::sys::path::filename(folder)}, {"status", outcome.status}};
    if (!outcome.message.empty())
      line["message"] = llvm::json::fixUTF8(StringRef(outcome.message).take_front(2000));
    out << llvm::json::Value(std::move(line)) << "\n";
    out.flush();
  }
  return 0;
}
