// Parts of tensors, and padding.
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

LogicalResult pass(OpContext &c, FailureOr<GraphValues> results) {
  return failed(results) ? failure() : c.setResult(0, results->front());
}

/// Begins, ends and sizes of less than 32 bits as i32.
GraphValue ints(OpContext &c, unsigned i) {
  const GraphValue &v = c.value(i);
  if (!v.isTensor() || !v.tensor)
    return v;
  Type element = Emitter::elementType(v.tensor);
  if (element.isInteger(64) || element.isInteger(32))
    return v;
  return GraphValue::ofTensor(c.convert(v.tensor, c.b.getI32Type()));
}

LogicalResult stridedSlice(OpContext &c) {
  const auto &o = c.options<tfl::StridedSliceOptions>();
  if (o.offset()) {
    // ends count from the begins
    auto begin = c.constantInts(1), end = c.constantInts(2);
    if (failed(begin) || failed(end))
      return failure();
    if (begin->size() != end->size())
      return c.error("begins and ends differ in number");
    for (auto [e, b] : llvm::zip(*end, *begin))
      e += b;
    return pass(c, c.call("StridedSlice",
                          {c.value(0), ints(c, 1), GraphValue::ofTensor(c.constantInts(*end, c.b.getI32Type())), ints(c, 3)},
                          {c.attr("begin_mask", int64_t(o.begin_mask())), c.attr("end_mask", int64_t(o.end_mask())),
                           c.attr("ellipsis_mask", int64_t(o.ellipsis_mask())),
                           c.attr("new_axis_mask", int64_t(o.new_axis_mask())),
                           c.attr("shrink_axis_mask", int64_t(o.shrink_axis_mask()))}));
  }
  return pass(c, c.call("StridedSlice", {c.value(0), ints(c, 1), ints(c, 2), ints(c, 3)},
                        {c.attr("begin_mask", int64_t(o.begin_mask())), c.attr("end_mask", int64_t(o.end_mask())),
                         c.attr("ellipsis_mask", int64_t(o.ellipsis_mask())),
                         c.attr("new_axis_mask", int64_t(o.new_axis_mask())),
                         c.attr("shrink_axis_mask", int64_t(o.shrink_axis_mask()))}));
}

/// The starts are moved so that the part fits, as TensorFlow's dynamic_update_slice does it.
LogicalResult dynamicUpdateSlice(OpContext &c) {
  Value x = c.input(0), update = c.input(1), start = c.input(2);
  if (!x || !update || !start)
    return failure();
  const int64_t rank = Emitter::rank(x);
  if (Emitter::rank(start) != 1 || constantOf(c.dim(start, 0)) != rank || Emitter::rank(update) != rank)
    return c.error("expected a start for each of " + Twine(rank) + " dimensions");
  SmallVector<Value> starts;
  for (int64_t i = 0; i < rank; ++i)
    starts.push_back(c.reshape(c.sliceDim(start, 0, c.size(i), c.size(i + 1)), ArrayRef<AffineExpr>()));
  return c.setResult(0, c.make<hlo::DynamicUpdateSliceOp>(x, update, ValueRange(starts)));
}

LogicalResult pad(OpContext &c) {
  GraphValue amounts = ints(c, 1);
  if (c.hasInput(2))
    return pass(c, c.call("PadV2", {c.value(0), amounts, c.value(2)}));
  int64_t zero = 0;
  if (c.outputInfo(0).quantization && OpContext::isQuantized(c.outputInfo(0)))
    zero = c.outputInfo(0).quantization.zeroPoints[0];
  Value x = c.input(0);
  if (!x)
    return failure();
  return pass(c, c.call("PadV2", {c.value(0), amounts, GraphValue::ofTensor(c.scalarInt(zero, Emitter::elementType(x)))}));
}

LogicalResult mirrorPad(OpContext &c) {
  bool symmetric = c.options<tfl::MirrorPadOptions>().mode() == tfl::MirrorPadMode::SYMMETRIC;
  return pass(c, c.call("MirrorPad", {c.value(0), ints(c, 1)}, {c.attr("mode", symmetric ? "SYMMETRIC" : "REFLECT")}));
}

} // namespace

void registerSlice(OpTable &t) {
  t.add(Op::SLICE, 3, 3, 6, Any, [](OpContext &c) { return pass(c, c.call("Slice", {c.value(0), ints(c, 1), ints(c, 2)})); });
  t.add(Op::STRIDED_SLICE, 4, 4, 8, Any, stridedSlice);
  t.add(Op::DYNAMIC_UPDATE_SLICE, 3, 3, 4, Any, dynamicUpdateSlice);
  t.add(Op::PAD, 2, 2, 5, Any, pad);
  t.add(Op::PADV2, 3, 3, 5, Any, pad);
  t.add(Op::MIRROR_PAD, 2, 2, 3, Any, mirrorPad);
}

} // namespace lathe::tflite
