// Functions of one argument that graphs spell as a product with it. GELU: half its argument times an error function, or times a
// tanh of a cubic. Swish: its argument times a logistic.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_GELU_H
#define LATHE_PASSES_CODEGEN_ELEMENT_GELU_H

#include "passes/codegen/element/KernelBuilder.h"

#include <optional>

namespace lathe::codegen {

struct Gelu {
  mlir::Value x;     ///< the argument
  bool tanh = false; ///< the approximation by tanh
};

/// x/2 erfc(-x/sqrt(2)), x/2 (1 + erf(x/sqrt(2))) or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) in f32, its factors in any
/// order, if `op` is the last multiplication of one.
std::optional<Gelu> matchGelu(mlir::Operation *op);

/// Whether emitGelu has code for so many lanes: half the instructions of the functions in the formula.
bool hasGelu(KernelBuilder &b, unsigned lanes);
mlir::Value emitGelu(KernelBuilder &b, mlir::Value x, const Gelu &gelu);

/// x, if `op` is x logistic(x) in f32, the factors in any order.
mlir::Value matchSwish(mlir::Operation *op);
/// Whether emitSwish has code for so many lanes: one division instead of a logistic and a product.
bool hasSwish(KernelBuilder &b, unsigned lanes);
mlir::Value emitSwish(KernelBuilder &b, mlir::Value x);

} // namespace lathe::codegen

#endif
