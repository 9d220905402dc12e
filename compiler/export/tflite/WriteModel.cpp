// Functions and regions become subgraphs, values tensors. A region reads what it needs from outside through inputs of its own.
#include "compiler/export/tflite/WriteModel.h"
#include "compiler/export/tflite/OptionTables.h"

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringMap.h"

#include <cstring>
#include <string_view>
#include <unordered_map>

using namespace mlir;

namespace lathe::tflwrite {
namespace {

/// On arguments and results of entries that are a variable's value before and after, its name.
constexpr const char *variableAttr = "hlo.variable";

/// The node's name that a location starts with.
std::string nameOf(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return named.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc); fused && !fused.getLocations().empty())
    return nameOf(fused.getLocations().back());
  return "";
}

class Writer {
public:
  explicit Writer(ModuleOp module) : module(module) {}
  FailureOr<std::string> run(ArrayRef<SignatureName> signatures);

private:
  /// A block that becomes a subgraph, with the values from outside that are its inputs after its arguments.
  struct Body {
    int32_t subgraph;
    Block *block;
    SmallVector<Value> outside;
    bool passesOn = false; ///< the outside values are outputs too: the body of a loop
    func::FuncOp entry;    ///< that the block is of, if any: its variables are read first and written last
  };
  struct Tensors {
    llvm::DenseMap<Value, int32_t> values;
    struct Scaled {
      Type type;
      Attribute scales;
      Tensor value;
      int32_t number;
    };
    std::unordered_multimap<size_t, Scaled> scaled; ///< constants with the scales that an operator of a file gives them, by a hash of their bytes
    llvm::DenseMap<int64_t, int32_t> states;                     ///< by their numbers in the file
  };

  void write(const Body &body);
  void describe(RankedTensorType type, ModelWriter::TensorDesc &desc);
  void settleScales();
  void setScales(Value v, Attribute scales);
  int32_t makeTensor(Value v, int32_t subgraph, Attribute scales);
  int32_t scaledConstant(Value v, int32_t subgraph, Tensors &tensors, Attribute scales);
  int32_t tensorOf(Value v, int32_t subgraph, Tensors &tensors, Attribute scales = {});
  int32_t tensorOf(DictionaryAttr tensor, int32_t subgraph, bool isVariable);
  void writeAsIs(Operation *op, int32_t subgraph, Tensors &tensors);
  void writeOp(Operation *op, int32_t subgraph, Tensors &tensors);
  void writeWhile(hlo::WhileOp op, int32_t subgraph, Tensors &tensors);
  void writeIf(hlo::IfOp op, int32_t subgraph, Tensors &tensors);
  int32_t handleOf(StringRef variable, int32_t subgraph);
  void writeInitialValues();
  void signature(func::FuncOp function, StringRef key, int32_t subgraph);

  ModuleOp module;
  ModelWriter writer;
  SmallVector<Body> work;
  std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>> ports; ///< by subgraph
  llvm::DenseMap<Value, std::string> portNames; ///< of what entries take and give
  llvm::DenseMap<Value, Attribute> scalesOf; ///< of integers of operators that a file had, constants left out
  int32_t initialize = -1; ///< subgraph that gives variables their first values
  bool ok = true;
};

/// A constant, with or without scales: a tensor of the file, never an operator.
bool isConstantTensor(Operation *op) { return isa_and_nonnull<hlo::ConstantOp>(op) || operatorName(op) == constantOperator; }

/// Values that regions read from outside, constants left out: those are written into each subgraph.
SmallVector<Value> outsideOf(MutableArrayRef<Region> regions) {
  llvm::SetVector<Value> values;
  getUsedValuesDefinedAbove(regions, values);
  SmallVector<Value> list;
  for (Value v : values)
    if (!isConstantTensor(v.getDefiningOp()))
      list.push_back(v);
  return list;
}

/// Element type, scale and sizes of a type.
void Writer::describe(RankedTensorType type, ModelWriter::TensorDesc &desc) {
  if (auto quantized = dyn_cast<quant::UniformQuantizedType>(type.getElementType())) {
    desc.type = quantized.getStorageTypeIntegralWidth() == 16 ? DType::Int16 : quantized.isSigned() ? DType::Int8 : DType::UInt8;
    desc.scales = {float(quantized.getScale())};
    desc.zeroPoints = {quantized.getZeroPoint()};
  } else {
    desc.type = elementDType(type.getElementType());
  }
  for (int64_t d : type.getShape())
    desc.dims.push_back(ShapedType::isDynamic(d) ? -1 : d);
}

/// What a dictionary of scales says.
static void applyScales(Attribute scales, ModelWriter::TensorDesc &desc) {
  auto all = dyn_cast_or_null<DictionaryAttr>(scales);
  if (!all)
    return;
  if (auto list = all.getAs<DenseF64ArrayAttr>("scales"))
    desc.scales.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  if (auto list = all.getAs<DenseI64ArrayAttr>("zero_points"))
    desc.zeroPoints.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  if (auto dimension = all.getAs<IntegerAttr>("dimension"))
    desc.quantizedDim = int(dimension.getInt());
}

void Writer::setScales(Value v, Attribute scales) {
  if (!isa_and_nonnull<DictionaryAttr>(scales) || isConstantTensor(v.getDefiningOp()))
    return;
  Attribute &known = scalesOf[v];
  if (known && known != scales) {
    emitError(v.getLoc()) << "a tensor that has two scales has no form in a TensorFlow Lite file";
    ok = false;
  }
  known = scales;
}

/// Which scales values have by the operators of a file that make and read them; loops and branches hand them on.
void Writer::settleScales() {
  SmallVector<SmallVector<Value>> same;
  module.walk([&](Operation *op) {
    if (operatorName(op) == asIsOperator) {
      for (Attribute input : listOption(op, "inputs"))
        if (auto pair = dyn_cast<ArrayAttr>(input))
          setScales(op->getOperand(unsigned(cast<IntegerAttr>(pair[0]).getInt())), pair[1]);
      for (auto [v, scales] : llvm::zip_equal(op->getResults(), listOption(op, "outputs")))
        setScales(v, scales);
    } else if (auto loop = dyn_cast<hlo::WhileOp>(op)) {
      for (unsigned i = 0; i < op->getNumResults(); ++i)
        same.push_back({op->getResult(i), op->getOperand(i), loop.getCond().getArgument(i), loop.getBody().getArgument(i),
                        loop.getBody().front().getTerminator()->getOperand(i)});
    } else if (auto branch = dyn_cast<hlo::IfOp>(op)) {
      for (unsigned i = 0; i < op->getNumResults(); ++i)
        same.push_back({op->getResult(i), branch.getTrueBranch().front().getTerminator()->getOperand(i),
                        branch.getFalseBranch().front().getTerminator()->getOperand(i)});
    }
  });
  if (scalesOf.empty())
    return;
  for (bool changed = true; std::exchange(changed, false) && ok;)
    for (ArrayRef<Value> values : same) {
      Attribute scales;
      for (Value v : values)
        if (Attribute known = scalesOf.lookup(v))
          scales = known;
      for (Value v : values) {
        if (!scales || scalesOf.lookup(v) == scales || isConstantTensor(v.getDefiningOp()))
          continue;
        setScales(v, scales);
        changed = true;
      }
    }
}

int32_t Writer::tensorOf(DictionaryAttr tensor, int32_t subgraph, bool isVariable) {
  ModelWriter::TensorDesc desc;
  desc.type = static_cast<DType>(tensor.getAs<IntegerAttr>("type").getInt());
  auto dims = tensor.getAs<DenseI64ArrayAttr>("dims").asArrayRef();
  desc.dims.assign(dims.begin(), dims.end());
  desc.isVariable = isVariable;
  applyScales(tensor.get("quantization"), desc);
  return writer.addTensor(subgraph, std::move(desc));
}

void Writer::writeAsIs(Operation *op, int32_t subgraph, Tensors &tensors) {
  ModelWriter::OperatorDesc desc;
  describeAsIs(op, writer, desc);
  for (Attribute input : listOption(op, "inputs")) {
    if (auto pair = dyn_cast<ArrayAttr>(input)) {
      desc.inputs.push_back(tensorOf(op->getOperand(unsigned(cast<IntegerAttr>(pair[0]).getInt())), subgraph, tensors, pair[1]));
    } else if (auto state = dyn_cast<DictionaryAttr>(input)) {
      auto [at, isNew] = tensors.states.try_emplace(state.getAs<IntegerAttr>("number").getInt(), -1);
      if (isNew)
        at->second = tensorOf(state, subgraph, /*isVariable=*/true);
      desc.inputs.push_back(at->second);
    } else {
      desc.inputs.push_back(-1);
    }
  }
  for (Value v : op->getResults())
    desc.outputs.push_back(tensorOf(v, subgraph, tensors));
  for (Attribute tensor : listOption(op, "intermediates"))
    desc.intermediates.push_back(tensorOf(cast<DictionaryAttr>(tensor), subgraph, false));
  writer.addOperator(subgraph, std::move(desc));
}

/// Each step of an unrolled loop has a constant of its own for the weights that all share.
int32_t Writer::scaledConstant(Value v, int32_t subgraph, Tensors &tensors, Attribute scales) {
  auto value = hlo::readConstant(v);
  if (failed(value))
    return makeTensor(v, subgraph, scales); // which says so
  std::string_view bytes(static_cast<const char *>(value->data()), value->sizeBytes());
  const size_t hash = std::hash<std::string_view>()(bytes);
  for (auto [at, end] = tensors.scaled.equal_range(hash); at != end; ++at) {
    const Tensors::Scaled &known = at->second;
    if (known.type == v.getType() && known.scales == scales && std::memcmp(known.value.data(), value->data(), bytes.size()) == 0)
      return known.number;
  }
  const int32_t number = makeTensor(v, subgraph, scales);
  tensors.scaled.emplace(hash, Tensors::Scaled{v.getType(), scales, *value, number});
  return number;
}

int32_t Writer::tensorOf(Value v, int32_t subgraph, Tensors &tensors, Attribute scales) {
  if (isa_and_nonnull<DictionaryAttr>(scales) && isConstantTensor(v.getDefiningOp()))
    return scaledConstant(v, subgraph, tensors, scales);
  auto [at, isNew] = tensors.values.try_emplace(v, -1);
  if (isNew)
    at->second = makeTensor(v, subgraph, scalesOf.lookup(v));
  return at->second;
}

int32_t Writer::makeTensor(Value v, int32_t subgraph, Attribute scales) {
  ModelWriter::TensorDesc desc;
  auto type = cast<RankedTensorType>(v.getType());
  describe(type, desc);
  applyScales(scales, desc);
  auto given = portNames.find(v);
  desc.name = given == portNames.end() ? nameOf(v.getLoc()) : given->second;
  if (!tensorTypeOf(desc.type)) {
    emitError(v.getLoc()) << "a tensor of type " << type << " has no form in a TensorFlow Lite file";
    ok = false;
    desc.type = DType::Float32;
  }
  Operation *source = v.getDefiningOp();
  if (operatorName(source) == constantOperator) {
    if (ArrayRef<double> scales = scalesOption(source); !scales.empty()) {
      desc.scales.assign(scales.begin(), scales.end());
      desc.zeroPoints.assign(scales.size(), 0);
      desc.quantizedDim = int(intOption(source, "dimension"));
    }
    source = source->getOperand(0).getDefiningOp();
  }
  if (auto constant = dyn_cast_or_null<hlo::ConstantOp>(source)) {
    auto tensor = hlo::readConstant(constant.getValue());
    if (failed(tensor) || tensor->sizeBytes() > (int64_t(1) << 31)) {
      emitError(v.getLoc()) << "a constant of type " << type << " does not fit into a TensorFlow Lite file";
      ok = false;
    } else {
      desc.value = *tensor;
    }
  }
  return writer.addTensor(subgraph, std::move(desc));
}

void Writer::writeOp(Operation *op, int32_t subgraph, Tensors &tensors) {
  if (auto loop = dyn_cast<hlo::WhileOp>(op))
    return writeWhile(loop, subgraph, tensors);
  if (auto branch = dyn_cast<hlo::IfOp>(op))
    return writeIf(branch, subgraph, tensors);
  if (operatorName(op) == asIsOperator)
    return writeAsIs(op, subgraph, tensors);
  ModelWriter::OperatorDesc desc;
  if (!describeOperator(op, writer, desc)) {
    emitError(op->getLoc()) << op->getName() << " has no TensorFlow Lite operator";
    ok = false;
    return;
  }
  for (Value v : op->getOperands())
    desc.inputs.push_back(tensorOf(v, subgraph, tensors));
  if (operatorName(op) == "FULLY_CONNECTED" && desc.inputs.size() == 2)
    desc.inputs.push_back(-1); // no bias
  for (Value v : op->getResults())
    desc.outputs.push_back(tensorOf(v, subgraph, tensors));
  writer.addOperator(subgraph, std::move(desc));
}

void Writer::writeWhile(hlo::WhileOp op, int32_t subgraph, Tensors &tensors) {
  SmallVector<Value> outside = outsideOf(op->getRegions());
  int32_t condition = writer.addSubgraph("condition"), body = writer.addSubgraph("body");
  ports.resize(body + 1);
  work.push_back({condition, &op.getCond().front(), outside, false, {}});
  work.push_back({body, &op.getBody().front(), outside, true, {}});
  ModelWriter::OperatorDesc desc;
  desc.code = tfl::BuiltinOperator::WHILE;
  for (Value v : op.getOperands())
    desc.inputs.push_back(tensorOf(v, subgraph, tensors));
  for (Value v : op.getResults())
    desc.outputs.push_back(tensorOf(v, subgraph, tensors));
  for (Value v : outside) {
    desc.inputs.push_back(tensorOf(v, subgraph, tensors));
    ModelWriter::TensorDesc copy;
    describe(cast<RankedTensorType>(v.getType()), copy);
    applyScales(scalesOf.lookup(v), copy);
    desc.outputs.push_back(writer.addTensor(subgraph, std::move(copy)));
  }
  desc.optionsType = tfl::BuiltinOptions::WhileOptions;
  desc.options = tfl::CreateWhileOptions(writer.builder(), condition, body).Union();
  writer.addOperator(subgraph, std::move(desc));
}

void Writer::writeIf(hlo::IfOp op, int32_t subgraph, Tensors &tensors) {
  SmallVector<Value> outside = outsideOf(op->getRegions());
  int32_t yes = writer.addSubgraph("then"), no = writer.addSubgraph("else");
  ports.resize(no + 1);
  work.push_back({yes, &op.getTrueBranch().front(), outside, false, {}});
  work.push_back({no, &op.getFalseBranch().front(), outside, false, {}});
  ModelWriter::OperatorDesc desc;
  desc.code = tfl::BuiltinOperator::IF;
  desc.inputs.push_back(tensorOf(op.getPred(), subgraph, tensors));
  for (Value v : outside)
    desc.inputs.push_back(tensorOf(v, subgraph, tensors));
  for (Value v : op.getResults())
    desc.outputs.push_back(tensorOf(v, subgraph, tensors));
  desc.optionsType = tfl::BuiltinOptions::IfOptions;
  desc.options = tfl::CreateIfOptions(writer.builder(), yes, no).Union();
  writer.addOperator(subgraph, std::move(desc));
}

/// The handle of a variable, made by an operator of its own.
int32_t Writer::handleOf(StringRef variable, int32_t subgraph) {
  ModelWriter::TensorDesc desc;
  desc.name = variable.str();
  desc.type = DType::Resource;
  const int32_t handle = writer.addTensor(subgraph, std::move(desc));
  auto container = writer.builder().CreateString(""), name = writer.builder().CreateString(variable.str());
  ModelWriter::OperatorDesc op;
  op.code = tfl::BuiltinOperator::VAR_HANDLE;
  op.outputs = {handle};
  op.optionsType = tfl::BuiltinOptions::VarHandleOptions;
  op.options = tfl::CreateVarHandleOptions(writer.builder(), container, name).Union();
  writer.addOperator(subgraph, std::move(op));
  return handle;
}

/// A subgraph that assigns what each variable holds at first, which CALL_ONCE runs; 0 where the model does not say.
void Writer::writeInitialValues() {
  auto variables = module->getAttrOfType<ArrayAttr>("hlo.variables");
  if (!variables)
    return;
  initialize = writer.addSubgraph("initialize");
  ports.resize(initialize + 1);
  for (auto variable : variables.getAsRange<DictionaryAttr>()) {
    auto name = variable.getAs<StringAttr>("name");
    auto type = cast<RankedTensorType>(variable.getAs<TypeAttr>("type").getValue());
    ModelWriter::TensorDesc desc;
    describe(type, desc);
    auto value = variable.getAs<ElementsAttr>("value");
    auto tensor = value ? hlo::readConstant(value) : FailureOr<Tensor>(failure());
    if (!tensorTypeOf(desc.type) || !type.hasStaticShape() || (value && failed(tensor))) {
      emitError(module.getLoc()) << "variable '" << name.getValue() << "': state of type " << type << " has no form in a TensorFlow Lite file";
      ok = false;
      continue;
    }
    if (!value) {
      auto zeros = Tensor::tryAllocate(desc.type, desc.dims, int64_t(1) << 31);
      if (!zeros.ok()) {
        emitError(module.getLoc()) << "variable '" << name.getValue() << "' does not fit into a TensorFlow Lite file";
        ok = false;
        continue;
      }
      std::memset(zeros->data(), 0, zeros->sizeBytes());
      tensor = *zeros;
    }
    desc.value = *tensor;
    ModelWriter::OperatorDesc op;
    op.code = tfl::BuiltinOperator::ASSIGN_VARIABLE;
    op.inputs = {handleOf(name.getValue(), initialize), writer.addTensor(initialize, std::move(desc))};
    writer.addOperator(initialize, std::move(op));
  }
}

void Writer::write(const Body &body) {
  Tensors tensors;
  std::vector<int32_t> inputs, outputs;
  llvm::StringMap<int32_t> handles;
  auto handle = [&](StringRef variable) {
    auto [at, isNew] = handles.try_emplace(variable, -1);
    if (isNew)
      at->second = handleOf(variable, body.subgraph);
    return at->second;
  };
  func::FuncOp entry = body.entry;
  if (entry && initialize >= 0) {
    ModelWriter::OperatorDesc once;
    once.code = tfl::BuiltinOperator::CALL_ONCE;
    once.optionsType = tfl::BuiltinOptions::CallOnceOptions;
    once.options = tfl::CreateCallOnceOptions(writer.builder(), initialize).Union();
    writer.addOperator(body.subgraph, std::move(once));
  }
  for (BlockArgument v : body.block->getArguments()) {
    const int32_t tensor = tensorOf(v, body.subgraph, tensors);
    auto variable = entry ? entry.getArgAttrOfType<StringAttr>(v.getArgNumber(), variableAttr) : StringAttr();
    if (!variable) {
      inputs.push_back(tensor);
      continue;
    }
    ModelWriter::OperatorDesc read;
    read.code = tfl::BuiltinOperator::READ_VARIABLE;
    read.inputs = {handle(variable.getValue())};
    read.outputs = {tensor};
    writer.addOperator(body.subgraph, std::move(read));
  }
  for (Value v : body.outside)
    inputs.push_back(tensorOf(v, body.subgraph, tensors));
  for (Operation &op : body.block->without_terminator())
    if (!isConstantTensor(&op))
      writeOp(&op, body.subgraph, tensors);
  for (auto [i, v] : llvm::enumerate(body.block->getTerminator()->getOperands())) {
    const int32_t tensor = tensorOf(v, body.subgraph, tensors);
    auto variable = entry ? entry.getResultAttrOfType<StringAttr>(i, variableAttr) : StringAttr();
    if (!variable) {
      outputs.push_back(tensor);
      continue;
    }
    ModelWriter::OperatorDesc assign;
    assign.code = tfl::BuiltinOperator::ASSIGN_VARIABLE;
    assign.inputs = {handle(variable.getValue()), tensor};
    writer.addOperator(body.subgraph, std::move(assign));
  }
  if (body.passesOn)
    for (Value v : body.outside)
      outputs.push_back(tensorOf(v, body.subgraph, tensors));
  ports[body.subgraph] = {inputs, outputs};
  writer.setPorts(body.subgraph, std::move(inputs), std::move(outputs));
}

void Writer::signature(func::FuncOp function, StringRef key, int32_t subgraph) {
  auto &[inputTensors, outputTensors] = ports[subgraph];
  ModelWriter::Names inputs, outputs;
  auto nameFrom = [&](DictionaryAttr attributes, const char *kind, unsigned i) {
    auto name = attributes ? attributes.getAs<StringAttr>("hlo.name") : StringAttr();
    return name ? name.getValue().str() : kind + std::to_string(i);
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (!function.getArgAttr(i, variableAttr))
      inputs.emplace_back(nameFrom(function.getArgAttrDict(i), "input_", i), inputTensors[inputs.size()]);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (!function.getResultAttr(i, variableAttr))
      outputs.emplace_back(nameFrom(function.getResultAttrDict(i), "output_", i), outputTensors[outputs.size()]);
  writer.addSignature(key.str(), subgraph, std::move(inputs), std::move(outputs));
}

FailureOr<std::string> Writer::run(ArrayRef<SignatureName> signatures) {
  SmallVector<std::pair<func::FuncOp, int32_t>> entries;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    int32_t subgraph = writer.addSubgraph(function.getName().str());
    ports.resize(subgraph + 1);
    entries.emplace_back(function, subgraph);
    auto nameOfPort = [&](DictionaryAttr attributes, Value v) {
      if (auto name = attributes ? attributes.getAs<StringAttr>("hlo.tensor") : StringAttr())
        portNames.try_emplace(v, name.getValue().str());
    };
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      nameOfPort(function.getArgAttrDict(i), function.getArgument(i));
    for (auto [i, v] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands()))
      nameOfPort(function.getResultAttrDict(i), v);
  }
  settleScales();
  for (auto &[function, subgraph] : entries)
    work.push_back({subgraph, &function.getBody().front(), {}, false, function});
  writeInitialValues();
  for (size_t i = 0; i < work.size(); ++i) {
    Body body = work[i]; // writing adds more
    write(body);
  }
  for (auto &[function, subgraph] : entries) {
    StringRef key = function.getName();
    for (const SignatureName &s : signatures)
      if (s.function == key)
        key = s.key;
    signature(function, key, subgraph);
  }
  if (!ok)
    return failure();
  auto bytes = writer.finish("Lathe");
  if (!bytes.ok()) {
    emitError(module.getLoc()) << std::string(bytes.status().message());
    return failure();
  }
  return std::move(*bytes);
}

} // namespace

FailureOr<std::string> writeModel(ModuleOp module, ArrayRef<SignatureName> signatures) { return Writer(module).run(signatures); }

} // namespace lathe::tflwrite
