#ifndef LATHE_PASSES_CODEGEN_NVPTX_PASSES_TD
#define LATHE_PASSES_CODEGEN_NVPTX_PASSES_TD

include "mlir/Pass/PassBase.td"

def NarrowProducts : Pass<"nvptx-narrow-products", "::mlir::ModuleOp"> {
  let summary = "Multiply signed bytes that were widened before as bytes";
  let description = [{
    A `kernel.dot` with sums of i32 whose operands are both made by a `kernel.loop` that only converts signed bytes takes these as they are: tensor cores
    multiply bytes, and the sums are the same. A loop that nothing uses any more goes.
  }];
  let statistics = [Statistic<"numNarrowed", "num-narrowed", "Products narrowed">, Statistic<"numRefused", "num-refused", "Products left as they are">];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect"];
}

def SplitReductions : Pass<"nvptx-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Share long reductions to few results between blocks";
  let description = [{
    A `kernel.reduce` whose results keep only few blocks of threads busy, each of which adds up thousands of elements, becomes two: the
    first reduces parts of one dimension, as many as sizes alone say, the second what these are. Where parts do not divide the dimension it
    is padded by what changes no result. Sizes must be known; sums of floats narrower than f32 stay, as they would be rounded
    in between. Ops that the pass made are left alone.
  }];
  let statistics = [Statistic<"numSplit", "num-split", "Reductions split">, Statistic<"numRefused", "num-refused", "Reductions left as they are">];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect"];
}

def SplitProducts : Pass<"nvptx-split-products", "::mlir::ModuleOp"> {
  let summary = "Share deep products of few results between blocks";
  let description = [{
    A `kernel.dot` whose tiles keep only few blocks of threads busy and that sums up thousands of steps becomes one with a batch of parts of the
    depth, as many as sizes alone say and a divisor of it, and a `kernel.reduce` over these that has the epilogue. Operands are seen as
    more dimensions, not moved. A `kernel.conv` of a constant filter becomes one in groups, which divide the channels of its input.
    Sizes must be known; partial sums have the type of the sums. Ops that the pass made are left alone.
  }];
  let statistics = [Statistic<"numSplit", "num-split", "Products split">, Statistic<"numRefused", "num-refused", "Products left as they are">];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect"];
}

def SplitSorts : Pass<"nvptx-split-sorts", "::mlir::ModuleOp"> {
  let summary = "Share sorts of long lines, and the largest of them, between blocks";
  let description = [{
    An `hlo.sort` of lines of more than 2048 elements becomes a sort of runs, a power of two of them, and merges of two runs until one is left, which
    have the attribute `kernel.sorted_halves`. Where runs do not divide the line it is padded, and a first key puts what was padded
    last. An `hlo.top_k` of lines of more than 32 elements becomes stable sorts of parts of up to 2048 elements with their indices: the first k of each
    are what is sorted next, until one part is left; with a k above 512 the whole line is sorted. It stays where a thread has few to find
    in each of many lines. Where the length of lines is known at run time only, a sort has its operands twice and the attribute
    `kernel.sort_space`, and an `hlo.top_k` is the first k of such a sort.
  }];
  let statistics = [Statistic<"numSplit", "num-split", "Sorts split">, Statistic<"numRefused", "num-refused", "Sorts left as they are">];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect"];
}

def SplitScans : Pass<"nvptx-split-scans", "::mlir::ModuleOp"> {
  let summary = "Share running reductions of few long lines between blocks";
  let description = [{
    An `hlo.reduce_window` that runs along few long lines becomes one along parts of them, as many as sizes alone say, one along what the parts
    have, and a loop that brings both together. Where parts do not divide the line it is padded by what changes nothing. Sizes must be
    known, and sums and products of one operand must begin with a constant that changes nothing.
  }];
  let statistics = [Statistic<"numSplit", "num-split", "Running reductions split">, Statistic<"numRefused", "num-refused", "Running reductions left as they are">];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect"];
}

def SplitFfts : Pass<"nvptx-split-ffts", "::mlir::ModuleOp"> {
  let summary = "Make Fourier transforms of several dimensions, or of long lines, of short lines";
  let description = [{
    An `hlo.fft` of several dimensions becomes one of lines for each, turned to the end. Complex lines that do not fit the shared memory of a
    block, up to 2^20 numbers, become two transforms of lines of about the square root of their length, between which numbers are multiplied by roots
    of one; real ones are made complex before. Sizes must be known; lengths with a prime factor above 13 are left as they are.
  }];
  let statistics = [Statistic<"numSplit", "num-split", "Transforms split">, Statistic<"numRefused", "num-refused", "Transforms left as they are">];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect"];
}

#endif
