// Operator by operator: the table of its options, and the version that readers must know.
#include "compiler/export/tflite/OptionTables.h"

#include "dialects/types/ElementTypes.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace lathe::tflwrite {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using Desc = ModelWriter::OperatorDesc;

tfl::Padding padding(Operation *op) { return textOption(op, "padding") == "VALID" ? tfl::Padding::VALID : tfl::Padding::SAME; }

tfl::ActivationFunctionType activation(Operation *op) {
  StringRef name = textOption(op, "activation");
  using A = tfl::ActivationFunctionType;
  return name == "RELU" ? A::RELU : name == "RELU6" ? A::RELU6 : name == "RELU_N1_TO_1" ? A::RELU_N1_TO_1 : A::NONE;
}

int32_t number(Operation *op, StringRef name, int64_t otherwise = 0) { return static_cast<int32_t>(intOption(op, name, otherwise)); }
bool flag(Operation *op, StringRef name) { return intOption(op, name, 0) != 0; }

tfl::TensorType typeOf(Type t) {
  return tensorTypeOf(elementDType(cast<RankedTensorType>(t).getElementType())).value_or(tfl::TensorType::FLOAT32);
}

template <typename Table>
void set(Desc &d, flatbuffers::Offset<Table> table) {
  d.optionsType = tfl::BuiltinOptionsTraits<Table>::enum_value;
  d.options = table.Union();
}

using Fill = void (*)(Operation *, Builder &, Desc &);

#define FILL [](Operation * op, Builder & b, Desc & d)

/// A table without fields.
template <typename Table>
void empty(Operation *op, Builder &b, Desc &d) {
  auto start = b.StartTable();
  set(d, flatbuffers::Offset<Table>(b.EndTable(start)));
}

void reducer(Operation *op, Builder &b, Desc &d) { set(d, tfl::CreateReducerOptions(b, flag(op, "keep_dims"))); }
void pool(Operation *op, Builder &b, Desc &d) {
  set(d, tfl::CreatePool2DOptions(b, padding(op), number(op, "stride_w", 1), number(op, "stride_h", 1), number(op, "filter_width", 1),
                                  number(op, "filter_height", 1), activation(op)));
}

struct Entry {
  const char *name;
  tfl::BuiltinOperator code;
  Fill fill;
};

#define PLAIN(NAME) {#NAME, tfl::BuiltinOperator::NAME, nullptr}
#define EMPTY(NAME, TABLE) {#NAME, tfl::BuiltinOperator::NAME, empty<tfl::TABLE>}
#define WITH(NAME, FUNCTION) {#NAME, tfl::BuiltinOperator::NAME, FUNCTION}

const Entry entries[] = {
    EMPTY(ABS, AbsOptions),
    WITH(ADD, FILL { set(d, tfl::CreateAddOptions(b, activation(op))); }),
    WITH(ARG_MAX, FILL { set(d, tfl::CreateArgMaxOptions(b, typeOf(op->getResult(0).getType()))); }),
    WITH(ARG_MIN, FILL { set(d, tfl::CreateArgMinOptions(b, typeOf(op->getResult(0).getType()))); }),
    EMPTY(ATAN2, ATan2Options),
    WITH(AVERAGE_POOL_2D, pool),
    WITH(BATCH_MATMUL, FILL { set(d, tfl::CreateBatchMatMulOptions(b, flag(op, "adj_x"), flag(op, "adj_y"))); }),
    EMPTY(BITCAST, BitcastOptions),
    EMPTY(BITWISE_XOR, BitwiseXorOptions),
    EMPTY(BROADCAST_TO, BroadcastToOptions),
    WITH(CAST, FILL { set(d, tfl::CreateCastOptions(b, typeOf(op->getOperand(0).getType()), typeOf(op->getResult(0).getType()))); }),
    PLAIN(CEIL),
    WITH(CONCATENATION, FILL { set(d, tfl::CreateConcatenationOptions(b, number(op, "axis"))); }),
    WITH(CONV_2D, FILL {
      set(d, tfl::CreateConv2DOptions(b, padding(op), number(op, "stride_w", 1), number(op, "stride_h", 1), activation(op),
                                      number(op, "dilation_w", 1), number(op, "dilation_h", 1)));
    }),
    WITH(CONV_3D, FILL {
      set(d, tfl::CreateConv3DOptions(b, padding(op), number(op, "stride_d", 1), number(op, "stride_w", 1), number(op, "stride_h", 1),
                                      activation(op), number(op, "dilation_d", 1), number(op, "dilation_w", 1), number(op, "dilation_h", 1)));
    }),
    EMPTY(COS, CosOptions),
    WITH(CUMSUM, FILL { set(d, tfl::CreateCumsumOptions(b, flag(op, "exclusive"), flag(op, "reverse"))); }),
    WITH(DEPTHWISE_CONV_2D, FILL {
      set(d, tfl::CreateDepthwiseConv2DOptions(b, padding(op), number(op, "stride_w", 1), number(op, "stride_h", 1),
                                               number(op, "depth_multiplier", 1), activation(op), number(op, "dilation_w", 1),
                                               number(op, "dilation_h", 1)));
    }),
    {"DILATE", tfl::BuiltinOperator::DILATE,
     FILL {
       d.options2Type = tfl::BuiltinOptions2::DilateOptions;
       d.options = tfl::CreateDilateOptions(b).Union();
     }},
    EMPTY(DEQUANTIZE, DequantizeOptions),
    WITH(DIV, FILL { set(d, tfl::CreateDivOptions(b, activation(op))); }),
    EMPTY(DYNAMIC_UPDATE_SLICE, DynamicUpdateSliceOptions),
    PLAIN(ELU),
    EMPTY(EQUAL, EqualOptions),
    EMPTY(EXP, ExpOptions),
    PLAIN(FLOOR),
    EMPTY(FLOOR_DIV, FloorDivOptions),
    EMPTY(FLOOR_MOD, FloorModOptions),
    WITH(FULLY_CONNECTED, FILL {
      set(d, tfl::CreateFullyConnectedOptions(b, activation(op), tfl::FullyConnectedOptionsWeightsFormat::DEFAULT, flag(op, "keep_num_dims"),
                                              flag(op, "asymmetric_quantize_inputs")));
    }),
    WITH(GATHER, FILL { set(d, tfl::CreateGatherOptions(b, number(op, "axis"), number(op, "batch_dims"))); }),
    EMPTY(GATHER_ND, GatherNdOptions),
    WITH(GELU, FILL { set(d, tfl::CreateGeluOptions(b, flag(op, "approximate"))); }),
    EMPTY(GREATER, GreaterOptions),
    EMPTY(GREATER_EQUAL, GreaterEqualOptions),
    EMPTY(HARD_SWISH, HardSwishOptions),
    WITH(LEAKY_RELU, FILL { set(d, tfl::CreateLeakyReluOptions(b, static_cast<float>(floatOption(op, "alpha")))); }),
    EMPTY(LESS, LessOptions),
    EMPTY(LESS_EQUAL, LessEqualOptions),
    PLAIN(LOG),
    EMPTY(LOGICAL_AND, LogicalAndOptions),
    EMPTY(LOGICAL_NOT, LogicalNotOptions),
    EMPTY(LOGICAL_OR, LogicalOrOptions),
    PLAIN(LOGISTIC),
    EMPTY(LOG_SOFTMAX, LogSoftmaxOptions),
    EMPTY(MAXIMUM, MaximumMinimumOptions),
    WITH(MAX_POOL_2D, pool),
    WITH(MEAN, reducer),
    EMPTY(MINIMUM, MaximumMinimumOptions),
    WITH(MUL, FILL { set(d, tfl::CreateMulOptions(b, activation(op))); }),
    EMPTY(NEG, NegOptions),
    EMPTY(NOT_EQUAL, NotEqualOptions),
    EMPTY(PAD, PadOptions),
    EMPTY(PADV2, PadV2Options),
    EMPTY(POW, PowOptions),
    EMPTY(RANGE, RangeOptions),
    EMPTY(QUANTIZE, QuantizeOptions),
    WITH(REDUCE_ALL, reducer),
    WITH(REDUCE_ANY, reducer),
    WITH(REDUCE_MAX, reducer),
    WITH(REDUCE_MIN, reducer),
    WITH(REDUCE_PROD, reducer),
    PLAIN(PRELU),
    PLAIN(RELU),
    PLAIN(RELU6),
    PLAIN(RELU_0_TO_1),
    PLAIN(RELU_N1_TO_1),
    EMPTY(RESHAPE, ReshapeOptions),
    WITH(RESIZE_BILINEAR, FILL { set(d, tfl::CreateResizeBilinearOptions(b, flag(op, "align_corners"), flag(op, "half_pixel_centers"))); }),
    EMPTY(REVERSE_V2, ReverseV2Options),
    EMPTY(RIGHT_SHIFT, RightShiftOptions),
    PLAIN(ROUND),
    PLAIN(RSQRT),
    EMPTY(SCATTER_ND, ScatterNdOptions),
    EMPTY(SELECT_V2, SelectV2Options),
    WITH(SHAPE, FILL { set(d, tfl::CreateShapeOptions(b, tfl::TensorType::INT32)); }),
    EMPTY(SIGN, SignOptions),
    PLAIN(SIN),
    EMPTY(SLICE, SliceOptions),
    WITH(SOFTMAX, FILL { set(d, tfl::CreateSoftmaxOptions(b, static_cast<float>(floatOption(op, "beta", 1)))); }),
    PLAIN(SQRT),
    EMPTY(SQUARE, SquareOptions),
    EMPTY(SQUARED_DIFFERENCE, SquaredDifferenceOptions),
    WITH(STRIDED_SLICE, FILL { set(d, tfl::CreateStridedSliceOptions(b)); }),
    WITH(SUB, FILL { set(d, tfl::CreateSubOptions(b, activation(op))); }),
    WITH(SUM, reducer),
    PLAIN(TANH),
    EMPTY(TOPK_V2, TopKV2Options),
    EMPTY(TRANSPOSE, TransposeOptions),
    WITH(TRANSPOSE_CONV, FILL {
      set(d, tfl::CreateTransposeConvOptions(b, padding(op), number(op, "stride_w", 1), number(op, "stride_h", 1), activation(op)));
    }),
    WITH(UNIQUE, FILL {
      set(d, tfl::CreateUniqueOptions(b, intOption(op, "index_bits", 32) == 64 ? tfl::TensorType::INT64 : tfl::TensorType::INT32));
    }),
    EMPTY(WHERE, WhereOptions),
};

/// The oldest version with kernels for quantized integers of 8 and of 16 bits.
int quantizedVersion(StringRef name, bool wide) {
  struct Versions {
    int narrow, wide;
  };
  static const llvm::StringMap<Versions> table = {
      {"ADD", {2, 3}}, {"SUB", {2, 5}}, {"MUL", {2, 4}}, {"CONV_2D", {3, 4}}, {"DEPTHWISE_CONV_2D", {3, 5}}, {"TRANSPOSE_CONV", {3, 4}},
      {"FULLY_CONNECTED", {12, 12}}, {"BATCH_MATMUL", {2, 3}}, {"AVERAGE_POOL_2D", {2, 3}}, {"MAX_POOL_2D", {2, 3}}, {"MEAN", {2, 3}},
      {"SOFTMAX", {2, 3}}, {"LOGISTIC", {2, 3}}, {"TANH", {2, 3}}, {"EXP", {2, 2}}, {"MAXIMUM", {2, 4}}, {"MINIMUM", {2, 4}},
      {"TRANSPOSE", {2, 4}}, {"SLICE", {2, 4}}, {"STRIDED_SLICE", {2, 4}}, {"CONCATENATION", {2, 3}}, {"PAD", {2, 3}}, {"PADV2", {2, 3}},
      {"GATHER", {2, 4}}, {"SELECT_V2", {1, 1}}, {"QUANTIZE", {1, 3}}, {"DEQUANTIZE", {2, 3}}, {"BROADCAST_TO", {2, 3}},
      {"RESIZE_BILINEAR", {2, 4}}};
  auto at = table.find(name);
  return at == table.end() ? 1 : wide ? at->second.wide : at->second.narrow;
}

/// The oldest version that has what this use needs.
int versionOf(Operation *op, StringRef name) {
  auto rank = [&](unsigned i) { return i < op->getNumOperands() ? cast<RankedTensorType>(op->getOperand(i).getType()).getRank() : 0; };
  auto element = [&](unsigned i) { return cast<RankedTensorType>(op->getOperand(i).getType()).getElementType(); };
  int64_t largest = 0;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    largest = std::max<int64_t>(largest, rank(i));
  int version = 1;
  SmallVector<Value> all(op->getOperands());
  all.append(op->result_begin(), op->result_end());
  for (Value v : all)
    if (auto type = dyn_cast<quant::UniformQuantizedType>(hlo::elementType(v)))
      version = std::max(version, quantizedVersion(name, type.getStorageTypeIntegralWidth() == 16));
  if (name == "RESIZE_BILINEAR" && flag(op, "half_pixel_centers"))
    version = std::max(version, 3);
  if (version > 1)
    return std::max(version, largest > 4 && name == "SLICE" ? 5 : largest > 4 && name == "TRANSPOSE" ? 4 : 1);
  if (name == "DEQUANTIZE")
    return element(0).isF16() ? 3 : 1;
  if (op->getNumOperands() > 1 && element(1).isInteger(8)) { // weights alone: hybrid
    if (name == "FULLY_CONNECTED")
      return 12;
    if (name == "DEPTHWISE_CONV_2D")
      return 6;
    if (name == "CONV_2D")
      return 5;
  }
  if (name == "FULLY_CONNECTED")
    return op->getNumOperands() == 2 ? 6 : intOption(op, "keep_num_dims") ? 5 : 1;
  if (name == "DEPTHWISE_CONV_2D")
    return intOption(op, "dilation_w", 1) != 1 || intOption(op, "dilation_h", 1) != 1 ? 2 : 1;
  if (name == "CONV_2D") {
    auto image = cast<RankedTensorType>(op->getOperand(0).getType()), filter = cast<RankedTensorType>(op->getOperand(1).getType());
    return image.getShape().back() != filter.getShape().back() ? 6 : 1;
  }
  if (name == "ADD")
    return element(0).isInteger(64) ? 4 : 1;
  if (name == "SUB" && largest > 4)
    return element(0).isInteger(64) ? 4 : 3;
  if (name == "MUL")
    return element(0).isInteger(64) ? 6 : 1;
  if (name == "GATHER")
    return intOption(op, "batch_dims") ? 5 : element(0).isInteger(1) ? 3 : 1;
  if (name == "EQUAL" || name == "NOT_EQUAL")
    return element(0).isInteger(1) ? 3 : 1;
  if (name == "SLICE")
    return largest > 4 ? 5 : 1;
  if (name == "TRANSPOSE")
    return rank(0) > 5 ? 6 : rank(0) > 4 ? 4 : 1;
  if (name == "BROADCAST_TO")
    return 2;
  if (name == "MAXIMUM" || name == "MINIMUM")
    return largest > 4 ? 3 : 1;
  if (name == "SIGN")
    return element(0).isInteger(32) ? 2 : 1;
  if (name == "ABS")
    return element(0).isInteger(32) ? 5 : 1;
  if (name == "REVERSE_V2")
    return element(0).isInteger(1) ? 2 : 1;
  return 1;
}

} // namespace

bool describeOperator(Operation *op, ModelWriter &writer, ModelWriter::OperatorDesc &desc) {
  static const llvm::StringMap<const Entry *> table = [] {
    llvm::StringMap<const Entry *> t;
    for (const Entry &e : entries)
      t[e.name] = &e;
    return t;
  }();
  auto at = table.find(operatorName(op));
  if (at == table.end())
    return false;
  desc.code = at->second->code;
  desc.version = versionOf(op, at->first());
  if (at->second->fill)
    at->second->fill(op, writer.builder(), desc);
  return true;
}

void describeAsIs(Operation *op, ModelWriter &writer, ModelWriter::OperatorDesc &desc) {
  desc.code = static_cast<tfl::BuiltinOperator>(intOption(op, "code"));
  desc.version = static_cast<int>(intOption(op, "version", 1));
  if (desc.code == tfl::BuiltinOperator::CUSTOM) {
    desc.custom = textOption(op, "name").str();
    desc.customOptions = textOption(op, "custom_options").str();
  }
  desc.optionsType = static_cast<tfl::BuiltinOptions>(intOption(op, "options"));
  if (desc.optionsType == tfl::BuiltinOptions::NONE)
    return;
  ArrayRef<int64_t> fields = numbersOption(op, "fields");
  Builder &b = writer.builder();
  struct Field {
    flatbuffers::voffset_t at;
    int64_t kind, value;
    flatbuffers::Offset<flatbuffers::Vector<int32_t>> numbers;
  };
  SmallVector<Field> list; // vectors come before their table
  for (size_t i = 0; i + 2 < fields.size();) {
    Field f{static_cast<flatbuffers::voffset_t>(4 + 2 * fields[i]), fields[i + 1], fields[i + 2], {}};
    i += 3;
    if (f.kind == 'v') {
      const size_t count = std::min<size_t>(size_t(f.value), fields.size() - i);
      std::vector<int32_t> numbers(fields.begin() + i, fields.begin() + i + count);
      f.numbers = b.CreateVector(numbers);
      i += count;
    }
    list.push_back(f);
  }
  auto start = b.StartTable();
  // what equals the default that is given here would be left out
  for (const Field &f : list)
    if (f.kind == 'v')
      b.AddOffset(f.at, f.numbers);
    else if (f.kind == '4')
      b.AddElement<uint32_t>(f.at, static_cast<uint32_t>(f.value), ~static_cast<uint32_t>(f.value));
    else
      b.AddElement<uint8_t>(f.at, static_cast<uint8_t>(f.value), static_cast<uint8_t>(~f.value));
  desc.options = b.EndTable(start);
}

} // namespace lathe::tflwrite
