// Resizing, colour and patches of images, and the choice among boxes.
#include "passes/legalize/SizeReader.h"
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/quant/Steps.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

/// What an output pixel reads along one dimension: `taps` places with weights each.
struct Taps {
  int64_t in = 0, out = 0, taps = 0;
  std::vector<int64_t> places;
  std::vector<double> weights;
};

struct ResizeSpec {
  int64_t in[2], out[2];
  bool alignCorners = false, halfPixel = false;

  float scale(int d) const {
    if (alignCorners && in[d] > 1 && out[d] > 1)
      return float(in[d] - 1) / float(out[d] - 1);
    return float(in[d]) / float(out[d]);
  }
  float source(int d, int64_t x) const { return halfPixel ? (float(x) + 0.5f) * scale(d) - 0.5f : float(x) * scale(d); }
};

Taps linearTaps(const ResizeSpec &s, int d) {
  Taps t{s.in[d], s.out[d], 2, {}, {}};
  for (int64_t x = 0; x < t.out; ++x) {
    float at = s.source(d, x), floor = std::floor(at);
    int64_t lower = std::max<int64_t>(int64_t(floor), 0), upper = std::min<int64_t>(int64_t(std::ceil(at)), t.in - 1);
    lower = std::min(lower, t.in - 1);
    float lerp = at - floor;
    t.places.insert(t.places.end(), {lower, std::max<int64_t>(upper, 0)});
    t.weights.insert(t.weights.end(), {1.0 - lerp, lerp});
  }
  return t;
}

Taps nearestTaps(const ResizeSpec &s, int d) {
  Taps t{s.in[d], s.out[d], 1, {}, {}};
  for (int64_t x = 0; x < t.out; ++x) {
    float at = s.halfPixel ? (float(x) + 0.5f) * s.scale(d) : float(x) * s.scale(d);
    int64_t place = int64_t(s.alignCorners ? std::round(at) : std::floor(at));
    t.places.push_back(std::max<int64_t>(std::min(place, t.in - 1), 0));
    t.weights.push_back(1);
  }
  return t;
}

/// Keys' cubic with its coefficients in a table of 1024 steps, as TensorFlow's kernel has it.
Taps cubicTaps(const ResizeSpec &s, int d) {
  constexpr int64_t kTable = 1 << 10;
  double a = s.halfPixel ? -0.5 : -0.75;
  auto near = [&](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto far = [&](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  Taps t{s.in[d], s.out[d], 4, {}, {}};
  for (int64_t x = 0; x < t.out; ++x) {
    float at = s.source(d, x);
    int64_t base = int64_t(std::floor(at)), offset = std::lrint((at - std::floor(at)) * kTable);
    float u = float(double(offset) / kTable), v = float(double(kTable - offset) / kTable);
    double w[4] = {far(u + 1), near(u), near(v), far(v + 1)}, sum = 0;
    for (int k = 0; k < 4; ++k) {
      int64_t place = base - 1 + k, inside = std::min(std::max<int64_t>(place, 0), t.in - 1);
      if (s.halfPixel && place != inside)
        w[k] = 0;
      sum += w[k];
      t.places.push_back(inside);
    }
    bool rescale = s.halfPixel && std::abs(sum) >= 1000 * double(std::numeric_limits<float>::min());
    for (double k : w)
      t.weights.push_back(rescale ? k / sum : k);
  }
  return t;
}

Taps areaTaps(const ResizeSpec &s, int d) {
  Taps t{s.in[d], s.out[d], 0, {}, {}};
  float scale = s.scale(d);
  t.taps = int64_t(std::ceil(scale)) + 1;
  for (int64_t x = 0; x < t.out; ++x) {
    float from = float(x) * scale, to = float(x + 1) * scale;
    int64_t first = int64_t(std::floor(from));
    for (int64_t k = 0; k < t.taps; ++k) {
      int64_t place = first + k;
      double w = std::min<double>(place + 1, to) - std::max<double>(place, from);
      t.places.push_back(std::min(std::max<int64_t>(place, 0), t.in - 1));
      t.weights.push_back(w > 0 ? w / scale : 0);
    }
  }
  return t;
}

Tensor floats(ArrayRef<float> values, std::vector<int64_t> dims) {
  Tensor t = Tensor::allocate(DType::Float32, std::move(dims));
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}

/// Weights as a vector of f64 where the images are, else of f32.
Value weightsOf(NodeContext &c, ArrayRef<double> weights, Type element) {
  Tensor t = Tensor::allocate(element.isF64() ? DType::Float64 : DType::Float32, {int64_t(weights.size())});
  if (element.isF64())
    llvm::copy(weights, t.data<double>());
  else
    llvm::transform(weights, t.data<float>(), [](double w) { return float(w); });
  return c.constant(t);
}

/// x (f32 or f64) with a dimension read through the taps.
Value applyTaps(NodeContext &c, Value x, int64_t axis, const Taps &t) {
  Type i32 = c.b.getI32Type();
  Value sum;
  for (int64_t k = 0; k < t.taps; ++k) {
    SmallVector<int64_t> places;
    SmallVector<double> weights;
    bool ones = true, zeros = true;
    for (int64_t i = 0; i < t.out; ++i) {
      places.push_back(t.places[i * t.taps + k]);
      weights.push_back(t.weights[i * t.taps + k]);
      ones &= weights.back() == 1;
      zeros &= weights.back() == 0;
    }
    if (zeros && (sum || k + 1 < t.taps))
      continue;
    Value v = gather(c, x, c.Emitter::constantInts(places, i32), axis, 0, /*checked=*/false);
    if (!v)
      return {};
    if (!ones)
      v = c.mul(v, c.broadcastInDim(c.convert(weightsOf(c, weights, c.elementType(v)), c.elementType(v)), c.dims(v), {axis}));
    sum = sum ? c.add(sum, v) : v;
  }
  return sum;
}

/// The transposed of applyTaps: what each input pixel gave to the output.
Value transposeTaps(NodeContext &c, Value x, int64_t axis, const Taps &t) {
  SmallVector<float> matrix(t.out * t.in, 0.0f);
  for (int64_t i = 0; i < t.out; ++i)
    for (int64_t k = 0; k < t.taps; ++k)
      matrix[i * t.in + t.places[i * t.taps + k]] += float(t.weights[i * t.taps + k]);
  Value m = c.constant(floats(matrix, {t.out, t.in}));
  Type element = c.elementType(x);
  Value v = c.dot(x, c.convert(m, element), {}, {}, {axis}, {0});
  // the new dimension came out last
  SmallVector<int64_t> perm;
  int64_t r = c.rank(x);
  for (int64_t d = 0; d < r; ++d)
    perm.push_back(d < axis ? d : d == axis ? r - 1 : d - 1);
  return v ? c.transpose(v, perm) : Value();
}

FailureOr<ResizeSpec> readModes(NodeContext &c, Value image) {
  if (c.rank(image) != 4)
    return c.error("expected images of rank 4, found rank " + Twine(c.rank(image)));
  ResizeSpec s;
  s.alignCorners = c.attrBool("align_corners") || c.attrBool("resize_align_corners");
  s.halfPixel = c.attrBool("half_pixel_centers");
  if (s.alignCorners && s.halfPixel)
    return c.error("align_corners and half_pixel_centers exclude each other");
  return s;
}

FailureOr<ResizeSpec> readSpec(NodeContext &c, Value image, ArrayRef<int64_t> out) {
  auto modes = readModes(c, image);
  if (failed(modes))
    return failure();
  ResizeSpec s = *modes;
  if (out.size() != 2 || out[0] <= 0 || out[1] <= 0)
    return c.error("the output size must be two positive numbers");
  // the weights of each row and column are made here
  constexpr int64_t largest = int64_t(1) << 22;
  if (out[0] > largest || out[1] > largest)
    return c.error("an output size above " + Twine(largest) + " is not supported");
  for (int d = 0; d < 2; ++d) {
    auto n = constantOf(c.dim(image, d + 1));
    if (!n || *n == 0)
      return c.error("the size of the images must be known at compile time and positive");
    s.in[d] = *n;
    s.out[d] = out[d];
  }
  return s;
}

using TapsFn = Taps (*)(const ResizeSpec &, int);

/// Places and weights along one dimension whose sizes the run knows, in f32 as those of known sizes: vectors of its output's size.
class OpenTaps {
public:
  OpenTaps(NodeContext &c, const ResizeSpec &spec, AffineExpr in, AffineExpr out) : c(c), spec(spec), in(in), out(out) {}

  SmallVector<std::pair<Value, Value>> linear(Type weight) {
    Value at = source(), floor = c.unary<hlo::FloorOp>(at);
    Value share = c.convert(c.sub(at, floor), weight);
    return {{place(floor), c.sub(c.like(share, 1), share)}, {place(c.unary<hlo::CeilOp>(at)), share}};
  }

  SmallVector<std::pair<Value, Value>> nearest() {
    Value x = position();
    Value at = c.mul(spec.halfPixel ? c.add(x, c.like(x, 0.5)) : x, scale());
    return {{place(spec.alignCorners ? c.unary<hlo::RoundOp>(at) : c.unary<hlo::FloorOp>(at)), {}}};
  }

private:
  Type f32() { return c.b.getF32Type(); }
  Value sizeOf(AffineExpr size) { return c.convert(c.sizeValue(size, c.b.getI64Type()), f32()); }
  Value position() { return c.iota({out}, 0, f32()); }
  Value scale() {
    Value from = sizeOf(in), to = sizeOf(out), one = c.scalar(1, f32()), plain = c.div(from, to);
    if (!spec.alignCorners)
      return plain;
    Value inner = c.logicalAnd(c.compare(Compare::GT, from, one), c.compare(Compare::GT, to, one));
    return c.select(inner, c.div(c.sub(from, one), c.sub(to, one)), plain);
  }
  Value source() {
    Value x = position();
    if (!spec.halfPixel)
      return c.mul(x, scale());
    Value at = c.mul(c.add(x, c.like(x, 0.5)), scale());
    return c.sub(at, c.like(at, 0.5));
  }
  Value place(Value at) {
    Type i64 = c.b.getI64Type();
    Value last = c.sub(c.sizeValue(in, i64), c.scalarInt(1, i64));
    return c.max(c.min(c.convert(at, i64), last), c.scalarInt(0, i64));
  }

  NodeContext &c;
  const ResizeSpec &spec;
  AffineExpr in, out;
};

/// Resizes where a size of the image or of the result is open. Null where an error was reported.
Value openResize(NodeContext &c, Value x, const Dims &size, TapsFn taps) {
  auto spec = readModes(c, x);
  if (failed(spec))
    return {};
  if (size.size() != 2 || (taps != linearTaps && taps != nearestTaps)) {
    (void)c.error(size.size() != 2 ? "the output size must be two positive numbers"
                                   : "the size of the images must be known at compile time and positive");
    return {};
  }
  Type i64 = c.b.getI64Type();
  for (int64_t d = 1; d >= 0; --d) {
    AffineExpr in = c.dim(x, d + 1);
    for (AffineExpr n : {in, size[d]})
      if (auto known = constantOf(n); known && *known <= 0) {
        (void)c.error("the size of the images must be known at compile time and positive");
        return {};
      } else if (!known) {
        c.check(c.compare(Compare::GT, c.sizeValue(n, i64), c.scalarInt(0, i64)), "the sizes of the images must be positive");
      }
    OpenTaps open(c, *spec, in, size[d]);
    Value sum;
    for (auto [place, weight] : taps == linearTaps ? open.linear(c.elementType(x)) : open.nearest()) {
      Value taken = gather(c, x, place, d + 1, 0, /*checked=*/false);
      if (weight)
        taken = c.mul(taken, c.broadcastInDim(weight, c.dims(taken), {d + 1}));
      sum = sum ? c.add(sum, taken) : taken;
    }
    x = sum;
  }
  return x;
}

/// Null where an error was reported.
Value resize(NodeContext &c, Value x, unsigned sizeInput, TapsFn taps) {
  if (auto open = boundedSizes(c, sizeInput)) {
    Dims sizes = *open;
    if (c.rank(x) == 4)
      sizes.append({c.dim(x, 1), c.dim(x, 2)});
    if (!llvm::all_of(sizes, [](AffineExpr e) { return bool(constantOf(e)); }))
      return openResize(c, x, *open, taps);
  }
  auto size = c.constantInts(sizeInput);
  if (failed(size))
    return {};
  auto s = readSpec(c, x, *size);
  if (failed(s))
    return {};
  // columns first, as TensorFlow does: what is left to do for the whole result combines rows, each one run of memory
  x = applyTaps(c, x, 2, taps(*s, 1));
  if (!x)
    return {};
  Dims dims = c.dims(x);
  x = applyTaps(c, c.reshape(x, {dims[0], dims[1], dims[2] * dims[3]}), 1, taps(*s, 0));
  dims[1] = c.size(s->out[0]);
  return x ? c.reshape(x, dims) : x;
}

LogicalResult lowerResize(NodeContext &c, TapsFn taps, bool keepType) {
  Value x = c.input(0);
  Type element = c.elementType(x);
  x = resize(c, keepType ? x : c.convert(x, c.b.getF32Type()), 1, taps);
  return c.setResult(0, x ? c.convert(x, keepType ? element : c.resultType(0)) : Value());
}

/// A dimension of integers (i64) between its two taps, the weight of the second in `bits` bits: first * 2^bits + (second - first) * weight,
/// the difference divided by `divisor` towards zero.
Value interpolate(NodeContext &c, Value x, int64_t axis, const Taps &t, int64_t bits, int64_t divisor) {
  SmallVector<int64_t> places[2], weights;
  for (int64_t i = 0; i < t.out; ++i) {
    for (int64_t k = 0; k < 2; ++k)
      places[k].push_back(t.places[2 * i + k]);
    weights.push_back(static_cast<int64_t>(std::ldexp(t.weights[2 * i + 1], bits)));
  }
  auto taken = [&](int64_t k) {
    return gather(c, x, c.Emitter::constantInts(places[k], c.b.getI32Type()), axis, 0, /*checked=*/false);
  };
  Value first = taken(0), second = taken(1);
  if (!first || !second)
    return c.poison();
  Value weight = c.broadcastInDim(c.Emitter::constantInts(weights, c.elementType(x)), c.dims(first), {axis});
  Value way = c.sub(second, first);
  if (divisor != 1)
    way = c.div(way, c.likeInt(way, divisor));
  else
    first = c.mul(first, c.likeInt(first, int64_t(1) << bits));
  return c.add(first, c.mul(way, weight));
}

/// The range passes; floats are resized as by ResizeBilinear, integers by fixed-point weights as TensorFlow's kernel has them: of 7 bits for
/// bytes, of 30 for 32-bit integers.
LogicalResult lowerQuantizedResize(NodeContext &c) {
  Value x = c.input(0);
  auto range = rangeInput(c, 2);
  if (failed(range))
    return failure();
  if (Emitter::isFloat(x)) {
    if (failed(lowerResize(c, linearTaps, true)))
      return failure();
    return setRange(c, *range);
  }
  auto size = c.constantInts(1);
  if (failed(size))
    return failure();
  auto s = readSpec(c, x, *size);
  if (failed(s))
    return failure();
  if (s->in[0] != s->out[0] || s->in[1] != s->out[1]) {
    const Type element = c.elementType(x);
    const int64_t bits = element.isInteger(8) ? 7 : 30, one = int64_t(1) << bits;
    x = interpolate(c, c.convert(x, c.b.getIntegerType(64)), 2, linearTaps(*s, 1), bits, 1);
    x = interpolate(c, x, 1, linearTaps(*s, 0), bits, one);
    x = c.convert(c.div(c.add(x, c.likeInt(x, one / 2)), c.likeInt(x, one)), element);
  }
  if (failed(c.setResult(0, x)))
    return failure();
  return setRange(c, *range);
}

/// The gradient for an image of the given size; `taps` are those of the forward op.
LogicalResult lowerResizeGrad(NodeContext &c, TapsFn taps, ArrayRef<int64_t> inSize) {
  Value grad = c.input(0);
  auto s = readSpec(c, grad, inSize);
  if (failed(s))
    return failure();
  for (int d = 0; d < 2; ++d)
    std::swap(s->in[d], s->out[d]);
  Type element = c.resultType(0), wide = element.isF64() ? element : Type(c.b.getF32Type());
  if (isa<IntegerType>(element)) // of the nearest pixel, whose weights are 0 and 1: sums wrap
    wide = c.b.getI32Type();
  grad = c.convert(grad, wide);
  for (int d = 0; d < 2; ++d)
    if (grad)
      grad = transposeTaps(c, grad, d + 1, taps(*s, d));
  return c.setResult(0, grad ? c.convert(grad, element) : Value());
}

LogicalResult lowerResizeGradLike(NodeContext &c, TapsFn taps) {
  Value original = c.input(1);
  SmallVector<int64_t> size;
  for (int d = 1; d < 3 && c.rank(original) == 4; ++d)
    size.push_back(constantOf(c.dim(original, d)).value_or(-1));
  return lowerResizeGrad(c, taps, size);
}

LogicalResult lowerNearestGrad(NodeContext &c) {
  auto size = c.constantInts(1);
  return failed(size) ? failure() : lowerResizeGrad(c, nearestTaps, *size);
}

//===----------------------------------------------------------------------===//
// Colour
//===----------------------------------------------------------------------===//

/// Channels 0, 1, 2 of the last dimension, each with that dimension of size 1.
SmallVector<Value> channels(NodeContext &c, Value x) {
  SmallVector<Value> parts;
  int64_t last = c.rank(x) - 1;
  for (int64_t k = 0; k < 3; ++k)
    parts.push_back(c.sliceDim(x, last, c.size(k), c.size(k + 1)));
  return parts;
}

LogicalResult expectRgb(NodeContext &c, Value x) {
  if (c.rank(x) < 1 || !c.ctx.unify(c.dim(x, c.rank(x) - 1), c.size(3), c.name()))
    return c.error("expected a last dimension of 3 channels");
  return success();
}

SmallVector<Value> rgbToHsv(NodeContext &c, ArrayRef<Value> rgb) {
  Value r = rgb[0], g = rgb[1], b = rgb[2];
  Value value = c.max(r, c.max(g, b)), range = c.sub(value, c.min(r, c.min(g, b)));
  Value zero = c.like(r, 0), positive = c.compare(Compare::GT, value, zero);
  Value saturation = c.select(positive, c.div(range, value), zero);
  Value norm = c.mul(c.div(c.like(r, 1), range), c.like(r, 1.0 / 6.0));
  Value hueR = c.mul(norm, c.sub(g, b));
  Value hueG = c.add(c.mul(norm, c.sub(b, r)), c.like(r, 2.0 / 6.0));
  Value hueB = c.add(c.mul(norm, c.sub(r, g)), c.like(r, 4.0 / 6.0));
  Value hue = c.select(c.compare(Compare::EQ, r, value), hueR,
                       c.select(c.compare(Compare::EQ, g, value), hueG, hueB));
  hue = c.select(c.compare(Compare::GT, range, zero), hue, zero);
  hue = c.select(c.compare(Compare::LT, hue, zero), c.add(hue, c.like(hue, 1)), hue);
  return {hue, saturation, value};
}

/// How far each channel of a hue is from the smallest to the largest one.
SmallVector<Value> sharesOfHue(NodeContext &c, Value h) {
  Value zero = c.like(h, 0), one = c.like(h, 1);
  Value dh = c.mul(h, c.like(h, 6));
  auto clamp = [&](Value x) { return c.min(c.max(x, zero), one); };
  Value dr = clamp(c.sub(c.unary<hlo::AbsOp>(c.sub(dh, c.like(h, 3))), one));
  Value dg = clamp(c.sub(c.like(h, 2), c.unary<hlo::AbsOp>(c.sub(dh, c.like(h, 2)))));
  Value db = clamp(c.sub(c.like(h, 2), c.unary<hlo::AbsOp>(c.sub(dh, c.like(h, 4)))));
  return {dr, dg, db};
}

SmallVector<Value> hsvToRgb(NodeContext &c, ArrayRef<Value> hsv) {
  Value h = hsv[0], s = hsv[1], v = hsv[2];
  Value rest = c.sub(c.like(h, 1), s);
  SmallVector<Value> rgb;
  for (Value d : sharesOfHue(c, h))
    rgb.push_back(c.mul(c.add(rest, c.mul(s, d)), v));
  return rgb;
}

/// In the type of the image, whose roundings after each step are TensorFlow's: hues of bfloat16 differ visibly without them.
LogicalResult lowerColour(NodeContext &c, SmallVector<Value> (*fn)(NodeContext &, ArrayRef<Value>)) {
  Value x = c.input(0);
  if (failed(expectRgb(c, x)))
    return failure();
  return c.setResult(0, c.concat(fn(c, channels(c, x)), c.rank(x) - 1));
}

LogicalResult lowerAdjust(NodeContext &c, bool hue) {
  Value x = c.input(0), by = c.input(1);
  if (failed(expectRgb(c, x)) || failed(c.expectRank(1, 0)))
    return failure();
  Type element = c.elementType(x), f32 = c.b.getF32Type();
  x = c.convert(x, f32);
  by = c.convert(by, f32);
  SmallVector<Value> rgb = channels(c, x), hsv = rgbToHsv(c, rgb);
  if (hue) {
    // between the smallest and the largest channel, which may be negative, where no saturation says anything
    Value turned = c.add(hsv[0], by), least = c.min(rgb[0], c.min(rgb[1], rgb[2])), range = c.sub(hsv[2], least);
    SmallVector<Value> shares = sharesOfHue(c, c.sub(turned, c.unary<hlo::FloorOp>(turned)));
    for (int k = 0; k < 3; ++k)
      rgb[k] = c.add(least, c.mul(range, shares[k]));
  } else {
    hsv[1] = c.min(c.max(c.mul(hsv[1], by), c.like(hsv[1], 0)), c.like(hsv[1], 1));
    rgb = hsvToRgb(c, hsv);
  }
  return c.setResult(0, c.convert(c.concat(rgb, c.rank(x) - 1), element));
}

/// Around the mean of each channel; the first form says between which numbers the results are.
LogicalResult lowerAdjustContrast(NodeContext &c) {
  Value x = c.input(0), by = c.input(1);
  int64_t r = c.rank(x);
  if (r < 3 || failed(c.expectRank(1, 0)))
    return c.error("expected images of rank 3 or more");
  Type element = c.elementType(x), f32 = c.b.getF32Type();
  x = c.convert(x, f32);
  Value sum = c.reduceSum(x, {r - 3, r - 2});
  Value pixels = c.sizeValue(productOf({c.dim(x, r - 3), c.dim(x, r - 2)}, c.b.getContext()), c.b.getI64Type());
  Value mean = c.keepDims(c.div(sum, c.convert(pixels, f32)), {r - 3, r - 2}, r);
  Value result = c.add(c.mul(c.sub(x, mean), c.convert(by, f32)), mean);
  if (c.numInputs() == 2)
    return c.setResult(0, c.convert(result, element));
  if (failed(c.expectRank(2, 0)) || failed(c.expectRank(3, 0)))
    return failure();
  return c.setResult(0, c.max(c.min(result, c.input(3)), c.input(2)));
}

//===----------------------------------------------------------------------===//
// Patches
//===----------------------------------------------------------------------===//

/// Number of windows and padding before, for SAME and VALID.
std::optional<std::pair<int64_t, int64_t>> windows(StringRef padding, int64_t size, int64_t window, int64_t stride) {
  if (padding == "VALID")
    return std::make_pair(size < window ? 0 : (size - window) / stride + 1, int64_t(0));
  if (padding != "SAME")
    return std::nullopt;
  int64_t out = (size + stride - 1) / stride;
  return std::make_pair(out, std::max<int64_t>((out - 1) * stride + window - size, 0) / 2);
}

/// Windows of the spatial dimensions 1..n-2 as channels: [batch, out..., window... * depth].
LogicalResult lowerPatches(NodeContext &c, bool dilated) {
  Value x = c.input(0);
  SmallVector<int64_t> sizes = c.attrInts("ksizes"), strides = c.attrInts("strides"), rates = c.attrInts("rates");
  int64_t r = c.rank(x), spatial = r - 2;
  if (!dilated)
    rates.assign(r, 1);
  if (int64_t(sizes.size()) != r || int64_t(strides.size()) != r || int64_t(rates.size()) != r)
    return c.error("ksizes and strides must have " + Twine(r) + " entries");
  SmallVector<int64_t> out, first(r, 0), low(r, 0), high(r, 0);
  int64_t total = 1;
  for (int64_t d = 1; d <= spatial; ++d) {
    auto n = constantOf(c.dim(x, d));
    if (!n || sizes[d] < 1 || strides[d] < 1 || rates[d] < 1)
      return c.error("the size of the images must be known and the window positive");
    int64_t extent = (sizes[d] - 1) * rates[d] + 1;
    auto w = windows(c.attrString("padding"), *n, extent, strides[d]);
    if (!w)
      return c.error("padding must be SAME or VALID");
    out.push_back(w->first);
    low[d] = w->second;
    int64_t missing = (w->first - 1) * strides[d] + extent - *n;
    high[d] = std::max<int64_t>(missing - w->second, 0);
    // windows of volumes that leave out more than they share begin inside, so that as much is left out behind
    if (!dilated && c.attrString("padding") == "SAME" && missing < 0)
      first[d] = -missing / 2;
    total *= sizes[d];
  }
  if (total > 4096)
    return c.error("a window of " + Twine(total) + " elements is too large");
  x = c.pad(x, c.scalar(0, c.elementType(x)), low, high);
  // One strided slice for each element of the window, row-major.
  SmallVector<Value> parts;
  for (int64_t k = 0; k < total; ++k) {
    Dims starts(r, c.size(0)), limits = c.dims(x);
    SmallVector<int64_t> steps(r, 1);
    int64_t rest = k;
    for (int64_t d = spatial; d >= 1; --d) {
      int64_t at = first[d] + rest % sizes[d] * rates[d];
      rest /= sizes[d];
      starts[d] = c.size(at);
      limits[d] = c.size(out[d - 1] ? at + (out[d - 1] - 1) * strides[d] + 1 : at);
      steps[d] = strides[d];
    }
    parts.push_back(c.slice(x, starts, limits, steps));
  }
  return c.setResult(0, c.concat(parts, r - 1));
}

//===----------------------------------------------------------------------===//
// Non-maximum suppression
//===----------------------------------------------------------------------===//

/// Coordinate k of each of the [n, 4] boxes.
Value boxCorner(NodeContext &c, Value boxes, int64_t k) {
  return c.reshape(c.sliceDim(boxes, 1, c.size(k), c.size(k + 1)), Dims{c.dim(boxes, 0)});
}

LogicalResult lowerNonMaxSuppression(NodeContext &c, bool padded) {
  Type f32 = c.b.getF32Type(), i32 = c.b.getI32Type();
  Value boxes = c.convert(c.input(0), f32), scores = c.convert(c.input(1), f32);
  auto most = c.constantInt(2);
  if (failed(most) || failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 1)))
    return failure();
  if (!c.ctx.unify(c.dim(boxes, 1), c.size(4), c.name()) || !c.ctx.unify(c.dim(boxes, 0), c.dim(scores, 0), c.name()))
    return c.error("expected four numbers and a score for each box");
  if (*most < 0)
    return c.error("max_output_size is negative");
  AffineExpr n = c.dim(scores, 0);
  if (*most == 0 || constantOf(n) == int64_t(0)) {
    if (padded && failed(c.setResult(1, c.scalarInt(0, i32))))
      return failure();
    return c.setResult(0, c.splatInt(0, Dims{c.size(padded && c.attrBool("pad_to_max_output_size") ? *most : 0)}, i32));
  }
  Value overlap = c.numInputs() > 3 ? c.convert(c.input(3), f32) : c.scalar(c.attrFloat("iou_threshold", 0.5), f32);
  Value least = c.numInputs() > 4 ? c.convert(c.input(4), f32) : c.lowest(f32);
  Value y0 = boxCorner(c, boxes, 0), x0 = boxCorner(c, boxes, 1), y1 = boxCorner(c, boxes, 2), x1 = boxCorner(c, boxes, 3);
  Value top = c.min(y0, y1), bottom = c.max(y0, y1), left = c.min(x0, x1), right = c.max(x0, x1);
  Value area = c.mul(c.sub(bottom, top), c.sub(right, left)), place = c.iota({n}, 0, i32);
  Value zero = c.scalar(0, f32);
  Value alive = c.compare(Compare::GT, scores, least);
  Dims out{c.size(*most)};
  Value slots = c.iota(out, 0, i32);
  // One round takes the best box that is left and drops it and what overlaps it.
  SmallVector<Value> done = whileLoop(
      c, {c.scalarInt(0, i32), c.splatInt(0, out, i32), alive},
      [&](ValueRange v) {
        Value room = c.compare(Compare::LT, v[0], c.scalarInt(*most, i32));
        return c.logicalAnd(room, c.reduceOr(v[2], {0}));
      },
      [&](ValueRange v) -> SmallVector<Value> {
        Value count = v[0], chosen = v[1], left_ = v[2];
        Value masked = c.select(left_, scores, c.lowest(f32)), high = c.reduceMax(masked, {0});
        Value tops = c.logicalAnd(left_, c.compare(Compare::EQ, masked, high));
        Value best = c.reduceMin(c.select(tops, place, c.highest(i32)), {0});
        auto of = [&](Value w) {
          Value one = c.make<hlo::DynamicSliceOp>(w, ValueRange{best}, ArrayRef<int64_t>{1});
          return c.reshape(one, ArrayRef<AffineExpr>());
        };
        Value h = c.max(c.sub(c.min(bottom, of(bottom)), c.max(top, of(top))), zero);
        Value w = c.max(c.sub(c.min(right, of(right)), c.max(left, of(left))), zero);
        Value inner = c.mul(h, w), mine = of(area), both = c.sub(c.add(area, mine), inner);
        Value solid = c.logicalAnd(c.compare(Compare::GT, area, zero), c.compare(Compare::GT, mine, zero));
        Value iou = c.select(solid, c.div(inner, both), zero);
        Value drop = c.logicalOr(c.compare(Compare::GT, iou, overlap), c.compare(Compare::EQ, place, best));
        Value next = c.select(c.compare(Compare::EQ, slots, count), best, chosen);
        return {c.add(count, c.scalarInt(1, i32)), next, c.logicalAnd(left_, c.logicalNot(drop))};
      });
  if (padded && failed(c.setResult(1, done[0])))
    return failure();
  if (padded && c.attrBool("pad_to_max_output_size"))
    return c.setResult(0, done[1]);
  AffineExpr count = c.ctx.newDataSymbol(c.name(), c.size(*most));
  if (auto known = c.ctx.fold(done[0]))
    count = c.size(*known->data<int32_t>());
  else
    hlo::SetSizeOp::create(c.b, c.loc, done[0], int64_t(cast<AffineSymbolExpr>(count).getPosition()), c.name());
  return c.setResult(0, c.sliceDim(done[1], 0, c.size(0), count));
}

} // namespace

Value resizeBilinear(NodeContext &c, Value x, unsigned size) {
  Type element = c.elementType(x);
  Value made = resize(c, element.isF64() ? x : c.convert(x, c.b.getF32Type()), size, linearTaps);
  return made ? c.convert(made, element) : made;
}

void registerImage(HandlerTable &t) {
  t.add("ResizeBilinear", 2, [](NodeContext &c) { return lowerResize(c, linearTaps, false); });
  t.add("QuantizedResizeBilinear", 4, lowerQuantizedResize);
  t.add("ResizeNearestNeighbor", 2, [](NodeContext &c) { return lowerResize(c, nearestTaps, true); });
  t.add("ResizeBicubic", 2, [](NodeContext &c) { return lowerResize(c, cubicTaps, false); });
  t.add("ResizeArea", 2, [](NodeContext &c) { return lowerResize(c, areaTaps, false); });
  t.add("ResizeBilinearGrad", 2, [](NodeContext &c) { return lowerResizeGradLike(c, linearTaps); });
  t.add("ResizeBicubicGrad", 2, [](NodeContext &c) { return lowerResizeGradLike(c, cubicTaps); });
  t.add("ResizeNearestNeighborGrad", 2, lowerNearestGrad);
  t.add("RGBToHSV", 1, [](NodeContext &c) { return lowerColour(c, rgbToHsv); });
  t.add("HSVToRGB", 1, [](NodeContext &c) { return lowerColour(c, hsvToRgb); });
  t.add("AdjustHue", 2, [](NodeContext &c) { return lowerAdjust(c, true); });
  t.add("AdjustSaturation", 2, [](NodeContext &c) { return lowerAdjust(c, false); });
  t.add("AdjustContrast", 4, lowerAdjustContrast);
  t.add("AdjustContrastv2", 2, lowerAdjustContrast);
  t.add("ExtractImagePatches", 1, [](NodeContext &c) { return lowerPatches(c, true); });
  t.add("ExtractVolumePatches", 1, [](NodeContext &c) { return lowerPatches(c, false); });
  registerCrops(t);
  t.add("NonMaxSuppression", 3, [](NodeContext &c) { return lowerNonMaxSuppression(c, false); });
  t.add("NonMaxSuppressionV2", 4, [](NodeContext &c) { return lowerNonMaxSuppression(c, false); });
  t.add("NonMaxSuppressionV3", 5, [](NodeContext &c) { return lowerNonMaxSuppression(c, false); });
  t.add("NonMaxSuppressionV4", 5, [](NodeContext &c) { return lowerNonMaxSuppression(c, true); });
}

} // namespace lathe::legalize
