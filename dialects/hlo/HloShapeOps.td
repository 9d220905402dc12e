// Constants, sizes, and ops that move elements without computing on them.
#ifndef LATHE_HLO_SHAPE_OPS
#define LATHE_HLO_SHAPE_OPS

include "dialects/hlo/HloBase.td"

defvar HLO_functional = "operands attr-dict `:` functional-type(operands, results)";

def HLO_ConstantOp : HLO_InferredOp<"constant", [Pure, ConstantLike]> {
  let arguments = (ins ElementsAttr:$value);
  let results = (outs HLO_Tensor:$output);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def HLO_SizeOp : HLO_Op<"size", [Pure]> {
  let summary = "sizes as data: the expressions of the map in a scalar (one expression) or a vector";
  let description = [{`hlo.size affine_map<()[s0] -> (s0 * 2)> : tensor<i64>`. The result is of any integer type.}];
  let arguments = (ins AffineMapAttr:$map);
  let results = (outs HLO_IntTensor:$result);
  let builders = [
    OpBuilder<(ins "::mlir::AffineExpr":$expr, CArg<"::mlir::Type", "{}">:$elementType)>,
    OpBuilder<(ins "::llvm::ArrayRef<::mlir::AffineExpr>":$exprs, CArg<"::mlir::Type", "{}">:$elementType)>];
  let assemblyFormat = "$map attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def HLO_SetSizeOp : HLO_Op<"set_size"> {
  let summary = "gives a data symbol its value";
  let description = [{
    Symbol `symbol` becomes `operand`. A run-time error at `node` if it is negative or above the symbol's bound. Stands
    before all users of the symbol.
  }];
  let arguments = (ins HLO_IntTensor:$operand, I64Attr:$symbol, DefaultValuedOptionalAttr<StrAttr, "\"\"">:$node);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let hasVerifier = 1;
}

def HLO_AssumeShapeOp : HLO_Op<"assume_shape"> {
  let summary = "the operand under another symbolic shape, with a run-time check that the sizes agree";
  let arguments = (ins HLO_OpaqueTensor:$operand, DefaultValuedOptionalAttr<StrAttr, "\"\"">:$message,
                       DefaultValuedOptionalAttr<StrAttr, "\"\"">:$node);
  let results = (outs HLO_OpaqueTensor:$result);
  let assemblyFormat = HLO_functional;
  let hasVerifier = 1;
  let hasFolder = 1;
}

def HLO_IotaOp : HLO_Op<"iota", [Pure]> {
  let arguments = (ins I64Attr:$iota_dimension);
  let results = (outs HLO_NumericTensor:$output);
  let assemblyFormat = "`dim` `=` $iota_dimension attr-dict `:` type($output)";
  let hasVerifier = 1;
}
def HLO_DynamicIotaOp : HLO_Op<"dynamic_iota", [Pure]> {
  let arguments = (ins HLO_IntTensor:$output_shape, I64Attr:$iota_dimension);
  let results = (outs HLO_NumericTensor:$result);
  let hasVerifier = 1;
}

def HLO_ReshapeOp : HLO_Op<"reshape", [Pure]> {
  let arguments = (ins HLO_OpaqueTensor:$operand);
  let results = (outs HLO_OpaqueTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<::mlir::AffineExpr>":$dims)>,
                  OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$dims)>];
  let assemblyFormat = HLO_functional;
  let hasVerifier = 1;
  let hasFolder = 1;
}
def HLO_DynamicReshapeOp : HLO_Op<"dynamic_reshape", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, HLO_IntTensor:$output_shape);
  let results = (outs HLO_MovedTensor:$result);
  let assemblyFormat = HLO_functional;
  let hasVerifier = 1;
}

def HLO_BroadcastInDimOp : HLO_Op<"broadcast_in_dim", [Pure]> {
  let arguments = (ins HLO_OpaqueTensor:$operand, DenseI64ArrayAttr:$broadcast_dimensions);
  let results = (outs HLO_OpaqueTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<::mlir::AffineExpr>":$dims,
                                 "::llvm::ArrayRef<int64_t>":$broadcastDimensions)>];
  let assemblyFormat = "$operand `,` `dims` `=` $broadcast_dimensions attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def HLO_DynamicBroadcastInDimOp : HLO_Op<"dynamic_broadcast_in_dim", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, HLO_IntTensor:$output_dimensions, DenseI64ArrayAttr:$broadcast_dimensions,
                       OptionalAttr<DenseI64ArrayAttr>:$known_expanding_dimensions,
                       OptionalAttr<DenseI64ArrayAttr>:$known_nonexpanding_dimensions);
  let results = (outs HLO_MovedTensor:$result);
  let hasVerifier = 1;
}
def HLO_BroadcastOp : HLO_InferredOp<"broadcast", [Pure]> {
  let summary = "adds leading dimensions (kept for old programs, see broadcast_in_dim)";
  let arguments = (ins HLO_MovedTensor:$operand, DenseI64ArrayAttr:$broadcast_sizes);
  let results = (outs HLO_MovedTensor:$result);
}

def HLO_TransposeOp : HLO_InferredOp<"transpose", [Pure]> {
  let arguments = (ins HLO_OpaqueTensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs HLO_OpaqueTensor:$result);
  let assemblyFormat = "$operand `,` `dims` `=` $permutation attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}
def HLO_ReverseOp : HLO_InferredOp<"reverse", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, DenseI64ArrayAttr:$dimensions);
  let results = (outs HLO_MovedTensor:$result);
  let assemblyFormat = "$operand `,` `dims` `=` $dimensions attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}
def HLO_ConcatenateOp : HLO_InferredOp<"concatenate", [Pure]> {
  let arguments = (ins Variadic<HLO_MovedTensor>:$inputs, I64Attr:$dimension);
  let results = (outs HLO_MovedTensor:$result);
  let assemblyFormat = "$inputs `dim` `=` $dimension attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def HLO_SliceOp : HLO_InferredOp<"slice", [Pure]> {
  let description = [{
    A start or limit of INT64_MIN is symbolic: result k of `start_map` / `limit_map`. A symbolic limit without map is
    the operand's size.
  }];
  let arguments = (ins HLO_MovedTensor:$operand, DenseI64ArrayAttr:$start_indices, DenseI64ArrayAttr:$limit_indices,
                       DenseI64ArrayAttr:$strides, OptionalAttr<AffineMapAttr>:$start_map,
                       OptionalAttr<AffineMapAttr>:$limit_map);
  let results = (outs HLO_MovedTensor:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$starts, "::llvm::ArrayRef<int64_t>":$limits,
                   "::llvm::ArrayRef<int64_t>":$strides)>,
    OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<::mlir::AffineExpr>":$starts,
                   "::llvm::ArrayRef<::mlir::AffineExpr>":$limits, "::llvm::ArrayRef<int64_t>":$strides)>];
  let extraClassDeclaration = inferDeclaration # [{
    /// Starts and limits with symbolic ones put in.
    ::llvm::SmallVector<::mlir::AffineExpr> getStartExprs();
    ::llvm::SmallVector<::mlir::AffineExpr> getLimitExprs();
  }];
  let assemblyFormat = HLO_functional;
  let hasFolder = 1;
}
def HLO_RealDynamicSliceOp : HLO_Op<"real_dynamic_slice", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, HLO_IntTensor:$start_indices, HLO_IntTensor:$limit_indices,
                       HLO_IntTensor:$strides);
  let results = (outs HLO_MovedTensor:$result);
  let hasVerifier = 1;
}
def HLO_DynamicSliceOp : HLO_InferredOp<"dynamic_slice", [Pure]> {
  let description = [{
    Starts are clamped so that the slice lies inside. A size of INT64_MIN is symbolic: result k of `size_map`, or
    without map the operand's size.
  }];
  let arguments = (ins HLO_MovedTensor:$operand, Variadic<HLO_IntTensor>:$start_indices, DenseI64ArrayAttr:$slice_sizes,
                       OptionalAttr<AffineMapAttr>:$size_map);
  let results = (outs HLO_MovedTensor:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$operand, "::mlir::ValueRange":$starts, "::llvm::ArrayRef<int64_t>":$sizes)>,
    OpBuilder<(ins "::mlir::Value":$operand, "::mlir::ValueRange":$starts, "::llvm::ArrayRef<::mlir::AffineExpr>":$sizes)>];
}
def HLO_DynamicUpdateSliceOp : HLO_InferredOp<"dynamic_update_slice", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, HLO_MovedTensor:$update, Variadic<HLO_IntTensor>:$start_indices);
  let results = (outs HLO_MovedTensor:$result);
  let assemblyFormat = HLO_functional;
}

def HLO_PadOp : HLO_InferredOp<"pad", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, HLO_MovedTensor:$padding_value, DenseI64ArrayAttr:$edge_padding_low,
                       DenseI64ArrayAttr:$edge_padding_high, DenseI64ArrayAttr:$interior_padding);
  let results = (outs HLO_MovedTensor:$result);
  let assemblyFormat = "$operand `,` $padding_value `,` `low` `=` $edge_padding_low `,` `high` `=` $edge_padding_high `,` `interior` `=` $interior_padding attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}
def HLO_DynamicPadOp : HLO_Op<"dynamic_pad", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, HLO_MovedTensor:$padding_value, HLO_IntTensor:$edge_padding_low,
                       HLO_IntTensor:$edge_padding_high, HLO_IntTensor:$interior_padding);
  let results = (outs HLO_MovedTensor:$result);
  let hasVerifier = 1;
}

def HLO_GatherOp : HLO_InferredOp<"gather", [Pure]> {
  let description = [{A slice size of INT64_MIN is the operand's size.}];
  let arguments = (ins HLO_MovedTensor:$operand, HLO_IntTensor:$start_indices, HLO_GatherDimensionNumbers:$dimension_numbers,
                       DenseI64ArrayAttr:$slice_sizes, DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
  let results = (outs HLO_MovedTensor:$result);
}
def HLO_DynamicGatherOp : HLO_Op<"dynamic_gather", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, HLO_IntTensor:$start_indices, HLO_IntTensor:$slice_sizes,
                       HLO_GatherDimensionNumbers:$dimension_numbers,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
  let results = (outs HLO_MovedTensor:$result);
  let hasVerifier = 1;
}
def HLO_TorchIndexSelectOp : HLO_Op<"torch_index_select", [Pure]> {
  let arguments = (ins HLO_MovedTensor:$operand, HLO_IntTensor:$index, I64Attr:$dim, I64Attr:$batch_dims);
  let results = (outs HLO_MovedTensor:$result);
  let hasVerifier = 1;
}

def HLO_GetDimensionSizeOp : HLO_InferredOp<"get_dimension_size", [Pure]> {
  let arguments = (ins HLO_OpaqueTensor:$operand, I64Attr:$dimension);
  let results = (outs HLO_IntTensor:$result);
  let hasFolder = 1;
}
def HLO_SetDimensionSizeOp : HLO_Op<"set_dimension_size", [Pure]> {
  let summary = "the first `size` elements along a dimension";
  let arguments = (ins HLO_MovedTensor:$operand, HLO_IntTensor:$size, I64Attr:$dimension);
  let results = (outs HLO_MovedTensor:$result);
  let hasVerifier = 1;
}

def HLO_UniqueOp : HLO_Op<"unique"> {
  let summary = "distinct slices along `axis` in the order of their first occurrence";
  let description = [{
    Results: the distinct values; for each slice of the operand its place among them; how often each occurs. Writes the
    number of distinct values to symbol `symbol`, which is the size of `values` along `axis` and of `counts`.
  }];
  let arguments = (ins HLO_Tensor:$operand, I64Attr:$symbol, DefaultValuedOptionalAttr<I64Attr, "0">:$axis);
  let results = (outs HLO_Tensor:$values, HLO_IntTensor:$indices, HLO_IntTensor:$counts);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "int64_t":$symbol, "int64_t":$axis, "::mlir::Type":$indexType)>];
  let assemblyFormat = HLO_functional;
  let hasVerifier = 1;
}
def HLO_WhereOp : HLO_Op<"where"> {
  let summary = "indices of the elements that are not zero, in row-major order: [count, rank]";
  let arguments = (ins HLO_Tensor:$operand, I64Attr:$symbol);
  let results = (outs HLO_IntTensor:$indices);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "int64_t":$symbol)>];
  let assemblyFormat = HLO_functional;
  let hasVerifier = 1;
}

#endif
