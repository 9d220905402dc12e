// Functional control flow: If, Case and calls; GraphToHloWhile.cpp has loops. Bodies become regions that use outer values
// directly; what is not a tensor (lists, variables) is carried as the tensors behind it.
#include "passes/legalize/SizeReader.h"
#include "passes/legalize/control/Control.h"

#include <deque>

using namespace mlir;

namespace lathe::legalize {

using Kind = GraphValue::Kind;
using State = ControlState;

bool sameValue(LegalizeContext &ctx, const GraphValue &a, const GraphValue &b) {
  if (a.kind != b.kind || a.name != b.name || a.array != b.array || a.tensor != b.tensor)
    return false;
  if (a.kind == Kind::List)
    return a.list.buffer == b.list.buffer && a.list.count == b.list.count &&
           ctx.resolve(a.list.length) == ctx.resolve(b.list.length);
  if (a.tensor)
    return true;
  if (bool(a.sizes) != bool(b.sizes))
    return false;
  return !a.sizes || (ctx.resolve(*a.sizes) == ctx.resolve(*b.sizes) && a.sizesShape == b.sizesShape);
}

Value conditionOf(Emitter &c, Value v) {
  if (!v)
    return v;
  if (Emitter::rank(v) != 0) {
    auto n = constantOf(productOf(c.dims(v), c.b.getContext()));
    if (!n) {
      (void)c.error("the condition must be a scalar");
      return {};
    }
    return c.scalarInt(*n > 0, c.b.getI1Type());
  }
  if (!Emitter::isBool(v))
    v = c.compare(Compare::NE, v, c.like(v, 0));
  return v;
}

Operation *createWithRegions(Emitter &c, StringRef op, ValueRange operands, TypeRange types, unsigned regions) {
  OperationState state(c.loc, op);
  state.addOperands(operands);
  state.addTypes(types);
  for (unsigned i = 0; i < regions; ++i)
    state.addRegion();
  return c.b.create(state);
}

namespace {

struct Branch {
  Block *block;
  GraphValues results;
  State state;
};

/// Makes one value of what the branches give: a value that all share, or operands of every branch's hlo.return.
class Merger {
public:
  Merger(NodeContext &c, MutableArrayRef<Branch> branches) : returned(branches.size()), c(c), branches(branches) {}

  /// `get` takes a branch's value. The result is complete once finish() has the op's results.
  LogicalResult merge(StringRef what, llvm::function_ref<GraphValue(Branch &)> get, GraphValue &result);
  void finish(Operation *op, MutableArrayRef<GraphValue *> results);

  SmallVector<SmallVector<Value>> returned;

private:
  LogicalResult add(StringRef what, MutableArrayRef<Value> values, int64_t &slot);
  /// One size for what each branch gives: a symbol that every branch sets where they are not the same.
  AffineExpr joinSizes(const Dims &sizes);

  NodeContext &c;
  MutableArrayRef<Branch> branches;
  SmallVector<std::pair<Dims, AffineExpr>> joined;
};

AffineExpr Merger::joinSizes(const Dims &sizes) {
  auto same = [&](AffineExpr e) { return constantOf(hlo::simplify(e - sizes[0])) == int64_t(0); };
  if (llvm::all_of(sizes, same))
    return sizes[0];
  for (auto &[known, symbol] : joined)
    if (known == sizes)
      return symbol;
  AffineExpr bound = sizes[0];
  for (AffineExpr size : sizes)
    bound = sizeAtLeast(c.ctx, bound, size);
  AffineExpr symbol = c.ctx.newDataSymbol((c.name() + ".size").str(), bound);
  for (auto [branch, size] : llvm::zip(branches, sizes)) {
    OpBuilder::InsertionGuard guard(c.b);
    c.b.setInsertionPointToEnd(branch.block);
    hlo::SetSizeOp::create(c.b, c.loc, c.sizeValue(size, c.b.getI64Type()),
                           int64_t(cast<AffineSymbolExpr>(symbol).getPosition()), c.name());
  }
  joined.push_back({sizes, symbol});
  return symbol;
}

LogicalResult Merger::add(StringRef what, MutableArrayRef<Value> values, int64_t &slot) {
  for (Value v : values) {
    if (!v)
      return failure();
    if (Emitter::elementType(v) != Emitter::elementType(values[0]) || Emitter::rank(v) != Emitter::rank(values[0]))
      return c.error(what + ": the branches give different types");
  }
  Dims dims;
  for (int64_t d = 0; d < Emitter::rank(values[0]); ++d) {
    Dims sizes;
    for (Value v : values)
      sizes.push_back(c.ctx.resolve(c.dim(v, d)));
    if (!llvm::all_of(sizes, [](AffineExpr e) { return bool(e); }))
      return c.error(what + ": the branches give sizes that are not known");
    dims.push_back(joinSizes(sizes));
  }
  RankedTensorType type = hlo::makeType(dims, Emitter::elementType(values[0]));
  for (auto [branch, v] : llvm::zip(branches, values)) {
    if (v.getType() == type)
      continue;
    OpBuilder::InsertionGuard guard(c.b);
    c.b.setInsertionPointToEnd(branch.block);
    v = hlo::AssumeShapeOp::create(c.b, c.loc, type, v, "the sizes of a branch's result differ", c.name());
  }
  slot = returned[0].size();
  for (auto [list, v] : llvm::zip(returned, values))
    list.push_back(v);
  return success();
}

LogicalResult Merger::merge(StringRef what, llvm::function_ref<GraphValue(Branch &)> get, GraphValue &result) {
  GraphValues values;
  for (Branch &branch : branches)
    values.push_back(get(branch));
  result = values[0];
  bool same = llvm::all_of(values, [&](const GraphValue &v) { return sameValue(c.ctx, v, values[0]); });
  Operation *parent = branches[0].block->getParentOp();
  auto outside = [&](Value v) { return !v || !parent->isAncestor(v.getParentBlock()->getParentOp()); };
  if (same && outside(values[0].tensor) && outside(values[0].list.buffer) && outside(values[0].list.count))
    return success();
  int64_t slot;
  auto inBranch = [&](size_t i, auto make) {
    OpBuilder::InsertionGuard guard(c.b);
    c.b.setInsertionPointToEnd(branches[i].block);
    return make();
  };
  if (llvm::all_of(values, [](const GraphValue &v) { return v.kind == Kind::Tensor || v.kind == Kind::Reference; })) {
    SmallVector<Value> tensors;
    for (auto [i, v] : llvm::enumerate(values))
      tensors.push_back(inBranch(i, [&, i = i, &v = v] {
        // a reference gives what the branch left in the variable
        std::swap(c.ctx.state, branches[i].state);
        Value tensor = c.ctx.materialize(v, c.loc);
        std::swap(c.ctx.state, branches[i].state);
        return tensor;
      }));
    if (failed(add(what, tensors, slot)))
      return failure();
    result = GraphValue::ofTensor(Value());
    result.slot = slot;
    return success();
  }
  if (llvm::all_of(values, [](const GraphValue &v) { return v.kind == Kind::List; })) {
    bool counted = false;
    const ListValue *typed = nullptr;
    for (const GraphValue &v : values) {
      counted |= bool(v.list.count);
      if (v.list.buffer)
        typed = &v.list;
      AffineExpr length = c.ctx.resolve(v.list.length), first = c.ctx.resolve(values[0].list.length);
      counted |= constantOf(hlo::simplify(length - first)) != int64_t(0);
    }
    if (!typed)
      return counted ? c.error(what + ": the branches give lists of different lengths") : success();
    AffineExpr capacity;
    for (const GraphValue &v : values) {
      AffineExpr length = c.ctx.resolve(v.list.length);
      capacity = capacity ? sizeAtLeast(c.ctx, capacity, length) : length;
    }
    Dims element = c.dims(typed->buffer);
    element.erase(element.begin());
    SmallVector<Value> buffers, counts;
    for (auto [i, v] : llvm::enumerate(values)) {
      bool ok = inBranch(i, [&, &v = v] {
        if (failed(typeList(c, v.list, element)) || (counted && failed(makeCounted(c, v.list, capacity))))
          return false;
        buffers.push_back(v.list.buffer);
        counts.push_back(v.list.count);
        return true;
      });
      if (!ok)
        return failure();
    }
    if (failed(add(what, buffers, slot)))
      return failure();
    result = values[0];
    result.slot = slot;
    result.list.elementDims = Dims(ArrayRef<AffineExpr>(c.dims(buffers[0])).drop_front());
    int64_t countSlot;
    if (counted && failed(add(what, counts, countSlot)))
      return failure();
    return success();
  }
  if (same)
    return success();
  return c.error(what + ": the branches give values of different kinds");
}

void Merger::finish(Operation *op, MutableArrayRef<GraphValue *> results) {
  for (GraphValue *v : results) {
    if (v->slot < 0)
      continue;
    if (v->kind == Kind::Tensor) {
      v->tensor = op->getResult(v->slot);
    } else {
      v->list.buffer = op->getResult(v->slot);
      if (v->list.count)
        v->list.count = op->getResult(v->slot + 1);
    }
    v->slot = -1;
  }
}

LogicalResult lowerBranches(NodeContext &c, StringRef opName, Value selector, ArrayRef<graph::FuncOp> functions) {
  GraphValues args;
  for (unsigned i = 1; i < c.numInputs(); ++i)
    args.push_back(c.value(i));
  // A first op without results holds the regions while what they give is found out.
  Operation *holder = createWithRegions(c, opName, selector, {}, functions.size());
  State before = c.ctx.state;
  std::vector<Branch> branches(functions.size());
  bool ok = true;
  for (auto [i, function] : llvm::enumerate(functions)) {
    OpBuilder::InsertionGuard guard(c.b);
    Branch &branch = branches[i];
    branch.block = c.b.createBlock(&holder->getRegion(i));
    c.ctx.state = before;
    ok &= succeeded(c.ctx.lowerBody(function, args, branch.results));
    branch.state = c.ctx.state;
  }
  c.ctx.state = before;
  if (!ok)
    return failure();
  for (Branch &branch : branches)
    if (branch.results.size() != c.numResults())
      return c.error("expected " + Twine(c.numResults()) + " results, found " + Twine(branch.results.size()));

  Merger merger(c, branches);
  GraphValues results(c.numResults());
  for (unsigned i = 0; i < c.numResults(); ++i)
    if (failed(merger.merge(("result " + Twine(i)).str(), [&](Branch &b) { return b.results[i]; }, results[i])))
      return failure();
  // State that a branch changed.
  SmallVector<StringRef> keys;
  for (Branch &branch : branches)
    for (auto &entry : branch.state)
      if (!llvm::is_contained(keys, entry.first))
        keys.push_back(entry.first);
  std::deque<GraphValue> states;
  SmallVector<std::pair<StringRef, GraphValue *>> changed;
  for (StringRef key : keys) {
    if (!before.count(key)) {
      // First used in a branch: variables start with their argument, anything else is local to the branch.
      bool variable = llvm::any_of(c.ctx.variables, [&](const VariableInfo &v) { return v.name == key && v.type; });
      if (!variable)
        continue;
      auto initial = c.ctx.readVariable(key, c.loc);
      if (failed(initial))
        return failure();
      before[key] = *initial;
    }
    GraphValue old = before[key];
    states.emplace_back();
    auto get = [&](Branch &b) {
      auto it = b.state.find(key);
      return it == b.state.end() ? old : it->second;
    };
    if (failed(merger.merge(("variable " + key).str(), get, states.back())))
      return failure();
    changed.push_back({key, &states.back()});
  }

  for (auto [branch, values] : llvm::zip(branches, merger.returned)) {
    OpBuilder::InsertionGuard guard(c.b);
    c.b.setInsertionPointToEnd(branch.block);
    hlo::ReturnOp::create(c.b, c.loc, values);
  }
  SmallVector<Type> types;
  for (Value v : merger.returned[0])
    types.push_back(v.getType());
  Operation *op = createWithRegions(c, opName, selector, types, functions.size());
  for (unsigned i = 0; i < functions.size(); ++i)
    op->getRegion(i).takeBody(holder->getRegion(i));
  holder->erase();
  SmallVector<GraphValue *> all;
  for (GraphValue &v : results)
    all.push_back(&v);
  for (GraphValue &v : states)
    all.push_back(&v);
  merger.finish(op, all);
  for (auto &[key, value] : changed)
    c.ctx.state[key] = *value;
  for (unsigned i = 0; i < c.numResults(); ++i)
    if (failed(c.setResult(i, results[i])))
      return failure();
  return success();
}

/// A branch that is known needs no op.
LogicalResult lowerInline(NodeContext &c, graph::FuncOp function, unsigned firstArg) {
  GraphValues args, results;
  for (unsigned i = firstArg; i < c.numInputs(); ++i)
    args.push_back(c.value(i));
  if (failed(c.ctx.lowerBody(function, args, results)))
    return failure();
  if (results.size() != c.numResults())
    return c.error("expected " + Twine(c.numResults()) + " results, found " + Twine(results.size()));
  for (unsigned i = 0; i < c.numResults(); ++i)
    if (failed(c.setResult(i, results[i])))
      return failure();
  return success();
}

LogicalResult lowerIf(NodeContext &c) {
  graph::FuncOp onTrue = c.ctx.lookupFunction(c.attr("then_branch"));
  graph::FuncOp onFalse = c.ctx.lookupFunction(c.attr("else_branch"));
  if (!onTrue || !onFalse)
    return c.error("a branch function is missing");
  Value condition = conditionOf(c, c.input(0));
  if (!condition)
    return failure();
  if (auto known = c.ctx.fold(condition))
    return lowerInline(c, *known->data<uint8_t>() ? onTrue : onFalse, 1);
  condition = c.reshape(condition, ArrayRef<int64_t>());
  return lowerBranches(c, hlo::IfOp::getOperationName(), condition, {onTrue, onFalse});
}

LogicalResult lowerCase(NodeContext &c) {
  auto list = dyn_cast_or_null<ArrayAttr>(c.attr("branches"));
  SmallVector<graph::FuncOp> functions;
  if (list)
    for (Attribute a : list) {
      functions.push_back(c.ctx.lookupFunction(a));
      if (!functions.back())
        return c.error("a branch function is missing");
    }
  if (functions.empty())
    return c.error("there are no branches");
  Value index = c.input(0);
  if (!index)
    return failure();
  if (Emitter::rank(index) != 0 || !Emitter::isInteger(index))
    return c.error("the branch index must be an integer scalar");
  if (auto known = c.constantIfKnown(0)) {
    int64_t i = *known < 0 || *known >= int64_t(functions.size()) ? functions.size() - 1 : *known;
    return lowerInline(c, functions[i], 1);
  }
  return lowerBranches(c, hlo::CaseOp::getOperationName(), c.convert(index, c.b.getI32Type()), functions);
}

LogicalResult lowerCall(NodeContext &c) {
  graph::FuncOp function = c.ctx.lookupFunction(c.attr("f"));
  if (!function)
    return c.error("the called function is missing");
  return lowerInline(c, function, 0);
}

} // namespace

void registerControl(HandlerTable &t) {
  for (StringRef op : {"If", "StatelessIf"})
    t.addAnyKind(op, HandlerTable::atLeast(1), lowerIf);
  for (StringRef op : {"Case", "StatelessCase"})
    t.addAnyKind(op, HandlerTable::atLeast(1), lowerCase);
  for (StringRef op : {"While", "StatelessWhile"})
    t.addAnyKind(op, HandlerTable::atLeast(0), lowerWhile);
  for (StringRef op : {"PartitionedCall", "StatefulPartitionedCall"})
    t.addAnyKind(op, HandlerTable::atLeast(0), lowerCall);
}

} // namespace lathe::legalize
