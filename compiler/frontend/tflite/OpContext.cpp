// Inputs, types and results of one operator for its translation.
#include "compiler/frontend/tflite/OpContext.h"

#include "compiler/frontend/tflite/Translator.h"

using namespace mlir;

namespace lathe::tflite {

OpContext::OpContext(Translator &translator, unsigned subgraph, const tfl::Operator &op, Location loc, StringRef name)
    : Emitter(translator, loc, name), translator(translator), op(op), code(ModelFile::builtin(translator.file.code(op))),
      version(translator.file.code(op).version()), opName(ModelFile::opName(translator.file.code(op))),
      subgraph(subgraph) {
  results.resize(numOutputs());
}

const void *OpContext::noOptions() {
  // a table whose virtual table has no entry: every field has its default
  alignas(8) static const uint8_t bytes[] = {4, 0, 4, 0, 4, 0, 0, 0};
  return bytes + 4;
}

LogicalResult OpContext::error(const Twine &text) {
  ctx.sawError = true;
  return emitError(loc) << "node '" << nodeName << "' (" << opName << "): " << text;
}

const TensorInfo &OpContext::inputInfo(unsigned i) const {
  static const TensorInfo none;
  return hasInput(i) ? translator.file.tensor(subgraph, op.inputs()->Get(i)) : none;
}

const TensorInfo &OpContext::outputInfo(unsigned i) const {
  static const TensorInfo none;
  return i < numOutputs() ? translator.file.tensor(subgraph, op.outputs()->Get(i)) : none;
}

const TensorInfo &OpContext::intermediateInfo(unsigned i) const {
  static const TensorInfo none;
  return i < numIntermediates() && op.intermediates()->Get(i) >= 0 ? translator.file.tensor(subgraph, op.intermediates()->Get(i)) : none;
}

const TensorInfo &OpContext::infoOf(unsigned tensor) const { return translator.file.tensor(subgraph, tensor); }

Type OpContext::elementOf(const TensorInfo &info) {
  Type element = toElementType(b.getContext(), dtypeOf(info.type));
  return element ? element : b.getI8Type();
}

Value OpContext::input(unsigned i) {
  if (!hasInput(i)) {
    (void)error("input " + Twine(i) + " is missing");
    return {};
  }
  Value v = ctx.materialize(inputs[i], loc);
  if (!v)
    (void)error("input " + Twine(i) + " is no tensor of numbers");
  return v;
}

std::optional<Dims> OpContext::sizesOf(const GraphValue &value) {
  if (value.isTensor() && value.sizes)
    return ctx.resolve(*value.sizes);
  Value v = ctx.materialize(value, loc);
  if (!v || !type(v).hasStaticShape() || type(v).getNumElements() > 4096)
    return std::nullopt;
  std::optional<Tensor> t = ctx.fold(v);
  if (!t)
    return std::nullopt;
  Dims result;
  for (int64_t k = 0; k < t->numElements(); ++k)
    switch (t->dtype()) {
    case DType::Int8: result.push_back(size(t->data<int8_t>()[k])); break;
    case DType::UInt8: result.push_back(size(t->data<uint8_t>()[k])); break;
    case DType::Int16: result.push_back(size(t->data<int16_t>()[k])); break;
    case DType::Int32: result.push_back(size(t->data<int32_t>()[k])); break;
    case DType::Int64: result.push_back(size(t->data<int64_t>()[k])); break;
    default: return std::nullopt;
    }
  return result;
}

FailureOr<Dims> OpContext::shapeInput(unsigned i) {
  if (!hasInput(i))
    return error("input " + Twine(i) + " is missing");
  if (auto sizes = sizesOf(inputs[i]))
    return *sizes;
  return error("input " + Twine(i) + " must be known at compile time, up to sizes of inputs");
}

FailureOr<Tensor> OpContext::constantInput(unsigned i) {
  Value v = input(i);
  if (!v)
    return failure();
  if (auto t = ctx.fold(v))
    return *t;
  return error("input " + Twine(i) + " must be a constant");
}

FailureOr<SmallVector<int64_t>> OpContext::constantInts(unsigned i) {
  FailureOr<Dims> sizes = shapeInput(i);
  if (failed(sizes))
    return failure();
  SmallVector<int64_t> result;
  for (AffineExpr e : *sizes) {
    auto c = constantOf(e);
    if (!c)
      return error("input " + Twine(i) + " must be a constant");
    result.push_back(*c);
  }
  return result;
}

FailureOr<int64_t> OpContext::constantInt(unsigned i) {
  auto values = constantInts(i);
  if (failed(values))
    return failure();
  if (values->size() != 1)
    return error("input " + Twine(i) + " must have one element, has " + Twine(values->size()));
  return values->front();
}

FailureOr<int64_t> OpContext::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return error("axis " + Twine(axis) + " is out of range for rank " + Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

bool OpContext::isFloatInput(unsigned i) const { return inputInfo(i).type == tfl::TensorType::FLOAT32; }

bool OpContext::isQuantized(const TensorInfo &info) {
  switch (info.type) {
  case tfl::TensorType::INT8:
  case tfl::TensorType::UINT8:
  case tfl::TensorType::INT16:
  case tfl::TensorType::INT4: // a byte each once they are read
  case tfl::TensorType::INT2: return bool(info.quantization);
  default: return false;
  }
}

LogicalResult OpContext::typeError(unsigned i) {
  return error("type " + typeName(inputInfo(i).type) + (inputInfo(i).quantization ? " with scales" : "") + " of input " +
               Twine(i) + " is not supported");
}

FailureOr<std::pair<float, int64_t>> OpContext::perTensor(const TensorInfo &info) {
  if (info.quantization.isOther || !info.quantization.perTensor())
    return error("tensor '" + import::printable(info.name) + "' must have one scale, has " +
                 Twine(info.quantization.scales.size()));
  if (info.quantization.scales[0] == 0)
    return error("tensor '" + import::printable(info.name) + "' has scale 0");
  return std::make_pair(info.quantization.scales[0], info.quantization.zeroPoints[0]);
}

LogicalResult OpContext::setResult(unsigned i, Value v) {
  if (!v)
    return failure();
  return setResult(i, GraphValue::ofTensor(v));
}

LogicalResult OpContext::setResult(unsigned i, GraphValue v) {
  if (i >= results.size())
    return success(); // nobody asked for it
  if (v.isTensor()) {
    Type is = v.tensor ? elementType(v.tensor) : v.elementType;
    if (isa<IndexType>(is))
      return failure(); // stands for a value that an error was told of
    if (is != elementOf(outputInfo(i))) {
      std::string text;
      llvm::raw_string_ostream(text) << is;
      return error("result " + Twine(i) + " has element type " + text + ", the file says " + typeName(outputInfo(i).type));
    }
  }
  results[i] = std::move(v);
  return success();
}

FailureOr<GraphValues> OpContext::call(StringRef op, ArrayRef<GraphValue> inputs, ArrayRef<NamedAttribute> attrs,
                                       ArrayRef<Type> elements) {
  SmallVector<Type> own;
  if (elements.empty()) {
    for (unsigned i = 0; i < numOutputs(); ++i)
      own.push_back(elementOf(outputInfo(i)));
    elements = own;
  }
  return translator.lowerOp(op, loc, inputs, attrs, elements);
}

Value OpContext::call1(StringRef op, ArrayRef<Value> inputs, ArrayRef<NamedAttribute> attrs, Type element) {
  GraphValues values;
  for (Value v : inputs) {
    if (!v)
      return {};
    values.push_back(GraphValue::ofTensor(v));
  }
  auto result = call(op, values, attrs, element ? ArrayRef<Type>(element) : ArrayRef<Type>());
  return failed(result) ? Value() : ctx.materialize(result->front(), loc);
}

Value OpContext::activate(Value v, Activation activation) {
  if (!v)
    return v;
  switch (activation) {
  case Activation::NONE: return v;
  case Activation::RELU: return max(v, like(v, 0));
  case Activation::RELU6: return min(max(v, like(v, 0)), like(v, 6));
  case Activation::RELU_N1_TO_1: return min(max(v, like(v, -1)), like(v, 1));
  case Activation::TANH: return unary<hlo::TanhOp>(v);
  default:
    (void)error("fused activation " + Twine(int(activation)) + " is not supported");
    return {};
  }
}

} // namespace lathe::tflite
