// Small dense matrices of doubles or complex doubles in scratch, for the factorisations and transforms.
#ifndef LATHE_PASSES_CODEGEN_LIBRARY_MATRIX_H
#define LATHE_PASSES_CODEGEN_LIBRARY_MATRIX_H

#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/Complex.h"
#include "passes/codegen/element/ElementEmitter.h"

namespace lathe::codegen {

/// A real or complex double; `im` is empty for real.
struct Num {
  E re, im;
  bool complex() const { return im.v != nullptr; }
};

inline Num operator+(Num a, Num b) { return {a.re + b.re, a.complex() ? a.im + b.im : E()}; }
inline Num operator-(Num a, Num b) { return {a.re - b.re, a.complex() ? a.im - b.im : E()}; }
inline Num operator-(Num a) { return {-a.re, a.complex() ? -a.im : E()}; }
inline Num operator*(Num a, Num b) {
  if (!a.complex())
    return {a.re * b.re, E()};
  C c = C{a.re, a.im} * C{b.re, b.im};
  return {c.re, c.im};
}
inline Num operator/(Num a, Num b) {
  if (!a.complex())
    return {a.re / b.re, E()};
  C c = C{a.re, a.im} / C{b.re, b.im};
  return {c.re, c.im};
}
inline Num scaleBy(Num a, E f) { return {a.re * f, a.complex() ? a.im * f : E()}; }
inline Num conj(Num a) { return {a.re, a.complex() ? -a.im : E()}; }
inline E square(Num a) { return a.complex() ? a.re * a.re + a.im * a.im : a.re * a.re; }
inline E magnitude(Num a) { return a.complex() ? absC({a.re, a.im}) : absE(a.re); }

/// Element access in the tensor's type, arithmetic in double.
struct NumType {
  KernelBuilder &b;
  mlir::Type elem, wide;

  NumType(KernelBuilder &b, mlir::Type elem) : b(b), elem(elem) {
    wide = mlir::isa<mlir::ComplexType>(elem) ? mlir::Type(mlir::ComplexType::get(b.getF64Type()))
                                              : mlir::Type(b.getF64Type());
  }
  bool complex() const { return mlir::isa<mlir::ComplexType>(wide); }
  int64_t bytes() const { return complex() ? 16 : 8; }
  Num wrap(mlir::Value v) const {
    if (!complex())
      return {E(b, v), E()};
    C c = unpack(b, v);
    return {c.re, c.im};
  }
  mlir::Value unwrap(Num x) const { return complex() ? pack({x.re, x.im}) : x.re.v; }
  Num make(double v) const {
    E re(b, b.cst(b.getF64Type(), v));
    return {re, complex() ? re.c(0.0) : E()};
  }
  Num fromReal(E v) const { return {v, complex() ? v.c(0.0) : E()}; }
  Num load(mlir::Value p, mlir::Value i) const { return wrap(emitConvert(b, b.loadElem(elem, p, i), elem, wide)); }
  void store(Num x, mlir::Value p, mlir::Value i) const {
    b.storeElem(elem, emitConvert(b, unwrap(x), wide, elem), p, i);
  }
};

/// How many matrices a tensor of these sizes holds.
inline mlir::AffineExpr matrixCount(KernelBuilder &b, mlir::ArrayRef<mlir::AffineExpr> dims) {
  return hlo::numElements(dims.drop_back(2), b.getContext());
}

/// A row-major matrix in scratch.
struct Mat {
  const NumType &t;
  mlir::Value ptr, columns;

  mlir::Value at(mlir::Value i, mlir::Value j) const { return t.b.add(t.b.mul(i, columns), j); }
  Num get(mlir::Value i, mlir::Value j) const { return t.wrap(t.b.loadElem(t.wide, ptr, at(i, j))); }
  void set(mlir::Value i, mlir::Value j, Num x) const { t.b.storeElem(t.wide, t.unwrap(x), ptr, at(i, j)); }
};

/// sum of f(i) for lo <= i < hi
inline Num sumOver(const NumType &t, mlir::Value lo, mlir::Value hi, llvm::function_ref<Num(mlir::Value)> f) {
  KernelBuilder &b = t.b;
  mlir::Value r = b.loop(lo, hi, b.i64(1), mlir::ValueRange{t.unwrap(t.make(0))}, [&](mlir::Value i, mlir::ValueRange a) {
                     return mlir::SmallVector<mlir::Value>{t.unwrap(t.wrap(a[0]) + f(i))};
                   })[0];
  return t.wrap(r);
}
inline E sumReal(KernelBuilder &b, mlir::Value lo, mlir::Value hi, llvm::function_ref<E(mlir::Value)> f) {
  mlir::Value zero = b.cst(b.getF64Type(), 0.0);
  return E(b, b.loop(lo, hi, b.i64(1), mlir::ValueRange{zero}, [&](mlir::Value i, mlir::ValueRange a) {
                 return mlir::SmallVector<mlir::Value>{E(b, a[0]) + f(i)};
               })[0]);
}

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_LIBRARY_MATRIX_H
