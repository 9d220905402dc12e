// State of the translation graph.node -> hlo that outlives one node: what every graph value became, symbolic sizes and
// what is known to be equal among them, variables, scopes of function bodies.
#ifndef LATHE_PASSES_LEGALIZE_LEGALIZECONTEXT_H
#define LATHE_PASSES_LEGALIZE_LEGALIZECONTEXT_H

#include "base/Tensor.h"
#include "dialects/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>

namespace lathe::legalize {

class HandlerTable;

using Dims = llvm::SmallVector<mlir::AffineExpr, 4>;

/// A TensorList (or the contents of a TensorArray or a stack): one tensor [length, element...]. `buffer` is null until
/// the element's shape is known, which may be as late as the first item that is set.
struct ListValue {
  mlir::Type elementType;
  /// The element's shape where known; unknown dims of element_shape are null expressions until the buffer exists.
  std::optional<Dims> elementDims;
  mlir::AffineExpr length;
  mlir::Value buffer;
  /// Number of items in use when that is a run-time value (lists that grow in a loop), an i32 scalar; else null and all
  /// `length` items are in use.
  mlir::Value count;
  /// Upper limit for lists that grow, -1 unknown.
  int64_t maxItems = -1;
  /// A loop was seen to change its length: what it needs room for, and the length after the loop if that is known.
  bool grows = false;
  mlir::AffineExpr capacity;
  int64_t finalLength = -1;
};

/// What one value of the graph became.
struct GraphValue {
  enum class Kind {
    Poison,   // its node failed, which has been reported
    Tensor,   // an hlo value, or integers known as expressions (`sizes`), or both
    List,     // a TensorList, or the contents of a TensorArray or stack as state
    Array,    // the handle of a TensorArray: an index into LegalizeContext::arrays
    Variable, // the handle of a variable or stack (`name`)
    Reference,// the output of a reference variable (`name`): reads as a tensor
    Host,     // strings, tables, ...: nothing compiled
  };
  Kind kind = Kind::Poison;
  mlir::Value tensor;
  /// For integer tensors of few elements whose values are known as expressions of symbols.
  std::optional<Dims> sizes;
  llvm::SmallVector<int64_t, 2> sizesShape;
  mlir::Type elementType;
  ListValue list;
  int64_t array = -1;
  /// While branches are merged: the result of the op that it will be.
  int64_t slot = -1;
  std::string name;

  static GraphValue ofTensor(mlir::Value v) {
    GraphValue g;
    g.kind = Kind::Tensor;
    g.tensor = v;
    return g;
  }
  static GraphValue ofSizes(Dims exprs, llvm::ArrayRef<int64_t> shape, mlir::Type elementType) {
    GraphValue g;
    g.kind = Kind::Tensor;
    g.sizes = std::move(exprs);
    g.sizesShape.assign(shape.begin(), shape.end());
    g.elementType = elementType;
    return g;
  }
  static GraphValue ofList(ListValue list) {
    GraphValue g;
    g.kind = Kind::List;
    g.list = std::move(list);
    return g;
  }
  static GraphValue ofName(Kind kind, llvm::StringRef name) {
    GraphValue g;
    g.kind = kind;
    g.name = name.str();
    return g;
  }
  bool isTensor() const { return kind == Kind::Tensor; }
};

using GraphValues = llvm::SmallVector<GraphValue, 4>;

/// What is fixed about a TensorArray when it is made; its contents are state.
struct ArrayInfo {
  mlir::Type elementType;
  std::optional<Dims> elementDims;
  mlir::AffineExpr length;
  /// Of which array it holds the gradient (writes add), and the name that tells gradients apart.
  int64_t source = -1;
  std::string sourceName;
};

/// One symbol of a size (`s<k>` in the encodings of types).
struct SymbolInfo {
  std::string name;
  int64_t bound = -1;
  /// A bound in terms of other symbols instead.
  mlir::AffineExpr boundExpr;
  bool isInput = false;
  /// What it was found equal to; null while it stands for itself.
  mlir::AffineExpr replacement;
};

/// A variable of the entry under translation.
struct VariableInfo {
  std::string name;
  mlir::RankedTensorType type;
  mlir::BlockArgument argument;
  mlir::Attribute initial; ///< null: an entry initialises it
};

class LegalizeContext {
public:
  LegalizeContext(mlir::ModuleOp module, const HandlerTable &handlers);

  mlir::MLIRContext *getContext() { return module.getContext(); }
  mlir::ModuleOp module;
  const HandlerTable &handlers;
  mlir::OpBuilder builder;
  /// The function under construction.
  mlir::func::FuncOp function;
  mlir::Location entryLoc;

  //===--- symbols ---------------------------------------------------------===//

  mlir::AffineExpr constant(int64_t v) { return mlir::getAffineConstantExpr(v, getContext()); }
  /// A new symbol, as an expression.
  mlir::AffineExpr newSymbol(llvm::StringRef name, int64_t bound, bool isInput);
  /// A symbol whose value an op computes at run time, at most `bound`.
  mlir::AffineExpr newDataSymbol(llvm::StringRef name, mlir::AffineExpr bound);
  /// The expression with everything that is known about its symbols put in.
  mlir::AffineExpr resolve(mlir::AffineExpr expr);
  Dims resolve(llvm::ArrayRef<mlir::AffineExpr> exprs);
  /// Makes two sizes equal: true if they are, or if a run-time check (recorded) makes them so. Types emitted so far are
  /// rewritten where that replaces a symbol.
  bool unify(mlir::AffineExpr a, mlir::AffineExpr b, llvm::StringRef nodeName);
  /// Records that the program is valid only where both are equal (division without remainder and the like).
  void requireEqual(mlir::AffineExpr a, mlir::AffineExpr b, llvm::StringRef nodeName);
  /// The largest value of an expression, if it has one.
  std::optional<int64_t> upperBound(mlir::AffineExpr expr);
  /// Writes hlo.symbols and hlo.size_checks once all entries are done; unused symbols are dropped and the rest renumbered.
  /// An error for sizes that depend on data without bound.
  mlir::LogicalResult finishSymbols();

  //===--- values ----------------------------------------------------------===//

  /// Looks a graph value up in the body under translation.
  GraphValue lookup(mlir::Value graphValue);
  void assign(mlir::Value graphValue, GraphValue value);
  /// The tensor of a value of kind Tensor or Reference at the current place; null for the other kinds.
  mlir::Value materialize(const GraphValue &value, mlir::Location loc);
  /// The value of an hlo tensor if it can be computed now, within the folding budget.
  std::optional<Tensor> fold(mlir::Value value);
  /// Forgets folded values (ops were erased).
  void clearFolded() { folded.clear(); }

  //===--- state -----------------------------------------------------------===//

  /// Current contents of variables, stacks: in order of first use.
  llvm::MapVector<llvm::StringRef, GraphValue> state;
  std::vector<ArrayInfo> arrays;
  /// The key in `state` of a TensorArray's contents, and the contents that it starts with.
  llvm::StringRef arrayKey(int64_t array);
  ListValue newArrayContents(int64_t array);
  /// Interns a name that keys `state`.
  llvm::StringRef intern(llvm::StringRef name);
  std::vector<VariableInfo> variables;
  /// The variable, made an argument of the function on first use. `type` null: taken from the graph's declaration.
  mlir::FailureOr<GraphValue> readVariable(llvm::StringRef name, mlir::Location loc);
  mlir::LogicalResult declareVariable(llvm::StringRef name, mlir::RankedTensorType type, mlir::Attribute initial = {});

  //===--- bodies ----------------------------------------------------------===//

  /// Translates the body of a graph function at the builder's place.
  mlir::LogicalResult lowerBody(graph::FuncOp func, llvm::ArrayRef<GraphValue> args,
                                llvm::SmallVectorImpl<GraphValue> &results);
  /// The function of an attribute, or null.
  graph::FuncOp lookupFunction(mlir::Attribute attr);
  /// Translates one public function to a func.func.
  mlir::LogicalResult lowerEntry(graph::FuncOp entry);
  bool sawError = false;

private:
  mlir::LogicalResult lowerNode(graph::NodeOp node);
  /// Nodes in an order of execution; empty result and a diagnostic for cycles.
  mlir::FailureOr<const std::vector<graph::NodeOp> *> orderOf(graph::FuncOp func);
  void substituteInTypes();
  bool replaceSymbol(unsigned symbol, mlir::AffineExpr by, llvm::StringRef nodeName);

  std::vector<SymbolInfo> symbols;
  struct SizeCheck {
    mlir::AffineExpr lhs, rhs;
    std::string node;
  };
  std::vector<SizeCheck> checks;
  std::vector<llvm::DenseMap<mlir::Value, GraphValue>> scopes;
  llvm::DenseMap<mlir::Operation *, std::vector<graph::NodeOp>> orders;
  llvm::DenseMap<mlir::Value, Tensor> folded;
  int64_t foldedBytes = 0;
  int64_t translated = 0;
  llvm::StringMap<char> names;
};

/// Products and quotients of sizes, kept as simple as they can be.
mlir::AffineExpr productOf(llvm::ArrayRef<mlir::AffineExpr> dims, mlir::MLIRContext *context);
/// a / b where that has no remainder by construction of the program, else a floordiv b.
mlir::AffineExpr divideExactly(mlir::AffineExpr a, mlir::AffineExpr b);
/// The value of a constant expression.
std::optional<int64_t> constantOf(mlir::AffineExpr expr);

/// Integer tensors computed from sizes: if the node's inputs are known expressions and it is one of the ops that shape
/// arithmetic uses, its results as expressions.
bool trackSizes(LegalizeContext &context, graph::NodeOp node);

} // namespace lathe::legalize

#endif
