// Operators that change shapes or put tensors together.
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "compiler/frontend/tflite/Translator.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

LogicalResult pass(OpContext &c, FailureOr<GraphValues> results) {
  if (failed(results))
    return failure();
  for (auto [i, v] : llvm::enumerate(*results))
    (void)c.setResult(i, v);
  return success();
}

GraphValue intsValue(OpContext &c, ArrayRef<int64_t> values) {
  return GraphValue::ofTensor(c.constantInts(values, c.b.getI32Type()));
}

/// Values of an input of integers of any width as one of i32 where the handler wants that.
GraphValue ints(OpContext &c, unsigned i) {
  const GraphValue &v = c.value(i);
  if (!v.isTensor() || !v.tensor)
    return v;
  Type element = Emitter::elementType(v.tensor);
  if (element.isInteger(32) || element.isInteger(64))
    return v;
  return GraphValue::ofTensor(c.convert(v.tensor, c.b.getI32Type()));
}

LogicalResult reshape(OpContext &c) {
  GraphValue shape;
  if (c.hasInput(1) && c.value(1).isTensor()) {
    shape = c.value(1);
  } else if (auto *given = c.options<tfl::ReshapeOptions>().new_shape()) {
    shape = intsValue(c, SmallVector<int64_t>(given->begin(), given->end()));
  } else {
    return c.error("the new shape is missing");
  }
  return pass(c, c.call("Reshape", {c.value(0), shape}));
}

LogicalResult squeeze(OpContext &c) {
  SmallVector<int64_t> dims;
  if (auto *given = c.options<tfl::SqueezeOptions>().squeeze_dims())
    dims.assign(given->begin(), given->end());
  return pass(c, c.call("Squeeze", {c.value(0)}, {c.attr("squeeze_dims", ArrayRef<int64_t>(dims))}));
}

/// uint8 parts of other scales than the result's are scaled in float.
Value rescaled(OpContext &c, unsigned i, std::pair<float, int64_t> out) {
  auto in = c.perTensor(c.inputInfo(i));
  Value x = c.input(i);
  if (failed(in) || !x)
    return {};
  if (*in == out)
    return x;
  const float scale = in->first * (1.f / out.first), bias = float(-in->second) * scale;
  Value real = c.convert(x, c.b.getF32Type());
  real = c.unary<hlo::RoundOp>(c.add(c.mul(real, c.like(real, scale)), c.like(real, bias)));
  return finish(c, c.convert(real, c.b.getI32Type()), out.second, rangeOf(c.outputInfo(0).type),
                c.elementOf(c.outputInfo(0)));
}

LogicalResult concatenation(OpContext &c) {
  const auto &o = c.options<tfl::ConcatenationOptions>();
  if (Value updated; isListUpdate(c, updated))
    return c.setResult(0, updated);
  GraphValues values;
  bool scaled = false;
  if (c.isQuantized(0) && c.outputInfo(0).quantization)
    for (unsigned i = 0; i < c.numInputs(); ++i)
      scaled |= !(c.inputInfo(i).quantization == c.outputInfo(0).quantization);
  if (scaled && c.outputInfo(0).type != tfl::TensorType::UINT8)
    return c.error("inputs and output must have the same scale and zero point");
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    if (!scaled) {
      values.push_back(c.value(i));
      continue;
    }
    auto out = c.perTensor(c.outputInfo(0));
    Value v = failed(out) ? Value() : rescaled(c, i, *out);
    if (!v)
      return failure();
    values.push_back(GraphValue::ofTensor(v));
  }
  values.push_back(GraphValue::ofTensor(c.scalarInt(o.axis(), c.b.getI32Type())));
  auto result = c.call("ConcatV2", values, {c.attr("N", int64_t(c.numInputs()))});
  if (failed(result))
    return failure();
  if (o.fused_activation_function() == Activation::NONE)
    return c.setResult(0, result->front());
  if (c.isQuantized(0))
    return c.error("a fused activation is not supported for quantized types");
  return c.setResult(0, c.activate(c.ctx.materialize(result->front(), c.loc), o.fused_activation_function()));
}

LogicalResult split(OpContext &c) {
  return pass(c, c.call("Split", {c.value(0), c.value(1)}, {c.attr("num_split", int64_t(c.numOutputs()))}));
}

LogicalResult splitV(OpContext &c) {
  return pass(c, c.call("SplitV", {c.value(0), c.value(1), c.value(2)}, {c.attr("num_split", int64_t(c.numOutputs()))}));
}

LogicalResult pack(OpContext &c) {
  GraphValues values;
  for (unsigned i = 0; i < c.numInputs(); ++i)
    values.push_back(c.value(i));
  return pass(c, c.call("Pack", values, {c.attr("axis", int64_t(c.options<tfl::PackOptions>().axis())),
                                         c.attr("N", int64_t(c.numInputs()))}));
}

LogicalResult unpack(OpContext &c) {
  return pass(c, c.call("Unpack", {c.value(0)}, {c.attr("axis", int64_t(c.options<tfl::UnpackOptions>().axis())),
                                                 c.attr("num", int64_t(c.numOutputs()))}));
}

/// TensorFlow's op on the first `n` inputs as they are.
std::function<LogicalResult(OpContext &)> same(const char *op, unsigned n) {
  return [op, n](OpContext &c) {
    GraphValues values;
    for (unsigned i = 0; i < n; ++i)
      values.push_back(i ? ints(c, i) : c.value(i));
    return pass(c, c.call(op, values));
  };
}

LogicalResult shape(OpContext &c) {
  return pass(c, c.call("Shape", {c.value(0)}, {c.attr("out_type", c.elementOf(c.outputInfo(0)))}));
}

LogicalResult fill(OpContext &c) { return pass(c, c.call("Fill", {c.value(0), c.value(1)})); }

LogicalResult range(OpContext &c) { return pass(c, c.call("Range", {c.value(0), c.value(1), c.value(2)})); }

LogicalResult spaceDepth(OpContext &c, const char *op, int64_t block) {
  return pass(c, c.call(op, {c.value(0)}, {c.attr("block_size", block), c.attr("data_format", "NHWC")}));
}

LogicalResult dilate(OpContext &c) {
  auto steps = c.constantInts(1);
  Value x = c.input(0), with = c.input(2);
  if (failed(steps) || !x || !with)
    return failure();
  const size_t rank = Emitter::rank(x);
  if (steps->size() != rank)
    return c.error("expected " + Twine(rank) + " dilations, found " + Twine(steps->size()));
  SmallVector<int64_t> zeros(rank, 0), interior;
  for (int64_t s : *steps) {
    if (s < 1 || s > (1 << 24))
      return c.error("dilations must be positive");
    interior.push_back(s - 1);
  }
  return c.setResult(0, c.pad(x, c.reshape(with, ArrayRef<AffineExpr>()), zeros, zeros, interior));
}

} // namespace

void registerShape(OpTable &t) {
  t.add(Op::RESHAPE, 1, 2, 2, Any, reshape);
  t.add(Op::SQUEEZE, 1, 1, 2, Any, squeeze);
  t.add(Op::EXPAND_DIMS, 2, 2, 1, Any, same("ExpandDims", 2));
  t.add(Op::TRANSPOSE, 2, 2, 6, Any, same("Transpose", 2));
  t.add(Op::TILE, 2, 2, 3, Any, same("Tile", 2));
  t.add(Op::BROADCAST_TO, 2, 2, 3, Any, same("BroadcastTo", 2));
  t.add(Op::BROADCAST_ARGS, 2, 2, 1, Ints, same("BroadcastArgs", 2));
  t.add(Op::RANK, 1, 1, 1, Any, same("Rank", 1));
  t.add(Op::REVERSE_V2, 2, 2, 3, Any, same("ReverseV2", 2));
  t.add(Op::SPACE_TO_BATCH_ND, 3, 3, 4, Any, [](OpContext &c) -> LogicalResult {
    if (c.isQuantized(0) && c.inputInfo(0).quantization.zeroPoints[0]) {
      // what is added must stand for 0: shift the numbers so that it is
      auto q = c.perTensor(c.outputInfo(0));
      Value x = c.input(0);
      if (failed(q) || !x)
        return failure();
      Type element = Emitter::elementType(x);
      auto moved = c.call("SpaceToBatchND", {GraphValue::ofTensor(widen(c, x, -q->second)), ints(c, 1), ints(c, 2)}, {},
                          c.b.getI32Type());
      if (failed(moved))
        return failure();
      return c.setResult(0, c.convert(widen(c, c.ctx.materialize(moved->front(), c.loc), q->second), element));
    }
    return pass(c, c.call("SpaceToBatchND", {c.value(0), ints(c, 1), ints(c, 2)}));
  });
  t.add(Op::BATCH_TO_SPACE_ND, 3, 3, 4, Any, same("BatchToSpaceND", 3));
  t.add(Op::SHAPE, 1, 1, 1, Any, shape);
  t.add(Op::CONCATENATION, 1, OpTable::kMany, 4, Any, concatenation);
  t.add(Op::SPLIT, 2, 2, 4, Any, split);
  t.add(Op::SPLIT_V, 3, 3, 2, Any, splitV);
  t.add(Op::PACK, 1, OpTable::kMany, 4, Any, pack);
  t.add(Op::UNPACK, 1, 1, 4, Any, unpack);
  t.add(Op::FILL, 2, 2, 4, Ints, fill);
  t.add(Op::RANGE, 3, 3, 2, Any, range);
  t.add(Op::SPACE_TO_DEPTH, 1, 1, 3, Any, [](OpContext &c) {
    return spaceDepth(c, "SpaceToDepth", c.options<tfl::SpaceToDepthOptions>().block_size());
  });
  t.add(Op::DEPTH_TO_SPACE, 1, 1, 3, Any, [](OpContext &c) {
    return spaceDepth(c, "DepthToSpace", c.options<tfl::DepthToSpaceOptions>().block_size());
  });
  t.add(Op::DILATE, 3, 3, 1, Any, dilate);
}

} // namespace lathe::tflite
