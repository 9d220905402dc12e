// Passes of the lower room.
#ifndef LATHE_PASSES_LOWER_PASSES_TD
#define LATHE_PASSES_LOWER_PASSES_TD

include "mlir/Pass/PassBase.td"

def KernelPlanMemory : Pass<"kernel-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Shows where every tensor of the entry functions will live.";
  let description = [{
    Plans each public function on its own and notes the plan in attributes, for people and tests; lowering plans anew.
    `memory.at` lists the places of an op's results: `input 0`, `output 1`, `variable 0`, `constant +64` (offset in the
    pool), `fill`, `arena 2 +128` (group, offset in units of the group). `memory.copies` lists the copies that run
    before the op (for terminators: before the block ends). The function gets `memory.groups`, the unit and the size of
    each group. Nothing else changes.
  }];
  let statistics = [
    Statistic<"arenaBytes", "arena-bytes", "bytes of the largest arena; run-time units count as one">,
    Statistic<"sumOfBuffers", "sum-of-buffers", "what its buffers would take without sharing">,
    Statistic<"numBuffers", "buffers", "buffers in arenas">,
    Statistic<"numCopies", "copies", "copies that could not be avoided">,
    Statistic<"numInPlace", "in-place", "updates that share their operand's buffer">
  ];
}

def SideBySide : Pass<"kernel-side-by-side", "::mlir::ModuleOp"> {
  let summary = "Marks serial code that can run on several threads side by side.";
  let description = [{
    Looks in each block of a public function for stretches of ops that read nothing of each other and that threads would not
    share by themselves: loops of steps, products and elementwise kernels too small to be spread. Where running them at the
    same time is faster by more than a group costs, they get `kernel.side`, the numbers of the group and of the side, and
    move together; what they read goes before the group, the rest behind it. Ops that may fail, that write sizes or whose
    sizes are not known stay where they are and nothing moves across them. Groups do not nest. The values are the same.

    `kernel-plan-memory` reads the attributes. `kernel-to-llvm` does not: it settles them anew, so this pass is for people
    and tests.
  }];
  let options = [
    Option<"parallelWork", "parallel-work", "int64_t", /*default=*/"140000", "work from which a call is spread by itself; half of it makes a side">
  ];
  let statistics = [
    Statistic<"numGroups", "groups", "groups made">,
    Statistic<"numSides", "sides", "sides in them">,
    Statistic<"refusedAlone", "refused-alone", "ops with nothing of some length beside them">,
    Statistic<"refusedNotFaster", "refused-not-faster", "groups that would gain too little">
  ];
}

def KernelToLlvm : Pass<"kernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Emits every distinct kernel and the functions of the entries in the LLVM dialect.";
  let description = [{
    Expects public functions of kernel ops, bare hlo ops, constants, views and control flow, prepared for the module's target
    (`lathe.target`). Leaves the functions that object emission translates, and in the attribute `lathe.lowered` what its tables
    tell: entries, places that can fail, steps, symbols, variables, and the constants in the order of their pool. Kernels of a
    device are in it as text.
  }];
  let options = [
    Option<"profile", "profile", "bool", /*default=*/"false", "call the trace hook around each kernel">,
    Option<"externalWeights", "external-weights", "bool", /*default=*/"false", "constants lie where PREFIX_bind_weights says">,
    Option<"separateBuffers", "separate-buffers", "bool", /*default=*/"false", "each buffer is a heap block of its own, for address sanitizers">,
    Option<"parallelWork", "parallel-work", "int64_t", /*default=*/"140000", "work from which a call is spread over threads">
  ];
  let statistics = [
    Statistic<"numKernels", "kernels", "distinct kernels">,
    Statistic<"numCalls", "calls", "kernel calls">,
    Statistic<"numFallbacks", "fallbacks", "kernels that lack a special form for types or features that it does not know">
  ];
}

#endif
