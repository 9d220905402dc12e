// Branches, loops, calls, variables: subgraphs become regions that use outer values directly.
#include "compiler/frontend/tflite/Translator.h"
#include "passes/legalize/control/Control.h"

#include <algorithm>
#include <vector>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;
using State = decltype(legalize::HloContext::state);
using Kind = GraphValue::Kind;

GraphValues inputsFrom(OpContext &c, unsigned first) {
  GraphValues values;
  for (unsigned i = first; i < c.numInputs(); ++i)
    values.push_back(c.value(i));
  return values;
}

LogicalResult checkSubgraph(OpContext &c, int64_t index) {
  if (index < 0 || index >= c.translator.file.numSubgraphs())
    return c.error("there is no subgraph " + Twine(index));
  return success();
}

Value scalarCondition(OpContext &c, Value v) {
  if (!v)
    return v;
  if (constantOf(productOf(c.dims(v), c.b.getContext())) != int64_t(1) || !Emitter::isBool(v)) {
    (void)c.error("the condition must be one bool");
    return {};
  }
  return c.reshape(v, ArrayRef<AffineExpr>());
}

/// One side of a branch: its results, and what it left in variables.
struct Side {
  Block *block = nullptr;
  GraphValues results;
  State state;
  SmallVector<Value> returned;
};

LogicalResult makeSide(OpContext &c, Side &side, Region &region, int64_t subgraph, ArrayRef<GraphValue> args) {
  OpBuilder::InsertionGuard guard(c.b);
  side.block = c.b.createBlock(&region);
  State before = c.ctx.state;
  LogicalResult done = c.translator.runSubgraph(subgraph, args, side.results);
  side.state = std::exchange(c.ctx.state, before);
  return done;
}

/// What each side makes of one result, with one type, as a result of the branch.
LogicalResult join(OpContext &c, MutableArrayRef<Side> sides, llvm::function_ref<GraphValue(Side &)> valueOf, const Twine &what) {
  Value first;
  for (Side &side : sides) {
    OpBuilder::InsertionGuard guard(c.b);
    c.b.setInsertionPointToEnd(side.block);
    Value v = c.ctx.materialize(valueOf(side), c.loc);
    if (!v)
      return c.error(what + " is no tensor of numbers");
    side.returned.push_back(v);
    if (!first)
      first = v;
    if (Emitter::elementType(first) != Emitter::elementType(v) || Emitter::rank(first) != Emitter::rank(v))
      return c.error(what + ": the branches give different types");
    for (int64_t d = 0; d < Emitter::rank(v); ++d)
      if (!c.ctx.unify(c.dim(first, d), c.dim(v, d), c.nodeName))
        return c.error(what + ": the branches give different shapes");
  }
  return success();
}

/// Results that a subgraph gave in place of the operator.
LogicalResult inPlace(OpContext &c, int64_t subgraph, ArrayRef<GraphValue> args) {
  GraphValues results;
  if (failed(checkSubgraph(c, subgraph)) || failed(c.translator.runSubgraph(subgraph, args, results)))
    return failure();
  for (auto [i, v] : llvm::enumerate(results))
    if (failed(c.setResult(i, v)))
      return failure();
  return success();
}

/// hlo.if or hlo.case on `selector`, with a region for each of the subgraphs.
LogicalResult branch(OpContext &c, StringRef op, Value selector, ArrayRef<int64_t> subgraphs) {
  GraphValues args = inputsFrom(c, 1);
  // variables become arguments before the branch
  for (const legalize::VariableInfo &v : std::vector<legalize::VariableInfo>(c.ctx.variables))
    if (v.type && v.type.hasStaticShape())
      (void)c.ctx.readVariable(v.name, c.loc);
  Operation *draft = legalize::createWithRegions(c, op, selector, {}, subgraphs.size());
  std::vector<Side> sides(subgraphs.size());
  for (auto [i, side] : llvm::enumerate(sides)) {
    if (failed(makeSide(c, side, draft->getRegion(i), subgraphs[i], args)))
      return failure();
    if (side.results.size() < c.numOutputs())
      return c.error("the branches have fewer outputs than the operator");
  }
  for (unsigned i = 0; i < c.numOutputs(); ++i)
    if (failed(join(c, sides, [&](Side &side) { return side.results[i]; }, "output " + Twine(i))))
      return failure();
  SmallVector<StringRef> written;
  for (auto &[name, value] : sides[0].state) {
    const GraphValue &before = c.ctx.state[name];
    for (Side &side : sides)
      if (side.state[name].kind != Kind::Tensor || before.kind != Kind::Tensor)
        return c.error("variable '" + name + "' is only written in one branch");
    if (llvm::all_of(sides, [&, &name = name](Side &side) { return side.state[name].tensor == before.tensor; }))
      continue;
    if (failed(join(c, sides, [&, &name = name](Side &side) { return side.state[name]; }, "variable '" + name + "'")))
      return failure();
    written.push_back(name);
  }
  for (Side &side : sides)
    if (side.state.size() != sides[0].state.size())
      return c.error("a variable is only written in one branch");
  SmallVector<Type> types(ValueRange(sides[0].returned).getTypes());
  for (Side &side : sides) {
    OpBuilder::InsertionGuard guard(c.b);
    c.b.setInsertionPointToEnd(side.block);
    hlo::ReturnOp::create(c.b, c.loc, side.returned);
  }
  Operation *made = legalize::createWithRegions(c, op, selector, types, sides.size());
  for (auto [i, region] : llvm::enumerate(made->getRegions()))
    region.takeBody(draft->getRegion(i));
  draft->erase();
  for (unsigned i = 0; i < c.numOutputs(); ++i)
    (void)c.setResult(i, made->getResult(i));
  for (auto [i, name] : llvm::enumerate(written))
    c.ctx.state[name] = GraphValue::ofTensor(made->getResult(c.numOutputs() + i));
  return success();
}

LogicalResult lowerIf(OpContext &c) {
  const auto &o = c.options<tfl::IfOptions>();
  int64_t subgraphs[2] = {o.then_subgraph_index(), o.else_subgraph_index()};
  Value condition = scalarCondition(c, c.input(0));
  if (!condition || failed(checkSubgraph(c, subgraphs[0])) || failed(checkSubgraph(c, subgraphs[1])))
    return failure();
  if (auto known = c.ctx.fold(condition)) // only one side is there
    return inPlace(c, subgraphs[*known->data<uint8_t>() ? 0 : 1], inputsFrom(c, 1));
  return branch(c, hlo::IfOp::getOperationName(), condition, subgraphs);
}

/// One of several subgraphs by an index; the last one for any other index.
LogicalResult lowerCase(OpContext &c) {
  SmallVector<int64_t> subgraphs;
  if (auto *given = c.options2<tfl::StablehloCaseOptions>().branch_subgraph_indices())
    subgraphs.assign(given->begin(), given->end());
  Value index = c.input(0);
  if (!index)
    return failure();
  if (subgraphs.empty())
    return c.error("it has no branches");
  for (int64_t subgraph : subgraphs)
    if (failed(checkSubgraph(c, subgraph)))
      return failure();
  if (!Emitter::elementType(index).isInteger(32) || constantOf(productOf(c.dims(index), c.b.getContext())) != int64_t(1))
    return c.error("the index must be one 32-bit integer");
  index = c.reshape(index, ArrayRef<AffineExpr>());
  const int64_t last = subgraphs.size() - 1;
  if (auto known = c.ctx.fold(index)) {
    const int32_t at = *known->data<int32_t>();
    return inPlace(c, subgraphs[at < 0 || at > last ? last : at], inputsFrom(c, 1));
  }
  return branch(c, hlo::CaseOp::getOperationName(), index, subgraphs);
}

/// Results of a body that are its arguments.
SmallVector<bool> unchanged(const tfl::SubGraph &body) {
  SmallVector<bool> same;
  if (body.inputs() && body.outputs())
    for (unsigned i = 0; i < std::min(body.inputs()->size(), body.outputs()->size()); ++i)
      same.push_back(body.inputs()->Get(i) == body.outputs()->Get(i));
  return same;
}

/// The loop over the subgraphs of a condition and a body. Lists and variables go round with the tensors.
LogicalResult lowerWhile(OpContext &c, int64_t conditionSubgraph, int64_t bodySubgraph) {
  if (failed(checkSubgraph(c, conditionSubgraph)) || failed(checkSubgraph(c, bodySubgraph)))
    return failure();
  legalize::LoopParts parts;
  parts.condition = [&](ArrayRef<GraphValue> args, GraphValues &results) -> LogicalResult {
    if (failed(c.translator.runSubgraph(conditionSubgraph, args, results)))
      return failure();
    Value v = results.size() == 1 ? c.ctx.materialize(results[0], c.loc) : Value();
    if (!v)
      return c.error("the condition must be one bool");
    results[0] = GraphValue::ofTensor(scalarCondition(c, v));
    return success(bool(results[0].tensor));
  };
  parts.body = [&](ArrayRef<GraphValue> args, GraphValues &results) -> LogicalResult {
    if (failed(c.translator.runSubgraph(bodySubgraph, args, results)))
      return failure();
    if (results.size() != args.size())
      return c.error("the body has " + Twine(results.size()) + " outputs, expected " + Twine(args.size()));
    return success();
  };
  parts.invariant = unchanged(c.translator.file.subgraph(bodySubgraph));
  auto results = legalize::makeLoop(c, c.translator, inputsFrom(c, 0), parts);
  if (failed(results))
    return failure();
  for (auto [i, v] : llvm::enumerate(*results))
    if (failed(c.setResult(i, v)))
      return failure();
  return success();
}

/// "container/name": containers keep variables of one name apart.
LogicalResult varHandle(OpContext &c) {
  const auto &o = c.options<tfl::VarHandleOptions>();
  std::string name = o.container() ? o.container()->str() : "";
  if (!name.empty())
    name += "/";
  name += o.shared_name() ? o.shared_name()->str() : "";
  (void)c.ctx.declareVariable(name, {});
  return c.setResult(0, GraphValue::ofName(Kind::Variable, name));
}

legalize::VariableInfo *variableOf(OpContext &c) {
  if (c.value(0).kind == Kind::Variable)
    for (legalize::VariableInfo &v : c.ctx.variables)
      if (v.name == c.value(0).name)
        return &v;
  (void)c.error("input 0 is no variable");
  return nullptr;
}

LogicalResult readVariable(OpContext &c) {
  legalize::VariableInfo *v = variableOf(c);
  if (!v)
    return failure();
  if (!v->type) {
    const TensorInfo &info = c.outputInfo(0);
    if (llvm::is_contained(info.dims, -1))
      return c.error("the shape of variable '" + v->name + "' is not known");
    v->type = RankedTensorType::get(info.dims, c.elementOf(info));
  }
  auto value = c.ctx.readVariable(v->name, c.loc);
  return failed(value) ? failure() : c.setResult(0, *value);
}

LogicalResult assignVariable(OpContext &c) {
  legalize::VariableInfo *v = variableOf(c);
  Value value = v ? c.input(1) : Value();
  if (!value)
    return failure();
  if (!v->type && c.isStatic(value))
    v->type = Emitter::type(value);
  if (!v->type)
    return c.error("the shape of variable '" + v->name + "' is not known");
  Dims dims = c.dims(value);
  if (Emitter::elementType(value) != v->type.getElementType() || int64_t(dims.size()) != v->type.getRank())
    return c.error("variable '" + v->name + "' has another type");
  for (auto [i, d] : llvm::enumerate(dims))
    if (!c.ctx.unify(d, c.size(v->type.getDimSize(i)), c.nodeName))
      return c.error("variable '" + v->name + "' has another shape");
  c.ctx.state[c.ctx.intern(v->name)] = GraphValue::ofTensor(value);
  return success();
}

} // namespace

void registerControl(OpTable &t) {
  t.add(Op::IF, 1, OpTable::kMany, 1, Any, lowerIf);
  t.add(Op::STABLEHLO_CASE, 1, OpTable::kMany, 1, Ints, lowerCase);
  t.add(Op::WHILE, 1, OpTable::kMany, 1, Any, [](OpContext &c) {
    const auto &o = c.options<tfl::WhileOptions>();
    return lowerWhile(c, o.cond_subgraph_index(), o.body_subgraph_index());
  });
  t.add(Op::STABLEHLO_WHILE, 1, OpTable::kMany, 1, Any, [](OpContext &c) {
    const auto &o = c.options2<tfl::StablehloWhileOptions>();
    return lowerWhile(c, o.cond_subgraph_index(), o.body_subgraph_index());
  });
  t.add(Op::CALL, 0, OpTable::kMany, 1, Any, [](OpContext &c) {
    return inPlace(c, c.options<tfl::CallOptions>().subgraph(), inputsFrom(c, 0));
  });
  // what a delegate would take as a whole is what its subgraph computes
  t.add(Op::STABLEHLO_COMPOSITE, 0, OpTable::kMany, 1, Any, [](OpContext &c) {
    return inPlace(c, c.options2<tfl::StableHLOCompositeOptions>().decomposition_subgraph_index(), inputsFrom(c, 0));
  });
  t.add(Op::CALL_ONCE, 0, 0, 1, Any, [](OpContext &c) {
    return c.translator.initialize(c, c.options<tfl::CallOnceOptions>().init_subgraph_index());
  });
  t.add(Op::VAR_HANDLE, 0, 0, 1, Any, varHandle);
  t.add(Op::READ_VARIABLE, 1, 1, 1, Handles, readVariable);
  t.add(Op::ASSIGN_VARIABLE, 2, 2, 1, Handles, assignVariable);
}

} // namespace lathe::tflite
