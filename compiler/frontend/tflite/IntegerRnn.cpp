// Recurrent operators on integers alone: int8 inputs, outputs and weights, gates and cells of 16 bits, functions of fixed-point
// numbers. Every step rounds as the reference kernels do.
#include "compiler/frontend/tflite/FixedPoint.h"
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Recurrent.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "compiler/frontend/tflite/Translator.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

/// x [..., k] of int8 less its zero point times the weights [n, k] of an input plus a bias (or null), times the factor; i32.
Value product(OpContext &c, Value x, int64_t zeroPoint, unsigned weightsInput, Value bias, Multiplier factor) {
  Value weights = c.input(weightsInput);
  if (!x || !weights)
    return {};
  const int64_t last = Emitter::rank(x) - 1;
  if (Emitter::rank(weights) != 2 || !c.elementOf(c.inputInfo(weightsInput)).isSignlessInteger(8) ||
      !c.ctx.unify(c.dim(x, last), c.dim(weights, 1), c.nodeName)) {
    (void)c.error("input " + Twine(weightsInput) + " does not fit: expected an int8 matrix with as many columns as its operand");
    return {};
  }
  Type i32 = c.b.getI32Type();
  auto numbers = hlo::DotDimensionNumbersAttr::get(c.b.getContext(), {}, {}, {last}, {1});
  Value sums = c.make<hlo::DotGeneralOp>(x, weights, numbers, i32);
  if (zeroPoint) {
    Value rows = c.reduceSum(c.convert(weights, i32), {1});
    Value shift = c.mul(rows, c.likeInt(rows, -zeroPoint));
    bias = bias ? c.add(shift, bias) : shift;
  }
  return multiplyBy(c, bias ? c.add(sums, bias) : sums, factor);
}

/// The power of two that a scale is.
FailureOr<int> exponentOf(OpContext &c, float scale) {
  int exponent = 0;
  if (std::frexp(scale, &exponent) != 0.5f)
    return c.error("the scale of its cell state is no power of two");
  return exponent - 1;
}

class IntegerCell {
public:
  IntegerCell(OpContext &c, const Lstm &l) : c(c), l(l) {
    cifg = !c.hasInput(l.weights);
    normalized = l.hasNorm && c.hasInput(l.norm + 1);
    projected = c.hasInput(l.projection);
  }

  /// Reads scales; an error where they do not fit.
  LogicalResult prepare();
  /// What the input adds to the gates (input, forget, cell, output), 16 bits in i32; null for a tied input gate.
  SmallVector<Value> inputs(Value x);
  /// One step: from the gates' input parts, the output (int8) and the cell (int16) to the next ones.
  std::pair<Value, Value> step(ArrayRef<Value> gates, Value output, Value cell);

private:
  struct Gate {
    Multiplier input, recurrent, peephole, norm;
    int64_t guard = 1;
  };
  FailureOr<float> scaleOf(unsigned i) {
    auto q = c.perTensor(c.inputInfo(i));
    return failed(q) ? FailureOr<float>(failure()) : FailureOr<float>(q->first);
  }
  LogicalResult prepareGate(unsigned g, float input, float output);
  LogicalResult prepareOutput(float outputScale);
  Value gate(unsigned g, Value fromInput, Value output, Value cell);
  Value normalize(unsigned g, Value v);
  unsigned peepholeOf(unsigned g) const { return l.peephole + (g == 3 ? 2 : g); }

  OpContext &c;
  const Lstm &l;
  bool cifg, normalized, projected;
  Gate gates[4];
  int64_t inputZero = 0, outputZero = 0, hiddenZero = 0, cellLimit = 0, outputLimit = 0;
  int cellExponent = 0;
  Multiplier hidden, projection;
};

LogicalResult IntegerCell::prepareGate(unsigned g, float input, float output) {
  auto weights = scaleOf(l.weights + g), recurrent = scaleOf(l.recurrent + g);
  if (failed(weights) || failed(recurrent))
    return failure();
  // without normalization gates have 3 integer bits
  float scale = 1.0f / 4096;
  if (normalized) {
    auto between = c.perTensor(c.intermediateInfo(g));
    auto norm = scaleOf(l.norm + g);
    if (failed(between) || failed(norm))
      return failure();
    scale = between->first;
    gates[g].norm = multiplierOf(*norm);
    gates[g].norm.shift += 12;
    gates[g].guard = std::max<int64_t>(1, int64_t(10000 * *norm));
  }
  gates[g].input = multiplierOf(*weights * input / scale);
  gates[g].recurrent = multiplierOf(*recurrent * output / scale);
  if (g != 2 && c.hasInput(peepholeOf(g))) {
    auto peephole = scaleOf(peepholeOf(g));
    if (failed(peephole))
      return failure();
    gates[g].peephole = multiplierOf(float(std::ldexp(1.0, cellExponent) * *peephole / scale));
  }
  return success();
}

LogicalResult IntegerCell::prepareOutput(float outputScale) {
  auto between = c.perTensor(c.intermediateInfo(4));
  if (failed(between))
    return failure();
  hiddenZero = between->second;
  hidden = multiplierOf(float(std::ldexp(1.0, -15) / between->first * std::ldexp(1.0, -15)));
  if (!projected)
    return success();
  auto weights = scaleOf(l.projection);
  if (failed(weights))
    return failure();
  projection = multiplierOf(*weights * between->first / outputScale);
  return success();
}

LogicalResult IntegerCell::prepare() {
  if (c.inputInfo(0).type != tfl::TensorType::INT8)
    return c.typeError(0);
  if (c.numIntermediates() != 5)
    return c.error("expected 5 intermediate tensors (8-bit inputs, 16-bit cells), found " + Twine(c.numIntermediates()));
  if (c.inputInfo(l.output).type != tfl::TensorType::INT8 || c.inputInfo(l.cell).type != tfl::TensorType::INT16)
    return c.error("expected an output state of INT8 and a cell state of INT16");
  auto input = c.perTensor(c.inputInfo(0)), output = c.perTensor(c.inputInfo(l.output)), cell = c.perTensor(c.inputInfo(l.cell));
  if (failed(input) || failed(output) || failed(cell))
    return failure();
  auto exponent = exponentOf(c, cell->first);
  if (failed(exponent))
    return failure();
  cellExponent = *exponent;
  if (cellExponent > -9 || cellExponent < -15)
    return c.error("expected a scale of the cell state from 2^-15 to 2^-9");
  inputZero = input->second;
  outputZero = output->second;
  auto limit = [](float clip, float scale, float most) { return int64_t(std::min(std::max(clip / scale, -most - 1), most)); };
  if (l.cellClip > 0)
    cellLimit = limit(l.cellClip, cell->first, 32767);
  if (l.projectionClip > 0)
    outputLimit = limit(l.projectionClip, output->first, 127);
  for (unsigned g = cifg; g < 4; ++g)
    if (failed(prepareGate(g, input->first, output->first)))
      return failure();
  return prepareOutput(output->first);
}

SmallVector<Value> IntegerCell::inputs(Value x) {
  SmallVector<Value> result(4);
  for (unsigned g = cifg; g < 4; ++g) {
    Value bias = !normalized && c.hasInput(l.bias + g) ? c.input(l.bias + g) : Value();
    result[g] = saturate16(c, product(c, x, inputZero, l.weights + g, bias, gates[g].input));
  }
  return result;
}

/// Layer normalization in integers: mean in 1/1024, the deviation by a root of fixed-point numbers.
Value IntegerCell::normalize(unsigned g, Value v) {
  const int64_t last = Emitter::rank(v) - 1;
  auto n = constantOf(c.dim(v, last));
  if (!n || *n < 1 || *n > 1 << 20) {
    (void)c.error("the number of cells must be known at compile time");
    return {};
  }
  Type i32 = c.b.getI32Type(), i64 = c.b.getI64Type();
  auto sum = [&](Value x) { return c.keepDims(c.reduceSum(x, {last}), {last}, last + 1); };
  Value wide = c.convert(v, i64), total = sum(wide), squares = sum(c.mul(wide, wide));
  Value mean = c.div(c.mul(total, c.likeInt(total, 1024)), c.likeInt(total, *n));
  Value variance = c.sub(c.mul(squares, c.likeInt(squares, (1 << 20) / *n)), c.mul(mean, mean));
  variance = c.convert(c.div(variance, c.likeInt(variance, 1 << 20)), i32);
  variance = c.select(c.compare(Compare::LT, variance, c.likeInt(variance, 1)), c.likeInt(variance, gates[g].guard), variance);
  Value centered = c.sub(c.mul(v, c.likeInt(v, 1024)), c.convert(mean, i32));
  Value scaled = c.mul(multiplyBy(c, centered, inverseSqrt(c, variance)), widen(c, c.input(l.norm + g), 0));
  if (c.hasInput(l.bias + g))
    scaled = c.add(scaled, c.input(l.bias + g));
  // a 1024th, rounded half away from zero
  scaled = c.convert(scaled, i64);
  Value positive = c.compare(Compare::GT, scaled, c.likeInt(scaled, 0));
  Value half = c.select(positive, c.likeInt(scaled, 512), c.likeInt(scaled, -512));
  scaled = c.convert(c.div(c.add(scaled, half), c.likeInt(scaled, 1024)), i32);
  return saturate16(c, multiplyBy(c, scaled, gates[g].norm));
}

Value IntegerCell::gate(unsigned g, Value fromInput, Value output, Value cell) {
  Value v = product(c, output, outputZero, l.recurrent + g, {}, gates[g].recurrent);
  v = saturate16(c, c.add(v, fromInput));
  if (g != 2 && c.hasInput(peepholeOf(g))) {
    Value peephole = c.mul(cell, widen(c, c.input(peepholeOf(g)), 0));
    v = saturate16(c, c.add(multiplyBy(c, peephole, gates[g].peephole), v));
  }
  if (normalized)
    v = normalize(g, v);
  return g == 2 ? fixedTanh(c, v, 3) : fixedLogistic(c, v);
}

std::pair<Value, Value> IntegerCell::step(ArrayRef<Value> given, Value output, Value cell) {
  Type i8 = c.elementOf(c.inputInfo(l.output)), i16 = c.elementOf(c.inputInfo(l.cell));
  cell = widen(c, cell, 0);
  auto clip = [&](Value v, int64_t limit) {
    return limit > 0 ? c.max(c.min(v, c.likeInt(v, limit)), c.likeInt(v, -limit)) : v;
  };
  Value forget = gate(1, given[1], output, cell);
  Value in = cifg ? c.sub(c.likeInt(forget, 32767), forget) : gate(0, given[0], output, cell);
  Value fresh = gate(2, given[2], output, cell);
  Value kept = roundingShift(c, c.mul(forget, cell), 15);
  Value next = saturate16(c, c.add(kept, roundingShift(c, c.mul(in, fresh), 30 + cellExponent)));
  next = clip(next, cellLimit);
  Value out = gate(3, given[3], output, next);
  Value result = multiplyBy(c, c.mul(out, fixedTanh(c, next, 15 + cellExponent)), hidden);
  // before a projection the reference kernel takes the zero point off, and adds it again in the products
  const int64_t zero = projected ? -hiddenZero : hiddenZero;
  result = finish(c, result, zero, {-128, 127}, i8);
  if (projected) {
    Value bias = c.hasInput(l.projection + 1) ? c.input(l.projection + 1) : Value();
    result = product(c, result, zero, l.projection, bias, projection);
    result = finish(c, result, outputZero, {-128, 127}, c.b.getI32Type());
    result = c.convert(clip(result, outputLimit), i8);
  }
  return {result, c.convert(next, i16)};
}

} // namespace

LogicalResult integerLstm(OpContext &c, const Lstm &l, bool isSequence, bool timeMajor) {
  Value x = c.input(0);
  IntegerCell lstm(c, l);
  if (!x || failed(lstm.prepare()))
    return failure();
  const bool swap = isSequence && !timeMajor;
  auto result = runLstm(c, l, lstm, swap ? swapTime(c, x) : x, isSequence);
  return failed(result) ? failure() : c.setResult(0, swap ? swapTime(c, *result) : *result);
}

LogicalResult integerSvdf(OpContext &c) {
  const auto &o = c.options<tfl::SVDFOptions>();
  Value x = c.input(0), time = c.input(2);
  auto in = c.perTensor(c.inputInfo(0)), features = c.perTensor(c.inputInfo(1)), over = c.perTensor(c.inputInfo(2));
  auto kept = c.perTensor(c.inputInfo(4)), out = c.perTensor(c.outputInfo(0));
  if (!x || !time || failed(in) || failed(features) || failed(over) || failed(kept) || failed(out))
    return failure();
  if (c.inputInfo(0).type != tfl::TensorType::INT8 || c.inputInfo(4).type != tfl::TensorType::INT16)
    return c.error("expected an input of INT8 and a state of INT16");
  auto state = c.translator.readState(c, 4);
  if (failed(state))
    return failure();
  auto filters = constantOf(c.dim(time, 0)), memory = constantOf(c.dim(time, 1)), batch = constantOf(c.dim(*state, 0));
  if (!filters || !memory || !batch || Emitter::rank(x) != 2 || o.rank() <= 0 || *filters % o.rank() ||
      !c.ctx.unify(c.dim(x, 0), c.size(*batch), c.nodeName))
    return c.error("the sizes of its inputs do not fit");
  Type i32 = c.b.getI32Type(), i16 = Emitter::elementType(*state);
  Value fresh = product(c, x, in->second, 1, {}, multiplierOf(double(in->first) * features->first / kept->first));
  if (!fresh)
    return failure();
  fresh = c.convert(saturate16(c, fresh), i16);
  Value past = c.reshape(*state, {*batch, *filters, *memory});
  past = c.concat({c.sliceDim(past, 2, c.size(1), c.size(*memory)), c.reshape(fresh, {*batch, *filters, 1})}, 2);
  if (failed(c.translator.writeState(c, 4, c.reshape(past, {*batch, *filters * *memory}))))
    return failure();
  Value sums = c.reduceSum(c.mul(c.convert(past, i32), widen(c, time, 0)), {2});
  sums = c.reduceSum(c.reshape(sums, {*batch, *filters / o.rank(), o.rank()}), {2});
  if (c.hasInput(3))
    sums = c.add(sums, c.input(3));
  sums = multiplyBy(c, sums, multiplierOf(double(kept->first) * over->first / out->first));
  return c.setResult(0, finish(c, sums, out->second, {-128, 127}, c.elementOf(c.outputInfo(0))));
}

} // namespace lathe::tflite
