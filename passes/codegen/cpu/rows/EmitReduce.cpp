// kernel.reduce and bare hlo.reduce. Along the last dimension: a row a unit, four vector chains, then halves. Along
// outer dimensions: vectors of results, the reduced dimensions as loops around. The order is fixed by the shapes.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/rows/Elemental.h"
#include "passes/codegen/cpu/target/Blocking.h"
#include "passes/codegen/element/LongSums.h"
#include "passes/codegen/element/Reducer.h"
#include "passes/codegen/element/Special.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

namespace {
struct Reduction {
  hlo::ReduceOp op;
  unsigned firstInput; ///< its place among the collapsed roots
};

/// Reductions over the same dimensions and what becomes of their results.
class ReduceEmitter {
public:
  /// `roots` are computed from the results of `ops`; `leaves` are the kernel's operands.
  ReduceEmitter(KernelBuilder &b, SmallVector<hlo::ReduceOp> ops, ArrayRef<Value> roots, ArrayRef<Value> leaves);
  LogicalResult emit();

private:
  using Reducers = SmallVector<std::shared_ptr<Reducer>>;

  static SmallVector<Value> inputsOf(ArrayRef<hlo::ReduceOp> ops);
  /// What keeps dimensions apart: those that are reduced, and each that consumers of results see.
  static SmallVector<int64_t> labelsOf(hlo::ReduceOp op, ArrayRef<Value> roots);
  FailureOr<Reducers> makeReducers();
  /// All results at one place -> consumers -> memory.
  LogicalResult store(Value linear, ArrayRef<SmallVector<Value>> results, unsigned width, Value mask);
  /// Operands of one reduction at `index`.
  FailureOr<SmallVector<Value>> operandsAt(const Reduction &x, unsigned width, Value mask);
  /// `acc` combined with the operands at `index`.
  SmallVector<Value> combineAt(const Reduction &x, Reducer &reducer, ValueRange acc, unsigned width, Value mask);
  int64_t additionsBehind(unsigned level, unsigned own);
  int64_t workPerResult();
  void emitRows();
  void emitRow(Value unit, ArrayRef<Value> keptSizes);
  SmallVector<Value> accumulateRow(const Reduction &x, Reducer &reducer, unsigned level, ValueRange acc);
  void emitStrips();
  int64_t vectorsAtOnce() const;
  void emitBlock(ArrayRef<Value> lead, Value j, unsigned count, unsigned width, Value mask);
  SmallVector<Value> accumulateBlock(const Reduction &x, Reducer &reducer, unsigned level, ValueRange acc, Value j, unsigned count,
                                     unsigned width, Value mask);

  KernelBuilder &b;
  ArrayRef<Value> roots;
  SmallVector<int64_t> labels;
  Collapsed collapsed;
  ElementEmitter e;
  SmallVector<Reduction> reductions;
  int64_t rank = 0;
  SmallVector<AffineExpr> exprs;
  SmallVector<Value> dims;
  SmallVector<int64_t> keptDims, overDims;
  bool lastReduced = false, masked = false;
  unsigned lanes = 1;
  SmallVector<Value> index; ///< where operands are read
  LogicalResult ok = success();
};
} // namespace

SmallVector<Value> ReduceEmitter::inputsOf(ArrayRef<hlo::ReduceOp> ops) {
  SmallVector<Value> inputs;
  for (hlo::ReduceOp op : ops)
    inputs.append(op.getInputs().begin(), op.getInputs().end());
  return inputs;
}

SmallVector<int64_t> ReduceEmitter::labelsOf(hlo::ReduceOp op, ArrayRef<Value> roots) {
  // consumers see the result's own dimensions, so these stay apart when there are any
  bool consumers = llvm::any_of(roots, [](Value r) { return !r.getDefiningOp<hlo::ReduceOp>(); });
  SmallVector<int64_t> labels;
  for (int64_t i = 0, n = tensorType(op.getInputs()[0]).getRank(); i < n; ++i)
    labels.push_back(llvm::is_contained(op.getDimensions(), i) ? -1 : consumers ? i : 0);
  return labels;
}

ReduceEmitter::ReduceEmitter(KernelBuilder &b, SmallVector<hlo::ReduceOp> ops, ArrayRef<Value> roots, ArrayRef<Value> leaves)
    : b(b), roots(roots), labels(labelsOf(ops[0], roots)), collapsed(inputsOf(ops), leaves, labels), e(b) {
  unsigned inputs = 0;
  for (hlo::ReduceOp op : ops) {
    reductions.push_back({op, inputs});
    inputs += op.getInputs().size();
  }
  for (auto [leaf, ptr] : llvm::zip(leaves, b.operands))
    e.bindBuffer(leaf, ptr);
  for (auto [leaf, view] : collapsed.views)
    for (auto [l, ptr] : llvm::zip(leaves, b.operands))
      if (l == leaf)
        e.bindBuffer(view, ptr);

  auto type = tensorType(collapsed.roots[0]);
  rank = type.getRank();
  SmallVector<bool> reduced(rank, false);
  for (auto [label, group] : llvm::zip(labels, collapsed.group))
    if (label < 0)
      reduced[group] = true;
  exprs = hlo::getDims(type);
  dims = b.dims(type);
  for (int64_t i = 0; i < rank; ++i)
    (reduced[i] ? overDims : keptDims).push_back(i);
  index.resize(rank);

  lastReduced = rank > 0 && reduced[rank - 1];
  lanes = rank == 0 ? 1 : chooseLanes(collapsed.roots, b.target);
  for (Value r : roots)
    lanes = std::min(lanes, b.target.lanes(elementType(r)));
  for (Value v : collapsed.roots) // what is reduced: sums of complex numbers have no vectors
    lanes = std::min(lanes, b.target.lanes(elementType(v)));
  masked = lanes > 1 && masksPay(collapsed.roots, b.target);
}

FailureOr<ReduceEmitter::Reducers> ReduceEmitter::makeReducers() {
  Reducers reducers;
  for (Reduction &x : reductions) {
    SmallVector<Type> elems;
    SmallVector<Value> inits;
    for (Value v : x.op.getInitValues()) {
      SmallVector<Value> zero(tensorType(v).getRank(), b.i64(0));
      FailureOr<Value> s = e.emit(v, zero, 1);
      if (failed(s))
        return failure();
      inits.push_back(*s);
      elems.push_back(elementType(v));
    }
    reducers.push_back(std::make_shared<Reducer>(b, x.op.getBody().front(), elems, inits));
  }
  return reducers;
}

LogicalResult ReduceEmitter::store(Value linear, ArrayRef<SmallVector<Value>> results, unsigned width, Value mask) {
  ElementEmitter::Scope scope(e);
  e.mask = mask;
  for (auto [x, values] : llvm::zip(reductions, results))
    for (auto [res, v] : llvm::zip(x.op.getResults(), values)) {
      Value bound = v;
      Type elem = elementType(res);
      e.bindElement(res, [this, bound, elem, width](ArrayRef<Value>, unsigned lanes) -> FailureOr<Value> {
        return lanes == width ? bound : b.splatElem(elem, bound, lanes);
      });
    }
  SmallVector<Value> out;
  for (Value r : roots) {
    SmallVector<Value> at = b.delinearize(linear, b.dims(tensorType(r)));
    FailureOr<Value> v = e.emit(r, at, width);
    if (failed(v))
      return failure();
    out.push_back(*v);
  }
  e.mask = Value();
  for (auto [r, v, ptr] : llvm::zip(roots, out, b.results))
    b.storeElem(elementType(r), v, ptr, linear, mask);
  return success();
}

FailureOr<SmallVector<Value>> ReduceEmitter::operandsAt(const Reduction &x, unsigned width, Value mask) {
  ElementEmitter::Scope scope(e);
  e.mask = mask;
  SmallVector<Value> v;
  for (unsigned i = 0; i < hlo::ReduceOp(x.op).getInputs().size(); ++i) {
    FailureOr<Value> r = e.emit(collapsed.roots[x.firstInput + i], index, width);
    if (failed(r))
      return failure();
    v.push_back(*r);
  }
  e.mask = Value();
  return v;
}

SmallVector<Value> ReduceEmitter::combineAt(const Reduction &x, Reducer &reducer, ValueRange acc, unsigned width, Value mask) {
  auto v = operandsAt(x, width, mask);
  auto next = failed(v) ? FailureOr<SmallVector<Value>>() : reducer.combine(acc, *v, width);
  if (succeeded(next))
    return *next;
  ok = failure();
  return SmallVector<Value>(acc);
}

// How many times a step of the loop over overDims[level] adds to an accumulator, less the loops that keep their own.
int64_t ReduceEmitter::additionsBehind(unsigned level, unsigned own) {
  SmallVector<Value> trips;
  for (unsigned i = level + 1; i + own < overDims.size(); ++i)
    trips.push_back(dims[overDims[i]]);
  return additionsIn(trips);
}

int64_t ReduceEmitter::workPerResult() {
  AffineExpr over = b.getAffineConstantExpr(1);
  for (int64_t d : overDims)
    over = hlo::simplify(over * exprs[d]);
  return (elementCost(collapsed.roots) + 1) * hlo::constantValue(over).value_or(256);
}

LogicalResult ReduceEmitter::emit() {
  const bool byRows = lastReduced || rank == 0 || lanes == 1;
  chooseSpecial(b, byRows ? "reduce-rows" : "reduce-strips", WhyNot::none());
  if (byRows)
    emitRows();
  else
    emitStrips();
  return ok;
}

/// One result a unit.
void ReduceEmitter::emitRows() {
  AffineExpr kept = b.getAffineConstantExpr(1);
  SmallVector<Value> keptSizes;
  for (int64_t d : keptDims) {
    kept = hlo::simplify(kept * exprs[d]);
    keptSizes.push_back(dims[d]);
  }
  b.setExtent(kept);
  b.setWork(workPerResult());
  b.units([&](Value unit) { emitRow(unit, keptSizes); });
}

void ReduceEmitter::emitRow(Value unit, ArrayRef<Value> keptSizes) {
  ElementEmitter::Scope scope(e);
  auto reducers = makeReducers();
  if (failed(reducers)) {
    ok = failure();
    return;
  }
  for (auto [d, v] : llvm::zip(keptDims, b.delinearize(unit, keptSizes)))
    index[d] = v;
  SmallVector<SmallVector<Value>> results;
  for (auto [x, reducer] : llvm::zip(reductions, *reducers)) {
    auto fin = reducer->finish(accumulateRow(x, *reducer, 0, reducer->start(1)));
    if (failed(fin)) {
      ok = failure();
      return;
    }
    results.push_back(*fin);
  }
  if (failed(store(unit, results, 1, Value())))
    ok = failure();
}

SmallVector<Value> ReduceEmitter::accumulateRow(const Reduction &x, Reducer &reducer, unsigned level, ValueRange acc) {
  if (overDims.empty())
    return combineAt(x, reducer, acc, 1, Value());
  int64_t d = overDims[level];
  if (level + 1 < overDims.size())
    return reduceLoop(b, reducer, b.i64(0), dims[d], 1, additionsBehind(level, 1), acc, [&](Value iv, ValueRange a) {
      ElementEmitter::Scope scope(e);
      index[d] = iv;
      return accumulateRow(x, reducer, level + 1, a);
    });
  unsigned width = lastReduced ? lanes : 1;
  auto v = reduceRow(
      b, reducer, dims[d], width, masked && width > 1,
      [&](Value at, unsigned w, Value mask) {
        index[d] = at;
        return operandsAt(x, w, mask);
      },
      acc);
  if (succeeded(v))
    return *v;
  ok = failure();
  return SmallVector<Value>(acc);
}

/// Vectors of results along the last dimension, which is kept; a unit is a strip of several vectors, which are added up side by side: rows
/// are read as they lie, and no sum waits for itself.
void ReduceEmitter::emitStrips() {
  int64_t last = rank - 1;
  const std::optional<int64_t> columns = hlo::constantValue(exprs[last]);
  int64_t strip = 4 * lanes;
  if (columns) {
    const int64_t vectors = llvm::divideCeil(*columns, lanes), most = std::clamp<int64_t>(vectors, 1, vectorsAtOnce());
    strip = vectorsPerStrip(vectors, most, b.target.threads) * lanes;
  }
  AffineExpr strips = hlo::ceilDiv(exprs[last], strip);
  AffineExpr outer = b.getAffineConstantExpr(1);
  SmallVector<Value> unitDims;
  for (int64_t d : keptDims)
    if (d != last) {
      outer = hlo::simplify(outer * exprs[d]);
      unitDims.push_back(dims[d]);
    }
  unitDims.push_back(b.dim(strips));
  b.setExtent(hlo::simplify(outer * strips));
  b.setWork(workPerResult() * strip);
  b.units([&](Value unit) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> at = b.delinearize(unit, unitDims);
    SmallVector<Value> lead(ArrayRef<Value>(at).drop_back());
    Value lo = b.mul(at.back(), b.i64(strip)), hi = b.min(b.add(lo, b.i64(strip)), dims[last]);
    Value whole = b.eq(b.sub(hi, lo), b.i64(strip));
    b.ifElse(whole, {}, [&] {
      emitBlock(lead, lo, strip / lanes, lanes, Value());
      return SmallVector<Value>();
    }, [&] {
      // the last strip: what fills vectors side by side as well
      const int64_t rest = columns ? *columns % strip / lanes : 0;
      if (rest > 1) {
        emitBlock(lead, lo, rest, lanes, Value());
        if (*columns % lanes == 0)
          return SmallVector<Value>();
      }
      Value from = rest > 1 ? b.add(lo, b.i64(rest * lanes)) : lo;
      if (failed(vectorLoop(b, from, hi, lanes, masked, [&](Value j, unsigned n, Value mask) {
            emitBlock(lead, j, 1, n, mask);
            return success();
          })))
        ok = failure();
      return SmallVector<Value>();
    });
  });
}

/// How many vectors are added up side by side: as many as leave half of the fewest registers that a target has for other numbers.
int64_t ReduceEmitter::vectorsAtOnce() const {
  return llvm::all_of(reductions, [](const Reduction &x) { return hlo::ReduceOp(x.op).getInputs().size() == 1; }) ? 8 : 4;
}

/// `count` vectors of `width` starting at column j.
void ReduceEmitter::emitBlock(ArrayRef<Value> lead, Value j, unsigned count, unsigned width, Value mask) {
  ElementEmitter::Scope scope(e);
  auto reducers = makeReducers();
  if (failed(reducers)) {
    ok = failure();
    return;
  }
  int64_t last = rank - 1;
  unsigned next = 0;
  for (int64_t d : keptDims)
    if (d != last)
      index[d] = lead[next++];
  SmallVector<SmallVector<SmallVector<Value>>> results(count);
  for (auto [x, reducer] : llvm::zip(reductions, *reducers)) {
    SmallVector<Value> acc;
    for (unsigned c = 0; c < count; ++c)
      acc.append(reducer->start(width));
    acc = accumulateBlock(x, *reducer, 0, acc, j, count, width, mask);
    unsigned k = reducer->size();
    for (unsigned c = 0; c < count; ++c) {
      auto fin = reducer->finish(SmallVector<Value>(ArrayRef<Value>(acc).slice(c * k, k)), width);
      if (failed(fin)) {
        ok = failure();
        return;
      }
      results[c].push_back(*fin);
    }
  }
  SmallVector<Value> sizes, at(lead);
  for (int64_t d : keptDims)
    if (d != last)
      sizes.push_back(dims[d]);
  sizes.push_back(dims[last]);
  at.push_back(Value());
  for (unsigned c = 0; c < count; ++c) {
    at.back() = b.add(j, b.i64(c * width));
    if (failed(store(b.linearize(at, sizes), results[c], width, mask)))
      ok = failure();
  }
}

SmallVector<Value> ReduceEmitter::accumulateBlock(const Reduction &x, Reducer &reducer, unsigned level, ValueRange acc, Value j,
                                                  unsigned count, unsigned width, Value mask) {
  if (level < overDims.size())
    return reduceLoop(b, reducer, b.i64(0), dims[overDims[level]], 1, additionsBehind(level, 0), acc,
                      [&](Value iv, ValueRange now) {
                        ElementEmitter::Scope scope(e);
                        index[overDims[level]] = iv;
                        return accumulateBlock(x, reducer, level + 1, now, j, count, width, mask);
                      });
  SmallVector<Value> out;
  unsigned k = reducer.size();
  for (unsigned c = 0; c < count; ++c) {
    index.back() = b.add(j, b.i64(c * width));
    out.append(combineAt(x, reducer, acc.slice(c * k, k), width, mask));
  }
  return out;
}

LogicalResult emitReduceKernel(Operation *op, KernelBuilder &b) {
  if (auto r = dyn_cast<hlo::ReduceOp>(op)) {
    SmallVector<Value> roots(r.getResults()), leaves(op->getOperands());
    return ReduceEmitter(b, {r}, roots, leaves).emit();
  }
  Block &body = op->getRegion(0).front();
  SmallVector<hlo::ReduceOp> ops;
  for (Operation &o : body)
    if (auto r = dyn_cast<hlo::ReduceOp>(o)) {
      if (!ops.empty() && (ops[0].getDimensions() != r.getDimensions()))
        return op->emitError("kernel.reduce with reductions over different dimensions");
      ops.push_back(r);
    }
  if (ops.empty())
    return op->emitError("kernel.reduce without hlo.reduce");
  SmallVector<Value> roots(body.getTerminator()->getOperands()), leaves(body.getArguments());
  return ReduceEmitter(b, ops, roots, leaves).emit();
}

} // namespace lathe::cpu
