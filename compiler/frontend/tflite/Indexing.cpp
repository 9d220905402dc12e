// Operators whose indices are data: gathers, scatters, one-hot, segments, sizes that depend on data.
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "passes/legalize/array/ArrayHelpers.h"

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

GraphValue scalar(OpContext &c, int64_t value) { return GraphValue::ofTensor(c.scalarInt(value, c.b.getI32Type())); }

/// TensorFlow's op on all inputs as they are.
std::function<LogicalResult(OpContext &)> same(const char *op) {
  return [op](OpContext &c) {
    GraphValues values;
    for (unsigned i = 0; i < c.numInputs(); ++i)
      values.push_back(c.value(i));
    return pass(c, c.call(op, values));
  };
}

LogicalResult gather(OpContext &c) {
  const auto &o = c.options<tfl::GatherOptions>();
  GraphValue indices = c.value(1);
  if (indices.tensor && Emitter::elementType(indices.tensor).getIntOrFloatBitWidth() < 32)
    indices = GraphValue::ofTensor(c.convert(indices.tensor, c.b.getI32Type()));
  return pass(c, c.call("GatherV2", {c.value(0), indices, scalar(c, o.axis())},
                        {c.attr("batch_dims", int64_t(o.batch_dims()))}));
}

LogicalResult oneHot(OpContext &c) {
  return pass(c, c.call("OneHot", {c.value(0), c.value(1), c.value(2), c.value(3)},
                        {c.attr("axis", int64_t(c.options<tfl::OneHotOptions>().axis()))}));
}

LogicalResult topK(OpContext &c) {
  return pass(c, c.call("TopKV2", {c.value(0), c.value(1)}, {c.attr("sorted", true), c.attr("index_type", c.elementOf(c.outputInfo(1)))}));
}

LogicalResult unique(OpContext &c) {
  return pass(c, c.call("Unique", {c.value(0)}, {c.attr("out_idx", c.elementOf(c.outputInfo(1)))}));
}

LogicalResult reverseSequence(OpContext &c) {
  const auto &o = c.options<tfl::ReverseSequenceOptions>();
  return pass(c, c.call("ReverseSequence", {c.value(0), c.value(1)},
                        {c.attr("seq_dim", int64_t(o.seq_dim())), c.attr("batch_dim", int64_t(o.batch_dim()))}));
}

LogicalResult bucketize(OpContext &c) {
  auto *given = c.options<tfl::BucketizeOptions>().boundaries();
  SmallVector<float> boundaries;
  if (given)
    boundaries.assign(given->begin(), given->end());
  return pass(c, c.call("Bucketize", {c.value(0)}, {c.b.getNamedAttr("boundaries", c.b.getF32ArrayAttr(boundaries))}));
}

LogicalResult sparseToDense(OpContext &c) {
  return pass(c, c.call("SparseToDense", {c.value(0), c.value(1), c.value(2), c.value(3)},
                        {c.attr("validate_indices", false)}));
}

/// Results up to the size that is asked for, and how many of them count.
LogicalResult nonMaxSuppression(OpContext &c) {
  auto result = c.call("NonMaxSuppressionV4", {c.value(0), c.value(1), c.value(2), c.value(3), c.value(4)},
                       {c.attr("pad_to_max_output_size", true)});
  return pass(c, result);
}

/// The same with the scores of what is chosen; those that are lowered where boxes overlap have no compiled form.
LogicalResult softNonMaxSuppression(OpContext &c) {
  auto sigma = c.constantInput(5);
  if (failed(sigma))
    return failure();
  if (sigma->numElements() != 1 || sigma->dtype() != DType::Float32 || sigma->data<float>()[0] != 0)
    return c.error("soft_nms_sigma must be 0");
  Type i32 = c.b.getI32Type();
  Value scores = c.input(1);
  auto result = c.call("NonMaxSuppressionV4", {c.value(0), c.value(1), c.value(2), c.value(3), c.value(4)},
                       {c.attr("pad_to_max_output_size", true)}, {i32, i32});
  if (failed(result) || !scores)
    return failure();
  Value places = c.ctx.materialize((*result)[0], c.loc), count = c.ctx.materialize((*result)[1], c.loc);
  Value chosen = c.call1("GatherV2", {scores, places, c.scalarInt(0, i32)}, {c.attr("batch_dims", int64_t(0))}, Emitter::elementType(scores));
  if (!chosen)
    return failure();
  Value valid = c.compare(Compare::LT, c.iota(c.dims(chosen), 0, i32), count);
  if (failed(c.setResult(0, places)) || failed(c.setResult(1, c.select(valid, chosen, c.like(chosen, 0)))))
    return failure();
  return c.setResult(2, count);
}

LogicalResult cumsum(OpContext &c) {
  const auto &o = c.options<tfl::CumsumOptions>();
  return pass(c, c.call("Cumsum", {c.value(0), c.value(1)}, {c.attr("exclusive", o.exclusive()), c.attr("reverse", o.reverse())}));
}

} // namespace

void registerIndexing(OpTable &t) {
  t.add(Op::GATHER, 2, 2, 7, Any, gather);
  t.add(Op::GATHER_ND, 2, 2, 5, Any, same("GatherNd"));
  t.add(Op::SCATTER_ND, 3, 3, 2, Any, same("ScatterNd"));
  t.add(Op::ONE_HOT, 4, 4, 1, Any, oneHot);
  t.add(Op::TOPK_V2, 2, 2, 3, Any, topK);
  t.add(Op::UNIQUE, 1, 1, 1, Any, unique);
  t.add(Op::WHERE, 1, 1, 2, Any, same("Where"));
  t.add(Op::REVERSE_SEQUENCE, 2, 2, 1, Any, reverseSequence);
  t.add(Op::BUCKETIZE, 1, 1, 1, Any, bucketize);
  t.add(Op::SPARSE_TO_DENSE, 4, 4, 3, Any, sparseToDense);
  t.add(Op::SEGMENT_SUM, 2, 2, 1, Float32 | Ints, same("SegmentSum"));
  t.add(Op::UNSORTED_SEGMENT_SUM, 3, 3, 1, Float32 | Ints, same("UnsortedSegmentSum"));
  t.add(Op::UNSORTED_SEGMENT_PROD, 3, 3, 1, Float32 | Ints, same("UnsortedSegmentProd"));
  t.add(Op::UNSORTED_SEGMENT_MAX, 3, 3, 1, Float32 | Ints, same("UnsortedSegmentMax"));
  t.add(Op::UNSORTED_SEGMENT_MIN, 3, 3, 1, Float32 | Ints, same("UnsortedSegmentMin"));
  t.add(Op::MATRIX_DIAG, 1, 1, 1, Any, same("MatrixDiag"));
  t.add(Op::MATRIX_SET_DIAG, 2, 2, 1, Any, same("MatrixSetDiag"));
  t.add(Op::NON_MAX_SUPPRESSION_V4, 5, 5, 1, Float32, nonMaxSuppression);
  t.add(Op::NON_MAX_SUPPRESSION_V5, 6, 6, 1, Float32, softNonMaxSuppression);
  t.add(Op::CUMSUM, 2, 2, 1, Float32 | Ints, cumsum);
}

} // namespace lathe::tflite
