// Products by one level of Strassen's algorithm: which, in which blocks, and their code.
#ifndef LATHE_PASSES_CODEGEN_CPU_PRODUCT_STRASSEN_H
#define LATHE_PASSES_CODEGEN_CPU_PRODUCT_STRASSEN_H

#include "passes/codegen/cpu/product/Product.h"

namespace lathe::cpu {

/// Steps of a sum of k that can be halved: one of odd length has a step of zeros at its end, in the packed
/// right operand too.
inline int64_t strassenSum(int64_t k) { return llvm::alignTo(k, 2); }

/// Steps of the sum that are done for a group of panels before the next ones: an even divisor of k, which is
/// even (strassenSum). What the plan says, or what is estimated best for panels of `width` columns; does not
/// depend on the number of threads.
int64_t strassenDepth(const KernelTarget &target, const KernelPlan &plan, int64_t m, int64_t n, int64_t k,
                      int64_t width);

/// Pairs of panels in a group: their sums stay near from one block of the depth to the next.
///
/// The packed right operand has this order: for each group, for each block of the depth, for each two panels
/// L and R, the upper and the lower half of L, the lower and the upper half of R, each [depth / 2][width]; if
/// the number of panels is odd, the last one comes whole behind the pairs of its group.
int64_t strassenGroup(const KernelTarget &target, int64_t m, int64_t n, int64_t k, int64_t width, int64_t depth);

/// Whether it is estimated to be faster than the product itself, with as many threads as the target has. The
/// tile is one of pairs of rows.
bool paysStrassen(const KernelTarget &target, int64_t m, int64_t n, int64_t k, const TileShape &tile);

/// Largest error of some results, as a share of the largest of them, for random rows and the columns of a
/// right operand [k, n], k even; infinite where numbers are not finite.
double sampleStrassenError(int64_t k, int64_t n, int64_t depth, int64_t width,
                           llvm::function_ref<float(int64_t k, int64_t n)> right);

/// Emits all loops of a product with static sizes, f32 operands and a packed right one, and
/// the attributes of the function.
mlir::LogicalResult emitStrassen(KernelBuilder &b, const ProductSpec &spec, Epilogue &epilogue);

} // namespace lathe::cpu

#endif
