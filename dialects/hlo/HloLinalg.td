// Products, convolutions, factorisations, transforms, batch normalisation.
#ifndef LATHE_HLO_LINALG
#define LATHE_HLO_LINALG

include "dialects/hlo/HloBase.td"

def HLO_DotOp : HLO_InferredOp<"dot", [Pure], "inferTypes", "areCompatibleShapes"> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs, HLO_PrecisionConfig:$precision_config);
  let results = (outs HLO_Tensor:$result);
}

def HLO_DotGeneralOp : HLO_InferredOp<"dot_general", [Pure], "inferTypes", "areCompatibleShapes"> {
  let description = [{
    Result dimensions: batching, the rest of lhs, the rest of rhs. The result's element type may be wider than the
    operands' (int8 x int8 -> int32): products are then formed in it.
  }];
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs, HLO_DotDimensionNumbers:$dot_dimension_numbers,
                       HLO_PrecisionConfig:$precision_config);
  let results = (outs HLO_Tensor:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, "DotDimensionNumbersAttr":$dims,
                   CArg<"::mlir::Type", "{}">:$elementType)>];
}

defvar HLO_ConvAttributes = (ins
  OptionalAttr<DenseI64ArrayAttr>:$window_strides, OptionalAttr<I64ElementsAttr>:$padding,
  OptionalAttr<DenseI64ArrayAttr>:$lhs_dilation, OptionalAttr<DenseI64ArrayAttr>:$rhs_dilation,
  OptionalAttr<DenseBoolArrayAttr>:$window_reversal, HLO_ConvDimensionNumbers:$dimension_numbers,
  I64Attr:$feature_group_count, I64Attr:$batch_group_count, HLO_PrecisionConfig:$precision_config);

def HLO_ConvolutionOp : HLO_InferredOp<"convolution", [Pure], "inferTypes", "areCompatibleShapes"> {
  let arguments = !con((ins HLO_Tensor:$lhs, HLO_Tensor:$rhs), HLO_ConvAttributes);
  let results = (outs HLO_Tensor:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, "const ConvWindow &":$window,
                   "ConvDimensionNumbersAttr":$dims, CArg<"int64_t", "1">:$featureGroupCount,
                   CArg<"int64_t", "1">:$batchGroupCount, CArg<"::mlir::Type", "{}">:$elementType)>];
}
def HLO_DynamicConvOp : HLO_Op<"dynamic_conv", [Pure]> {
  let arguments = !con((ins HLO_Tensor:$lhs, HLO_Tensor:$rhs, HLO_IntTensor:$d_padding), HLO_ConvAttributes);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

def HLO_CholeskyOp : HLO_InferredOp<"cholesky", [Pure]> {
  let description = [{Only the triangle named by `lower` is read; the other triangle of the result is zero. NaN where the matrix is not positive definite.}];
  let arguments = (ins HLO_FpOrComplexTensor:$a, DefaultValuedOptionalAttr<BoolAttr, "false">:$lower);
  let results = (outs HLO_FpOrComplexTensor:$result);
}
def HLO_TriangularSolveOp : HLO_InferredOp<"triangular_solve", [Pure]> {
  let arguments = (ins HLO_FpOrComplexTensor:$a, HLO_FpOrComplexTensor:$b, BoolAttr:$left_side, BoolAttr:$lower,
                       BoolAttr:$unit_diagonal, HLO_TransposeAttr:$transpose_a);
  let results = (outs HLO_FpOrComplexTensor:$result);
}
def HLO_FftOp : HLO_InferredOp<"fft", [Pure]> {
  let arguments = (ins HLO_TensorOf<[F32, F64, HLO_Complex], "ranked tensor of f32, f64 or complex numbers">:$operand,
                       HLO_FftTypeAttr:$fft_type, DenseI64ArrayAttr:$fft_length);
  let results = (outs HLO_Tensor:$result);
}

class HLO_MatrixOp<string mnemonic> : HLO_InferredOp<mnemonic, [Pure]>;
def HLO_QrOp : HLO_MatrixOp<"qr"> {
  let summary = "reduced (or full) QR decomposition of [..., m, n]";
  let arguments = (ins HLO_FpOrComplexTensor:$a, DefaultValuedOptionalAttr<BoolAttr, "false">:$full_matrices);
  let results = (outs HLO_FpOrComplexTensor:$q, HLO_FpOrComplexTensor:$r);
}
def HLO_EighOp : HLO_MatrixOp<"eigh"> {
  let summary = "eigenvalues (ascending) and vectors (columns) of self-adjoint matrices; reads the lower triangle";
  let arguments = (ins HLO_FpOrComplexTensor:$a);
  let results = (outs HLO_FpTensor:$values, HLO_FpOrComplexTensor:$vectors);
}
def HLO_EigOp : HLO_MatrixOp<"eig"> {
  let summary = "eigenvalues (ascending magnitude) and unit vectors (columns) of general matrices, complex";
  let arguments = (ins HLO_FpOrComplexTensor:$a);
  let results = (outs HLO_FpOrComplexTensor:$values, HLO_FpOrComplexTensor:$vectors);
}
def HLO_SvdOp : HLO_MatrixOp<"svd"> {
  let summary = "a = u diag(s) v^H, s descending";
  let arguments = (ins HLO_FpOrComplexTensor:$a, DefaultValuedOptionalAttr<BoolAttr, "false">:$full_matrices);
  let results = (outs HLO_FpTensor:$s, HLO_FpOrComplexTensor:$u, HLO_FpOrComplexTensor:$v);
}
def HLO_LuOp : HLO_MatrixOp<"lu"> {
  let summary = "P a = L U with partial pivoting: L and U packed, and the row permutation (i32)";
  let arguments = (ins HLO_FpOrComplexTensor:$a);
  let results = (outs HLO_FpOrComplexTensor:$lu, HLO_IntTensor:$permutation);
}

def HLO_BatchNormInferenceOp : HLO_InferredOp<"batch_norm_inference", [Pure]> {
  let arguments = (ins HLO_FpTensor:$operand, HLO_FpTensor:$scale, HLO_FpTensor:$offset, HLO_FpTensor:$mean,
                       HLO_FpTensor:$variance, F32Attr:$epsilon, I64Attr:$feature_index);
  let results = (outs HLO_FpTensor:$result);
}
def HLO_BatchNormTrainingOp : HLO_InferredOp<"batch_norm_training", [Pure]> {
  let arguments = (ins HLO_FpTensor:$operand, HLO_FpTensor:$scale, HLO_FpTensor:$offset, F32Attr:$epsilon,
                       I64Attr:$feature_index);
  let results = (outs HLO_FpTensor:$output, HLO_FpTensor:$batch_mean, HLO_FpTensor:$batch_var);
}
def HLO_BatchNormGradOp : HLO_InferredOp<"batch_norm_grad", [Pure]> {
  let arguments = (ins HLO_FpTensor:$operand, HLO_FpTensor:$scale, HLO_FpTensor:$mean, HLO_FpTensor:$variance,
                       HLO_FpTensor:$grad_output, F32Attr:$epsilon, I64Attr:$feature_index);
  let results = (outs HLO_FpTensor:$grad_operand, HLO_FpTensor:$grad_scale, HLO_FpTensor:$grad_offset);
}

#endif
