#include "dialects/graph/NodeShapes.h"

#include "dialects/graph/Types.h"

#include "absl/strings/numbers.h"

using namespace mlir;
using llvm::StringRef;

namespace lathe::graph {
namespace {

ops::PartialShape decoded(Attribute attr) {
  auto shape = dyn_cast_or_null<ShapeAttr>(attr);
  if (!shape || !shape.getRanked())
    return std::nullopt;
  std::vector<int64_t> dims(shape.getDims().begin(), shape.getDims().end());
  for (int64_t &d : dims)
    d = std::max<int64_t>(d, -1);
  return dims;
}

DType typeOf(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return type ? toDType(type.getElementType()) : DType::Invalid;
}

std::vector<int64_t> integersOf(const Tensor &tensor) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    out.push_back(tensor.dtype() == DType::Int32 ? tensor.data<int32_t>()[i] : tensor.data<int64_t>()[i]);
  return out;
}

bool isIndex(DType type) { return type == DType::Int32 || type == DType::Int64; }

} // namespace

ops::PartialShape shapeOf(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return std::nullopt;
  std::vector<int64_t> dims;
  for (int64_t d : ranked.getShape())
    dims.push_back(ShapedType::isDynamic(d) ? -1 : d);
  return dims;
}

NodeQuery::NodeQuery(NodeOp node) : node(node), info(ops::findOp(std::string_view(node.getOp().data(), node.getOp().size()))) {
  fits = info && count(info->inputs, numInputs(), &inputCounts) && count(info->outputs, numOutputs(), &outputCounts);
}

bool NodeQuery::count(const std::vector<ops::Arg> &args, int total, std::vector<int> *counts) const {
  int64_t rest = total;
  for (const ops::Arg &arg : args) {
    int64_t n = 1;
    if (!arg.numberAttr.empty()) {
      n = intAttr(arg.numberAttr);
    } else if (!arg.typeListAttr.empty()) {
      auto types = dyn_cast_or_null<ArrayAttr>(attr(arg.typeListAttr));
      n = types ? static_cast<int64_t>(types.size()) : 0;
    }
    if (n < 0 || n > rest)
      return false;
    rest -= n;
    counts->push_back(static_cast<int>(n));
  }
  return rest == 0;
}

std::pair<int, int> NodeQuery::rangeOf(const std::vector<ops::Arg> &args, const std::vector<int> &counts, std::string_view arg) {
  int first = 0;
  for (size_t i = 0; i < args.size(); first += counts[i++])
    if (args[i].name == arg)
      return {first, counts[i]};
  return {-1, 0};
}

DType NodeQuery::inputType(int i) const { return typeOf(node.getInputs()[i]); }
DType NodeQuery::outputType(int i) const { return typeOf(node.getOutputs()[i]); }

ops::PartialShape NodeQuery::inputShape(int i) const {
  return i < numInputs() ? shapeOf(node.getInputs()[i].getType()) : std::nullopt;
}

std::optional<ops::PartialValues> NodeQuery::inputValues(int i) const {
  std::optional<Tensor> tensor = i < numInputs() ? constantInput(i) : std::nullopt;
  if (tensor && isIndex(tensor->dtype()) && tensor->dims().size() <= 1) {
    std::vector<int64_t> values = integersOf(*tensor);
    return ops::PartialValues(values.begin(), values.end());
  }
  // so many elements, none of which is known
  constexpr int64_t kMost = 1024;
  ops::PartialShape shape = inputShape(i);
  const int64_t count = ops::numElements(shape);
  if (shape && shape->size() <= 1 && count >= 0 && count <= kMost && isIndex(inputType(i)))
    return ops::PartialValues(static_cast<size_t>(count));
  return std::nullopt;
}

std::optional<std::vector<int64_t>> NodeQuery::matrixValues(int i) const {
  std::optional<Tensor> tensor = i < numInputs() ? constantInput(i) : std::nullopt;
  if (!tensor || !isIndex(tensor->dtype()) || tensor->dims().size() != 2)
    return std::nullopt;
  return integersOf(*tensor);
}

std::optional<double> NodeQuery::numberValue(int i) const {
  std::optional<Tensor> tensor = i < numInputs() ? constantInput(i) : std::nullopt;
  if (!tensor || !tensor->dims().empty())
    return std::nullopt;
  if (isIndex(tensor->dtype()))
    return static_cast<double>(integersOf(*tensor)[0]);
  if (tensor->dtype() == DType::Float32)
    return tensor->data<float>()[0];
  if (tensor->dtype() == DType::Float64)
    return tensor->data<double>()[0];
  return std::nullopt;
}

std::string_view NodeQuery::defaultOf(std::string_view name) const {
  const ops::Attr *known = info ? info->findAttr(name) : nullptr;
  return known && known->hasDefault ? known->defaultText : std::string_view();
}

int64_t NodeQuery::intAttr(std::string_view name) const {
  Attribute value = attr(name);
  if (auto number = dyn_cast_or_null<IntegerAttr>(value))
    return number.getType().isSignlessInteger(64) ? number.getInt() : 0;
  int64_t number = 0;
  std::string_view text = value ? std::string_view() : defaultOf(name);
  return absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &number) ? number : 0;
}

bool NodeQuery::boolAttr(std::string_view name) const {
  Attribute value = attr(name);
  if (auto flag = dyn_cast_or_null<BoolAttr>(value))
    return flag.getValue();
  return !value && defaultOf(name) == "true";
}

std::string NodeQuery::stringAttr(std::string_view name) const {
  Attribute value = attr(name);
  if (auto text = dyn_cast_or_null<StringAttr>(value))
    return text.getValue().str();
  std::string_view text = value ? std::string_view() : defaultOf(name);
  return !text.empty() && text.front() == '"' ? ops::unquote(text) : std::string();
}

std::vector<std::string> NodeQuery::stringsAttr(std::string_view name) const {
  std::vector<std::string> out;
  if (auto list = dyn_cast_or_null<ArrayAttr>(attr(name)))
    for (Attribute element : list)
      if (auto text = dyn_cast<StringAttr>(element))
        out.push_back(text.getValue().str());
  return out;
}

std::vector<int64_t> NodeQuery::intsAttr(std::string_view name) const {
  std::vector<int64_t> out;
  if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(attr(name)))
    out.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
  else if (auto list = dyn_cast_or_null<ArrayAttr>(attr(name)))
    for (Attribute element : list)
      if (auto number = dyn_cast<IntegerAttr>(element))
        out.push_back(number.getInt());
  return out;
}

double NodeQuery::floatAttr(std::string_view name) const {
  Attribute value = attr(name);
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    return number.getValueAsDouble();
  double number = 0;
  std::string_view text = value ? std::string_view() : defaultOf(name);
  return absl::SimpleAtod(absl::string_view(text.data(), text.size()), &number) ? number : 0;
}

std::vector<float> NodeQuery::floatsAttr(std::string_view name) const {
  std::vector<float> out;
  if (auto list = dyn_cast_or_null<ArrayAttr>(attr(name)))
    for (Attribute element : list)
      if (auto number = dyn_cast<FloatAttr>(element))
        out.push_back(static_cast<float>(number.getValueAsDouble()));
  return out;
}

ops::PartialShape NodeQuery::shapeAttr(std::string_view name) const { return decoded(attr(name)); }

std::vector<ops::PartialShape> NodeQuery::shapesAttr(std::string_view name) const {
  std::vector<ops::PartialShape> out;
  if (auto list = dyn_cast_or_null<ArrayAttr>(attr(name)))
    for (Attribute element : list)
      out.push_back(decoded(element));
  return out;
}

ops::PartialShape NodeQuery::tensorShapeAttr(std::string_view name) const {
  if (auto value = dyn_cast_or_null<ElementsAttr>(attr(name)))
    return shapeOf(value.getType());
  if (auto strings = dyn_cast_or_null<StringsAttr>(attr(name)))
    return shapeOf(strings.getType());
  return std::nullopt;
}

} // namespace lathe::graph
