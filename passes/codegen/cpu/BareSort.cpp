// sort (stable merge sort of a permutation, any comparator and number of operands) and top_k.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/Bare.h"
#include "passes/codegen/cpu/ElementEmitter.h"
#include "passes/codegen/cpu/Expr.h"

using namespace mlir;

namespace lathe::cpu {

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

} // namespace lathe::cpu
