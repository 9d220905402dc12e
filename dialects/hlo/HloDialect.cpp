// The dialect, its attributes and their text forms.
#include "dialects/hlo/BlobNames.h"
#include "dialects/hlo/Hlo.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lathe::hlo;

#include "dialects/hlo/HloDialect.cpp.inc"
#include "dialects/hlo/HloEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/hlo/HloAttrs.cpp.inc"

void HloDialect::initialize() {
  addInterfaces<BlobNames>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/hlo/HloAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/hlo/HloElementwise.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/hlo/HloShapeOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/hlo/HloLinalg.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/hlo/HloReduce.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/hlo/HloControl.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/hlo/HloRandom.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/hlo/HloQuant.cpp.inc"
      >();
}

Operation *HloDialect::materializeConstant(OpBuilder &b, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(b, loc, type, elements);
}

//===----------------------------------------------------------------------===//
// Dimension numbers as `<name = [0, 1], other = 2>`, empty lists left out
//===----------------------------------------------------------------------===//

namespace {
struct Field {
  StringRef name;
  SmallVector<int64_t> *list;
  int64_t *number;
};
} // namespace

static ParseResult parseFields(AsmParser &parser, ArrayRef<Field> fields) {
  SmallVector<bool> seen(fields.size());
  while (true) {
    StringRef name;
    SMLoc where = parser.getCurrentLocation();
    if (failed(parser.parseOptionalKeyword(&name)))
      return success();
    const Field *field = llvm::find_if(fields, [&](const Field &f) { return f.name == name; });
    if (field == fields.end())
      return parser.emitError(where, "unknown field '") << name << "'";
    if (std::exchange(seen[field - fields.begin()], true))
      return parser.emitError(where, "field '") << name << "' occurs twice";
    if (parser.parseEqual())
      return failure();
    if (field->number) {
      if (parser.parseInteger(*field->number))
        return failure();
    } else if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
                 return parser.parseInteger(field->list->emplace_back());
               })) {
      return failure();
    }
    if (failed(parser.parseOptionalComma()))
      return success();
  }
}

static void printFields(AsmPrinter &printer, ArrayRef<std::pair<StringRef, ArrayRef<int64_t>>> lists,
                        std::optional<std::pair<StringRef, int64_t>> number = std::nullopt) {
  printer << "<";
  bool first = true;
  for (auto [name, list] : lists) {
    if (list.empty())
      continue;
    printer << (first ? "" : ", ") << name << " = [";
    llvm::interleaveComma(list, printer);
    printer << "]";
    first = false;
  }
  if (number)
    printer << (first ? "" : ", ") << number->first << " = " << number->second;
  printer << ">";
}

Attribute DotDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> lb, rb, lc, rc;
  if (parser.parseLess() ||
      parseFields(parser, {{"lhs_batching_dimensions", &lb, nullptr},
                           {"rhs_batching_dimensions", &rb, nullptr},
                           {"lhs_contracting_dimensions", &lc, nullptr},
                           {"rhs_contracting_dimensions", &rc, nullptr}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), lb, rb, lc, rc);
}
void DotDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printFields(printer, {{"lhs_batching_dimensions", getLhsBatchingDimensions()},
                        {"rhs_batching_dimensions", getRhsBatchingDimensions()},
                        {"lhs_contracting_dimensions", getLhsContractingDimensions()},
                        {"rhs_contracting_dimensions", getRhsContractingDimensions()}});
}

Attribute GatherDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> offset, collapsed, operandBatch, indicesBatch, map;
  int64_t indexVectorDim = 0;
  if (parser.parseLess() ||
      parseFields(parser, {{"offset_dims", &offset, nullptr},
                           {"collapsed_slice_dims", &collapsed, nullptr},
                           {"operand_batching_dims", &operandBatch, nullptr},
                           {"start_indices_batching_dims", &indicesBatch, nullptr},
                           {"start_index_map", &map, nullptr},
                           {"index_vector_dim", nullptr, &indexVectorDim}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), offset, collapsed, operandBatch, indicesBatch, map, indexVectorDim);
}
void GatherDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printFields(printer,
              {{"offset_dims", getOffsetDims()},
               {"collapsed_slice_dims", getCollapsedSliceDims()},
               {"operand_batching_dims", getOperandBatchingDims()},
               {"start_indices_batching_dims", getStartIndicesBatchingDims()},
               {"start_index_map", getStartIndexMap()}},
              std::make_pair(StringRef("index_vector_dim"), getIndexVectorDim()));
}

Attribute ScatterDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> window, inserted, inputBatch, indicesBatch, map;
  int64_t indexVectorDim = 0;
  if (parser.parseLess() ||
      parseFields(parser, {{"update_window_dims", &window, nullptr},
                           {"inserted_window_dims", &inserted, nullptr},
                           {"input_batching_dims", &inputBatch, nullptr},
                           {"scatter_indices_batching_dims", &indicesBatch, nullptr},
                           {"scatter_dims_to_operand_dims", &map, nullptr},
                           {"index_vector_dim", nullptr, &indexVectorDim}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), window, inserted, inputBatch, indicesBatch, map, indexVectorDim);
}
void ScatterDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printFields(printer,
              {{"update_window_dims", getUpdateWindowDims()},
               {"inserted_window_dims", getInsertedWindowDims()},
               {"input_batching_dims", getInputBatchingDims()},
               {"scatter_indices_batching_dims", getScatterIndicesBatchingDims()},
               {"scatter_dims_to_operand_dims", getScatterDimsToOperandDims()}},
              std::make_pair(StringRef("index_vector_dim"), getIndexVectorDim()));
}

//===----------------------------------------------------------------------===//
// #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
//===----------------------------------------------------------------------===//

namespace {
struct ConvSide {
  int64_t first = -1, second = -1; // batch and feature, or input and output feature
  SmallVector<int64_t> spatial;
};
} // namespace

static ParseResult parseSide(AsmParser &parser, StringRef firstName, StringRef secondName, ConvSide &side) {
  SmallVector<std::pair<int64_t, int64_t>> spatial; // (number, position)
  int64_t position = 0;
  SMLoc where = parser.getCurrentLocation();
  auto item = [&]() -> ParseResult {
    int64_t at = position++, number;
    StringRef keyword;
    if (succeeded(parser.parseOptionalQuestion()))
      return success();
    OptionalParseResult integer = parser.parseOptionalInteger(number);
    if (integer.has_value()) {
      spatial.push_back({number, at});
      return *integer;
    }
    SMLoc here = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    int64_t &slot = keyword == firstName ? side.first : side.second;
    if ((keyword != firstName && keyword != secondName) || slot >= 0)
      return parser.emitError(here, "unexpected '") << keyword << "' in convolution dimensions";
    slot = at;
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, item))
    return failure();
  llvm::sort(spatial);
  for (auto [i, entry] : llvm::enumerate(spatial)) {
    if (entry.first != static_cast<int64_t>(i))
      return parser.emitError(where, "expected spatial dimensions 0, 1, ... each once");
    side.spatial.push_back(entry.second);
  }
  if (side.first < 0 || side.second < 0)
    return parser.emitError(where, "expected '") << firstName << "' and '" << secondName << "'";
  return success();
}

static void printSide(AsmPrinter &printer, StringRef firstName, int64_t first, StringRef secondName, int64_t second,
                      ArrayRef<int64_t> spatial) {
  int64_t size = std::max(first, second) + 1;
  for (int64_t dim : spatial)
    size = std::max(size, dim + 1);
  printer << "[";
  for (int64_t i = 0; i < size; ++i) {
    if (i)
      printer << ", ";
    const int64_t *at = llvm::find(spatial, i);
    if (i == first)
      printer << firstName;
    else if (i == second)
      printer << secondName;
    else if (at != spatial.end())
      printer << at - spatial.begin();
    else
      printer << "?";
  }
  printer << "]";
}

Attribute ConvDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  ConvSide in, kernel, out;
  if (succeeded(parser.parseOptionalKeyword("raw"))) {
    if (parseFields(parser, {{"input_batch_dimension", nullptr, &in.first},
                             {"input_feature_dimension", nullptr, &in.second},
                             {"input_spatial_dimensions", &in.spatial, nullptr},
                             {"kernel_input_feature_dimension", nullptr, &kernel.first},
                             {"kernel_output_feature_dimension", nullptr, &kernel.second},
                             {"kernel_spatial_dimensions", &kernel.spatial, nullptr},
                             {"output_batch_dimension", nullptr, &out.first},
                             {"output_feature_dimension", nullptr, &out.second},
                             {"output_spatial_dimensions", &out.spatial, nullptr}}))
      return {};
  } else {
    if (parseSide(parser, "b", "f", in))
      return {};
    // `x[` lexes as one keyword `x`, but `x` directly before a digit would not; the list follows in brackets
    if (parser.parseKeyword("x") || parseSide(parser, "i", "o", kernel) || parser.parseArrow() ||
        parseSide(parser, "b", "f", out))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), in.first, in.second, in.spatial, kernel.first, kernel.second, kernel.spatial,
             out.first, out.second, out.spatial);
}

void ConvDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printSide(printer, "b", getInputBatchDimension(), "f", getInputFeatureDimension(), getInputSpatialDimensions());
  printer << "x";
  printSide(printer, "i", getKernelInputFeatureDimension(), "o", getKernelOutputFeatureDimension(),
            getKernelSpatialDimensions());
  printer << "->";
  printSide(printer, "b", getOutputBatchDimension(), "f", getOutputFeatureDimension(), getOutputSpatialDimensions());
  printer << ">";
}
