// cholesky, triangular_solve, lu and qr: one matrix of the batch a unit, computed in double in scratch.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/library/Matrix.h"

#include <limits>

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

namespace {
struct Sizes {
  AffineExpr batch, rows, columns;
};
} // namespace

static Sizes sizesOf(KernelBuilder &b, Value v) {
  auto dims = hlo::getDims(tensorType(v));
  size_t r = dims.size();
  return {matrixCount(b, dims), dims[r - 2], dims[r - 1]};
}

static Value minValue(KernelBuilder &b, AffineExpr x, AffineExpr y) { return b.min(b.dim(x), b.dim(y)); }

LogicalResult emitCholesky(Operation *op, KernelBuilder &b) {
  auto c = cast<hlo::CholeskyOp>(op);
  Sizes s = sizesOf(b, c.getA());
  bool lower = c.getLower();
  NumType t(b, elementType(c.getA()));
  b.setExtent(s.batch);
  b.setScratch(hlo::simplify(s.rows * s.rows * t.bytes() + 64));
  b.setWork(1 << 14);
  Value n = b.dim(s.rows);
  b.units([&](Value unit) {
    Value base = b.mul(unit, b.mul(n, n));
    auto place = [&](Value i, Value j) { return b.add(base, b.add(b.mul(i, n), j)); };
    Mat l{t, b.scratch, n};
    Value on = b.cstI(b.getI1Type(), 1);
    Value positive = b.loop(b.i64(0), n, b.i64(1), ValueRange{on}, [&](Value j, ValueRange sofar) {
      Num diagonal = t.load(b.operands[0], place(j, j));
      E left = diagonal.re - sumReal(b, b.i64(0), j, [&](Value k) { return square(l.get(j, k)); }), d = sqrtE(left);
      l.set(j, j, t.fromReal(d));
      b.loop(b.add(j, b.i64(1)), n, [&](Value i) {
        Num a = lower ? t.load(b.operands[0], place(i, j)) : conj(t.load(b.operands[0], place(j, i)));
        Num rest = sumOver(t, b.i64(0), j, [&](Value k) { return l.get(i, k) * conj(l.get(j, k)); });
        l.set(i, j, scaleBy(a - rest, d.c(1.0) / d));
      });
      return SmallVector<Value>{b.both(sofar[0], left > 0.0)};
    })[0];
    Num unknown = t.make(std::numeric_limits<double>::quiet_NaN());
    b.loop(b.i64(0), n, [&](Value i) {
      b.loop(b.i64(0), n, [&](Value j) {
        Value inside = lower ? b.ge(i, j) : b.ge(j, i);
        b.ifElse(inside, {}, [&] {
          Num x = lower ? l.get(i, j) : conj(l.get(j, i));
          E good(b, positive);
          t.store({sel(good, x.re, unknown.re), t.complex() ? sel(good, x.im, unknown.im) : E()}, b.results[0], place(i, j));
          return SmallVector<Value>();
        }, [&] {
          t.store(t.make(0), b.results[0], place(i, j));
          return SmallVector<Value>();
        });
      });
    });
  });
  return success();
}

LogicalResult emitTriangularSolve(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::TriangularSolveOp>(op);
  Sizes sa = sizesOf(b, s.getA()), sb = sizesOf(b, s.getB());
  NumType t(b, elementType(s.getA()));
  bool left = s.getLeftSide(), unit = s.getUnitDiagonal();
  bool flip = s.getTransposeA() == hlo::Transpose::TRANSPOSE || s.getTransposeA() == hlo::Transpose::ADJOINT;
  bool adjoint = s.getTransposeA() == hlo::Transpose::ADJOINT;
  bool lower = s.getLower() != flip; // of op(a)
  b.setExtent(sb.batch);
  b.setScratch(hlo::simplify(sb.rows * sb.columns * t.bytes() + 64));
  b.setWork(1 << 14);
  Value n = b.dim(sa.rows), m = b.dim(sb.rows), k = b.dim(sb.columns);
  b.units([&](Value u) {
    Value aBase = b.mul(u, b.mul(n, n)), bBase = b.mul(u, b.mul(m, k));
    auto a = [&](Value i, Value j) {
      Value x = flip ? j : i, y = flip ? i : j;
      Num v = t.load(b.operands[0], b.add(aBase, b.add(b.mul(x, n), y)));
      return adjoint ? conj(v) : v;
    };
    auto place = [&](Value i, Value j) { return b.add(bBase, b.add(b.mul(i, k), j)); };
    Mat x{t, b.scratch, k};
    // unknowns in the order in which each needs only earlier ones
    bool ascending = left == lower;
    b.loop(b.i64(0), left ? k : m, [&](Value line) {
      b.loop(b.i64(0), n, [&](Value step) {
        Value i = ascending ? step : b.sub(b.sub(n, b.i64(1)), step);
        Value from = ascending ? b.i64(0) : b.add(i, b.i64(1)), to = ascending ? i : n;
        Num known = sumOver(t, from, to, [&](Value p) {
          return left ? a(i, p) * x.get(p, line) : x.get(line, p) * a(p, i);
        });
        Value r = left ? i : line, c = left ? line : i;
        Num v = t.load(b.operands[1], place(r, c)) - known;
        if (!unit)
          v = v / a(i, i);
        x.set(r, c, v);
        t.store(v, b.results[0], place(r, c));
      });
    });
  });
  return success();
}

// Copies a matrix of the batch into scratch.
static void loadMatrix(const NumType &t, const Mat &to, Value base, Value rows, Value columns) {
  KernelBuilder &b = t.b;
  b.loop(b.i64(0), b.mul(rows, columns), [&](Value i) {
    b.storeElem(t.wide, t.unwrap(t.load(b.operands[0], b.add(base, i))), to.ptr, i);
  });
}

LogicalResult emitLu(Operation *op, KernelBuilder &b) {
  auto l = cast<hlo::LuOp>(op);
  Sizes s = sizesOf(b, l.getA());
  NumType t(b, elementType(l.getA()));
  Type permType = elementType(l.getPermutation());
  b.setExtent(s.batch);
  b.setScratch(hlo::simplify(s.rows * s.columns * t.bytes() + 64));
  b.setWork(1 << 14);
  Value m = b.dim(s.rows), n = b.dim(s.columns);
  b.units([&](Value u) {
    Value base = b.mul(u, b.mul(m, n)), permBase = b.mul(u, m);
    Mat a{t, b.scratch, n};
    loadMatrix(t, a, base, m, n);
    b.loop(b.i64(0), m, [&](Value i) {
      b.storeElem(permType, emitConvert(b, i, b.getI64Type(), permType), b.results[1], b.add(permBase, i));
    });
    b.loop(b.i64(0), minValue(b, s.rows, s.columns), [&](Value j) {
      Value zero = b.cst(b.getF64Type(), -1.0);
      Value pivot = b.loop(j, m, b.i64(1), ValueRange{j, zero}, [&](Value i, ValueRange v) {
        E size = magnitude(a.get(i, j)), best(b, v[1]);
        E better = size > best;
        return SmallVector<Value>{b.select(better, i, v[0]), sel(better, size, best)};
      })[0];
      b.loop(b.i64(0), n, [&](Value c) {
        Num x = a.get(pivot, c), y = a.get(j, c);
        a.set(pivot, c, y);
        a.set(j, c, x);
      });
      Value p = b.add(permBase, pivot), q = b.add(permBase, j);
      Value x = b.loadElem(permType, b.results[1], p), y = b.loadElem(permType, b.results[1], q);
      b.storeElem(permType, y, b.results[1], p);
      b.storeElem(permType, x, b.results[1], q);
      Num d = a.get(j, j);
      b.ifThen(square(d) != 0.0, [&] {
        b.loop(b.add(j, b.i64(1)), m, [&](Value i) {
          Num f = a.get(i, j) / d;
          a.set(i, j, f);
          b.loop(b.add(j, b.i64(1)), n, [&](Value c) { a.set(i, c, a.get(i, c) - f * a.get(j, c)); });
        });
      });
    });
    b.loop(b.i64(0), b.mul(m, n), [&](Value i) {
      t.store(t.wrap(b.loadElem(t.wide, b.scratch, i)), b.results[0], b.add(base, i));
    });
  });
  return success();
}

LogicalResult emitQr(Operation *op, KernelBuilder &b) {
  auto o = cast<hlo::QrOp>(op);
  Sizes s = sizesOf(b, o.getA());
  NumType t(b, elementType(o.getA()));
  b.setExtent(s.batch);
  b.setWork(1 << 15);
  AffineExpr m = s.rows, n = s.columns;
  b.setScratch(hlo::simplify((m * n + m * m + m) * t.bytes() + 64));
  Value rows = b.dim(m), cols = b.dim(n);
  auto qDims = hlo::getDims(tensorType(o.getQ()));
  Value k = b.dim(qDims.back());
  b.units([&](Value u) {
    Mat a{t, b.scratch, cols};
    Mat q{t, b.ptrAt(b.scratch, t.wide, b.mul(rows, cols)), rows};
    Mat v{t, b.ptrAt(q.ptr, t.wide, b.mul(rows, rows)), b.i64(1)};
    Value zero = b.i64(0);
    loadMatrix(t, a, b.mul(u, b.mul(rows, cols)), rows, cols);
    b.loop(zero, rows, [&](Value i) {
      b.loop(zero, rows, [&](Value j) {
        E one = sel(E(b, b.eq(i, j)), E(b, b.cst(b.getF64Type(), 1.0)), 0.0);
        q.set(i, j, t.fromReal(one));
      });
    });
    b.loop(zero, minValue(b, m, n), [&](Value j) {
      Value next = b.add(j, b.i64(1));
      E tail = sumReal(b, next, rows, [&](Value i) { return square(a.get(i, j)); });
      Num head = a.get(j, j);
      E nothing = tail == 0.0;
      if (t.complex())
        nothing = nothing & (head.im == 0.0);
      b.ifThen(!nothing, [&] {
        E beta = sqrtE(square(head) + tail);
        beta = sel(head.re >= 0.0, -beta, beta);
        Num d = head - t.fromReal(beta);
        v.set(j, zero, t.make(1));
        b.loop(next, rows, [&](Value i) { v.set(i, zero, a.get(i, j) / d); });
        Num tau = conj(scaleBy(t.fromReal(beta) - head, beta.c(1.0) / beta));
        b.loop(j, cols, [&](Value c) {
          Num sum = sumOver(t, j, rows, [&](Value i) { return conj(v.get(i, zero)) * a.get(i, c); });
          Num f = tau * sum;
          b.loop(j, rows, [&](Value i) { a.set(i, c, a.get(i, c) - f * v.get(i, zero)); });
        });
        b.loop(next, rows, [&](Value i) { a.set(i, j, t.make(0)); });
        b.loop(zero, rows, [&](Value r) {
          Num sum = sumOver(t, j, rows, [&](Value i) { return q.get(r, i) * v.get(i, zero); });
          Num f = conj(tau) * sum;
          b.loop(j, rows, [&](Value i) { q.set(r, i, q.get(r, i) - f * conj(v.get(i, zero))); });
        });
      });
    });
    Value qBase = b.mul(u, b.mul(rows, k)), rBase = b.mul(u, b.mul(k, cols));
    b.loop(zero, rows, [&](Value i) {
      b.loop(zero, k, [&](Value j) { t.store(q.get(i, j), b.results[0], b.add(qBase, b.add(b.mul(i, k), j))); });
    });
    b.loop(zero, b.mul(k, cols), [&](Value i) {
      t.store(t.wrap(b.loadElem(t.wide, a.ptr, i)), b.results[1], b.add(rBase, i));
    });
  });
  return success();
}

} // namespace lathe::codegen
