// Branches, loops, calls, variables: subgraphs become regions that use outer values directly.
#include "compiler/frontend/tflite/Translator.h"

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

Operation *withRegions(OpContext &c, StringRef op, ValueRange operands, TypeRange types, unsigned regions = 2) {
  OperationState state(c.loc, op);
  state.addOperands(operands);
  state.addTypes(types);
  for (unsigned i = 0; i < regions; ++i)
    state.addRegion();
  return c.b.create(state);
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
  Operation *draft = withRegions(c, op, selector, {}, subgraphs.size());
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
  Operation *made = withRegions(c, op, selector, types, sides.size());
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

/// The loop over the subgraphs of a condition and a body.
LogicalResult lowerWhile(OpContext &c, int64_t conditionSubgraph, int64_t bodySubgraph) {
  if (failed(checkSubgraph(c, conditionSubgraph)) || failed(checkSubgraph(c, bodySubgraph)))
    return failure();
  // Values that are no tensors go round unchanged; variables are carried with the inputs.
  SmallVector<Value> init;
  SmallVector<int64_t> place;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    if (c.value(i).kind != Kind::Tensor) {
      place.push_back(-1);
      continue;
    }
    Value v = c.input(i);
    if (!v)
      return failure();
    place.push_back(init.size());
    init.push_back(v);
  }
  SmallVector<StringRef> names;
  for (const legalize::VariableInfo &v : std::vector<legalize::VariableInfo>(c.ctx.variables))
    if (v.type && v.type.hasStaticShape())
      (void)c.ctx.readVariable(v.name, c.loc);
  for (auto &[name, value] : c.ctx.state) {
    Value v = c.ctx.materialize(value, c.loc);
    if (!v)
      return c.error("variable '" + name + "' is no tensor");
    names.push_back(name);
    init.push_back(v);
  }
  SmallVector<Type> types(ValueRange(init).getTypes());
  SmallVector<Location> locs(init.size(), c.loc);
  Operation *loop = withRegions(c, hlo::WhileOp::getOperationName(), init, types);
  State before = c.ctx.state;
  const size_t tensors = init.size() - names.size();
  bool ok = true;
  auto region = [&](unsigned index, int64_t subgraph, auto finish) {
    OpBuilder::InsertionGuard guard(c.b);
    Block *block = c.b.createBlock(&loop->getRegion(index), {}, types, locs);
    GraphValues args, results;
    for (unsigned i = 0; i < c.numInputs(); ++i)
      args.push_back(place[i] < 0 ? c.value(i) : GraphValue::ofTensor(block->getArgument(place[i])));
    for (auto [i, name] : llvm::enumerate(names))
      c.ctx.state[name] = GraphValue::ofTensor(block->getArgument(tensors + i));
    ok = ok && succeeded(c.translator.runSubgraph(subgraph, args, results)) && finish(results);
    c.ctx.state = before;
  };
  region(0, conditionSubgraph, [&](GraphValues &results) {
    Value v = results.size() == 1 ? scalarCondition(c, c.ctx.materialize(results[0], c.loc)) : Value();
    if (!v)
      return succeeded(c.error("the condition must be one bool"));
    hlo::ReturnOp::create(c.b, c.loc, v);
    return true;
  });
  region(1, bodySubgraph, [&](GraphValues &results) {
    if (results.size() != c.numInputs())
      return succeeded(c.error("the body has " + Twine(results.size()) + " outputs, expected " + Twine(c.numInputs())));
    SmallVector<Value> next;
    for (unsigned i = 0; i < results.size(); ++i)
      if (place[i] >= 0)
        next.push_back(c.ctx.materialize(results[i], c.loc));
    for (StringRef name : names)
      next.push_back(c.ctx.materialize(c.ctx.state[name], c.loc));
    for (auto [i, v] : llvm::enumerate(next)) {
      Type wanted = loop->getOperand(i).getType();
      if (!v || Emitter::elementType(v) != cast<RankedTensorType>(wanted).getElementType() ||
          Emitter::rank(v) != cast<RankedTensorType>(wanted).getRank())
        return succeeded(c.error("value " + Twine(i) + " changes its type in the loop"));
      for (int64_t d = 0; d < Emitter::rank(v); ++d)
        if (!c.ctx.unify(c.dim(v, d), c.dim(loop->getOperand(i), d), c.nodeName))
          return succeeded(c.error("value " + Twine(i) + " changes its shape in the loop"));
    }
    hlo::ReturnOp::create(c.b, c.loc, next);
    return true;
  });
  if (!ok)
    return failure();
  for (unsigned i = 0; i < c.numOutputs() && i < c.numInputs(); ++i)
    (void)c.setResult(i, place[i] < 0 ? c.value(i) : GraphValue::ofTensor(loop->getResult(place[i])));
  for (auto [i, name] : llvm::enumerate(names))
    c.ctx.state[name] = GraphValue::ofTensor(loop->getResult(tensors + i));
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
