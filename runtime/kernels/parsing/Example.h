// Features of tf.Example and tf.SequenceExample messages, read without protobuf, and the tensors made of them.
#ifndef LATHE_RUNTIME_KERNELS_PARSING_EXAMPLE_H
#define LATHE_RUNTIME_KERNELS_PARSING_EXAMPLE_H

#include "runtime/kernels/Common.h"

#include <map>

namespace lathe::rt {

/// The values of one feature. Invalid: the feature is missing or has no list at all.
struct Feature {
  DType type = DType::Invalid; ///< String, Float32 or Int64
  std::vector<std::string_view> strings;
  std::vector<float> floats;
  std::vector<int64_t> ints;

  bool present() const { return type != DType::Invalid; }
  int64_t size() const {
    return static_cast<int64_t>(type == DType::String ? strings.size() : type == DType::Float32 ? floats.size() : ints.size());
  }
  /// Writes value i as element `at` of a tensor of the same type.
  void store(int64_t i, Tensor &out, int64_t at) const;
};

/// Serialised features by name; of a repeated name the last.
using FeatureMap = std::map<std::string_view, std::string_view>;

/// Reads an Example. INVALID_ARGUMENT when the bytes are malformed.
absl::Status readExample(std::string_view bytes, FeatureMap &features);
/// Reads a SequenceExample into its context and its feature lists (each still serialised).
absl::Status readSequenceExample(std::string_view bytes, FeatureMap &context, FeatureMap &lists);
/// Reads one Feature.
absl::Status readFeature(std::string_view bytes, Feature &feature);
/// The serialised Features of a FeatureList.
absl::Status readFeatureList(std::string_view bytes, std::vector<std::string_view> &features);

/// A feature by name; not present when missing. INVALID_ARGUMENT when malformed or of another type than `type`.
absl::Status findFeature(const FeatureMap &features, std::string_view name, DType type, Feature &feature);

/// What a dense output looks like: its shape, and the values used where an example lacks the feature.
struct DenseSpec {
  std::string name;
  DType type;
  PartialShape shape;
  Tensor rest; ///< perhaps without elements: then the feature is required
  /// Whether examples may differ in their number of values (a first dimension of unknown size).
  bool isVariable() const { return shape && !shape->empty() && (*shape)[0] < 0; }
};

/// One tensor of a feature across a batch; `batched` adds the first dimension. `label` names an example in messages.
absl::StatusOr<Tensor> makeDense(const KernelContext &context, const DenseSpec &spec, const std::vector<Feature> &batch,
                                 bool batched);
/// indices, values and shape of a feature across a batch.
absl::StatusOr<std::array<Tensor, 3>> makeSparse(const KernelContext &context, DType type, const std::vector<Feature> &batch,
                                                 bool batched);
/// values and row splits (of type `splitsType`) of a feature across a batch.
absl::StatusOr<std::array<Tensor, 2>> makeRagged(const KernelContext &context, DType type, DType splitsType,
                                                 const std::vector<Feature> &batch);

} // namespace lathe::rt

#endif
