// State of the translation graph.node -> hlo that outlives one node: what every graph value became, arrays, scopes of
// function bodies.
#ifndef LATHE_PASSES_LEGALIZE_LEGALIZECONTEXT_H
#define LATHE_PASSES_LEGALIZE_LEGALIZECONTEXT_H

#include "dialects/graph/Graph.h"
#include "passes/legalize/HloContext.h"

namespace lathe::legalize {

class HandlerTable;

/// What is fixed about a TensorArray when it is made; its contents are state.
struct ArrayInfo {
  mlir::Type elementType;
  std::optional<Dims> elementDims;
  mlir::AffineExpr length;
  /// Of which array it holds the gradient (writes add), and the name that tells gradients apart.
  int64_t source = -1;
  std::string sourceName;
};

class LegalizeContext : public HloContext {
public:
  LegalizeContext(mlir::ModuleOp module, const HandlerTable &handlers);

  bool checkShapes = false; ///< LegalizeOptions

  const HandlerTable &handlers;

  //===--- values ----------------------------------------------------------===//

  /// Looks a graph value up in the body under translation.
  GraphValue lookup(mlir::Value graphValue);
  void assign(mlir::Value graphValue, GraphValue value);

  //===--- state -----------------------------------------------------------===//

  std::vector<ArrayInfo> arrays;
  /// The key in `state` of a TensorArray's contents, and the contents that it starts with.
  llvm::StringRef arrayKey(int64_t array);
  ListValue newArrayContents(int64_t array);

  //===--- bodies ----------------------------------------------------------===//

  /// Translates the body of a graph function at the builder's place.
  mlir::LogicalResult lowerBody(graph::FuncOp func, llvm::ArrayRef<GraphValue> args,
                                llvm::SmallVectorImpl<GraphValue> &results);
  /// The function of an attribute, or null.
  graph::FuncOp lookupFunction(mlir::Attribute attr);
  /// Translates one public function to a func.func.
  mlir::LogicalResult lowerEntry(graph::FuncOp entry);
  /// What TensorFlow's op `op` makes of values, at the builder's place: for frontends of other formats. An error at `loc`
  /// (which holds the node's name) if it has no compiled form with these.
  mlir::FailureOr<GraphValues> lowerOp(llvm::StringRef op, mlir::Location loc, llvm::ArrayRef<GraphValue> inputs,
                                       llvm::ArrayRef<mlir::NamedAttribute> attrs, llvm::ArrayRef<mlir::Type> resultElements);

protected:
  void replaced(mlir::Value from, mlir::Value to) override;
  void clearEntry() override;

private:
  mlir::LogicalResult lowerNode(graph::NodeOp node);
  /// Nodes in an order of execution; empty result and a diagnostic for cycles.
  mlir::FailureOr<const std::vector<graph::NodeOp> *> orderOf(graph::FuncOp func);

  std::vector<llvm::DenseMap<mlir::Value, GraphValue>> scopes;
  llvm::DenseMap<mlir::Operation *, std::vector<graph::NodeOp>> orders;
  int64_t translated = 0;
};

/// Integer tensors computed from sizes: if the node's inputs are known expressions and it is one of the ops that shape
/// arithmetic uses, its results as expressions.
bool trackSizes(LegalizeContext &context, graph::NodeOp node);

} // namespace lathe::legalize

#endif
