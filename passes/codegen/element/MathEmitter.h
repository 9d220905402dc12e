// Mathematical functions as straight-line code that works alike on scalars and on vectors.
//
// f32: own code, no calls; correct at NaN, infinities, zeros, denormals and huge arguments. f64: C's libm
// (scalarised), or own code where that has none. Accuracy in ulp over all floats is checked by test/codegen.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_MATHEMITTER_H
#define LATHE_PASSES_CODEGEN_ELEMENT_MATHEMITTER_H

#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::codegen {

enum class Fn {
  Exp, Log, Log1p, Expm1, Tanh, Logistic, Erf, Erfc, ErfInv, Sin, Cos, Tan, Sqrt, Rsqrt, Cbrt, Atan, Asin, Acos,
  Sinh, Cosh, Asinh, Acosh, Atanh, Lgamma, Digamma, I0e, I1e,
  // two operands
  Pow, Atan2, Fmod, NextAfter, Igamma, Igammac, IgammaGradA, RandomGammaGrad, Polygamma, Zeta,
  // three operands
  Betainc,
};

/// `args` are f32 or f64, scalars or vectors.
mlir::Value emitMath(KernelBuilder &b, Fn fn, mlir::ValueRange args);

/// The declaration of a function of C's libm on numbers of the type of `args`.
mlir::func::FuncOp libmFunction(KernelBuilder &b, llvm::StringRef name, mlir::ValueRange args, unsigned results);

/// A function of C's libm on f64, element by element.
mlir::Value callLibm(KernelBuilder &b, llvm::StringRef name, mlir::ValueRange args);

/// x^n for integers (any width), n as unsigned bits; loops over the bits of n.
mlir::Value emitIntPow(KernelBuilder &b, mlir::Value x, mlir::Value n, bool isSigned);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_MATHEMITTER_H
