// ParseExample, ParseExampleV2, ParseSingleExample.
#include "runtime/kernels/parsing/Example.h"

namespace lathe::rt {
namespace {

/// The keys of one node, from its inputs or its attributes.
struct Keys {
  std::vector<std::string> sparse, dense, ragged;
};

absl::Status vectorOf(const Tensor &t, const char *what, std::vector<std::string> &keys) {
  if (t.rank() != 1)
    return invalid(what, " must be a vector, got shape: ", dimsToString(t.dims()));
  keys = t.strings();
  return absl::OkStatus();
}

absl::Status scalarsOf(const std::vector<Tensor> &tensors, const char *what, std::vector<std::string> &keys) {
  for (const Tensor &t : tensors) {
    LATHE_TRY_VALUE(key, oneString(t, what));
    keys.push_back(key);
  }
  return absl::OkStatus();
}

absl::Status keysOf(const KernelContext &context, Keys &keys) {
  const NodeInfo &node = *context.node;
  if (node.op == "ParseExampleV2") {
    LATHE_TRY(vectorOf(context.input("sparse_keys"), "sparse_keys", keys.sparse));
    LATHE_TRY(vectorOf(context.input("dense_keys"), "dense_keys", keys.dense));
    return vectorOf(context.input("ragged_keys"), "ragged_keys", keys.ragged);
  }
  if (node.op == "ParseExample") {
    LATHE_TRY(scalarsOf(context.inputList("sparse_keys"), "sparse_keys", keys.sparse));
    return scalarsOf(context.inputList("dense_keys"), "dense_keys", keys.dense);
  }
  keys.sparse = *attrOf<std::vector<std::string>>(node, "sparse_keys");
  keys.dense = *attrOf<std::vector<std::string>>(node, "dense_keys");
  return absl::OkStatus();
}

absl::Status parseExample(KernelContext &context) {
  const NodeInfo &node = *context.node;
  Keys keys;
  LATHE_TRY(keysOf(context, keys));
  Tensor serialized = context.input("serialized");
  bool single = node.op == "ParseSingleExample";
  if (serialized.rank() > (node.op == "ParseExampleV2" || !single ? 1 : 0))
    return invalid("Expected serialized to be a ", single ? "scalar" : "scalar or vector", ", got shape: ",
                   dimsToString(serialized.dims()));
  bool batched = serialized.rank() == 1;
  std::vector<FeatureMap> examples(serialized.numElements());
  for (size_t i = 0; i < examples.size(); ++i)
    if (absl::Status status = readExample(serialized.strings()[i], examples[i]); !status.ok())
      return invalid("Could not parse example input, value: '", serialized.strings()[i].substr(0, 100), "'");

  const auto &sparseTypes = *attrOf<std::vector<DType>>(node, "sparse_types");
  const auto &denseTypes = *attrOf<std::vector<DType>>(node, "Tdense");
  const auto &shapes = *attrOf<std::vector<PartialShape>>(node, "dense_shapes");
  std::vector<Tensor> defaults = context.inputList("dense_defaults");
  if (keys.sparse.size() != sparseTypes.size() || keys.dense.size() != denseTypes.size() ||
      shapes.size() != denseTypes.size() || defaults.size() != denseTypes.size())
    return invalid("keys, types, shapes and defaults must be equally many: ", keys.sparse.size(), " sparse keys and ",
                   sparseTypes.size(), " types, ", keys.dense.size(), " dense keys, ", denseTypes.size(), " types, ",
                   shapes.size(), " shapes");

  // a number of its own beside the types, and the outputs are as many as it says
  for (const char *name : {"num_sparse", "Nsparse"})
    if (const auto *number = attrOf<int64_t>(node, name); number && *number != static_cast<int64_t>(keys.sparse.size()))
      return invalid(name, " is ", *number, ", but there are ", keys.sparse.size(), " sparse keys");

  auto gather = [&](const std::string &key, DType type, std::vector<Feature> &batch) -> absl::Status {
    batch.resize(examples.size());
    for (size_t i = 0; i < examples.size(); ++i)
      LATHE_TRY(findFeature(examples[i], key, type, batch[i]));
    return absl::OkStatus();
  };
  int n = static_cast<int>(keys.sparse.size());
  for (int k = 0; k < n; ++k) {
    std::vector<Feature> batch;
    LATHE_TRY(gather(keys.sparse[k], sparseTypes[k], batch));
    LATHE_TRY_VALUE(parts, makeSparse(context, sparseTypes[k], batch, batched));
    for (int p = 0; p < 3; ++p)
      context.setOutput(p * n + k, parts[p]);
  }
  int at = 3 * n;
  for (size_t k = 0; k < keys.dense.size(); ++k) {
    std::vector<Feature> batch;
    LATHE_TRY(gather(keys.dense[k], denseTypes[k], batch));
    LATHE_TRY_VALUE(out, makeDense(context, {keys.dense[k], denseTypes[k], shapes[k], defaults[k]}, batch, batched));
    context.setOutput(at++, out);
  }
  if (node.op != "ParseExampleV2")
    return absl::OkStatus();
  const auto &raggedTypes = *attrOf<std::vector<DType>>(node, "ragged_value_types");
  const auto &splitTypes = *attrOf<std::vector<DType>>(node, "ragged_split_types");
  int r = static_cast<int>(keys.ragged.size());
  if (raggedTypes.size() != keys.ragged.size() || splitTypes.size() != keys.ragged.size())
    return invalid("ragged keys and types must be equally many: ", r, ", ", raggedTypes.size(), ", ", splitTypes.size());
  for (int k = 0; k < r; ++k) {
    std::vector<Feature> batch;
    LATHE_TRY(gather(keys.ragged[k], raggedTypes[k], batch));
    LATHE_TRY_VALUE(parts, makeRagged(context, raggedTypes[k], splitTypes[k], batch));
    context.setOutput(at + k, parts[0]);
    context.setOutput(at + r + k, batched ? parts[1] : indexVector(splitTypes[k], {}));
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ParseExample, parseExample);
LATHE_HOST_FUNCTION(ParseExampleV2, parseExample);
LATHE_HOST_FUNCTION(ParseSingleExample, parseExample);

} // namespace
} // namespace lathe::rt
