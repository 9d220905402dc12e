// Reductions, windows, scatters and sorts whose computation is a subgraph of the file, or one of a few known ones.
#include "compiler/frontend/tflite/Bodies.h"

#include "compiler/frontend/tflite/Translator.h"
#include "dialects/hlo/Constants.h"

#include <limits>
#include <tuple>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

/// Whether an op may stand in a body: hlo's ops with bodies are compiled element by element.
bool isScalarOp(Operation &op) {
  auto scalar = [](Type type) {
    auto t = dyn_cast<RankedTensorType>(type);
    return t && t.getRank() == 0;
  };
  if (!llvm::all_of(op.getOperandTypes(), scalar) || !llvm::all_of(op.getResultTypes(), scalar))
    return false;
  return isa<hlo::ConstantOp>(op) || op.hasTrait<hlo::HloElementwise>();
}

} // namespace

LogicalResult Body::run(ValueRange arguments, SmallVectorImpl<Value> &values) {
  if (subgraph < 0 || subgraph >= c.translator.file.numSubgraphs())
    return c.error("there is no subgraph " + Twine(subgraph));
  GraphValues given, made;
  for (Value v : arguments)
    given.push_back(GraphValue::ofTensor(v));
  auto state = c.ctx.state;
  if (failed(c.translator.runSubgraph(subgraph, given, made)))
    return failure();
  if (c.ctx.state.size() != state.size())
    return c.error("subgraph " + Twine(subgraph) + " reads or writes variables");
  if (made.size() != results.size())
    return c.error("subgraph " + Twine(subgraph) + " has " + Twine(made.size()) + " results, expected " + Twine(results.size()));
  for (auto [value, element] : llvm::zip(made, results)) {
    Value v = c.ctx.materialize(value, c.loc);
    if (!v || Emitter::rank(v) != 0 || Emitter::elementType(v) != element)
      return c.error("a result of subgraph " + Twine(subgraph) + " is no number of the expected type");
    values.push_back(v);
  }
  for (Operation &op : *c.b.getInsertionBlock())
    if (!isScalarOp(op))
      return c.error("subgraph " + Twine(subgraph) + " must compute single numbers: " + op.getName().getStringRef() +
                     " has no place in it");
  return success();
}

SmallVector<Value> Body::operator()(OpBuilder &, Location, ValueRange arguments) {
  SmallVector<Value> values;
  if (succeeded(run(arguments, values)))
    return values;
  fine = false;
  values.clear();
  for (Type element : results)
    values.push_back(c.scalarInt(0, element));
  return values;
}

namespace {

FailureOr<SmallVector<Value>> inputsFrom(OpContext &c, unsigned first, unsigned end) {
  SmallVector<Value> values;
  for (unsigned i = first; i < end; ++i) {
    values.push_back(c.input(i));
    if (!values.back())
      return failure();
  }
  return values;
}

SmallVector<Type> elementsOf(ArrayRef<Value> values) {
  return llvm::map_to_vector(values, [](Value v) { return Emitter::elementType(v); });
}

SmallVector<int64_t> list(const flatbuffers::Vector<int64_t> *values) {
  return values ? SmallVector<int64_t>(values->begin(), values->end()) : SmallVector<int64_t>();
}

/// Results of an op with a body, unless that failed.
LogicalResult finishWith(OpContext &c, const Body &body, Operation *op) {
  if (!body.ok())
    return failure();
  for (auto [i, v] : llvm::enumerate(op->getResults()))
    if (failed(c.setResult(i, Value(v))))
      return failure();
  return success();
}

/// Inputs and as many initial values.
struct Reduced {
  SmallVector<Value> inputs, inits;
};
FailureOr<Reduced> reducedOf(OpContext &c) {
  const unsigned n = c.numInputs() / 2;
  if (c.numInputs() % 2)
    return c.error("expected as many inputs as initial values");
  auto inputs = inputsFrom(c, 0, n), inits = inputsFrom(c, n, 2 * n);
  if (failed(inputs) || failed(inits))
    return failure();
  return Reduced{*inputs, *inits};
}

LogicalResult reduce(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloReduceOptions>();
  auto r = reducedOf(c);
  if (failed(r))
    return failure();
  Body body(c, o.body_subgraph_index(), elementsOf(r->inits));
  return finishWith(c, body, hlo::ReduceOp::create(c.b, c.loc, r->inputs, r->inits, list(o.dimensions()), body));
}

/// Sizes of windows that can be: larger numbers would overflow the sums of sizes that are made of them.
LogicalResult checkWindow(OpContext &c, std::initializer_list<ArrayRef<int64_t>> lists, const hlo::PaddingList &padding) {
  constexpr int64_t limit = int64_t(1) << 31;
  auto tooLarge = [](int64_t v) { return v > limit || v < -limit; };
  bool bad = llvm::any_of(padding, [&](auto p) { return tooLarge(p.first) || tooLarge(p.second); });
  for (ArrayRef<int64_t> l : lists)
    bad |= llvm::any_of(l, tooLarge);
  return bad ? c.error("a size of its window is out of range") : success();
}

/// Whether a subgraph is one operator of two numbers of which `init`, a constant, is the identity.
bool isIdentity(OpContext &c, int64_t subgraph, Value init) {
  const ModelFile &file = c.translator.file;
  const tfl::SubGraph *graph = subgraph >= 0 && subgraph < file.numSubgraphs() ? &file.subgraph(subgraph) : nullptr;
  auto known = c.ctx.fold(init);
  if (!graph || !graph->operators() || graph->operators()->size() != 1 || !known)
    return false;
  const Op op = ModelFile::builtin(file.code(*graph->operators()->Get(0)));
  auto holds = [&](auto value) {
    using Limits = std::numeric_limits<decltype(value)>;
    switch (op) {
    case Op::STABLEHLO_ADD: return value == 0;
    case Op::STABLEHLO_MULTIPLY: return value == 1;
    case Op::STABLEHLO_MAXIMUM: return Limits::has_infinity ? value == -Limits::infinity() : value == Limits::lowest();
    case Op::STABLEHLO_MINIMUM: return Limits::has_infinity ? value == Limits::infinity() : value == Limits::max();
    default: return false;
    }
  };
  switch (known->dtype()) {
  case DType::Float32: return holds(*known->data<float>());
  case DType::Int32: return holds(*known->data<int32_t>());
  default: return false;
  }
}

/// Fills what lies around and between elements with the initial value, which then counts as any other: StableHLO's rule. hlo leaves such
/// places out, which is the same for an identity.
void padWithInit(OpContext &c, Reduced &r, hlo::ReduceWindow &config) {
  const int64_t rank = Emitter::rank(r.inputs[0]);
  SmallVector<int64_t> low(rank, 0), high(rank, 0), interior(rank, 0);
  for (int64_t i = 0; i < rank; ++i) {
    if (int64_t(config.padding.size()) == rank)
      std::tie(low[i], high[i]) = config.padding[i];
    if (int64_t(config.baseDilations.size()) == rank)
      interior[i] = config.baseDilations[i] - 1;
  }
  for (auto [input, init] : llvm::zip(r.inputs, r.inits))
    input = c.pad(input, init, low, high, interior);
  config.padding.clear();
  config.baseDilations.clear();
}

LogicalResult stablehloReduceWindow(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloReduceWindowOptions>();
  auto r = reducedOf(c);
  if (failed(r))
    return failure();
  SmallVector<int64_t> window = list(o.window_dimensions()), padding = list(o.padding());
  hlo::ReduceWindow config;
  config.strides = list(o.window_strides());
  config.baseDilations = list(o.base_dilations());
  config.windowDilations = list(o.window_dilations());
  if (padding.size() % 2)
    return c.error("expected a low and a high padding of each dimension");
  for (size_t i = 0; i < padding.size(); i += 2)
    config.padding.push_back({padding[i], padding[i + 1]});
  if (failed(checkWindow(c, {window, config.strides, config.baseDilations, config.windowDilations}, config.padding)))
    return failure();
  const int64_t rank = r->inputs.empty() ? 0 : Emitter::rank(r->inputs[0]);
  for (size_t size : {config.padding.size(), config.baseDilations.size()})
    if (size && int64_t(size) != rank)
      return c.error("expected padding and dilations of " + Twine(rank) + " dimensions");
  for (Value v : r->inputs)
    if (Emitter::rank(v) != rank)
      return c.error("its inputs have different ranks");
  if (llvm::any_of(config.baseDilations, [](int64_t d) { return d < 1; }))
    return c.error("dilations must be positive");
  if (r->inputs.size() != 1 || !isIdentity(c, o.body_subgraph_index(), r->inits[0]))
    padWithInit(c, *r, config);
  Body body(c, o.body_subgraph_index(), elementsOf(r->inits));
  return finishWith(c, body, hlo::ReduceWindowOp::create(c.b, c.loc, r->inputs, r->inits, window, config, body));
}

/// REDUCE_WINDOW: no padding, one of six computations. Booleans and integers alike are true where they are not 0.
LogicalResult reduceWindow(OpContext &c) {
  using Function = tfl::ReduceWindowFunction;
  Value x = c.input(0), init = c.input(1);
  auto window = c.constantInts(2), strides = c.constantInts(3), dilations = c.constantInts(4);
  if (!x || !init || failed(window) || failed(strides) || failed(dilations))
    return failure();
  if (Emitter::rank(x) == 0)
    return c.error("expected an input of rank 1 or more");
  hlo::ReduceWindow config;
  config.strides = *strides;
  config.windowDilations = *dilations;
  config.padding.assign(Emitter::rank(x), {0, 0});
  if (failed(checkWindow(c, {*window, *strides, *dilations}, config.padding)))
    return failure();
  const Function function = c.options2<tfl::ReduceWindowOptions>().reduce_function();
  Type element = Emitter::elementType(x);
  const bool logical = function == Function::ALL || function == Function::ANY;
  init = c.reshape(init, ArrayRef<AffineExpr>());
  auto truth = [&](Value v) { return Emitter::isBool(v) ? v : c.compare(Compare::NE, v, c.likeInt(v, 0)); };
  if (logical) {
    x = truth(x);
    init = truth(init);
  }
  auto combine = [&](OpBuilder &b, Location l, ValueRange a) -> SmallVector<Value> {
    switch (function) {
    case Function::ADD: return {hlo::AddOp::create(b, l, a[0], a[1])};
    case Function::MUL: return {hlo::MulOp::create(b, l, a[0], a[1])};
    case Function::MINIMUM: return {hlo::MinOp::create(b, l, a[0], a[1])};
    case Function::MAXIMUM: return {hlo::MaxOp::create(b, l, a[0], a[1])};
    case Function::ALL: return {hlo::AndOp::create(b, l, a[0], a[1])};
    default: return {hlo::OrOp::create(b, l, a[0], a[1])};
    }
  };
  if (function < Function::ADD || function > Function::ANY)
    return c.error("reduction " + Twine(int(function)) + " is not known");
  Value result = c.make<hlo::ReduceWindowOp>(ValueRange(x), ValueRange(init), ArrayRef<int64_t>(*window), config, combine);
  return c.setResult(0, logical ? c.convert(result, element) : result);
}

LogicalResult scatter(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloScatterOptions>();
  const unsigned n = c.numInputs() / 2;
  if (c.numInputs() % 2 == 0)
    return c.error("expected inputs, indices and as many updates as inputs");
  auto inputs = inputsFrom(c, 0, n), updates = inputsFrom(c, n + 1, 2 * n + 1);
  Value indices = c.input(n);
  if (failed(inputs) || failed(updates) || !indices)
    return failure();
  auto numbers = hlo::ScatterDimensionNumbersAttr::get(c.b.getContext(), list(o.update_window_dims()), list(o.inserted_window_dims()), {},
                                                       {}, list(o.scatter_dims_to_operand_dims()), o.index_vector_dim());
  Body body(c, o.update_computation_subgraph_index(), elementsOf(*inputs));
  return finishWith(c, body, hlo::ScatterOp::create(c.b, c.loc, *inputs, indices, *updates, numbers, o.indices_are_sorted(),
                                                    o.unique_indices(), body));
}

LogicalResult sort(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloSortOptions>();
  auto inputs = inputsFrom(c, 0, c.numInputs());
  if (failed(inputs))
    return failure();
  Body body(c, o.comparator_subgraph_index(), Type(c.b.getI1Type()));
  return finishWith(c, body, hlo::SortOp::create(c.b, c.loc, *inputs, o.dimension(), o.is_stable(), body));
}

} // namespace

void registerBodies(OpTable &t) {
  t.add(Op::REDUCE_WINDOW, 5, 5, 1, Numbers | Bools, reduceWindow);
  t.add(Op::STABLEHLO_REDUCE, 2, OpTable::kMany, 1, Numbers | Bools | Complexes, reduce);
  t.add(Op::STABLEHLO_REDUCE_WINDOW, 2, OpTable::kMany, 1, Numbers | Bools, stablehloReduceWindow);
  t.add(Op::STABLEHLO_SCATTER, 3, OpTable::kMany, 1, Numbers | Bools, scatter);
  t.add(Op::STABLEHLO_SORT, 1, OpTable::kMany, 1, Numbers | Bools, sort);
}

} // namespace lathe::tflite
