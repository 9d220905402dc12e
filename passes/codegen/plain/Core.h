// What products, convolutions and poolings are, for kernels whose loops are others than the nests'.
#ifndef LATHE_PASSES_CODEGEN_PLAIN_CORE_H
#define LATHE_PASSES_CODEGEN_PLAIN_CORE_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/library/Sums.h"
#include "passes/codegen/plain/Nest.h"

namespace lathe::plain {

codegen::Contraction contractionOf(kernel::DotOp op);
/// Images [n, spatial..., c], filters [spatial..., c of a group, oc].
codegen::Convolution convolutionOf(kernel::ConvOp op);
codegen::Convolution convolutionOf(kernel::DepthwiseConvOp op);

/// How the elements of a window become a result of a kernel.pool.
class Pooling {
public:
  Pooling(kernel::PoolOp op, codegen::KernelBuilder &b);
  /// What a window begins with; an element of that value changes no result.
  mlir::Value begin(unsigned lanes);
  /// Elements of the input in the type in which they are taken together.
  mlir::Value element(mlir::Value x);
  mlir::Value add(mlir::Value sum, mlir::Value element);
  /// Only averages read `count`, an i64: how many elements of the input are in `sum`.
  mlir::Value finish(mlir::Value sum, llvm::function_ref<mlir::Value()> count);

private:
  codegen::KernelBuilder &b;
  llvm::StringRef kind;
  mlir::Type input, acc;
};

} // namespace lathe::plain

#endif
