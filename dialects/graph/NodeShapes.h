// Shapes of what nodes of the graph dialect give, by the functions of ops/Shapes.h.
#ifndef LATHE_DIALECTS_GRAPH_NODESHAPES_H
#define LATHE_DIALECTS_GRAPH_NODESHAPES_H

#include "base/Tensor.h"
#include "dialects/graph/Graph.h"
#include "ops/Shapes.h"

namespace lathe::graph {

/// A node as shape functions see it. What is known of its inputs is the types of operands here, and what Const nodes hold, as far as
/// a derived class can read it.
class NodeQuery : public ops::ShapeQuery {
public:
  explicit NodeQuery(NodeOp node);
  /// False for calls of functions and other nodes without an entry in the op table, and where attributes and operands do not fit it.
  bool isValid() const { return fits; }

  const ops::OpInfo &op() const override { return *info; }
  int numInputs() const override { return static_cast<int>(node.getInputs().size()); }
  int numOutputs() const override { return static_cast<int>(node.getOutputs().size()); }
  std::pair<int, int> inputRange(std::string_view arg) const override { return rangeOf(info->inputs, inputCounts, arg); }
  std::pair<int, int> outputRange(std::string_view arg) const override { return rangeOf(info->outputs, outputCounts, arg); }
  DType inputType(int i) const override;
  DType outputType(int i) const override;
  ops::PartialShape inputShape(int i) const override;
  std::optional<ops::PartialValues> inputValues(int i) const override;
  std::optional<std::vector<int64_t>> matrixValues(int i) const override;
  std::optional<double> numberValue(int i) const override;
  ops::PartialShape handleShape(int) const override { return std::nullopt; }
  int64_t intAttr(std::string_view name) const override;
  bool boolAttr(std::string_view name) const override;
  std::string stringAttr(std::string_view name) const override;
  std::vector<std::string> stringsAttr(std::string_view name) const override;
  std::vector<int64_t> intsAttr(std::string_view name) const override;
  double floatAttr(std::string_view name) const override;
  std::vector<float> floatsAttr(std::string_view name) const override;
  ops::PartialShape shapeAttr(std::string_view name) const override;
  std::vector<ops::PartialShape> shapesAttr(std::string_view name) const override;
  ops::PartialShape tensorShapeAttr(std::string_view name) const override;

protected:
  /// The value of an input that is a small constant.
  virtual std::optional<Tensor> constantInput(int) const { return std::nullopt; }
  mutable NodeOp node; // MLIR's accessors are not const

private:
  mlir::Attribute attr(std::string_view name) const { return node.getNodeAttr(llvm::StringRef(name.data(), name.size())); }
  /// The text of the op's default for an attribute that the node lacks.
  std::string_view defaultOf(std::string_view name) const;
  /// How many values each argument has; false where that does not make the `total`.
  bool count(const std::vector<ops::Arg> &args, int total, std::vector<int> *counts) const;
  static std::pair<int, int> rangeOf(const std::vector<ops::Arg> &args, const std::vector<int> &counts, std::string_view arg);

  const ops::OpInfo *const info;
  std::vector<int> inputCounts, outputCounts;
  bool fits = false;
};

/// The sizes of a type: -1 for a dynamic one.
ops::PartialShape shapeOf(mlir::Type type);

} // namespace lathe::graph

#endif
