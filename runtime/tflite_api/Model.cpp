#include "runtime/tflite_api/Model.h"

#include "graph/tflite/NodeTable.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <fstream>
#include <sstream>

namespace lathe::tflite_api {

absl::StatusOr<Port> portOf(const tfl::SubGraph &graph, int index) {
  if (index < 0 || !graph.tensors() || index >= static_cast<int>(graph.tensors()->size()))
    return absl::InvalidArgumentError(absl::StrCat("tensor ", index, " is out of range"));
  const tfl::Tensor &t = *graph.tensors()->Get(index);
  Port port;
  port.index = index;
  port.tensor = t.name() ? t.name()->str() : "";
  port.name = port.tensor;
  port.dtype = static_cast<int>(tflgraph::dtypeOf(t.type()));
  // the interface has the schema's types under its own numbers
  switch (t.type()) {
  case tfl::TensorType::FLOAT32: port.type = kTfLiteFloat32; break;
  case tfl::TensorType::FLOAT16: port.type = kTfLiteFloat16; break;
  case tfl::TensorType::FLOAT64: port.type = kTfLiteFloat64; break;
  case tfl::TensorType::BFLOAT16: port.type = kTfLiteBFloat16; break;
  case tfl::TensorType::INT8: port.type = kTfLiteInt8; break;
  case tfl::TensorType::UINT8: port.type = kTfLiteUInt8; break;
  case tfl::TensorType::INT16: port.type = kTfLiteInt16; break;
  case tfl::TensorType::UINT16: port.type = kTfLiteUInt16; break;
  case tfl::TensorType::INT32: port.type = kTfLiteInt32; break;
  case tfl::TensorType::UINT32: port.type = kTfLiteUInt32; break;
  case tfl::TensorType::INT64: port.type = kTfLiteInt64; break;
  case tfl::TensorType::UINT64: port.type = kTfLiteUInt64; break;
  case tfl::TensorType::BOOL: port.type = kTfLiteBool; break;
  case tfl::TensorType::COMPLEX64: port.type = kTfLiteComplex64; break;
  case tfl::TensorType::COMPLEX128: port.type = kTfLiteComplex128; break;
  case tfl::TensorType::STRING: port.type = kTfLiteString; break;
  case tfl::TensorType::RESOURCE: port.type = kTfLiteResource; break;
  default: port.type = kTfLiteNoType;
  }
  if (t.shape())
    port.dims.assign(t.shape()->begin(), t.shape()->end());
  int64_t bytes = std::max<int64_t>(static_cast<int64_t>(elementSize(port.type)), 1);
  for (int d : port.dims)
    if (d < 0 || __builtin_mul_overflow(bytes, int64_t(d), &bytes))
      return absl::InvalidArgumentError(absl::StrCat("tensor '", port.tensor, "': bad size ", d));
  if (auto *open = t.shape_signature())
    for (int d : *open)
      port.isOpen |= d < 0;
  if (port.isOpen && t.shape_signature()->size() == port.dims.size())
    port.signature.assign(t.shape_signature()->begin(), t.shape_signature()->end());
  if (auto *q = t.quantization())
    if (q->scale() && q->scale()->size() == 1)
      port.quantization = {q->scale()->Get(0), q->zero_point() && q->zero_point()->size() == 1 ? static_cast<int32_t>(q->zero_point()->Get(0)) : 0};
  return port;
}

namespace {

absl::Status addPorts(const tfl::SubGraph &graph, const flatbuffers::Vector<int32_t> *ids,
                      const flatbuffers::Vector<flatbuffers::Offset<tfl::TensorMap>> *names, std::vector<Port> &list) {
  for (unsigned i = 0; ids && i < ids->size(); ++i) {
    auto port = portOf(graph, ids->Get(i));
    if (!port.ok())
      return port.status();
    if (names)
      for (const tfl::TensorMap *m : *names)
        if (static_cast<int64_t>(m->tensor_index()) == port->index && m->name())
          port->name = m->name()->str();
    list.push_back(*std::move(port));
  }
  return absl::OkStatus();
}

absl::Status addCallable(const tfl::Model &model, unsigned subgraph, const tfl::SignatureDef *signature, Model &out) {
  if (subgraph >= model.subgraphs()->size())
    return absl::InvalidArgumentError(absl::StrCat("subgraph ", subgraph, " is out of range"));
  const tfl::SubGraph &graph = *model.subgraphs()->Get(subgraph);
  Callable c;
  c.subgraph = subgraph;
  if (signature && signature->signature_key())
    c.key = signature->signature_key()->str();
  absl::Status s = addPorts(graph, graph.inputs(), signature ? signature->inputs() : nullptr, c.inputs);
  if (s.ok())
    s = addPorts(graph, graph.outputs(), signature ? signature->outputs() : nullptr, c.outputs);
  if (s.ok())
    out.callables.push_back(std::move(c));
  return s;
}

} // namespace

size_t elementSize(TfLiteType type) {
  switch (type) {
  case kTfLiteInt8:
  case kTfLiteUInt8:
  case kTfLiteBool: return 1;
  case kTfLiteInt16:
  case kTfLiteUInt16:
  case kTfLiteFloat16:
  case kTfLiteBFloat16: return 2;
  case kTfLiteFloat32:
  case kTfLiteInt32:
  case kTfLiteUInt32: return 4;
  case kTfLiteInt64:
  case kTfLiteUInt64:
  case kTfLiteFloat64:
  case kTfLiteComplex64: return 8;
  case kTfLiteComplex128: return 16;
  default: return 0;
  }
}

absl::StatusOr<std::shared_ptr<Model>> Model::read(const void *data, size_t size) {
  // The compiler checks everything else that the file says.
  auto *bytes = static_cast<const uint8_t *>(data);
  flatbuffers::Verifier verifier(bytes, std::min<size_t>(size, FLATBUFFERS_MAX_BUFFER_SIZE - 1), 64, 8u << 20);
  if (!data || size < 8 || !tfl::VerifyModelBuffer(verifier))
    return absl::InvalidArgumentError("the model is no valid flatbuffer of TensorFlow Lite");
  const tfl::Model &model = *tfl::GetModel(data);
  if (model.version() != 3 || !model.subgraphs() || model.subgraphs()->size() == 0)
    return absl::InvalidArgumentError("the model has another schema version or no subgraph");
  auto result = std::make_shared<Model>();
  result->data = data;
  result->size = size;
  absl::Status status;
  if (auto *all = model.signature_defs())
    for (const tfl::SignatureDef *s : *all)
      if (status.ok())
        status = addCallable(model, s->subgraph_index(), s, *result);
  result->hasSignatures = !result->callables.empty();
  if (status.ok() && !result->hasSignatures)
    status = addCallable(model, 0, nullptr, *result);
  if (!status.ok())
    return status;
  return result;
}

absl::StatusOr<std::shared_ptr<Model>> Model::readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf()))
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  // The bytes move into the model first: small strings change their address when they move.
  auto bytes = std::make_shared<std::string>(content.str());
  auto model = read(bytes->data(), bytes->size());
  if (!model.ok())
    return model;
  (*model)->owned = std::move(*bytes);
  (*model)->data = (*model)->owned.data();
  return model;
}

} // namespace lathe::tflite_api
