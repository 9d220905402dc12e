//===- ModelWriter.h - the flatbuffer of a .tflite file ---------*- C++ -*-===//
//
// Collects subgraphs, tensors, operators and constants, and gives the file's bytes. Constants of equal bytes share a buffer;
// buffers lie at multiples of 16 bytes. Knows nothing of MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_EXPORT_TFLITE_MODELWRITER_H
#define LATHE_COMPILER_EXPORT_TFLITE_MODELWRITER_H

#include "base/Tensor.h"
#include "proto/tflite_generated.h"

#include "absl/status/statusor.h"

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lathe::tflwrite {

/// The format's type of elements; none for those that it does not have.
std::optional<tfl::TensorType> tensorTypeOf(DType type);

class ModelWriter {
public:
  using Options = flatbuffers::Offset<void>;

  struct TensorDesc {
    std::string name;
    DType type = DType::Invalid;
    std::vector<int64_t> dims; ///< -1: known when the model runs
    Tensor value;              ///< of a constant
    std::vector<float> scales; ///< of quantized integers
    std::vector<int64_t> zeroPoints;
    int quantizedDim = 0;
    bool isVariable = false; ///< keeps its value from one run to the next
  };
  struct OperatorDesc {
    tfl::BuiltinOperator code;
    int version = 1;
    std::vector<int32_t> inputs, outputs; ///< -1: an input that is left out
    std::vector<int32_t> intermediates;   ///< tensors that carry scales alone
    tfl::BuiltinOptions optionsType = tfl::BuiltinOptions::NONE;
    tfl::BuiltinOptions2 options2Type = tfl::BuiltinOptions2::NONE;
    Options options; ///< of either kind
    std::string custom, customOptions; ///< name and options of one that is not builtin
  };
  using Names = std::vector<std::pair<std::string, int32_t>>; ///< keys of a signature with tensors

  /// The next subgraph; all are added before tensors. The name is for people.
  int32_t addSubgraph(std::string name);
  int32_t addTensor(int32_t subgraph, TensorDesc tensor);
  void addOperator(int32_t subgraph, OperatorDesc op);
  void setPorts(int32_t subgraph, std::vector<int32_t> inputs, std::vector<int32_t> outputs);
  void addSignature(std::string key, int32_t subgraph, Names inputs, Names outputs);
  void addMetadata(std::string name, std::string bytes);

  flatbuffers::FlatBufferBuilder &builder() { return fbb; }

  /// The file. RESOURCE_EXHAUSTED beyond 2 GB, which flatbuffers do not hold; INVALID_ARGUMENT for element types that the format
  /// lacks. To be called once.
  absl::StatusOr<std::string> finish(const std::string &description);

private:
  struct Subgraph {
    std::string name;
    std::vector<TensorDesc> tensors;
    std::vector<OperatorDesc> operators;
    std::vector<int32_t> inputs, outputs;
  };
  struct Signature {
    std::string key;
    int32_t subgraph;
    Names inputs, outputs;
  };

  uint32_t bufferOf(const Tensor &value);
  flatbuffers::Offset<tfl::Tensor> write(const TensorDesc &tensor);
  flatbuffers::Offset<tfl::SubGraph> write(const Subgraph &graph);
  flatbuffers::Offset<tfl::SignatureDef> write(const Signature &signature);

  flatbuffers::FlatBufferBuilder fbb{1024};
  std::vector<Subgraph> subgraphs;
  std::vector<Signature> signatures;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<flatbuffers::Offset<tfl::Buffer>> buffers;
  std::unordered_multimap<uint64_t, std::pair<uint32_t, Tensor>> known; ///< buffers of constants by a hash of their bytes
  std::map<std::tuple<int32_t, int, std::string>, uint32_t> codes; ///< (operator, version, name of a custom one) -> its place
};

} // namespace lathe::tflwrite

#endif
