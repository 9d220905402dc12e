//===- Outline.h - moving parts of a graph into functions -------*- C++ -*-===//
//
// Slice: the nodes that some values need, back to values that the caller names arguments or that lie outside.
// Capture: an outside value that a slice uses.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_PASSES_CLUSTER_OUTLINE_H
#define LATHE_PASSES_CLUSTER_OUTLINE_H

#include "dialects/graph/Graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace lathe::cluster {

/// What a value is to a slice.
struct Resolution {
  enum Kind { Inside, Outside, Argument, Alias } kind = Inside;
  int argument = 0;
  mlir::Value alias; // stands for the value; resolved in turn

  static Resolution inside() { return {}; }
  static Resolution outside() { return {Outside, 0, {}}; }
  static Resolution arg(int k) { return {Argument, k, {}}; }
  static Resolution as(mlir::Value v) { return {Alias, 0, v}; }
};

class Slice {
public:
  using Resolver = std::function<Resolution(mlir::Value)>;
  explicit Slice(Resolver resolver) : resolver(std::move(resolver)) {}

  /// Adds what the values need. Captures that are Const nodes are taken inside, so that they stay constants.
  void addValue(mlir::Value value);
  /// Adds what an edge from this node needs; edges from outside nodes are collected.
  void addControl(mlir::Value control);

  /// Fails when a value resolves in circles.
  bool valid() const { return ok; }
  llvm::SetVector<mlir::Value> captures;
  /// Control tokens of outside nodes: for the node that calls the function.
  llvm::SetVector<mlir::Value> outsideControls;

  /// Makes the private function. Arguments: `argTypes`, then all of `allCaptures` (a superset of this slice's).
  graph::FuncOp build(mlir::ModuleOp module, mlir::SymbolTable &symbols, llvm::StringRef name,
                      llvm::ArrayRef<mlir::Type> argTypes, const llvm::SetVector<mlir::Value> &allCaptures,
                      mlir::ValueRange outputs, mlir::ValueRange targets);

private:
  Resolution resolve(mlir::Value value, mlir::Value &stands);
  void drain();

  Resolver resolver;
  llvm::SetVector<mlir::Operation *> nodes;
  llvm::DenseSet<mlir::Operation *> outsideConstants;
  llvm::SmallVector<mlir::Operation *> work;
  bool ok = true;
};

/// The op type of a node without a leading "Ref"; empty for other ops.
llvm::StringRef plainOp(mlir::Operation *op);
inline bool isOp(mlir::Operation *op, llvm::StringRef name) { return op && plainOp(op) == name; }
inline bool isOp(mlir::Value value, llvm::StringRef name) { return isOp(value.getDefiningOp(), name); }
/// Switch, Merge, Enter, Exit, NextIteration, LoopCond.
bool decidesFrames(mlir::Operation *op);
/// From a NextIteration to its Merge.
bool isBackEdge(mlir::Operation *from, mlir::Operation *to);

/// tensor<*xT> for a value of element type T.
mlir::Type unrankedType(mlir::Value value);
/// A Const node with an i32 scalar.
mlir::Value indexConstant(mlir::OpBuilder &b, mlir::Location loc, int32_t index);

/// The nodes of a block with every node after its operands, but for edges from NextIteration. Fails on other cycles.
mlir::FailureOr<std::vector<mlir::Operation *>> orderNodes(mlir::Block &block);

/// Erases nodes that the terminator does not need and puts the others in order.
void cleanUp(graph::FuncOp func);

/// "while/LoopCond" without its last part: what the user calls the construct.
std::string constructName(mlir::Operation *op);

mlir::LogicalResult functionalizeLoops(graph::FuncOp func, mlir::ModuleOp module, mlir::SymbolTable &symbols,
                                       llvm::SmallVectorImpl<graph::FuncOp> &created, unsigned &count);
mlir::LogicalResult functionalizeConditionals(graph::FuncOp func, mlir::ModuleOp module, mlir::SymbolTable &symbols,
                                              llvm::SmallVectorImpl<graph::FuncOp> &created, unsigned &count);

} // namespace lathe::cluster

#endif
