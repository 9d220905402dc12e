// Types of hlo come from hlo's own inference, over sizes that may be expressions; shape functions say what TensorFlow says of the same
// node. Both have to agree on all that both know as a number, but for functions that repeat an attribute (output_shapes of loops): a graph
// that runs on inputs of other sizes than it was made with contradicts those, and TensorFlow does not look at them then either.
#include "passes/legalize/ShapeCheck.h"

#include "dialects/graph/NodeShapes.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Larger constants are not read.
constexpr int64_t kMostElements = 256;

std::vector<int64_t> known(LegalizeContext &ctx, ArrayRef<AffineExpr> dims) {
  std::vector<int64_t> out;
  for (AffineExpr e : dims)
    out.push_back(e ? constantOf(ctx.resolve(e)).value_or(-1) : -1);
  return out;
}

ops::PartialShape shapeOf(LegalizeContext &ctx, const GraphValue &value) {
  if (!value.isTensor())
    return std::nullopt;
  if (value.tensor)
    return known(ctx, hlo::getDims(cast<RankedTensorType>(value.tensor.getType())));
  return std::vector<int64_t>(value.sizesShape.begin(), value.sizesShape.end());
}

class LoweredQuery : public graph::NodeQuery {
public:
  LoweredQuery(LegalizeContext &ctx, graph::NodeOp node) : NodeQuery(node), ctx(ctx) {
    for (Value operand : node.getInputs())
      inputs.push_back(ctx.lookup(operand));
  }

  ops::PartialShape inputShape(int i) const override { return i < numInputs() ? shapeOf(ctx, inputs[i]) : std::nullopt; }

  std::optional<ops::PartialValues> inputValues(int i) const override {
    if (i >= numInputs() || !inputs[i].isTensor() || !inputs[i].sizes)
      return NodeQuery::inputValues(i);
    if (inputs[i].sizesShape.size() > 1)
      return std::nullopt;
    ops::PartialValues out;
    for (AffineExpr e : *inputs[i].sizes)
      out.push_back(constantOf(ctx.resolve(e)));
    return out;
  }

  ops::PartialShape handleShape(int i) const override {
    if (i >= numInputs())
      return std::nullopt;
    const GraphValue &value = inputs[i];
    if (value.kind == GraphValue::Kind::List && value.list.elementDims)
      return known(ctx, *value.list.elementDims);
    if (value.kind != GraphValue::Kind::Variable)
      return std::nullopt;
    auto contents = ctx.state.find(value.name);
    return contents == ctx.state.end() ? std::nullopt : shapeOf(ctx, contents->second);
  }

protected:
  std::optional<Tensor> constantInput(int i) const override {
    Value tensor = inputs[i].isTensor() ? inputs[i].tensor : Value();
    if (!tensor || !tensor.getDefiningOp<hlo::ConstantOp>() || cast<RankedTensorType>(tensor.getType()).getNumElements() > kMostElements)
      return std::nullopt;
    return ctx.fold(tensor);
  }

private:
  LegalizeContext &ctx;
  GraphValues inputs;
};

} // namespace

LogicalResult verifyShapes(LegalizeContext &ctx, graph::NodeOp node) {
  auto error = [&] {
    ctx.sawError = true;
    return emitError(node.getLoc()) << "node '" << node.getNodeName() << "' (" << node.getOp() << "): ";
  };
  LoweredQuery query(ctx, node);
  if (!query.isValid())
    return success();
  absl::StatusOr<ops::InferredShapes> inferred = ops::inferShapes(query);
  // Handlers refuse what kernels refuse. Functions are stricter with some ops, since TensorFlow asks them before shapes are known: a
  // padding of one element is no scalar, but a run may have it.
  if (!inferred.ok())
    return success();
  for (auto [i, output] : llvm::enumerate(node.getOutputs())) {
    ops::PartialShape found = shapeOf(ctx, ctx.lookup(output));
    if (!ops::mergeShapes(found, inferred->outputs[i]).ok())
      return error() << "output " << i << " has shape " << ops::shapeToString(found) << ", expected "
                     << ops::shapeToString(inferred->outputs[i]);
  }
  return success();
}

} // namespace lathe::legalize
