// Translation of entries and function bodies: order of nodes, values, state, folding.
#include "passes/legalize/LegalizeContext.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "ops/Flags.h"
#include "passes/legalize/Complaints.h"
#include "passes/legalize/Legalize.h"
#include "passes/legalize/NodeContext.h"
#include "passes/legalize/ShapeCheck.h"

#include <queue>

using namespace mlir;

namespace lathe::legalize {

/// Function calls nest at most this deep (recursive functions have no compiled form).
static constexpr size_t kMaxDepth = 64;
/// Nodes translated over all instances of functions: nested loops and calls must not multiply without end.
static constexpr int64_t kMaxNodes = 2000000;

LegalizeContext::LegalizeContext(ModuleOp module, const HandlerTable &handlers)
    : HloContext(module), handlers(handlers) {}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

GraphValue LegalizeContext::lookup(Value graphValue) {
  auto &scope = scopes.back();
  auto it = scope.find(graphValue);
  return it == scope.end() ? GraphValue() : it->second;
}

void LegalizeContext::assign(Value graphValue, GraphValue value) { scopes.back()[graphValue] = std::move(value); }

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

void LegalizeContext::replaced(Value from, Value to) {
  for (auto &scope : scopes)
    for (auto &entry : scope)
      if (entry.second.tensor == from)
        entry.second.tensor = to;
}

void LegalizeContext::clearEntry() {
  HloContext::clearEntry();
  arrays.clear();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

graph::FuncOp LegalizeContext::lookupFunction(Attribute attr) {
  auto func = dyn_cast_or_null<graph::FuncAttr>(attr);
  return func ? module.lookupSymbol<graph::FuncOp>(func.getName().getValue()) : graph::FuncOp();
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
      if (ops::is(node.getOp(), ops::Flag::Effect)) {
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
  Complaints complaints(*this);
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
  if (failed(complaints.run([&] { return handler->fn(c); }, [&](const Twine &text) -> LogicalResult { return c.error(text); })))
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
    ok &= succeeded(lowerNode(node)) && (!checkShapes || succeeded(verifyShapes(*this, node)));
  if (ok)
    for (Value output : cast<graph::ReturnOp>(block.getTerminator()).getOutputs())
      results.push_back(lookup(output));
  scopes.pop_back();
  return success(ok);
}

LogicalResult LegalizeContext::lowerEntry(graph::FuncOp entry) {
  entryLoc = entry.getLoc();
  clearEntry();
  auto nameOf = [&](DictionaryAttr attrs, StringRef key) {
    auto s = attrs ? attrs.getAs<StringAttr>(key) : StringAttr();
    return s ? s : builder.getStringAttr("");
  };
  auto tensorOf = [&](ArrayRef<DictionaryAttr> given, size_t i) {
    DictionaryAttr attrs = i < given.size() ? given[i] : DictionaryAttr();
    return EntryTensor{nameOf(attrs, graph::kNameAttr), attrs ? attrs.getAs<StringAttr>("graph.tensor") : StringAttr(), {}};
  };
  bool ok = true;
  auto refuse = [&](StringRef name) {
    sawError = true;
    ok = false;
    return emitError(entryLoc) << "input '" << name << "': ";
  };
  SmallVector<DictionaryAttr> given, resultGiven;
  entry.getAllArgAttrs(given);
  entry.getAllResultAttrs(resultGiven);
  SmallVector<EntryTensor> inputs, outputs;
  for (auto [i, type] : llvm::enumerate(entry.getArgumentTypes())) {
    EntryTensor input = tensorOf(given, i);
    StringRef name = input.name.getValue();
    input.type = dyn_cast<RankedTensorType>(type);
    Type element = cast<TensorType>(type).getElementType();
    if (!isa<FloatType, IntegerType, ComplexType>(element))
      refuse(name) << "element type " << element << " has no compiled form";
    else if (!input.type)
      refuse(name) << "unknown rank; pass --input " << name << "=SHAPE";
    inputs.push_back(input);
  }
  if (!ok)
    return failure();
  for (size_t i = 0; i < entry.getResultTypes().size(); ++i)
    outputs.push_back(tensorOf(resultGiven, i));

  for (auto variable : module.getOps<graph::VariableOp>())
    (void)declareVariable(variable.getSymName(), dyn_cast<RankedTensorType>(variable.getType()));

  // The graph function still has the name.
  builder.setInsertionPoint(entry);
  beginEntry(entry.getSymName(), entry.getLoc(), inputs);
  GraphValues args, results;
  for (BlockArgument arg : function.getBody().front().getArguments())
    args.push_back(GraphValue::ofTensor(arg));
  if (failed(lowerBody(entry, args, results)))
    return failure();
  return finishEntry(outputs, results);
}

/// Small constants of integers as sizes too: shape arithmetic goes on with them, so that what is computed from sizes of inputs
/// stays an expression. Frontends give them as tensors.
static GraphValue withSizes(LegalizeContext &ctx, GraphValue value) {
  constexpr int64_t most = 256;
  if (!value.isTensor() || value.sizes || !value.tensor)
    return value;
  auto type = cast<RankedTensorType>(value.tensor.getType());
  Type element = type.getElementType();
  if (!(element.isSignlessInteger(32) || element.isSignlessInteger(64)) || !type.hasStaticShape() || type.getNumElements() > most)
    return value;
  std::optional<Tensor> constant = ctx.fold(value.tensor);
  if (!constant)
    return value;
  value.sizes.emplace();
  for (int64_t i = 0; i < constant->numElements(); ++i)
    value.sizes->push_back(
        ctx.constant(constant->dtype() == DType::Int64 ? constant->data<int64_t>()[i] : constant->data<int32_t>()[i]));
  value.sizesShape.assign(constant->dims().begin(), constant->dims().end());
  value.elementType = element;
  return value;
}

FailureOr<GraphValues> LegalizeContext::lowerOp(StringRef op, Location loc, ArrayRef<GraphValue> inputs,
                                                ArrayRef<NamedAttribute> attrs, ArrayRef<Type> resultElements) {
  // A node whose operands only stand for the values; handlers read its attributes and the types of its results.
  OpBuilder::InsertionGuard guard(builder);
  Block scratch;
  OpBuilder nodes(getContext());
  nodes.setInsertionPointToStart(&scratch);
  scopes.emplace_back();
  SmallVector<Value> operands;
  for (const GraphValue &input : inputs) {
    Type element = input.tensor ? cast<TensorType>(input.tensor.getType()).getElementType() : input.elementType;
    operands.push_back(scratch.addArgument(UnrankedTensorType::get(element ? element : builder.getI32Type()), loc));
    assign(operands.back(), withSizes(*this, input));
  }
  SmallVector<Type> results;
  for (Type element : resultElements)
    results.push_back(UnrankedTensorType::get(element));
  auto node = graph::NodeOp::create(nodes, loc, TypeRange(results), op, ValueRange(operands), ValueRange(),
                                    builder.getDictionaryAttr(attrs));
  // A use for every result: handlers may leave out what nobody reads.
  graph::ReturnOp::create(nodes, loc, node.getOutputs(), ValueRange());
  LogicalResult done = lowerNode(node);
  GraphValues values;
  if (succeeded(done))
    for (Value output : node.getOutputs())
      values.push_back(lookup(output));
  scopes.pop_back();
  scratch.clear();
  if (failed(done))
    return failure();
  return values;
}

} // namespace lathe::legalize
