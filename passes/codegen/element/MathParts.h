// Pieces that several functions share; internal to the math emission.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_MATHPARTS_H
#define LATHE_PASSES_CODEGEN_ELEMENT_MATHPARTS_H

#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/MathEmitter.h"

namespace lathe::codegen {

inline constexpr double kInf = __builtin_inf();
inline constexpr double kNan = __builtin_nan("");
inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kLn2 = 0.69314718055994530942;
inline constexpr double kLog2e = 1.44269504088896340736;

// f32 (MathF32.cpp, MathTrig.cpp)
E exp32(E x);
E log32(E x);
E log1p32(E x);
E expm1_32(E x);
E tanh32(E x);
E logistic32(E x);
E erf32(E x);
E erfc32(E x);
E erfInv32(E x);
E cbrt32(E x);
E pow32(E x, E y);
E sinh32(E x);
E cosh32(E x);
E asinh32(E x);
E acosh32(E x);
E atanh32(E x);
E sin32(E x);
E cos32(E x);
E tan32(E x);
E atan32(E x);
E asin32(E x);
E acos32(E x);
E atan2_32(E y, E x);

/// What rounds to 0 is not left to arithmetic: underflow takes the processor a hundred cycles, and masks make a lot of it.
inline constexpr double expUnderflow = -104.0;

/// Whether one instruction scales by a power of two, for this many lanes.
bool hasScale(E p);
/// p * 2^floor(n) by that instruction; lanes that `on` leaves out are 0 and cost nothing, however small their result.
E scaleBy(E p, E n, mlir::Value on);

/// About 1/x, 14 bits, for powers of two lanes on processors with AVX-512.
E reciprocal14(E x);

// f32 by tables, about half the instructions, where hasTables(x): AVX-512, powers of two lanes (MathTable.cpp)
bool hasTables(E x);
E expByTable(E x);
E erfByTable(E x);
E tanhByTable(E x);
E logisticByTable(E x);
E geluByTable(E x, bool tanh);
/// x logistic(x) where division is fast, within three units down to -16 and six to the end.
E swishByTable(E x);

// f64, about 1 ulp (MathF64.cpp)
E exp64(E x);
E log64(E x);
E tanh64(E x);
E logistic64(E x);
E erfInv64(E x);
/// sin(pi x) and cos(pi x), any finite x
E sinPi64(E x);
E cosPi64(E x);

// f64, any lanes (MathSpecial.cpp)
E lgamma64(E x);
E digamma64(E x);
E besselI64(E x, int order); ///< exp(-|x|) I_order(x)
E betainc64(E a, E b, E x);

// f32 or f64, any lanes, in the type's own arithmetic (MathGamma.cpp)
E igammaE(E a, E x);
E igammacE(E a, E x);
E igammaGradAE(E a, E x);
E randomGammaGradE(E a, E x);
E zetaE(E x, E q);
E polygammaE(E n, E x);

/// Iterates `step` over the state while state[0] (i1) is on in some lane, at most `limit` times; a lane that went off
/// keeps its values.
llvm::SmallVector<mlir::Value> iterate(KernelBuilder &b, llvm::SmallVector<mlir::Value> state, int64_t limit,
                                       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> step);

/// Whether any lane is on (i1 in, scalar i1 out).
mlir::Value anyLane(E mask);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_MATHPARTS_H
