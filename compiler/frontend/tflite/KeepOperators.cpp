// The operator with its options, field by field, and what the file says of its tensors, as attributes.
#include "compiler/frontend/tflite/KeepOperators.h"

#include "compiler/frontend/tflite/Translator.h"
#include "dialects/hlo/Hlo.h"
#include "graph/tflite/AsIs.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

/// The fields of a table of options in their order: bytes of a number, v for a vector of i32, - for what is left out. None for
/// tables that no operator on integers with scales has.
std::optional<StringRef> fieldsOf(tfl::BuiltinOptions type) {
  using T = tfl::BuiltinOptions;
  switch (type) {
  case T::NONE:
  case T::PadOptions:
  case T::PadV2Options:
  case T::SpaceToBatchNDOptions:
  case T::BatchToSpaceNDOptions:
  case T::TopKV2Options:
  case T::TransposeOptions:
  case T::ExpOptions:
  case T::LogSoftmaxOptions:
  case T::DequantizeOptions:
  case T::MaximumMinimumOptions:
  case T::TileOptions:
  case T::GreaterOptions:
  case T::GreaterEqualOptions:
  case T::LessOptions:
  case T::LessEqualOptions:
  case T::EqualOptions:
  case T::NotEqualOptions:
  case T::NegOptions:
  case T::SelectOptions:
  case T::SelectV2Options:
  case T::SliceOptions:
  case T::ExpandDimsOptions:
  case T::AbsOptions:
  case T::HardSwishOptions:
  case T::SquareOptions:
  case T::SquaredDifferenceOptions:
  case T::FillOptions:
  case T::ReverseV2Options:
  case T::GatherNdOptions:
  case T::ScatterNdOptions:
  case T::QuantizeOptions:
  case T::BroadcastToOptions:
  case T::DynamicUpdateSliceOptions: return "";
  case T::MulOptions:
  case T::DivOptions:
  case T::L2NormOptions:
  case T::ReducerOptions:
  case T::ArgMaxOptions:
  case T::ArgMinOptions:
  case T::MirrorPadOptions:
  case T::GeluOptions: return "1";
  case T::AddOptions:
  case T::SubOptions:
  case T::RNNOptions:
  case T::CastOptions:
  case T::ResizeNearestNeighborOptions: return "11";
  case T::SequenceRNNOptions:
  case T::BatchMatMulOptions: return "111";
  case T::BidirectionalSequenceRNNOptions: return "1111";
  case T::ResizeBilinearOptions: return "--11";
  case T::FullyConnectedOptions: return "11111-";
  case T::SoftmaxOptions:
  case T::LeakyReluOptions:
  case T::SplitOptions:
  case T::SplitVOptions:
  case T::SpaceToDepthOptions:
  case T::DepthToSpaceOptions: return "4";
  case T::ConcatenationOptions: return "41";
  case T::SVDFOptions: return "411";
  case T::GatherOptions:
  case T::PackOptions:
  case T::UnpackOptions:
  case T::ReverseSequenceOptions: return "44";
  case T::StridedSliceOptions: return "444441";
  case T::Pool2DOptions: return "144441";
  case T::Conv2DOptions: return "1441441";
  case T::DepthwiseConv2DOptions: return "1444144";
  case T::TransposeConvOptions: return "14411";
  case T::LSTMOptions: return "14411";
  case T::UnidirectionalSequenceLSTMOptions:
  case T::BidirectionalSequenceLSTMOptions: return "144111";
  case T::ReshapeOptions:
  case T::SqueezeOptions: return "v";
  default: return std::nullopt;
  }
}

/// Place, kind and value of each field that is there; of a vector how many numbers, then those.
SmallVector<int64_t> readFields(const tfl::Operator &op) {
  SmallVector<int64_t> list;
  auto *table = static_cast<const flatbuffers::Table *>(op.builtin_options());
  if (!table)
    return list;
  for (auto [i, kind] : llvm::enumerate(*fieldsOf(op.builtin_options_type()))) {
    auto at = static_cast<flatbuffers::voffset_t>(4 + 2 * i);
    if (kind == '-' || !table->CheckField(at))
      continue;
    list.append({int64_t(i), kind});
    if (kind == '1') {
      list.push_back(table->GetField<uint8_t>(at, 0));
    } else if (kind == '4') {
      list.push_back(table->GetField<uint32_t>(at, 0));
    } else {
      auto *values = table->GetPointer<const flatbuffers::Vector<int32_t> *>(at);
      list.push_back(values->size());
      list.append(values->begin(), values->end());
    }
  }
  return list;
}

/// Scales of a tensor; null where it has none.
DictionaryAttr scalesOf(Builder &b, const TensorInfo &info) {
  const Quantization &q = info.quantization;
  if (!q)
    return {};
  SmallVector<double> scales(q.scales.begin(), q.scales.end());
  return b.getDictionaryAttr({b.getNamedAttr("scales", b.getDenseF64ArrayAttr(scales)),
                              b.getNamedAttr("zero_points", b.getDenseI64ArrayAttr(q.zeroPoints)),
                              b.getNamedAttr("dimension", b.getI64IntegerAttr(q.dimension))});
}

/// A tensor that is no value of hlo.
DictionaryAttr describeTensor(Builder &b, const TensorInfo &info, int64_t number) {
  SmallVector<NamedAttribute> parts = {b.getNamedAttr("number", b.getI64IntegerAttr(number)),
                                       b.getNamedAttr("type", b.getI64IntegerAttr(int64_t(dtypeOf(info.type)))),
                                       b.getNamedAttr("dims", b.getDenseI64ArrayAttr(info.dims))};
  if (DictionaryAttr scales = scalesOf(b, info))
    parts.push_back(b.getNamedAttr("quantization", scales));
  return b.getDictionaryAttr(parts);
}

/// The results of an operator with a state: the input with as many features as there are outputs; of one that runs both ways the two
/// side by side, or two results. None where these are not known.
SmallVector<Type> typesWithState(OpContext &c) {
  Value x = c.input(0);
  if (!x || Emitter::rank(x) < 2)
    return {};
  auto dim = [&](unsigned input, unsigned d) -> int64_t {
    const TensorInfo &info = c.inputInfo(input);
    return c.hasInput(input) && d < info.dims.size() ? info.dims[d] : -1;
  };
  SmallVector<int64_t, 2> features;
  bool merges = false;
  if (c.code == Op::UNIDIRECTIONAL_SEQUENCE_LSTM || c.code == Op::LSTM) {
    features = {dim(8, 1)};
  } else if (c.code == Op::RNN || c.code == Op::UNIDIRECTIONAL_SEQUENCE_RNN) {
    features = {dim(1, 0)};
  } else if (c.code == Op::BIDIRECTIONAL_SEQUENCE_LSTM) {
    features = {dim(8, 1), dim(25, 1)};
    merges = c.options<tfl::BidirectionalSequenceLSTMOptions>().merge_outputs();
  } else if (c.code == Op::BIDIRECTIONAL_SEQUENCE_RNN) {
    features = {dim(1, 0), dim(5, 0)};
    merges = c.options<tfl::BidirectionalSequenceRNNOptions>().merge_outputs();
  } else if (int64_t rank = c.options<tfl::SVDFOptions>().rank(); rank > 0) {
    features = {dim(1, 0) / rank};
  }
  if (features.empty() || llvm::any_of(features, [](int64_t n) { return n < 0; }))
    return {};
  if (merges)
    features = {features[0] + features[1]};
  if (features.size() != c.numOutputs())
    return {};
  SmallVector<Type> types;
  for (auto [i, n] : llvm::enumerate(features)) {
    Dims dims = c.dims(x);
    dims.back() = c.size(n);
    types.push_back(hlo::makeType(dims, c.elementOf(c.outputInfo(i))));
  }
  return types;
}

} // namespace

bool keepsState(const OpContext &c) {
  for (unsigned i = 0; i < c.numInputs(); ++i)
    if (c.hasInput(i) && c.inputInfo(i).isVariable)
      return true;
  return false;
}

bool canKeep(const OpContext &c) {
  if (c.op.builtin_options2_type() != tfl::BuiltinOptions2::NONE || !fieldsOf(c.op.builtin_options_type()) ||
      (c.op.builtin_options_type() != tfl::BuiltinOptions::NONE && !c.op.builtin_options()))
    return false;
  switch (c.code) {
  case Op::CUSTOM: // the one that LiteRT has a kernel for; others are worth more as builtin operators
    if (c.opName != "TFLite_Detection_PostProcess" || !c.op.custom_options())
      return false;
    break;
  case Op::CALL:
  case Op::CALL_ONCE:
  case Op::IF:
  case Op::WHILE:
  case Op::READ_VARIABLE:
  case Op::ASSIGN_VARIABLE:
  case Op::SHAPE:
  case Op::RANK:
  case Op::DELEGATE: return false;
  default: break;
  }
  bool scaled = false;
  auto see = [&](const TensorInfo &info) {
    scaled |= OpContext::isQuantized(info);
    return !info.quantization.isOther;
  };
  for (unsigned i = 0; i < c.numInputs(); ++i)
    if (!see(c.inputInfo(i)))
      return false;
  for (unsigned i = 0; i < c.numOutputs(); ++i)
    if (!see(c.outputInfo(i)))
      return false;
  for (unsigned i = 0; i < c.numIntermediates(); ++i)
    if (!see(c.intermediateInfo(i)))
      return false;
  if (!keepsState(c))
    return scaled || c.code == Op::CUSTOM;
  switch (c.code) {
  case Op::UNIDIRECTIONAL_SEQUENCE_LSTM:
  case Op::LSTM:
  case Op::RNN:
  case Op::UNIDIRECTIONAL_SEQUENCE_RNN:
  case Op::SVDF: return scaled && c.numOutputs() == 1;
  case Op::BIDIRECTIONAL_SEQUENCE_LSTM:
  case Op::BIDIRECTIONAL_SEQUENCE_RNN: return scaled;
  default: return false;
  }
}

LogicalResult keepOperator(OpContext &c) {
  Builder &b = c.b;
  SmallVector<Value> operands;
  SmallVector<Type> types;
  SmallVector<Attribute> inputs, outputs, intermediates;
  Attribute none = b.getUnitAttr();
  auto orNone = [&](DictionaryAttr a) { return a ? Attribute(a) : none; };
  if (keepsState(c)) {
    types = typesWithState(c);
    if (types.empty())
      return c.error("the size of its result is not known");
  } else {
    for (unsigned i = 0; i < c.numOutputs(); ++i) {
      Value v = c.result(i) ? c.ctx.materialize(*c.result(i), c.loc) : Value();
      if (!v)
        return c.error("output " + Twine(i) + " has no compiled form");
      types.push_back(v.getType());
    }
  }
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    if (!c.hasInput(i)) {
      inputs.push_back(b.getStringAttr("absent"));
    } else if (c.inputInfo(i).isVariable) {
      inputs.push_back(describeTensor(b, c.inputInfo(i), c.op.inputs()->Get(i)));
    } else {
      Value v = c.input(i);
      if (!v)
        return failure();
      inputs.push_back(b.getArrayAttr({b.getI64IntegerAttr(int64_t(operands.size())), orNone(scalesOf(b, c.inputInfo(i)))}));
      operands.push_back(v);
    }
  }
  for (unsigned i = 0; i < c.numOutputs(); ++i)
    outputs.push_back(orNone(scalesOf(b, c.outputInfo(i))));
  for (unsigned i = 0; i < c.numIntermediates(); ++i)
    intermediates.push_back(describeTensor(b, c.intermediateInfo(i), -1));
  StringRef custom;
  if (auto *given = c.op.custom_options())
    custom = StringRef(reinterpret_cast<const char *>(given->data()), given->size());
  auto config = b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(c.opName)), b.getNamedAttr("code", b.getI64IntegerAttr(int64_t(c.code))),
                                     b.getNamedAttr("version", b.getI64IntegerAttr(c.version)),
                                     b.getNamedAttr("options", b.getI64IntegerAttr(int64_t(c.op.builtin_options_type()))),
                                     b.getNamedAttr("custom_options", b.getStringAttr(custom)),
                                     b.getNamedAttr("fields", b.getDenseI64ArrayAttr(readFields(c.op))),
                                     b.getNamedAttr("inputs", b.getArrayAttr(inputs)), b.getNamedAttr("outputs", b.getArrayAttr(outputs)),
                                     b.getNamedAttr("intermediates", b.getArrayAttr(intermediates))});
  auto call = hlo::CustomCallOp::create(c.ctx.builder, c.loc, types, operands, b.getStringAttr(asIsTarget), b.getBoolAttr(false), config,
                                        IntegerAttr());
  for (unsigned i = 0; i < c.numOutputs(); ++i)
    if (failed(c.setResult(i, call->getResult(i))))
      return failure();
  return success();
}

} // namespace lathe::tflite
