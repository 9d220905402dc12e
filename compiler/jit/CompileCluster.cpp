#include "compiler/jit/CompileCluster.h"

#include "compiler/driver/Compiler.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"
#include "dialects/graph/Types.h"
#include "ops/Flags.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using llvm::StringRef;

namespace lathe {

std::unique_ptr<mlir::MLIRContext> makeCompileContext() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  return context;
}

namespace {

// A failed attempt names operands that must be known; each round fixes what those need, and what the same operands of other nodes of
// the same operations need: a few rounds do, however many nodes there are.
constexpr int kMaxRounds = 16;
constexpr int64_t kMaxConstantElements = 1024;

bool wantsConstant(StringRef message) {
  return message.contains("compile-time constant") || message.contains("known at compile time");
}

bool saysUnsupported(StringRef message) {
  for (StringRef text : {"no compiled form", "not supported", "unsupported", "UNIMPLEMENTED", "compile-time constant",
                         "known at compile time", "unknown op type"})
    if (message.contains(text))
      return true;
  return false;
}

/// Shapes, axes, permutations: integers whose number is small.
bool mayBeFixed(const lathe_cluster_arg &arg) {
  if (!arg.data || arg.is_variable || arg.rank < 0)
    return false;
  int64_t n = 1;
  for (int32_t d = 0; d < arg.rank; ++d)
    n *= arg.dims[d];
  DType type = static_cast<DType>(arg.dtype);
  return n <= kMaxConstantElements && type != DType::String && dtypeSize(type) > 0;
}

Tensor tensorOf(const lathe_cluster_arg &arg) {
  std::vector<int64_t> dims(arg.dims, arg.dims + arg.rank);
  Tensor tensor = Tensor::allocate(static_cast<DType>(arg.dtype), dims);
  if (tensor.sizeBytes())
    std::memcpy(tensor.data(), arg.data, tensor.sizeBytes());
  return tensor;
}

/// Nodes and edges of the main graph by name.
class GraphIndex {
public:
  explicit GraphIndex(const tf::GraphDef &graph) {
    for (const tf::NodeDef &node : graph.node())
      nodes[node.name()] = &node;
    for (const tf::FunctionDef &function : graph.library().function())
      functions[function.signature().name()] = &function;
  }

  /// The node of the main graph that a place in the compiler's IR comes from; empty when it cannot be told.
  std::string ownerOf(mlir::Location loc) const {
    StringRef name = graph::getNodeName(loc), function = graph::getNodeFunction(loc);
    // nodes of inlined calls are called "call/node"
    for (StringRef part = name; function.empty() || !nodes.count(name);) {
      if (nodes.count(part))
        return part.str();
      size_t slash = part.rfind('/');
      if (slash == StringRef::npos)
        break;
      part = part.take_front(slash);
    }
    if (!function.empty())
      for (auto &entry : nodes)
        if (uses(*entry.second, function))
          return entry.getKey().str();
    return nodes.count(name) ? name.str() : "";
  }

  /// The operation of a node of the main graph; empty for other names.
  StringRef opOf(StringRef name) const {
    const tf::NodeDef *node = nodes.lookup(name);
    return node ? StringRef(node->op()) : StringRef();
  }

  /// An operand of every node of an operation, all operands for -1.
  using Operand = std::pair<std::string, int>;

  /// Nodes whose values decide these operands, and all operands of the nodes in `whole`. `throughSizes`: with what sizes are the sizes
  /// of, where these depend on values.
  llvm::StringSet<> sliceOf(const std::set<Operand> &operands, const std::set<std::string> &whole, bool throughSizes) const {
    llvm::StringSet<> seen;
    std::vector<StringRef> work;
    auto visit = [&](const tf::NodeDef &node, int operand) {
      int k = 0;
      for (const std::string &input : node.input()) {
        StringRef from = StringRef(input).split(':').first;
        if (from.starts_with("^"))
          continue;
        if ((operand < 0 || operand == k) && seen.insert(from).second)
          work.push_back(from);
        ++k;
      }
    };
    for (auto &entry : nodes) {
      if (whole.count(entry.getKey().str()))
        visit(*entry.second, -1);
      for (auto at = operands.lower_bound({entry.second->op(), -1}); at != operands.end() && at->first == entry.second->op(); ++at)
        visit(*entry.second, at->second);
    }
    while (!work.empty()) {
      const tf::NodeDef *node = nodes.lookup(work.back());
      work.pop_back();
      bool isSize = node && ops::is(node->op(), ops::Flag::Sizes);
      if (node && (throughSizes || !isSize))
        visit(*node, -1);
    }
    return seen;
  }

private:
  bool uses(const tf::NodeDef &node, StringRef function) const {
    std::set<std::string> seen;
    std::vector<const tf::NodeDef *> work{&node};
    while (!work.empty()) {
      const tf::NodeDef *at = work.back();
      work.pop_back();
      std::vector<std::string> called{at->op()};
      for (const auto &[key, value] : at->attr()) {
        if (value.has_func())
          called.push_back(value.func().name());
        for (const tf::NameAttrList &f : value.list().func())
          called.push_back(f.name());
      }
      for (const std::string &name : called) {
        const tf::FunctionDef *callee = functions.lookup(name);
        if (!callee || !seen.insert(name).second)
          continue;
        if (name == function)
          return true;
        for (const tf::NodeDef &inner : callee->node_def())
          work.push_back(&inner);
      }
    }
    return false;
  }

  llvm::StringMap<const tf::NodeDef *> nodes;
  llvm::StringMap<const tf::FunctionDef *> functions;
};

/// One run of the pipeline.
class Attempt {
public:
  Attempt(const LaunchGraph &cluster, const std::string &bytes, const GraphIndex &index,
          llvm::ArrayRef<const lathe_cluster_arg *> args, const ClusterCompileOptions &options)
      : cluster(cluster), bytes(bytes), index(index), args(args), options(options) {}

  bool run(const std::vector<uint8_t> &fixed, const std::vector<uint8_t> &open, CompiledObject &result);

  std::string message, failedNode;
  /// What the messages say must be known: operands of nodes of the main graph, and nodes of which they do not say more.
  std::set<GraphIndex::Operand> operands;
  std::set<std::string> whole;

private:
  void noteNeed(mlir::Location loc, StringRef text);

  const LaunchGraph &cluster;
  const std::string &bytes;
  const GraphIndex &index;
  llvm::ArrayRef<const lathe_cluster_arg *> args;
  const ClusterCompileOptions &options;
};

void Attempt::noteNeed(mlir::Location loc, StringRef text) {
  std::string owner = index.ownerOf(loc);
  if (owner.empty() || !wantsConstant(text))
    return;
  // "input 1 must be ...", of the node itself and not of one in a function that it calls
  int operand = -1;
  StringRef rest = text.split("input ").second;
  if (owner == graph::getNodeName(loc) && graph::getNodeFunction(loc).empty() && !rest.consumeInteger(10, operand) && rest.starts_with(" must be"))
    operands.insert({index.opOf(owner).str(), operand});
  else
    whole.insert(owner);
}

bool Attempt::run(const std::vector<uint8_t> &fixed, const std::vector<uint8_t> &open, CompiledObject &result) {
  CompilerOptions o;
  for (size_t i = 0; i < args.size(); ++i) {
    const lathe_cluster_arg &arg = *args[i];
    if (arg.is_variable)
      continue;
    if (fixed[i]) {
      o.constantFeeds.emplace_back(cluster.arguments[i], tensorOf(arg));
      continue;
    }
    InputSpec input;
    input.name = cluster.arguments[i];
    input.dims.emplace();
    for (int32_t d = 0; d < arg.rank; ++d) {
      DimSpec dim;
      dim.size = d == 0 && open[i] ? -1 : arg.dims[d];
      input.dims->push_back(dim);
    }
    o.inputs.push_back(std::move(input));
  }
  o.outputs = cluster.results;
  o.targets = cluster.targets;
  o.keepVariables = true;
  o.onlyListedInputs = true;
  o.cpu = options.cpu;
  o.backend = options.backend;
  o.threads = options.threads;
  o.symbolPrefix = "lathe_cluster";
  o.dumpDir = options.dumpDir;
  std::unique_ptr<mlir::MLIRContext> context = makeCompileContext();
  message.clear();
  failedNode.clear();
  mlir::ScopedDiagnosticHandler handler(context.get(), [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
      return mlir::success();
    if (message.empty())
      failedNode = index.ownerOf(diagnostic.getLocation());
    message += (message.empty() ? "" : "\n") + formatDiagnostic(diagnostic);
    noteNeed(diagnostic.getLocation(), diagnostic.str());
    return mlir::success();
  });
  Compiler compiler(*context, o);
  bool imported = mlir::succeeded(compiler.importBytes(bytes));
  if (imported) {
    // nodes that stand for arguments got other names where the cluster has nodes called "arg0"
    for (auto func : compiler.module().getOps<graph::FuncOp>()) {
      if (func.isPrivate())
        continue;
      for (unsigned k = 0; k < func.getNumArguments(); ++k) {
        auto name = func.getArgAttrOfType<mlir::StringAttr>(k, graph::kNameAttr);
        for (size_t i = 0; name && i < args.size(); ++i)
          if (name.getValue() == cluster.arguments[i])
            func.setArgAttr(k, graph::kNameAttr, mlir::StringAttr::get(context.get(), clusterArgName(i)));
      }
    }
    auto artifact = compiler.emit();
    if (artifact) {
      result.object = std::move(artifact->object);
      result.prefix = artifact->prefix;
      return true;
    }
    std::string more = llvm::toString(artifact.takeError());
    if (message.empty())
      message = more;
  }
  if (message.empty())
    message = "compilation failed without a message";
  return false;
}

} // namespace

bool compileCluster(const LaunchGraph &cluster, llvm::ArrayRef<const lathe_cluster_arg *> args,
                    const ClusterCompileOptions &options, CompiledObject &result, CompileFailure &failure) {
  GraphIndex index(cluster.graph);
  std::string bytes = cluster.graph.SerializeAsString();
  Attempt attempt(cluster, bytes, index, args, options);
  result.constant.assign(args.size(), 0);
  result.dynamic.assign(args.size(), 0);
  if (options.dynamicDims)
    for (size_t i = 0; i < args.size(); ++i)
      result.dynamic[i] = !args[i]->is_variable && args[i]->rank > 0;
  bool anyOpen = llvm::is_contained(result.dynamic, 1);
  for (int round = 0; round < kMaxRounds; ++round) {
    if (attempt.run(result.constant, result.dynamic, result))
      return true;
    if (anyOpen && !wantsConstant(attempt.message)) {
      // sizes that have to be known, or that do not fit each other in general
      result.dynamic.assign(args.size(), 0);
      anyOpen = false;
      continue;
    }
    if (!wantsConstant(attempt.message))
      break;
    bool known = !attempt.operands.empty() || !attempt.whole.empty(), more = false;
    auto fix = [&](bool integersOnly, bool throughSizes) {
      llvm::StringSet<> needed = index.sliceOf(attempt.operands, attempt.whole, throughSizes);
      for (size_t i = 0; i < args.size(); ++i) {
        bool integer = isInteger(static_cast<DType>(args[i]->dtype));
        if (result.constant[i] || !mayBeFixed(*args[i]) || (integersOnly && !integer) ||
            (known && !needed.contains(cluster.arguments[i])))
          continue;
        result.constant[i] = 1;
        result.dynamic[i] = 0;
        more = true;
      }
    };
    fix(true, false);
    if (!more)
      fix(true, true);
    if (!more)
      fix(false, true);
    if (!more && anyOpen) {
      result.dynamic.assign(args.size(), 0);
      anyOpen = false;
      more = true;
    }
    if (!more)
      break;
  }
  failure.constant = result.constant;
  failure.message = attempt.message;
  failure.failedNode = attempt.failedNode;
  failure.code = saysUnsupported(attempt.message) ? LATHE_UNIMPLEMENTED : LATHE_INVALID_ARGUMENT;
  return false;
}

} // namespace lathe
