// Items of lists: what the list, TensorArray and stack ops do with them.
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/control/Lists.h"

using namespace mlir;

namespace lathe::legalize {

/// Room for lists whose number of items nothing bounds: more items are a run-time error.
static constexpr int64_t kUnboundedItems = 4096;
static constexpr int64_t kUnboundedBytes = int64_t(64) << 20;

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

FailureOr<AffineExpr> lengthInput(NodeContext &c, unsigned i) {
  auto length = c.sizeInput(i);
  if (succeeded(length))
    if (auto n = constantOf(*length); n && *n < 0)
      return c.error("the number of elements must not be negative");
  return length;
}

Value indexInput(NodeContext &c, unsigned i) {
  Value v = c.input(i);
  if (v && (Emitter::rank(v) != 0 || !Emitter::isInteger(v))) {
    (void)c.error("input " + Twine(i) + " must be an integer scalar");
    return {};
  }
  return v;
}

Value itemsOf(NodeContext &c, ListValue &list) {
  if (!list.count)
    return list.buffer;
  AffineExpr n = c.ctx.newDataSymbol((c.name() + ".items").str(), list.length);
  hlo::SetSizeOp::create(c.b, c.loc, list.count, int64_t(cast<AffineSymbolExpr>(n).getPosition()), c.name());
  Value items = c.sliceDim(list.buffer, 0, c.size(0), n);
  return items;
}

LogicalResult setItem(NodeContext &c, ListValue &list, Value index, Value item, bool accumulate) {
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

int64_t roomFor(const ListValue &list, int64_t wanted) {
  wanted = std::max(wanted, kUnboundedItems);
  auto type = list.buffer ? dyn_cast<RankedTensorType>(list.buffer.getType()) : RankedTensorType();
  if (!type || !type.hasStaticShape())
    return kUnboundedItems;
  int64_t bytes = 16;
  for (int64_t d : type.getShape().drop_front())
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(d, 1), &bytes))
      return 1;
  return std::clamp<int64_t>(kUnboundedBytes / bytes, 1, wanted);
}

LogicalResult setGrowing(NodeContext &c, ListValue &list, unsigned input, Value item) {
  growFor(c, list, input);
  auto known = c.trySizes(input);
  if (!list.count && known && constantOf((*known)[0]) && constantOf(list.length))
    return failed(checkIndex(c, list, input)) ? failure() : setItem(c, list, indexInput(c, input), item);
  Value index = indexInput(c, input);
  if (!index || !item || failed(typeList(c, list, c.dims(item))))
    return failure();
  if (!list.count) {
    AffineExpr capacity = list.maxItems > 0 ? c.size(list.maxItems) : hlo::simplify(list.length + roomFor(list));
    if (failed(makeCounted(c, list, capacity)))
      return failure();
  }
  Type i32 = c.b.getI32Type();
  Value at = c.convert(index, i32), limit = c.sizeValue(list.length, i32);
  c.check(c.compare(Compare::GE, at, c.like(at, 0)), "the index is negative");
  c.check(c.compare(Compare::LT, at, limit), "the list is full");
  if (failed(setItem(c, list, at, item)))
    return failure();
  list.count = c.max(list.count, c.add(at, c.scalarInt(1, i32)));
  return success();
}

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

void checkIndices(NodeContext &c, const ListValue &list, Value indices) {
  if (!list.count)
    return checkRange(c, indices, list.length, "an index is out of range for the list");
  Value limit = c.convert(list.count, Emitter::elementType(indices));
  c.check(c.logicalAnd(c.compare(Compare::LT, indices, limit), c.compare(Compare::GE, indices, c.like(indices, 0))),
          "an index is out of range for the list");
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

Value gatherRows(NodeContext &c, Value x, Value indices) {
  // The rows in order are the tensor itself.
  auto known = c.ctx.fold(indices);
  auto n = constantOf(c.dim(x, 0));
  if (known && n && known->numElements() == *n && known->rank() == 1) {
    bool inOrder = true;
    for (int64_t i = 0; i < *n; ++i)
      inOrder &= (known->dtype() == DType::Int64 ? known->data<int64_t>()[i] : known->data<int32_t>()[i]) == i;
    if (inOrder)
      return x;
  }
  return c.takeSlices(x, indices, 0);
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

LogicalResult scatterItems(NodeContext &c, ListValue &list, Value indices, Value rows, bool accumulate) {
  if (!indices || !rows || Emitter::rank(rows) < 1)
    return failure();
  if (Emitter::rank(indices) != 1 || !c.ctx.unify(c.dim(rows, 0), c.dim(indices, 0), c.name()))
    return c.error("there are not as many items as indices");
  Dims element = c.dims(rows);
  element.erase(element.begin());
  if (failed(typeList(c, list, element)))
    return failure();
  checkIndices(c, list, indices);
  list.buffer = putRows(c, list.buffer, indices, rows, accumulate);
  return success();
}

LogicalResult setConcat(NodeContext &c, ListValue &list, Type lengthType) {
  if (Emitter::rank(list.buffer) < 2)
    return c.error("the list's elements are scalars, which cannot be concatenated");
  Value items = itemsOf(c, list);
  Dims dims = c.dims(items);
  Dims joined(dims.begin() + 1, dims.end());
  joined[0] = productOf({dims[0], dims[1]}, c.b.getContext());
  if (failed(c.setResult(0, c.reshape(items, joined))))
    return failure();
  Value length = c.sizeValue(dims[1], lengthType);
  return c.setResult(1, c.broadcastInDim(length, {dims[0]}, {}));
}

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

} // namespace lathe::legalize
