#include "compiler/jit/ClusterReport.h"

#include "compiler/import/ReadModel.h"
#include "compiler/import/Structure.h"
#include "compiler/jit/ClusterFlags.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/ClusterAttrs.h"
#include "dialects/graph/Types.h"
#include "ops/Flags.h"
#include "passes/cluster/Policy.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;

namespace lathe {
namespace {

std::string textOf(Value value) {
  auto node = value.getDefiningOp<graph::NodeOp>();
  std::string text = node ? node.getNodeName().str() + ":" + std::to_string(cast<OpResult>(value).getResultNumber()) : "?";
  if (auto tensor = dyn_cast<TensorType>(value.getType()))
    text += std::string(" ") + dtypeName(graph::toDType(tensor.getElementType()));
  return text;
}

/// Nodes that nothing consumes.
std::vector<std::string> leavesOf(const tf::GraphDef &graph) {
  llvm::StringSet<> used;
  for (const tf::NodeDef &node : graph.node())
    for (const std::string &input : node.input())
      used.insert(llvm::StringRef(input).ltrim('^').split(':').first);
  std::vector<std::string> leaves;
  for (const tf::NodeDef &node : graph.node())
    if (!used.contains(node.name()) && node.op() != "Const" && !ops::is(node.op(), ops::Flag::Feedable))
      leaves.push_back(node.name());
  return leaves;
}

void describe(graph::FuncOp func, ClusterReport &report) {
  llvm::MapVector<StringRef, std::vector<graph::NodeOp>> members;
  for (auto node : func.getBody().front().getOps<graph::NodeOp>())
    if (auto cluster = node->getAttrOfType<StringAttr>(graph::kClusterAttr))
      members[cluster.getValue()].push_back(node);
  for (auto &[name, nodes] : members) {
    ClusterReport::Cluster cluster;
    cluster.name = name.str();
    auto inside = [name = name](Operation *op) {
      auto attr = op ? op->getAttrOfType<StringAttr>(graph::kClusterAttr) : StringAttr();
      return attr && attr.getValue() == name;
    };
    llvm::SmallPtrSet<const void *, 16> seen;
    for (graph::NodeOp node : nodes) {
      if (node.getOp() != "Const")
        cluster.nodes.push_back({node.getNodeName().str(), node.getOp().str()});
      for (auto [i, input] : llvm::enumerate(node.getInputs())) {
        auto from = input.getDefiningOp<graph::NodeOp>();
        if (inside(from) || (from && from.getOp() == "Const") || !seen.insert(input.getAsOpaquePointer()).second)
          continue;
        bool variable = cluster::isHandle(input) || cluster::isReferenceInput(node, static_cast<unsigned>(i));
        (variable ? cluster.variables : cluster.arguments).push_back(textOf(input));
      }
      for (Value output : node.getOutputs())
        if (llvm::any_of(output.getUsers(), [&](Operation *user) { return !inside(user); }))
          cluster.results.push_back(textOf(output));
    }
    report.clusters.push_back(std::move(cluster));
  }
}

} // namespace

bool reportClusters(llvm::StringRef path, llvm::StringRef tag, const std::vector<std::string> &fetches,
                    const std::vector<std::string> &targets, const std::vector<std::string> &hostOps, llvm::StringRef flags,
                    ClusterReport &report, std::string &error) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  std::map<std::string, std::string> reasons; // by node; the first one counts
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    std::string text = diagnostic.str();
    StringRef reason = text;
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      errors += (errors.empty() ? "" : "\n") + formatDiagnostic(diagnostic);
    else if (reason.consume_front("not compiled: "))
      reasons.emplace(graph::getNodeName(diagnostic.getLocation()).str(), reason.str());
    return success();
  });
  auto failedWith = [&](const char *otherwise) {
    error = errors.empty() ? otherwise : errors;
    return false;
  };
  import::Problems problems(&context);
  ImportOptions how;
  how.tag = tag.str();
  import::Model model = import::readModel(path, how, problems);
  if (!model.meta || problems.any())
    return failedWith("the model cannot be read");
  cluster::ClusteringOptions options;
  std::string dump;
  if (!parseClusterFlags(flags, options, dump, error))
    return false;
  options.hostOps = hostOps;
  GraphUse use;
  use.fetches = fetches;
  use.targets = fetches.empty() && targets.empty() ? leavesOf(model.graph()) : targets;
  PassManager pm(&context);
  cluster::MarkForCompilationOptions mark;
  cluster::PartiallyDeclusterOptions decluster;
  auto list = [](const std::vector<std::string> &names) { return llvm::SmallVector<std::string>(names.begin(), names.end()); };
  mark.hostOps = decluster.hostOps = list(hostOps);
  mark.force = list(options.force);
  mark.forbid = list(options.forbid);
  mark.isolate = list(options.isolate);
  mark.minSize = options.minSize;
  mark.explain = decluster.explain = true;
  pm.addPass(cluster::createMarkForCompilation(mark));
  pm.addPass(cluster::createPartiallyDecluster(decluster));
  // functions that are called from outside of clusters are clustered by themselves: found a level at a time
  llvm::StringSet<> opened;
  FailureOr<OwningOpRef<ModuleOp>> module;
  for (bool more = true; more;) {
    more = false;
    reasons.clear();
    module = importStructure(&context, model.graph(), use);
    if (failed(module))
      return failedWith("the graph cannot be read");
    for (auto func : (*module)->getOps<graph::FuncOp>())
      if (opened.contains(func.getSymName()))
        func.setPublic();
    if (failed(pm.run(**module)))
      return failedWith("clustering failed without a message");
    for (auto func : (*module)->getOps<graph::FuncOp>())
      for (auto node : func.getBody().front().getOps<graph::NodeOp>())
        for (NamedAttribute attr : node.getAttrs())
          if (auto callee = dyn_cast<graph::FuncAttr>(attr.getValue()); callee && !func.isPrivate() && !node->hasAttr(graph::kClusterAttr))
            more |= opened.insert(callee.getName().getValue()).second;
  }
  for (auto func : (*module)->getOps<graph::FuncOp>()) {
    if (func.isPrivate())
      continue;
    describe(func, report);
    for (auto node : func.getBody().front().getOps<graph::NodeOp>()) {
      if (node->hasAttr(graph::kClusterAttr) || node.getOp() == "Const")
        continue;
      auto reason = reasons.find(node.getNodeName().str());
      report.refusals.push_back({{node.getNodeName().str(), node.getOp().str()},
                                 reason == reasons.end() ? "an end of the graph, a variable, or with nothing to compile around it"
                                                         : reason->second});
    }
  }
  return true;
}

} // namespace lathe
