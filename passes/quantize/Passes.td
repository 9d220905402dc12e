// Passes of the quantization room.
#ifndef LATHE_PASSES_QUANTIZE_PASSES_TD
#define LATHE_PASSES_QUANTIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

class Quantize_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::lathe::hlo::HloDialect", "::mlir::quant::QuantDialect"];
}

def HloQuantizeRanges : Quantize_Pass<"hlo-quantize-ranges"> {
  let summary = "Takes the ranges that a model says itself.";
  let description = [{
    Models that were trained for quantization round values to the steps of a range: with FakeQuantWithMinMaxVars,
    QuantizeAndDequantize or arithmetic of their own. Whatever chain of ops on single elements around a rounding turns out to be such a
    function, by its values, becomes a clamp to the range, with `hlo.given_range` (lowest, highest) on it; the kernels
    in integers round to the same steps. The clamp stands in front of what only moves elements. Roundings to fewer steps than 8 bits
    have stay, with the range on their last op. Ranges of a value for each channel, or that are no constants, are not taken.
  }];
  let statistics = [
    Statistic<"numTaken", "taken", "ranges that the model says">
  ];
}

def HloQuantizeSelect : Quantize_Pass<"hlo-quantize-select"> {
  let summary = "Marks the ops that will be computed in integers.";
  let description = [{
    Products and convolutions are chosen wherever they stand; everything else only where all that it reads is quantized already
    or constant, so that no number is rounded to 8 bits that a product would not have rounded. Expects simplified hlo; leaves
    `hlo.quantize` (the unit's kind) on the op that makes each unit's result, and takes away marks that were there. What has
    `hlo.keep_float` stays as it is, and so does what depends on it alone.
  }];
  let options = [Option<"bits", "bits", "int64_t", /*default=*/"8", "of activations: 8 or 16">];
  let statistics = [
    Statistic<"numChosen", "chosen", "units">,
    Statistic<"refusedInput", "refused-input", "units left because an input is not quantized">,
    Statistic<"refusedKept", "refused-kept", "units left because they are to be kept float">,
    Statistic<"refusedKind", "refused-kind", "units left because 16-bit activations have no form of them">
  ];
}

def HloQuantizeParameters : Quantize_Pass<"hlo-quantize-parameters"> {
  let summary = "Gives each quantized value its scale and zero point.";
  let description = [{
    From `hlo.given_range` and `hlo.ranges` (lowest and highest of each input and of the result) to `hlo.quantized`, the types of MLIR's quant dialect
    in the same order, with that of the weights behind. Ranges are widened to hold 0; values whose elements only move share
    one range; softmax and logistic have 1/256 at -128, tanh 1/128 at 0; weights are symmetric in [-127, 127], one
    scale a channel. With 16 bits activations are symmetric. An error names each value that has no range.
  }];
  let options = [Option<"bits", "bits", "int64_t", /*default=*/"8", "of activations: 8 or 16">];
}

def HloQuantizeRewrite : Quantize_Pass<"hlo-quantize-rewrite"> {
  let summary = "Computes the marked units in integers.";
  let description = [{
    Each unit with `hlo.quantized` becomes the integer form that quantized TensorFlow Lite operators have; values are quantized
    where a float one enters a unit, once each, and dequantized where a quantized one is used otherwise. With `io` the function's
    float inputs and results that units read and make become integers themselves, with `hlo.quantized` beside their names.
    With `isolate` nothing is replaced: each unit is computed from the float values, and its dequantized result becomes one
    more result of the function. With `mix` the function has one more argument, a number for each unit, in loops and branches too: the
    share of what its integer form is off by that is added to its float result, on which all that follows depends.
  }];
  let options = [
    Option<"io", "io", "std::string", /*default=*/"\"float\"", "element type of quantized inputs and results: float, int8 or uint8">,
    Option<"fastMath", "fast-math", "bool", /*default=*/"false", "8-bit results are rounded once, in f32">,
    Option<"isolate", "isolate", "bool", /*default=*/"false", "results of single units beside the float ones">,
    Option<"mix", "mix", "bool", /*default=*/"false", "errors of single units in the float model, by an argument">
  ];
  let statistics = [
    Statistic<"numQuantize", "quantize", "values quantized">,
    Statistic<"numDequantize", "dequantize", "values dequantized">
  ];
}

def HloQuantizeWeights : Quantize_Pass<"hlo-quantize-weights"> {
  let summary = "Stores constant weights in fewer bits.";
  let description = [{
    Of products with a constant matrix and of convolutions, where the weights have at least `least` elements. `dynamic`: int8 with one
    scale an output channel; the other operand is quantized as the model runs, each row of a product and each image of a
    convolution with its own scale and zero point, as hybrid operators do. `float16`: f16, widened in front of the op.
  }];
  let options = [
    Option<"kind", "kind", "std::string", /*default=*/"\"dynamic\"", "dynamic or float16">,
    Option<"least", "least", "int64_t", /*default=*/"1024", "elements below which weights stay">
  ];
  let statistics = [
    Statistic<"numNarrowed", "narrowed", "weights stored in fewer bits">
  ];
}

#endif
