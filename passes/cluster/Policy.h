//===- Policy.h - which nodes compile ---------------------------*- C++ -*-===//
//
// Answers, for one node at a time, why it must stay outside of clusters; what belongs together is MarkForCompilation's
// business. Handle: a value of type resource, or a reference to a variable.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_PASSES_CLUSTER_POLICY_H
#define LATHE_PASSES_CLUSTER_POLICY_H

#include "dialects/graph/Graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <string>

namespace lathe::cluster {

/// Kinds of reasons, each with a statistic.
enum class Refusal {
  None,
  NoCompiledForm, // the op has none
  HostType,       // strings
  HostHandle,     // a queue, table ...; or a list whose other part is outside
  ControlFlow,    // v1 control flow that is executed as it is
  Endpoint,       // arguments, results and variables themselves
  Stateful,       // keeps state of its own, which a host kernel has
  Function,       // a function it calls does not compile
  Forbidden,      // by the user
  HostKernel,     // compiling only what has no other way
};

struct Verdict {
  Refusal refusal = Refusal::None;
  std::string text;
  explicit operator bool() const { return refusal == Refusal::None; }
};

struct PolicyOptions {
  bool neededOnly = false; ///< refuse what has a host kernel
  llvm::StringSet<> hostOps, forbid;
};

class Policy {
public:
  Policy(mlir::ModuleOp module, PolicyOptions options) : symbols(module), options(std::move(options)) {}

  /// Whether the node may be part of a cluster, as far as it alone can tell.
  Verdict judge(graph::NodeOp node) { return judge(node, false); }
  /// Whether a host kernel can run the node. Those of ops that compile are trusted with strings and handles, state, and
  /// with what is nothing but moving values; many others are there for strings only.
  bool hasHostKernel(graph::NodeOp node) const;
  /// Whether the node takes operand `i`, a handle, as that of a variable: an argument of the cluster.
  bool usesVariable(graph::NodeOp node, unsigned i);
  /// Whether the node calls functions.
  static bool isFunctional(graph::NodeOp node);
  static llvm::SmallVector<mlir::FlatSymbolRefAttr> functionsOf(graph::NodeOp node);

private:
  Verdict judge(graph::NodeOp node, bool inFunction);
  const Verdict &judgeFunction(mlir::FlatSymbolRefAttr name);
  bool argumentIsVariable(graph::FuncOp func, unsigned arg);

  mlir::SymbolTable symbols;
  PolicyOptions options;
  std::map<std::string, Verdict> functions;
  std::map<std::pair<std::string, unsigned>, bool> arguments;
};

/// string, resource, variant: what no compiled module takes or gives.
bool isHostType(mlir::Value value);
bool isHandle(mlir::Value value);
/// Whether operand `i` of the node is declared as a reference to a variable.
bool isReferenceInput(graph::NodeOp node, unsigned i);
bool isReferenceOutput(mlir::Value value);
/// Assert and Print: constant strings among their operands are texts that a compiled form does without.
bool takesTexts(mlir::Operation *op);
/// VarHandleOp, VariableV2 and the like.
bool isVariableNode(mlir::Operation *op);

} // namespace lathe::cluster

#endif
