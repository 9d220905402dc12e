// Products of matrices, seen by the role of each dimension.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_PRODUCT_H
#define LATHE_PASSES_CODEGEN_NVPTX_PRODUCT_H

#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/plain/Core.h"

namespace lathe::nvptx {

/// What each dimension of a product's result is.
struct Roles {
  codegen::Contraction what;
  mlir::SmallVector<int64_t> batch;
  int64_t row = -1, column = -1;

  // ShapedType::kDynamic where they are known at run time only
  int64_t rows() const;
  int64_t columns() const;
  int64_t depth() const;
};

/// Nothing for ops that are no products, and where an operand has several dimensions of lines or of depth.
std::optional<Roles> rolesOf(mlir::Operation *op);
/// Why the sums of a product are not of a kind that these kernels make; empty if they are.
std::string whyNoSums(mlir::Operation *op, const Roles &roles);

/// Whether a size is known and below `limit`.
inline bool isBelow(int64_t size, int64_t limit) { return !mlir::ShapedType::isDynamic(size) && size < limit; }

/// What products of this result are summed in.
mlir::Type sumTypeOf(mlir::Type result);
/// How far apart neighbours along each dimension lie, in elements.
mlir::SmallVector<mlir::Value> stridesOf(codegen::KernelBuilder &b, mlir::RankedTensorType type);
/// Elements to the entry of the batch at `index`. Dimensions that the operand lacks (`dims` is -1) are shared.
mlir::Value batchBase(codegen::KernelBuilder &b, mlir::RankedTensorType type, mlir::ArrayRef<int64_t> dims,
                      mlir::ArrayRef<int64_t> batch, mlir::ArrayRef<mlir::Value> index);

} // namespace lathe::nvptx

#endif
