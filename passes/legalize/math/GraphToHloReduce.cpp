// Reductions along axes, the places of extremes, and running sums.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Running.h"
#include "passes/legalize/NodeContext.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Sums of narrow floats are formed in f32.
Type accumulatorType(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32 ? Float32Type::get(type.getContext()) : type;
}

using ReduceFn = Value (*)(NodeContext &, Value, ArrayRef<int64_t>);

void addReduce(HandlerTable &t, StringRef op, ReduceFn fn) {
  t.add(op, 2, [fn](NodeContext &c) -> LogicalResult {
    Value x = c.input(0);
    auto axes = c.axesInput(1, Emitter::rank(x));
    if (failed(axes))
      return failure();
    Value result = fn(c, x, *axes);
    if (c.attrBool("keep_dims"))
      result = c.keepDims(result, *axes, Emitter::rank(x));
    return c.setResult(0, result);
  });
}

Value sum(NodeContext &c, Value x, ArrayRef<int64_t> axes) {
  Type type = Emitter::elementType(x);
  return c.convert(c.reduceSum(c.convert(x, accumulatorType(type)), axes), type);
}

/// Means of integers are formed in 64 bits, sum and count, and wrapped once.
Type meanAccumulator(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer ? IntegerType::get(type.getContext(), 64, integer.getSignedness()) : accumulatorType(type);
}

Value mean(NodeContext &c, Value x, ArrayRef<int64_t> axes) {
  Type type = Emitter::elementType(x), accumulator = meanAccumulator(type);
  Dims dims = c.dims(x), reduced;
  for (int64_t axis : axes)
    reduced.push_back(dims[axis]);
  AffineExpr count = productOf(reduced, c.b.getContext());
  Value total = c.reduceSum(c.convert(x, accumulator), axes);
  // TensorFlow fills in NaN for the mean of nothing in floats only; in all other types it is 0.
  bool zeroOfNothing = !isa<FloatType>(type);
  if (auto n = constantOf(count)) {
    if (zeroOfNothing && *n == 0)
      return c.convert(total, type);
    return c.convert(c.div(total, isa<IntegerType>(type) ? c.likeInt(total, *n) : c.like(total, double(*n))), type);
  }
  Value size = c.sizeValue(count, c.b.getI64Type());
  if (zeroOfNothing)
    size = c.max(size, c.likeInt(size, 1));
  return c.convert(c.div(total, c.convert(size, accumulator)), type);
}

Value euclideanNorm(NodeContext &c, Value x, ArrayRef<int64_t> axes) {
  Value conjugate = Emitter::isComplex(x) ? c.unary<hlo::ConjOp>(x) : x;
  Value squares = sum(c, c.mul(x, conjugate), axes);
  if (Emitter::isInteger(x)) {
    Type f64 = c.b.getF64Type();
    return c.convert(c.unary<hlo::SqrtOp>(c.convert(squares, f64)), Emitter::elementType(x));
  }
  return c.unary<hlo::SqrtOp>(squares);
}

LogicalResult lowerArgExtreme(NodeContext &c, Compare better) {
  Value x = c.input(0);
  if (Emitter::rank(x) == 0)
    return c.error("the input must have rank 1 at least");
  auto axis = c.axisInput(1, Emitter::rank(x));
  if (failed(axis))
    return failure();
  if (constantOf(c.dim(x, *axis)) == int64_t(0))
    return c.error("reduction axis " + Twine(*axis) + " is empty");
  Type index = c.resultType(0);
  Type search = index.isInteger(64) || index.isInteger(32) ? index : Type(c.b.getI32Type());
  Value places = c.iota(c.dims(x), *axis, search);
  // as TensorFlow's, the search starts with a finite number: infinities beyond it do not count
  auto start = better == Compare::GT ? hlo::makeLowest : hlo::makeHighest;
  Value init = start(c.b, c.loc, Emitter::elementType(x), /*infinite=*/false);
  auto reduce = hlo::ReduceOp::create(
      c.b, c.loc, ValueRange{x, places}, ValueRange{init, c.scalarInt(0, search)}, ArrayRef<int64_t>{*axis},
      [&](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
        // args: best value, best place, value, place. The first place wins among equals. A NaN is neither greater nor less, and
        // replaces nothing, not even the value that the search starts with, whose place is the first.
        Value first = hlo::CompareOp::create(b, l, args[0], args[2], better);
        Value second = hlo::CompareOp::create(b, l, args[2], args[0], better);
        Value lower = hlo::CompareOp::create(b, l, args[1], args[3], Compare::LE);
        Value neither = hlo::NotOp::create(b, l, hlo::OrOp::create(b, l, first, second));
        Value keep = hlo::OrOp::create(b, l, first, hlo::AndOp::create(b, l, neither, lower));
        return {hlo::SelectOp::create(b, l, keep, args[0], args[2]), hlo::SelectOp::create(b, l, keep, args[1], args[3])};
      });
  return c.setResult(0, c.convert(reduce->getResult(1), index));
}

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

/// What a running reduction carries along: a number, or several.
struct Scan {
  SmallVector<Value> (*parts)(NodeContext &, Value); ///< of the operand
  SmallVector<Value> (*start)(NodeContext &, Type);
  SmallVector<Value> (*combine)(NodeContext &, ValueRange); ///< of the parts so far, and those that follow
};

SmallVector<Value> itself(NodeContext &, Value x) { return {x}; }

/// What TensorFlow makes of a NaN is its sum so far, taken twice: log 2 more. So the parts are the sum without NaN, and what the
/// NaN among them add to all that comes before.
SmallVector<Value> logParts(NodeContext &c, Value x) {
  Value nan = c.compare(Compare::NE, x, x);
  Value none = c.broadcastTo(c.lowest(Emitter::elementType(x)), c.dims(x));
  return {c.select(nan, none, x), c.select(nan, c.like(x, 0.69314718055994530942), c.like(x, 0))};
}

SmallVector<Value> logAddExp(NodeContext &c, ValueRange args) {
  Value x = args[0], more = args[3], y = args[2];
  // infinity taken twice is NaN, as two infinities are
  Value lost = c.logicalAnd(c.compare(Compare::GT, more, c.like(more, 0)), c.compare(Compare::EQ, x, c.like(x, INFINITY)));
  x = c.select(lost, c.like(x, NAN), c.add(x, more));
  Value high = c.max(x, y), low = c.min(x, y);
  Value sum = c.add(high, c.unary<hlo::Log1pOp>(c.unary<hlo::ExpOp>(c.sub(low, high))));
  // -inf - -inf has no difference; inf - inf has none either, but is NaN in TensorFlow.
  return {c.select(c.compare(Compare::EQ, high, c.lowest(Emitter::elementType(high))), high, sum), c.add(args[1], more)};
}

LogicalResult lowerScan(NodeContext &c, const Scan &scan) {
  Value x = c.input(0);
  int64_t rank = Emitter::rank(x);
  auto axis = c.axisInput(1, rank);
  if (failed(axis))
    return failure();
  auto size = constantOf(c.dim(x, *axis));
  if (llvm::any_of(c.dims(x), [](AffineExpr d) { return constantOf(d) == int64_t(0); }))
    return c.setResult(0, x);
  if (size && *size > hlo::kUnboundedWindow)
    return c.error("dimension " + Twine(*axis) + " is too long: " + Twine(*size));
  Type type = Emitter::elementType(x), accumulator = accumulatorType(type);
  // a window over all elements before each, or from each on
  int64_t reach = size.value_or(hlo::kUnboundedWindow), far = reach - 1, near = 0;
  if (c.attrBool("exclusive")) {
    ++far;
    --near;
  }
  SmallVector<int64_t> windows(rank, 1);
  windows[*axis] = reach;
  hlo::ReduceWindow window;
  window.padding.assign(rank, {0, 0});
  window.padding[*axis] = c.attrBool("reverse") ? std::pair(near, far) : std::pair(far, near);
  auto running = hlo::ReduceWindowOp::create(
      c.b, c.loc, scan.parts(c, c.convert(x, accumulator)), scan.start(c, accumulator), windows, window,
      [&](OpBuilder &, Location, ValueRange args) { return scan.combine(c, args); });
  return c.setResult(0, c.convert(running->getResult(0), type));
}

LogicalResult lowerL2Loss(NodeContext &c) {
  Value x = c.input(0);
  Type type = Emitter::elementType(x);
  Value wide = c.convert(x, accumulatorType(type));
  Value total = c.reduceSum(c.mul(wide, wide), llvm::to_vector(llvm::seq<int64_t>(0, Emitter::rank(x))));
  return c.setResult(0, c.convert(c.mul(total, c.like(total, 0.5)), type));
}

} // namespace

void registerReduce(HandlerTable &t) {
  addReduce(t, "Sum", sum);
  addReduce(t, "Mean", mean);
  addReduce(t, "EuclideanNorm", euclideanNorm);
  addReduce(t, "Max", [](NodeContext &c, Value x, ArrayRef<int64_t> axes) { return c.reduceMax(x, axes); });
  addReduce(t, "Min", [](NodeContext &c, Value x, ArrayRef<int64_t> axes) { return c.reduceMin(x, axes); });
  addReduce(t, "Prod", [](NodeContext &c, Value x, ArrayRef<int64_t> axes) {
    Type type = Emitter::elementType(x);
    return c.convert(c.reduceProd(c.convert(x, accumulatorType(type)), axes), type);
  });
  addReduce(t, "All", [](NodeContext &c, Value x, ArrayRef<int64_t> axes) { return c.reduceAnd(x, axes); });
  addReduce(t, "Any", [](NodeContext &c, Value x, ArrayRef<int64_t> axes) { return c.reduceOr(x, axes); });
  t.add("ArgMax", 2, [](NodeContext &c) { return lowerArgExtreme(c, Compare::GT); });
  t.add("ArgMin", 2, [](NodeContext &c) { return lowerArgExtreme(c, Compare::LT); });
  t.add("L2Loss", 1, lowerL2Loss);
  t.add("Cumsum", 2, [](NodeContext &c) {
    return lowerScan(c, {itself, [](NodeContext &c, Type type) -> SmallVector<Value> { return {c.scalarInt(0, type)}; },
                         [](NodeContext &c, ValueRange args) -> SmallVector<Value> { return {c.add(args[0], args[1])}; }});
  });
  t.add("Cumprod", 2, [](NodeContext &c) {
    return lowerScan(c, {itself, [](NodeContext &c, Type type) -> SmallVector<Value> { return {c.scalarInt(1, type)}; },
                         [](NodeContext &c, ValueRange args) -> SmallVector<Value> { return {c.mul(args[0], args[1])}; }});
  });
  t.add("CumulativeLogsumexp", 2, [](NodeContext &c) {
    auto start = [](NodeContext &c, Type type) -> SmallVector<Value> { return {c.lowest(type), c.scalarInt(0, type)}; };
    return lowerScan(c, {logParts, start, logAddExp});
  });
}

} // namespace lathe::legalize
