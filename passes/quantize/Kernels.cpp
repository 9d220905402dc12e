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

} // namespace lathe::quantize
