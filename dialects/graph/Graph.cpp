//===- Graph.cpp - the graph dialect --------------------------------------===//
#include "dialects/graph/Graph.h"

#include "dialects/graph/Types.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lathe::graph;

#include "dialects/graph/GraphDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/graph/GraphTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/graph/GraphAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/graph/GraphOps.cpp.inc"

void GraphDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/graph/GraphTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/graph/GraphAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/GraphOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute ShapeAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalStar())) {
    if (parser.parseGreater())
      return {};
    return ShapeAttr::get(parser.getContext(), false, ArrayRef<int64_t>());
  }
  SmallVector<int64_t> dims;
  auto parseDim = [&]() -> ParseResult {
    int64_t dim;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseInteger(dim))
      return failure();
    if (dim < -1)
      return parser.emitError(loc, "expected a size or -1");
    dims.push_back(dim);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) || parser.parseGreater())
    return {};
  return ShapeAttr::get(parser.getContext(), true, dims);
}

void ShapeAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (!getRanked()) {
    printer << '*';
  } else {
    printer << '[';
    llvm::interleaveComma(getDims(), printer.getStream());
    printer << ']';
  }
  printer << '>';
}

LogicalResult StringsAttr::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType type,
                                  ArrayAttr values) {
  if (!isa<lathe::graph::StringType>(type.getElementType()))
    return emitError() << "expected a tensor of !graph.string, found " << type;
  if (!type.hasStaticShape())
    return emitError() << "expected a static shape, found " << type;
  for (Attribute value : values)
    if (!isa<StringAttr>(value))
      return emitError() << "expected strings, found " << value;
  if (values.size() != 1 && static_cast<int64_t>(values.size()) != type.getNumElements())
    return emitError() << "expected 1 or " << type.getNumElements() << " strings, found " << values.size();
  return success();
}

//===----------------------------------------------------------------------===//
// FuncOp
//===----------------------------------------------------------------------===//

RegionKind FuncOp::getRegionKind(unsigned) { return RegionKind::Graph; }

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  Region *region = state.addRegion();
  Block *block = new Block;
  region->push_back(block);
  for (Type input : type.getInputs())
    block->addArgument(input, state.location);
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> args, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(args, results);
  };
  return function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(result.name), buildType,
                                                  getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult FuncOp::verify() {
  auto checkTypes = [&](ArrayRef<Type> types, StringRef what) -> LogicalResult {
    for (auto [i, type] : llvm::enumerate(types)) {
      auto tensor = dyn_cast<TensorType>(type);
      if (!tensor || lathe::graph::toDType(tensor.getElementType()) == lathe::DType::Invalid)
        return emitOpError() << "expected a TensorFlow tensor as " << what << ' ' << i << ", found " << type;
    }
    return success();
  };
  if (failed(checkTypes(getArgumentTypes(), "argument")) || failed(checkTypes(getResultTypes(), "result")))
    return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// NodeOp
//===----------------------------------------------------------------------===//

void NodeOp::build(OpBuilder &builder, OperationState &state, TypeRange outputTypes, StringRef op, ValueRange inputs,
                   ValueRange controls, DictionaryAttr attrs) {
  SmallVector<Type> types(outputTypes);
  types.push_back(ControlType::get(builder.getContext()));
  build(builder, state, types, builder.getStringAttr(op), inputs, controls,
        attrs ? attrs : builder.getDictionaryAttr({}));
}

StringRef NodeOp::getNodeName() { return lathe::graph::getNodeName(getLoc()); }

LogicalResult NodeOp::verify() {
  if (getOp().empty())
    return emitOpError("expected an op type, found an empty name");
  for (auto [i, value] : llvm::enumerate(getOutputs()))
    if (lathe::graph::toDType(cast<TensorType>(value.getType()).getElementType()) == lathe::DType::Invalid)
      return emitOpError() << "expected a TensorFlow tensor as output " << i << ", found " << value.getType();
  for (auto [i, value] : llvm::enumerate(getInputs()))
    if (lathe::graph::toDType(cast<TensorType>(value.getType()).getElementType()) == lathe::DType::Invalid)
      return emitOpError() << "expected a TensorFlow tensor as input " << i << ", found " << value.getType();
  return success();
}

LogicalResult NodeOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto check = [&](Attribute attr) -> LogicalResult {
    auto func = dyn_cast<FuncAttr>(attr);
    if (!func)
      return success();
    if (!symbolTable.lookupNearestSymbolFrom<FuncOp>(*this, func.getName()))
      return emitOpError() << "refers to function " << func.getName() << ", which does not exist";
    return success();
  };
  for (NamedAttribute named : getAttrs()) {
    if (failed(check(named.getValue())))
      return failure();
    if (auto list = dyn_cast<ArrayAttr>(named.getValue()))
      for (Attribute element : list)
        if (failed(check(element)))
          return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ReturnOp
//===----------------------------------------------------------------------===//

LogicalResult ReturnOp::verify() {
  auto func = cast<FuncOp>((*this)->getParentOp());
  ArrayRef<Type> results = func.getResultTypes();
  if (results.size() != getOutputs().size())
    return emitOpError() << "expected " << results.size() << " outputs, found " << getOutputs().size();
  for (auto [i, value] : llvm::enumerate(getOutputs()))
    if (value.getType() != results[i])
      return emitOpError() << "expected output " << i << " of type " << results[i] << ", found " << value.getType();
  return success();
}
