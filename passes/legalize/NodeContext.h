// What a handler sees of the node it translates: inputs as hlo values, attributes, results to set.
#ifndef LATHE_PASSES_LEGALIZE_NODECONTEXT_H
#define LATHE_PASSES_LEGALIZE_NODECONTEXT_H

#include "passes/legalize/Emitter.h"
#include "passes/legalize/HandlerTable.h"
#include "passes/legalize/LegalizeContext.h"

namespace lathe::legalize {

class NodeContext : public Emitter {
public:
  NodeContext(LegalizeContext &context, graph::NodeOp node);

  /// The same as Emitter::ctx, with the graph.
  LegalizeContext &ctx;
  graph::NodeOp node;
  StringRef op() { return node.getOp(); }
  StringRef name() { return nodeName; }
  unsigned numInputs() const { return inputs.size(); }
  unsigned numResults() { return node.getOutputs().size(); }

  /// Input i as a tensor. Handlers registered with `add` may count on it; those with `addAnyKind` get null and an error
  /// for other kinds.
  Value input(unsigned i);
  SmallVector<Value> inputValues(unsigned from = 0);
  const GraphValue &value(unsigned i) const { return inputs[i]; }
  /// Input i computed at compile time, or an error that says which input has to be constant.
  FailureOr<Tensor> constantInput(unsigned i);
  /// The same as integers in row-major order.
  FailureOr<SmallVector<int64_t>> constantInts(unsigned i);
  FailureOr<int64_t> constantInt(unsigned i);
  /// A known integer scalar, without an error where it is not.
  std::optional<int64_t> constantIfKnown(unsigned i);
  /// An integer tensor whose elements may depend on symbolic sizes.
  FailureOr<Dims> shapeInput(unsigned i);
  /// The same of one element, a size.
  FailureOr<AffineExpr> sizeInput(unsigned i);
  /// Without an error where it is not known.
  std::optional<Dims> trySizes(unsigned i);

  /// Axis or axes in [-rank, rank), made non-negative; duplicates are an error.
  FailureOr<SmallVector<int64_t>> axesInput(unsigned i, int64_t rank);
  FailureOr<int64_t> axisInput(unsigned i, int64_t rank);
  FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank);

  /// Input i must have this rank; an error otherwise.
  LogicalResult expectRank(unsigned i, int64_t rank);

  //===--- attributes; the default is what TensorFlow's op definition says ---===//
  bool attrBool(StringRef attr, bool otherwise = false);
  int64_t attrInt(StringRef attr, int64_t otherwise = 0);
  double attrFloat(StringRef attr, double otherwise = 0);
  StringRef attrString(StringRef attr, StringRef otherwise = "");
  SmallVector<int64_t> attrInts(StringRef attr, ArrayRef<int64_t> otherwise = {});
  /// An element type attribute, or null.
  Type attrType(StringRef attr);
  /// A shape attribute: nullopt for unknown rank or no attribute, -1 for unknown sizes.
  std::optional<SmallVector<int64_t>> attrShape(StringRef attr);
  mlir::Attribute attr(StringRef attr) { return node.getNodeAttr(attr); }
  /// The element type that the graph says result i has.
  Type resultType(unsigned i);

  /// Sets a result; a null value is an error that has been reported.
  LogicalResult setResult(unsigned i, Value v);
  LogicalResult setResult(unsigned i, GraphValue v);
  bool hasResult(unsigned i) { return bool(done[i]); }
  /// Whether anything reads result i.
  bool resultUsed(unsigned i) { return !node.getOutputs()[i].use_empty(); }

  LogicalResult error(const llvm::Twine &text) override;

private:
  friend class LegalizeContext;
  GraphValues inputs;
  std::vector<std::optional<GraphValue>> done;
};

} // namespace lathe::legalize

#endif
