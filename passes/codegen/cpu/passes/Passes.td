#ifndef LATHE_PASSES_CODEGEN_CPU_PASSES_TD
#define LATHE_PASSES_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def PackWeights : Pass<"kernel-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Lay constant operands of products and convolutions out in panels";
  let description = [{
    Rewrites the constant right operand of `kernel.dot` and the constant filter of `kernel.conv` to zero-padded
    panels `[n / panel][k][panel]` in the order in which the register tiles of the target read them, and sets `layout`
    to `#cpu.panels`.
    Convolutions of stride 1 in f32 with up to seven taps in one direction or both are done by Winograd's algorithm, as
    F(4x4, 3x3), F(4x4, 5x5) or F(2, 7) (`#cpu.winograd`, filters transformed in double), where estimates say that it is faster and a sample with the actual filter that its error
    stays below the limit; never with `exact`. Bytes that are multiplied in pairs of 16 bits (x86 without VNNI) are done as F(2, 3), exactly. So are f32 products of enough rows, columns and steps for each thread done by one level of Strassen's
    algorithm (`#cpu.strassen`).
    Equal constants are packed once. Operands of unknown size, complex ones and those that are not constant stay
    as they are. Packed ops are left alone, so the pass is idempotent.
  }];
  let options = [
    Option<"explain", "explain", "bool", "false", "A remark at each convolution that Winograd does not compute">,
    Option<"release", "release", "bool", "false", "Free constants that only exist packed from then on; no other module may use them">
  ];
  let statistics = [
    Statistic<"numPacked", "num-packed", "Operands that were packed">,
    Statistic<"numWinograd", "num-winograd", "Convolutions done by Winograd's algorithm">,
    Statistic<"numStrassen", "num-strassen", "Products done by Strassen's algorithm">,
    Statistic<"refusedExact", "refused-exact", "3x3 convolutions kept direct: exact results are asked for">,
    Statistic<"refusedNotFaster", "refused-not-faster", "3x3 convolutions kept direct: estimated to be as fast">,
    Statistic<"refusedInexact", "refused-inexact", "3x3 convolutions kept direct: too much accuracy lost">
  ];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect", "::lathe::cpu::CpuDialect"];
}

def ChainKernels : Pass<"kernel-chain", "::mlir::ModuleOp"> {
  let summary = "Join products and the depthwise convolutions that read them";
  let description = [{
    A `kernel.dot` whose only reader is a `kernel.depthwise_conv`, through a reshape to images, becomes one `kernel.chain`
    with it: the product of some pixels with one panel of its weights is read while it is in the cache, where its pixels lie
    side by side whatever the number of channels. Strips are as high as the cache allows; where those would be lower than the
    windows, or where several threads would compute too many rows twice, the ops stay apart. f32, or rows and weights of bf16
    without AMX. The values are the same.
  }];
  let statistics = [Statistic<"numChains", "num-chains", "Chains made">];
  let dependentDialects = ["::lathe::kernel::KernelDialect"];
}

def FuseAttention : Pass<"kernel-attention", "::mlir::ModuleOp"> {
  let summary = "Join scores, what their rows become and the product with it";
  let description = [{
    A `kernel.dot` whose only reader is a `kernel.rows` along its columns, a softmax say, whose only reader is a `kernel.dot`
    that has it as left operand, becomes one `kernel.attention` with them, reshapes of batch dimensions between them
    included: scores stay in the cache. Blocks of rows are as high as the cache allows and threads share. Static shapes,
    f32. A few rows stay apart, for which packing the right operands would not pay, and so do rows of a few elements, which
    are computed many at a time; for one thread, scores that half of L2 holds. The values are the same.
  }];
  let statistics = [Statistic<"numFused", "num-fused", "Attentions made">];
  let dependentDialects = ["::lathe::kernel::KernelDialect"];
}

def PadWindows : Pass<"kernel-pad-windows", "::mlir::ModuleOp"> {
  let summary = "Let convolutions of bytes add the border of their images";
  let description = [{
    A `kernel.loop` that only puts a border of one number around images, before a `kernel.depthwise_conv` that multiplies several bytes
    at once or a packed `kernel.conv` that copies rows of its image anyway, is left out: the convolution gets the padding, and the number
    in the attribute `kernel.pad_value`, which these forms alone know. The values are the same. A second run changes nothing.
  }];
  let statistics = [Statistic<"numTaken", "num-taken", "Borders that convolutions add">];
  let dependentDialects = ["::lathe::kernel::KernelDialect"];
}

def PlaceParts : Pass<"kernel-place-parts", "::mlir::ModuleOp"> {
  let summary = "Let the producers of a concatenation's parts write them where they belong";
  let description = [{
    A part that is the result of a kernel op, or a reshape of it, is marked in the attribute `kernel.joined` of its
    `hlo.concatenate`, whose buffer it shares from then on. Along the last dimension its producer gets the attribute
    `kernel.result_rows`, the elements of a row of the whole: products, convolutions, pools, chains, loops and other
    concatenations write rows that lie apart. What else reads the part gets `kernel.operand_rows`: loops by the index of their
    result, pools, depthwise convolutions, products their left operand, concatenations. Where anything else reads it, it is copied; so it
    is where it has left the caches by then, and where pixels so far apart would share few sets of the first cache. Where all dimensions before that of the concatenation are one, a part is in one run, and any kernel may write it. What is
    not marked is copied as before; where all parts are, no code is left. Works on what lowering sees: after packing and chains.
    The values are the same, but for the order in which an average pool adds up. A second run changes nothing.
  }];
  let statistics = [Statistic<"numPlaced", "num-placed", "Parts that are written in place">];
  let dependentDialects = ["::lathe::kernel::KernelDialect"];
}

def UseBf16 : Pass<"kernel-bf16", "::mlir::ModuleOp"> {
  let summary = "Compute products and convolutions from bf16 operands";
  let description = [{
    Marks `kernel.dot` and `kernel.conv` ops of f32 `bf16` where depth and columns are known and no fewer than a vector,
    rounds constant right operands to bf16 and packs them in pairs. A tensor that only marked ops read is kept in bf16,
    and so is a large one between kernels of which one is marked: its producer rounds at the store, its readers widen at
    the load. Entry results and tensors that anything else reads stay f32, and so do small products after which no other
    comes. Without AMX, convolutions that Winograd's algorithm does faster in f32 are left to it. On a target without AVX512_BF16
    the pass does nothing. Marked ops are left alone, so the pass is idempotent.
  }];
  let statistics = [
    Statistic<"numMarked", "num-marked", "Products and convolutions that take bf16 operands">
  ];
  let dependentDialects = ["::lathe::hlo::HloDialect", "::lathe::kernel::KernelDialect", "::lathe::cpu::CpuDialect"];
}

#endif
