// Ops that move elements by position, for every element type: each says from where its output elements come.
#include "runtime/kernels/array/MoveBy.h"

#include <algorithm>
#include <complex>

namespace lathe::rt {
namespace {

using Dims = std::vector<int64_t>;

Dims stridesOf(const Dims &dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;)
    strides[d - 1] = strides[d] * dims[d];
  return strides;
}

absl::StatusOr<int64_t> axisOf(int64_t axis, int64_t rank, const char *what) {
  if (axis < -rank || axis >= rank)
    return invalid(what, " ", axis, " is out of range [", -rank, ", ", rank, ")");
  return axis < 0 ? axis + rank : axis;
}

/// Joins tensors along an axis.
absl::Status concat(KernelContext &context, const std::vector<Tensor> &parts, int64_t axis) {
  Dims dims = parts[0].dims();
  int64_t rank = parts[0].rank();
  if (rank == 0)
    return invalid("ConcatOp : Expected concatenating dimensions in the range [0, 0), but got ", axis);
  LATHE_TRY_VALUE(along, axisOf(axis, rank, "ConcatOp : Expected concatenating dimensions: dimension"));
  dims[along] = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].rank() != rank)
      return invalid("ConcatOp : Ranks of all input tensors should match: shape[0] = ", dimsToString(parts[0].dims()),
                     " vs. shape[", p, "] = ", dimsToString(parts[p].dims()));
    for (int64_t d = 0; d < rank; ++d)
      if (d != along && parts[p].dim(d) != parts[0].dim(d))
        return invalid("ConcatOp : Dimension ", d, " in both shapes must be equal: shape[0] = ",
                       dimsToString(parts[0].dims()), " vs. shape[", p, "] = ", dimsToString(parts[p].dims()));
    dims[along] += parts[p].dim(along);
  }
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  int64_t outer = productOf(dims, 0, along), inner = productOf(dims, along + 1, rank), at = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (const Tensor &part : parts)
      for (int64_t n = part.dim(along) * inner, i = 0; i < n; ++i)
        copyElement(out, at++, part, o * n + i);
  return absl::OkStatus();
}

absl::Status concatV1(KernelContext &context) {
  LATHE_TRY_VALUE(axis, oneInt(context.input(0), "concat_dim"));
  return concat(context, context.inputList("values"), axis);
}
absl::Status concatV2(KernelContext &context) {
  LATHE_TRY_VALUE(axis, oneInt(context.input("axis"), "axis"));
  return concat(context, context.inputList("values"), axis);
}
LATHE_HOST_FUNCTION(Concat, concatV1);
LATHE_HOST_FUNCTION(ConcatV2, concatV2);

absl::Status pack(KernelContext &context) {
  std::vector<Tensor> parts = context.inputList("values");
  LATHE_TRY_VALUE(axis, axisOf(*attrOf<int64_t>(*context.node, "axis"), parts[0].rank() + 1, "axis"));
  for (Tensor &part : parts) {
    if (part.dims() != parts[0].dims() && &part != &parts[0]) {
      return invalid("Shapes of all inputs must match: values[0].shape = ", dimsToString(parts[0].dims()), " != values[",
                     &part - parts.data(), "].shape = ", dimsToString(part.dims()));
    }
    if (&part != &parts[0]) {
      Dims dims = part.dims();
      dims.insert(dims.begin() + axis, 1);
      part = part.reshaped(dims);
    }
  }
  Dims dims = parts[0].dims();
  dims.insert(dims.begin() + axis, 1);
  parts[0] = parts[0].reshaped(dims);
  return concat(context, parts, axis);
}

absl::Status unpackAlong(KernelContext &context, const Tensor &in, int64_t axis, const std::vector<int64_t> &sizes,
                         bool drop) {
  Dims strides = stridesOf(in.dims());
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dims dims = in.dims();
    dims[axis] = sizes[i];
    LATHE_TRY(moveBy(context, static_cast<int>(i), in, dims, [&](const Dims &at) {
      int64_t flat = start * strides[axis];
      for (size_t d = 0; d < at.size(); ++d)
        flat += at[d] * strides[d];
      return flat;
    }));
    if (drop) {
      dims.erase(dims.begin() + axis);
      context.outputs[i].tensor = context.outputs[i].tensor.reshaped(dims);
    }
    start += sizes[i];
  }
  return absl::OkStatus();
}

absl::Status unpack(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(axis, axisOf(*attrOf<int64_t>(*context.node, "axis"), in.rank(), "axis"));
  if (in.dim(axis) != context.numOutputs())
    return invalid("Input shape axis ", axis, " must equal ", context.numOutputs(), ", got shape ",
                   dimsToString(in.dims()));
  return unpackAlong(context, in, axis, std::vector<int64_t>(in.dim(axis), 1), true);
}

absl::Status split(KernelContext &context) {
  Tensor in = context.input(1);
  LATHE_TRY_VALUE(given, oneInt(context.input(0), "split_dim"));
  LATHE_TRY_VALUE(axis, axisOf(given, in.rank(), "split_dim"));
  int64_t n = context.numOutputs();
  if (n <= 0)
    return invalid("Number of ways to split should be > 0, but got ", n);
  if (in.dim(axis) % n)
    return invalid("Number of ways to split should evenly divide the split dimension, but got split_dim ", axis,
                   " (size = ", in.dim(axis), ") and num_split ", n);
  return unpackAlong(context, in, axis, std::vector<int64_t>(n, in.dim(axis) / n), false);
}

absl::Status splitV(KernelContext &context) {
  Tensor in = context.input(0);
  std::vector<int64_t> sizes = intsOf(context.input(1));
  LATHE_TRY_VALUE(given, oneInt(context.input(2), "split_dim"));
  LATHE_TRY_VALUE(axis, axisOf(given, in.rank(), "split_dim"));
  int64_t sum = 0, free = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && free < 0)
      free = static_cast<int64_t>(i);
    else if (sizes[i] < 0 || __builtin_add_overflow(sum, sizes[i], &sum))
      return invalid("Split size at index ", i, " must be >= 0. Got: ", sizes[i]);
  }
  if (static_cast<int>(sizes.size()) != context.numOutputs() || (free < 0 ? sum != in.dim(axis) : sum > in.dim(axis)))
    return invalid("size_splits must sum to the dimension of value along split_dim: ", sum, " vs. ", in.dim(axis));
  if (free >= 0)
    sizes[free] = in.dim(axis) - sum;
  return unpackAlong(context, in, axis, sizes, false);
}
LATHE_HOST_FUNCTION(Pack, pack);
LATHE_HOST_FUNCTION(Unpack, unpack);
LATHE_HOST_FUNCTION(Split, split);
LATHE_HOST_FUNCTION(SplitV, splitV);

absl::Status transpose(KernelContext &context) {
  Tensor in = context.input(0);
  std::vector<int64_t> perm = intsOf(context.input(1));
  if (static_cast<int64_t>(perm.size()) != in.rank())
    return invalid("transpose expects a vector of size ", in.rank(), ". But input(1) is a vector of size ", perm.size());
  std::vector<bool> used(perm.size(), false);
  Dims dims(perm.size()), strides = stridesOf(in.dims()), moved(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) {
    LATHE_TRY_VALUE(axis, axisOf(perm[d], in.rank(), "perm"));
    if (used[axis])
      return invalid(axis, " is missing from {", "perm", "}: it occurs twice");
    used[axis] = true;
    dims[d] = in.dim(axis);
    moved[d] = strides[axis];
  }
  return moveBy(context, 0, in, dims, [&](const Dims &at) {
    int64_t flat = 0;
    for (size_t d = 0; d < at.size(); ++d)
      flat += at[d] * moved[d];
    return flat;
  });
}
LATHE_HOST_FUNCTION(Transpose, transpose);

template <typename T>
absl::Status conjugate(KernelContext &context) {
  const Tensor moved = context.outputs[0].tensor; // may be the input's own elements
  LATHE_TRY_VALUE(out, context.allocateOutput(0, moved.dims()));
  std::transform(moved.data<T>(), moved.data<T>() + moved.numElements(), out.template data<T>(), [](T x) { return std::conj(x); });
  return absl::OkStatus();
}

absl::Status conjugateTranspose(KernelContext &context) {
  const DType type = context.input(0).dtype();
  if (absl::Status moved = transpose(context); !moved.ok() || !isComplex(type))
    return moved;
  return type == DType::Complex64 ? conjugate<std::complex<float>>(context) : conjugate<std::complex<double>>(context);
}
LATHE_HOST_FUNCTION(ConjugateTranspose, conjugateTranspose);

absl::Status tile(KernelContext &context) {
  Tensor in = context.input(0);
  std::vector<int64_t> multiples = intsOf(context.input(1));
  if (static_cast<int64_t>(multiples.size()) != in.rank())
    return invalid("Expected multiples argument to be a vector of length ", in.rank(), " but got length ",
                   multiples.size());
  Dims dims = in.dims(), strides = stridesOf(in.dims());
  for (size_t d = 0; d < dims.size(); ++d)
    if (multiples[d] < 0 || __builtin_mul_overflow(dims[d], multiples[d], &dims[d]))
      return invalid("Expected multiples[", d, "] >= 0, but got ", multiples[d]);
  return moveBy(context, 0, in, dims, [&](const Dims &at) {
    int64_t flat = 0;
    for (size_t d = 0; d < at.size(); ++d)
      flat += at[d] % in.dim(d) * strides[d];
    return flat;
  });
}
LATHE_HOST_FUNCTION(Tile, tile);

absl::Status broadcastTo(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(dims, dimsOf(context.input(1), "shape"));
  size_t lead = dims.size() - in.rank();
  bool fits = dims.size() >= in.dims().size();
  for (size_t d = 0; fits && d < in.dims().size(); ++d)
    fits = in.dim(d) == dims[lead + d] || in.dim(d) == 1;
  if (!fits)
    return invalid("Incompatible shapes: ", dimsToString(in.dims()), " vs. ", dimsToString(dims));
  Dims strides = stridesOf(in.dims());
  return moveBy(context, 0, in, dims, [&](const Dims &at) {
    int64_t flat = 0;
    for (size_t d = 0; d < strides.size(); ++d)
      flat += in.dim(d) == 1 ? 0 : at[lead + d] * strides[d];
    return flat;
  });
}
LATHE_HOST_FUNCTION(BroadcastTo, broadcastTo);

absl::Status fill(KernelContext &context) {
  LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "dims"));
  Tensor value = context.input(1);
  if (value.numElements() != 1)
    return invalid("value must represent a scalar, got shape ", dimsToString(value.dims()));
  return moveBy(context, 0, value, dims, [](const Dims &) { return 0; });
}
LATHE_HOST_FUNCTION(Fill, fill);

absl::Status reverseChosen(KernelContext &context, const Tensor &in, const std::vector<bool> &chosen) {
  Dims strides = stridesOf(in.dims());
  return moveBy(context, 0, in, in.dims(), [&](const Dims &at) {
    int64_t flat = 0;
    for (size_t d = 0; d < at.size(); ++d)
      flat += (chosen[d] ? in.dim(d) - 1 - at[d] : at[d]) * strides[d];
    return flat;
  });
}

absl::Status reverse(KernelContext &context) {
  Tensor in = context.input(0), dims = context.input(1);
  if (dims.numElements() != in.rank())
    return invalid("dims must have as many elements as the tensor has dimensions: ", dims.numElements(), " and ",
                   in.rank());
  return reverseChosen(context, in, std::vector<bool>(dims.data<bool>(), dims.data<bool>() + dims.numElements()));
}

absl::Status reverseV2(KernelContext &context) {
  Tensor in = context.input(0);
  std::vector<bool> chosen(in.rank(), false);
  for (int64_t given : intsOf(context.input(1))) {
    LATHE_TRY_VALUE(axis, axisOf(given, in.rank(), "axis"));
    if (chosen[axis])
      return invalid("axis ", axis, " specified more than once.");
    chosen[axis] = true;
  }
  return reverseChosen(context, in, chosen);
}
LATHE_HOST_FUNCTION(Reverse, reverse);
LATHE_HOST_FUNCTION(ReverseV2, reverseV2);

absl::Status pad(KernelContext &context) {
  Tensor in = context.input(0), paddings = context.input(1);
  if (paddings.rank() != 2 || paddings.dim(1) != 2 || paddings.dim(0) != in.rank())
    return invalid("paddings must be a matrix with 2 columns and a row for each dimension: ", dimsToString(paddings.dims()),
                   " for ", dimsToString(in.dims()));
  Tensor rest;
  if (context.numInputs() > 2) {
    rest = context.input(2);
    if (rest.numElements() != 1)
      return invalid("constant_values must be a scalar. Found: ", dimsToString(rest.dims()));
  }
  Dims dims = in.dims(), strides = stridesOf(in.dims());
  std::vector<int64_t> before(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    before[d] = intAt(paddings, 2 * d);
    int64_t after = intAt(paddings, 2 * d + 1);
    if (before[d] < 0 || after < 0 || __builtin_add_overflow(dims[d], before[d], &dims[d]) ||
        __builtin_add_overflow(dims[d], after, &dims[d]))
      return invalid("Paddings must be non-negative: ", before[d], " ", after);
  }
  return moveBy(
      context, 0, in, dims,
      [&](const Dims &at) -> int64_t {
        int64_t flat = 0;
        for (size_t d = 0; d < at.size(); ++d) {
          int64_t i = at[d] - before[d];
          if (i < 0 || i >= in.dim(d))
            return -1;
          flat += i * strides[d];
        }
        return flat;
      },
      rest);
}
LATHE_HOST_FUNCTION(Pad, pad);
LATHE_HOST_FUNCTION(PadV2, pad);

absl::Status slice(KernelContext &context) {
  Tensor in = context.input(0);
  std::vector<int64_t> begin = intsOf(context.input(1)), size = intsOf(context.input(2));
  if (static_cast<int64_t>(begin.size()) != in.rank() || size.size() != begin.size())
    return invalid("Expected begin and size arguments to be 1-D tensors of size ", in.rank(), ", but got ", begin.size(),
                   " and ", size.size());
  Dims strides = stridesOf(in.dims());
  for (size_t d = 0; d < begin.size(); ++d) {
    if (begin[d] < 0 || begin[d] > in.dim(d))
      return invalid("Expected begin[", d, "] in [0, ", in.dim(d), "], but got ", begin[d]);
    if (size[d] == -1)
      size[d] = in.dim(d) - begin[d];
    if (size[d] < 0 || size[d] > in.dim(d) - begin[d])
      return invalid("Expected size[", d, "] in [0, ", in.dim(d) - begin[d], "], but got ", size[d]);
  }
  return moveBy(context, 0, in, size, [&](const Dims &at) {
    int64_t flat = 0;
    for (size_t d = 0; d < at.size(); ++d)
      flat += (begin[d] + at[d]) * strides[d];
    return flat;
  });
}
LATHE_HOST_FUNCTION(Slice, slice);

} // namespace
} // namespace lathe::rt
