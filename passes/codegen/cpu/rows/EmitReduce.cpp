// kernel.reduce and bare hlo.reduce. Along the last dimension: a row a unit, four vector chains, then halves. Along
// outer dimensions: vectors of results, the reduced dimensions as loops around. The order is fixed by the shapes.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/rows/Elemental.h"
#include "passes/codegen/cpu/target/Blocking.h"
#include "passes/codegen/element/LongSums.h"
#include "passes/codegen/element/Reducer.h"

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
} // namespace

static LogicalResult emitReductions(KernelBuilder &b, SmallVector<hlo::ReduceOp> ops, ArrayRef<Value> roots,
                                    ArrayRef<Value> leaves) {
  SmallVector<Reduction> reductions;
  SmallVector<Value> inputs;
  for (hlo::ReduceOp op : ops) {
    reductions.push_back({op, unsigned(inputs.size())});
    inputs.append(op.getInputs().begin(), op.getInputs().end());
  }
  auto full = tensorType(inputs[0]);
  ArrayRef<int64_t> over = ops[0].getDimensions();
  // consumers see the result's own dimensions, so these stay apart when there are any
  bool consumers = llvm::any_of(roots, [](Value r) { return !r.getDefiningOp<hlo::ReduceOp>(); });
  SmallVector<int64_t> labels;
  for (int64_t i = 0; i < full.getRank(); ++i)
    labels.push_back(llvm::is_contained(over, i) ? -1 : consumers ? i : 0);
  Collapsed collapsed(inputs, leaves, labels);
  ElementEmitter e(b);
  for (auto [leaf, ptr] : llvm::zip(leaves, b.operands))
    e.bindBuffer(leaf, ptr);
  for (auto [leaf, view] : collapsed.views)
    for (auto [l, ptr] : llvm::zip(leaves, b.operands))
      if (l == leaf)
        e.bindBuffer(view, ptr);

  auto type = tensorType(collapsed.roots[0]);
  int64_t rank = type.getRank();
  SmallVector<bool> reduced(rank, false);
  for (int64_t i = 0; i < full.getRank(); ++i)
    if (labels[i] < 0)
      reduced[collapsed.group[i]] = true;
  auto exprs = hlo::getDims(type);
  SmallVector<Value> dims = b.dims(type);
  SmallVector<int64_t> keptDims, overDims;
  for (int64_t i = 0; i < rank; ++i)
    (reduced[i] ? overDims : keptDims).push_back(i);

  bool lastReduced = rank > 0 && reduced[rank - 1];
  unsigned lanes = rank == 0 ? 1 : chooseLanes(collapsed.roots, b.target);
  for (Value r : roots)
    lanes = std::min(lanes, b.target.lanes(elementType(r)));
  for (Value v : collapsed.roots) // what is reduced: sums of complex numbers have no vectors
    lanes = std::min(lanes, b.target.lanes(elementType(v)));
  bool masked = lanes > 1 && masksPay(collapsed.roots, b.target);

  LogicalResult ok = success();
  auto makeReducers = [&]() -> FailureOr<SmallVector<std::shared_ptr<Reducer>>> {
    SmallVector<std::shared_ptr<Reducer>> r;
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
      r.push_back(std::make_shared<Reducer>(b, x.op.getBody().front(), elems, inits));
    }
    return r;
  };
  // all results at one place -> consumers -> memory
  auto store = [&](Value linear, ArrayRef<SmallVector<Value>> results, unsigned width, Value mask) -> LogicalResult {
    ElementEmitter::Scope scope(e);
    e.mask = mask;
    for (auto [x, values] : llvm::zip(reductions, results))
      for (auto [res, v] : llvm::zip(x.op.getResults(), values)) {
        Value bound = v;
        Type elem = elementType(res);
        e.bindElement(res, [&b, bound, elem, width](ArrayRef<Value>, unsigned lanes) -> FailureOr<Value> {
          return lanes == width ? bound : b.splatElem(elem, bound, lanes);
        });
      }
    SmallVector<Value> out;
    for (Value r : roots) {
      SmallVector<Value> index = b.delinearize(linear, b.dims(tensorType(r)));
      FailureOr<Value> v = e.emit(r, index, width);
      if (failed(v))
        return failure();
      out.push_back(*v);
    }
    e.mask = Value();
    for (auto [r, v, ptr] : llvm::zip(roots, out, b.results))
      b.storeElem(elementType(r), v, ptr, linear, mask);
    return success();
  };
  // operands of one reduction at an index
  auto operandsAt = [&](Reduction &x, ArrayRef<Value> index, unsigned width,
                        Value mask) -> FailureOr<SmallVector<Value>> {
    ElementEmitter::Scope scope(e);
    e.mask = mask;
    SmallVector<Value> v;
    for (unsigned i = 0; i < x.op.getInputs().size(); ++i) {
      FailureOr<Value> r = e.emit(collapsed.roots[x.firstInput + i], index, width);
      if (failed(r))
        return failure();
      v.push_back(*r);
    }
    e.mask = Value();
    return v;
  };

  // how many times a step of the loop over overDims[level] adds to an accumulator, less the loops that keep their own
  auto inner = [&](unsigned level, unsigned own) {
    SmallVector<Value> trips;
    for (unsigned i = level + 1; i + own < overDims.size(); ++i)
      trips.push_back(dims[overDims[i]]);
    return additionsIn(trips);
  };
  int64_t cost = elementCost(collapsed.roots) + 1;
  AffineExpr keptCount = b.getAffineConstantExpr(1), overCount = keptCount;
  for (int64_t i = 0; i < rank; ++i)
    (reduced[i] ? overCount : keptCount) = hlo::simplify((reduced[i] ? overCount : keptCount) * exprs[i]);
  int64_t perResult = cost * hlo::constantValue(overCount).value_or(256);

  if (lastReduced || rank == 0 || lanes == 1) {
    // one result a unit
    b.setExtent(keptCount);
    b.setWork(perResult);
    SmallVector<Value> keptSizes;
    for (int64_t d : keptDims)
      keptSizes.push_back(dims[d]);
    b.units([&](Value unit) {
      ElementEmitter::Scope scope(e);
      auto reducers = makeReducers();
      if (failed(reducers)) {
        ok = failure();
        return;
      }
      SmallVector<Value> kept = b.delinearize(unit, keptSizes), index(rank);
      for (auto [d, v] : llvm::zip(keptDims, kept))
        index[d] = v;
      SmallVector<SmallVector<Value>> results;
      for (auto [x, r] : llvm::zip(reductions, *reducers)) {
        Reduction &red = x;
        Reducer &reducer = *r;
        std::function<SmallVector<Value>(unsigned, ValueRange)> nest = [&](unsigned level,
                                                                          ValueRange acc) -> SmallVector<Value> {
          if (overDims.empty()) {
            auto v = operandsAt(red, index, 1, Value());
            auto n = failed(v) ? FailureOr<SmallVector<Value>>() : reducer.combine(acc, *v, 1);
            if (failed(n)) {
              ok = failure();
              return SmallVector<Value>(acc);
            }
            return *n;
          }
          int64_t d = overDims[level];
          if (level + 1 < overDims.size())
            return reduceLoop(b, reducer, b.i64(0), dims[d], 1, inner(level, 1), acc, [&](Value iv, ValueRange a) {
              ElementEmitter::Scope inner(e);
              index[d] = iv;
              return nest(level + 1, a);
            });
          unsigned width = lastReduced ? lanes : 1;
          auto v = reduceRow(
              b, reducer, dims[d], width, masked && width > 1,
              [&](Value at, unsigned w, Value mask) {
                index[d] = at;
                return operandsAt(red, index, w, mask);
              },
              acc);
          if (failed(v)) {
            ok = failure();
            return SmallVector<Value>(acc);
          }
          return *v;
        };
        auto fin = reducer.finish(nest(0, reducer.start(1)));
        if (failed(fin)) {
          ok = failure();
          return;
        }
        results.push_back(*fin);
      }
      if (failed(store(unit, results, 1, Value())))
        ok = failure();
    });
    return ok;
  }

  // vectors of results along the last dimension, which is kept; a unit is a strip of up to four vectors
  int64_t last = rank - 1;
  int64_t strip = 4 * lanes;
  if (std::optional<int64_t> columns = hlo::constantValue(exprs[last]))
    strip = vectorsPerStrip(llvm::divideCeil(*columns, lanes), 4, b.target.threads) * lanes;
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
  b.setWork(perResult * strip);
  // `count` vectors of `width` starting at column j
  auto block = [&](ArrayRef<Value> lead, Value j, unsigned count, unsigned width, Value mask) {
    ElementEmitter::Scope scope(e);
    auto reducers = makeReducers();
    if (failed(reducers)) {
      ok = failure();
      return;
    }
    SmallVector<Value> index(rank);
    unsigned next = 0;
    for (int64_t d : keptDims)
      if (d != last)
        index[d] = lead[next++];
    SmallVector<SmallVector<SmallVector<Value>>> results(count);
    for (auto [x, r] : llvm::zip(reductions, *reducers)) {
      Reduction &red = x;
      Reducer &reducer = *r;
      unsigned k = reducer.size();
      SmallVector<Value> acc;
      for (unsigned c = 0; c < count; ++c)
        acc.append(reducer.start(width));
      std::function<SmallVector<Value>(unsigned, ValueRange)> nest = [&](unsigned level,
                                                                        ValueRange a) -> SmallVector<Value> {
        if (level < overDims.size())
          return reduceLoop(b, reducer, b.i64(0), dims[overDims[level]], 1, inner(level, 0), a, [&](Value iv, ValueRange now) {
            ElementEmitter::Scope s(e);
            index[overDims[level]] = iv;
            return nest(level + 1, now);
          });
        SmallVector<Value> out;
        for (unsigned c = 0; c < count; ++c) {
          index[last] = b.add(j, b.i64(c * width));
          auto v = operandsAt(red, index, width, mask);
          auto n = failed(v) ? FailureOr<SmallVector<Value>>() : reducer.combine(a.slice(c * k, k), *v, width);
          if (failed(n)) {
            ok = failure();
            return SmallVector<Value>(a);
          }
          out.append(*n);
        }
        return out;
      };
      acc = nest(0, acc);
      for (unsigned c = 0; c < count; ++c) {
        auto fin = reducer.finish(SmallVector<Value>(ArrayRef<Value>(acc).slice(c * k, k)), width);
        if (failed(fin)) {
          ok = failure();
          return;
        }
        results[c].push_back(*fin);
      }
    }
    SmallVector<Value> sizes;
    SmallVector<Value> at;
    for (int64_t d : keptDims)
      if (d != last)
        sizes.push_back(dims[d]);
    sizes.push_back(dims[last]);
    at.assign(lead.begin(), lead.end());
    at.push_back(Value());
    for (unsigned c = 0; c < count; ++c) {
      at.back() = b.add(j, b.i64(c * width));
      if (failed(store(b.linearize(at, sizes), results[c], width, mask)))
        ok = failure();
    }
  };
  b.units([&](Value unit) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> at = b.delinearize(unit, unitDims);
    SmallVector<Value> lead(ArrayRef<Value>(at).drop_back());
    Value lo = b.mul(at.back(), b.i64(strip)), hi = b.min(b.add(lo, b.i64(strip)), dims[last]);
    Value whole = b.eq(b.sub(hi, lo), b.i64(strip));
    b.ifElse(whole, {}, [&] {
      block(lead, lo, strip / lanes, lanes, Value());
      return SmallVector<Value>();
    }, [&] {
      if (failed(vectorLoop(b, lo, hi, lanes, masked, [&](Value j, unsigned n, Value mask) {
            block(lead, j, 1, n, mask);
            return success();
          })))
        ok = failure();
      return SmallVector<Value>();
    });
  });
  return ok;
}

LogicalResult emitReduceKernel(Operation *op, KernelBuilder &b) {
  if (auto r = dyn_cast<hlo::ReduceOp>(op)) {
    SmallVector<Value> roots(r.getResults()), leaves(op->getOperands());
    return emitReductions(b, {r}, roots, leaves);
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
  return emitReductions(b, ops, roots, leaves);
}

} // namespace lathe::cpu
