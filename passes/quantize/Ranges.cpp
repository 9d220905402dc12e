// Before: float hlo that rounds values to the steps of a range, as models do that were trained for quantization. After: those values
// clamped to the range, with hlo.given_range on the clamp.
#include "passes/quantize/Passes.h"
#include "passes/quantize/Units.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <utility>

using namespace mlir;

namespace lathe::quantize {
#define GEN_PASS_DEF_HLOQUANTIZERANGES
#include "passes/quantize/Passes.h.inc"

namespace {

constexpr int mostOps = 16; ///< on each side of the rounding
constexpr int64_t fewestLevels = 254; ///< of what 8 bits round to anyway. Fewer stay: as a table, whose numbers are among those of the range
constexpr double tolerance = 1e-3; ///< of a step: for what f32 loses on the way

/// The numbers that a function rounds to: those from low to high, 0 among them, `levels` steps apart.
struct Grid {
  double low = 0, high = 0;
  int64_t levels = 0;
  double step() const { return (high - low) / double(levels); }
};

bool isElementwise(Operation *op) { return op && op->getNumResults() == 1 && op->hasTrait<hlo::HloElementwise>(); }

/// The only operand of an elementwise op that is no splat; null if there are several.
Value onlyOperand(Operation *op) {
  Value only;
  for (Value v : op->getOperands()) {
    if (splatElement(v) || v == only)
      continue;
    if (only)
      return {};
    only = v;
  }
  return only;
}

bool isF32(Value v) { return hlo::elementType(v).isF32(); }

/// The function of single elements that leads from a value to another, as a unit; none where it reads anything else.
std::optional<Unit> functionBetween(Value from, Value to) {
  Unit unit;
  unit.kind = UnitKind::Table;
  unit.root = to.getDefiningOp();
  unit.out = to;
  unit.inputs.push_back(from);
  llvm::SetVector<Operation *> needed;
  needed.insert(unit.root);
  for (size_t i = 0; i < needed.size(); ++i) {
    Operation *op = needed[i];
    if (!isElementwise(op) || op->getBlock() != unit.root->getBlock() || needed.size() > 2 * mostOps ||
        hlo::getDims(hlo::tensorType(op->getResult(0))) != hlo::getDims(hlo::tensorType(from)))
      return std::nullopt;
    for (Value v : op->getOperands()) {
      if (v == from || splatElement(v))
        continue;
      if (!v.getDefiningOp())
        return std::nullopt;
      needed.insert(v.getDefiningOp());
    }
  }
  unit.ops.assign(needed.begin(), needed.end());
  llvm::sort(unit.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return unit;
}

/// Where a function ends up for numbers of growing size (by powers of two, from small ones on): what it gives from the first one on from
/// which it stays the same, but for what numbers of that size lose. None where it goes on.
std::optional<double> endOf(ArrayRef<float> points, ArrayRef<float> values) {
  for (size_t i = 0; i + 2 < points.size(); ++i) {
    const double end = values[i];
    auto stays = [&](size_t k) { return std::abs(values[k] - end) <= 1e-6 * std::abs(end) + std::abs(points[k]) * 0x1p-22; };
    if (std::abs(end) < 0.9 * std::abs(points[i]) && llvm::all_of(llvm::seq<size_t>(i + 1, points.size()), stays))
      return end;
  }
  return std::nullopt;
}

/// The grid that a function rounds to, seen from its values: its ends from numbers far away, its steps from points that lie close together,
/// then every number at the nearest one of the grid.
std::optional<Grid> gridOf(const Unit &unit) {
  std::vector<float> powers = {0};
  for (float sign : {-1.0f, 1.0f})
    for (int k = -24; k <= 40; ++k)
      powers.push_back(sign * std::ldexp(1.0f, k));
  auto ends = evaluateTable(unit, powers);
  if (failed(ends) || llvm::any_of(*ends, [](float v) { return !std::isfinite(v); }))
    return std::nullopt;
  const size_t n = powers.size() / 2;
  auto sides = [&](size_t first) { return endOf(ArrayRef(powers).slice(first, n), ArrayRef(*ends).slice(first, n)); };
  auto lowest = sides(1), highest = sides(1 + n);
  if (!lowest || !highest || !(*lowest < *highest))
    return std::nullopt;
  Grid grid{*lowest, *highest, 0};
  const double width = grid.high - grid.low;
  if (grid.low > 0 || grid.high < 0 || !(std::abs((*ends)[0]) < 1e-6 * width))
    return std::nullopt;
  constexpr int64_t fine = int64_t(1) << 17; // half a step of a grid of 16 bits
  constexpr int near = 2048, coarse = 1024;
  std::vector<float> points;
  for (int i = -near; i <= near; ++i)
    points.push_back(float(width * i / double(fine)));
  for (int i = 0; i <= coarse; ++i)
    points.push_back(float(grid.low + width * (1.2 * i / double(coarse) - 0.1)));
  auto values = evaluateTable(unit, points);
  if (failed(values) || llvm::any_of(*values, [](float v) { return !std::isfinite(v); }))
    return std::nullopt;
  std::vector<float> sorted = *values;
  llvm::sort(sorted);
  double step = width;
  for (size_t i = 1; i < sorted.size(); ++i)
    if (double gap = double(sorted[i]) - sorted[i - 1]; gap > width * 1e-5 / 2)
      step = std::min(step, gap);
  grid.levels = std::llround(width / step);
  if (grid.levels < 2 || grid.levels > 65535)
    return std::nullopt;
  step = grid.step();
  auto isAtNearest = [&](float point, float value) {
    const double inside = std::clamp<double>(point, grid.low, grid.high), steps = (value - grid.low) / step;
    return std::abs(steps - std::round(steps)) < tolerance * std::max<double>(1, grid.levels / 256.0) &&
           std::abs(value - inside) < step * (0.5 + tolerance * std::max<double>(1, grid.levels / 256.0));
  };
  for (auto [p, v] : llvm::zip_equal(points, *values))
    if (!isAtNearest(p, v))
      return std::nullopt;
  return grid;
}

class Taker {
public:
  explicit Taker(MLIRContext *context) : builder(context) {}
  unsigned taken = 0;

  void run(func::FuncOp function) {
    SmallVector<Operation *> roundings;
    function.walk([&](Operation *op) {
      if (isa<hlo::RoundOp, hlo::RoundNearestEvenOp, hlo::FloorOp>(op) && isF32(op->getResult(0)))
        roundings.push_back(op);
    });
    for (Operation *op : roundings)
      rounding(op);
    // what is read no longer would be another use of the values that were rounded
    function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  }

private:
  OpBuilder builder;

  /// The longest chain of ops around the rounding that is one to a grid: factors before and behind it belong to it. What cuts the range
  /// short, as a ReLU may, does not.
  void rounding(Operation *op) {
    SmallVector<Value> before, after;
    Value v = onlyOperand(op);
    for (int i = 0; v && i < mostOps; ++i) {
      if (isF32(v))
        before.push_back(v);
      Operation *maker = v.getDefiningOp();
      if (!isElementwise(maker) || maker->getBlock() != op->getBlock())
        break;
      v = onlyOperand(maker);
    }
    v = op->getResult(0);
    for (int i = 0; i < mostOps && v.hasOneUse(); ++i) {
      Operation *user = *v.getUsers().begin();
      if (!isElementwise(user) || user->getBlock() != op->getBlock())
        break;
      v = user->getResult(0);
      if (isF32(v))
        after.push_back(v);
    }
    std::optional<std::pair<Value, Grid>> coarse;
    for (Value from : llvm::reverse(before))
      for (Value to : llvm::reverse(after))
        if (auto unit = functionBetween(from, to))
          if (auto grid = gridOf(*unit)) {
            if (grid->levels >= fewestLevels)
              return replace(*unit, *grid);
            if (!coarse)
              coarse = {to, *grid};
          }
    if (!coarse)
      return;
    auto &[to, grid] = *coarse;
    give(to.getDefiningOp(), grid.low, grid.high);
    ++taken;
  }

  void replace(const Unit &unit, Grid grid) {
    // a narrow range leaves out its lowest number
    const Limits limits{grid.low, grid.levels == fewestLevels ? grid.low - grid.step() : grid.low, grid.high};
    const bool alone = llvm::all_of(unit.inputs[0].getUsers(), [&](Operation *user) { return llvm::is_contained(unit.ops, user); });
    Value result = unit.out;
    result.replaceAllUsesWith(clamped(unit.inputs[0], result, limits, alone));
    ++taken;
  }

  /// Where numbers are cut off, and the range.
  struct Limits {
    double least, low, high;
  };

  void give(Operation *op, double low, double high) { op->setAttr(givenAttr, builder.getDenseF64ArrayAttr({low, high})); }

  /// How many of an op's first operands are what its result's elements come from, if it changes none of them.
  static unsigned numMoved(Operation *op) {
    if (isa<hlo::ReshapeOp, hlo::TransposeOp, hlo::SliceOp, hlo::ReverseOp>(op))
      return 1;
    if (isa<hlo::ConcatenateOp>(op))
      return op->getNumOperands();
    auto window = dyn_cast<hlo::ReduceWindowOp>(op);
    const bool chooses = window && window.getInputs().size() == 1 && llvm::all_of(window.getBody().front(), [](Operation &inner) {
      return isa<hlo::MaxOp, hlo::CompareOp, hlo::SelectOp, hlo::ReturnOp>(inner);
    });
    return chooses ? 1 : 0;
  }

  /// x within the range, in front of `before`'s op. What only moves elements or takes the largest is passed, so that the clamp ends a unit
  /// that has one. An argument that nothing else reads (`alone`) has the range itself: what makes integers of it cuts it off.
  Value clamped(Value x, Value before, Limits limits, bool alone) {
    Operation *maker = x.getDefiningOp();
    if (maker && alone) {
      for (unsigned i = 0; i < numMoved(maker); ++i) {
        Value operand = maker->getOperand(i);
        maker->setOperand(i, clamped(operand, x, limits, operand.hasOneUse()));
      }
      if (numMoved(maker))
        return x;
    }
    auto argument = dyn_cast<BlockArgument>(x);
    if (auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp(); function && alone) {
      function.setArgAttr(argument.getArgNumber(), givenAttr, builder.getDenseF64ArrayAttr({limits.low, limits.high}));
      return x;
    }
    // these have parameters of their own
    const bool isShare = maker && (isa<hlo::LogisticOp>(maker) || (isa<hlo::DivOp>(maker) && maker->getOperand(0).getDefiningOp<hlo::ExpOp>()));
    if ((isShare && limits.high > 0.98) || (maker && isa<hlo::TanhOp>(maker) && limits.low < -0.98 && limits.high > 0.98))
      return x;
    builder.setInsertionPoint(before.getDefiningOp());
    RankedTensorType scalar = RankedTensorType::get({}, Float32Type::get(builder.getContext()));
    Location loc = before.getLoc();
    Value clamp = hlo::ClampOp::create(builder, loc, x.getType(), hlo::makeSplat(builder, loc, limits.least, scalar), x,
                                       hlo::makeSplat(builder, loc, limits.high, scalar));
    give(clamp.getDefiningOp(), limits.low, limits.high);
    return clamp;
  }
};

struct Ranges : impl::HloQuantizeRangesBase<Ranges> {
  using HloQuantizeRangesBase::HloQuantizeRangesBase;
  void runOnOperation() override {
    Taker taker(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        taker.run(function);
    numTaken += taker.taken;
  }
};

} // namespace
} // namespace lathe::quantize
