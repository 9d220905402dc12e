#include "passes/quantize/Taps.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Rebuild.h"
#include "passes/legalize/Emitter.h"
#include "passes/simplify/Match.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace lathe::quantize {
namespace {

using legalize::Emitter;

/// The extremes of one value so far, as values of the block at hand.
struct Extremes {
  Value of, low, high;
};

class Tapper {
public:
  Tapper(ModuleOp module, const llvm::DenseSet<Value> &wanted) : context(module), wanted(wanted) {}

  std::vector<Extremes> block(Block &block) {
    std::vector<Extremes> all;
    for (BlockArgument argument : block.getArguments())
      measure(argument, all);
    for (Operation &op : llvm::make_early_inc_range(block)) {
      Operation *now = isa<hlo::WhileOp>(op) ? loop(&op, all) : isa<hlo::IfOp, hlo::CaseOp>(op) ? branches(&op, all) : &op;
      for (Value v : now->getResults())
        measure(v, all);
    }
    return all;
  }

private:
  legalize::HloContext context;
  llvm::DenseSet<Value> wanted;

  Emitter emitterAt(Location loc) { return Emitter(context, loc, ""); }

  Value neutral(Emitter &e, bool low) { return e.scalar(low ? INFINITY : -INFINITY, e.b.getF32Type()); }

  void measure(Value v, std::vector<Extremes> &all) {
    if (!wanted.contains(v))
      return;
    if (Operation *op = v.getDefiningOp())
      context.builder.setInsertionPointAfter(op);
    else
      context.builder.setInsertionPointToStart(v.getParentBlock());
    Emitter e = emitterAt(v.getLoc());
    SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, Emitter::rank(v)));
    all.push_back({v, e.reduceMin(v, axes), e.reduceMax(v, axes)});
  }

  // The op again with more operands and results; what is wanted of it is wanted of the new one.
  Operation *rebuild(Operation *op, ArrayRef<Value> operands, ArrayRef<Type> results) {
    SmallVector<unsigned> kept;
    for (OpResult r : op->getResults())
      if (wanted.erase(r))
        kept.push_back(r.getResultNumber());
    Operation *made = hlo::rebuild(op, operands, results);
    for (unsigned i : kept)
      wanted.insert(made->getResult(i));
    return made;
  }

  Operation *loop(Operation *op, std::vector<Extremes> &all) {
    Block &cond = op->getRegion(0).front(), &body = op->getRegion(1).front();
    std::vector<Extremes> inner = block(body);
    if (inner.empty())
      return op;
    SmallVector<Value> operands(op->getOperands()), yielded(body.getTerminator()->getOperands());
    SmallVector<Type> types(op->getResultTypes());
    const unsigned first = types.size();
    for (const Extremes &x : inner)
      for (bool low : {true, false}) {
        context.builder.setInsertionPoint(op);
        Emitter outside = emitterAt(op->getLoc());
        operands.push_back(neutral(outside, low));
        types.push_back(x.low.getType());
        cond.addArgument(x.low.getType(), op->getLoc());
        Value sofar = body.addArgument(x.low.getType(), op->getLoc());
        context.builder.setInsertionPoint(body.getTerminator());
        Emitter inside = emitterAt(op->getLoc());
        yielded.push_back(low ? inside.min(sofar, x.low) : inside.max(sofar, x.high));
      }
    body.getTerminator()->setOperands(yielded);
    Operation *made = rebuild(op, operands, types);
    for (auto [i, x] : llvm::enumerate(inner))
      all.push_back({x.of, made->getResult(first + 2 * i), made->getResult(first + 2 * i + 1)});
    return made;
  }

  Operation *branches(Operation *op, std::vector<Extremes> &all) {
    std::vector<std::vector<Extremes>> inner;
    SmallVector<Type> types(op->getResultTypes());
    const unsigned first = types.size();
    for (Region &r : op->getRegions()) {
      inner.push_back(block(r.front()));
      for (const Extremes &x : inner.back())
        types.append({x.low.getType(), x.high.getType()});
    }
    if (types.size() == first)
      return op;
    for (auto [k, r] : llvm::enumerate(op->getRegions())) {
      Operation *yield = r.front().getTerminator();
      context.builder.setInsertionPoint(yield);
      Emitter e = emitterAt(op->getLoc());
      SmallVector<Value> yielded(yield->getOperands());
      for (auto [j, list] : llvm::enumerate(inner))
        for (const Extremes &x : list) {
          yielded.push_back(j == k ? x.low : neutral(e, true));
          yielded.push_back(j == k ? x.high : neutral(e, false));
        }
      yield->setOperands(yielded);
    }
    Operation *made = rebuild(op, SmallVector<Value>(op->getOperands()), types);
    unsigned at = first;
    for (auto &list : inner)
      for (const Extremes &x : list) {
        all.push_back({x.of, made->getResult(at), made->getResult(at + 1)});
        at += 2;
      }
    return made;
  }
};

} // namespace

std::vector<UnitTaps> addRangeTaps(func::FuncOp function) {
  llvm::DenseSet<Value> wanted;
  auto want = [&](Value v) {
    if (!constantValue(v) && !splatElement(v))
      wanted.insert(v);
  };
  for (const Unit &unit : chosenUnits(function)) {
    for (Value v : unit.inputs)
      want(v);
    want(unit.out);
  }
  Block &block = function.getBody().front();
  SmallVector<Value> values;
  llvm::DenseMap<Value, int> place;
  std::vector<Extremes> all = Tapper(function->getParentOfType<ModuleOp>(), wanted).block(block);
  values.assign(block.getTerminator()->operand_begin(), block.getTerminator()->operand_end());
  for (const Extremes &x : all) {
    place[x.of] = int(values.size());
    values.append({x.low, x.high});
  }
  auto find = [&](Value v) {
    auto it = place.find(v);
    return it == place.end() ? -1 : it->second;
  };
  std::vector<UnitTaps> taps;
  for (const Unit &unit : chosenUnits(function)) { // anew: loops were rebuilt
    UnitTaps t;
    for (Value v : unit.inputs)
      t.inputs.push_back(find(v));
    t.output = find(unit.out);
    taps.push_back(t);
  }
  hlo::setResults(function, values);
  return taps;
}

int addValueTaps(func::FuncOp function, ArrayRef<Value> values) {
  SmallVector<Value> all(function.getBody().front().getTerminator()->getOperands());
  const int first = all.size();
  all.append(values.begin(), values.end());
  hlo::setResults(function, all);
  return first;
}

} // namespace lathe::quantize
