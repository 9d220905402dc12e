// Between floats and quantized numbers. What else takes quantized numbers moves, chooses or compares them as they lie; hlo-lower-quantized
// turns all of it into integers.
#ifndef LATHE_HLO_QUANT
#define LATHE_HLO_QUANT

include "dialects/hlo/HloBase.td"

def HLO_UniformQuantizeOp : HLO_Op<"uniform_quantize", [Pure]> {
  let summary = "floats, or numbers quantized otherwise, to quantized numbers";
  let description = [{
    The element type of the result has a scale s, a zero point z and a range of storage, each per tensor or per axis. A quantized operand
    is dequantized first. `rounding` says how a float x becomes storage; each step is rounded to the expressed type:

    - `NEAREST_EVEN` (StableHLO's): x / s + z, clamped to the range, then to the nearest integer, ties to the even one.
    - `AWAY` (TensorFlow Lite's): x / s to the nearest integer, ties away from zero; plus z, clamped to the range.
    - `UP` (TensorFlow's UniformQuantize): floor(x * (1 / s) + 1/2); plus z, clamped to the range. This sum has 32 bits and wraps, and what
      does not fit in 32 bits before it is the smallest integer.

    NaN gives z, with `NEAREST_EVEN` 0, clamped to the range. C1: operand and result have equal shapes. C2: they express equal types. C3: the
    axis of a quantized type is a dimension, and it has a scale for each of the dimension's elements. C4: `UP` expresses f32.

    ```mlir
    %q = hlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>
    ```
  }];
  let arguments = (ins HLO_FpOrQuantizedTensor:$operand,
                       DefaultValuedOptionalAttr<HLO_QuantizeRoundingAttr, "QuantizeRounding::NEAREST_EVEN">:$rounding);
  let results = (outs HLO_QuantizedTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Type":$elementType, "QuantizeRounding":$rounding)>];
  let assemblyFormat = "$operand (`,` `rounding` `=` $rounding^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def HLO_UniformDequantizeOp : HLO_InferredOp<"uniform_dequantize", [Pure]> {
  let summary = "quantized numbers to the floats that they stand for";
  let description = [{
    (q - z) * s, in the expressed type: the exact difference is rounded to it, then the product. C1: the axis of a quantized type is a
    dimension, and it has a scale for each of the dimension's elements.

    ```mlir
    %x = hlo.uniform_dequantize %q : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_QuantizedTensor:$operand);
  let results = (outs HLO_FpTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

#endif
