#include "compiler/hosted/HostShapes.h"

#include "dialects/graph/NodeShapes.h"
#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "ops/SizeValues.h"

using namespace mlir;

namespace lathe::hosted {
namespace {

constexpr int64_t kMostElements = 254;
constexpr int kMaxHandles = 64; // nodes asked for what is behind one node's handles: each may ask several times
constexpr int kMaxDepth = 32;   // of integers that are computed from integers
constexpr int kMaxValues = 256; // nodes that are looked at for the values of one input: paths can be exponentially many

/// What a Const holds, unless it is large.
std::optional<Tensor> constantOf(graph::NodeOp node) {
  auto elements = node && node.getOp() == "Const" ? dyn_cast_or_null<ElementsAttr>(node.getNodeAttr("value")) : ElementsAttr();
  if (!elements || elements.getNumElements() > kMostElements)
    return std::nullopt;
  FailureOr<Tensor> tensor = hlo::readConstant(elements);
  return succeeded(tensor) ? std::optional<Tensor>(*std::move(tensor)) : std::nullopt;
}

bool isIndex(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return type && (type.getElementType().isSignlessInteger(32) || type.getElementType().isSignlessInteger(64));
}

/// Integers that follow from constants and shapes: a node as SizeArithmetic sees it.
class SizeNode : public ops::PartialElements {
public:
  using Sizes = std::optional<ops::SizeTensor<Element>>;

  SizeNode(graph::NodeOp node, int depth, int *visits) : query(node), node(node), depth(depth), visits(visits) {}

  static Sizes read(Value value, int depth, int *visits) {
    auto result = dyn_cast<OpResult>(value);
    auto maker = result ? dyn_cast<graph::NodeOp>(result.getOwner()) : graph::NodeOp();
    if (!isIndex(value) || depth > kMaxDepth || ++*visits > kMaxValues)
      return std::nullopt;
    Sizes out;
    if (maker) {
      SizeNode made(maker, depth, visits);
      if (made.query.isValid() && result.getResultNumber() < maker.getOutputs().size())
        out = ops::sizeValue(made, static_cast<int>(result.getResultNumber()));
    }
    // what a 32-bit tensor cannot hold is not its value
    if (out && cast<ShapedType>(value.getType()).getElementType().isInteger(32))
      for (Element &e : out->elements)
        if (e && (*e > INT32_MAX || *e < INT32_MIN))
          e.reset();
    // so many elements, none of which is known
    ops::PartialShape shape = graph::shapeOf(value.getType());
    if (int64_t count = ops::numElements(shape); !out && shape && shape->size() <= 1 && count >= 0 && count <= kMostElements)
      out = ops::SizeTensor<Element>{std::vector<Element>(static_cast<size_t>(count)), *shape};
    return out;
  }

  size_t limit() const { return kMostElements; }
  std::string_view op() {
    StringRef name = node.getOp();
    return {name.data(), name.size()};
  }
  int numInputs() const { return query.numInputs(); }
  int numOutputs() const { return query.numOutputs(); }
  int64_t intAttr(std::string_view name) const { return query.intAttr(name); }
  bool boolAttr(std::string_view name) const { return query.boolAttr(name); }
  std::vector<int64_t> intsAttr(std::string_view name) const { return query.intsAttr(name); }
  Sizes input(int i) { return read(node.getInputs()[i], depth + 1, visits); }
  Sizes constant() const {
    std::optional<Tensor> tensor = constantOf(node);
    if (!tensor || (tensor->dtype() != DType::Int32 && tensor->dtype() != DType::Int64))
      return std::nullopt;
    ops::SizeTensor<Element> out{{}, tensor->dims()};
    for (int64_t i = 0; i < tensor->numElements(); ++i)
      out.elements.push_back(tensor->dtype() == DType::Int32 ? tensor->data<int32_t>()[i] : tensor->data<int64_t>()[i]);
    return out;
  }
  std::optional<std::vector<Element>> dims(int i) const {
    ops::PartialShape shape = query.op().touchesResources() ? std::nullopt : query.inputShape(i);
    return shape ? std::optional<std::vector<Element>>(ofShape(*shape)) : std::nullopt;
  }
  std::optional<std::vector<int64_t>> outputShape() const { return std::nullopt; }

private:
  graph::NodeQuery query;
  graph::NodeOp node;
  const int depth;
  int *const visits;
};

class HostQuery : public graph::NodeQuery {
public:
  HostQuery(graph::NodeOp node, int *visits) : NodeQuery(node), visits(visits) {}

  /// Of what made the handle.
  ops::PartialShape handleShape(int i) const override {
    auto result = i < numInputs() ? dyn_cast<OpResult>(node.getInputs()[i]) : OpResult();
    auto maker = result ? dyn_cast<graph::NodeOp>(result.getOwner()) : graph::NodeOp();
    if (!maker || ++*visits > kMaxHandles || result.getResultNumber() >= maker.getOutputs().size())
      return std::nullopt;
    HostQuery query(maker, visits);
    if (!query.isValid())
      return std::nullopt;
    absl::StatusOr<ops::InferredShapes> shapes = ops::inferShapes(query);
    return shapes.ok() ? shapes->handles[result.getResultNumber()] : std::nullopt;
  }

  std::optional<ops::PartialValues> inputValues(int i) const override {
    int nodes = 0;
    SizeNode::Sizes values = i < numInputs() ? SizeNode::read(node.getInputs()[i], 0, &nodes) : std::nullopt;
    return values && values->shape.size() <= 1 ? std::optional<ops::PartialValues>(std::move(values->elements)) : std::nullopt;
  }

protected:
  std::optional<Tensor> constantInput(int i) const override { return constantOf(node.getInputs()[i].getDefiningOp<graph::NodeOp>()); }

private:
  int *const visits;
};

/// What a run can be counted on for, where the function is about all runs that TensorFlow allows.
void adjust(graph::NodeOp node, std::vector<ops::PartialShape> &out) {
  auto input = [&](unsigned i) { return i < node.getInputs().size() ? graph::shapeOf(node.getInputs()[i].getType()) : std::nullopt; };
  StringRef op = node.getOp();
  if (ops::is(op, ops::Flag::Merge) && !out[0]) {
    out[0] = input(0); // what comes back in a loop is not known yet, and like what went in
  } else if ((op == "LookupTableFind" || op == "LookupTableFindV2") && !out[0] && isa<BlockArgument>(node.getInputs()[0])) {
    out[0] = input(1); // tables that come from outside hold scalars
  } else if (op == "DecodeGif") {
    out[0] = std::vector<int64_t>(4, -1); // a PNG or JPEG file's own channels
  }
}

} // namespace

void inferHostShapes(graph::NodeOp node) {
  int visits = 0;
  HostQuery query(node, &visits);
  if (node.getOutputs().empty() || !query.isValid())
    return;
  absl::StatusOr<ops::InferredShapes> shapes = ops::inferShapes(query);
  if (!shapes.ok()) // the kernel says so, if the node is run
    return;
  adjust(node, shapes->outputs);
  for (auto [value, shape] : llvm::zip_equal(node.getOutputs(), shapes->outputs))
    if (auto type = dyn_cast<UnrankedTensorType>(value.getType()); type && shape && shape->size() <= 254)
      value.setType(graph::makeTensorType(type.getElementType(), shape));
}

} // namespace lathe::hosted
