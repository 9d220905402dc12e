// Convolutions of quantized tensors with what follows them: bias, summand, activation, a new range.
#ifndef LATHE_PASSES_LEGALIZE_QUANT_FUSED_H
#define LATHE_PASSES_LEGALIZE_QUANT_FUSED_H

#include "passes/legalize/NodeContext.h"
#include "passes/legalize/quant/ByteProducts.h"

namespace lathe::legalize {

/// What an operation of the fused family does behind its sums of products.
struct FusedSteps {
  bool depthwise = false, bias = false;
  enum Summand { None, Float, Bytes, SignedBytes } summand = None;
  bool relu = false, requantize = false;
};

/// The sums of products of a 4-D image (NHWC) under a filter (HWIO), both around their zeros, by the node's attributes strides, dilations,
/// padding and padding_list.
FailureOr<Value> windowSums(NodeContext &c, const Offset &image, Offset filter, bool depthwise);

/// A convolution with a filter of signed bytes: the integers are multiplied as they are, whatever the range's zero is.
LogicalResult lowerFusedConv(NodeContext &c, FusedSteps steps);

} // namespace lathe::legalize

#endif
