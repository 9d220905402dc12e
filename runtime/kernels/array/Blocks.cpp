// Blocks of images to depth or to images of their own and back, and rows put in place, for every element type.
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

/// The inputs of SpaceToBatchND and BatchToSpaceND: a block and two borders for each dimension behind the first.
struct Blocks {
  std::vector<int64_t> sizes;
  std::vector<std::pair<int64_t, int64_t>> borders;
  int64_t count = 1; ///< of images that one becomes
};

absl::StatusOr<Blocks> blocksOf(const KernelContext &context) {
  Tensor in = context.input(0), shape = context.input(1), borders = context.input(2);
  Blocks b;
  if (shape.rank() != 1)
    return invalid("block_shape must be a vector: ", dimsToString(shape.dims()));
  b.sizes = intsOf(shape);
  const auto n = static_cast<int64_t>(b.sizes.size());
  if (in.rank() < n + 1)
    return invalid("input rank should be >= ", n + 1, " instead of ", in.rank());
  if (borders.rank() != 2 || borders.dim(0) != n || borders.dim(1) != 2)
    return invalid("expected two borders for each of ", n, " blocks: ", dimsToString(borders.dims()));
  for (int64_t i = 0; i < n; ++i) {
    if (b.sizes[i] < 1 || __builtin_mul_overflow(b.count, b.sizes[i], &b.count))
      return invalid("block_shape must be positive: ", b.sizes[i]);
    b.borders.emplace_back(intAt(borders, 2 * i), intAt(borders, 2 * i + 1));
    if (b.borders.back().first < 0 || b.borders.back().second < 0)
      return invalid("paddings and crops must be non-negative: ", b.borders.back().first, " ", b.borders.back().second);
  }
  return b;
}

absl::Status spaceToBatch(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(b, blocksOf(context));
  Dims dims = in.dims();
  if (__builtin_mul_overflow(dims[0], b.count, &dims[0]))
    return invalid("the batch is too large");
  for (size_t i = 0; i < b.sizes.size(); ++i) {
    auto [before, after] = b.borders[i];
    int64_t &size = dims[i + 1];
    if (__builtin_add_overflow(size, before, &size) || __builtin_add_overflow(size, after, &size) || size % b.sizes[i])
      return invalid("padded_shape[", i, "]=", size, " is not divisible by block_shape[", i, "]=", b.sizes[i]);
    size /= b.sizes[i];
  }
  return moveBy(context, 0, in, dims, [&](Dims at) -> int64_t {
    int64_t place = at[0] / in.dim(0);
    at[0] %= in.dim(0);
    for (size_t i = b.sizes.size(); i-- > 0; place /= b.sizes[i]) {
      at[i + 1] = at[i + 1] * b.sizes[i] + place % b.sizes[i] - b.borders[i].first;
      if (at[i + 1] < 0 || at[i + 1] >= in.dim(static_cast<int64_t>(i) + 1))
        return -1;
    }
    return flatOf(in, at);
  });
}

absl::Status batchToSpace(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(b, blocksOf(context));
  Dims dims = in.dims();
  if (dims[0] % b.count)
    return invalid("Input batch dimension (", dims[0], ") is not divisible by product of block sizes (", b.count, ")");
  dims[0] /= b.count;
  for (size_t i = 0; i < b.sizes.size(); ++i) {
    auto [before, after] = b.borders[i];
    int64_t &size = dims[i + 1];
    if (__builtin_mul_overflow(size, b.sizes[i], &size) || before > size || after > size - before)
      return invalid("cropped_shape[", i, "] must be non-negative");
    size -= before + after;
  }
  return moveBy(context, 0, in, dims, [&](Dims at) {
    int64_t place = 0;
    for (size_t i = 0; i < b.sizes.size(); ++i) {
      const int64_t whole = at[i + 1] + b.borders[i].first;
      place = place * b.sizes[i] + whole % b.sizes[i];
      at[i + 1] = whole / b.sizes[i];
    }
    at[0] += place * dims[0];
    return flatOf(in, at);
  });
}
LATHE_HOST_FUNCTION(SpaceToBatchND, spaceToBatch);
LATHE_HOST_FUNCTION(BatchToSpaceND, batchToSpace);

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
