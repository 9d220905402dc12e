// Inputs and attributes of one node for its handler.
#include "passes/legalize/NodeContext.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/ShapeBounds.h"
#include "passes/legalize/SizeReader.h"

using namespace mlir;

namespace lathe::legalize {

NodeContext::NodeContext(LegalizeContext &context, graph::NodeOp node)
    : Emitter(context, node.getLoc(), node.getNodeName()), ctx(context), node(node) {
  for (Value operand : node.getInputs())
    inputs.push_back(context.lookup(operand));
  done.resize(node.getOutputs().size());
}

LogicalResult NodeContext::error(const llvm::Twine &text) {
  ctx.sawError = true;
  return emitError(loc) << "node '" << nodeName << "' (" << op() << "): " << text;
}

Value NodeContext::input(unsigned i) {
  if (i >= inputs.size()) {
    (void)error("input " + llvm::Twine(i) + " is missing");
    return {};
  }
  Value v = ctx.materialize(inputs[i], loc);
  if (!v)
    (void)error("input " + llvm::Twine(i) + " is no tensor: no compiled form");
  return v;
}

SmallVector<Value> NodeContext::inputValues(unsigned from) {
  SmallVector<Value> values;
  for (unsigned i = from; i < inputs.size(); ++i)
    values.push_back(input(i));
  return values;
}

std::optional<Dims> NodeContext::trySizes(unsigned i) {
  if (i >= inputs.size())
    return std::nullopt;
  if (inputs[i].isTensor() && inputs[i].sizes)
    return ctx.resolve(*inputs[i].sizes);
  Value v = ctx.materialize(inputs[i], loc);
  if (!v || !elementType(v).isSignlessInteger() || !type(v).hasStaticShape() || type(v).getNumElements() > 4096)
    return std::nullopt;
  std::optional<Tensor> t = ctx.fold(v);
  if (!t || (t->dtype() != DType::Int32 && t->dtype() != DType::Int64))
    return std::nullopt;
  Dims result;
  for (int64_t k = 0; k < t->numElements(); ++k)
    result.push_back(size(t->dtype() == DType::Int64 ? t->data<int64_t>()[k] : t->data<int32_t>()[k]));
  return result;
}

FailureOr<Dims> NodeContext::shapeInput(unsigned i) {
  auto sizes = boundedSizes(*this, i);
  for (AffineExpr n : sizes ? *sizes : Dims())
    if (!constantOf(n) && !hlo::isNonNegative(n)) { // as part of something larger it would leave too little for the other parts
      Type i64 = b.getI64Type();
      check(compare(Compare::GE, sizeValue(n, i64), scalarInt(0, i64)), "a size is negative");
    }
  if (sizes)
    return *sizes;
  return error("input " + llvm::Twine(i) + " must be known at compile time, up to sizes of inputs");
}

FailureOr<Tensor> NodeContext::constantInput(unsigned i) {
  Value v = input(i);
  if (!v)
    return failure();
  if (auto t = ctx.fold(v))
    return *t;
  return error("input " + llvm::Twine(i) + " must be a compile-time constant");
}

FailureOr<SmallVector<int64_t>> NodeContext::constantInts(unsigned i) {
  std::optional<Dims> sizes = trySizes(i);
  SmallVector<int64_t> result;
  if (sizes) {
    for (AffineExpr e : *sizes) {
      auto c = constantOf(e);
      if (!c)
        return error("input " + llvm::Twine(i) + " must be a compile-time constant");
      result.push_back(*c);
    }
    return result;
  }
  FailureOr<Tensor> t = constantInput(i);
  if (failed(t))
    return failure();
  for (int64_t k = 0; k < t->numElements(); ++k) {
    switch (t->dtype()) {
    case DType::Int8: result.push_back(t->data<int8_t>()[k]); break;
    case DType::UInt8: result.push_back(t->data<uint8_t>()[k]); break;
    case DType::Int16: result.push_back(t->data<int16_t>()[k]); break;
    case DType::UInt16: result.push_back(t->data<uint16_t>()[k]); break;
    case DType::Int32: result.push_back(t->data<int32_t>()[k]); break;
    case DType::UInt32: result.push_back(t->data<uint32_t>()[k]); break;
    case DType::Int64: result.push_back(t->data<int64_t>()[k]); break;
    case DType::UInt64: result.push_back(int64_t(t->data<uint64_t>()[k])); break;
    case DType::Bool: result.push_back(t->data<uint8_t>()[k]); break;
    default: return error("input " + llvm::Twine(i) + " must be of an integer type");
    }
  }
  return result;
}

/// The only element of input i.
template <typename T, unsigned n>
static FailureOr<T> onlyOne(NodeContext &c, unsigned i, const FailureOr<SmallVector<T, n>> &values) {
  if (failed(values))
    return failure();
  if (values->size() != 1)
    return c.error("input " + llvm::Twine(i) + " must be a scalar");
  return values->front();
}

FailureOr<int64_t> NodeContext::constantInt(unsigned i) { return onlyOne(*this, i, constantInts(i)); }

FailureOr<AffineExpr> NodeContext::sizeInput(unsigned i) {
  // a number that may be negative, as where a range begins
  if (auto sizes = boundedSizes(*this, i))
    return onlyOne(*this, i, FailureOr<Dims>(*sizes));
  return onlyOne(*this, i, shapeInput(i));
}

std::optional<int64_t> NodeContext::constantIfKnown(unsigned i) {
  auto sizes = trySizes(i);
  return sizes && sizes->size() == 1 ? constantOf((*sizes)[0]) : std::nullopt;
}

FailureOr<int64_t> NodeContext::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return error("axis " + llvm::Twine(axis) + " is out of range for rank " + llvm::Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

FailureOr<int64_t> NodeContext::axisInput(unsigned i, int64_t rank) {
  auto axis = constantInt(i);
  if (failed(axis))
    return failure();
  return normalizeAxis(*axis, rank);
}

FailureOr<SmallVector<int64_t>> NodeContext::axesInput(unsigned i, int64_t rank) {
  auto axes = constantInts(i);
  if (failed(axes))
    return failure();
  for (int64_t &axis : *axes) {
    auto normal = normalizeAxis(axis, rank);
    if (failed(normal))
      return failure();
    axis = *normal;
  }
  llvm::sort(*axes);
  if (std::adjacent_find(axes->begin(), axes->end()) != axes->end())
    return error("an axis is given twice");
  return axes;
}

LogicalResult NodeContext::expectRank(unsigned i, int64_t rank) {
  Value v = input(i);
  if (!v)
    return failure();
  if (this->rank(v) != rank)
    return error("expected input " + llvm::Twine(i) + " of rank " + llvm::Twine(rank) + ", found rank " +
                 llvm::Twine(this->rank(v)));
  return success();
}

bool NodeContext::attrBool(StringRef attr, bool otherwise) {
  auto a = node.getNodeAttr<BoolAttr>(attr);
  return a ? a.getValue() : otherwise;
}

int64_t NodeContext::attrInt(StringRef attr, int64_t otherwise) {
  auto a = node.getNodeAttr<IntegerAttr>(attr);
  return a && a.getType().isSignlessInteger(64) ? a.getInt() : otherwise;
}

double NodeContext::attrFloat(StringRef attr, double otherwise) {
  auto a = node.getNodeAttr<FloatAttr>(attr);
  return a ? a.getValueAsDouble() : otherwise;
}

StringRef NodeContext::attrString(StringRef attr, StringRef otherwise) {
  auto a = node.getNodeAttr<StringAttr>(attr);
  return a ? a.getValue() : otherwise;
}

SmallVector<int64_t> NodeContext::attrInts(StringRef attr, ArrayRef<int64_t> otherwise) {
  SmallVector<int64_t> result;
  Attribute a = node.getNodeAttr(attr);
  if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(a)) {
    result.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
  } else if (auto list = dyn_cast_or_null<ArrayAttr>(a)) {
    for (Attribute e : list)
      if (auto i = dyn_cast<IntegerAttr>(e))
        result.push_back(i.getInt());
  } else {
    result.assign(otherwise.begin(), otherwise.end());
  }
  return result;
}

Type NodeContext::attrType(StringRef attr) {
  auto a = node.getNodeAttr<TypeAttr>(attr);
  return a ? a.getValue() : Type();
}

std::optional<SmallVector<int64_t>> NodeContext::attrShape(StringRef attr) {
  auto a = node.getNodeAttr<graph::ShapeAttr>(attr);
  if (!a || !a.getRanked())
    return std::nullopt;
  return SmallVector<int64_t>(a.getDims());
}

Type NodeContext::resultType(unsigned i) { return cast<TensorType>(node.getOutputs()[i].getType()).getElementType(); }

LogicalResult NodeContext::setResult(unsigned i, Value v) {
  if (!v)
    return failure();
  if (!llvm::all_of(hlo::getDims(type(v)), [](AffineExpr d) { return bool(d); }))
    return error("the sizes that result " + llvm::Twine(i) + " depends on must be known at compile time");
  return setResult(i, GraphValue::ofTensor(v));
}

LogicalResult NodeContext::setResult(unsigned i, GraphValue v) {
  if (i >= done.size())
    return error("result " + llvm::Twine(i) + " does not exist");
  if (v.isTensor()) {
    Type is = v.tensor ? elementType(v.tensor) : v.elementType;
    if (isa<IndexType>(is))
      return failure(); // stands for a value that an error was told of
    if (is != resultType(i)) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "result " << i << " has element type " << is << ", the graph says " << resultType(i);
      return error(text);
    }
  }
  done[i] = std::move(v);
  return success();
}

} // namespace lathe::legalize
