// What TensorFlow Lite's C interface needs to know of a file before it is compiled: subgraphs with the types, sizes and names of
// their inputs and outputs, and signatures.
#ifndef LATHE_RUNTIME_TFLITE_API_MODEL_H
#define LATHE_RUNTIME_TFLITE_API_MODEL_H

#include "tensorflow/lite/c/c_api_types.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>
#include <vector>

namespace lathe::tfl {
struct SubGraph;
}

namespace lathe::tflite_api {

struct Port {
  int index = 0; ///< of the tensor in its subgraph
  std::string name, tensor; ///< of the signature (or as the tensor's), of the tensor
  TfLiteType type = kTfLiteNoType;
  int dtype = 0; ///< the same type as one of ours
  std::vector<int> dims;
  std::vector<int> signature; ///< the sizes with -1 for those that are open; empty where none is
  bool isOpen = false; ///< some sizes are only those that the file was made with
  TfLiteQuantizationParams quantization = {0, 0};
};

/// A subgraph that can be called.
struct Callable {
  std::string key; ///< of the signature; "" for a subgraph without one
  unsigned subgraph = 0;
  std::vector<Port> inputs, outputs;
};

/// A verified file.
class Model {
public:
  /// The bytes must outlive the model. INVALID_ARGUMENT for what is no TensorFlow Lite file.
  static absl::StatusOr<std::shared_ptr<Model>> read(const void *data, size_t size);
  /// A copy of the file is kept. NOT_FOUND where it cannot be read.
  static absl::StatusOr<std::shared_ptr<Model>> readFile(const std::string &path);

  const void *data = nullptr;
  size_t size = 0;
  /// In the order of the file; without signatures the first subgraph alone.
  std::vector<Callable> callables;
  bool hasSignatures = false;

private:
  std::string owned;
};

/// What a subgraph says of one of its tensors.
absl::StatusOr<Port> portOf(const tfl::SubGraph &graph, int index);
/// Bytes of an element, 0 for types without a fixed size.
size_t elementSize(TfLiteType type);

} // namespace lathe::tflite_api

#endif
