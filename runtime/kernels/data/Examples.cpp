// ParseExampleDataset(V2): batches of serialized examples turned into what ParseExampleV2 makes of them. Sparse features come as
// the variants of SerializeSparse, ragged ones as those of RaggedTensorToVariant.
#include "runtime/kernels/data/Node.h"

#include <map>

namespace lathe::rt {
namespace {

class ParseExampleDataset : public UnaryDataset {
public:
  ParseExampleDataset(Spec spec, DatasetPtr input) : UnaryDataset(std::move(spec), std::move(input)) {}
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<ParseExampleDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        Element batch;
        LATHE_TRY_VALUE(any, input->next(batch));
        if (!any)
          return false;
        if (batch.size() != 1 || batch[0].dtype() != DType::String || batch[0].rank() != 1)
          return invalid("Input dataset should be a dataset of vectors of strings");
        LATHE_TRY(dataset->parse(batch[0], env, element));
        return true;
      }
    };
    return iterateInput<Iterator>(this, env);
  }

  absl::Status parse(const Tensor &serialized, const IteratorEnv &env, Element &element) const {
    Element args = {serialized, Tensor::fromStrings({0}, {}), keys[0], keys[1], keys[2]};
    args.insert(args.end(), defaults.begin(), defaults.end());
    LATHE_TRY_VALUE(parts, parser->run(args, env));
    size_t sparse = keys[0].numElements(), dense = keys[1].numElements(), ragged = keys[2].numElements();
    if (parts.size() != 3 * sparse + dense + 2 * ragged)
      return invalid("the examples give another number of tensors than there are keys");
    element.assign(sparse + dense + ragged, Tensor());
    for (size_t k = 0; k < sparse; ++k) {
      LATHE_TRY_VALUE(packed, packSparse[k]->run({parts[k], parts[sparse + k], parts[2 * sparse + k]}, env));
      element[place[k]] = packed[0];
    }
    const Tensor *rest = parts.data() + 3 * sparse;
    for (size_t k = 0; k < dense; ++k)
      element[place[sparse + k]] = rest[k];
    rest += dense;
    for (size_t k = 0; k < ragged; ++k) {
      LATHE_TRY_VALUE(packed, packRagged[k]->run({rest[ragged + k], rest[k]}, env));
      element[place[sparse + dense + k]] = packed[0];
    }
    return absl::OkStatus();
  }

  Tensor keys[3]; ///< of sparse, dense and ragged features
  Element defaults;
  std::vector<size_t> place; ///< of each key's component, in the order of `keys`: components are sorted by key
  NodePtr parser;
  std::vector<NodePtr> packSparse, packRagged;
};

class ParseExampleNode : public DatasetNode {
public:
  explicit ParseExampleNode(KernelInit &init)
      : DatasetNode(init), sparseTypes(init.attr<Types>("sparse_types")), denseTypes(init.attr<Types>("Tdense")),
        valueTypes(optional<Types>(init, "ragged_value_types")), splitTypes(optional<Types>(init, "ragged_split_types")),
        denseShapes(init.attr<std::vector<PartialShape>>("dense_shapes")) {
    for (const char *name : {"sparse_keys", "dense_keys", "ragged_keys"})
      keys.push_back(optional<std::vector<std::string>>(init, name));
    if (keys[0].size() != sparseTypes.size() || keys[1].size() != denseTypes.size() || keys[1].size() != denseShapes.size() ||
        keys[2].size() != valueTypes.size() || keys[2].size() != splitTypes.size())
      init.fail(invalid("keys, types and shapes must be equally many"));
    if (spec.types.size() != keys[0].size() + keys[1].size() + keys[2].size())
      init.fail(invalid("there are ", spec.types.size(), " output_types for ", keys[0].size() + keys[1].size() + keys[2].size(), " keys"));
  }

  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    auto dataset = std::make_shared<ParseExampleDataset>(spec, input);
    std::map<std::string, size_t> sorted;
    for (size_t kind = 0; kind < 3; ++kind) {
      dataset->keys[kind] = Tensor::fromStrings({static_cast<int64_t>(keys[kind].size())}, keys[kind]);
      for (const std::string &key : keys[kind])
        if (!sorted.emplace(key, 0).second)
          return invalid("the key ", key, " is given twice");
    }
    size_t next = 0;
    for (auto &[key, place] : sorted)
      place = next++;
    for (const auto &some : keys)
      for (const std::string &key : some)
        dataset->place.push_back(sorted[key]);
    dataset->defaults = context.inputList("dense_defaults");
    LATHE_TRY_VALUE(parser, Node::make("ParseExampleV2", {{"Tdense", denseTypes},
                                                          {"num_sparse", static_cast<int64_t>(sparseTypes.size())},
                                                          {"sparse_types", sparseTypes},
                                                          {"ragged_value_types", valueTypes},
                                                          {"ragged_split_types", splitTypes},
                                                          {"dense_shapes", denseShapes}}));
    dataset->parser = parser;
    for (DType type : sparseTypes) {
      LATHE_TRY_VALUE(node, Node::make("SerializeSparse", {{"T", type}, {"out_type", DType::Variant}}));
      dataset->packSparse.push_back(node);
    }
    for (size_t k = 0; k < valueTypes.size(); ++k) {
      LATHE_TRY_VALUE(node, Node::make("RaggedTensorToVariant", {{"RAGGED_RANK", int64_t(1)},
                                                                 {"Tvalues", valueTypes[k]},
                                                                 {"Tsplits", splitTypes[k]},
                                                                 {"batched_input", false}}));
      dataset->packRagged.push_back(node);
    }
    return dataset;
  }

private:
  using Types = std::vector<DType>;
  /// Empty for what the experimental form does not have yet.
  template <typename T>
  static T optional(KernelInit &init, const char *name) {
    return init.hasAttr(name) ? init.attr<T>(name) : T();
  }
  const Types sparseTypes, denseTypes, valueTypes, splitTypes;
  const std::vector<PartialShape> denseShapes;
  std::vector<std::vector<std::string>> keys;
};

LATHE_HOST_KERNEL(ParseExampleDataset, ParseExampleNode);
LATHE_HOST_KERNEL(ExperimentalParseExampleDataset, ParseExampleNode);
LATHE_HOST_KERNEL(ParseExampleDatasetV2, ParseExampleNode);

} // namespace
} // namespace lathe::rt
