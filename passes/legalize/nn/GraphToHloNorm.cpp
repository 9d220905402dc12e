// Biases and normalisation: BiasAdd, FusedBatchNorm, LRN and their gradients.
#include "passes/legalize/nn/Window.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

SmallVector<int64_t> axesExcept(int64_t rank, int64_t feature) {
  SmallVector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != feature)
      axes.push_back(i);
  return axes;
}

/// A per-channel vector along dimension `feature` of the shape of `x`.
Value alongFeature(NodeContext &c, Value vector, Value x, int64_t feature) {
  if (!vector)
    return vector;
  AffineExpr have = c.dim(vector, 0), want = c.dim(x, feature);
  if (!c.ctx.unify(have, want, c.name())) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "expected a vector of " << want << " channels, found " << have;
    (void)c.error(text);
    return {};
  }
  return c.broadcastInDim(vector, c.dims(x), {feature});
}

LogicalResult lowerBiasAdd(NodeContext &c) {
  Value x = c.input(0);
  if (failed(c.expectRank(1, 1)))
    return failure();
  if (Emitter::rank(x) < 2)
    return c.error("expected an input of rank 2 at least, found rank " + Twine(Emitter::rank(x)));
  bool first = c.attrString("data_format", "NHWC").starts_with("NC");
  Value bias = alongFeature(c, c.input(1), x, first ? 1 : Emitter::rank(x) - 1);
  return c.setResult(0, c.add(x, bias));
}

LogicalResult lowerBiasAddGrad(NodeContext &c) {
  Value x = c.input(0);
  if (Emitter::rank(x) < 2)
    return c.error("expected an input of rank 2 at least, found rank " + Twine(Emitter::rank(x)));
  bool first = c.attrString("data_format", "NHWC").starts_with("NC");
  Type type = Emitter::elementType(x);
  Type wide = isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32 ? Type(c.b.getF32Type()) : type;
  Value sum = c.reduceSum(c.convert(x, wide), axesExcept(Emitter::rank(x), first ? 1 : Emitter::rank(x) - 1));
  return c.setResult(0, c.convert(sum, type));
}

/// The number of elements that one channel's statistics are over, as a scalar.
Value countPerChannel(NodeContext &c, Value x, int64_t feature, Type type) {
  Dims dims = c.dims(x);
  dims.erase(dims.begin() + feature);
  AffineExpr count = productOf(dims, c.b.getContext());
  if (auto n = constantOf(count))
    return c.scalar(double(*n), type);
  return c.convert(c.sizeValue(count, c.b.getI64Type()), type);
}

LogicalResult lowerFusedBatchNorm(NodeContext &c, unsigned version) {
  Value original = c.input(0), scale = c.input(1), offset = c.input(2), mean = c.input(3), variance = c.input(4);
  auto format = DataFormat::parse(c, c.attrString("data_format"), Emitter::rank(original));
  if (failed(format))
    return failure();
  for (unsigned i = 1; i < 5; ++i)
    if (failed(c.expectRank(i, 1)))
      return failure();
  Type type = Emitter::elementType(original), stats = Emitter::elementType(scale);
  Value x = c.convert(original, stats);
  int64_t feature = format->feature;
  double epsilon = c.attrFloat("epsilon", 1e-4);
  auto along = [&](Value v) { return alongFeature(c, v, x, feature); };
  if (!c.attrBool("is_training", true)) {
    Value factor = c.mul(c.unary<hlo::RsqrtOp>(c.add(variance, c.like(variance, epsilon))), scale);
    Value shift = c.sub(offset, c.mul(mean, factor));
    Value y = c.add(c.mul(x, along(factor)), along(shift));
    if (failed(c.setResult(0, c.convert(y, type))))
      return failure();
    for (unsigned i = 1; i < c.numResults(); ++i) {
      Value v = i == 5 ? c.scalar(0, stats) : (i % 2 ? mean : variance);
      if (failed(c.setResult(i, v)))
        return failure();
    }
    return success();
  }
  SmallVector<int64_t> axes = axesExcept(Emitter::rank(x), feature);
  Value count = countPerChannel(c, x, feature, stats);
  Value batchMean = c.div(c.reduceSum(x, axes), count);
  Value centered = c.sub(x, along(batchMean));
  Value batchVariance = c.div(c.reduceSum(c.mul(centered, centered), axes), count);
  Value factor = c.mul(c.unary<hlo::RsqrtOp>(c.add(batchVariance, c.like(batchVariance, epsilon))), scale);
  Value y = c.add(c.mul(centered, along(factor)), along(offset));
  // The running variance is the unbiased one.
  Value less = c.max(c.sub(count, c.like(count, 1)), c.like(count, 1));
  Value unbiased = c.mul(batchVariance, c.div(count, less));
  Value newMean = batchMean, newVariance = unbiased;
  double momentum = c.attrFloat("exponential_avg_factor", 1);
  if (momentum != 1) {
    auto blend = [&](Value old, Value now) {
      return c.add(c.mul(old, c.like(old, 1 - momentum)), c.mul(now, c.like(now, momentum)));
    };
    newMean = blend(mean, newMean);
    newVariance = blend(variance, newVariance);
  }
  Value results[6] = {c.convert(y, type), newMean, newVariance, batchMean, batchVariance, {}};
  if (c.numResults() > 5)
    results[5] = c.scalar(0, stats);
  for (unsigned i = 0; i < c.numResults() && i < 6; ++i)
    if (failed(c.setResult(i, results[i])))
      return failure();
  return success();
}

LogicalResult lowerFusedBatchNormGrad(NodeContext &c) {
  Value dyIn = c.input(0), xIn = c.input(1), scale = c.input(2), mean = c.input(3), variance = c.input(4);
  auto format = DataFormat::parse(c, c.attrString("data_format"), Emitter::rank(xIn));
  if (failed(format))
    return failure();
  for (unsigned i = 2; i < 5; ++i)
    if (failed(c.expectRank(i, 1)))
      return failure();
  if (Emitter::rank(dyIn) != Emitter::rank(xIn))
    return c.error("the gradient and the input differ in rank");
  Type type = Emitter::elementType(xIn), stats = Emitter::elementType(scale);
  Value x = c.convert(xIn, stats), dy = c.convert(dyIn, stats);
  int64_t feature = format->feature;
  auto along = [&](Value v) { return alongFeature(c, v, x, feature); };
  SmallVector<int64_t> axes = axesExcept(Emitter::rank(x), feature);
  Value inverse = c.unary<hlo::RsqrtOp>(c.add(variance, c.like(variance, c.attrFloat("epsilon", 1e-4))));
  Value centered = c.sub(x, along(mean));
  Value sumDy = c.reduceSum(dy, axes), sumDyX = c.reduceSum(c.mul(dy, centered), axes);
  Value dScale = c.mul(sumDyX, inverse), dOffset = sumDy, factor = c.mul(scale, inverse);
  Value dx;
  if (c.attrBool("is_training", true)) {
    Value count = countPerChannel(c, x, feature, stats);
    Value meanDy = c.div(sumDy, count);
    Value slope = c.div(c.mul(sumDyX, c.mul(inverse, inverse)), count);
    dx = c.mul(along(factor), c.sub(c.sub(dy, along(meanDy)), c.mul(centered, along(slope))));
  } else {
    dx = c.mul(dy, along(factor));
  }
  Value results[3] = {c.convert(dx, type), dScale, dOffset};
  for (unsigned i = 0; i < c.numResults(); ++i) {
    Value v = i < 3 ? results[i] : c.splat(0, {c.size(0)}, stats);
    if (failed(c.setResult(i, v)))
      return failure();
  }
  return success();
}

/// The sum over 2r + 1 neighbouring channels.
Value neighbours(NodeContext &c, Value x, int64_t radius) {
  hlo::ReduceWindow window;
  int64_t rank = Emitter::rank(x);
  SmallVector<int64_t> sizes(rank, 1);
  sizes[rank - 1] = 2 * radius + 1;
  window.strides.assign(rank, 1);
  window.padding.assign(rank, {0, 0});
  window.padding[rank - 1] = {radius, radius};
  return c.make<hlo::ReduceWindowOp>(ValueRange(x), ValueRange(c.scalar(0, Emitter::elementType(x))),
                                     ArrayRef<int64_t>(sizes), window,
                                     [](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
                                       return {hlo::AddOp::create(b, l, args[0], args[1])};
                                     });
}

FailureOr<int64_t> lrnRadius(NodeContext &c) {
  int64_t radius = c.attrInt("depth_radius", 5);
  if (radius < 0 || radius > (int64_t(1) << 20) || Emitter::rank(c.input(0)) != 4)
    return c.error("expected an input of rank 4 and a depth_radius of 0 at least");
  return radius;
}

/// norm^-beta; without powers, which take 20 times as long, for the exponent that networks have.
Value lrnFactor(NodeContext &c, Value norm, double beta) {
  if (beta == 0.75) {
    Value root = c.unary<hlo::RsqrtOp>(norm);
    return c.mul(root, c.unary<hlo::SqrtOp>(root));
  }
  return c.binary<hlo::PowOp>(norm, c.like(norm, -beta));
}

LogicalResult lowerLrn(NodeContext &c) {
  auto radius = lrnRadius(c);
  if (failed(radius))
    return failure();
  Value original = c.input(0), x = c.convert(original, c.b.getF32Type());
  Value sums = neighbours(c, c.mul(x, x), *radius);
  Value norm = c.add(c.mul(sums, c.like(sums, c.attrFloat("alpha", 1))), c.like(sums, c.attrFloat("bias", 1)));
  Value factor = lrnFactor(c, norm, c.attrFloat("beta", 0.5));
  return c.setResult(0, c.convert(c.mul(x, factor), Emitter::elementType(original)));
}

LogicalResult lowerLrnGrad(NodeContext &c) {
  auto radius = lrnRadius(c);
  if (failed(radius))
    return failure();
  Type type = Emitter::elementType(c.input(0)), f32 = c.b.getF32Type();
  Value dy = c.convert(c.input(0), f32), x = c.convert(c.input(1), f32), y = c.convert(c.input(2), f32);
  double alpha = c.attrFloat("alpha", 1), beta = c.attrFloat("beta", 0.5);
  Value sums = neighbours(c, c.mul(x, x), *radius);
  Value norm = c.add(c.mul(sums, c.like(sums, alpha)), c.like(sums, c.attrFloat("bias", 1)));
  Value through = neighbours(c, c.div(c.mul(dy, y), norm), *radius);
  Value direct = c.mul(dy, lrnFactor(c, norm, beta));
  return c.setResult(0, c.convert(c.sub(direct, c.mul(c.mul(x, c.like(x, 2 * alpha * beta)), through)), type));
}

LogicalResult lowerBatchNormGlobal(NodeContext &c) {
  Value x = c.input(0), mean = c.input(1), variance = c.input(2), beta = c.input(3), gamma = c.input(4);
  Value factor = c.unary<hlo::RsqrtOp>(c.add(variance, c.like(variance, c.attrFloat("variance_epsilon", 0.001))));
  if (c.attrBool("scale_after_normalization"))
    factor = c.mul(factor, gamma);
  Value centered = c.sub(x, mean);
  Value scaled = c.mul(centered, factor);
  return c.setResult(0, scaled ? c.add(scaled, beta) : scaled);
}

} // namespace

void registerNorm(HandlerTable &t) {
  t.add("BiasAdd", 2, lowerBiasAdd);
  t.add("BiasAddV1", 2, lowerBiasAdd);
  t.add("BiasAddGrad", 1, lowerBiasAddGrad);
  t.add("FusedBatchNorm", 5, [](NodeContext &c) { return lowerFusedBatchNorm(c, 1); });
  t.add("FusedBatchNormV2", 5, [](NodeContext &c) { return lowerFusedBatchNorm(c, 2); });
  t.add("FusedBatchNormV3", 5, [](NodeContext &c) { return lowerFusedBatchNorm(c, 3); });
  t.add("FusedBatchNormGrad", 5, lowerFusedBatchNormGrad);
  t.add("FusedBatchNormGradV2", 5, lowerFusedBatchNormGrad);
  t.add("FusedBatchNormGradV3", 6, lowerFusedBatchNormGrad);
  t.add("LRN", 1, lowerLrn);
  t.add("LRNGrad", 3, lowerLrnGrad);
  t.add("BatchNormWithGlobalNormalization", 5, lowerBatchNormGlobal);
}

} // namespace lathe::legalize
