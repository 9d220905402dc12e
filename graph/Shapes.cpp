#include "graph/Shapes.h"
#include "ops/SizeValues.h"

#include "absl/strings/str_cat.h"

namespace lathe::graphdef {
namespace {

constexpr int kMaxDepth = 32;         // of values that follow from values
constexpr int kMaxVisits = 2048;      // of nodes, for one value
constexpr int64_t kMaxValues = 1024;  // of one tensor
constexpr int64_t kMaxConstBytes = 1 << 16;

bool isIndex(DType type) { return type == DType::Int32 || type == DType::Int64; }

/// What a Const holds, unless it is large.
std::optional<Tensor> constantOf(Endpoint e) {
  const tf::AttrValue *value = e.node && e.node->op() == "Const" ? e.node->attr("value") : nullptr;
  if (!value || value->tensor().tensor_shape().dim_size() > 2)
    return std::nullopt;
  auto tensor = decodeTensor(value->tensor(), kMaxConstBytes);
  return tensor.ok() && tensor->numElements() <= kMaxValues ? std::optional<Tensor>(*std::move(tensor)) : std::nullopt;
}

std::vector<int64_t> integersOf(const Tensor &tensor) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    out.push_back(tensor.dtype() == DType::Int32 ? tensor.data<int32_t>()[i] : tensor.data<int64_t>()[i]);
  return out;
}

std::optional<double> realOf(const Tensor &scalar) {
  switch (scalar.dtype()) {
  case DType::Int32:
  case DType::Int64:
    return static_cast<double>(integersOf(scalar)[0]);
  case DType::Float32:
    return scalar.data<float>()[0];
  case DType::Float64:
    return scalar.data<double>()[0];
  default:
    return std::nullopt;
  }
}

class Query : public ops::ShapeQuery {
public:
  Query(const Node *node, const Shapes &shapes) : node(node), shapes(shapes) {}
  const ops::OpInfo &op() const override { return node->info(); }
  int numInputs() const override { return node->numInputs(); }
  int numOutputs() const override { return node->numOutputs(); }
  std::pair<int, int> inputRange(std::string_view arg) const override { return node->inputRange(arg); }
  std::pair<int, int> outputRange(std::string_view arg) const override { return node->outputRange(arg); }
  DType inputType(int i) const override { return node->inputType(i); }
  DType outputType(int i) const override { return node->outputType(i); }
  PartialShape inputShape(int i) const override {
    return i < node->numInputs() ? shapes.shape(node->input(i)) : std::nullopt;
  }
  std::optional<ops::PartialValues> inputValues(int i) const override {
    return i < node->numInputs() ? shapes.values(node->input(i)) : std::nullopt;
  }
  std::optional<std::vector<int64_t>> matrixValues(int i) const override {
    auto tensor = i < node->numInputs() ? constantOf(node->input(i)) : std::nullopt;
    if (!tensor || tensor->dims().size() != 2 || !isIndex(tensor->dtype()))
      return std::nullopt;
    return integersOf(*tensor);
  }
  std::optional<double> numberValue(int i) const override {
    auto tensor = i < node->numInputs() ? constantOf(node->input(i)) : std::nullopt;
    return tensor && tensor->dims().empty() ? realOf(*tensor) : std::nullopt;
  }
  PartialShape handleShape(int i) const override {
    return i < node->numInputs() ? shapes.handleShape(node->input(i)) : std::nullopt;
  }
  int64_t intAttr(std::string_view name) const override { return node->intAttr(name); }
  bool boolAttr(std::string_view name) const override { return node->boolAttr(name); }
  std::string stringAttr(std::string_view name) const override { return node->stringAttr(name); }
  std::vector<int64_t> intsAttr(std::string_view name) const override { return node->intsAttr(name); }
  std::vector<std::string> stringsAttr(std::string_view name) const override {
    const tf::AttrValue *value = node->attr(name);
    return value ? std::vector<std::string>(value->list().s().begin(), value->list().s().end()) : std::vector<std::string>();
  }
  double floatAttr(std::string_view name) const override { return node->floatAttr(name); }
  std::vector<float> floatsAttr(std::string_view name) const override {
    const tf::AttrValue *value = node->attr(name);
    return value ? std::vector<float>(value->list().f().begin(), value->list().f().end()) : std::vector<float>();
  }
  PartialShape shapeAttr(std::string_view name) const override {
    const tf::AttrValue *value = node->attr(name);
    return value && value->value_case() == tf::AttrValue::kShape ? decoded(value->shape()) : std::nullopt;
  }
  std::vector<PartialShape> shapesAttr(std::string_view name) const override {
    std::vector<PartialShape> out;
    if (const tf::AttrValue *value = node->attr(name))
      for (const tf::TensorShapeProto &shape : value->list().shape())
        out.push_back(decoded(shape));
    return out;
  }
  PartialShape tensorShapeAttr(std::string_view name) const override {
    const tf::AttrValue *value = node->attr(name);
    return value && value->value_case() == tf::AttrValue::kTensor ? decoded(value->tensor().tensor_shape()) : std::nullopt;
  }

private:
  static PartialShape decoded(const tf::TensorShapeProto &proto) {
    auto shape = decodeShape(proto);
    return shape.ok() ? *shape : std::nullopt;
  }
  const Node *const node;
  const Shapes &shapes;
};

using Size = std::optional<int64_t>;
using Sizes = std::optional<ops::SizeTensor<Size>>;

/// Follows integers through constants, shapes, and what graphs do with them. Paths can be exponentially many, so visits are counted.
class ValueReader {
public:
  explicit ValueReader(const Shapes &shapes) : shapes(shapes) {}

  Sizes read(Endpoint e, int depth);

private:
  friend class ReadNode;
  const Shapes &shapes;
  int visits = 0;
};

/// A node as SizeArithmetic sees it; an element is a number or unknown.
class ReadNode : public ops::PartialElements {
public:
  ReadNode(ValueReader &reader, Endpoint e, int depth) : reader(reader), e(e), node(e.node), depth(depth) {}

  size_t limit() const { return kMaxValues; }
  std::string_view op() const { return node->op(); }
  int numInputs() const { return node->numInputs(); }
  int numOutputs() const { return node->numOutputs(); }
  int64_t intAttr(std::string_view name) const { return node->intAttr(name); }
  bool boolAttr(std::string_view name) const { return node->boolAttr(name); }
  std::vector<int64_t> intsAttr(std::string_view name) const { return node->intsAttr(name); }
  Sizes input(int i) { return reader.read(node->input(i), depth + 1); }
  Sizes constant() const {
    auto tensor = constantOf({node, 0});
    if (!tensor)
      return std::nullopt;
    std::vector<int64_t> values = integersOf(*tensor);
    return ops::SizeTensor<Size>{{values.begin(), values.end()}, tensor->dims()};
  }
  std::optional<std::vector<Size>> dims(int i) const {
    if (i >= node->numInputs())
      return std::nullopt;
    const Endpoint from = node->input(i);
    PartialShape shape = node->info().touchesResources() ? reader.shapes.handleShape(from) : reader.shapes.shape(from);
    return shape ? std::optional<std::vector<Size>>(ofShape(*shape)) : std::nullopt;
  }
  std::optional<std::vector<int64_t>> outputShape() const { return reader.shapes.shape(e); }

private:
  ValueReader &reader;
  const Endpoint e;
  Node *const node;
  const int depth;
};

Sizes ValueReader::read(Endpoint e, int depth) {
  if (!e.node || depth > kMaxDepth || ++visits > kMaxVisits || !isIndex(e.type()))
    return std::nullopt;
  ReadNode node(*this, e, depth);
  Sizes out = ops::sizeValue(node, e.index);
  // what a 32-bit tensor cannot hold is not its value
  if (out && e.type() == DType::Int32)
    for (Size &value : out->elements)
      if (value && (*value > INT32_MAX || *value < INT32_MIN))
        value.reset();
  // so many elements, none of which is known
  PartialShape s = shapes.shape(e);
  if (!out && s && s->size() <= 1 && (s->empty() || ((*s)[0] >= 0 && (*s)[0] <= kMaxValues)))
    out = ops::SizeTensor<Size>{std::vector<Size>(s->empty() ? 1 : static_cast<size_t>((*s)[0])), *s};
  return out;
}

PartialShape find(const std::unordered_map<const Node *, ops::InferredShapes> &known, Endpoint e,
                  std::vector<PartialShape> ops::InferredShapes::*which) {
  auto it = known.find(e.node);
  if (it == known.end())
    return std::nullopt;
  const std::vector<PartialShape> &shapes = it->second.*which;
  return e.index < 0 || e.index >= static_cast<int>(shapes.size()) ? std::nullopt : shapes[e.index];
}

} // namespace

PartialShape Shapes::shape(Endpoint e) const { return find(known, e, &ops::InferredShapes::outputs); }

PartialShape Shapes::handleShape(Endpoint e) const { return find(known, e, &ops::InferredShapes::handles); }

absl::Status Shapes::merge(Endpoint e, const PartialShape &shape) {
  std::vector<PartialShape> &shapes = known[e.node].outputs;
  shapes.resize(static_cast<size_t>(e.node->numOutputs()));
  auto merged = ops::mergeShapes(shapes[e.index], shape);
  if (!merged.ok())
    return merged.status();
  shapes[e.index] = *std::move(merged);
  return absl::OkStatus();
}

absl::Status Shapes::add(const Node *node) {
  auto shapes = ops::inferShapes(Query(node, *this));
  if (!shapes.ok())
    return atNode(node->name(), node->op(), shapes.status());
  known[node] = *std::move(shapes);
  return absl::OkStatus();
}

std::optional<ops::PartialValues> Shapes::values(Endpoint e) const {
  Sizes found = ValueReader(*this).read(e, 0);
  return found && found->shape.size() <= 1 ? std::optional<ops::PartialValues>(std::move(found->elements)) : std::nullopt;
}

} // namespace lathe::graphdef
