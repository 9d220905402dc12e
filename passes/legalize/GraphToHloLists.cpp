// TensorLists, TensorArrays and stacks.
#include "passes/legalize/ArrayHelpers.h"
#include "passes/legalize/Lists.h"

using namespace mlir;

namespace lathe::legalize {

bool knowsElement(const ListValue &list) {
  return list.elementDims && llvm::all_of(*list.elementDims, [](AffineExpr e) { return bool(e); });
}

LogicalResult typeList(Emitter &e, ListValue &list, std::optional<Dims> elementDims) {
  if (list.buffer)
    return success();
  if (!elementDims)
    elementDims = list.elementDims;
  if (!elementDims || !llvm::all_of(*elementDims, [](AffineExpr d) { return bool(d); }))
    return e.error("the shape of the list's elements is not known");
  if (!isa<FloatType, IntegerType, ComplexType>(list.elementType))
    return e.error("a list of this element type has no compiled form");
  list.elementDims = elementDims;
  Dims dims{list.length};
  dims.append(*elementDims);
  list.buffer = e.splatInt(0, dims, list.elementType);
  return success();
}

Value listCount(Emitter &e, const ListValue &list) {
  return list.count ? list.count : e.sizeValue(list.length, e.b.getI32Type());
}

LogicalResult makeCounted(Emitter &e, ListValue &list, AffineExpr capacity) {
  if (list.count)
    return success();
  if (failed(typeList(e, list, std::nullopt)))
    return failure();
  Value count = listCount(e, list);
  Dims dims = e.dims(list.buffer);
  if (dims[0] != capacity) {
    Dims whole = dims;
    whole[0] = capacity;
    Value room = e.splatInt(0, whole, list.elementType);
    if (constantOf(dims[0]) == int64_t(0)) {
      list.buffer = room;
    } else {
      SmallVector<Value> starts(dims.size(), e.scalarInt(0, e.b.getI32Type()));
      list.buffer = e.make<hlo::DynamicUpdateSliceOp>(room, list.buffer, ValueRange(starts));
    }
  }
  list.length = capacity;
  list.count = count;
  return success();
}

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

FailureOr<AffineExpr> lengthInput(NodeContext &c, unsigned i) {
  auto sizes = c.shapeInput(i);
  if (failed(sizes))
    return failure();
  if (sizes->size() != 1)
    return c.error("the number of elements must be a scalar");
  auto n = constantOf((*sizes)[0]);
  if (n && *n < 0)
    return c.error("the number of elements must not be negative");
  return (*sizes)[0];
}

/// An index as an integer scalar.
Value indexInput(NodeContext &c, unsigned i) {
  Value v = c.input(i);
  if (v && (Emitter::rank(v) != 0 || !Emitter::isInteger(v))) {
    (void)c.error("input " + Twine(i) + " must be an integer scalar");
    return {};
  }
  return v;
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

/// The items in use as one tensor. A list that grew at run time gets a size of its own.
Value itemsOf(NodeContext &c, ListValue &list) {
  if (!list.count)
    return list.buffer;
  AffineExpr n = c.ctx.newDataSymbol((c.name() + ".items").str(), list.length);
  hlo::SetSizeOp::create(c.b, c.loc, list.count, int64_t(cast<AffineSymbolExpr>(n).getPosition()), c.name());
  Value items = c.sliceDim(list.buffer, 0, c.size(0), n);
  return items;
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

LogicalResult setItem(NodeContext &c, ListValue &list, Value index, Value item, bool accumulate = false) {
  if (!index || !item)
    return failure();
  if (Emitter::elementType(item) != list.elementType)
    return c.error("the item's type is not that of the list");
  if (failed(typeList(c, list, c.dims(item))))
    return failure();
  Dims element = c.dims(list.buffer), have = c.dims(item);
  element.erase(element.begin());
  if (element.size() != have.size() || !llvm::all_of(llvm::zip(element, have), [&](auto pair) {
        return c.ctx.unify(std::get<0>(pair), std::get<1>(pair), c.name());
      }))
    return c.error("the item's shape is not that of the list's elements");
  if (accumulate)
    item = c.add(c.takeRow(list.buffer, index), item);
  list.buffer = c.putRow(list.buffer, item, index);
  return success();
}

/// Makes room for a constant index beyond the end (resizing lists, dynamic TensorArrays).
void growFor(NodeContext &c, ListValue &list, unsigned indexInput) {
  auto index = c.trySizes(indexInput);
  auto length = constantOf(list.length);
  if (!index || index->size() != 1 || !length || list.count)
    return;
  auto i = constantOf((*index)[0]);
  if (!i || *i < *length || *i > (int64_t(1) << 24))
    return;
  if (list.buffer) {
    SmallVector<int64_t> low(Emitter::rank(list.buffer), 0), high = low;
    high[0] = *i + 1 - *length;
    list.buffer = c.pad(list.buffer, c.scalarInt(0, list.elementType), low, high);
  }
  list.length = c.size(*i + 1);
}

/// An error for a constant index outside the list, a check at run time for others.
LogicalResult checkIndex(NodeContext &c, const ListValue &list, unsigned input) {
  auto index = c.trySizes(input);
  auto length = constantOf(list.length);
  if (index && index->size() == 1 && length && !list.count) {
    auto i = constantOf((*index)[0]);
    if (i && (*i < 0 || *i >= *length))
      return c.error("index " + Twine(*i) + " is out of range for a list of " + Twine(*length));
    if (i)
      return success();
  }
  Value at = c.input(input);
  if (!at || Emitter::rank(at) != 0 || !Emitter::isInteger(at))
    return c.error("input " + Twine(input) + " must be an integer scalar");
  Type element = Emitter::elementType(at);
  Value limit = list.count ? c.convert(list.count, element) : c.sizeValue(list.length, element);
  c.check(c.logicalAnd(c.compare(Compare::LT, at, limit), c.compare(Compare::GE, at, c.like(at, 0))),
          "the index is out of range for the list");
  return success();
}

/// The same for a vector of indices.
void checkIndices(NodeContext &c, const ListValue &list, Value indices) {
  if (!list.count)
    return checkRange(c, indices, list.length, "an index is out of range for the list");
  Value limit = c.convert(list.count, Emitter::elementType(indices));
  c.check(c.logicalAnd(c.compare(Compare::LT, indices, limit), c.compare(Compare::GE, indices, c.like(indices, 0))),
          "an index is out of range for the list");
}

LogicalResult lowerSetItem(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list))
    return failure();
  if (c.attrBool("resize_if_index_out_of_bounds"))
    growFor(c, *list, 1);
  if (failed(checkIndex(c, *list, 1)) || failed(setItem(c, *list, indexInput(c, 1), c.input(2))))
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

LogicalResult pushItem(NodeContext &c, ListValue &list, Value item) {
  if (!item)
    return failure();
  if (failed(typeList(c, list, c.dims(item))))
    return failure();
  if (list.count) {
    Value room = c.compare(Compare::LT, list.count, c.sizeValue(list.length, c.b.getI32Type()));
    c.check(room, "the list is full");
    if (failed(setItem(c, list, list.count, item)))
      return failure();
    list.count = c.add(list.count, c.scalarInt(1, c.b.getI32Type()));
    return success();
  }
  Dims row = c.dims(item);
  row.insert(row.begin(), c.size(1));
  Value one = c.reshape(item, row);
  list.buffer = constantOf(list.length) == int64_t(0) ? one : c.concat({list.buffer, one}, 0);
  list.length = c.dim(list.buffer, 0);
  return success();
}

LogicalResult popItem(NodeContext &c, ListValue &list, Value &item) {
  if (!list.buffer)
    return c.error("the list is empty");
  if (list.count) {
    Value last = c.sub(list.count, c.scalarInt(1, c.b.getI32Type()));
    c.check(c.compare(Compare::GE, last, c.like(last, 0)), "the list is empty");
    item = c.takeRow(list.buffer, last);
    list.count = last;
    return success();
  }
  if (constantOf(list.length) == int64_t(0))
    return c.error("the list is empty");
  AffineExpr last = hlo::simplify(list.length - 1);
  Value row = c.sliceDim(list.buffer, 0, last, list.length);
  item = c.reshape(row, ArrayRef<AffineExpr>(c.dims(row)).drop_front());
  list.buffer = c.sliceDim(list.buffer, 0, c.size(0), last);
  list.length = last;
  return success();
}

LogicalResult lowerPush(NodeContext &c) {
  auto list = listInput(c, 0);
  if (failed(list) || failed(pushItem(c, *list, c.input(1))))
    return failure();
  return c.setResult(0, GraphValue::ofList(*list));
}

LogicalResult lowerPop(NodeContext &c) {
  auto list = listInput(c, 0);
  Value item;
  if (failed(list) || failed(popItem(c, *list, item)))
    return failure();
  if (failed(c.setResult(0, GraphValue::ofList(*list))))
    return failure();
  return c.setResult(1, item);
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

/// Rows of `x` named by a vector of indices.
Value gatherRows(NodeContext &c, Value x, Value indices) {
  Dims dims = c.dims(x);
  int64_t rank = dims.size();
  // The rows in order are the tensor itself.
  auto known = c.ctx.fold(indices);
  auto n = constantOf(dims[0]);
  if (known && n && known->numElements() == *n && known->rank() == 1) {
    bool inOrder = true;
    for (int64_t i = 0; i < *n; ++i)
      inOrder &= (known->dtype() == DType::Int64 ? known->data<int64_t>()[i] : known->data<int32_t>()[i]) == i;
    if (inOrder)
      return x;
  }
  SmallVector<int64_t> offsets, sizes;
  for (int64_t i = 1; i < rank; ++i)
    offsets.push_back(i);
  for (int64_t i = 0; i < rank; ++i) {
    auto size = constantOf(dims[i]);
    sizes.push_back(i == 0 ? 1 : size ? *size : INT64_MIN);
  }
  auto numbers = hlo::GatherDimensionNumbersAttr::get(c.b.getContext(), offsets, {0}, {}, {}, {0}, 1);
  return c.make<hlo::GatherOp>(x, indices, numbers, c.b.getDenseI64ArrayAttr(sizes), c.b.getBoolAttr(false));
}

Value putRows(NodeContext &c, Value x, Value indices, Value rows, bool accumulate) {
  auto known = c.ctx.fold(indices);
  auto n = constantOf(c.dim(x, 0));
  if (!accumulate && known && n && known->numElements() == *n && known->rank() == 1 && c.dims(rows) == c.dims(x)) {
    bool inOrder = true;
    for (int64_t i = 0; i < *n; ++i)
      inOrder &= (known->dtype() == DType::Int64 ? known->data<int64_t>()[i] : known->data<int32_t>()[i]) == i;
    if (inOrder)
      return rows;
  }
  SmallVector<int64_t> window;
  for (int64_t i = 1; i < Emitter::rank(x); ++i)
    window.push_back(i);
  auto numbers = hlo::ScatterDimensionNumbersAttr::get(c.b.getContext(), window, {0}, {}, {}, {0}, 1);
  return c.make<hlo::ScatterOp>(ValueRange(x), indices, ValueRange(rows), numbers, false, false,
                                [&](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
                                  if (accumulate)
                                    return {hlo::AddOp::create(b, l, args[0], args[1])};
                                  return {args[1]};
                                });
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

LogicalResult scatterItems(NodeContext &c, ListValue &list, Value indices, Value rows, bool accumulate) {
  if (!indices || !rows || Emitter::rank(rows) < 1)
    return failure();
  Dims element = c.dims(rows);
  element.erase(element.begin());
  if (failed(typeList(c, list, element)))
    return failure();
  checkIndices(c, list, indices);
  list.buffer = putRows(c, list.buffer, indices, rows, accumulate);
  return success();
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

/// All items one after the other along their first dimension, and their lengths.
LogicalResult setConcat(NodeContext &c, ListValue &list, Type lengthType) {
  if (list.count || Emitter::rank(list.buffer) < 2)
    return c.error("the list's elements cannot be concatenated");
  Dims dims = c.dims(list.buffer);
  Dims joined(dims.begin() + 1, dims.end());
  joined[0] = productOf({dims[0], dims[1]}, c.b.getContext());
  if (failed(c.setResult(0, c.reshape(list.buffer, joined))))
    return failure();
  Value length = c.sizeValue(dims[1], lengthType);
  return c.setResult(1, c.broadcastInDim(length, {dims[0]}, {}));
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

/// A tensor cut into items of equal length.
LogicalResult splitInto(NodeContext &c, ListValue &list, Value x, unsigned lengthsInput) {
  auto lengths = c.constantInts(lengthsInput);
  if (!x || failed(lengths) || Emitter::rank(x) < 1)
    return failure();
  if (lengths->empty() || llvm::any_of(*lengths, [&](int64_t n) { return n != lengths->front() || n < 0; }))
    return c.error("items of different lengths have no compiled form");
  Dims dims = c.dims(x);
  if (!c.ctx.unify(dims[0], c.size(int64_t(lengths->size()) * lengths->front()), c.name()))
    return c.error("the lengths do not add up to the size of the tensor");
  dims[0] = c.size(lengths->front());
  dims.insert(dims.begin(), c.size(lengths->size()));
  list.elementType = Emitter::elementType(x);
  list.length = dims[0];
  list.elementDims = Dims(dims.begin() + 1, dims.end());
  list.buffer = c.reshape(x, dims);
  return success();
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

//===----------------------------------------------------------------------===//
// TensorArrays: state under the handle. The flow value only orders the ops, which the order of nodes does.
//===----------------------------------------------------------------------===//

LogicalResult setFlow(NodeContext &c, unsigned result) {
  return result < c.numResults() ? c.setResult(result, c.scalar(0, c.b.getF32Type())) : success();
}

LogicalResult lowerArray(NodeContext &c) {
  auto length = lengthInput(c, 0);
  if (failed(length))
    return failure();
  ArrayInfo info;
  info.elementType = c.attrType("dtype");
  info.length = *length;
  if (!info.elementType)
    return c.error("attribute dtype is missing");
  if (auto shape = c.attrShape("element_shape")) {
    Dims dims;
    for (int64_t d : *shape)
      dims.push_back(d < 0 ? AffineExpr() : c.size(d));
    info.elementDims = dims;
  }
  GraphValue handle;
  handle.kind = GraphValue::Kind::Array;
  handle.array = c.ctx.arrays.size();
  c.ctx.arrays.push_back(info);
  c.ctx.state[c.ctx.arrayKey(handle.array)] = GraphValue::ofList(c.ctx.newArrayContents(handle.array));
  if (failed(c.setResult(0, handle)))
    return failure();
  return setFlow(c, 1);
}

FailureOr<int64_t> arrayInput(NodeContext &c) {
  if (c.value(0).kind != GraphValue::Kind::Array)
    return c.error("input 0 is no TensorArray");
  return c.value(0).array;
}

/// The contents now; a gradient's array comes into being at its first use.
ListValue contentsOf(NodeContext &c, int64_t array) {
  StringRef key = c.ctx.arrayKey(array);
  auto it = c.ctx.state.find(key);
  ListValue list = it == c.ctx.state.end() ? c.ctx.newArrayContents(array) : it->second.list;
  list.length = c.ctx.resolve(list.length);
  // A gradient has the shape of what it is the gradient of.
  int64_t source = c.ctx.arrays[array].source;
  if (source >= 0 && !list.buffer) {
    ListValue forward = contentsOf(c, source);
    list.length = forward.length;
    if (forward.buffer)
      list.elementDims = Dims(ArrayRef<AffineExpr>(c.dims(forward.buffer)).drop_front());
  }
  return list;
}

LogicalResult setContents(NodeContext &c, int64_t array, const ListValue &list) {
  c.ctx.state[c.ctx.arrayKey(array)] = GraphValue::ofList(list);
  return success();
}

LogicalResult lowerArrayWrite(NodeContext &c) {
  auto array = arrayInput(c);
  if (failed(array))
    return failure();
  ListValue list = contentsOf(c, *array);
  growFor(c, list, 1);
  bool accumulate = c.ctx.arrays[*array].source >= 0;
  if (failed(checkIndex(c, list, 1)) || failed(setItem(c, list, indexInput(c, 1), c.input(2), accumulate)) ||
      failed(setContents(c, *array, list)))
    return failure();
  return setFlow(c, 0);
}

LogicalResult lowerArrayRead(NodeContext &c) {
  auto array = arrayInput(c);
  Value index = indexInput(c, 1);
  if (failed(array) || !index)
    return failure();
  ListValue list = contentsOf(c, *array);
  if (failed(checkIndex(c, list, 1)) || (!list.buffer && failed(typeList(c, list, std::nullopt))))
    return failure();
  return c.setResult(0, c.takeRow(list.buffer, index));
}

LogicalResult lowerArrayGather(NodeContext &c) {
  auto array = arrayInput(c);
  Value indices = c.input(1);
  if (failed(array) || !indices)
    return failure();
  ListValue list = contentsOf(c, *array);
  if (!list.buffer) {
    std::optional<Dims> shape;
    if (auto given = c.attrShape("element_shape")) {
      Dims dims;
      for (int64_t d : *given)
        dims.push_back(d < 0 ? AffineExpr() : c.size(d));
      shape = dims;
    }
    if (failed(typeList(c, list, knowsElement(list) ? list.elementDims : shape)))
      return failure();
  }
  checkIndices(c, list, indices);
  return c.setResult(0, gatherRows(c, list.buffer, indices));
}

LogicalResult lowerArrayScatter(NodeContext &c) {
  auto array = arrayInput(c);
  if (failed(array))
    return failure();
  ListValue list = contentsOf(c, *array);
  // A dynamic array is as long as the largest index.
  if (auto known = c.trySizes(1); known && constantOf(list.length) == int64_t(0) && !list.count) {
    int64_t largest = -1;
    for (AffineExpr e : *known)
      largest = std::max(largest, constantOf(e).value_or(-1));
    if (largest < (int64_t(1) << 24)) {
      list.length = c.size(largest + 1);
      list.buffer = Value();
    }
  }
  if (failed(scatterItems(c, list, c.input(1), c.input(2), c.ctx.arrays[*array].source >= 0)) ||
      failed(setContents(c, *array, list)))
    return failure();
  return setFlow(c, 0);
}

LogicalResult lowerArrayConcat(NodeContext &c) {
  auto array = arrayInput(c);
  if (failed(array))
    return failure();
  ListValue list = contentsOf(c, *array);
  if (!list.buffer && failed(typeList(c, list, std::nullopt)))
    return failure();
  return setConcat(c, list, c.resultType(1));
}

LogicalResult lowerArraySplit(NodeContext &c) {
  auto array = arrayInput(c);
  if (failed(array))
    return failure();
  ListValue list = contentsOf(c, *array), old = list;
  if (failed(splitInto(c, list, c.input(1), 2)))
    return failure();
  if (c.ctx.arrays[*array].source >= 0 && old.buffer)
    list.buffer = c.add(old.buffer, list.buffer);
  if (!list.buffer || failed(setContents(c, *array, list)))
    return failure();
  return setFlow(c, 0);
}

LogicalResult lowerArraySize(NodeContext &c) {
  auto array = arrayInput(c);
  if (failed(array))
    return failure();
  return c.setResult(0, GraphValue::ofSizes({contentsOf(c, *array).length}, {}, c.resultType(0)));
}

LogicalResult lowerArrayGrad(NodeContext &c) {
  auto array = arrayInput(c);
  if (failed(array))
    return failure();
  // One gradient array for each source, wherever it is asked for.
  std::string source = c.attrString("source").str();
  GraphValue handle;
  handle.kind = GraphValue::Kind::Array;
  for (auto [i, info] : llvm::enumerate(c.ctx.arrays))
    if (info.source == *array && info.sourceName == source)
      handle.array = i;
  if (handle.array < 0) {
    ArrayInfo info = c.ctx.arrays[*array];
    info.source = *array;
    info.sourceName = source;
    handle.array = c.ctx.arrays.size();
    c.ctx.arrays.push_back(info);
  }
  if (failed(c.setResult(0, handle)))
    return failure();
  return setFlow(c, 1);
}

//===----------------------------------------------------------------------===//
// Stacks: state under the node's name
//===----------------------------------------------------------------------===//

LogicalResult lowerNewStack(NodeContext &c) {
  ListValue list;
  list.elementType = c.attrType("elem_type");
  list.length = c.size(0);
  if (c.numInputs() > 0)
    if (auto limit = c.trySizes(0); limit && limit->size() == 1)
      list.maxItems = constantOf((*limit)[0]).value_or(-1);
  if (!list.elementType)
    return c.error("attribute elem_type is missing");
  StringRef key = c.ctx.intern(("stack " + c.name()).str());
  c.ctx.state[key] = GraphValue::ofList(list);
  return c.setResult(0, GraphValue::ofName(GraphValue::Kind::Variable, key));
}

FailureOr<StringRef> stackInput(NodeContext &c) {
  const GraphValue &v = c.value(0);
  if (v.kind != GraphValue::Kind::Variable)
    return c.error("input 0 is no stack");
  StringRef key = c.ctx.intern(v.name);
  auto it = c.ctx.state.find(key);
  if (it == c.ctx.state.end() || it->second.kind != GraphValue::Kind::List)
    return c.error("input 0 is no stack");
  return key;
}

LogicalResult lowerStackPush(NodeContext &c) {
  auto key = stackInput(c);
  Value item = c.input(1);
  if (failed(key) || !item)
    return failure();
  ListValue list = c.ctx.state[*key].list;
  if (failed(pushItem(c, list, item)))
    return failure();
  c.ctx.state[*key] = GraphValue::ofList(list);
  return c.setResult(0, item);
}

LogicalResult lowerStackPop(NodeContext &c) {
  auto key = stackInput(c);
  if (failed(key))
    return failure();
  ListValue list = c.ctx.state[*key].list;
  Value item;
  if (failed(popItem(c, list, item)))
    return failure();
  c.ctx.state[*key] = GraphValue::ofList(list);
  return c.setResult(0, item);
}

LogicalResult nothing(NodeContext &) { return success(); }

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
  for (StringRef version : {"", "V2", "V3"}) {
    std::string array = "TensorArray";
    t.addAnyKind(array + version.str(), 1, lowerArray);
    t.addAnyKind(array + "Write" + version.str(), 4, lowerArrayWrite);
    t.addAnyKind(array + "Read" + version.str(), 3, lowerArrayRead);
    t.addAnyKind(array + "Gather" + version.str(), 3, lowerArrayGather);
    t.addAnyKind(array + "Scatter" + version.str(), 4, lowerArrayScatter);
    t.addAnyKind(array + "Concat" + version.str(), 2, lowerArrayConcat);
    t.addAnyKind(array + "Split" + version.str(), 4, lowerArraySplit);
    t.addAnyKind(array + "Size" + version.str(), 2, lowerArraySize);
    t.addAnyKind(array + "Grad" + version.str(), 2, lowerArrayGrad);
    t.addAnyKind(array + "Close" + version.str(), 1, nothing);
  }
  for (StringRef version : {"", "V2"}) {
    std::string stack = "Stack";
    t.addAnyKind(stack + version.str(), HandlerTable::atLeast(0), lowerNewStack);
    t.addAnyKind(stack + "Push" + version.str(), 2, lowerStackPush);
    t.addAnyKind(stack + "Pop" + version.str(), 1, lowerStackPop);
    t.addAnyKind(stack + "Close" + version.str(), 1, nothing);
  }
}

} // namespace lathe::legalize
