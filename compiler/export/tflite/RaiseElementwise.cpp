// Elementwise ops, one operator each or a few where the format has no name for the function.
#include "compiler/export/tflite/Raiser.h"

#include "passes/simplify/Match.h"

using namespace mlir;

namespace lathe::tflwrite {
namespace {

RankedTensorType resultType(Operation *op) { return cast<RankedTensorType>(op->getResult(0).getType()); }

/// Integers of 8 and 16 bits would be quantized to the kernels: their arithmetic is done in 32 bits, which CAST cuts off again.
Type workType(Type element, Raiser &r) {
  auto integer = dyn_cast<IntegerType>(element);
  return integer && (integer.getWidth() == 8 || integer.getWidth() == 16) ? Type(r.b.getI32Type()) : element;
}

LogicalResult unary(Operation *op, Raiser &r, StringRef name) {
  RankedTensorType type = resultType(op);
  Type work = workType(type.getElementType(), r);
  if (work == type.getElementType())
    return r.replace(op, r.make(name, op->getOperand(0), type));
  Value wide = r.cast(op->getOperand(0), work);
  return r.replace(op, r.cast(r.make(name, wide, hlo::withElementType(type, work)), type.getElementType()));
}

#define UNARY(FUNCTION, NAME) \
  LogicalResult FUNCTION(Operation *op, Raiser &r) { return unary(op, r, NAME); }
UNARY(ceil, "CEIL")
UNARY(cosine, "COS")
UNARY(exponential, "EXP")
UNARY(floor, "FLOOR")
UNARY(log, "LOG")
UNARY(logistic, "LOGISTIC")
UNARY(negate, "NEG")
UNARY(roundEven, "ROUND")
UNARY(rsqrt, "RSQRT")
UNARY(sine, "SIN")
UNARY(sqrt, "SQRT")
UNARY(tanh, "TANH")
#undef UNARY

LogicalResult abs(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  if (!type.getElementType().isInteger(64))
    return unary(op, r, "ABS");
  Value x = op->getOperand(0);
  return r.replace(op, r.binary("MAXIMUM", x, r.make("NEG", x, type), type));
}

LogicalResult sign(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  if (!type.getElementType().isInteger(64))
    return unary(op, r, "SIGN");
  Value x = op->getOperand(0), one = r.scalar(1, type.getElementType()), minusOne = r.scalar(-1, type.getElementType());
  return r.replace(op, r.binary("MAXIMUM", r.binary("MINIMUM", x, one, type), minusOne, type));
}

LogicalResult square(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  if (type.getElementType().isF32())
    return unary(op, r, "SQUARE");
  Value x = op->getOperand(0);
  return r.replace(op, r.binary("MUL", x, x, type));
}

LogicalResult tan(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  Value x = op->getOperand(0);
  return r.replace(op, r.binary("DIV", r.make("SIN", x, type), r.make("COS", x, type), type));
}

/// exp(x) - 1 = tanh(x / 2) (exp(x) + 1), without the cancellation near 0.
LogicalResult expm1(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  Value x = op->getOperand(0);
  Value half = r.binary("MUL", x, r.scalar(0.5, type.getElementType()), type);
  Value sum = r.binary("ADD", r.make("EXP", x, type), r.scalar(1, type.getElementType()), type);
  if (!half || !sum)
    return failure();
  return r.replace(op, r.binary("MUL", r.make("TANH", half, type), sum, type));
}

/// log(1 + x) with u the rounded 1 + x: x log(u) / (u - 1) repairs the rounding, x where u is 1, log(u) where x alone is left.
LogicalResult log1p(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op), flags = hlo::withElementType(type, r.b.getI1Type());
  Value x = op->getOperand(0), one = r.scalar(1, type.getElementType());
  Value u = r.binary("ADD", x, one, type), log = r.make("LOG", u, type);
  Value ratio = r.binary("DIV", log, r.binary("SUB", u, one, type), type);
  Value repaired = r.binary("MUL", x, ratio, type);
  Value large = r.make("SELECT_V2", {r.binary("EQUAL", u, x, flags), log, repaired}, type);
  return r.replace(op, r.make("SELECT_V2", {r.binary("EQUAL", u, one, flags), x, large}, type));
}

LogicalResult isNan(Operation *op, Raiser &r) {
  Value x = op->getOperand(0);
  return r.replace(op, r.binary("NOT_EQUAL", x, x, resultType(op)));
}

LogicalResult isFinite(Operation *op, Raiser &r) {
  Value x = op->getOperand(0);
  RankedTensorType type = hlo::tensorType(x);
  if (!type.getElementType().isF32())
    return r.refuse("only for elements of type f32");
  // a comparison with NaN is false
  return r.replace(op, r.binary("LESS_EQUAL", r.make("ABS", x, type), r.scalar(3.4028234663852886e38, type.getElementType()), resultType(op)));
}

LogicalResult isInf(Operation *op, Raiser &r) {
  Value x = op->getOperand(0);
  RankedTensorType type = hlo::tensorType(x);
  if (!type.getElementType().isF32())
    return r.refuse("only for elements of type f32");
  if (isa<hlo::IsInfOp>(op))
    x = r.make("ABS", x, type);
  bool negative = isa<hlo::IsNegInfOp>(op);
  Value limit = r.scalar(negative ? -3.4028234663852886e38 : 3.4028234663852886e38, type.getElementType());
  return r.replace(op, r.binary(negative ? "LESS" : "GREATER", x, limit, resultType(op)));
}

LogicalResult logicalNot(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  if (type.getElementType().isInteger(1))
    return unary(op, r, "LOGICAL_NOT");
  if (!type.getElementType().isSignlessInteger(32))
    return r.refuse("only for bool and i32");
  return r.replace(op, r.binary("SUB", r.scalar(-1, type.getElementType()), op->getOperand(0), type));
}

LogicalResult convert(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  Value x = op->getOperand(0);
  Type from = hlo::elementType(x), to = type.getElementType();
  if (from.isF16() && to.isF32()) // of weights in f16 above all
    return r.replace(op, r.makeMany("DEQUANTIZE", x, type)->getResult(0));
  if (to.isInteger(1) && !from.isInteger(1)) // CAST would keep the lowest bits
    return r.replace(op, r.binary("NOT_EQUAL", r.cast(x, workType(from, r)), r.scalar(0, workType(from, r)), type));
  if (!takesType("CAST", to))
    return r.refuse("CAST does not give elements of this type");
  return r.replace(op, r.cast(x, to));
}

LogicalResult binaryOp(Operation *op, Raiser &r, StringRef name) {
  RankedTensorType type = resultType(op);
  SmallVector<Value> operands = r.narrowOperands(op->getOperands(), type, broadcastRank(name));
  Type element = hlo::elementType(op->getOperand(0)), work = workType(element, r);
  if (work != element)
    for (Value &v : operands)
      if (!(v = r.cast(v, work)))
        return failure();
  bool compares = isa<hlo::CompareOp>(op);
  Value result = r.make(name, operands, compares ? type : hlo::withElementType(type, work));
  return r.replace(op, compares ? result : r.cast(result, type.getElementType()));
}

LogicalResult add(Operation *op, Raiser &r) {
  if (resultType(op).getElementType().isInteger(1))
    return binaryOp(op, r, "LOGICAL_OR");
  return binaryOp(op, r, "ADD");
}
LogicalResult subtract(Operation *op, Raiser &r) { return binaryOp(op, r, "SUB"); }
LogicalResult multiply(Operation *op, Raiser &r) {
  if (resultType(op).getElementType().isInteger(1))
    return binaryOp(op, r, "LOGICAL_AND");
  return binaryOp(op, r, "MUL");
}
LogicalResult divide(Operation *op, Raiser &r) { return binaryOp(op, r, "DIV"); }
LogicalResult power(Operation *op, Raiser &r) { return binaryOp(op, r, "POW"); }
LogicalResult atan2(Operation *op, Raiser &r) { return binaryOp(op, r, "ATAN2"); }
LogicalResult maximum(Operation *op, Raiser &r) {
  return binaryOp(op, r, resultType(op).getElementType().isInteger(1) ? "LOGICAL_OR" : "MAXIMUM");
}
LogicalResult minimum(Operation *op, Raiser &r) {
  return binaryOp(op, r, resultType(op).getElementType().isInteger(1) ? "LOGICAL_AND" : "MINIMUM");
}

LogicalResult logical(Operation *op, Raiser &r, StringRef name) {
  if (!resultType(op).getElementType().isInteger(1))
    return r.refuse("there is none for bits of integers");
  return binaryOp(op, r, name);
}
LogicalResult logicalAnd(Operation *op, Raiser &r) { return logical(op, r, "LOGICAL_AND"); }
LogicalResult logicalOr(Operation *op, Raiser &r) { return logical(op, r, "LOGICAL_OR"); }
LogicalResult bitXor(Operation *op, Raiser &r) {
  if (resultType(op).getElementType().isInteger(1))
    return binaryOp(op, r, "NOT_EQUAL");
  RankedTensorType type = resultType(op);
  return r.replace(op, r.make("BITWISE_XOR", r.narrowOperands(op->getOperands(), type, broadcastRank("BITWISE_XOR")), type));
}

/// The remainder takes the dividend's sign; FLOOR_MOD takes the divisor's.
LogicalResult remainder(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  Type element = type.getElementType(), work = workType(element, r);
  Value x = op->getOperand(0), y = op->getOperand(1);
  if (work != element && (!(x = r.cast(x, work)) || !(y = r.cast(y, work))))
    return failure();
  RankedTensorType wide = hlo::withElementType(type, work);
  auto absolute = [&](Value v) {
    return work.isInteger(64) ? r.binary("MAXIMUM", v, r.make("NEG", v, wide), wide) : r.make("ABS", v, wide);
  };
  Value size = r.binary("FLOOR_MOD", absolute(x), absolute(y), wide);
  Value negative = r.binary("LESS", x, r.scalar(0, work), hlo::withElementType(type, r.b.getI1Type()));
  Value result = size ? r.make("SELECT_V2", {negative, r.make("NEG", size, wide), size}, wide) : Value();
  return r.replace(op, r.cast(result, element));
}

LogicalResult compare(Operation *op, Raiser &r) {
  auto compare = cast<hlo::CompareOp>(op);
  if (compare.getCompareType() == hlo::ComparisonType::TOTALORDER && isa<FloatType>(hlo::elementType(compare.getLhs())))
    return r.refuse("there is none for the total order of floats");
  static const char *const names[] = {"EQUAL", "NOT_EQUAL", "GREATER_EQUAL", "GREATER", "LESS_EQUAL", "LESS"};
  return binaryOp(op, r, names[static_cast<int>(compare.getComparisonDirection())]);
}

LogicalResult select(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  // the kernel broadcasts four dimensions; without a broadcast it takes more
  SmallVector<Value> operands = r.narrowOperands(op->getOperands(), type, broadcastRank("SELECT_V2"));
  if (hlo::tensorType(operands[0]).getRank() == 0 && type.getRank() > broadcastRank("SELECT_V2"))
    return r.refuse("SELECT_V2 broadcasts at most 4 dimensions");
  return r.replace(op, r.make("SELECT_V2", operands, type));
}

LogicalResult clamp(Operation *op, Raiser &r) {
  auto clamp = cast<hlo::ClampOp>(op);
  RankedTensorType type = resultType(op);
  auto pair = [&](StringRef name, Value x, Value bound) {
    SmallVector<Value> operands = r.narrowOperands({x, bound}, type, broadcastRank(name));
    return r.make(name, operands, type);
  };
  Value low = pair("MAXIMUM", clamp.getOperand(), clamp.getMin());
  return r.replace(op, low ? pair("MINIMUM", low, clamp.getMax()) : Value());
}

} // namespace

void addElementwiseHandlers(HandlerTable &t) {
  const std::pair<const char *, Handler> all[] = {
      {"abs", abs}, {"add", add}, {"and", logicalAnd}, {"atan2", atan2}, {"ceil", ceil}, {"clamp", clamp}, {"compare", compare},
      {"convert", convert}, {"cosine", cosine}, {"divide", divide}, {"exponential", exponential}, {"exponential_minus_one", expm1},
      {"floor", floor}, {"is_finite", isFinite}, {"is_inf", isInf}, {"is_nan", isNan}, {"is_neg_inf", isInf}, {"is_pos_inf", isInf},
      {"log", log}, {"log_plus_one", log1p}, {"logistic", logistic}, {"maximum", maximum}, {"minimum", minimum}, {"multiply", multiply},
      {"negate", negate}, {"not", logicalNot}, {"or", logicalOr}, {"power", power}, {"remainder", remainder},
      {"round_nearest_even", roundEven}, {"rsqrt", rsqrt}, {"select", select}, {"sign", sign}, {"sine", sine}, {"sqrt", sqrt},
      {"square", square}, {"subtract", subtract}, {"tan", tan}, {"tanh", tanh}, {"xor", bitXor}};
  for (auto &[name, handler] : all)
    t[name].push_back(handler);
}

} // namespace lathe::tflwrite
