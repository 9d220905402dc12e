// Symbolic sizes: the dimensions of tensor types as affine expressions over symbols, and the module's symbol table.
//
// A symbol is entry k of the module attribute `hlo.symbols`; "input" symbols come from the caller of the entry function,
// "data" symbols are written at run time by the op that names them in its `symbol` attribute.
#ifndef LATHE_DIALECTS_HLO_SHAPE_H
#define LATHE_DIALECTS_HLO_SHAPE_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace lathe::hlo {

using mlir::AffineExpr;
using mlir::RankedTensorType;

/// The sizes of a type; null for a dynamic dimension without encoding.
llvm::SmallVector<AffineExpr> getDims(RankedTensorType type);
/// The size of one dimension.
AffineExpr getDim(RankedTensorType type, int64_t dim);

/// The canonical type: all constant gives a static type without encoding; a null size makes that dimension `?` and
/// leaves the encoding away. Negative constants become 0.
RankedTensorType makeType(llvm::ArrayRef<AffineExpr> dims, mlir::Type elementType);
RankedTensorType makeType(llvm::ArrayRef<int64_t> dims, mlir::Type elementType);
/// The same sizes under another element type.
RankedTensorType withElementType(RankedTensorType type, mlir::Type elementType);

AffineExpr constantExpr(mlir::MLIRContext *context, int64_t value);
AffineExpr symbolExpr(mlir::MLIRContext *context, unsigned symbol);

/// A normal form: a sum of products with constant factors, where divisions and remainders are atoms.
AffineExpr simplify(AffineExpr expr);
/// Both known and equal in normal form.
bool equalDims(AffineExpr a, AffineExpr b);
/// Known to be different constants, or differing by a constant.
bool differentDims(AffineExpr a, AffineExpr b);
std::optional<int64_t> constantValue(AffineExpr expr);

/// ceil(a / b) in normal form; null for an unknown size.
AffineExpr ceilDiv(AffineExpr a, int64_t b);

/// The product of the sizes, 1 for none; null if one is unknown.
AffineExpr numElements(llvm::ArrayRef<AffineExpr> dims, mlir::MLIRContext *context);
AffineExpr numElements(RankedTensorType type);

/// True when every dimension is static or has an expression.
bool hasKnownDims(RankedTensorType type);
/// Symbols used by an expression, ascending.
llvm::SmallVector<unsigned> getSymbols(AffineExpr expr);
/// The value for given symbol values; none for a missing symbol, a division by zero or an overflow.
std::optional<int64_t> evaluate(AffineExpr expr, llvm::ArrayRef<int64_t> symbols);
/// Replaces symbol k by replacements[k] where that is not null.
AffineExpr substitute(AffineExpr expr, llvm::ArrayRef<AffineExpr> replacements);
/// The largest value of the expression from the bounds of its symbols; none if unbounded.
std::optional<int64_t> upperBound(AffineExpr expr, mlir::ModuleOp module);

/// "8", "s0*2" for messages and "?" for unknown.
std::string dimToString(AffineExpr expr);

//===----------------------------------------------------------------------===//
// Symbol table
//===----------------------------------------------------------------------===//

constexpr llvm::StringLiteral symbolsAttrName = "hlo.symbols";

struct SymbolInfo {
  std::string name;
  /// Largest value, -1 for none.
  int64_t bound = -1;
  /// The bound of a data symbol in terms of input symbols, instead of a number.
  AffineExpr boundExpr;
  /// Set for a symbol that an op writes at run time.
  bool isData = false;
};

llvm::SmallVector<SymbolInfo> getSymbolTable(mlir::ModuleOp module);
std::optional<SymbolInfo> lookupSymbol(mlir::ModuleOp module, unsigned symbol);
/// Appends a symbol and returns its number. An input symbol of a known name is found again.
unsigned addInputSymbol(mlir::ModuleOp module, llvm::StringRef name, int64_t bound = -1);
unsigned addDataSymbol(mlir::ModuleOp module, llvm::StringRef name, int64_t bound = -1);
/// The bound may be an expression over input symbols.
unsigned addDataSymbol(mlir::ModuleOp module, llvm::StringRef name, AffineExpr bound);
void setSymbolBound(mlir::ModuleOp module, unsigned symbol, int64_t bound);

} // namespace lathe::hlo

#endif
