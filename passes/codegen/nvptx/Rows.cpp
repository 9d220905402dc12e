// kernel.rows and reductions: a warp or a block a row, or where rows lie across memory, a block a strip of neighbouring columns.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Team.h"
#include "passes/codegen/plain/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::ElementEmitter;
using codegen::KernelBuilder;
using codegen::Reducer;

static bool isSmaller(int64_t count, int64_t limit) { return count != unknownSize && count < limit; }

static std::string whyNoReductions(Operation *op) {
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  if (reductions.empty())
    return "no reductions";
  for (hlo::ReduceOp r : reductions)
    if (!isReorderable(r))
      return "a reduction whose order matters";
  return {};
}

// --- rows

std::string whyNoRows(Operation *op) {
  if (!isa<kernel::RowsOp>(op))
    return "no rows";
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  if (!reductions.empty() && isSmaller(reducedCount(reductions[0]), warpThreads))
    return "rows below 32 elements";
  return whyNoReductions(op);
}

/// How many threads do a row or a result of so many elements, and how many there are in a block.
static std::pair<int64_t, int64_t> teamFor(int64_t count) {
  if (isSmaller(count, 1025))
    return {warpThreads, 4 * warpThreads};
  const int64_t threads = isSmaller(count, 16385) ? 256 : 1024;
  return {count == unknownSize ? 128 : threads, count == unknownSize ? 128 : threads};
}

LogicalResult emitRows(Operation *op, KernelBuilder &b) {
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  FailureOr<plain::RowShape> shape = plain::rowShape(op, reductions);
  if (failed(shape))
    return failure();
  plain::Elements elements = plain::bindOperands(op, b);
  ElementEmitter &e = *elements.emitter;
  const auto [size, threads] = teamFor(reducedCount(reductions[0]));
  BlockFrame frame(b, threads);
  Team team(frame, size);
  SmallVector<Value> sizes;
  for (AffineExpr d : shape->dims)
    sizes.push_back(b.dim(d));
  ArrayRef<Value> all(sizes);
  LogicalResult ok = success();
  team.eachOf(shape->count(op->getContext()), [&](Value row) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> lead = b.delinearize(row, all.take_front(shape->lead));
    for (hlo::ReduceOp r : reductions) {
      FailureOr<SmallVector<Value>> values = team.reduce(e, r, lead);
      if (failed(values)) {
        ok = failure();
        return;
      }
      plain::bindReduced(e, r, *values);
    }
    auto store = [&](size_t k, ArrayRef<Value> index, Value place) {
      if (failed(plain::storeRoot(b, elements, k, index, place)))
        ok = failure();
    };
    b.ifThen(b.eq(team.member, b.i64(0)), [&] {
      ElementEmitter::Scope inside(e);
      for (auto [k, root] : llvm::enumerate(elements.roots))
        if (!shape->isFull(root))
          store(k, b.delinearize(row, b.dims(hlo::tensorType(root))), row);
    });
    Value count = b.i64(1);
    for (Value s : all.drop_front(shape->lead))
      count = b.mul(count, s);
    b.loop(team.member, count, b.i64(size), [&](Value at) {
      ElementEmitter::Scope inside(e);
      SmallVector<Value> index(lead);
      llvm::append_range(index, b.delinearize(at, all.drop_front(shape->lead)));
      for (auto [k, root] : llvm::enumerate(elements.roots))
        if (shape->isFull(root))
          store(k, index, b.add(b.mul(row, count), at));
    });
  });
  return ok;
}

// --- reductions along the last dimension

static bool keepsLast(hlo::ReduceOp r) {
  const int64_t last = hlo::tensorType(r.getInputs()[0]).getRank() - 1;
  return !llvm::is_contained(r.getDimensions(), last);
}

static std::string whyNoReduce(Operation *op) {
  if (!isa<kernel::ReduceOp, hlo::ReduceOp>(op))
    return "no reduction";
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  for (hlo::ReduceOp r : reductions)
    if (r.getDimensions() != reductions[0].getDimensions())
      return "reductions over different dimensions";
  return whyNoReductions(op);
}

/// Results a strip: neighbours along the dimensions that are kept.
static int64_t keptCount(hlo::ReduceOp r) {
  RankedTensorType out = hlo::tensorType(r.getResult(0));
  return out.hasStaticShape() ? out.getNumElements() : unknownSize;
}

std::string whyNoReduceRows(Operation *op) {
  if (std::string why = whyNoReduce(op); !why.empty())
    return why;
  if (isSmaller(reducedCount(plain::reductionsOf(op)[0]), warpThreads))
    return "fewer than 32 elements a result";
  return {};
}

std::string whyNoReduceColumns(Operation *op) {
  if (std::string why = whyNoReduce(op); !why.empty())
    return why;
  hlo::ReduceOp first = plain::reductionsOf(op)[0];
  if (!keepsLast(first))
    return "the last dimension is reduced";
  if (isSmaller(keptCount(first), warpThreads))
    return "fewer than 32 results";
  int64_t bytes = 0;
  for (hlo::ReduceOp r : plain::reductionsOf(op))
    for (Value input : r.getInputs())
      bytes += llvm::alignTo(codegen::elemBytes(hlo::elementType(input)), 4);
  if (bytes * 1024 > (48 << 10))
    return "more sums than shared memory holds";
  // a thread a result reads neighbours together as well, and keeps the device busy where results are many
  if (isSmaller(reducedCount(first), 64))
    return "fewer than 64 elements a result";
  return {};
}

/// Stores the results of an op at place `at`, where its reductions have these values.
static LogicalResult storeReduced(KernelBuilder &b, plain::Elements &elements, ArrayRef<hlo::ReduceOp> reductions,
                                  ArrayRef<SmallVector<Value>> values, Value at) {
  ElementEmitter &e = *elements.emitter;
  ElementEmitter::Scope scope(e);
  for (auto [r, all] : llvm::zip(reductions, values))
    plain::bindReduced(e, r, all);
  return plain::storeRoots(b, elements, b.delinearize(at, b.dims(hlo::tensorType(elements.roots[0]))), at);
}

LogicalResult emitReduceRows(Operation *op, KernelBuilder &b) {
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  plain::Elements elements = plain::bindOperands(op, b);
  const auto [size, threads] = teamFor(reducedCount(reductions[0]));
  BlockFrame frame(b, threads);
  Team team(frame, size);
  RankedTensorType out = hlo::tensorType(elements.roots[0]);
  LogicalResult ok = success();
  team.eachOf(hlo::numElements(out), [&](Value at) {
    ElementEmitter::Scope scope(*elements.emitter);
    SmallVector<Value> kept = b.delinearize(at, b.dims(out));
    SmallVector<SmallVector<Value>> values;
    for (hlo::ReduceOp r : reductions) {
      FailureOr<SmallVector<Value>> v = team.reduce(*elements.emitter, r, kept);
      if (failed(v)) {
        ok = failure();
        return;
      }
      values.push_back(*v);
    }
    b.ifThen(b.eq(team.member, b.i64(0)), [&] {
      if (failed(storeReduced(b, elements, reductions, values, at)))
        ok = failure();
    });
  });
  return ok;
}

// --- reductions across rows

/// How many neighbouring results a thread has: four where they are made of neighbours, else one.
static int64_t columnsOf(Operation *op, ArrayRef<hlo::ReduceOp> reductions) {
  constexpr int64_t wide = 4;
  hlo::ReduceOp first = reductions[0];
  RankedTensorType out = hlo::tensorType(first.getResult(0));
  if (!out.hasStaticShape() || out.getShape().back() % wide != 0)
    return 1;
  SmallVector<Value> inputs;
  for (hlo::ReduceOp r : reductions)
    llvm::append_range(inputs, r.getInputs());
  if (llvm::any_of(inputs, [](Value v) { return hlo::elementType(v).isInteger(1); }))
    return 1;
  int64_t bytes = 1;
  bool computes = true;
  return whyNoNeighbours(op, inputs, computes, bytes).empty() && bytes <= 4 ? wide : 1;
}

// A thread has one of 32 neighbouring results, or four, and every so many elements of them; the threads of a warp that have the same
// add up theirs, and the first warp what the others made.
LogicalResult emitReduceColumns(Operation *op, KernelBuilder &b) {
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  plain::Elements elements = plain::bindOperands(op, b);
  ElementEmitter &e = *elements.emitter;
  const int64_t count = reducedCount(reductions[0]), warps = isSmaller(count, 1024) ? 8 : 32, lanes = columnsOf(op, reductions);
  BlockFrame frame(b, warps * warpThreads);
  RankedTensorType out = hlo::tensorType(elements.roots[0]);
  AffineExpr results = hlo::numElements(out);
  frame.setBlocks(results.ceilDiv(warpThreads));
  Value lane = b.remU(frame.thread, b.i64(warpThreads)), warp = b.divU(frame.thread, b.i64(warpThreads));
  Value begin = b.mul(frame.block(), b.i64(warpThreads)), at = b.add(begin, lane), end = b.dim(results);
  // threads beyond the results repeat the last ones, and do not store them
  const int64_t across = warpThreads / lanes; // threads side by side
  Value mine = b.add(begin, b.mul(b.remU(lane, b.i64(across)), b.i64(lanes)));
  SmallVector<Value> kept = b.delinearize(b.min(mine, b.sub(end, b.i64(lanes))), b.dims(out));
  SmallVector<Reducer> reducers;
  SmallVector<Type> types;
  SmallVector<Value> parts; // of all reductions, one behind the other
  for (hlo::ReduceOp r : reductions) {
    FailureOr<Reducer> reducer = makeReducer(e, r);
    if (failed(reducer))
      return failure();
    const ReducedSpace space(b, r);
    Value first = b.add(b.mul(warp, b.i64(lanes)), b.divU(lane, b.i64(across)));
    FailureOr<SmallVector<Value>> sums =
        stridedLoop(b, first, warps * lanes, space.count, reducer->start(lanes), reducer->adds(),
                    [&](Value over, ValueRange sums) { return reduceStep(e, *reducer, r, space.at(b, kept, over), sums, lanes); });
    for (int64_t distance = across; succeeded(sums) && distance < warpThreads; distance *= 2) {
      SmallVector<Value> others;
      for (Value v : *sums)
        others.push_back(frame.exchange(v, distance));
      sums = reducer->combine(*sums, others, lanes);
    }
    if (failed(sums))
      return failure();
    reducers.push_back(*reducer);
    llvm::append_range(parts, *sums);
    for (Value input : r.getInputs())
      types.push_back(hlo::elementType(input));
  }
  auto combine = [&](ValueRange x, ValueRange y) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> all;
    for (Reducer &reducer : reducers) {
      FailureOr<SmallVector<Value>> one = reducer.combine(x.slice(all.size(), reducer.size()), y.slice(all.size(), reducer.size()), 1);
      if (failed(one))
        return failure();
      llvm::append_range(all, *one);
    }
    return all;
  };
  LogicalResult done = acrossWarps(frame, types, parts, lanes, b.lt(at, end), combine, [&](ValueRange all) -> LogicalResult {
    SmallVector<SmallVector<Value>> values;
    for (Reducer &reducer : reducers) {
      FailureOr<SmallVector<Value>> whole = reducer.finish(SmallVector<Value>(all.take_front(reducer.size())));
      if (failed(whole))
        return failure();
      values.push_back(*whole);
      all = all.drop_front(reducer.size());
    }
    return storeReduced(b, elements, reductions, values, at);
  });
  if (lanes > 1)
    alignVectors(b, lanes);
  return done;
}

} // namespace lathe::nvptx
