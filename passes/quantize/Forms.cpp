#include "passes/quantize/Forms.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"
#include "passes/quantize/Choose.h"
#include "passes/quantize/Kernels.h"
#include "passes/simplify/Match.h"

#include "mlir/IR/IRMapping.h"

#include <cmath>

using namespace mlir;

namespace lathe::quantize {

Params paramsOf(quant::UniformQuantizedType type) { return {float(type.getScale()), type.getZeroPoint()}; }

std::optional<UnitTypes> typesOf(const Unit &unit) {
  auto all = unit.last()->getAttrOfType<ArrayAttr>(typesAttr);
  if (!all || all.size() != unit.inputs.size() + 1 + unit.hasWeights())
    return std::nullopt;
  UnitTypes types;
  for (auto [i, attr] : llvm::enumerate(all)) {
    if (i > unit.inputs.size())
      break;
    auto type = isa<TypeAttr>(attr) ? dyn_cast<quant::UniformQuantizedType>(cast<TypeAttr>(attr).getValue()) : quant::UniformQuantizedType();
    if (!type || !(type.getScale() > 0))
      return std::nullopt;
    types.bits = type.getStorageTypeIntegralWidth();
    if (types.bits != 8 && types.bits != 16)
      return std::nullopt;
    if (i < unit.inputs.size())
      types.inputs.push_back(paramsOf(type));
    else
      types.output = paramsOf(type);
  }
  return types;
}

FailureOr<UnitTypes> requireTypes(const Unit &unit) {
  if (auto types = typesOf(unit))
    return *types;
  return unit.root->emitError() << "node '" << graph::getNodeName(unit.root->getLoc()) << "' (" << unitName(unit.kind)
                                << "): expected hlo.quantized with a type for each input and the result";
}

std::optional<ReadAs> readAs(ArrayRef<Unit> units, Value value) {
  for (const Unit &unit : units)
    if (auto it = llvm::find(unit.inputs, value); it != unit.inputs.end())
      if (auto types = typesOf(unit))
        return ReadAs{types->inputs[it - unit.inputs.begin()], types->bits};
  return std::nullopt;
}

static Range fullRange(int64_t bits) { return bits == 16 ? Range(-32768, 32767) : Range(-128, 127); }

int64_t quantizeNumber(double x, Params p, int64_t bits) {
  Range r = fullRange(bits);
  double q = std::round(x / p.scale) + double(p.zeroPoint);
  return std::isnan(q) ? p.zeroPoint : int64_t(std::clamp(q, double(r.first), double(r.second)));
}

FailureOr<SmallVector<int64_t>> tableEntries(const Unit &unit, const UnitTypes &types) {
  std::vector<float> points;
  for (int64_t q = -128; q <= 127; ++q)
    points.push_back(types.inputs[0].scale * float(q - types.inputs[0].zeroPoint));
  auto real = evaluateTable(unit, points);
  if (failed(real))
    return failure();
  SmallVector<int64_t> entries;
  for (float v : *real)
    entries.push_back(quantizeNumber(v, types.output, 8));
  return entries;
}

std::optional<Tensor> quantizedTensor(Value x, Params params, int64_t bits) {
  auto t = constantValue(x) ? hlo::readConstant(x) : FailureOr<Tensor>(failure());
  if (failed(t) || t->dtype() != DType::Float32)
    return std::nullopt;
  Tensor q = Tensor::allocate(bits == 16 ? DType::Int16 : DType::Int8, t->dims());
  for (int64_t i = 0; i < t->numElements(); ++i) {
    int64_t v = quantizeNumber(t->data<float>()[i], params, bits);
    if (bits == 16)
      q.data<int16_t>()[i] = int16_t(v);
    else
      q.data<int8_t>()[i] = int8_t(v);
  }
  return q;
}

namespace {

class Former {
public:
  Former(Emitter &e, const Unit &unit, const UnitTypes &types, ArrayRef<Value> inputs)
      : e(e), unit(unit), types(types), in(inputs), element(e.b.getIntegerType(unsigned(types.bits))), wide(types.bits == 16) {
    range = fullRange(types.bits);
    if (std::isfinite(unit.low))
      range.first = std::max(range.first, quantizeNumber(unit.low, types.output, types.bits));
    if (std::isfinite(unit.high))
      range.second = std::min(range.second, quantizeNumber(unit.high, types.output, types.bits));
    range.second = std::max(range.second, range.first);
  }

  Value form() {
    switch (unit.kind) {
    case UnitKind::Conv: return convolution();
    case UnitKind::Dot: return dot();
    case UnitKind::Scale: return scale();
    case UnitKind::Matmul: return matmul();
    case UnitKind::Add:
    case UnitKind::Sub:
      return sum(e, in[0], types.inputs[0], in[1], types.inputs[1], types.output, range, wide ? 15 : 20, unit.kind == UnitKind::Sub, element);
    case UnitKind::Mul: return product(e, in[0], types.inputs[0], in[1], types.inputs[1], types.output, range, element);
    case UnitKind::MaxPool: return window<hlo::MaxOp>(in[0], hlo::makeLowest(e.b, e.loc, element));
    case UnitKind::AveragePool: {
      Value sums = window<hlo::AddOp>(widen(e, in[0], 0), e.scalarInt(0, e.b.getI32Type()));
      return average(e, sums, e.likeInt(sums, unit.count), unit.count, range, element);
    }
    case UnitKind::Mean: {
      Value sums = e.reduceSum(widen(e, in[0], 0), unit.axes);
      return mean(e, sums, unit.count, types.inputs[0], types.output, range, element);
    }
    case UnitKind::Softmax: return softmax8(e, in[0], types.inputs[0].scale, 1, types.output, range, element);
    case UnitKind::Resize: {
      const BilinearResize &to = *unit.resize;
      Value q = resizeBilinear(e, in[0], to.height, to.width, to.alignCorners, to.halfPixelCenters);
      return e.reshape(q, hlo::getDims(cast<RankedTensorType>(unit.out.getType())));
    }
    case UnitKind::Table: return table();
    case UnitKind::Move: return move();
    }
    return {};
  }

private:
  Emitter &e;
  const Unit &unit;
  const UnitTypes &types;
  ArrayRef<Value> in;
  Type element;
  bool wide;
  Range range;

  Type sumType() { return wide ? e.b.getI64Type() : e.b.getI32Type(); }

  /// Adds the bias less what the input's zero point adds to each sum, and scales to the output. `real`: by factors in double, as
  /// products of matrices are.
  Value finishSums(Value sums, const Weights &w, bool zeroPointInSums, bool real = false) {
    const int64_t channels = w.scales.size(), last = Emitter::rank(sums) - 1, zero = zeroPointInSums ? types.inputs[0].zeroPoint : 0;
    SmallVector<int64_t> terms(channels, 0);
    if (zero) {
      int64_t inner = 1;
      for (int64_t d = w.channelDim + 1; d < w.values.rank(); ++d)
        inner *= w.values.dim(d);
      for (int64_t i = 0; i < w.values.numElements(); ++i)
        terms[i / inner % channels] -= zero * w.values.data<int8_t>()[i];
    }
    for (int64_t c = 0; c < int64_t(w.bias.size()); ++c)
      terms[c] += w.bias[c];
    if (llvm::any_of(terms, [](int64_t t) { return t != 0; }))
      sums = e.add(sums, e.broadcastInDim(e.constantInts(terms, sumType()), e.dims(sums), {last}));
    SmallVector<double> exact;
    for (float s : w.scales)
      exact.push_back(double(types.inputs[0].scale) * double(s) / double(types.output.scale));
    if (real)
      return requantizeReal(e, sums, exact, types.output.zeroPoint, range, element);
    return requantize(e, sums, llvm::map_to_vector(exact, multiplierOf), last, types.output.zeroPoint, range, element);
  }

  FailureOr<Weights> weights() {
    auto w = quantizeWeights(unit, types.inputs[0], types.bits);
    if (failed(w))
      (void)e.error("its weights are not finite numbers");
    return w;
  }

  Value convolution() {
    auto op = cast<hlo::ConvolutionOp>(unit.root);
    auto w = weights();
    if (failed(w))
      return {};
    const int64_t spatial = Emitter::rank(in[0]) - 2, zero = types.inputs[0].zeroPoint;
    hlo::ConvWindow win;
    win.strides = hlo::getListOr(op.getWindowStrides(), spatial, 1);
    win.lhsDilation = hlo::getListOr(op.getLhsDilation(), spatial, 1);
    win.rhsDilation = hlo::getListOr(op.getRhsDilation(), spatial, 1);
    win.padding = hlo::getPadding(op.getPaddingAttr(), spatial);
    const bool dilated = llvm::any_of(win.lhsDilation, [](int64_t d) { return d != 1; });
    const bool negative = llvm::any_of(win.padding, [](auto p) { return p.first < 0 || p.second < 0; });
    Value x = in[0], filter = e.constant(w->values);
    // What is between and around the elements stands for 0, which is the zero point: as such it is padded, or, where there are
    // gaps too, it is taken from all elements before.
    const bool centered = zero && (dilated || negative);
    if (centered) {
      x = widen(e, x, -zero, e.b.getIntegerType(16));
      filter = e.convert(filter, e.b.getIntegerType(16));
    } else if (!dilated && !negative && !wide) {
      SmallVector<int64_t> low(spatial + 2, 0), high(low);
      for (auto [i, p] : llvm::enumerate(win.padding)) {
        low[i + 1] = p.first;
        high[i + 1] = p.second;
        p = {0, 0};
      }
      x = e.pad(x, e.scalarInt(zero, element), low, high);
    }
    Value sums = e.make<hlo::ConvolutionOp>(x, filter, win, op.getDimensionNumbers(), int64_t(op.getFeatureGroupCount()), int64_t(1), sumType());
    return finishSums(sums, *w, !centered);
  }

  Value dot() {
    auto w = weights();
    if (failed(w))
      return {};
    auto numbers = cast<hlo::DotGeneralOp>(unit.root).getDotDimensionNumbers();
    Value sums = e.make<hlo::DotGeneralOp>(in[0], e.constant(w->values), numbers, sumType());
    return finishSums(sums, *w, true, true);
  }

  Value scale() {
    auto w = weights();
    if (failed(w))
      return {};
    Value x = widen(e, in[0], -types.inputs[0].zeroPoint, sumType());
    SmallVector<int64_t> factors(w->values.data<int8_t>(), w->values.data<int8_t>() + w->values.numElements());
    Value by = e.broadcastInDim(e.constantInts(factors, sumType()), e.dims(x), {Emitter::rank(x) - 1});
    return finishSums(e.mul(x, by), *w, false);
  }

  Value matmul() {
    auto numbers = cast<hlo::DotGeneralOp>(unit.root).getDotDimensionNumbers();
    Type i16 = e.b.getIntegerType(16);
    auto centered = [&](int i) { return types.inputs[i].zeroPoint ? widen(e, in[i], -types.inputs[i].zeroPoint, i16) : in[i]; };
    Value x = centered(0), y = centered(1);
    if (Emitter::elementType(x) != Emitter::elementType(y)) {
      x = e.convert(x, i16);
      y = e.convert(y, i16);
    }
    Value sums = e.make<hlo::DotGeneralOp>(x, y, numbers, sumType());
    Multiplier factor = multiplierOf(double(types.inputs[0].scale * types.inputs[1].scale) / double(types.output.scale));
    return requantize(e, sums, factor, Emitter::rank(sums) - 1, types.output.zeroPoint, range, element);
  }

  template <typename Combine>
  Value window(Value x, Value init) {
    auto op = cast<hlo::ReduceWindowOp>(unit.root);
    const int64_t rank = Emitter::rank(x);
    hlo::ReduceWindow win;
    win.strides = hlo::getListOr(op.getWindowStrides(), rank, 1);
    win.baseDilations = hlo::getListOr(op.getBaseDilations(), rank, 1);
    win.windowDilations = hlo::getListOr(op.getWindowDilations(), rank, 1);
    win.padding = hlo::getPadding(op.getPaddingAttr(), rank);
    return e.make<hlo::ReduceWindowOp>(ValueRange(x), ValueRange(init), op.getWindowDimensions(), win,
                                       [](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
                                         return {Combine::create(b, l, args[0], args[1])};
                                       });
  }

  Value table() {
    auto entries = tableEntries(unit, types);
    return failed(entries) ? Value() : lookUp(e, in[0], *entries, element);
  }

  Value move() {
    IRMapping map;
    for (auto [from, to] : llvm::zip_equal(unit.inputs, in))
      map.map(from, to);
    Operation *copy = unit.root->clone(map);
    for (const char *attr : {markAttr, rangesAttr, typesAttr})
      copy->removeAttr(attr);
    copy->getResult(0).setType(hlo::withElementType(cast<RankedTensorType>(copy->getResult(0).getType()), element));
    e.b.insert(copy);
    return copy->getResult(0);
  }
};

} // namespace

Value emitUnit(Emitter &e, const Unit &unit, const UnitTypes &types, ArrayRef<Value> inputs) {
  return Former(e, unit, types, inputs).form();
}

Value quantizeValue(Emitter &e, Value x, Params params, int64_t bits) {
  Type i32 = e.b.getI32Type();
  Value rounded = e.unary<hlo::RoundOp>(e.div(x, e.like(x, params.scale)));
  // clamped before the zero point is added: far numbers would not fit otherwise
  rounded = e.max(e.min(rounded, e.like(rounded, 1 << 30)), e.like(rounded, -(1 << 30)));
  return finish(e, e.convert(rounded, i32), params.zeroPoint, fullRange(bits), e.b.getIntegerType(unsigned(bits)));
}

Value dequantizeValue(Emitter &e, Value q, Params params) {
  Value centered = e.convert(widen(e, q, -params.zeroPoint), e.b.getF32Type());
  return e.mul(centered, e.like(centered, params.scale));
}

Value quantizeConstant(Emitter &e, Value x, Params params, int64_t bits) {
  Type element = e.b.getIntegerType(unsigned(bits));
  if (auto number = splatNumber(x))
    return e.splatInt(quantizeNumber(*number, params, bits), e.dims(x), element);
  auto q = quantizedTensor(x, params, bits);
  return q ? e.constant(*q) : Value();
}

} // namespace lathe::quantize
