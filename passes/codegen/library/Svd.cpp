// svd: rotations from both sides until the matrix is diagonal, one matrix of the batch a unit, in double in scratch. What is not
// square first becomes triangular by reflections with pivots; what is wide and low, bidiagonal. The steps, and where they end,
// are those of Eigen's JacobiSVD and (for the last) BDCSVD, which TensorFlow uses: so vectors have its signs. EvalSvd.cpp
// takes the same steps.
#include "dialects/hlo/FloatLimits.h"
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/library/Matrix.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

namespace {

/// Hands out scratch; counts are of bytes, multiples of 8.
struct Room {
  KernelBuilder &b;
  int64_t bytes = 0;

  Value take(int64_t count) {
    Value at = b.ptrAt(b.scratch, b.getF64Type(), b.i64(bytes / 8));
    bytes += count;
    return at;
  }
};

/// Emits common steps on matrices of one type.
struct Steps {
  KernelBuilder &b;
  const NumType &t;
  hlo::FloatLimits limits;
  Value zero, one;

  Steps(KernelBuilder &b, const NumType &t, hlo::FloatLimits limits) : b(b), t(t), limits(limits), zero(b.i64(0)), one(b.i64(1)) {}

  E number(double x) const { return E(b, b.cst(b.getF64Type(), x)); }
  Value next(Value i) const { return b.add(i, one); }
  E real(Value p, Value i) const { return E(b, b.loadElem(b.getF64Type(), p, i)); }
  void setReal(Value p, Value i, E x) const { b.storeElem(b.getF64Type(), x, p, i); }
  Num pick(E cond, Num x, Num y) const { return {sel(cond, x.re, y.re), t.complex() ? sel(cond, x.im, y.im) : E()}; }

  void clear(const Mat &m, Value rows, bool diagonal) const {
    b.loop(zero, rows, [&](Value i) {
      b.loop(zero, m.columns, [&](Value j) {
        m.set(i, j, t.fromReal(diagonal ? sel(E(b, b.eq(i, j)), number(1), number(0)) : number(0)));
      });
    });
  }
  void swapColumns(const Mat &m, Value rows, Value x, Value y) const {
    b.loop(zero, rows, [&](Value i) {
      Num p = m.get(i, x), q = m.get(i, y);
      m.set(i, x, q);
      m.set(i, y, p);
    });
  }
  void scaleColumn(const Mat &m, Value rows, Value j, Num by) const {
    b.loop(zero, rows, [&](Value i) { m.set(i, j, m.get(i, j) * by); });
  }
  E normBelow(const Mat &m, Value rows, Value j, Value from) const {
    return sqrtE(sumReal(b, from, rows, [&](Value i) { return square(m.get(i, j)); }));
  }

  /// The elements lo..hi-1 that `get` gives become the vector of a reflection, the first 1; returns its factor.
  Num reflect(Value lo, Value hi, llvm::function_ref<Num(Value)> get, llvm::function_ref<void(Value, Num)> set, E &beta) const {
    Num head = get(lo);
    E tail = sumReal(b, next(lo), hi, [&](Value r) { return square(get(r)); });
    E none = tail <= limits.least;
    if (t.complex())
      none = none & (head.im * head.im <= limits.least);
    E size = sqrtE(square(head) + tail);
    beta = sel(none, head.re, sel(head.re >= 0.0, -size, size));
    Num rest = head - t.fromReal(beta), safe = pick(none, t.make(1), rest);
    E divisor = sel(none, 1.0, beta);
    b.loop(next(lo), hi, [&](Value r) { set(r, pick(none, t.make(0), get(r) / safe)); });
    set(lo, t.make(1));
    return pick(none, t.make(0), {-(rest.re / divisor), t.complex() ? rest.im / divisor : E()});
  }
  Num reflectColumn(const Mat &m, Value rows, Value k, E &beta) const {
    return reflect(k, rows, [&](Value r) { return m.get(r, k); }, [&](Value r, Num x) { m.set(r, k, x); }, beta);
  }

  /// Rows lo..hi-1 of m from column `from` less factor * v * (adjoint(v) * them).
  void apply(const Mat &m, Value lo, Value hi, Value from, llvm::function_ref<Num(Value)> v, Num factor) const {
    b.loop(from, m.columns, [&](Value c) {
      Num sum = factor * sumOver(t, lo, hi, [&](Value r) { return conj(v(r)) * m.get(r, c); });
      b.loop(lo, hi, [&](Value r) { m.set(r, c, m.get(r, c) - v(r) * sum); });
    });
  }
  /// The reflections in the columns of `from`, the last first, on all of m.
  void applyBack(const Mat &m, const Mat &from, Value rows, Value factors) const {
    Value n = from.columns;
    b.loop(zero, n, [&](Value step) {
      Value k = b.sub(b.sub(n, one), step);
      Num factor = conj(t.wrap(b.loadElem(t.wide, factors, k)));
      apply(m, k, rows, zero, [&](Value r) { return from.get(r, k); }, factor);
    });
  }
};

/// Rotations on the matrix in `x` (long x short; the adjoint of the matrix where that is wide).
class Jacobi : Steps {
public:
  Jacobi(KernelBuilder &b, const NumType &t, hlo::FloatLimits limits, int64_t rows, int64_t columns, int64_t basis, Room &room)
      : Steps(b, t, limits), wide(rows < columns), squareForm(rows == columns), big(b.i64(std::max(rows, columns))),
        n(b.i64(std::min(rows, columns))), x{t, {}, n}, w{t, {}, n}, longSide{t, {}, b.i64(basis)}, shortSide{t, {}, n} {
    int64_t l = std::max(rows, columns), s = std::min(rows, columns);
    x.ptr = room.take(l * s * t.bytes());
    w.ptr = squareForm ? x.ptr : room.take(s * s * t.bytes());
    longSide.ptr = room.take(l * basis * t.bytes());
    shortSide.ptr = room.take(s * s * t.bytes());
    factors = room.take(s * t.bytes());
    values = room.take(s * 8);
    direct = room.take(s * 8);
    order = room.take(s * 8);
    most = room.take(8);
  }

  /// What is left to do once `x` is set.
  void run() {
    E scale = scaleDown(*this, x, big);
    if (squareForm) {
      clear(longSide, n, true);
      clear(shortSide, n, true);
    } else {
      triangularize();
    }
    iterate();
    sort();
    b.loop(zero, n, [&](Value i) { setReal(values, i, real(values, i) * scale); });
  }

  /// By the largest element, that nothing overflows.
  static E scaleDown(const Steps &s, const Mat &m, Value rows) {
    KernelBuilder &b = s.b;
    Value largest = b.loop(s.zero, rows, s.one, ValueRange{s.number(0)}, [&](Value i, ValueRange acc) {
      return b.loop(s.zero, m.columns, s.one, acc, [&](Value j, ValueRange inner) {
        E size = magnitude(m.get(i, j)), sofar(b, inner[0]);
        return SmallVector<Value>{sel(size > sofar, size, sofar)};
      });
    })[0];
    E scale = sel(E(b, largest) == 0.0, 1.0, E(b, largest));
    b.loop(s.zero, rows, [&](Value i) {
      b.loop(s.zero, m.columns, [&](Value j) {
        Num v = m.get(i, j);
        m.set(i, j, {v.re / scale, s.t.complex() ? v.im / scale : E()});
      });
    });
    return scale;
  }

  const bool wide, squareForm;
  Value big, n;
  Mat x, w, longSide, shortSide;
  Value factors, values, direct, order, most;

private:
  // the factors from the left and from the right of w
  const Mat &u() const { return wide ? shortSide : longSide; }
  const Mat &v() const { return wide ? longSide : shortSide; }
  Value rowsOfU() const { return wide ? n : big; }
  Value rowsOfV() const { return wide ? big : n; }

  /// x = longSide * triangle * adjoint(shortSide), a permutation; the norms of columns lie in `values` meanwhile.
  void triangularize() {
    Type i64 = b.getI64Type();
    b.loop(zero, n, [&](Value j) {
      E norm = normBelow(x, big, j, zero);
      setReal(values, j, norm);
      setReal(direct, j, norm);
      b.storeElem(i64, j, order, j);
    });
    b.loop(zero, n, [&](Value k) {
      Value at = largestFrom(k);
      b.ifThen(b.lt(k, at), [&] {
        swapColumns(x, big, k, at);
        for (Value list : {values, direct}) {
          E p = real(list, k), q = real(list, at);
          setReal(list, k, q);
          setReal(list, at, p);
        }
        Value p = b.loadElem(i64, order, k), q = b.loadElem(i64, order, at);
        b.storeElem(i64, q, order, k);
        b.storeElem(i64, p, order, at);
      });
      E beta;
      Num factor = reflectColumn(x, big, k, beta);
      b.storeElem(t.wide, t.unwrap(factor), factors, k);
      apply(x, k, big, next(k), [&](Value r) { return x.get(r, k); }, factor);
      w.set(k, k, t.fromReal(beta));
      b.loop(next(k), n, [&](Value j) {
        E norm = real(values, j);
        b.ifThen(norm != 0.0, [&] {
          E part = magnitude(x.get(k, j)) / norm, rest = maxE((part + 1.0) * (1.0 - part), number(0)), old = norm / real(direct, j);
          b.ifElse(rest * (old * old) <= std::sqrt(limits.epsilon), {}, [&] {
            E fresh = normBelow(x, big, j, next(k));
            setReal(values, j, fresh);
            setReal(direct, j, fresh);
            return SmallVector<Value>();
          }, [&] {
            setReal(values, j, norm * sqrtE(rest));
            return SmallVector<Value>();
          });
        });
      });
    });
    b.loop(zero, n, [&](Value i) {
      b.loop(zero, n, [&](Value j) {
        b.ifThen(b.lt(i, j), [&] {
          Num above = x.get(i, j);
          w.set(i, j, wide ? t.make(0) : above);
          w.set(j, i, wide ? conj(above) : t.make(0));
        });
        Value from = b.loadElem(i64, order, j);
        shortSide.set(i, j, t.fromReal(sel(E(b, b.eq(from, i)), number(1), number(0))));
      });
    });
    clear(longSide, big, true);
    applyBack(longSide, x, big, factors);
  }

  /// The first of the largest of values[from..].
  Value largestFrom(Value from) {
    return b.loop(next(from), n, one, ValueRange{from}, [&](Value j, ValueRange best) {
      return SmallVector<Value>{b.select(real(values, j) > real(values, best[0]), j, best[0])};
    })[0];
  }

  // rows become (c p + conj(s) q, c' q - s p), c' the conjugate of c; columns (c p - s q, c' q + conj(s) p)
  void rotateRows(const Mat &m, Value p, Value q, Num c, Num s) {
    b.loop(zero, n, [&](Value j) {
      Num y = m.get(p, j), z = m.get(q, j);
      m.set(p, j, c * y + conj(s) * z);
      m.set(q, j, conj(c) * z - s * y);
    });
  }
  void rotateColumns(const Mat &m, Value rows, Value p, Value q, Num c, Num s) {
    b.loop(zero, rows, [&](Value i) {
      Num y = m.get(i, p), z = m.get(i, q);
      m.set(i, p, c * y - s * z);
      m.set(i, q, conj(c) * z + conj(s) * y);
    });
  }
  void scaleRow(Value i, Num by) {
    b.loop(zero, n, [&](Value j) { w.set(i, j, w.get(i, j) * by); });
    scaleColumn(u(), rowsOfU(), i, conj(by));
  }
  /// conj(z) / |z|
  Num phaseAway(Num z) { return t.fromReal(magnitude(z)) / z; }
  E imaginary(Num z) { return absE(z.im) > limits.least; }

  /// Makes the block of rows and columns p and q real; its first column becomes (norm, 0).
  void makeReal(Value p, Value q) {
    Num a = w.get(p, p), c = w.get(q, p);
    E norm = sqrtE(square(a) + square(c));
    b.ifElse(norm == 0.0, {}, [&] {
      w.set(p, p, t.make(0));
      w.set(q, p, t.make(0));
      Num x = w.get(p, q);
      b.ifThen(imaginary(x), [&] { scaleRow(p, phaseAway(x)); });
      return SmallVector<Value>();
    }, [&] {
      E by = norm.c(1.0) / norm;
      Num cosine = scaleBy(conj(a), by), sine = scaleBy(c, by);
      rotateRows(w, p, q, cosine, sine);
      rotateColumns(u(), rowsOfU(), p, q, conj(cosine), -sine);
      Num x = w.get(p, q);
      b.ifThen(imaginary(x), [&] {
        Num by = phaseAway(x);
        scaleColumn(w, n, q, by);
        scaleColumn(v(), rowsOfV(), q, by);
      });
      return SmallVector<Value>();
    });
    Num x = w.get(q, q);
    b.ifThen(imaginary(x), [&] { scaleRow(q, phaseAway(x)); });
  }

  /// Makes the (real) block of rows and columns p and q diagonal.
  void rotate(Value p, Value q) {
    E a = w.get(p, p).re, above = w.get(p, q).re, below = w.get(q, p).re, d = w.get(q, q).re;
    E difference = below - above, plain = absE(difference) < limits.least;
    E ratio = (a + d) / sel(plain, 1.0, difference), root = sqrtE(ratio * ratio + 1.0);
    E s1 = sel(plain, 0.0, root.c(1.0) / root), c1 = sel(plain, 1.0, ratio / root);
    // symmetric now
    E x = c1 * a + s1 * below, y = c1 * above + s1 * d, z = c1 * d - s1 * above, twice = absE(y) * 2.0;
    E done = twice < limits.least;
    E tau = (x - z) / sel(done, 1.0, twice), hypotenuse = sqrtE(tau * tau + 1.0);
    E tangent = tau.c(1.0) / sel(tau > 0.0, tau + hypotenuse, tau - hypotenuse);
    E c2 = sel(done, 1.0, tau.c(1.0) / sqrtE(tangent * tangent + 1.0));
    E s2 = sel(done, 0.0, -(tangent * c2 * copysignE(number(1), y)));
    Num c3 = t.fromReal(c1 * c2 + s1 * s2), s3 = t.fromReal(s1 * c2 - c1 * s2), right = t.fromReal(c2), sine = t.fromReal(s2);
    rotateRows(w, p, q, c3, s3);
    rotateColumns(u(), rowsOfU(), p, q, c3, -s3);
    rotateColumns(w, n, p, q, right, sine);
    rotateColumns(v(), rowsOfV(), p, q, right, sine);
  }

  void update(Value i) {
    E size = magnitude(w.get(i, i)), sofar = real(most, zero);
    setReal(most, zero, sel(size > sofar, size, sofar));
  }
  E isFar(Value p, Value q, double precision) {
    E bound = maxE(real(most, zero) * precision, number(limits.least));
    return (magnitude(w.get(p, q)) > bound) | (magnitude(w.get(q, p)) > bound);
  }

  void iterate() {
    setReal(most, zero, number(0));
    b.loop(zero, n, [&](Value i) { update(i); });
    Value on = b.cstI(b.getI1Type(), 1), off = b.cstI(b.getI1Type(), 0), maxSweeps = b.i64(100);
    b.whileLoop(
        ValueRange{zero, on}, [&](ValueRange s) { return b.both(s[1], b.lt(s[0], maxSweeps)); },
        [&](ValueRange s) {
          Value turned = b.loop(one, n, one, ValueRange{off}, [&](Value p, ValueRange acc) {
            return b.loop(zero, p, one, acc, [&](Value q, ValueRange inner) {
              E needed = isFar(p, q, 2 * limits.epsilon);
              b.ifThen(needed, [&] {
                auto turn = [&] {
                  rotate(p, q);
                  update(p);
                  update(q);
                };
                if (!t.complex())
                  return turn();
                makeReal(p, q);
                update(p);
                update(q);
                b.ifThen(isFar(p, q, limits.epsilon), turn);
              });
              return SmallVector<Value>{arith::OrIOp::create(b, inner[0], needed.v)};
            });
          })[0];
          return SmallVector<Value>{next(s[0]), turned};
        });
    b.loop(zero, n, [&](Value i) {
      Num x = w.get(i, i);
      E size = magnitude(x);
      setReal(values, i, size);
      Num by = t.fromReal(sel(x.re < 0.0, number(-1), number(1)));
      if (t.complex()) {
        E turned = imaginary(x), safe = sel(turned, size, 1.0);
        by = pick(turned, {x.re / safe, x.im / safe}, by);
      }
      scaleColumn(u(), rowsOfU(), i, by);
    });
  }

  /// Descending, by swaps.
  void sort() {
    b.loop(zero, n, [&](Value i) {
      Value at = largestFrom(i);
      b.ifThen(b.lt(i, at), [&] {
        E p = real(values, i), q = real(values, at);
        setReal(values, i, q);
        setReal(values, at, p);
        swapColumns(longSide, big, i, at);
        swapColumns(shortSide, n, i, at);
      });
    });
  }
};

/// A wide matrix with few rows, its adjoint (long x short) in `x`: made bidiagonal by reflections, then rotations of that.
class Bidiagonal : Steps {
public:
  Bidiagonal(KernelBuilder &b, const NumType &t, const NumType &doubles, hlo::FloatLimits limits, int64_t rows, int64_t columns,
             int64_t basis, Room &room)
      : Steps(b, t, limits), reduced(columns / 4 > rows), big(b.i64(columns)), n(b.i64(rows)), x{t, {}, n}, y{t, {}, n},
        longSide{t, {}, b.i64(basis)}, shortSide{t, {}, n}, inner(b, doubles, limits, rows + 1, rows, rows + 1, room) {
    x.ptr = room.take(columns * rows * t.bytes());
    y.ptr = reduced ? room.take(rows * rows * t.bytes()) : x.ptr;
    longSide.ptr = room.take(columns * basis * t.bytes());
    shortSide.ptr = room.take(rows * rows * t.bytes());
    for (Value *list : {&first, &left, &right})
      *list = room.take(rows * t.bytes());
    values = inner.values;
  }

  void run() {
    E scale = Jacobi::scaleDown(*this, x, big);
    if (reduced) {
      b.loop(zero, n, [&](Value k) {
        E head;
        Num factor = reflectColumn(x, big, k, head);
        b.storeElem(t.wide, t.unwrap(factor), first, k);
        apply(x, k, big, next(k), [&](Value r) { return x.get(r, k); }, factor);
        y.set(k, k, t.fromReal(head));
      });
      b.loop(zero, n, [&](Value i) {
        b.loop(zero, i, [&](Value j) { y.set(i, j, t.make(0)); });
        b.loop(next(i), n, [&](Value j) { y.set(i, j, x.get(i, j)); });
      });
    }
    Value rows = reduced ? n : big, last = b.sub(n, one);
    // the transpose of the upper bidiagonal matrix, and a row of zeros
    Mat &c = inner.x;
    b.loop(zero, next(n), [&](Value i) { b.loop(zero, n, [&](Value j) { c.set(i, j, c.t.make(0)); }); });
    b.loop(zero, n, [&](Value k) {
      E head;
      Num factor = reflectColumn(y, rows, k, head);
      b.storeElem(t.wide, t.unwrap(factor), left, k);
      c.set(k, k, c.t.fromReal(head));
      apply(y, k, rows, next(k), [&](Value r) { return y.get(r, k); }, factor);
      b.ifThen(b.lt(k, last), [&] {
        E side;
        Num by = reflect(next(k), n, [&](Value j) { return y.get(k, j); }, [&](Value j, Num z) { y.set(k, j, z); }, side);
        b.storeElem(t.wide, t.unwrap(by), right, k);
        c.set(next(k), k, c.t.fromReal(side));
        b.loop(next(k), rows, [&](Value i) {
          Num sum = by * sumOver(t, next(k), n, [&](Value j) { return y.get(i, j) * conj(y.get(k, j)); });
          b.loop(next(k), n, [&](Value j) { y.set(i, j, y.get(i, j) - sum * y.get(k, j)); });
        });
      });
    });
    inner.run();
    clear(longSide, big, true);
    b.loop(zero, n, [&](Value i) {
      setReal(values, i, real(values, i) * scale);
      b.loop(zero, n, [&](Value j) {
        shortSide.set(i, j, t.fromReal(inner.longSide.get(i, j).re));
        longSide.set(i, j, t.fromReal(inner.shortSide.get(i, j).re));
      });
    });
    b.loop(zero, last, [&](Value step) {
      Value k = b.sub(b.sub(last, one), step);
      Num factor = t.wrap(b.loadElem(t.wide, right, k));
      apply(shortSide, next(k), n, zero, [&](Value j) { return conj(y.get(k, j)); }, factor);
    });
    applyBack(longSide, y, rows, left);
    if (reduced)
      applyBack(longSide, x, big, first);
  }

  const bool reduced;
  Value big, n;
  Mat x, y, longSide, shortSide;
  Jacobi inner;
  Value first, left, right, values;
};

} // namespace

LogicalResult emitSvd(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SvdOp>(op);
  auto dims = hlo::getDims(tensorType(s.getA()));
  NumType t(b, elementType(s.getA())), real(b, elementType(s.getS())), doubles(b, b.getF64Type());
  auto rows = hlo::constantValue(dims[dims.size() - 2]), columns = hlo::constantValue(dims.back());
  // a symbolic size cannot say which side is longer
  if (!rows || !columns)
    return op->emitError("svd of a matrix whose size is known only at run time is not supported");
  bool wide = *rows < *columns; // then the adjoint is decomposed
  int64_t big = std::max(*rows, *columns), small = std::min(*rows, *columns), basis = s.getFullMatrices() ? big : small;
  hlo::FloatLimits limits(real.elem.isF32());
  bool low = *columns >= 16 && *rows < 16 && *rows > 0;
  b.setExtent(matrixCount(b, dims));
  auto emit = [&](auto &&solver, Value unit) {
    Value base = b.mul(unit, b.i64(big * small)), zero = b.i64(0);
    b.loop(zero, solver.big, [&](Value i) {
      b.loop(zero, solver.n, [&](Value j) {
        Num x = t.load(b.operands[0], b.add(base, wide ? b.add(b.mul(j, solver.big), i) : b.add(b.mul(i, solver.n), j)));
        solver.x.set(i, j, wide ? conj(x) : x);
      });
    });
    solver.run();
    b.loop(zero, solver.n, [&](Value j) {
      Value at = b.add(b.mul(unit, solver.n), j);
      real.store(real.fromReal(E(b, b.loadElem(b.getF64Type(), solver.values, j))), b.results[0], at);
    });
    auto copy = [&](const Mat &m, Value count, unsigned result) {
      Value start = b.mul(unit, b.mul(count, m.columns));
      b.loop(zero, count, [&](Value i) {
        b.loop(zero, m.columns, [&](Value j) { t.store(m.get(i, j), b.results[result], b.add(start, m.at(i, j))); });
      });
    };
    copy(solver.longSide, solver.big, wide ? 2 : 1);
    copy(solver.shortSide, solver.n, wide ? 1 : 2);
  };
  b.setWork(1 << 16);
  Room room{b};
  if (low) {
    Bidiagonal solver(b, t, doubles, limits, *rows, *columns, basis, room);
    b.units([&](Value unit) { emit(solver, unit); });
  } else {
    Jacobi solver(b, t, limits, *rows, *columns, basis, room);
    b.units([&](Value unit) { emit(solver, unit); });
  }
  b.setScratch(room.bytes + 64);
  return success();
}

} // namespace lathe::codegen
