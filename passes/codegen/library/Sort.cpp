// sort (stable merge sort of a permutation, any comparator and number of operands) and top_k.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/library/Library.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

// Sorts positions 0..n-1; less(i, j) compares the elements at two positions. Scratch: 2n i64. Returns the pointer to
// the sorted positions.
static Value mergeSort(KernelBuilder &b, Value n, Value scratch, llvm::function_ref<Value(Value, Value)> less) {
  Type i64 = b.getI64Type();
  Value other = b.ptrAt(scratch, i64, n);
  b.loop(b.i64(0), n, [&](Value i) { b.storeElem(i64, i, scratch, i); });
  // runs of eight by insertion: fewer passes over memory
  Value runLength = b.i64(8);
  b.loop(b.i64(0), n, runLength, [&](Value lo) {
    Value hi = b.min(b.add(lo, runLength), n);
    b.loop(b.add(lo, b.i64(1)), hi, [&](Value i) {
      Value x = b.loadElem(i64, scratch, i);
      SmallVector<Value> at = b.whileLoop(
          ValueRange{i},
          [&](ValueRange v) {
            return b.ifElse(b.lt(lo, v[0]), b.getI1Type(), [&] {
              Value prev = b.loadElem(i64, scratch, b.sub(v[0], b.i64(1)));
              return SmallVector<Value>{less(x, prev)};
            }, [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 0)}; })[0];
          },
          [&](ValueRange v) {
            Value before = b.sub(v[0], b.i64(1));
            b.storeElem(i64, b.loadElem(i64, scratch, before), scratch, v[0]);
            return SmallVector<Value>{before};
          });
      b.storeElem(i64, x, scratch, at[0]);
    });
  });
  SmallVector<Value> r = b.whileLoop(
      ValueRange{runLength, scratch, other}, [&](ValueRange v) { return b.lt(v[0], n); },
      [&](ValueRange v) {
        Value width = v[0], from = v[1], to = v[2];
        Value two = b.mul(width, b.i64(2));
        b.loop(b.i64(0), n, two, [&](Value lo) {
          Value mid = b.min(b.add(lo, width), n), hi = b.min(b.add(lo, two), n);
          b.loop(lo, hi, b.i64(1), ValueRange{lo, mid}, [&](Value k, ValueRange a) {
            Value i = a[0], j = a[1];
            Value leftDone = b.ge(i, mid), rightDone = b.ge(j, hi);
            Value right = b.ifElse(
                arith::OrIOp::create(b, leftDone, rightDone), b.getI1Type(),
                [&] { return SmallVector<Value>{leftDone}; },
                [&] {
                  return SmallVector<Value>{less(b.loadElem(i64, from, j), b.loadElem(i64, from, i))};
                })[0];
            Value pick = b.select(right, j, i);
            b.storeElem(i64, b.loadElem(i64, from, pick), to, k);
            Value one = b.i64(1);
            return SmallVector<Value>{b.select(right, i, b.add(i, one)), b.select(right, b.add(j, one), j)};
          });
        });
        return SmallVector<Value>{two, to, from};
      });
  return r[1];
}

LogicalResult emitSort(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SortOp>(op);
  auto type = tensorType(s.getInputs()[0]);
  auto exprs = hlo::getDims(type);
  int64_t rank = type.getRank();
  if (rank == 0) {
    b.units([&](Value) {
      for (auto [k, v] : llvm::enumerate(s.getInputs()))
        b.storeElem(elementType(v), b.loadElem(elementType(v), b.operands[k], b.i64(0)), b.results[k], b.i64(0));
    });
    return success();
  }
  int64_t d = s.getDimension() < 0 ? s.getDimension() + rank : s.getDimension();
  AffineExpr outerE = b.getAffineConstantExpr(1), innerE = outerE;
  for (int64_t i = 0; i < rank; ++i)
    if (i != d)
      (i < d ? outerE : innerE) = hlo::simplify((i < d ? outerE : innerE) * exprs[i]);
  b.setExtent(hlo::simplify(outerE * innerE));
  b.setScratch(hlo::simplify(exprs[d] * 16 + 64));
  b.setWork(hlo::constantValue(exprs[d]).value_or(1024) * 64);
  Value n = b.dim(exprs[d]), inner = b.dim(innerE);
  LogicalResult ok = success();
  b.units([&](Value unit) {
    Value o = b.divU(unit, inner), in = b.remU(unit, inner);
    auto at = [&](Value i) { return b.add(b.mul(b.add(b.mul(o, n), i), inner), in); };
    Value order = mergeSort(b, n, b.scratch, [&](Value x, Value y) -> Value {
      SmallVector<Value> args;
      for (auto [k, v] : llvm::enumerate(s.getInputs())) {
        args.push_back(b.loadElem(elementType(v), b.operands[k], at(x)));
        args.push_back(b.loadElem(elementType(v), b.operands[k], at(y)));
      }
      auto r = emitScalarBody(b, s.getComparator().front(), args);
      if (failed(r)) {
        ok = failure();
        return b.cstI(b.getI1Type(), 0);
      }
      return r->front();
    });
    b.loop(b.i64(0), n, [&](Value i) {
      Value from = at(b.loadElem(b.getI64Type(), order, i)), to = at(i);
      for (auto [k, v] : llvm::enumerate(s.getInputs()))
        b.storeElem(elementType(v), b.loadElem(elementType(v), b.operands[k], from), b.results[k], to);
    });
  });
  return ok;
}

namespace {
/// The k best of a row so far, in order, in vectors: an element enters without a branch, and most do not get
/// that far, for they are compared with the last of those a vector at a time.
class TopKInVectors {
public:
  using Greater = llvm::function_ref<Value(Value, Value)>;
  TopKInVectors(KernelBuilder &b, hlo::TopKOp op, Value n, Greater greater);
  /// Whether vectors hold that many.
  static bool fits(KernelBuilder &b, hlo::TopKOp op);
  static int64_t scratchBytes(hlo::TopKOp op) { return 16 * width(op); }
  void emitRow(Value row);

private:
  static int64_t width(hlo::TopKOp op) { return std::max<int64_t>(2, llvm::PowerOf2Ceil(op.getK())); }
  /// The best with element i added; the first `have` exist, or all (null).
  SmallVector<Value> enter(Value x, Value i, ValueRange best, Value have = {});
  /// The same if it belongs there.
  SmallVector<Value> consider(Value i, ValueRange best);
  Value load(Value i, unsigned lanes = 1) { return b.loadElem(elem, b.operands[0], b.add(base, i), lanes); }
  Value last(ValueRange best) { return vector::ExtractOp::create(b, best[0], k - 1); }

  KernelBuilder &b;
  Greater greater;
  const int64_t k;
  const unsigned lanes; ///< of the vectors of the best
  Type elem, indexElem;
  Value n, base;
};

TopKInVectors::TopKInVectors(KernelBuilder &b, hlo::TopKOp op, Value n, Greater greater)
    : b(b), greater(greater), k(op.getK()), lanes(width(op)), elem(elementType(op.getOperand())),
      indexElem(elementType(op.getIndices())), n(n) {}

bool TopKInVectors::fits(KernelBuilder &b, hlo::TopKOp op) {
  Type elem = elementType(op.getOperand());
  const bool plain = elem.isF32() || elem.isF64() || elem.isSignlessInteger(32) || elem.isSignlessInteger(64);
  return plain && b.target.lanes(elem) > 1 && width(op) <= 4 * b.target.lanes(elem);
}

SmallVector<Value> TopKInVectors::enter(Value x, Value i, ValueRange best, Value have) {
  Value xs = b.splat(x, lanes), is = b.splat(arith::TruncIOp::create(b, b.getI32Type(), i), lanes);
  SmallVector<int64_t> down = {lanes}; // each a place further, the first one new
  for (unsigned lane = 0; lane + 1 < lanes; ++lane)
    down.push_back(lane);
  Value moved = vector::ShuffleOp::create(b, best[0], xs, down);
  Value movedIndices = vector::ShuffleOp::create(b, best[1], is, down);
  Value isBehind = greater(xs, best[0]), moves = greater(xs, moved);
  if (have) {
    SmallVector<int32_t> places(lanes);
    std::iota(places.begin(), places.end(), 0);
    Value place = arith::ConstantOp::create(b, b.getI32VectorAttr(places));
    Value from = b.splat(arith::TruncIOp::create(b, b.getI32Type(), have), lanes);
    isBehind =
        arith::OrIOp::create(b, isBehind, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, place, from));
  }
  auto place = [&](Value old, Value down, Value fresh) -> Value {
    return b.select(isBehind, b.select(moves, down, fresh), old);
  };
  return {place(best[0], moved, xs), place(best[1], movedIndices, is)};
}

SmallVector<Value> TopKInVectors::consider(Value i, ValueRange best) {
  Value x = load(i);
  return b.ifElse(
      greater(x, last(best)), TypeRange(best), [&] { return enter(x, i, best); },
      [&] { return SmallVector<Value>(best); });
}

void TopKInVectors::emitRow(Value row) {
  base = b.mul(row, n);
  const unsigned step = b.target.lanes(elem);
  SmallVector<Value> best = {b.splat(b.cstI(elem, 0), lanes), b.splat(b.cstI(b.getI32Type(), 0), lanes)};
  if (isa<FloatType>(elem))
    best[0] = b.splat(b.cst(elem, 0.0), lanes);
  Value first = b.min(n, b.i64(k));
  best = b.loop(b.i64(0), first, b.i64(1), best,
                [&](Value i, ValueRange now) { return enter(load(i), i, now, i); });
  Value wholes = b.add(first, b.mul(b.divU(b.sub(n, first), b.i64(step)), b.i64(step)));
  best = b.loop(first, wholes, b.i64(step), best, [&](Value i, ValueRange now) {
    // those above the last one so far, lowest lane first; one that no longer is falls off the end
    Value over = greater(load(i, step), b.splat(last(now), step));
    Value bits = vector::BitCastOp::create(b, VectorType::get({1}, b.getIntegerType(step)), over);
    SmallVector<Value> state = {
        arith::ExtUIOp::create(b, b.getI64Type(), vector::ExtractOp::create(b, bits, 0))};
    llvm::append_range(state, now);
    SmallVector<Value> after = b.whileLoop(
        state,
        [&](ValueRange v) -> Value {
          return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, v[0], b.i64(0));
        },
        [&](ValueRange v) {
          Value j =
              b.add(i, LLVM::CountTrailingZerosOp::create(b, b.getI64Type(), v[0], /*is_zero_poison=*/true));
          SmallVector<Value> next = enter(load(j), j, v.drop_front());
          next.insert(next.begin(), arith::AndIOp::create(b, v[0], b.sub(v[0], b.i64(1))));
          return next;
        });
    return SmallVector<Value>(llvm::drop_begin(after));
  });
  best = b.loop(wholes, n, b.i64(1), best, [&](Value i, ValueRange now) { return consider(i, now); });
  Value out = b.mul(row, b.i64(k));
  b.storeElem(elem, best[0], b.scratch, b.i64(0));
  emitCopy(b, b.ptrAt(b.results[0], elem, out), b.scratch, b.i64(k * elemBytes(elem)));
  Value indices = best[1];
  if (!indexElem.isInteger(32))
    indices = emitConvert(b, indices, b.getI32Type(), indexElem);
  b.storeElem(indexElem, indices, b.scratch, b.i64(0));
  emitCopy(b, b.ptrAt(b.results[1], indexElem, out), b.scratch, b.i64(k * elemBytes(indexElem)));
}
} // namespace

LogicalResult emitTopK(Operation *op, KernelBuilder &b) {
  auto t = cast<hlo::TopKOp>(op);
  auto type = tensorType(t.getOperand());
  Type elem = type.getElementType(), indexElem = elementType(t.getIndices());
  auto exprs = hlo::getDims(type);
  int64_t k = t.getK();
  AffineExpr rows = b.getAffineConstantExpr(1);
  for (int64_t i = 0; i + 1 < type.getRank(); ++i)
    rows = hlo::simplify(rows * exprs[i]);
  b.setExtent(rows);
  b.setWork(hlo::constantValue(exprs.back()).value_or(1024) * 8);
  Value n = b.dim(exprs.back());
  auto greater = [&](Value x, Value y) -> Value {
    E a(b, x), c(b, y);
    if (a.isFloat()) // NaN above everything
      return (a > c) | (isNan(a) & !isNan(c));
    return isUnsignedElem(elem) ? cmpI(arith::CmpIPredicate::ugt, a, c) : a > c;
  };
  Type i64 = b.getI64Type();
  if (k == 0)
    return success();
  if (std::optional<int64_t> length = hlo::constantValue(exprs.back());
      TopKInVectors::fits(b, t) && length && *length <= std::numeric_limits<int32_t>::max()) {
    b.setScratch(TopKInVectors::scratchBytes(t));
    TopKInVectors best(b, t, n, greater);
    b.units([&](Value row) { best.emitRow(row); });
    return success();
  }
  if (k <= 64) {
    // the k best so far, in order, in the result itself; most elements fail the first comparison
    b.units([&](Value row) {
      Value base = b.mul(row, n), out = b.mul(row, b.i64(k));
      auto value = [&](Value i) { return b.loadElem(elem, b.results[0], b.add(out, i)); };
      b.loop(b.i64(0), n, [&](Value i) {
        Value x = b.loadElem(elem, b.operands[0], b.add(base, i));
        Value have = b.min(i, b.i64(k));
        Value full = b.ge(i, b.i64(k));
        Value enter = b.ifElse(full, b.getI1Type(), [&] {
          return SmallVector<Value>{greater(x, value(b.i64(k - 1)))};
        }, [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 1)}; })[0];
        b.ifThen(enter, [&] {
          Value last = b.min(have, b.i64(k - 1)); // place that becomes free
          SmallVector<Value> at = b.whileLoop(
              ValueRange{last},
              [&](ValueRange v) {
                return b.ifElse(b.lt(b.i64(0), v[0]), b.getI1Type(), [&] {
                  return SmallVector<Value>{greater(x, value(b.sub(v[0], b.i64(1))))};
                }, [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 0)}; })[0];
              },
              [&](ValueRange v) {
                Value before = b.sub(v[0], b.i64(1));
                b.storeElem(elem, value(before), b.results[0], b.add(out, v[0]));
                b.storeElem(indexElem, b.loadElem(indexElem, b.results[1], b.add(out, before)), b.results[1],
                            b.add(out, v[0]));
                return SmallVector<Value>{before};
              });
          b.storeElem(elem, x, b.results[0], b.add(out, at[0]));
          b.storeElem(indexElem, emitConvert(b, i, i64, indexElem), b.results[1], b.add(out, at[0]));
        });
      });
    });
    return success();
  }
  b.setScratch(hlo::simplify(exprs.back() * 16 + 64));
  b.units([&](Value row) {
    Value base = b.mul(row, n), out = b.mul(row, b.i64(k));
    auto load = [&](Value i) { return b.loadElem(elem, b.operands[0], b.add(base, i)); };
    Value order = mergeSort(b, n, b.scratch, [&](Value x, Value y) { return greater(load(x), load(y)); });
    b.loop(b.i64(0), b.i64(k), [&](Value i) {
      Value from = b.loadElem(i64, order, i);
      b.storeElem(elem, load(from), b.results[0], b.add(out, i));
      b.storeElem(indexElem, emitConvert(b, from, i64, indexElem), b.results[1], b.add(out, i));
    });
  });
  return success();
}

} // namespace lathe::codegen
