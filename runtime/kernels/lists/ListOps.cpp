// TensorList ops on single elements: Empty, Reserve, PushBack(Batch), PopBack, GetItem, SetItem, Length, Resize,
// ElementShape, ConcatLists.
#include "runtime/kernels/lists/TensorList.h"

namespace lathe::rt {

absl::StatusOr<PartialShape> TensorList::inferShape(const PartialShape &given) const {
  auto shape = mergeShapes(given, elementShape);
  for (const Tensor &item : items) {
    if (!shape.ok() || isKnown(*shape))
      break;
    if (item.valid())
      shape = mergeShapes(*shape, item.dims());
  }
  return shape;
}

absl::StatusOr<Tensor> TensorList::itemOrZeros(int64_t i, const PartialShape &shape) const {
  if (items[i].valid())
    return items[i];
  if (!isKnown(shape))
    return absl::InvalidArgumentError(absl::StrCat(
        "Trying to read an uninitialized tensor but element_shape is not fully defined. Partial element_shape: ",
        shapeToString(shape)));
  return zeros(type, shape);
}

absl::StatusOr<ObjectPtr> TensorList::zerosLike() const {
  auto zero = std::make_shared<TensorList>(*this);
  for (Tensor &item : zero->items)
    if (item.valid()) {
      auto z = zerosLikeTensor(item);
      if (!z.ok())
        return z.status();
      item = *std::move(z);
    }
  return ObjectPtr(std::move(zero));
}

absl::StatusOr<ObjectPtr> TensorList::plus(const Object &o) const {
  const auto *other = dynamic_cast<const TensorList *>(&o);
  if (!other || other->type != type)
    return absl::InvalidArgumentError("Trying to add two lists of tensors of different dtypes.");
  if (other->items.size() != items.size())
    return absl::InvalidArgumentError(absl::StrCat("Trying to add two lists of tensors with different lengths: ", items.size(),
                                                   " and ", other->items.size()));
  auto shape = mergeShapes(elementShape, other->elementShape);
  if (!shape.ok())
    return shape.status();
  auto sum = std::make_shared<TensorList>(*this);
  sum->elementShape = *std::move(shape);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!other->items[i].valid())
      continue;
    if (!items[i].valid()) {
      sum->items[i] = other->items[i];
      continue;
    }
    auto added = addTensors(items[i], other->items[i]);
    if (!added.ok())
      return added.status();
    sum->items[i] = *std::move(added);
  }
  return ObjectPtr(std::move(sum));
}

absl::StatusOr<std::shared_ptr<const TensorList>> listInput(const KernelContext &context, int i, DType type) {
  Tensor t = context.input(i);
  std::shared_ptr<TensorList> list;
  if (t.dtype() == DType::Variant && t.numElements() == 1)
    list = std::dynamic_pointer_cast<TensorList>(t.objects()[0]);
  if (!list)
    return absl::InvalidArgumentError(absl::StrCat("Input handle is not a list. Saw: ", t.dtype() == DType::Variant && t.numElements() == 1 && t.objects()[0]
                                                                       ? t.objects()[0]->describe()
                                                                       : dtypeName(t.dtype())));
  if (type != DType::Invalid && list->type != type)
    return absl::InvalidArgumentError(absl::StrCat("Invalid data types; op elements ", dtypeName(type),
                                                   " but list elements ", dtypeName(list->type)));
  return std::shared_ptr<const TensorList>(list);
}

absl::StatusOr<std::shared_ptr<TensorList>> takeList(KernelContext &context, int i) {
  auto list = listInput(context, i);
  if (!list.ok())
    return list.status();
  const Tensor &t = context.inputs[i].tensor;
  // one reference from the tensor, one from here
  if (!context.inputs[i].ref && t.isUnique() && list->use_count() == 2)
    return std::const_pointer_cast<TensorList>(*list);
  return std::make_shared<TensorList>(**list);
}

absl::Status checkItem(const TensorList &list, const Tensor &item) {
  if (item.dtype() != list.type)
    return absl::InvalidArgumentError(absl::StrCat("Invalid data type; op elements ", dtypeName(item.dtype()),
                                                   " but list elements ", dtypeName(list.type)));
  if (!isCompatible(list.elementShape, item.dims()))
    return absl::InvalidArgumentError(
        absl::StrCat("Tried to append a tensor with incompatible shape to a list. Op element shape: ",
                     dimsToString(item.dims()), " list shape: ", shapeToString(list.elementShape)));
  return absl::OkStatus();
}

namespace {

absl::StatusOr<std::shared_ptr<TensorList>> newList(KernelContext &context, const Tensor &shape) {
  auto elementShape = shapeFromTensor(shape);
  if (!elementShape.ok())
    return elementShape.status();
  auto list = std::make_shared<TensorList>();
  list->type = *attrOf<DType>(*context.node, "element_dtype");
  list->elementShape = *std::move(elementShape);
  return list;
}

absl::Status empty(KernelContext &context) {
  auto list = newList(context, context.input(0));
  if (!list.ok())
    return list.status();
  auto most = integerScalar(context.input(1), "max_num_elements");
  if (!most.ok())
    return most.status();
  (*list)->most = *most;
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

absl::Status reserve(KernelContext &context) {
  auto list = newList(context, context.input(0));
  if (!list.ok())
    return list.status();
  auto count = integerScalar(context.input(1), "num_elements");
  if (!count.ok())
    return count.status();
  if (*count < 0 || *count > kMostListItems)
    return absl::InvalidArgumentError(absl::StrCat("The num_elements to reserve must be a non negative number, but got ", *count));
  (*list)->items.resize(*count);
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

absl::Status pushBack(KernelContext &context) {
  Tensor item = context.input(1);
  auto list = takeList(context, 0);
  if (!list.ok())
    return list.status();
  if (absl::Status fits = checkItem(**list, item); !fits.ok())
    return fits;
  if ((*list)->most >= 0 && static_cast<int64_t>((*list)->items.size()) >= (*list)->most)
    return absl::InvalidArgumentError(absl::StrCat("Tried to push item into a full list list size: ",
                                                   (*list)->items.size(), " max_num_elements: ", (*list)->most));
  (*list)->items.push_back(std::move(item));
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

absl::Status pushBackBatch(KernelContext &context) {
  Tensor handles = context.input(0), values = context.input(1);
  if (values.rank() < 1 || handles.rank() > values.rank() ||
      !std::equal(handles.dims().begin(), handles.dims().end(), values.dims().begin()))
    return absl::InvalidArgumentError(absl::StrCat("Expected tensor.shape[:rank] == input_handles.shape, found ",
                                                   dimsToString(values.dims()), " and ", dimsToString(handles.dims())));
  std::vector<int64_t> rest(values.dims().begin() + handles.rank(), values.dims().end());
  Tensor rows = values.reshaped(withDim(handles.numElements(), rest));
  std::vector<ObjectPtr> results;
  for (int64_t i = 0; i < handles.numElements(); ++i) {
    auto old = handles.dtype() == DType::Variant ? std::dynamic_pointer_cast<TensorList>(handles.objects()[i]) : nullptr;
    if (!old)
      return absl::InvalidArgumentError(absl::StrCat("handle ", i, " is not a list"));
    Tensor item = rowOf(rows, i);
    if (absl::Status fits = checkItem(*old, item); !fits.ok())
      return fits;
    auto list = std::make_shared<TensorList>(*old);
    list->items.push_back(std::move(item));
    results.push_back(std::move(list));
  }
  context.setOutput(0, Tensor::fromObjects(DType::Variant, handles.dims(), std::move(results)));
  return absl::OkStatus();
}

absl::Status popBack(KernelContext &context) {
  auto given = shapeFromTensor(context.input(1));
  if (!given.ok())
    return given.status();
  auto list = takeList(context, 0);
  if (!list.ok())
    return list.status();
  if ((*list)->type != context.node->outputTypes[1])
    return absl::InvalidArgumentError(absl::StrCat("Invalid data types; op elements ",
                                                   dtypeName(context.node->outputTypes[1]), " but list elements ",
                                                   dtypeName((*list)->type)));
  std::vector<Tensor> &items = (*list)->items;
  if (items.empty())
    return absl::InvalidArgumentError("Trying to pop from an empty list.");
  PartialShape shape;
  if (!items.back().valid()) {
    auto merged = mergeShapes(*given, (*list)->elementShape);
    if (!merged.ok())
      return merged.status();
    shape = *merged;
  }
  auto item = (*list)->itemOrZeros(static_cast<int64_t>(items.size()) - 1, shape);
  if (!item.ok())
    return item.status();
  items.pop_back();
  context.setOutput(0, listTensor(*std::move(list)));
  context.setOutput(1, *std::move(item));
  return absl::OkStatus();
}

absl::Status getItem(KernelContext &context) {
  auto list = listInput(context, 0, context.node->outputTypes[0]);
  if (!list.ok())
    return list.status();
  auto index = integerScalar(context.input(1), "index");
  if (!index.ok())
    return index.status();
  if (*index < 0 || *index >= static_cast<int64_t>((*list)->items.size()))
    return absl::InvalidArgumentError(absl::StrCat("Trying to access element ", *index, " in a list with ",
                                                   (*list)->items.size(), " elements."));
  PartialShape shape;
  if (!(*list)->items[*index].valid()) {
    auto given = shapeFromTensor(context.input(2));
    if (!given.ok())
      return given.status();
    auto inferred = (*list)->inferShape(*given);
    if (!inferred.ok())
      return inferred.status();
    shape = *inferred;
  }
  auto item = (*list)->itemOrZeros(*index, shape);
  if (!item.ok())
    return item.status();
  context.setOutput(0, *std::move(item));
  return absl::OkStatus();
}

absl::Status setItem(KernelContext &context) {
  Tensor item = context.input(2);
  auto index = integerScalar(context.input(1), "index");
  if (!index.ok())
    return index.status();
  auto list = takeList(context, 0);
  if (!list.ok())
    return list.status();
  int64_t size = static_cast<int64_t>((*list)->items.size());
  bool grow = *attrOf<bool>(*context.node, "resize_if_index_out_of_bounds") && *index < kMostListItems;
  if (*index < 0 || (*index >= size && !grow))
    return absl::InvalidArgumentError(
        absl::StrCat("Trying to modify element ", *index, " in a list with ", size, " elements."));
  if (absl::Status fits = checkItem(**list, item); !fits.ok())
    return fits;
  if (*index >= size)
    (*list)->items.resize(*index + 1);
  (*list)->items[*index] = std::move(item);
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

absl::Status length(KernelContext &context) {
  auto list = listInput(context, 0);
  if (!list.ok())
    return list.status();
  context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>((*list)->items.size())));
  return absl::OkStatus();
}

absl::Status resize(KernelContext &context) {
  auto size = integerScalar(context.input(1), "size");
  if (!size.ok())
    return size.status();
  if (*size < 0 || *size > kMostListItems)
    return absl::InvalidArgumentError(absl::StrCat("TensorListSlice expects size to be non-negative. Got: ", *size));
  auto list = takeList(context, 0);
  if (!list.ok())
    return list.status();
  (*list)->items.resize(*size);
  context.setOutput(0, listTensor(*std::move(list)));
  return absl::OkStatus();
}

absl::Status elementShape(KernelContext &context) {
  auto list = listInput(context, 0);
  if (!list.ok())
    return list.status();
  const PartialShape &shape = (*list)->elementShape;
  std::vector<int64_t> dims = shape.value_or(std::vector<int64_t>{-1});
  auto out = context.allocateOutput(
      0, shape ? std::vector<int64_t>{static_cast<int64_t>(dims.size())} : std::vector<int64_t>());
  if (!out.ok())
    return out.status();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (out->dtype() == DType::Int32)
      out->data<int32_t>()[i] = static_cast<int32_t>(dims[i]);
    else
      out->data<int64_t>()[i] = dims[i];
  }
  return absl::OkStatus();
}

absl::Status concatLists(KernelContext &context) {
  Tensor a = context.input(0), b = context.input(1);
  DType type = *attrOf<DType>(*context.node, "element_dtype");
  if (a.dims() != b.dims() || a.dtype() != DType::Variant || b.dtype() != DType::Variant)
    return absl::InvalidArgumentError(absl::StrCat("input_a and input_b must have the same shape: ",
                                                   dimsToString(a.dims()), " and ", dimsToString(b.dims())));
  std::vector<ObjectPtr> results;
  for (int64_t i = 0; i < a.numElements(); ++i) {
    auto *x = dynamic_cast<TensorList *>(a.objects()[i].get()), *y = dynamic_cast<TensorList *>(b.objects()[i].get());
    if (!x || !y)
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " is not a list"));
    if (x->type != type || y->type != type)
      return absl::InvalidArgumentError("the element types of the lists are not element_dtype");
    if (x->elementShape != y->elementShape)
      return absl::InvalidArgumentError(
          absl::StrCat("input_a and input_b TensorList element shapes are not identical at index ", i, ": ",
                       shapeToString(x->elementShape), " and ", shapeToString(y->elementShape)));
    auto list = std::make_shared<TensorList>(*x);
    list->items.insert(list->items.end(), y->items.begin(), y->items.end());
    results.push_back(std::move(list));
  }
  context.setOutput(0, Tensor::fromObjects(DType::Variant, a.dims(), std::move(results)));
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(EmptyTensorList, empty);
LATHE_HOST_FUNCTION(TensorListReserve, reserve);
LATHE_HOST_FUNCTION(TensorListPushBack, pushBack);
LATHE_HOST_FUNCTION(TensorListPushBackBatch, pushBackBatch);
LATHE_HOST_FUNCTION(TensorListPopBack, popBack);
LATHE_HOST_FUNCTION(TensorListGetItem, getItem);
LATHE_HOST_FUNCTION(TensorListSetItem, setItem);
LATHE_HOST_FUNCTION(TensorListLength, length);
LATHE_HOST_FUNCTION(TensorListResize, resize);
LATHE_HOST_FUNCTION(TensorListElementShape, elementShape);
LATHE_HOST_FUNCTION(TensorListConcatLists, concatLists);

} // namespace
} // namespace lathe::rt
