// TensorArray ops on many elements: Gather and Pack, Concat, Scatter and Unpack, Split.
#include "runtime/kernels/lists/TensorArray.h"

#include <algorithm>
#include <numeric>

namespace lathe::rt {
namespace {

std::vector<int64_t> countTo(int64_t n) {
  std::vector<int64_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

absl::Status checkType(const TensorArray &array, DType type) {
  if (array.type() == type)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("TensorArray dtype is ", dtypeName(array.type()),
                                                 " but Op has dtype ", dtypeName(type), "."));
}

/// Gather, and with `all` Pack.
template <bool all>
absl::Status gather(KernelContext &context) {
  auto array = stepResource<TensorArray>(context, 0);
  if (!array.ok())
    return array.status();
  if (absl::Status same = checkType(**array, context.node->outputTypes[0]); !same.ok())
    return same;
  auto shape = (*array)->refineShape(*attrOf<PartialShape>(*context.node, "element_shape"));
  if (!shape.ok())
    return shape.status();
  std::vector<int64_t> indices;
  if (all) {
    auto size = (*array)->size();
    if (!size.ok())
      return size.status();
    indices = countTo(*size);
  } else {
    Tensor given = context.input(1);
    if (given.rank() != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("Expected indices to be a vector, but received shape: ", dimsToString(given.dims())));
    indices = integers(given);
  }
  if (indices.empty()) {
    if (!isKnown(*shape))
      return absl::UnimplementedError(absl::StrCat("TensorArray has size zero, but element shape ", shapeToString(*shape),
                                                   " is not fully defined. Currently only static shapes are supported when "
                                                   "packing zero-size TensorArrays."));
    return context.allocateOutput(0, withDim(0, **shape)).status();
  }
  auto values = (*array)->read(indices);
  if (!values.ok())
    return values.status();
  if (!isCompatible(*shape, (*values)[0].dims()))
    return absl::InvalidArgumentError(absl::StrCat("TensorArray was passed element_shape ", shapeToString(*shape),
                                                   " which does not match the Tensor at index 0: ",
                                                   dimsToString((*values)[0].dims())));
  for (size_t i = 1; i < values->size(); ++i)
    if ((*values)[i].dims() != (*values)[0].dims())
      return absl::InvalidArgumentError(absl::StrCat("TensorArray has inconsistent shapes.  Index 0 has shape: ",
                                                     dimsToString((*values)[0].dims()), " but index ", i, " has shape: ",
                                                     dimsToString((*values)[i].dims())));
  auto out = stackRows(*values);
  if (!out.ok())
    return out.status();
  context.setOutput(0, *std::move(out));
  return absl::OkStatus();
}

absl::Status concat(KernelContext &context) {
  auto array = stepResource<TensorArray>(context, 0);
  if (!array.ok())
    return array.status();
  if (absl::Status same = checkType(**array, context.node->outputTypes[0]); !same.ok())
    return same;
  auto size = (*array)->size();
  if (!size.ok())
    return size.status();
  const PartialShape &rest = *attrOf<PartialShape>(*context.node, "element_shape_except0");
  std::vector<int64_t> lengths, dims;
  if (*size == 0) {
    if (!isKnown(rest))
      return absl::UnimplementedError(absl::StrCat("TensorArray has size zero, but element_shape_except0 ",
                                                   shapeToString(rest), " is not fully defined."));
    context.setOutput(1, Tensor::allocate(DType::Int64, {0}));
    return context.allocateOutput(0, withDim(0, *rest)).status();
  }
  auto values = (*array)->read(countTo(*size));
  if (!values.ok())
    return values.status();
  for (size_t i = 0; i < values->size(); ++i) {
    if ((*values)[i].rank() == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("Concat saw a scalar shape at index ", i, " but requires at least vectors."));
    lengths.push_back((*values)[i].dim(0));
  }
  dims = rowDims((*values)[0]);
  if (!isCompatible(rest, dims))
    return absl::InvalidArgumentError(absl::StrCat("TensorArray was passed element_shape_except0 ", shapeToString(rest),
                                                   " but index 0 has (excepting dimension 0) shape: ",
                                                   dimsToString(dims)));
  auto out = concatRows(context.node->outputTypes[0], dims, *values);
  if (!out.ok())
    return out.status();
  context.setOutput(0, *std::move(out));
  context.setOutput(1, Tensor::vector<int64_t>(DType::Int64, lengths));
  return absl::OkStatus();
}

/// Scatter, and with `all` Unpack.
template <bool all>
absl::Status scatter(KernelContext &context) {
  auto array = stepResource<TensorArray>(context, 0);
  if (!array.ok())
    return array.status();
  Tensor value = context.input("value");
  if (absl::Status same = checkType(**array, value.dtype()); !same.ok())
    return same;
  if (value.rank() < 1)
    return absl::InvalidArgumentError("Input value for unpack must be at least a vector");
  auto size = (*array)->size();
  if (!size.ok())
    return size.status();
  int64_t rows = value.dim(0);
  std::vector<int64_t> indices;
  if (all) {
    if (rows != *size && !((*array)->isDynamic() && rows > *size))
      return absl::InvalidArgumentError(absl::StrCat("Input value must have first dimension equal to the array size (",
                                                     rows, " vs. ", *size, ")"));
    indices = countTo(rows);
  } else {
    indices = integers(context.input("indices"));
    if (context.input("indices").rank() != 1)
      return absl::InvalidArgumentError("Expected indices to be a vector");
    if (static_cast<int64_t>(indices.size()) != rows)
      return absl::InvalidArgumentError(absl::StrCat("Expected len(indices) == values.shape[0], but saw: ", indices.size(),
                                                     " vs. ", rows));
    int64_t most = indices.empty() ? -1 : *std::max_element(indices.begin(), indices.end());
    if (most >= *size && !(*array)->isDynamic())
      return absl::InvalidArgumentError(absl::StrCat("Max scatter index must be < array size (", most, " vs. ", *size, ")"));
  }
  std::vector<Tensor> values;
  for (int64_t i = 0; i < rows; ++i)
    values.push_back(rowOf(value, i));
  if (absl::Status written = (*array)->write(indices, values); !written.ok())
    return written;
  context.setOutput(0, context.input("flow_in"));
  return absl::OkStatus();
}

absl::Status split(KernelContext &context) {
  auto array = stepResource<TensorArray>(context, 0);
  if (!array.ok())
    return array.status();
  Tensor value = context.input("value"), lengthsTensor = context.input("lengths");
  if (absl::Status same = checkType(**array, value.dtype()); !same.ok())
    return same;
  if (lengthsTensor.rank() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("Expected lengths to be a vector, received shape: ", dimsToString(lengthsTensor.dims())));
  if (value.rank() < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("Expected value to be at least a vector, but received shape: ", dimsToString(value.dims())));
  auto size = (*array)->size();
  if (!size.ok())
    return size.status();
  std::vector<int64_t> lengths = integers(lengthsTensor);
  int64_t count = static_cast<int64_t>(lengths.size()), total = 0;
  for (int64_t length : lengths) {
    if (length < 0 || length > value.dim(0))
      return absl::InvalidArgumentError(absl::StrCat("length ", length, " does not fit a value of shape ",
                                                     dimsToString(value.dims())));
    total += length;
  }
  if (total != value.dim(0))
    return absl::InvalidArgumentError(absl::StrCat("Expected sum of lengths to be equal to values.shape[0], but sum of "
                                                   "lengths is ",
                                                   total, " and value's shape is: ", dimsToString(value.dims())));
  if (*size != count && !((*array)->isDynamic() && count > *size))
    return absl::InvalidArgumentError(absl::StrCat("TensorArray's size is not equal to the size of lengths (", *size,
                                                   " vs. ", count,
                                                   "), and the TensorArray is not marked as dynamically resizeable."));
  std::vector<Tensor> values;
  int64_t at = 0;
  for (int64_t length : lengths) {
    values.push_back(rowsOf(value, at, length));
    at += length;
  }
  if (absl::Status written = (*array)->write(countTo(count), values); !written.ok())
    return written;
  context.setOutput(0, context.input("flow_in"));
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(TensorArrayPack, gather<true>);
LATHE_HOST_FUNCTION(TensorArrayGather, gather<false>);
LATHE_HOST_FUNCTION(TensorArrayGatherV2, gather<false>);
LATHE_HOST_FUNCTION(TensorArrayGatherV3, gather<false>);
LATHE_HOST_FUNCTION(TensorArrayConcat, concat);
LATHE_HOST_FUNCTION(TensorArrayConcatV2, concat);
LATHE_HOST_FUNCTION(TensorArrayConcatV3, concat);
LATHE_HOST_FUNCTION(TensorArrayUnpack, scatter<true>);
LATHE_HOST_FUNCTION(TensorArrayScatter, scatter<false>);
LATHE_HOST_FUNCTION(TensorArrayScatterV2, scatter<false>);
LATHE_HOST_FUNCTION(TensorArrayScatterV3, scatter<false>);
LATHE_HOST_FUNCTION(TensorArraySplit, split);
LATHE_HOST_FUNCTION(TensorArraySplitV2, split);
LATHE_HOST_FUNCTION(TensorArraySplitV3, split);

} // namespace
} // namespace lathe::rt
