// See Running.h.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Running.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/Lanes.h"
#include "passes/codegen/element/LongSums.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/library/Running.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

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
  void sumsAcross(Value outer, Value lo, Value hi, int64_t piece);
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

// The same for sums, row by row as well: the sums of a block of rows, and of all before it, are kept beside. Those of 64
// blocks make one of the next level.
void Running::sumsAcross(Value outer, Value lo, Value hi, int64_t piece) {
  Type elem = elems[0];
  const bool narrow = isa<FloatType>(elem) && elem.getIntOrFloatBitWidth() < 32;
  Type acc = narrow ? b.getF32Type() : elem; // narrow results are rounded where they are stored, sums never
  const int64_t bytes = llvm::alignTo((piece + lanes) * elemBytes(acc), 64);
  Value here = b.alloca(bytes), before = b.alloca(bytes);
  SmallVector<Value> kept; // of blocks, of 64 blocks, of 64 times as many
  for (int64_t level = 0; level < 3; ++level)
    kept.push_back(b.alloca(bytes));
  auto columns = [&](llvm::function_ref<void(Value, unsigned, Value)> body) {
    (void)vectorLoop(b, lo, hi, lanes, masked, [&](Value j, unsigned width, Value mask) {
      body(j, width, mask);
      return success();
    });
  };
  auto get = [&](Value memory, Value j, unsigned width) { return b.loadElem(acc, memory, b.sub(j, lo), width); };
  auto put = [&](Value v, Value memory, Value j) { b.storeElem(acc, v, memory, b.sub(j, lo)); };
  auto plus = [&](Value x, Value y) { return addAll(b, x, y)[0]; };
  auto zero = [&](unsigned width) { return b.splatElem(acc, b.cst(regType(acc), -0.0), width); };
  columns([&](Value j, unsigned width, Value) {
    for (Value memory : kept)
      put(zero(width), memory, j);
  });
  /// Hands the sums of `from` on to `to`.
  auto hand = [&](Value from, Value to) {
    columns([&](Value j, unsigned width, Value) {
      put(plus(get(to, j, width), get(from, j, width)), to, j);
      put(zero(width), from, j);
    });
  };
  Value span = b.i64(runningBlock);
  auto endsSpan = [&](Value i) { return b.eq(b.remU(b.add(i, b.i64(1)), span), b.i64(0)); };
  Value blocks = b.divU(b.add(count, b.i64(runningBlock - 1)), span);
  b.loop(b.i64(0), blocks, [&](Value block) {
    columns([&](Value j, unsigned width, Value) {
      Value sum = inits(width)[0];
      for (Value memory : llvm::reverse(kept))
        sum = plus(sum, get(memory, j, width));
      put(sum, before, j);
      put(zero(width), here, j);
    });
    Value first = b.mul(block, span);
    b.loop(first, b.min(b.add(first, span), count), [&](Value t) {
      Value row = b.mul(b.add(b.mul(outer, count), inOrder(t)), inner);
      columns([&](Value j, unsigned width, Value mask) {
        Value sum = get(here, j, width), at = b.add(row, j);
        Value next = plus(sum, b.loadElem(elem, b.operands[0], at, width, mask));
        put(next, here, j);
        b.storeElem(elem, plus(get(before, j, width), window.exclusive ? sum : next), b.results[0], at, mask);
      });
    });
    hand(here, kept[0]);
    b.ifThen(endsSpan(block), [&] {
      hand(kept[0], kept[1]);
      b.ifThen(endsSpan(b.divU(block, span)), [&] { hand(kept[1], kept[2]); });
    });
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
    adds ? sumsAcross(outer, lo, hi, piece) : across(outer, lo, hi);
  });
  return ok;
}

LogicalResult emitRunning(KernelBuilder &b, hlo::ReduceWindowOp op, hlo::RunningWindow window) {
  return Running(b, op, window).emit();
}

} // namespace lathe::codegen
