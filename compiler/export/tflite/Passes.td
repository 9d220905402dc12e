// Passes that turn hlo into TensorFlow Lite's operators.
#ifndef LATHE_COMPILER_EXPORT_TFLITE_PASSES_TD
#define LATHE_COMPILER_EXPORT_TFLITE_PASSES_TD

include "mlir/Pass/PassBase.td"

class Tflite_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::lathe::hlo::HloDialect", "::mlir::quant::QuantDialect"];
}

def TfliteRaise : Tflite_Pass<"tflite-raise"> {
  let summary = "Replaces hlo by TensorFlow Lite's operators.";
  let description = [{
    Operators are `hlo.custom_call` ops named `tfl.NAME` with their options as a dictionary. Expects simplified hlo; leaves
    operators, constants, `hlo.while`, `hlo.if` and returns, or fails after an error for each op that no operator can say.
    Run-time checks (`hlo.check`) have no operator and go: kernels that read by index check for themselves.
  }];
  let statistics = [Statistic<"numRaised", "raised", "ops that became operators">];
}

def TfliteRaiseQuantized : Tflite_Pass<"tflite-raise-quantized"> {
  let summary = "Replaces quantized units of hlo by TensorFlow Lite's operators on integers.";
  let description = [{
    Units are what `hlo-quantize-parameters` gave types; the operators compute what `hlo-quantize-rewrite` would, bit for bit. Values
    are quantized where a float one enters a unit, once each, and dequantized where a quantized one is read otherwise. With
    `io` the float inputs and results that units read and make become integers themselves. A unit that no operators say stays
    float, after a warning. Runs before tflite-raise, which takes what is left.
  }];
  let options = [
    Option<"io", "io", "std::string", /*default=*/"\"float\"", "element type of quantized inputs and results: float, int8 or uint8">
  ];
  let statistics = [
    Statistic<"numRaised", "raised", "units that became operators">,
    Statistic<"numRefused", "refused", "units left float">
  ];
}

def TfliteFuseActivations : Tflite_Pass<"tflite-fuse-activations"> {
  let summary = "Makes RELU and its like an option of the operator that they follow.";
  let description = [{
    Where nothing else reads the operator's result. Looks through reshapes. Expects tflite-raise; idempotent.
  }];
  let statistics = [Statistic<"numFused", "fused", "activations that became options">];
}

def TfliteNarrowWeights : Tflite_Pass<"tflite-narrow-weights"> {
  let summary = "Stores weights in fewer bits.";
  let description = [{
    Of float convolutions and products whose constant weights have at least `least` elements. `dynamic`: int8 with one scale a channel,
    for kernels that quantize their input as they run (hybrid operators), as `hlo-quantize-weights` says it in hlo. `float16`: f16
    with a DEQUANTIZE. Expects tflite-fuse-activations.
  }];
  let options = [
    Option<"kind", "kind", "std::string", /*default=*/"\"dynamic\"", "dynamic or float16">,
    Option<"least", "least", "int64_t", /*default=*/"1024", "elements below which weights stay">
  ];
  let statistics = [Statistic<"numNarrowed", "narrowed", "weights stored in fewer bits">];
}

#endif
