// kernel.rows: each reduction is a pass over the row; values that are dear and needed again are kept in a row
// of scratch, and so are those made of several operands; what is left goes to memory in a last pass.
//   softmax: max(x); e = exp(x - max) kept, sum(e); e / sum
//
// A row ends each pass with a chain of dependent instructions, from a vector of partial results to one value
// of all lanes. So a few rows go through the passes together, where the first cache holds them: their chains
// overlap. Each row's results are the same bits, whichever rows go with it.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/rows/Elemental.h"
#include "passes/codegen/cpu/rows/Rows.h"
#include "passes/codegen/cpu/rows/Softmax.h"
#include "passes/codegen/element/LongSums.h"
#include "passes/codegen/element/Reducer.h"
#include "passes/codegen/element/Special.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

static bool isDear(Operation *op) {
  return isa<hlo::ExpOp, hlo::LogOp, hlo::Log1pOp, hlo::Expm1Op, hlo::TanhOp, hlo::LogisticOp, hlo::ErfOp, hlo::ErfcOp,
             hlo::SineOp, hlo::CosineOp, hlo::PowOp, hlo::DivOp, hlo::SqrtOp, hlo::RsqrtOp, hlo::GatherOp,
             hlo::ReduceOp>(op);
}

namespace {

class RowsEmitter {
public:
  RowsEmitter(Operation *op, KernelBuilder &b, const RowsPart *part = nullptr)
      : op(op), b(b), body(op->getRegion(0).front()), part(part) {}
  /// Finds the reductions; false if there are none.
  bool findReductions();
  LogicalResult emit();

private:
  /// One of the rows that go together.
  struct Row {
    explicit Row(KernelBuilder &b) : e(b) {}
    ElementEmitter e;
    Value number;
    SmallVector<Value> leadIndex;
    llvm::DenseMap<Value, Value> keptAt;
  };
  /// `each(row, position, lanes, mask)` gives values of one vector of each row's elements.
  using Elements = llvm::function_ref<FailureOr<SmallVector<Value>>(unsigned row, Value at, unsigned width, Value mask)>;

  LogicalResult checkShapes();
  bool isFull(Value v) const;
  void chooseVectors();
  void chooseKept();
  void placeKept();
  unsigned chooseTogether() const;
  void emitRows(Value first, unsigned count);
  void fetchNext(ArrayRef<Value> index);
  LogicalResult emitReduction(hlo::ReduceOp r);
  void bindQuotient(ElementEmitter &e, hlo::DivOp op, Value sum);
  LogicalResult emitResults();
  SmallVector<Value> indexOf(const Row &row, ArrayRef<Value> outer, Value j) const;
  Value inRow(ArrayRef<Value> index) { return b.linearize(index.drop_front(lead), rowDims); }

  Operation *op;
  KernelBuilder &b;
  Block &body;
  const RowsPart *part;
  SmallVector<hlo::ReduceOp> reductions;
  SmallVector<Value> roots;
  RankedTensorType full;
  SmallVector<AffineExpr> fullDims;
  int64_t rank = 0, lead = 0;
  SmallVector<Value> dims, leadDims, rowDims;
  SmallVector<Value> placeDims; ///< of rows as they lie in the results
  AffineExpr rowLength, rowCount;
  unsigned lanes = 64;
  bool masked = true;
  llvm::DenseSet<Value> kept;
  llvm::DenseMap<Operation *, SmallVector<Value>> keptBy;
  llvm::DenseMap<Value, AffineExpr> keptOffset; ///< in bytes, of the first of the rows
  AffineExpr keptBytes;                         ///< of one row
  SmallVector<std::unique_ptr<Row>> rows;       ///< that go together
  LogicalResult ok = success();
};

bool RowsEmitter::findReductions() {
  for (Operation &o : body)
    if (auto r = dyn_cast<hlo::ReduceOp>(o))
      reductions.push_back(r);
  return !reductions.empty();
}

LogicalResult RowsEmitter::checkShapes() {
  full = tensorType(reductions[0].getInputs()[0]);
  fullDims = hlo::getDims(full);
  rank = full.getRank();
  int64_t trailing = reductions[0].getDimensions().size();
  lead = rank - trailing;
  for (hlo::ReduceOp r : reductions) {
    auto t = tensorType(r.getInputs()[0]);
    bool fits = t.getRank() == rank && int64_t(r.getDimensions().size()) == trailing;
    for (int64_t i = 0; fits && i < rank; ++i)
      fits = hlo::equalDims(hlo::getDim(t, i), fullDims[i]) &&
             llvm::is_contained(r.getDimensions(), i) == (i >= lead);
    if (!fits)
      return op->emitError("kernel.rows with reductions that are not along the same trailing dimensions");
  }
  roots.assign(body.getTerminator()->operand_begin(), body.getTerminator()->operand_end());
  dims = b.dims(full);
  leadDims.assign(dims.begin(), dims.begin() + lead);
  rowDims.assign(dims.begin() + lead, dims.end());
  placeDims = dims;
  if (part)
    placeDims.back() = b.i64(part->stride);
  rowLength = rowCount = b.getAffineConstantExpr(1);
  for (int64_t i = 0; i < rank; ++i)
    (i < lead ? rowCount : rowLength) = hlo::simplify((i < lead ? rowCount : rowLength) * fullDims[i]);
  return success();
}

bool RowsEmitter::isFull(Value v) const {
  auto t = tensorType(v);
  if (t.getRank() != rank)
    return false;
  for (int64_t i = 0; i < rank; ++i)
    if (!hlo::equalDims(hlo::getDim(t, i), fullDims[i]))
      return false;
  return true;
}

void RowsEmitter::chooseVectors() {
  auto fit = [&](Value v) {
    if (tensorType(v).getRank() == 0)
      return;
    lanes = std::min(lanes, ElementEmitter::canVectorize(v) ? lanesOfParts(elementType(v), b.target) : 1u);
    masked &= b.target.hasMaskedMemory(elementType(v));
  };
  for (Operation &o : body)
    llvm::for_each(o.getResults(), fit);
  llvm::for_each(body.getArguments(), fit);
  masked &= lanes > 1;
}

/// Which values to keep: of the full shape in the cone of a reduction that someone outside the cone uses, and
/// dear or made of many operands.
void RowsEmitter::chooseKept() {
  for (hlo::ReduceOp r : reductions) {
    llvm::SetVector<Operation *> cone;
    SmallVector<Value> work(r.getInputs());
    while (!work.empty()) {
      Value v = work.pop_back_val();
      Operation *o = v.getDefiningOp();
      if (!o || kept.contains(v) || isa<hlo::ReduceOp>(o) || !cone.insert(o))
        continue;
      work.append(o->operand_begin(), o->operand_end());
    }
    // dear: a function on full values in its own cone, not behind a kept value
    std::function<bool(Value)> dear = [&](Value v) {
      Operation *o = v.getDefiningOp();
      if (!o || kept.contains(v) || !isFull(v) || isa<hlo::ReduceOp>(o))
        return false;
      return isDear(o) || llvm::any_of(o->getOperands(), dear);
    };
    // made of more than two operands, of which the passes behind would load each again
    auto readsMuch = [&](Value v) {
      llvm::SetVector<Value> behind;
      behind.insert(v);
      int64_t operands = 0;
      for (size_t i = 0; i < behind.size(); ++i) {
        Value x = behind[i];
        Operation *o = x.getDefiningOp();
        if (!isFull(x) || kept.contains(x))
          continue;
        operands += !o;
        if (o && !isa<hlo::ReduceOp>(o))
          behind.insert(o->operand_begin(), o->operand_end());
      }
      return reductions.size() > 1 && operands > 2;
    };
    SmallVector<Value> candidates;
    std::function<void(Value)> visit = [&](Value v) {
      Operation *o = v.getDefiningOp();
      if (!o || !isFull(v) || kept.contains(v) || isa<hlo::ReduceOp>(o) || !(dear(v) || readsMuch(v)))
        return;
      bool outside = llvm::any_of(v.getUsers(), [&](Operation *u) { return u != r && !cone.contains(u); });
      if (outside) {
        if (!llvm::is_contained(candidates, v))
          candidates.push_back(v);
        return;
      }
      for (Value x : o->getOperands())
        visit(x);
    };
    for (Value v : r.getInputs())
      visit(v);
    for (Value v : candidates)
      kept.insert(v);
    keptBy[r] = candidates;
  }
}

void RowsEmitter::placeKept() {
  keptBytes = b.getAffineConstantExpr(0);
  for (hlo::ReduceOp r : reductions)
    for (Value v : keptBy[r]) {
      keptOffset[v] = keptBytes;
      AffineExpr size = hlo::simplify(rowLength * elemBytes(elementType(v)));
      // every row of scratch starts on its own cache line
      keptBytes = hlo::simplify(keptBytes + hlo::ceilDiv(size, 64) * 64);
    }
}

unsigned RowsEmitter::chooseTogether() const {
  if (lanes == 1)
    return 1;
  const int64_t elements = hlo::constantValue(rowLength).value_or(512);
  int64_t bytes = hlo::constantValue(keptBytes).value_or(elements * 4), values = 1, operands = 0;
  for (hlo::ReduceOp r : reductions)
    values = std::max<int64_t>(values, r.getInputs().size());
  for (ValueRange list : {ValueRange(body.getArguments()), ValueRange(roots)})
    for (Value v : list)
      if (isFull(v))
        bytes += elements * elemBytes(elementType(v));
  for (Value v : body.getArguments())
    operands += isFull(v);
  // Rows read at once, of all operands: three of 768 floats take 20.2 us alone and 20.9 in pairs for 128 results.
  constexpr int64_t mostStreams = 4;
  // A row's instructions in one body: those of a vector, on as many vectors as there are accumulators. What LLVM orders
  // in one block should not be more: sixteen exponentials side by side spill twice their number of vectors.
  constexpr int64_t mostInstructions = 250;
  int64_t instructions = 0;
  for (Operation &o : body)
    if (o.getNumResults() == 1 && isFull(o.getResult(0)) && !isa<hlo::ConstantOp, hlo::BroadcastInDimOp, hlo::ReshapeOp>(o))
      instructions += isDear(&o) && !isa<hlo::DivOp, hlo::SqrtOp, hlo::RsqrtOp>(o) ? 20 : 1;
  instructions *= std::min<int64_t>(reduceChains, llvm::divideCeil(elements, lanes));
  std::optional<int64_t> count = hlo::constantValue(rowCount);
  unsigned together = 4;
  while (together > 1 &&
         ((count && *count < together) || together * reduceChains * values > b.target.numVectorRegs / 2 ||
          together * operands > mostStreams || together * bytes > b.target.l1 || together * instructions > mostInstructions))
    together /= 2;
  return together;
}

SmallVector<Value> RowsEmitter::indexOf(const Row &row, ArrayRef<Value> outer, Value j) const {
  SmallVector<Value> index(row.leadIndex);
  index.append(outer.begin(), outer.end());
  index.push_back(j);
  return index;
}

/// Asks for what the rows behind those that go together have in this place: while one reads rows a second
/// time, nothing comes from beyond the second cache.
void RowsEmitter::fetchNext(ArrayRef<Value> index) {
  if (part) // in the cache
    return;
  Value at = b.add(b.linearize(index, dims), b.mul(b.dim(rowLength), b.i64(rows.size())));
  for (auto [arg, ptr] : llvm::zip(body.getArguments(), b.operands))
    if (isFull(arg))
      LLVM::Prefetch::create(b, b.ptrBytes(ptr, b.mul(at, b.i64(elemBytes(elementType(arg))))), /*write=*/0,
                             /*locality=*/2, /*data=*/1);
}

LogicalResult RowsEmitter::emitReduction(hlo::ReduceOp r) {
  SmallVector<Type> elems;
  SmallVector<Value> inits;
  for (Value v : r.getInitValues()) {
    FailureOr<Value> s = rows[0]->e.emit(v, {}, 1);
    if (failed(s))
      return failure();
    inits.push_back(*s);
    elems.push_back(elementType(v));
  }
  Reducer reducer(b, r.getBody().front(), elems, inits);
  if (leavesNanToOthers(r, roots))
    reducer.loseNans();
  const unsigned k = reducer.size(), count = rows.size();
  auto values = [&](unsigned number, ArrayRef<Value> index, unsigned width, Value mask) -> FailureOr<SmallVector<Value>> {
    Row &row = *rows[number];
    ElementEmitter::Scope inner(row.e);
    row.e.mask = mask;
    llvm::scope_exit reset([&] { row.e.mask = Value(); });
    if (r == reductions.back() && reductions.size() > 1 && width > 1 && !mask)
      fetchNext(index);
    for (Value v : keptBy[r]) {
      FailureOr<Value> x = row.e.emit(v, index, width);
      if (failed(x))
        return failure();
      b.storeElem(elementType(v), *x, row.keptAt[v], inRow(index), mask);
    }
    SmallVector<Value> out;
    for (Value v : r.getInputs()) {
      FailureOr<Value> x = row.e.emit(v, index, width);
      if (failed(x))
        return failure();
      out.push_back(*x);
    }
    return out;
  };
  SmallVector<Value> outer;
  auto inner = [&](unsigned level) { // rows that an outer step adds to an accumulator
    return additionsIn(ArrayRef<Value>(rowDims).slice(level + 1, rowDims.size() - level - 2));
  };
  std::function<SmallVector<Value>(ValueRange)> nest = [&](ValueRange acc) -> SmallVector<Value> {
    unsigned level = outer.size();
    if (level + 1 < rowDims.size())
      return reduceLoop(b, reducer, b.i64(0), rowDims[level], 1, inner(level), acc, [&](Value iv, ValueRange a) {
        SmallVector<std::unique_ptr<ElementEmitter::Scope>> inner;
        for (auto &row : rows)
          inner.push_back(std::make_unique<ElementEmitter::Scope>(row->e));
        outer.push_back(iv);
        auto v = nest(a);
        outer.pop_back();
        return v;
      });
    auto v = reduceRows(
        b, reducer, count, rowDims.back(), lanes, masked,
        [&](unsigned row, Value at, unsigned w, Value mask) {
          return values(row, indexOf(*rows[row], outer, at), w, mask);
        },
        acc);
    if (failed(v)) {
      ok = failure();
      return SmallVector<Value>(acc);
    }
    return *v;
  };
  SmallVector<Value> start;
  if (rowDims.size() > 1)
    for (unsigned i = 0; i < count; ++i)
      start.append(reducer.start(1));
  SmallVector<Value> acc = nest(start);
  if (failed(ok))
    return failure();
  for (auto [i, row] : llvm::enumerate(rows)) {
    auto fin = reducer.finish(SmallVector<Value>(ArrayRef<Value>(acc).slice(i * k, k)));
    if (failed(fin))
      return failure();
    for (auto [res, v] : llvm::zip(r.getResults(), *fin)) {
      Value bound = v;
      Type elem = elementType(res);
      row->e.bindElement(res, [this, bound, elem](ArrayRef<Value>, unsigned width) -> FailureOr<Value> {
        return b.splatElem(elem, bound, width);
      });
    }
    for (Operation &o : body)
      if (auto quotient = dyn_cast<hlo::DivOp>(o); quotient && softmaxSum(quotient) == r)
        bindQuotient(row->e, quotient, fin->front());
    for (Value v : keptBy[r]) {
      Value ptr = row->keptAt[v];
      Type elem = elementType(v);
      ElementEmitter *e = &row->e;
      row->e.bindElement(v, [this, e, ptr, elem](ArrayRef<Value> index, unsigned width) -> FailureOr<Value> {
        return b.loadElem(elem, ptr, inRow(index), width, width > 1 ? e->mask : Value());
      });
    }
  }
  return success();
}

/// The elements of `op` by one reciprocal for the row: an error of a unit and a half.
void RowsEmitter::bindQuotient(ElementEmitter &e, hlo::DivOp op, Value sum) {
  Value share = arith::DivFOp::create(b, b.cst(sum.getType(), 1.0), sum), dividend = op->getOperand(0);
  e.bindElement(op->getResult(0), [this, &e, share, dividend](ArrayRef<Value> index, unsigned width) -> FailureOr<Value> {
    FailureOr<Value> x = e.emit(dividend, index, width);
    if (failed(x))
      return failure();
    return arith::MulFOp::create(b, *x, b.splat(share, width)).getResult();
  });
}

/// The results: full ones in one pass, those of a row once.
LogicalResult RowsEmitter::emitResults() {
  SmallVector<unsigned> fullRoots;
  for (auto [k, r] : llvm::enumerate(roots)) {
    if (isFull(r)) {
      fullRoots.push_back(k);
      continue;
    }
    for (auto &row : rows) {
      SmallVector<Value> index = b.delinearize(row->number, b.dims(tensorType(r)));
      FailureOr<Value> v = row->e.emit(r, index, 1);
      if (failed(v))
        return failure();
      b.storeElem(elementType(r), *v, b.results[k], row->number);
    }
  }
  if (fullRoots.empty())
    return success();
  std::function<void(SmallVector<Value>)> nest = [&](SmallVector<Value> outer) {
    if (outer.size() + 1 < rowDims.size()) {
      b.loop(b.i64(0), rowDims[outer.size()], [&](Value iv) {
        SmallVector<Value> next(outer);
        next.push_back(iv);
        nest(next);
      });
      return;
    }
    if (failed(vectorLoop(b, b.i64(0), rowDims.back(), lanes, masked, [&](Value j, unsigned w, Value mask) {
          // all of them before the first store, so that rows share what they load alike
          SmallVector<std::pair<Value, SmallVector<Value>>> out;
          for (auto &row : rows) {
            ElementEmitter::Scope inner(row->e);
            row->e.mask = mask;
            llvm::scope_exit reset([&] { row->e.mask = Value(); });
            SmallVector<Value> index = indexOf(*row, outer, j), values;
            for (unsigned k : fullRoots) {
              FailureOr<Value> v = row->e.emit(roots[k], index, w);
              if (failed(v))
                return LogicalResult(failure());
              values.push_back(*v);
            }
            out.push_back({b.linearize(index, placeDims), values});
          }
          for (auto &[linear, values] : out)
            for (auto [k, v] : llvm::zip(fullRoots, values))
              b.storeElem(elementType(roots[k]), v, b.results[k], linear, mask);
          return success();
        })))
      ok = failure();
  };
  nest({});
  return ok;
}

void RowsEmitter::emitRows(Value first, unsigned count) {
  rows.clear();
  for (unsigned i = 0; i < count; ++i) {
    auto row = std::make_unique<Row>(b);
    for (auto [arg, ptr] : llvm::zip(body.getArguments(), b.operands))
      row->e.bindBuffer(arg, ptr);
    if (part)
      row->e.bindElement(
          part->arg, [this, e = &row->e](ArrayRef<Value> index, unsigned width) -> FailureOr<Value> {
            return b.loadElem(elementType(part->arg), b.operands[part->arg.getArgNumber()],
                              b.linearize(index, placeDims), width, width > 1 ? e->mask : Value());
          });
    row->number = b.add(first, b.i64(i));
    row->leadIndex = b.delinearize(row->number, leadDims);
    for (auto [v, offset] : keptOffset)
      row->keptAt[v] = b.ptrBytes(b.scratch, b.dim(hlo::simplify(keptBytes * i + offset)));
    rows.push_back(std::move(row));
  }
  for (hlo::ReduceOp r : reductions)
    if (failed(emitReduction(r))) {
      ok = failure();
      return;
    }
  if (failed(emitResults()))
    ok = failure();
}

LogicalResult RowsEmitter::emit() {
  if (failed(checkShapes()))
    return failure();
  chooseVectors();
  chooseKept();
  placeKept();
  const unsigned together = chooseTogether();
  chooseSpecial(b, together > 1 ? "rows-together" : "rows", WhyNot::none());
  b.setScratch(hlo::simplify(keptBytes * together));
  int64_t work = hlo::constantValue(rowLength).value_or(256) * (elementCost(roots) + 4 * int64_t(reductions.size()));
  std::optional<int64_t> count = hlo::constantValue(rowCount);
  if (!part && count && *count % together == 0) {
    b.setExtent(b.getAffineConstantExpr(*count / together));
    b.setWork(work * together);
    b.units([&](Value unit) { emitRows(b.mul(unit, b.i64(together)), together); });
    return ok;
  }
  b.setExtent(rowCount);
  b.setWork(work);
  Value first = part ? part->first : b.begin, last = part ? part->last : b.end;
  Value whole = b.sub(last, b.remU(b.sub(last, first), b.i64(together)));
  b.loop(first, whole, b.i64(together), [&](Value row) { emitRows(row, together); });
  if (together > 1)
    b.loop(whole, last, [&](Value row) { emitRows(row, 1); });
  return ok;
}

} // namespace

LogicalResult emitRowsPart(kernel::RowsOp op, KernelBuilder &b, const RowsPart &part) {
  RowsEmitter emitter(op, b, &part);
  return emitter.findReductions() ? emitter.emit() : op.emitError("kernel.rows without reductions");
}

LogicalResult emitRowsKernel(Operation *op, KernelBuilder &b) {
  if (std::optional<LogicalResult> done = emitShortRows(op, b))
    return *done;
  RowsEmitter emitter(op, b);
  return emitter.findReductions() ? emitter.emit() : emitLoopKernel(op, b);
}

} // namespace lathe::cpu
