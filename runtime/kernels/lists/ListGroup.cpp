// TensorList ops on many elements: Stack, FromTensor, Gather, Scatter (V1, V2, IntoExistingList), Concat(V2), Split.
#include "runtime/kernels/lists/TensorList.h"

#include <algorithm>
#include <numeric>

namespace lathe::rt {
namespace {

/// The items at `indices` as one tensor.
absl::Status packItems(KernelContext &context, const TensorList &list, const std::vector<int64_t> &indices,
                       const PartialShape &given, const char *what) {
  auto shape = list.inferShape(given);
  if (!shape.ok())
    return shape.status();
  if (!isKnown(*shape) && indices.empty())
    return absl::InvalidArgumentError(absl::StrCat(what, " with non-fully-defined element_shape: ", shapeToString(*shape)));
  std::vector<Tensor> values;
  for (int64_t i : indices) {
    auto item = list.itemOrZeros(i, *shape);
    if (!item.ok())
      return item.status();
    values.push_back(*std::move(item));
  }
  if (values.empty())
    return context.allocateOutput(0, withDim(0, **shape)).status();
  auto out = stackRows(values);
  if (!out.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("Tried to stack list which contains tensors of different shapes: ", out.status().message()));
  context.setOutput(0, *std::move(out));
  return absl::OkStatus();
}

absl::Status stack(KernelContext &context) {
  auto list = listInput(context, 0, context.node->outputTypes[0]);
  if (!list.ok())
    return list.status();
  auto given = shapeFromTensor(context.input(1));
  if (!given.ok())
    return given.status();
  int64_t count = *attrOf<int64_t>(*context.node, "num_elements");
  int64_t size = static_cast<int64_t>((*list)->items.size());
  if (count != -1 && count != size)
    return absl::InvalidArgumentError(absl::StrCat("Operation expected a list with ", count,
                                                   " elements but got a list with ", size, " elements."));
  std::vector<int64_t> all(size);
  std::iota(all.begin(), all.end(), 0);
  return packItems(context, **list, all, *given, "Tried to stack elements of an empty list");
}

absl::Status gather(KernelContext &context) {
  auto list = listInput(context, 0, context.node->outputTypes[0]);
  if (!list.ok())
    return list.status();
  auto given = shapeFromTensor(context.input(2));
  if (!given.ok())
    return given.status();
  std::vector<int64_t> indices = integers(context.input(1));
  for (int64_t i : indices)
    if (i < 0 || i >= static_cast<int64_t>((*list)->items.size()))
      return absl::InvalidArgumentError(absl::StrCat("Index ", i, " out of range; list only has ",
                                                     (*list)->items.size(), " elements."));
  return packItems(context, **list, indices, *given, "Tried to gather 0-elements from a list");
}

/// A list of the element type and shape that a node gives for `tensor`, whose rows become elements.
absl::StatusOr<std::shared_ptr<TensorList>> listFor(const Tensor &tensor, const Tensor &shapeTensor) {
  auto shape = shapeFromTensor(shapeTensor);
  if (!shape.ok())
    return shape.status();
  if (tensor.rank() < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("Tensor must be at least a vector, but saw shape: ", dimsToString(tensor.dims())));
  auto list = std::make_shared<TensorList>();
  list->type = tensor.dtype();
  list->elementShape = *std::move(shape);
  return list;
}

absl::Status fromTensor(KernelContext &context) {
  Tensor tensor = context.input(0);
  auto list = listFor(tensor, context.input(1));
  if (!list.ok())
    return list.status();
  if (!isCompatible((*list)->elementShape, rowDims(tensor)))
    return absl::InvalidArgumentError(absl::StrCat("Specified a list with shape ", shapeToString((*list)->elementShape),
                                                   " from a tensor with shape ", dimsToString(rowDims(tensor))));
  for (int64_t i = 0; i < tensor.dim(0); ++i)
    (*list)->items.push_back(rowOf(tensor, i));
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

absl::Status scatterRows(TensorList &list, const Tensor &tensor, const Tensor &indicesTensor, bool mayGrow) {
  std::vector<int64_t> indices = integers(indicesTensor);
  if (tensor.rank() < 1 || static_cast<int64_t>(indices.size()) != tensor.dim(0))
    return absl::InvalidArgumentError(absl::StrCat("Invalid number of rows in input tensor. Expected: ", indices.size(),
                                                   " Actual shape: ", dimsToString(tensor.dims())));
  for (size_t k = 0; k < indices.size(); ++k) {
    if (indices[k] < 0)
      return absl::InvalidArgumentError("Indices in TensorListScatter must all be non-negative.");
    if (indices[k] >= static_cast<int64_t>(list.items.size())) {
      if (!mayGrow || indices[k] >= kMostListItems)
        return absl::InvalidArgumentError(absl::StrCat("TensorListScatter: Trying to scatter at index ", indices[k],
                                                       " in list with size ", list.items.size()));
      list.items.resize(indices[k] + 1);
    }
    Tensor row = rowOf(tensor, static_cast<int64_t>(k));
    if (absl::Status fits = checkItem(list, row); !fits.ok())
      return fits;
    list.items[indices[k]] = std::move(row);
  }
  return absl::OkStatus();
}

absl::Status scatter(KernelContext &context) {
  Tensor tensor = context.input(0);
  auto list = listFor(tensor, context.input(2));
  if (!list.ok())
    return list.status();
  int64_t count = -1;
  if (context.numInputs() > 3) {
    auto given = integerScalar(context.input(3), "num_elements");
    if (!given.ok())
      return given.status();
    count = *given;
    if (count < -1 || count > kMostListItems)
      return absl::InvalidArgumentError(
          absl::StrCat("TensorListScatter expects num_elements >= -1, found: ", count));
    (*list)->items.resize(std::max<int64_t>(count, 0));
  }
  if (absl::Status done = scatterRows(**list, tensor, context.input(1), count == -1); !done.ok())
    return done;
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

absl::Status scatterIntoExisting(KernelContext &context) {
  Tensor tensor = context.input(1), indices = context.input(2);
  auto list = takeList(context, 0);
  if (!list.ok())
    return list.status();
  if (absl::Status done = scatterRows(**list, tensor, indices, true); !done.ok())
    return done;
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

absl::Status concat(KernelContext &context) {
  auto list = listInput(context, 0, context.node->outputTypes[0]);
  if (!list.ok())
    return list.status();
  const std::vector<Tensor> &items = (*list)->items;
  PartialShape given;
  std::vector<int64_t> leading;
  if (context.numInputs() > 1) {
    auto shape = shapeFromTensor(context.input(1));
    if (!shape.ok())
      return shape.status();
    given = *shape;
    leading = integers(context.input(2));
  } else {
    given = *attrOf<PartialShape>(*context.node, "element_shape");
  }
  if ((given && given->empty()) || ((*list)->elementShape && (*list)->elementShape->empty()))
    return absl::InvalidArgumentError("Concat requires elements to be at least vectors, found scalars instead.");
  // elements may differ in their first dimension
  auto openFirst = [](PartialShape shape) {
    if (shape && !shape->empty())
      (*shape)[0] = -1;
    return shape;
  };
  auto shape = mergeShapes(openFirst(given), openFirst((*list)->elementShape));
  auto first = mergeShapes(given, (*list)->elementShape);
  for (const Tensor &item : items)
    if (shape.ok() && item.valid()) {
      if (item.rank() == 0)
        return absl::InvalidArgumentError("Concat saw a scalar shape but requires all elements to be at least vectors.");
      shape = mergeShapes(*shape, openFirst(item.dims()));
      if (first.ok() && leading.empty())
        if (auto more = mergeShapes(*first, item.dims()); more.ok())
          first = more;
    }
  if (!shape.ok())
    return shape.status();
  PartialShape rest;
  if (*shape)
    rest = std::vector<int64_t>((*shape)->begin() + 1, (*shape)->end());
  if (!isKnown(rest))
    return absl::InvalidArgumentError(
        absl::StrCat("All except the first dimension must be fully defined when concating an empty tensor list. "
                     "element_shape: ",
                     shapeToString(*shape)));
  std::vector<Tensor> parts;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < items.size(); ++i) {
    Tensor part = items[i];
    if (!part.valid()) {
      int64_t rows = !leading.empty()              ? (i < leading.size() ? leading[i] : -1)
                     : first.ok() && *first ? (**first)[0]
                                            : -1;
      if (rows < 0)
        return absl::InvalidArgumentError(
            absl::StrCat("Concating lists with uninitialized tensors is not supported in this version of "
                         "TensorListConcat: the first dimension of element ",
                         i, " is not known"));
      auto zero = zeros((*list)->type, withDim(rows, *rest));
      if (!zero.ok())
        return zero.status();
      part = *std::move(zero);
    }
    lengths.push_back(part.dim(0));
    parts.push_back(std::move(part));
  }
  auto out = concatRows((*list)->type, *rest, parts);
  if (!out.ok())
    return out.status();
  context.setOutput(0, *std::move(out));
  context.setOutput(1, Tensor::vector<int64_t>(DType::Int64, lengths));
  return absl::OkStatus();
}

absl::Status split(KernelContext &context) {
  Tensor tensor = context.input(0), lengths = context.input(2);
  auto list = listFor(tensor, context.input(1));
  if (!list.ok())
    return list.status();
  if (lengths.rank() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("Expected lengths to be a vector, received shape: ", dimsToString(lengths.dims())));
  PartialShape elementShape = (*list)->elementShape;
  if (elementShape && !elementShape->empty())
    (*elementShape)[0] = -1; // lengths differ
  if (!isCompatible(elementShape, tensor.dims()))
    return absl::InvalidArgumentError(absl::StrCat("tensor shape ", dimsToString(tensor.dims()),
                                                   " is not compatible with element_shape ",
                                                   shapeToString((*list)->elementShape)));
  int64_t at = 0;
  for (int64_t length : integers(lengths)) {
    if (length < 0)
      return absl::InvalidArgumentError(absl::StrCat("Invalid value in lengths: ", length));
    if (length > tensor.dim(0) - at)
      return absl::InvalidArgumentError(absl::StrCat("Attempting to slice [", at, ", ", at + length,
                                                     "] from tensor with length ", tensor.dim(0)));
    (*list)->items.push_back(rowsOf(tensor, at, length));
    at += length;
  }
  if (at != tensor.dim(0))
    return absl::InvalidArgumentError(
        absl::StrCat("Unused values in tensor. Length of tensor: ", tensor.dim(0), " Values used: ", at));
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(TensorListStack, stack);
LATHE_HOST_FUNCTION(TensorListGather, gather);
LATHE_HOST_FUNCTION(TensorListFromTensor, fromTensor);
LATHE_HOST_FUNCTION(TensorListScatter, scatter);
LATHE_HOST_FUNCTION(TensorListScatterV2, scatter);
LATHE_HOST_FUNCTION(TensorListScatterIntoExistingList, scatterIntoExisting);
LATHE_HOST_FUNCTION(TensorListConcat, concat);
LATHE_HOST_FUNCTION(TensorListConcatV2, concat);
LATHE_HOST_FUNCTION(TensorListSplit, split);

} // namespace
} // namespace lathe::rt
