// Division of complex tensors.
#ifndef LATHE_PASSES_LEGALIZE_MATH_COMPLEXDIVIDE_H
#define LATHE_PASSES_LEGALIZE_MATH_COMPLEXDIVIDE_H

#include "passes/legalize/NodeContext.h"

namespace lathe::legalize {

/// x / y of complex tensors of one type, broadcast; with TensorFlow's results for infinities and zeros.
Value divideComplex(NodeContext &c, Value x, Value y);

} // namespace lathe::legalize

#endif // LATHE_PASSES_LEGALIZE_MATH_COMPLEXDIVIDE_H
