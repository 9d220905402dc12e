// Variables: reads and writes become values that are handed on in the order of execution.
#include "passes/legalize/state/State.h"

#include "dialects/graph/Types.h"
#include "ops/Flags.h"

using namespace mlir;

namespace lathe::legalize {

FailureOr<StringRef> variableInput(NodeContext &c, unsigned i) {
  const GraphValue &v = c.value(i);
  if (v.kind != GraphValue::Kind::Variable && v.kind != GraphValue::Kind::Reference)
    return c.error("input " + Twine(i) + " is no variable");
  return c.ctx.intern(v.name);
}

Value readInput(NodeContext &c, unsigned i) {
  auto name = variableInput(c, i);
  if (failed(name))
    return {};
  auto value = c.ctx.readVariable(*name, c.loc);
  if (failed(value))
    return {};
  Value v = c.ctx.materialize(*value, c.loc);
  if (!v)
    (void)c.error("variable '" + *name + "' holds no tensor");
  return v;
}

LogicalResult writeInput(NodeContext &c, unsigned i, Value value, bool checkShape) {
  auto name = variableInput(c, i);
  if (failed(name) || !value)
    return failure();
  for (VariableInfo &v : c.ctx.variables) {
    if (v.name != *name)
      continue;
    auto type = Emitter::type(value);
    if (!v.type || !v.type.hasStaticShape()) {
      // The first value says what the declaration leaves open.
      if (!type.hasStaticShape())
        return c.error("the shape of variable '" + *name + "' is not known");
      v.type = type;
    } else if (v.type != type && checkShape) {
      if (v.type.getElementType() != type.getElementType() || v.type.getRank() != type.getRank() ||
          !llvm::all_of(llvm::zip(hlo::getDims(v.type), c.dims(value)),
                        [&](auto pair) { return c.ctx.unify(std::get<0>(pair), std::get<1>(pair), c.name()); })) {
        std::string text;
        llvm::raw_string_ostream os(text);
        os << "variable '" << *name << "' has type " << v.type << ", the new value " << type;
        return c.error(text);
      }
    }
    c.ctx.state[*name] = GraphValue::ofTensor(value);
    return success();
  }
  return c.error("variable '" + *name + "' is not declared");
}

LogicalResult returnReference(NodeContext &c, unsigned i) {
  if (c.numResults() == 0)
    return success();
  auto name = variableInput(c, i);
  return failed(name) ? failure() : c.setResult(0, GraphValue::ofName(GraphValue::Kind::Reference, *name));
}

namespace {

LogicalResult lowerVariable(NodeContext &c, GraphValue::Kind kind) {
  StringRef name = c.attrString("shared_name");
  if (name.empty())
    name = c.name();
  Type element = c.attrType("dtype");
  RankedTensorType type;
  if (auto shape = c.attrShape("shape"); shape && element && isa<FloatType, IntegerType, ComplexType>(element)) {
    SmallVector<int64_t> dims;
    for (int64_t d : *shape)
      dims.push_back(d < 0 ? ShapedType::kDynamic : d);
    type = RankedTensorType::get(dims, element);
  }
  if (kind == GraphValue::Kind::Reference && element && !isa<FloatType, IntegerType, ComplexType>(element))
    return c.error("a variable of this type has no compiled form");
  name = c.ctx.intern(name);
  if (failed(c.ctx.declareVariable(name, type)))
    return failure();
  return c.setResult(0, GraphValue::ofName(kind, name));
}

LogicalResult lowerRead(NodeContext &c) {
  Value v = readInput(c, 0);
  return v ? c.setResult(0, v) : failure();
}

/// Freezing makes constants of variables and may leave what assigned them. The result is the new value then; what reads the
/// constant itself does not see it.
bool isFrozen(NodeContext &c) {
  if (!c.value(0).isTensor())
    return false;
  auto source = c.node.getInputs()[0].getDefiningOp<graph::NodeOp>();
  while (source && ops::is(source.getOp(), ops::Flag::Passes) && source.getInputs().size() == 1)
    source = source.getInputs()[0].getDefiningOp<graph::NodeOp>();
  return source && source.getOp() == "Const";
}

LogicalResult setFrozen(NodeContext &c, Value v) { return !v ? failure() : c.numResults() ? c.setResult(0, v) : success(); }

LogicalResult lowerAssign(NodeContext &c) {
  Value v = c.input(1);
  if (isFrozen(c))
    return setFrozen(c, v);
  bool check = c.op() == "Assign" ? c.attrBool("validate_shape", true) : true;
  if (failed(writeInput(c, 0, v, check)))
    return failure();
  return returnReference(c, 0);
}

template <typename Op>
LogicalResult lowerUpdate(NodeContext &c) {
  if (isFrozen(c))
    return setFrozen(c, c.binary<Op>(c.input(0), c.input(1)));
  Value old = readInput(c, 0), by = c.input(1);
  if (!old || !by || failed(writeInput(c, 0, c.binary<Op>(old, by), true)))
    return failure();
  return returnReference(c, 0);
}

LogicalResult lowerIsInitialized(NodeContext &c) {
  // Compiled programs start with initial values; the init entry writes what has none.
  return c.setResult(0, c.scalarInt(1, c.b.getI1Type()));
}

LogicalResult lowerVariableShape(NodeContext &c) {
  Value v = readInput(c, 0);
  if (!v)
    return failure();
  return c.setResult(0, GraphValue::ofSizes(c.dims(v), {Emitter::rank(v)}, c.resultType(0)));
}

LogicalResult lowerCountUpTo(NodeContext &c) {
  Value v = readInput(c, 0);
  if (!v)
    return failure();
  Value limit = c.likeInt(v, c.attrInt("limit"));
  c.check(c.compare(Compare::LT, v, limit), "Reached limit of " + std::to_string(c.attrInt("limit")));
  if (failed(writeInput(c, 0, c.add(v, c.like(v, 1)), true)))
    return failure();
  return c.setResult(0, v);
}

LogicalResult nothing(NodeContext &) { return success(); }

} // namespace

void registerState(HandlerTable &t) {
  for (StringRef op : {"VarHandleOp"})
    t.addAnyKind(op, 0, [](NodeContext &c) { return lowerVariable(c, GraphValue::Kind::Variable); });
  for (StringRef op : {"VariableV2", "Variable", "TemporaryVariable"})
    t.addAnyKind(op, 0, [](NodeContext &c) { return lowerVariable(c, GraphValue::Kind::Reference); });
  t.addAnyKind("ReadVariableOp", 1, lowerRead);
  t.addAnyKind("DestroyTemporaryVariable", 1, lowerRead);
  t.addAnyKind("Assign", 2, lowerAssign);
  t.addAnyKind("AssignVariableOp", 2, lowerAssign);
  for (StringRef op : {"AssignAdd", "AssignAddVariableOp"})
    t.addAnyKind(op, 2, lowerUpdate<hlo::AddOp>);
  for (StringRef op : {"AssignSub", "AssignSubVariableOp"})
    t.addAnyKind(op, 2, lowerUpdate<hlo::SubtractOp>);
  t.addAnyKind("VarIsInitializedOp", 1, lowerIsInitialized);
  t.addAnyKind("IsVariableInitialized", 1, lowerIsInitialized);
  t.addAnyKind("VariableShape", 1, lowerVariableShape);
  t.addAnyKind("CountUpTo", 1, lowerCountUpTo);
  t.addAnyKind("ResourceCountUpTo", 1, lowerCountUpTo);
  t.addAnyKind("DestroyResourceOp", 1, nothing);
}

} // namespace lathe::legalize
