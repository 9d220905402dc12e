// Arithmetic and functions of complex register values (vector<2xT>, one element).
#ifndef LATHE_PASSES_CODEGEN_CPU_COMPLEX_H
#define LATHE_PASSES_CODEGEN_CPU_COMPLEX_H

#include "passes/codegen/cpu/Expr.h"

namespace lathe::cpu {

/// A complex number by parts; each part a scalar f32 or f64.
struct C {
  E re, im;
};

C unpack(KernelBuilder &b, mlir::Value v);
mlir::Value pack(C z);
C operator+(C a, C b);
C operator-(C a, C b);
C operator*(C a, C b);
C operator/(C a, C b);
E absC(C z);

/// An elementwise hlo op one of whose operands or results is complex; failure for ops without complex meaning.
mlir::FailureOr<mlir::Value> emitComplex(KernelBuilder &b, mlir::Operation *op, mlir::ValueRange operands);

} // namespace lathe::cpu

#endif // LATHE_PASSES_CODEGEN_CPU_COMPLEX_H
