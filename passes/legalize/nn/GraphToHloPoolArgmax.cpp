// Max pooling that says where the maximum was, its gradients, and the second derivatives of max pooling.
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/nn/Pool.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// The first maximum of each window of `x` and what `beside` holds in its place. Where `places` says that `beside` is never
/// negative, the first element stands until one is more than it, as in TensorFlow: NaN, -inf and 0 of unsigned types count.
std::pair<Value, Value> firstMaximum(NodeContext &c, const PoolShape &s, Value x, Value beside, bool places) {
  // wider than the elements, so that the smallest of them still beats the padding
  Type element = Emitter::elementType(x), wide = c.b.getI64Type();
  if (Emitter::isInteger(x) && element.getIntOrFloatBitWidth() < 64)
    x = c.convert(x, wide);
  auto op = hlo::ReduceWindowOp::create(
      c.b, c.loc, ValueRange{x, beside},
      ValueRange{c.lowest(Emitter::elementType(x)), c.scalarInt(places ? -1 : 0, Emitter::elementType(beside))},
      ArrayRef<int64_t>(s.window), s.config, [places](OpBuilder &b, Location l, ValueRange a) -> SmallVector<Value> {
        // arguments: the best so far with its companion, then the next element with its own
        Value more = hlo::CompareOp::create(b, l, a[2], a[0], Compare::GT);
        if (places) {
          auto type = RankedTensorType::get({}, cast<RankedTensorType>(a[1].getType()).getElementType());
          auto zero = DenseElementsAttr::get(type, b.getIntegerAttr(type.getElementType(), 0));
          Value none = hlo::CompareOp::create(b, l, a[1], hlo::ConstantOp::create(b, l, zero), Compare::LT);
          more = hlo::OrOp::create(b, l, more, none);
        }
        return {hlo::SelectOp::create(b, l, more, a[2], a[0]), hlo::SelectOp::create(b, l, more, a[3], a[1])};
      });
  return {c.convert(op->getResult(0), element), op->getResult(1)};
}

LogicalResult lowerMaxPoolGradGrad(NodeContext &c, int64_t firstSizeInput) {
  Value x = c.input(0), grad = c.input(2);
  if (!sameDims(c, {x, grad}))
    return failure();
  auto pool = poolOf(c, c.dims(x), firstSizeInput);
  if (failed(pool))
    return failure();
  return c.setResult(0, firstMaximum(c, shapeOf(*pool, Emitter::rank(x)), x, grad, /*places=*/false).second);
}

/// The place of each element in its image, or in the batch, as Targmax has it.
Value placesOf(NodeContext &c, const Dims &dims, bool withBatch, Type type) {
  Dims flat(dims.begin() + (withBatch ? 0 : 1), dims.end());
  Value places = c.iota(Dims{productOf(flat, c.b.getContext())}, 0, type);
  places = c.reshape(places, flat);
  SmallVector<int64_t> map = llvm::to_vector(llvm::seq<int64_t>(withBatch ? 0 : 1, dims.size()));
  return c.broadcastInDim(places, dims, map);
}

LogicalResult lowerMaxPoolWithArgmax(NodeContext &c) {
  Value x = c.input(0);
  auto pool = poolOf(c, c.dims(x), -1);
  if (failed(pool))
    return failure();
  // TensorFlow takes no notice of windows over channels here
  if (pool->format.spatial.size() > 2) {
    pool->format.spatial.pop_back();
    pool->dims.pop_back();
  }
  Value places = placesOf(c, c.dims(x), c.attrBool("include_batch_in_index"), c.resultType(1));
  auto [best, place] = firstMaximum(c, shapeOf(*pool, Emitter::rank(x)), x, places, /*places=*/true);
  if (failed(c.setResult(0, best)))
    return failure();
  return c.setResult(1, place);
}

/// Places in the flattened batch from what MaxPoolWithArgmax gave, as a vector.
Value flatPlaces(NodeContext &c, Value argmax, const Dims &input) {
  Type type = Emitter::elementType(argmax);
  Value places = argmax;
  if (!c.attrBool("include_batch_in_index")) {
    Value image = c.sizeValue(productOf(ArrayRef<AffineExpr>(input).drop_front(), c.b.getContext()), type);
    places = c.add(places, c.mul(c.iota(c.dims(argmax), 0, type), image));
  }
  return places ? c.reshape(places, Dims{productOf(c.dims(argmax), c.b.getContext())}) : places;
}

LogicalResult lowerGradWithArgmax(NodeContext &c, bool second) {
  Value x = c.input(0), grad = c.input(1), argmax = c.input(2);
  if (failed(c.expectRank(0, 4)) || failed(c.expectRank(2, 4)) || !sameDims(c, {argmax, second ? argmax : grad}) ||
      (second && !sameDims(c, {x, grad})))
    return failure();
  Dims dims = c.dims(x);
  AffineExpr total = productOf(dims, c.b.getContext());
  Value places = flatPlaces(c, argmax, dims);
  if (!places)
    return failure();
  if (second) {
    Value picked = gather(c, c.reshape(grad, Dims{total}), places, 0);
    return c.setResult(0, picked ? c.reshape(picked, c.dims(argmax)) : picked);
  }
  Value zeros = c.splat(0, Dims{total}, Emitter::elementType(grad));
  Value spread = scatterRows(c, zeros, places, c.reshape(grad, c.dims(places)), combineAdd);
  return c.setResult(0, spread ? c.reshape(spread, dims) : spread);
}

} // namespace

void registerPoolArgmax(HandlerTable &t) {
  t.add("MaxPoolGradGrad", 3, [](NodeContext &c) { return lowerMaxPoolGradGrad(c, -1); });
  t.add("MaxPoolGradGradV2", 5, [](NodeContext &c) { return lowerMaxPoolGradGrad(c, 3); });
  t.add("MaxPool3DGradGrad", 3, [](NodeContext &c) { return lowerMaxPoolGradGrad(c, -1); });
  t.add("MaxPoolWithArgmax", 1, lowerMaxPoolWithArgmax);
  t.add("MaxPoolGradWithArgmax", 3, [](NodeContext &c) { return lowerGradWithArgmax(c, false); });
  t.add("MaxPoolGradGradWithArgmax", 3, [](NodeContext &c) { return lowerGradWithArgmax(c, true); });
}

} // namespace lathe::legalize
