// Passes of the fusion room.
#ifndef LATHE_PASSES_FUSION_PASSES_TD
#define LATHE_PASSES_FUSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def HloFuse : Pass<"hlo-fuse", "::mlir::ModuleOp"> {
  let summary = "Groups hlo operations into kernel ops.";
  let description = [{
    Every function and every region of control flow is planned by itself. Products, convolutions and pooling take
    their elementwise consumers as epilogues; softmax-like and normalisation-like groups become `kernel.rows`; other
    reductions `kernel.reduce`; what is left of elementwise ops, broadcasts, transposes, slices and pads `kernel.loop`.
    Expensive ops are never computed twice. The values are those of the unfused program, bit for bit, apart from the
    order of summation inside products and reductions.

    Afterwards a block holds kernel ops, constants, reshapes (views), control flow, and bare hlo ops that get a
    function of their own (gather, sort, ...). A second run changes nothing.
  }];
  let options = [
    Option<"fuse", "fuse", "bool", /*default=*/"true", "off: every operation becomes a kernel of its own">,
    Option<"maxOps", "max-ops", "unsigned", /*default=*/"64", "operations in one kernel at most">,
    Option<"explain", "explain", "bool", /*default=*/"false", "a remark on every op that stayed apart from a consumer, with the reason">
  ];
  let statistics = [
    Statistic<"numLoops", "loops", "kernel.loop ops made">,
    Statistic<"numReduces", "reduces", "kernel.reduce ops made">,
    Statistic<"numRows", "rows", "kernel.rows ops made">,
    Statistic<"numCores", "cores", "products, convolutions and pools made">,
    Statistic<"numBare", "bare", "ops left for a function of their own">,
    Statistic<"numFused", "fused", "operations that share a kernel with another">,
    Statistic<"refusedTooManyOps", "refused-too-many-ops", "not fused: the kernel was full">,
    Statistic<"refusedReplicated", "refused-replicated", "not fused: the consumer reads elements many times">,
    Statistic<"refusedStrided", "refused-strided", "not fused: expensive and read out of order">,
    Statistic<"refusedCoreOperand", "refused-core-operand", "not fused: operand of a product or window">,
    Statistic<"refusedOtherShape", "refused-other-shape", "not fused: the consumer loops over another shape">,
    Statistic<"refusedNotElemental", "refused-not-elemental", "not fused: has a loop nest of its own">,
    Statistic<"refusedNeededElsewhere", "refused-needed-elsewhere", "not fused: several kernels need it">,
    Statistic<"refusedCycle", "refused-cycle", "not fused: two kernels would wait for each other">
  ];
  let dependentDialects = ["::lathe::kernel::KernelDialect", "::lathe::hlo::HloDialect"];
}

def KernelExpand : Pass<"kernel-expand", "::mlir::ModuleOp"> {
  let summary = "Turns kernel ops back into the hlo operations they stand for.";
  let description = [{
    The inverse of `hlo-fuse` up to the names of values: `lathe verify` evaluates the result with the reference evaluator.
    Needs operands as they were before `kernel-pack-weights`.
  }];
  let dependentDialects = ["::lathe::hlo::HloDialect"];
}

#endif
