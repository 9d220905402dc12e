// Sums of products of bytes of which one, seldom zero, stands for 0. The bytes are multiplied as they are, which processors have
// instructions for; what the zeros add is taken back by sums over one operand alone.
#ifndef LATHE_PASSES_LEGALIZE_QUANT_BYTEPRODUCTS_H
#define LATHE_PASSES_LEGALIZE_QUANT_BYTEPRODUCTS_H

#include "passes/legalize/Emitter.h"

namespace lathe::legalize {

/// Integers, and the ones that stand for 0 (i32, any number): a scalar, or a vector along dimension `axis` of what is computed.
struct Offset {
  Value q, zero;
  int64_t axis = -1;
};

/// The sums (i32, which wrap) of the products of x - zero and y - zero: a matrix x by a matrix y over these dimensions. Entries of
/// x's zero belong to rows of the result (axis 0), those of y's to its columns (axis 1).
Value offsetProduct(Emitter &c, const Offset &x, const Offset &y, int64_t xContract, int64_t yContract);

/// An image with what its window adds to it, `with`; the window has none of that any more. `space`: the image's dimensions that it goes over.
Value padImage(Emitter &c, Value image, Value with, llvm::ArrayRef<int64_t> space, hlo::ConvWindow &w);

/// How the padding of a convolution, and the gaps of a dilated input, are filled.
enum class Padding {
  Zero,      ///< by 0, whatever the image's zero is
  ZeroAsByte ///< by the lower eight bits of the image's zero
};

/// The sums (i32, which wrap) of the products of image - zero and filter - zero under a window.
Value offsetConvolution(Emitter &c, const Offset &image, const Offset &filter, const hlo::ConvWindow &window,
                        hlo::ConvDimensionNumbersAttr numbers, int64_t groups, int64_t batchGroups, Padding padding);

} // namespace lathe::legalize

#endif
