// Eigenvalues and vectors of general matrices, one matrix of the batch a unit, in complex doubles in scratch. The steps are
// those of dialects/hlo/EvalEig.cpp: Hessenberg form, shifted QR steps, back substitution, order of ascending magnitude.
#include "dialects/hlo/FloatLimits.h"
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/library/Matrix.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

namespace {

class EigEmitter {
public:
  EigEmitter(KernelBuilder &b, const NumType &z, Value n, double epsilon, Mat t, Mat u, Mat x, Value reflector)
      : b(b), z(z), n(n), epsilon(epsilon), t(t), u(u), x(x), reflector(reflector), zero(b.i64(0)), one(b.i64(1)) {}

  void run() {
    forEach(zero, n, [&](Value i) {
      forEach(zero, n, [&](Value j) { u.set(i, j, z.fromReal(sel(E(b, b.eq(i, j)), f64(1), 0.0))); });
    });
    forEach(zero, b.sub(n, one), [&](Value i) { reflect(i); });
    triangularise();
    solve();
  }

private:
  E f64(double v) const { return E(b, b.cst(b.getF64Type(), v)); }
  void forEach(Value lo, Value hi, llvm::function_ref<void(Value)> f) { b.loop(lo, hi, f); }
  Num sum(Value lo, Value hi, llvm::function_ref<Num(Value)> f) { return sumOver(z, lo, hi, f); }
  static E norm1(Num v) { return absE(v.re) + absE(v.im); }
  Num getV(Value k) const { return z.wrap(b.loadElem(z.wide, reflector, k)); }
  void setV(Value k, Num v) const { b.storeElem(z.wide, z.unwrap(v), reflector, k); }
  static Num pick(E c, Num a, Num b) { return {sel(c, a.re, b.re), sel(c, a.im, b.im)}; }

  static Num rootOf(Num v) {
    E size = magnitude(v), big = sqrtE((absE(v.re) + size) * 0.5);
    E safe = sel(big == 0.0, 1.0, big), small = absE(v.im) / (safe + safe);
    E right = v.re >= 0.0;
    return {sel(right, big, small), copysignE(sel(right, small, big), v.im + 0.0)}; // a negative number has its root above
  }

  void reflect(Value i) {
    Value next = b.add(i, one), second = b.add(i, b.i64(2));
    E tail = sumReal(b, second, n, [&](Value k) { return square(t.get(k, i)); });
    Num head = t.get(next, i);
    b.ifThen((tail != 0.0) | (head.im != 0.0), [&] {
      E beta = sqrtE(square(head) + tail);
      beta = sel(head.re >= 0.0, -beta, beta);
      setV(next, z.make(1));
      Num below = head - z.fromReal(beta);
      forEach(second, n, [&](Value k) { setV(k, t.get(k, i) / below); });
      Num tau = conj(scaleBy(z.fromReal(beta) - head, beta.c(1.0) / beta));
      forEach(i, n, [&](Value c) {
        Num s = tau * sum(next, n, [&](Value k) { return conj(getV(k)) * t.get(k, c); });
        forEach(next, n, [&](Value k) { t.set(k, c, t.get(k, c) - getV(k) * s); });
      });
      for (const Mat *m : {&t, &u})
        forEach(zero, n, [&](Value r) {
          Num s = conj(tau) * sum(next, n, [&](Value k) { return m->get(r, k) * getV(k); });
          forEach(next, n, [&](Value k) { m->set(r, k, m->get(r, k) - s * conj(getV(k))); });
        });
      forEach(second, n, [&](Value k) { t.set(k, i, z.make(0)); });
    });
  }

  E negligible(Value i) {
    Value next = b.add(i, one);
    E d = norm1(t.get(i, i)) + norm1(t.get(next, next));
    return norm1(t.get(next, i)) <= d * epsilon;
  }

  Num shift(Value last, Value round) {
    Value before = b.sub(last, one), twoBefore = b.max(b.sub(last, b.i64(2)), zero);
    Num a = t.get(before, before), c12 = t.get(before, last), c21 = t.get(last, before), d = t.get(last, last);
    E size = magnitude(a) + magnitude(c12) + magnitude(c21) + magnitude(d);
    E inverse = size.c(1.0) / sel(size == 0.0, 1.0, size);
    a = scaleBy(a, inverse);
    d = scaleBy(d, inverse);
    Num cross = scaleBy(c12, inverse) * scaleBy(c21, inverse), difference = a - d;
    Num root = rootOf(difference * difference + scaleBy(cross, size.c(4.0)));
    Num det = a * d - cross, trace = a + d;
    Num first = scaleBy(trace + root, size.c(0.5)), second = scaleBy(trace - root, size.c(0.5));
    E firstLarger = norm1(first) > norm1(second), secondIsZero = norm1(second) == 0.0;
    Num other = det / pick(firstLarger | !secondIsZero, pick(firstLarger, first, second), z.make(1));
    Num one2 = pick(firstLarger | secondIsZero, first, other), two = pick(firstLarger, other, second);
    Num chosen = scaleBy(pick(norm1(one2 - d) < norm1(two - d) * (1 - 1e-12), one2, two), size);
    // now and then another shift, should steps go round in a circle
    E stuck = E(b, b.both(b.lt(one, last), E(b, b.eq(round, b.i64(10))) | E(b, b.eq(round, b.i64(20)))));
    E odd = absE(t.get(last, before).re) + absE(t.get(before, twoBefore).re);
    return pick(stuck, z.fromReal(odd), chosen);
  }

  /// Rotates rows and columns (i, i + 1) so that (p, q) becomes (r, 0); returns r.
  Num rotate(Value i, Value firstColumn, Value rows, Num p, Num q) {
    E pSize = magnitude(p), qSize = magnitude(q), none = qSize == 0.0, all = pSize == 0.0;
    E h = sqrtE(pSize * pSize + qSize * qSize);
    h = sel(p.re < 0.0, -h, h);
    E safeP = sel(all, 1.0, pSize), safeQ = sel(none, 1.0, qSize), safeH = sel(h == 0.0, 1.0, h);
    E c = sel(none, sel(p.re < 0.0, f64(-1), 1.0), sel(all, 0.0, pSize / safeH));
    Num s = scaleBy(-q * conj(p), safeP.c(1.0) / (safeP * safeH));
    s = pick(all, scaleBy(-q, safeQ.c(1.0) / safeQ), s);
    s = pick(none, z.make(0), s);
    Num r = pick(none, scaleBy(p, c), pick(all, z.fromReal(qSize), scaleBy(p, h / safeP)));
    Value next = b.add(i, one);
    forEach(firstColumn, n, [&](Value k) {
      Num y = t.get(i, k), w = t.get(next, k);
      t.set(i, k, scaleBy(y, c) - conj(s) * w);
      t.set(next, k, s * y + scaleBy(w, c));
    });
    for (const Mat *m : {&t, &u})
      forEach(zero, m == &t ? rows : n, [&](Value k) {
        Num y = m->get(k, i), w = m->get(k, next);
        m->set(k, i, scaleBy(y, c) - s * w);
        m->set(k, next, conj(s) * y + scaleBy(w, c));
      });
    return r;
  }

  void triangularise() {
    Value most = b.mul(n, b.i64(30));
    // state: the row under work, rounds for it, rounds altogether
    b.whileLoop(
        ValueRange{b.sub(n, one), zero, zero}, [&](ValueRange v) { return b.both(b.lt(zero, v[0]), b.lt(v[2], most)); },
        [&](ValueRange v) {
          Value last = v[0], before = b.sub(last, one);
          Type i64 = b.getI64Type();
          return b.ifElse(negligible(before), {i64, i64, i64}, [&] {
            t.set(last, before, z.make(0));
            return SmallVector<Value>{before, zero, v[2]};
          }, [&] {
            Value round = b.add(v[1], one);
            step(last, round);
            return SmallVector<Value>{last, round, b.add(v[2], one)};
          });
        });
  }

  void step(Value last, Value round) {
    Value first = b.whileLoop(
        ValueRange{b.sub(last, one)},
        [&](ValueRange v) {
          return b.ifElse(b.lt(zero, v[0]), b.getI1Type(),
                          [&] { return SmallVector<Value>{!negligible(b.sub(v[0], one))}; },
                          [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 0)}; })[0];
        },
        [&](ValueRange v) { return SmallVector<Value>{b.sub(v[0], one)}; })[0];
    b.ifThen(b.lt(zero, first), [&] { t.set(first, b.sub(first, one), z.make(0)); });
    auto rowsFor = [&](Value i) { return b.add(b.min(b.add(i, b.i64(2)), last), one); };
    Num p = t.get(first, first) - shift(last, round), q = t.get(b.add(first, one), first);
    rotate(first, first, rowsFor(first), p, q);
    forEach(b.add(first, one), last, [&](Value i) {
      Value before = b.sub(i, one), next = b.add(i, one);
      Num r = rotate(i, i, rowsFor(i), t.get(i, before), t.get(next, before));
      t.set(i, before, r);
      t.set(next, before, z.make(0));
    });
  }

  /// Vectors of the triangular form in x, columns n - 1 down to 0; then u x with unit columns in x's place.
  void solve() {
    E norm = sqrtE(sumReal(b, zero, n, [&](Value i) {
      return sumReal(b, i, n, [&](Value j) { return square(t.get(i, j)); });
    }));
    norm = sel(norm == 0.0, 2.2250738585072014e-308, norm);
    forEach(zero, n, [&](Value k) {
      x.set(k, k, z.make(1));
      forEach(zero, k, [&](Value up) {
        Value i = b.sub(b.sub(k, one), up);
        Num rest = -t.get(i, k) - sum(b.add(i, one), k, [&](Value j) { return t.get(i, j) * x.get(j, k); });
        Num gap = t.get(i, i) - t.get(k, k);
        E same = (gap.re == 0.0) & (gap.im == 0.0);
        x.set(i, k, rest / pick(same, z.fromReal(norm * epsilon), gap));
      });
    });
    forEach(zero, n, [&](Value k) {
      Value end = b.add(k, one);
      forEach(zero, n, [&](Value i) { setV(i, sum(zero, end, [&](Value j) { return u.get(i, j) * x.get(j, k); })); });
      E size = sqrtE(sumReal(b, zero, n, [&](Value i) { return square(getV(i)); }));
      // column k of the product replaces what no later column reads
      forEach(zero, n, [&](Value i) { x.set(i, k, scaleBy(getV(i), size.c(1.0) / size)); });
    });
  }

  KernelBuilder &b;
  const NumType &z;
  Value n;
  double epsilon;
  Mat t, u, x;
  Value reflector, zero, one;
};

} // namespace

LogicalResult emitEig(Operation *op, KernelBuilder &b) {
  auto e = cast<hlo::EigOp>(op);
  auto dims = hlo::getDims(tensorType(e.getA()));
  AffineExpr size = dims.back();
  Type out = elementType(e.getValues());
  NumType in(b, elementType(e.getA())), z(b, out);
  b.setExtent(matrixCount(b, dims));
  b.setScratch(hlo::simplify(size * size * 48 + size * 24 + 64));
  b.setWork(1 << 16);
  Value n = b.dim(size), square = b.mul(n, n);
  double epsilon = hlo::FloatLimits(cast<ComplexType>(out).getElementType().isF32()).epsilon;
  b.units([&](Value unit) {
    Value base = b.mul(unit, square);
    Mat t{z, b.scratch, n}, u{z, b.ptrAt(t.ptr, z.wide, square), n}, x{z, b.ptrAt(u.ptr, z.wide, square), n};
    Value reflector = b.ptrAt(x.ptr, z.wide, square), order = b.ptrAt(reflector, z.wide, n);
    b.loop(b.i64(0), n, [&](Value i) {
      b.loop(b.i64(0), n, [&](Value j) {
        Num v = in.load(b.operands[0], b.add(base, b.add(b.mul(i, n), j)));
        t.set(i, j, in.complex() ? v : z.fromReal(v.re));
      });
    });
    EigEmitter(b, z, n, epsilon, t, u, x, reflector).run();
    // the least of what is left comes next
    Type i64 = b.getI64Type();
    auto place = [&](Value i) { return b.loadElem(i64, order, i); };
    // what differs by rounding only is equal; of a conjugate pair of a real matrix the upper one comes first
    auto before = [&](Value i, Value j) {
      Value pi = place(i), pj = place(j);
      Num a = t.get(pi, pi), c = t.get(pj, pj);
      E size = magnitude(c), slack = size * (64 * epsilon), own = magnitude(a);
      E less = own < size - slack;
      if (in.complex())
        return less;
      return less | ((own <= size + slack) & (absE(a.re - c.re) <= slack) & (a.im > c.im + slack));
    };
    b.loop(b.i64(0), n, [&](Value i) { b.storeElem(i64, i, order, i); });
    b.loop(b.i64(0), n, [&](Value i) {
      Value least = b.loop(b.add(i, b.i64(1)), n, b.i64(1), ValueRange{i}, [&](Value k, ValueRange best) {
        return SmallVector<Value>{b.select(before(k, best[0]), k, best[0])};
      })[0];
      Value one = place(i), other = place(least);
      b.storeElem(i64, other, order, i);
      b.storeElem(i64, one, order, least);
    });
    b.loop(b.i64(0), n, [&](Value j) {
      Value from = place(j);
      z.store(t.get(from, from), b.results[0], b.add(b.mul(unit, n), j));
      b.loop(b.i64(0), n, [&](Value i) {
        z.store(x.get(i, from), b.results[1], b.add(base, b.add(b.mul(i, n), j)));
      });
    });
  });
  return success();
}

} // namespace lathe::codegen
