//===- Structure.cpp - graphs as they are, node by node -------------------===//
#include "compiler/import/Structure.h"

#include "compiler/import/Library.h"
#include "dialects/graph/ClusterAttrs.h"
#include "dialects/graph/Graph.h"
#include "dialects/graph/Types.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

#include <deque>

using namespace mlir;
using llvm::StringRef;
using llvm::Twine;

namespace lathe {

using namespace import;

namespace {

/// The flat outputs (or inputs) of one node, and where each argument of its signature begins.
struct FlatTypes {
  std::vector<DType> types;
  std::vector<int64_t> counts;
};

class StructureImporter {
public:
  StructureImporter(MLIRContext *context, const tf::GraphDef &graph, Problems &problems)
      : context(context), problems(problems), library(graph, problems), attributes(context, 0, nullptr), builder(context) {}

  OwningOpRef<ModuleOp> run(const tf::GraphDef &graph, const GraphUse &use);

private:
  struct Request {
    const Body *body;
    AttrLookup::Map attrs;
    std::string symbol;
  };

  const Body *calleeOf(const Body &body, int node, const AttrLookup &attrs, AttrLookup::Map &calleeAttrs);
  bool signatureOf(const Body &body, int node, const AttrLookup::Map &scope, FlatTypes &out);
  FlatSymbolRefAttr request(const Body &callee, AttrLookup::Map attrs);
  DictionaryAttr readAttrs(const Body &body, int node, const AttrLookup::Map &scope);
  bool emitNodes(const Body &body, const AttrLookup::Map &scope, const FlatTypes &args, Block &block,
                 llvm::function_ref<Value(int node, int64_t port)> fed);
  Value valueOf(const Body &body, const InputRef &ref, int user);
  bool emitMain(const GraphUse &use);
  void emitFunction(const Request &request);
  Type typeOf(DType dtype) { return UnrankedTensorType::get(graph::toMlirType(context, dtype)); }

  MLIRContext *context;
  Problems &problems;
  Library library;
  AttributeReader attributes;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  std::deque<Request> requests;
  std::map<std::string, std::string> symbolOfKey;
  llvm::StringSet<> symbols;
  // of the body at work
  std::vector<graph::NodeOp> nodes;
  std::vector<FlatTypes> outputs;
  std::vector<int64_t> argOffsets;
  Block *block = nullptr;
};

} // namespace

/// The function that a call node calls; null with or without a report when it is none.
const Body *StructureImporter::calleeOf(const Body &body, int node, const AttrLookup &attrs,
                                        AttrLookup::Map &calleeAttrs) {
  const tf::NodeDef &def = *body.defs[node];
  bool direct = library.isFunction(def.op());
  const tf::AttrValue *f = direct ? nullptr : attrs.find("f");
  if (!direct && (!f || !f->has_func())) {
    problems.add(body.id(node), "has no function to call in attribute 'f'");
    return nullptr;
  }
  for (const auto &[name, value] : direct ? def.attr() : f->func().attr())
    if (const tf::AttrValue *resolved = attrs.resolve(value))
      calleeAttrs[name] = resolved;
  return library.getFunction(direct ? def.op() : f->func().name(), body.id(node));
}

bool StructureImporter::signatureOf(const Body &body, int node, const AttrLookup::Map &scope, FlatTypes &out) {
  const tf::NodeDef &def = *body.defs[node];
  AttrLookup attrs(&def, &scope);
  const ops::OpInfo *info = ops::findOp(def.op());
  AttrLookup::Map calleeAttrs;
  AttrLookup calleeLookup(nullptr, &calleeAttrs);
  const ops::AttrSource *source = &attrs;
  if (library.isFunction(def.op())) {
    const Body *callee = calleeOf(body, node, attrs, calleeAttrs);
    if (!callee)
      return false;
    info = &library.getSignature(*callee);
    source = &calleeLookup;
  } else if (!info) {
    problems.add(body.id(node), "unknown op type");
    return false;
  }
  if (absl::Status allowed = ops::checkAttrs(*info, *source); !allowed.ok()) {
    problems.add(body.id(node), Twine(std::string(allowed.message())));
    return false;
  }
  absl::StatusOr<std::vector<DType>> types = ops::resolveTypes(*info, info->outputs, *source, &out.counts);
  if (!types.ok()) {
    problems.add(body.id(node), Twine(std::string(types.status().message())));
    return false;
  }
  out.types = std::move(*types);
  for (DType type : out.types)
    if (!graph::toMlirType(context, type)) {
      problems.add(body.id(node), "has an output of an unknown type");
      return false;
    }
  return true;
}

/// The symbol of a function under these attributes, which is emitted later.
FlatSymbolRefAttr StructureImporter::request(const Body &callee, AttrLookup::Map attrs) {
  std::string key = callee.name.str();
  AttrLookup::Map used;
  for (const tf::OpDef::AttrDef &attr : callee.signature->attr())
    if (auto it = attrs.find(attr.name()); it != attrs.end()) {
      used[attr.name()] = it->second;
      std::string text = it->second->SerializeAsString();
      key += "|" + attr.name() + "=" + std::to_string(text.size()) + ":" + text;
    }
  auto [it, isNew] = symbolOfKey.try_emplace(key);
  if (isNew) {
    std::string symbol = callee.name.str();
    for (unsigned n = 1; !symbols.insert(symbol).second; ++n)
      symbol = callee.name.str() + "_" + std::to_string(n);
    it->second = symbol;
    requests.push_back({&callee, std::move(used), symbol});
  }
  return FlatSymbolRefAttr::get(context, it->second);
}

/// Attributes that passes look at: all but tensors and private ones that say nothing about compiling.
DictionaryAttr StructureImporter::readAttrs(const Body &body, int node, const AttrLookup::Map &scope) {
  const tf::NodeDef &def = *body.defs[node];
  AttrLookup lookup(&def, &scope);
  NamedAttrList attrs;
  std::map<std::string, const tf::AttrValue *> values;
  for (const auto &[name, value] : def.attr())
    if (!StringRef(name).starts_with("_") || name == "_XlaMustCompile" || name == "_XlaCompile")
      values[name] = lookup.resolve(value);
  for (auto &[name, value] : values) {
    if (!value || value->has_tensor() || value->list().tensor_size())
      continue;
    auto functionSymbol = [&](const tf::NameAttrList &function, std::string &) -> FlatSymbolRefAttr {
      const Body *callee = library.getFunction(function.name(), body.id(node));
      AttrLookup::Map calleeAttrs;
      for (const auto &[key, attr] : function.attr())
        if (const tf::AttrValue *resolved = lookup.resolve(attr))
          calleeAttrs[key] = resolved;
      return callee ? request(*callee, std::move(calleeAttrs)) : FlatSymbolRefAttr();
    };
    std::string error;
    Attribute number;
    // what cannot be read says nothing to the passes; whoever compiles or runs the node reports it
    if (Attribute attr = attributes.read(*value, functionSymbol, number, error))
      attrs.set(name, attr);
  }
  if (library.isFunction(def.op())) {
    AttrLookup::Map calleeAttrs;
    if (const Body *callee = calleeOf(body, node, lookup, calleeAttrs))
      attrs.set("f", graph::FuncAttr::get(context, request(*callee, std::move(calleeAttrs)), DictionaryAttr()));
  }
  return attrs.getDictionary(context);
}

Value StructureImporter::valueOf(const Body &body, const InputRef &ref, int user) {
  NodeId id = user >= 0 ? body.id(user) : NodeId{body.name, "function", ""};
  if (ref.node < 0) {
    int arg = -1 - ref.node;
    int64_t flat = argOffsets[arg] + ref.index;
    if (flat >= argOffsets[arg + 1]) {
      problems.add(id, "refers to an argument that does not exist");
      return {};
    }
    return block->getArgument(static_cast<unsigned>(flat));
  }
  const FlatTypes &types = outputs[ref.node];
  int64_t port = ref.index, end = static_cast<int64_t>(types.types.size());
  if (!ref.outArg.empty()) {
    const std::string &op = body.defs[ref.node]->op();
    const ops::OpInfo *info = ops::findOp(op);
    std::unique_ptr<ops::OpInfo> own;
    if (library.isFunction(op))
      if (const Body *callee = library.getFunction(op, id))
        info = &library.getSignature(*callee);
    size_t arg = 0, numArgs = info ? info->outputs.size() : 0;
    int64_t from = 0;
    while (arg < numArgs && std::string_view(ref.outArg.data(), ref.outArg.size()) != info->outputs[arg].name)
      from += types.counts[arg++];
    if (arg == numArgs) {
      problems.add(id, Twine("refers to output '") + printable(ref.outArg) + "' of '" +
                           printable(body.defs[ref.node]->name()) + "', which it does not have");
      return {};
    }
    port += from;
    end = from + types.counts[arg];
  }
  if (port >= end) {
    problems.add(id, Twine("refers to output ") + Twine(port) + " of '" + printable(body.defs[ref.node]->name()) +
                         "', which it does not have");
    return {};
  }
  return nodes[ref.node].getOutputs()[static_cast<unsigned>(port)];
}

/// All nodes of a body, first without operands, since v1 loops are cycles.
bool StructureImporter::emitNodes(const Body &body, const AttrLookup::Map &scope, const FlatTypes &args, Block &into,
                                  llvm::function_ref<Value(int, int64_t)> fed) {
  block = &into;
  nodes.clear();
  outputs.assign(body.defs.size(), {});
  argOffsets.assign(1, 0);
  for (int64_t count : args.counts)
    argOffsets.push_back(argOffsets.back() + count);
  bool ok = true;
  builder.setInsertionPointToEnd(&into);
  for (size_t i = 0; i < body.defs.size(); ++i) {
    const tf::NodeDef &def = *body.defs[i];
    ok &= signatureOf(body, static_cast<int>(i), scope, outputs[i]);
    SmallVector<Type> types;
    for (DType dtype : outputs[i].types)
      types.push_back(graph::toMlirType(context, dtype) ? typeOf(dtype) : typeOf(DType::Variant));
    auto node = graph::NodeOp::create(builder, graph::makeNodeLoc(context, def.name(), def.op(), body.name), types,
                                      def.op(), ValueRange(), ValueRange(),
                                      readAttrs(body, static_cast<int>(i), scope));
    if (!def.device().empty())
      node->setAttr(graph::kDeviceAttr, builder.getStringAttr(def.device()));
    nodes.push_back(node);
  }
  if (!ok)
    return false;
  for (size_t i = 0; i < body.defs.size(); ++i) {
    SmallVector<Value> inputs, controls;
    for (const InputRef &ref : body.nodes[i].inputs) {
      Value value = ref.node >= 0 ? fed(ref.node, ref.index) : Value();
      if (!value)
        value = valueOf(body, ref, static_cast<int>(i));
      if (!value)
        return false;
      inputs.push_back(value);
    }
    for (int control : body.nodes[i].controls)
      controls.push_back(nodes[control].getControl());
    nodes[i].getInputsMutable().assign(inputs);
    nodes[i].getControlsMutable().assign(controls);
  }
  return true;
}

bool StructureImporter::emitMain(const GraphUse &use) {
  const Body *main = library.getMain();
  if (!main)
    return false;
  auto find = [&](const std::string &text, std::pair<int, int64_t> &at) {
    StringRef node;
    int64_t port;
    if (!splitTensorName(text, node, port) || !main->nodeIndex.count(node)) {
      problems.add(Twine("tensor '") + printable(text) + "' does not exist");
      return false;
    }
    at = {main->nodeIndex.lookup(node), port};
    return true;
  };
  std::vector<std::pair<int, int64_t>> feeds(use.feeds.size()), fetches(use.fetches.size());
  SmallVector<Type> argTypes;
  bool ok = true;
  for (size_t i = 0; i < feeds.size(); ++i) {
    FlatTypes types;
    ok &= find(use.feeds[i], feeds[i]);
    if (!ok || !signatureOf(*main, feeds[i].first, {}, types))
      return false;
    if (feeds[i].second >= static_cast<int64_t>(types.types.size())) {
      problems.add(main->id(feeds[i].first), Twine("has no output ") + Twine(feeds[i].second));
      return false;
    }
    argTypes.push_back(typeOf(types.types[static_cast<size_t>(feeds[i].second)]));
  }
  for (size_t i = 0; i < fetches.size(); ++i)
    ok &= find(use.fetches[i], fetches[i]);
  if (!ok)
    return false;
  builder.setInsertionPointToEnd(module->getBody());
  Location loc = UnknownLoc::get(context);
  auto func = graph::FuncOp::create(builder, loc, "main", builder.getFunctionType(argTypes, {}));
  Block &body = func.getBody().front();
  auto fedValue = [&](int node, int64_t port) -> Value {
    for (size_t i = 0; i < feeds.size(); ++i)
      if (feeds[i] == std::make_pair(node, port))
        return body.getArgument(static_cast<unsigned>(i));
    return {};
  };
  if (!emitNodes(*main, {}, {}, body, fedValue))
    return false;
  SmallVector<Value> results, targets;
  SmallVector<Type> resultTypes;
  for (auto [node, port] : fetches) {
    Value value = fedValue(node, port);
    if (!value && !(value = valueOf(*main, {node, {}, port}, -1)))
      return false;
    results.push_back(value);
    resultTypes.push_back(value.getType());
  }
  for (const std::string &target : use.targets) {
    auto it = main->nodeIndex.find(StringRef(target).ltrim('^'));
    if (it == main->nodeIndex.end()) {
      problems.add(Twine("target '") + printable(target) + "' does not exist");
      return false;
    }
    targets.push_back(nodes[it->second].getControl());
  }
  graph::ReturnOp::create(builder, loc, results, targets);
  func.setFunctionType(builder.getFunctionType(argTypes, resultTypes));
  auto names = [&](const std::vector<std::string> &tensors) {
    SmallVector<Attribute> attrs;
    for (const std::string &tensor : tensors)
      attrs.push_back(
          builder.getDictionaryAttr(builder.getNamedAttr(graph::kTensorAttr, builder.getStringAttr(tensor))));
    return builder.getArrayAttr(attrs);
  };
  if (!use.feeds.empty())
    func.setArgAttrsAttr(names(use.feeds));
  if (!use.fetches.empty())
    func.setResAttrsAttr(names(use.fetches));
  return true;
}

void StructureImporter::emitFunction(const Request &request) {
  const Body &body = *request.body;
  const ops::OpInfo &info = library.getSignature(body);
  AttrLookup lookup(nullptr, &request.attrs);
  FlatTypes args, rets;
  auto types = ops::resolveTypes(info, info.inputs, lookup, &args.counts);
  auto retTypes = ops::resolveTypes(info, info.outputs, lookup, &rets.counts);
  if (!types.ok() || !retTypes.ok()) {
    problems.add({body.name, "function", ""},
                 Twine(std::string((types.ok() ? retTypes.status() : types.status()).message())));
    return;
  }
  SmallVector<Type> argTypes, resultTypes;
  for (DType dtype : *types)
    argTypes.push_back(typeOf(dtype));
  builder.setInsertionPointToEnd(module->getBody());
  Location loc = NameLoc::get(builder.getStringAttr(body.name));
  auto func = graph::FuncOp::create(builder, loc, request.symbol, builder.getFunctionType(argTypes, {}));
  func.setSymVisibility("private");
  if (request.symbol != body.name)
    func->setAttr(graph::kFunctionAttr, builder.getStringAttr(body.name));
  if (!emitNodes(body, request.attrs, args, func.getBody().front(), [](int, int64_t) { return Value(); }))
    return;
  SmallVector<Value> results, targets;
  for (size_t i = 0; i < body.returns.size(); ++i)
    for (int64_t k = 0; k < rets.counts[i]; ++k) {
      InputRef ref = body.returns[i];
      ref.index += k;
      Value value = valueOf(body, ref, -1);
      if (!value)
        return;
      results.push_back(value);
      resultTypes.push_back(value.getType());
    }
  for (int node : body.controlReturns)
    targets.push_back(nodes[node].getControl());
  graph::ReturnOp::create(builder, loc, results, targets);
  func.setFunctionType(builder.getFunctionType(argTypes, resultTypes));
}

OwningOpRef<ModuleOp> StructureImporter::run(const tf::GraphDef &graph, const GraphUse &use) {
  module = ModuleOp::create(UnknownLoc::get(context));
  symbols.insert("main");
  SmallVector<StringRef> names;
  for (const tf::FunctionDef &function : graph.library().function())
    names.push_back(function.signature().name());
  if (!names.empty())
    (*module)->setAttr(graph::kLibraryAttr, builder.getStrArrayAttr(names));
  if (!problems.any() && emitMain(use))
    for (size_t i = 0; i < requests.size() && !problems.any(); ++i)
      emitFunction(requests[i]);
  return problems.any() ? OwningOpRef<ModuleOp>() : std::move(module);
}

FailureOr<OwningOpRef<ModuleOp>> importStructure(MLIRContext *context, const tf::GraphDef &graph,
                                                 const GraphUse &use) {
  context->getOrLoadDialect<graph::GraphDialect>();
  Problems problems(context);
  OwningOpRef<ModuleOp> module = StructureImporter(context, graph, problems).run(graph, use);
  problems.finish();
  if (!module || failed(verify(*module)))
    return failure();
  return module;
}

} // namespace lathe
