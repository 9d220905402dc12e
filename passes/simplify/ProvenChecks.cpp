//===- ProvenChecks.cpp - run-time checks that a loop's condition makes true ===//
//
// A list indexed by a loop's counter is checked in every turn: 0 <= i < n. Where the counter starts at 0 or more and only
// grows, and the condition says i < m with m <= n, nothing is left to check.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/ProvenChecks.h"
#include "passes/simplify/Match.h"

using namespace mlir;

namespace lathe {
namespace {

using D = hlo::ComparisonDirection;

/// The value behind conversions among integers and reshapes of scalars.
Value peel(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    bool plain = isa<hlo::ReshapeOp>(op) ||
                 (isa<hlo::ConvertOp>(op) && isa<IntegerType>(hlo::elementType(op->getOperand(0))));
    if (!plain || hlo::tensorType(op->getOperand(0)).getRank() != 0)
      break;
    v = op->getOperand(0);
  }
  return v;
}

void conjuncts(Value v, SmallVectorImpl<hlo::CompareOp> &found) {
  SmallVector<Value> work{v};
  while (!work.empty()) {
    Operation *op = peel(work.pop_back_val()).getDefiningOp();
    if (isa_and_nonnull<hlo::AndOp>(op))
      work.append(op->operand_begin(), op->operand_end());
    else if (auto compare = dyn_cast_or_null<hlo::CompareOp>(op))
      found.push_back(compare);
  }
}

/// Whether the size `a` is known to be at most `b`.
bool atMost(Value a, Value b) {
  auto x = splatNumber(a), y = splatNumber(b);
  if (x && y)
    return *x <= *y;
  a = peel(a);
  b = peel(b);
  if (a == b)
    return true;
  auto s = a.getDefiningOp<hlo::SizeOp>(), t = b.getDefiningOp<hlo::SizeOp>();
  return s && t && s->getDiscardableAttrDictionary() == t->getDiscardableAttrDictionary() &&
         s->getPropertiesAsAttribute() == t->getPropertiesAsAttribute();
}

struct Counter {
  hlo::WhileOp loop;
  unsigned number;
};

std::optional<Counter> counterOf(Value v) {
  auto arg = dyn_cast<BlockArgument>(peel(v));
  if (!arg || hlo::tensorType(arg).getRank() != 0)
    return std::nullopt;
  auto loop = dyn_cast<hlo::WhileOp>(arg.getOwner()->getParentOp());
  if (!loop || arg.getOwner()->getParent() != &loop.getBody())
    return std::nullopt;
  return Counter{loop, arg.getArgNumber()};
}

bool neverNegative(const Counter &c) {
  auto start = splatNumber(peel(c.loop->getOperand(c.number)));
  if (!start || *start < 0)
    return false;
  Block &body = c.loop->getRegion(1).front();
  Value next = peel(body.getTerminator()->getOperand(c.number)), own = body.getArgument(c.number);
  if (next == own)
    return true;
  auto add = next.getDefiningOp<hlo::AddOp>();
  if (!add)
    return false;
  Value step = peel(add.getLhs()) == own ? add.getRhs() : peel(add.getRhs()) == own ? add.getLhs() : Value();
  auto number = step ? splatNumber(step) : std::nullopt;
  return number && *number >= 0;
}

bool staysBelow(const Counter &c, Value limit) {
  Block &cond = c.loop->getRegion(0).front();
  SmallVector<hlo::CompareOp> all;
  conjuncts(cond.getTerminator()->getOperand(0), all);
  for (hlo::CompareOp compare : all) {
    Value lhs = compare.getLhs(), rhs = compare.getRhs();
    D direction = compare.getComparisonDirection();
    if (direction == D::GT) {
      std::swap(lhs, rhs);
      direction = D::LT;
    }
    if (direction == D::LT && peel(lhs) == cond.getArgument(c.number) && atMost(rhs, limit))
      return true;
  }
  return false;
}

/// One comparison of a check, if a loop makes it true.
bool proven(hlo::CompareOp compare) {
  D direction = compare.getComparisonDirection();
  auto counter = counterOf(compare.getLhs());
  if (!counter)
    return false;
  if (direction == D::GE) {
    auto bound = splatNumber(compare.getRhs());
    return bound && *bound <= 0 && neverNegative(*counter);
  }
  return direction == D::LT && staysBelow(*counter, compare.getRhs());
}

} // namespace

unsigned dropProvenChecks(Operation *root) {
  SmallVector<Operation *> checks;
  root->walk([&](hlo::CheckOp check) {
    Value pred = check.getPred();
    if (hlo::tensorType(pred).getRank() != 0)
      return;
    // every part must be a comparison that holds
    SmallVector<Value> work{pred};
    while (!work.empty()) {
      Operation *op = peel(work.pop_back_val()).getDefiningOp();
      if (isa_and_nonnull<hlo::AndOp>(op)) {
        work.append(op->operand_begin(), op->operand_end());
        continue;
      }
      auto compare = dyn_cast_or_null<hlo::CompareOp>(op);
      if (!compare || !proven(compare))
        return;
    }
    checks.push_back(check);
  });
  for (Operation *check : checks)
    check->erase();
  return checks.size();
}

} // namespace lathe
