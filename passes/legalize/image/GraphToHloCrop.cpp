// Crops of images: boxes resized with their gradients, glimpses, scaling with antialiasing.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Bilinear or nearest samples of one dimension of boxes: places for each output pixel, and whether they lie inside.
struct BoxAxis {
  Value low, high, weight, inside;
  /// What the place is multiplied with: how much of it each of the box's two ends gives.
  Value fromShare, toShare;
};

BoxAxis boxAxis(NodeContext &c, Value from, Value to, AffineExpr imageSize, int64_t crop, bool nearest) {
  Type f32 = c.b.getF32Type(), i32 = c.b.getI32Type();
  Dims table{c.dim(from, 0), c.size(crop)};
  Value last = c.convert(c.sizeValue(imageSize - 1, i32), f32);
  Value step, at;
  auto spread = [&](Value v) { return c.broadcastInDim(v, table, {0}); };
  if (crop > 1) {
    step = c.div(c.mul(c.sub(to, from), last), c.scalar(double(crop - 1), f32));
    at = c.add(spread(c.mul(from, last)), c.mul(c.iota(table, 1, f32), spread(step)));
  } else {
    at = spread(c.mul(c.mul(c.add(from, to), c.scalar(0.5, f32)), last));
  }
  BoxAxis a;
  a.toShare = crop > 1 ? c.mul(c.iota(table, 1, f32), c.div(last, c.scalar(double(crop - 1), f32)))
                       : c.broadcastInDim(c.mul(last, c.scalar(0.5, f32)), table, {});
  a.fromShare = c.sub(last, a.toShare);
  a.inside = c.logicalAnd(c.compare(Compare::GE, at, c.like(at, 0)), c.compare(Compare::LE, at, last));
  at = c.select(a.inside, at, c.like(at, 0));
  if (nearest) {
    a.low = c.convert(c.unary<hlo::RoundOp>(at), i32);
    return a;
  }
  Value floor = c.unary<hlo::FloorOp>(at);
  a.low = c.convert(floor, i32);
  a.high = c.convert(c.unary<hlo::CeilOp>(at), i32);
  a.weight = c.sub(at, floor);
  return a;
}

/// The boxes of a node as two axes, and the places in the image that they sample.
struct Boxes {
  NodeContext &c;
  Value which;
  BoxAxis y, x;
  Dims grid;
  bool nearest = false;

  /// `first` is the number of the inputs boxes, box_ind; image is [batch, height, width, depth].
  LogicalResult read(unsigned first, const Dims &image, ArrayRef<int64_t> crop) {
    Value boxes = c.input(first);
    which = c.input(first + 1);
    if (failed(c.expectRank(first, 2)) || failed(c.expectRank(first + 1, 1)))
      return failure();
    if (crop.size() != 2 || crop[0] <= 0 || crop[1] <= 0)
      return c.error("the crop size must be two positive numbers");
    StringRef method = c.attrString("method", "bilinear");
    if (method != "bilinear" && method != "nearest")
      return c.error("method '" + method + "' is not supported");
    if (!c.ctx.unify(c.dim(boxes, 1), c.size(4), c.name()) || !c.ctx.unify(c.dim(boxes, 0), c.dim(which, 0), c.name()))
      return c.error("expected four numbers and an index for each box");
    nearest = method == "nearest";
    boxes = c.convert(boxes, c.b.getF32Type());
    checkRange(c, which, image[0], "box_ind is out of range");
    auto corner = [&](int64_t k) {
      return c.reshape(c.sliceDim(boxes, 1, c.size(k), c.size(k + 1)), Dims{c.dim(boxes, 0)});
    };
    y = boxAxis(c, corner(0), corner(2), image[1], crop[0], nearest);
    x = boxAxis(c, corner(1), corner(3), image[2], crop[1], nearest);
    grid = {c.dim(boxes, 0), c.size(crop[0]), c.size(crop[1])};
    return success();
  }
  /// [boxes, rows, columns, depth]
  Dims withDepth(AffineExpr depth) const {
    Dims dims = grid;
    dims.push_back(depth);
    return dims;
  }
  Value inside(const Dims &dims) {
    return c.logicalAnd(c.broadcastInDim(y.inside, dims, {0, 1}), c.broadcastInDim(x.inside, dims, {0, 2}));
  }
  /// Coordinates [boxes, rows, columns, 3] from a row and a column of each axis.
  Value coordinates(Value row, Value col) {
    Dims one = withDepth(c.size(1));
    return c.concat({c.reshape(c.broadcastInDim(c.convert(which, c.b.getI32Type()), grid, {0}), one),
                     c.reshape(c.broadcastInDim(row, grid, {0, 1}), one),
                     c.reshape(c.broadcastInDim(col, grid, {0, 2}), one)},
                    3);
  }
  Value sample(Value image, Value row, Value col) {
    Value v = gatherNd(c, image, coordinates(row, col), 0, /*checked=*/false);
    return v ? c.convert(v, c.b.getF32Type()) : v;
  }
};

LogicalResult lowerCropAndResize(NodeContext &c) {
  Value image = c.input(0);
  auto crop = c.constantInts(3);
  Boxes b{c};
  if (failed(crop) || failed(c.expectRank(0, 4)) || failed(b.read(1, c.dims(image), *crop)))
    return failure();
  Type f32 = c.b.getF32Type();
  Dims result = b.withDepth(c.dim(image, 3));
  Value value;
  if (b.nearest) {
    value = b.sample(image, b.y.low, b.x.low);
  } else {
    auto lerp = [&](Value from, Value to, Value w, int64_t axis) {
      return c.add(from, c.mul(c.sub(to, from), c.broadcastInDim(w, result, {0, axis})));
    };
    Value top = lerp(b.sample(image, b.y.low, b.x.low), b.sample(image, b.y.low, b.x.high), b.x.weight, 2);
    Value bottom = lerp(b.sample(image, b.y.high, b.x.low), b.sample(image, b.y.high, b.x.high), b.x.weight, 2);
    value = lerp(top, bottom, b.y.weight, 1);
  }
  return c.setResult(0, c.select(b.inside(result), value, c.scalar(c.attrFloat("extrapolation_value"), f32)));
}

/// Rows and columns of the gradients, known sizes.
FailureOr<SmallVector<int64_t>> cropOf(NodeContext &c) {
  if (failed(c.expectRank(0, 4)))
    return failure();
  auto h = constantOf(c.dim(c.input(0), 1)), w = constantOf(c.dim(c.input(0), 2));
  if (!h || !w)
    return c.error("the size of the crops must be known");
  return SmallVector<int64_t>{*h, *w};
}

/// Every sample gives its share back to the four (or one) pixels it was made of.
LogicalResult lowerCropGradImage(NodeContext &c) {
  Value grads = c.input(0);
  auto crop = cropOf(c);
  auto sizes = c.shapeInput(3);
  if (failed(crop) || failed(sizes))
    return failure();
  if (sizes->size() != 4)
    return c.error("expected four image sizes, found " + Twine(sizes->size()));
  Boxes b{c};
  if (failed(b.read(1, *sizes, *crop)))
    return failure();
  Type f32 = c.b.getF32Type();
  Dims dims = c.dims(grads);
  grads = c.select(b.inside(dims), c.convert(grads, f32), c.scalar(0, f32));
  Value image = c.splat(0, *sizes, f32);
  auto give = [&](Value row, Value col, Value share) {
    if (image)
      image = scatterNd(c, image, b.coordinates(row, col), share, combineAdd, /*checked=*/false);
  };
  if (b.nearest) {
    give(b.y.low, b.x.low, grads);
  } else {
    Value wy = c.broadcastInDim(b.y.weight, dims, {0, 1}), wx = c.broadcastInDim(b.x.weight, dims, {0, 2});
    Value lower = c.mul(grads, wy), upper = c.sub(grads, lower);
    Value upperRight = c.mul(upper, wx), lowerRight = c.mul(lower, wx);
    give(b.y.low, b.x.low, c.sub(upper, upperRight));
    give(b.y.low, b.x.high, upperRight);
    give(b.y.high, b.x.low, c.sub(lower, lowerRight));
    give(b.y.high, b.x.high, lowerRight);
  }
  return c.setResult(0, image ? c.convert(image, c.resultType(0)) : image);
}

LogicalResult lowerCropGradBoxes(NodeContext &c) {
  Value grads = c.input(0), image = c.input(1);
  auto crop = cropOf(c);
  Boxes b{c};
  if (failed(crop) || failed(c.expectRank(1, 4)) || failed(b.read(2, c.dims(image), *crop)))
    return failure();
  if (b.nearest)
    return c.error("the gradient of nearest sampling is not supported");
  Type f32 = c.b.getF32Type();
  Dims dims = c.dims(grads);
  Value wy = c.broadcastInDim(b.y.weight, dims, {0, 1}), wx = c.broadcastInDim(b.x.weight, dims, {0, 2});
  Value topLeft = b.sample(image, b.y.low, b.x.low), topRight = b.sample(image, b.y.low, b.x.high);
  Value bottomLeft = b.sample(image, b.y.high, b.x.low), bottomRight = b.sample(image, b.y.high, b.x.high);
  auto lerp = [&](Value from, Value to, Value w) { return c.add(from, c.mul(c.sub(to, from), w)); };
  Value slopeY = lerp(c.sub(bottomLeft, topLeft), c.sub(bottomRight, topRight), wx);
  Value slopeX = lerp(c.sub(topRight, topLeft), c.sub(bottomRight, bottomLeft), wy);
  grads = c.select(b.inside(dims), c.convert(grads, f32), c.scalar(0, f32));
  SmallVector<Value> columns;
  Dims column{dims[0], c.size(1)};
  for (bool end : {false, true})
    for (bool horizontal : {false, true}) {
      const BoxAxis &axis = horizontal ? b.x : b.y;
      Value share = c.broadcastInDim(end ? axis.toShare : axis.fromShare, dims, {0, horizontal ? 2 : 1});
      Value sum = c.reduceSum(c.mul(c.mul(grads, horizontal ? slopeX : slopeY), share), {1, 2, 3});
      columns.push_back(sum ? c.reshape(sum, column) : sum);
    }
  if (llvm::is_contained(columns, Value()))
    return failure();
  return c.setResult(0, c.concat(columns, 1));
}

//===----------------------------------------------------------------------===//
// Glimpses
//===----------------------------------------------------------------------===//

LogicalResult lowerGlimpse(NodeContext &c, bool second) {
  Value image = c.input(0), offsets = c.input(2);
  auto size = c.constantInts(1);
  if (failed(size) || failed(c.expectRank(0, 4)) || failed(c.expectRank(2, 2)))
    return failure();
  if (size->size() != 2 || (*size)[0] < 0 || (*size)[1] < 0)
    return c.error("the size must be two numbers, not negative");
  Dims dims = c.dims(image);
  if (!c.ctx.unify(c.dim(offsets, 0), dims[0], c.name()) || !c.ctx.unify(c.dim(offsets, 1), c.size(2), c.name()))
    return c.error("expected two offsets for each image");
  bool centered = c.attrBool("centered", true), normalized = c.attrBool("normalized", true);
  Type f32 = c.b.getF32Type(), i32 = c.b.getI32Type();
  Dims grid{dims[0], c.size((*size)[0]), c.size((*size)[1])}, one = grid, result = grid;
  one.push_back(c.size(1));
  result.push_back(dims[3]);
  Value inside, index[3] = {c.iota(one, 0, i32), {}, {}};
  for (int d = 0; d < 2; ++d) {
    Value at = c.reshape(c.sliceDim(offsets, 1, c.size(d), c.size(d + 1)), Dims{dims[0]});
    Value extent = c.convert(c.sizeValue(dims[d + 1], i32), f32), half = c.scalar((*size)[d] / 2.0, f32);
    Value two = c.scalar(2, f32);
    if (normalized)
      at = c.mul(at, extent);
    // The first version always puts the middle of the glimpse at the offset; the second only for centred fractions.
    bool halve = centered && (!second || normalized);
    if (halve)
      at = c.div(at, two);
    if (centered)
      at = c.add(at, c.div(extent, two));
    if (!second || halve)
      at = c.sub(at, half);
    Value start = c.broadcastInDim(c.convert(at, i32), one, {0});
    Value place = c.add(start, c.iota(one, d + 1, i32)), limit = c.sizeValue(dims[d + 1], i32);
    Value ok = c.logicalAnd(c.compare(Compare::GE, place, c.like(place, 0)), c.compare(Compare::LT, place, limit));
    inside = inside ? c.logicalAnd(inside, ok) : ok;
    index[d + 1] = c.select(ok, place, c.like(place, 0));
  }
  StringRef noise = c.attrString("noise", "uniform");
  if (noise != "zero")
    c.check(inside, "a glimpse reaches beyond the image: random noise is not supported");
  Value pixels = gatherNd(c, image, c.concat({index[0], index[1], index[2]}, 3), 0, /*checked=*/false);
  if (!pixels)
    return failure();
  Value keep = c.broadcastInDim(c.reshape(inside, grid), result, {0, 1, 2});
  return c.setResult(0, c.select(keep, pixels, c.scalar(0, f32)));
}

//===----------------------------------------------------------------------===//
// Scaling
//===----------------------------------------------------------------------===//

struct Kernel {
  double radius;
  Value (*weight)(NodeContext &, Value); ///< of a distance, 0 or more
};

Value polynomial(NodeContext &c, Value x, ArrayRef<double> highestFirst) {
  Value sum = c.like(x, highestFirst[0]);
  for (double k : highestFirst.drop_front())
    sum = c.add(c.mul(sum, x), c.like(x, k));
  return sum;
}
Value below(NodeContext &c, Value x, double limit, Value yes, Value no) {
  return c.select(c.compare(Compare::LT, x, c.like(x, limit)), yes, no);
}
template <int Radius>
Value lanczos(NodeContext &c, Value x) {
  constexpr double pi = 3.14159265358979323846;
  Value angle = c.mul(x, c.like(x, pi)), inner = c.div(angle, c.like(x, Radius));
  Value product = c.mul(c.unary<hlo::SineOp>(angle), c.unary<hlo::SineOp>(inner));
  Value value = c.div(product, c.mul(angle, inner));
  value = c.select(c.compare(Compare::LE, x, c.like(x, 1e-3)), c.like(x, 1), value);
  return c.select(c.compare(Compare::GT, x, c.like(x, Radius)), c.like(x, 0), value);
}
Value cubic(NodeContext &c, Value x, ArrayRef<double> near, ArrayRef<double> far) {
  return below(c, x, 1, polynomial(c, x, near), below(c, x, 2, polynomial(c, x, far), c.like(x, 0)));
}

std::optional<Kernel> kernelOf(StringRef name) {
  if (name == "lanczos1")
    return Kernel{1, lanczos<1>};
  if (name == "lanczos3")
    return Kernel{3, lanczos<3>};
  if (name == "lanczos5")
    return Kernel{5, lanczos<5>};
  if (name == "gaussian")
    return Kernel{1.5, [](NodeContext &c, Value x) {
                    return below(c, x, 1.5, c.unary<hlo::ExpOp>(c.mul(c.mul(x, x), c.like(x, -2))), c.like(x, 0));
                  }};
  if (name == "box")
    return Kernel{0.5, [](NodeContext &c, Value x) {
                    Value edge = c.select(c.compare(Compare::EQ, x, c.like(x, 0.5)), c.like(x, 0.5), c.like(x, 0));
                    return below(c, x, 0.5, c.like(x, 1), edge);
                  }};
  if (name == "triangle")
    return Kernel{1, [](NodeContext &c, Value x) { return below(c, x, 1, c.sub(c.like(x, 1), x), c.like(x, 0)); }};
  if (name == "keyscubic")
    return Kernel{2, [](NodeContext &c, Value x) { return cubic(c, x, {1.5, -2.5, 0, 1}, {-0.5, 2.5, -4, 2}); }};
  if (name == "mitchellcubic")
    return Kernel{2, [](NodeContext &c, Value x) {
                    return cubic(c, x, {7.0 / 6, -2, 0, 8.0 / 9}, {-7.0 / 18, 2, -10.0 / 3, 16.0 / 9});
                  }};
  return std::nullopt;
}

/// [out, in]: how much of each input pixel an output pixel takes along one dimension.
Value spans(NodeContext &c, const Kernel &kernel, AffineExpr out, AffineExpr in, Value scale, Value translation) {
  Type f32 = c.b.getF32Type();
  Dims table{out, in};
  Value one = c.scalar(1, f32), half = c.scalar(0.5, f32), zero = c.scalar(0, f32);
  Value inverse = c.div(one, scale), shift = c.neg(c.mul(inverse, translation));
  Value widening = c.attrBool("antialias", true) ? c.max(inverse, one) : one;
  Value center = c.add(c.mul(c.add(c.iota(table, 0, f32), half), inverse), shift);
  Value size = c.convert(c.sizeValue(in, c.b.getI32Type()), f32), last = c.sub(size, one);
  Value reach = c.mul(widening, c.scalar(kernel.radius, f32)), source = c.iota(table, 1, f32);
  auto clamp = [&](Value v) { return c.min(c.max(v, zero), last); };
  Value first = clamp(c.unary<hlo::CeilOp>(c.sub(c.sub(center, reach), half)));
  Value end = clamp(c.unary<hlo::FloorOp>(c.sub(c.add(center, reach), half)));
  Value inSpan = c.logicalAnd(c.compare(Compare::GE, source, first), c.compare(Compare::LE, source, end));
  Value distance = c.unary<hlo::AbsOp>(c.div(c.sub(c.add(source, half), center), widening));
  Value weights = c.select(inSpan, kernel.weight(c, distance), zero);
  Value total = c.keepDims(c.reduceSum(weights, {1}), {1}, 2);
  Value solid = c.compare(Compare::GE, c.unary<hlo::AbsOp>(total), c.like(total, 1000 * 1.17549435e-38));
  weights = c.mul(weights, c.select(solid, c.div(one, total), zero));
  Value sampled = c.logicalAnd(c.compare(Compare::GE, center, zero), c.compare(Compare::LE, center, size));
  return c.select(sampled, weights, zero);
}

/// x [batch, height, width, depth] with both spatial dimensions multiplied by matrices [out, in] (or their transposed).
Value applySpans(NodeContext &c, Value x, Value rows, Value cols, bool transposed) {
  int64_t contract = transposed ? 0 : 1;
  Value v = c.dot(rows, x, {}, {}, {contract}, {1}); // [rows, batch, width, depth]
  v = v ? c.dot(cols, v, {}, {}, {contract}, {2}) : v; // [cols, rows, batch, depth]
  return v ? c.transpose(v, {2, 1, 0, 3}) : v;
}

LogicalResult lowerScale(NodeContext &c, bool gradient) {
  Value x = c.input(0), scale = c.input(2), translation = c.input(3);
  auto kernel = kernelOf(c.attrString("kernel_type", "lanczos3"));
  if (!kernel)
    return c.error("kernel type '" + c.attrString("kernel_type") + "' is not supported");
  if (failed(c.expectRank(0, 4)) || failed(c.expectRank(2, 1)) || failed(c.expectRank(3, 1)))
    return failure();
  Dims in, out;
  if (gradient) {
    if (failed(c.expectRank(1, 4)))
      return failure();
    in = c.dims(c.input(1));
    out = c.dims(x);
  } else {
    auto size = c.shapeInput(1);
    if (failed(size))
      return failure();
    if (size->size() != 2)
      return c.error("expected two sizes, found " + Twine(size->size()));
    in = c.dims(x);
    out = {in[0], (*size)[0], (*size)[1], in[3]};
  }
  auto element = [&](Value v, int64_t k) {
    return c.reshape(c.sliceDim(v, 0, c.size(k), c.size(k + 1)), ArrayRef<AffineExpr>());
  };
  Value matrices[2];
  for (int d = 0; d < 2; ++d)
    matrices[d] = spans(c, *kernel, out[d + 1], in[d + 1], element(scale, d), element(translation, d));
  Value v = applySpans(c, c.convert(x, c.b.getF32Type()), matrices[0], matrices[1], gradient);
  return c.setResult(0, v ? c.convert(v, c.resultType(0)) : v);
}

} // namespace

void registerCrops(HandlerTable &t) {
  t.add("CropAndResize", 4, lowerCropAndResize);
  t.add("CropAndResizeGradImage", 4, lowerCropGradImage);
  t.add("CropAndResizeGradBoxes", 4, lowerCropGradBoxes);
  t.add("ExtractGlimpse", 3, [](NodeContext &c) { return lowerGlimpse(c, false); });
  t.add("ExtractGlimpseV2", 3, [](NodeContext &c) { return lowerGlimpse(c, true); });
  t.add("ScaleAndTranslate", 4, [](NodeContext &c) { return lowerScale(c, false); });
  t.add("ScaleAndTranslateGrad", 4, [](NodeContext &c) { return lowerScale(c, true); });
}

} // namespace lathe::legalize
