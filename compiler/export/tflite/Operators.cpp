// What is known of TensorFlow Lite's operators: element types, ranks, activations (LiteRT 2.3's kernels).
#include "compiler/export/tflite/Operators.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace lathe::tflwrite {

StringRef operatorName(Operation *op) {
  auto call = dyn_cast_or_null<hlo::CustomCallOp>(op);
  if (!call || !call.getCallTargetName().starts_with(operatorPrefix))
    return "";
  return call.getCallTargetName().drop_front(operatorPrefix.size());
}

static Attribute option(Operation *op, StringRef name) {
  auto options = dyn_cast_or_null<DictionaryAttr>(cast<hlo::CustomCallOp>(op).getBackendConfigAttr());
  return options ? options.get(name) : Attribute();
}

int64_t intOption(Operation *op, StringRef name, int64_t otherwise) {
  Attribute value = option(op, name);
  if (auto flag = dyn_cast_or_null<BoolAttr>(value))
    return flag.getValue();
  auto number = dyn_cast_or_null<IntegerAttr>(value);
  return number ? number.getInt() : otherwise;
}

double floatOption(Operation *op, StringRef name, double otherwise) {
  auto number = dyn_cast_or_null<FloatAttr>(option(op, name));
  return number ? number.getValueAsDouble() : otherwise;
}

ArrayRef<double> scalesOption(Operation *op) {
  auto scales = dyn_cast_or_null<DenseF64ArrayAttr>(option(op, "scales"));
  return scales ? scales.asArrayRef() : ArrayRef<double>();
}

ArrayRef<int64_t> numbersOption(Operation *op, StringRef name) {
  auto numbers = dyn_cast_or_null<DenseI64ArrayAttr>(option(op, name));
  return numbers ? numbers.asArrayRef() : ArrayRef<int64_t>();
}

ArrayAttr listOption(Operation *op, StringRef name) {
  auto list = dyn_cast_or_null<ArrayAttr>(option(op, name));
  return list ? list : ArrayAttr::get(op->getContext(), {});
}

StringRef textOption(Operation *op, StringRef name) {
  auto text = dyn_cast_or_null<StringAttr>(option(op, name));
  return text ? text.getValue() : StringRef();
}

void setOption(Operation *op, StringRef name, Attribute value) {
  auto call = cast<hlo::CustomCallOp>(op);
  NamedAttrList options(dyn_cast_or_null<DictionaryAttr>(call.getBackendConfigAttr()));
  options.set(name, value);
  call.setBackendConfigAttr(options.getDictionary(op->getContext()));
}

namespace {
struct Facts {
  const char *types; ///< f: f32, i: i32, l: i64, b: bool, c: i8, h: u8, s: i16, t: u16, u: u32
  int rank = 0;      ///< largest rank that it broadcasts
};
} // namespace

/// Types of 8 and 16 bits stand here only where a kernel moves or counts elements: arithmetic on them asks for a scale.
static const llvm::StringMap<Facts> &facts() {
  static const llvm::StringMap<Facts> table = {
      {"ABS", {"fi"}}, {"ADD", {"fil", 6}}, {"ARG_MAX", {"fib"}}, {"ARG_MIN", {"fib"}}, {"ATAN2", {"f"}},
      {"AVERAGE_POOL_2D", {"f"}}, {"BATCH_MATMUL", {"f", 5}}, {"BROADCAST_TO", {"filbchs", 8}}, {"CAST", {"filbchstu"}},
      {"CEIL", {"f"}}, {"CONCATENATION", {"filbchsu"}}, {"CONV_2D", {"f"}}, {"CONV_3D", {"f"}}, {"COS", {"f"}}, {"CUMSUM", {"fil"}},
      {"DEPTHWISE_CONV_2D", {"f"}}, {"DEPTH_TO_SPACE", {"filh"}}, {"DIV", {"fi", 5}}, {"DYNAMIC_UPDATE_SLICE", {"filbch"}}, {"ELU", {"f"}},
      {"EQUAL", {"filb", 4}}, {"EXP", {"f"}}, {"FLOOR", {"f"}}, {"FLOOR_DIV", {"fi", 4}}, {"FLOOR_MOD", {"fil", 4}},
      {"FULLY_CONNECTED", {"f"}}, {"GATHER", {"filbchs"}}, {"GATHER_ND", {"filbchs"}}, {"GELU", {"f"}}, {"GREATER", {"fil", 4}},
      {"GREATER_EQUAL", {"fil", 4}}, {"HARD_SWISH", {"f"}}, {"LEAKY_RELU", {"f"}}, {"LESS", {"fil", 4}}, {"LESS_EQUAL", {"fil", 4}},
      {"LOG", {"f"}}, {"LOGICAL_AND", {"b", 4}}, {"LOGICAL_NOT", {"b"}}, {"LOGICAL_OR", {"b", 4}}, {"LOGISTIC", {"f"}},
      {"LOG_SOFTMAX", {"f"}}, {"MAXIMUM", {"fil", 5}}, {"MAX_POOL_2D", {"f"}}, {"MEAN", {"f"}}, {"MINIMUM", {"fil", 5}},
      {"MUL", {"filu", 6}}, {"NEG", {"fil"}}, {"NOT_EQUAL", {"filb", 4}}, {"PAD", {"filb"}}, {"PADV2", {"fil"}},
      {"POW", {"fi", 4}}, {"PRELU", {"f", 4}}, {"REDUCE_ALL", {"b"}}, {"REDUCE_ANY", {"b"}}, {"REDUCE_MAX", {"fil"}}, {"REDUCE_MIN", {"fil"}},
      {"REDUCE_PROD", {"fil"}}, {"RELU", {"f"}}, {"RELU6", {"f"}}, {"RELU_0_TO_1", {"f"}}, {"RELU_N1_TO_1", {"f"}},
      {"RESHAPE", {"filbchstu"}}, {"RESIZE_BILINEAR", {"f"}}, {"RESIZE_NEAREST_NEIGHBOR", {"f"}}, {"REVERSE_V2", {"filbhs"}},
      {"RIGHT_SHIFT", {"ichst", 4}}, {"ROUND", {"f"}}, {"RSQRT", {"f"}}, {"SCATTER_ND", {"filbch"}}, {"SELECT_V2", {"filbchsu", 4}},
      {"SHAPE", {"filbchstu"}}, {"SIGN", {"fi"}}, {"SIN", {"f"}}, {"SLICE", {"filbchsu"}}, {"SOFTMAX", {"f"}}, {"SQRT", {"f"}},
      {"SQUARE", {"f"}}, {"SQUARED_DIFFERENCE", {"fi", 4}}, {"STRIDED_SLICE", {"filbchsu"}}, {"SUB", {"fil", 5}}, {"SUM", {"fil"}},
      {"TANH", {"f"}}, {"TILE", {"filbh"}}, {"TOPK_V2", {"fil"}}, {"TRANSPOSE", {"filbchs"}}, {"TRANSPOSE_CONV", {"f"}},
      {"BITWISE_XOR", {"ichstu", 4}}, {"BITCAST", {"filbchstu"}}, {"DILATE", {"filc"}}, {"RANGE", {"fil"}},
      {"UNIQUE", {"filch"}}, {"WHERE", {"b"}}};
  return table;
}

static char letter(Type element) {
  if (element.isF32())
    return 'f';
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer)
    return 0;
  switch (integer.getWidth()) {
  case 1: return 'b';
  case 8: return integer.isUnsigned() ? 'h' : 'c';
  case 16: return integer.isUnsigned() ? 't' : 's';
  case 32: return integer.isUnsigned() ? 'u' : 'i';
  case 64: return integer.isUnsigned() ? 0 : 'l';
  }
  return 0;
}

/// Operators with kernels for integers that have a scale: of 8 bits (1), of 16 (2).
static int quantizedBits(StringRef name) {
  static const llvm::StringMap<int> table = {
      {"ADD", 3}, {"SUB", 3}, {"MUL", 3}, {"CONV_2D", 3}, {"DEPTHWISE_CONV_2D", 3}, {"TRANSPOSE_CONV", 3}, {"FULLY_CONNECTED", 3},
      {"BATCH_MATMUL", 3}, {"AVERAGE_POOL_2D", 3}, {"MAX_POOL_2D", 3}, {"MEAN", 3}, {"SOFTMAX", 1}, {"LOGISTIC", 1}, {"TANH", 1},
      {"EXP", 1}, {"MAXIMUM", 3}, {"MINIMUM", 3}, {"RESHAPE", 3}, {"TRANSPOSE", 3}, {"SLICE", 3}, {"STRIDED_SLICE", 3},
      {"CONCATENATION", 3}, {"PAD", 3}, {"PADV2", 3}, {"GATHER", 3}, {"GATHER_ND", 3}, {"BROADCAST_TO", 3}, {"DYNAMIC_UPDATE_SLICE", 1},
      {"SELECT_V2", 3}, {"SHAPE", 3}, {"REVERSE_V2", 2}, {"RESIZE_BILINEAR", 3}};
  return table.lookup(name);
}

bool isReal(Type element) { return element.isF32() || isa<quant::UniformQuantizedType>(element); }

bool takesType(StringRef name, Type element) {
  if (auto quantized = dyn_cast<quant::UniformQuantizedType>(element))
    return quantizedBits(name) & (quantized.getStorageTypeIntegralWidth() == 16 ? 2 : 1);
  auto at = facts().find(name);
  char wanted = letter(element);
  return at != facts().end() && wanted && StringRef(at->second.types).contains(wanted);
}

int64_t broadcastRank(StringRef name) {
  auto at = facts().find(name);
  return at == facts().end() ? 0 : at->second.rank;
}

bool hasActivation(StringRef name) {
  return llvm::is_contained({"ADD", "SUB", "MUL", "DIV", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MAX_POOL_2D"},
                            name);
}

} // namespace lathe::tflwrite
