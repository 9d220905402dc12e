// Sparse ops that move values without computing on them: SparseReorder, SparseReshape, SparseConcat, SparseSplit,
// SparseSlice and its gradient, SparseToDense, SparseFillEmptyRows.
#include "base/Memory.h"
#include "runtime/kernels/sparse/Coo.h"

#include <algorithm>

namespace lathe::rt {
namespace {

/// Sets outputs `first` and `first + 1` to chosen rows of a sparse tensor.
absl::Status setRows(KernelContext &context, int first, const Coo &in, const std::vector<int64_t> &rows) {
  std::vector<int64_t> flat;
  flat.reserve(rows.size() * in.rank());
  for (int64_t r : rows)
    flat.insert(flat.end(), in.row(r), in.row(r) + in.rank());
  Tensor indices = Tensor::vector<int64_t>(DType::Int64, flat).reshaped({static_cast<int64_t>(rows.size()), in.rank()});
  LATHE_TRY_VALUE(values, pick(context, in.values, {static_cast<int64_t>(rows.size())}, rows));
  context.setOutput(first, indices);
  context.setOutput(first + 1, values);
  return absl::OkStatus();
}

absl::Status sparseReorder(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  LATHE_TRY(in.checkBounds());
  return setRows(context, 0, in, in.order());
}
LATHE_HOST_FUNCTION(SparseReorder, sparseReorder);

absl::Status sparseReshape(KernelContext &context) {
  Tensor indices = context.input(0), shape = context.input(1), wanted = context.input(2);
  if (indices.rank() != 2 || shape.rank() != 1 || wanted.rank() != 1 || indices.dim(1) != shape.dim(0))
    return invalid("Input indices should be a matrix, shapes vectors, and their sizes fit: ", dimsToString(indices.dims()),
                   ", ", dimsToString(shape.dims()), ", ", dimsToString(wanted.dims()));
  std::vector<int64_t> from = intsOf(shape), to = intsOf(wanted);
  LATHE_TRY_VALUE(total, checkedNumElements(from));
  int64_t known = 1, free = -1;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == -1) {
      if (free >= 0)
        return invalid("only one output dimension may be -1, not both ", free, " and ", d);
      free = static_cast<int64_t>(d);
    } else if (to[d] < 0 || __builtin_mul_overflow(known, to[d], &known)) {
      return invalid("size ", d, " must be non-negative, not ", to[d]);
    }
  }
  if (free >= 0) {
    if (known == 0)
      return invalid("reshape cannot infer the missing input size for an empty tensor unless all specified input sizes "
                     "are non-zero");
    if (total % known)
      return invalid("Input to reshape is a SparseTensor with ", total, " dense values, but the requested shape requires a "
                     "multiple of ", known);
    to[free] = total / known;
    known *= to[free];
  }
  if (known != total)
    return invalid("Input to reshape is a tensor with ", total, " dense values, but the requested shape has ", known);
  if (from == to) { // as they are, also those that lie outside
    context.setOutput(0, indices);
    context.setOutput(1, int64Vector(to));
    return absl::OkStatus();
  }
  int64_t rows = indices.dim(0), rankIn = indices.dim(1), rankOut = static_cast<int64_t>(to.size());
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {rows, rankOut}));
  for (int64_t r = 0; r < rows; ++r) {
    int64_t flat = 0;
    for (int64_t d = 0; d < rankIn; ++d) {
      int64_t i = indices.data<int64_t>()[r * rankIn + d];
      if (i < 0 || i >= from[d])
        return invalid("indices[", r, ",", d, "] = ", i, " is out of bounds");
      flat = flat * from[d] + i;
    }
    for (int64_t d = rankOut; d-- > 0;) {
      out.data<int64_t>()[r * rankOut + d] = flat % to[d];
      flat /= to[d];
    }
  }
  context.setOutput(1, int64Vector(to));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseReshape, sparseReshape);

absl::Status sparseConcat(KernelContext &context) {
  std::vector<Tensor> indices = context.inputList("indices"), values = context.inputList("values"),
                      shapes = context.inputList("shapes");
  int64_t axis = *attrOf<int64_t>(*context.node, "concat_dim");
  std::vector<Coo> parts;
  std::vector<int64_t> dims;
  int64_t total = 0;
  for (size_t p = 0; p < indices.size(); ++p) {
    LATHE_TRY_VALUE(part, makeCoo(indices[p], values[p], shapes[p]));
    LATHE_TRY(part.checkBounds());
    if (p == 0) {
      dims = part.dims;
      if (axis < -part.rank() || axis >= part.rank())
        return invalid("Concat dimension must be in range [", -part.rank(), ", ", part.rank(), "), got ", axis);
      axis = axis < 0 ? axis + part.rank() : axis;
      dims[axis] = 0;
    }
    if (part.dims.size() != dims.size())
      return invalid("Ranks of all input tensors must match: expected ", dims.size(), " but got ", part.dims.size(),
                     " at position ", p);
    for (size_t d = 0; d < dims.size(); ++d)
      if (static_cast<int64_t>(d) != axis && dims[d] != part.dims[d])
        return invalid("Input shapes must match: expected ", dims[d], " for dimension ", d, " but got ", part.dims[d],
                       " at position ", p);
    if (__builtin_add_overflow(dims[axis], part.dims[axis], &dims[axis]))
      return invalid("the sizes along the concat dimension overflow");
    total += part.count();
    parts.push_back(part);
  }
  int64_t rank = static_cast<int64_t>(dims.size()), at = 0, offset = 0;
  Coo all{Tensor::allocate(DType::Int64, {total, rank}), Tensor::allocate(values[0].dtype(), {total}), dims};
  for (const Coo &part : parts) {
    for (int64_t i = 0; i < part.count(); ++i, ++at) {
      int64_t *row = all.indices.data<int64_t>() + at * rank;
      std::copy_n(part.row(i), rank, row);
      row[axis] += offset;
      copyElement(all.values, at, part.values, i);
    }
    offset += part.dims[axis];
  }
  LATHE_TRY(setRows(context, 0, all, all.order()));
  context.setOutput(2, int64Vector(dims));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseConcat, sparseConcat);

absl::Status sparseSplit(KernelContext &context) {
  LATHE_TRY_VALUE(axis, oneInt(context.input(0), "split_dim"));
  LATHE_TRY_VALUE(in, cooInput(context, 1));
  LATHE_TRY(in.checkBounds());
  int n = static_cast<int>(*attrOf<int64_t>(*context.node, "num_split"));
  if (axis < -in.rank() || axis >= in.rank())
    return invalid("Input split_dim should be between [", -in.rank(), ", ", in.rank(), "), got ", axis);
  axis = axis < 0 ? axis + in.rank() : axis;
  if (n < 1 || n > in.dims[axis])
    return invalid("Input num_split should be between 1 and the splitting dimension size (", in.dims[axis], "), got ", n);
  // the first `larger` pieces are one longer
  int64_t size = in.dims[axis] / n, larger = in.dims[axis] % n, start = 0;
  for (int p = 0; p < n; ++p) {
    int64_t length = size + (p < larger);
    std::vector<int64_t> rows, dims = in.dims;
    for (int64_t i = 0; i < in.count(); ++i)
      if (in.row(i)[axis] >= start && in.row(i)[axis] < start + length)
        rows.push_back(i);
    dims[axis] = length;
    Tensor indices = Tensor::allocate(DType::Int64, {static_cast<int64_t>(rows.size()), in.rank()});
    for (size_t r = 0; r < rows.size(); ++r) {
      int64_t *row = indices.data<int64_t>() + r * in.rank();
      std::copy_n(in.row(rows[r]), in.rank(), row);
      row[axis] -= start;
    }
    LATHE_TRY_VALUE(values, pick(context, in.values, {static_cast<int64_t>(rows.size())}, rows));
    context.setOutput(p, indices);
    context.setOutput(n + p, values);
    context.setOutput(2 * n + p, int64Vector(dims));
    start += length;
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseSplit, sparseSplit);

absl::Status sparseSlice(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  std::vector<int64_t> start = intsOf(context.input(3)), size = intsOf(context.input(4)), dims(in.rank());
  if (static_cast<int64_t>(start.size()) != in.rank() || size.size() != start.size())
    return invalid("Expected start and size to be vectors of length ", in.rank(), " but got lengths ", start.size(), " and ",
                   size.size());
  for (int64_t d = 0; d < in.rank(); ++d) {
    if (start[d] < 0 || size[d] < 0)
      return invalid("start and size must be non-negative: ", start[d], " and ", size[d]);
    dims[d] = std::clamp<int64_t>(in.dims[d] - start[d], 0, size[d]);
  }
  std::vector<int64_t> rows, flat;
  for (int64_t i = 0; i < in.count(); ++i) {
    bool inside = true;
    for (int64_t d = 0; d < in.rank() && inside; ++d)
      inside = in.row(i)[d] >= start[d] && in.row(i)[d] - start[d] < dims[d];
    if (!inside)
      continue;
    rows.push_back(i);
    for (int64_t d = 0; d < in.rank(); ++d)
      flat.push_back(in.row(i)[d] - start[d]);
  }
  LATHE_TRY_VALUE(values, pick(context, in.values, {static_cast<int64_t>(rows.size())}, rows));
  context.setOutput(0, int64Vector(flat).reshaped({static_cast<int64_t>(rows.size()), in.rank()}));
  context.setOutput(1, values);
  context.setOutput(2, int64Vector(dims));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseSlice, sparseSlice);

absl::Status sparseSliceGrad(KernelContext &context) {
  Tensor grad = context.input(0), in = context.input(1), start = context.input(2), out = context.input(3);
  if (in.rank() != 2 || out.rank() != 2 || grad.rank() != 1 || start.rank() != 1 || in.dim(1) != out.dim(1) ||
      start.dim(0) != in.dim(1) || out.dim(0) != grad.dim(0))
    return invalid("gradient, indices and start do not fit: ", dimsToString(grad.dims()), ", ", dimsToString(in.dims()), ", ",
                   dimsToString(start.dims()), ", ", dimsToString(out.dims()));
  int64_t rank = in.dim(1), next = 0;
  std::vector<int64_t> from(in.dim(0), -1);
  for (int64_t i = 0; i < in.dim(0) && next < out.dim(0); ++i) {
    bool same = true;
    for (int64_t d = 0; d < rank && same; ++d)
      same = in.data<int64_t>()[i * rank + d] == out.data<int64_t>()[next * rank + d] + start.data<int64_t>()[d];
    if (same)
      from[i] = next++;
  }
  if (next < out.dim(0))
    return absl::InternalError("Elements of backprop_val_grad aren't all propagated");
  LATHE_TRY_VALUE(result, pick(context, grad, {in.dim(0)}, from));
  context.setOutput(0, result);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseSliceGrad, sparseSliceGrad);

absl::Status sparseToDense(KernelContext &context) {
  Tensor indices = context.input(0), values = context.input(2), rest = context.input(3);
  LATHE_TRY_VALUE(dims, dimsOf(context.input(1), "output_shape"));
  if (indices.rank() > 2 || values.rank() > 1 || rest.numElements() != 1)
    return invalid("sparse_indices must be at most a matrix, sparse_values at most a vector, default_value a scalar: ",
                   dimsToString(indices.dims()), ", ", dimsToString(values.dims()), ", ", dimsToString(rest.dims()));
  int64_t rows = indices.rank() > 0 ? indices.dim(0) : 1, rank = indices.rank() > 1 ? indices.dim(1) : 1;
  if (static_cast<int64_t>(dims.size()) != rank)
    return invalid("output_shape has incorrect number of elements: ", dims.size(), " should be: ", rank);
  if (values.rank() == 1 && values.numElements() != rows)
    return invalid("sparse_values has incorrect shape ", dimsToString(values.dims()), ", should be [] or [", rows, "]");
  bool check = *attrOf<bool>(*context.node, "validate_indices");
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (int64_t i = 0; i < out.numElements(); ++i)
    copyElement(out, i, rest, 0);
  int64_t before = -1;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t flat = 0;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t i = intAt(indices, r * rank + d);
      if (i < 0 || i >= dims[d])
        return invalid("indices[", r, "] is out of bounds: need 0 <= index < ", dimsToString(dims));
      flat = flat * dims[d] + i;
    }
    if (check && flat <= before)
      return invalid("indices[", r, "] is ", flat == before ? "repeated" : "out of order");
    before = flat;
    copyElement(out, flat, values, values.rank() ? r : 0);
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseToDense, sparseToDense);

absl::Status sparseFillEmptyRows(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  Tensor rest = context.input(3);
  if (rest.rank() != 0)
    return invalid("default_value must be a scalar, saw: ", dimsToString(rest.dims()));
  if (in.rank() < 1)
    return invalid("Dense shape cannot be empty.");
  int64_t rows = in.dims[0], rank = in.rank();
  if (rows > memoryBudget() / 8)
    return absl::ResourceExhaustedError(absl::StrCat(rows, " rows are too many"));
  std::vector<int64_t> ends(rows, 0);
  for (int64_t i = 0; i < in.count(); ++i) {
    int64_t row = in.row(i)[0];
    if (row < 0 || row >= rows)
      return invalid("indices(", i, ", 0) is invalid: ", row, " >= ", rows);
    ++ends[row];
  }
  LATHE_TRY_VALUE(empty, context.allocateOutput(2, {rows}));
  int64_t total = 0;
  std::vector<int64_t> starts(rows);
  for (int64_t r = 0; r < rows; ++r) {
    empty.data<bool>()[r] = ends[r] == 0;
    starts[r] = total;
    total += std::max<int64_t>(ends[r], 1);
  }
  LATHE_TRY_VALUE(indices, context.allocateOutput(0, {total, rank}));
  std::vector<int64_t> from(total, -1), reverse(in.count());
  std::vector<int64_t> next = starts;
  for (int64_t i = 0; i < in.count(); ++i) {
    int64_t at = next[in.row(i)[0]]++;
    std::copy_n(in.row(i), rank, indices.data<int64_t>() + at * rank);
    from[at] = i;
    reverse[i] = at;
  }
  for (int64_t r = 0; r < rows; ++r)
    if (ends[r] == 0)
      indices.data<int64_t>()[starts[r] * rank] = r;
  LATHE_TRY_VALUE(values, pick(context, in.values, {total}, from, rest));
  context.setOutput(1, values);
  context.setOutput(3, int64Vector(reverse));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseFillEmptyRows, sparseFillEmptyRows);

/// Sends gradients back through SparseFillEmptyRows and RaggedFillEmptyRows: what no value took goes to the default.
absl::Status fillEmptyRowsGrad(KernelContext &context) {
  Tensor map = context.input(0), grad = context.input(1);
  if (map.rank() != 1 || grad.rank() != 1)
    return invalid("reverse_index_map and grad_values must be vectors, saw: ", dimsToString(map.dims()), " and ",
                   dimsToString(grad.dims()));
  std::vector<int64_t> from = intsOf(map);
  std::vector<bool> taken(grad.numElements(), false);
  for (int64_t i : from) {
    if (i < 0 || i >= grad.numElements())
      return invalid("Elements in reverse index must be in [0, ", grad.numElements(), ") but got ", i);
    taken[i] = true;
  }
  LATHE_TRY_VALUE(values, pick(context, grad, {map.numElements()}, from));
  context.setOutput(0, values);
  LATHE_TRY_VALUE(rest, context.allocateOutput(1, {}));
  return withType(grad.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    T sum{};
    for (int64_t i = 0; i < grad.numElements(); ++i)
      if (!taken[i])
        sum = added(sum, grad.data<T>()[i]);
    *rest.template data<T>() = sum;
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(SparseFillEmptyRowsGrad, fillEmptyRowsGrad);
LATHE_HOST_FUNCTION(RaggedFillEmptyRowsGrad, fillEmptyRowsGrad);

} // namespace
} // namespace lathe::rt
