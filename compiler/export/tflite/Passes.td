// Passes that turn hlo into TensorFlow Lite's operators.
#ifndef LATHE_COMPILER_EXPORT_TFLITE_PASSES_TD
#define LATHE_COMPILER_EXPORT_TFLITE_PASSES_TD

include "mlir/Pass/PassBase.td"

class Tflite_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::lathe::hlo::HloDialect"];
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

def TfliteFuseActivations : Tflite_Pass<"tflite-fuse-activations"> {
  let summary = "Makes RELU and its like an option of the operator that they follow.";
  let description = [{
    Where nothing else reads the operator's result. Looks through reshapes. Expects tflite-raise; idempotent.
  }];
  let statistics = [Statistic<"numFused", "fused", "activations that became options">];
}

#endif
