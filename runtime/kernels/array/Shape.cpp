// Ops that look at shapes or change nothing but them, for every element type: strings and variants have no compiled form.
#include "runtime/kernels/Common.h"
#include "runtime/core/VariantMath.h"

#include <algorithm>

namespace lathe::rt {
namespace {

absl::Status forward(KernelContext &context) {
  for (int i = 0; i < context.numOutputs(); ++i)
    context.setOutput(i, context.input(i));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Identity, forward);
LATHE_HOST_FUNCTION(StopGradient, forward);
LATHE_HOST_FUNCTION(PreventGradient, forward);
LATHE_HOST_FUNCTION(Snapshot, forward);
LATHE_HOST_FUNCTION(GuaranteeConst, forward);
LATHE_HOST_FUNCTION(PlaceholderWithDefault, forward);
LATHE_HOST_FUNCTION(Copy, forward);
LATHE_HOST_FUNCTION(CopyHost, forward);

absl::Status deepCopy(KernelContext &context) {
  context.setOutput(0, context.input(0).clone());
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DeepCopy, deepCopy);

absl::StatusOr<Tensor> sizeTensor(DType type, int64_t value) {
  if (type == DType::Int32 && value > INT32_MAX)
    return invalid("size ", value, " does not fit int32");
  return indexVector(type, {value}).reshaped({});
}

absl::Status shape(KernelContext &context) {
  for (int i = 0; i < context.numOutputs(); ++i) {
    Tensor in = context.input(i);
    DType type = context.node->outputTypes[i];
    for (int64_t d : in.dims())
      LATHE_TRY(sizeTensor(type, d).status());
    context.setOutput(i, indexVector(type, in.dims()));
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Shape, shape);
LATHE_HOST_FUNCTION(ShapeN, shape);

absl::Status size(KernelContext &context) {
  LATHE_TRY_VALUE(value, sizeTensor(context.node->outputTypes[0], context.input(0).numElements()));
  context.setOutput(0, value);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Size, size);

absl::Status rank(KernelContext &context) {
  context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(context.input(0).rank())));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Rank, rank);

absl::Status reshape(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(dims, dimsOf(context.input(1), "shape"));
  // beside a free size, sizes of 0 count on neither side: an empty tensor keeps its other sizes
  int64_t known = 1, free = -1, zeros = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) {
      ++zeros;
    } else if (dims[i] == -1) {
      if (free >= 0)
        return invalid("Only one input size may be -1, not both ", free, " and ", i);
      free = static_cast<int64_t>(i);
    } else if (dims[i] < 0) {
      return invalid("Size ", i, " must be non-negative, not ", dims[i]);
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      return invalid("requested shape ", dimsToString(dims), " has too many elements");
    }
  }
  if (free >= 0) {
    int64_t counted = zeros ? 1 : in.numElements();
    if (zeros)
      for (int64_t d : in.dims())
        if (d > 0 && __builtin_mul_overflow(counted, d, &counted))
          return invalid("the shape ", dimsToString(in.dims()), " has too many elements");
    if (counted % known)
      return invalid("Input to reshape is a tensor with ", counted, " values, but the requested shape requires "
                     "a multiple of ", known);
    dims[free] = counted / known;
    known *= dims[free];
  }
  if (zeros)
    known = 0;
  if (known != in.numElements())
    return invalid("Input to reshape is a tensor with ", in.numElements(), " values, but the requested shape has ", known);
  // a zero before them hides sizes whose product overflows
  LATHE_TRY(checkedNumElements(dims).status());
  context.setOutput(0, in.reshaped(dims));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Reshape, reshape);

absl::Status expandDims(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(axis, oneInt(context.input(1), "dim"));
  if (axis < -1 - in.rank() || axis > in.rank())
    return invalid("Tried to expand dim index ", axis, " for tensor with ", in.rank(), " dimensions.");
  std::vector<int64_t> dims = in.dims();
  dims.insert(dims.begin() + (axis < 0 ? axis + in.rank() + 1 : axis), 1);
  context.setOutput(0, in.reshaped(dims));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ExpandDims, expandDims);

absl::Status squeeze(KernelContext &context) {
  Tensor in = context.input(0);
  const auto &axes = *attrOf<std::vector<int64_t>>(*context.node, "squeeze_dims");
  std::vector<bool> chosen(in.rank(), axes.empty());
  for (int64_t axis : axes) {
    if (axis < -in.rank() || axis >= in.rank())
      return invalid("Tried to squeeze dim index ", axis, " for tensor with ", in.rank(), " dimensions.");
    chosen[axis < 0 ? axis + in.rank() : axis] = true;
  }
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < in.rank(); ++d) {
    if (!chosen[d] || (axes.empty() && in.dim(d) != 1))
      dims.push_back(in.dim(d));
    else if (in.dim(d) != 1)
      return invalid("Can not squeeze dim[", d, "], expected a dimension of 1, got ", in.dim(d));
  }
  context.setOutput(0, in.reshaped(dims));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Squeeze, squeeze);

absl::Status ensureShape(KernelContext &context) {
  Tensor in = context.input(0);
  const auto &wanted = *attrOf<PartialShape>(*context.node, "shape");
  if (!isCompatible(wanted, in.dims()))
    return invalid("Shape of tensor ", dimsToString(in.dims()), " is not compatible with expected shape ",
                   shapeToString(wanted), ".");
  context.setOutput(0, in);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(EnsureShape, ensureShape);

absl::Status zerosLike(KernelContext &context) {
  Tensor in = context.input(0);
  auto out = zerosLikeTensor(in);
  if (out.ok())
    context.setOutput(0, *std::move(out));
  return out.status();
}
LATHE_HOST_FUNCTION(ZerosLike, zerosLike);

absl::Status bitcast(KernelContext &context) {
  Tensor in = context.input(0);
  DType to = context.node->outputTypes[0];
  int64_t from = static_cast<int64_t>(dtypeSize(in.dtype())), want = static_cast<int64_t>(dtypeSize(to));
  if (!from || !want)
    return invalid("Cannot bitcast ", dtypeName(in.dtype()), " to ", dtypeName(to));
  std::vector<int64_t> dims = in.dims();
  if (from > want) {
    dims.push_back(from / want);
  } else if (from < want) {
    if (dims.empty() || dims.back() != want / from)
      return invalid("Cannot bitcast from ", dtypeName(in.dtype()), " to ", dtypeName(to), ": shape ",
                     dimsToString(in.dims()));
    dims.pop_back();
  }
  context.setOutput(0, Tensor::wrap(to, dims, in.data(), in.owner()));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Bitcast, bitcast);

} // namespace
} // namespace lathe::rt
