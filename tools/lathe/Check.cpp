// lathe check: what of a model compiles, without compiling it.
#include "tools/lathe/Session.h"

#include "compiler/frontend/tflite/Listing.h"
#include "compiler/frontend/tflite/Tflite.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"
#include "dialects/graph/Types.h"
#include "graph/gradients/Gradients.h"
#include "ops/Registry.h"
#include "runtime/core/Kernel.h"
#include "runtime/session/Executable.h"
#include "passes/legalize/Legalize.h"

#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace lathe::cli {
namespace {

struct CheckArgs {
  ModelArgs model;
  bool json = false, listOps = false, listTfliteOps = false, listGradients = false;
};

enum class Support { Compiled, Host, None, Unknown };

Support supportOf(llvm::StringRef op) {
  if (legalize::hasHandler(op))
    return Support::Compiled;
  if (!ops::findOp(op))
    return Support::Unknown;
  std::string_view name(op.data(), op.size());
  // structure that the importer and the executor see to
  bool isStructure = rt::isExecutorOp(name) || op == "LatheLaunch" || op == "XlaWhile";
  return isStructure || rt::findKernel(name) ? Support::Host : Support::None;
}

const char *supportName(Support s) {
  switch (s) {
  case Support::Compiled: return "compiled";
  case Support::Host: return "host";
  case Support::None: return "none";
  case Support::Unknown: break;
  }
  return "unknown";
}

struct Problem {
  std::string node, op, function, reason;
  bool host;
};

/// "gradient", "constant" where nothing flows by nature, "missing" where TensorFlow alone has one, "-" where there is none at all.
const char *gradientName(std::string_view op) {
  switch (graphdef::gradientInfo(op).kind) {
  case graphdef::GradientInfo::Differentiable: return "gradient";
  case graphdef::GradientInfo::NotDifferentiable: return "constant";
  case graphdef::GradientInfo::Missing: return "missing";
  case graphdef::GradientInfo::Unknown: break;
  }
  return "-";
}

int listOps() {
  for (const ops::OpInfo &op : ops::allOps()) {
    std::string types;
    for (const ops::Attr &attr : op.attrs)
      if (!attr.types.empty())
        types += (types.empty() ? "" : " ") + std::string(attr.name) + "=" + std::string(attr.allowedText);
    printf("%-40s %-8s %-8s %s\n", std::string(op.name).c_str(), supportName(supportOf(op.name)), gradientName(op.name), types.c_str());
  }
  return Fine;
}

int listGradients() {
  for (const ops::OpInfo &op : ops::allOps())
    if (graphdef::GradientInfo info = graphdef::gradientInfo(op.name); info.kind != graphdef::GradientInfo::Unknown)
      printf("%-40s %-8s %s\n", std::string(op.name).c_str(), gradientName(op.name), std::string(info.reason).c_str());
  return Fine;
}

std::string shapeText(const TensorSpec &t) {
  if (!t.dims)
    return "<unknown rank>";
  std::string s = "[";
  for (int64_t d : *t.dims)
    s += (s.size() > 1 ? "," : "") + (d < 0 ? std::string("?") : std::to_string(d));
  return s + "]";
}

void printEntries(const std::vector<ImportedModel::EntryInfo> &entries) {
  for (const auto &entry : entries) {
    printf("entry %s\n", entry.name.c_str());
    for (const TensorSpec &t : entry.inputs)
      printf("  input  %s  %s  %s%s\n", t.name.c_str(), t.tensor.c_str(), dtypeName(t.dtype), shapeText(t).c_str());
    for (const TensorSpec &t : entry.outputs)
      printf("  output %s  %s  %s%s\n", t.name.c_str(), t.tensor.c_str(), dtypeName(t.dtype), shapeText(t).c_str());
  }
}

/// A file of TensorFlow Lite: operators by what the frontend knows of them, then a translation for shapes and options.
int checkTflite(CheckArgs &a) {
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  Compiler compiler(*context, a.model.options);
  auto report = tflite::checkFile(context.get(), a.model.options.model, compiler.importOptions());
  if (failed(report))
    return BadInput;
  std::string text;
  if (report->problems.empty()) {
    CollectedDiagnostics diagnostics(*context);
    if (failed(compiler.import()))
      text = diagnostics.errors().empty() ? "the model does not compile, without a message" : diagnostics.text();
  }
  bool compiles = report->problems.empty() && text.empty();
  if (a.json) {
    nlohmann::json j = {{"problems", nlohmann::json::array()}, {"compiles", compiles}};
    for (auto &[op, n] : report->ops)
      j["ops"][op] = {{"count", n.count}, {"support", n.unsupported ? "none" : "compiled"}};
    for (const tflite::Problem &p : report->problems)
      j["problems"].push_back({{"node", p.node}, {"op", p.op}, {"function", p.subgraph}, {"reason", p.reason}});
    if (!text.empty())
      j["errors"] = text;
    printf("%s\n", j.dump(1).c_str());
    return compiles ? Fine : BadInput;
  }
  printEntries(report->entries);
  printf("ops\n");
  for (auto &[op, n] : report->ops)
    printf("  %6lld  %-32s %s\n", (long long)n.count, op.c_str(), n.unsupported ? "none" : "compiled");
  for (const tflite::Problem &p : report->problems)
    printf("node '%s' (%s) in subgraph '%s': %s\n", p.node.c_str(), p.op.c_str(), p.subgraph.c_str(), p.reason.c_str());
  if (!text.empty())
    printf("%s\n", text.c_str());
  if (compiles)
    printf("everything compiles\n");
  return compiles ? Fine : BadInput;
}

int execute(CheckArgs &a) {
  if (a.listOps)
    return listOps();
  if (a.listTfliteOps) {
    fputs(tflite::listKnownOperators().c_str(), stdout);
    return Fine;
  }
  if (a.listGradients)
    return listGradients();
  if (a.model.options.model.empty())
    return fail("check: expected MODEL");
  if (!a.model.finish())
    return BadInput;
  if (&frontendOfFile(a.model.options.model) == &tflite::frontend())
    return checkTflite(a);
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  Compiler compiler(*context, a.model.options);
  if (failed(compiler.import()))
    return BadInput;

  std::map<std::string, int> counts;
  std::vector<Problem> problems;
  compiler.module().walk([&](graph::NodeOp node) { ++counts[node.getOp().str()]; });
  // Loops and conditionals of TensorFlow 1 compile once they are functional; where they cannot be, their nodes are left as they were.
  {
    CollectedDiagnostics unsaid(*context);
    (void)compiler.runUntil(Phase::Cluster);
  }
  std::map<std::string, int> left;
  compiler.module().walk([&](graph::NodeOp node) {
    std::string op = node.getOp().str();
    ++left[op];
    Support s = supportOf(op);
    if (s == Support::Compiled)
      return;
    std::string function = graph::getNodeFunction(node.getLoc()).str();
    auto parent = node->getParentOfType<graph::FuncOp>();
    if (function.empty() && parent)
      function = parent.getSymName().str();
    std::string why = legalize::whyNotCompilable(op);
    problems.push_back({node.getNodeName().str(), op, function,
                        s == Support::Host   ? (why.empty() ? "runs on the host: no compiled form" : why)
                        : s == Support::None ? "is not supported: neither a compiled form nor a host kernel"
                                             : "no such op in TensorFlow's registry",
                        s == Support::Host});
  });
  auto supportHere = [&](const std::string &op) {
    Support s = supportOf(op);
    return supportName(s == Support::Host && !left.count(op) ? Support::Compiled : s);
  };
  bool hostOnly = std::all_of(problems.begin(), problems.end(), [](const Problem &p) { return p.host; });

  // With nothing in the way by its type, the front end tells what attributes and shapes are.
  std::string legalizeText;
  if (problems.empty()) {
    CollectedDiagnostics diagnostics(*context);
    if (failed(compiler.runUntil(Phase::Legalize)))
      legalizeText = diagnostics.errors().empty() ? "the model does not compile, without a message" : diagnostics.text();
  }
  int status = hostOnly && legalizeText.empty() ? Fine : BadInput;

  if (a.json) {
    nlohmann::json j;
    for (auto &[op, n] : counts)
      j["ops"][op] = {{"count", n}, {"support", supportHere(op)}};
    j["problems"] = nlohmann::json::array();
    for (const Problem &p : problems)
      j["problems"].push_back({{"node", p.node}, {"op", p.op}, {"function", p.function}, {"reason", p.reason}});
    if (!legalizeText.empty())
      j["errors"] = legalizeText;
    j["compiles"] = problems.empty() && legalizeText.empty();
    printf("%s\n", j.dump(1).c_str());
    return status;
  }
  printEntries(compiler.model().entries);
  printf("ops\n");
  for (auto &[op, n] : counts)
    printf("  %6d  %-32s %s\n", n, op.c_str(), supportHere(op));
  for (const Problem &p : problems)
    printf("node '%s' (%s) in function '%s': %s\n", p.node.c_str(), p.op.c_str(), p.function.c_str(), p.reason.c_str());
  if (!legalizeText.empty())
    printf("%s\n", legalizeText.c_str());
  if (problems.empty() && legalizeText.empty())
    printf("everything compiles\n");
  else if (hostOnly && legalizeText.empty())
    printf("%zu nodes run on the host; --input and --output can cut the compiled part out of the graph\n", problems.size());
  return status;
}

} // namespace

Command addCheck(CLI::App &root) {
  auto a = std::make_shared<CheckArgs>();
  CLI::App *app = root.add_subcommand("check", "Say what of a model compiles, and what does not and why");
  a->model.add(*app, "host", "GraphDef, MetaGraph, SavedModel folder or TensorFlow Lite file");
  app->get_option("MODEL")->required(false);
  app->add_flag("--json", a->json, "Print a JSON object");
  app->add_flag("--list-ops", a->listOps, "List every known op, how it runs, its gradient and the types it takes");
  app->add_flag("--list-tflite-ops", a->listTfliteOps,
                "List TensorFlow Lite's operators, the newest version of each that compiles and for which types");
  app->add_flag("--list-gradients", a->listGradients, "List every op whose gradient is known, or why it has none");
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
