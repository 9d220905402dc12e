// Uniform* ops: integers with a scale and a zero point, one or one for each channel along an axis, moved between scales by fixed-point
// factors as TensorFlow's kernels have them: 31 bits and a shift, rounded once.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/quant/ByteProducts.h"
#include "passes/legalize/quant/Steps.h"

#include "dialects/hlo/Quant.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Scale (f32) and zero point (i32): scalars, or vectors along `axis`.
struct Uniform {
  Value scale, zero;
  int64_t axis = -1;

  /// For an operand of these sizes.
  Value scaleOver(NodeContext &c, const Dims &dims) const { return over(c, scale, dims); }
  Value zeroOver(NodeContext &c, const Dims &dims) const { return over(c, zero, dims); }

private:
  Value over(NodeContext &c, Value v, const Dims &dims) const { return axis < 0 ? v : c.broadcastInDim(v, dims, {axis}); }
};

/// Inputs `i` and `i + 1`, for something of the sizes `dims`.
FailureOr<Uniform> uniformInput(NodeContext &c, unsigned i, int64_t axis, const Dims &dims) {
  Uniform u{c.input(i), c.input(i + 1), axis};
  if (axis < -1 || axis >= int64_t(dims.size()))
    return c.error("quantization axis " + Twine(axis) + " is out of range for rank " + Twine(dims.size()));
  for (Value v : {u.scale, u.zero}) {
    if (Emitter::rank(v) != (axis < 0 ? 0 : 1))
      return c.error("expected scales and zero points of rank " + Twine(axis < 0 ? 0 : 1) + ", found rank " + Twine(Emitter::rank(v)));
    if (axis >= 0 && !c.ctx.unify(c.dim(v, 0), dims[axis], c.name()))
      return c.error("expected a scale and a zero point for each of the " + textOf(dims[axis]) + " channels");
  }
  return u;
}

void checkPositive(NodeContext &c, const Uniform &u) {
  c.check(c.compare(Compare::GT, u.scale, c.like(u.scale, 0)), "scales must be positive");
}

Value asInt(NodeContext &c, Value v) { return c.convert(v, c.b.getI32Type()); }
Value asWide(NodeContext &c, Value v) { return c.convert(v, c.b.getF64Type()); }
Type longType(NodeContext &c) { return c.b.getIntegerType(64); }

/// Clamped between attributes (or what else the caller has), in the type of result 0.
Value clampTo(NodeContext &c, Value v, int64_t low, int64_t high) {
  return c.convert(c.max(c.min(v, c.likeInt(v, high)), c.likeInt(v, low)), c.resultType(0));
}
Value clampToOutput(NodeContext &c, Value v) {
  return clampTo(c, v, c.attrInt("output_quantization_min_val"), c.attrInt("output_quantization_max_val"));
}

/// A positive factor as 31 bits and the places that a product with them is shifted to the right by; both i64.
struct FixedFactor {
  Value bits, shift;
};

FixedFactor fixedFactor(NodeContext &c, Value factor) {
  Type i64 = longType(c);
  constexpr int64_t fraction = (int64_t(1) << 52) - 1, half = int64_t(1022) << 52;
  Value word = c.make<hlo::BitcastConvertOp>(factor, i64);
  Value exponent = c.sub(c.binary<hlo::ShiftRightLogicalOp>(word, c.likeInt(word, 52)), c.likeInt(word, 1022));
  Value inHalf = c.make<hlo::BitcastConvertOp>(c.logicalOr(c.logicalAnd(word, c.likeInt(word, fraction)), c.likeInt(word, half)), c.b.getF64Type());
  Value bits = c.convert(c.unary<hlo::RoundOp>(c.mul(inHalf, c.like(inHalf, 2147483648.0))), i64);
  Value full = c.compare(Compare::EQ, bits, c.likeInt(bits, int64_t(1) << 31));
  bits = c.select(full, c.likeInt(bits, int64_t(1) << 30), bits);
  exponent = c.select(full, c.add(exponent, c.likeInt(exponent, 1)), exponent);
  // too small is 0, too large the largest there is
  Value small = c.compare(Compare::LT, exponent, c.likeInt(exponent, -31)), large = c.compare(Compare::GT, exponent, c.likeInt(exponent, 30));
  bits = c.select(small, c.likeInt(bits, 0), c.select(large, c.likeInt(bits, INT32_MAX), bits));
  exponent = c.select(small, c.likeInt(exponent, 0), c.select(large, c.likeInt(exponent, 30), exponent));
  return {bits, c.sub(c.likeInt(exponent, 31), exponent)};
}

/// v (i32) times a factor (f64, v's sizes or a scalar), rounded once and saturated to 32 bits; i32.
Value rescaled(NodeContext &c, Value v, Value factor) {
  const FixedFactor f = fixedFactor(c, factor);
  Type i64 = longType(c);
  Value one = c.likeInt(f.shift, 1), round = c.binary<hlo::ShiftLeftOp>(one, c.sub(f.shift, one));
  Value product = c.binary<hlo::ShiftRightArithmeticOp>(c.add(c.mul(c.convert(v, i64), f.bits), round), f.shift);
  return asInt(c, c.max(c.min(product, c.likeInt(product, INT32_MAX)), c.likeInt(product, INT32_MIN)));
}

/// Integers of one scale and zero point at those of another one, not clamped; i32. By factors of 31 bits, not over real numbers as
/// hlo.uniform_quantize.
Value requantized(NodeContext &c, Value q, const Uniform &from, const Uniform &to) {
  const Dims dims = c.dims(q);
  Value factor = c.div(asWide(c, from.scaleOver(c, dims)), asWide(c, to.scaleOver(c, dims)));
  return c.add(rescaled(c, c.sub(asInt(c, q), from.zeroOver(c, dims)), factor), to.zeroOver(c, dims));
}

/// floor(x * inverse + 1/2) + zero, where it does not fit in 32 bits what x86's conversion has; i32.
Value quantized(NodeContext &c, Value x, Value inverse, Value zero) {
  Value v = c.mul(x, inverse);
  v = c.unary<hlo::FloorOp>(c.add(v, c.like(v, 0.5)));
  return c.add(toSteps(c, v, Steps{c.b.getI32Type(), 32, true, -2147483648.0, 2147483647.0}), zero);
}

/// What integers of a type between `low` and `high` are by scales and zero points that are constants and as many as `of` has channels.
Type elementTypeOf(NodeContext &c, const Uniform &u, Value of, Type integer, int64_t low, int64_t high) {
  auto scale = c.ctx.fold(u.scale), zero = c.ctx.fold(u.zero);
  if (!scale || !zero)
    return {};
  return uniformElement(integer, ArrayRef(scale->data<float>(), scale->numElements()), ArrayRef(zero->data<int32_t>(), zero->numElements()),
                        u.axis, Emitter::type(of), low, high);
}

LogicalResult lowerQuantize(NodeContext &c) {
  Value x = c.input(0);
  const Dims dims = c.dims(x);
  auto u = uniformInput(c, 1, c.attrInt("quantization_axis", -1), dims);
  if (failed(u))
    return failure();
  checkPositive(c, *u);
  const int64_t low = c.attrInt("quantization_min_val"), high = c.attrInt("quantization_max_val");
  if (Type type = elementTypeOf(c, *u, x, c.resultType(0), low, high); type && Emitter::elementType(x).isF32()) {
    Value q = c.make<hlo::UniformQuantizeOp>(x, type, hlo::QuantizeRounding::UP);
    return c.setResult(0, c.make<hlo::BitcastConvertOp>(q, c.resultType(0)));
  }
  Value inverse = c.div(c.like(u->scale, 1), u->scale);
  const Uniform inverted = {inverse, u->zero, u->axis};
  Value q = quantized(c, x, inverted.scaleOver(c, dims), u->zeroOver(c, dims));
  return c.setResult(0, clampTo(c, q, low, high));
}

LogicalResult lowerDequantize(NodeContext &c) {
  Value q = c.input(0);
  const Dims dims = c.dims(q);
  auto u = uniformInput(c, 1, c.attrInt("quantization_axis", -1), dims);
  if (failed(u))
    return failure();
  checkPositive(c, *u);
  const int64_t low = Emitter::elementType(q).isInteger(32) ? INT32_MIN : INT8_MIN, high = -(low + 1);
  if (Type type = elementTypeOf(c, *u, q, Emitter::elementType(q), low, high))
    return c.setResult(0, c.convert(c.make<hlo::UniformDequantizeOp>(c.make<hlo::BitcastConvertOp>(q, type)), c.resultType(0)));
  Value v = c.convert(c.sub(asInt(c, q), u->zeroOver(c, dims)), c.b.getF32Type());
  return c.setResult(0, c.convert(c.mul(v, u->scaleOver(c, dims)), c.resultType(0)));
}

LogicalResult lowerRequantize(NodeContext &c) {
  Value q = c.input(0);
  const Dims dims = c.dims(q);
  const int64_t fromAxis = c.attrInt("input_quantization_axis", -1), toAxis = c.attrInt("output_quantization_axis", -1);
  if (fromAxis >= 0 && toAxis >= 0 && fromAxis != toAxis)
    return c.error("the quantization axes of input and output differ");
  auto from = uniformInput(c, 1, fromAxis, dims), to = uniformInput(c, 3, toAxis, dims);
  if (failed(from) || failed(to))
    return failure();
  checkPositive(c, *from);
  checkPositive(c, *to);
  return c.setResult(0, clampToOutput(c, requantized(c, q, *from, *to)));
}

LogicalResult lowerAdd(NodeContext &c) {
  Value x = c.input(0), y = c.input(1);
  const int64_t xAxis = c.attrInt("lhs_quantization_axis", -1), yAxis = c.attrInt("rhs_quantization_axis", -1);
  const int64_t outAxis = c.attrInt("output_quantization_axis", -1);
  Dims dims;
  const Dims shapes[] = {c.dims(x), c.dims(y)};
  if (!c.broadcastDims(shapes, dims))
    return failure();
  auto xs = uniformInput(c, 2, xAxis, shapes[0]), ys = uniformInput(c, 4, yAxis, shapes[1]), out = uniformInput(c, 6, outAxis, dims);
  if (failed(xs) || failed(ys) || failed(out))
    return failure();
  for (const Uniform &u : {*xs, *ys, *out})
    checkPositive(c, u);
  const int64_t rank = dims.size();
  auto moved = [&](Value v, const Uniform &from) -> Value {
    const int64_t lower = rank - Emitter::rank(v);
    Uniform to = {out->scale, c.likeInt(out->zero, 0), outAxis < 0 ? -1 : outAxis - lower};
    if (outAxis >= 0 && (to.axis < 0 || (from.axis >= 0 && from.axis != to.axis)))
      return c.poison("the quantization axes of an operand and the output differ");
    if (to.axis >= 0) // an operand that is repeated along the axis has no channels of its own
      v = c.broadcastTo(v, Dims(ArrayRef(dims).drop_front(lower)));
    return requantized(c, v, from, to);
  };
  Value sum = c.add(c.add(moved(x, *xs), moved(y, *ys)), out->zeroOver(c, dims));
  return c.setResult(0, clampToOutput(c, sum));
}

LogicalResult lowerClip(NodeContext &c) {
  Value x = c.input(0), low = c.input(1), high = c.input(2);
  const Dims dims = c.dims(x);
  const int64_t axis = c.attrInt("quantization_axis", -1);
  if (failed(uniformInput(c, 3, axis, dims)))
    return failure();
  auto limits = uniformInput(c, 1, axis, dims);
  if (failed(limits))
    return failure();
  auto over = [&](Value v) { return axis < 0 ? v : c.broadcastInDim(v, dims, {axis}); };
  return c.setResult(0, c.min(c.max(x, over(low)), over(high)));
}

//===----------------------------------------------------------------------===//
// Products and convolutions
//===----------------------------------------------------------------------===//

/// Sums of products (i32) of operands at the scales `x` and `y` to the output's scale; `dims` are theirs, both axes the channels'.
LogicalResult setRequantized(NodeContext &c, Value sums, const Uniform &x, const Uniform &y, const Uniform &out) {
  const Dims dims = c.dims(sums);
  Value factor = c.div(c.mul(asWide(c, x.scale), asWide(c, y.scaleOver(c, dims))), asWide(c, out.scaleOver(c, dims)));
  return c.setResult(0, clampToOutput(c, c.add(rescaled(c, sums, factor), out.zeroOver(c, dims))));
}

/// A float operand in signed bytes, the range of each entry of dimension `batch` by itself.
struct Dynamic {
  Value q, scale, zero; ///< scale and zero: vectors
};

Dynamic quantizeEach(NodeContext &c, Value x, int64_t batch) {
  const Dims dims = c.dims(x);
  SmallVector<int64_t> others;
  for (int64_t d = 0; d < int64_t(dims.size()); ++d)
    if (d != batch)
      others.push_back(d);
  Type f32 = c.b.getF32Type(), i32 = c.b.getI32Type();
  Value low = c.reduceMin(x, others), high = c.reduceMax(x, others);
  low = asWide(c, c.min(low, c.like(low, 0)));
  high = asWide(c, c.max(high, c.like(high, 0)));
  Value width = c.sub(high, low), levels = c.like(width, 255);
  Value scale = c.convert(c.div(width, levels), f32), inverse = c.convert(c.div(levels, width), f32);
  Value most = c.like(inverse, std::numeric_limits<float>::max());
  Value usable = c.logicalAnd(c.compare(Compare::GT, scale, c.like(scale, 0)), c.compare(Compare::LE, inverse, most));
  // of the two ends the one that gives zero with the smaller error
  Value wideScale = asWide(c, scale), lowSteps = c.div(low, wideScale), highSteps = c.div(high, wideScale);
  auto magnitude = [&](Value v) { return c.unary<hlo::AbsOp>(v); };
  Value fromLow = c.sub(c.like(low, -128), lowSteps), fromHigh = c.sub(c.like(high, 127), highSteps);
  Value lowBetter = c.compare(Compare::LT, c.add(c.like(low, 128), magnitude(lowSteps)), c.add(c.like(high, 127), magnitude(highSteps)));
  Value zero = c.unary<hlo::RoundOp>(c.select(lowBetter, fromLow, fromHigh));
  zero = c.convert(c.max(c.min(zero, c.like(zero, 127)), c.like(zero, -128)), i32);
  zero = c.select(usable, zero, c.likeInt(zero, 0));
  auto over = [&](Value v) { return c.broadcastInDim(v, dims, {batch}); };
  Value q = quantized(c, x, over(inverse), over(zero));
  q = c.select(over(usable), c.max(c.min(q, c.likeInt(q, 127)), c.likeInt(q, -128)), over(zero));
  return {c.convert(q, c.b.getIntegerType(8)), c.select(usable, scale, c.like(scale, 1)), zero};
}

/// Sums (i32) times the scales of the entries and of the channels.
LogicalResult setScaled(NodeContext &c, Value sums, Value eachScale, int64_t batch, const Uniform &y) {
  const Dims dims = c.dims(sums);
  Value v = c.mul(c.convert(sums, c.b.getF32Type()), c.broadcastInDim(eachScale, dims, {batch}));
  return c.setResult(0, c.mul(v, y.scaleOver(c, dims)));
}

LogicalResult lowerDot(NodeContext &c, bool hybrid) {
  Value x = c.input(0), y = c.input(1);
  if (failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 2)))
    return failure();
  if (!c.ctx.unify(c.dim(x, 1), c.dim(y, 0), c.name()))
    return c.error("the matrices do not fit");
  auto ys = uniformInput(c, hybrid ? 2 : 4, c.attrInt("rhs_quantization_axis", -1), c.dims(y));
  if (failed(ys))
    return failure();
  if (ys->axis == 0)
    return c.error("rhs_quantization_axis must be 1 or -1");
  checkPositive(c, *ys);
  const Offset right = {y, ys->zero, ys->axis};
  if (hybrid) {
    const Dynamic left = quantizeEach(c, x, 0);
    return setScaled(c, offsetProduct(c, {left.q, left.zero, 0}, right, 1, 0), left.scale, 0, *ys);
  }
  const Dims dims = {c.dim(x, 0), c.dim(y, 1)};
  auto xs = uniformInput(c, 2, c.attrInt("lhs_quantization_axis", -1), c.dims(x));
  auto out = uniformInput(c, 6, c.attrInt("output_quantization_axis", -1), dims);
  if (failed(xs) || failed(out))
    return failure();
  if (xs->axis >= 0 || out->axis == 0)
    return c.error("lhs_quantization_axis must be -1, output_quantization_axis 1 or -1");
  checkPositive(c, *xs);
  checkPositive(c, *out);
  return setRequantized(c, offsetProduct(c, {x, xs->zero}, right, 1, 0), *xs, *ys, *out);
}

/// Where the dimensions of a convolution are.
struct Numbers {
  int64_t inBatch = 0, inFeature = 1, kernelIn = 1, kernelOut = 0, outBatch = 0, outFeature = 1;
  SmallVector<int64_t> inSpace, kernelSpace, outSpace;
};

/// The attribute `dimension_numbers`: a serialized message of int64 fields, 1 to 9, of which 3, 6 and 9 are repeated.
FailureOr<Numbers> readNumbers(NodeContext &c, StringRef text, int64_t rank) {
  Numbers n;
  if (text.empty()) {
    for (int64_t d = 2; d < rank; ++d)
      for (auto *list : {&n.inSpace, &n.kernelSpace, &n.outSpace})
        list->push_back(d);
    return n;
  }
  n = {0, 0, 0, 0, 0, 0, {}, {}, {}};
  size_t at = 0;
  bool good = true;
  auto varint = [&](size_t end) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at >= end)
        break;
      const auto byte = static_cast<uint8_t>(text[at++]);
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128)
        return value;
    }
    good = false;
    return value;
  };
  int64_t *single[10] = {nullptr, &n.inBatch, &n.inFeature, nullptr, &n.kernelIn, &n.kernelOut, nullptr, &n.outBatch, &n.outFeature, nullptr};
  SmallVector<int64_t> *lists[10] = {};
  lists[3] = &n.inSpace;
  lists[6] = &n.kernelSpace;
  lists[9] = &n.outSpace;
  while (good && at < text.size()) {
    const uint64_t tag = varint(text.size()), field = tag >> 3, wire = tag & 7;
    if (field < 1 || field > 9 || (wire != 0 && wire != 2) || (wire == 2 && !lists[field])) {
      good = false;
    } else if (wire == 0) {
      const auto value = static_cast<int64_t>(varint(text.size()));
      if (lists[field])
        lists[field]->push_back(value);
      else
        *single[field] = value;
    } else {
      const uint64_t length = varint(text.size());
      good &= length <= text.size() - at;
      const size_t end = good ? at + length : at;
      while (good && at < end)
        lists[field]->push_back(static_cast<int64_t>(varint(end)));
    }
  }
  if (!good)
    return c.error("dimension_numbers cannot be read");
  auto names = [&](int64_t first, int64_t second, ArrayRef<int64_t> space) { // each dimension once
    SmallVector<int64_t> all(space);
    all.append({first, second});
    llvm::sort(all);
    return all == llvm::to_vector(llvm::seq<int64_t>(0, rank));
  };
  if (!names(n.inBatch, n.inFeature, n.inSpace) || !names(n.kernelIn, n.kernelOut, n.kernelSpace) || !names(n.outBatch, n.outFeature, n.outSpace))
    return c.error("dimension_numbers do not name each of the " + Twine(rank) + " dimensions once");
  return n;
}

FailureOr<hlo::ConvWindow> readWindow(NodeContext &c, const Numbers &n, Value x, Value y) {
  const size_t space = n.inSpace.size();
  auto list = [&](StringRef name) {
    SmallVector<int64_t> values = c.attrInts(name);
    return values.empty() ? SmallVector<int64_t>(space, 1) : values;
  };
  hlo::ConvWindow w;
  const SmallVector<int64_t> strides = list("window_strides"), inner = list("lhs_dilation"), outer = list("rhs_dilation");
  for (const auto &values : {strides, inner, outer})
    if (values.size() != space || llvm::any_of(values, [](int64_t v) { return v < 1 || v > INT32_MAX; }))
      return c.error("expected " + Twine(space) + " positive strides and dilations");
  const StringRef padding = c.attrString("padding");
  const SmallVector<int64_t> given = c.attrInts("explicit_padding");
  if (padding != "EXPLICIT" && padding != "SAME" && padding != "VALID")
    return c.error("padding '" + padding + "' is none of EXPLICIT, SAME and VALID");
  if (padding == "EXPLICIT" ? given.size() != 2 * space : !given.empty())
    return c.error("explicit_padding does not fit the padding '" + padding + "'");
  for (size_t i = 0; i < space; ++i) {
    w.strides.push_back(strides[i]);
    w.lhsDilation.push_back(inner[i]);
    w.rhsDilation.push_back(outer[i]);
    std::pair<int64_t, int64_t> ends = {0, 0};
    if (padding == "EXPLICIT") {
      ends = {given[2 * i], given[2 * i + 1]};
      if (ends.first < 0 || ends.second < 0 || ends.first > INT32_MAX || ends.second > INT32_MAX)
        return c.error("explicit_padding must not be negative");
    } else if (padding == "SAME") {
      auto in = constantOf(c.dim(x, n.inSpace[i])), taps = constantOf(c.dim(y, n.kernelSpace[i]));
      if (!in || !taps)
        return c.error("SAME padding needs sizes that are known at compile time");
      auto dilated = [](int64_t size, int64_t by) { return size == 0 ? 0 : (size - 1) * by + 1; };
      const int64_t from = dilated(*in, inner[i]), out = llvm::divideCeil(from, strides[i]);
      const int64_t total = std::max<int64_t>((out - 1) * strides[i] + dilated(*taps, outer[i]) - from, 0);
      ends = {total / 2, total - total / 2};
    }
    w.padding.push_back(ends);
  }
  return w;
}

LogicalResult lowerConv(NodeContext &c, bool hybrid) {
  Value x = c.input(0), y = c.input(1);
  const int64_t rank = Emitter::rank(x);
  if (rank < 3 || Emitter::rank(y) != rank)
    return c.error("expected operands of one rank from 3 on, found ranks " + Twine(rank) + " and " + Twine(Emitter::rank(y)));
  auto n = readNumbers(c, c.attrString("dimension_numbers"), rank);
  if (failed(n))
    return failure();
  auto window = readWindow(c, *n, x, y);
  if (failed(window))
    return failure();
  const int64_t groups = c.attrInt("feature_group_count", 1), batchGroups = c.attrInt("batch_group_count", 1);
  auto channels = constantOf(c.dim(x, n->inFeature)), per = constantOf(c.dim(y, n->kernelIn)), outputs = constantOf(c.dim(y, n->kernelOut));
  auto batch = constantOf(c.dim(x, n->inBatch));
  if (!channels || !per || !outputs)
    return c.error("channels must be known at compile time");
  if (groups < 1 || batchGroups < 1 || *channels % groups || *channels / groups != *per || *outputs % groups || *outputs % batchGroups ||
      (batchGroups > 1 && (!batch || *batch % batchGroups || groups > 1)))
    return c.error("groups of channels or of the batch do not fit the operands");
  auto ys = uniformInput(c, hybrid ? 2 : 4, c.attrInt("rhs_quantization_axis", -1), c.dims(y));
  if (failed(ys))
    return failure();
  if (ys->axis >= 0 && ys->axis != n->kernelOut)
    return c.error("rhs_quantization_axis must be -1 or the filter's dimension of output channels");
  checkPositive(c, *ys);
  auto numbers = hlo::ConvDimensionNumbersAttr::get(c.b.getContext(), n->inBatch, n->inFeature, n->inSpace, n->kernelIn, n->kernelOut,
                                                    n->kernelSpace, n->outBatch, n->outFeature, n->outSpace);
  ys->axis = ys->axis < 0 ? -1 : n->outFeature;
  const Offset right = {y, ys->zero, ys->axis};
  if (hybrid) {
    if (batchGroups > 1)
      return c.error("groups of the batch are not supported where each entry has a scale of its own");
    // what the window adds first: 0 changes no range, and becomes the zero point of each entry
    x = padImage(c, x, c.scalar(0, Emitter::elementType(x)), n->inSpace, *window);
    const Dynamic left = quantizeEach(c, x, n->inBatch);
    const Offset image = {left.q, left.zero, n->outBatch};
    return setScaled(c, offsetConvolution(c, image, right, *window, numbers, groups, 1, Padding::Zero), left.scale, n->outBatch, *ys);
  }
  auto xs = uniformInput(c, 2, c.attrInt("lhs_quantization_axis", -1), c.dims(x));
  if (failed(xs))
    return failure();
  if (xs->axis >= 0)
    return c.error("lhs_quantization_axis must be -1");
  Value sums = offsetConvolution(c, {x, xs->zero}, right, *window, numbers, groups, batchGroups, Padding::ZeroAsByte);
  auto out = uniformInput(c, 6, c.attrInt("output_quantization_axis", -1), c.dims(sums));
  if (failed(out))
    return failure();
  if (out->axis >= 0 && out->axis != n->outFeature)
    return c.error("output_quantization_axis must be -1 or the dimension of output channels");
  checkPositive(c, *xs);
  checkPositive(c, *out);
  return setRequantized(c, sums, *xs, *ys, *out);
}

} // namespace

void registerUniform(HandlerTable &t) {
  t.add("UniformQuantize", 3, lowerQuantize);
  t.add("UniformDequantize", 3, lowerDequantize);
  t.add("UniformRequantize", 5, lowerRequantize);
  t.add("UniformQuantizedAdd", 8, lowerAdd);
  t.add("UniformQuantizedClipByValue", 5, lowerClip);
  t.add("UniformQuantizedDot", 8, [](NodeContext &c) { return lowerDot(c, false); });
  t.add("UniformQuantizedDotHybrid", 4, [](NodeContext &c) { return lowerDot(c, true); });
  t.add("UniformQuantizedConvolution", 8, [](NodeContext &c) { return lowerConv(c, false); });
  t.add("UniformQuantizedConvolutionHybrid", 4, [](NodeContext &c) { return lowerConv(c, true); });
}

} // namespace lathe::legalize
