// Ops with a computation per element group in a region: reductions, windows, scatter, sort, map; and top_k.
#ifndef LATHE_HLO_REDUCE
#define LATHE_HLO_REDUCE

include "dialects/hlo/HloBase.td"

defvar HLO_bodyType = "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>";

def HLO_ReduceOp : HLO_InferredOp<"reduce", [RecursiveMemoryEffects, SameVariadicOperandSize]> {
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, Variadic<HLO_Tensor>:$init_values, DenseI64ArrayAttr:$dimensions);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<HLO_Tensor>);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::ValueRange":$inits,
                                 "::llvm::ArrayRef<int64_t>":$dimensions, HLO_bodyType:$body)>];
  let hasRegionVerifier = 1;
}

def HLO_ReduceWindowOp : HLO_InferredOp<"reduce_window", [RecursiveMemoryEffects, SameVariadicOperandSize]> {
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, Variadic<HLO_Tensor>:$init_values,
                       DenseI64ArrayAttr:$window_dimensions, OptionalAttr<DenseI64ArrayAttr>:$window_strides,
                       OptionalAttr<DenseI64ArrayAttr>:$base_dilations, OptionalAttr<DenseI64ArrayAttr>:$window_dilations,
                       OptionalAttr<I64ElementsAttr>:$padding);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<HLO_Tensor>);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::ValueRange":$inits,
                                 "::llvm::ArrayRef<int64_t>":$windowDimensions, "const ReduceWindow &":$window,
                                 HLO_bodyType:$body)>];
  let hasRegionVerifier = 1;
}

def HLO_SelectAndScatterOp : HLO_InferredOp<"select_and_scatter", [RecursiveMemoryEffects]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_Tensor:$source, HLO_Tensor:$init_value,
                       OptionalAttr<DenseI64ArrayAttr>:$window_dimensions, OptionalAttr<DenseI64ArrayAttr>:$window_strides,
                       OptionalAttr<I64ElementsAttr>:$padding);
  let regions = (region SizedRegion<1>:$select, SizedRegion<1>:$scatter);
  let results = (outs HLO_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Value":$source, "::mlir::Value":$init,
                                 "::llvm::ArrayRef<int64_t>":$windowDimensions, "const ReduceWindow &":$window,
                                 HLO_bodyType:$select, HLO_bodyType:$scatter)>];
  let hasRegionVerifier = 1;
}

def HLO_ScatterOp : HLO_InferredOp<"scatter", [RecursiveMemoryEffects, SameVariadicOperandSize]> {
  let description = [{Indices out of range are skipped. The operands come in StableHLO's order: inputs, indices, updates.}];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, HLO_IntTensor:$scatter_indices, Variadic<HLO_Tensor>:$updates,
                       HLO_ScatterDimensionNumbers:$scatter_dimension_numbers,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$unique_indices);
  let regions = (region SizedRegion<1>:$update_computation);
  let results = (outs Variadic<HLO_Tensor>);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::Value":$indices, "::mlir::ValueRange":$updates,
                                 "ScatterDimensionNumbersAttr":$dims, "bool":$sorted, "bool":$unique, HLO_bodyType:$body)>];
  let hasRegionVerifier = 1;
}

def HLO_SortOp : HLO_InferredOp<"sort", [RecursiveMemoryEffects]> {
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, DefaultValuedOptionalAttr<I64Attr, "-1">:$dimension,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$is_stable);
  let regions = (region SizedRegion<1>:$comparator);
  let results = (outs Variadic<HLO_Tensor>);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "int64_t":$dimension, "bool":$stable, HLO_bodyType:$body)>];
  let hasRegionVerifier = 1;
}

def HLO_MapOp : HLO_InferredOp<"map", [RecursiveMemoryEffects]> {
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, DenseI64ArrayAttr:$dimensions);
  let regions = (region SizedRegion<1>:$computation);
  let results = (outs HLO_Tensor:$result);
  let hasRegionVerifier = 1;
}

def HLO_TopKOp : HLO_InferredOp<"top_k", [Pure]> {
  let summary = "the k largest of the last dimension, descending, the lower index first among equals; indices are i32";
  let description = [{NaN counts as larger than every number.}];
  let arguments = (ins HLO_IntOrFpTensor:$operand, I64Attr:$k);
  let results = (outs HLO_IntOrFpTensor:$values, HLO_IntTensor:$indices);
  let assemblyFormat = "$operand `,` `k` `=` $k attr-dict `:` functional-type(operands, results)";
}

#endif
