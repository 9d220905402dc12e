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

std::string whyNoKeptRows(Operation *op) {
  if (std::string why = whyNoRows(op); !why.empty())
    return why;
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  RankedTensorType in = hlo::tensorType(reductions[0].getInputs()[0]);
  const int64_t count = reducedCount(reductions[0]);
  if (count <= 0 || in.getShape().back() % lanes != 0)
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

namespace {

/// Emits the rows of an op for one team.
class KeptRows {
public:
  KeptRows(const plain::Elements &elements, const plain::RowShape &shape, Team &team, int64_t count)
      : elements(elements), shape(shape), team(team), b(team.frame.b), e(*elements.emitter), count(count),
        own(llvm::divideCeil(count, team.size)) {
    for (AffineExpr d : shape.dims)
      sizes.push_back(b.dim(d));
  }
  /// Row number `row`, all of it.
  LogicalResult emit(Value row, ArrayRef<hlo::ReduceOp> reductions);

private:
  void place(ArrayRef<Value> lead);
  FailureOr<SmallVector<Value>> reduce(hlo::ReduceOp r);
  LogicalResult storeVector(int64_t k, Value first);
  bool mayLack(int64_t k) const { return k + 1 == own && lastExists; }

  const plain::Elements &elements;
  const plain::RowShape &shape;
  Team &team;
  KernelBuilder &b;
  ElementEmitter &e;
  const int64_t count, own; ///< vectors of a row, and those of a thread
  SmallVector<Value> sizes;
  SmallVector<Value> numbers;             ///< of this thread's vectors in the row; beyond it is the last one again
  SmallVector<SmallVector<Value>> places; ///< their first elements
  Value lastExists;                       ///< whether the thread's last vector is in the row; null if it is for all
};

} // namespace

void KeptRows::place(ArrayRef<Value> lead) {
  SmallVector<Value> vectors(ArrayRef<Value>(sizes).drop_front(shape.lead)); // the row's dimensions, the last in vectors
  vectors.back() = b.divU(vectors.back(), b.i64(lanes));
  for (int64_t k = 0; k < own; ++k) {
    Value number = b.add(team.member, b.i64(k * team.size));
    if ((k + 1) * team.size > count) {
      lastExists = b.lt(number, b.i64(count));
      number = b.min(number, b.i64(count - 1));
    }
    numbers.push_back(number);
    SmallVector<Value> at(lead);
    llvm::append_range(at, b.delinearize(number, vectors));
    at.back() = b.mul(at.back(), b.i64(lanes));
    places.push_back(at);
  }
}

FailureOr<SmallVector<Value>> KeptRows::reduce(hlo::ReduceOp r) {
  FailureOr<Reducer> reducer = makeReducer(e, r);
  if (failed(reducer))
    return failure();
  SmallVector<Value> sums = reducer->start(lanes);
  for (int64_t k = 0; k < own; ++k) {
    SmallVector<Value> values;
    for (Value input : r.getInputs()) {
      FailureOr<Value> v = e.emit(input, places[k], lanes);
      if (failed(v))
        return failure();
      values.push_back(*v);
    }
    FailureOr<SmallVector<Value>> next = reducer->combine(sums, values, lanes);
    if (failed(next))
      return failure();
    if (mayLack(k))
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
}

/// Stores this thread's vector `k` of all results that are whole rows; `first`: the row's first vector.
LogicalResult KeptRows::storeVector(int64_t k, Value first) {
  ElementEmitter::Scope scope(e);
  for (auto [n, root] : llvm::enumerate(elements.roots)) {
    if (!shape.isFull(root))
      continue;
    FailureOr<Value> v = e.emit(root, places[k], lanes);
    if (failed(v))
      return failure();
    b.storeElem(hlo::elementType(root), *v, b.results[n], b.mul(b.add(first, numbers[k]), b.i64(lanes)));
  }
  return success();
}

LogicalResult KeptRows::emit(Value row, ArrayRef<hlo::ReduceOp> reductions) {
  ElementEmitter::Scope scope(e);
  place(b.delinearize(row, ArrayRef<Value>(sizes).take_front(shape.lead)));
  for (hlo::ReduceOp r : reductions) {
    FailureOr<SmallVector<Value>> values = reduce(r);
    if (failed(values))
      return failure();
    plain::bindReduced(e, r, *values);
  }
  LogicalResult ok = success();
  b.ifThen(b.eq(team.member, b.i64(0)), [&] {
    ElementEmitter::Scope inside(e);
    for (auto [k, root] : llvm::enumerate(elements.roots))
      if (!shape.isFull(root) && failed(plain::storeRoot(b, elements, k, b.delinearize(row, b.dims(hlo::tensorType(root))), row)))
        ok = failure();
  });
  Value first = b.mul(row, b.i64(count));
  for (int64_t k = 0; k < own; ++k) {
    auto store = [&] {
      if (failed(storeVector(k, first)))
        ok = failure();
    };
    if (mayLack(k))
      b.ifThen(lastExists, store);
    else
      store();
  }
  return ok;
}

LogicalResult emitKeptRows(Operation *op, KernelBuilder &b) {
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  FailureOr<plain::RowShape> shape = plain::rowShape(op, reductions);
  if (failed(shape))
    return failure();
  plain::Elements elements = plain::bindOperands(op, b);
  const int64_t length = reducedCount(reductions[0]);
  const auto [size, threads] = teamFor(length);
  BlockFrame frame(b, threads);
  Team team(frame, size);
  KeptRows kept(elements, *shape, team, length / lanes);
  LogicalResult ok = success();
  team.eachOf(shape->count(op->getContext()), [&](Value row) { ok = kept.emit(row, reductions); });
  alignVectors(b, lanes);
  return ok;
}

} // namespace lathe::nvptx
