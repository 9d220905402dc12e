// ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample.
#include "runtime/kernels/parsing/Example.h"

#include <algorithm>
#include <set>

namespace lathe::rt {
namespace {

using Names = std::vector<std::string>;

/// What to take from each message, however the node says it.
struct Wanted {
  Names contextSparse, contextDense, contextRagged, listSparse, listDense, listRagged;
  std::vector<bool> mayMiss; ///< by dense list
};

absl::StatusOr<Names> scalarsOf(const std::vector<Tensor> &tensors, const char *what) {
  Names names;
  for (const Tensor &t : tensors) {
    LATHE_TRY_VALUE(name, oneString(t, what));
    names.push_back(name);
  }
  return names;
}

absl::Status read(const KernelContext &context, const char *name, Names &names) {
  const NodeInfo &node = *context.node;
  if (node.op == "ParseSequenceExample") {
    if (auto *list = attrOf<Names>(node, name))
      names = *list;
  } else if (node.op == "ParseSingleSequenceExample") {
    LATHE_TRY_VALUE(all, scalarsOf(context.inputList(name), name));
    names = all;
  } else {
    names = context.input(name).strings();
  }
  return absl::OkStatus();
}

absl::StatusOr<Wanted> wantedOf(const KernelContext &context) {
  const NodeInfo &node = *context.node;
  Wanted wanted;
  LATHE_TRY(read(context, "context_sparse_keys", wanted.contextSparse));
  LATHE_TRY(read(context, "context_dense_keys", wanted.contextDense));
  LATHE_TRY(read(context, "feature_list_sparse_keys", wanted.listSparse));
  LATHE_TRY(read(context, "feature_list_dense_keys", wanted.listDense));
  if (node.op == "ParseSequenceExampleV2") {
    LATHE_TRY(read(context, "context_ragged_keys", wanted.contextRagged));
    LATHE_TRY(read(context, "feature_list_ragged_keys", wanted.listRagged));
    Tensor empty = context.input("feature_list_dense_missing_assumed_empty");
    wanted.mayMiss.assign(empty.data<bool>(), empty.data<bool>() + empty.numElements());
    if (wanted.mayMiss.size() != wanted.listDense.size())
      return invalid("feature_list_dense_missing_assumed_empty must have an element for each dense list");
    return wanted;
  }
  const char *name = "feature_list_dense_missing_assumed_empty";
  const Names list = node.op == "ParseSequenceExample" ? *attrOf<Names>(node, name) : context.input(name).strings();
  std::set<std::string> empty(list.begin(), list.end());
  for (const std::string &key : wanted.listDense)
    wanted.mayMiss.push_back(empty.count(key) > 0);
  return wanted;
}

/// The features of one list across a batch: by message, by step. A missing list has no steps.
using Steps = std::vector<std::vector<Feature>>;

class SequenceParser {
public:
  SequenceParser(KernelContext &context, Wanted wanted) : context(context), wanted(std::move(wanted)) {}

  absl::Status run() {
    Tensor serialized = context.input("serialized");
    if (serialized.rank() > 1)
      return invalid("Expected serialized to be a scalar or vector, got shape: ", dimsToString(serialized.dims()));
    batched = serialized.rank() == 1;
    contexts.resize(serialized.numElements());
    lists.resize(serialized.numElements());
    for (size_t i = 0; i < contexts.size(); ++i)
      LATHE_TRY(readSequenceExample(serialized.strings()[i], contexts[i], lists[i]));
    LATHE_TRY(sameNumber("Ncontext_sparse", wanted.contextSparse.size()));
    LATHE_TRY(sameNumber("Nfeature_list_sparse", wanted.listSparse.size()));
    LATHE_TRY(sameNumber("Nfeature_list_dense", wanted.listDense.size()));
    LATHE_TRY(contextOutputs());
    return listOutputs();
  }

private:
  template <typename T>
  std::vector<T> list(const char *name) const {
    auto *value = attrOf<std::vector<T>>(*context.node, name);
    return value ? *value : std::vector<T>();
  }
  int output(const char *name, size_t k) const {
    return context.node->outputRange(name).start + static_cast<int>(k);
  }
  static absl::Status sameSize(const char *what, size_t keys, size_t types) {
    if (keys != types)
      return invalid(what, ": ", keys, " keys but ", types, " types or shapes");
    return absl::OkStatus();
  }

  /// The outputs are as many as this attribute says.
  absl::Status sameNumber(const char *name, size_t keys) const {
    const auto *number = attrOf<int64_t>(*context.node, name);
    if (number && *number != static_cast<int64_t>(keys))
      return invalid(name, " is ", *number, ", but there are ", keys, " keys");
    return absl::OkStatus();
  }

  absl::Status contextFeature(const std::string &key, DType type, std::vector<Feature> &batch) const {
    batch.resize(contexts.size());
    for (size_t i = 0; i < contexts.size(); ++i)
      LATHE_TRY(findFeature(contexts[i], key, type, batch[i]));
    return absl::OkStatus();
  }

  absl::Status contextOutputs() {
    auto sparseTypes = list<DType>("context_sparse_types"), denseTypes = list<DType>("Tcontext_dense");
    auto shapes = list<PartialShape>("context_dense_shapes");
    std::vector<Tensor> defaults = context.inputList("context_dense_defaults");
    LATHE_TRY(sameSize("context_sparse", wanted.contextSparse.size(), sparseTypes.size()));
    LATHE_TRY(sameSize("context_dense", wanted.contextDense.size(), denseTypes.size()));
    LATHE_TRY(sameSize("context_dense", wanted.contextDense.size(), shapes.size()));
    for (size_t k = 0; k < wanted.contextSparse.size(); ++k) {
      std::vector<Feature> batch;
      LATHE_TRY(contextFeature(wanted.contextSparse[k], sparseTypes[k], batch));
      LATHE_TRY_VALUE(parts, makeSparse(context, sparseTypes[k], batch, batched));
      context.setOutput(output("context_sparse_indices", k), parts[0]);
      context.setOutput(output("context_sparse_values", k), parts[1]);
      context.setOutput(output("context_sparse_shapes", k), parts[2]);
    }
    for (size_t k = 0; k < wanted.contextDense.size(); ++k) {
      std::vector<Feature> batch;
      LATHE_TRY(contextFeature(wanted.contextDense[k], denseTypes[k], batch));
      LATHE_TRY_VALUE(out, makeDense(context, {wanted.contextDense[k], denseTypes[k], shapes[k], defaults[k]}, batch, batched));
      context.setOutput(output("context_dense_values", k), out);
    }
    auto raggedTypes = list<DType>("context_ragged_value_types"), splitTypes = list<DType>("context_ragged_split_types");
    LATHE_TRY(sameSize("context_ragged", wanted.contextRagged.size(), raggedTypes.size()));
    LATHE_TRY(sameSize("context_ragged", wanted.contextRagged.size(), splitTypes.size()));
    for (size_t k = 0; k < wanted.contextRagged.size(); ++k) {
      std::vector<Feature> batch;
      LATHE_TRY(contextFeature(wanted.contextRagged[k], raggedTypes[k], batch));
      LATHE_TRY_VALUE(parts, makeRagged(context, raggedTypes[k], splitTypes[k], batch));
      context.setOutput(output("context_ragged_values", k), parts[0]);
      context.setOutput(output("context_ragged_row_splits", k), batched ? parts[1] : indexVector(splitTypes[k], {0}).reshaped({}));
    }
    return absl::OkStatus();
  }

  absl::Status listSteps(const std::string &key, DType type, bool mayMiss, Steps &steps) const {
    steps.resize(lists.size());
    for (size_t i = 0; i < lists.size(); ++i) {
      auto it = lists[i].find(key);
      if (it == lists[i].end()) {
        if (!mayMiss)
          return invalid("Name: <unknown>, Feature list '", key,
                         "' is required but could not be found.  Did you mean to include it in "
                         "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?");
        continue;
      }
      std::vector<std::string_view> features;
      LATHE_TRY(readFeatureList(it->second, features));
      for (std::string_view bytes : features) {
        Feature feature;
        LATHE_TRY(readFeature(bytes, feature));
        if (feature.present() && feature.type != type)
          return invalid("Feature list: ", key, ".  Data types don't match. Expected type: ", dtypeName(type),
                         "  Feature is: ", dtypeName(feature.type));
        steps[i].push_back(std::move(feature));
      }
    }
    return absl::OkStatus();
  }

  absl::Status listOutputs() {
    auto sparseTypes = list<DType>("feature_list_sparse_types"), denseTypes = list<DType>("feature_list_dense_types");
    auto shapes = list<PartialShape>("feature_list_dense_shapes");
    LATHE_TRY(sameSize("feature_list_sparse", wanted.listSparse.size(), sparseTypes.size()));
    LATHE_TRY(sameSize("feature_list_dense", wanted.listDense.size(), denseTypes.size()));
    LATHE_TRY(sameSize("feature_list_dense", wanted.listDense.size(), shapes.size()));
    for (size_t k = 0; k < wanted.listSparse.size(); ++k)
      LATHE_TRY(sparseList(k, sparseTypes[k]));
    for (size_t k = 0; k < wanted.listDense.size(); ++k)
      LATHE_TRY(denseList(k, denseTypes[k], shapes[k]));
    auto raggedTypes = list<DType>("feature_list_ragged_value_types"), splitTypes = list<DType>("feature_list_ragged_split_types");
    LATHE_TRY(sameSize("feature_list_ragged", wanted.listRagged.size(), raggedTypes.size()));
    LATHE_TRY(sameSize("feature_list_ragged", wanted.listRagged.size(), splitTypes.size()));
    for (size_t k = 0; k < wanted.listRagged.size(); ++k)
      LATHE_TRY(raggedList(k, raggedTypes[k], splitTypes[k]));
    return absl::OkStatus();
  }

  absl::Status sparseList(size_t k, DType type) {
    Steps steps;
    LATHE_TRY(listSteps(wanted.listSparse[k], type, true, steps));
    int64_t total = 0, longest = 0, widest = 0;
    for (const auto &message : steps) {
      longest = std::max<int64_t>(longest, message.size());
      for (const Feature &feature : message) {
        total += feature.size();
        widest = std::max(widest, feature.size());
      }
    }
    int64_t rank = batched ? 3 : 2, at = 0;
    LATHE_TRY_VALUE(indices, context.allocate(DType::Int64, {total, rank}));
    LATHE_TRY_VALUE(values, context.allocate(type, {total}));
    for (size_t b = 0; b < steps.size(); ++b)
      for (size_t t = 0; t < steps[b].size(); ++t)
        for (int64_t i = 0; i < steps[b][t].size(); ++i, ++at) {
          int64_t *row = indices.data<int64_t>() + at * rank;
          row[0] = static_cast<int64_t>(b);
          row[rank - 2] = static_cast<int64_t>(t);
          row[rank - 1] = i;
          steps[b][t].store(i, values, at);
        }
    context.setOutput(output("feature_list_sparse_indices", k), indices);
    context.setOutput(output("feature_list_sparse_values", k), values);
    context.setOutput(output("feature_list_sparse_shapes", k),
                      batched ? int64Vector({static_cast<int64_t>(steps.size()), longest, widest})
                              : int64Vector({longest, widest}));
    return absl::OkStatus();
  }

  absl::Status denseList(size_t k, DType type, const PartialShape &shape) {
    Steps steps;
    LATHE_TRY(listSteps(wanted.listDense[k], type, wanted.mayMiss[k], steps));
    if (!shape || std::any_of(shape->begin(), shape->end(), [](int64_t d) { return d < 0; }))
      return invalid("the shape of feature list '", wanted.listDense[k], "' must be known");
    LATHE_TRY_VALUE(each, checkedNumElements(*shape));
    int64_t longest = 0;
    std::vector<int64_t> lengths, dims = *shape;
    for (const auto &message : steps) {
      lengths.push_back(static_cast<int64_t>(message.size()));
      longest = std::max(longest, lengths.back());
    }
    dims.insert(dims.begin(), longest);
    if (batched)
      dims.insert(dims.begin(), static_cast<int64_t>(steps.size()));
    LATHE_TRY_VALUE(out, context.allocate(type, dims));
    for (size_t b = 0; b < steps.size(); ++b)
      for (size_t t = 0; t < steps[b].size(); ++t) {
        const Feature &feature = steps[b][t];
        if (feature.size() != each)
          return invalid("Feature list: ", wanted.listDense[k], ", Index: ", t, ".  Number of values != expected.  values size: ",
                         feature.size(), " but output shape: ", shapeToString(shape));
        for (int64_t i = 0; i < each; ++i)
          feature.store(i, out, (static_cast<int64_t>(b) * longest + static_cast<int64_t>(t)) * each + i);
      }
    context.setOutput(output("feature_list_dense_values", k), out);
    if (context.node->op != "ParseSingleSequenceExample")
      context.setOutput(output("feature_list_dense_lengths", k),
                        batched ? int64Vector(lengths) : int64Vector(lengths).reshaped({}));
    return absl::OkStatus();
  }

  absl::Status raggedList(size_t k, DType type, DType splitsType) {
    Steps steps;
    LATHE_TRY(listSteps(wanted.listRagged[k], type, true, steps));
    std::vector<int64_t> outer = {0};
    std::vector<Feature> all;
    for (auto &message : steps) {
      outer.push_back(outer.back() + static_cast<int64_t>(message.size()));
      for (Feature &feature : message)
        all.push_back(std::move(feature));
    }
    LATHE_TRY_VALUE(parts, makeRagged(context, type, splitsType, all));
    context.setOutput(output("feature_list_ragged_values", k), parts[0]);
    context.setOutput(output("feature_list_ragged_outer_splits", k), batched ? indexVector(splitsType, outer) : indexVector(splitsType, {0}).reshaped({}));
    context.setOutput(output("feature_list_ragged_inner_splits", k), parts[1]);
    return absl::OkStatus();
  }

  KernelContext &context;
  Wanted wanted;
  bool batched = false;
  std::vector<FeatureMap> contexts, lists;
};

absl::Status parseSequence(KernelContext &context) {
  LATHE_TRY_VALUE(wanted, wantedOf(context));
  return SequenceParser(context, wanted).run();
}
LATHE_HOST_FUNCTION(ParseSequenceExample, parseSequence);
LATHE_HOST_FUNCTION(ParseSequenceExampleV2, parseSequence);
LATHE_HOST_FUNCTION(ParseSingleSequenceExample, parseSequence);

} // namespace
} // namespace lathe::rt
