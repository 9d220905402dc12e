// Branches, loops, calls, variables: subgraphs become regions that use outer values directly.
#include "compiler/frontend/tflite/Translator.h"

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

Operation *withRegions(OpContext &c, StringRef op, ValueRange operands, TypeRange types) {
  OperationState state(c.loc, op);
  state.addOperands(operands);
  state.addTypes(types);
  state.addRegion();
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

/// Tensors of both sides with one type, as results of the branch.
LogicalResult join(OpContext &c, ArrayRef<Side *> sides, ArrayRef<GraphValue> values, const Twine &what) {
  Value v[2];
  for (int i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(c.b);
    c.b.setInsertionPointToEnd(sides[i]->block);
    v[i] = c.ctx.materialize(values[i], c.loc);
    if (!v[i])
      return c.error(what + " is no tensor of numbers");
  }
  if (Emitter::elementType(v[0]) != Emitter::elementType(v[1]) || Emitter::rank(v[0]) != Emitter::rank(v[1]))
    return c.error(what + ": the branches give different types");
  for (int64_t d = 0; d < Emitter::rank(v[0]); ++d)
    if (!c.ctx.unify(c.dim(v[0], d), c.dim(v[1], d), c.nodeName))
      return c.error(what + ": the branches give different shapes");
  for (int i = 0; i < 2; ++i)
    sides[i]->returned.push_back(v[i]);
  return success();
}

LogicalResult lowerIf(OpContext &c) {
  const auto &o = c.options<tfl::IfOptions>();
  int64_t subgraphs[2] = {o.then_subgraph_index(), o.else_subgraph_index()};
  GraphValues args = inputsFrom(c, 1);
  Value condition = scalarCondition(c, c.input(0));
  if (!condition || failed(checkSubgraph(c, subgraphs[0])) || failed(checkSubgraph(c, subgraphs[1])))
    return failure();
  if (auto known = c.ctx.fold(condition)) { // only one side is there
    GraphValues results;
    if (failed(c.translator.runSubgraph(subgraphs[*known->data<uint8_t>() ? 0 : 1], args, results)))
      return failure();
    for (auto [i, v] : llvm::enumerate(results))
      (void)c.setResult(i, v);
    return success();
  }
  // variables become arguments before the branch
  for (const legalize::VariableInfo &v : std::vector<legalize::VariableInfo>(c.ctx.variables))
    if (v.type && v.type.hasStaticShape())
      (void)c.ctx.readVariable(v.name, c.loc);
  Operation *draft = withRegions(c, hlo::IfOp::getOperationName(), condition, {});
  Side sides[2];
  for (int i = 0; i < 2; ++i)
    if (failed(makeSide(c, sides[i], draft->getRegion(i), subgraphs[i], args)))
      return failure();
  if (sides[0].results.size() < c.numOutputs() || sides[1].results.size() < c.numOutputs())
    return c.error("the branches have fewer outputs than the operator");
  for (unsigned i = 0; i < c.numOutputs(); ++i)
    if (failed(join(c, {&sides[0], &sides[1]}, {sides[0].results[i], sides[1].results[i]}, "output " + Twine(i))))
      return failure();
  SmallVector<StringRef> written;
  for (auto &[name, value] : sides[0].state) {
    const GraphValue &other = sides[1].state[name], &before = c.ctx.state[name];
    if (other.kind != Kind::Tensor || before.kind != Kind::Tensor)
      return c.error("variable '" + name + "' is only written in one branch");
    if (value.tensor == before.tensor && other.tensor == before.tensor)
      continue;
    if (failed(join(c, {&sides[0], &sides[1]}, {value, other}, "variable '" + name + "'")))
      return failure();
    written.push_back(name);
  }
  if (sides[0].state.size() != sides[1].state.size())
    return c.error("a variable is only written in one branch");
  SmallVector<Type> types(ValueRange(sides[0].returned).getTypes());
  for (Side &side : sides) {
    OpBuilder::InsertionGuard guard(c.b);
    c.b.setInsertionPointToEnd(side.block);
    hlo::ReturnOp::create(c.b, c.loc, side.returned);
  }
  Operation *branch = withRegions(c, hlo::IfOp::getOperationName(), condition, types);
  for (int i = 0; i < 2; ++i)
    branch->getRegion(i).takeBody(draft->getRegion(i));
  draft->erase();
  for (unsigned i = 0; i < c.numOutputs(); ++i)
    (void)c.setResult(i, branch->getResult(i));
  for (auto [i, name] : llvm::enumerate(written))
    c.ctx.state[name] = GraphValue::ofTensor(branch->getResult(c.numOutputs() + i));
  return success();
}

LogicalResult lowerWhile(OpContext &c) {
  const auto &o = c.options<tfl::WhileOptions>();
  if (failed(checkSubgraph(c, o.cond_subgraph_index())) || failed(checkSubgraph(c, o.body_subgraph_index())))
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
  region(0, o.cond_subgraph_index(), [&](GraphValues &results) {
    Value v = results.size() == 1 ? scalarCondition(c, c.ctx.materialize(results[0], c.loc)) : Value();
    if (!v)
      return succeeded(c.error("the condition must be one bool"));
    hlo::ReturnOp::create(c.b, c.loc, v);
    return true;
  });
  region(1, o.body_subgraph_index(), [&](GraphValues &results) {
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
  t.add(Op::WHILE, 1, OpTable::kMany, 1, Any, lowerWhile);
  t.add(Op::CALL_ONCE, 0, 0, 1, Any, [](OpContext &c) {
    return c.translator.initialize(c, c.options<tfl::CallOnceOptions>().init_subgraph_index());
  });
  t.add(Op::VAR_HANDLE, 0, 0, 1, Any, varHandle);
  t.add(Op::READ_VARIABLE, 1, 1, 1, Handles, readVariable);
  t.add(Op::ASSIGN_VARIABLE, 2, 2, 1, Handles, assignVariable);
}

} // namespace lathe::tflite
