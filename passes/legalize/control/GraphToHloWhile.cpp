// Loops: a condition and a body (functions of a graph, subgraphs of other formats) become the regions of hlo.while; what is
// not a tensor (lists, variables) is carried as the tensors behind it.
#include "ops/Flags.h"
#include "passes/legalize/control/Control.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

using Kind = GraphValue::Kind;
using State = ControlState;

/// Loops are translated again when a translation shows what has to be carried; more often is a mistake.
constexpr int kMaxAttempts = 8;

/// Results of the body that are its arguments, through identities.
SmallVector<bool> findInvariants(graph::FuncOp body) {
  Block &block = body.getBody().front();
  auto outputs = cast<graph::ReturnOp>(block.getTerminator()).getOutputs();
  SmallVector<bool> result(outputs.size(), false);
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value v = output;
    for (int steps = 0; steps < 64; ++steps) {
      auto node = v.getDefiningOp<graph::NodeOp>();
      if (!node || !ops::is(node.getOp(), ops::Flag::Passes) || node.getInputs().size() != 1)
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
  Loop(Emitter &c, LegalizeContext &ctx, ArrayRef<GraphValue> values, const LoopParts &parts)
      : c(c), ctx(ctx), parts(parts), n(values.size()), given(values), init(values.begin(), values.end()) {
    for (const GraphValue &v : init)
      kept.push_back(keptBy(v));
  }
  FailureOr<GraphValues> run();

private:
  enum class Outcome { Done, Again, Failed, Writes };
  Outcome attempt();
  FailureOr<GraphValues> runAsked();
  bool isInvariant(size_t i) const { return i < parts.invariant.size() && parts.invariant[i]; }
  bool prepareInit();
  void enter(unsigned region, SmallVectorImpl<GraphValue> &values);
  /// What the condition says of these values, a scalar; null after an error.
  Value ask(ArrayRef<GraphValue> values);
  /// Whether the state is another one than `was`, but for what was read for the first time.
  bool writesSince(const State &was);
  Outcome emitCondition();
  Outcome emitBody();
  Outcome carryWritten();
  Outcome carryNew(StringRef key, const GraphValue &value);
  void makeResults();
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
  std::optional<Trips> tripCount(Value condition);
  struct Counter {
    int64_t start, step;
  };
  /// A carried integer that the same number is added to in every iteration.
  std::optional<Counter> counterAt(unsigned argument);
  /// The number of items of a list after a known number of iterations, if that is known.
  std::optional<int64_t> lengthAfter(const ListValue &arg, const ListValue &after, const ListValue &entry, Trips trips);
  std::optional<int64_t> foldInt(Value v);

  /// What all items of a carried list are (ListValue::items), in every iteration: given by the list that enters or, where that is empty, by
  /// the body's first translation, until one shows that it puts other items in.
  struct Kept {
    bool maybe = false;
    std::optional<Dims> items;
    SmallVector<int64_t, 2> shape;
  };
  Kept keptBy(const GraphValue &v) const {
    Kept k;
    if (v.kind == Kind::List && v.list.knowsItems()) {
      k = {true, v.list.items, v.list.itemsShape};
    } else if (v.kind == Kind::List && !v.list.count) {
      k.maybe = constantOf(ctx.resolve(v.list.length)) == int64_t(0);
    }
    return k;
  }
  void giveItems(size_t i, GraphValue &v) const {
    if (i < kept.size() && kept[i].items && v.kind == Kind::List) {
      v.list.items = kept[i].items;
      v.list.itemsShape = kept[i].shape;
      v.list.itemsBuffer = v.list.buffer;
    }
  }
  /// Compares with what the body leaves: Again where the next translation has to know something else.
  Outcome reconcileItems(size_t i, const GraphValue &after);
  /// A value that the body does not read but sets, and that enters without elements: it enters with the shape it gets.
  bool entersUnread(GraphValue &entry, const GraphValue &arg, Value now);

  Emitter &c;
  /// The same as Emitter::ctx, with arrays.
  LegalizeContext &ctx;
  const LoopParts &parts;
  /// How many values the condition and the body take.
  const unsigned n;
  /// Of the attempt under way; `before` is the state in front of the loop.
  State before;
  Operation *loop = nullptr;
  Value condition;
  GraphValues outputs;
  const ArrayRef<GraphValue> given;
  /// What enters the loop: one value an input, then one a state key.
  GraphValues init;
  SmallVector<StringRef> keys;
  SmallVector<Kept> kept; ///< as `init`, of those that enter from the start
  GraphValues results;
};

Loop::Outcome Loop::reconcileItems(size_t i, const GraphValue &after) {
  if (i >= kept.size() || !kept[i].maybe)
    return Outcome::Done;
  Kept &k = kept[i];
  const bool known = after.kind == Kind::List && after.list.knowsItems();
  if (!k.items) {
    if (!known)
      return Outcome::Done;
    k = {true, after.list.items, after.list.itemsShape};
    return Outcome::Again;
  }
  if (known && k.shape == after.list.itemsShape && ctx.resolve(*k.items) == ctx.resolve(*after.list.items))
    return Outcome::Done;
  k = Kept();
  return Outcome::Again;
}

bool Loop::entersUnread(GraphValue &entry, const GraphValue &arg, Value now) {
  auto own = dyn_cast<BlockArgument>(arg.tensor);
  auto trips = tripCount();
  Dims dims = ctx.resolve(c.dims(now));
  // without a turn the loop would give what enters, which has no elements
  if (!own || !own.use_empty() || !loop->getRegion(0).getArgument(own.getArgNumber()).use_empty() || !trips || !trips->exact ||
      trips->bound < 1)
    return false;
  if (Emitter::elementType(now) != Emitter::elementType(arg.tensor) || llvm::any_of(dims, [&](AffineExpr e) { return ctx.isDataSize(e); }))
    return false;
  OpBuilder::InsertionGuard guard(c.b);
  c.b.setInsertionPoint(loop);
  entry = GraphValue::ofTensor(c.splatInt(0, dims, Emitter::elementType(now)));
  return true;
}

std::optional<int64_t> Loop::foldInt(Value v) {
  auto t = ctx.fold(v);
  if (!t || t->numElements() != 1)
    return std::nullopt;
  if (t->dtype() == DType::Int32)
    return *t->data<int32_t>();
  return t->dtype() == DType::Int64 ? std::optional<int64_t>(*t->data<int64_t>()) : std::nullopt;
}

std::optional<Loop::Counter> Loop::counterAt(unsigned argument) {
  auto start = foldInt(loop->getOperand(argument));
  // Which graph value the argument is.
  unsigned next = 0;
  for (auto [i, entry] : llvm::enumerate(init)) {
    if (isInvariant(i))
      continue;
    SmallVector<Value> values;
    flatten(entry, values);
    if (next == argument && entry.kind == Kind::Tensor && i < outputs.size() && outputs[i].tensor) {
      auto add = outputs[i].tensor.getDefiningOp<hlo::AddOp>();
      Value own = loop->getRegion(1).front().getArgument(argument);
      if (!start || !add || (add.getLhs() != own && add.getRhs() != own))
        return std::nullopt;
      auto step = foldInt(add.getLhs() == own ? add.getRhs() : add.getLhs());
      return step ? std::optional<Counter>({*start, *step}) : std::nullopt;
    }
    next += values.size();
  }
  return std::nullopt;
}

std::optional<int64_t> Loop::lengthAfter(const ListValue &arg, const ListValue &after, const ListValue &entry, Trips trips) {
  auto start = ctx.fold(entry.count);
  Operation *last = after.count.getDefiningOp();
  if (!start || !isa_and_nonnull<hlo::AddOp, hlo::SubtractOp, hlo::MaxOp>(last) || last->getOperand(0) != arg.count)
    return std::nullopt;
  int64_t first = *start->data<int32_t>();
  if (!isa<hlo::MaxOp>(last)) {
    // one more or less in every iteration
    auto step = ctx.fold(last->getOperand(1));
    if (!step)
      return std::nullopt;
    return first + trips.bound * (isa<hlo::AddOp>(last) ? 1 : -1) * *step->data<int32_t>();
  }
  // written at a counter
  auto behind = last->getOperand(1).getDefiningOp<hlo::AddOp>();
  Value index = behind ? behind.getLhs() : Value();
  while (index && index.getDefiningOp<hlo::ConvertOp>())
    index = index.getDefiningOp<hlo::ConvertOp>().getOperand();
  auto argument = dyn_cast_or_null<BlockArgument>(index);
  if (!argument || argument.getOwner() != &loop->getRegion(1).front() || foldInt(behind.getRhs()) != int64_t(1))
    return std::nullopt;
  auto counter = counterAt(argument.getArgNumber());
  if (!counter || counter->step <= 0)
    return std::nullopt;
  return trips.bound ? std::max(first, counter->start + (trips.bound - 1) * counter->step + 1) : first;
}

std::optional<Loop::Trips> Loop::tripCount(Value v) {
  if (auto both = v.getDefiningOp<hlo::AndOp>()) {
    auto a = tripCount(both.getLhs()), b = tripCount(both.getRhs());
    if (a && b)
      return Trips{std::min(a->bound, b->bound), a->exact && b->exact};
    if (!a && !b)
      return std::nullopt;
    return Trips{a ? a->bound : b->bound, false};
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
  auto limit = foldInt(limitValue);
  auto found = counterAt(arg.getArgNumber());
  if (!limit || !found || found->step <= 0)
    return std::nullopt;
  int64_t start = found->start, step = found->step;
  int64_t distance;
  if (__builtin_sub_overflow(*limit, start, &distance) || distance > (int64_t(1) << 40))
    return std::nullopt;
  bool inclusive = direction == Compare::LE || direction == Compare::GE;
  int64_t trips = distance < 0 ? 0 : inclusive ? distance / step + 1 : (distance + step - 1) / step;
  return Trips{trips, true};
}

std::optional<Loop::Trips> Loop::tripCount() { return condition ? tripCount(condition) : std::nullopt; }

bool Loop::prepare(GraphValue &v) {
  if (v.kind == Kind::Reference || (v.kind == Kind::Tensor && !v.tensor)) {
    Value tensor = ctx.materialize(v, c.loc);
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
    for (int64_t d = 0; d < Emitter::rank(now); ++d) {
      // a start without elements does not say that an input has none
      const AffineExpr start = ctx.resolve(c.dim(was, d)), next = ctx.resolve(c.dim(now, d));
      if ((constantOf(start) == int64_t(0) && !constantOf(next)) || !ctx.unify(next, start, c.nodeName))
        return false;
    }
    return true;
  };
  auto shapeError = [&](Value was, Value now) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << what << " changes in the loop from " << was.getType() << " to " << now.getType() << ", which has no compiled form";
    (void)c.error(text);
    return Outcome::Failed;
  };
  if (arg.kind == Kind::Tensor) {
    Value now = ctx.materialize(after, c.loc);
    if (!now) {
      (void)c.error(what + " becomes something that is no tensor");
      return Outcome::Failed;
    }
    if (!sameShape(now, arg.tensor)) {
      if (llvm::is_contained(hlo::getDims(cast<RankedTensorType>(arg.tensor.getType())), ctx.constant(0)) && entersUnread(entry, arg, now))
        return Outcome::Again;
      return shapeError(arg.tensor, now);
    }
    returned.push_back(now);
    return Outcome::Done;
  }
  if (arg.kind == Kind::List) {
    if (after.kind != Kind::List) {
      (void)c.error(what + " becomes something that is no list");
      return Outcome::Failed;
    }
    if (!arg.list.buffer) {
      if (!after.list.buffer && ctx.resolve(after.list.length) == ctx.resolve(arg.list.length))
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
        (after.list.count || ctx.resolve(after.list.length) != ctx.resolve(arg.list.length))) {
      auto was = constantOf(ctx.resolve(arg.list.length)), now = constantOf(ctx.resolve(after.list.length));
      auto trips = tripCount();
      if (entry.list.maxItems > 0)
        entry.list.capacity = c.size(entry.list.maxItems);
      else if (was && now && *now < *was)
        entry.list.capacity = c.size(*was);
      else if (was && now && !after.list.count && trips && trips->bound * (*now - *was) < (int64_t(1) << 24))
        entry.list.capacity = c.size(*was + trips->bound * (*now - *was));
      else if (was ? *was <= (int64_t(1) << 24) : bool(after.list.count)) {
        // as much as one iteration makes room for in each of them, if that is not too much
        int64_t wanted = 0;
        if (trips && trips->bound < (int64_t(1) << 24))
          wanted = trips->bound * (was && now ? std::max<int64_t>(*now - *was, 1) : 1);
        entry.list.capacity = hlo::simplify(ctx.resolve(arg.list.length) + roomFor(after.list, wanted));
      } else {
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
      auto trips = tripCount();
      bool exact = trips && trips->exact;
      entry.list.finalLength = exact ? lengthAfter(arg.list, after.list, entry.list, *trips).value_or(-1) : -1;
    }
    return Outcome::Done;
  }
  if (!sameValue(ctx, arg, after)) {
    (void)c.error(what + " is another variable or array after an iteration");
    return Outcome::Failed;
  }
  return Outcome::Done;
}

/// Gives the values that enter the form in which they are carried.
bool Loop::prepareInit() {
  for (auto [i, v] : llvm::enumerate(init)) {
    if (isInvariant(i))
      continue;
    if (!prepare(v))
      return false;
    if (v.kind != Kind::List)
      continue;
    if (knowsElement(v.list) && failed(typeList(c, v.list, std::nullopt)))
      return false;
    if (v.list.grows && !v.list.count && failed(makeCounted(c, v.list, v.list.capacity)))
      return false;
  }
  return true;
}

/// Begins a region: its block, and what the loop's values are there.
void Loop::enter(unsigned region, SmallVectorImpl<GraphValue> &values) {
  // the types of now: the condition may have shown that two sizes are one
  auto types = llvm::to_vector(loop->getOperandTypes());
  Block *block = c.b.createBlock(&loop->getRegion(region), {}, types, SmallVector<Location>(types.size(), c.loc));
  unsigned next = 0;
  for (auto [i, v] : llvm::enumerate(init)) {
    values.push_back(isInvariant(i) ? v : unflatten(v, block->getArguments(), next));
    giveItems(i, values.back());
  }
  ctx.state = before;
  for (auto [k, key] : llvm::enumerate(keys))
    ctx.state[key] = values[n + k];
}

Value Loop::ask(ArrayRef<GraphValue> values) {
  auto refuse = [&](const Twine &text) {
    (void)c.error(text);
    return Value();
  };
  GraphValues decision;
  if (failed(parts.condition(values, decision)))
    return {};
  if (decision.size() != 1)
    return refuse("the condition must have one result");
  Value v = ctx.materialize(decision[0], c.loc);
  if (!v)
    return refuse("the condition is no tensor");
  // TensorFlow's Switch refuses it; as the truth of a tensor that has elements, it would never be false
  if (c.rank(v) != 0)
    return refuse("the condition must be a scalar, found rank " + Twine(c.rank(v)));
  return conditionOf(c, v);
}

bool Loop::writesSince(const State &was) {
  return llvm::any_of(ctx.state, [&](const auto &now) {
    if (auto it = was.find(now.first); it != was.end())
      return !sameValue(ctx, it->second, now.second);
    auto variable = llvm::find_if(ctx.variables, [&](const VariableInfo &v) { return v.name == now.first; });
    return variable != ctx.variables.end() && (!now.second.tensor || now.second.tensor != variable->argument);
  });
}

Loop::Outcome Loop::emitCondition() {
  OpBuilder::InsertionGuard guard(c.b);
  GraphValues values;
  enter(0, values);
  const State entered = ctx.state;
  condition = ask(ArrayRef(values).take_front(n));
  if (!condition)
    return Outcome::Failed;
  if (writesSince(entered))
    return Outcome::Writes;
  hlo::ReturnOp::create(c.b, c.loc, c.reshape(condition, ArrayRef<int64_t>()));
  return Outcome::Done;
}

/// Begins to carry the value of a key that was not known before the loop; Done where there is no need to.
Loop::Outcome Loop::carryNew(StringRef key, const GraphValue &value) {
  // The gradient of an array from outside belongs outside, too.
  int64_t array = -1;
  if (key.starts_with("array ") && !key.drop_front(6).getAsInteger(10, array) && ctx.arrays[array].source >= 0 &&
      before.count(ctx.arrayKey(ctx.arrays[array].source))) {
    GraphValue start = GraphValue::ofList(ctx.newArrayContents(array));
    start.list.length = ctx.resolve(value.list.length);
    keys.push_back(key);
    init.push_back(start);
    before[key] = start;
    return Outcome::Again;
  }
  auto variable = llvm::find_if(ctx.variables, [&](const VariableInfo &v) { return v.name == key; });
  if (variable == ctx.variables.end())
    return Outcome::Done;
  if (value.tensor && value.tensor == variable->argument) {
    before[key] = value;
    return Outcome::Done;
  }
  State now = ctx.state;
  ctx.state = before;
  auto start = ctx.readVariable(key, c.loc);
  before = ctx.state;
  ctx.state = now;
  if (failed(start))
    return Outcome::Failed;
  keys.push_back(key);
  init.push_back(*start);
  return Outcome::Again;
}

/// Variables that the body writes are carried, which needs another attempt.
Loop::Outcome Loop::carryWritten() {
  Outcome result = Outcome::Done;
  for (auto &[key, value] : ctx.state) {
    if (llvm::is_contained(keys, key))
      continue;
    auto it = before.find(key);
    if (it == before.end()) {
      Outcome outcome = carryNew(key, value);
      if (outcome != Outcome::Done)
        return outcome; // it may have changed the state that is walked
    } else if (!sameValue(ctx, it->second, value)) {
      keys.push_back(key);
      init.push_back(it->second);
      result = Outcome::Again;
    }
  }
  return result;
}

Loop::Outcome Loop::emitBody() {
  OpBuilder::InsertionGuard guard(c.b);
  GraphValues values;
  enter(1, values);
  if (failed(parts.body(ArrayRef(values).take_front(n), outputs)))
    return Outcome::Failed;
  if (outputs.size() != n) {
    (void)c.error("the body must have as many results as arguments");
    return Outcome::Failed;
  }
  if (Outcome carried = carryWritten(); carried != Outcome::Done)
    return carried;
  SmallVector<Value> returned;
  bool again = false;
  for (size_t i = 0; i < init.size(); ++i) {
    if (isInvariant(i))
      continue;
    std::string what = i < n ? ("loop variable " + Twine(i)).str() : ("variable " + keys[i - n]).str();
    const GraphValue after = i < n ? outputs[i] : ctx.state[keys[i - n]];
    Outcome outcome = reconcile(what, init[i], values[i], after, returned);
    if (outcome == Outcome::Failed)
      return outcome;
    again |= outcome == Outcome::Again;
    again |= reconcileItems(i, after) == Outcome::Again;
  }
  if (again)
    return Outcome::Again;
  hlo::ReturnOp::create(c.b, c.loc, returned);
  return Outcome::Done;
}

/// What the graph sees behind the loop.
void Loop::makeResults() {
  // Unified sizes have changed types on the way.
  for (auto [result, operand] : llvm::zip(loop->getResults(), loop->getOperands()))
    result.setType(operand.getType());
  unsigned next = 0;
  for (auto [i, v] : llvm::enumerate(init)) {
    GraphValue out = isInvariant(i) ? v : unflatten(v, loop->getResults(), next);
    if (out.kind == Kind::List && out.list.count && out.list.finalLength >= 0) {
      out.list.buffer = c.sliceDim(out.list.buffer, 0, c.size(0), c.size(out.list.finalLength));
      out.list.length = c.size(out.list.finalLength);
      out.list.count = Value();
    }
    giveItems(i, out);
    out.list.grows = false;
    out.list.finalLength = -1; // that of another loop is another
    if (i < n)
      results.push_back(out);
    else
      before[keys[i - n]] = out;
  }
}

Loop::Outcome Loop::attempt() {
  before = ctx.state;
  auto restore = llvm::scope_exit([&] { ctx.state = before; });
  if (!prepareInit())
    return Outcome::Failed;
  SmallVector<Value> operands;
  for (auto [i, v] : llvm::enumerate(init))
    if (!isInvariant(i))
      flatten(v, operands);
  loop = createWithRegions(c, hlo::WhileOp::getOperationName(), operands, llvm::to_vector(ValueRange(operands).getTypes()), 2);
  condition = Value();
  outputs.clear();
  Outcome outcome = emitCondition();
  if (outcome == Outcome::Done)
    outcome = emitBody();
  if (outcome == Outcome::Done) {
    makeResults();
    return outcome;
  }
  loop->erase();
  ctx.clearFolded();
  return outcome;
}

/// The region that decides leaves nothing behind. A condition that writes variables is asked in front of the loop and behind each turn of
/// the body instead, and its answer is carried.
FailureOr<GraphValues> Loop::runAsked() {
  LoopParts asked;
  asked.invariant = parts.invariant;
  asked.invariant.resize(n + 1, false);
  asked.condition = [](ArrayRef<GraphValue> values, GraphValues &answer) {
    answer.push_back(values.back());
    return success();
  };
  asked.body = [&](ArrayRef<GraphValue> values, GraphValues &results) -> LogicalResult {
    if (failed(parts.body(values.drop_back(), results)))
      return failure();
    Value answer = results.size() == n ? ask(results) : Value();
    if (results.size() == n && !answer)
      return failure();
    results.push_back(GraphValue::ofTensor(answer));
    return success();
  };
  GraphValues values(given.begin(), given.end());
  Value first = ask(given);
  if (!first)
    return failure();
  values.push_back(GraphValue::ofTensor(first));
  auto left = Loop(c, ctx, values, asked).run();
  if (succeeded(left))
    left->pop_back();
  return left;
}

FailureOr<GraphValues> Loop::run() {
  for (int tries = 0; tries < kMaxAttempts; ++tries) {
    Outcome outcome = attempt();
    if (outcome == Outcome::Again)
      continue;
    if (outcome == Outcome::Failed)
      return failure();
    if (outcome == Outcome::Writes)
      return runAsked();
    return results;
  }
  return c.error("what the loop carries is not the same in all iterations");
}

} // namespace

FailureOr<GraphValues> makeLoop(Emitter &c, LegalizeContext &ctx, ArrayRef<GraphValue> values, const LoopParts &parts) {
  return Loop(c, ctx, values, parts).run();
}

LogicalResult lowerWhile(NodeContext &c) {
  graph::FuncOp cond = c.ctx.lookupFunction(c.attr("cond")), body = c.ctx.lookupFunction(c.attr("body"));
  if (!cond || !body)
    return c.error("the condition or body function is missing");
  const unsigned n = c.numInputs();
  if (c.numResults() != n || cond.getArgumentTypes().size() != n || body.getArgumentTypes().size() != n ||
      body.getResultTypes().size() != n)
    return c.error("the condition and the body do not fit the loop's " + Twine(n) + " variables");
  LoopParts parts;
  parts.condition = [&](ArrayRef<GraphValue> args, GraphValues &results) { return c.ctx.lowerBody(cond, args, results); };
  parts.body = [&](ArrayRef<GraphValue> args, GraphValues &results) { return c.ctx.lowerBody(body, args, results); };
  parts.invariant = findInvariants(body);
  GraphValues values;
  for (unsigned i = 0; i < n; ++i)
    values.push_back(c.value(i));
  auto results = makeLoop(c, c.ctx, values, parts);
  if (failed(results))
    return failure();
  for (unsigned i = 0; i < n; ++i)
    if (failed(c.setResult(i, (*results)[i])))
      return failure();
  return success();
}

} // namespace lathe::legalize
