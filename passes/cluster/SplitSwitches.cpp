//===- SplitSwitches.cpp - choices among many as choices of two -----------===//
//
// Before: _SwitchN, which TensorFlow makes of a Case node where functions are inlined, and Merges of as many inputs.
// After: for each branch but the last a Switch that asks whether it is the one, its data the other side of the one before; Merges
// of two inputs, nested in the same order. An index without a branch takes the last one, as in TensorFlow.
//
//===----------------------------------------------------------------------===//
#include "passes/cluster/Outline.h"
#include "passes/cluster/Passes.h"

#include "dialects/graph/Types.h"

#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"

#include <map>

using namespace mlir;

namespace lathe::cluster {

#define GEN_PASS_DEF_SPLITSWITCHES
#include "passes/cluster/Passes.h.inc"

namespace {

class SplitSwitches : public impl::SplitSwitchesBase<SplitSwitches> {
  void runOnOperation() override;
  void split(graph::NodeOp node);
  void nest(graph::NodeOp merge);
  Value isBranch(graph::NodeOp node, int branch);

  std::map<std::pair<void *, int>, Value> asked; ///< by index and branch, so that all Switches of a branch have one predicate
};

Location partLoc(graph::NodeOp node, const Twine &part, StringRef op) {
  StringRef name = graph::getNodeName(node.getLoc());
  return graph::makeNodeLoc(node.getContext(), (name + "/" + part).str(), op);
}

DictionaryAttr typeAttr(OpBuilder &b, StringRef name, Value of) {
  return b.getDictionaryAttr(b.getNamedAttr(name, TypeAttr::get(cast<TensorType>(of.getType()).getElementType())));
}

} // namespace

/// A scalar that says whether a node's index is `branch`.
Value SplitSwitches::isBranch(graph::NodeOp node, int branch) {
  Value index = node.getInputs()[1];
  // a graph may hold a circle of them
  for (int hops = 0; hops < 1000 && isOp(index, "Identity"); ++hops)
    index = cast<graph::NodeOp>(index.getDefiningOp()).getInputs()[0];
  Value &known = asked[{index.getAsOpaquePointer(), branch}];
  if (known)
    return known;
  OpBuilder b(node);
  Value number = indexConstant(b, partLoc(node, "branch_" + Twine(branch), "Const"), branch);
  known = graph::NodeOp::create(b, partLoc(node, "is_" + Twine(branch), "Equal"), UnrankedTensorType::get(b.getI1Type()), "Equal",
                                ValueRange{node.getInputs()[1], number}, ValueRange(), typeAttr(b, "T", number))
              .getOutputs()[0];
  return known;
}

void SplitSwitches::split(graph::NodeOp node) {
  OpBuilder b(node);
  const int branches = int(node.getOutputs().size());
  Value data = node.getInputs()[0], control;
  ValueRange controls = node.getControls();
  if (branches == 1) {
    auto only = graph::NodeOp::create(b, node.getLoc(), node.getOutputs()[0].getType(), "Identity", data, controls, typeAttr(b, "T", data));
    node.getOutputs()[0].replaceAllUsesWith(only.getOutputs()[0]);
    control = only.getControl();
  }
  for (int branch = 0; branch + 1 < branches; ++branch) {
    Value predicate = isBranch(node, branch);
    Type types[] = {node.getOutputs()[unsigned(branch) + 1].getType(), node.getOutputs()[unsigned(branch)].getType()};
    auto choice = graph::NodeOp::create(b, partLoc(node, Twine(branch), "Switch"), types, "Switch", ValueRange{data, predicate}, controls,
                                        typeAttr(b, "T", data));
    node.getOutputs()[unsigned(branch)].replaceAllUsesWith(choice.getOutputs()[1]);
    data = choice.getOutputs()[0];
    controls = {}; // the others run behind this one
    if (!control)
      control = choice.getControl();
  }
  if (branches > 1)
    node.getOutputs().back().replaceAllUsesWith(data);
  node.getControl().replaceAllUsesWith(control);
  node.erase();
}

void SplitSwitches::nest(graph::NodeOp merge) {
  OpBuilder b(merge);
  ValueRange inputs = merge.getInputs();
  Value rest = inputs.back();
  for (size_t i = inputs.size() - 1; i-- > 0;) {
    const bool last = i == 0;
    NamedAttrList attrs(typeAttr(b, "T", rest));
    attrs.set("N", b.getI64IntegerAttr(2));
    Location loc = last ? merge.getLoc() : partLoc(merge, Twine(i), "Merge");
    auto pair = graph::NodeOp::create(b, loc, merge.getOutputs().getTypes(), "Merge", ValueRange{inputs[i], rest},
                                      last ? ValueRange(merge.getControls()) : ValueRange(), attrs.getDictionary(b.getContext()));
    rest = pair.getOutputs()[0];
    if (last) {
      merge.getOutputs()[0].replaceAllUsesWith(rest);
      merge.getControl().replaceAllUsesWith(pair.getControl());
    }
  }
  merge.erase();
}

void SplitSwitches::runOnOperation() {
  for (graph::FuncOp func : getOperation().getOps<graph::FuncOp>()) {
    Block &body = func.getBody().front();
    SmallVector<graph::NodeOp> switches, merges;
    for (graph::NodeOp node : body.getOps<graph::NodeOp>()) {
      const bool fits = node.getInputs().size() == 2 && !node.getOutputs().empty();
      if (fits && node.getOp() == "_SwitchN")
        switches.push_back(node);
      else if (node.getOp() == "Merge" && node.getInputs().size() > 2 && node.getOutputs()[1].use_empty())
        merges.push_back(node); // whoever asks which input it was has them counted
    }
    if (switches.empty())
      continue;
    asked.clear();
    for (graph::NodeOp node : switches)
      split(node);
    for (graph::NodeOp merge : merges)
      nest(merge);
    numSwitches += switches.size();
  }
}

} // namespace lathe::cluster
