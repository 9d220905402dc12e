#include "graph/Shapes.h"
#include "ops/Flags.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

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

std::optional<ops::PartialValues> constantValues(const Node *node) {
  auto tensor = isIndex(node->outputType(0)) ? constantOf({const_cast<Node *>(node), 0}) : std::nullopt;
  if (!tensor || tensor->dims().size() > 1)
    return std::nullopt;
  std::vector<int64_t> values = integersOf(*tensor);
  return ops::PartialValues(values.begin(), values.end());
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

using Values = std::optional<ops::PartialValues>;

/// Follows integers through constants, shapes, and what graphs do with them. Paths can be exponentially many, so visits are counted.
class ValueReader {
public:
  explicit ValueReader(const Shapes &shapes) : shapes(shapes) {}

  Values read(Endpoint e, int depth) {
    if (!e.node || depth > kMaxDepth || ++visits > kMaxVisits || !isIndex(e.type()))
      return std::nullopt;
    Values out = compute(e, depth);
    // what a 32-bit tensor cannot hold is not its value
    if (out && e.type() == DType::Int32)
      for (auto &value : *out)
        if (value && (*value > INT32_MAX || *value < INT32_MIN))
          value.reset();
    PartialShape s = shapes.shape(e);
    if (!out && s && s->size() <= 1 && (s->empty() || ((*s)[0] >= 0 && (*s)[0] <= kMaxValues)))
      out.emplace(s->empty() ? 1 : static_cast<size_t>((*s)[0]));
    return out;
  }

private:
  static ops::PartialValues one(std::optional<int64_t> value) { return ops::PartialValues{value}; }

  Values compute(Endpoint e, int depth) {
    const Node *node = e.node;
    const std::string &op = node->op();
    auto input = [&](int i) { return read(node->input(i), depth + 1); };
    if (op == "Const")
      return constantValues(node);
    if (ops::is(op, ops::Flag::Passes) && e.index < node->numInputs())
      return input(e.index);
    if (op == "Cast")
      return node->numInputs() == 1 ? input(0) : std::nullopt;
    if (ops::is(op, ops::Flag::Sizes))
      return ofShape(op, shapes.shape(node->input(e.index)));
    if (op == "VariableShape")
      return ofShape(op, shapes.handleShape(node->input(0)));
    if (op == "Pack" || op == "ConcatV2")
      return joined(node, depth);
    if (op == "StridedSlice" && node->numInputs() == 4)
      return sliced(node, input(0), input(1), input(2), input(3));
    if (op == "Mul" && node->numInputs() == 2)
      return elementwise(input(0), input(1), [](int64_t a, int64_t b, int64_t *r) { return !__builtin_mul_overflow(a, b, r); });
    if ((op == "Add" || op == "AddV2") && node->numInputs() == 2)
      return elementwise(input(0), input(1), [](int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); });
    if (op == "Sub" && node->numInputs() == 2)
      return elementwise(input(0), input(1), [](int64_t a, int64_t b, int64_t *r) { return !__builtin_sub_overflow(a, b, r); });
    if (op == "Prod" && node->numInputs() == 2 && !node->boolAttr("keep_dims"))
      return product(node, input(0), input(1));
    if (op == "ExpandDims" || op == "Reshape" || op == "Squeeze") {
      PartialShape s = shapes.shape(e), from = shapes.shape(node->input(0));
      return s && s->size() <= 1 && from && from->size() <= 1 ? input(0) : std::nullopt;
    }
    return std::nullopt;
  }

  static Values ofShape(const std::string &op, const PartialShape &shape) {
    if (op == "Rank")
      return one(shape ? std::optional<int64_t>(shape->size()) : std::nullopt);
    if (op == "Size") {
      int64_t count = 1;
      bool isKnown = shape.has_value();
      for (int64_t dim : shape.value_or(std::vector<int64_t>()))
        isKnown = isKnown && dim >= 0 && !__builtin_mul_overflow(count, dim, &count);
      return one(isKnown ? std::optional<int64_t>(count) : std::nullopt);
    }
    if (!shape)
      return std::nullopt;
    ops::PartialValues out;
    for (int64_t dim : *shape)
      out.push_back(dim < 0 ? std::optional<int64_t>() : std::optional<int64_t>(dim));
    return out;
  }

  /// The parts of a vector one behind the other; each has to have a known number of elements.
  Values joined(const Node *node, int depth) {
    const size_t rank = node->op() == "Pack" ? 0 : 1;
    const int64_t n = node->intAttr("N");
    ops::PartialValues out;
    for (int i = 0; i < n && i < node->numInputs(); ++i) {
      PartialShape s = shapes.shape(node->input(i));
      Values part = read(node->input(i), depth + 1);
      if (!s || s->size() != rank || !part || static_cast<int64_t>(out.size() + part->size()) > kMaxValues)
        return std::nullopt;
      out.insert(out.end(), part->begin(), part->end());
    }
    return out;
  }

  /// A plain stretch, or one element, of a vector.
  Values sliced(const Node *node, const Values &from, const Values &begin, const Values &end, const Values &step) {
    PartialShape s = shapes.shape(node->input(0));
    bool isPlain = from && begin && end && step && s && s->size() == 1 && begin->size() == 1 && end->size() == 1 && step->size() == 1;
    if (!isPlain || (node->intAttr("ellipsis_mask") | node->intAttr("new_axis_mask")) || (*step)[0] != std::optional<int64_t>(1))
      return std::nullopt;
    const int64_t n = static_cast<int64_t>(from->size());
    auto place = [&](std::optional<int64_t> at, bool isMasked, int64_t otherwise) -> std::optional<int64_t> {
      if (isMasked)
        return otherwise;
      return at ? std::optional<int64_t>(std::clamp<int64_t>(*at < 0 ? *at + n : *at, 0, n)) : std::nullopt;
    };
    auto first = place((*begin)[0], node->intAttr("begin_mask") & 1, 0), last = place((*end)[0], node->intAttr("end_mask") & 1, n);
    if (node->intAttr("shrink_axis_mask") & 1)
      return first && *first < n ? Values(one((*from)[*first])) : std::nullopt;
    if (!first || !last)
      return std::nullopt;
    ops::PartialValues out;
    for (int64_t i = *first; i < *last; ++i)
      out.push_back((*from)[i]);
    return out;
  }

  /// Of a vector, over its one axis.
  Values product(const Node *node, const Values &all, const Values &axes) {
    PartialShape s = shapes.shape(node->input(0));
    if (!s || s->size() != 1 || !all || !axes || axes->size() != 1 || !(*axes)[0] || (*(*axes)[0] != 0 && *(*axes)[0] != -1))
      return std::nullopt;
    std::optional<int64_t> total = 1;
    for (auto value : *all) {
      int64_t next;
      total = total && value && !__builtin_mul_overflow(*total, *value, &next) ? std::optional<int64_t>(next) : std::nullopt;
    }
    return one(total);
  }

  /// A single element goes with all of the other side.
  template <typename F>
  static Values elementwise(const Values &a, const Values &b, F f) {
    if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1))
      return std::nullopt;
    ops::PartialValues out(a->size() == 1 ? b->size() : a->size());
    for (size_t i = 0; i < out.size(); ++i) {
      auto x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
      int64_t result;
      if (x && y && f(*x, *y, &result))
        out[i] = result;
    }
    return out;
  }

  const Shapes &shapes;
  int visits = 0;
};

} // namespace

namespace {

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

std::optional<ops::PartialValues> Shapes::values(Endpoint e) const { return ValueReader(*this).read(e, 0); }

} // namespace lathe::graphdef
