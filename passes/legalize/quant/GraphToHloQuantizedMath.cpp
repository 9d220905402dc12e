// Arithmetic on quantised tensors with a range beside each, as TensorFlow's CPU kernels do it: sums, products, activations, pooling,
// normalisation, and integers moved from one range to another.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/nn/Pool.h"
#include "passes/legalize/quant/ByteProducts.h"
#include "passes/legalize/quant/Steps.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

void checkWidth(NodeContext &c, const Quantised &x, StringRef name) {
  c.check(c.compare(Compare::GT, x.range.high, x.range.low), ("the range of " + name + " is empty").str());
}

LogicalResult setBoth(NodeContext &c, Value q, const StepRange &range) {
  if (!q || failed(c.setResult(0, q)))
    return failure();
  return setRange(c, range);
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

/// Relu, Relu6 (`most` 6) and ReluX (the limit is input 1).
LogicalResult lowerRelu(NodeContext &c, std::optional<double> most, bool limited) {
  auto x = quantisedInput(c, 0, limited ? 2 : 1);
  if (failed(x))
    return failure();
  auto at = [&](Value v) { return c.broadcastTo(clampedStepOf(c, v, x->range, x->steps), c.dims(x->q)); };
  Value result = c.max(x->q, at(c.like(x->range.low, 0)));
  if (limited) {
    if (failed(c.expectRank(1, 0)))
      return failure();
    result = c.min(result, at(c.input(1)));
  } else if (most) {
    result = c.min(result, at(c.like(x->range.low, *most)));
  }
  return setBoth(c, result, x->range);
}

LogicalResult lowerReshape(NodeContext &c) {
  auto range = rangeInput(c, 2);
  if (failed(range) || failed(allHandlers().lookup("Reshape")->fn(c)))
    return failure();
  return setRange(c, *range);
}

/// The numbers that the least and the largest of the integers stand for; the former at most 0.
StepRange rangeOfValues(NodeContext &c, const Quantised &x) {
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, Emitter::rank(x.q)));
  Value low = numberOf(c, c.reduceMin(x.q, axes), x.range, x.steps);
  return {c.min(low, c.like(low, 0)), numberOf(c, c.reduceMax(x.q, axes), x.range, x.steps)};
}

LogicalResult expectTypes(NodeContext &c, const Quantised &x, bool toBytes) {
  Type u8 = c.b.getIntegerType(8, /*isSigned=*/false);
  if (x.steps.bits != 32 || !x.steps.isSigned || (toBytes && c.resultType(0) != u8))
    return c.error("only qint32 to quint8 is supported");
  return success();
}

LogicalResult lowerRequantizationRange(NodeContext &c) {
  auto x = quantisedInput(c, 0, 1);
  if (failed(x) || failed(expectTypes(c, *x, /*toBytes=*/false)))
    return failure();
  StepRange range = rangeOfValues(c, *x);
  if (failed(c.setResult(0, range.low)))
    return failure();
  return c.setResult(1, range.high);
}

/// To the range of the values, or to the one that inputs 3 and 4 ask for.
LogicalResult lowerRequantize(NodeContext &c, bool toAsked) {
  auto x = quantisedInput(c, 0, 1);
  if (failed(x) || failed(expectTypes(c, *x, /*toBytes=*/true)))
    return failure();
  StepRange to;
  if (toAsked) {
    auto asked = rangeInput(c, 3);
    if (failed(asked))
      return failure();
    to = *asked;
    c.check(c.compare(Compare::LE, to.low, c.like(to.low, 0)), "requested_output_min must be at most 0");
    c.check(c.compare(Compare::GE, to.high, c.like(to.high, 0)), "requested_output_max must be at least 0");
  } else {
    to = rangeOfValues(c, *x);
  }
  return setBoth(c, requantizeToBytes(c, x->q, x->range, to), to);
}

/// Windows of the plain op, on the integers.
LogicalResult lowerPool(NodeContext &c, StringRef plain) {
  auto range = rangeInput(c, 1);
  if (failed(range) || failed(c.expectRank(0, 4)) || failed(allHandlers().lookup(plain)->fn(c)))
    return failure();
  return setRange(c, *range);
}

/// Averages rounded to the nearest, ties to even (oneDNN's kernel, which TensorFlow's builds for x86 run; its own one rounds towards 0).
LogicalResult lowerAvgPool(NodeContext &c) {
  auto range = rangeInput(c, 1);
  if (failed(range) || failed(c.expectRank(0, 4)))
    return failure();
  Value x = c.input(0);
  auto pool = poolOf(c, c.dims(x), -1);
  if (failed(pool))
    return failure();
  Value mean = c.unary<hlo::RoundNearestEvenOp>(averageWindows(c, *pool, c.convert(x, c.b.getI32Type()), c.b.getF32Type()));
  return setBoth(c, c.convert(mean, Emitter::elementType(x)), *range);
}

LogicalResult lowerInstanceNorm(NodeContext &c) {
  auto x = quantisedInput(c, 0, 1);
  if (failed(x) || failed(c.expectRank(0, 4)))
    return failure();
  checkWidth(c, *x, "x");
  Type f32 = c.b.getF32Type();
  Value width = c.sub(x->range.high, x->range.low), scale = c.div(width, c.like(width, 255));
  Value v = c.convert(x->q, f32);
  const SmallVector<int64_t> space = {1, 2};
  Value count = c.convert(c.mul(c.sizeValue(c.dim(v, 1), c.b.getI64Type()), c.sizeValue(c.dim(v, 2), c.b.getI64Type())), f32);
  auto mean = [&](Value w) { return c.keepDims(c.div(c.reduceSum(w, space), count), space, 4); };
  Value centred = c.sub(v, mean(v)), scaled = c.mul(scale, centred);
  Value variance = mean(c.mul(scaled, scaled));
  Value normed = c.mul(scaled, c.unary<hlo::RsqrtOp>(c.add(variance, c.like(variance, c.attrFloat("variance_epsilon", 1e-5)))));
  const SmallVector<int64_t> all = {0, 1, 2, 3};
  StepRange to;
  if (c.attrBool("output_range_given")) {
    if (!(c.attrFloat("given_y_min") < c.attrFloat("given_y_max")))
      return c.error("given_y_min must be less than given_y_max");
    to = {c.scalar(c.attrFloat("given_y_min"), f32), c.scalar(c.attrFloat("given_y_max"), f32)};
  } else {
    to = {c.reduceMin(normed, all), c.reduceMax(normed, all)};
  }
  Value separation = c.scalar(c.attrFloat("min_separation", 1e-3), f32);
  to.high = c.select(c.compare(Compare::LT, c.sub(to.high, to.low), separation), c.add(to.low, separation), to.high);
  auto out = Steps::of(c, c.resultType(0));
  if (failed(out))
    return failure();
  return setBoth(c, stepInFloat(c, normed, to, *out), to);
}

/// By fixed-point numbers of 32 bits, ten behind the point, which wrap.
LogicalResult lowerBatchNorm(NodeContext &c) {
  SmallVector<Quantised> in;
  for (unsigned i = 0; i < 15; i += 3) {
    auto x = quantisedInput(c, i, i + 1);
    if (failed(x) || failed(c.expectRank(i, i == 0 ? 4 : 1)))
      return failure();
    if (i > 0 && !c.ctx.unify(c.dim(x->q, 0), c.dim(in[0].q, 3), c.name()))
      return c.error("input " + Twine(i) + " has not as many elements as there are channels");
    in.push_back(*x);
  }
  auto out = Steps::of(c, c.resultType(0));
  if (failed(out))
    return failure();
  if (out->bits != 32)
    return c.error("only 32-bit results are supported");
  Type f32 = c.b.getF32Type();
  auto number = [&](unsigned i) { return numberOf(c, in[i].q, in[i].range, in[i].steps); };
  Value mean = number(1), variance = number(2), beta = number(3), gamma = number(4);
  Value deviation = c.unary<hlo::SqrtOp>(c.add(variance, c.like(variance, c.attrFloat("variance_epsilon"))));
  Value scale = c.div(c.like(deviation, 1), deviation);
  if (c.attrBool("scale_after_normalization"))
    scale = c.mul(scale, gamma);
  Value offset = c.add(c.mul(c.neg(mean), scale), beta);
  const StepRange fixed = {c.scalar(-(1 << 20), f32), c.scalar(1 << 20, f32)};
  auto asFixed = [&](Value v) { return clampedStepOf(c, v, fixed, *out); };
  Value x = asFixed(number(0)), one = asFixed(c.scalar(1, f32));
  return setBoth(c, c.add(c.div(c.mul(x, asFixed(scale)), one), asFixed(offset)), fixed);
}

//===----------------------------------------------------------------------===//
// Several operands
//===----------------------------------------------------------------------===//

/// A range in which a sum of numbers of two ranges has room: so many times the largest of their ends.
StepRange rangeOfSums(NodeContext &c, const StepRange &x, const StepRange &y, double room) {
  Value most = c.max(x.high, c.max(c.neg(x.low), c.max(y.high, c.neg(y.low))));
  most = c.mul(most, c.like(most, room));
  return {c.neg(most), most};
}

FailureOr<Steps> wideResult(NodeContext &c) {
  auto out = Steps::of(c, c.resultType(0));
  if (succeeded(out) && out->bits != 32)
    return c.error("only 32-bit results are supported");
  return out;
}

LogicalResult lowerAdd(NodeContext &c) {
  auto x = quantisedInput(c, 0, 2), y = quantisedInput(c, 1, 4);
  if (failed(x) || failed(y))
    return failure();
  auto out = wideResult(c);
  if (failed(out))
    return failure();
  checkWidth(c, *x, "x");
  checkWidth(c, *y, "y");
  const StepRange range = rangeOfSums(c, x->range, y->range, 1 << 14);
  Type i64 = c.b.getIntegerType(64);
  // an integer's step in the range of the sum: that of 0, and so many times the way from there to that of 1
  auto inRange = [&](const Quantised &v, bool single) {
    if (single)
      return clampedStepOf(c, numberOf(c, v.q, v.range, v.steps), range, *out);
    auto at = [&](int64_t n) { return c.convert(stepOf(c, numberOf(c, c.scalarInt(n, v.steps.type), v.range, v.steps), range, *out), i64); };
    Value zero = at(0), each = c.convert(c.convert(c.sub(at(1), zero), c.b.getI32Type()), i64);
    Value step = c.add(zero, c.mul(c.convert(v.q, i64), each));
    return c.convert(c.min(c.max(step, c.likeInt(step, INT32_MIN)), c.likeInt(step, INT32_MAX)), out->type);
  };
  // a single number that all elements of the other operand meet is moved by itself
  auto isSingle = [&](Value v) { return c.isStatic(v) && Emitter::type(v).getNumElements() == 1; };
  const bool xSingle = isSingle(x->q), ySingle = !xSingle && isSingle(y->q);
  return setBoth(c, c.add(inRange(*x, xSingle), inRange(*y, ySingle)), range);
}

LogicalResult lowerBiasAdd(NodeContext &c) {
  auto x = quantisedInput(c, 0, 2), bias = quantisedInput(c, 1, 4);
  if (failed(x) || failed(bias) || failed(c.expectRank(1, 1)))
    return failure();
  auto out = wideResult(c);
  if (failed(out))
    return failure();
  const int64_t rank = Emitter::rank(x->q);
  if (rank < 2)
    return c.error("expected an input of rank 2 or more, found rank " + Twine(rank));
  if (!c.ctx.unify(c.dim(x->q, rank - 1), c.dim(bias->q, 0), c.name()))
    return c.error("the bias has not as many elements as the input has channels");
  const StepRange range = rangeOfSums(c, x->range, bias->range, 1 << 17);
  auto inRange = [&](const Quantised &v) { return stepInFloat(c, numberInFloat(c, v.q, v.range, v.steps), range, *out); };
  Value zero = clampedStepOf(c, c.like(range.low, 0), range, *out);
  return setBoth(c, c.add(inRange(*x), c.add(inRange(*bias), zero)), range);
}

LogicalResult lowerMul(NodeContext &c) {
  auto x = quantisedInput(c, 0, 2), y = quantisedInput(c, 1, 4);
  if (failed(x) || failed(y))
    return failure();
  auto out = wideResult(c);
  if (failed(out))
    return failure();
  checkWidth(c, *x, "x");
  checkWidth(c, *y, "y");
  return setBoth(c, c.mul(aroundZero(c, *x), aroundZero(c, *y)), rangeOfProducts(c, x->range, x->steps, y->range, y->steps, *out));
}

LogicalResult lowerMatMul(NodeContext &c) {
  auto x = quantisedInput(c, 0, 2), y = quantisedInput(c, 1, 4);
  if (failed(x) || failed(y) || failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 2)))
    return failure();
  auto out = wideResult(c);
  if (failed(out))
    return failure();
  checkWidth(c, *x, "a");
  checkWidth(c, *y, "b");
  const int64_t xAxis = c.attrBool("transpose_a") ? 0 : 1, yAxis = c.attrBool("transpose_b") ? 1 : 0;
  if (!c.ctx.unify(c.dim(x->q, xAxis), c.dim(y->q, yAxis), c.name()))
    return c.error("the matrices do not fit");
  Value product = offsetProduct(c, {x->q, zeroOf(c, *x)}, {y->q, zeroOf(c, *y)}, xAxis, yAxis);
  return setBoth(c, product, rangeOfProducts(c, x->range, x->steps, y->range, y->steps, *out));
}

/// One range that holds all that are numbers, and 0 where integers have no sign. TensorFlow compares, so that an end that is no number is
/// passed over.
StepRange rangeOfParts(NodeContext &c, ArrayRef<Quantised> parts) {
  Value low = parts[0].range.low, high = parts[0].range.high;
  StepRange all{c.like(low, std::numeric_limits<float>::max()), c.like(high, std::numeric_limits<float>::lowest())};
  for (const Quantised &p : parts) {
    all.low = c.select(c.compare(Compare::LT, p.range.low, all.low), p.range.low, all.low);
    all.high = c.select(c.compare(Compare::GT, p.range.high, all.high), p.range.high, all.high);
  }
  if (!parts[0].steps.isSigned)
    return {c.min(all.low, c.like(low, 0)), all.high};
  Value most = c.max(c.unary<hlo::AbsOp>(all.low), c.unary<hlo::AbsOp>(all.high));
  return {c.neg(most), most};
}

/// The ranges become one; parts in another range are moved to it. `axisFirst`: the axis is input 0.
LogicalResult lowerConcat(NodeContext &c, bool axisFirst) {
  const unsigned first = axisFirst ? 1 : 0, n = (c.numInputs() - 1) / 3;
  if (n == 0 || c.numInputs() != 3 * n + 1)
    return c.error("expected as many lower and upper ends as values");
  const int64_t rank = Emitter::rank(c.input(first));
  auto axis = c.axisInput(axisFirst ? 0 : 3 * n, rank);
  if (failed(axis))
    return failure();
  SmallVector<Quantised> parts;
  for (unsigned i = 0; i < n; ++i) {
    Value low = c.input(first + n + i), high = c.input(first + 2 * n + i);
    auto steps = Steps::of(c, Emitter::elementType(c.input(first + i)));
    if (failed(steps))
      return failure();
    for (Value v : {low, high})
      if (Emitter::rank(v) != 0)
        return c.error("the ends of ranges must be scalars");
    if (Emitter::rank(c.input(first + i)) != rank)
      return c.error("the values must have one rank");
    for (int64_t d = 0; d < rank; ++d)
      if (d != *axis && !c.ctx.unify(c.dim(c.input(first + i), d), c.dim(c.input(first), d), c.name()))
        return c.error("the values differ in dimension " + Twine(d));
    parts.push_back({c.input(first + i), {low, high}, *steps});
  }
  const StepRange all = rangeOfParts(c, parts);
  SmallVector<Value> moved;
  for (const Quantised &p : parts) {
    Value same = c.logicalAnd(c.compare(Compare::EQ, p.range.low, all.low), c.compare(Compare::EQ, p.range.high, all.high));
    moved.push_back(c.select(same, p.q, stepInFloat(c, numberInFloat(c, p.q, p.range, p.steps), all, p.steps)));
    if (!moved.back())
      return failure();
  }
  return setBoth(c, c.concat(moved, *axis), all);
}

} // namespace

void registerQuantizedMath(HandlerTable &t) {
  t.add("QuantizedRelu", 3, [](NodeContext &c) { return lowerRelu(c, std::nullopt, false); });
  t.add("QuantizedRelu6", 3, [](NodeContext &c) { return lowerRelu(c, 6, false); });
  t.add("QuantizedReluX", 4, [](NodeContext &c) { return lowerRelu(c, std::nullopt, true); });
  t.add("QuantizedReshape", 4, lowerReshape);
  t.add("RequantizationRange", 3, lowerRequantizationRange);
  t.add("QuantizeDownAndShrinkRange", 3, [](NodeContext &c) { return lowerRequantize(c, false); });
  t.add("Requantize", 5, [](NodeContext &c) { return lowerRequantize(c, true); });
  t.add("QuantizedMaxPool", 3, [](NodeContext &c) { return lowerPool(c, "MaxPool"); });
  t.add("QuantizedAvgPool", 3, lowerAvgPool);
  t.add("QuantizedInstanceNorm", 3, lowerInstanceNorm);
  t.add("QuantizedBatchNormWithGlobalNormalization", 15, lowerBatchNorm);
  t.add("QuantizedAdd", 6, lowerAdd);
  t.add("QuantizedBiasAdd", 6, lowerBiasAdd);
  t.add("QuantizedMul", 6, lowerMul);
  t.add("QuantizedMatMul", 6, lowerMatMul);
  t.add("QuantizedConcat", HandlerTable::atLeast(4), [](NodeContext &c) { return lowerConcat(c, true); });
  t.add("QuantizedConcatV2", HandlerTable::atLeast(4), [](NodeContext &c) { return lowerConcat(c, false); });
}

} // namespace lathe::legalize
