// The flatbuffer, bottom up: buffers, tensors, operators, subgraphs, the model.
#include "compiler/export/tflite/ModelWriter.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include <cstring>
#include <string_view>

namespace lathe::tflwrite {

namespace {
/// What flatbuffers hold, with room for what stands between the constants.
constexpr int64_t kMaxBytes = (int64_t(1) << 31) - (int64_t(64) << 20);
} // namespace

std::optional<tfl::TensorType> tensorTypeOf(DType type) {
  switch (type) {
  case DType::Float32: return tfl::TensorType::FLOAT32;
  case DType::Float16: return tfl::TensorType::FLOAT16;
  case DType::BFloat16: return tfl::TensorType::BFLOAT16;
  case DType::Float64: return tfl::TensorType::FLOAT64;
  case DType::Int8: return tfl::TensorType::INT8;
  case DType::Int16: return tfl::TensorType::INT16;
  case DType::Int32: return tfl::TensorType::INT32;
  case DType::Int64: return tfl::TensorType::INT64;
  case DType::UInt8: return tfl::TensorType::UINT8;
  case DType::UInt16: return tfl::TensorType::UINT16;
  case DType::UInt32: return tfl::TensorType::UINT32;
  case DType::UInt64: return tfl::TensorType::UINT64;
  case DType::Bool: return tfl::TensorType::BOOL;
  case DType::Resource: return tfl::TensorType::RESOURCE;
  case DType::Complex64: return tfl::TensorType::COMPLEX64;
  case DType::Complex128: return tfl::TensorType::COMPLEX128;
  default: return std::nullopt;
  }
}

int32_t ModelWriter::addSubgraph(std::string name) {
  subgraphs.push_back({std::move(name), {}, {}, {}, {}});
  return static_cast<int32_t>(subgraphs.size()) - 1;
}

int32_t ModelWriter::addTensor(int32_t subgraph, TensorDesc tensor) {
  subgraphs[subgraph].tensors.push_back(std::move(tensor));
  return static_cast<int32_t>(subgraphs[subgraph].tensors.size()) - 1;
}

void ModelWriter::addOperator(int32_t subgraph, OperatorDesc op) { subgraphs[subgraph].operators.push_back(std::move(op)); }

void ModelWriter::setPorts(int32_t subgraph, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
  subgraphs[subgraph].inputs = std::move(inputs);
  subgraphs[subgraph].outputs = std::move(outputs);
}

void ModelWriter::addSignature(std::string key, int32_t subgraph, Names inputs, Names outputs) {
  signatures.push_back({std::move(key), subgraph, std::move(inputs), std::move(outputs)});
}

void ModelWriter::addMetadata(std::string name, std::string bytes) { metadata.emplace_back(std::move(name), std::move(bytes)); }

static flatbuffers::Offset<tfl::Buffer> writeBuffer(flatbuffers::FlatBufferBuilder &fbb, const void *data, size_t bytes) {
  fbb.ForceVectorAlignment(bytes, 1, 16);
  return tfl::CreateBuffer(fbb, fbb.CreateVector(static_cast<const uint8_t *>(data), bytes));
}

uint32_t ModelWriter::bufferOf(const Tensor &value) {
  std::string_view bytes(static_cast<const char *>(value.data()), value.sizeBytes());
  uint64_t hash = std::hash<std::string_view>()(bytes);
  for (auto [at, end] = known.equal_range(hash); at != end; ++at) {
    const Tensor &other = at->second.second;
    if (other.sizeBytes() == value.sizeBytes() && std::memcmp(other.data(), value.data(), bytes.size()) == 0)
      return at->second.first;
  }
  buffers.push_back(writeBuffer(fbb, bytes.data(), bytes.size()));
  uint32_t number = static_cast<uint32_t>(buffers.size()) - 1;
  known.emplace(hash, std::make_pair(number, value));
  return number;
}

flatbuffers::Offset<tfl::Tensor> ModelWriter::write(const TensorDesc &t) {
  // buffer 0 stands for no data
  uint32_t buffer = t.value.valid() && t.value.sizeBytes() > 0 ? bufferOf(t.value) : 0;
  std::vector<int32_t> shape, signature;
  bool dynamic = false;
  for (int64_t d : t.dims) {
    shape.push_back(d < 0 ? 1 : static_cast<int32_t>(d));
    signature.push_back(static_cast<int32_t>(d));
    dynamic |= d < 0;
  }
  auto name = fbb.CreateString(t.name);
  auto shapeVector = fbb.CreateVector(shape);
  flatbuffers::Offset<flatbuffers::Vector<int32_t>> signatureVector;
  if (dynamic)
    signatureVector = fbb.CreateVector(signature);
  flatbuffers::Offset<tfl::QuantizationParameters> quantization;
  if (!t.scales.empty()) {
    auto scales = fbb.CreateVector(t.scales);
    auto zeros = fbb.CreateVector(t.zeroPoints);
    tfl::QuantizationParametersBuilder b(fbb);
    b.add_scale(scales);
    b.add_zero_point(zeros);
    b.add_quantized_dimension(t.quantizedDim);
    quantization = b.Finish();
  }
  tfl::TensorBuilder b(fbb);
  b.add_shape(shapeVector);
  b.add_type(*tensorTypeOf(t.type));
  b.add_buffer(buffer);
  b.add_name(name);
  b.add_quantization(quantization);
  b.add_is_variable(t.isVariable);
  b.add_shape_signature(signatureVector);
  b.add_has_rank(true);
  return b.Finish();
}

flatbuffers::Offset<tfl::SubGraph> ModelWriter::write(const Subgraph &graph) {
  std::vector<flatbuffers::Offset<tfl::Tensor>> tensors;
  for (const TensorDesc &t : graph.tensors)
    tensors.push_back(write(t));
  std::vector<flatbuffers::Offset<tfl::Operator>> operators;
  for (const OperatorDesc &op : graph.operators) {
    uint32_t code = codes.emplace(std::make_tuple(static_cast<int32_t>(op.code), op.version, op.custom), static_cast<uint32_t>(codes.size())).first->second;
    auto inputs = fbb.CreateVector(op.inputs), outputs = fbb.CreateVector(op.outputs);
    flatbuffers::Offset<flatbuffers::Vector<int32_t>> intermediates;
    if (!op.intermediates.empty())
      intermediates = fbb.CreateVector(op.intermediates);
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> custom;
    if (!op.customOptions.empty())
      custom = fbb.CreateVector(reinterpret_cast<const uint8_t *>(op.customOptions.data()), op.customOptions.size());
    tfl::OperatorBuilder b(fbb);
    b.add_opcode_index(code);
    b.add_inputs(inputs);
    b.add_outputs(outputs);
    b.add_intermediates(intermediates);
    b.add_custom_options(custom);
    if (op.optionsType != tfl::BuiltinOptions::NONE) {
      b.add_builtin_options_type(op.optionsType);
      b.add_builtin_options(op.options);
    }
    if (op.options2Type != tfl::BuiltinOptions2::NONE) {
      b.add_builtin_options2_type(op.options2Type);
      b.add_builtin_options2(op.options);
    }
    operators.push_back(b.Finish());
  }
  auto tensorVector = fbb.CreateVector(tensors);
  auto inputs = fbb.CreateVector(graph.inputs), outputs = fbb.CreateVector(graph.outputs);
  auto operatorVector = fbb.CreateVector(operators);
  auto name = fbb.CreateString(graph.name);
  return tfl::CreateSubGraph(fbb, tensorVector, inputs, outputs, operatorVector, name);
}

flatbuffers::Offset<tfl::SignatureDef> ModelWriter::write(const Signature &signature) {
  auto maps = [&](const Names &names) {
    std::vector<flatbuffers::Offset<tfl::TensorMap>> list;
    for (auto &[name, tensor] : names)
      list.push_back(tfl::CreateTensorMap(fbb, fbb.CreateString(name), tensor));
    return fbb.CreateVector(list);
  };
  auto inputs = maps(signature.inputs), outputs = maps(signature.outputs);
  auto key = fbb.CreateString(signature.key);
  tfl::SignatureDefBuilder b(fbb);
  b.add_inputs(inputs);
  b.add_outputs(outputs);
  b.add_signature_key(key);
  b.add_subgraph_index(signature.subgraph);
  return b.Finish();
}

absl::StatusOr<std::string> ModelWriter::finish(const std::string &description) {
  int64_t bytes = 0;
  for (const Subgraph &graph : subgraphs)
    for (const TensorDesc &t : graph.tensors) {
      if (!tensorTypeOf(t.type))
        return absl::InvalidArgumentError(absl::StrCat("tensor '", t.name, "': the format has no elements of type ", dtypeName(t.type)));
      for (int64_t d : t.dims)
        if (d > INT32_MAX)
          return absl::InvalidArgumentError(absl::StrCat("tensor '", t.name, "': a dimension of more than 2^31 elements"));
      bytes += t.value.valid() ? t.value.sizeBytes() : 0;
      // an upper bound: equal constants share their bytes
      if (bytes > kMaxBytes)
        return absl::ResourceExhaustedError("the constants have more than the 2 GB that a TensorFlow Lite file holds");
    }
  buffers.push_back(tfl::CreateBuffer(fbb));
  std::vector<flatbuffers::Offset<tfl::SubGraph>> graphs;
  for (const Subgraph &graph : subgraphs)
    graphs.push_back(write(graph));
  std::vector<flatbuffers::Offset<tfl::SignatureDef>> signatureList;
  for (const Signature &s : signatures)
    signatureList.push_back(write(s));
  std::vector<flatbuffers::Offset<tfl::Metadata>> metadataList;
  for (auto &[name, content] : metadata) {
    buffers.push_back(writeBuffer(fbb, content.data(), content.size()));
    metadataList.push_back(tfl::CreateMetadata(fbb, fbb.CreateString(name), static_cast<uint32_t>(buffers.size()) - 1));
  }
  std::vector<flatbuffers::Offset<tfl::OperatorCode>> codeList(codes.size());
  for (auto &[key, place] : codes) {
    auto &[code, version, custom] = key;
    // old readers know the byte alone
    int8_t old = static_cast<int8_t>(std::min<int32_t>(code, static_cast<int32_t>(tfl::BuiltinOperator::PLACEHOLDER_FOR_GREATER_OP_CODES)));
    flatbuffers::Offset<flatbuffers::String> name;
    if (!custom.empty())
      name = fbb.CreateString(custom);
    codeList[place] = tfl::CreateOperatorCode(fbb, old, name, version, static_cast<tfl::BuiltinOperator>(code));
  }
  auto codeVector = fbb.CreateVector(codeList);
  auto graphVector = fbb.CreateVector(graphs);
  auto text = fbb.CreateString(description);
  auto bufferVector = fbb.CreateVector(buffers);
  auto metadataVector = fbb.CreateVector(metadataList);
  auto signatureVector = fbb.CreateVector(signatureList);
  tfl::ModelBuilder model(fbb);
  model.add_version(3);
  model.add_operator_codes(codeVector);
  model.add_subgraphs(graphVector);
  model.add_description(text);
  model.add_buffers(bufferVector);
  model.add_metadata(metadataVector);
  model.add_signature_defs(signatureVector);
  tfl::FinishModelBuffer(fbb, model.Finish());
  return std::string(reinterpret_cast<const char *>(fbb.GetBufferPointer()), fbb.GetSize());
}

} // namespace lathe::tflwrite
