// Gradients of simulated quantisation, quantise-dequantise in floats, and small ops on layouts and XLA's slices.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

struct Range {
  Value low, high;
};

/// TensorFlow's nudged range: zero lands on a quantised value. Scalars or vectors of f32.
Range nudge(NodeContext &c, Value low, Value high) {
  int64_t bits = c.attrInt("num_bits", 8);
  if (bits < 2 || bits > 16) {
    (void)c.error("num_bits must be between 2 and 16, found " + Twine(bits));
    bits = 8;
  }
  double quantLow = c.attrBool("narrow_range") ? 1 : 0, quantHigh = double((int64_t(1) << bits) - 1);
  Value scale = c.div(c.sub(high, low), c.like(high, quantHigh - quantLow));
  Value zero = c.sub(c.like(low, quantLow), c.div(low, scale));
  Value rounded = c.unary<hlo::RoundOp>(zero);
  Value nudged = c.select(c.compare(Compare::LT, zero, c.like(zero, quantLow)), c.like(zero, quantLow),
                          c.select(c.compare(Compare::GT, zero, c.like(zero, quantHigh)), c.like(zero, quantHigh), rounded));
  return {c.mul(c.sub(c.like(nudged, quantLow), nudged), scale), c.mul(c.sub(c.like(nudged, quantHigh), nudged), scale)};
}

LogicalResult lowerFakeQuantGradient(NodeContext &c, bool fromAttributes) {
  Value grad = c.input(0), x = c.input(1);
  if (!sameDims(c, {grad, x}))
    return failure();
  Type f32 = c.b.getF32Type();
  Value low = fromAttributes ? c.scalar(c.attrFloat("min", -6), f32) : c.input(2);
  Value high = fromAttributes ? c.scalar(c.attrFloat("max", 6), f32) : c.input(3);
  bool channels = c.rank(low) == 1;
  Range r = nudge(c, low, high);
  Value zero = c.scalar(0, f32), one = c.scalar(1, f32);
  // products, not selections: TensorFlow's gradient of 0 times infinity is NaN, and a NaN input has none
  auto where = [&](Value condition) { return c.mul(grad, c.select(condition, one, zero)); };
  Value below = c.compare(Compare::LT, x, r.low), above = c.compare(Compare::GT, x, r.high);
  Value inside = where(c.logicalAnd(c.compare(Compare::GE, x, r.low), c.compare(Compare::LE, x, r.high)));
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, c.rank(x) - (channels ? 1 : 0)));
  Value toLow = c.reduceSum(where(below), axes), toHigh = c.reduceSum(where(above), axes);
  // an empty range passes the gradient through
  Value none = c.logicalAnd(c.compare(Compare::EQ, low, c.like(low, 0)), c.compare(Compare::EQ, high, c.like(high, 0)));
  if (failed(c.setResult(0, c.select(none, grad, inside))))
    return failure();
  if (fromAttributes)
    return success();
  return success(succeeded(c.setResult(1, c.select(none, zero, toLow))) &&
                 succeeded(c.setResult(2, c.select(none, zero, toHigh))));
}

/// Channels along `axis` (-1: one range for all).
Value along(NodeContext &c, Value v, Value x, int64_t axis) {
  return axis < 0 || c.rank(v) == 0 ? v : c.broadcastInDim(v, c.dims(x), {axis});
}

LogicalResult lowerQuantizeDequantize(NodeContext &c, bool bitsInput) {
  Value x = c.input(0);
  bool isSigned = c.attrBool("signed_input", true), given = c.attrBool("range_given"), narrow = c.attrBool("narrow_range");
  int64_t bits = c.attrInt("num_bits", 8), axis = c.attrInt("axis", -1);
  if (bitsInput) {
    auto n = c.constantInt(3);
    if (failed(n))
      return failure();
    bits = *n;
  }
  if (bits < 1 || bits > 63 || axis >= c.rank(x))
    return c.error("num_bits or axis is out of range");
  Value low, high;
  if (given && c.numInputs() == 1) { // the first form has the range in attributes
    low = c.scalar(c.attrFloat("input_min"), c.elementType(x));
    high = c.scalar(c.attrFloat("input_max"), c.elementType(x));
  } else if (given) {
    low = c.input(1);
    high = c.input(2);
  } else {
    SmallVector<int64_t> axes;
    for (int64_t d = 0; d < c.rank(x); ++d)
      if (d != axis)
        axes.push_back(d);
    low = c.reduceMin(x, axes);
    high = c.reduceMax(x, axes);
  }
  double quantLow = !isSigned ? 0 : narrow ? -double((int64_t(1) << (bits - 1)) - 1) : -double(int64_t(1) << (bits - 1));
  double quantHigh = isSigned ? double((int64_t(1) << (bits - 1)) - 1) : double((uint64_t(1) << bits) - 1);
  // the range grows until one side falls on the end of the scale
  Value zero = c.like(low, 0), most = c.like(low, std::numeric_limits<float>::max());
  auto scaleOf = [&](double quant, Value v) {
    Value product = c.mul(c.like(v, quant), v);
    return c.select(c.compare(Compare::GT, product, zero), c.div(c.like(v, quant), v), most);
  };
  Value byLow = scaleOf(quantLow, low), byHigh = scaleOf(quantHigh, high);
  Value useLow = c.compare(Compare::LT, byLow, byHigh);
  Value scale = c.select(useLow, byLow, byHigh);
  Value inverse = c.select(useLow, c.div(low, c.like(low, quantLow == 0 ? 1 : quantLow)), c.div(high, c.like(high, quantHigh)));
  Value newHigh = c.select(useLow, c.mul(c.like(low, quantHigh), inverse), high);
  Value newLow = c.select(useLow, low, c.mul(c.like(high, quantLow), inverse));
  Value clamped = x;
  if (given)
    clamped = c.min(c.max(x, along(c, newLow, x, axis)), along(c, newHigh, x, axis));
  Value scaled = c.mul(clamped, along(c, scale, x, axis));
  StringRef mode = c.attrString("round_mode", "HALF_TO_EVEN");
  Value rounded = mode == "HALF_UP" ? c.unary<hlo::FloorOp>(c.add(scaled, c.like(scaled, 0.5)))
                                    : c.unary<hlo::RoundNearestEvenOp>(scaled);
  if (!given)
    rounded = c.min(rounded, c.like(rounded, quantHigh));
  return c.setResult(0, c.mul(rounded, along(c, inverse, x, axis)));
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>> formatMap(NodeContext &c) {
  StringRef from = c.attrString("src_format", "NHWC"), to = c.attrString("dst_format", "NCHW");
  SmallVector<int64_t> map;
  if (from.size() != to.size() || from.empty())
    return c.error("the formats differ in length");
  for (char ch : from) {
    size_t at = to.find(ch);
    if (at == StringRef::npos)
      return c.error("format " + from + " is no permutation of " + to);
    map.push_back(at);
  }
  return map;
}

LogicalResult lowerDimMap(NodeContext &c) {
  Value x = c.input(0);
  auto map = formatMap(c);
  if (failed(map))
    return failure();
  int64_t n = map->size();
  checkRange(c, c.add(x, c.likeInt(x, n)), c.size(2 * n), "a dimension is out of range");
  Value at = c.select(c.compare(Compare::LT, x, c.like(x, 0)), c.add(x, c.likeInt(x, n)), x);
  Value table = c.Emitter::constantInts(*map, c.elementType(x));
  return c.setResult(0, gather(c, table, at, 0, 0, /*checked=*/false));
}

LogicalResult lowerVecPermute(NodeContext &c) {
  Value x = c.input(0);
  auto map = formatMap(c);
  if (failed(map))
    return failure();
  auto n = c.rank(x) ? constantOf(c.dim(x, 0)) : std::nullopt;
  if (!n || c.rank(x) > 2)
    return c.error("expected a vector, or pairs, of known size");
  StringRef from = c.attrString("src_format", "NHWC"), to = c.attrString("dst_format", "NCHW");
  SmallVector<int64_t> places;
  std::string kept = from.str(), wanted = to.str();
  if (*n + 2 == int64_t(from.size())) {
    // spatial dimensions only: batch and channels are left out of both
    auto strip = [](std::string &s) {
      s.erase(std::remove_if(s.begin(), s.end(), [](char ch) { return ch == 'N' || ch == 'C'; }), s.end());
    };
    strip(kept);
    strip(wanted);
  }
  if (*n != int64_t(kept.size()))
    return c.error("expected " + Twine(kept.size()) + " entries, found " + Twine(*n));
  for (char ch : wanted)
    places.push_back(kept.find(ch));
  return c.setResult(0, gather(c, x, c.Emitter::constantInts(places, c.b.getI32Type()), 0, 0, /*checked=*/false));
}

LogicalResult lowerXlaSlice(NodeContext &c, bool update) {
  Value x = c.input(0), starts = c.input(update ? 2 : 1);
  if (c.rank(starts) != 1 || !c.ctx.unify(c.dim(starts, 0), c.size(c.rank(x)), c.name()))
    return c.error("expected a start for each dimension");
  SmallVector<Value> at;
  for (int64_t d = 0; d < c.rank(x); ++d)
    at.push_back(c.reshape(c.sliceDim(starts, 0, c.size(d), c.size(d + 1)), ArrayRef<AffineExpr>()));
  if (update)
    return c.setResult(0, c.make<hlo::DynamicUpdateSliceOp>(x, c.input(1), ValueRange(at)));
  auto sizes = c.shapeInput(2);
  if (failed(sizes))
    return failure();
  return c.setResult(0, c.make<hlo::DynamicSliceOp>(x, ValueRange(at), ArrayRef<AffineExpr>(*sizes)));
}

LogicalResult lowerToBool(NodeContext &c) {
  Value x = c.input(0);
  if (c.rank(x) != 0) {
    // a tensor is true when it has elements
    Value n = c.sizeValue(productOf(c.dims(x), c.b.getContext()), c.b.getI64Type());
    return c.setResult(0, c.compare(Compare::GT, n, c.scalarInt(0, c.b.getI64Type())));
  }
  return c.setResult(0, c.isBool(x) ? x : c.compare(Compare::NE, x, c.like(x, 0)));
}

} // namespace

void registerQuantize(HandlerTable &t) {
  t.add("FakeQuantWithMinMaxArgsGradient", 2, [](NodeContext &c) { return lowerFakeQuantGradient(c, true); });
  t.add("FakeQuantWithMinMaxVarsGradient", 4, [](NodeContext &c) { return lowerFakeQuantGradient(c, false); });
  t.add("FakeQuantWithMinMaxVarsPerChannelGradient", 4, [](NodeContext &c) { return lowerFakeQuantGradient(c, false); });
  t.add("QuantizeAndDequantize", 1, [](NodeContext &c) { return lowerQuantizeDequantize(c, false); });
  t.add("QuantizeAndDequantizeV2", 3, [](NodeContext &c) { return lowerQuantizeDequantize(c, false); });
  t.add("QuantizeAndDequantizeV3", 4, [](NodeContext &c) { return lowerQuantizeDequantize(c, true); });
  t.add("QuantizeAndDequantizeV4", 3, [](NodeContext &c) { return lowerQuantizeDequantize(c, false); });
  t.add("DataFormatDimMap", 1, lowerDimMap);
  t.add("DataFormatVecPermute", 1, lowerVecPermute);
  t.add("XlaDynamicSlice", 3, [](NodeContext &c) { return lowerXlaSlice(c, false); });
  t.add("XlaDynamicUpdateSlice", 3, [](NodeContext &c) { return lowerXlaSlice(c, true); });
  t.add("ToBool", 1, lowerToBool);
  t.addAnyKind("GuaranteeConst", 1, [](NodeContext &c) { return c.setResult(0, c.value(0)); });
}

} // namespace lathe::legalize
