// Checks of what a .tflite file says: the flatbuffer's structure by its verifier, then everything that refers to something.
#include "compiler/frontend/tflite/ModelFile.h"

#include "graph/tflite/NodeTable.h"

#include "llvm/ADT/Twine.h"

#include <cmath>

using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

namespace lathe::tflite {

namespace {
/// Far beyond what files of the format have; the verifier's defaults are of the same kind.
constexpr unsigned kMaxDepth = 64, kMaxTables = 8u << 20;
constexpr unsigned kMaxSubgraphs = 4096, kMaxRank = 32;
/// Version of the schema, the only one that there has been with this identifier.
constexpr unsigned kSchemaVersion = 3;
} // namespace

DType dtypeOf(tfl::TensorType type) {
  switch (type) {
  case tfl::TensorType::INT4:
  case tfl::TensorType::INT2: return DType::Int8;
  case tfl::TensorType::UINT4: return DType::UInt8;
  default: {
    const DType dtype = tflgraph::dtypeOf(type);
    return dtypeSize(dtype) ? dtype : DType::Invalid; // strings and handles have no compiled form
  }
  }
}

unsigned bitsOf(tfl::TensorType type) {
  switch (type) {
  case tfl::TensorType::INT2: return 2;
  case tfl::TensorType::INT4:
  case tfl::TensorType::UINT4: return 4;
  default: {
    DType dtype = dtypeOf(type);
    return dtype == DType::Invalid ? 0 : 8 * dtypeSize(dtype);
  }
  }
}

std::string typeName(tfl::TensorType type) {
  StringRef name = tfl::EnumNameTensorType(type);
  return name.empty() ? "type " + std::to_string(int(type)) : name.str();
}

tfl::BuiltinOperator ModelFile::builtin(const tfl::OperatorCode &code) {
  return std::max(code.builtin_code(), static_cast<tfl::BuiltinOperator>(code.deprecated_builtin_code()));
}

std::string ModelFile::opName(const tfl::OperatorCode &code) {
  tfl::BuiltinOperator op = builtin(code);
  if (op == tfl::BuiltinOperator::CUSTOM)
    return code.custom_code() ? import::printable(code.custom_code()->string_view()) : "custom operator without a name";
  StringRef name = tfl::EnumNameBuiltinOperator(op);
  return name.empty() ? "operator " + std::to_string(int(op)) : name.str();
}

class ModelChecker {
public:
  ModelChecker(StringRef bytes, StringRef fileName, ModelFile &file, import::Problems &problems)
      : bytes(bytes), fileName(import::printable(fileName)), file(file), problems(problems) {}

  bool run() {
    if (!checkStructure())
      return false;
    const tfl::Model &model = *file.root;
    checkCodes();
    for (unsigned i = 0; i < model.subgraphs()->size() && !problems.any(); ++i)
      checkSubgraph(i);
    if (!problems.any())
      checkSignatures();
    return !problems.any();
  }

private:
  void add(const Twine &text) { problems.add(Twine(fileName) + ": " + text); }
  bool checkStructure();
  void checkCodes();
  void checkSubgraph(unsigned index);
  void checkTensor(unsigned subgraph, unsigned index, TensorInfo &info);
  void checkQuantization(const tfl::QuantizationParameters &given, const Twine &what, TensorInfo &info);
  void checkData(const tfl::Tensor &given, const Twine &what, TensorInfo &info);
  void checkOperator(unsigned subgraph, unsigned index, const tfl::Operator &op);
  void checkSignatures();

  StringRef bytes;
  std::string fileName;
  ModelFile &file;
  import::Problems &problems;
};

bool ModelChecker::checkStructure() {
  // Larger files have the data of their buffers behind the flatbuffer.
  size_t size = std::min<size_t>(bytes.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t *>(bytes.data()), size, kMaxDepth, kMaxTables);
  if (!tfl::VerifyModelBuffer(verifier)) {
    add("is no valid flatbuffer of TensorFlow Lite");
    return false;
  }
  file.root = tfl::GetModel(bytes.data());
  const tfl::Model &model = *file.root;
  if (model.version() != kSchemaVersion)
    add("has schema version " + Twine(model.version()) + ", expected " + Twine(kSchemaVersion));
  else if (!model.subgraphs() || model.subgraphs()->size() == 0)
    add("has no subgraph");
  else if (model.subgraphs()->size() > kMaxSubgraphs)
    add("has " + Twine(model.subgraphs()->size()) + " subgraphs, more than " + Twine(kMaxSubgraphs));
  return !problems.any();
}

void ModelChecker::checkCodes() {
  if (auto *codes = file.root->operator_codes())
    for (unsigned i = 0; i < codes->size(); ++i)
      if (codes->Get(i)->version() < 1)
        add("operator code " + Twine(i) + " has version " + Twine(codes->Get(i)->version()));
}

void ModelChecker::checkQuantization(const tfl::QuantizationParameters &given, const Twine &what, TensorInfo &info) {
  Quantization &q = info.quantization;
  q.isOther = given.details_type() != tfl::QuantizationDetails::NONE;
  if (!given.scale() || given.scale()->size() == 0)
    return;
  q.scales.assign(given.scale()->begin(), given.scale()->end());
  q.zeroPoints.assign(q.scales.size(), 0);
  for (float scale : q.scales)
    if (!std::isfinite(scale) || scale < 0)
      return add(what + " has a scale that is no positive number");
  if (given.zero_point() && given.zero_point()->size()) {
    // one for all channels is common
    unsigned n = given.zero_point()->size();
    if (n != 1 && n != q.scales.size())
      return add(what + " has " + Twine(q.scales.size()) + " scales and " + Twine(n) + " zero points");
    for (unsigned i = 0; i < q.scales.size(); ++i)
      q.zeroPoints[i] = given.zero_point()->Get(n == 1 ? 0 : i);
    for (int64_t zero : q.zeroPoints)
      if (zero < INT32_MIN || zero > INT32_MAX)
        return add(what + " has zero point " + Twine(zero));
  }
  if (q.scales.size() == 1)
    return;
  q.dimension = given.quantized_dimension();
  if (q.dimension < 0 || q.dimension >= int64_t(info.dims.size()) || info.dims[q.dimension] != int64_t(q.scales.size()))
    add(what + " has " + Twine(q.scales.size()) + " scales for dimension " + Twine(q.dimension) +
        ", which has another size");
}

void ModelChecker::checkData(const tfl::Tensor &given, const Twine &what, TensorInfo &info) {
  auto *buffers = file.root->buffers();
  unsigned count = buffers ? buffers->size() : 0;
  if (given.external_buffer())
    return add(what + " has its data in another file, which is not supported");
  if (given.buffer() == 0 && count == 0)
    return;
  if (given.buffer() >= count)
    return add(what + " has buffer " + Twine(given.buffer()) + " of " + Twine(count));
  const tfl::Buffer &buffer = *buffers->Get(given.buffer());
  if (buffer.data() && buffer.data()->size()) {
    info.data = ArrayRef<uint8_t>(buffer.data()->data(), buffer.data()->size());
  } else if (buffer.offset() > 1) { // writers put 1 where it is not known yet
    if (buffer.offset() > bytes.size() || buffer.size() > bytes.size() - buffer.offset())
      return add("buffer " + Twine(given.buffer()) + " lies outside the file");
    info.data = ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()) + buffer.offset(), buffer.size());
  }
  info.isConstant = !info.data.empty();
  if (!info.isConstant || info.sparsity)
    return;
  unsigned bits = bitsOf(info.type);
  if (!bits)
    return;
  int64_t elements = 1, need = 0;
  for (int64_t d : info.dims)
    if (d < 0)
      return add(what + " is a constant of unknown size");
    else if (__builtin_mul_overflow(elements, d, &elements))
      return add(what + " has too many elements");
  if (__builtin_mul_overflow(elements, int64_t(bits), &need) || need > INT64_MAX - 7 ||
      uint64_t((need + 7) / 8) != info.data.size())
    add(what + " has " + Twine(info.data.size()) + " bytes of data for " + Twine(elements) + " elements of " +
        typeName(info.type));
}

void ModelChecker::checkTensor(unsigned subgraph, unsigned index, TensorInfo &info) {
  const tfl::Tensor &given = *file.subgraph(subgraph).tensors()->Get(index);
  if (given.name())
    info.name = given.name()->string_view();
  std::string what = "tensor " + std::to_string(index) + " '" + import::printable(info.name) + "'";
  info.type = given.type();
  if (StringRef(tfl::EnumNameTensorType(info.type)).empty())
    return add(Twine(what) + " has unknown " + typeName(info.type));
  auto *shape = given.shape(), *signature = given.shape_signature();
  auto *dims = signature && shape && signature->size() == shape->size() ? signature : shape;
  if (dims)
    info.dims.assign(dims->begin(), dims->end());
  if (info.dims.size() > kMaxRank)
    return add(Twine(what) + " has rank " + Twine(info.dims.size()));
  int64_t elements = 1;
  for (unsigned i = 0; i < info.dims.size(); ++i) {
    int64_t d = info.dims[i];
    if (d < -1 || shape->Get(i) < -1)
      return add(Twine(what) + " has size " + Twine(d));
    if (d > 0 && __builtin_mul_overflow(elements, d, &elements))
      return add(Twine(what) + " has too many elements");
  }
  info.isVariable = given.is_variable();
  info.sparsity = given.sparsity();
  if (given.quantization())
    checkQuantization(*given.quantization(), what, info);
  checkData(given, what, info);
}

void ModelChecker::checkOperator(unsigned subgraph, unsigned index, const tfl::Operator &op) {
  std::string what = "operator " + std::to_string(index) + " of subgraph " + std::to_string(subgraph);
  auto *codes = file.root->operator_codes();
  if (!codes || op.opcode_index() >= codes->size())
    return add(Twine(what) + " has operator code " + Twine(op.opcode_index()) + " of " + Twine(codes ? codes->size() : 0));
  int64_t count = file.numTensors(subgraph);
  auto check = [&](const flatbuffers::Vector<int32_t> *list, const char *kind, bool optional) {
    if (list)
      for (int32_t t : *list)
        if (t < (optional ? -1 : 0) || t >= count)
          return add(Twine(what) + " has " + kind + " tensor " + Twine(t) + " of " + Twine(count));
  };
  check(op.inputs(), "input", true);
  check(op.outputs(), "output", false);
  check(op.intermediates(), "intermediate", true);
}

void ModelChecker::checkSubgraph(unsigned index) {
  const tfl::SubGraph &graph = file.subgraph(index);
  auto &list = file.tensors.emplace_back();
  list.resize(graph.tensors() ? graph.tensors()->size() : 0);
  for (unsigned i = 0; i < list.size(); ++i)
    checkTensor(index, i, list[i]);
  if (graph.operators())
    for (unsigned i = 0; i < graph.operators()->size(); ++i)
      checkOperator(index, i, *graph.operators()->Get(i));
  auto check = [&](const flatbuffers::Vector<int32_t> *ids, const char *kind) {
    if (ids)
      for (int32_t t : *ids)
        if (t < 0 || t >= int64_t(list.size()))
          return add("subgraph " + Twine(index) + " has " + kind + " tensor " + Twine(t) + " of " + Twine(list.size()));
  };
  check(graph.inputs(), "input");
  check(graph.outputs(), "output");
}

void ModelChecker::checkSignatures() {
  auto *signatures = file.root->signature_defs();
  if (!signatures)
    return;
  for (const tfl::SignatureDef *s : *signatures) {
    std::string key = s->signature_key() ? import::printable(s->signature_key()->string_view()) : "";
    if (s->subgraph_index() >= file.numSubgraphs()) {
      add("signature '" + Twine(key) + "' has subgraph " + Twine(s->subgraph_index()) + " of " +
          Twine(file.numSubgraphs()));
      continue;
    }
    for (auto *maps : {s->inputs(), s->outputs()})
      if (maps)
        for (const tfl::TensorMap *m : *maps)
          if (m->tensor_index() >= file.numTensors(s->subgraph_index()) || !m->name())
            add("signature '" + Twine(key) + "' has an input or output without a tensor or a name");
  }
}

std::unique_ptr<ModelFile> ModelFile::open(StringRef bytes, StringRef name, import::Problems &problems) {
  auto file = std::make_unique<ModelFile>();
  return ModelChecker(bytes, name, *file, problems).run() ? std::move(file) : nullptr;
}

} // namespace lathe::tflite
