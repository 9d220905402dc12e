// Order of operators, values of tensors, state.
#include "compiler/frontend/tflite/Translator.h"

#include "compiler/frontend/tflite/Custom.h"
#include "compiler/frontend/tflite/Flex.h"
#include "compiler/frontend/tflite/KeepOperators.h"
#include "dialects/hlo/Constants.h"
#include "passes/legalize/Complaints.h"
#include "passes/legalize/HandlerTable.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/Dialect/Quant/IR/QuantTypes.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {

namespace {
/// Subgraphs call each other at most this deep: recursive ones have no compiled form.
constexpr size_t kMaxDepth = 64;
/// Operators translated over all instances of subgraphs.
constexpr int64_t kMaxOperators = 2000000;
} // namespace

const OpTable &opTable() {
  static const OpTable table = [] {
    OpTable t;
    registerElementwise(t);
    registerBinary(t);
    registerConv(t);
    registerProduct(t);
    registerPool(t);
    registerShape(t);
    registerSlice(t);
    registerIndexing(t);
    registerEmbedding(t);
    registerRandom(t);
    registerBodies(t);
    registerStablehlo(t);
    registerReduce(t);
    registerNorm(t);
    registerResize(t);
    registerRnn(t);
    registerControl(t);
    registerQuantize(t);
    registerTables(t);
    return t;
  }();
  return table;
}

Types typesOf(const TensorInfo &info) {
  bool quantized = bool(info.quantization) || info.quantization.isOther;
  switch (info.type) {
  case tfl::TensorType::FLOAT32: return Float32;
  case tfl::TensorType::FLOAT16:
  case tfl::TensorType::BFLOAT16:
  case tfl::TensorType::FLOAT64: return OtherFloat;
  case tfl::TensorType::INT8:
  case tfl::TensorType::UINT8:
  case tfl::TensorType::INT2:
  case tfl::TensorType::INT4: return quantized ? Quant8 : Ints;
  case tfl::TensorType::INT16: return quantized ? Quant16 : Ints;
  case tfl::TensorType::BOOL: return Bools;
  case tfl::TensorType::COMPLEX64:
  case tfl::TensorType::COMPLEX128: return Complexes;
  case tfl::TensorType::VARIANT:
  case tfl::TensorType::RESOURCE: return Handles;
  default: return dtypeOf(info.type) == DType::Invalid ? Types(0) : Ints;
  }
}

Translator::Translator(ModuleOp module, const ModelFile &file, const ImportOptions &options)
    : LegalizeContext(module, legalize::allHandlers()), file(file), importOptions(options),
      initialized(file.numSubgraphs(), false) {
  fastQuantizedMath = options.fastQuantizedMath;
}

std::string Translator::whyNot(const ModelFile &file, unsigned subgraph, const tfl::Operator &op) {
  const tfl::OperatorCode &code = file.code(op);
  tfl::BuiltinOperator builtin = ModelFile::builtin(code);
  if (builtin == tfl::BuiltinOperator::CUSTOM) {
    if (isKnownCustom(ModelFile::opName(code)))
      return "";
    return isFlex(file, op) ? whyNotFlex(op) : "custom operator is not supported";
  }
  const OpEntry *entry = opTable().lookup(builtin);
  if (!entry)
    return "has no compiled form";
  if (code.version() > entry->maxVersion)
    return "version " + std::to_string(code.version()) + " is not supported, " + std::to_string(entry->maxVersion) +
           " is the newest that is";
  int n = op.inputs() ? op.inputs()->size() : 0;
  if (n < entry->minInputs || n > entry->maxInputs)
    return "expected " + std::to_string(entry->minInputs) + " inputs" +
           (entry->maxInputs > entry->minInputs ? " or more" : "") + ", found " + std::to_string(n);
  if (n && op.inputs()->Get(0) >= 0) {
    const TensorInfo &info = file.tensor(subgraph, op.inputs()->Get(0));
    if (!(typesOf(info) & entry->types))
      return "type " + typeName(info.type) + (info.quantization ? " with scales" : "") + " of input 0 is not supported";
  }
  // Narrow numbers are read of constants; what a kernel would clamp them to is not settled.
  if (op.outputs())
    for (int32_t t : *op.outputs())
      if (const TensorInfo &info = file.tensor(subgraph, t); bitsOf(info.type) != 0 && bitsOf(info.type) < 8)
        return "type " + typeName(info.type) + " of a result is not supported";
  return "";
}

void Translator::replaced(Value from, Value to) {
  LegalizeContext::replaced(from, to);
  for (Frame &frame : frames)
    for (auto &value : frame.values)
      if (value && value->tensor == from)
        value->tensor = to;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

std::string Translator::stateName(unsigned tensor) {
  unsigned subgraph = frames.back().subgraph;
  return "state/" + std::to_string(subgraph) + "/" + std::to_string(tensor) + "/" +
         import::printable(file.tensor(subgraph, tensor).name);
}

FailureOr<Value> Translator::readState(OpContext &c, unsigned i) {
  if (!c.hasInput(i) || !c.inputInfo(i).isVariable)
    return c.error("input " + Twine(i) + " must be a variable");
  const TensorInfo &info = c.inputInfo(i);
  SmallVector<int64_t> dims(info.dims);
  if (llvm::is_contained(dims, -1)) { // the size at which the file was made
    auto *shape = file.subgraph(frames.back().subgraph).tensors()->Get(c.op.inputs()->Get(i))->shape();
    dims.assign(shape->begin(), shape->end());
  }
  if (llvm::is_contained(dims, -1))
    return c.error("the size of its state is not known");
  std::string name = stateName(c.op.inputs()->Get(i));
  Type element = c.elementOf(info);
  auto type = RankedTensorType::get(dims, element);
  Attribute zero = DenseElementsAttr::get(type, isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, 0))
                                                                        : Attribute(builder.getIntegerAttr(element, 0)));
  // of quantized values 0 is the zero point
  if (isa<IntegerType>(element) && info.quantization.perTensor())
    zero = DenseElementsAttr::get(type, Attribute(builder.getIntegerAttr(element, info.quantization.zeroPoints[0])));
  (void)declareVariable(name, type, zero);
  FailureOr<GraphValue> value = readVariable(name, c.loc);
  if (failed(value))
    return failure();
  return materialize(*value, c.loc);
}

LogicalResult Translator::writeState(OpContext &c, unsigned i, Value v) {
  if (!v)
    return failure();
  state[intern(stateName(c.op.inputs()->Get(i)))] = GraphValue::ofTensor(v);
  return success();
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

LogicalResult Translator::tensorOf(OpContext &c, int32_t tensor, GraphValue &value) {
  Frame &frame = frames.back();
  if (tensor < 0) {
    value.kind = GraphValue::Kind::Host;
    return success();
  }
  if (frame.values[tensor]) {
    value = *frame.values[tensor];
    return success();
  }
  const TensorInfo &info = file.tensor(frame.subgraph, tensor);
  if (info.isVariable) { // the handler reads it as state
    value.kind = GraphValue::Kind::Host;
    return success();
  }
  bool empty = llvm::is_contained(info.dims, 0) && !llvm::is_contained(info.dims, -1);
  if (!info.isConstant && !empty)
    return c.error("reads tensor '" + import::printable(info.name) + "' before it is written");
  if (dtypeOf(info.type) == DType::Invalid) {
    value.kind = GraphValue::Kind::Host;
    return success();
  }
  Tensor &constant = constants[{frame.subgraph, unsigned(tensor)}];
  if (!constant.valid()) {
    auto read = readConstant(info, importOptions.maxBytes);
    if (!read.ok())
      return c.error("input '" + import::printable(info.name) + "' " + std::string(read.status().message()));
    constant = *read;
  }
  Value v = c.constant(constant);
  if (!v)
    return failure();
  value = GraphValue::ofTensor(v);
  return success();
}

const tfl::Operator *Translator::producer(int32_t tensor) {
  const unsigned subgraph = frames.back().subgraph;
  auto [at, isNew] = producers.try_emplace(subgraph);
  const tfl::SubGraph &graph = file.subgraph(subgraph);
  if (isNew && graph.operators())
    for (const tfl::Operator *op : *graph.operators())
      if (op->outputs())
        for (int32_t t : *op->outputs())
          at->second[t] = op;
  return at->second.lookup(tensor);
}

const GraphValue *Translator::valueOf(int32_t tensor) {
  if (tensor < 0)
    return nullptr;
  auto &value = frames.back().values[tensor];
  return value ? &*value : nullptr;
}

LogicalResult Translator::runOperator(const tfl::Operator &op) {
  const unsigned subgraph = frames.back().subgraph;
  // Operators have no names: that of the first result is what other tools show.
  std::string name = op.outputs() && op.outputs()->size()
                         ? import::printable(file.tensor(subgraph, op.outputs()->Get(0)).name)
                         : "operator without results";
  Location loc = NameLoc::get(builder.getStringAttr(name), NameLoc::get(builder.getStringAttr(ModelFile::opName(file.code(op)))));
  OpContext c(*this, subgraph, op, loc, name);
  legalize::Complaints complaints(*this);
  if (std::string why = whyNot(file, subgraph, op); !why.empty())
    return c.error(why);
  if (++translated > kMaxOperators)
    return c.error("the model is too large once its subgraphs are expanded");
  for (unsigned i = 0; i < c.numInputs(); ++i)
    if (frames.back().failed.contains(op.inputs()->Get(i)))
      return failure();
  for (unsigned i = 0; i < c.numInputs(); ++i)
    if (failed(tensorOf(c, op.inputs()->Get(i), c.inputs.emplace_back())))
      return failure();
  const bool keep = keepsOperators && canKeep(c);
  Block *block = builder.getInsertionBlock();
  Operation *before = builder.getInsertionPoint() == block->begin() ? nullptr : &*std::prev(builder.getInsertionPoint());
  auto translate = [&] {
    if (keep && keepsState(c))
      return keepOperator(c);
    if (c.code == tfl::BuiltinOperator::CUSTOM)
      return isFlex(file, op) ? translateFlex(c) : translateCustom(c);
    return opTable().lookup(c.code)->translate(c);
  };
  if (failed(complaints.run(translate, [&](const Twine &text) -> LogicalResult { return c.error(text); })))
    return failure();
  if (keep && !keepsState(c)) {
    if (failed(keepOperator(c)))
      return failure();
    // the operator checks what its compiled form checks, which nobody reads any more
    auto first = before ? std::next(before->getIterator()) : block->begin();
    for (Operation &made : llvm::make_early_inc_range(llvm::make_range(first, builder.getInsertionPoint())))
      if (isa<hlo::CheckOp>(made))
        made.erase();
  }
  for (unsigned i = 0; i < c.numOutputs(); ++i) {
    if (!c.result(i))
      return c.error("output " + Twine(i) + " has no compiled form");
    frames.back().values[op.outputs()->Get(i)] = *c.result(i);
  }
  return success();
}

static SmallVector<int32_t> listOf(const flatbuffers::Vector<int32_t> *list) {
  return list ? SmallVector<int32_t>(list->begin(), list->end()) : SmallVector<int32_t>();
}

/// The operators of a subgraph but those that `leaves` says.
static SmallVector<unsigned> operatorsOf(const ModelFile &file, unsigned subgraph,
                                         llvm::function_ref<bool(tfl::BuiltinOperator)> leaves = nullptr) {
  SmallVector<unsigned> operators;
  const tfl::SubGraph &graph = file.subgraph(subgraph);
  for (unsigned i = 0; graph.operators() && i < graph.operators()->size(); ++i)
    if (!leaves || !leaves(ModelFile::builtin(file.code(*graph.operators()->Get(i)))))
      operators.push_back(i);
  return operators;
}

LogicalResult Translator::runSubgraph(unsigned index, ArrayRef<GraphValue> args, SmallVectorImpl<GraphValue> &results) {
  const tfl::SubGraph &graph = file.subgraph(index);
  return runOperators(index, operatorsOf(file, index), listOf(graph.inputs()), args, listOf(graph.outputs()), results);
}

LogicalResult Translator::runOperators(unsigned index, ArrayRef<unsigned> operators, ArrayRef<int32_t> given, ArrayRef<GraphValue> args,
                                       ArrayRef<int32_t> wanted, SmallVectorImpl<GraphValue> &results) {
  const tfl::SubGraph &graph = file.subgraph(index);
  auto fail = [&](const Twine &text) {
    sawError = true;
    return emitError(entryLoc) << "node 'subgraph " << index << "': " << text;
  };
  if (frames.size() >= kMaxDepth)
    return fail("subgraphs call each other too deeply");
  // translating it would not end, or only after all ways through it
  if (llvm::any_of(frames, [&](const Frame &frame) { return frame.subgraph == index; }))
    return fail("it calls itself");
  if (given.size() != args.size())
    return fail("expected " + Twine(given.size()) + " inputs, found " + Twine(args.size()));
  frames.push_back({index, {}, {}});
  frames.back().values.resize(file.numTensors(index));
  for (auto [tensor, value] : llvm::zip_equal(given, args))
    frames.back().values[tensor] = value;
  bool ok = true;
  for (unsigned i : operators) {
    const tfl::Operator &op = *graph.operators()->Get(i);
    if (failed(runOperator(op))) {
      ok = false;
      if (op.outputs())
        frames.back().failed.insert(op.outputs()->begin(), op.outputs()->end());
    }
  }
  if (ok)
    for (int32_t t : wanted) {
      auto &value = frames.back().values[t];
      if (!value) { // a constant, or nothing
        const TensorInfo &info = file.tensor(index, t);
        auto read = info.isConstant ? readConstant(info, importOptions.maxBytes)
                                    : absl::InvalidArgumentError("is never written");
        if (!read.ok()) {
          ok = false;
          (void)fail("output '" + import::printable(info.name) + "' " + std::string(read.status().message()));
          break;
        }
        value = GraphValue::ofTensor(hlo::makeConstant(builder, entryLoc, *read));
      }
      results.push_back(*value);
    }
  frames.pop_back();
  return success(ok);
}

LogicalResult Translator::initialize(OpContext &c, unsigned index) {
  if (index >= file.numSubgraphs())
    return c.error("there is no subgraph " + Twine(index));
  // In each entry, and before any other operator of it has written: the interpreter does it in the first of all runs.
  GraphValues results;
  auto before = state;
  state.clear();
  // Tables may be filled by the same subgraph: those are nodes of a graph, and nothing that is compiled reads them.
  auto isVariable = [](tfl::BuiltinOperator op) { return op == tfl::BuiltinOperator::ASSIGN_VARIABLE; };
  auto isTable = [](tfl::BuiltinOperator op) {
    return op == tfl::BuiltinOperator::HASHTABLE || op == tfl::BuiltinOperator::HASHTABLE_IMPORT;
  };
  SmallVector<unsigned> operators = operatorsOf(file, index);
  if (operatorsOf(file, index, isVariable).size() < operators.size())
    operators = operatorsOf(file, index, isTable);
  if (failed(runOperators(index, operators, {}, {}, {}, results)))
    return failure();
  auto written = std::exchange(state, before);
  for (auto &[name, value] : written) {
    auto variable = llvm::find_if(variables, [&, &name = name](const legalize::VariableInfo &v) { return v.name == name; });
    if (variable == variables.end() || before.count(name))
      continue;
    Value v = materialize(value, c.loc);
    std::optional<Tensor> known = v ? fold(v) : std::nullopt;
    if (!known)
      return c.error("the initial value of variable '" + name + "' must be a constant");
    variable->initial = hlo::makeElements(getContext(), *known);
    variable->type = cast<RankedTensorType>(v.getType());
  }
  return success();
}

Type Translator::quantizedType(const TensorInfo &info) {
  const Quantization &q = info.quantization;
  const DType dtype = dtypeOf(info.type);
  auto storage = dyn_cast_or_null<IntegerType>(toElementType(getContext(), dtype));
  if (!q || q.isOther || !storage || storage.getWidth() > 32 || storage.getWidth() < 8)
    return {};
  for (auto [scale, zero] : llvm::zip(q.scales, q.zeroPoints))
    if (!(scale > 0) || !std::isfinite(scale) || std::abs(double(zero)) > double(1u << 31))
      return {};
  getContext()->getOrLoadDialect<quant::QuantDialect>();
  const bool isUnsigned = storage.isUnsigned();
  const unsigned bits = storage.getWidth(), flags = isUnsigned ? 0 : unsigned(quant::QuantizationFlags::Signed);
  const int64_t low = isUnsigned ? 0 : -(int64_t(1) << (bits - 1)), high = low + (int64_t(1) << bits) - 1;
  Type stored = IntegerType::get(getContext(), bits), real = Float32Type::get(getContext());
  if (q.perTensor())
    return quant::UniformQuantizedType::get(flags, stored, real, q.scales[0], q.zeroPoints[0], low, high);
  SmallVector<double> scales(q.scales.begin(), q.scales.end());
  return quant::UniformQuantizedPerAxisType::get(flags, stored, real, scales, q.zeroPoints, q.dimension, low, high);
}

LogicalResult Translator::translate(const EntryPlan &plan) {
  clearEntry();
  frames.clear();
  SmallVector<legalize::EntryTensor> inputs, outputs;
  Location loc = NameLoc::get(builder.getStringAttr(plan.name));
  auto port = [&](const EntryPlan::Port &p) {
    StringRef tensor = file.tensor(plan.subgraph, p.tensor).name;
    return legalize::EntryTensor{builder.getStringAttr(p.name), builder.getStringAttr(tensor), {}};
  };
  for (const EntryPlan::Port &p : plan.inputs) {
    const TensorInfo &info = file.tensor(plan.subgraph, p.tensor);
    Type element = toElementType(getContext(), dtypeOf(info.type));
    if (!element) {
      sawError = true;
      return emitError(loc) << "input '" << p.name << "': type " << typeName(info.type) << " has no compiled form";
    }
    SmallVector<int64_t> dims(p.dims);
    for (int64_t &d : dims)
      d = d < 0 ? ShapedType::kDynamic : d;
    legalize::EntryTensor input = port(p);
    input.type = RankedTensorType::get(dims, element);
    if (!p.value)
      inputs.push_back(input);
  }
  for (const EntryPlan::Port &p : plan.outputs)
    outputs.push_back(port(p));
  builder.setInsertionPointToEnd(module.getBody());
  beginEntry(plan.name, loc, inputs);
  const tfl::SubGraph &graph = file.subgraph(plan.subgraph);
  // In the order of the subgraph; names of a signature may be in another.
  GraphValues args, wanted;
  unsigned next = 0;
  std::map<unsigned, GraphValue> byTensor;
  for (const EntryPlan::Port &p : plan.inputs)
    byTensor[p.tensor] = GraphValue::ofTensor(p.value ? hlo::makeConstant(builder, loc, *p.value)
                                                      : Value(function.getBody().front().getArgument(next++)));
  SmallVector<int32_t> given, made;
  if (plan.operators)
    for (const EntryPlan::Port &p : plan.inputs)
      given.push_back(p.tensor);
  else
    given = listOf(graph.inputs());
  for (int32_t t : given)
    args.push_back(byTensor[t]);
  for (const EntryPlan::Port &p : plan.outputs)
    made.push_back(p.tensor);
  const SmallVector<unsigned> operators =
      plan.operators ? SmallVector<unsigned>(plan.operators->begin(), plan.operators->end()) : operatorsOf(file, plan.subgraph);
  if (failed(runOperators(plan.subgraph, operators, given, args, made, wanted)))
    return failure();
  if (failed(finishEntry(outputs, wanted)))
    return failure();
  // what the integers stand for, for headers and tables
  next = 0;
  for (const EntryPlan::Port &p : plan.inputs)
    if (!p.value) {
      if (Type type = quantizedType(file.tensor(plan.subgraph, p.tensor)))
        function.setArgAttr(next, "hlo.quantized", TypeAttr::get(type));
      ++next;
    }
  for (auto [i, p] : llvm::enumerate(plan.outputs))
    if (Type type = quantizedType(file.tensor(plan.subgraph, p.tensor)))
      function.setResultAttr(i, "hlo.quantized", TypeAttr::get(type));
  return success();
}

} // namespace lathe::tflite
