#include "compiler/hosted/CompileHosted.h"

#include "compiler/frontend/tflite/Tflite.h"
#include "compiler/hosted/CompileTflite.h"
#include "compiler/hosted/GraphBytes.h"
#include "compiler/hosted/HostShapes.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/ClusterAttrs.h"
#include "dialects/graph/Types.h"
#include "ops/Flags.h"
#include "passes/cluster/Passes.h"
#include "passes/legalize/Legalize.h"
#include "passes/legalize/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

#include <deque>

using namespace mlir;
using llvm::StringRef;

namespace lathe {
namespace {

// A failed attempt takes one node out of its cluster.
constexpr int kMaxAttempts = 64;

/// The nodes of a graph in an order in which inputs come first, back edges of loops aside.
std::vector<graph::NodeOp> sortNodes(graph::FuncOp func) {
  std::vector<graph::NodeOp> order;
  llvm::DenseMap<Operation *, int> pending;
  std::deque<graph::NodeOp> ready;
  auto isBackEdge = [](Operation *from, graph::NodeOp to) {
    auto node = dyn_cast<graph::NodeOp>(from);
    return node && ops::isBackEdge(node.getOp(), to.getOp());
  };
  for (auto node : func.getBody().getOps<graph::NodeOp>()) {
    int n = 0;
    for (Value operand : node->getOperands())
      if (Operation *from = operand.getDefiningOp())
        n += !isBackEdge(from, node);
    pending[node] = n;
    if (n == 0)
      ready.push_back(node);
  }
  while (!ready.empty()) {
    graph::NodeOp node = ready.front();
    ready.pop_front();
    order.push_back(node);
    for (Value result : node->getResults())
      for (OpOperand &use : result.getUses())
        if (auto user = dyn_cast<graph::NodeOp>(use.getOwner()); user && !isBackEdge(node, user) && --pending[user] == 0)
          ready.push_back(user);
  }
  return order;
}

class HostedCompiler {
public:
  HostedCompiler(MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps,
                 llvm::ArrayRef<std::string> executorOps)
      : context(context), options(options), hostOps(hostOps) {
    for (const std::string &op : hostOps)
      kernels.insert(op);
    for (const std::string &op : executorOps)
      builtin.insert(op);
  }

  llvm::Expected<HostedModel> run(EmitWants wants);

private:
  LogicalResult cluster();
  bool typeClusters(ModuleOp module, std::string &failedNode, std::string &messages);
  bool typeLaunch(ModuleOp module, graph::NodeOp launch, std::string &failedNode, std::string &messages);
  LogicalResult checkHostNodes(ModuleOp module);
  OwningOpRef<ModuleOp> clustersOnly();

  MLIRContext &context;
  const CompilerOptions &options;
  llvm::ArrayRef<std::string> hostOps;
  llvm::StringSet<> kernels, builtin;
  OwningOpRef<ModuleOp> source, clustered;
  HostedModel result;
};

/// Gives a cluster's function the types that its inputs have, and the launch those of the results: the function is legalized
/// aside for that. False with the messages, and the node of the cluster that is to blame.
bool HostedCompiler::typeLaunch(ModuleOp module, graph::NodeOp launch, std::string &failedNode, std::string &messages) {
  auto callee = module.lookupSymbol<graph::FuncOp>(launch.getNodeAttr<graph::FuncAttr>("function").getName().getValue());
  Block &block = callee.getBody().front();
  SmallVector<Type> types;
  for (auto [arg, input] : llvm::zip_equal(block.getArguments(), launch.getInputs())) {
    if (!isa<RankedTensorType>(input.getType())) {
      auto from = input.getDefiningOp<graph::NodeOp>();
      messages += "node '" + (from ? from.getNodeName().str() : "input " + std::to_string(arg.getArgNumber())) + "' (" +
                  (from ? from.getOp().str() : "argument") + "): its rank is not known when compiling, and compiled nodes need it\n";
      // whoever uses it may have a host kernel
      if (auto user = arg.use_empty() ? graph::NodeOp() : dyn_cast<graph::NodeOp>(*arg.getUsers().begin()))
        failedNode = user.getNodeName().str();
      return false;
    }
    arg.setType(input.getType());
    types.push_back(input.getType());
  }
  callee.setFunctionType(FunctionType::get(&context, types, callee.getResultTypes()));
  OwningOpRef<ModuleOp> aside = ModuleOp::create(module.getLoc());
  for (auto func : module.getOps<graph::FuncOp>())
    if (func == callee || (func.isPrivate() && !func->hasAttr(graph::kClusterAttr)))
      aside->push_back(func->clone());
  aside->lookupSymbol<graph::FuncOp>(callee.getSymName()).setSymVisibility("public");
  bool ok = false;
  {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
        if (failedNode.empty())
          failedNode = graph::getNodeName(diagnostic.getLocation()).str();
        messages += formatDiagnostic(diagnostic) + "\n";
      }
      return success();
    });
    PassManager pm(&context);
    cluster::buildClusterPipeline(pm);
    legalize::buildLegalizePipeline(pm);
    ok = succeeded(pm.run(*aside));
  }
  auto legal = ok ? aside->lookupSymbol<func::FuncOp>(callee.getSymName()) : func::FuncOp();
  if (!legal || legal.getNumResults() != launch.getOutputs().size())
    return false;
  SmallVector<Type> resultTypes;
  for (auto [output, type] : llvm::zip_equal(launch.getOutputs(), legal.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    output.setType(RankedTensorType::get(tensor.getShape(), tensor.getElementType()));
  }
  return true;
}

bool HostedCompiler::typeClusters(ModuleOp module, std::string &failedNode, std::string &messages) {
  for (auto func : module.getOps<graph::FuncOp>()) {
    if (func.isPrivate())
      continue;
    for (graph::NodeOp node : sortNodes(func)) {
      if (node.getOp() != "LatheLaunch")
        hosted::inferHostShapes(node);
      else if (!typeLaunch(module, node, failedNode, messages))
        return false;
    }
  }
  return true;
}

LogicalResult HostedCompiler::cluster() {
  cluster::ClusteringOptions how;
  how.minSize = 1; // what stays outside has to have a kernel, and its shape to be known
  how.hostOps.assign(hostOps.begin(), hostOps.end());
  llvm::StringMap<std::string> opOf;
  source->walk([&](graph::NodeOp node) { opOf[node.getNodeName()] = node.getOp().str(); });
  for (const auto &op : builtin)
    how.hostOps.push_back(op.getKey().str());
  std::string messages;
  llvm::StringSet<> forbidden;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    OwningOpRef<ModuleOp> module = source->clone();
    PassManager pm(&context);
    cluster::buildClusteringPipeline(pm, how);
    if (failed(pm.run(*module)))
      return failure();
    std::string failedNode;
    messages.clear();
    if (typeClusters(*module, failedNode, messages)) {
      clustered = std::move(module);
      return success();
    }
    if (!kernels.contains(opOf.lookup(failedNode)) || !forbidden.insert(failedNode).second)
      break;
    how.forbid.push_back(failedNode);
  }
  return emitError(UnknownLoc::get(&context)) << StringRef(messages).rtrim();
}

/// What is left outside of clusters has a kernel.
LogicalResult HostedCompiler::checkHostNodes(ModuleOp module) {
  bool ok = true;
  std::set<std::string> used;
  for (auto func : module.getOps<graph::FuncOp>()) {
    if (func.isPrivate())
      continue;
    for (auto node : func.getBody().getOps<graph::NodeOp>()) {
      StringRef op = node.getOp();
      if (op == "LatheLaunch") {
        auto variables = node.getNodeAttr<IntegerAttr>("variables");
        if (variables && variables.getInt() > 0) {
          node.emitError("works on variables, which hosted objects do not keep: freeze the model");
          ok = false;
        }
        ++result.clusters;
        continue;
      }
      ++result.hostNodes;
      for (NamedAttribute attr : node.getAttrs()) {
        auto list = dyn_cast<ArrayAttr>(attr.getValue());
        if (isa<graph::FuncAttr>(attr.getValue()) || (list && !list.empty() && isa<graph::FuncAttr>(list[0]))) {
          node.emitError("calls a function that does not compile: hosted objects call no functions on the host");
          ok = false;
          break;
        }
      }
      if (builtin.contains(op))
        continue;
      if (!kernels.contains(op)) {
        node.emitError(legalize::hasHandler(op) ? "does not compile here, and has no host kernel" : "no compiled form and no host kernel");
        ok = false;
      }
      used.insert(op.str());
    }
  }
  result.kernels.assign(used.begin(), used.end());
  return success(ok);
}

/// The clusters as entries of a module of their own.
OwningOpRef<ModuleOp> HostedCompiler::clustersOnly() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  for (auto func : clustered->getOps<graph::FuncOp>()) {
    if (!func.isPrivate())
      continue;
    auto copy = cast<graph::FuncOp>(func->clone());
    module->push_back(copy);
    if (!func->hasAttr(graph::kClusterAttr))
      continue;
    copy.setSymVisibility("public");
    copy->removeAttr(graph::kClusterAttr);
    Builder b(&context);
    for (unsigned i = 0; i < copy.getNumArguments(); ++i)
      copy.setArgAttr(i, graph::kNameAttr, b.getStringAttr("arg" + std::to_string(i)));
    for (unsigned i = 0; i < copy.getNumResults(); ++i)
      copy.setResultAttr(i, graph::kNameAttr, b.getStringAttr("result" + std::to_string(i)));
  }
  return module;
}

llvm::Expected<HostedModel> HostedCompiler::run(EmitWants wants) {
  auto told = [] { return llvm::createStringError(""); };
  CompilerOptions importOptions = options;
  importOptions.withInit = true;
  Compiler importer(context, importOptions);
  if (failed(importer.import()))
    return told();
  result.notes = importer.model().notes;
  source = importer.module().clone();
  for (auto variable : source->getOps<graph::VariableOp>()) {
    variable.emitError("variable '") << variable.getSymName() << "' is assigned: hosted objects keep no variables";
    return told();
  }
  if (failed(cluster()) || failed(checkHostNodes(*clustered)))
    return told();
  FailureOr<std::string> graph = hosted::writeGraph(*clustered, importer.model().entries);
  if (failed(graph))
    return told();
  HostedPayload payload;
  payload.graph = std::move(*graph);
  payload.kernels = result.kernels;
  payload.hasClusters = result.clusters > 0;
  for (const ImportedModel::EntryInfo &entry : importer.model().entries) {
    if (entry.name == kInitEntry)
      continue;
    payload.entries.push_back({entry.name, describeTensors(entry.inputs), describeTensors(entry.outputs)});
  }
  Compiler compiler(context, options);
  if (payload.hasClusters)
    compiler.adopt(clustersOnly());
  else
    compiler.adopt(moduleOfNothing(context), Phase::Legalize);
  compiler.setHosted(&payload);
  auto artifact = compiler.emit(wants);
  if (!artifact)
    return artifact.takeError();
  result.artifact = std::move(*artifact);
  return std::move(result);
}

} // namespace

llvm::Expected<HostedModel> compileHosted(MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps,
                                          llvm::ArrayRef<std::string> executorOps, EmitWants wants) {
  if (&frontendOfFile(options.model) == &tflite::frontend())
    return hosted::compileTflite(context, options, hostOps, executorOps, wants);
  return HostedCompiler(context, options, hostOps, executorOps).run(wants);
}

std::vector<HostedPayload::Tensor> describeTensors(ArrayRef<TensorSpec> specs) {
  std::vector<HostedPayload::Tensor> out;
  for (const TensorSpec &spec : specs)
    out.push_back({spec.name, spec.dtype, spec.dims ? static_cast<int>(spec.dims->size()) : -1, spec.scales, spec.zeroPoints});
  return out;
}

OwningOpRef<ModuleOp> moduleOfNothing(MLIRContext &context) {
  context.getOrLoadDialect<func::FuncDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto function = func::FuncOp::create(builder, module->getLoc(), "nothing", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  func::ReturnOp::create(builder, module->getLoc());
  return module;
}

bool couldBeHosted(MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps, StringRef prefix,
                   std::string &lines) {
  return &frontendOfFile(options.model) == &tflite::frontend() && hosted::findTfliteNodes(context, options, hostOps, prefix, lines);
}

std::string hostNodes(mlir::ModuleOp module, llvm::function_ref<bool(llvm::StringRef)> isExecutorOp, llvm::StringRef prefix) {
  std::string text;
  int found = 0;
  module.walk([&](graph::NodeOp node) {
    if (legalize::hasHandler(node.getOp()) || isExecutorOp(node.getOp()) || ++found > 20)
      return;
    text += prefix.str() + "node '" + node.getNodeName().str() + "' (" + node.getOp().str() +
            "): " + legalize::whyNotCompilable(node.getOp()) + "\n";
  });
  return found > 20 ? text + "and " + std::to_string(found - 20) + " more\n" : text;
}

} // namespace lathe
