// TensorArrays and stacks.
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/control/Lists.h"

using namespace mlir;

namespace lathe::legalize {

namespace {

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
  ListValue list = contentsOf(c, *array);
  if (list.count)
    return c.setResult(0, list.count);
  return c.setResult(0, GraphValue::ofSizes({list.length}, {}, c.resultType(0)));
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

void registerArraysAndStacks(HandlerTable &t) {
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
