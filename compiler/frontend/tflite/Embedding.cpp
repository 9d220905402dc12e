// Rows of embedding tables: one for each index, or sums of weighted rows.
#include "compiler/frontend/tflite/OpTable.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

GraphValue scalar(OpContext &c, int64_t value) { return GraphValue::ofTensor(c.scalarInt(value, c.b.getI32Type())); }

/// Rows of a table; int8 rows become float by the table's scale.
LogicalResult embeddingLookup(OpContext &c) {
  auto rows = c.call("GatherV2", {c.value(1), c.value(0), scalar(c, 0)}, {c.attr("batch_dims", int64_t(0))},
                     c.elementOf(c.inputInfo(1)));
  if (failed(rows))
    return failure();
  const TensorInfo &table = c.inputInfo(1);
  if (!c.isQuantized(1) || c.outputInfo(0).type != tfl::TensorType::FLOAT32)
    return c.setResult(0, rows->front());
  Value v = c.convert(c.ctx.materialize(rows->front(), c.loc), c.b.getF32Type());
  if (table.quantization.perTensor())
    return c.setResult(0, c.mul(v, c.like(v, table.quantization.scales[0])));
  if (table.quantization.dimension != 0)
    return c.error("the table must have a scale for each row");
  Tensor scales = Tensor::allocate(DType::Float32, {int64_t(table.quantization.scales.size())});
  llvm::copy(table.quantization.scales, scales.data<float>());
  Value each = c.call1("GatherV2", {c.constant(scales), c.input(0), c.scalarInt(0, c.b.getI32Type())},
                       {c.attr("batch_dims", int64_t(0))}, c.b.getF32Type());
  if (!each)
    return failure();
  Dims dims = c.dims(each);
  dims.append(Emitter::rank(v) - dims.size(), c.size(1));
  return c.setResult(0, c.mul(v, c.reshape(each, dims)));
}

/// What is summed for each element of the result: rows by their weights, and the weights for means.
class SparseLookup {
public:
  explicit SparseLookup(OpContext &c) : c(c), i32(c.b.getI32Type()), f32(c.b.getF32Type()) {}
  LogicalResult run();

private:
  /// [n] places in the flat result from [n, rank] indices; indices outside of `shape` are an error of the run.
  Value places(Value indices, ArrayRef<int64_t> shape) {
    Value flat;
    for (auto [k, size] : llvm::enumerate(shape)) {
      Value at = c.reshape(c.sliceDim(indices, 1, c.size(k), c.size(k + 1)), Dims{c.dim(indices, 0)});
      c.check(c.logicalAnd(c.compare(Compare::GE, at, c.likeInt(at, 0)), c.compare(Compare::LT, at, c.likeInt(at, size))),
              "an index is out of the dense shape");
      flat = flat ? c.add(c.mul(flat, c.likeInt(flat, size)), at) : at;
    }
    return flat ? flat : c.splatInt(0, Dims{c.dim(indices, 0)}, i32);
  }
  /// Sums of the rows that have the same place.
  Value sums(Value rows, Value places, int64_t count) {
    return c.call1("UnsortedSegmentSum", {rows, places, c.scalarInt(count, i32)}, {}, f32);
  }

  OpContext &c;
  Type i32, f32;
};

LogicalResult SparseLookup::run() {
  const auto combiner = c.options<tfl::EmbeddingLookupSparseOptions>().combiner();
  Value ids = c.input(0), indices = c.input(1), weights = c.input(3), table = c.input(4);
  auto shape = c.constantInts(2);
  if (!ids || !indices || failed(shape) || !weights || !table)
    return failure();
  if (Emitter::rank(ids) != 1 || Emitter::rank(indices) != 2 || Emitter::rank(weights) != 1 || Emitter::rank(table) < 2 ||
      !Emitter::elementType(table).isF32() || !Emitter::elementType(weights).isF32() ||
      !c.ctx.unify(c.dim(ids, 0), c.dim(indices, 0), c.nodeName) || !c.ctx.unify(c.dim(ids, 0), c.dim(weights, 0), c.nodeName) ||
      constantOf(c.dim(indices, 1)) != int64_t(shape->size()) || shape->empty())
    return c.error("expected ids [n], indices [n, rank], a dense shape [rank], weights [n] and a table of floats");
  // the last dimension is what is summed over
  shape->pop_back();
  int64_t count = 1;
  for (int64_t d : *shape) {
    if (d < 0 || llvm::MulOverflow(count, d, count) || count > std::numeric_limits<int32_t>::max())
      return c.error("a size of the dense shape is out of range");
  }
  Value at = places(indices, *shape);
  Value rows = c.call1("GatherV2", {table, ids, c.scalarInt(0, i32)}, {c.attr("batch_dims", int64_t(0))}, f32);
  if (!rows)
    return failure();
  Value total = sums(c.mul(rows, c.broadcastInDim(weights, c.dims(rows), {0})), at, count);
  if (!total)
    return failure();
  if (combiner != tfl::CombinerType::SUM) {
    const bool mean = combiner == tfl::CombinerType::MEAN;
    Value by = sums(mean ? weights : c.mul(weights, weights), at, count), some = sums(c.like(weights, 1), at, count);
    if (!by || !some)
      return failure();
    by = mean ? by : c.unary<hlo::SqrtOp>(by);
    by = c.select(c.compare(Compare::GT, some, c.like(some, 0)), by, c.like(by, 1));
    total = c.div(total, c.broadcastInDim(by, c.dims(total), {0}));
  }
  Dims dims = c.sizes(*shape), row = c.dims(table);
  dims.append(row.begin() + 1, row.end());
  return c.setResult(0, c.reshape(total, dims));
}

} // namespace

void registerEmbedding(OpTable &t) {
  t.add(Op::EMBEDDING_LOOKUP, 2, 2, 4, Any, embeddingLookup);
  t.add(Op::EMBEDDING_LOOKUP_SPARSE, 5, 5, 1, Ints, [](OpContext &c) { return SparseLookup(c).run(); });
}

} // namespace lathe::tflite
