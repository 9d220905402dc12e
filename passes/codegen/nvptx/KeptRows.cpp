// kernel.rows whose rows threads keep in registers: each element is read once, by accesses of whole vectors, and stays where the
// reductions over the row and what is made of their results need it.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Team.h"
#include "passes/codegen/plain/Rows.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::ElementEmitter;
using codegen::KernelBuilder;
using codegen::Reducer;

constexpr int64_t lanes = 4, longestRow = 16384, mostOps = 48;

/// How many threads do a row of so many elements, and how many a block has: a warp has at most eight vectors a thread, more threads
/// four. Rows of a warp each share a block.
static std::pair<int64_t, int64_t> teamFor(int64_t count) {
  if (count <= 8 * lanes * warpThreads)
    return {warpThreads, 4 * warpThreads};
  const int64_t threads = llvm::PowerOf2Ceil(llvm::divideCeil(count, 4 * lanes));
  return {threads, threads};
}

/// Elements of a row, or 0 where they are not known.
static int64_t rowLength(hlo::ReduceOp r) {
  RankedTensorType in = hlo::tensorType(r.getInputs()[0]);
  int64_t count = 1;
  for (int64_t d : r.getDimensions())
    count *= in.isDynamicDim(d) ? 0 : in.getDimSize(d);
  return count;
}

std::string whyNoKeptRows(Operation *op) {
  if (std::string why = whyNoRows(op); !why.empty())
    return why;
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  RankedTensorType in = hlo::tensorType(reductions[0].getInputs()[0]);
  const int64_t count = rowLength(reductions[0]);
  if (count == 0 || in.getShape().back() % lanes != 0)
    return "rows that are not of whole vectors";
  if (count < lanes * warpThreads || count > longestRow)
    return "rows of fewer elements than a warp has lanes, or of more than registers hold";
  Block &body = op->getRegion(0).front();
  SmallVector<Value> wanted; // of whole rows
  for (hlo::ReduceOp r : reductions)
    for (Value input : r.getInputs()) {
      if (hlo::elementType(input).isInteger(1))
        return "bits";
      wanted.push_back(input);
    }
  for (Value root : body.getTerminator()->getOperands())
    if (hlo::getDims(hlo::tensorType(root)) == hlo::getDims(in)) {
      if (isa<BlockArgument>(root) || hlo::elementType(root).isInteger(1))
        return "copies, or bits";
      wanted.push_back(root);
    }
  int64_t bytes = 1;
  bool computes = true;
  if (std::string why = whyNoNeighbours(op, wanted, computes, bytes); !why.empty())
    return why;
  if (bytes > 4)
    return "elements of more than 32 bits";
  // each is written out for every vector of a thread
  if (llvm::range_size(body.without_terminator()) > mostOps)
    return "more ops than are written out";
  return {};
}

LogicalResult emitKeptRows(Operation *op, KernelBuilder &b) {
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  FailureOr<plain::RowShape> shape = plain::rowShape(op, reductions);
  if (failed(shape))
    return failure();
  plain::Elements elements = plain::bindOperands(op, b);
  ElementEmitter &e = *elements.emitter;
  const int64_t count = rowLength(reductions[0]) / lanes; // vectors
  const std::pair<int64_t, int64_t> sharing = teamFor(count * lanes);
  const int64_t size = sharing.first, threads = sharing.second, own = llvm::divideCeil(count, size);
  BlockFrame frame(b, threads);
  Team team(frame, size);
  AffineExpr rows = shape->count(op->getContext());
  const int64_t together = threads / size;
  frame.setBlocks(rows.ceilDiv(together));
  SmallVector<Value> sizes;
  for (AffineExpr d : shape->dims)
    sizes.push_back(b.dim(d));
  ArrayRef<Value> all(sizes);
  SmallVector<Value> vectors(all.drop_front(shape->lead)); // the row's dimensions, the last in vectors
  vectors.back() = b.divU(vectors.back(), b.i64(lanes));
  Value row = b.add(b.mul(frame.block(), b.i64(together)), team.number);
  LogicalResult ok = success();

  auto reduce = [&](hlo::ReduceOp r, ArrayRef<SmallVector<Value>> places, Value lastExists) -> FailureOr<SmallVector<Value>> {
    FailureOr<Reducer> reducer = makeReducer(e, r);
    if (failed(reducer))
      return failure();
    SmallVector<Value> sums = reducer->start(lanes);
    for (auto [k, place] : llvm::enumerate(places)) {
      SmallVector<Value> values;
      for (Value input : r.getInputs()) {
        FailureOr<Value> v = e.emit(input, place, lanes);
        if (failed(v))
          return failure();
        values.push_back(*v);
      }
      FailureOr<SmallVector<Value>> next = reducer->combine(sums, values, lanes);
      if (failed(next))
        return failure();
      if (k + 1 == places.size() && lastExists)
        for (auto [now, before] : llvm::zip(*next, sums))
          now = b.select(lastExists, now, before);
      sums = *next;
    }
    FailureOr<SmallVector<SmallVector<Value>>> scalars = reducer->horizontal({sums}, lanes);
    if (failed(scalars))
      return failure();
    FailureOr<SmallVector<Value>> total =
        team.total(elementsOf(r), (*scalars)[0], reducer->adds(), [&](ValueRange x, ValueRange y) { return reducer->combine(x, y, 1); });
    return failed(total) ? total : reducer->finish(*total);
  };
  auto doRow = [&] {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> lead = b.delinearize(row, all.take_front(shape->lead));
    SmallVector<SmallVector<Value>> places; // of this thread's vectors; beyond the row it is the last one again
    SmallVector<Value> numbers;
    Value lastExists;
    for (int64_t k = 0; k < own; ++k) {
      Value number = b.add(team.member, b.i64(k * size));
      if ((k + 1) * size > count) {
        lastExists = b.lt(number, b.i64(count));
        number = b.min(number, b.i64(count - 1));
      }
      numbers.push_back(number);
      SmallVector<Value> place(lead);
      llvm::append_range(place, b.delinearize(number, vectors));
      place.back() = b.mul(place.back(), b.i64(lanes));
      places.push_back(place);
    }
    for (hlo::ReduceOp r : reductions) {
      FailureOr<SmallVector<Value>> values = reduce(r, places, lastExists);
      if (failed(values)) {
        ok = failure();
        return;
      }
      plain::bindReduced(e, r, *values);
    }
    b.ifThen(b.eq(team.member, b.i64(0)), [&] {
      ElementEmitter::Scope inside(e);
      for (auto [k, root] : llvm::enumerate(elements.roots))
        if (!shape->isFull(root) && failed(plain::storeRoot(b, elements, k, b.delinearize(row, b.dims(hlo::tensorType(root))), row)))
          ok = failure();
    });
    Value first = b.mul(row, b.i64(count));
    for (int64_t k = 0; k < own; ++k) {
      auto store = [&] {
        ElementEmitter::Scope inside(e);
        for (auto [n, root] : llvm::enumerate(elements.roots)) {
          if (!shape->isFull(root))
            continue;
          FailureOr<Value> v = e.emit(root, places[k], lanes);
          if (failed(v)) {
            ok = failure();
            return;
          }
          b.storeElem(hlo::elementType(root), *v, b.results[n], b.mul(b.add(first, numbers[k]), b.i64(lanes)));
        }
      };
      if (k + 1 == own && lastExists)
        b.ifThen(lastExists, store);
      else
        store();
    }
  };
  // no barrier where several teams share a block
  if (together == 1)
    doRow();
  else
    b.ifThen(b.lt(row, b.dim(rows)), doRow);
  alignVectors(b, lanes);
  return ok;
}

} // namespace lathe::nvptx
