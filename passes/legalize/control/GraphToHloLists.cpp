// TensorLists.
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/control/Lists.h"

using namespace mlir;

namespace lathe::legalize {

namespace {

FailureOr<ListValue> listInput(NodeContext &c, unsigned i) {
  if (i >= c.numInputs() || c.value(i).kind != GraphValue::Kind::List)
    return c.error("input " + Twine(i) + " is no TensorList");
  ListValue list = c.value(i).list;
  list.length = c.ctx.resolve(list.length);
  return list;
}

/// The element_shape input: a vector, or the scalar -1 for an unknown rank.
std::optional<Dims> elementShape(NodeContext &c, unsigned i) {
  auto sizes = c.trySizes(i);
  if (!sizes)
    return std::nullopt;
  const GraphValue &v = c.value(i);
  bool scalar = v.sizes ? v.sizesShape.empty() : (v.tensor && Emitter::rank(v.tensor) == 0);
  if (scalar)
    return std::nullopt;
  for (AffineExpr &e : *sizes)
    if (auto n = constantOf(e); n && *n < 0)
      e = AffineExpr();
  return sizes;
}

LogicalResult lowerReserve(NodeContext &c, bool empty) {
  ListValue list;
  list.elementType = c.attrType("element_dtype");
  if (!list.elementType)
    return c.error("attribute element_dtype is missing");
  list.elementDims = elementShape(c, 0);
  if (empty) {
    list.length = c.size(0);
    auto limit = c.trySizes(1);
    if (limit && limit->size() == 1)
      if (auto n = constantOf((*limit)[0]))
        list.maxItems = *n;
  } else {
    auto length = lengthInput(c, 1);
    if (failed(length))
      return failure();
    list.length = *length;
  }
  if (knowsElement(list) && failed(typeList(c, list, std::nullopt)))
    return failure();
  return c.setResult(0, GraphValue::ofList(list));
}

LogicalResult lowerFromTensor(NodeContext &c) {
  Value x = c.input(0);
  if (!x || Emitter::rank(x) < 1)
    return c.error("expected a tensor of rank 1 at least");
  ListValue list;
  Dims dims = c.dims(x);
  list.elementType = Emitter::elementType(x);
  list.length = dims[0];
  list.elementDims = Dims(dims.begin() + 1, dims.end());
  list.buffer = x;
  return c.setResult(0, GraphValue::ofList(list));
}

LogicalResult lowerStack(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list))
    return failure();
  std::optional<Dims> shape;
  if (c.numInputs() > 1)
    shape = elementShape(c, 1);
  if (!list->buffer && failed(typeList(c, *list, knowsElement(*list) ? list->elementDims : shape)))
    return failure();
  Value items = itemsOf(c, *list);
  int64_t wanted = c.attrInt("num_elements", -1);
  if (wanted >= 0 && !c.ctx.unify(c.dim(items, 0), c.size(wanted), c.name()))
    return c.error("the list has not the " + Twine(wanted) + " elements that are expected");
  // A unification may have put a check between.
  if (list->count)
    items = c.sliceDim(list->buffer, 0, c.size(0), c.ctx.resolve(c.dim(items, 0)));
  return c.setResult(0, items);
}

LogicalResult lowerSetItem(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list))
    return failure();
  bool grows = c.attrBool("resize_if_index_out_of_bounds");
  if (grows ? failed(setGrowing(c, *list, 1, c.input(2)))
            : failed(checkIndex(c, *list, 1)) || failed(setItem(c, *list, indexInput(c, 1), c.input(2))))
    return failure();
  return c.setResult(0, GraphValue::ofList(*list));
}

LogicalResult lowerGetItem(NodeContext &c) {
  auto list = listInput(c, 0);
  Value index = indexInput(c, 1);
  if (failed(list) || !index || failed(checkIndex(c, *list, 1)))
    return failure();
  if (!list->buffer && failed(typeList(c, *list, elementShape(c, 2))))
    return failure();
  return c.setResult(0, c.takeRow(list->buffer, index));
}

LogicalResult lowerLength(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list))
    return failure();
  if (list->count)
    return c.setResult(0, list->count);
  return c.setResult(0, GraphValue::ofSizes({list->length}, {}, c.resultType(0)));
}

LogicalResult lowerElementShape(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list))
    return failure();
  if (!list->elementDims) {
    // unknown, unless the list was made with a shape that only the run knows
    auto made = c.node.getInputs()[0].getDefiningOp<graph::NodeOp>();
    auto shape = made && made.getInputs().size() ? made.getInputs()[0].getDefiningOp<graph::NodeOp>() : graph::NodeOp();
    if (made && (!shape || shape.getOp() != "Const"))
      return c.error("the list's element shape must be known at compile time");
    return c.setResult(0, GraphValue::ofSizes({c.size(-1)}, {}, c.resultType(0)));
  }
  Dims dims = *list->elementDims;
  for (AffineExpr &e : dims)
    e = e ? c.ctx.resolve(e) : c.size(-1);
  return c.setResult(0, GraphValue::ofSizes(dims, {int64_t(dims.size())}, c.resultType(0)));
}

LogicalResult lowerPush(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list))
    return failure();
  const GraphValue &item = c.value(1);
  bool known = item.isTensor() && item.sizes && llvm::none_of(*item.sizes, [&](AffineExpr e) { return c.ctx.isDataSize(e); });
  if (known && (list->count || constantOf(list->length) != int64_t(0)))
    known = list->knowsItems() && ArrayRef(list->itemsShape) == ArrayRef(item.sizesShape) &&
            c.ctx.resolve(*list->items) == c.ctx.resolve(*item.sizes);
  std::optional<Dims> items = known ? item.sizes : std::nullopt;
  SmallVector<int64_t, 2> itemsShape = item.sizesShape;
  if (failed(pushItem(c, *list, c.input(1))))
    return failure();
  list->items = std::move(items);
  list->itemsShape = std::move(itemsShape);
  list->itemsBuffer = list->buffer;
  return c.setResult(0, GraphValue::ofList(*list));
}

LogicalResult lowerPop(NodeContext &c) {
  auto list = listInput(c, 0);
  Value item;
  if (failed(list))
    return failure();
  const bool known = list->knowsItems();
  if (failed(popItem(c, *list, item)))
    return failure();
  if (known)
    list->itemsBuffer = list->buffer;
  if (failed(c.setResult(0, GraphValue::ofList(*list))))
    return failure();
  return known ? c.setResult(1, GraphValue::ofSizes(*list->items, list->itemsShape, list->elementType)) : c.setResult(1, item);
}

LogicalResult lowerResize(NodeContext &c) {
  auto list = listInput(c, 0);
  auto length = lengthInput(c, 1);
  if (failed(list) || failed(length))
    return failure();
  auto from = constantOf(list->length), to = constantOf(*length);
  if (list->count || (list->buffer && (!from || !to)))
    return c.error("resizing a list of a size that is not known at compile time");
  if (list->buffer) {
    SmallVector<int64_t> low(Emitter::rank(list->buffer), 0), high = low;
    high[0] = *to - *from;
    list->buffer = c.pad(list->buffer, c.scalarInt(0, list->elementType), low, high);
  }
  list->length = *length;
  return c.setResult(0, GraphValue::ofList(*list));
}

LogicalResult lowerGather(NodeContext &c) {
  auto list = listInput(c, 0);
  Value indices = c.input(1);
  if (failed(list) || !indices)
    return failure();
  if (!list->buffer && failed(typeList(c, *list, elementShape(c, 2))))
    return failure();
  checkIndices(c, *list, indices);
  return c.setResult(0, gatherRows(c, list->buffer, indices));
}

LogicalResult lowerScatter(NodeContext &c) {
  // (tensor, indices, element_shape[, num_elements])
  Value rows = c.input(0), indices = c.input(1);
  if (!rows || !indices || Emitter::rank(rows) < 1)
    return failure();
  ListValue list;
  list.elementType = Emitter::elementType(rows);
  list.length = c.dim(rows, 0);
  std::optional<Dims> count;
  if (c.numInputs() > 3)
    count = c.trySizes(3);
  auto n = count && count->size() == 1 ? constantOf((*count)[0]) : std::nullopt;
  if (n && *n >= 0) {
    list.length = c.size(*n);
  } else if (auto known = c.ctx.fold(indices)) {
    int64_t largest = -1;
    for (int64_t i = 0; i < known->numElements(); ++i)
      largest = std::max<int64_t>(largest, known->data<int32_t>()[i]);
    if (largest >= (int64_t(1) << 24))
      return c.error("an index is out of range");
    list.length = c.size(largest + 1);
  } else if (c.numInputs() > 3) {
    return c.error("the length of the list is not known at compile time");
  }
  if (failed(scatterItems(c, list, indices, rows, false)))
    return failure();
  return c.setResult(0, GraphValue::ofList(list));
}

LogicalResult lowerScatterInto(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list) || failed(scatterItems(c, *list, c.input(2), c.input(1), false)))
    return failure();
  return c.setResult(0, GraphValue::ofList(*list));
}

LogicalResult lowerConcat(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list))
    return failure();
  if (!list->buffer) {
    std::optional<Dims> shape;
    if (c.numInputs() > 1)
      shape = elementShape(c, 1);
    if (failed(typeList(c, *list, shape)))
      return failure();
  }
  return setConcat(c, *list, c.resultType(1));
}

LogicalResult lowerSplit(NodeContext &c) {
  ListValue list;
  if (failed(splitInto(c, list, c.input(0), 2)))
    return failure();
  return c.setResult(0, GraphValue::ofList(list));
}

LogicalResult lowerConcatLists(NodeContext &c) {
  auto a = listInput(c, 0), b = listInput(c, 1);
  if (failed(a) || failed(b))
    return failure();
  if (a->count || b->count)
    return c.error("lists that grow in a loop cannot be joined");
  if (!a->buffer && !b->buffer) {
    a->length = hlo::simplify(a->length + b->length);
    return c.setResult(0, GraphValue::ofList(*a));
  }
  const ListValue &typed = a->buffer ? *a : *b;
  Dims element = c.dims(typed.buffer);
  element.erase(element.begin());
  if (failed(typeList(c, *a, element)) || failed(typeList(c, *b, element)))
    return failure();
  a->buffer = c.concat({a->buffer, b->buffer}, 0);
  a->length = c.dim(a->buffer, 0);
  return c.setResult(0, GraphValue::ofList(*a));
}

} // namespace

void registerLists(HandlerTable &t) {
  t.addAnyKind("TensorListReserve", 2, [](NodeContext &c) { return lowerReserve(c, false); });
  t.addAnyKind("EmptyTensorList", 2, [](NodeContext &c) { return lowerReserve(c, true); });
  t.addAnyKind("TensorListFromTensor", 2, lowerFromTensor);
  t.addAnyKind("TensorListStack", HandlerTable::atLeast(1), lowerStack);
  t.addAnyKind("TensorListSetItem", 3, lowerSetItem);
  t.addAnyKind("TensorListGetItem", 3, lowerGetItem);
  t.addAnyKind("TensorListLength", 1, lowerLength);
  t.addAnyKind("TensorListElementShape", 1, lowerElementShape);
  t.addAnyKind("TensorListPushBack", 2, lowerPush);
  t.addAnyKind("TensorListPopBack", 2, lowerPop);
  t.addAnyKind("TensorListResize", 2, lowerResize);
  t.addAnyKind("TensorListGather", 3, lowerGather);
  t.addAnyKind("TensorListScatter", 3, lowerScatter);
  t.addAnyKind("TensorListScatterV2", 4, lowerScatter);
  t.addAnyKind("TensorListScatterIntoExistingList", 3, lowerScatterInto);
  t.addAnyKind("TensorListConcat", 1, lowerConcat);
  t.addAnyKind("TensorListConcatV2", 3, lowerConcat);
  t.addAnyKind("TensorListSplit", 3, lowerSplit);
  t.addAnyKind("TensorListConcatLists", 2, lowerConcatLists);
  registerArraysAndStacks(t);
}

} // namespace lathe::legalize
