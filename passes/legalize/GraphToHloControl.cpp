// Functional control flow: If, Case, While and calls. Bodies become regions that use outer values directly; what is not a
// tensor (lists, variables) is carried as the tensors behind it.
#include "passes/legalize/Lists.h"
#include "llvm/ADT/ScopeExit.h"

#include <deque>

using namespace mlir;

namespace lathe::legalize {
namespace {

using Kind = GraphValue::Kind;
using State = llvm::MapVector<StringRef, GraphValue>;

/// Loops are translated again when a translation shows what has to be carried; more often is a mistake.
constexpr int kMaxAttempts = 8;

/// Room for lists in loops whose number of iterations nothing bounds: more items are a run-time error.
constexpr int64_t kUnboundedItems = 4096;
constexpr int64_t kUnboundedBytes = int64_t(64) << 20;

int64_t itemsFor(const ListValue &list) {
  auto type = list.buffer ? dyn_cast<RankedTensorType>(list.buffer.getType()) : RankedTensorType();
  if (!type || !type.hasStaticShape())
    return kUnboundedItems;
  int64_t bytes = 16;
  for (int64_t d : type.getShape().drop_front())
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(d, 1), &bytes))
      return 1;
  return std::clamp<int64_t>(kUnboundedBytes / bytes, 1, kUnboundedItems);
}

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

/// A condition as TensorFlow takes it: numbers are true if not zero, tensors of other shapes if they have elements.
Value conditionOf(NodeContext &c, Value v) {
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

//===----------------------------------------------------------------------===//
// If and Case
//===----------------------------------------------------------------------===//

struct Branch {
  Block *block;
  GraphValues results;
  State state;
};

Operation *createWithRegions(NodeContext &c, StringRef op, ValueRange operands, TypeRange types, unsigned regions) {
  OperationState state(c.loc, op);
  state.addOperands(operands);
  state.addTypes(types);
  for (unsigned i = 0; i < regions; ++i)
    state.addRegion();
  return c.b.create(state);
}

/// Makes one value of what the branches give: a value that all share, or operands of every branch's hlo.return.
class Merger {
public:
  Merger(NodeContext &c, MutableArrayRef<Branch> branches) : returned(branches.size()), c(c), branches(branches) {}

  /// `get` takes a branch's value. The result is complete once finish() has the op's results.
  LogicalResult merge(StringRef what, llvm::function_ref<GraphValue(Branch &)> get, GraphValue &result);
  void finish(Operation *op, MutableArrayRef<GraphValue *> results);

  SmallVector<SmallVector<Value>> returned;

private:
  LogicalResult add(StringRef what, ArrayRef<Value> values, int64_t &slot);

  NodeContext &c;
  MutableArrayRef<Branch> branches;
};

LogicalResult Merger::add(StringRef what, ArrayRef<Value> values, int64_t &slot) {
  for (Value v : values) {
    if (!v)
      return failure();
    if (Emitter::elementType(v) != Emitter::elementType(values[0]) || Emitter::rank(v) != Emitter::rank(values[0]))
      return c.error(what + ": the branches give different types");
  }
  for (int64_t d = 0; d < Emitter::rank(values[0]); ++d)
    for (Value v : values)
      if (!c.ctx.unify(c.dim(values[0], d), c.dim(v, d), c.name()))
        return c.error(what + ": the branches give different shapes");
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
      counted |= !c.ctx.unify(v.list.length, values[0].list.length, c.name());
    }
    if (!typed)
      return counted ? c.error(what + ": the branches give lists of different lengths") : success();
    AffineExpr capacity;
    for (const GraphValue &v : values) {
      auto n = constantOf(c.ctx.resolve(v.list.length)), sofar = capacity ? constantOf(capacity) : std::nullopt;
      if (!capacity || (n && sofar && *n > *sofar))
        capacity = c.ctx.resolve(v.list.length);
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

//===----------------------------------------------------------------------===//
// While
//===----------------------------------------------------------------------===//

/// Results of the body that are its arguments, through identities.
SmallVector<bool> findInvariants(graph::FuncOp body) {
  Block &block = body.getBody().front();
  auto outputs = cast<graph::ReturnOp>(block.getTerminator()).getOutputs();
  SmallVector<bool> result(outputs.size(), false);
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value v = output;
    for (int steps = 0; steps < 64; ++steps) {
      auto node = v.getDefiningOp<graph::NodeOp>();
      if (!node || (node.getOp() != "Identity" && node.getOp() != "StopGradient") || node.getInputs().size() != 1)
        break;
      v = node.getInputs()[0];
    }
    auto arg = dyn_cast<BlockArgument>(v);
    result[i] = arg && arg.getOwner() == &block && arg.getArgNumber() == i;
  }
  return result;
}

/// One loop under translation.
class Loop {
public:
  Loop(NodeContext &c, graph::FuncOp cond, graph::FuncOp body) : c(c), cond(cond), body(body) {}
  LogicalResult run();

private:
  enum class Outcome { Done, Again, Failed };
  Outcome attempt();
  /// The tensors behind a carried value; the value for the body's block made from the block's arguments by `read`.
  void flatten(const GraphValue &v, SmallVectorImpl<Value> &values);
  GraphValue unflatten(const GraphValue &v, ValueRange values, unsigned &next);
  bool prepare(GraphValue &v);
  Outcome reconcile(StringRef what, GraphValue &init, const GraphValue &arg, GraphValue after,
                    SmallVectorImpl<Value> &returned);

  /// How often the body runs at most, if the condition compares a counter with a constant.
  struct Trips {
    int64_t bound;
    bool exact;
  };
  std::optional<Trips> tripCount();
  std::optional<Trips> tripCount(Value condition, bool whole);
  std::optional<int64_t> foldInt(Value v);

  NodeContext &c;
  graph::FuncOp cond, body;
  /// Of the attempt under way.
  Operation *loop = nullptr;
  Value condition;
  GraphValues outputs;
  SmallVector<bool> invariant;
  /// What enters the loop: one value an input, then one a state key.
  GraphValues init;
  SmallVector<StringRef> keys;
  GraphValues results;
};

std::optional<int64_t> Loop::foldInt(Value v) {
  auto t = c.ctx.fold(v);
  if (!t || t->numElements() != 1)
    return std::nullopt;
  if (t->dtype() == DType::Int32)
    return *t->data<int32_t>();
  return t->dtype() == DType::Int64 ? std::optional<int64_t>(*t->data<int64_t>()) : std::nullopt;
}

std::optional<Loop::Trips> Loop::tripCount(Value v, bool whole) {
  if (auto both = v.getDefiningOp<hlo::AndOp>()) {
    auto a = tripCount(both.getLhs(), false), b = tripCount(both.getRhs(), false);
    if (a && b)
      return Trips{std::min(a->bound, b->bound), false};
    return a ? a : b;
  }
  auto compare = v.getDefiningOp<hlo::CompareOp>();
  if (!compare)
    return std::nullopt;
  Value counter = compare.getLhs(), limitValue = compare.getRhs();
  auto direction = compare.getComparisonDirection();
  bool swapped = direction == Compare::GT || direction == Compare::GE;
  if (swapped)
    std::swap(counter, limitValue);
  if (direction == Compare::EQ || direction == Compare::NE)
    return std::nullopt;
  auto arg = dyn_cast<BlockArgument>(counter);
  if (!arg || arg.getOwner()->getParentOp() != loop)
    return std::nullopt;
  unsigned k = arg.getArgNumber();
  auto limit = foldInt(limitValue), start = foldInt(loop->getOperand(k));
  // Which graph value the argument is.
  unsigned next = 0;
  std::optional<int64_t> step;
  for (auto [i, entry] : llvm::enumerate(init)) {
    if (i < invariant.size() && invariant[i])
      continue;
    SmallVector<Value> values;
    flatten(entry, values);
    if (next == k && entry.kind == Kind::Tensor && i < outputs.size() && outputs[i].tensor) {
      auto add = outputs[i].tensor.getDefiningOp<hlo::AddOp>();
      Value own = loop->getRegion(1).front().getArgument(k);
      if (add && (add.getLhs() == own || add.getRhs() == own))
        step = foldInt(add.getLhs() == own ? add.getRhs() : add.getLhs());
      break;
    }
    next += values.size();
  }
  if (!limit || !start || !step || *step <= 0)
    return std::nullopt;
  int64_t distance;
  if (__builtin_sub_overflow(*limit, *start, &distance) || distance > (int64_t(1) << 40))
    return std::nullopt;
  bool inclusive = direction == Compare::LE || direction == Compare::GE;
  int64_t trips = distance < 0 ? 0 : inclusive ? distance / *step + 1 : (distance + *step - 1) / *step;
  return Trips{trips, whole};
}

std::optional<Loop::Trips> Loop::tripCount() { return condition ? tripCount(condition, true) : std::nullopt; }

bool Loop::prepare(GraphValue &v) {
  if (v.kind == Kind::Reference || (v.kind == Kind::Tensor && !v.tensor)) {
    Value tensor = c.ctx.materialize(v, c.loc);
    if (!tensor)
      return false;
    v = GraphValue::ofTensor(tensor);
  }
  return true;
}

void Loop::flatten(const GraphValue &v, SmallVectorImpl<Value> &values) {
  if (v.kind == Kind::Tensor)
    values.push_back(v.tensor);
  if (v.kind == Kind::List && v.list.buffer) {
    values.push_back(v.list.buffer);
    if (v.list.count)
      values.push_back(v.list.count);
  }
}

GraphValue Loop::unflatten(const GraphValue &v, ValueRange values, unsigned &next) {
  GraphValue result = v;
  if (v.kind == Kind::Tensor)
    result.tensor = values[next++];
  if (v.kind == Kind::List && v.list.buffer) {
    result.list.buffer = values[next++];
    if (v.list.count)
      result.list.count = values[next++];
  }
  return result;
}

Loop::Outcome Loop::reconcile(StringRef what, GraphValue &entry, const GraphValue &arg, GraphValue after,
                              SmallVectorImpl<Value> &returned) {
  auto sameShape = [&](Value now, Value was) {
    if (Emitter::elementType(now) != Emitter::elementType(was) || Emitter::rank(now) != Emitter::rank(was))
      return false;
    for (int64_t d = 0; d < Emitter::rank(now); ++d)
      if (!c.ctx.unify(c.dim(now, d), c.dim(was, d), c.name()))
        return false;
    return true;
  };
  auto shapeError = [&](Value was, Value now) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << what << " changes in the loop from " << was.getType() << " to " << now.getType();
    (void)c.error(text);
    return Outcome::Failed;
  };
  if (arg.kind == Kind::Tensor) {
    Value now = c.ctx.materialize(after, c.loc);
    if (!now) {
      (void)c.error(what + " becomes something that is no tensor");
      return Outcome::Failed;
    }
    if (!sameShape(now, arg.tensor))
      return shapeError(arg.tensor, now);
    returned.push_back(now);
    return Outcome::Done;
  }
  if (arg.kind == Kind::List) {
    if (after.kind != Kind::List) {
      (void)c.error(what + " becomes something that is no list");
      return Outcome::Failed;
    }
    if (!arg.list.buffer) {
      if (!after.list.buffer && c.ctx.resolve(after.list.length) == c.ctx.resolve(arg.list.length))
        return Outcome::Done;
      if (after.list.buffer) {
        // The body shows the shape of the elements: once more with a buffer from the start.
        Dims element = c.dims(after.list.buffer);
        element.erase(element.begin());
        entry.list.elementDims = element;
        return Outcome::Again;
      }
    }
    if (!after.list.buffer && failed(typeList(c, after.list, std::nullopt)))
      return Outcome::Failed;
    if (!arg.list.count &&
        (after.list.count || c.ctx.resolve(after.list.length) != c.ctx.resolve(arg.list.length))) {
      auto was = constantOf(c.ctx.resolve(arg.list.length)), now = constantOf(c.ctx.resolve(after.list.length));
      auto trips = tripCount();
      if (entry.list.maxItems > 0)
        entry.list.capacity = c.size(entry.list.maxItems);
      else if (was && now && *now < *was)
        entry.list.capacity = c.size(*was);
      else if (was && now && trips && trips->bound * (*now - *was) < (int64_t(1) << 24))
        entry.list.capacity = c.size(*was + trips->bound * (*now - *was));
      else if (was && now && *was <= kUnboundedItems)
        entry.list.capacity = c.size(*was + itemsFor(after.list));
      else {
        (void)c.error(what + ": a list that grows in a loop needs max_num_elements (maximum_iterations of the loop)");
        return Outcome::Failed;
      }
      entry.list.grows = true;
      return Outcome::Again;
    }
    if (arg.list.count && failed(makeCounted(c, after.list, arg.list.length)))
      return Outcome::Failed;
    if (!sameShape(after.list.buffer, arg.list.buffer))
      return shapeError(arg.list.buffer, after.list.buffer);
    returned.push_back(after.list.buffer);
    if (arg.list.count) {
      returned.push_back(after.list.count);
      // One more or less in every iteration of a known number: the length is known afterwards.
      auto trips = tripCount();
      auto start = c.ctx.fold(entry.list.count);
      auto stepOp = after.list.count.getDefiningOp();
      if (trips && trips->exact && start && isa_and_nonnull<hlo::AddOp, hlo::SubtractOp>(stepOp) &&
          stepOp->getOperand(0) == arg.list.count)
        if (auto step = c.ctx.fold(stepOp->getOperand(1)))
          entry.list.finalLength = *start->data<int32_t>() +
                                   trips->bound * (isa<hlo::AddOp>(stepOp) ? 1 : -1) * *step->data<int32_t>();
    }
    return Outcome::Done;
  }
  if (!sameValue(c.ctx, arg, after)) {
    (void)c.error(what + " is another variable or array after an iteration");
    return Outcome::Failed;
  }
  return Outcome::Done;
}

Loop::Outcome Loop::attempt() {
  unsigned n = c.numInputs();
  State before = c.ctx.state;
  auto restore = llvm::scope_exit([&] { c.ctx.state = before; });
  for (auto [i, v] : llvm::enumerate(init)) {
    if (i < n && invariant[i])
      continue;
    if (!prepare(v))
      return Outcome::Failed;
    if (v.kind == Kind::List) {
      if (knowsElement(v.list) && failed(typeList(c, v.list, std::nullopt)))
        return Outcome::Failed;
      if (v.list.grows && !v.list.count && failed(makeCounted(c, v.list, v.list.capacity)))
        return Outcome::Failed;
    }
  }
  SmallVector<Value> operands;
  for (auto [i, v] : llvm::enumerate(init))
    if (i >= n || !invariant[i])
      flatten(v, operands);
  SmallVector<Type> types(ValueRange(operands).getTypes());
  SmallVector<Location> locs(types.size(), c.loc);
  Operation *op = createWithRegions(c, hlo::WhileOp::getOperationName(), operands, types, 2);
  loop = op;
  condition = Value();
  outputs.clear();
  auto discard = [&](Outcome outcome) {
    op->erase();
    c.ctx.clearFolded();
    return outcome;
  };
  auto enter = [&](unsigned region, SmallVectorImpl<GraphValue> &values) {
    Block *block = c.b.createBlock(&op->getRegion(region), {}, types, locs);
    unsigned next = 0;
    for (auto [i, v] : llvm::enumerate(init))
      values.push_back(i < n && invariant[i] ? v : unflatten(v, block->getArguments(), next));
    c.ctx.state = before;
    for (auto [k, key] : llvm::enumerate(keys))
      c.ctx.state[key] = values[n + k];
  };

  {
    OpBuilder::InsertionGuard guard(c.b);
    GraphValues values, decision;
    enter(0, values);
    if (failed(c.ctx.lowerBody(cond, ArrayRef(values).take_front(n), decision)))
      return discard(Outcome::Failed);
    if (decision.size() != 1) {
      (void)c.error("the condition must have one result");
      return discard(Outcome::Failed);
    }
    condition = c.ctx.materialize(decision[0], c.loc);
    if (!condition) {
      (void)c.error("the condition is no tensor");
      return discard(Outcome::Failed);
    }
    condition = conditionOf(c, condition);
    if (!condition)
      return discard(Outcome::Failed);
    hlo::ReturnOp::create(c.b, c.loc, c.reshape(condition, ArrayRef<int64_t>()));
  }
  {
    OpBuilder::InsertionGuard guard(c.b);
    GraphValues values;
    enter(1, values);
    if (failed(c.ctx.lowerBody(body, ArrayRef(values).take_front(n), outputs)))
      return discard(Outcome::Failed);
    if (outputs.size() != n) {
      (void)c.error("the body must have as many results as arguments");
      return discard(Outcome::Failed);
    }
    // Variables that the body writes are carried, which needs another attempt.
    bool again = false;
    for (auto &[key, value] : c.ctx.state) {
      if (llvm::is_contained(keys, key))
        continue;
      auto it = before.find(key);
      if (it != before.end() && sameValue(c.ctx, it->second, value))
        continue;
      if (it == before.end()) {
        // The gradient of an array from outside belongs outside, too.
        int64_t array = -1;
        if (StringRef(key).starts_with("array ") && !StringRef(key).drop_front(6).getAsInteger(10, array) &&
            c.ctx.arrays[array].source >= 0 && before.count(c.ctx.arrayKey(c.ctx.arrays[array].source))) {
          keys.push_back(key);
          GraphValue start = GraphValue::ofList(c.ctx.newArrayContents(array));
          start.list.length = c.ctx.resolve(value.list.length);
          init.push_back(start);
          before[key] = start;
          again = true;
          break;
        }
        auto variable = llvm::find_if(c.ctx.variables, [name = key](const VariableInfo &v) { return v.name == name; });
        if (variable == c.ctx.variables.end())
          continue;
        if (value.tensor && value.tensor == variable->argument) {
          before[key] = value;
          continue;
        }
        State now = c.ctx.state;
        c.ctx.state = before;
        auto start = c.ctx.readVariable(key, c.loc);
        before = c.ctx.state;
        c.ctx.state = now;
        if (failed(start))
          return discard(Outcome::Failed);
        keys.push_back(key);
        init.push_back(*start);
        again = true;
        break;
      }
      keys.push_back(key);
      init.push_back(it->second);
      again = true;
    }
    if (again)
      return discard(Outcome::Again);
    SmallVector<Value> returned;
    for (size_t i = 0; i < init.size(); ++i) {
      if (i < n && invariant[i])
        continue;
      std::string what = i < n ? ("loop variable " + Twine(i)).str() : ("variable " + keys[i - n]).str();
      Outcome outcome = reconcile(what, init[i], values[i], i < n ? outputs[i] : c.ctx.state[keys[i - n]], returned);
      if (outcome == Outcome::Failed)
        return discard(outcome);
      again |= outcome == Outcome::Again;
    }
    if (again)
      return discard(Outcome::Again);
    hlo::ReturnOp::create(c.b, c.loc, returned);
  }
  // Unified sizes have changed types on the way.
  for (auto [result, operand] : llvm::zip(op->getResults(), op->getOperands()))
    result.setType(operand.getType());
  unsigned next = 0;
  for (auto [i, v] : llvm::enumerate(init)) {
    GraphValue out = i < n && invariant[i] ? v : unflatten(v, op->getResults(), next);
    if (out.kind == Kind::List && out.list.count && out.list.finalLength >= 0) {
      out.list.buffer = c.sliceDim(out.list.buffer, 0, c.size(0), c.size(out.list.finalLength));
      out.list.length = c.size(out.list.finalLength);
      out.list.count = Value();
    }
    out.list.grows = false;
    if (i < n)
      results.push_back(out);
    else
      before[keys[i - n]] = out;
  }
  return Outcome::Done;
}

LogicalResult Loop::run() {
  unsigned n = c.numInputs();
  if (c.numResults() != n || cond.getArgumentTypes().size() != n || body.getArgumentTypes().size() != n ||
      body.getResultTypes().size() != n)
    return c.error("the condition and the body do not fit the loop's " + Twine(n) + " variables");
  invariant = findInvariants(body);
  for (unsigned i = 0; i < n; ++i)
    init.push_back(c.value(i));
  for (int tries = 0; tries < kMaxAttempts; ++tries) {
    Outcome outcome = attempt();
    if (outcome == Outcome::Again)
      continue;
    if (outcome == Outcome::Failed)
      return failure();
    for (unsigned i = 0; i < n; ++i)
      if (failed(c.setResult(i, results[i])))
        return failure();
    return success();
  }
  return c.error("what the loop carries is not the same in all iterations");
}

LogicalResult lowerWhile(NodeContext &c) {
  graph::FuncOp cond = c.ctx.lookupFunction(c.attr("cond")), body = c.ctx.lookupFunction(c.attr("body"));
  if (!cond || !body)
    return c.error("the condition or body function is missing");
  return Loop(c, cond, body).run();
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
