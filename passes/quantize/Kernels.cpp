#include "passes/quantize/Kernels.h"

#include "passes/legalize/quant/ByteProducts.h"

#include <cmath>

using namespace mlir;

namespace lathe::quantize {

Value multiplyReal(Emitter &e, Value x, ArrayRef<double> factors) {
  if (!x)
    return x;
  Tensor t = Tensor::allocate(DType::Float64, {int64_t(factors.size())});
  llvm::copy(factors, t.data<double>());
  Value f = e.constant(t), real = e.convert(x, e.b.getF64Type());
  if (!f || !real)
    return {};
  if (factors.size() == 1)
    f = e.reshape(f, ArrayRef<AffineExpr>());
  Value rounded = e.unary<hlo::RoundOp>(e.mul(real, f));
  // within what i32 holds, with room for the zero point; sums of 32 bits are, with the small factors that models have
  if (!Emitter::elementType(x).isInteger(32) || llvm::any_of(factors, [](double v) { return !(std::abs(v) <= 0.5); }))
    rounded = e.max(e.min(rounded, e.like(rounded, 1 << 30)), e.like(rounded, -(1 << 30)));
  return convertInRange(e, rounded);
}

Value requantizeReal(Emitter &e, Value sums, ArrayRef<double> factors, int64_t zeroPoint, Range range, Type element) {
  if (sums && isFast(e, element) && Emitter::elementType(sums).isInteger(32))
    return requantize(e, sums, llvm::map_to_vector(factors, multiplierOf), Emitter::rank(sums) - 1, zeroPoint, range, element);
  if (!sums)
    return sums;
  auto ops = [&] {
    Value exact = multiplyReal(e, sums, factors);
    return exact && zeroPoint ? e.add(exact, e.likeInt(exact, zeroPoint)) : exact;
  };
  auto of = [&](size_t i, int32_t x) { return int64_t(std::round(double(x) * factors[i])) + zeroPoint; };
  return finish(e, roundInFloat(e, sums, {of, ops, {}}, factors, Emitter::rank(sums) - 1, zeroPoint, range, element), 0, range, element);
}

SmallVector<int64_t> functionTable(Params in, Range from, Params out, Range to, llvm::function_ref<float(float)> function) {
  const float inverse = 1 / out.scale;
  SmallVector<int64_t> table;
  for (int64_t v = from.first; v <= from.second; ++v) {
    const float real = in.scale * float(v - in.zeroPoint), rounded = std::round(function(real) * inverse) + float(out.zeroPoint);
    table.push_back(int64_t(std::clamp(rounded, float(to.first), float(to.second))));
  }
  return table;
}

QuantizedRows quantizeRows(Emitter &e, Value x, ArrayRef<int64_t> axes, bool asymmetric) {
  const int64_t rank = Emitter::rank(x);
  Type f32 = e.b.getF32Type(), i8 = e.b.getI8Type(), i32 = e.b.getI32Type();
  Value high = e.keepDims(e.reduceMax(x, axes), axes, rank), low = e.keepDims(e.reduceMin(x, axes), axes, rank);
  Value zero = e.like(high, 0), one = e.like(high, 1);
  QuantizedRows rows;
  if (!asymmetric) {
    Value range = e.max(e.unary<hlo::AbsOp>(low), e.unary<hlo::AbsOp>(high));
    Value none = e.compare(legalize::Compare::EQ, range, zero);
    rows.scales = e.select(none, one, e.div(range, e.like(range, 127)));
    Value inverse = e.select(none, zero, e.div(e.like(range, 127), range));
    Value rounded = e.unary<hlo::RoundOp>(e.mul(x, inverse));
    rows.values = e.convert(e.max(e.min(rounded, e.like(rounded, 127)), e.like(rounded, -127)), i8);
    rows.zeroPoints = e.likeInt(e.convert(zero, i32), 0);
    rows.centred = true;
    return rows;
  }
  low = e.min(low, zero);
  high = e.max(high, zero);
  Value none = e.compare(legalize::Compare::EQ, low, high);
  Value scale = e.select(none, one, e.div(e.sub(high, low), e.like(high, 255)));
  Value fromLow = e.sub(e.like(low, -128), e.div(low, scale)), fromHigh = e.sub(e.like(high, 127), e.div(high, scale));
  Value errorLow = e.add(e.like(low, 128), e.unary<hlo::AbsOp>(e.div(low, scale)));
  Value errorHigh = e.add(e.like(high, 127), e.unary<hlo::AbsOp>(e.div(high, scale)));
  Value zeroPoint = e.select(e.compare(legalize::Compare::LT, errorLow, errorHigh), fromLow, fromHigh);
  zeroPoint = e.unary<hlo::RoundOp>(e.max(e.min(zeroPoint, e.like(zeroPoint, 127)), e.like(zeroPoint, -128)));
  zeroPoint = e.select(none, zero, zeroPoint);
  // rounded before the zero point is added: ties go away from 0, not from the zero point
  Value q = e.add(e.unary<hlo::RoundOp>(e.mul(x, e.div(one, scale))), zeroPoint);
  rows.values = e.convert(e.max(e.min(q, e.like(q, 127)), e.like(q, -128)), i8);
  rows.scales = e.convert(scale, f32);
  rows.zeroPoints = e.convert(zeroPoint, i32);
  return rows;
}

Value convolveRows(Emitter &e, const QuantizedRows &rows, Value filter, const hlo::ConvWindow &window, hlo::ConvDimensionNumbersAttr numbers,
                   int64_t groups) {
  const AffineExpr images = e.dim(rows.values, numbers.getInputBatchDimension());
  legalize::Offset image{rows.values, {}};
  hlo::ConvWindow w = window;
  if (rows.centred) {
    image.zero = e.scalarInt(0, e.b.getI32Type());
  } else if (legalize::constantOf(images) == 1) {
    image.zero = e.reshape(rows.zeroPoints, ArrayRef<AffineExpr>{});
  } else {
    image.zero = e.reshape(rows.zeroPoints, ArrayRef<AffineExpr>{images});
    image.axis = numbers.getOutputBatchDimension();
    if (llvm::any_of(window.padding, [](auto p) { return p.first || p.second; })) {
      // a pad has one number for all images: it says what is inside of them
      Type i8 = e.b.getI8Type();
      legalize::Dims dims = e.dims(rows.values), plane(dims.size(), e.size(1));
      for (int64_t d : numbers.getInputSpatialDimensions())
        plane[d] = dims[d];
      Value zero = e.scalarInt(0, i8);
      hlo::ConvWindow again = w;
      Value inside = legalize::padImage(e, e.splatInt(1, plane, i8), zero, numbers.getInputSpatialDimensions(), again);
      Value padded = legalize::padImage(e, rows.values, zero, numbers.getInputSpatialDimensions(), w);
      dims = e.dims(padded);
      Value isInside = e.broadcastTo(e.compare(legalize::Compare::NE, inside, e.likeInt(inside, 0)), dims);
      image.q = e.select(isInside, padded, e.broadcastTo(e.convert(rows.zeroPoints, i8), dims));
    }
  }
  // zero points are bytes, so that padding with them is padding with 0
  return legalize::offsetConvolution(e, image, {filter, e.scalarInt(0, e.b.getI32Type())}, w, numbers, groups, 1,
                                     legalize::Padding::ZeroAsByte);
}

Value scaleSums(Emitter &e, Value sums, Value rowScales, Value weightScales, bool weightsFirst) {
  Value real = e.convert(sums, e.b.getF32Type());
  return weightsFirst ? e.mul(e.mul(real, weightScales), rowScales) : e.mul(real, e.mul(rowScales, weightScales));
}

namespace {

/// Where one output row (or column) of a resize reads: two places, and the weight of the second (1024ths, or a float).
struct ResizeTaps {
  SmallVector<int64_t> low, high, weight;
  SmallVector<float> real;
};

/// In 10 bits of fraction, as the integer kernels do.
ResizeTaps integerTaps(int64_t in, int64_t out, bool alignCorners, bool halfPixelCenters) {
  int64_t scale = ((in << 10) + out / 2) / out;
  if (alignCorners && out > 1)
    scale = (((in - 1) << 10) + (out - 1) / 2) / (out - 1);
  ResizeTaps t;
  for (int64_t i = 0; i < out; ++i) {
    int64_t at = halfPixelCenters ? i * scale + scale / 2 - (1 << 9) : i * scale;
    t.low.push_back(std::max<int64_t>(at / 1024, 0));
    t.high.push_back(std::min<int64_t>((at + 1023) / 1024, in - 1));
    t.weight.push_back(at - t.low.back() * 1024);
  }
  return t;
}

ResizeTaps realTaps(int64_t in, int64_t out, bool alignCorners, bool halfPixelCenters) {
  float scale = float(in) / float(out);
  if (alignCorners && out > 1)
    scale = float(in - 1) / float(out - 1);
  ResizeTaps t;
  for (int64_t i = 0; i < out; ++i) {
    float at = halfPixelCenters ? (float(i) + 0.5f) * scale - 0.5f : float(i) * scale;
    const float floored = std::floor(at);
    t.low.push_back(std::max<int64_t>(int64_t(floored), 0));
    t.high.push_back(std::min<int64_t>(int64_t(std::ceil(at)), in - 1));
    t.real.push_back(at - float(t.low.back()));
  }
  return t;
}

} // namespace

Value resizeBilinear(Emitter &e, Value x, int64_t height, int64_t width, bool alignCorners, bool halfPixelCenters) {
  const Type element = Emitter::elementType(x);
  const bool real = element.isUnsignedInteger();
  auto taps = real ? realTaps : integerTaps;
  const ResizeTaps ty = taps(*legalize::constantOf(e.dim(x, 1)), height, alignCorners, halfPixelCenters),
                   tx = taps(*legalize::constantOf(e.dim(x, 2)), width, alignCorners, halfPixelCenters);
  Type type = real ? Type(e.b.getF32Type()) : element.isInteger(16) ? Type(e.b.getI64Type()) : Type(e.b.getI32Type());
  Value wide = e.convert(x, type);
  auto weights = [&](const ResizeTaps &t, int64_t axis) {
    legalize::Dims dims(4, e.size(1));
    Value v;
    if (real) {
      Tensor tensor = Tensor::allocate(DType::Float32, {int64_t(t.real.size())});
      llvm::copy(t.real, tensor.data<float>());
      v = e.constant(tensor);
    } else {
      v = e.constantInts(t.weight, type);
    }
    dims[axis] = e.dim(v, 0);
    return e.reshape(v, dims);
  };
  Value wy = weights(ty, 1), wx = weights(tx, 2);
  Value vy = e.sub(e.likeInt(wy, real ? 1 : 1024), wy), vx = e.sub(e.likeInt(wx, real ? 1 : 1024), wx);
  auto take = [&](Value v, ArrayRef<int64_t> places, int64_t axis) { return e.takeSlices(v, e.constantInts(places, e.b.getI32Type()), axis); };
  Value top = take(wide, ty.low, 1), bottom = take(wide, ty.high, 1);
  auto part = [&](Value rows, ArrayRef<int64_t> columns, Value y, Value x) {
    return e.mul(e.mul(take(rows, columns, 2), y), x);
  };
  Value sum = e.add(e.add(e.add(part(top, tx.low, vy, vx), part(bottom, tx.low, wy, vx)), part(top, tx.high, vy, wx)),
                    part(bottom, tx.high, wy, wx));
  if (real)
    return e.convert(e.add(sum, e.like(sum, 0.5)), element);
  Value half = e.select(e.compare(legalize::Compare::GT, sum, e.likeInt(sum, 0)), e.likeInt(sum, 1 << 19), e.likeInt(sum, -(1 << 19)));
  return e.convert(e.div(e.add(sum, half), e.likeInt(sum, 1 << 20)), element);
}

} // namespace lathe::quantize
