#include "passes/codegen/element/Gelu.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/MathParts.h"

#include "mlir/IR/TypeUtilities.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace lathe::codegen {

/// The number in every element of a constant, looked for through broadcasts.
static std::optional<double> splatOf(Value v) {
  while (isa_and_nonnull<hlo::BroadcastInDimOp, hlo::ReshapeOp>(v.getDefiningOp()))
    v = v.getDefiningOp()->getOperand(0);
  auto constant = v.getDefiningOp<hlo::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || dense.empty() || !dense.isSplat())
    return std::nullopt;
  auto number = dyn_cast<FloatAttr>(dense.getSplatValue<Attribute>());
  return number ? std::optional<double>(number.getValueAsDouble()) : std::nullopt;
}

namespace {
/// c[0] + c[1] x + c[2] x^2 + c[3] x^3
using Cubic = std::array<double, 4>;
} // namespace

/// `v` as a polynomial of `x`. `budget` bounds the operations looked at: a graph may share them without end.
static std::optional<Cubic> polynomialOf(Value v, Value x, unsigned &budget) {
  if (v == x)
    return Cubic{0, 1, 0, 0};
  if (std::optional<double> number = splatOf(v))
    return Cubic{*number, 0, 0, 0};
  Operation *op = v.getDefiningOp();
  if (!op || budget-- == 0)
    return std::nullopt;
  if (isa<hlo::NegOp>(op)) {
    std::optional<Cubic> p = polynomialOf(op->getOperand(0), x, budget);
    if (p)
      for (double &c : *p)
        c = -c;
    return p;
  }
  if (!isa<hlo::AddOp, hlo::SubtractOp, hlo::MulOp, hlo::DivOp, hlo::PowOp>(op))
    return std::nullopt;
  std::optional<Cubic> p = polynomialOf(op->getOperand(0), x, budget), q = polynomialOf(op->getOperand(1), x, budget);
  if (!p || !q)
    return std::nullopt;
  bool number = (*q)[1] == 0 && (*q)[2] == 0 && (*q)[3] == 0;
  if (isa<hlo::AddOp, hlo::SubtractOp>(op)) {
    for (unsigned i = 0; i < 4; ++i)
      (*p)[i] += isa<hlo::AddOp>(op) ? (*q)[i] : -(*q)[i];
    return p;
  }
  if (isa<hlo::DivOp>(op)) {
    for (double &c : *p)
      c /= (*q)[0];
    return number ? p : std::nullopt;
  }
  if (isa<hlo::PowOp>(op))
    return number && (*q)[0] == 3 && *p == Cubic{0, 1, 0, 0} ? std::optional<Cubic>({0, 0, 0, 1}) : std::nullopt;
  Cubic product = {0, 0, 0, 0};
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned j = 0; j < 4; ++j)
      if (i + j < 4)
        product[i + j] += (*p)[i] * (*q)[j];
      else if ((*p)[i] * (*q)[j] != 0)
        return std::nullopt;
  return product;
}

static bool near(double a, double b) { return std::abs(a - b) <= 2e-6 * std::abs(b); }

std::optional<Gelu> matchGelu(Operation *op) {
  if (!isa<hlo::MulOp>(op) || !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return std::nullopt;
  // factors: numbers, one error function or tanh plus one, and the argument
  double scale = 1;
  Operation *function = nullptr;
  Value x;
  SmallVector<Value> factors(op->getOperands());
  for (unsigned seen = 0; !factors.empty(); ++seen) {
    Value v = factors.pop_back_val();
    if (seen == 8)
      return std::nullopt;
    Operation *def = v.getDefiningOp();
    if (std::optional<double> number = splatOf(v)) {
      scale *= *number;
      continue;
    }
    if (isa_and_nonnull<hlo::MulOp>(def)) {
      factors.append(def->operand_begin(), def->operand_end());
      continue;
    }
    Operation *here = isa_and_nonnull<hlo::ErfcOp>(def) ? def : nullptr;
    if (isa_and_nonnull<hlo::AddOp>(def))
      for (unsigned i : {0, 1})
        if (splatOf(def->getOperand(1 - i)) == 1.0 && isa_and_nonnull<hlo::ErfOp, hlo::TanhOp>(def->getOperand(i).getDefiningOp()))
          here = def->getOperand(i).getDefiningOp();
    if (here ? function != nullptr : x != nullptr)
      return std::nullopt;
    if (here)
      function = here;
    else
      x = v;
  }
  if (!function || !x || !near(scale, 0.5) || x.getType() != op->getResult(0).getType())
    return std::nullopt;
  unsigned budget = 16;
  std::optional<Cubic> argument = polynomialOf(function->getOperand(0), x, budget);
  if (!argument || (*argument)[0] != 0 || (*argument)[2] != 0)
    return std::nullopt;
  if (isa<hlo::TanhOp>(function)) {
    constexpr double slope = 0.79788456080286536;
    return near((*argument)[1], slope) && near((*argument)[3], slope * 0.044715) ? std::optional<Gelu>({x, true}) : std::nullopt;
  }
  const double slope = isa<hlo::ErfcOp>(function) ? -0.70710678118654752 : 0.70710678118654752;
  return near((*argument)[1], slope) && (*argument)[3] == 0 ? std::optional<Gelu>({x, false}) : std::nullopt;
}

bool hasGelu(KernelBuilder &b, unsigned lanes) { return b.target.avx512 && llvm::isPowerOf2_32(lanes); }

Value emitGelu(KernelBuilder &b, Value x, const Gelu &gelu) { return geluByTable(E(b, x), gelu.tanh); }

Value matchSwish(Operation *op) {
  if (!isa<hlo::MulOp>(op) || !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return Value();
  for (unsigned i : {0, 1})
    if (auto logistic = op->getOperand(i).getDefiningOp<hlo::LogisticOp>())
      if (logistic->getOperand(0) == op->getOperand(1 - i))
        return op->getOperand(1 - i);
  return Value();
}

bool hasSwish(KernelBuilder &b, unsigned lanes) {
  return b.target.avx512 && b.target.fastDivision() && llvm::isPowerOf2_32(lanes);
}

Value emitSwish(KernelBuilder &b, Value x) { return swishByTable(E(b, x)); }

} // namespace lathe::codegen
