// Elementwise ops: equal shapes in, the same shape out. Broadcasting is always explicit (broadcast_in_dim).
#ifndef LATHE_HLO_ELEMENTWISE
#define LATHE_HLO_ELEMENTWISE

include "dialects/hlo/HloBase.td"

def HLO_Elementwise : NativeOpTrait<"HloElementwise"> { let cppNamespace = "::lathe::hlo"; }

// `fn` says how the result's element type follows from the operands'.
class HLO_ElementwiseOp<string mnemonic, list<Trait> traits, string fn>
    : HLO_InferredOp<mnemonic, traits # [Pure, HLO_Elementwise], fn>;

class HLO_UnaryOp<string mnemonic, Type type, string fn = "inferSame"> : HLO_ElementwiseOp<mnemonic, [], fn> {
  let arguments = (ins type:$operand);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` custom<ElementwiseTypes>(type($operand), type($result))";
}
class HLO_BinaryOp<string mnemonic, Type type, list<Trait> traits = [], string fn = "inferSame", Type resultType = HLO_Tensor>
    : HLO_ElementwiseOp<mnemonic, traits, fn> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs resultType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` custom<ElementwiseTypes>(type($lhs), type($rhs), type($result))";
}

// StableHLO, one operand
def HLO_AbsOp : HLO_UnaryOp<"abs", HLO_NumericTensor, "inferReal">;
def HLO_CbrtOp : HLO_UnaryOp<"cbrt", HLO_FpOrComplexTensor>;
def HLO_CeilOp : HLO_UnaryOp<"ceil", HLO_FpTensor>;
def HLO_ClzOp : HLO_UnaryOp<"count_leading_zeros", HLO_IntTensor>;
def HLO_CosineOp : HLO_UnaryOp<"cosine", HLO_FpOrComplexTensor>;
def HLO_ExpOp : HLO_UnaryOp<"exponential", HLO_FpOrComplexTensor>;
def HLO_Expm1Op : HLO_UnaryOp<"exponential_minus_one", HLO_FpOrComplexTensor>;
def HLO_FloorOp : HLO_UnaryOp<"floor", HLO_FpTensor>;
def HLO_ImagOp : HLO_UnaryOp<"imag", HLO_FpOrComplexTensor, "inferReal">;
def HLO_IsFiniteOp : HLO_UnaryOp<"is_finite", HLO_FpTensor, "inferBool">;
def HLO_LogOp : HLO_UnaryOp<"log", HLO_FpOrComplexTensor>;
def HLO_Log1pOp : HLO_UnaryOp<"log_plus_one", HLO_FpOrComplexTensor>;
def HLO_LogisticOp : HLO_UnaryOp<"logistic", HLO_FpOrComplexTensor>;
def HLO_NegOp : HLO_UnaryOp<"negate", HLO_NumericTensor> { let hasFolder = 1; }
def HLO_NotOp : HLO_UnaryOp<"not", HLO_PredOrIntTensor> { let hasFolder = 1; }
def HLO_PopulationCountOp : HLO_UnaryOp<"popcnt", HLO_IntTensor>;
def HLO_RealOp : HLO_UnaryOp<"real", HLO_FpOrComplexTensor, "inferReal">;
def HLO_RoundOp : HLO_UnaryOp<"round_nearest_afz", HLO_FpTensor>;
def HLO_RoundNearestEvenOp : HLO_UnaryOp<"round_nearest_even", HLO_FpTensor>;
def HLO_RsqrtOp : HLO_UnaryOp<"rsqrt", HLO_FpOrComplexTensor>;
def HLO_SignOp : HLO_UnaryOp<"sign", HLO_NumericTensor>;
def HLO_SineOp : HLO_UnaryOp<"sine", HLO_FpOrComplexTensor>;
def HLO_SqrtOp : HLO_UnaryOp<"sqrt", HLO_FpOrComplexTensor>;
def HLO_TanOp : HLO_UnaryOp<"tan", HLO_FpOrComplexTensor>;
def HLO_TanhOp : HLO_UnaryOp<"tanh", HLO_FpOrComplexTensor>;

// CHLO and further functions, one operand
def HLO_AcosOp : HLO_UnaryOp<"acos", HLO_FpOrComplexTensor>;
def HLO_AcoshOp : HLO_UnaryOp<"acosh", HLO_FpOrComplexTensor>;
def HLO_AsinOp : HLO_UnaryOp<"asin", HLO_FpOrComplexTensor>;
def HLO_AsinhOp : HLO_UnaryOp<"asinh", HLO_FpOrComplexTensor>;
def HLO_AtanOp : HLO_UnaryOp<"atan", HLO_FpOrComplexTensor>;
def HLO_AtanhOp : HLO_UnaryOp<"atanh", HLO_FpOrComplexTensor>;
def HLO_BesselI0eOp : HLO_UnaryOp<"bessel_i0e", HLO_FpTensor>;
def HLO_BesselI1eOp : HLO_UnaryOp<"bessel_i1e", HLO_FpTensor>;
def HLO_ConjOp : HLO_UnaryOp<"conj", HLO_NumericTensor>;
def HLO_CoshOp : HLO_UnaryOp<"cosh", HLO_FpOrComplexTensor>;
def HLO_DigammaOp : HLO_UnaryOp<"digamma", HLO_FpTensor>;
def HLO_ErfOp : HLO_UnaryOp<"erf", HLO_FpTensor>;
def HLO_ErfInvOp : HLO_UnaryOp<"erf_inv", HLO_FpTensor>;
def HLO_ErfcOp : HLO_UnaryOp<"erfc", HLO_FpTensor>;
def HLO_IsInfOp : HLO_UnaryOp<"is_inf", HLO_FpTensor, "inferBool">;
def HLO_IsNanOp : HLO_UnaryOp<"is_nan", HLO_FpTensor, "inferBool">;
def HLO_IsNegInfOp : HLO_UnaryOp<"is_neg_inf", HLO_FpTensor, "inferBool">;
def HLO_IsPosInfOp : HLO_UnaryOp<"is_pos_inf", HLO_FpTensor, "inferBool">;
def HLO_LgammaOp : HLO_UnaryOp<"lgamma", HLO_FpTensor>;
def HLO_SinhOp : HLO_UnaryOp<"sinh", HLO_FpOrComplexTensor>;
def HLO_SquareOp : HLO_UnaryOp<"square", HLO_NumericTensor>;

def HLO_ConvertOp : HLO_InferredOp<"convert", [Pure, HLO_Elementwise], "inferTypes", "areCompatibleShapes"> {
  let summary = "conversion of the element type";
  let description = [{
    Float to integer truncates towards zero, saturates at the limits and gives 0 for NaN; to bool: not equal to zero;
    complex to real drops the imaginary part.
  }];
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Type":$elementType)>];
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def HLO_BitcastConvertOp : HLO_Op<"bitcast_convert", [Pure]> {
  let summary = "the same bits under another element type";
  let description = [{
    Element types of different width split or join the last dimension (C1). The bits of a quantized number are those of its
    storage; the axis of a type quantized per axis is a dimension with a scale for each element (C2).
  }];
  let arguments = (ins HLO_OpaqueTensor:$operand);
  let results = (outs HLO_OpaqueTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Type":$elementType)>];
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def HLO_ReducePrecisionOp : HLO_ElementwiseOp<"reduce_precision", [], "inferTypes"> {
  let arguments = (ins HLO_FpTensor:$operand, I32Attr:$exponent_bits, I32Attr:$mantissa_bits);
  let results = (outs HLO_FpTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// StableHLO, two operands
def HLO_AddOp : HLO_BinaryOp<"add", HLO_Tensor, [Commutative]> { let hasFolder = 1; }
def HLO_AndOp : HLO_BinaryOp<"and", HLO_PredOrIntTensor, [Commutative]> { let hasFolder = 1; }
def HLO_Atan2Op : HLO_BinaryOp<"atan2", HLO_FpOrComplexTensor>;
def HLO_ComplexOp : HLO_BinaryOp<"complex", HLO_TensorOf<[F32, F64], "ranked tensor of f32 or f64">, [], "inferComplex">;
def HLO_DivOp : HLO_BinaryOp<"divide", HLO_NumericTensor> {
  let description = [{Integers: truncating; division by zero gives -1 (all ones), the smallest number by -1 itself.}];
  let hasFolder = 1;
}
def HLO_MaxOp : HLO_BinaryOp<"maximum", HLO_MovedTensor, [Commutative], "inferSame", HLO_MovedTensor> {
  let description = [{Floats: NaN if either is NaN. Complex numbers compare lexicographically, quantized ones as their storage.}];
}
def HLO_MinOp : HLO_BinaryOp<"minimum", HLO_MovedTensor, [Commutative], "inferSame", HLO_MovedTensor>;
def HLO_MulOp : HLO_BinaryOp<"multiply", HLO_Tensor, [Commutative]> { let hasFolder = 1; }
def HLO_OrOp : HLO_BinaryOp<"or", HLO_PredOrIntTensor, [Commutative]> { let hasFolder = 1; }
def HLO_PowOp : HLO_BinaryOp<"power", HLO_NumericTensor>;
def HLO_RemOp : HLO_BinaryOp<"remainder", HLO_NumericTensor> {
  let description = [{Takes the dividend's sign (C's fmod). Integers: x remainder 0 is x.}];
}
def HLO_ShiftLeftOp : HLO_BinaryOp<"shift_left", HLO_IntTensor>;
def HLO_ShiftRightArithmeticOp : HLO_BinaryOp<"shift_right_arithmetic", HLO_IntTensor>;
def HLO_ShiftRightLogicalOp : HLO_BinaryOp<"shift_right_logical", HLO_IntTensor>;
def HLO_SubtractOp : HLO_BinaryOp<"subtract", HLO_NumericTensor> { let hasFolder = 1; }
def HLO_XorOp : HLO_BinaryOp<"xor", HLO_PredOrIntTensor, [Commutative]>;

// CHLO and further functions, two or three operands
def HLO_IgammaOp : HLO_BinaryOp<"igamma", HLO_FpTensor> { let summary = "P(a, x), the regularised lower incomplete gamma function"; }
def HLO_IgammacOp : HLO_BinaryOp<"igammac", HLO_FpTensor> { let summary = "Q(a, x) = 1 - P(a, x)"; }
def HLO_IgammaGradAOp : HLO_BinaryOp<"igamma_grad_a", HLO_FpTensor> { let summary = "dP(a, x)/da"; }
def HLO_RandomGammaGradOp : HLO_BinaryOp<"random_gamma_grad", HLO_FpTensor> {
  let summary = "derivative of a gamma(a) sample x with respect to a: -(dP/da)/(dP/dx)";
}
def HLO_NextAfterOp : HLO_BinaryOp<"next_after", HLO_FpTensor>;
def HLO_PolygammaOp : HLO_BinaryOp<"polygamma", HLO_FpTensor>;
def HLO_ZetaOp : HLO_BinaryOp<"zeta", HLO_FpTensor>;
def HLO_RegularizedIncompleteBetaOp : HLO_ElementwiseOp<"regularized_incomplete_beta", [], "inferSame"> {
  let arguments = (ins HLO_FpTensor:$a, HLO_FpTensor:$b, HLO_FpTensor:$x);
  let results = (outs HLO_FpTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def HLO_CompareOp : HLO_ElementwiseOp<"compare", [], "inferBool"> {
  let arguments = (ins HLO_MovedTensor:$lhs, HLO_MovedTensor:$rhs, HLO_ComparisonDirectionAttr:$comparison_direction,
                       OptionalAttr<HLO_ComparisonTypeAttr>:$compare_type);
  let results = (outs HLO_PredTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, "ComparisonDirection":$direction)>];
  let assemblyFormat = "$comparison_direction `,` $lhs `,` $rhs (`,` $compare_type^)? attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def HLO_SelectOp : HLO_ElementwiseOp<"select", [], "inferTypes"> {
  let description = [{`pred` has the shape of the result or rank 0.}];
  let arguments = (ins HLO_PredTensor:$pred, HLO_MovedTensor:$on_true, HLO_MovedTensor:$on_false);
  let results = (outs HLO_MovedTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def HLO_ClampOp : HLO_ElementwiseOp<"clamp", [], "inferTypes"> {
  let description = [{min(max(operand, min), max); `min` and `max` have the shape of the result or rank 0.}];
  let arguments = (ins HLO_MovedTensor:$min, HLO_MovedTensor:$operand, HLO_MovedTensor:$max);
  let results = (outs HLO_MovedTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
