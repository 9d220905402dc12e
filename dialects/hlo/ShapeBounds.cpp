#include "dialects/hlo/ShapeBounds.h"

#include "dialects/hlo/Shape.h"

using namespace mlir;

namespace lathe::hlo {

bool isNonNegative(AffineExpr expr) {
  if (auto c = constantValue(expr))
    return *c >= 0;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return isa<AffineSymbolExpr>(expr);
  auto divisor = constantValue(binary.getRHS());
  if (expr.getKind() == AffineExprKind::Mod && divisor && *divisor > 0)
    return true;
  return isNonNegative(binary.getLHS()) && isNonNegative(binary.getRHS());
}

/// The terms of a sum.
static SmallVector<AffineExpr> termsOf(AffineExpr expr) {
  SmallVector<AffineExpr> terms, stack{expr};
  while (!stack.empty()) {
    AffineExpr e = stack.pop_back_val();
    if (auto sum = dyn_cast<AffineBinaryOpExpr>(e); sum && e.getKind() == AffineExprKind::Add) {
      stack.push_back(sum.getRHS());
      stack.push_back(sum.getLHS());
    } else {
      terms.push_back(e);
    }
  }
  return terms;
}

AffineExpr withoutNegatives(AffineExpr expr) {
  if (!expr || isNonNegative(expr))
    return expr;
  AffineExpr sum = constantExpr(expr.getContext(), 0);
  for (AffineExpr term : termsOf(expr)) {
    if (isNonNegative(term)) {
      sum = sum + term;
      continue;
    }
    if (constantValue(term))
      continue;
    auto binary = dyn_cast<AffineBinaryOpExpr>(term);
    auto number = binary ? constantValue(binary.getRHS()) : std::nullopt;
    if (!number)
      return {};
    if (term.getKind() == AffineExprKind::Mul && *number < 0 && isNonNegative(binary.getLHS()))
      continue;
    // of what is multiplied and divided by a positive number the same
    const bool divides = term.getKind() == AffineExprKind::FloorDiv;
    AffineExpr inner =
        *number > 0 && (divides || term.getKind() == AffineExprKind::Mul) ? withoutNegatives(binary.getLHS()) : AffineExpr();
    if (!inner)
      return {};
    sum = sum + (divides ? inner.floorDiv(*number) : inner * *number);
  }
  return simplify(sum);
}

/// With dividends for quotients.
static AffineExpr withoutQuotients(AffineExpr expr) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return expr;
  if (expr.getKind() == AffineExprKind::Mod)
    return binary.getRHS();
  AffineExpr a = withoutQuotients(binary.getLHS());
  if (expr.getKind() == AffineExprKind::Add)
    return a + withoutQuotients(binary.getRHS());
  return expr.getKind() == AffineExprKind::Mul ? a * withoutQuotients(binary.getRHS()) : a;
}

AffineExpr termwiseMost(AffineExpr a, AffineExpr b) {
  constexpr size_t mostTerms = 8;
  for (AffineExpr *e : {&a, &b}) {
    size_t size = 0;
    e->walk([&](AffineExpr) { ++size; });
    if (size > 8 * mostTerms)
      *e = simplify(withoutQuotients(*e));
  }
  SmallVector<std::pair<AffineExpr, int64_t>> terms;
  for (AffineExpr e : {a, b})
    for (AffineExpr term : termsOf(e)) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(term);
      auto factor = binary && term.getKind() == AffineExprKind::Mul ? constantValue(binary.getRHS()) : constantValue(term);
      AffineExpr base = constantValue(term) ? constantExpr(term.getContext(), 1) : factor ? binary.getLHS() : term;
      auto *at = llvm::find_if(terms, [&](auto &t) { return t.first == base; });
      if (at == terms.end())
        terms.push_back({base, factor.value_or(1)});
      else
        at->second = std::max(at->second, factor.value_or(1));
    }
  AffineExpr sum = constantExpr(a.getContext(), 0);
  for (auto [base, factor] : terms)
    sum = sum + base * factor;
  return simplify(sum);
}

bool growsWith(AffineExpr expr, llvm::function_ref<bool(unsigned)> isFree) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || llvm::none_of(getSymbols(expr), isFree))
    return true;
  AffineExpr a = binary.getLHS(), b = binary.getRHS();
  auto number = constantValue(b);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return growsWith(a, isFree) && growsWith(b, isFree);
  case AffineExprKind::Mul:
    if (number)
      return *number >= 0 && growsWith(a, isFree);
    return isNonNegative(a) && isNonNegative(b) && growsWith(a, isFree) && growsWith(b, isFree);
  case AffineExprKind::FloorDiv:
  case AffineExprKind::CeilDiv:
    return number && *number > 0 && growsWith(a, isFree);
  default:
    return false;
  }
}

} // namespace lathe::hlo
