// Which ops are one unit: products with what follows them, pools, means, softmax, and by elimination tables and moves.
#include "passes/quantize/Units.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"
#include "passes/simplify/Match.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace lathe::quantize {

StringRef unitName(UnitKind kind) {
  static const char *const names[] = {"convolution", "dot",  "scale",   "matmul", "add",  "subtract", "multiply",
                                      "max_pool",    "average_pool", "mean", "softmax", "resize", "table",  "move"};
  return names[static_cast<int>(kind)];
}

namespace {

bool isF32(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && type.getElementType().isF32();
}

bool isConstant(Value v) { return bool(constantValue(v)); }
bool isFixed(Value v) { return isConstant(v) || splatElement(v); }

/// The numbers of a constant that varies along the last dimension of `like` only.
std::optional<std::vector<double>> channelValues(Value v, RankedTensorType like) {
  if (auto number = splatNumber(v))
    return std::vector<double>{*number};
  const int64_t last = like.getRank() - 1;
  Value from;
  if (auto channel = matchChannelConstant(v)) {
    if (channel->dim != last)
      return std::nullopt;
    from = channel->value;
  } else if (isConstant(v)) {
    if (cast<RankedTensorType>(v.getType()).getDimSize(last) != like.getDimSize(last))
      return std::nullopt;
    from = v;
  } else {
    return std::nullopt;
  }
  auto tensor = hlo::readConstant(from);
  if (failed(tensor) || tensor->dtype() != DType::Float32 || tensor->numElements() == 0)
    return std::nullopt;
  const float *x = tensor->data<float>();
  const int64_t channels = tensor->rank() > 0 ? tensor->dim(tensor->rank() - 1) : 1;
  for (int64_t i = channels; i < tensor->numElements(); ++i) // a vector that was repeated
    if (x[i] != x[i - channels])
      return std::nullopt;
  return std::vector<double>(x, x + channels);
}

class Finder {
public:
  std::vector<Unit> units;

  void block(Block &block) {
    SmallVector<Operation *> outer = std::exchange(elementwise, {});
    for (Operation &op : block)
      if (auto divide = dyn_cast<hlo::DivOp>(op))
        softmax(divide);
    for (Operation &op : llvm::reverse(block)) // the whole of one ends behind its parts
      if (!taken.contains(&op))
        resize(op);
    for (Operation &op : block) {
      for (Region &region : op.getRegions())
        if (isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op))
          for (Block &inner : region)
            this->block(inner);
      if (!taken.contains(&op))
        visit(op);
    }
    tables();
    elementwise = std::move(outer);
  }

private:
  llvm::DenseSet<Operation *> taken;
  llvm::DenseMap<Value, Value> source; ///< the one value that results of elementwise ops depend on
  SmallVector<Operation *> elementwise; ///< those ops, of the block at hand

  void add(Unit unit) {
    for (Operation *op : unit.ops)
      taken.insert(op);
    units.push_back(std::move(unit));
  }

  Unit start(UnitKind kind, Operation *op, ValueRange inputs) {
    Unit unit;
    unit.kind = kind;
    unit.root = op;
    unit.out = op->getResult(0);
    unit.inputs.assign(inputs.begin(), inputs.end());
    unit.ops.push_back(op);
    return unit;
  }

  /// Takes in a bias (if the kind has one) and clamps behind the unit, as long as nothing else sees what is between.
  void extend(Unit &unit, bool bias) {
    auto type = cast<RankedTensorType>(unit.out.getType());
    bool clamped = false;
    while (unit.out.hasOneUse()) {
      Operation *user = *unit.out.getUsers().begin();
      if (user->getBlock() != unit.root->getBlock() || taken.contains(user) || user->getNumResults() != 1)
        break;
      if (isa<hlo::AddOp>(user) && bias && !clamped && unit.bias.empty()) {
        auto values = channelValues(user->getOperand(user->getOperand(0) == unit.out), type);
        if (!values)
          break;
        unit.bias = *values;
      } else if (isa<hlo::MaxOp, hlo::MinOp>(user)) {
        auto number = splatNumber(user->getOperand(user->getOperand(0) == unit.out));
        if (!number)
          break;
        if (isa<hlo::MaxOp>(user)) {
          unit.low = std::max(unit.low, *number);
          unit.high = std::max(unit.high, *number);
        } else {
          unit.high = std::min(unit.high, *number);
          unit.low = std::min(unit.low, *number);
        }
        clamped = true;
      } else if (auto clamp = dyn_cast<hlo::ClampOp>(user); clamp && clamp.getOperand() == unit.out) {
        auto low = splatNumber(clamp.getMin()), high = splatNumber(clamp.getMax());
        if (!low || !high)
          break;
        unit.low = std::min(std::max(unit.low, *low), *high);
        unit.high = std::min(std::max(unit.high, *low), *high);
        clamped = true;
      } else {
        break;
      }
      unit.ops.push_back(user);
      unit.out = user->getResult(0);
    }
  }

  void visit(Operation &op) {
    if (op.getNumResults() != 1 || !isa<RankedTensorType>(op.getResult(0).getType()))
      return;
    if (!isF32(op.getResult(0))) { // comparisons inside of functions
      if (Value from = onlySource(op)) {
        source[op.getResult(0)] = from;
        elementwise.push_back(&op);
      }
      return;
    }
    if (auto conv = dyn_cast<hlo::ConvolutionOp>(op))
      return convolution(conv);
    if (auto dot = dyn_cast<hlo::DotGeneralOp>(op))
      return product(dot);
    if (auto window = dyn_cast<hlo::ReduceWindowOp>(op))
      return pool(window);
    if (auto reduce = dyn_cast<hlo::ReduceOp>(op))
      return mean(reduce);
    if (Value from = onlySource(op)) {
      source[op.getResult(0)] = from;
      elementwise.push_back(&op);
    } else if (isa<hlo::AddOp, hlo::SubtractOp, hlo::MulOp>(op)) {
      binary(op);
    } else {
      move(op);
    }
  }

  void convolution(hlo::ConvolutionOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    if (!isF32(op.getLhs()) || !isF32(op.getRhs()) || !isConstant(op.getRhs()) || isFixed(op.getLhs()) || op.getBatchGroupCount() != 1 ||
        op.getDimensionNumbers() != plainConvDimensions(op.getContext(), type.getRank()) ||
        (op.getWindowReversal() && llvm::is_contained(*op.getWindowReversal(), true)))
      return;
    Unit unit = start(UnitKind::Conv, op, op.getLhs());
    unit.weights = op.getRhs();
    extend(unit, true);
    add(std::move(unit));
  }

  void product(hlo::DotGeneralOp op) {
    if (!isF32(op.getLhs()) || !isF32(op.getRhs()) || (isFixed(op.getLhs()) && isFixed(op.getRhs())))
      return;
    auto dims = op.getDotDimensionNumbers();
    if (dims.getLhsContractingDimensions().size() != 1)
      return;
    auto rhs = cast<RankedTensorType>(op.getRhs().getType());
    const bool matrix = isConstant(op.getRhs()) && dims.getLhsBatchingDimensions().empty() && rhs.getRank() == 2;
    Unit unit = start(matrix ? UnitKind::Dot : UnitKind::Matmul, op, op.getLhs());
    if (matrix)
      unit.weights = op.getRhs();
    else
      unit.inputs.push_back(op.getRhs());
    extend(unit, matrix);
    add(std::move(unit));
  }

  void pool(hlo::ReduceWindowOp op) {
    if (op.getInputs().size() != 1 || op->getNumResults() != 1)
      return;
    Operation *combine = simpleCombiner(op.getBody());
    auto number = splatNumber(op.getInitValues()[0]);
    if (!number)
      return;
    // comparison and choice is how max pools say it that pass NaN over
    bool largest = combine && isa<hlo::MaxOp>(combine);
    if (!combine && op.getBody().front().getOperations().size() == 3) {
      auto select = op.getBody().front().getTerminator()->getOperand(0).getDefiningOp<hlo::SelectOp>();
      auto compare = select ? select.getPred().getDefiningOp<hlo::CompareOp>() : hlo::CompareOp();
      Block &body = op.getBody().front();
      largest = compare && compare.getComparisonDirection() == hlo::ComparisonDirection::GT && compare.getLhs() == select.getOnTrue() &&
                compare.getRhs() == select.getOnFalse() && compare.getLhs() != compare.getRhs() &&
                llvm::all_of(compare->getOperands(), [&](Value v) { return llvm::is_contained(body.getArguments(), v); });
    }
    if (largest && *number <= -3.0e38)
      return add(start(UnitKind::MaxPool, op, op.getInputs()));
    // a sum of windows that is divided by how many elements each has
    if (!combine || !isa<hlo::AddOp>(combine) || *number != 0 || !op->hasOneUse())
      return;
    Operation *user = *op->getUsers().begin();
    int64_t count = 1;
    for (int64_t n : op.getWindowDimensions())
      count *= n;
    const bool padded = op.getPadding() && llvm::any_of(op.getPadding()->getValues<int64_t>(), [](int64_t p) { return p != 0; });
    if (padded || count > 4096 || user->getBlock() != op->getBlock())
      return;
    if (!isMeanOf(user, op->getResult(0), count))
      return;
    Unit unit = start(UnitKind::AveragePool, op, op.getInputs());
    unit.count = count;
    unit.ops.push_back(user);
    unit.out = user->getResult(0);
    extend(unit, false);
    add(std::move(unit));
  }

  /// Whether the op divides `sum` by `count`.
  static bool isMeanOf(Operation *op, Value sum, int64_t count) {
    if (isa<hlo::DivOp>(op) && op->getOperand(0) == sum) {
      auto by = splatNumber(op->getOperand(1));
      return by && *by == double(count);
    }
    if (!isa<hlo::MulOp>(op))
      return false;
    auto by = splatNumber(op->getOperand(op->getOperand(0) == sum));
    return by && std::abs(*by * double(count) - 1) < 1e-6;
  }

  void mean(hlo::ReduceOp op) {
    if (op.getInputs().size() != 1 || !op->hasOneUse())
      return;
    Operation *combine = simpleCombiner(op.getBody());
    auto type = cast<RankedTensorType>(op.getInputs()[0].getType());
    auto number = splatNumber(op.getInitValues()[0]);
    if (!combine || !isa<hlo::AddOp>(combine) || !number || *number != 0)
      return;
    int64_t count = 1;
    for (int64_t axis : op.getDimensions()) {
      if (type.isDynamicDim(axis) || type.getDimSize(axis) > (1 << 20))
        return;
      count *= type.getDimSize(axis);
      if (count > (1 << 22)) // sums of 8-bit numbers stay within 32 bits
        return;
    }
    Operation *user = *op->getUsers().begin();
    if (count == 0 || user->getBlock() != op->getBlock() || !isMeanOf(user, op->getResult(0), count))
      return;
    Unit unit = start(UnitKind::Mean, op, op.getInputs());
    unit.axes.assign(op.getDimensions().begin(), op.getDimensions().end());
    unit.count = count;
    unit.ops.push_back(user);
    unit.out = user->getResult(0);
    extend(unit, false);
    add(std::move(unit));
  }

  void binary(Operation &op) {
    Value x = op.getOperand(0), y = op.getOperand(1);
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    if (isFixed(x) && isFixed(y))
      return;
    for (int i : {0, 1}) {
      auto values = type.getRank() > 0 ? channelValues(op.getOperand(1 - i), type) : std::nullopt;
      if (!values || (isa<hlo::SubtractOp>(op) && i == 1))
        continue;
      Unit unit = start(UnitKind::Scale, &op, op.getOperand(i));
      if (isa<hlo::MulOp>(op)) {
        unit.weights = op.getOperand(1 - i);
      } else {
        if (isa<hlo::SubtractOp>(op))
          for (double &v : *values)
            v = -v;
        unit.bias = *values;
      }
      extend(unit, true);
      return add(std::move(unit));
    }
    Unit unit = start(isa<hlo::AddOp>(op) ? UnitKind::Add : isa<hlo::SubtractOp>(op) ? UnitKind::Sub : UnitKind::Mul, &op, {x, y});
    extend(unit, false);
    add(std::move(unit));
  }

  void move(Operation &op) {
    SmallVector<Value> inputs;
    if (isa<hlo::ReshapeOp, hlo::TransposeOp, hlo::SliceOp, hlo::ReverseOp, hlo::BroadcastInDimOp, hlo::GatherOp, hlo::DynamicSliceOp>(op))
      inputs = {op.getOperand(0)};
    else if (isa<hlo::ConcatenateOp>(op))
      inputs.assign(op.operand_begin(), op.operand_end());
    else if (isa<hlo::DynamicUpdateSliceOp>(op))
      inputs = {op.getOperand(0), op.getOperand(1)};
    else if (auto pad = dyn_cast<hlo::PadOp>(op)) {
      auto number = splatNumber(pad.getPaddingValue());
      if (!number || std::abs(*number) > 1e30)
        return;
      inputs = {op.getOperand(0), op.getOperand(1)};
    } else
      return;
    if (llvm::any_of(inputs, [](Value v) { return !isF32(v); }) || llvm::all_of(inputs, isFixed))
      return;
    add(start(UnitKind::Move, &op, inputs));
  }

  void resize(Operation &op) {
    auto found = matchBilinearResize(&op);
    if (!found || llvm::any_of(found->ops, [&](Operation *part) { return taken.contains(part); }))
      return;
    Unit unit = start(UnitKind::Resize, &op, found->image);
    unit.ops = found->ops;
    unit.resize = std::move(found);
    add(std::move(unit));
  }

  /// exp(x - max x) / sum of that, over the last dimension.
  void softmax(hlo::DivOp divide) {
    auto exp = divide.getLhs().getDefiningOp<hlo::ExpOp>();
    auto type = dyn_cast<RankedTensorType>(divide.getType());
    if (!exp || !isF32(divide.getResult()) || type.getRank() == 0)
      return;
    const int64_t last = type.getRank() - 1;
    auto reduction = [&](Value v, Value of, SmallVectorImpl<Operation *> &ops) -> hlo::ReduceOp {
      auto spread = v.getDefiningOp<hlo::BroadcastInDimOp>();
      if (!spread)
        return {};
      Value from = spread.getOperand();
      ops.push_back(spread);
      auto dims = spread.getBroadcastDimensions();
      if (auto reshape = from.getDefiningOp<hlo::ReshapeOp>()) {
        ops.push_back(reshape);
        from = reshape.getOperand();
      } else if (!llvm::equal(dims, llvm::seq<int64_t>(0, last))) {
        return {};
      }
      auto reduce = from.getDefiningOp<hlo::ReduceOp>();
      if (!reduce || reduce.getInputs().size() != 1 || reduce.getInputs()[0] != of || reduce.getDimensions() != ArrayRef<int64_t>{last})
        return {};
      ops.push_back(reduce);
      return reduce;
    };
    SmallVector<Operation *> ops = {divide, exp};
    auto sum = reduction(divide.getRhs(), exp.getResult(), ops);
    auto shifted = exp.getOperand().getDefiningOp<hlo::SubtractOp>();
    if (!sum || !shifted)
      return;
    ops.push_back(shifted);
    auto largest = reduction(shifted.getRhs(), shifted.getLhs(), ops);
    Operation *add = sum ? simpleCombiner(sum.getBody()) : nullptr, *max = largest ? simpleCombiner(largest.getBody()) : nullptr;
    if (!add || !max || !isa<hlo::AddOp>(add) || !isa<hlo::MaxOp>(max))
      return;
    Unit unit = start(UnitKind::Softmax, divide, shifted.getLhs());
    unit.ops.assign(ops.rbegin(), ops.rend());
    llvm::sort(unit.ops, [](Operation *a, Operation *b) { return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b); });
    this->add(std::move(unit));
  }

  /// The value that all operands of an elementwise op but splats are or come from; null if there is no such one.
  Value onlySource(Operation &op) {
    if (!op.hasTrait<hlo::HloElementwise>() || op.getNumOperands() == 0 || splatElement(op.getResult(0)))
      return {};
    auto sourceOf = [&](Value v) { return v.getParentBlock() == op.getBlock() ? source.lookup(v) : Value(); };
    auto common = [&](Value from) {
      return from && isF32(from) &&
             llvm::all_of(op.getOperands(), [&](Value v) { return v == from || sourceOf(v) == from || splatElement(v); });
    };
    auto sameSizes = [&](Value from) {
      return hlo::getDims(cast<RankedTensorType>(from.getType())) == hlo::getDims(cast<RankedTensorType>(op.getResult(0).getType()));
    };
    for (Value v : op.getOperands())
      for (Value from : {sourceOf(v), v})
        if (common(from) && sameSizes(from))
          return from;
    return {};
  }

  /// The results of elementwise ops that others see become tables.
  void tables() {
    llvm::DenseSet<Operation *> members(elementwise.begin(), elementwise.end());
    for (Operation *op : elementwise) {
      Value out = op->getResult(0), from = source.lookup(out);
      const bool seen = llvm::any_of(out.getUsers(), [&](Operation *user) {
        return !members.contains(user) || source.lookup(user->getResult(0)) != from;
      });
      if (!seen || !isF32(out) || taken.contains(op))
        continue;
      Unit unit = start(UnitKind::Table, op, from);
      llvm::SetVector<Operation *> needed;
      needed.insert(op);
      for (size_t i = 0; i < needed.size(); ++i)
        for (Value v : needed[i]->getOperands())
          if (v != from && source.lookup(v) == from)
            needed.insert(v.getDefiningOp());
      unit.ops.assign(needed.begin(), needed.end());
      llvm::sort(unit.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      units.push_back(std::move(unit));
    }
    elementwise.clear();
  }
};

} // namespace

std::vector<Unit> findUnits(func::FuncOp function) {
  Finder finder;
  if (!function.isExternal())
    for (Block &block : function.getBody())
      finder.block(block);
  llvm::DenseMap<Operation *, unsigned> order;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { order[op] = order.size(); });
  llvm::sort(finder.units, [&](const Unit &a, const Unit &b) { return order.lookup(a.last()) < order.lookup(b.last()); });
  return std::move(finder.units);
}

std::vector<Unit> chosenUnits(func::FuncOp function) {
  std::vector<Unit> units = findUnits(function);
  llvm::erase_if(units, [](const Unit &unit) { return !unit.last()->hasAttr(markAttr); });
  return units;
}

} // namespace lathe::quantize
