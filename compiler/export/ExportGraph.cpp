#include "compiler/export/ExportGraph.h"

#include "compiler/import/Library.h"
#include "dialects/graph/ClusterAttrs.h"
#include "dialects/graph/Graph.h"
#include "dialects/graph/Types.h"
#include "ops/Registry.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using llvm::StringRef;

namespace lathe {
namespace {

class Exporter {
public:
  Exporter(ModuleOp module, const tf::GraphDef &source) : module(module), source(source) {}
  llvm::Expected<tf::GraphDef> run();

private:
  /// The imported node, or null for one that a pass made.
  const tf::NodeDef *sourceOf(graph::NodeOp node) const;
  const ops::OpInfo *infoOf(graph::NodeOp node, std::unique_ptr<ops::OpInfo> &own) const;
  DType typeOf(Value value);
  bool isReference(Value value) const;
  bool setAttr(tf::AttrValue &out, Attribute attr);
  void fillNode(graph::NodeOp node, tf::NodeDef &out);
  /// "node:2" in the main graph, "node:output:0" in functions.
  std::string tensorName(Value value, bool inFunction);
  void addInputs(graph::NodeOp node, tf::NodeDef &out, bool inFunction);
  void exportMain(graph::FuncOp func, tf::GraphDef &out);
  void exportCluster(graph::FuncOp func, tf::FunctionDef &out);
  void fail(const Twine &text) {
    if (problem.empty())
      problem = text.str();
  }

  ModuleOp module;
  const tf::GraphDef &source;
  llvm::StringMap<const tf::NodeDef *> nodes;
  llvm::StringMap<const tf::FunctionDef *> functions;
  DenseMap<Value, DType> types;
  DenseMap<Value, std::string> argNames; // of function arguments
  DenseMap<Value, Value> callerOf;       // of cluster arguments
  std::string problem;
};

} // namespace

const tf::NodeDef *Exporter::sourceOf(graph::NodeOp node) const {
  return node->hasAttr(graph::kNewNodeAttr) ? nullptr : nodes.lookup(node.getNodeName());
}

const ops::OpInfo *Exporter::infoOf(graph::NodeOp node, std::unique_ptr<ops::OpInfo> &own) const {
  StringRef op = node.getOp();
  if (const tf::FunctionDef *function = functions.lookup(op)) {
    own = std::make_unique<ops::OpInfo>();
    for (const tf::OpDef::ArgDef &arg : function->signature().output_arg())
      own->outputs.push_back({arg.name(), import::toDType(arg.type()), arg.type_attr(), arg.number_attr(),
                              arg.type_list_attr(), arg.is_ref()});
    return own.get();
  }
  return ops::findOp(std::string_view(op.data(), op.size()));
}

bool Exporter::isReference(Value value) const {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto it = callerOf.find(arg);
    return it != callerOf.end() && isReference(it->second);
  }
  auto node = value.getDefiningOp<graph::NodeOp>();
  std::unique_ptr<ops::OpInfo> own;
  const ops::OpInfo *info = infoOf(node, own);
  unsigned port = cast<OpResult>(value).getResultNumber();
  return info && (port < info->outputs.size() ? info->outputs[port].isRef
                                              : info->outputs.size() == 1 && info->outputs[0].isRef);
}

/// TensorFlow's type, which says more than the MLIR type where types share a carrier.
DType Exporter::typeOf(Value value) {
  auto known = types.find(value);
  if (known != types.end())
    return known->second;
  // through launches, stand-ins and arguments of clusters, a list instead of recursion
  SmallVector<Value> chain;
  DType result = DType::Invalid;
  for (Value at = value; at;) {
    chain.push_back(at);
    if (auto it = types.find(at); it != types.end()) {
      result = it->second;
      break;
    }
    Value next;
    if (auto arg = dyn_cast<BlockArgument>(at)) {
      next = callerOf.lookup(arg);
    } else {
      auto node = at.getDefiningOp<graph::NodeOp>();
      unsigned port = cast<OpResult>(at).getResultNumber();
      if (const tf::NodeDef *def = sourceOf(node)) {
        std::unique_ptr<ops::OpInfo> own;
        const ops::OpInfo *info = infoOf(node, own);
        import::AttrLookup attrs(def, nullptr);
        if (info)
          if (auto resolved = ops::resolveTypes(*info, info->outputs, attrs); resolved.ok() && port < resolved->size())
            result = (*resolved)[port];
      } else if (node.getOp() == "Identity" || node.getOp() == "IdentityN") {
        next = node.getInputs()[port];
      } else if (auto callee = node.getNodeAttr<graph::FuncAttr>("function")) {
        if (auto func = module.lookupSymbol<graph::FuncOp>(callee.getName()))
          next = cast<graph::ReturnOp>(func.getBody().front().getTerminator()).getOutputs()[port];
      }
    }
    if (!next) {
      if (result == DType::Invalid)
        result = graph::toDType(cast<TensorType>(at.getType()).getElementType());
      break;
    }
    at = next;
  }
  for (Value at : chain)
    types[at] = result;
  return result;
}

bool Exporter::setAttr(tf::AttrValue &out, Attribute attr) {
  if (auto text = dyn_cast<StringAttr>(attr)) {
    out.set_s(text.getValue().str());
  } else if (auto flag = dyn_cast<BoolAttr>(attr)) {
    out.set_b(flag.getValue());
  } else if (auto number = dyn_cast<IntegerAttr>(attr)) {
    out.set_i(number.getInt());
  } else if (auto func = dyn_cast<graph::FuncAttr>(attr)) {
    auto callee = module.lookupSymbol<graph::FuncOp>(func.getName());
    auto name = callee ? callee->getAttrOfType<StringAttr>(graph::kFunctionAttr) : StringAttr();
    out.mutable_func()->set_name(name ? name.getValue().str() : func.getName().getValue().str());
  } else if (auto list = dyn_cast<ArrayAttr>(attr)) {
    auto &values = *out.mutable_list();
    for (Attribute element : list) {
      if (auto flag = dyn_cast<BoolAttr>(element))
        values.add_b(flag.getValue());
      else if (auto number = dyn_cast<IntegerAttr>(element))
        values.add_i(number.getInt());
      else if (auto text = dyn_cast<StringAttr>(element))
        values.add_s(text.getValue().str());
      else
        return false;
    }
  } else {
    return false;
  }
  return true;
}

void Exporter::fillNode(graph::NodeOp node, tf::NodeDef &out) {
  if (const tf::NodeDef *def = sourceOf(node)) {
    out = *def;
    out.clear_input();
    return;
  }
  out.set_name(node.getNodeName().str());
  out.set_op(node.getOp().str());
  if (auto device = node->getAttrOfType<StringAttr>(graph::kDeviceAttr))
    out.set_device(device.getValue().str());
  auto &attrs = *out.mutable_attr();
  for (NamedAttribute attr : node.getAttrs())
    if (!setAttr(attrs[attr.getName().str()], attr.getValue()))
      fail("node '" + node.getNodeName() + "': attribute '" + attr.getName().getValue() + "' cannot be written");
  auto typeList = [&](tf::AttrValue &attr, ValueRange values) {
    auto &list = *attr.mutable_list();
    for (Value value : values)
      list.add_type(static_cast<tf::DataType>(typeOf(value)));
  };
  if (node.getOp() == "Identity") {
    attrs["T"].set_type(static_cast<tf::DataType>(typeOf(node.getInputs()[0])));
  } else if (node.getOp() == "IdentityN") {
    typeList(attrs["T"], node.getInputs());
  } else if (node.getOp() == "LatheLaunch") {
    auto variables = node.getNodeAttr<IntegerAttr>("variables");
    size_t handles = variables ? static_cast<size_t>(variables.getInt()) : 0;
    typeList(attrs["Targs"], node.getInputs().drop_back(handles));
    typeList(attrs["Thandles"], node.getInputs().take_back(handles));
    typeList(attrs["Tresults"], node.getOutputs());
  } else if (node.getOp() == "StatefulPartitionedCall") {
    typeList(attrs["Tin"], node.getInputs());
    typeList(attrs["Tout"], node.getOutputs());
  }
}

std::string Exporter::tensorName(Value value, bool inFunction) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return argNames.lookup(arg);
  auto node = value.getDefiningOp<graph::NodeOp>();
  unsigned port = cast<OpResult>(value).getResultNumber();
  std::string name = node.getNodeName().str();
  if (!inFunction)
    return port ? name + ":" + std::to_string(port) : name;
  std::unique_ptr<ops::OpInfo> own;
  const ops::OpInfo *info = infoOf(node, own);
  const tf::NodeDef *def = sourceOf(node);
  import::AttrLookup attrs(def, nullptr);
  std::vector<int64_t> counts;
  if (def && info && ops::resolveTypes(*info, info->outputs, attrs, &counts).ok()) {
    int64_t rest = port;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (rest < counts[i])
        return name + ":" + std::string(info->outputs[i].name) + ":" + std::to_string(rest);
      rest -= counts[i];
    }
  }
  fail("node '" + name + "': output " + Twine(port) + " has no name");
  return name;
}

void Exporter::addInputs(graph::NodeOp node, tf::NodeDef &out, bool inFunction) {
  for (Value input : node.getInputs())
    out.add_input(tensorName(input, inFunction));
  llvm::StringSet<> seen;
  for (Value control : node.getControls()) {
    StringRef from = control.getDefiningOp<graph::NodeOp>().getNodeName();
    if (seen.insert(from).second)
      out.add_input("^" + from.str());
  }
}

void Exporter::exportMain(graph::FuncOp func, tf::GraphDef &out) {
  for (BlockArgument arg : func.getBody().front().getArguments()) {
    auto tensor = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), graph::kTensorAttr);
    StringRef name = tensor ? tensor.getValue() : StringRef();
    name.consume_back(":0");
    argNames[arg] = name.str();
  }
  for (auto node : func.getBody().getOps<graph::NodeOp>()) {
    tf::NodeDef &def = *out.add_node();
    fillNode(node, def);
    addInputs(node, def, false);
    if (node.getOp() != "LatheLaunch")
      continue;
    auto callee = node.getNodeAttr<graph::FuncAttr>("function");
    if (auto cluster = module.lookupSymbol<graph::FuncOp>(callee.getName()))
      for (auto [arg, operand] : llvm::zip(cluster.getBody().front().getArguments(), node.getInputs()))
        callerOf[arg] = operand;
  }
}

void Exporter::exportCluster(graph::FuncOp func, tf::FunctionDef &out) {
  tf::OpDef &signature = *out.mutable_signature();
  signature.set_name(func.getSymName().str());
  signature.set_is_stateful(true);
  llvm::StringSet<> names;
  for (auto node : func.getBody().getOps<graph::NodeOp>())
    names.insert(node.getNodeName());
  auto unique = [&](std::string name) {
    while (!names.insert(name).second)
      name += "_";
    return name;
  };
  for (BlockArgument arg : func.getBody().front().getArguments()) {
    tf::OpDef::ArgDef &def = *signature.add_input_arg();
    def.set_name(unique("arg" + std::to_string(arg.getArgNumber())));
    def.set_type(static_cast<tf::DataType>(typeOf(arg)));
    // by its uses alone: a body that is clustered anew has _Arg for its variables, which does not say that it is a reference
    if (llvm::any_of(arg.getUses(), [](OpOperand &use) {
          auto node = dyn_cast<graph::NodeOp>(use.getOwner());
          StringRef op = node ? node.getOp() : StringRef();
          const ops::OpInfo *info = node ? ops::findOp(std::string_view(op.data(), op.size())) : nullptr;
          return info && use.getOperandNumber() < info->inputs.size() && info->inputs[use.getOperandNumber()].isRef;
        }))
      def.set_is_ref(true);
    argNames[arg] = def.name();
  }
  auto ret = cast<graph::ReturnOp>(func.getBody().front().getTerminator());
  for (auto [i, value] : llvm::enumerate(ret.getOutputs())) {
    tf::OpDef::ArgDef &def = *signature.add_output_arg();
    def.set_name(unique("result" + std::to_string(i)));
    def.set_type(static_cast<tf::DataType>(typeOf(value)));
    (*out.mutable_ret())[def.name()] = tensorName(value, true);
  }
  for (Value target : ret.getTargets()) {
    std::string name = target.getDefiningOp<graph::NodeOp>().getNodeName().str();
    signature.add_control_output(name);
    (*out.mutable_control_ret())[name] = name;
  }
  for (auto node : func.getBody().getOps<graph::NodeOp>()) {
    tf::NodeDef &def = *out.add_node_def();
    fillNode(node, def);
    addInputs(node, def, true);
  }
}

llvm::Expected<tf::GraphDef> Exporter::run() {
  for (const tf::NodeDef &node : source.node())
    nodes[node.name()] = &node;
  for (const tf::FunctionDef &function : source.library().function())
    functions[function.signature().name()] = &function;
  tf::GraphDef out;
  *out.mutable_versions() = source.versions();
  *out.mutable_library() = source.library();
  for (auto func : module.getOps<graph::FuncOp>())
    if (!func.isPrivate())
      exportMain(func, out);
  for (auto func : module.getOps<graph::FuncOp>())
    if (func->hasAttr(graph::kClusterAttr))
      exportCluster(func, *out.mutable_library()->add_function());
  if (!problem.empty())
    return llvm::createStringError(problem);
  return out;
}

llvm::Expected<tf::GraphDef> exportGraph(ModuleOp module, const tf::GraphDef &source) {
  return Exporter(module, source).run();
}

} // namespace lathe
