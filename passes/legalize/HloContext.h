// Making hlo from a model, whatever its format: symbolic sizes and what is known to be equal among them, folding, variables,
// the function of an entry. It knows no graph: frontends have a class of their own on top (LegalizeContext for graph.node).
#ifndef LATHE_PASSES_LEGALIZE_HLOCONTEXT_H
#define LATHE_PASSES_LEGALIZE_HLOCONTEXT_H

#include "base/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>

namespace lathe::legalize {

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
  /// Small integers (`itemsShape` of them) that every item is, while `itemsBuffer` is the buffer: what a loop's gradient takes back off a
  /// list of sizes is then known as it was when it was put there.
  std::optional<Dims> items;
  llvm::SmallVector<int64_t, 2> itemsShape;
  mlir::Value itemsBuffer;
  bool knowsItems() const { return items && buffer && itemsBuffer == buffer; }
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

/// An input or output of an entry as its callers see it.
struct EntryTensor {
  /// `tensor` may be null; `type` is that of an input, with each unknown size a symbol of its own.
  mlir::StringAttr name, tensor;
  mlir::RankedTensorType type;
};

class HloContext {
public:
  explicit HloContext(mlir::ModuleOp module);
  virtual ~HloContext() = default;

  mlir::MLIRContext *getContext() { return module.getContext(); }
  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  /// The function under construction.
  mlir::func::FuncOp function;
  mlir::Location entryLoc;
  /// An error was reported.
  bool sawError = false;
  /// --quantized-math fast: quantized results are rounded once, in f32, instead of as TensorFlow Lite's reference kernels do.
  bool fastQuantizedMath = false;

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
  /// A size of the caller's symbols that is not negative and that the expression does not exceed; null where none is known.
  mlir::AffineExpr inputBound(mlir::AffineExpr expr);
  /// Whether a size depends on data, so that it may be another one each time an op computes it.
  bool isDataSize(mlir::AffineExpr expr);
  //===--- values ----------------------------------------------------------===//

  /// The tensor of a value of kind Tensor or Reference at the current place; null for the other kinds.
  mlir::Value materialize(const GraphValue &value, mlir::Location loc);
  /// The value of an hlo tensor if it can be computed now, within the folding budget.
  std::optional<Tensor> fold(mlir::Value value);
  /// Forgets folded values (ops were erased).
  void clearFolded() { folded.clear(); }

  //===--- state -----------------------------------------------------------===//

  /// Current contents of variables, stacks: in order of first use.
  llvm::MapVector<llvm::StringRef, GraphValue> state;
  /// Interns a name that keys `state`.
  llvm::StringRef intern(llvm::StringRef name);
  std::vector<VariableInfo> variables;
  /// The variable, made an argument of the function on first use. `type` null: taken from the graph's declaration.
  mlir::FailureOr<GraphValue> readVariable(llvm::StringRef name, mlir::Location loc);
  mlir::LogicalResult declareVariable(llvm::StringRef name, mlir::RankedTensorType type, mlir::Attribute initial = {});
  /// A variable of the module even where no entry uses it.
  void keepVariable(llvm::StringRef name, mlir::Type type, mlir::Attribute initial);

  //===--- entries ---------------------------------------------------------===//

  /// Starts a func.func called `name`; the builder stands in its body.
  void beginEntry(llvm::StringRef name, mlir::Location loc, llvm::ArrayRef<EntryTensor> inputs);
  /// Ends it: results, variables that were read or written, checks of sizes. An error for results that are no tensors.
  mlir::LogicalResult finishEntry(llvm::ArrayRef<EntryTensor> outputs, llvm::ArrayRef<GraphValue> results);
  /// Writes hlo.variables and hlo.symbols once all entries are done; unused symbols are dropped and the rest renumbered.
  /// An error for sizes that depend on data without bound.
  mlir::LogicalResult finishModule();

protected:
  /// A value that a frontend may still hold has become another.
  virtual void replaced(mlir::Value from, mlir::Value to) {}
  /// Forgets what belongs to the last entry.
  virtual void clearEntry();

private:
  mlir::LogicalResult finishSymbols();
  mlir::Value withGrowingSizes(mlir::Value output, llvm::StringRef name);
  void substituteInTypes();
  bool replaceSymbol(unsigned symbol, mlir::AffineExpr by, llvm::StringRef nodeName);
  void addVariables(llvm::SmallVectorImpl<mlir::Value> &returned, llvm::SmallVectorImpl<mlir::NamedAttrList> &resultAttrs);

  std::vector<SymbolInfo> symbols;
  struct SizeCheck {
    mlir::AffineExpr lhs, rhs;
    std::string node;
  };
  std::vector<SizeCheck> checks;
  std::vector<EntryTensor> entryInputs;
  llvm::MapVector<llvm::StringRef, std::pair<mlir::Type, mlir::Attribute>> kept;
  llvm::DenseMap<mlir::Value, Tensor> folded;
  int64_t foldedBytes = 0;
  llvm::StringMap<char> names;
};

/// Products and quotients of sizes, kept as simple as they can be.
mlir::AffineExpr productOf(llvm::ArrayRef<mlir::AffineExpr> dims, mlir::MLIRContext *context);
/// a / b where that has no remainder by construction of the program, else a floordiv b.
mlir::AffineExpr divideExactly(mlir::AffineExpr a, mlir::AffineExpr b);
/// The value of a constant expression.
std::optional<int64_t> constantOf(mlir::AffineExpr expr);

} // namespace lathe::legalize

#endif
