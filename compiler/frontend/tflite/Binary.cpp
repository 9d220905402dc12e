// Operators of two or three inputs, element by element, with broadcasting.
#include "compiler/frontend/tflite/FixedPoint.h"
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

/// The two inputs of an operator that is TensorFlow's of another name; sizes stay expressions.
LogicalResult asTensorflow(OpContext &c, StringRef op, Activation activation) {
  auto result = c.call(op, {c.value(0), c.value(1)});
  if (failed(result))
    return failure();
  if (activation == Activation::NONE)
    return c.setResult(0, result->front());
  return c.setResult(0, c.activate(c.ctx.materialize(result->front(), c.loc), activation));
}

struct Quantized2 {
  std::pair<float, int64_t> a, b, out;
  std::pair<int64_t, int64_t> range;
};

FailureOr<Quantized2> parameters(OpContext &c, Activation activation) {
  auto a = c.perTensor(c.inputInfo(0)), b = c.perTensor(c.inputInfo(1)), out = c.perTensor(c.outputInfo(0));
  auto range = activationRange(c, c.outputInfo(0), activation);
  if (failed(a) || failed(b) || failed(out) || failed(range))
    return failure();
  return Quantized2{*a, *b, *out, *range};
}

/// Sums and differences: both sides at twice the larger scale, with as many bits to the left as fit.
LogicalResult quantizedSum(OpContext &c, Activation activation, bool subtract, bool powersOfTwo) {
  auto q = parameters(c, activation);
  Value x = c.input(0), y = c.input(1);
  if (failed(q) || !x || !y)
    return failure();
  const bool is16 = c.outputInfo(0).type == tfl::TensorType::INT16;
  auto log2 = [](float scale) -> std::optional<int> {
    int e = 0;
    return std::frexp(scale, &e) == 0.5f ? std::optional<int>(e - 1) : std::nullopt;
  };
  auto la = log2(q->a.first), lb = log2(q->b.first), lo = log2(q->out.first);
  if (is16 && powersOfTwo && la && lb && lo && !q->a.second && !q->b.second && !q->out.second) {
    // only shifts, of which one is none
    if (*la > *lo || *lb > *lo || (*la != *lo && *lb != *lo))
      return c.error("the scales of its inputs do not fit that of the output");
    Value u = roundingShift(c, widen(c, x, 0), *lo - *la), v = roundingShift(c, widen(c, y, 0), *lo - *lb);
    Value sum = subtract ? c.sub(u, v) : c.add(u, v);
    sum = finish(c, sum, 0, rangeOf(c.outputInfo(0).type), c.b.getI32Type());
    return c.setResult(0, finish(c, sum, 0, q->range, c.elementOf(c.outputInfo(0))));
  }
  return c.setResult(0, quantize::sum(c, x, paramsOf(q->a), y, paramsOf(q->b), paramsOf(q->out), q->range, is16 ? 15 : 20, subtract,
                                      c.elementOf(c.outputInfo(0))));
}

LogicalResult quantizedProduct(OpContext &c, Activation activation) {
  auto q = parameters(c, activation);
  Value x = c.input(0), y = c.input(1);
  if (failed(q) || !x || !y)
    return failure();
  return c.setResult(0, quantize::product(c, x, paramsOf(q->a), y, paramsOf(q->b), paramsOf(q->out), q->range,
                                          c.elementOf(c.outputInfo(0))));
}

/// Quotients by the reciprocal of the divisor, with as many bits as its size and that of the dividend leave.
LogicalResult quantizedQuotient(OpContext &c, Activation activation) {
  auto q = parameters(c, activation);
  Value x = c.input(0), y = c.input(1);
  if (failed(q) || !x || !y)
    return failure();
  Value dividend = widen(c, x, -q->a.second), divisor = widen(c, y, -q->b.second);
  c.check(c.compare(Compare::NE, divisor, c.likeInt(divisor, 0)), "division by zero");
  Value isNegative = c.compare(Compare::LT, divisor, c.likeInt(divisor, 0));
  Factors inverse = reciprocal(c, c.unary<hlo::AbsOp>(divisor));
  dividend = c.select(isNegative, c.neg(dividend), dividend);
  // bits that only repeat the sign
  Value bits = c.binary<hlo::XorOp>(dividend, c.binary<hlo::ShiftRightArithmeticOp>(dividend, c.likeInt(dividend, 31)));
  Value zeros = c.unary<hlo::ClzOp>(bits), room = c.sub(zeros, c.likeInt(zeros, 1));
  Value quotient = multiplyBy(c, c.binary<hlo::ShiftLeftOp>(dividend, room), {inverse.value, c.likeInt(inverse.value, 0)});
  const Multiplier scale = multiplierOf(double(q->a.first / (q->b.first * q->out.first)));
  Value shift = c.sub(c.add(inverse.shift, room), c.likeInt(room, scale.shift));
  shift = c.max(shift, c.likeInt(shift, 0));
  Value result = multiplyBy(c, quotient, {c.splatInt(scale.value, c.dims(quotient), c.b.getI32Type()), shift});
  return c.setResult(0, finish(c, result, q->out.second, q->range, c.elementOf(c.outputInfo(0))));
}

LogicalResult squaredDifference(OpContext &c) {
  if (!c.isQuantized(0))
    return asTensorflow(c, "SquaredDifference", Activation::NONE);
  auto q = parameters(c, Activation::NONE);
  Value x = c.input(0), y = c.input(1);
  if (failed(q) || !x || !y)
    return failure();
  constexpr int left = 7;
  const double twice = 2 * std::max(q->a.first, q->b.first);
  const double output = (twice * twice) / ((1 << (left * 2)) * q->out.first);
  auto side = [&](Value v, std::pair<float, int64_t> in) {
    Value wide = widen(c, v, -in.second);
    return multiplyBy(c, c.binary<hlo::ShiftLeftOp>(wide, c.likeInt(wide, left)), multiplierOf(in.first / twice));
  };
  Value d = c.sub(side(x, q->a), side(y, q->b));
  return c.setResult(0, finish(c, multiplyBy(c, c.mul(d, d), multiplierOf(output)), q->out.second, q->range,
                               c.elementOf(c.outputInfo(0))));
}

/// Comparisons of quantized numbers compare both at 8 bits more, each scaled by its own scale.
LogicalResult compare(OpContext &c, StringRef op, Compare direction) {
  if (!c.isQuantized(0) || c.inputInfo(0).type == tfl::TensorType::INT16) // 16 bits are compared as they are
    return asTensorflow(c, op, Activation::NONE);
  auto a = c.perTensor(c.inputInfo(0)), b = c.perTensor(c.inputInfo(1));
  Value x = c.input(0), y = c.input(1);
  if (failed(a) || failed(b) || !x || !y)
    return failure();
  auto side = [&](Value v, std::pair<float, int64_t> in) {
    Value wide = widen(c, v, -in.second);
    return multiplyBy(c, c.binary<hlo::ShiftLeftOp>(wide, c.likeInt(wide, 8)), multiplierOf(in.first));
  };
  return c.setResult(0, c.compare(direction, side(x, *a), side(y, *b)));
}

/// Maximum and minimum work on elements as they are.
LogicalResult extreme(OpContext &c, bool largest) {
  if (c.isQuantized(0)) {
    if (!(c.inputInfo(0).quantization == c.outputInfo(0).quantization) ||
        !(c.inputInfo(1).quantization == c.outputInfo(0).quantization))
      return c.error("inputs and output must have the same scale and zero point");
  }
  return asTensorflow(c, largest ? "Maximum" : "Minimum", Activation::NONE);
}

LogicalResult select(OpContext &c, StringRef op) {
  auto result = c.call(op, {c.value(0), c.value(1), c.value(2)}, {}, c.elementOf(c.outputInfo(0)));
  return failed(result) ? failure() : c.setResult(0, result->front());
}

LogicalResult addN(OpContext &c) {
  Value sum = c.input(0);
  for (unsigned i = 1; i < c.numInputs(); ++i)
    sum = c.add(sum, c.input(i));
  return c.setResult(0, sum);
}

} // namespace

void registerBinary(OpTable &t) {
  t.add(Op::ADD, 2, 2, 5, Numbers | Quantized, [](OpContext &c) {
    const auto &o = c.options<tfl::AddOptions>();
    return c.isQuantized(0) ? quantizedSum(c, o.fused_activation_function(), false, o.pot_scale_int16())
                            : asTensorflow(c, "AddV2", o.fused_activation_function());
  });
  t.add(Op::SUB, 2, 2, 5, Numbers | Quantized, [](OpContext &c) {
    const auto &o = c.options<tfl::SubOptions>();
    return c.isQuantized(0) ? quantizedSum(c, o.fused_activation_function(), true, o.pot_scale_int16())
                            : asTensorflow(c, "Sub", o.fused_activation_function());
  });
  t.add(Op::MUL, 2, 2, 7, Numbers | Quantized | Complexes, [](OpContext &c) {
    Activation a = c.options<tfl::MulOptions>().fused_activation_function();
    return c.isQuantized(0) ? quantizedProduct(c, a) : asTensorflow(c, "Mul", a);
  });
  t.add(Op::DIV, 2, 2, 2, Float32 | OtherFloat | Ints | Quantized, [](OpContext &c) {
    if (c.isQuantized(0))
      return quantizedQuotient(c, c.options<tfl::DivOptions>().fused_activation_function());
    return asTensorflow(c, c.isFloatInput(0) ? "RealDiv" : "TruncateDiv",
                        c.options<tfl::DivOptions>().fused_activation_function());
  });
  t.add(Op::SQUARED_DIFFERENCE, 2, 2, 2, Numbers | Quant8, squaredDifference);
  t.add(Op::MAXIMUM, 2, 2, 4, Numbers | Quantized, [](OpContext &c) { return extreme(c, true); });
  t.add(Op::MINIMUM, 2, 2, 4, Numbers | Quantized, [](OpContext &c) { return extreme(c, false); });
  struct {
    Op op;
    const char *name;
    unsigned types;
    int version;
  } same[] = {{Op::FLOOR_DIV, "FloorDiv", Float32 | Ints, 3}, {Op::FLOOR_MOD, "FloorMod", Float32 | Ints, 2},
              {Op::POW, "Pow", Float32 | Ints, 1},            {Op::ATAN2, "Atan2", Float32 | OtherFloat, 1},
              {Op::LOGICAL_AND, "LogicalAnd", Bools, 1},      {Op::LOGICAL_OR, "LogicalOr", Bools, 1},
              {Op::BITWISE_XOR, "BitwiseXor", Ints, 1},       {Op::RIGHT_SHIFT, "RightShift", Ints, 1}};
  for (auto &s : same)
    t.add(s.op, 2, 2, s.version, s.types, [name = s.name](OpContext &c) { return asTensorflow(c, name, Activation::NONE); });
  struct {
    Op op;
    const char *name;
    Compare direction;
    int version;
  } comparisons[] = {{Op::EQUAL, "Equal", Compare::EQ, 4},     {Op::NOT_EQUAL, "NotEqual", Compare::NE, 3},
                     {Op::LESS, "Less", Compare::LT, 3},       {Op::LESS_EQUAL, "LessEqual", Compare::LE, 3},
                     {Op::GREATER, "Greater", Compare::GT, 3}, {Op::GREATER_EQUAL, "GreaterEqual", Compare::GE, 3}};
  for (auto &s : comparisons)
    t.add(s.op, 2, 2, s.version, Numbers | Quantized | Bools,
          [name = s.name, d = s.direction](OpContext &c) { return compare(c, name, d); });
  t.add(Op::SELECT, 3, 3, 4, Bools, [](OpContext &c) { return select(c, "Select"); });
  t.add(Op::SELECT_V2, 3, 3, 2, Bools, [](OpContext &c) { return select(c, "SelectV2"); });
  t.add(Op::ADD_N, 1, OpTable::kMany, 1, Float32 | Ints, addN);
}

} // namespace lathe::tflite
