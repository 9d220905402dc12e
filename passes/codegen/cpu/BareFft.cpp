// fft: mixed-radix Stockham passes over each dimension in double, one transform of the batch a unit. Factors of 4 have
// butterflies of their own; any length: a prime factor p costs p operations an element.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/Bare.h"
#include "passes/codegen/cpu/MathParts.h"
#include "passes/codegen/cpu/Matrix.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

namespace {
/// Lines of complex doubles.
struct Line {
  KernelBuilder &b;
  Type type;

  explicit Line(KernelBuilder &b) : b(b), type(ComplexType::get(b.getF64Type())) {}
  C get(Value p, Value i) const { return unpack(b, b.loadElem(type, p, i)); }
  void set(C x, Value p, Value i) const { b.storeElem(type, pack(x), p, i); }
};
} // namespace

// The smallest divisor of n above 1 (n itself when prime).
static Value smallestFactor(KernelBuilder &b, Value n) {
  Value p = b.whileLoop(
      ValueRange{b.i64(2)},
      [&](ValueRange v) {
        Value more = b.ge(n, b.mul(v[0], v[0]));
        Value divides = b.eq(b.remU(n, v[0]), b.i64(0));
        return b.both(more, arith::XOrIOp::create(b, divides, b.cstI(b.getI1Type(), 1)));
      },
      [&](ValueRange v) { return SmallVector<Value>{b.add(v[0], b.i64(1))}; })[0];
  return b.select(b.lt(n, b.mul(p, p)), n, p);
}

// table[k] = exp(sign 2 pi i k / n)
static void makeTable(const Line &line, Value table, Value n, bool inverse) {
  KernelBuilder &b = line.b;
  Value nf = arith::SIToFPOp::create(b, b.getF64Type(), n);
  b.loop(b.i64(0), n, [&](Value k) {
    E x(b, arith::SIToFPOp::create(b, b.getF64Type(), k));
    E turns = x / E(b, nf);
    E c = cosPi64(turns * 2.0), s = sinPi64(turns * 2.0);
    line.set({c, inverse ? s : -s}, table, k);
  });
}

// A pass that splits off a factor of 4.
static void passOfFour(const Line &line, Value from, Value to, Value m, Value stride, Value table, bool inverse) {
  KernelBuilder &b = line.b;
  b.loop(b.i64(0), m, [&](Value k) {
    C twiddles[4];
    for (int64_t t = 1; t < 4; ++t)
      twiddles[t] = line.get(table, b.mul(b.mul(k, b.i64(t)), stride));
    Value first = b.mul(stride, k), target = b.mul(first, b.i64(4));
    b.loop(b.i64(0), stride, [&](Value q) {
      C v[4];
      for (int64_t r = 0; r < 4; ++r)
        v[r] = line.get(from, b.add(q, b.add(first, b.mul(b.mul(b.i64(r), m), stride))));
      C even = v[0] + v[2], odd = v[1] + v[3], evenLess = v[0] - v[2], less = v[1] - v[3];
      // times -i, or i for the inverse
      C turned = inverse ? C{-less.im, less.re} : C{less.im, -less.re};
      C sums[4] = {even + odd, evenLess + turned, even - odd, evenLess - turned};
      for (int64_t t = 0; t < 4; ++t)
        line.set(t ? sums[t] * twiddles[t] : sums[t], to, b.add(q, b.add(target, b.mul(b.i64(t), stride))));
    });
  });
}

// Transforms the n numbers at x, with y as long a helper; returns where the result is.
static Value transform(const Line &line, Value x, Value y, Value n, Value table, bool inverse) {
  KernelBuilder &b = line.b;
  // length left, stride, source, target
  SmallVector<Value> r = b.whileLoop(
      ValueRange{n, b.i64(1), x, y}, [&](ValueRange v) { return b.lt(b.i64(1), v[0]); },
      [&](ValueRange v) {
        Value length = v[0], stride = v[1], from = v[2], to = v[3];
        Value byFour = b.eq(b.remU(length, b.i64(4)), b.i64(0));
        Value p = b.select(byFour, b.i64(4), smallestFactor(b, length)), m = b.divU(length, p);
        auto ofFour = [&] {
          passOfFour(line, from, to, m, stride, table, inverse);
          return SmallVector<Value>();
        };
        b.ifElse(byFour, TypeRange{}, ofFour, [&] {
          Value rootStep = b.divU(n, p);
          b.loop(b.i64(0), m, [&](Value k) {
            b.loop(b.i64(0), p, [&](Value t) {
              C twiddle = line.get(table, b.mul(b.mul(k, t), stride));
              b.loop(b.i64(0), stride, [&](Value q) {
                E zero(b, b.cst(b.getF64Type(), 0.0));
                SmallVector<Value> sum =
                    b.loop(b.i64(0), p, b.i64(1), ValueRange{zero, zero, b.i64(0)}, [&](Value r, ValueRange a) {
                      C w = line.get(table, b.mul(a[2], rootStep));
                      C v = line.get(from, b.add(q, b.mul(stride, b.add(k, b.mul(r, m)))));
                      C s = C{E(b, a[0]), E(b, a[1])} + v * w;
                      Value next = b.add(a[2], t); // r t mod p
                      next = b.select(b.ge(next, p), b.sub(next, p), next);
                      return SmallVector<Value>{s.re, s.im, next};
                    });
                C out = C{E(b, sum[0]), E(b, sum[1])} * twiddle;
                line.set(out, to, b.add(q, b.mul(stride, b.add(b.mul(p, k), t))));
              });
            });
          });
          return SmallVector<Value>();
        });
        return SmallVector<Value>{m, b.mul(stride, p), to, from};
      });
  return r[2];
}

LogicalResult emitFft(Operation *op, KernelBuilder &b) {
  auto f = cast<hlo::FftOp>(op);
  auto in = tensorType(f.getOperand()), out = tensorType(f.getResult());
  auto inDims = hlo::getDims(in), outDims = hlo::getDims(out);
  bool inverse = f.getFftType() == hlo::FftType::IFFT || f.getFftType() == hlo::FftType::IRFFT;
  bool realOut = f.getFftType() == hlo::FftType::IRFFT, realIn = f.getFftType() == hlo::FftType::RFFT;
  size_t rank = in.getRank(), dims = f.getFftLength().size();
  // sizes of the transform; the last one is the real signal's for RFFT and IRFFT
  SmallVector<AffineExpr> full(inDims.end() - dims, inDims.end());
  if (realOut)
    full.back() = outDims.back();
  AffineExpr batch = b.getAffineConstantExpr(1), total = batch, lines = b.getAffineConstantExpr(0);
  for (size_t i = 0; i + dims < rank; ++i)
    batch = hlo::simplify(batch * inDims[i]);
  for (AffineExpr e : full) {
    total = hlo::simplify(total * e);
    lines = hlo::simplify(lines + e);
  }
  // data, two lines, a table for each dimension; `lines` bounds each line's length
  b.setExtent(batch);
  b.setScratch(hlo::simplify((total + lines * 3) * 16 + 64));
  b.setWork(hlo::constantValue(total).value_or(4096) * 64);
  Line line(b);
  SmallVector<Value> sizes, inSizes, outSizes;
  for (size_t i = 0; i < dims; ++i) {
    sizes.push_back(b.dim(full[i]));
    inSizes.push_back(b.dim(inDims[rank - dims + i]));
    outSizes.push_back(b.dim(outDims[rank - dims + i]));
  }
  auto product = [&](ArrayRef<Value> v) {
    Value n = b.i64(1);
    for (Value x : v)
      n = b.mul(n, x);
    return n;
  };
  Type inElem = in.getElementType(), outElem = out.getElementType();
  Value data = b.scratch, x = b.ptrAt(data, line.type, b.dim(total));
  Value y = b.ptrAt(x, line.type, b.dim(lines));
  // the roots are the same for all of the batch
  SmallVector<Value> tables;
  Value free = b.ptrAt(y, line.type, b.dim(lines));
  for (Value n : sizes) {
    makeTable(line, free, n, inverse);
    tables.push_back(free);
    free = b.ptrAt(free, line.type, n);
  }
  b.units([&](Value unit) {
    Value inBase = b.mul(unit, product(inSizes)), outBase = b.mul(unit, product(outSizes));
    // in; half spectra keep their place in rows of full length
    b.nest(inSizes, [&](ValueRange index) {
      Value v = b.loadElem(inElem, b.operands[0], b.add(inBase, b.linearize(index, inSizes)));
      Value wide = emitConvert(b, v, inElem, line.type);
      b.storeElem(line.type, wide, data, b.linearize(index, sizes));
    });
    auto along = [&](size_t d) {
      Value n = sizes[d], table = tables[d];
      Value outer = product(ArrayRef<Value>(sizes).take_front(d)), inner = product(ArrayRef<Value>(sizes).drop_front(d + 1));
      bool last = d + 1 == dims;
      b.loop(b.i64(0), outer, [&](Value o) {
        // columns beyond a half spectrum hold nothing yet
        Value width = realOut && !last ? b.mul(b.divU(inner, sizes.back()), inSizes.back()) : inner;
        b.loop(b.i64(0), width, [&](Value w) {
          Value i = w;
          if (realOut && !last)
            i = b.add(b.mul(b.divU(w, inSizes.back()), sizes.back()), b.remU(w, inSizes.back()));
          auto at = [&](Value k) { return b.add(b.mul(b.add(b.mul(o, n), k), inner), i); };
          b.loop(b.i64(0), n, [&](Value k) {
            C v;
            if (realOut && last) { // the other half is the conjugate
              Value mirrored = b.ge(k, inSizes.back());
              Value from = b.select(mirrored, b.sub(n, k), k);
              v = line.get(data, at(from));
              v.im = sel(E(b, mirrored), -v.im, v.im);
              // the ends of a half spectrum are real
              Value end = b.eq(b.remU(b.mul(k, b.i64(2)), n), b.i64(0));
              v.im = sel(E(b, end), 0.0, v.im);
            } else {
              v = line.get(data, at(k));
            }
            line.set(v, x, k);
          });
          Value r = transform(line, x, y, n, table, inverse);
          b.loop(b.i64(0), n, [&](Value k) { line.set(line.get(r, k), data, at(k)); });
        });
      });
    };
    // a real signal first goes to its spectrum; a half spectrum comes back last
    if (realIn) {
      along(dims - 1);
      for (size_t d = 0; d + 1 < dims; ++d)
        along(d);
    } else {
      for (size_t d = 0; d < dims; ++d)
        along(d);
    }
    E scale(b, b.cst(b.getF64Type(), 1.0));
    if (inverse)
      scale = scale / E(b, arith::SIToFPOp::create(b, b.getF64Type(), b.dim(total)));
    b.nest(outSizes, [&](ValueRange index) {
      C v = line.get(data, b.linearize(index, sizes));
      v = {v.re * scale, v.im * scale};
      b.storeElem(outElem, emitConvert(b, pack(v), line.type, outElem), b.results[0],
                  b.add(outBase, b.linearize(index, outSizes)));
    });
  });
  return success();
}

} // namespace lathe::cpu
