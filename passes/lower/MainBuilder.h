// A builder for the main functions: addresses, integer arithmetic and symbolic sizes in the LLVM dialect.
#ifndef LATHE_PASSES_LOWER_MAINBUILDER_H
#define LATHE_PASSES_LOWER_MAINBUILDER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace lathe::lower {

class MainBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  mlir::Type ptrType() { return mlir::LLVM::LLVMPointerType::get(getContext()); }
  mlir::Value i64(int64_t v);
  mlir::Value i32(int32_t v);
  mlir::Value null();
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  /// Rounded down; b below 1 counts as 1.
  mlir::Value floorDiv(mlir::Value a, mlir::Value b);
  mlir::Value alignTo64(mlir::Value a);
  mlir::Value compare(mlir::LLVM::ICmpPredicate p, mlir::Value a, mlir::Value b);

  mlir::Value offset(mlir::Value base, int64_t bytes);
  mlir::Value offset(mlir::Value base, mlir::Value bytes);
  mlir::Value load(mlir::Type type, mlir::Value base, int64_t bytes = 0);
  mlir::Value loadI64(mlir::Value base, int64_t bytes = 0) { return load(getI64Type(), base, bytes); }
  mlir::Value loadPtr(mlir::Value base, int64_t bytes = 0) { return load(ptrType(), base, bytes); }
  void store(mlir::Value v, mlir::Value base, int64_t bytes = 0);
  /// 64-byte aligned stack room in the entry block of the current function.
  mlir::Value stack(int64_t bytes);
  mlir::Value call(llvm::StringRef callee, mlir::TypeRange result, mlir::ValueRange args);

  /// The value of an expression over the symbols at `sizes`.
  mlir::Value expr(mlir::AffineExpr e, mlir::Value sizes);
  /// The same in double precision: to see overflow.
  mlir::Value exprAsDouble(mlir::AffineExpr e, mlir::Value sizes);

  /// A new internal function with an empty entry block; the insertion point moves into it.
  mlir::LLVM::LLVMFuncOp function(mlir::ModuleOp module, llvm::StringRef name, mlir::Type result, mlir::TypeRange args);
  /// Appends a block to the current function.
  mlir::Block *block();
  void branch(mlir::Block *to);
  /// `unlikelyTrue`: weights for a failure path.
  void condBranch(mlir::Value c, mlir::Block *yes, mlir::Block *no, bool unlikelyTrue = false);
  void ret(mlir::Value v = {});
};

} // namespace lathe::lower

#endif
