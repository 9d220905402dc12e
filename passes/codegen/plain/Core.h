// What products and convolutions are, for backends that sum in another order than the nests.
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

} // namespace lathe::plain

#endif
