// reduce_window and select_and_scatter over any windows.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Running.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/Lanes.h"
#include "passes/codegen/element/LongSums.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/library/Running.h"
#include "passes/codegen/library/Selected.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

namespace {
struct Window {
  SmallVector<int64_t> size, stride, baseDilation, dilation;
  hlo::PaddingList padding;
};
} // namespace

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
    return emitRunning(b, r, *running);

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

SelectedWindows::SelectedWindows(hlo::SelectAndScatterOp s) {
  const size_t rank = tensorType(s.getOperand()).getRank();
  size = hlo::getListOr(s.getWindowDimensions(), rank, 1);
  stride = hlo::getListOr(s.getWindowStrides(), rank, 1);
  for (auto [before, after] : hlo::getPadding(cast_or_null<DenseIntElementsAttr>(s.getPaddingAttr()), rank))
    low.push_back(before);
}

FailureOr<Value> emitSelected(KernelBuilder &b, hlo::SelectAndScatterOp s, const SelectedWindows &windows, Value init, ValueRange inSizes,
                              ValueRange index) {
  const Type elem = elementType(s.getOperand());
  const size_t rank = inSizes.size();
  LogicalResult ok = success();
  // state: position of the selected element (-1: none yet) and its value
  SmallVector<Value> at(rank);
  std::function<SmallVector<Value>(size_t, ValueRange)> nest = [&](size_t i, ValueRange a) -> SmallVector<Value> {
    if (i == rank) {
      Value pos = b.linearize(at, inSizes), v = b.loadElem(elem, b.operands[0], pos);
      Value keep = b.ifElse(b.lt(a[0], b.i64(0)), b.getI1Type(), [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 0)}; },
                            [&] {
                              auto kept = emitScalarBody(b, s.getSelect().front(), {a[1], v});
                              if (succeeded(kept))
                                return *kept;
                              ok = failure();
                              return SmallVector<Value>{b.cstI(b.getI1Type(), 0)};
                            })[0];
      return {b.select(keep, a[0], pos), b.select(keep, a[1], v)};
    }
    return b.loop(b.i64(0), b.i64(windows.size[i]), b.i64(1), a, [&](Value k, ValueRange acc) {
      Value pos = b.sub(b.add(b.mul(index[i], b.i64(windows.stride[i])), k), b.i64(windows.low[i]));
      return b.ifElse(b.inRange(pos, b.i64(0), inSizes[i]), TypeRange{acc[0].getType(), acc[1].getType()}, [&] {
        at[i] = pos;
        return nest(i + 1, acc);
      }, [&] { return SmallVector<Value>(acc); });
    });
  };
  Value chosen = nest(0, ValueRange{b.i64(-1), init})[0];
  if (failed(ok))
    return failure();
  return chosen;
}

LogicalResult emitSelectAndScatter(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SelectAndScatterOp>(op);
  auto in = tensorType(s.getOperand()), source = tensorType(s.getSource());
  Type elem = in.getElementType();
  const SelectedWindows windows(s);
  SmallVector<Value> inDims = b.dims(in), sourceDims = b.dims(source);
  LogicalResult ok = success();
  b.units([&](Value) {
    Value init = b.loadElem(elem, b.operands[2], b.i64(0));
    b.loop(b.i64(0), b.numElements(in), [&](Value i) { b.storeElem(elem, init, b.results[0], i); });
    b.nest(sourceDims, [&](ValueRange index) {
      FailureOr<Value> chosen = emitSelected(b, s, windows, init, inDims, index);
      if (failed(chosen)) {
        ok = failure();
        return;
      }
      b.ifThen(b.ge(*chosen, b.i64(0)), [&] {
        Value old = b.loadElem(elem, b.results[0], *chosen);
        Value v = b.loadElem(elem, b.operands[1], b.linearize(index, sourceDims));
        auto sum = emitScalarBody(b, s.getScatter().front(), {old, v});
        if (failed(sum))
          ok = failure();
        else
          b.storeElem(elem, sum->front(), b.results[0], *chosen);
      });
    });
  });
  return ok;
}

} // namespace lathe::codegen
