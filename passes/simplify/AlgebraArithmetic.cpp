//===- AlgebraArithmetic.cpp - identities of elementwise ops ----------------===//

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Algebra.h"
#include "passes/simplify/Match.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace lathe;

namespace {

bool isFloat(Value v) { return isa<FloatType>(getElementTypeOrSelf(v.getType())); }
bool isInteger(Value v) { return isa<IntegerType>(getElementTypeOrSelf(v.getType())); }
bool isBool(Value v) { return getElementTypeOrSelf(v.getType()).isInteger(1); }

LogicalResult replace(PatternRewriter &r, Operation *op, Value v) {
  if (v.getType() != op->getResult(0).getType())
    return failure();
  r.replaceOp(op, v);
  return success();
}

LogicalResult replaceSplat(PatternRewriter &r, Operation *op, double number) {
  r.replaceOp(op, hlo::makeSplat(r, op->getLoc(), number, cast<RankedTensorType>(op->getResult(0).getType())));
  return success();
}

LogicalResult simplifyAdd(hlo::AddOp op, PatternRewriter &r) {
  for (auto [x, y] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    if (isSplat(y, 0) && !isBool(y))
      return replace(r, op, x);
    if (auto negate = y.getDefiningOp<hlo::NegOp>(); negate && isFloat(x)) {
      r.replaceOpWithNewOp<hlo::SubtractOp>(op, op.getType(), x, negate.getOperand());
      return success();
    }
  }
  return failure();
}

LogicalResult simplifySubtract(hlo::SubtractOp op, PatternRewriter &r) {
  if (isSplat(op.getRhs(), 0))
    return replace(r, op, op.getLhs());
  if (op.getLhs() == op.getRhs() && isInteger(op.getLhs()))
    return replaceSplat(r, op, 0);
  if (auto negate = op.getRhs().getDefiningOp<hlo::NegOp>(); negate && isFloat(op.getLhs())) {
    r.replaceOpWithNewOp<hlo::AddOp>(op, op.getType(), op.getLhs(), negate.getOperand());
    return success();
  }
  return failure();
}

LogicalResult simplifyMul(hlo::MulOp op, PatternRewriter &r) {
  for (auto [x, y] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    if (isSplat(y, 1))
      return replace(r, op, x);
    if (isSplat(y, 0) && isInteger(y))
      return replaceSplat(r, op, 0);
    if (isSplat(y, -1) && isFloat(y)) {
      r.replaceOpWithNewOp<hlo::NegOp>(op, op.getType(), x);
      return success();
    }
  }
  return failure();
}

LogicalResult simplifyDiv(hlo::DivOp op, PatternRewriter &r) {
  if (isSplat(op.getRhs(), 1))
    return replace(r, op, op.getLhs());
  std::optional<double> number = splatNumber(op.getRhs());
  if (!number || !isFloat(op.getRhs()) || !std::isfinite(*number) || *number == 0)
    return failure();
  // the reciprocal of a power of two is exact while it is a normal number of every float type
  int exponent;
  double mantissa = std::frexp(*number, &exponent);
  if (std::fabs(mantissa) != 0.5 || exponent < -12 || exponent > 12)
    return failure();
  auto type = cast<RankedTensorType>(op.getRhs().getType());
  if (type.getElementType().getIntOrFloatBitWidth() < 16)
    return failure();
  r.replaceOpWithNewOp<hlo::MulOp>(op, op.getType(), op.getLhs(), hlo::makeSplat(r, op.getLoc(), 1 / *number, type));
  return success();
}

LogicalResult simplifyNegate(hlo::NegOp op, PatternRewriter &r) {
  if (auto inner = op.getOperand().getDefiningOp<hlo::NegOp>())
    return replace(r, op, inner.getOperand());
  // a - b rounds as b - a does
  if (auto inner = op.getOperand().getDefiningOp<hlo::SubtractOp>(); inner && inner->hasOneUse() && isFloat(inner)) {
    r.replaceOpWithNewOp<hlo::SubtractOp>(op, op.getType(), inner.getRhs(), inner.getLhs());
    return success();
  }
  return failure();
}

LogicalResult simplifyNot(hlo::NotOp op, PatternRewriter &r) {
  if (auto inner = op.getOperand().getDefiningOp<hlo::NotOp>())
    return replace(r, op, inner.getOperand());
  auto compare = op.getOperand().getDefiningOp<hlo::CompareOp>();
  if (!compare || !compare->hasOneUse())
    return failure();
  using D = hlo::ComparisonDirection;
  D direction = compare.getComparisonDirection();
  bool equality = direction == D::EQ || direction == D::NE;
  // with NaN, !(a < b) is not a >= b
  if (!equality && isFloat(compare.getLhs()))
    return failure();
  D turned = D::EQ;
  switch (direction) {
  case D::EQ:
    turned = D::NE;
    break;
  case D::NE:
    turned = D::EQ;
    break;
  case D::GE:
    turned = D::LT;
    break;
  case D::GT:
    turned = D::LE;
    break;
  case D::LE:
    turned = D::GT;
    break;
  case D::LT:
    turned = D::GE;
    break;
  }
  auto made = cast<hlo::CompareOp>(r.clone(*compare));
  made.setComparisonDirection(turned);
  r.replaceOp(op, made.getResult());
  return success();
}

template <typename OpT>
LogicalResult simplifySameOperands(OpT op, PatternRewriter &r) {
  return op.getLhs() == op.getRhs() ? replace(r, op, op.getLhs()) : failure();
}

LogicalResult simplifyAnd(hlo::AndOp op, PatternRewriter &r) {
  for (auto [x, y] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    if (isSplat(y, 0))
      return replaceSplat(r, op, 0);
    if (isBool(y) && isSplat(y, 1))
      return replace(r, op, x);
  }
  return simplifySameOperands(op, r);
}

LogicalResult simplifyOr(hlo::OrOp op, PatternRewriter &r) {
  for (auto [x, y] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    if (isSplat(y, 0))
      return replace(r, op, x);
    if (isBool(y) && isSplat(y, 1))
      return replaceSplat(r, op, 1);
  }
  return simplifySameOperands(op, r);
}

LogicalResult simplifySelect(hlo::SelectOp op, PatternRewriter &r) {
  if (op.getOnTrue() == op.getOnFalse())
    return replace(r, op, op.getOnTrue());
  if (std::optional<double> pred = splatNumber(op.getPred()))
    return replace(r, op, *pred ? op.getOnTrue() : op.getOnFalse());
  if (auto inverse = op.getPred().getDefiningOp<hlo::NotOp>()) {
    r.replaceOpWithNewOp<hlo::SelectOp>(op, op.getType(), inverse.getOperand(), op.getOnFalse(), op.getOnTrue());
    return success();
  }
  if (isBool(op.getOnTrue()) && sameSizes(op.getPred().getType(), op.getType())) {
    if (isSplat(op.getOnTrue(), 1) && isSplat(op.getOnFalse(), 0))
      return replace(r, op, op.getPred());
    if (isSplat(op.getOnTrue(), 0) && isSplat(op.getOnFalse(), 1)) {
      r.replaceOpWithNewOp<hlo::NotOp>(op, op.getType(), op.getPred());
      return success();
    }
  }
  return failure();
}

LogicalResult simplifyCompare(hlo::CompareOp op, PatternRewriter &r) {
  using D = hlo::ComparisonDirection;
  D direction = op.getComparisonDirection();
  if (op.getLhs() == op.getRhs() && isInteger(op.getLhs()))
    return replaceSplat(r, op, direction == D::EQ || direction == D::GE || direction == D::LE);
  // pred == true, pred != false
  if (isBool(op.getLhs()) && (direction == D::EQ || direction == D::NE))
    for (auto [x, y] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
      if (std::optional<double> number = splatNumber(y)) {
        if ((*number != 0) == (direction == D::EQ))
          return replace(r, op, x);
        r.replaceOpWithNewOp<hlo::NotOp>(op, op.getType(), x);
        return success();
      }
  return failure();
}

/// True when every value of `from` is a value of `to`.
bool keepsValues(Type from, Type to) {
  if (from == to)
    return true;
  auto f = dyn_cast<FloatType>(from), t = dyn_cast<FloatType>(to);
  if (f && t) {
    const llvm::fltSemantics &a = f.getFloatSemantics(), &b = t.getFloatSemantics();
    return APFloat::semanticsPrecision(a) <= APFloat::semanticsPrecision(b) &&
           APFloat::semanticsMaxExponent(a) <= APFloat::semanticsMaxExponent(b) &&
           APFloat::semanticsMinExponent(a) >= APFloat::semanticsMinExponent(b);
  }
  auto i = dyn_cast<IntegerType>(from), j = dyn_cast<IntegerType>(to);
  // i1 converts to 0 and 1
  if (i && j && i.getWidth() == 1)
    return true;
  if (i && j && j.getWidth() > 1)
    return i.isUnsigned() ? (j.getWidth() > i.getWidth()) : (!j.isUnsigned() && j.getWidth() > i.getWidth());
  if (i && t)
    return i.getWidth() < APFloat::semanticsPrecision(t.getFloatSemantics()) || i.getWidth() == 1;
  return false;
}

LogicalResult simplifyConvert(hlo::ConvertOp op, PatternRewriter &r) {
  if (op.getOperand().getType() == op.getType())
    return replace(r, op, op.getOperand());
  auto inner = op.getOperand().getDefiningOp<hlo::ConvertOp>();
  if (!inner)
    return failure();
  Type from = getElementTypeOrSelf(inner.getOperand().getType()), middle = getElementTypeOrSelf(inner.getType()),
       to = getElementTypeOrSelf(op.getType());
  // to bool compares with zero, so widening before changes nothing either
  if (!keepsValues(from, middle))
    return failure();
  if (from == to)
    return replace(r, op, inner.getOperand());
  // int -> wide float -> int saturates, int -> int wraps: equal only when no value is lost at the end
  if (isa<IntegerType>(from) && isa<FloatType>(middle) && isa<IntegerType>(to) && !keepsValues(from, to))
    return failure();
  r.replaceOpWithNewOp<hlo::ConvertOp>(op, op.getType(), inner.getOperand());
  return success();
}

LogicalResult simplifyPow(hlo::PowOp op, PatternRewriter &r) {
  if (isSplat(op.getRhs(), 1))
    return replace(r, op, op.getLhs());
  if (isSplat(op.getRhs(), 0))
    return replaceSplat(r, op, 1);
  if (isSplat(op.getRhs(), 2)) {
    r.replaceOpWithNewOp<hlo::MulOp>(op, op.getType(), op.getLhs(), op.getLhs());
    return success();
  }
  return failure();
}

/// What TensorFlow's graph optimizer does with floats as well.
LogicalResult simplifyPowRounding(hlo::PowOp op, PatternRewriter &r) {
  if (!isFloat(op.getLhs()))
    return failure();
  if (isSplat(op.getRhs(), 3)) {
    Value square = hlo::MulOp::create(r, op.getLoc(), op.getType(), op.getLhs(), op.getLhs());
    r.replaceOpWithNewOp<hlo::MulOp>(op, op.getType(), square, op.getLhs());
    return success();
  }
  if (isSplat(op.getRhs(), 0.5)) {
    r.replaceOpWithNewOp<hlo::SqrtOp>(op, op.getType(), op.getLhs());
    return success();
  }
  if (isSplat(op.getRhs(), -0.5)) {
    r.replaceOpWithNewOp<hlo::RsqrtOp>(op, op.getType(), op.getLhs());
    return success();
  }
  if (isSplat(op.getRhs(), -1)) {
    Value one = hlo::makeSplat(r, op.getLoc(), 1.0, cast<RankedTensorType>(op.getType()));
    r.replaceOpWithNewOp<hlo::DivOp>(op, op.getType(), one, op.getLhs());
    return success();
  }
  return failure();
}

} // namespace

void lathe::populateArithmeticPatterns(RewritePatternSet &patterns, bool exact) {
  patterns.add(simplifyAdd);
  patterns.add(simplifySubtract);
  patterns.add(simplifyMul);
  patterns.add(simplifyDiv);
  patterns.add(simplifyNegate);
  patterns.add(simplifyNot);
  patterns.add(simplifyAnd);
  patterns.add(simplifyOr);
  patterns.add(simplifySameOperands<hlo::MaxOp>);
  patterns.add(simplifySameOperands<hlo::MinOp>);
  patterns.add(simplifySelect);
  patterns.add(simplifyCompare);
  patterns.add(simplifyConvert);
  patterns.add(simplifyPow);
  if (!exact)
    patterns.add(simplifyPowRounding);
}
