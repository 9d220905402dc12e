// Activations and functions of one tensor that are several ops in hlo: RELU, RELU6, LEAKY_RELU, PRELU, ELU, GELU, HARD_SWISH, and erf.
#include "compiler/export/tflite/Raiser.h"

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace lathe::tflwrite {
namespace {

bool isF32(Value v) { return hlo::elementType(v).isF32(); }
bool close(double a, double b) { return std::abs(a - b) <= 2e-6 * std::max(std::abs(a), std::abs(b)); }

/// Of a commutative op: the operand beside a number, and the number.
Value besideNumber(Operation *op, double &number) {
  for (unsigned i : {1u, 0u})
    if (auto found = splatNumber(op->getOperand(i))) {
      number = *found;
      return op->getOperand(1 - i);
    }
  return {};
}

LogicalResult atLeast(Operation *op, Raiser &r) {
  double low;
  Value x = besideNumber(op, low);
  if (x && isF32(x) && low == 0)
    return r.replace(op, r.make("RELU", x, hlo::tensorType(x)));
  return failure();
}

/// min(max(x, low), high) as one operator, also as hlo.clamp.
LogicalResult between(Operation *op, Value x, double low, double high, Raiser &r) {
  StringRef name = low == 0 && high == 6    ? "RELU6"
                   : low == 0 && high == 1  ? "RELU_0_TO_1"
                   : low == -1 && high == 1 ? "RELU_N1_TO_1"
                                            : "";
  if (name.empty() || !isF32(x))
    return failure();
  return r.replace(op, r.make(name, x, hlo::tensorType(x)));
}

LogicalResult atMost(Operation *op, Raiser &r) {
  double low, high;
  Value inner = besideNumber(op, high);
  auto max = definedBy<hlo::MaxOp>(inner);
  Value x = max ? besideNumber(max, low) : Value();
  return x ? between(op, x, low, high, r) : failure();
}

LogicalResult clamp(Operation *op, Raiser &r) {
  auto clamp = cast<hlo::ClampOp>(op);
  auto low = splatNumber(clamp.getMin()), high = splatNumber(clamp.getMax());
  return low && high ? between(op, clamp.getOperand(), *low, *high, r) : failure();
}

/// The slope of x where it is x times something that broadcasts; null for other values.
Value slopeOf(Value v, Value x) {
  auto multiply = definedBy<hlo::MulOp>(v);
  if (!multiply)
    return {};
  if (multiply.getLhs() == x)
    return multiply.getRhs();
  return multiply.getRhs() == x ? multiply.getLhs() : Value();
}

/// x above 0, something else below.
LogicalResult choice(Operation *op, Raiser &r) {
  auto select = cast<hlo::SelectOp>(op);
  auto compare = definedBy<hlo::CompareOp>(select.getPred());
  if (!compare || !isF32(op->getResult(0)) || !isSplat(compare.getRhs(), 0))
    return failure();
  using D = hlo::ComparisonDirection;
  D direction = compare.getComparisonDirection();
  Value x = compare.getLhs(), above = select.getOnTrue(), below = select.getOnFalse();
  if (direction == D::LT || direction == D::LE)
    std::swap(above, below);
  else if (direction != D::GT && direction != D::GE)
    return failure();
  RankedTensorType type = hlo::tensorType(op->getResult(0));
  if (above != x || hlo::tensorType(x) != type)
    return failure();
  if (auto expm1 = definedBy<hlo::Expm1Op>(below); expm1 && expm1.getOperand() == x)
    return r.replace(op, r.make("ELU", x, type));
  Value slope = slopeOf(below, x);
  if (!slope)
    return failure();
  if (auto number = splatNumber(slope))
    return r.replace(op, r.make("LEAKY_RELU", x, type, {{"alpha", r.real(*number)}}));
  // the kernel broadcasts slopes of up to four dimensions, and nothing else
  Value slopes = type.getRank() <= 4 ? r.narrow(slope) : Value();
  return slopes && isWeights(slopes) ? r.replace(op, r.make("PRELU", {x, slopes}, type)) : failure();
}

/// A function of x as a polynomial of degree 3.
using Polynomial = std::array<double, 4>;

std::optional<Polynomial> times(const Polynomial &a, const Polynomial &b) {
  Polynomial p = {};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      if (a[i] * b[j] == 0)
        continue;
      if (i + j > 3)
        return std::nullopt;
      p[i + j] += a[i] * b[j];
    }
  return p;
}

std::optional<Polynomial> polynomial(Value v, Value x, int depth = 8) {
  if (v == x)
    return Polynomial{0, 1, 0, 0};
  if (auto number = splatNumber(v))
    return Polynomial{*number, 0, 0, 0};
  Operation *op = v.getDefiningOp();
  if (!op || depth == 0 || op->getNumOperands() == 0 || op->getNumOperands() > 2)
    return std::nullopt;
  if (!isa<hlo::NegOp, hlo::SquareOp, hlo::AddOp, hlo::SubtractOp, hlo::MulOp, hlo::DivOp, hlo::PowOp>(op))
    return std::nullopt;
  auto a = polynomial(op->getOperand(0), x, depth - 1);
  if (!a)
    return a;
  if (isa<hlo::NegOp>(op))
    return times(*a, {-1, 0, 0, 0});
  if (isa<hlo::SquareOp>(op))
    return times(*a, *a);
  auto b = polynomial(op->getOperand(1), x, depth - 1);
  if (!b)
    return b;
  const bool number = (*b)[1] == 0 && (*b)[2] == 0 && (*b)[3] == 0;
  if (isa<hlo::DivOp>(op))
    return number && (*b)[0] != 0 ? times(*a, {1 / (*b)[0], 0, 0, 0}) : std::nullopt;
  if (isa<hlo::PowOp>(op)) {
    if (!number || ((*b)[0] != 2 && (*b)[0] != 3))
      return std::nullopt;
    auto square = times(*a, *a);
    return (*b)[0] == 2 || !square ? square : times(*square, *a);
  }
  if (isa<hlo::MulOp>(op))
    return times(*a, *b);
  for (int i = 0; i < 4; ++i)
    (*a)[i] += isa<hlo::AddOp>(op) ? (*b)[i] : -(*b)[i];
  return a;
}

bool isPolynomial(Value v, Value x, const Polynomial &wanted) {
  auto p = polynomial(v, x);
  if (!p)
    return false;
  for (int i = 0; i < 4; ++i)
    if (wanted[i] == 0 ? (*p)[i] != 0 : !close((*p)[i], wanted[i]))
      return false;
  return true;
}

/// What is left of a factor without its numbers.
Value withoutNumbers(Value v) {
  for (int depth = 0; depth < 4; ++depth) {
    Operation *op = v.getDefiningOp();
    double number;
    Value inner = !op                   ? Value()
                  : isa<hlo::NegOp>(op) ? op->getOperand(0)
                  : isa<hlo::MulOp>(op) ? besideNumber(op, number)
                  : isa<hlo::DivOp>(op) && splatNumber(op->getOperand(1)) ? op->getOperand(0)
                                                                          : Value();
    if (!inner)
      break;
    v = inner;
  }
  return v;
}

void factorsOf(Value v, SmallVectorImpl<Value> &factors, int depth = 3) {
  auto multiply = definedBy<hlo::MulOp>(v);
  if (!multiply || depth == 0) {
    factors.push_back(v);
    return;
  }
  factorsOf(multiply.getLhs(), factors, depth - 1);
  factorsOf(multiply.getRhs(), factors, depth - 1);
}

struct Gate {
  StringRef name; ///< the operator
  Value x;
  double factor; ///< of x beside the gate
  bool approximate;
};

/// A factor that makes a GELU or HARD_SWISH of factor * x; `x` is one of the values that it may be about.
std::optional<Gate> matchGate(Value v, Value x) {
  if (auto erfc = definedBy<hlo::ErfcOp>(v))
    if (isPolynomial(erfc.getOperand(), x, {0, -M_SQRT1_2, 0, 0}))
      return Gate{"GELU", x, 0.5, false};
  if (auto min = definedBy<hlo::MinOp>(v)) {
    double low, high;
    auto max = definedBy<hlo::MaxOp>(besideNumber(min, high));
    Value shifted = max ? besideNumber(max, low) : Value();
    if (shifted && low == 0 && high == 6 && isPolynomial(shifted, x, {3, 1, 0, 0}))
      return Gate{"HARD_SWISH", x, 1.0 / 6, false};
  }
  if (auto add = definedBy<hlo::AddOp>(v)) {
    double one;
    Value inner = besideNumber(add, one);
    if (inner && one == 1) {
      if (auto erf = definedBy<hlo::ErfOp>(inner); erf && isPolynomial(erf.getOperand(), x, {0, M_SQRT1_2, 0, 0}))
        return Gate{"GELU", x, 0.5, false};
      if (auto tanh = definedBy<hlo::TanhOp>(inner);
          tanh && isPolynomial(tanh.getOperand(), x, {0, 0.7978845608, 0, 0.7978845608 * 0.044715}))
        return Gate{"GELU", x, 0.5, true};
    }
  }
  return std::nullopt;
}

LogicalResult gated(Operation *op, Raiser &r) {
  if (!isF32(op->getResult(0)))
    return failure();
  SmallVector<Value> factors;
  double divisor = 1;
  if (auto divide = dyn_cast<hlo::DivOp>(op)) {
    auto number = splatNumber(divide.getRhs());
    if (!number || *number == 0)
      return failure();
    divisor = *number;
    factorsOf(divide.getLhs(), factors);
  } else {
    factorsOf(op->getResult(0), factors);
  }
  RankedTensorType type = hlo::tensorType(op->getResult(0));
  for (auto [at, candidate] : llvm::enumerate(factors)) {
    SmallVector<Value> xs;
    for (auto [other, factor] : llvm::enumerate(factors))
      if (other != at && !splatNumber(factor)) {
        xs.push_back(factor);
        if (Value inner = withoutNumbers(factor); inner != factor)
          xs.push_back(inner);
      }
    for (Value x : xs) {
      auto gate = matchGate(candidate, x);
      if (!gate)
        continue;
      std::optional<Polynomial> rest = Polynomial{1 / divisor, 0, 0, 0};
      for (auto [other, factor] : llvm::enumerate(factors))
        if (auto p = other == at ? Polynomial{1, 0, 0, 0} : polynomial(factor, x); p && rest)
          rest = times(*rest, *p);
        else
          rest.reset();
      if (!rest || !close((*rest)[1], gate->factor) || (*rest)[0] != 0 || (*rest)[2] != 0 || (*rest)[3] != 0)
        continue;
      if (gate->name == "GELU")
        return r.replace(op, r.make("GELU", x, type, {{"approximate", r.flag(gate->approximate)}}));
      return r.replace(op, r.make(gate->name, x, type));
    }
  }
  return failure();
}

} // namespace

void addActivationHandlers(HandlerTable &t) {
  t["maximum"].push_back(atLeast);
  t["minimum"].push_back(atMost);
  t["clamp"].push_back(clamp);
  t["select"].push_back(choice);
  t["multiply"].push_back(gated);
  t["divide"].push_back(gated);
}

} // namespace lathe::tflwrite
