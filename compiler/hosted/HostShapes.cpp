#include "compiler/hosted/HostShapes.h"

#include "dialects/graph/NodeShapes.h"
#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "ops/Flags.h"

using namespace mlir;

namespace lathe::hosted {
namespace {

constexpr int64_t kMostElements = 254;
constexpr int kMaxHandles = 64; // nodes asked for what is behind one node's handles: each may ask several times

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

protected:
  std::optional<Tensor> constantInput(int i) const override {
    auto maker = node.getInputs()[i].getDefiningOp<graph::NodeOp>();
    auto elements = maker && maker.getOp() == "Const" ? dyn_cast_or_null<ElementsAttr>(maker.getNodeAttr("value")) : ElementsAttr();
    if (!elements || elements.getNumElements() > kMostElements)
      return std::nullopt;
    FailureOr<Tensor> tensor = hlo::readConstant(elements);
    return succeeded(tensor) ? std::optional<Tensor>(*std::move(tensor)) : std::nullopt;
  }

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
