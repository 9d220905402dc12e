// tf.data. A dataset is a variant: a recipe that never changes. An iterator pulls elements out of it, blocking: it runs on
// a thread of its own, never on the executor's, so that the functions it calls find a thread.
#ifndef LATHE_RUNTIME_KERNELS_DATA_DATASET_H
#define LATHE_RUNTIME_KERNELS_DATA_DATASET_H

#include "runtime/core/Elements.h"
#include "runtime/core/Kernel.h"

namespace lathe::rt {

using Element = std::vector<Tensor>; ///< one tensor a component

/// What an iterator and those below it share; outlives them.
struct IteratorEnv {
  Cancellation *cancellation = nullptr;
};

class DatasetIterator {
public:
  virtual ~DatasetIterator() = default;
  /// The next element; false at the end, and then ever after. After an error, the elements that follow.
  virtual absl::StatusOr<bool> next(Element &element) = 0;
};
using IteratorPtr = std::unique_ptr<DatasetIterator>;

class Dataset : public Object, public std::enable_shared_from_this<Dataset> {
public:
  static constexpr int64_t kInfinite = -1, kUnknown = -2;
  /// Types and shapes of the components.
  struct Spec {
    std::vector<DType> types;
    std::vector<PartialShape> shapes;
  };

  explicit Dataset(Spec spec) : spec(std::move(spec)) {}
  std::string describe() const override { return "dataset"; }
  virtual absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const = 0;
  /// The number of elements if it is known without producing them.
  virtual int64_t cardinality() const { return kUnknown; }
  const Spec spec;
};
using DatasetPtr = std::shared_ptr<const Dataset>;

/// A dataset that turns the elements of one other.
class UnaryDataset : public Dataset {
public:
  UnaryDataset(Spec spec, DatasetPtr input) : Dataset(std::move(spec)), input(std::move(input)) {}
  int64_t cardinality() const override { return input->cardinality(); }
  const DatasetPtr input;
};

/// An iterator that keeps its dataset alive.
template <typename D>
class IteratorOf : public DatasetIterator {
public:
  IteratorOf(const D *dataset, const IteratorEnv &env)
      : dataset(std::static_pointer_cast<const D>(dataset->shared_from_this())), env(env) {}

protected:
  const std::shared_ptr<const D> dataset;
  const IteratorEnv env;
};

/// The same over the iterator of the dataset's input.
template <typename D>
class UnaryIterator : public IteratorOf<D> {
public:
  UnaryIterator(const D *dataset, const IteratorEnv &env, IteratorPtr input)
      : IteratorOf<D>(dataset, env), input(std::move(input)) {}

protected:
  IteratorPtr input;
};

/// Makes iterator I (constructed from dataset, env, input) over the input's.
template <typename I, typename D>
absl::StatusOr<IteratorPtr> iterateInput(const D *dataset, const IteratorEnv &env) {
  auto input = dataset->input->iterate(env);
  if (!input.ok())
    return input.status();
  return IteratorPtr(new I(dataset, env, *std::move(input)));
}

/// A library function with the values that it captured.
class CapturedFunction {
public:
  CapturedFunction() = default;
  CapturedFunction(std::shared_ptr<FunctionCaller> caller, FunctionRefPtr function, std::vector<Tensor> captured)
      : caller(std::move(caller)), function(std::move(function)), captured(std::move(captured)) {}
  /// Waits for the results for an element.
  absl::StatusOr<Element> call(Element args, const IteratorEnv &env) const;
  void callAsync(Element args, const IteratorEnv &env, FunctionCaller::Done done) const;

private:
  std::shared_ptr<FunctionCaller> caller;
  FunctionRefPtr function;
  std::vector<Tensor> captured;
};

Tensor datasetTensor(DatasetPtr dataset);
/// INVALID_ARGUMENT unless the tensor is a dataset.
absl::StatusOr<DatasetPtr> datasetFrom(const Tensor &t);

/// What nodes read in common: types and shapes, inputs that are datasets, functions.
class DatasetNode : public HostKernel {
public:
  explicit DatasetNode(KernelInit &init);
  absl::Status compute(KernelContext &context) final;

protected:
  virtual absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) = 0;
  /// The function of an attribute with the values of a list argument.
  CapturedFunction function(KernelContext &context, const char *attr, const char *captured = "other_arguments") const;
  static absl::StatusOr<int64_t> number(KernelContext &context, const char *name);
  static absl::StatusOr<bool> flag(KernelContext &context, const char *name);
  std::shared_ptr<FunctionCaller> caller;
  Dataset::Spec spec;
};

/// A node over one dataset: `fn(node's spec, input, context)` makes it.
template <absl::StatusOr<std::shared_ptr<Dataset>> (*fn)(const Dataset::Spec &, DatasetPtr, KernelContext &)>
class UnaryNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    if (!input.ok())
      return input.status();
    return fn(spec, *std::move(input), context);
  }
};

/// Elements put together; INVALID_ARGUMENT when they differ in shape. Shared by batching nodes.
absl::StatusOr<Element> batchElements(const std::vector<Element> &elements);
/// A dataset over another with batches of `size`.
std::shared_ptr<Dataset> makeBatch(Dataset::Spec spec, DatasetPtr input, int64_t size, bool dropRemainder);
/// A dataset that maps with up to `parallel` calls under way; an OUT_OF_RANGE of the function ends it, unless it must
/// keep the number of elements.
std::shared_ptr<Dataset> makeMap(Dataset::Spec spec, DatasetPtr input, CapturedFunction function, int64_t parallel,
                                 bool preserveCardinality);
/// A dataset of these elements.
std::shared_ptr<Dataset> makeList(Dataset::Spec spec, std::vector<Element> elements);

} // namespace lathe::rt

#endif
