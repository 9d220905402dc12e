// Translation of entries and function bodies: order of nodes, values, state, folding.
#include "passes/legalize/LegalizeContext.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "passes/legalize/Legalize.h"
#include "passes/legalize/NodeContext.h"

#include <queue>

using namespace mlir;

namespace lathe::legalize {

/// Function calls nest at most this deep (recursive functions have no compiled form).
static constexpr size_t kMaxDepth = 64;
/// What folding of shapes and axes may hold, and the largest tensor it computes with.
static constexpr int64_t kFoldBytes = int64_t(256) << 20;
static constexpr int64_t kFoldElements = int64_t(1) << 20;
static constexpr int64_t kFoldWork = int64_t(1) << 26;
/// Nodes translated over all instances of functions: nested loops and calls must not multiply without end.
static constexpr int64_t kMaxNodes = 2000000;

LegalizeContext::LegalizeContext(ModuleOp module, const HandlerTable &handlers)
    : module(module), handlers(handlers), builder(module.getContext()), entryLoc(module.getLoc()) {}

StringRef LegalizeContext::intern(StringRef name) { return names.try_emplace(name, 0).first->getKey(); }

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

GraphValue LegalizeContext::lookup(Value graphValue) {
  auto &scope = scopes.back();
  auto it = scope.find(graphValue);
  return it == scope.end() ? GraphValue() : it->second;
}

void LegalizeContext::assign(Value graphValue, GraphValue value) { scopes.back()[graphValue] = std::move(value); }

Value LegalizeContext::materialize(const GraphValue &value, Location loc) {
  if (value.kind == GraphValue::Kind::Reference) {
    FailureOr<GraphValue> current = readVariable(value.name, loc);
    return succeeded(current) ? materialize(*current, loc) : Value();
  }
  if (value.kind != GraphValue::Kind::Tensor)
    return {};
  if (value.tensor)
    return value.tensor;
  Dims exprs = resolve(*value.sizes);
  SmallVector<int64_t> constants;
  for (AffineExpr e : exprs)
    if (auto c = constantOf(e))
      constants.push_back(*c);
  Emitter e(*this, loc, "");
  if (constants.size() == exprs.size()) {
    Tensor t = Tensor::allocate(graph::toDType(value.elementType),
                                std::vector<int64_t>(value.sizesShape.begin(), value.sizesShape.end()));
    for (auto [i, v] : llvm::enumerate(constants)) {
      if (value.elementType.isInteger(64))
        t.data<int64_t>()[i] = v;
      else
        t.data<int32_t>()[i] = int32_t(v);
    }
    return e.constant(t);
  }
  if (value.sizesShape.empty())
    return e.sizeValue(exprs[0], value.elementType);
  Value all = e.make<hlo::SizeOp>(ArrayRef<AffineExpr>(exprs), value.elementType);
  return e.reshape(all, value.sizesShape);
}

/// Whether regions of the op use values from outside.
static bool capturesValues(Operation *op) {
  bool captures = false;
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        captures |= !op->isAncestor(operand.getParentRegion()->getParentOp());
    });
  return captures;
}

std::optional<Tensor> LegalizeContext::fold(Value value) {
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value v = stack.back();
    if (folded.count(v)) {
      stack.pop_back();
      continue;
    }
    Operation *op = v.getDefiningOp();
    auto type = dyn_cast<RankedTensorType>(v.getType());
    auto giveUp = [&] {
      // A tensor without type marks what cannot be folded, so that it is not tried again.
      for (Value s : stack)
        folded[s] = Tensor();
      return std::nullopt;
    };
    if (!op || !type || !type.hasStaticShape() || (type.getNumElements() > kFoldElements && !isa<hlo::ConstantOp>(op)) ||
        (op->getNumRegions() && capturesValues(op)) || isa<hlo::UniqueOp, hlo::WhereOp, hlo::AssumeShapeOp>(op))
      return giveUp();
    bool ready = true;
    SmallVector<Tensor> operands;
    for (Value operand : op->getOperands()) {
      auto it = folded.find(operand);
      if (it == folded.end()) {
        stack.push_back(operand);
        ready = false;
        break;
      }
      if (!it->second.valid())
        return giveUp();
      operands.push_back(it->second);
    }
    if (!ready)
      continue;
    if (auto constant = dyn_cast<hlo::ConstantOp>(op)) {
      // Shared with the attribute: costs nothing.
      FailureOr<Tensor> tensor = hlo::readConstant(constant.getValue());
      if (failed(tensor))
        return giveUp();
      folded[v] = *tensor;
      stack.pop_back();
      continue;
    }
    hlo::EvalOptions options;
    options.maxBytes = kFoldBytes;
    options.maxWork = kFoldWork;
    options.silent = true;
    FailureOr<SmallVector<Tensor>> results = hlo::evaluateOp(op, operands, options);
    if (failed(results) || results->size() != op->getNumResults())
      return giveUp();
    for (auto [result, tensor] : llvm::zip(op->getResults(), *results)) {
      foldedBytes += tensor.sizeBytes();
      folded[result] = tensor;
    }
    if (foldedBytes > kFoldBytes)
      return giveUp();
    stack.pop_back();
  }
  const Tensor &result = folded[value];
  return result.valid() ? std::optional<Tensor>(result) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

StringRef LegalizeContext::arrayKey(int64_t array) { return intern(("array " + Twine(array)).str()); }

ListValue LegalizeContext::newArrayContents(int64_t array) {
  const ArrayInfo &info = arrays[array];
  ListValue list;
  list.elementType = info.elementType;
  list.elementDims = info.elementDims;
  list.length = info.length;
  return list;
}

LogicalResult LegalizeContext::declareVariable(StringRef name, RankedTensorType type, Attribute initial) {
  for (VariableInfo &v : variables)
    if (v.name == name) {
      if (!v.type)
        v.type = type;
      return success();
    }
  VariableInfo info;
  info.name = name.str();
  info.type = type;
  info.initial = initial;
  variables.push_back(info);
  return success();
}

FailureOr<GraphValue> LegalizeContext::readVariable(StringRef name, Location loc) {
  StringRef key = intern(name);
  auto it = state.find(key);
  if (it != state.end())
    return it->second;
  for (VariableInfo &v : variables) {
    if (v.name != name)
      continue;
    if (!v.type || !v.type.hasStaticShape()) {
      sawError = true;
      return emitError(loc) << "variable '" << name << "': its shape is not known";
    }
    if (!v.argument)
      v.argument = function.getBody().front().addArgument(v.type, loc);
    GraphValue value = GraphValue::ofTensor(v.argument);
    state[key] = value;
    return value;
  }
  sawError = true;
  return emitError(loc) << "variable '" << name << "' is not declared";
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

graph::FuncOp LegalizeContext::lookupFunction(Attribute attr) {
  auto func = dyn_cast_or_null<graph::FuncAttr>(attr);
  return func ? module.lookupSymbol<graph::FuncOp>(func.getName().getValue()) : graph::FuncOp();
}

/// Ops that a function runs for their effect even if nothing reads them.
static bool hasEffect(StringRef op) {
  return op.starts_with("Assign") || op.starts_with("ResourceApply") || op.starts_with("ResourceSparseApply") ||
         op.starts_with("ResourceScatter") || op.starts_with("Apply") || op.starts_with("Scatter") ||
         op.starts_with("Stack") || op == "Assert" || op == "While" || op == "If" || op == "Case" ||
         op == "StatefulPartitionedCall";
}

FailureOr<const std::vector<graph::NodeOp> *> LegalizeContext::orderOf(graph::FuncOp func) {
  auto [it, isNew] = orders.try_emplace(func.getOperation());
  if (!isNew)
    return &it->second;
  Block &block = func.getBody().front();
  // What the outputs need.
  llvm::DenseMap<Operation *, unsigned> index;
  std::vector<graph::NodeOp> nodes;
  for (auto node : block.getOps<graph::NodeOp>()) {
    index[node] = nodes.size();
    nodes.push_back(node);
  }
  std::vector<bool> needed(nodes.size(), false);
  SmallVector<Operation *> work{block.getTerminator()};
  if (func.isPrivate())
    for (graph::NodeOp node : nodes)
      if (hasEffect(node.getOp())) {
        needed[index[node]] = true;
        work.push_back(node);
      }
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (auto at = index.find(def); at != index.end() && !needed[at->second]) {
          needed[at->second] = true;
          work.push_back(def);
        }
  }
  // First in the file, first in the order, as far as edges allow.
  std::vector<unsigned> waiting(nodes.size(), 0);
  std::vector<SmallVector<unsigned, 2>> users(nodes.size());
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<unsigned>> ready;
  size_t total = 0;
  for (auto [i, node] : llvm::enumerate(nodes)) {
    if (!needed[i])
      continue;
    ++total;
    for (Value operand : node->getOperands())
      if (Operation *def = operand.getDefiningOp()) {
        users[index[def]].push_back(i);
        ++waiting[i];
      }
    if (!waiting[i])
      ready.push(i);
  }
  std::vector<graph::NodeOp> order;
  while (!ready.empty()) {
    unsigned i = ready.top();
    ready.pop();
    order.push_back(nodes[i]);
    for (unsigned user : users[i])
      if (--waiting[user] == 0)
        ready.push(user);
  }
  if (order.size() != total) {
    sawError = true;
    for (auto [i, node] : llvm::enumerate(nodes))
      if (needed[i] && waiting[i]) {
        emitError(node.getLoc()) << "node '" << node.getNodeName() << "' (" << node.getOp()
                                 << "): is part of a cycle (a loop that was not made functional)";
        break;
      }
    orders.erase(func.getOperation());
    return failure();
  }
  auto &slot = orders[func.getOperation()];
  slot = std::move(order);
  return &slot;
}

LogicalResult LegalizeContext::lowerNode(graph::NodeOp node) {
  // Collects what hlo's builders say, to name the node in it.
  SmallVector<std::string> complaints;
  ScopedDiagnosticHandler collect(getContext(), [&](Diagnostic &d) {
    if (d.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    std::string text = d.str();
    if (StringRef(text).starts_with("node '") || StringRef(text).starts_with("variable '"))
      return failure();
    complaints.push_back(std::move(text));
    return success();
  });

  bool poisoned = llvm::any_of(node.getInputs(), [&](Value v) { return lookup(v).kind == GraphValue::Kind::Poison; });
  if (poisoned)
    return failure();
  if (trackSizes(*this, node))
    return success();
  NodeContext c(*this, node);
  if (++translated > kMaxNodes)
    return c.error("the graph is too large once its functions are expanded");
  const Handler *handler = handlers.lookup(node.getOp());
  if (!handler)
    return c.error(whyNotCompilable(node.getOp()));
  int n = handler->numInputs;
  if (n >= 0 ? int(c.numInputs()) != n : int(c.numInputs()) < -n - 1)
    return c.error("expected " + Twine(n >= 0 ? "" : "at least ") + Twine(n >= 0 ? n : -n - 1) + " inputs, found " +
                   Twine(c.numInputs()));
  if (!handler->anyKind) {
    for (unsigned i = 0; i < c.numInputs(); ++i) {
      const GraphValue &v = c.value(i);
      if (v.kind == GraphValue::Kind::Host)
        return c.error("input " + Twine(i) + " is no number (a string, a table, ...): no compiled form");
      // Reading makes tensors of sizes, which the handler may not need.
      bool known = v.kind == GraphValue::Kind::Tensor;
      if (!known && !c.input(i))
        return failure();
    }
  }
  // Errors of the handler count whether or not it went on with what stands for the value; what builders say of that is noise.
  bool sawOther = std::exchange(sawError, false);
  LogicalResult result = handler->fn(c);
  if (sawError)
    result = failure();
  else
    for (const std::string &text : complaints)
      result = c.error(text);
  if (failed(result) && !sawError)
    result = c.error("has no compiled form with these inputs");
  sawError |= sawOther;
  if (failed(result))
    return failure();
  for (auto [i, output] : llvm::enumerate(node.getOutputs())) {
    if (c.done[i])
      assign(output, *c.done[i]);
    else if (!output.use_empty())
      return c.error("output " + Twine(i) + " has no compiled form");
  }
  return success();
}

LogicalResult LegalizeContext::lowerBody(graph::FuncOp func, ArrayRef<GraphValue> args,
                                         SmallVectorImpl<GraphValue> &results) {
  if (scopes.size() >= kMaxDepth) {
    sawError = true;
    return emitError(func.getLoc()) << "function '" << func.getSymName() << "': calls nest too deep";
  }
  auto order = orderOf(func);
  if (failed(order))
    return failure();
  // A copy: translating nested functions may move the cache.
  std::vector<graph::NodeOp> nodes = **order;
  Block &block = func.getBody().front();
  if (block.getNumArguments() != args.size()) {
    sawError = true;
    return emitError(func.getLoc()) << "function '" << func.getSymName() << "': expected " << block.getNumArguments()
                                    << " arguments, found " << args.size();
  }
  scopes.emplace_back();
  for (auto [arg, value] : llvm::zip(block.getArguments(), args))
    assign(arg, value);
  bool ok = true;
  for (graph::NodeOp node : nodes)
    ok &= succeeded(lowerNode(node));
  if (ok)
    for (Value output : cast<graph::ReturnOp>(block.getTerminator()).getOutputs())
      results.push_back(lookup(output));
  scopes.pop_back();
  return success(ok);
}

LogicalResult LegalizeContext::lowerEntry(graph::FuncOp entry) {
  entryLoc = entry.getLoc();
  state.clear();
  arrays.clear();
  variables.clear();
  folded.clear();
  checks.clear();
  bool ok = true;
  auto nameOf = [&](DictionaryAttr attrs, StringRef key) {
    auto s = attrs ? attrs.getAs<StringAttr>(key) : StringAttr();
    return s ? s : builder.getStringAttr("");
  };

  // Inputs: an unknown size becomes a symbol of its own.
  SmallVector<Type> types;
  SmallVector<NamedAttrList> argAttrs;
  SmallVector<DictionaryAttr> given;
  entry.getAllArgAttrs(given);
  for (auto [i, type] : llvm::enumerate(entry.getArgumentTypes())) {
    DictionaryAttr attrs = i < given.size() ? given[i] : DictionaryAttr();
    StringRef name = nameOf(attrs, graph::kNameAttr).getValue();
    auto tensor = dyn_cast<RankedTensorType>(type);
    Type element = cast<TensorType>(type).getElementType();
    if (!isa<FloatType, IntegerType, ComplexType>(element)) {
      sawError = true;
      ok = false;
      emitError(entryLoc) << "input '" << name << "': element type " << element << " has no compiled form";
      continue;
    }
    if (!tensor) {
      sawError = true;
      ok = false;
      emitError(entryLoc) << "input '" << name << "': unknown rank; pass --input " << name << "=SHAPE";
      continue;
    }
    Dims dims;
    for (auto [d, size] : llvm::enumerate(tensor.getShape()))
      dims.push_back(ShapedType::isDynamic(size) ? newSymbol((name + ":" + Twine(d)).str(), -1, true) : constant(size));
    types.push_back(hlo::makeType(dims, element));
    NamedAttrList list;
    list.set("hlo.name", nameOf(attrs, graph::kNameAttr));
    if (attrs && attrs.get("graph.tensor"))
      list.set("hlo.tensor", attrs.get("graph.tensor"));
    argAttrs.push_back(list);
  }
  if (!ok)
    return failure();

  for (auto variable : module.getOps<graph::VariableOp>())
    (void)declareVariable(variable.getSymName(), dyn_cast<RankedTensorType>(variable.getType()));

  // The graph function still has the name.
  builder.setInsertionPoint(entry);
  function = func::FuncOp::create(builder, entryLoc, entry.getSymName(), builder.getFunctionType(types, {}));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);

  GraphValues args, results;
  for (BlockArgument arg : block->getArguments())
    args.push_back(GraphValue::ofTensor(arg));
  if (failed(lowerBody(entry, args, results)))
    return failure();

  SmallVector<Value> returned;
  SmallVector<NamedAttrList> resultAttrs;
  SmallVector<DictionaryAttr> resultGiven;
  entry.getAllResultAttrs(resultGiven);
  for (auto [i, value] : llvm::enumerate(results)) {
    DictionaryAttr attrs = i < resultGiven.size() ? resultGiven[i] : DictionaryAttr();
    Value v = materialize(value, entryLoc);
    if (!v) {
      sawError = true;
      ok = false;
      emitError(entryLoc) << "output '" << nameOf(attrs, graph::kNameAttr).getValue()
                          << "' is no tensor of numbers: no compiled form";
      continue;
    }
    returned.push_back(v);
    NamedAttrList list;
    list.set("hlo.name", nameOf(attrs, graph::kNameAttr));
    if (attrs && attrs.get("graph.tensor"))
      list.set("hlo.tensor", attrs.get("graph.tensor"));
    resultAttrs.push_back(list);
  }
  if (!ok)
    return failure();
  SmallVector<VariableInfo *> byArgument(block->getNumArguments(), nullptr);
  for (VariableInfo &v : variables) {
    if (v.argument)
      byArgument[v.argument.getArgNumber()] = &v;
    auto it = state.find(intern(v.name));
    if (it == state.end() || (it->second.tensor && it->second.tensor == v.argument))
      continue;
    Value now = materialize(it->second, entryLoc);
    if (!now)
      continue;
    returned.push_back(now);
    NamedAttrList list;
    list.set("hlo.variable", builder.getStringAttr(v.name));
    resultAttrs.push_back(list);
  }
  for (size_t i = argAttrs.size(); i < byArgument.size(); ++i) {
    NamedAttrList list;
    list.set("hlo.variable", builder.getStringAttr(byArgument[i]->name));
    argAttrs.push_back(list);
  }
  func::ReturnOp::create(builder, entryLoc, returned);
  SmallVector<Type> resultTypes;
  for (Value v : returned)
    resultTypes.push_back(v.getType());
  function.setFunctionType(builder.getFunctionType(block->getArgumentTypes(), resultTypes));
  // all at once: each call would make the list of all arguments anew
  auto dictionaries = [&](auto &lists) {
    SmallVector<DictionaryAttr> all;
    for (auto &list : lists)
      all.push_back(list.getDictionary(getContext()));
    return all;
  };
  argAttrs.resize(function.getNumArguments());
  resultAttrs.resize(function.getNumResults());
  function.setAllArgAttrs(dictionaries(argAttrs));
  function.setAllResultAttrs(dictionaries(resultAttrs));

  SmallVector<Attribute> sizeChecks;
  auto mapOf = [&](AffineExpr e) { return AffineMapAttr::get(AffineMap::get(0, symbols.size(), resolve(e))); };
  for (SizeCheck &check : checks) {
    if (resolve(check.lhs) == resolve(check.rhs))
      continue;
    sizeChecks.push_back(builder.getDictionaryAttr({builder.getNamedAttr("lhs", mapOf(check.lhs)),
                                                    builder.getNamedAttr("node", builder.getStringAttr(check.node)),
                                                    builder.getNamedAttr("rhs", mapOf(check.rhs))}));
  }
  if (!sizeChecks.empty())
    function->setAttr("hlo.size_checks", builder.getArrayAttr(sizeChecks));
  return success();
}

} // namespace lathe::legalize
