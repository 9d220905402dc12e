// scatter, reduce_window (with running sums as scans) and select_and_scatter.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Running.h"
#include "passes/codegen/cpu/Bare.h"
#include "passes/codegen/cpu/Elemental.h"
#include "passes/codegen/cpu/Expr.h"
#include "passes/codegen/cpu/LongSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

// One pass over the updates in their order, so that repeated indices give the same bits every time.
LogicalResult emitScatter(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::ScatterOp>(op);
  auto d = s.getScatterDimensionNumbers();
  unsigned n = s.getInputs().size();
  auto type = tensorType(s.getInputs()[0]), updates = tensorType(s.getUpdates()[0]);
  auto indices = tensorType(s.getScatterIndices());
  int64_t rank = type.getRank(), upRank = updates.getRank();
  SmallVector<Value> dims = b.dims(type), upDims = b.dims(updates), indexDims = b.dims(indices);
  Value indexPtr = b.operands[n];
  Type indexElem = indices.getElementType();
  SmallVector<int64_t> windowTo; // operand dimension of each window dimension
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(d.getInsertedWindowDims(), i) && !llvm::is_contained(d.getInputBatchingDims(), i))
      windowTo.push_back(i);
  SmallVector<int64_t> outerDims, windowDims(d.getUpdateWindowDims());
  for (int64_t i = 0; i < upRank; ++i)
    if (!llvm::is_contained(windowDims, i))
      outerDims.push_back(i);
  // consecutive in both: vectors along the last window dimension
  bool rows = !windowDims.empty() && windowDims.back() == upRank - 1 && windowTo.back() == rank - 1;
  unsigned lanes = 64;
  for (Value v : s.getInputs())
    lanes = std::min(lanes, b.target.lanes(elementType(v)));
  if (!rows || n != 1)
    lanes = 1;
  Block &body = s.getUpdateComputation().front();
  LogicalResult ok = success();
  b.units([&](Value) {
    if (!op->hasAttr("kernel.inplace"))
      for (unsigned k = 0; k < n; ++k)
        emitCopy(b, b.results[k], b.operands[k],
                 b.mul(b.numElements(type), b.i64(elemBytes(elementType(s.getInputs()[k])))));
    SmallVector<Value> outerSizes;
    for (int64_t i : outerDims)
      outerSizes.push_back(upDims[i]);
    b.nest(outerSizes, [&](ValueRange outer) {
      int64_t vectorDim = d.getIndexVectorDim();
      SmallVector<Value> start(rank, b.i64(0));
      for (auto [k, dim] : llvm::enumerate(d.getScatterDimsToOperandDims())) {
        SmallVector<Value> at;
        unsigned next = 0;
        for (int64_t i = 0; i < indices.getRank(); ++i)
          at.push_back(i == vectorDim ? b.i64(k) : outer[next++]);
        start[dim] = loadIndex(b, indexElem, indexPtr, b.linearize(at, indexDims));
      }
      for (auto [i, dim] : llvm::enumerate(d.getInputBatchingDims())) {
        int64_t sd = d.getScatterIndicesBatchingDims()[i];
        start[dim] = outer[sd > vectorDim ? sd - 1 : sd];
      }
      SmallVector<Value> upIndex(upRank, b.i64(0));
      for (auto [i, dim] : llvm::enumerate(outerDims))
        upIndex[dim] = outer[i];
      SmallVector<int64_t> inner(windowDims);
      if (rows)
        inner.pop_back();
      SmallVector<Value> innerSizes;
      for (int64_t i : inner)
        innerSizes.push_back(upDims[i]);
      auto apply = [&](Value to, Value from, unsigned width) {
        SmallVector<Value> args;
        for (unsigned k = 0; k < n; ++k)
          args.push_back(b.loadElem(elementType(s.getInputs()[k]), b.results[k], to, width));
        for (unsigned k = 0; k < n; ++k)
          args.push_back(b.loadElem(elementType(s.getUpdates()[k]), b.operands[n + 1 + k], from, width));
        auto r = emitScalarBody(b, body, args, width);
        if (failed(r)) {
          ok = failure();
          return;
        }
        for (unsigned k = 0; k < n; ++k)
          b.storeElem(elementType(s.getInputs()[k]), (*r)[k], b.results[k], to);
      };
      b.nest(innerSizes, [&](ValueRange window) {
        SmallVector<Value> at(start), up(upIndex);
        for (auto [i, w] : llvm::enumerate(window)) {
          up[inner[i]] = w;
          int64_t dim = windowTo[i];
          at[dim] = b.add(at[dim], w);
        }
        Value inside = b.cstI(b.getI1Type(), 1);
        for (int64_t i = 0; i < rank - (rows ? 1 : 0); ++i)
          inside = b.both(inside, b.inRange(at[i], b.i64(0), dims[i]));
        b.ifThen(inside, [&] {
          if (!rows) {
            apply(b.linearize(at, dims), b.linearize(up, upDims), 1);
            return;
          }
          Value first = at.back();
          Value lo = b.max(b.sub(b.i64(0), first), b.i64(0));
          Value hi = b.min(upDims.back(), b.sub(dims.back(), first));
          (void)vectorLoop(b, lo, b.max(lo, hi), lanes, false, [&](Value j, unsigned width, Value) {
            at.back() = b.add(first, j);
            up.back() = j;
            apply(b.linearize(at, dims), b.linearize(up, upDims), width);
            return success();
          });
        });
      });
    });
  });
  return ok;
}

namespace {
struct Window {
  SmallVector<int64_t> size, stride, baseDilation, dilation;
  hlo::PaddingList padding;
};
} // namespace

namespace {
/// A running reduction: each result continues the one before.
class Running {
public:
  Running(KernelBuilder &b, hlo::ReduceWindowOp op, hlo::RunningWindow window);
  LogicalResult emit();

private:
  SmallVector<Value> inits(unsigned width);
  SmallVector<Value> load(ArrayRef<Value> buffers, Value at, unsigned width, Value mask = {});
  void store(ValueRange values, Value at, Value mask = {});
  SmallVector<Value> combine(ValueRange x, ValueRange y, unsigned width);
  SmallVector<Value> shuffled(ValueRange x, ValueRange y, ArrayRef<int64_t> pick);
  void across(Value outer, Value lo, Value hi);
  void sumsAcross(Value outer, Value lo, Value hi);
  SmallVector<Value> vectorsOfRow(Value base, Value first, Value last, SmallVector<Value> carried, ValueRange before);
  SmallVector<Value> elementsOfRow(Value base, Value first, Value last, SmallVector<Value> carried, ValueRange before);
  void alongRow(Value row);
  SmallVector<Value> after(ValueRange before, ValueRange sums);
  Value inOrder(Value t) { return window.reverse ? b.sub(b.sub(count, b.i64(1)), t) : t; }

  KernelBuilder &b;
  Block &body;
  hlo::RunningWindow window;
  SmallVector<Type> elems;
  ArrayRef<Value> starts;
  AffineExpr outerE, innerE, countE;
  Value inner, count;
  unsigned lanes = 64;
  bool masked = true;
  const bool adds; ///< floats: in blocks
  LogicalResult ok = success();
};
} // namespace

// Elements in a row, or vectors of a row, that running sums take in a block.
static constexpr int64_t runningBlock = 64;

Running::Running(KernelBuilder &b, hlo::ReduceWindowOp op, hlo::RunningWindow window)
    : b(b), body(op.getBody().front()), window(window),
      starts(ArrayRef<Value>(b.operands).drop_front(op.getInputs().size())), adds(isFloatSum(body)) {
  outerE = innerE = b.getAffineConstantExpr(1);
  for (auto [i, size] : llvm::enumerate(hlo::getDims(tensorType(op.getInputs()[0])))) {
    if (int64_t(i) == window.dim)
      countE = size;
    else
      (int64_t(i) < window.dim ? outerE : innerE) =
          hlo::simplify((int64_t(i) < window.dim ? outerE : innerE) * size);
  }
  inner = b.dim(innerE);
  count = b.dim(countE);
  for (Value v : op.getInputs()) {
    elems.push_back(elementType(v));
    lanes = std::min(lanes, b.target.lanes(elems.back()));
    masked &= b.target.hasMaskedMemory(elems.back());
  }
}

SmallVector<Value> Running::inits(unsigned width) {
  SmallVector<Value> v;
  for (auto [elem, start] : llvm::zip(elems, starts))
    v.push_back(b.splatElem(elem, b.loadElem(elem, start, b.i64(0)), width));
  return v;
}

SmallVector<Value> Running::load(ArrayRef<Value> buffers, Value at, unsigned width, Value mask) {
  SmallVector<Value> v;
  for (auto [elem, buffer] : llvm::zip(elems, buffers))
    v.push_back(b.loadElem(elem, buffer, at, width, mask));
  return v;
}

void Running::store(ValueRange values, Value at, Value mask) {
  for (auto [elem, v, buffer] : llvm::zip(elems, values, b.results))
    b.storeElem(elem, v, buffer, at, mask);
}

SmallVector<Value> Running::combine(ValueRange x, ValueRange y, unsigned width) {
  SmallVector<Value> args(x);
  args.append(y.begin(), y.end());
  auto next = emitScalarBody(b, body, args, width);
  if (succeeded(next))
    return *next;
  ok = failure();
  return SmallVector<Value>(x);
}

SmallVector<Value> Running::shuffled(ValueRange x, ValueRange y, ArrayRef<int64_t> pick) {
  SmallVector<Value> v;
  for (auto [p, q] : llvm::zip(x, y))
    v.push_back(vector::ShuffleOp::create(b, p, q, pick));
  return v;
}

// Columns lo to hi of one outer position, row by row: the results so far are read back from the row before.
void Running::across(Value outer, Value lo, Value hi) {
  auto rowAt = [&](Value t) { return b.mul(b.add(b.mul(outer, count), inOrder(t)), inner); };
  auto row = [&](Value t, llvm::function_ref<SmallVector<Value>(Value, unsigned, Value)> value) {
    Value to = rowAt(t);
    (void)vectorLoop(b, lo, hi, lanes, masked, [&](Value j, unsigned width, Value mask) {
      store(value(j, width, mask), b.add(to, j), mask);
      return success();
    });
  };
  b.ifThen(b.lt(b.i64(0), count), [&] {
    row(b.i64(0), [&](Value j, unsigned width, Value mask) {
      if (window.exclusive)
        return inits(width);
      return combine(inits(width), load(b.operands, b.add(rowAt(b.i64(0)), j), width, mask), width);
    });
  });
  b.loop(b.i64(1), count, [&](Value t) {
    Value before = rowAt(b.sub(t, b.i64(1))), from = window.exclusive ? before : rowAt(t);
    row(t, [&](Value j, unsigned width, Value mask) {
      SmallVector<Value> sums = load(b.results, b.add(before, j), width, mask);
      return combine(sums, load(b.operands, b.add(from, j), width, mask), width);
    });
  });
}

/// Sums, and what comes before their block, if it is apart.
SmallVector<Value> Running::after(ValueRange before, ValueRange sums) {
  return before.empty() ? SmallVector<Value>(sums) : addAll(b, before, sums);
}

// The same for sums: a strip of columns in registers, from block to block.
void Running::sumsAcross(Value outer, Value lo, Value hi) {
  Type elem = elems[0];
  auto strip = [&](Value j, unsigned vecs, unsigned width, Value mask) {
    SmallVector<Value> start;
    for (unsigned v = 0; v < vecs; ++v)
      start.append(inits(width));
    runningBlocks(b, b.i64(0), count, runningBlock, start, [&](Value from, Value to, ValueRange before) {
      SmallVector<Value> zeros;
      for (Value v : before)
        zeros.push_back(b.cst(v.getType(), -0.0));
      return b.loop(from, to, b.i64(1), zeros, [&](Value t, ValueRange sums) {
        Value at = b.add(b.mul(b.add(b.mul(outer, count), inOrder(t)), inner), j);
        SmallVector<Value> next;
        for (unsigned v = 0; v < vecs; ++v)
          next.push_back(arith::AddFOp::create(
              b, sums[v], b.loadElem(elem, b.operands[0], b.add(at, b.i64(v * width)), width, mask)));
        SmallVector<Value> out = addAll(b, before, window.exclusive ? sums : ValueRange(next));
        for (unsigned v = 0; v < vecs; ++v)
          b.storeElem(elem, out[v], b.results[0], b.add(at, b.i64(v * width)), mask);
        return next;
      });
    });
  };
  constexpr int64_t vecs = 8;
  Value wide = b.i64(vecs * lanes), rest = lo;
  if (lanes > 1) {
    rest = b.add(lo, b.mul(b.divU(b.sub(hi, lo), wide), wide));
    b.loop(lo, rest, wide, [&](Value j) { strip(j, vecs, lanes, Value()); });
  }
  (void)vectorLoop(b, rest, hi, lanes, masked, [&](Value j, unsigned width, Value mask) {
    strip(j, 1, width, mask);
    return success();
  });
}

// A row that lies in a piece: within a vector by doubling steps, then on from the last of the vector before.
SmallVector<Value> Running::vectorsOfRow(Value base, Value from, Value to, SmallVector<Value> carried, ValueRange before) {
  const int64_t width = lanes;
  return b.loop(from, to, b.i64(width), carried, [&](Value t, ValueRange carried) {
    Value first = window.reverse ? b.sub(b.sub(count, b.i64(width)), t) : t, at = b.add(base, first);
    SmallVector<Value> v = load(b.operands, at, lanes);
    for (int64_t step = 1; step < width; step *= 2) {
      SmallVector<int64_t> pick, keep;
      SmallVector<bool> on;
      for (int64_t l = 0; l < width; ++l) {
        int64_t from = window.reverse ? l + step : l - step;
        on.push_back(from >= 0 && from < width);
        pick.push_back(on.back() ? from : l);
        keep.push_back(on.back() ? l : l + width);
      }
      v = shuffled(combine(shuffled(v, v, pick), v, lanes), v, keep);
    }
    SmallVector<Value> splats, last, next;
    for (auto [elem, x] : llvm::zip(elems, carried))
      splats.push_back(b.splatElem(elem, x, lanes));
    v = combine(splats, v, lanes);
    for (Value x : v)
      next.push_back(vector::ExtractOp::create(b, x, window.reverse ? int64_t(0) : width - 1));
    if (window.exclusive) { // what was carried comes first, the last is carried on
      SmallVector<int64_t> pick;
      for (int64_t l = 0; l < width; ++l)
        pick.push_back(window.reverse ? (l + 1 < width ? l + 1 : 2 * width - 1) : (l ? l - 1 : width));
      v = shuffled(v, splats, pick);
    }
    SmallVector<Value> whole;
    for (auto [elem, x] : llvm::zip(elems, before))
      whole.push_back(b.splatElem(elem, x, lanes));
    store(after(whole, v), at);
    return next;
  });
}

SmallVector<Value> Running::elementsOfRow(Value base, Value from, Value to, SmallVector<Value> carried, ValueRange before) {
  return b.loop(from, to, b.i64(1), carried, [&](Value t, ValueRange carried) {
    Value at = b.add(base, inOrder(t));
    SmallVector<Value> next = combine(carried, load(b.operands, at, 1), 1);
    store(after(before, window.exclusive ? carried : ValueRange(next)), at);
    return next;
  });
}

void Running::alongRow(Value row) {
  Value base = b.mul(row, count), begin = b.i64(0);
  if (lanes > 1)
    begin = b.mul(b.divU(count, b.i64(lanes)), b.i64(lanes));
  SmallVector<Value> sums = inits(1);
  if (!adds) {
    if (lanes > 1)
      sums = vectorsOfRow(base, b.i64(0), begin, sums, {});
    elementsOfRow(base, begin, count, sums, {});
    return;
  }
  SmallVector<Value> zero{b.cst(sums[0].getType(), -0.0)};
  if (lanes > 1)
    sums = runningBlocks(b, b.i64(0), begin, runningBlock * lanes, sums, [&](Value from, Value to, ValueRange before) {
      return vectorsOfRow(base, from, to, zero, before);
    });
  runningBlocks(b, begin, count, runningBlock, sums,
                [&](Value from, Value to, ValueRange before) { return elementsOfRow(base, from, to, zero, before); });
}

LogicalResult Running::emit() {
  // a unit's columns: long pieces of memory, and several units where only the columns are many
  constexpr int64_t piece = 256;
  auto innerSize = hlo::constantValue(innerE), size = hlo::constantValue(countE);
  auto fit = [&](std::optional<int64_t> n) {
    while (n && lanes > *n && lanes > 1)
      lanes /= 2;
  };
  if (innerSize == 1) {
    fit(size);
    b.setExtent(outerE);
    b.setWork(size.value_or(1024) * 4);
    b.units([&](Value row) { alongRow(row); });
    return ok;
  }
  fit(innerSize);
  AffineExpr pieces = hlo::ceilDiv(innerE, piece);
  b.setExtent(hlo::simplify(outerE * pieces));
  b.setWork(size.value_or(1024) * std::min(piece, innerSize.value_or(piece)) * 2);
  Value each = b.dim(pieces);
  b.units([&](Value unit) {
    Value lo = b.mul(b.remU(unit, each), b.i64(piece));
    Value outer = b.divU(unit, each), hi = b.min(b.add(lo, b.i64(piece)), inner);
    adds ? sumsAcross(outer, lo, hi) : across(outer, lo, hi);
  });
  return ok;
}

LogicalResult emitReduceWindow(Operation *op, KernelBuilder &b) {
  auto r = cast<hlo::ReduceWindowOp>(op);
  auto in = tensorType(r.getInputs()[0]), out = tensorType(op->getResult(0));
  size_t rank = in.getRank(), n = r.getInputs().size();
  Window w{SmallVector<int64_t>(r.getWindowDimensions()), hlo::getListOr(r.getWindowStrides(), rank, 1),
           hlo::getListOr(r.getBaseDilations(), rank, 1), hlo::getListOr(r.getWindowDilations(), rank, 1),
           hlo::getPadding(cast_or_null<DenseIntElementsAttr>(r.getPaddingAttr()), rank)};
  SmallVector<Value> inDims = b.dims(in), outDims = b.dims(out);
  auto inExprs = hlo::getDims(in), outExprs = hlo::getDims(out);
  Block &body = r.getBody().front();
  SmallVector<Type> elems;
  for (Value v : r.getInputs())
    elems.push_back(elementType(v));
  unsigned lanes = 64;
  for (Type t : elems)
    lanes = std::min(lanes, b.target.lanes(t));
  const bool adds = isFloatSum(body);
  SmallVector<Value> sizes; // of the window
  for (int64_t size : w.size)
    sizes.push_back(b.i64(size));
  LogicalResult ok = success();
  auto inits = [&](unsigned width) {
    SmallVector<Value> v;
    for (size_t k = 0; k < n; ++k)
      v.push_back(b.splatElem(elems[k], b.loadElem(elems[k], b.operands[n + k], b.i64(0)), width));
    return v;
  };
  auto step = [&](ValueRange acc, Value at, unsigned width) -> SmallVector<Value> {
    SmallVector<Value> args(acc);
    for (size_t k = 0; k < n; ++k)
      args.push_back(b.loadElem(elems[k], b.operands[k], at, width));
    auto next = emitScalarBody(b, body, args, width);
    if (failed(next)) {
      ok = failure();
      return SmallVector<Value>(acc);
    }
    return *next;
  };
  auto store = [&](ValueRange acc, Value at) {
    for (size_t k = 0; k < n; ++k)
      b.storeElem(elems[k], acc[k], b.results[k], at);
  };

  if (auto running = hlo::runningWindow(r))
    return Running(b, r, *running).emit();

  size_t last = rank ? rank - 1 : 0;
  bool plainLast = rank > 0 && w.size[last] == 1 && w.stride[last] == 1 && w.baseDilation[last] == 1 &&
                   w.padding[last].first == 0 && w.padding[last].second == 0;
  AffineExpr rows = b.getAffineConstantExpr(1);
  for (size_t i = 0; i + 1 < rank; ++i)
    rows = hlo::simplify(rows * outExprs[i]);
  int64_t taps = 1;
  for (int64_t s : w.size)
    taps *= s;
  b.setExtent(rows);
  b.setWork(taps * 4 * (rank ? hlo::constantValue(outExprs[last]).value_or(64) : 1));
  b.units([&](Value unit) {
    SmallVector<Value> lead = b.delinearize(unit, ArrayRef<Value>(outDims).take_front(last));
    auto one = [&](Value j, unsigned width, Value) -> LogicalResult {
      SmallVector<Value> index(lead);
      if (rank)
        index.push_back(j);
      SmallVector<Value> at(rank);
      // a loop a window dimension; positions outside the operand are skipped
      std::function<SmallVector<Value>(size_t, ValueRange)> nest = [&](size_t i, ValueRange acc) -> SmallVector<Value> {
        if (i == rank)
          return step(acc, b.linearize(at, inDims), width);
        if (plainLast && i == last) {
          at[i] = index[i];
          return nest(i + 1, acc);
        }
        auto tap = [&](Value k, ValueRange a) -> SmallVector<Value> {
          Value pos = b.sub(b.add(b.mul(index[i], b.i64(w.stride[i])), b.mul(k, b.i64(w.dilation[i]))),
                            b.i64(w.padding[i].first));
          Value inside = b.ge(pos, b.i64(0));
          if (w.baseDilation[i] != 1) {
            Value dil = b.i64(w.baseDilation[i]);
            inside = b.both(inside, b.eq(arith::RemUIOp::create(b, pos, dil), b.i64(0)));
            pos = arith::DivUIOp::create(b, pos, dil);
          }
          inside = b.both(inside, b.lt(pos, inDims[i]));
          SmallVector<Type> types;
          for (Value v : a)
            types.push_back(v.getType());
          return b.ifElse(inside, types, [&] {
            at[i] = pos;
            return nest(i + 1, a);
          }, [&] { return SmallVector<Value>(a); });
        };
        SumBlocks how;
        how.perStep = additionsIn(ArrayRef<Value>(sizes).drop_front(i + 1));
        return adds ? sumLoop(b, b.i64(0), sizes[i], 1, acc, how, tap) : b.loop(b.i64(0), sizes[i], b.i64(1), acc, tap);
      };
      store(nest(0, inits(width)), b.linearize(index, outDims));
      return success();
    };
    if (rank == 0)
      (void)one(b.i64(0), 1, Value());
    else
      (void)vectorLoop(b, b.i64(0), outDims[last], plainLast ? lanes : 1, false, one);
  });
  return ok;
}

LogicalResult emitSelectAndScatter(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SelectAndScatterOp>(op);
  auto in = tensorType(s.getOperand()), source = tensorType(s.getSource());
  Type elem = in.getElementType();
  size_t rank = in.getRank();
  SmallVector<int64_t> size = hlo::getListOr(s.getWindowDimensions(), rank, 1),
                       stride = hlo::getListOr(s.getWindowStrides(), rank, 1);
  auto padding = hlo::getPadding(cast_or_null<DenseIntElementsAttr>(s.getPaddingAttr()), rank);
  SmallVector<Value> inDims = b.dims(in), sourceDims = b.dims(source);
  LogicalResult ok = success();
  auto run = [&](Block &body, ValueRange args) -> Value {
    auto r = emitScalarBody(b, body, args);
    if (failed(r)) {
      ok = failure();
      return args[0];
    }
    return r->front();
  };
  b.units([&](Value) {
    Value init = b.loadElem(elem, b.operands[2], b.i64(0));
    b.loop(b.i64(0), b.numElements(in), [&](Value i) { b.storeElem(elem, init, b.results[0], i); });
    b.nest(sourceDims, [&](ValueRange index) {
      // state: position of the selected element (-1: none yet) and its value
      SmallVector<Value> at(rank);
      std::function<SmallVector<Value>(size_t, ValueRange)> nest = [&](size_t i, ValueRange a) -> SmallVector<Value> {
        if (i == rank) {
          Value pos = b.linearize(at, inDims), v = b.loadElem(elem, b.operands[0], pos);
          Value keep = b.ifElse(b.lt(a[0], b.i64(0)), b.getI1Type(),
                                [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 0)}; },
                                [&] { return SmallVector<Value>{run(s.getSelect().front(), {a[1], v})}; })[0];
          return {b.select(keep, a[0], pos), b.select(keep, a[1], v)};
        }
        return b.loop(b.i64(0), b.i64(size[i]), b.i64(1), a, [&](Value k, ValueRange acc) {
          Value pos = b.sub(b.add(b.mul(index[i], b.i64(stride[i])), k), b.i64(padding[i].first));
          return b.ifElse(b.inRange(pos, b.i64(0), inDims[i]), TypeRange{acc[0].getType(), acc[1].getType()}, [&] {
            at[i] = pos;
            return nest(i + 1, acc);
          }, [&] { return SmallVector<Value>(acc); });
        });
      };
      SmallVector<Value> chosen = nest(0, ValueRange{b.i64(-1), init});
      b.ifThen(b.ge(chosen[0], b.i64(0)), [&] {
        Value old = b.loadElem(elem, b.results[0], chosen[0]);
        Value v = b.loadElem(elem, b.operands[1], b.linearize(index, sourceDims));
        b.storeElem(elem, run(s.getScatter().front(), {old, v}), b.results[0], chosen[0]);
      });
    });
  });
  return ok;
}

} // namespace lathe::cpu
