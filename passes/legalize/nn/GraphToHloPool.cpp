// Pooling and its gradients: windows over the spatial dimensions.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/MaxNumber.h"
#include "passes/legalize/nn/Pool.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

FailureOr<Pool> parsePool(NodeContext &c, const Dims &input, ArrayRef<int64_t> ksize, ArrayRef<int64_t> strides, bool mayBeOpen) {
  int64_t rank = input.size();
  auto format = DataFormat::parse(c, c.attrString("data_format"), rank);
  if (failed(format))
    return failure();
  Pool pool;
  pool.format = *format;
  if (int64_t(ksize.size()) != rank || int64_t(strides.size()) != rank)
    return c.error("expected " + Twine(rank) + " window sizes and strides");
  // Windows over channels are pooled like a spatial dimension.
  if (ksize[format->batch] != 1 || strides[format->batch] != 1)
    return c.error("windows over the batch are not supported");
  if (ksize[format->feature] != 1 || strides[format->feature] != 1)
    pool.format.spatial.push_back(format->feature);
  for (int64_t axis : pool.format.spatial) {
    WindowDim d;
    d.input = input[axis];
    d.size = ksize[axis];
    d.stride = strides[axis];
    if (d.size <= 0)
      return c.error("window sizes must be positive");
    pool.dims.push_back(d);
  }
  DataFormat plain = *format;
  MutableArrayRef<WindowDim> dims = pool.dims;
  if (pool.format.spatial.size() != plain.spatial.size() && c.attrString("padding") == "EXPLICIT")
    return c.error("explicit paddings with windows over channels are not supported");
  if (failed(computePadding(c, c.attrString("padding") == "EXPLICIT" ? plain : pool.format, dims,
                            c.attrString("padding"), c.attrInts("explicit_paddings"), mayBeOpen)))
    return failure();
  return pool;
}

} // namespace

PoolShape shapeOf(const Pool &pool, int64_t rank) {
  PoolShape s;
  s.window.assign(rank, 1);
  s.config.strides.assign(rank, 1);
  s.config.padding.assign(rank, {0, 0});
  for (auto [i, axis] : llvm::enumerate(pool.format.spatial)) {
    s.window[axis] = pool.dims[i].size;
    s.config.strides[axis] = pool.dims[i].stride;
    s.config.padding[axis] = {pool.dims[i].low, pool.dims[i].high};
  }
  return s;
}

FailureOr<Pool> poolOf(NodeContext &c, const Dims &input, int64_t firstSizeInput, bool mayBeOpen) {
  if (firstSizeInput < 0)
    return parsePool(c, input, c.attrInts("ksize"), c.attrInts("strides"), mayBeOpen);
  auto ksize = c.constantInts(firstSizeInput), strides = c.constantInts(firstSizeInput + 1);
  if (failed(ksize) || failed(strides))
    return failure();
  return parsePool(c, input, *ksize, *strides, mayBeOpen);
}

namespace {

template <typename Op>
SmallVector<Value> body(OpBuilder &b, Location l, ValueRange args) {
  return {Op::create(b, l, args[0], args[1])};
}

Value sumWindows(NodeContext &c, Value x, const PoolShape &s) {
  return c.make<hlo::ReduceWindowOp>(ValueRange(x), ValueRange(c.scalarInt(0, Emitter::elementType(x))),
                                     ArrayRef<int64_t>(s.window), s.config, body<hlo::AddOp>);
}

LogicalResult lowerMaxPool(NodeContext &c, int64_t firstSizeInput) {
  Value x = c.input(0);
  auto pool = poolOf(c, c.dims(x), firstSizeInput, /*mayBeOpen=*/true);
  if (failed(pool))
    return failure();
  PoolShape s = shapeOf(*pool, Emitter::rank(x));
  Type type = Emitter::elementType(x);
  bool isFloat = isa<FloatType>(type);
  // TensorFlow starts at the lowest finite number and never takes a NaN
  Value lowest = hlo::makeLowest(c.b, c.loc, type, /*infinite=*/false);
  x = padOpen(c, x, lowest, pool->format.spatial, pool->dims);
  auto number = [](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
    return {hlo::makeMaxNumber(b, l, args[0], args[1])};
  };
  return c.setResult(0, isFloat ? c.make<hlo::ReduceWindowOp>(ValueRange(x), ValueRange(lowest),
                                                              ArrayRef<int64_t>(s.window), s.config, number)
                                : c.make<hlo::ReduceWindowOp>(ValueRange(x), ValueRange(lowest),
                                                              ArrayRef<int64_t>(s.window), s.config, body<hlo::MaxOp>));
}

/// How many elements each window has inside the input, as a tensor [1, oh, ow, 1]; null where all are full.
Value windowCounts(NodeContext &c, const Pool &pool, const Dims &input, Type type) {
  if (!pool.padded())
    return {};
  Dims dims(input.size(), c.size(1));
  for (auto [i, axis] : llvm::enumerate(pool.format.spatial))
    dims[axis] = pool.dims[i].input;
  Value ones = padOpen(c, c.splat(1, dims, type), c.scalar(0, type), pool.format.spatial, pool.dims);
  return sumWindows(c, ones, shapeOf(pool, input.size()));
}

Value divideByCounts(NodeContext &c, const Pool &pool, const Dims &input, Value sums) {
  Type type = Emitter::elementType(sums);
  if (Value counts = windowCounts(c, pool, input, type))
    return c.div(sums, counts);
  double count = 1;
  for (const WindowDim &d : pool.dims)
    count *= double(d.size);
  return c.div(sums, c.like(sums, count));
}

Type poolAccumulator(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32 ? Float32Type::get(type.getContext()) : type;
}

} // namespace

Value averageWindows(NodeContext &c, const Pool &pool, Value x, Type type) {
  const Dims input = c.dims(x);
  x = padOpen(c, x, c.scalar(0, Emitter::elementType(x)), pool.format.spatial, pool.dims);
  Value sums = sumWindows(c, x, shapeOf(pool, input.size()));
  return divideByCounts(c, pool, input, type ? c.convert(sums, type) : sums);
}

namespace {

LogicalResult lowerAvgPool(NodeContext &c) {
  Value x = c.input(0);
  Type type = Emitter::elementType(x);
  auto pool = poolOf(c, c.dims(x), -1, /*mayBeOpen=*/true);
  if (failed(pool))
    return failure();
  return c.setResult(0, c.convert(averageWindows(c, *pool, c.convert(x, poolAccumulator(type))), type));
}

LogicalResult lowerMaxPoolGrad(NodeContext &c, int64_t firstSizeInput) {
  Value x = c.input(0), grad = c.input(2);
  auto pool = poolOf(c, c.dims(x), firstSizeInput);
  if (failed(pool))
    return failure();
  PoolShape s = shapeOf(*pool, Emitter::rank(x));
  // The first element stands until one is more than it: so a NaN counts only where it comes first.
  auto select = [](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
    Value more = hlo::CompareOp::create(b, l, args[1], args[0], Compare::GT);
    return {hlo::NotOp::create(b, l, more)};
  };
  return c.setResult(0, c.make<hlo::SelectAndScatterOp>(x, grad, c.scalarInt(0, Emitter::elementType(x)),
                                                        ArrayRef<int64_t>(s.window), s.config, select, body<hlo::AddOp>));
}

/// In volumes every element that equals its window's maximum gets the whole gradient: for each place in the window, what
/// it adds to the elements there.
LogicalResult lowerMaxPool3DGrad(NodeContext &c) {
  constexpr int64_t kMostPlaces = 216; // above, the first maximum of each window alone
  Value x = c.input(0), best = c.input(1), grad = c.input(2);
  Dims dims = c.dims(x);
  auto pool = poolOf(c, dims, -1);
  if (failed(pool))
    return failure();
  PoolShape s = shapeOf(*pool, dims.size());
  int64_t places = 1;
  bool known = true;
  for (auto [i, axis] : llvm::enumerate(pool->format.spatial)) {
    places = std::min(places * pool->dims[i].size, kMostPlaces + 1);
    known &= constantOf(dims[axis]) && constantOf(c.dim(best, axis)) == constantOf(c.dim(grad, axis)) &&
             constantOf(c.dim(grad, axis));
  }
  if (!known || places > kMostPlaces)
    return lowerMaxPoolGrad(c, -1);
  int64_t rank = dims.size();
  Type type = Emitter::elementType(x), accumulator = poolAccumulator(type);
  Value zero = c.scalarInt(0, type), lowest = hlo::makeLowest(c.b, c.loc, type, /*infinite=*/false), sum;
  SmallVector<int64_t> none(rank, 0);
  for (int64_t place = 0; place < places; ++place) {
    // the elements that windows read here: cut or padded so that the strides meet them
    SmallVector<int64_t> low(rank, 0), high(rank, 0), interior(rank, 0), steps(rank, 1);
    int64_t rest = place;
    for (int64_t i = pool->dims.size() - 1; i >= 0; --i) {
      const WindowDim &d = pool->dims[i];
      int64_t axis = pool->format.spatial[i], at = rest % d.size - d.low;
      rest /= d.size;
      int64_t out = *constantOf(c.dim(grad, axis)), span = out ? (out - 1) * d.stride + 1 : 0;
      low[axis] = at;
      high[axis] = *constantOf(dims[axis]) - at - span;
      interior[axis] = d.stride - 1;
      steps[axis] = d.stride;
    }
    SmallVector<int64_t> cutLow, cutHigh;
    for (int64_t axis = 0; axis < rank; ++axis) {
      cutLow.push_back(-low[axis]);
      cutHigh.push_back(-high[axis]);
    }
    Value read = c.pad(x, lowest, cutLow, cutHigh, none);
    Dims from(rank, c.size(0)), to = c.dims(read);
    read = c.slice(read, from, to, steps);
    Value mine = c.select(c.compare(Compare::EQ, read, best), grad, zero);
    Value placed = c.convert(c.pad(mine, zero, low, high, interior), accumulator);
    sum = sum ? c.add(sum, placed) : placed;
  }
  return c.setResult(0, c.convert(sum, type));
}

LogicalResult lowerAvgPoolGrad(NodeContext &c) {
  auto sizes = c.shapeInput(0);
  if (failed(sizes))
    return failure();
  Dims input = *sizes;
  Value grad = c.input(1);
  if (Emitter::rank(grad) != int64_t(input.size()))
    return c.error("expected a gradient of rank " + Twine(input.size()) + ", found rank " + Twine(Emitter::rank(grad)));
  Type type = Emitter::elementType(grad), accumulator = poolAccumulator(type);
  auto pool = poolOf(c, input, -1);
  if (failed(pool))
    return failure();
  Value each = divideByCounts(c, *pool, input, c.convert(grad, accumulator));
  // Every element gets the sum of all windows over it: spread the gradient by the strides, sum in windows of one.
  int64_t rank = input.size();
  PoolShape s;
  s.window.assign(rank, 1);
  s.config.strides.assign(rank, 1);
  s.config.padding.assign(rank, {0, 0});
  SmallVector<int64_t> low(rank, 0), high(rank, 0), interior(rank, 0);
  for (auto [i, axis] : llvm::enumerate(pool->format.spatial)) {
    const WindowDim &d = pool->dims[i];
    auto n = constantOf(input[axis]), out = constantOf(c.dim(grad, axis));
    low[axis] = d.size - 1 - d.low;
    if (n && out)
      high[axis] = *n + d.size - 1 - ((*out - 1) * d.stride + 1) - low[axis];
    else if (d.stride == 1)
      high[axis] = d.size - 1 - d.high;
    else
      return c.error("spatial sizes must be known at compile time");
    interior[axis] = d.stride - 1;
    s.window[axis] = d.size;
  }
  Value spread = c.pad(each, c.scalarInt(0, accumulator), low, high, interior);
  return c.setResult(0, c.convert(sumWindows(c, spread, s), type));
}

} // namespace

void registerPool(HandlerTable &t) {
  t.add("MaxPool", 1, [](NodeContext &c) { return lowerMaxPool(c, -1); });
  t.add("MaxPool3D", 1, [](NodeContext &c) { return lowerMaxPool(c, -1); });
  t.add("MaxPoolV2", 3, [](NodeContext &c) { return lowerMaxPool(c, 1); });
  t.add("AvgPool", 1, lowerAvgPool);
  t.add("AvgPool3D", 1, lowerAvgPool);
  t.add("MaxPoolGrad", 3, [](NodeContext &c) { return lowerMaxPoolGrad(c, -1); });
  t.add("MaxPool3DGrad", 3, lowerMaxPool3DGrad);
  t.add("MaxPoolGradV2", 5, [](NodeContext &c) { return lowerMaxPoolGrad(c, 3); });
  t.add("AvgPoolGrad", 2, lowerAvgPoolGrad);
  t.add("AvgPool3DGrad", 2, lowerAvgPoolGrad);
  registerPoolArgmax(t);
}

} // namespace lathe::legalize
