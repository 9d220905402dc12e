//===- HoistLoopInvariants.cpp - work out of while loops --------------------===//
//
// Before: a loop whose body multiplies row t of X by W. After: one product of
// all rows before the loop and a slice of its result in the body; everything
// that does not change is computed before the loop.
//
//===----------------------------------------------------------------------===//

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOHOISTLOOPINVARIANTS
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

/// Products before a loop write at most this many bytes.
constexpr int64_t maxProductBytes = int64_t(256) << 20;

bool isOutside(Value v, hlo::WhileOp loop) { return !loop->isAncestor(v.getParentRegion()->getParentOp()); }

using Symbols = llvm::SmallDenseSet<int64_t>;

/// The symbol that an op writes, -1 for others.
int64_t writtenSymbol(Operation *op) {
  auto symbol = op->getAttrOfType<IntegerAttr>("symbol");
  return symbol ? symbol.getInt() : -1;
}

/// Whether a size in the op's types or attributes is one of the symbols.
bool hasSizeOf(Operation *op, const Symbols &symbols) {
  auto uses = [&](ArrayRef<AffineExpr> exprs) {
    bool found = false;
    for (AffineExpr expr : exprs)
      if (expr)
        expr.walk([&](AffineExpr e) {
          auto symbol = dyn_cast<AffineSymbolExpr>(e);
          found |= symbol && symbols.contains(symbol.getPosition());
        });
    return found;
  };
  return op->walk([&](Operation *inner) {
             for (Type type : inner->getResultTypes())
               if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && uses(hlo::getDims(tensor)))
                 return WalkResult::interrupt();
             for (NamedAttribute attr : inner->getAttrs())
               if (auto map = dyn_cast<AffineMapAttr>(attr.getValue()); map && uses(map.getValue().getResults()))
                 return WalkResult::interrupt();
             return WalkResult::advance();
           }).wasInterrupted();
}

/// Moves ops whose operands and sizes come from outside to before the loop.
unsigned hoist(hlo::WhileOp loop) {
  unsigned count = 0;
  Symbols changing;
  loop->walk([&](Operation *op) {
    if (int64_t symbol = writtenSymbol(op); symbol >= 0)
      changing.insert(symbol);
  });
  for (Region *region : {&loop.getCond(), &loop.getBody()})
    for (Block &block : *region)
      for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
        // control flow inside may be there to avoid the work; sources of random numbers and checks stay
        if (!isMemoryEffectFree(&op) || isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op) ||
            op.getName().stripDialect().starts_with("rng"))
          continue;
        bool outside = llvm::all_of(op.getOperands(), [&](Value v) { return isOutside(v, loop); });
        if (!outside)
          continue;
        if (op.getNumRegions()) {
          SetVector<Value> captured;
          getUsedValuesDefinedAbove(op.getRegions(), captured);
          if (!llvm::all_of(captured, [&](Value v) { return isOutside(v, loop); }))
            continue;
        }
        // what an op writes itself goes with it
        int64_t own = writtenSymbol(&op);
        bool owns = own >= 0 && changing.erase(own);
        if (!changing.empty() && hasSizeOf(&op, changing)) {
          if (owns)
            changing.insert(own);
          continue;
        }
        op.moveBefore(loop);
        count += !isa<hlo::ConstantOp>(op);
      }
  return count;
}

/// Row t of a loop-invariant tensor: dynamic_slice(X, t, 0, ...) of size 1 in one dimension and full in the others,
/// possibly reshaped.
struct Row {
  Value tensor;
  hlo::DynamicSliceOp slice;
  int64_t dim = 0;
};

std::optional<Row> matchRow(Value v, hlo::WhileOp loop) {
  while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape.getOperand();
  auto slice = v.getDefiningOp<hlo::DynamicSliceOp>();
  if (!slice || !isOutside(slice.getOperand(), loop))
    return std::nullopt;
  auto from = cast<RankedTensorType>(slice.getOperand().getType()), to = cast<RankedTensorType>(slice.getType());
  if (!hlo::hasKnownDims(from))
    return std::nullopt;
  // the row dimension comes first, so that the rows of the product stay together
  if (from.getRank() < 2 || to.getDimSize(0) != 1)
    return std::nullopt;
  for (int64_t i = 1; i < from.getRank(); ++i)
    if (!hlo::equalDims(hlo::getDim(from, i), hlo::getDim(to, i)))
      return std::nullopt;
  Row row;
  row.tensor = slice.getOperand();
  row.slice = slice;
  return row;
}

bool hoistProduct(hlo::DotGeneralOp dot, hlo::WhileOp loop) {
  auto d = dot.getDotDimensionNumbers();
  auto lhs = cast<RankedTensorType>(dot.getLhs().getType()), rhs = cast<RankedTensorType>(dot.getRhs().getType());
  auto result = cast<RankedTensorType>(dot.getType());
  if (!d.getLhsBatchingDimensions().empty() || d.getLhsContractingDimensions() != ArrayRef<int64_t>{1} ||
      lhs.getRank() != 2 || rhs.getRank() != 2 || !isOutside(dot.getRhs(), loop))
    return false;
  std::optional<Row> row = matchRow(dot.getLhs(), loop);
  if (!row)
    return false;
  // rows of the slice must be rows of the product: [1, B, I] seen as [B, I]
  auto from = cast<RankedTensorType>(row->tensor.getType());
  if (!hlo::equalDims(hlo::getDim(from, from.getRank() - 1), hlo::getDim(lhs, 1)))
    return false;
  AffineExpr steps = hlo::getDim(from, 0), rows = hlo::getDim(lhs, 0), width = hlo::getDim(result, 1);
  AffineExpr all = hlo::simplify(steps * rows);
  if (std::optional<int64_t> m = hlo::constantValue(all))
    if (std::optional<int64_t> n = hlo::constantValue(width); n && *m > 0 && *n > maxProductBytes / 4 / *m)
      return false;

  OpBuilder b(loop);
  Location loc = dot.getLoc();
  Type element = result.getElementType();
  Value flat = hlo::ReshapeOp::create(
      b, loc, hlo::makeType(ArrayRef<AffineExpr>{all, hlo::getDim(lhs, 1)}, lhs.getElementType()), row->tensor);
  Value product = hlo::DotGeneralOp::create(b, loc, hlo::makeType(ArrayRef<AffineExpr>{all, width}, element), flat,
                                            dot.getRhs(), d, dot.getPrecisionConfigAttr());
  Value stacked =
      hlo::ReshapeOp::create(b, loc, hlo::makeType(ArrayRef<AffineExpr>{steps, rows, width}, element), product);
  b.setInsertionPoint(dot);
  SmallVector<Value> starts = {row->slice.getStartIndices().front()};
  auto indexType = cast<RankedTensorType>(starts.front().getType());
  Value zero = hlo::makeSplat(b, loc, 0.0, indexType);
  starts.append(2, zero);
  Value one = hlo::DynamicSliceOp::create(b, loc, stacked, starts,
                                          ArrayRef<AffineExpr>{hlo::constantExpr(b.getContext(), 1), rows, width});
  Value made = hlo::ReshapeOp::create(b, loc, result, one);
  dot.getResult().replaceAllUsesWith(made);
  dot.erase();
  return true;
}

/// dot(concat(x, h), W) with x a row of an invariant tensor: dot(x, W1) + dot(h, W2).
bool splitProduct(hlo::DotGeneralOp dot, hlo::WhileOp loop) {
  auto d = dot.getDotDimensionNumbers();
  auto concat = dot.getLhs().getDefiningOp<hlo::ConcatenateOp>();
  auto rhs = cast<RankedTensorType>(dot.getRhs().getType());
  if (!concat || concat.getInputs().size() != 2 || static_cast<int64_t>(concat.getDimension()) != 1 ||
      !d.getLhsBatchingDimensions().empty() || d.getLhsContractingDimensions() != ArrayRef<int64_t>{1} ||
      d.getRhsContractingDimensions() != ArrayRef<int64_t>{0} || rhs.getRank() != 2 || !rhs.hasStaticShape() ||
      cast<RankedTensorType>(concat.getType()).getRank() != 2 || !isOutside(dot.getRhs(), loop))
    return false;
  if (!matchRow(concat.getInputs()[0], loop) && !matchRow(concat.getInputs()[1], loop))
    return false;
  auto first = cast<RankedTensorType>(concat.getInputs()[0].getType());
  if (first.isDynamicDim(1))
    return false;
  int64_t cut = first.getDimSize(1);
  OpBuilder b(dot);
  auto part = [&](unsigned i) {
    b.setInsertionPoint(loop);
    SmallVector<int64_t> from = {i ? cut : 0, 0}, to = {i ? rhs.getDimSize(0) : cut, rhs.getDimSize(1)};
    Value weights = hlo::SliceOp::create(b, dot.getLoc(), dot.getRhs(), from, to, SmallVector<int64_t>{1, 1});
    b.setInsertionPoint(dot);
    return hlo::DotGeneralOp::create(b, dot.getLoc(), dot.getType(), concat.getInputs()[i], weights, d,
                                     dot.getPrecisionConfigAttr());
  };
  auto x = part(0), h = part(1);
  b.setInsertionPoint(dot);
  Value sum = hlo::AddOp::create(b, dot.getLoc(), dot.getType(), x.getResult(), h.getResult());
  dot.getResult().replaceAllUsesWith(sum);
  dot.erase();
  return true;
}

struct HloHoistLoopInvariants : simplify::impl::HloHoistLoopInvariantsBase<HloHoistLoopInvariants> {
  using Base::Base;

  void runOnOperation() override {
    // Inner loops first: what leaves them may leave the outer one too.
    SmallVector<hlo::WhileOp> loops;
    getOperation()->walk([&](hlo::WhileOp loop) { loops.push_back(loop); });
    for (hlo::WhileOp loop : loops) {
      numHoisted += hoist(loop);
      if (!llvm::hasSingleElement(loop.getBody()))
        continue;
      auto dots = [&] {
        auto range = loop.getBody().front().getOps<hlo::DotGeneralOp>();
        return SmallVector<hlo::DotGeneralOp>(range.begin(), range.end());
      };
      if (!exact)
        for (hlo::DotGeneralOp dot : dots())
          splitProduct(dot, loop);
      for (hlo::DotGeneralOp dot : dots())
        numProducts += hoistProduct(dot, loop);
    }
  }
};

} // namespace
