// svd by Jacobi rotations, one matrix of the batch a unit, in double in scratch.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/Bare.h"
#include "passes/codegen/cpu/Matrix.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

namespace {
/// [c s; -conj(s) c] diagonalises [a x; conj(x) d] from both sides.
struct Rotation {
  E c;
  Num s;
};
} // namespace

static Rotation rotationOf(const NumType &t, E a, E d, Num x) {
  E size = magnitude(x);
  E none = size == 0.0;
  E safe = sel(none, 1.0, size);
  E tau = (d - a) / (safe * 2.0);
  E root = sqrtE(tau * tau + 1.0);
  E tangent = sel(tau >= 0.0, 1.0, tau.c(-1.0)) / (absE(tau) + root);
  tangent = sel(none, 0.0, tangent);
  E c = tangent.c(1.0) / sqrtE(tangent * tangent + 1.0);
  return {c, scaleBy(x, tangent * c / safe)};
}

// (p, q) becomes (c p - conj(s) q, s p + c q)
static void rotateColumns(const Mat &m, Value rows, Value p, Value q, const Rotation &r) {
  KernelBuilder &b = m.t.b;
  b.loop(b.i64(0), rows, [&](Value i) {
    Num x = m.get(i, p), y = m.get(i, q);
    m.set(i, p, scaleBy(x, r.c) - conj(r.s) * y);
    m.set(i, q, r.s * x + scaleBy(y, r.c));
  });
}

static void setIdentity(const Mat &m, Value n) {
  KernelBuilder &b = m.t.b;
  b.loop(b.i64(0), n, [&](Value i) {
    b.loop(b.i64(0), n, [&](Value j) {
      m.set(i, j, m.t.fromReal(sel(E(b, b.eq(i, j)), E(b, b.cst(b.getF64Type(), 1.0)), 0.0)));
    });
  });
}

// for all pairs p < q of n
static void pairs(KernelBuilder &b, Value n, llvm::function_ref<void(Value, Value)> f) {
  b.loop(b.i64(0), n, [&](Value p) { b.loop(b.add(p, b.i64(1)), n, [&](Value q) { f(p, q); }); });
}

// Positions 0..n-1 in `order` such that keys ascend (or descend): insertion, stable.
static void sortKeys(KernelBuilder &b, Value order, Value n, llvm::function_ref<E(Value)> key, bool descending) {
  Type i64 = b.getI64Type();
  b.loop(b.i64(0), n, [&](Value i) {
    E x = key(i);
    SmallVector<Value> at = b.whileLoop(
        ValueRange{i},
        [&](ValueRange v) {
          return b.ifElse(b.lt(b.i64(0), v[0]), b.getI1Type(), [&] {
            E y = key(b.loadElem(i64, order, b.sub(v[0], b.i64(1))));
            return SmallVector<Value>{descending ? x > y : x < y};
          }, [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 0)}; })[0];
        },
        [&](ValueRange v) {
          Value before = b.sub(v[0], b.i64(1));
          b.storeElem(i64, b.loadElem(i64, order, before), order, v[0]);
          return SmallVector<Value>{before};
        });
    b.storeElem(i64, i, order, at[0]);
  });
}

LogicalResult emitSvd(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SvdOp>(op);
  auto dims = hlo::getDims(tensorType(s.getA()));
  NumType t(b, elementType(s.getA())), real(b, elementType(s.getS()));
  AffineExpr rowsE = dims[dims.size() - 2], columnsE = dims.back();
  auto rowsC = hlo::constantValue(rowsE), columnsC = hlo::constantValue(columnsE);
  // a symbolic size cannot say which side is longer; both orders work on the larger square then
  if (!rowsC || !columnsC)
    return op->emitError("svd of a matrix whose size is known only at run time is not supported");
  bool wide = *rowsC < *columnsC; // then the adjoint is decomposed
  int64_t big = std::max(*rowsC, *columnsC), small = std::min(*rowsC, *columnsC);
  bool full = s.getFullMatrices();
  int64_t basis = full ? big : small; // columns of the longer side's factor
  b.setExtent(matrixCount(b, dims));
  // work [big, small], v [small, small], w [big, basis], norms, order
  int64_t bytes = (big * small + small * small + big * basis) * t.bytes() + small * 16;
  b.setScratch(bytes + 64);
  b.setWork(1 << 16);
  Value m = b.i64(big), n = b.i64(small), zero = b.i64(0), one = b.i64(1), count = b.i64(basis);
  b.units([&](Value unit) {
    Value base = b.mul(unit, b.i64(big * small));
    Mat a{t, b.scratch, n};
    Mat v{t, b.ptrAt(a.ptr, t.wide, b.i64(big * small)), n};
    Mat w{t, b.ptrAt(v.ptr, t.wide, b.i64(small * small)), count};
    Value norms = b.ptrAt(w.ptr, t.wide, b.i64(big * basis)), order = b.ptrAt(norms, b.getF64Type(), n);
    auto norm = [&](Value j) { return E(b, b.loadElem(b.getF64Type(), norms, j)); };
    setIdentity(v, n);
    b.loop(zero, m, [&](Value i) {
      b.loop(zero, n, [&](Value j) {
        Num x = t.load(b.operands[0], b.add(base, wide ? b.add(b.mul(j, m), i) : b.add(b.mul(i, n), j)));
        a.set(i, j, wide ? conj(x) : x);
      });
    });
    Value on = b.cstI(b.getI1Type(), 1), off = b.cstI(b.getI1Type(), 0);
    b.whileLoop(
        ValueRange{zero, on}, [&](ValueRange x) { return b.both(x[1], b.lt(x[0], b.i64(60))); },
        [&](ValueRange x) {
          Value turned = b.loop(zero, n, one, ValueRange{off}, [&](Value p, ValueRange acc) {
            return b.loop(b.add(p, one), n, one, acc, [&](Value q, ValueRange inner) {
              E alpha = sumReal(b, zero, m, [&](Value i) { return square(a.get(i, p)); });
              E beta = sumReal(b, zero, m, [&](Value i) { return square(a.get(i, q)); });
              Num gamma = sumOver(t, zero, m, [&](Value i) { return conj(a.get(i, p)) * a.get(i, q); });
              E needed = square(gamma) > alpha * beta * 1e-31;
              b.ifThen(needed, [&] {
                Rotation r = rotationOf(t, alpha, beta, gamma);
                rotateColumns(a, m, p, q, r);
                rotateColumns(v, n, p, q, r);
              });
              return SmallVector<Value>{arith::OrIOp::create(b, inner[0], needed.v)};
            });
          })[0];
          return SmallVector<Value>{b.add(x[0], one), turned};
        });
    b.loop(zero, n, [&](Value j) {
      E size = sqrtE(sumReal(b, zero, m, [&](Value i) { return square(a.get(i, j)); }));
      b.storeElem(b.getF64Type(), size, norms, j);
    });
    sortKeys(b, order, n, norm, true);
    Value largest = norm(b.loadElem(b.getI64Type(), order, zero));
    // orthonormal columns: those of a where they are not zero, else unit vectors made orthogonal
    b.loop(zero, count, [&](Value j) {
      Value isFirst = b.lt(j, n);
      Value from = b.loadElem(b.getI64Type(), order, b.select(isFirst, j, zero));
      E size = norm(from);
      Value good = b.both(isFirst, (size > E(b, largest) * 1e-15) & (size > 0.0));
      b.ifElse(good, {}, [&] {
        b.loop(zero, m, [&](Value i) { w.set(i, j, scaleBy(a.get(i, from), size.c(1.0) / size)); });
        return SmallVector<Value>();
      }, [&] {
        b.whileLoop(
            ValueRange{zero, on}, [&](ValueRange x) { return b.both(x[1], b.lt(x[0], m)); },
            [&](ValueRange x) {
              b.loop(zero, m, [&](Value i) {
                E v1 = sel(E(b, b.eq(i, x[0])), E(b, b.cst(b.getF64Type(), 1.0)), 0.0);
                w.set(i, j, t.fromReal(v1));
              });
              for (int twice = 0; twice < 2; ++twice)
                b.loop(zero, j, [&](Value k) {
                  Num dot = sumOver(t, zero, m, [&](Value i) { return conj(w.get(i, k)) * w.get(i, j); });
                  b.loop(zero, m, [&](Value i) { w.set(i, j, w.get(i, j) - dot * w.get(i, k)); });
                });
              E rest = sqrtE(sumReal(b, zero, m, [&](Value i) { return square(w.get(i, j)); }));
              // some unit vector keeps at least 1/sqrt(m) of its length
              E poor = rest * rest < 0.5 / double(big);
              b.loop(zero, m, [&](Value i) { w.set(i, j, scaleBy(w.get(i, j), rest.c(1.0) / rest)); });
              return SmallVector<Value>{b.add(x[0], one), poor};
            });
        return SmallVector<Value>();
      });
    });
    b.loop(zero, n, [&](Value j) {
      real.store(real.fromReal(norm(b.loadElem(b.getI64Type(), order, j))), b.results[0], b.add(b.mul(unit, n), j));
    });
    Value longSide = b.results[wide ? 2 : 1], shortSide = b.results[wide ? 1 : 2];
    b.loop(zero, m, [&](Value i) {
      b.loop(zero, count, [&](Value j) {
        t.store(w.get(i, j), longSide, b.add(b.mul(unit, b.i64(big * basis)), b.add(b.mul(i, count), j)));
      });
    });
    b.loop(zero, n, [&](Value i) {
      b.loop(zero, n, [&](Value j) {
        Value from = b.loadElem(b.getI64Type(), order, j);
        t.store(v.get(i, from), shortSide, b.add(b.mul(unit, b.i64(small * small)), b.add(b.mul(i, n), j)));
      });
    });
  });
  return success();
}

} // namespace lathe::cpu
