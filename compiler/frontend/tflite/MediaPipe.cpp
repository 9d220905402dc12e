// MediaPipe's operators: pooling with places and back, a transposed convolution with a bias, landmarks and the crops around them.
#include "compiler/frontend/tflite/Custom.h"
#include "compiler/frontend/tflite/FlexOptions.h"
#include "passes/legalize/nn/Window.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

/// Options that are TensorFlow Lite's structures as they lie in memory: 32-bit numbers.
FailureOr<SmallVector<int64_t>> plainOptions(OpContext &c, size_t count) {
  auto *given = c.op.custom_options();
  if (!given || given->size() < 4 * count)
    return c.error("expected options of " + Twine(4 * count) + " bytes or more, found " + Twine(given ? given->size() : 0));
  SmallVector<int64_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    uint32_t word = 0;
    for (size_t k = 0; k < 4; ++k)
      word |= uint32_t(given->Get(4 * i + k)) << (8 * k);
    numbers.push_back(int32_t(word));
  }
  return numbers;
}

struct PoolOptions {
  bool same;
  int64_t stride[2], size[2]; ///< height, width
  Activation activation;
};
FailureOr<PoolOptions> poolOptions(OpContext &c) {
  auto n = plainOptions(c, 6);
  if (failed(n))
    return failure();
  PoolOptions o{(*n)[0] == 1, {(*n)[2], (*n)[1]}, {(*n)[4], (*n)[3]}, Activation::NONE};
  for (int i = 0; i < 2; ++i)
    if (o.stride[i] < 1 || o.stride[i] > 4096 || o.size[i] < 1 || o.size[i] > 4096)
      return c.error("a size in its options is out of range");
  // its numbers are those of the interpreter, not of the schema
  constexpr Activation known[] = {Activation::NONE, Activation::RELU, Activation::RELU_N1_TO_1, Activation::RELU6, Activation::TANH};
  if ((*n)[5] < 0 || (*n)[5] >= int64_t(std::size(known)))
    return c.error("fused activation " + Twine((*n)[5]) + " is not supported");
  o.activation = known[(*n)[5]];
  return o;
}

/// Input i as floats of a rank.
Value floats(OpContext &c, unsigned i, int64_t rank) {
  Value v = c.input(i);
  if (v && Emitter::elementType(v).isF32() && Emitter::rank(v) == rank)
    return v;
  if (v)
    (void)c.error("input " + Twine(i) + " must be floats of rank " + Twine(rank));
  return {};
}

/// What lies in front of the first element where `total` elements are added to a dimension.
int64_t inFront(int64_t outputs, int64_t stride, int64_t size, int64_t inputs) {
  return std::max<int64_t>((outputs - 1) * stride + size - inputs, 0) / 2;
}

} // namespace

/// The largest number of each window, and which of the window's elements that was, as a float just above the whole number.
LogicalResult maxPoolingWithArgmax(OpContext &c) {
  auto o = poolOptions(c);
  Value x = failed(o) ? Value() : floats(c, 0, 4);
  if (!x)
    return failure();
  Type f32 = c.b.getF32Type(), i64 = c.b.getI64Type();
  const int64_t window[] = {1, o->size[0], o->size[1], 1}, strides[] = {1, o->stride[0], o->stride[1], 1};
  auto result = c.call("MaxPoolWithArgmax", {GraphValue::ofTensor(x)},
                       {c.attr("ksize", ArrayRef(window)), c.attr("strides", ArrayRef(strides)),
                        c.attr("padding", o->same ? "SAME" : "VALID"), c.attr("include_batch_in_index", false)},
                       {f32, i64});
  if (failed(result))
    return failure();
  Value values = c.ctx.materialize((*result)[0], c.loc), places = c.ctx.materialize((*result)[1], c.loc);
  auto height = constantOf(c.dim(x, 1)), width = constantOf(c.dim(x, 2)), channels = constantOf(c.dim(x, 3));
  auto outHeight = constantOf(c.dim(values, 1)), outWidth = constantOf(c.dim(values, 2));
  if (!height || !width || !channels || !outHeight || !outWidth || !*width || !*channels)
    return c.error("sizes of the input but the first must be known at compile time");
  // from places in the image to places in the window
  Value pixel = c.div(places, c.likeInt(places, *channels));
  auto offset = [&](Value at, int64_t axis, int64_t outputs, int64_t inputs) {
    const int64_t front = o->same ? inFront(outputs, strides[axis], window[axis], inputs) : 0;
    Value start = c.mul(c.iota(c.dims(places), axis, i64), c.likeInt(places, strides[axis]));
    return c.sub(at, c.sub(start, c.likeInt(start, front)));
  };
  Value row = offset(c.div(pixel, c.likeInt(pixel, *width)), 1, *outHeight, *height);
  Value column = offset(c.binary<hlo::RemOp>(pixel, c.likeInt(pixel, *width)), 2, *outWidth, *width);
  Value inWindow = c.convert(c.add(c.mul(row, c.likeInt(row, o->size[1])), column), f32);
  if (failed(c.setResult(0, c.activate(values, o->activation))))
    return failure();
  return c.setResult(1, c.add(inWindow, c.like(inWindow, 0.1)));
}

/// Puts each number where its window had the largest one; 0 elsewhere. Places outside of the result are left out.
LogicalResult maxUnpooling(OpContext &c) {
  auto o = poolOptions(c);
  Value x = failed(o) ? Value() : floats(c, 0, 4), indices = x ? floats(c, 1, 4) : Value();
  if (!indices)
    return failure();
  auto height = constantOf(c.dim(x, 1)), width = constantOf(c.dim(x, 2));
  for (int64_t d = 0; d < 4; ++d)
    if (!c.ctx.unify(c.dim(x, d), c.dim(indices, d), c.nodeName))
      return c.error("values and places have different shapes");
  if (!height || !width)
    return c.error("height and width must be known at compile time");
  Type i64 = c.b.getI64Type();
  Dims dims = c.dims(x), results{dims[0], c.size(*height * o->size[0]), c.size(*width * o->size[1]), dims[3]};
  Value place = c.convert(indices, i64), columns = c.likeInt(place, o->size[1]);
  auto at = [&](Value inWindow, int axis, int64_t n) {
    const int64_t front = inFront(n, o->stride[axis], o->size[axis], n * o->size[axis]);
    Value start = c.mul(c.iota(dims, axis + 1, i64), c.likeInt(place, o->stride[axis]));
    return c.add(c.sub(start, c.likeInt(start, front)), inWindow);
  };
  Value row = at(c.div(place, columns), 0, *height), column = at(c.binary<hlo::RemOp>(place, columns), 1, *width);
  SmallVector<Value> coordinates{c.iota(dims, 0, i64), row, column, c.iota(dims, 3, i64)};
  Dims one = dims;
  one.push_back(c.size(1));
  for (Value &v : coordinates)
    v = c.reshape(v, one);
  SmallVector<int64_t> all{0, 1, 2, 3};
  auto numbers = hlo::ScatterDimensionNumbersAttr::get(c.b.getContext(), {}, all, {}, {}, all, 4);
  Value zeros = c.splat(0, results, c.b.getF32Type());
  auto scatter = hlo::ScatterOp::create(c.b, c.loc, ValueRange(zeros), c.concat(coordinates, 4), ValueRange(x), numbers, false, false,
                                        [](OpBuilder &, Location, ValueRange v) -> SmallVector<Value> { return {v[1]}; });
  return c.setResult(0, scatter->getResult(0));
}

LogicalResult transposeConvBias(OpContext &c) {
  auto o = plainOptions(c, 3);
  if (failed(o))
    return failure();
  Value x = floats(c, 0, 4), filter = x ? floats(c, 1, 4) : Value(), bias = filter ? floats(c, 2, 1) : Value();
  if (!bias)
    return failure();
  const int64_t strides[] = {(*o)[2], (*o)[1]}; // height, width
  hlo::ConvWindow window;
  for (int i = 0; i < 2; ++i) {
    auto size = constantOf(c.dim(filter, i + 1)), n = constantOf(c.dim(x, i + 1));
    if (!size || !n || *n < 1 || strides[i] < 1 || strides[i] > 4096)
      return c.error("height and width must be known at compile time, and strides positive");
    const int64_t cut = (*o)[0] == 1 ? std::max<int64_t>(0, *size - (*n - 1) % strides[i] - 1) : 0;
    window.strides.push_back(1);
    window.lhsDilation.push_back(strides[i]);
    window.padding.push_back({*size - 1 - cut / 2, *size - 1 - (cut - cut / 2)});
    window.reversal.push_back(true);
  }
  const int64_t space[] = {1, 2};
  auto numbers = hlo::ConvDimensionNumbersAttr::get(c.b.getContext(), 0, 3, space, 3, 0, space, 0, 3, space);
  Value sums = c.make<hlo::ConvolutionOp>(x, filter, window, numbers);
  return c.setResult(0, c.add(sums, bias));
}

namespace {

/// Element [row, column] of a [1, 4, 4] or [4, 4] matrix, as a scalar.
Value entry(OpContext &c, Value matrix, int64_t row, int64_t column) {
  Value flat = c.reshape(matrix, ArrayRef<int64_t>{16});
  return c.reshape(c.sliceDim(flat, 0, c.size(4 * row + column), c.size(4 * row + column + 1)), ArrayRef<AffineExpr>());
}

/// Input i: a matrix of 4 x 4 floats; null after an error.
Value matrixInput(OpContext &c, unsigned i) {
  Value v = c.input(i);
  if (v && Emitter::elementType(v).isF32() && constantOf(productOf(c.dims(v), c.b.getContext())) == int64_t(16))
    return v;
  if (v)
    (void)c.error("input " + Twine(i) + " must be a matrix of 4 x 4 floats");
  return {};
}

/// row . (x, y, 0, 1)
Value affine(OpContext &c, Value matrix, int64_t row, Value x, Value y) {
  return c.add(c.add(c.mul(x, entry(c, matrix, row, 0)), c.mul(y, entry(c, matrix, row, 1))), entry(c, matrix, row, 3));
}

LogicalResult onlyVersion2(OpContext &c) {
  return c.version == 2 ? success() : c.error("version " + Twine(c.version) + " is not supported, 2 is");
}

} // namespace

/// An image seen through a matrix that maps pixels of the result to pixels of the image, whose corners are the pixels' corners;
/// between four pixels linearly, 0 outside.
LogicalResult transformTensorBilinear(OpContext &c) {
  FlexOptions o(c.op);
  const int64_t height = o.integer("output_height", 0), width = o.integer("output_width", 0);
  Value x = failed(onlyVersion2(c)) ? Value() : floats(c, 0, 4), matrix = x ? matrixInput(c, 1) : Value();
  if (!matrix)
    return failure();
  auto inHeight = constantOf(c.dim(x, 1)), inWidth = constantOf(c.dim(x, 2)), channels = constantOf(c.dim(x, 3));
  if (constantOf(c.dim(x, 0)) != int64_t(1) || !inHeight || !inWidth || !channels || *inHeight < 1 || *inWidth < 1)
    return c.error("expected one image whose sizes are known at compile time");
  if (height < 1 || width < 1 || height > 1 << 14 || width > 1 << 14)
    return c.error("output_height or output_width is out of range");
  Type f32 = c.b.getF32Type(), i32 = c.b.getI32Type();
  Dims dims = c.sizes({height, width});
  Value column = c.iota(dims, 1, f32), row = c.iota(dims, 0, f32);
  auto half = [&](Value v) { return c.mul(v, c.like(v, 0.5)); };
  auto source = [&](int64_t k) {
    Value shift = c.sub(c.add(half(entry(c, matrix, k, 0)), half(entry(c, matrix, k, 1))), c.scalar(0.5, f32));
    return c.add(affine(c, matrix, k, column, row), shift);
  };
  Value sx = source(0), sy = source(1);
  auto inside = [&](Value v, int64_t n) {
    return c.logicalAnd(c.compare(Compare::GE, v, c.like(v, 0)), c.compare(Compare::LE, v, c.like(v, double(n - 1))));
  };
  Value valid = c.logicalAnd(inside(sx, *inWidth), inside(sy, *inHeight));
  // what is outside reads some pixel and is left out afterwards
  sx = c.select(valid, sx, c.like(sx, 0));
  sy = c.select(valid, sy, c.like(sy, 0));
  Value left = c.unary<hlo::FloorOp>(sx), top = c.unary<hlo::FloorOp>(sy), right = c.sub(sx, left), lower = c.sub(sy, top);
  Value flat = c.reshape(x, {*inHeight * *inWidth, *channels});
  Value column0 = c.convert(left, i32), row0 = c.convert(top, i32);
  const Dims full = c.sizes({height, width, *channels});
  auto pixel = [&](int64_t down, int64_t across) -> Value {
    // beyond the last pixel the weight is 0
    Value at = c.min(c.add(column0, c.likeInt(column0, across)), c.likeInt(column0, *inWidth - 1));
    Value line = c.min(c.add(row0, c.likeInt(row0, down)), c.likeInt(row0, *inHeight - 1));
    Value place = c.add(c.mul(line, c.likeInt(line, *inWidth)), at);
    return c.call1("GatherV2", {flat, place, c.scalarInt(0, i32)}, {c.attr("batch_dims", int64_t(0))}, f32);
  };
  auto mix = [&](Value a, Value b, Value share) {
    Value s = c.broadcastInDim(share, full, {0, 1});
    return c.add(c.mul(c.sub(c.like(s, 1), s), a), c.mul(s, b));
  };
  Value corners[] = {pixel(0, 0), pixel(0, 1), pixel(1, 0), pixel(1, 1)};
  if (llvm::is_contained(corners, Value()))
    return failure();
  Value result = mix(mix(corners[0], corners[1], right), mix(corners[2], corners[3], right), lower);
  result = c.select(c.broadcastInDim(valid, full, {0, 1}), result, c.like(result, 0));
  return c.setResult(0, c.reshape(result, {1, height, width, *channels}));
}

/// Points of two or three coordinates through the first two rows of a matrix; a third coordinate stays.
LogicalResult transformLandmarks(OpContext &c) {
  Value x = failed(onlyVersion2(c)) ? Value() : floats(c, 0, 3), matrix = x ? matrixInput(c, 1) : Value();
  if (!matrix)
    return failure();
  auto each = constantOf(c.dim(x, 2));
  if (!each || *each < 2 || *each > 3)
    return c.error("expected points of two or three coordinates");
  auto coordinate = [&](int64_t k) { return c.sliceDim(x, 2, c.size(k), c.size(k + 1)); };
  SmallVector<Value> moved;
  for (int64_t k = 0; k < 2; ++k)
    moved.push_back(affine(c, matrix, k, coordinate(0), coordinate(1)));
  if (*each == 3)
    moved.push_back(coordinate(2));
  return c.setResult(0, c.concat(moved, 2));
}

namespace {

/// The matrix from a crop's pixels to the image: the crop holds some of the landmarks and is turned so that two others lie level.
class Crop {
public:
  Crop(OpContext &c, const FlexOptions &o) : c(c), o(o) {}
  LogicalResult run();

private:
  Value number(double v) { return c.scalar(v, c.b.getF32Type()); }
  /// Coordinate k of landmark i.
  Value landmark(int64_t i, int64_t k) {
    return c.reshape(c.slice(points, c.sizes({i, k}), c.sizes({i + 1, k + 1})), ArrayRef<AffineExpr>());
  }
  /// The points of the subset turned by the angle, coordinate k.
  Value turned(Value of, int64_t k) {
    auto along = [&](int64_t i) { return c.reshape(c.sliceDim(of, 1, c.size(i), c.size(i + 1)), Dims{c.dim(of, 0)}); };
    Value x = along(0), y = along(1);
    return k == 0 ? c.sub(c.mul(x, cosine), c.mul(y, sine)) : c.add(c.mul(x, sine), c.mul(y, cosine));
  }

  OpContext &c;
  const FlexOptions &o;
  Value points, sine, cosine;
};

LogicalResult Crop::run() {
  points = floats(c, 0, 3);
  if (!points)
    return failure();
  auto count = constantOf(c.dim(points, 1)), each = constantOf(c.dim(points, 2));
  if (constantOf(c.dim(points, 0)) != int64_t(1) || !count || !each || *each != 3)
    return c.error("expected landmarks [1, n, 3]");
  points = c.reshape(points, {*count, *each});
  auto subset = o.integers("subset_idxs");
  const int64_t left = o.integer("left_rotation_idx", -1), right = o.integer("right_rotation_idx", -1);
  const int64_t height = o.integer("output_height", 0), width = o.integer("output_width", 0);
  const float scale[] = {o.real("scale_x", 0), o.real("scale_y", 0)};
  auto outside = [&](int64_t i) { return i < 0 || i >= *count; };
  if (subset.empty() || llvm::any_of(subset, outside) || outside(left) || outside(right))
    return c.error("a landmark in its options is not there");
  if (height < 1 || width < 1 || height > 1 << 24 || width > 1 << 24 || !(scale[0] > 0) || !(scale[1] > 0))
    return c.error("a size or scale in its options is out of range");
  Value slope = c.make<hlo::Atan2Op>(c.sub(landmark(right, 1), landmark(left, 1)), c.sub(landmark(right, 0), landmark(left, 0)));
  Value angle = c.sub(number(o.real("target_rotation_radians", 0)), slope);
  sine = c.make<hlo::SineOp>(angle);
  cosine = c.make<hlo::CosineOp>(angle);
  Value chosen = c.call1("GatherV2", {points, c.constantInts(SmallVector<int64_t>(subset.begin(), subset.end()), c.b.getI32Type()),
                                      c.scalarInt(0, c.b.getI32Type())}, {c.attr("batch_dims", int64_t(0))}, c.b.getF32Type());
  if (!chosen)
    return failure();
  Value size[2], middle[2];
  for (int k = 0; k < 2; ++k) {
    Value v = turned(chosen, k), low = c.reduceMin(v, {0}), high = c.reduceMax(v, {0});
    size[k] = c.sub(high, low);
    middle[k] = c.mul(c.add(low, high), number(0.5));
  }
  // back by the same angle
  Value center[] = {c.add(c.mul(middle[0], cosine), c.mul(middle[1], sine)), c.sub(c.mul(middle[1], cosine), c.mul(middle[0], sine))};
  Value sx = c.div(c.mul(number(scale[0]), size[0]), number(width)), sy = c.div(c.mul(number(scale[1]), size[1]), number(height));
  Value turn[2][2] = {{c.mul(cosine, sx), c.mul(sine, sy)}, {c.neg(c.mul(sine, sx)), c.mul(cosine, sy)}};
  SmallVector<Value> entries;
  Value zero = number(0), one = number(1);
  for (int k = 0; k < 2; ++k) {
    Value shift = c.add(c.mul(turn[k][0], number(-width / 2.0)), c.mul(turn[k][1], number(-height / 2.0)));
    entries.append({turn[k][0], turn[k][1], zero, c.add(shift, center[k])});
  }
  entries.append({zero, zero, one, zero, zero, zero, zero, one});
  for (Value &v : entries)
    v = c.reshape(v, ArrayRef<int64_t>{1});
  return c.setResult(0, c.reshape(c.concat(entries, 0), {1, 4, 4}));
}

} // namespace

LogicalResult landmarksToMatrix(OpContext &c) {
  FlexOptions o(c.op);
  return failed(onlyVersion2(c)) ? failure() : Crop(c, o).run();
}

} // namespace lathe::tflite
