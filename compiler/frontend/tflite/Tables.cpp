// Logistic and tanh, which quantized types have by tables.
#include "compiler/frontend/tflite/Tables.h"
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {

SmallVector<int64_t> table16(llvm::function_ref<double(double)> function, double low, double high) {
  constexpr int count = 513;
  constexpr double one = 32768;
  const double step = (high - low) / (count - 1);
  auto clamp = [](double v) { return int64_t(std::min(std::max(v, -one), one - 1)); };
  SmallVector<int64_t> table;
  for (int i = 0; i + 1 < count; ++i) {
    const double here = std::round(function(low + i * step) * one);
    const double between = std::round((function(low + (i + 1) * step) * one + here) / 2);
    const double middle = std::round(function(low + i * step + step / 2) * one);
    table.push_back(clamp(here - std::round((between - middle) / 2)));
  }
  table.push_back(clamp(std::round(function(high) * one)));
  return table;
}

Value entries(OpContext &c, ArrayRef<int64_t> table, Value index) {
  auto numbers = hlo::GatherDimensionNumbersAttr::get(c.b.getContext(), {}, {0}, {}, {}, {0}, Emitter::rank(index));
  return c.make<hlo::GatherOp>(c.constantInts(table, c.b.getI32Type()), index, numbers, ArrayRef<int64_t>{1}, false);
}

static Value shiftRight(OpContext &c, Value x, int64_t bits) {
  return c.binary<hlo::ShiftRightArithmeticOp>(x, c.likeInt(x, bits));
}

Value lookUp16(OpContext &c, Value x, ArrayRef<int64_t> table) {
  Value index = c.add(shiftRight(c, x, 7), c.likeInt(x, 256)), part = c.binary<hlo::AndOp>(x, c.likeInt(x, 127));
  Value here = entries(c, table, index), next = entries(c, table, c.add(index, c.likeInt(index, 1)));
  Value delta = c.add(c.mul(c.sub(next, here), part), c.likeInt(x, 64));
  return c.add(here, shiftRight(c, delta, 7));
}

namespace {

/// The logistic function at multiples of 1/24, times 2^16, moved by half of what a line to the next entry is off in the middle.
SmallVector<int64_t> logisticTable() {
  auto function = [](double i) { return 65536 / (1 + std::exp(-i / 24)); };
  SmallVector<int64_t> table;
  for (int i = 0; i < 256; ++i) {
    const double off = function(i + 0.5) - (function(i) + function(i + 1)) / 2;
    table.push_back(std::min<int64_t>(65535, std::llround(function(i) + off / 2)));
  }
  table.back() = 65535; // beyond it is 1
  return table;
}

/// Logistic or tanh (which is 2 logistic(2x) - 1) of 16-bit numbers: |3x| with 12 bits of fraction, interpolated in the table.
LogicalResult fixedPoint16(OpContext &c, bool tanh) {
  Value x = c.input(0);
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (!x || failed(in) || failed(out))
    return failure();
  if (in->second || out->second || out->first != 1.0f / 32768)
    return c.error("expected zero points 0 and an output scale of 1/32768");
  int exponent = 0, left = 0;
  int64_t factor = 0;
  const bool power = std::frexp(in->first, &exponent) == 0.5f;
  const int shift = 12 + exponent - 1;
  if (power && (shift == 0 || (tanh && shift == 1))) {
    factor = int64_t(3) << shift;
  } else {
    double real = in->first * 4096.0 * 3;
    for (; real <= 32767.0 / 2 && left <= 30; ++left)
      real *= 2;
    factor = int16_t(real);
  }
  Value v = c.mul(widen(c, x, 0), c.splatInt(factor, c.dims(x), c.b.getI32Type()));
  if (left > 0)
    v = shiftRight(c, c.add(v, c.likeInt(v, int64_t(1) << (left - 1))), left);
  const int bits = tanh ? 8 : 9;
  Value size = c.unary<hlo::AbsOp>(v), high = shiftRight(c, size, bits);
  Value part = c.binary<hlo::AndOp>(size, c.likeInt(size, (1 << bits) - 1));
  SmallVector<int64_t> table = logisticTable();
  Value index = c.min(high, c.likeInt(high, 254));
  Value here = entries(c, table, index), next = entries(c, table, c.add(index, c.likeInt(index, 1)));
  Value inside = c.add(c.mul(here, c.likeInt(here, 1 << bits)), c.mul(part, c.sub(next, here)));
  Value beyond = c.likeInt(inside, tanh ? 0xFFFF << 8 : 0x7FFF << 10);
  Value r = c.select(c.compare(Compare::GE, high, c.likeInt(high, 255)), beyond, inside);
  Value positive, negative;
  if (tanh) {
    positive = c.add(r, c.likeInt(r, (1 << 7) - (1 << 23)));
    negative = c.add(c.neg(r), c.likeInt(r, (1 << 23) + (1 << 7) - 1));
  } else {
    positive = c.add(r, c.likeInt(r, 1 << 9));
    negative = c.add(c.neg(r), c.likeInt(r, (1 << 25) + (1 << 9) - 1));
  }
  Value chosen = c.select(c.compare(Compare::GE, v, c.likeInt(v, 0)), positive, negative);
  return c.setResult(0, c.convert(shiftRight(c, chosen, tanh ? 8 : 10), c.elementOf(c.outputInfo(0))));
}

} // namespace

void registerTables(OpTable &t) {
  using Op = tfl::BuiltinOperator;
  auto add = [&](Op op, bool tanh, std::function<Value(OpContext &, Value)> make, float (*real)(float)) {
    t.add(op, 1, 1, 3, Float32 | OtherFloat | Quantized, [tanh, make, real](OpContext &c) -> LogicalResult {
      Value x = c.input(0);
      if (!x)
        return failure();
      if (!c.isQuantized(0))
        return c.setResult(0, make(c, x));
      if (c.inputInfo(0).type == tfl::TensorType::INT16)
        return fixedPoint16(c, tanh);
      auto table = tableOf(c, real);
      return failed(table) ? failure() : c.setResult(0, lookUp(c, x, *table, c.elementOf(c.outputInfo(0))));
    });
  };
  add(Op::LOGISTIC, false, [](OpContext &c, Value x) { return c.unary<hlo::LogisticOp>(x); },
      [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
  add(Op::TANH, true, [](OpContext &c, Value x) { return c.unary<hlo::TanhOp>(x); }, [](float x) { return std::tanh(x); });
}

} // namespace lathe::tflite
