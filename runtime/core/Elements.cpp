#include "runtime/core/Elements.h"

#include "runtime/core/Kernel.h"

#include <algorithm>
#include <cstring>

namespace lathe::rt {

std::vector<int64_t> rowDims(const Tensor &t) { return {t.dims().begin() + 1, t.dims().end()}; }

std::vector<int64_t> withDim(int64_t first, const std::vector<int64_t> &rest) {
  std::vector<int64_t> dims = {first};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

void copyElements(Tensor &to, int64_t toAt, const Tensor &from, int64_t fromAt, int64_t count) {
  if (count <= 0)
    return;
  if (from.dtype() == DType::String) {
    std::copy_n(from.strings().begin() + fromAt, count, to.mutableStrings().begin() + toAt);
  } else if (from.dtype() == DType::Variant || from.dtype() == DType::Resource) {
    std::copy_n(from.objects().begin() + fromAt, count, to.mutableObjects().begin() + toAt);
  } else {
    int64_t size = static_cast<int64_t>(dtypeSize(from.dtype()));
    std::memcpy(to.data<char>() + toAt * size, from.data<char>() + fromAt * size, count * size);
  }
}

Tensor rowsOf(const Tensor &t, int64_t start, int64_t count) {
  int64_t row = t.dim(0) ? t.numElements() / t.dim(0) : 0;
  Tensor out = Tensor::allocate(t.dtype(), withDim(count, rowDims(t)));
  copyElements(out, 0, t, start * row, count * row);
  return out;
}

Tensor rowOf(const Tensor &t, int64_t i) {
  Tensor out = Tensor::allocate(t.dtype(), rowDims(t));
  copyElements(out, 0, t, i * out.numElements(), out.numElements());
  return out;
}

void setRow(Tensor &to, int64_t i, const Tensor &row) {
  copyElements(to, i * row.numElements(), row, 0, row.numElements());
}

void copyBox(Tensor &to, const std::vector<int64_t> &toStart, const Tensor &from, const std::vector<int64_t> &fromStart,
             const std::vector<int64_t> &dims) {
  size_t rank = dims.size();
  if (rank == 0)
    return copyElements(to, 0, from, 0, 1);
  for (int64_t d : dims)
    if (d == 0)
      return;
  std::vector<int64_t> index(rank, 0);
  for (;;) {
    int64_t source = 0, target = 0;
    for (size_t d = 0; d < rank; ++d) {
      source = source * from.dim(d) + fromStart[d] + index[d];
      target = target * to.dim(d) + toStart[d] + index[d];
    }
    copyElements(to, target, from, source, dims[rank - 1]);
    size_t d = rank - 1;
    for (;;) {
      if (d == 0)
        return;
      --d;
      if (++index[d] < dims[d])
        break;
      index[d] = 0;
    }
  }
}

void setRowCorner(Tensor &to, int64_t i, const Tensor &part) {
  std::vector<int64_t> start(to.rank(), 0);
  start[0] = i;
  copyBox(to, start, part.reshaped(withDim(1, part.dims())), std::vector<int64_t>(to.rank(), 0),
          withDim(1, part.dims()));
}

void fillWith(Tensor &t, const Tensor &scalar) {
  for (int64_t i = 0; i < t.numElements(); ++i)
    copyElements(t, i, scalar, 0, 1);
}

absl::StatusOr<Tensor> stackRows(const std::vector<Tensor> &rows) {
  for (const Tensor &row : rows)
    if (row.dtype() != rows[0].dtype() || row.dims() != rows[0].dims())
      return absl::InvalidArgumentError(absl::StrCat("tensors of types ", dtypeName(rows[0].dtype()), " and ",
                                                     dtypeName(row.dtype()), " and shapes ",
                                                     dimsToString(rows[0].dims()), " and ", dimsToString(row.dims()),
                                                     " cannot be put together"));
  auto out = Tensor::tryAllocate(rows[0].dtype(), withDim(static_cast<int64_t>(rows.size()), rows[0].dims()),
                                 kMaxTensorBytes);
  if (!out.ok())
    return out;
  for (size_t i = 0; i < rows.size(); ++i)
    setRow(*out, static_cast<int64_t>(i), rows[i]);
  return out;
}

int64_t totalBytes(const Tensor &t) {
  if (t.dtype() == DType::String) {
    int64_t bytes = 0;
    for (const std::string &s : t.strings())
      bytes += static_cast<int64_t>(sizeof(std::string) + s.size());
    return bytes;
  }
  return t.sizeBytes();
}

std::vector<int64_t> integers(const Tensor &t) {
  std::vector<int64_t> out(t.numElements());
  for (int64_t i = 0; i < t.numElements(); ++i)
    out[i] = t.dtype() == DType::Int32 ? t.data<int32_t>()[i] : t.data<int64_t>()[i];
  return out;
}

absl::StatusOr<int64_t> integerScalar(const Tensor &t, const char *what) {
  if ((t.dtype() != DType::Int32 && t.dtype() != DType::Int64) || t.numElements() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat(what, " must be a scalar, not of shape ", dimsToString(t.dims())));
  return t.dtype() == DType::Int32 ? *t.data<int32_t>() : *t.data<int64_t>();
}

absl::StatusOr<std::string> stringScalar(const Tensor &t, const char *what) {
  if (t.dtype() != DType::String || t.numElements() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat(what, " must be a scalar, not of shape ", dimsToString(t.dims())));
  return t.strings()[0];
}

} // namespace lathe::rt
