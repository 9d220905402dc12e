// Passes of the simplification room.
#ifndef LATHE_PASSES_SIMPLIFY_PASSES_TD
#define LATHE_PASSES_SIMPLIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

class Simplify_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::lathe::hlo::HloDialect"];
}

def HloSimplifyAlgebra : Simplify_Pass<"hlo-simplify-algebra"> {
  let summary = "Removes neutral ops, cancels inverse ones and puts shapes into simpler forms.";
  let description = [{
    Arithmetic identities, conversions, selects and comparisons with known outcome; reshapes, transposes, broadcasts,
    slices, pads and concatenations composed or removed; reductions without work. Only rewritings that leave every bit
    as it was, apart from signs of zeros and NaN payloads, unless `exact` is off: then those that TensorFlow's own graph
    optimizer does as well (powers by small exponents).
  }];
  let options = [Option<"exact", "exact", "bool", /*default=*/"false", "no rewriting that changes rounding">];
}

def HloSinkShapes : Simplify_Pass<"hlo-sink-shapes"> {
  let summary = "Moves reshapes and transposes below elementwise ops, towards others that they cancel with.";
  let description = [{
    `add(reshape(x), broadcast(b))` becomes `reshape(add(x, broadcast'(b)))` where every other operand can take x's shape
    for free (splats, fitting broadcasts, reshapes, values that are stored anyway). Brings elementwise ops next to the
    product whose epilogue they are.
  }];
  let statistics = [Statistic<"numSunk", "sunk", "reshapes and transposes moved">];
}

#endif
