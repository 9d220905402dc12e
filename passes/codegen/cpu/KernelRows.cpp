// kernel.rows: a row a unit. Each reduction is a pass over the row; values that are dear and needed again are kept in
// a row of scratch; what is left goes to memory in a last pass.
//   softmax: max(x); e = exp(x - max) kept, sum(e); e / sum
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Elemental.h"
#include "passes/codegen/cpu/Reducer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

LogicalResult emitRowsKernel(Operation *op, KernelBuilder &b) {
  Block &body = op->getRegion(0).front();
  SmallVector<hlo::ReduceOp> reductions;
  for (Operation &o : body)
    if (auto r = dyn_cast<hlo::ReduceOp>(o))
      reductions.push_back(r);
  if (reductions.empty())
    return emitLoopKernel(op, b);

  auto full = tensorType(reductions[0].getInputs()[0]);
  auto fullDims = hlo::getDims(full);
  int64_t rank = full.getRank(), trailing = reductions[0].getDimensions().size(), lead = rank - trailing;
  for (hlo::ReduceOp r : reductions) {
    auto t = tensorType(r.getInputs()[0]);
    bool fits = t.getRank() == rank && int64_t(r.getDimensions().size()) == trailing;
    for (int64_t i = 0; fits && i < rank; ++i)
      fits = hlo::equalDims(hlo::getDim(t, i), fullDims[i]) &&
             llvm::is_contained(r.getDimensions(), i) == (i >= lead);
    if (!fits)
      return op->emitError("kernel.rows with reductions that are not along the same trailing dimensions");
  }
  auto isFull = [&](Value v) {
    auto t = tensorType(v);
    if (t.getRank() != rank)
      return false;
    for (int64_t i = 0; i < rank; ++i)
      if (!hlo::equalDims(hlo::getDim(t, i), fullDims[i]))
        return false;
    return true;
  };

  ElementEmitter e(b);
  for (auto [arg, ptr] : llvm::zip(body.getArguments(), b.operands))
    e.bindBuffer(arg, ptr);
  SmallVector<Value> roots(body.getTerminator()->getOperands());
  SmallVector<Value> dims = b.dims(full);
  SmallVector<Value> leadDims(ArrayRef<Value>(dims).take_front(lead)), rowDims(ArrayRef<Value>(dims).drop_front(lead));

  // cut the region into passes: before each reduction, what it needs that is not there yet
  unsigned lanes = 64;
  bool masked = true;
  {
    SmallVector<Value> inputs;
    for (hlo::ReduceOp r : reductions)
      inputs.append(r.getInputs().begin(), r.getInputs().end());
    for (Operation &o : body)
      for (Value v : o.getResults())
        if (isFull(v) || tensorType(v).getRank() > 0) {
          lanes = std::min(lanes, isa<ComplexType>(elementType(v)) ? 1u : b.target.lanes(elementType(v)));
          masked &= b.target.hasMaskedMemory(elementType(v));
        }
    for (Value v : body.getArguments())
      if (tensorType(v).getRank() > 0) {
        lanes = std::min(lanes, isa<ComplexType>(elementType(v)) ? 1u : b.target.lanes(elementType(v)));
        masked &= b.target.hasMaskedMemory(elementType(v));
      }
  }
  masked &= lanes > 1;

  // which values to keep: dear ones of the full shape in the cone of a reduction that someone outside the cone uses
  llvm::DenseSet<Value> kept;
  llvm::DenseMap<Operation *, SmallVector<Value>> keptBy;
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
    SmallVector<Value> candidates;
    std::function<void(Value)> visit = [&](Value v) {
      Operation *o = v.getDefiningOp();
      if (!o || !isFull(v) || kept.contains(v) || isa<hlo::ReduceOp>(o) || !dear(v))
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
  // room for the kept rows
  AffineExpr rowLength = b.getAffineConstantExpr(1), rows = rowLength;
  for (int64_t i = 0; i < rank; ++i)
    (i < lead ? rows : rowLength) = hlo::simplify((i < lead ? rows : rowLength) * fullDims[i]);
  AffineExpr bytes = b.getAffineConstantExpr(0);
  llvm::DenseMap<Value, Value> keptAt;
  for (hlo::ReduceOp r : reductions)
    for (Value v : keptBy[r]) {
      keptAt[v] = b.ptrBytes(b.scratch, b.dim(bytes));
      AffineExpr size = hlo::simplify(rowLength * elemBytes(elementType(v)));
      // every row of scratch starts on its own cache line
      bytes = hlo::simplify(bytes + hlo::ceilDiv(size, 64) * 64);
    }
  b.setScratch(bytes);
  b.setExtent(rows);
  b.setWork(hlo::constantValue(rowLength).value_or(256) * (elementCost(roots) + 4 * int64_t(reductions.size())));

  LogicalResult ok = success();
  Type i1 = b.getI1Type();
  (void)i1;
  b.units([&](Value row) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> leadIndex = b.delinearize(row, leadDims);
    auto indexOf = [&](ArrayRef<Value> outer, Value j) {
      SmallVector<Value> index(leadIndex);
      index.append(outer.begin(), outer.end());
      index.push_back(j);
      return index;
    };
    auto inRow = [&](ArrayRef<Value> index) { return b.linearize(index.drop_front(lead), rowDims); };
    for (hlo::ReduceOp r : reductions) {
      SmallVector<Type> elems;
      SmallVector<Value> inits;
      for (Value v : r.getInitValues()) {
        FailureOr<Value> s = e.emit(v, {}, 1);
        if (failed(s)) {
          ok = failure();
          return;
        }
        inits.push_back(*s);
        elems.push_back(elementType(v));
      }
      Reducer reducer(b, r.getBody().front(), elems, inits);
      auto values = [&](ArrayRef<Value> index, unsigned width, Value mask) -> FailureOr<SmallVector<Value>> {
        ElementEmitter::Scope inner(e);
        e.mask = mask;
        for (Value v : keptBy[r]) {
          FailureOr<Value> x = e.emit(v, index, width);
          if (failed(x))
            return failure();
          e.mask = Value();
          b.storeElem(elementType(v), *x, keptAt[v], inRow(index), mask);
          e.mask = mask;
        }
        SmallVector<Value> out;
        for (Value v : r.getInputs()) {
          FailureOr<Value> x = e.emit(v, index, width);
          if (failed(x))
            return failure();
          out.push_back(*x);
        }
        e.mask = Value();
        return out;
      };
      SmallVector<Value> outer;
      std::function<SmallVector<Value>(ValueRange)> nest = [&](ValueRange acc) -> SmallVector<Value> {
        unsigned level = outer.size();
        if (level + 1 < rowDims.size())
          return b.loop(b.i64(0), rowDims[level], b.i64(1), acc, [&](Value iv, ValueRange a) {
            ElementEmitter::Scope inner(e);
            outer.push_back(iv);
            auto v = nest(a);
            outer.pop_back();
            return v;
          });
        auto v = reduceRow(
            b, reducer, rowDims.back(), lanes, masked,
            [&](Value at, unsigned w, Value mask) { return values(indexOf(outer, at), w, mask); }, acc);
        if (failed(v)) {
          ok = failure();
          return SmallVector<Value>(acc);
        }
        return *v;
      };
      bool flat = rowDims.size() == 1;
      SmallVector<Value> acc;
      if (flat) {
        auto v = reduceRow(b, reducer, rowDims.back(), lanes, masked,
                           [&](Value at, unsigned w, Value mask) { return values(indexOf({}, at), w, mask); });
        if (failed(v)) {
          ok = failure();
          return;
        }
        acc = *v;
      } else {
        acc = nest(reducer.start(1));
      }
      auto fin = reducer.finish(acc);
      if (failed(fin)) {
        ok = failure();
        return;
      }
      for (auto [res, v] : llvm::zip(r.getResults(), *fin)) {
        Value bound = v;
        Type elem = elementType(res);
        e.bindElement(res, [&b, bound, elem](ArrayRef<Value>, unsigned width) -> FailureOr<Value> {
          return b.splatElem(elem, bound, width);
        });
      }
      for (Value v : keptBy[r]) {
        Value ptr = keptAt[v];
        Type elem = elementType(v);
        e.bindElement(v, [&b, &e, ptr, elem, lead, rowDims](ArrayRef<Value> index, unsigned width) -> FailureOr<Value> {
          return b.loadElem(elem, ptr, b.linearize(index.drop_front(lead), rowDims), width, width > 1 ? e.mask : Value());
        });
      }
    }
    // the results: full ones in one pass, those of a row once
    SmallVector<unsigned> fullRoots;
    for (auto [k, r] : llvm::enumerate(roots)) {
      if (isFull(r)) {
        fullRoots.push_back(k);
        continue;
      }
      SmallVector<Value> index = b.delinearize(row, b.dims(tensorType(r)));
      FailureOr<Value> v = e.emit(r, index, 1);
      if (failed(v)) {
        ok = failure();
        return;
      }
      b.storeElem(elementType(r), *v, b.results[k], row);
    }
    if (fullRoots.empty())
      return;
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
            ElementEmitter::Scope inner(e);
            e.mask = mask;
            SmallVector<Value> index = indexOf(outer, j), out;
            for (unsigned k : fullRoots) {
              FailureOr<Value> v = e.emit(roots[k], index, w);
              if (failed(v))
                return LogicalResult(failure());
              out.push_back(*v);
            }
            e.mask = Value();
            Value linear = b.linearize(index, dims);
            for (auto [k, v] : llvm::zip(fullRoots, out))
              b.storeElem(elementType(roots[k]), v, b.results[k], linear, mask);
            return success();
          })))
        ok = failure();
    };
    nest({});
  });
  return ok;
}

} // namespace lathe::cpu
