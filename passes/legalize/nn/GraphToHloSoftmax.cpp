// Softmax and cross entropy in primitive steps; fusion finds the rows again.
#include "passes/legalize/NodeContext.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

Type wideType(NodeContext &c, Type type) {
  return type.getIntOrFloatBitWidth() < 32 ? Type(c.b.getF32Type()) : type;
}

/// x less its largest element along the last dimension.
Value shifted(NodeContext &c, Value x) {
  int64_t rank = Emitter::rank(x);
  Value high = c.reduceMax(x, {rank - 1});
  return c.sub(x, c.keepDims(high, {rank - 1}, rank));
}

Value sumLast(NodeContext &c, Value x, bool keep) {
  int64_t rank = Emitter::rank(x);
  Value sum = c.reduceSum(x, {rank - 1});
  return keep ? c.keepDims(sum, {rank - 1}, rank) : sum;
}

LogicalResult lowerSoftmax(NodeContext &c, bool log) {
  Value x = c.input(0);
  if (Emitter::rank(x) < 1)
    return c.error("expected an input of rank 1 at least, found rank 0");
  Type type = Emitter::elementType(x);
  Value s = shifted(c, c.convert(x, wideType(c, type)));
  Value e = c.unary<hlo::ExpOp>(s);
  Value result = log ? c.sub(s, c.unary<hlo::LogOp>(sumLast(c, e, true))) : c.div(e, sumLast(c, e, true));
  return c.setResult(0, c.convert(result, type));
}

/// Loss and its gradient with respect to the logits.
LogicalResult setCrossEntropy(NodeContext &c, Value logits, Value labels, Type type) {
  Value s = shifted(c, logits);
  Value e = c.unary<hlo::ExpOp>(s), total = sumLast(c, e, true);
  Value logProbability = c.sub(s, c.unary<hlo::LogOp>(total));
  // A label of 0 gives 0 even where the logarithm is infinite.
  Value zero = c.compare(Compare::EQ, labels, c.like(labels, 0));
  Value terms = c.select(zero, c.like(labels, 0), c.mul(labels, logProbability));
  Value loss = c.neg(sumLast(c, terms, false));
  Value gradient = c.sub(c.div(e, total), labels);
  if (failed(c.setResult(0, c.convert(loss, type))))
    return failure();
  return c.setResult(1, c.convert(gradient, type));
}

LogicalResult lowerCrossEntropy(NodeContext &c) {
  Value logits = c.input(0), labels = c.input(1);
  Type type = Emitter::elementType(logits), wide = wideType(c, type);
  Value v[2] = {c.convert(logits, wide), c.convert(labels, wide)};
  if (!c.broadcastTogether(v))
    return failure();
  if (Emitter::rank(v[0]) != 2)
    return c.error("expected logits of rank 2, found rank " + Twine(Emitter::rank(v[0])));
  return setCrossEntropy(c, v[0], v[1], type);
}

LogicalResult lowerSparseCrossEntropy(NodeContext &c) {
  if (failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 1)))
    return failure();
  Value logits = c.input(0), labels = c.input(1);
  if (!c.ctx.unify(c.dim(logits, 0), c.dim(labels, 0), c.name()))
    return c.error("logits and labels differ in their first dimension");
  Type type = Emitter::elementType(logits), wide = wideType(c, type), index = Emitter::elementType(labels);
  logits = c.convert(logits, wide);
  Dims dims = c.dims(logits);
  Value column = c.iota(dims, 1, index);
  Value wanted = c.broadcastInDim(labels, dims, {0});
  Value oneHot = c.compare(Compare::EQ, column, wanted);
  Value s = shifted(c, logits);
  Value e = c.unary<hlo::ExpOp>(s), total = sumLast(c, e, true);
  Value logProbability = c.sub(s, c.unary<hlo::LogOp>(total));
  Value loss = c.neg(sumLast(c, c.select(oneHot, logProbability, c.like(logits, 0)), false));
  Value probability = c.div(e, total);
  Value gradient = c.sub(probability, c.convert(oneHot, wide));
  // Labels out of range give NaN in their row, as the kernel does.
  Value valid = c.logicalAnd(c.compare(Compare::GE, labels, c.like(labels, 0)),
                             c.compare(Compare::LT, labels, c.sizeValue(dims[1], index)));
  Value nan = c.like(loss, std::numeric_limits<double>::quiet_NaN());
  loss = c.select(valid, loss, nan);
  gradient = c.select(c.broadcastInDim(valid, dims, {0}), gradient, c.like(gradient, std::numeric_limits<double>::quiet_NaN()));
  if (failed(c.setResult(0, c.convert(loss, type))))
    return failure();
  return c.setResult(1, c.convert(gradient, type));
}

} // namespace

void registerSoftmax(HandlerTable &t) {
  t.add("Softmax", 1, [](NodeContext &c) { return lowerSoftmax(c, false); });
  t.add("LogSoftmax", 1, [](NodeContext &c) { return lowerSoftmax(c, true); });
  t.add("SoftmaxCrossEntropyWithLogits", 2, lowerCrossEntropy);
  t.add("SparseSoftmaxCrossEntropyWithLogits", 2, lowerSparseCrossEntropy);
}

} // namespace lathe::legalize
