// The hlo dialect: StableHLO's op names, attribute names and semantics under our own ODS, with symbolic sizes
// carried in the encoding of tensor types. Base classes, types, enums and attributes; the ops are in one file a family.
#ifndef LATHE_HLO_BASE
#define LATHE_HLO_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Hlo_Dialect : Dialect {
  let name = "hlo";
  let cppNamespace = "::lathe::hlo";
  let summary = "StableHLO's operations with symbolic sizes";
  let description = [{
    Ops, attributes and semantics follow StableHLO: its generic form parses after renaming the dialect. Additions:
    CHLO's mathematical functions, `hlo.unique`, `hlo.where`, `hlo.check`, `hlo.size`, `hlo.set_size`.

    A dynamic dimension carries its size as an expression over symbols in the encoding of the tensor type:
    `tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>`. Symbol k is described by entry k of the module attribute
    `hlo.symbols`. A dynamic dimension without encoding is unknown and only legal before legalization ends.
  }];
  let dependentDialects = ["::mlir::quant::QuantDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def HLO_Bool : TypeAlias<I1, "bool">;
def HLO_Int : AnyTypeOf<[I<4>, I<8>, I<16>, I<32>, I<64>, UI<4>, UI<8>, UI<16>, UI<32>, UI<64>], "integer">;
def HLO_Float : AnyTypeOf<[F16, BF16, F32, F64, F8E4M3FN, F8E5M2], "float">;
def HLO_Complex : AnyTypeOf<[Complex<F32>, Complex<F64>], "complex">;
def HLO_Element : AnyTypeOf<[I1, HLO_Int, HLO_Float, HLO_Complex], "supported element">;
// Integers of 4, 8, 16 or 32 bits whose type says which floats they stand for, by one scale and zero point or by those of an axis.
def HLO_PerTensorQuantized : Type<CPred<"::lathe::hlo::isQuantized($_self) && !::lathe::hlo::quantizedAxis($_self)">, "number quantized per tensor">;
def HLO_Quantized : Type<CPred<"::lathe::hlo::isQuantized($_self)">, "quantized number">;

class HLO_TensorOf<list<Type> types, string summary> : RankedTensorOf<types, [], summary>;

def HLO_Tensor : HLO_TensorOf<[HLO_Element], "ranked tensor of a supported element type">;
// What ops that move elements, choose or compare them take, and what those take that an axis may go through.
def HLO_MovedTensor : HLO_TensorOf<[HLO_Element, HLO_PerTensorQuantized], "ranked tensor of a supported element type or quantized per tensor">;
def HLO_OpaqueTensor : HLO_TensorOf<[HLO_Element, HLO_Quantized], "ranked tensor of a supported or quantized element type">;
def HLO_QuantizedTensor : HLO_TensorOf<[HLO_Quantized], "ranked tensor of quantized numbers">;
def HLO_FpOrQuantizedTensor : HLO_TensorOf<[F16, BF16, F32, F64, HLO_Quantized], "ranked tensor of f16, bf16, f32, f64 or quantized numbers">;
def HLO_FpTensor : HLO_TensorOf<[HLO_Float], "ranked tensor of floats">;
def HLO_ComplexTensor : HLO_TensorOf<[HLO_Complex], "ranked tensor of complex numbers">;
def HLO_FpOrComplexTensor : HLO_TensorOf<[HLO_Float, HLO_Complex], "ranked tensor of floats or complex numbers">;
def HLO_IntTensor : HLO_TensorOf<[HLO_Int], "ranked tensor of integers">;
def HLO_PredTensor : HLO_TensorOf<[I1], "ranked tensor of bool">;
def HLO_PredOrIntTensor : HLO_TensorOf<[I1, HLO_Int], "ranked tensor of bool or integers">;
def HLO_IntOrFpTensor : HLO_TensorOf<[I1, HLO_Int, HLO_Float], "ranked tensor of bool, integers or floats">;
def HLO_NumericTensor : HLO_TensorOf<[HLO_Int, HLO_Float, HLO_Complex], "ranked tensor of numbers">;

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class HLO_Enum<string name, list<I32EnumCase> cases> : I32Enum<name, "", cases> {
  let cppNamespace = "::lathe::hlo";
}

def HLO_ComparisonDirection : HLO_Enum<"ComparisonDirection", [
  I32EnumCase<"EQ", 0>, I32EnumCase<"NE", 1>, I32EnumCase<"GE", 2>,
  I32EnumCase<"GT", 3>, I32EnumCase<"LE", 4>, I32EnumCase<"LT", 5>]>;
def HLO_ComparisonDirectionAttr : EnumAttr<Hlo_Dialect, HLO_ComparisonDirection, "comparison_direction">;

def HLO_ComparisonType : HLO_Enum<"ComparisonType", [
  I32EnumCase<"NOTYPE", 0>, I32EnumCase<"FLOAT", 1>, I32EnumCase<"TOTALORDER", 2>,
  I32EnumCase<"SIGNED", 3>, I32EnumCase<"UNSIGNED", 4>]>;
def HLO_ComparisonTypeAttr : EnumAttr<Hlo_Dialect, HLO_ComparisonType, "comparison_type">;

def HLO_Precision : HLO_Enum<"Precision", [
  I32EnumCase<"DEFAULT", 0>, I32EnumCase<"HIGH", 1>, I32EnumCase<"HIGHEST", 2>]>;
def HLO_PrecisionAttr : EnumAttr<Hlo_Dialect, HLO_Precision, "precision">;
def HLO_PrecisionConfig : OptionalAttr<TypedArrayAttrBase<HLO_PrecisionAttr, "precision of each operand">>;

def HLO_QuantizeRounding : HLO_Enum<"QuantizeRounding", [
  I32EnumCase<"NEAREST_EVEN", 0>, I32EnumCase<"AWAY", 1>, I32EnumCase<"UP", 2>]>;
def HLO_QuantizeRoundingAttr : EnumAttr<Hlo_Dialect, HLO_QuantizeRounding, "quantize_rounding">;

def HLO_FftType : HLO_Enum<"FftType", [
  I32EnumCase<"FFT", 0>, I32EnumCase<"IFFT", 1>, I32EnumCase<"RFFT", 2>, I32EnumCase<"IRFFT", 3>]>;
def HLO_FftTypeAttr : EnumAttr<Hlo_Dialect, HLO_FftType, "fft_type">;

def HLO_Transpose : HLO_Enum<"Transpose", [
  I32EnumCase<"TRANSPOSE_INVALID", 0>, I32EnumCase<"NO_TRANSPOSE", 1>,
  I32EnumCase<"TRANSPOSE", 2>, I32EnumCase<"ADJOINT", 3>]>;
def HLO_TransposeAttr : EnumAttr<Hlo_Dialect, HLO_Transpose, "transpose">;

def HLO_RngDistribution : HLO_Enum<"RngDistribution", [
  I32EnumCase<"UNIFORM", 1>, I32EnumCase<"NORMAL", 2>]>;
def HLO_RngDistributionAttr : EnumAttr<Hlo_Dialect, HLO_RngDistribution, "rng_distribution">;

def HLO_RngAlgorithm : HLO_Enum<"RngAlgorithm", [
  I32EnumCase<"DEFAULT", 0>, I32EnumCase<"THREE_FRY", 1>, I32EnumCase<"PHILOX", 2>]>;
def HLO_RngAlgorithmAttr : EnumAttr<Hlo_Dialect, HLO_RngAlgorithm, "rng_algorithm">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class HLO_Attr<string name, string mnemonic_> : AttrDef<Hlo_Dialect, name> {
  let mnemonic = mnemonic_;
  let hasCustomAssemblyFormat = 1;
}
def HLO_Dims : ArrayRefParameter<"int64_t", "dimensions">;

def HLO_DotDimensionNumbers : HLO_Attr<"DotDimensionNumbers", "dot"> {
  let summary = "batching and contracting dimensions of dot_general";
  let parameters = (ins HLO_Dims:$lhsBatchingDimensions, HLO_Dims:$rhsBatchingDimensions,
                        HLO_Dims:$lhsContractingDimensions, HLO_Dims:$rhsContractingDimensions);
}

def HLO_GatherDimensionNumbers : HLO_Attr<"GatherDimensionNumbers", "gather"> {
  let parameters = (ins HLO_Dims:$offsetDims, HLO_Dims:$collapsedSliceDims, HLO_Dims:$operandBatchingDims,
                        HLO_Dims:$startIndicesBatchingDims, HLO_Dims:$startIndexMap, "int64_t":$indexVectorDim);
}

def HLO_ScatterDimensionNumbers : HLO_Attr<"ScatterDimensionNumbers", "scatter"> {
  let parameters = (ins HLO_Dims:$updateWindowDims, HLO_Dims:$insertedWindowDims, HLO_Dims:$inputBatchingDims,
                        HLO_Dims:$scatterIndicesBatchingDims, HLO_Dims:$scatterDimsToOperandDims,
                        "int64_t":$indexVectorDim);
}

def HLO_ConvDimensionNumbers : HLO_Attr<"ConvDimensionNumbers", "conv"> {
  let summary = "which dimensions of a convolution are batch, feature and space";
  let description = [{
    Printed as StableHLO does: `#hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`; `?` stands for a dimension with
    no role. StableHLO's raw form (`#hlo.conv<raw input_batch_dimension = 0, ...>`) parses too.
  }];
  let parameters = (ins "int64_t":$inputBatchDimension, "int64_t":$inputFeatureDimension,
                        HLO_Dims:$inputSpatialDimensions, "int64_t":$kernelInputFeatureDimension,
                        "int64_t":$kernelOutputFeatureDimension, HLO_Dims:$kernelSpatialDimensions,
                        "int64_t":$outputBatchDimension, "int64_t":$outputFeatureDimension,
                        HLO_Dims:$outputSpatialDimensions);
}

//===----------------------------------------------------------------------===//
// Op classes
//===----------------------------------------------------------------------===//

class HLO_Op<string mnemonic, list<Trait> traits = []> : Op<Hlo_Dialect, mnemonic, traits>;

// An op whose result types follow from operands, attributes and regions: `infer(adaptor, location, types)` is an
// overload for the op's adaptor in the family's .cpp. Builders never abort: where inference fails the error is emitted
// and the result gets an invalid type (element type index), which the verifier refuses.
class HLO_InferredOp<string mnemonic, list<Trait> traits = [], string fn = "inferTypes", string compatible = "areCompatible">
    : HLO_Op<mnemonic, traits # [InferTypeOpInterface]> {
  code inferDeclaration = [{
    static ::llvm::LogicalResult inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &types);
    static ::llvm::LogicalResult refineReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &types);
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange given);
  }];
  let extraClassDeclaration = inferDeclaration;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      if (::mlir::failed(::lathe::hlo::checkOperands(location, operands)) || ::mlir::failed(}] # fn # [{(Adaptor(operands, attributes, properties, regions), location, types))) {
        types.assign(::lathe::hlo::resultCount<$cppClass>(operands), ::lathe::hlo::poisonType(context, operands));
      }
      return ::mlir::success();
    }
    ::llvm::LogicalResult $cppClass::refineReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::llvm::SmallVector<::mlir::Type> inferred;
      if (::mlir::failed(}] # fn # [{(Adaptor(operands, attributes, properties, regions), location, inferred)))
        return ::mlir::failure();
      if (!isCompatibleReturnTypes(inferred, types))
        return ::lathe::hlo::emitTypeMismatch(location, getOperationName(), inferred, types);
      return ::mlir::success();
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange given) {
      return ::lathe::hlo::}] # compatible # [{(inferred, given);
    }
  }];
}

#endif
