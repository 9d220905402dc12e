// eigh: tridiagonal form by Householder reflections, then QR steps with Wilkinson's shift, one matrix of the batch a unit, in
// double in scratch. The steps, and where they end, are those of Eigen's solver, which TensorFlow uses: so vectors have its
// signs and phases. EvalMatrix.cpp takes the same steps.
#include "dialects/hlo/FloatLimits.h"
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/library/Matrix.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

namespace {

/// Doubles in scratch.
struct Reals {
  KernelBuilder &b;
  Value ptr;
  E get(Value i) const { return E(b, b.loadElem(b.getF64Type(), ptr, i)); }
  void set(Value i, E x) const { b.storeElem(b.getF64Type(), x, ptr, i); }
};

class Eigh {
public:
  Eigh(KernelBuilder &b, const NumType &t, Value n, Value scratch, bool narrow)
      : b(b), t(t), n(n), a{t, scratch, n}, q{t, b.ptrAt(scratch, t.wide, b.mul(n, n)), n},
        w{t, b.ptrAt(q.ptr, t.wide, b.mul(n, n)), n}, tau{t, b.ptrAt(w.ptr, t.wide, n), n},
        diagonal{b, b.ptrAt(tau.ptr, t.wide, n)}, off{b, b.ptrAt(diagonal.ptr, b.getF64Type(), n)},
        order(b.ptrAt(off.ptr, b.getF64Type(), n)), zero(b.i64(0)), one(b.i64(1)),
        least(hlo::FloatLimits(narrow).least), epsilon(hlo::FloatLimits(narrow).epsilon) {}
  static int64_t bytesPerRow(const NumType &t) { return 2 * t.bytes() + 24; }

  /// What is left to do once `a` is set.
  void run() {
    scaleDown();
    tridiagonalize();
    makeBasis();
    iterate();
    sort();
  }

  KernelBuilder &b;
  const NumType &t;
  Value n;
  Mat a, q;
  E scale;
  Mat w, tau; // rows of one
  Reals diagonal, off;
  Value order;

private:
  E number(double x) { return E(b, b.cst(b.getF64Type(), x)); }
  Value next(Value i) { return b.add(i, one); }
  Value before(Value i) { return b.sub(i, one); }
  void each(llvm::function_ref<void(Value, Value)> f) {
    b.loop(zero, n, [&](Value i) { b.loop(zero, n, [&](Value j) { f(i, j); }); });
  }

  /// By the largest element, that nothing overflows.
  void scaleDown() {
    Value most = b.loop(zero, n, one, ValueRange{number(0)}, [&](Value i, ValueRange acc) {
      return b.loop(zero, next(i), one, acc, [&](Value j, ValueRange inner) {
        E x = magnitude(a.get(i, j)), sofar(b, inner[0]);
        return SmallVector<Value>{sel(x > sofar, x, sofar)};
      });
    })[0];
    scale = sel(E(b, most) == 0.0, 1.0, E(b, most));
    each([&](Value i, Value j) {
      Num x = a.get(i, j);
      a.set(i, j, {x.re / scale, t.complex() ? x.im / scale : E()});
    });
  }

  /// Reflections from both sides; their vectors stay below the diagonal, the first element 1.
  void tridiagonalize() {
    b.loop(zero, before(n), [&](Value i) {
      Value first = next(i);
      Num head = a.get(first, i);
      E tail = sumReal(b, next(first), n, [&](Value r) { return square(a.get(r, i)); });
      E none = tail <= least;
      if (t.complex())
        none = none & (head.im * head.im <= least);
      E size = sqrtE(square(head) + tail);
      E beta = sel(none, head.re, sel(head.re >= 0.0, -size, size));
      Num rest = head - t.fromReal(beta);
      Num safe = {sel(none, 1.0, rest.re), t.complex() ? sel(none, 0.0, rest.im) : E()};
      E divisor = sel(none, 1.0, beta);
      Num h = {sel(none, 0.0, -rest.re / divisor), t.complex() ? sel(none, 0.0, rest.im / divisor) : E()};
      b.loop(next(first), n, [&](Value r) {
        Num v = a.get(r, i) / safe;
        a.set(r, i, {sel(none, 0.0, v.re), t.complex() ? sel(none, 0.0, v.im) : E()});
      });
      a.set(first, i, t.make(1));
      b.loop(first, n, [&](Value r) {
        Num sum = sumOver(t, first, n, [&](Value c) { return a.get(r, c) * a.get(c, i); });
        w.set(zero, r, sum * conj(h));
      });
      Num dot = sumOver(t, first, n, [&](Value r) { return conj(w.get(zero, r)) * a.get(r, i); });
      Num half = scaleBy(conj(h) * dot, number(-0.5));
      b.loop(first, n, [&](Value r) { w.set(zero, r, w.get(zero, r) + half * a.get(r, i)); });
      b.loop(first, n, [&](Value r) {
        b.loop(first, n, [&](Value c) {
          Num less = a.get(r, i) * conj(w.get(zero, c)) + w.get(zero, r) * conj(a.get(c, i));
          a.set(r, c, a.get(r, c) - less);
        });
      });
      off.set(i, beta);
      tau.set(zero, i, h);
    });
    b.loop(zero, n, [&](Value i) { diagonal.set(i, a.get(i, i).re); });
  }

  void makeBasis() {
    each([&](Value i, Value j) { q.set(i, j, t.fromReal(sel(E(b, b.eq(i, j)), number(1), number(0)))); });
    b.loop(zero, before(n), [&](Value step) {
      Value k = b.sub(b.sub(n, b.i64(2)), step), first = next(k);
      Num h = conj(tau.get(zero, k));
      b.loop(first, n, [&](Value c) {
        Num sum = h * sumOver(t, first, n, [&](Value r) { return conj(a.get(r, k)) * q.get(r, c); });
        b.loop(first, n, [&](Value r) { q.set(r, c, q.get(r, c) - a.get(r, k) * sum); });
      });
    });
  }

  /// Down from `from` while the element above the diagonal there is zero (or, the other way, is not).
  Value down(Value from, bool whileZero) {
    return b.whileLoop(
        ValueRange{from},
        [&](ValueRange v) {
          return b.ifElse(b.lt(zero, v[0]), b.getI1Type(), [&] {
            E x = off.get(before(v[0]));
            return SmallVector<Value>{whileZero ? x == 0.0 : x != 0.0};
          }, [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 0)}; })[0];
        },
        [&](ValueRange v) { return SmallVector<Value>{before(v[0])}; })[0];
  }

  void iterate() {
    b.whileLoop(
        ValueRange{before(n), zero},
        [&](ValueRange s) { return b.both(b.lt(zero, s[0]), b.lt(s[1], b.mul(n, b.i64(30)))); },
        [&](ValueRange s) {
          b.loop(zero, s[0], [&](Value i) {
            E x = off.get(i), far = x * (1 / epsilon);
            E gone = (absE(x) < least) | (far * far <= absE(diagonal.get(i)) + absE(diagonal.get(next(i))));
            off.set(i, sel(gone, 0.0, x));
          });
          Value end = down(s[0], true);
          b.ifThen(b.lt(zero, end), [&] { step(down(before(end), false), end); });
          return SmallVector<Value>{end, next(s[1])};
        });
  }

  /// One implicit QR step on the block start..end.
  void step(Value start, Value end) {
    E td = (diagonal.get(before(end)) - diagonal.get(end)) * 0.5, e = off.get(before(end)), e2 = e * e;
    // the hypotenuse as Eigen rounds it
    E p = maxE(absE(td), absE(e)), part = minE(absE(td), absE(e)) / p;
    E h = p * sqrtE(part * part + 1.0), wide = td + sel(td > 0.0, h, -h);
    E shift = sel(td == 0.0, absE(e), sel(e2 == 0.0, e / (wide / e), e2 / wide));
    E mu = diagonal.get(end) - sel(e == 0.0, 0.0, shift);
    b.whileLoop(
        ValueRange{start, diagonal.get(start) - mu, off.get(start)},
        [&](ValueRange v) { return b.both(b.lt(v[0], end), E(b, v[2]) != 0.0); },
        [&](ValueRange v) {
          Value k = v[0], last = next(k);
          E x(b, v[1]), z(b, v[2]);
          // the rotation that turns (x, z) into (r, 0)
          E steep = absE(x) > absE(z), ratio = sel(steep, z, x) / sel(steep, x, z);
          E root = sqrtE(ratio * ratio + 1.0);
          E large = 1.0 / copysignE(root, sel(steep, x, z));
          E c = sel(steep, large, ratio * large), s = sel(steep, -(ratio * large), -large);
          E dk = diagonal.get(k), dl = diagonal.get(last), o = off.get(k);
          E sdk = s * dk + c * o, dkp1 = s * o + c * dl;
          diagonal.set(k, c * (c * dk - s * o) - s * (c * o - s * dl));
          diagonal.set(last, s * sdk + c * dkp1);
          E fresh = c * sdk - s * dkp1;
          off.set(k, fresh);
          b.ifThen(b.lt(start, k), [&] { off.set(before(k), c * off.get(before(k)) - s * z); });
          Value bulge = b.ifElse(b.lt(k, before(end)), b.getF64Type(), [&] {
            E y = off.get(last);
            off.set(last, c * y);
            return SmallVector<Value>{-(s * y)};
          }, [&] { return SmallVector<Value>{z}; })[0];
          b.loop(zero, n, [&](Value i) {
            Num p = q.get(i, k), r = q.get(i, last);
            q.set(i, k, scaleBy(p, c) - scaleBy(r, s));
            q.set(i, last, scaleBy(p, s) + scaleBy(r, c));
          });
          return SmallVector<Value>{last, fresh, bulge};
        });
  }

  /// Ascending, by swaps; `order` tells where each column lies.
  void sort() {
    Type i64 = b.getI64Type();
    b.loop(zero, n, [&](Value i) { b.storeElem(i64, i, order, i); });
    b.loop(zero, n, [&](Value i) {
      Value at = b.loop(next(i), n, one, ValueRange{i}, [&](Value j, ValueRange best) {
        return SmallVector<Value>{b.select(diagonal.get(j) < diagonal.get(best[0]), j, best[0])};
      })[0];
      E x = diagonal.get(i), y = diagonal.get(at);
      Value from = b.loadElem(i64, order, i), to = b.loadElem(i64, order, at);
      diagonal.set(at, x);
      diagonal.set(i, y);
      b.storeElem(i64, from, order, at);
      b.storeElem(i64, to, order, i);
    });
  }

  Value zero, one;
  const double least, epsilon;
};

} // namespace

LogicalResult emitEigh(Operation *op, KernelBuilder &b) {
  auto e = cast<hlo::EighOp>(op);
  auto dims = hlo::getDims(tensorType(e.getA()));
  AffineExpr size = dims.back();
  NumType t(b, elementType(e.getA())), real(b, elementType(e.getValues()));
  b.setExtent(matrixCount(b, dims));
  b.setScratch(hlo::simplify(size * size * (2 * t.bytes()) + size * Eigh::bytesPerRow(t) + 64));
  b.setWork(1 << 16);
  Value n = b.dim(size);
  b.units([&](Value u) {
    Value base = b.mul(u, b.mul(n, n));
    Eigh solver(b, t, n, b.scratch, real.elem.isF32());
    b.loop(b.i64(0), n, [&](Value i) {
      b.loop(b.i64(0), n, [&](Value j) {
        Value below = b.ge(i, j);
        Value from = b.select(below, b.add(b.mul(i, n), j), b.add(b.mul(j, n), i));
        Num x = t.load(b.operands[0], b.add(base, from));
        if (t.complex())
          x.im = sel(E(b, b.eq(i, j)), 0.0, sel(E(b, below), x.im, -x.im));
        solver.a.set(i, j, x);
      });
    });
    solver.run();
    b.loop(b.i64(0), n, [&](Value j) {
      Value from = b.loadElem(b.getI64Type(), solver.order, j);
      real.store(real.fromReal(solver.diagonal.get(j) * solver.scale), b.results[0], b.add(b.mul(u, n), j));
      b.loop(b.i64(0), n, [&](Value i) {
        t.store(solver.q.get(i, from), b.results[1], b.add(base, b.add(b.mul(i, n), j)));
      });
    });
  });
  return success();
}

} // namespace lathe::codegen
