// Arithmetic of single operators' reference kernels: products of matrices by real factors, tables of functions, activations that are
// quantized as the operator runs (hybrid operators, which have float inputs and 8-bit weights).
#ifndef LATHE_PASSES_QUANTIZE_KERNELS_H
#define LATHE_PASSES_QUANTIZE_KERNELS_H

#include "passes/quantize/Arithmetic.h"

namespace lathe::quantize {

/// x (i32 or i64) times the factors as they are, in double and rounded once to i32, ties away from zero: the reference kernel of
/// FULLY_CONNECTED. One factor, or one for each index of the last axis.
Value multiplyReal(Emitter &e, Value x, ArrayRef<double> factors);
/// Sums (i32 or i64) times real factors as quantized numbers: by multiplyReal, or with fast arithmetic as requantize does it.
Value requantizeReal(Emitter &e, Value sums, ArrayRef<double> factors, int64_t zeroPoint, Range range, Type element);

/// The table of a function on real numbers between two types of elements, rounded in float.
SmallVector<int64_t> functionTable(Params in, Range from, Params out, Range to, llvm::function_ref<float(float)> function);

/// Rows as i8 values with a scale (and zero point, i32) each; scales and zero points keep the reduced axes as size 1.
struct QuantizedRows {
  Value values, scales, zeroPoints;
  bool centred = false; ///< all zero points are 0
};
/// Quantizes x (f32) over `axes`: into [-128, 127] with a zero point, or into [-127, 127] around 0.
QuantizedRows quantizeRows(Emitter &e, Value x, ArrayRef<int64_t> axes, bool asymmetric);
/// The sums (i32) of the products of rows, each an image, less their zero points with an int8 filter under a window: of bytes, padded with
/// each image's zero point.
Value convolveRows(Emitter &e, const QuantizedRows &rows, Value filter, const hlo::ConvWindow &window, hlo::ConvDimensionNumbersAttr numbers,
                   int64_t groups);
/// Integer sums as real numbers, by scales of rows and of weights (broadcast to the sums): the kernels multiply the scales with each other
/// and then the sums; those of convolutions with a scale for each channel multiply the sums by that first.
Value scaleSums(Emitter &e, Value sums, Value rowScales, Value weightScales, bool weightsFirst = false);

/// Images [n, h, w, c] of 8 or 16 bits, h and w known, resized by two rows and columns each: RESIZE_BILINEAR's reference kernel, with weights of
/// 10 bits, and of unsigned bytes in f32. The result has the input's scale.
Value resizeBilinear(Emitter &e, Value x, int64_t height, int64_t width, bool alignCorners, bool halfPixelCenters);

} // namespace lathe::quantize

#endif
