// Running reductions. Where a line lies side by side a warp or a block goes over it, four elements a thread at a time: each thread reduces its
// own, the warp's threads hand on what they have by shuffles, its warps through shared memory, and what comes before them all is kept.
// Elsewhere a thread has a line, and neighbours have neighbouring lines. Long lines are cut before (nvptx-split-scans).
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Running.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/LongSums.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Scan.h"
#include "passes/codegen/nvptx/Team.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

ScannedSpace::ScannedSpace(hlo::ReduceWindowOp op) {
  std::optional<hlo::RunningWindow> found = hlo::runningWindow(op);
  if (!found)
    return;
  window = *found;
  SmallVector<AffineExpr> sizes = hlo::getDims(hlo::tensorType(op.getInputs()[0]));
  outer = hlo::numElements(ArrayRef(sizes).take_front(window.dim), op.getContext());
  inner = hlo::numElements(ArrayRef(sizes).drop_front(window.dim + 1), op.getContext());
  length = sizes[window.dim];
  isRunning = true;
}

namespace {

class Scan {
public:
  Scan(hlo::ReduceWindowOp op, KernelBuilder &b);
  /// A line that lies side by side, by a team of threads.
  void emitLine(Team &team, Value line);
  /// Line `number` by one thread.
  void emitAlone(Value number);

  const ScannedSpace space;
  LogicalResult ok = success();

private:
  static constexpr int64_t together = 4; ///< elements of a thread, side by side

  SmallVector<Value> combine(ValueRange x, ValueRange y);
  SmallVector<Value> start();
  SmallVector<Value> select(Value condition, ValueRange x, ValueRange y);
  /// Runs `part` over [0, count), with what comes before each part where sums are kept apart, and what they carry on.
  void inParts(Value count, llvm::function_ref<SmallVector<Value>(Value from, Value to, ValueRange carried, ValueRange before)> part);
  SmallVector<Value> after(ValueRange before, ValueRange v) {
    return before.empty() ? SmallVector<Value>(v) : codegen::addAll(b, before, v);
  }
  Value inOrder(Value i) { return space.window.reverse ? b.sub(b.sub(length, b.i64(1)), i) : i; }
  /// Whether elements that are neighbours may be accessed together.
  bool inVectors() const;
  SmallVector<SmallVector<Value>> load(Value base, Value first);
  void store(Value base, Value first, ArrayRef<SmallVector<Value>> values, ValueRange before);
  /// One turn of a team: what it has over all, with what was carried.
  SmallVector<Value> turn(Team &team, Value base, Value chunk, ValueRange carried, ValueRange before);
  SmallVector<Value> acrossWarps(Team &team, Value chunk, SmallVector<Value> &prefix, ValueRange carried, ValueRange total);

  hlo::ReduceWindowOp op;
  KernelBuilder &b;
  SmallVector<Type> elements;
  const bool adds;
  Value length;
};

} // namespace

Scan::Scan(hlo::ReduceWindowOp op, KernelBuilder &b)
    : space(op), op(op), b(b), adds(codegen::isFloatSum(op.getBody().front())), length(b.dim(space.length)) {
  for (Value v : op.getInputs())
    elements.push_back(hlo::elementType(v));
}

SmallVector<Value> Scan::combine(ValueRange x, ValueRange y) {
  SmallVector<Value> args(x);
  llvm::append_range(args, y);
  auto both = codegen::emitScalarBody(b, op.getBody().front(), args);
  if (succeeded(both))
    return *both;
  ok = failure();
  return SmallVector<Value>(x);
}

SmallVector<Value> Scan::start() {
  SmallVector<Value> v;
  for (auto [t, buffer] : llvm::zip(elements, ArrayRef<Value>(b.operands).drop_front(elements.size())))
    v.push_back(b.loadElem(t, buffer, b.i64(0)));
  return v;
}

SmallVector<Value> Scan::select(Value condition, ValueRange x, ValueRange y) {
  SmallVector<Value> v;
  for (auto [p, q] : llvm::zip_equal(x, y))
    v.push_back(b.select(condition, p, q));
  return v;
}

void Scan::inParts(Value count, llvm::function_ref<SmallVector<Value>(Value, Value, ValueRange, ValueRange)> part) {
  constexpr int64_t block = 64; // what sums of floats take before they begin again (LongSums.h)
  SmallVector<Value> begin = start();
  if (!adds) {
    part(b.i64(0), count, begin, {});
    return;
  }
  SmallVector<Value> zero{b.cst(begin[0].getType(), -0.0)};
  codegen::runningBlocks(b, b.i64(0), count, block, begin,
                         [&](Value from, Value to, ValueRange before) { return part(from, to, zero, before); });
}

void Scan::emitAlone(Value number) {
  Value inner = b.dim(space.inner);
  Value base = b.add(b.mul(b.mul(b.divU(number, inner), length), inner), b.remU(number, inner));
  inParts(length, [&](Value from, Value to, ValueRange carried, ValueRange before) {
    return b.loop(from, to, b.i64(1), carried, [&](Value i, ValueRange sums) {
      Value at = b.add(base, b.mul(inOrder(i), inner));
      SmallVector<Value> here;
      for (auto [t, buffer] : llvm::zip(elements, b.operands))
        here.push_back(b.loadElem(t, buffer, at));
      SmallVector<Value> next = combine(sums, here);
      SmallVector<Value> result = after(before, space.window.exclusive ? sums : ValueRange(next));
      for (auto [t, v, buffer] : llvm::zip(elements, result, b.results))
        b.storeElem(t, v, buffer, at);
      return next;
    });
  });
}

bool Scan::inVectors() const {
  auto isSimple = [](Type t) { return t.isIntOrFloat() && t.getIntOrFloatBitWidth() >= 8 && t.getIntOrFloatBitWidth() <= 32; };
  const std::optional<int64_t> known = hlo::constantValue(space.length);
  return known && *known % together == 0 && !space.window.reverse && llvm::all_of(elements, isSimple);
}

// Elements beyond the end repeat others: only what lies there too is made of them.
SmallVector<SmallVector<Value>> Scan::load(Value base, Value first) {
  SmallVector<SmallVector<Value>> all(together);
  Value last = b.sub(length, b.i64(1));
  if (inVectors()) {
    Value at = b.min(first, b.sub(length, b.i64(together)));
    for (auto [t, buffer] : llvm::zip(elements, b.operands)) {
      Value v = b.loadElem(t, buffer, b.add(base, at), together);
      for (int64_t k = 0; k < together; ++k)
        all[k].push_back(vector::ExtractOp::create(b, v, k));
    }
    return all;
  }
  for (int64_t k = 0; k < together; ++k)
    for (auto [t, buffer] : llvm::zip(elements, b.operands))
      all[k].push_back(b.loadElem(t, buffer, b.add(base, inOrder(b.min(b.add(first, b.i64(k)), last)))));
  return all;
}

void Scan::store(Value base, Value first, ArrayRef<SmallVector<Value>> values, ValueRange before) {
  SmallVector<SmallVector<Value>> results;
  for (const SmallVector<Value> &v : values)
    results.push_back(after(before, v));
  if (inVectors()) {
    b.ifThen(b.lt(first, length), [&] {
      for (auto [n, t] : llvm::enumerate(elements)) {
        SmallVector<Value> neighbours;
        for (const SmallVector<Value> &v : results)
          neighbours.push_back(v[n]);
        Value all = vector::FromElementsOp::create(b, VectorType::get({together}, neighbours[0].getType()), neighbours);
        b.storeElem(t, all, b.results[n], b.add(base, first));
      }
    });
    return;
  }
  for (auto [k, v] : llvm::enumerate(results)) {
    Value i = b.add(first, b.i64(k));
    b.ifThen(b.lt(i, length), [&, &v = v] {
      for (auto [t, x, buffer] : llvm::zip(elements, v, b.results))
        b.storeElem(t, x, buffer, b.add(base, inOrder(i)));
    });
  }
}

/// Puts what comes before the thread's warp before `prefix`, and returns what all warps have. Two turns use different memory, so that one
/// barrier is enough: who writes it again has passed the next one, which all readers have reached.
SmallVector<Value> Scan::acrossWarps(Team &team, Value chunk, SmallVector<Value> &prefix, ValueRange carried, ValueRange total) {
  const int64_t warps = team.size / warpThreads;
  Value warp = b.divU(team.member, b.i64(warpThreads)), lane = b.remU(team.member, b.i64(warpThreads));
  int64_t used = 0;
  SmallVector<int64_t> places;
  for (Type t : elements) {
    places.push_back(used);
    used = llvm::alignTo(used + warps * codegen::elemBytes(t), 16);
  }
  Value memory = team.frame.shared(2 * used);
  memory = b.ptrBytes(memory, b.mul(b.remU(chunk, b.i64(2)), b.i64(used)));
  b.ifThen(b.eq(lane, b.i64(warpThreads - 1)), [&] {
    for (auto [t, place, v] : llvm::zip(elements, places, total))
      b.storeElem(t, v, b.ptrBytes(memory, b.i64(place)), warp);
  });
  team.frame.barrier();
  SmallVector<Value> all(carried), mine(carried);
  for (int64_t w = 0; w < warps; ++w) {
    SmallVector<Value> next;
    for (auto [t, place] : llvm::zip(elements, places))
      next.push_back(b.loadElem(t, b.ptrBytes(memory, b.i64(place)), b.i64(w)));
    all = combine(all, next);
    if (w + 1 < warps)
      mine = select(b.lt(b.i64(w), warp), all, mine);
  }
  prefix = select(b.eq(lane, b.i64(0)), mine, combine(mine, prefix));
  return all;
}

SmallVector<Value> Scan::turn(Team &team, Value base, Value chunk, ValueRange carried, ValueRange before) {
  Value first = b.mul(b.add(b.mul(chunk, b.i64(team.size)), team.member), b.i64(together));
  SmallVector<SmallVector<Value>> own = load(base, first);
  for (int64_t k = 1; k < together; ++k)
    own[k] = combine(own[k - 1], own[k]);
  // of the warp's threads up to this one, and of those before it
  Value lane = b.remU(team.member, b.i64(warpThreads));
  auto from = [&](ValueRange v, int64_t distance) {
    SmallVector<Value> moved;
    Value which = arith::TruncIOp::create(b, b.getI32Type(), b.max(b.sub(lane, b.i64(distance)), b.i64(0)));
    for (Value x : v)
      moved.push_back(team.frame.broadcast(x, which));
    return moved;
  };
  SmallVector<Value> total = own.back();
  for (int64_t distance = 1; distance < warpThreads; distance *= 2)
    total = select(b.ge(lane, b.i64(distance)), combine(from(total, distance), total), total);
  SmallVector<Value> prefix = from(total, 1), all;
  if (team.size == warpThreads) {
    prefix = select(b.eq(lane, b.i64(0)), carried, combine(carried, prefix));
    SmallVector<Value> last;
    for (Value x : total)
      last.push_back(team.frame.broadcast(x, b.cstI(b.getI32Type(), warpThreads - 1)));
    all = combine(carried, last);
  } else {
    all = acrossWarps(team, chunk, prefix, carried, total);
  }
  SmallVector<SmallVector<Value>> results;
  for (int64_t k = 0; k < together; ++k)
    results.push_back(!space.window.exclusive ? combine(prefix, own[k]) : k == 0 ? prefix : combine(prefix, own[k - 1]));
  store(base, first, results, before);
  return all;
}

void Scan::emitLine(Team &team, Value line) {
  Value base = b.mul(line, length), each = b.i64(team.size * together);
  inParts(b.divU(b.add(length, b.sub(each, b.i64(1))), each), [&](Value from, Value to, ValueRange carried, ValueRange before) {
    return b.loop(from, to, b.i64(1), carried, [&](Value chunk, ValueRange sums) { return turn(team, base, chunk, sums, before); });
  });
}

int64_t scanTeam(const ScannedSpace &space) {
  constexpr int64_t fewest = 32, warpOnly = 1024, block = 256;
  const std::optional<int64_t> length = hlo::constantValue(space.length);
  if (hlo::constantValue(space.inner) != 1 || (length && *length < fewest))
    return 1;
  return length && *length <= warpOnly ? warpThreads : block;
}

std::string whyNoScan(Operation *op) {
  auto r = dyn_cast<hlo::ReduceWindowOp>(op);
  if (!r)
    return "no reduction of windows";
  return ScannedSpace(r).isRunning ? "" : "windows of their own";
}

LogicalResult emitScan(Operation *op, KernelBuilder &b) {
  auto r = cast<hlo::ReduceWindowOp>(op);
  const int64_t size = scanTeam(ScannedSpace(r));
  Scan scan(r, b);
  const std::optional<int64_t> length = hlo::constantValue(scan.space.length);
  b.setWork(8 * length.value_or(1024));
  if (size == 1) {
    b.setExtent(hlo::simplify(scan.space.outer * scan.space.inner));
    b.units([&](Value number) { scan.emitAlone(number); });
    return scan.ok;
  }
  BlockFrame frame(b, std::max(size, unitThreads));
  Team team(frame, size);
  team.eachOf(scan.space.outer, [&](Value line) { scan.emitLine(team, line); });
  alignVectors(b, 4);
  return scan.ok;
}

} // namespace lathe::nvptx
