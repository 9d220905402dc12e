// The kernel dialect: one op per generated function. Each op holds a region of hlo ops on whole tensors
// that says what is computed; the op's name and attributes say with which loop nest.

#ifndef LATHE_KERNEL_TD
#define LATHE_KERNEL_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/kernel/KernelInterfaces.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::lathe::kernel";
  let summary = "units of code generation: loop nests around regions of hlo ops";
  let description = [{
    Every op here becomes one function of machine code. Operands and results are dense row-major tensors, unless attributes that say
    where they lie say otherwise; such attributes never change a value. `kernel.result_rows`, of a kernel op, has for each result the
    elements from one row, of its last dimension, to the next, or 0 where they are dense; `kernel.operand_rows` has the same for each
    operand. An `hlo.concatenate` may have them too. Its `kernel.joined`
    has for each operand whether it lies in the result from the beginning, so that nothing is copied.
    The region is isolated; its arguments stand for the operands (for the ops with a built-in core, such as
    `kernel.dot`, the first argument stands for the result of that core), and it ends in `kernel.yield`
    with one value per result. Locations do not influence the code.
  }];
  let hasOperationAttrVerify = 1;
}

class Kernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kernel_Dialect, mnemonic, !listconcat(traits, [Pure, IsolatedFromAbove, SingleBlock])> {
  let hasVerifier = 1;
}

// Ops whose region takes one argument per operand.
class Kernel_RegionOp<string mnemonic> : Kernel_Op<mnemonic> {
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
  let skipDefaultBuilders = 1;
  let builders = [
    // The body callback receives the block arguments and returns the values to yield.
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs,
      CArg<"::lathe::kernel::BodyBuilder", "nullptr">:$body)>
  ];
}

def Kernel_LoopOp : Kernel_RegionOp<"loop"> {
  let summary = "elemental loops";
  let description = [{
    The region computes every element of the outputs from few elements of the inputs (elementwise, broadcast,
    transpose, slice, pad, concatenate, iota, select, convert, reverse ...). All outputs have equal shape.

    ```mlir
    %r = kernel.loop(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
    ^bb0(%a: tensor<4x8xf32>):
      %t = "hlo.tanh"(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      kernel.yield %t : tensor<4x8xf32>
    }
    ```
  }];
}

def Kernel_ReduceOp : Kernel_RegionOp<"reduce"> {
  let summary = "reductions with elemental producers and consumers";
  let description = [{
    Elemental producers, one or more `hlo.reduce` over the same dimensions of equally shaped inputs, and
    elementwise consumers of their results. All outputs have the shape of the reduced tensor.
  }];
}

def Kernel_RowsOp : Kernel_RegionOp<"rows"> {
  let summary = "row-wise normalisations such as softmax and layer normalisation";
  let description = [{
    Elementwise ops and broadcasts over `[rows..., n...]`, reductions along the trailing dimensions and
    broadcasts of their results back over these dimensions. Emitted row by row.
  }];
}

// Ops with a built-in core; the region is the epilogue.
class Kernel_CoreOp<string mnemonic> : Kernel_Op<mnemonic> {
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` operands `)` attr-dict `:` functional-type(operands, $outputs) $body";
  let skipDefaultBuilders = 1;
  code coreDecl = [{
    /// The tensor of accumulators: result of the core, first argument of the epilogue.
    ::mlir::BlockArgument getAcc() { return getBody().getArgument(0); }
    ::mlir::RankedTensorType getAccType() { return ::mlir::cast<::mlir::RankedTensorType>(getAcc().getType()); }
    ::mlir::Block::BlockArgListType getExtraArgs() { return getBody().getArguments().drop_front(); }
  }];
  let extraClassDeclaration = coreDecl;
}

def Kernel_DotOp : Kernel_CoreOp<"dot"> {
  let summary = "matrix product with an epilogue";
  let description = [{
    acc[b..., m, n] = sum over k of lhs[b..., m, k] * rhs[b..., k, n].

    `lhs_dims` lists the dimensions of lhs in the order batch..., m, k; `rhs_dims` those of rhs in the order
    batch..., k, n; `result_dims` those of the result in the order batch..., m, n. So transposed operands and
    results need no copy (attention reads its heads in place). An operand without batch dimensions (two
    entries) is shared by the whole batch.

    With `layout`, an attribute of the backend that has prepared the op, rhs is packed as that says: one more dimension behind those of the
    batch, and `rhs_dims` is ignored. With `bf16` both operands (f32 or bf16) are rounded to bf16 as they are read, and the sums are f32.

    The region's first argument is the accumulator: shape of the result; f32 for f32, f16 and bf16 operands,
    f64 for f64, the result's element type for integers and complex numbers. Then one argument per extra
    operand. It yields the results, elementwise functions of the accumulator and of broadcast extras.

    ```mlir
    %r = kernel.dot(%x, %w, %bias) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>,
                                    result_dims = array<i64: 0, 1>}
        : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<4x16xf32> {
    ^bb0(%acc: tensor<4x16xf32>, %b: tensor<16xf32>):
      %0 = "hlo.broadcast_in_dim"(%b) {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<4x16xf32>
      %1 = "hlo.add"(%acc, %0) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      kernel.yield %1 : tensor<4x16xf32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs, Variadic<AnyRankedTensor>:$extras,
    DenseI64ArrayAttr:$lhs_dims, DenseI64ArrayAttr:$rhs_dims, DenseI64ArrayAttr:$result_dims,
    UnitAttr:$bf16, OptionalAttr<Kernel_LayoutAttrInterface>:$layout);
  let builders = [
    // Dimension lists default to the plain order batch..., m, k / batch..., k, n / batch..., m, n when empty.
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::Value":$lhs, "::mlir::Value":$rhs, "::mlir::ValueRange":$extras,
      "::mlir::ArrayRef<int64_t>":$lhsDims, "::mlir::ArrayRef<int64_t>":$rhsDims, "::mlir::ArrayRef<int64_t>":$resultDims,
      "::mlir::Type":$accElementType, CArg<"::lathe::kernel::BodyBuilder", "nullptr">:$body)>
  ];
  let extraClassDeclaration = coreDecl # [{
    int64_t getBatchRank() { return getResultDims().size() - 2; }
  }];
}

class Kernel_ConvLikeOp<string mnemonic> : Kernel_CoreOp<mnemonic> {
  let builders = [
    // Empty arrays mean: strides and dilations of one, no padding.
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::Value":$input, "::mlir::Value":$filter, "::mlir::ValueRange":$extras,
      "::mlir::ArrayRef<int64_t>":$strides, "::mlir::ArrayRef<int64_t>":$padding, "::mlir::ArrayRef<int64_t>":$lhsDilation,
      "::mlir::ArrayRef<int64_t>":$rhsDilation, "int64_t":$groups, "int64_t":$batchGroups, "::mlir::Type":$accElementType,
      CArg<"::lathe::kernel::BodyBuilder", "nullptr">:$body)>
  ];
}

def Kernel_ConvOp : Kernel_ConvLikeOp<"conv"> {
  let summary = "convolution with an epilogue";
  let description = [{
    Input `[n, spatial..., ic]`, filter `[spatial..., ic / groups, oc]`, result `[n, spatial..., oc]`, any
    number of spatial dimensions; meaning of strides, padding (low, high per dimension; may be negative),
    dilations, `groups` (feature_group_count) and `batch_groups` as in StableHLO's convolution. With `layout`, of the backend, the
    filter is packed as that says, and `kernel_shape` holds its spatial sizes. With `bf16` operands are rounded as for `kernel.dot`.
    The epilogue region is that of `kernel.dot`.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$filter, Variadic<AnyRankedTensor>:$extras,
    DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$lhs_dilation,
    DenseI64ArrayAttr:$rhs_dilation, DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$batch_groups,
    OptionalAttr<DenseI64ArrayAttr>:$kernel_shape, UnitAttr:$bf16, OptionalAttr<Kernel_LayoutAttrInterface>:$layout);
}

def Kernel_DepthwiseConvOp : Kernel_ConvLikeOp<"depthwise_conv"> {
  let summary = "depthwise convolution with an epilogue";
  let description = [{
    Input `[n, spatial..., c]`, filter `[spatial..., 1, c * multiplier]`, result `[n, spatial..., c * multiplier]`:
    a convolution with `groups` = c, vectorised over channels. Attributes as for `kernel.conv`.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$filter, Variadic<AnyRankedTensor>:$extras,
    DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$lhs_dilation,
    DenseI64ArrayAttr:$rhs_dilation, DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$batch_groups);
}

def Kernel_PoolOp : Kernel_CoreOp<"pool"> {
  let summary = "pooling windows with an epilogue";
  let description = [{
    Input `[n, spatial..., c]`, result of the same form. `kind` is "max", "min", "sum", "avg" (sum divided by
    the number of window elements inside the input) or "max_number", which starts at the lowest finite number and
    never takes a NaN. Arrays have one entry per spatial dimension, padding two.
    Padding counts as the identity of the kind.
  }];
  let arguments = (ins AnyRankedTensor:$input, Variadic<AnyRankedTensor>:$extras, StrAttr:$kind,
    DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$window_dilation);
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::Value":$input, "::mlir::ValueRange":$extras, "::mlir::StringRef":$kind,
      "::mlir::ArrayRef<int64_t>":$window, "::mlir::ArrayRef<int64_t>":$strides, "::mlir::ArrayRef<int64_t>":$padding,
      "::mlir::ArrayRef<int64_t>":$windowDilation, "::mlir::Type":$accElementType,
      CArg<"::lathe::kernel::BodyBuilder", "nullptr">:$body)>
  ];
}

def Kernel_ChainOp : Kernel_RegionOp<"chain"> {
  let summary = "a product and the depthwise convolution that reads it, part by part";
  let description = [{
    The region holds a `kernel.dot`, an `hlo.reshape` of its result `[n * h * w, c]` to images `[n, h, w, c]`, and the
    `kernel.depthwise_conv` over two spatial dimensions that reads them and gives the only result. A unit of work is a
    panel of channels in one of `strips` strips of an image: the product of the strip's pixels goes to scratch, where it
    stays in the cache, and the rows of the result that are complete with them are computed. A strip keeps what the next
    one reads of it.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$strips);
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs, "int64_t":$strips)>
  ];
  let extraClassDeclaration = [{
    ::lathe::kernel::DotOp getDot();
    ::lathe::kernel::DepthwiseConvOp getConv();
  }];
}

def Kernel_AttentionOp : Kernel_RegionOp<"attention"> {
  let summary = "two products and the rows between them, block by block";
  let description = [{
    The region holds a `kernel.dot` that gives scores `[batch..., m, n]` in this order, the `kernel.rows` over `n` that reads
    them beside other operands, row by row, and the `kernel.dot` `[batch..., m, n] x [batch..., n, d]` that reads its
    result as left operand and gives the only result; perhaps an `hlo.reshape` of the batch dimensions before or after the
    rows. A unit of work is one of `blocks` blocks of the rows of an entry of the batch: its scores go to scratch, where
    they stay in the cache. The right operands of an entry are packed once for all blocks that a call does.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$blocks);
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs, "int64_t":$blocks)>
  ];
  let extraClassDeclaration = [{
    ::lathe::kernel::DotOp getScores();
    ::lathe::kernel::RowsOp getRows();
    ::lathe::kernel::DotOp getProduct();
    /// The argument of the rows that stands for the scores.
    ::mlir::BlockArgument getScoresArg();

    /// Why these ops, of which each reads the one before through reshapes at most, are no such op; empty if they are.
    static ::llvm::StringRef whyNot(::lathe::kernel::DotOp scores, ::lathe::kernel::RowsOp rows,
                                    ::lathe::kernel::DotOp product);
  }];
}

def Kernel_YieldOp : Op<Kernel_Dialect, "yield", [Pure, Terminator,
    ParentOneOf<["LoopOp", "ReduceOp", "RowsOp", "DotOp", "ConvOp", "DepthwiseConvOp", "PoolOp", "ChainOp",
    "AttentionOp"]>]> {
  let summary = "ends the region of a kernel op";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; }]>];
}

#endif
