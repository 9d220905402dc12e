// Passes of the simplification room.
#ifndef LATHE_PASSES_SIMPLIFY_PASSES_TD
#define LATHE_PASSES_SIMPLIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

class Simplify_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::lathe::hlo::HloDialect"];
}

def HloFoldConstants : Simplify_Pass<"hlo-fold-constants"> {
  let summary = "Evaluates ops whose operands are constants.";
  let description = [{
    Splats stay splats. A result is only stored when it is not much larger than the constants it comes from: a broadcast
    or an iota is left alone until an op that consumes it gives something small. Expects hlo; changes no bit that the
    evaluator and the kernels agree on.
  }];
  let options = [
    Option<"widen", "widen", "bool", /*default=*/"false", "store weights of products in f32 where they are in f16">,
    Option<"budget", "budget", "int64_t", /*default=*/"1073741824", "bytes of new constants at most">,
    Option<"operations", "operations", "int64_t", /*default=*/"4000000000", "elements evaluated at most">
  ];
  let statistics = [
    Statistic<"numFolded", "folded", "operations evaluated">,
    Statistic<"numSplats", "splats", "operations on splats evaluated">,
    Statistic<"bytesMade", "bytes", "bytes of new constants">,
    Statistic<"refusedBudget", "refused-budget", "not folded: over the budget">,
    Statistic<"refusedGrowth", "refused-growth", "not folded: the result is much larger than its constants">
  ];
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

def HloPlaceTransposes : Simplify_Pass<"hlo-place-transposes"> {
  let summary = "Gives the ops between transposes the layout that needs the fewest of them.";
  let description = [{
    Elementwise ops, pads, slices, concatenations, windows, reversals, reshapes and reductions work in either layout of a
    transpose. The ops that such tensors connect are one region, and a minimum cut chooses the layout of each, so that
    the tensors that remain to be transposed are smallest; nothing changes where they would not become smaller. Graphs of
    frameworks that put channels first, with transposes around each convolution, keep those of their arguments and
    results. Expects convolutions in the layout of the kernels; leaves transposes that others cancel.
  }];
  let statistics = [
    Statistic<"numMoved", "moved", "ops in another layout">,
    Statistic<"numRegions", "regions", "regions with fewer transposes">,
    Statistic<"refusedSize", "refused-size", "regions left because a minimum cut took too long">
  ];
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

def HloFoldScales : Simplify_Pass<"hlo-fold-scales"> {
  let summary = "Folds per-channel multiplications and additions into the weights of convolutions and products.";
  let description = [{
    `mul(add(conv(x, W), b), s)` becomes `add(conv(x, W * s), b * s)`: batch normalisation and the like. A scale on the
    input of a convolution without padding, or of a product, moves into the weights too. Rounding changes by a few units
    in the last place.
  }];
  let statistics = [
    Statistic<"numFolded", "folded", "scales and shifts folded">,
    Statistic<"refusedUses", "refused-uses", "not folded: the product is used elsewhere">,
    Statistic<"refusedWeights", "refused-weights", "not folded: weights are not constant">
  ];
}

def HloScaleWeights : Simplify_Pass<"hlo-scale-weights"> {
  let summary = "Multiplies the weights of a product instead of its input by factors that each image has for each channel.";
  let description = [{
    Squeeze-and-excitation: `dot(x * s, W)` becomes `dot(x, W * s)`, a product for each image where there are several. Done
    where an image has at least twice as many pixels as the product has outputs.
  }];
  let statistics = [Statistic<"numScaled", "scaled", "products whose weights are scaled">];
}

def HloFoldPadding : Simplify_Pass<"hlo-fold-padding"> {
  let summary = "Folds pads into the padding of convolutions and windows.";
  let statistics = [Statistic<"numFolded", "folded", "pads folded">];
}

def HloLowerQuantized : Simplify_Pass<"hlo-lower-quantized"> {
  let summary = "Turns quantized numbers into the integers that hold them.";
  let description = [{
    `hlo.uniform_quantize` and `hlo.uniform_dequantize` become arithmetic on integers and floats, casts between quantized numbers and their
    storage nothing. Values of quantized type, also those of private functions and of regions, become tensors of their storage; ops that move,
    choose or compare elements work on these. Any other op that takes or gives quantized numbers is an error, as are public functions that do.
    Expects hlo, and leaves no quantized type on values.
  }];
  let statistics = [Statistic<"numLowered", "lowered", "ops between quantized numbers and others">];
}

def HloFoldSpaceBatch : Simplify_Pass<"hlo-fold-space-batch"> {
  let summary = "Turns space to batch, convolution, batch to space into a convolution with dilated taps.";
  let description = [{
    How TensorFlow 1 wrote dilated convolutions, over images and over one dimension, depthwise ones included. The padding
    of the new convolution takes in the pad before and the crop behind. Expects what legalization makes of SpaceToBatchND
    and BatchToSpaceND, with nothing in between but the convolution.
  }];
  let statistics = [Statistic<"numFolded", "folded", "convolutions folded">];
}

def HloSplitDilatedConv : Simplify_Pass<"hlo-split-dilated-conv"> {
  let summary = "Turns convolutions of an input with zeros between its pixels into dense ones.";
  let description = [{
    Transposed convolutions and gradients of strided ones: each phase of the output meets its own subset of the taps. The
    phases become one convolution with more output channels, or one each, whichever multiplies less; their results are
    interleaved. Expects the layout of `hlo-canonicalize-products` and spatial sizes known at compile time.
  }];
  let statistics = [Statistic<"numSplit", "split", "convolutions split">];
}

def HloSplitBatch : Simplify_Pass<"hlo-split-batch"> {
  let summary = "Does the first layers of a batch a few images at a time.";
  let description = [{
    Where the arguments have a known leading size and the first ops treat their rows ("images") alone, these ops move into
    a loop over groups of images, cut where the weights that each round reads again outweigh the traffic of tensors that
    fit no cache. Elementwise ops, convolutions, products, reductions, windows and what moves data within an image are
    known; anything else that reads images ends the loop. Results are those of the ops on smaller operands.
  }];
  let options = [
    Option<"cache", "cache", "int64_t", /*default=*/"1048576", "bytes of a core's own cache; 0: nothing stays near between kernels, and nothing is split">,
    Option<"keptTraffic", "kept-traffic", "double", /*default=*/"0.8", "share of the traffic of tensors that is saved where they then fit it">,
    Option<"lessTraffic", "less-traffic", "double", /*default=*/"0.4", "the same where they do not">,
    Option<"refetched", "refetched", "double", /*default=*/"0.25", "share of their traffic that weights of half of it at most cost again">
  ];
  let statistics = [Statistic<"numSplit", "split", "functions whose batch is split">];
}

def HloSplitLoopRows : Simplify_Pass<"hlo-split-loop-rows"> {
  let summary = "Turns recurrent loops over a batch into one for each thread's share of it.";
  let description = [{
    A loop of known sizes without effects whose body multiplies rows of the turn before by weights, and treats rows alone
    from turn to turn, becomes a loop for each thread, marked `hlo.one_thread`; their results are concatenated. It must be
    faster by an estimate: threads meet once instead of in each product, but each reads all weights.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"2", "most threads that the code will use">,
    Option<"multiplyAdds", "multiply-adds", "double", /*default=*/"32", "in f32 that a core does in a cycle">,
    Option<"cache", "cache", "int64_t", /*default=*/"1048576", "bytes of a core's own cache">,
    Option<"meeting", "meeting", "double", /*default=*/"2200", "cycles until all threads have begun a kernel and are done with it, beyond their work">,
    Option<"elementCycles", "element-cycles", "double", /*default=*/"0.6", "of an element of elementwise code, most of which is exponentials">,
    Option<"keptBytes", "kept-bytes", "double", /*default=*/"28", "a cycle that a core reads of weights in its own cache">,
    Option<"fetchedBytes", "fetched-bytes", "double", /*default=*/"8", "a cycle that a core reads of other weights">
  ];
  let statistics = [Statistic<"numSplit", "split", "loops split">];
}

def HloFoldDepth : Simplify_Pass<"hlo-fold-depth"> {
  let summary = "Turns convolutions over volumes into ones over images with more channels.";
  let description = [{
    A convolution in f32 with three spatial dimensions, no strides or dilations, and 3x3 taps besides those along the
    depth reads neighbouring slices as channels of one image: then Winograd's algorithm for images serves. Expects the
    layout of `hlo-canonicalize-products`; only the order of the sums changes.
  }];
  let statistics = [Statistic<"numFolded", "folded", "convolutions folded">];
}

def HloCanonicalizeProducts : Simplify_Pass<"hlo-canonicalize-products"> {
  let summary = "Gives dot_general one M, N and K dimension and convolutions the NHWC x HWIO layout.";
  let description = [{
    Several free or contracted dimensions are merged by reshapes (after a transpose where they are not adjacent); missing
    ones become of size one. Transposes of operands go into the dimension numbers. Convolutions get transposes around
    them, which constant folding and hlo-sink-shapes then remove. Layouts of 1x1 convolutions with stride one become products.
  }];
  let options = [Option<"layouts", "layouts", "bool", /*default=*/"false", "only the layouts of convolutions">];
  let statistics = [Statistic<"numChanged", "changed", "products and convolutions changed">];
}

def HloSimplifyControlFlow : Simplify_Pass<"hlo-simplify-control-flow"> {
  let summary = "Inlines decided branches and loops of one turn, drops dead and unchanging carried values.";
  let statistics = [
    Statistic<"numInlined", "inlined", "conditionals and loops inlined">,
    Statistic<"numDropped", "dropped", "carried values and results dropped">,
    Statistic<"numProven", "proven", "checks of loop counters that the loop's condition implies">
  ];
}

def HloCountLoops : Simplify_Pass<"hlo-count-loops"> {
  let summary = "Notes how often loops run whose counters say it.";
  let description = [{
    The attribute `hlo.trips` of a while loop whose condition compares a counter with a number. The condition stays as it is: lowering for
    a device counts instead of evaluating it, all else ignores the attribute. No pass behind this one changes what a loop carries.
  }];
  let statistics = [Statistic<"numCounted", "counted", "loops whose trips are known">];
}

def HloHoistLoopInvariants : Simplify_Pass<"hlo-hoist-loop-invariants"> {
  let options = [Option<"exact", "exact", "bool", /*default=*/"false", "leave products of concatenations whole">];
  let summary = "Moves what does not change out of while loops, and the input products of recurrent layers.";
  let description = [{
    A product of row t of a loop-invariant tensor with invariant weights becomes one product before the loop and a
    slice of its result inside.
  }];
  let statistics = [
    Statistic<"numHoisted", "hoisted", "ops moved out of loops">,
    Statistic<"numProducts", "products", "input products moved out of loops">
  ];
}

#endif
