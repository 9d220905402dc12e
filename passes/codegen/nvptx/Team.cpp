// See Team.h.
#include "passes/codegen/nvptx/Team.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/LongSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::ElementEmitter;
using codegen::KernelBuilder;
using codegen::Reducer;

int64_t reducedCount(hlo::ReduceOp r) {
  RankedTensorType in = hlo::tensorType(r.getInputs()[0]);
  int64_t count = 1;
  for (int64_t d : r.getDimensions()) {
    if (in.isDynamicDim(d))
      return unknownSize;
    count *= in.getDimSize(d);
  }
  return count;
}

SmallVector<Type> elementsOf(hlo::ReduceOp r) {
  SmallVector<Type> elements;
  for (Value v : r.getInputs())
    elements.push_back(hlo::elementType(v));
  return elements;
}

bool isReorderable(hlo::ReduceOp r) {
  // which is known to the reducer alone, and that needs a builder
  OwningOpRef<ModuleOp> module = ModuleOp::create(r.getLoc());
  const codegen::KernelTarget target;
  KernelBuilder b(r, *module, "unused", target);
  return Reducer(b, r.getBody().front(), elementsOf(r), {}).reorderable();
}

FailureOr<Reducer> makeReducer(ElementEmitter &e, hlo::ReduceOp r) {
  KernelBuilder &b = e.builder();
  SmallVector<Value> inits;
  for (Value init : r.getInitValues()) {
    FailureOr<Value> v = e.emit(init, SmallVector<Value>(hlo::tensorType(init).getRank(), b.i64(0)));
    if (failed(v))
      return failure();
    inits.push_back(*v);
  }
  return Reducer(b, r.getBody().front(), elementsOf(r), inits);
}

ReducedSpace::ReducedSpace(KernelBuilder &b, hlo::ReduceOp r) : count(b.i64(1)) {
  RankedTensorType in = hlo::tensorType(r.getInputs()[0]);
  for (auto [i, size] : llvm::enumerate(b.dims(in))) {
    const bool over = llvm::is_contained(r.getDimensions(), static_cast<int64_t>(i));
    (over ? overDims : keptDims).push_back(i);
    (over ? overSizes : keptSizes).push_back(size);
    if (over)
      count = b.mul(count, size);
  }
}

SmallVector<Value> ReducedSpace::at(KernelBuilder &b, ArrayRef<Value> kept, Value over) const {
  SmallVector<Value> index(overDims.size() + keptDims.size());
  for (auto [d, v] : llvm::zip(overDims, b.delinearize(over, overSizes)))
    index[d] = v;
  for (auto [d, v] : llvm::zip(keptDims, kept))
    index[d] = v;
  return index;
}

FailureOr<SmallVector<Value>> reduceStep(ElementEmitter &e, Reducer &reducer, hlo::ReduceOp r, ArrayRef<Value> at, ValueRange sums,
                                         unsigned lanes) {
  ElementEmitter::Scope scope(e);
  SmallVector<Value> values;
  for (Value x : r.getInputs()) {
    FailureOr<Value> v = e.emit(x, at, lanes);
    if (failed(v))
      return failure();
    values.push_back(*v);
  }
  return reducer.combine(sums, values, lanes);
}

FailureOr<SmallVector<Value>>
stridedLoop(KernelBuilder &b, Value first, int64_t stride, Value count, ValueRange start, bool adds,
            llvm::function_ref<FailureOr<SmallVector<Value>>(Value, ValueRange)> step) {
  LogicalResult ok = success();
  auto one = [&](Value i, ValueRange sums) {
    FailureOr<SmallVector<Value>> next = step(b.add(b.mul(i, b.i64(stride)), first), sums);
    if (succeeded(next))
      return *next;
    ok = failure();
    return SmallVector<Value>(sums);
  };
  // the same trips for all threads, then what is left for some
  Value trips = b.divU(count, b.i64(stride));
  SmallVector<Value> sums = adds ? codegen::sumLoop(b, b.i64(0), trips, 1, start, codegen::SumBlocks(), one)
                                 : b.loop(b.i64(0), trips, b.i64(1), start, one);
  const std::optional<int64_t> known = codegen::constantOf(count);
  if (!known || *known % stride != 0)
    sums = b.ifElse(b.lt(b.add(b.mul(trips, b.i64(stride)), first), count), TypeRange(ValueRange(sums)),
                    [&] { return one(trips, sums); }, [&] { return sums; });
  if (failed(ok))
    return failure();
  return sums;
}

Team::Team(BlockFrame &frame, int64_t size) : frame(frame), size(size) {
  KernelBuilder &b = frame.b;
  member = b.remU(frame.thread, b.i64(size));
  number = b.divU(frame.thread, b.i64(size));
  if (size == frame.threads) {
    member = frame.thread;
    number = b.i64(0);
  }
}

void Team::eachOf(AffineExpr count, llvm::function_ref<void(Value)> body) {
  KernelBuilder &b = frame.b;
  const int64_t together = frame.threads / size;
  frame.setBlocks(count.ceilDiv(together));
  Value mine = b.add(b.mul(frame.block(), b.i64(together)), number);
  if (std::optional<int64_t> known = hlo::constantValue(count); together == 1 || (known && *known % together == 0))
    body(mine);
  else
    b.ifThen(b.lt(mine, b.dim(count)), [&] { body(mine); });
}

FailureOr<SmallVector<Value>> Team::reduce(ElementEmitter &e, hlo::ReduceOp r, ArrayRef<Value> kept) {
  KernelBuilder &b = frame.b;
  FailureOr<Reducer> reducer = makeReducer(e, r);
  if (failed(reducer))
    return failure();
  const ReducedSpace space(b, r);
  FailureOr<SmallVector<Value>> parts = stridedLoop(
      b, member, size, space.count, reducer->start(1), reducer->adds(),
      [&](Value over, ValueRange sums) { return reduceStep(e, *reducer, r, space.at(b, kept, over), sums); });
  if (failed(parts))
    return failure();
  // x + y is y + x, but which zero or NaN an extremum gives depends on the order
  FailureOr<SmallVector<Value>> all = total(elementsOf(r), *parts, reducer->adds(), [&](ValueRange x, ValueRange y) {
    return reducer->combine(x, y, 1);
  });
  return failed(all) ? all : reducer->finish(*all);
}

FailureOr<SmallVector<Value>> Team::total(ArrayRef<Type> elements, SmallVector<Value> parts, bool commutes, Combine combine) {
  KernelBuilder &b = frame.b;
  for (int64_t distance = 1; distance < warpThreads; distance *= 2) {
    SmallVector<Value> others;
    for (Value v : parts)
      others.push_back(frame.exchange(v, distance));
    FailureOr<SmallVector<Value>> both = combine(parts, others);
    if (failed(both))
      return failure();
    parts = *both;
  }
  const int64_t warps = size / warpThreads;
  if (warps == 1) {
    if (!commutes)
      for (Value &v : parts)
        v = frame.broadcast(v);
    return parts;
  }
  SmallVector<Value> places;
  for (Type t : elements) {
    places.push_back(b.i64(used));
    used = llvm::alignTo(used + warps * codegen::elemBytes(t), 16);
  }
  Value memory = frame.shared(used);
  Value warp = b.divU(member, b.i64(warpThreads));
  b.ifThen(b.eq(b.remU(member, b.i64(warpThreads)), b.i64(0)), [&] {
    for (auto [t, place, v] : llvm::zip(elements, places, parts))
      b.storeElem(t, v, b.ptrBytes(memory, place), warp);
  });
  frame.barrier();
  SmallVector<Value> sums;
  for (int64_t w = 0; w < warps; ++w) {
    SmallVector<Value> next;
    for (auto [t, place] : llvm::zip(elements, places))
      next.push_back(b.loadElem(t, b.ptrBytes(memory, place), b.i64(w)));
    if (w == 0) {
      sums = next;
      continue;
    }
    FailureOr<SmallVector<Value>> more = combine(sums, next);
    if (failed(more))
      return failure();
    sums = *more;
  }
  return sums;
}

LogicalResult acrossWarps(BlockFrame &frame, ArrayRef<Type> elements, ValueRange parts, int64_t lanes, Value isResult, Combine combine,
                          llvm::function_ref<LogicalResult(ValueRange)> then) {
  KernelBuilder &b = frame.b;
  SmallVector<Value> places;
  int64_t used = 0;
  for (Type t : elements) {
    places.push_back(b.i64(used));
    used = llvm::alignTo(used + frame.threads * codegen::elemBytes(t), 16);
  }
  Value memory = frame.shared(used);
  Value inWarp = b.remU(frame.thread, b.i64(warpThreads)), first = b.sub(frame.thread, inWarp);
  auto keep = [&] {
    for (auto [t, place, v] : llvm::zip_equal(elements, places, parts))
      b.storeElem(t, v, b.ptrBytes(memory, place), b.add(first, b.mul(inWarp, b.i64(lanes))));
  };
  if (lanes == 1)
    keep();
  else
    b.ifThen(b.lt(inWarp, b.i64(warpThreads / lanes)), keep);
  frame.barrier();
  LogicalResult ok = success();
  b.ifThen(b.both(b.lt(frame.thread, b.i64(warpThreads)), isResult), [&] {
    auto partsOf = [&](Value warp) {
      SmallVector<Value> all;
      for (auto [t, place] : llvm::zip(elements, places))
        all.push_back(b.loadElem(t, b.ptrBytes(memory, place), b.add(b.mul(warp, b.i64(warpThreads)), frame.thread)));
      return all;
    };
    const int64_t warps = frame.threads / warpThreads;
    SmallVector<Value> all = b.loop(b.i64(1), b.i64(warps), b.i64(1), partsOf(b.i64(0)), [&](Value warp, ValueRange sums) {
      FailureOr<SmallVector<Value>> more = combine(sums, partsOf(warp));
      if (succeeded(more))
        return *more;
      ok = failure();
      return SmallVector<Value>(sums);
    });
    if (failed(then(all)))
      ok = failure();
  });
  return ok;
}

} // namespace lathe::nvptx
