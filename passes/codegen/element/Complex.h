// Arithmetic and functions of complex register values (vector<2xT>, one element).
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_COMPLEX_H
#define LATHE_PASSES_CODEGEN_ELEMENT_COMPLEX_H

#include "passes/codegen/element/Expr.h"

namespace lathe::codegen {

/// Complex numbers by parts; each part f32 or f64, a scalar or a vector.
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
/// Elements of x where `when` is on, else those of y.
mlir::Value selectComplex(KernelBuilder &b, mlir::Value when, mlir::Value x, mlir::Value y);
/// Whether emitComplex and emitConvert take vectors for this op; others call functions of libm.
bool hasVectors(mlir::Operation *op);

/// An elementwise hlo op one of whose operands or results is complex; failure for ops without complex meaning.
mlir::FailureOr<mlir::Value> emitComplex(KernelBuilder &b, mlir::Operation *op, mlir::ValueRange operands);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_COMPLEX_H
