// Elementwise ops: inference, verification and text form.
#include "dialects/hlo/Infer.h"
#include "dialects/hlo/Quant.h"

using namespace mlir;

namespace lathe::hlo {

// Shapes and element types of all operands agree; `type` has the merged shape.
static FailureOr<RankedTensorType> mergeOperands(MaybeLocation location, ValueRange operands) {
  Type element = typeOf(operands.front()).getElementType();
  for (Value operand : operands.drop_front())
    if (typeOf(operand).getElementType() != element)
      return emitOptionalError(location, "element types differ: ", element, " and ", typeOf(operand).getElementType());
  auto dims = mergeDims(location, operands.getTypes());
  if (failed(dims))
    return failure();
  return makeType(*dims, element);
}

template <typename Adaptor>
static LogicalResult inferSame(Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = mergeOperands(location, adaptor.getOperands());
  if (failed(type))
    return failure();
  types.push_back(*type);
  return success();
}

template <typename Adaptor>
static LogicalResult inferBool(Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = mergeOperands(location, adaptor.getOperands());
  if (failed(type))
    return failure();
  types.push_back(withElementType(*type, IntegerType::get(type->getContext(), 1)));
  return success();
}

template <typename Adaptor>
static LogicalResult inferReal(Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  types.push_back(withElementType(type, realType(type.getElementType())));
  return success();
}

static LogicalResult inferComplex(ComplexOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = mergeOperands(location, adaptor.getOperands());
  if (failed(type))
    return failure();
  if (!type->getElementType().isF32() && !type->getElementType().isF64())
    return emitOptionalError(location, "expected f32 or f64, found ", type->getElementType());
  types.push_back(withElementType(*type, ComplexType::get(type->getElementType())));
  return success();
}

static LogicalResult inferTypes(ConvertOp::Adaptor adaptor, MaybeLocation, TypeList &types) {
  types.push_back(adaptor.getOperand().getType());
  return success();
}

static LogicalResult inferTypes(ReducePrecisionOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  if (static_cast<int32_t>(adaptor.getExponentBits()) < 1)
    return emitOptionalError(location, "C2: exponent_bits must be at least 1");
  if (static_cast<int32_t>(adaptor.getMantissaBits()) < 0)
    return emitOptionalError(location, "C3: mantissa_bits must not be negative");
  types.push_back(adaptor.getOperand().getType());
  return success();
}

static LogicalResult inferTypes(SelectOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = mergeOperands(location, {adaptor.getOnTrue(), adaptor.getOnFalse()});
  if (failed(type))
    return failure();
  auto pred = typeOf(adaptor.getPred());
  if (!pred.getElementType().isInteger(1))
    return emitOptionalError(location, "expected a predicate of bool, found ", pred);
  if (pred.getRank() != 0) {
    auto dims = mergeDims(location, TypeRange({*type, pred}));
    if (failed(dims))
      return failure();
    type = makeType(*dims, type->getElementType());
  }
  types.push_back(*type);
  return success();
}

static LogicalResult inferTypes(ClampOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  for (Value bound : {adaptor.getMin(), adaptor.getMax()}) {
    auto other = typeOf(bound);
    if (other.getElementType() != type.getElementType())
      return emitOptionalError(location, "element types differ: ", type.getElementType(), " and ",
                               other.getElementType());
    if (other.getRank() != 0 && failed(mergeDims(location, TypeRange({type, other}))))
      return failure();
  }
  types.push_back(type);
  return success();
}

// One type where all are equal, else `(operands) -> result`.
static ParseResult parseElementwiseTypes(OpAsmParser &parser, MutableArrayRef<Type> operands, Type &result) {
  SMLoc where = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type))
    return failure();
  auto function = dyn_cast<FunctionType>(type);
  if (!function) {
    for (Type &operand : operands)
      operand = type;
    result = type;
    return success();
  }
  if (function.getNumInputs() != operands.size() || function.getNumResults() != 1)
    return parser.emitError(where, "expected ") << operands.size() << " operand types and one result type";
  llvm::copy(function.getInputs(), operands.begin());
  result = function.getResult(0);
  return success();
}

static ParseResult parseElementwiseTypes(OpAsmParser &parser, Type &operand, Type &result) {
  return parseElementwiseTypes(parser, MutableArrayRef<Type>(operand), result);
}
static ParseResult parseElementwiseTypes(OpAsmParser &parser, Type &lhs, Type &rhs, Type &result) {
  Type operands[2];
  if (parseElementwiseTypes(parser, MutableArrayRef<Type>(operands), result))
    return failure();
  lhs = operands[0];
  rhs = operands[1];
  return success();
}
static void printElementwiseTypes(OpAsmPrinter &printer, Operation *op, Type operand, Type result) {
  if (operand == result)
    printer << result;
  else
    printer.printFunctionalType(op);
}
static void printElementwiseTypes(OpAsmPrinter &printer, Operation *op, Type lhs, Type rhs, Type result) {
  if (lhs == result && rhs == result)
    printer << result;
  else
    printer.printFunctionalType(op);
}

void ConvertOp::build(OpBuilder &b, OperationState &state, Value operand, Type elementType) {
  Type type = operand.getType();
  if (!isInvalid(type))
    type = withElementType(typeOf(operand), elementType);
  build(b, state, type, operand);
}

static unsigned elementWidth(Type type) {
  type = storageType(type);
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * complex.getElementType().getIntOrFloatBitWidth();
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
}

// The result's shape, or a failure with its reason.
static FailureOr<SmallVector<AffineExpr>> bitcastDims(MaybeLocation location, RankedTensorType from, Type to) {
  unsigned a = elementWidth(from.getElementType()), b = elementWidth(to);
  SmallVector<AffineExpr> dims = getDims(from);
  if (a == b && a != 0)
    return dims;
  if (a == 0 || b == 0 || (a > b ? a % b : b % a) != 0)
    return emitOptionalError(location, "C1: cannot cast ", from.getElementType(), " to ", to);
  if (a > b) {
    dims.push_back(constantExpr(from.getContext(), a / b));
    return dims;
  }
  if (dims.empty() || constantValue(dims.back()) != static_cast<int64_t>(b / a))
    return emitOptionalError(location, "C1: expected last dimension ", b / a, " to cast ", from, " to ", to);
  dims.pop_back();
  return dims;
}

void BitcastConvertOp::build(OpBuilder &b, OperationState &state, Value operand, Type elementType) {
  Type type = poisonType(b.getContext(), operand);
  if (succeeded(checkOperands(state.location, operand))) {
    auto dims = bitcastDims(state.location, typeOf(operand), elementType);
    if (succeeded(dims))
      type = makeType(*dims, elementType);
  }
  build(b, state, type, operand);
}

LogicalResult BitcastConvertOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  auto dims = bitcastDims(getLoc(), typeOf(getOperand()), type.getElementType());
  if (failed(dims))
    return failure();
  Type expected = makeType(*dims, type.getElementType());
  if (!areCompatible(expected, type))
    return emitTypeMismatch(getLoc(), getOperationName(), expected, type);
  if (failed(checkQuantized(getLoc(), "C2", typeOf(getOperand()))))
    return failure();
  return checkQuantized(getLoc(), "C2", type);
}

void CompareOp::build(OpBuilder &b, OperationState &state, Value lhs, Value rhs, ComparisonDirection direction) {
  build(b, state, lhs, rhs, ComparisonDirectionAttr::get(b.getContext(), direction), ComparisonTypeAttr());
}

} // namespace lathe::hlo

using namespace lathe::hlo;
#define GET_OP_CLASSES
#include "dialects/hlo/HloElementwise.cpp.inc"
