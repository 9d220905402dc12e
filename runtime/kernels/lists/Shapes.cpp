#include "runtime/kernels/lists/Shapes.h"

namespace lathe::rt {

absl::StatusOr<PartialShape> mergeShapes(const PartialShape &a, const PartialShape &b) {
  if (!a)
    return b;
  if (!b)
    return a;
  bool same = a->size() == b->size();
  std::vector<int64_t> dims = *a;
  for (size_t d = 0; same && d < dims.size(); ++d) {
    if (dims[d] < 0)
      dims[d] = (*b)[d];
    else
      same = (*b)[d] < 0 || (*b)[d] == dims[d];
  }
  if (!same)
    return absl::InvalidArgumentError(
        absl::StrCat("shapes ", shapeToString(a), " and ", shapeToString(b), " are incompatible"));
  return PartialShape(std::move(dims));
}

absl::StatusOr<PartialShape> shapeFromTensor(const Tensor &t) {
  if (t.dtype() != DType::Int32 && t.dtype() != DType::Int64)
    return absl::InvalidArgumentError("a shape must be int32 or int64");
  std::vector<int64_t> dims = integers(t);
  if (t.rank() == 0) {
    if (dims[0] != -1)
      return absl::InvalidArgumentError(
          "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    return PartialShape();
  }
  if (t.rank() != 1)
    return absl::InvalidArgumentError(absl::StrCat("a shape must be a vector, found rank ", t.rank()));
  for (int64_t d : dims)
    if (d < -1)
      return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " in a shape"));
  return PartialShape(std::move(dims));
}

absl::StatusOr<Tensor> zeros(DType type, const PartialShape &shape) {
  return Tensor::tryAllocate(type, *shape, kMaxTensorBytes);
}

absl::StatusOr<Tensor> concatRows(DType type, const std::vector<int64_t> &rest, const std::vector<Tensor> &parts) {
  int64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].rank() == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("Concat saw a scalar shape at index ", i, " but requires at least vectors."));
    if (rowDims(parts[i]) != rest)
      return absl::InvalidArgumentError(absl::StrCat("inconsistent shapes of elements: index ", i, " has (after the first dimension) ",
                                                     dimsToString(rowDims(parts[i])), ", expected ", dimsToString(rest)));
    rows += parts[i].dim(0);
  }
  auto out = Tensor::tryAllocate(type, withDim(rows, rest), kMaxTensorBytes);
  if (!out.ok())
    return out;
  int64_t at = 0;
  for (const Tensor &part : parts) {
    copyElements(*out, at, part, 0, part.numElements());
    at += part.numElements();
  }
  return out;
}

} // namespace lathe::rt
