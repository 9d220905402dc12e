// Follows integers through the hlo that makes them. Arithmetic of sizes goes through passes/legalize/ShapeTracking.cpp where each step is
// an expression; this is for the rest, where a step chooses: `tf.where(c, n, m)`, `tf.maximum(n, m)`, `tf.minimum(k, n)` with a `k` that
// the caller feeds. Such a number is a size that an op sets at run time, in memory for the largest that it can be.
#include "passes/legalize/SizeReader.h"

#include "dialects/hlo/ShapeBounds.h"
#include "passes/legalize/NodeContext.h"
#include "llvm/Support/SaveAndRestore.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Elements of a tensor that is read as sizes, and how many values are looked at for them.
constexpr int64_t kMaxElements = 64;
constexpr int kMaxVisits = 4096;
/// Graphs are deep; what sizes are made of is not.
constexpr int kMaxDepth = 100;

/// What is known of one element.
struct Known {
  /// Its value; null where the run chooses.
  AffineExpr exact;
  /// A size that it does not exceed; null where there is none.
  AffineExpr most;
  bool nonNegative = false;
};

enum class Combined { Add, Sub, Mul, Div, Rem, Max, Min };

class Reader {
public:
  Reader(HloContext &ctx, Location loc, StringRef nodeName) : ctx(ctx), loc(loc), nodeName(nodeName) {}

  std::optional<Dims> read(Value v);

private:
  Known follow(Value v, int64_t k);
  Known followOp(Operation *op, Value v, int64_t k);
  Known followMove(Operation *op, RankedTensorType type, int64_t k);
  Known reduced(hlo::ReduceOp op, int64_t k);
  Known select(hlo::SelectOp op, int64_t k);
  std::optional<Known> rounded(hlo::SelectOp op, int64_t k);
  Known branches(Operation *op, Value v, int64_t k);
  Known carried(BlockArgument v, int64_t k);
  Known combine(Combined kind, const Known &a, const Known &b, bool isFloat);
  Known scaled(const Known &x, double by);
  std::optional<double> numberAt(Value v, int64_t k);
  bool isNumber(Value v, int64_t k, double n) { return numberAt(v, k) == n; }

  Known known(AffineExpr exact);
  AffineExpr atLeastBoth(AffineExpr a, AffineExpr b) { return a && b ? sizeAtLeast(ctx, a, b) : AffineExpr(); }
  /// The element as a symbol that the run sets at the builder's place: a later symbol is set later, which unify counts on.
  AffineExpr symbolOf(Value v, int64_t k, AffineExpr most);
  AffineExpr symbolOfUsers(Value scalar);
  bool isBefore(Operation *op);
  bool hasDataSymbol(AffineExpr expr) { return ctx.isDataSize(expr); }
  /// Whether an op in the regions of `op` sets a symbol of the expression.
  bool setInside(Operation *op, AffineExpr expr);

  HloContext &ctx;
  Location loc;
  StringRef nodeName;
  std::map<std::pair<const void *, int64_t>, Known> seen;
  int visits = 0, depth = 0;
  /// In regions that are closed: what is there means nothing at the builder's place.
  bool elsewhere = false;
};

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

/// How many elements are looked at; 0 for more, or for a number of them that is open.
int64_t countOf(Value v) {
  RankedTensorType type = typeOf(v);
  return type.hasStaticShape() && type.getNumElements() <= kMaxElements ? type.getNumElements() : 0;
}

SmallVector<int64_t> placeOf(ArrayRef<int64_t> shape, int64_t k) {
  SmallVector<int64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    at[i] = k % shape[i];
    k /= shape[i];
  }
  return at;
}

int64_t indexOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> at) {
  int64_t k = 0;
  for (auto [n, i] : llvm::zip(shape, at))
    k = k * n + i;
  return k;
}

bool mayBeSize(Type element) { return element.isSignlessInteger(32) || element.isSignlessInteger(64); }

Known Reader::known(AffineExpr exact) {
  exact = ctx.resolve(exact);
  return {exact, hlo::withoutNegatives(exact), hlo::isNonNegative(exact)};
}

bool Reader::isBefore(Operation *op) {
  for (Block *block = ctx.builder.getInsertionBlock(); block; block = block->getParentOp() ? block->getParentOp()->getBlock() : nullptr)
    if (block == op->getBlock())
      return true;
  return false;
}

AffineExpr Reader::symbolOfUsers(Value scalar) {
  for (Operation *user : scalar.getUsers())
    if (auto set = dyn_cast<hlo::SetSizeOp>(user); set && isBefore(set))
      return ctx.resolve(getAffineSymbolExpr(set.getSymbol(), ctx.getContext()));
  return {};
}

AffineExpr Reader::symbolOf(Value v, int64_t k, AffineExpr most) {
  RankedTensorType type = typeOf(v);
  if (type.getRank() == 0) {
    if (AffineExpr symbol = symbolOfUsers(v))
      return symbol;
  } else if (type.getRank() == 1) {
    // one that was read before
    auto symbolOfScalars = [&](Value one) {
      for (Operation *user : one.getUsers())
        if (isa<hlo::ReshapeOp>(user) && typeOf(user->getResult(0)).getRank() == 0)
          if (AffineExpr symbol = symbolOfUsers(user->getResult(0)))
            return symbol;
      return AffineExpr();
    };
    if (type.getNumElements() == 1)
      if (AffineExpr symbol = symbolOfScalars(v))
        return symbol;
    for (Operation *user : v.getUsers()) {
      auto slice = dyn_cast<hlo::SliceOp>(user);
      if (!slice || slice.getStartIndices()[0] != k || slice.getLimitIndices()[0] != k + 1)
        continue;
      if (AffineExpr symbol = symbolOfScalars(slice->getResult(0)))
        return symbol;
    }
  }
  Emitter e(ctx, loc, nodeName);
  Value one = v;
  if (type.getRank() > 0) {
    one = e.reshape(v, {type.getNumElements()});
    one = e.reshape(e.sliceDim(one, 0, e.size(k), e.size(k + 1)), ArrayRef<AffineExpr>());
  }
  AffineExpr symbol = ctx.newDataSymbol(nodeName, most);
  hlo::SetSizeOp::create(ctx.builder, loc, one, int64_t(cast<AffineSymbolExpr>(symbol).getPosition()), nodeName);
  return symbol;
}

std::optional<double> Reader::numberAt(Value v, int64_t k) {
  if (!typeOf(v).hasStaticShape() || typeOf(v).getNumElements() > kMaxElements)
    return std::nullopt;
  std::optional<Tensor> t = ctx.fold(v);
  if (!t || k >= t->numElements())
    return std::nullopt;
  switch (t->dtype()) {
  case DType::Float32: return t->data<float>()[k];
  case DType::Float64: return t->data<double>()[k];
  case DType::Int32: return t->data<int32_t>()[k];
  case DType::Int64: return static_cast<double>(t->data<int64_t>()[k]);
  default: return std::nullopt;
  }
}

/// Times a positive number, rounded up to 1/256; what floats lose on the way is caught where the size is set.
Known Reader::scaled(const Known &x, double by) {
  constexpr int64_t unit = 256;
  const double factor = std::ceil(by * unit);
  if (!x.most || !x.nonNegative || !(by > 0) || factor > double(int64_t(1) << 40))
    return {};
  AffineExpr times = productOf({x.most, ctx.constant(static_cast<int64_t>(factor))}, ctx.getContext());
  return {{}, hlo::ceilDiv(times, unit), true};
}

Known Reader::combine(Combined kind, const Known &a, const Known &b, bool isFloat) {
  const bool both = a.exact && b.exact && !isFloat;
  auto ca = a.exact ? constantOf(a.exact) : std::nullopt, cb = b.exact ? constantOf(b.exact) : std::nullopt;
  auto sum = [](AffineExpr x, AffineExpr y) { return x && y ? hlo::simplify(x + y) : AffineExpr(); };
  switch (kind) {
  case Combined::Add:
    if (both)
      return known(hlo::simplify(a.exact + b.exact));
    return {{}, sum(a.most, b.most), a.nonNegative && b.nonNegative};
  case Combined::Sub:
    if (both)
      return known(hlo::simplify(a.exact - b.exact));
    if (a.most && b.exact && !isFloat)
      return {{}, hlo::withoutNegatives(hlo::simplify(a.most - b.exact)), false};
    return {{}, b.nonNegative ? a.most : AffineExpr(), false};
  case Combined::Mul: {
    const bool small = (!ca || std::abs(*ca) < (int64_t(1) << 31)) && (!cb || std::abs(*cb) < (int64_t(1) << 31));
    if (both && small)
      return known(productOf({a.exact, b.exact}, ctx.getContext()));
    if (!a.nonNegative || !b.nonNegative || !a.most || !b.most || !small)
      return {};
    return {{}, productOf({a.most, b.most}, ctx.getContext()), true};
  }
  case Combined::Div:
    if (isFloat)
      return {};
    if (a.exact && a.nonNegative && cb && *cb > 0)
      return known(divideExactly(a.exact, b.exact));
    // rounds to zero, so that a limit of 0 or more stays one
    if (a.most && cb && *cb > 0)
      return {{}, hlo::simplify(a.most.floorDiv(*cb)), a.nonNegative};
    return {{}, a.nonNegative && b.nonNegative ? a.most : AffineExpr(), false};
  case Combined::Rem:
    if (isFloat)
      return {};
    if (a.exact && a.nonNegative && cb && *cb > 0)
      return known(hlo::simplify(a.exact % *cb));
    if (cb && *cb > 0)
      return {{}, ctx.constant(*cb - 1), a.nonNegative};
    return {{}, a.nonNegative && b.nonNegative ? a.most : AffineExpr(), a.nonNegative && b.nonNegative};
  case Combined::Max:
  case Combined::Min: {
    const bool wantMax = kind == Combined::Max;
    if (both)
      if (auto difference = hlo::simplify(a.exact - b.exact); constantOf(difference) || hlo::isNonNegative(difference))
        return known((constantOf(difference).value_or(1) >= 0) == wantMax ? a.exact : b.exact);
    if (both)
      if (auto difference = hlo::simplify(b.exact - a.exact); hlo::isNonNegative(difference))
        return known(wantMax ? b.exact : a.exact);
    if (wantMax)
      return {{}, atLeastBoth(a.most, b.most), a.nonNegative || b.nonNegative};
    // a small number limits the memory where a size would not
    auto na = a.most ? ctx.upperBound(a.most) : std::nullopt, nb = b.most ? ctx.upperBound(b.most) : std::nullopt;
    AffineExpr most = !a.most ? b.most : !b.most ? a.most : na && (!nb || *na <= *nb) ? a.most : b.most;
    return {{}, most, a.nonNegative && b.nonNegative};
  }
  }
  return {};
}

/// Quotients and remainders that round towards minus infinity, as FloorDiv and FloorMod are made.
std::optional<Known> Reader::rounded(hlo::SelectOp op, int64_t k) {
  Operation *adjusted = op.getOnTrue().getDefiningOp(), *plain = op.getOnFalse().getDefiningOp();
  const bool divides = isa_and_nonnull<hlo::DivOp>(plain) && isa_and_nonnull<hlo::SubtractOp>(adjusted);
  const bool leaves = isa_and_nonnull<hlo::RemOp>(plain) && isa_and_nonnull<hlo::AddOp>(adjusted);
  if ((!divides && !leaves) || adjusted->getOperand(0) != op.getOnFalse() || (leaves && adjusted->getOperand(1) != plain->getOperand(1)))
    return std::nullopt;
  Known x = follow(plain->getOperand(0), k), y = follow(plain->getOperand(1), k);
  if (x.nonNegative && y.nonNegative)
    return follow(op.getOnFalse(), k);
  auto by = y.exact ? constantOf(y.exact) : std::nullopt;
  if (!by || *by <= 0 || (divides && !isNumber(adjusted->getOperand(1), k, 1)))
    return std::nullopt;
  if (x.exact)
    return known(hlo::simplify(divides ? x.exact.floorDiv(*by) : x.exact % *by));
  if (leaves)
    return Known{{}, ctx.constant(*by - 1), true};
  return Known{{}, x.most ? hlo::simplify(x.most.floorDiv(*by)) : AffineExpr(), false};
}

/// One of two.
Known Reader::select(hlo::SelectOp op, int64_t k) {
  Value condition = op.getPred();
  const int64_t at = typeOf(condition).getRank() == 0 ? 0 : k;
  if (typeOf(condition).hasStaticShape())
    if (std::optional<Tensor> t = ctx.fold(condition); t && t->dtype() == DType::Bool)
      return follow(t->data<uint8_t>()[at] ? op.getOnTrue() : op.getOnFalse(), k);
  if (std::optional<Known> known = rounded(op, k))
    return *known;
  Known a = follow(op.getOnTrue(), k), b = follow(op.getOnFalse(), k);
  if (a.exact && b.exact && constantOf(hlo::simplify(a.exact - b.exact)) == int64_t(0))
    return a;
  return {{}, atLeastBoth(a.most, b.most), a.nonNegative && b.nonNegative};
}

bool Reader::setInside(Operation *op, AffineExpr expr) {
  if (!hasDataSymbol(expr))
    return false;
  bool found = false;
  op->walk([&](Operation *inner) {
    auto symbol = inner->getAttrOfType<IntegerAttr>("symbol");
    found |= symbol && expr.isFunctionOfSymbol(static_cast<unsigned>(symbol.getInt()));
  });
  return found;
}

/// What each branch gives. Symbols that a branch sets mean nothing outside.
Known Reader::branches(Operation *op, Value v, int64_t k) {
  const unsigned result = cast<OpResult>(v).getResultNumber();
  std::optional<Known> all;
  llvm::SaveAndRestore inside(elsewhere, true);
  for (Region &region : op->getRegions()) {
    if (region.empty() || region.front().empty())
      return {};
    Value given = region.front().back().getOperand(result);
    if (given.getType() != v.getType())
      return {};
    Known one = follow(given, k);
    if (one.exact && setInside(op, one.exact))
      one.exact = {};
    if (one.most && setInside(op, one.most))
      return {};
    if (!all) {
      all = one;
      continue;
    }
    const bool same = all->exact && one.exact && constantOf(hlo::simplify(all->exact - one.exact)) == int64_t(0);
    all = Known{same ? all->exact : AffineExpr(), atLeastBoth(all->most, one.most), all->nonNegative && one.nonNegative};
  }
  return all.value_or(Known());
}

/// What a loop carries, in its body: the condition holds there, which limits counters.
Known Reader::carried(BlockArgument v, int64_t k) {
  auto loop = dyn_cast_or_null<hlo::WhileOp>(v.getOwner()->getParentOp());
  if (!loop || v.getParentRegion() != &loop.getBody() || typeOf(v).getRank() != 0 || loop.getCond().empty() || loop.getCond().front().empty())
    return {};
  Block &condition = loop.getCond().front();
  Value counter = condition.getArgument(v.getArgNumber());
  auto plain = [](Value x) {
    while (Operation *op = x.getDefiningOp()) {
      const bool keeps = isa<hlo::ReshapeOp>(op) || (isa<hlo::ConvertOp>(op) && mayBeSize(Emitter::elementType(op->getOperand(0))) &&
                                                     mayBeSize(Emitter::elementType(x)));
      if (!keeps)
        break;
      x = op->getOperand(0);
    }
    return x;
  };
  llvm::SaveAndRestore inside(elsewhere, true);
  SmallVector<Value> all{condition.back().getOperand(0)};
  for (size_t i = 0; i < all.size() && i < 64; ++i) {
    Operation *op = plain(all[i]).getDefiningOp();
    if (isa_and_nonnull<hlo::AndOp>(op))
      all.append({op->getOperand(0), op->getOperand(1)});
    auto compare = dyn_cast_or_null<hlo::CompareOp>(op);
    if (!compare)
      continue;
    const Compare how = compare.getComparisonDirection();
    const bool below = how == Compare::LT || how == Compare::LE, above = how == Compare::GT || how == Compare::GE;
    if ((!below && !above) || plain(op->getOperand(below ? 0 : 1)) != counter)
      continue;
    Known limit = follow(op->getOperand(below ? 1 : 0), k);
    if (limit.most && !setInside(loop, limit.most))
      return {{}, limit.most, false};
  }
  return {};
}

Known Reader::reduced(hlo::ReduceOp op, int64_t k) {
  Block &body = op.getBody().front();
  if (op.getInputs().size() != 1 || !countOf(op.getInputs()[0]) || body.getNumArguments() != 2 || body.getOperations().size() != 2)
    return {};
  Operation *step = &body.front();
  if (step->getNumOperands() != 2 || !llvm::all_of(step->getOperands(), [&](Value x) { return isa<BlockArgument>(x); }) ||
      step->getOperand(0) == step->getOperand(1))
    return {};
  Combined kind;
  if (isa<hlo::AddOp>(step))
    kind = Combined::Add;
  else if (isa<hlo::MulOp>(step))
    kind = Combined::Mul;
  else if (isa<hlo::MaxOp>(step))
    kind = Combined::Max;
  else if (isa<hlo::MinOp>(step))
    kind = Combined::Min;
  else
    return {};
  ArrayRef<int64_t> shape = typeOf(op.getInputs()[0]).getShape(), axes = op.getDimensions();
  SmallVector<int64_t> left, at;
  for (int64_t i = 0; i < int64_t(shape.size()); ++i)
    if (!llvm::is_contained(axes, i))
      left.push_back(shape[i]);
  at = placeOf(left, k);
  const bool bounds = kind == Combined::Max || kind == Combined::Min;
  std::optional<Known> total;
  for (int64_t i = 0; i < countOf(op.getInputs()[0]); ++i) {
    SmallVector<int64_t> place = placeOf(shape, i), rest;
    for (auto [d, n] : llvm::enumerate(place))
      if (!llvm::is_contained(axes, int64_t(d)))
        rest.push_back(n);
    if (rest != at)
      continue;
    Known one = follow(op.getInputs()[0], i);
    total = total ? combine(kind, *total, one, false) : one;
  }
  // least and greatest numbers start from one that says nothing; sums and products of nothing are 0 and 1
  Known start = follow(op.getInitValues()[0], 0);
  if (!total)
    return start;
  return bounds ? *total : combine(kind, *total, start, false);
}

Known Reader::followOp(Operation *op, Value v, int64_t k) {
  RankedTensorType type = typeOf(v);
  const bool isFloat = isa<FloatType>(type.getElementType());
  auto operand = [&](unsigned i, int64_t at) { return follow(op->getOperand(i), at); };
  auto both = [&](Combined kind) { return combine(kind, operand(0, k), operand(1, k), isFloat); };
  if (auto size = dyn_cast<hlo::SizeOp>(op))
    return known(size.getMap().getResult(k));
  if (auto convert = dyn_cast<hlo::ConvertOp>(op)) {
    Type from = Emitter::elementType(op->getOperand(0));
    if (from.isInteger(1))
      return {{}, ctx.constant(1), true};
    if (!isa<FloatType>(from) && !mayBeSize(from))
      return {};
    Known x = operand(0, k);
    if (isFloat || isa<FloatType>(from))
      x.exact = {};
    return x;
  }
  if (isa<hlo::ReshapeOp>(op))
    return operand(0, k);
  if (isa<hlo::CeilOp, hlo::FloorOp, hlo::RoundOp, hlo::RoundNearestEvenOp>(op))
    return operand(0, k);
  if (isa<hlo::AbsOp>(op)) {
    Known x = operand(0, k);
    return x.nonNegative ? x : Known();
  }
  if (isa<hlo::NegOp>(op)) {
    Known x = operand(0, k);
    return x.exact && !isFloat ? known(hlo::simplify(ctx.constant(0) - x.exact)) : Known{{}, x.nonNegative ? ctx.constant(0) : AffineExpr(), false};
  }
  if (isa<hlo::AddOp>(op))
    return both(Combined::Add);
  if (isa<hlo::SubtractOp>(op))
    return both(Combined::Sub);
  if (isa<hlo::MulOp>(op)) {
    if (!isFloat)
      return both(Combined::Mul);
    for (unsigned i = 0; i < 2; ++i)
      if (auto by = numberAt(op->getOperand(i), k); by && *by > 0)
        return scaled(operand(1 - i, k), *by);
    return both(Combined::Mul);
  }
  if (isa<hlo::DivOp>(op)) {
    if (!isFloat)
      return both(Combined::Div);
    auto by = numberAt(op->getOperand(1), k);
    return by && *by > 0 ? scaled(operand(0, k), 1 / *by) : Known();
  }
  if (isa<hlo::RemOp>(op))
    return both(Combined::Rem);
  if (isa<hlo::MaxOp>(op))
    return both(Combined::Max);
  if (isa<hlo::MinOp>(op))
    return both(Combined::Min);
  if (isa<hlo::ClampOp>(op)) {
    auto limit = [&](unsigned i) { return operand(i, typeOf(op->getOperand(i)).getRank() == 0 ? 0 : k); };
    return combine(Combined::Min, combine(Combined::Max, operand(1, k), limit(0), isFloat), limit(2), isFloat);
  }
  if (auto choose = dyn_cast<hlo::SelectOp>(op))
    return select(choose, k);
  if (isa<hlo::IfOp, hlo::CaseOp>(op))
    return branches(op, v, k);
  if (auto sum = dyn_cast<hlo::ReduceOp>(op))
    return isFloat ? Known() : reduced(sum, k);
  return followMove(op, type, k);
}

/// Of what only moves elements.
Known Reader::followMove(Operation *op, RankedTensorType type, int64_t k) {
  ArrayRef<int64_t> shape = type.getShape();
  auto operand = [&](unsigned i, int64_t at) { return follow(op->getOperand(i), at); };
  SmallVector<int64_t> at = placeOf(shape, k);
  ArrayRef<int64_t> from = op->getNumOperands() ? typeOf(op->getOperand(0)).getShape() : ArrayRef<int64_t>();
  if (auto iota = dyn_cast<hlo::IotaOp>(op))
    return known(ctx.constant(at[iota.getIotaDimension()]));
  if (auto spread = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    SmallVector<int64_t> source;
    for (auto [i, d] : llvm::enumerate(spread.getBroadcastDimensions()))
      source.push_back(from[i] == 1 ? 0 : at[d]);
    return operand(0, indexOf(from, source));
  }
  if (auto transpose = dyn_cast<hlo::TransposeOp>(op)) {
    SmallVector<int64_t> source(at.size());
    for (auto [i, d] : llvm::enumerate(transpose.getPermutation()))
      source[d] = at[i];
    return operand(0, indexOf(from, source));
  }
  if (auto reverse = dyn_cast<hlo::ReverseOp>(op)) {
    for (int64_t d : reverse.getDimensions())
      at[d] = shape[d] - 1 - at[d];
    return operand(0, indexOf(from, at));
  }
  if (auto slice = dyn_cast<hlo::SliceOp>(op)) {
    for (auto [i, start] : llvm::enumerate(slice.getStartIndices())) {
      if (start < 0)
        return {};
      at[i] = start + at[i] * slice.getStrides()[i];
    }
    return operand(0, indexOf(from, at));
  }
  if (auto joined = dyn_cast<hlo::ConcatenateOp>(op)) {
    const int64_t d = joined.getDimension();
    for (auto [i, part] : llvm::enumerate(joined.getInputs())) {
      if (!typeOf(part).hasStaticShape())
        return {};
      const int64_t n = typeOf(part).getDimSize(d);
      if (at[d] < n)
        return operand(i, indexOf(typeOf(part).getShape(), at));
      at[d] -= n;
    }
    return {};
  }
  if (auto pad = dyn_cast<hlo::PadOp>(op)) {
    for (auto [i, n] : llvm::enumerate(from)) {
      if (pad.getInteriorPadding()[i] != 0)
        return {};
      at[i] -= pad.getEdgePaddingLow()[i];
      if (at[i] < 0 || at[i] >= n)
        return operand(1, 0);
    }
    return operand(0, indexOf(from, at));
  }
  // One of the operand's elements, whichever.
  const bool picks = isa<hlo::GatherOp, hlo::DynamicSliceOp>(op) || (isa<hlo::SortOp>(op) && op->getNumOperands() == 1);
  const int64_t candidates = picks ? countOf(op->getOperand(0)) : 0;
  if (candidates < 1)
    return {};
  if (auto gather = dyn_cast<hlo::GatherOp>(op); gather && from.size() == 1 && gather.getSliceSizes()[0] == 1)
    if (auto index = countOf(gather.getStartIndices()) == type.getNumElements() ? numberAt(gather.getStartIndices(), k) : std::nullopt)
      return operand(0, std::clamp<int64_t>(static_cast<int64_t>(*index), 0, from[0] - 1));
  std::optional<Known> any;
  for (int64_t i = 0; i < candidates; ++i) {
    Known one = operand(0, i);
    any = any ? Known{{}, atLeastBoth(any->most, one.most), any->nonNegative && one.nonNegative} : one;
  }
  if (candidates > 1)
    any->exact = {};
  return *any;
}

Known Reader::follow(Value v, int64_t k) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  Operation *op = v.getDefiningOp();
  if (!type || !type.hasStaticShape() || type.getNumElements() > kMaxElements || k >= type.getNumElements())
    return {};
  Type element = type.getElementType();
  if (!mayBeSize(element) && !element.isF32() && !element.isF64())
    return {};
  auto [at, isNew] = seen.try_emplace({v.getAsOpaquePointer(), k});
  if (!isNew)
    return at->second;
  if (depth >= kMaxDepth || ++visits > kMaxVisits)
    return {};
  if (!op)
    return carried(cast<BlockArgument>(v), k);
  Known result;
  if (auto number = numberAt(v, k)) {
    if (std::abs(*number) < 9e15)
      result = mayBeSize(element) ? known(ctx.constant(static_cast<int64_t>(*number)))
                                  : Known{{}, ctx.constant(std::max<int64_t>(0, static_cast<int64_t>(std::ceil(*number)))), *number >= 0};
  } else {
    ++depth;
    result = followOp(op, v, k);
    --depth;
  }
  // a size whatever the run chooses: what is computed from it goes on as an expression
  if (mayBeSize(element) && !result.exact && result.most && result.nonNegative && !elsewhere)
    result.exact = symbolOf(v, k, result.most);
  seen[{v.getAsOpaquePointer(), k}] = result;
  return result;
}

std::optional<Dims> Reader::read(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() > kMaxElements || !mayBeSize(type.getElementType()))
    return std::nullopt;
  SmallVector<Known> elements;
  for (int64_t k = 0; k < type.getNumElements(); ++k) {
    elements.push_back(follow(v, k));
    if (!elements.back().exact && !elements.back().most)
      return std::nullopt;
  }
  Dims sizes;
  for (auto [k, element] : llvm::enumerate(elements))
    sizes.push_back(element.exact ? ctx.resolve(element.exact) : symbolOf(v, k, element.most));
  return sizes;
}

} // namespace

std::optional<Dims> readSizes(HloContext &ctx, Location loc, StringRef nodeName, Value v) { return Reader(ctx, loc, nodeName).read(v); }

std::optional<Dims> boundedSizes(NodeContext &c, unsigned i) {
  if (auto sizes = c.trySizes(i))
    return sizes;
  Value v = i < c.numInputs() ? c.ctx.materialize(c.value(i), c.loc) : Value();
  return v ? readSizes(c.ctx, c.loc, c.name(), v) : std::nullopt;
}

AffineExpr sizeAtLeast(HloContext &ctx, AffineExpr a, AffineExpr b) {
  a = ctx.resolve(a);
  b = ctx.resolve(b);
  auto larger = [&](AffineExpr x, AffineExpr y) -> AffineExpr {
    AffineExpr difference = hlo::simplify(x - y);
    if (auto n = constantOf(difference))
      return *n >= 0 ? x : y;
    return hlo::isNonNegative(difference) ? x : hlo::isNonNegative(hlo::simplify(y - x)) ? y : AffineExpr();
  };
  if (AffineExpr known = larger(a, b))
    return known;
  auto most = ctx.upperBound(a), other = ctx.upperBound(b);
  if (most && other)
    return ctx.constant(std::max(*most, *other));
  // two sizes that the run chooses often have the same bound
  AffineExpr x = ctx.inputBound(a), y = ctx.inputBound(b);
  if (!x || !y)
    return hlo::simplify(a + b);
  AffineExpr known = larger(x, y);
  return known ? known : hlo::termwiseMost(x, y);
}

AffineExpr smallerSize(Emitter &e, AffineExpr a, AffineExpr b) {
  Type i64 = e.b.getI64Type();
  auto sizes = readSizes(e.ctx, e.loc, e.nodeName, e.min(e.sizeValue(a, i64), e.sizeValue(b, i64)));
  return sizes ? (*sizes)[0] : AffineExpr();
}

} // namespace lathe::legalize
