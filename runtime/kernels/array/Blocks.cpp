// Blocks of images to depth and back, and rows put in place, for every element type.
#include "runtime/kernels/array/MoveBy.h"

namespace lathe::rt {
namespace {

using Dims = std::vector<int64_t>;

/// Where the sizes of an image lie in its shape.
struct Layout {
  int h, w, depth;
};

absl::StatusOr<Layout> layoutOf(const KernelContext &context, const Tensor &in) {
  const std::string &format = *attrOf<std::string>(*context.node, "data_format");
  if (in.rank() != 4)
    return invalid("Input rank should be 4 instead of ", in.rank());
  if (format == "NHWC")
    return Layout{1, 2, 3};
  if (format == "NCHW")
    return Layout{2, 3, 1};
  return invalid("data_format ", format, " is not supported");
}

absl::StatusOr<int64_t> blockOf(const KernelContext &context) {
  int64_t block = *attrOf<int64_t>(*context.node, "block_size");
  if (block < 2 || block > (1 << 15))
    return invalid("Block size should be greater than 1: ", block);
  return block;
}

int64_t flatOf(const Tensor &in, const Dims &at) {
  int64_t flat = 0;
  for (int64_t d = 0; d < in.rank(); ++d)
    flat = flat * in.dim(d) + at[d];
  return flat;
}

absl::Status spaceToDepth(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(l, layoutOf(context, in));
  LATHE_TRY_VALUE(block, blockOf(context));
  int64_t depth = in.dim(l.depth);
  if (in.dim(l.h) % block || in.dim(l.w) % block)
    return invalid("Image width ", in.dim(l.w), " and height ", in.dim(l.h), " should be divisible by block_size: ", block);
  Dims dims = in.dims();
  dims[l.h] /= block;
  dims[l.w] /= block;
  dims[l.depth] *= block * block;
  return moveBy(context, 0, in, dims, [&](Dims at) {
    int64_t place = at[l.depth] / depth;
    at[l.depth] %= depth;
    at[l.h] = at[l.h] * block + place / block;
    at[l.w] = at[l.w] * block + place % block;
    return flatOf(in, at);
  });
}

absl::Status depthToSpace(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(l, layoutOf(context, in));
  LATHE_TRY_VALUE(block, blockOf(context));
  if (in.dim(l.depth) % (block * block))
    return invalid("Input depth dimension ", in.dim(l.depth), " should be divisible by: ", block * block);
  int64_t depth = in.dim(l.depth) / (block * block);
  Dims dims = in.dims();
  if (__builtin_mul_overflow(dims[l.h], block, &dims[l.h]) || __builtin_mul_overflow(dims[l.w], block, &dims[l.w]))
    return invalid("the image is too large");
  dims[l.depth] = depth;
  return moveBy(context, 0, in, dims, [&](Dims at) {
    at[l.depth] += (at[l.h] % block * block + at[l.w] % block) * depth;
    at[l.h] /= block;
    at[l.w] /= block;
    return flatOf(in, at);
  });
}
LATHE_HOST_FUNCTION(SpaceToDepth, spaceToDepth);
LATHE_HOST_FUNCTION(DepthToSpace, depthToSpace);

absl::Status inplaceUpdate(KernelContext &context) {
  Tensor x = context.input(0), i = context.input(1), v = context.input(2);
  if (i.rank() != 1)
    return invalid("i must be a vector. ", dimsToString(i.dims()));
  if (x.rank() < 1 || x.rank() != v.rank())
    return invalid("x and v shape doesn't match (ranks differ): ", x.rank(), " vs. ", v.rank());
  for (int64_t d = 1; d < x.rank(); ++d)
    if (x.dim(d) != v.dim(d))
      return invalid("x and v shape doesn't match at index ", d, " : ", x.dim(d), " vs. ", v.dim(d));
  if (i.dim(0) != v.dim(0))
    return invalid("i and x shape doesn't match at index 0: ", i.dim(0), " vs. ", v.dim(0));
  if (i.dim(0) > 0 && x.dim(0) == 0)
    return invalid("x has no rows");
  Tensor out = x.clone();
  int64_t size = productOf(x.dims(), 1, x.rank());
  for (int64_t r = 0; r < i.dim(0); ++r) {
    int64_t row = intAt(i, r) % x.dim(0); // rows wrap around, as TensorFlow's do
    row += row < 0 ? x.dim(0) : 0;
    for (int64_t k = 0; k < size; ++k)
      copyElement(out, row * size + k, v, r * size + k);
  }
  context.setOutput(0, out);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(InplaceUpdate, inplaceUpdate);

absl::Status parallelConcat(KernelContext &context) {
  std::vector<Tensor> values = context.inputList("values");
  Dims dims = values[0].dims();
  if (dims.empty() || dims[0] != 1)
    return invalid("Size of first dimension must be 1, found shape ", dimsToString(dims));
  for (const Tensor &v : values)
    if (v.dims() != dims)
      return invalid("all values must have the shape ", dimsToString(dims), ", found ", dimsToString(v.dims()));
  int64_t size = values[0].numElements(), at = 0;
  dims[0] = static_cast<int64_t>(values.size());
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (const Tensor &v : values)
    for (int64_t k = 0; k < size; ++k)
      copyElement(out, at++, v, k);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ParallelConcat, parallelConcat);

} // namespace
} // namespace lathe::rt
