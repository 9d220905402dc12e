// Independent stretches of serial code, side by side: loops of both directions of a layer, towers, small
// branches.
//
//   %a = hlo.while(..)                                    %d = kernel.dot(%y)
//   %b = kernel.loop(%a)                      becomes     %a = hlo.while(..)    {kernel.side = [0, 0]}
//   %d = kernel.dot(%y)                                   %b = kernel.loop(%a)  {kernel.side = [0, 0]}
//   %e = hlo.while(%d)                                    %e = hlo.while(%d)    {kernel.side = [0, 1]}
//
// A window of ops is read once from each op that begins something. An op belongs to the side that it reads
// from; one that reads from two sides of some length ends both, and so do those that read it. What no side
// reads from stays out.
#include "passes/lower/SideBySide.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace lathe::lower {

static constexpr const char *sideAttr = "kernel.side";

std::optional<Side> sideOf(Operation *op) {
  auto attr = op->getAttrOfType<DenseI64ArrayAttr>(sideAttr);
  if (!attr || attr.size() != 2)
    return std::nullopt;
  return Side{attr[0], attr[1]};
}

std::optional<Side> enclosingSide(Operation *op) {
  for (; op && !isa<func::FuncOp>(op); op = op->getParentOp())
    if (std::optional<Side> side = sideOf(op))
      return side;
  return std::nullopt;
}

namespace {

/// How far a group reaches: bounds the time that its search takes.
constexpr size_t windowSize = 128;
/// Work of a call that does next to nothing, and turns of a loop that are not known.
constexpr int64_t callWork = 500, unknownTurns = 8;

struct Work {
  double alone = 0;  ///< on one thread
  double shared = 0; ///< with the threads that its kernels take by themselves
  Work &operator+=(const Work &o) {
    alone += o.alone;
    shared += o.shared;
    return *this;
  }
};

/// The value that `v` of a kernel's region or result stands for.
Value through(Value v) {
  for (;;) {
    if (auto arg = dyn_cast<BlockArgument>(v)) {
      Operation *owner = arg.getOwner()->getParentOp();
      if (!isa<kernel::LoopOp>(owner))
        return v;
      v = owner->getOperand(arg.getArgNumber());
    } else if (auto loop = v.getDefiningOp<kernel::LoopOp>()) {
      v = loop->getRegion(0).front().getTerminator()->getOperand(cast<OpResult>(v).getResultNumber());
    } else {
      return v;
    }
  }
}

std::optional<int64_t> integer(Value v) {
  auto constant = v.getDefiningOp<hlo::ConstantOp>();
  auto value = constant ? dyn_cast<DenseIntElementsAttr>(constant->getAttr("value")) : DenseIntElementsAttr();
  if (!value || !value.isSplat() || value.getSplatValue<APInt>().getSignificantBits() > 40)
    return std::nullopt;
  return value.getSplatValue<APInt>().getSExtValue();
}

/// How often the body runs, where a counter that starts at a constant and grows by one is compared with a
/// constant.
int64_t turns(Operation *loop) {
  Value decision = through(loop->getRegion(0).front().getTerminator()->getOperand(0));
  auto compare = decision.getDefiningOp<hlo::CompareOp>();
  if (!compare || compare.getComparisonDirection() != hlo::ComparisonDirection::LT)
    return unknownTurns;
  auto counter = dyn_cast<BlockArgument>(through(compare.getLhs()));
  std::optional<int64_t> limit = integer(through(compare.getRhs()));
  if (!counter || counter.getOwner()->getParentOp() != loop || !limit)
    return unknownTurns;
  std::optional<int64_t> start = integer(through(loop->getOperand(counter.getArgNumber())));
  return start ? std::max<int64_t>(*limit - *start, 0) : unknownTurns;
}

/// Calls `fn` on every value of outside that the op or its regions read.
template <class Fn>
void forEachRead(Operation *op, Fn fn) {
  for (Value v : op->getOperands())
    fn(v);
  if (isControlFlow(op))
    for (Region &region : op->getRegions())
      for (Operation &inner : region.front())
        forEachRead(&inner, fn);
}

class SideBySide {
public:
  SideBySide(KernelSet &kernels, const LowerOptions &options)
      : kernels(kernels), options(options), least(std::max<double>(options.parallelWork / 2.0, 1)),
        fork(options.parallelWork / 5.0) {}
  void run(Block &block);
  SideStatistics stats;

private:
  enum Place { Before = -2, Behind = -1 }; ///< else the number of a side
  struct Step {
    Operation *op;
    Work work;
    bool fixed = false;  ///< nothing moves across it
    bool spread = false; ///< threads share it well by themselves
  };

  void findFeeders(Block &block);
  std::optional<Work> workOf(Operation *op);
  std::optional<Work> workOf(Block &block);
  Step describe(Operation *op);
  struct Window;
  void place(Window &window, const Step &step);
  bool share(Window &window);
  size_t reorder(const Window &window, std::vector<Step> &steps, size_t first);
  std::optional<size_t> group(std::vector<Step> &steps, size_t first);

  KernelSet &kernels;
  const LowerOptions &options;
  llvm::DenseMap<Operation *, Operation *> loopOf;
  const double least, fork; ///< the shortest side; what it costs to begin and end a group
};

/// Nothing for what cannot run beside others: ops that may fail or write sizes, and those whose sizes are not
/// known, whose kernels settle at run time how many threads they take.
std::optional<Work> SideBySide::workOf(Operation *op) {
  auto isStatic = [](Type t) { return cast<RankedTensorType>(t).hasStaticShape(); };
  if (!llvm::all_of(op->getOperandTypes(), isStatic) || !llvm::all_of(op->getResultTypes(), isStatic) ||
      op->getNumResults() == 0 || isa<hlo::AssumeShapeOp>(op))
    return std::nullopt;
  if (isView(op) || isJoin(op) || isa<hlo::ConstantOp>(op))
    return Work();
  Work work;
  if (isControlFlow(op)) {
    for (Region &region : op->getRegions()) {
      std::optional<Work> part = workOf(region.front());
      if (!part)
        return std::nullopt;
      if (isa<hlo::WhileOp>(op))
        work += *part;
      else if (part->alone > work.alone)
        work = *part;
    }
    if (isa<hlo::WhileOp>(op)) {
      const double times = static_cast<double>(turns(op));
      work = {work.alone * times, work.shared * times};
    }
    return work;
  }
  const KernelInfo &info = kernels.infoOf(op);
  auto units = dyn_cast<AffineConstantExpr>(info.extent);
  if (!units || info.mayFail || !isa<AffineConstantExpr>(info.scratch))
    return std::nullopt;
  double elements = 0;
  for (Type t : op->getResultTypes())
    elements += static_cast<double>(cast<RankedTensorType>(t).getNumElements());
  work.alone =
      callWork +
      std::max(static_cast<double>(info.workPerUnit) * static_cast<double>(units.getValue()), elements);
  work.shared = isParallel(info, options) ? work.alone / options.threads + fork : work.alone;
  return work;
}

std::optional<Work> SideBySide::workOf(Block &block) {
  Work sum;
  for (Operation &op : block.without_terminator()) {
    std::optional<Work> work = workOf(&op);
    if (!work)
      return std::nullopt;
    sum += *work;
  }
  return sum;
}

SideBySide::Step SideBySide::describe(Operation *op) {
  Step step{op, {}};
  if (std::optional<Work> work = workOf(op)) {
    step.work = *work;
    if (op->hasAttr(hlo::oneThreadAttr) || loopOf.contains(op))
      step.work.shared = work->alone;
    // loops in which only some kernels are spread may still gain
    step.spread = step.work.shared < (isControlFlow(op) ? 0.6 : 1) * step.work.alone;
  } else {
    step.fixed = true;
  }
  return step;
}

/// One window: which side each of its ops belongs to, while the ops are read in order.
struct SideBySide::Window {
  size_t end = 0;
  llvm::DenseMap<Operation *, int> placeOf; ///< those not Before
  llvm::IntEqClasses sides;
  std::vector<Work> workOfSide; ///< by leader
  std::vector<bool> ahead;      ///< by leader: it turned out to be what others read, and goes before them
  llvm::DenseMap<int, int64_t> threadOf; ///< of a leader: the side that its ops belong to in the end
  size_t numThreads = 0;

  int newSide() {
    int side = static_cast<int>(workOfSide.size());
    sides.grow(side + 1);
    workOfSide.emplace_back();
    ahead.push_back(false);
    return side;
  }
  int join(int a, int b) {
    Work both = workOfSide[a];
    both += workOfSide[b];
    int side = sides.join(a, b);
    workOfSide[side] = both;
    return side;
  }
  /// The thread whose side the op runs on, if it does.
  std::optional<int64_t> threadOfOp(Operation *op) const {
    auto place = placeOf.find(op);
    if (place == placeOf.end() || place->second < 0)
      return std::nullopt;
    auto it = threadOf.find(sides.findLeader(place->second));
    return it == threadOf.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }
};

/// Puts a step to the side that it reads from, behind all sides, or nowhere.
void SideBySide::place(Window &window, const Step &step) {
  bool behind = false;
  llvm::SmallSetVector<int, 4> longer, shorter;
  forEachRead(step.op, [&](Value v) {
    auto place = window.placeOf.find(v.getDefiningOp());
    if (place == window.placeOf.end())
      return;
    if (place->second == Behind) {
      behind = true;
      return;
    }
    const int side = window.sides.findLeader(place->second);
    if (!window.ahead[side])
      (window.workOfSide[side].alone >= least ? longer : shorter).insert(side);
  });
  if (behind || longer.size() > 1 || (step.spread && !longer.empty())) {
    window.placeOf[step.op] = Behind;
    return;
  }
  // what is short and read by something long, or by a kernel that all threads share, may as well run before them
  if (step.spread || !longer.empty() || step.work.alone >= least) {
    for (int side : shorter)
      window.ahead[side] = true;
    shorter.clear();
  }
  if (step.spread)
    return;
  int side;
  if (!longer.empty()) {
    side = longer.front();
  } else if (!shorter.empty()) {
    side = shorter.front();
    for (int other : ArrayRef<int>(shorter.getArrayRef()).drop_front())
      side = window.join(side, other);
  } else {
    if (step.work.alone == 0)
      return;
    side = window.newSide();
  }
  window.workOfSide[side] += step.work;
  window.placeOf[step.op] = side;
}

/// Shares the sides out over threads: the longest first, each to the thread that is done first. False where that
/// gains nothing.
bool SideBySide::share(Window &window) {
  SmallVector<int> leaders;
  double before = 0;
  for (unsigned side = 0; side < window.workOfSide.size(); ++side)
    if (window.sides.findLeader(side) == side && !window.ahead[side] && window.workOfSide[side].alone >= least) {
      leaders.push_back(side);
      before += window.workOfSide[side].shared;
    }
  if (leaders.size() < 2) {
    ++stats.refusedAlone;
    return false;
  }
  llvm::stable_sort(leaders, [&](int a, int b) { return window.workOfSide[a].alone > window.workOfSide[b].alone; });
  std::vector<double> threads(std::min<size_t>(options.threads, leaders.size()));
  for (int side : leaders) {
    auto thread = llvm::min_element(threads);
    *thread += window.workOfSide[side].alone;
    window.threadOf[side] = thread - threads.begin();
  }
  window.numThreads = threads.size();
  if (*llvm::max_element(threads) + fork > 0.75 * before) {
    ++stats.refusedNotFaster;
    return false;
  }
  return true;
}

/// Brings the ops of a window in order: what the sides need goes before them, the rest behind. Where that begins.
size_t SideBySide::reorder(const Window &window, std::vector<Step> &steps, size_t first) {
  llvm::DenseSet<Operation *> needed;
  std::vector<Step> ordered, tail;
  std::vector<std::vector<Step>> inSides(window.numThreads);
  for (size_t i = window.end; i-- > first;) {
    Operation *op = steps[i].op;
    std::optional<int64_t> side = window.threadOfOp(op);
    if (side || needed.contains(op))
      forEachRead(op, [&](Value v) { needed.insert(v.getDefiningOp()); });
    (side ? inSides[*side] : needed.contains(op) ? ordered : tail).push_back(steps[i]);
  }
  std::reverse(ordered.begin(), ordered.end());
  for (auto [k, list] : llvm::enumerate(inSides)) {
    for (const Step &step : llvm::reverse(list)) {
      step.op->setAttr(
          sideAttr, DenseI64ArrayAttr::get(step.op->getContext(), {stats.groups, static_cast<int64_t>(k)}));
      ordered.push_back(step);
    }
  }
  const size_t behind = first + ordered.size();
  ordered.insert(ordered.end(), tail.rbegin(), tail.rend());
  Operation *last = steps[window.end - 1].op->getNextNode();
  for (size_t i = first; i < window.end; ++i) {
    steps[i] = ordered[i - first];
    steps[i].op->moveBefore(last);
  }
  return behind;
}

/// Makes a group of the ops that begin with `first`; where the ops behind it begin. Reorders the steps as
/// their ops.
std::optional<size_t> SideBySide::group(std::vector<Step> &steps, size_t first) {
  Window window;
  for (window.end = first; window.end < steps.size() && window.end < first + windowSize && !steps[window.end].fixed; ++window.end)
    place(window, steps[window.end]);
  if (!share(window))
    return std::nullopt;
  const size_t behind = reorder(window, steps, first);
  ++stats.groups;
  stats.sides += static_cast<int64_t>(window.numThreads);
  return behind;
}

/// Finds what is made for a loop of one thread alone: the same thread makes it.
void SideBySide::findFeeders(Block &block) {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (op.hasAttr(hlo::oneThreadAttr) || isControlFlow(&op) || op.use_empty())
      continue;
    Operation *loop = nullptr;
    const bool one = llvm::all_of(op.getUsers(), [&](Operation *user) {
      user = block.findAncestorOpInBlock(*user);
      Operation *of = user->hasAttr(hlo::oneThreadAttr) ? user : loopOf.lookup(user);
      if (!loop)
        loop = of;
      return of && of == loop;
    });
    if (one)
      loopOf[&op] = loop;
  }
}

void SideBySide::run(Block &block) {
  findFeeders(block);
  std::vector<Step> steps;
  for (Operation &op : block.without_terminator())
    steps.push_back(describe(&op));
  for (size_t i = 0; i < steps.size();) {
    if (!steps[i].fixed && !steps[i].spread && steps[i].work.alone > 0)
      if (std::optional<size_t> behind = group(steps, i)) {
        i = *behind;
        continue;
      }
    ++i;
  }
  for (Operation &op : block.without_terminator())
    if (isControlFlow(&op) && !sideOf(&op))
      for (Region &region : op.getRegions())
        run(region.front());
}

} // namespace

SideStatistics placeSideBySide(func::FuncOp func, KernelSet &kernels, const LowerOptions &options) {
  func.walk([](Operation *op) { op->removeAttr(sideAttr); });
  if (options.threads < 2)
    return {};
  SideBySide pass(kernels, options);
  pass.run(func.front());
  return pass.stats;
}

} // namespace lathe::lower
