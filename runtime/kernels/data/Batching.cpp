// BatchDataset(V2), ParallelBatchDataset, PaddedBatchDataset(V2), UnbatchDataset, WindowDataset, SlidingWindowDataset,
// DenseToSparseBatchDataset.
#include "runtime/kernels/data/Holding.h"
#include "runtime/kernels/data/Node.h"

#include <algorithm>
#include <deque>

namespace lathe::rt {
namespace {

/// Puts together what `join` makes of up to `size` elements.
class BatchDataset : public UnaryDataset {
public:
  using Join = std::function<absl::StatusOr<Element>(const std::vector<Element> &)>;
  BatchDataset(Spec spec, DatasetPtr input, int64_t size, bool drop, Join join)
      : UnaryDataset(std::move(spec), std::move(input)), size(size), drop(drop), join(std::move(join)) {}
  int64_t cardinality() const override {
    int64_t n = input->cardinality();
    return n < 0 ? n : n / size + (!drop && n % size ? 1 : 0);
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<BatchDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        std::vector<Element> elements;
        Holding holding;
        while (!ended && static_cast<int64_t>(elements.size()) < dataset->size) {
          Element one;
          auto any = input->next(one);
          if (!any.ok())
            return any.status();
          ended = !*any;
          if (!*any)
            break;
          if (absl::Status held = holding.add(one); !held.ok())
            return held;
          elements.push_back(std::move(one));
        }
        if (elements.empty() || (dataset->drop && static_cast<int64_t>(elements.size()) < dataset->size))
          return false;
        auto joined = dataset->join(elements);
        if (!joined.ok())
          return joined.status();
        element = *std::move(joined);
        return true;
      }
      bool ended = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const int64_t size;
  const bool drop;
  const Join join;
};

/// Pads every component to a shape (-1: the longest of the batch) with a value.
absl::StatusOr<Element> joinPadded(const std::vector<Element> &elements, const std::vector<std::vector<int64_t>> &shapes,
                                   const Element &padding) {
  Element batch;
  for (size_t c = 0; c < elements[0].size(); ++c) {
    std::vector<int64_t> dims = shapes[c];
    for (const Element &element : elements) {
      const Tensor &t = element[c];
      if (t.rank() != static_cast<int64_t>(dims.size()))
        return absl::InvalidArgumentError(absl::StrCat("All elements in a batch must have the same rank as the padded shape for component ",
                                                       c, ": expected rank ", dims.size(), " but got element with rank ", t.rank()));
      for (int64_t d = 0; d < t.rank(); ++d) {
        if (shapes[c][d] < 0)
          dims[d] = std::max(dims[d], t.dim(d));
        else if (t.dim(d) > dims[d])
          return absl::DataLossError(absl::StrCat("Attempted to pad to a smaller size than the input element: ",
                                                  dimsToString(t.dims()), " to ", dimsToString(dims)));
      }
    }
    auto joined = Tensor::tryAllocate(elements[0][c].dtype(), withDim(static_cast<int64_t>(elements.size()), dims), kMaxTensorBytes);
    if (!joined.ok())
      return joined.status();
    fillWith(*joined, padding[c]);
    for (size_t i = 0; i < elements.size(); ++i)
      setRowCorner(*joined, static_cast<int64_t>(i), elements[i][c]);
    batch.push_back(*std::move(joined));
  }
  return batch;
}

class UnbatchDataset : public UnaryDataset {
public:
  using UnaryDataset::UnaryDataset;
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<UnbatchDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        while (batch.empty() || at == batch[0].dim(0)) {
          batch.clear();
          auto any = input->next(batch);
          if (!any.ok() || !*any) {
            batch.clear();
            return any;
          }
          at = 0;
          for (const Tensor &t : batch)
            if (t.rank() == 0 || t.dim(0) != batch[0].dim(0)) {
              batch.clear();
              return absl::InvalidArgumentError(
                  "Input element must have the same batch size in each component, and at least rank 1");
            }
        }
        element.clear();
        for (const Tensor &t : batch)
          element.push_back(rowOf(t, at));
        ++at;
        return true;
      }
      Element batch;
      int64_t at = 0;
    };
    return iterateInput<Iterator>(this, env);
  }
};

/// Each element is, for each component of the input, a dataset of `size` elements, or one batch of them.
class WindowDataset : public UnaryDataset {
public:
  WindowDataset(Spec spec, DatasetPtr input, int64_t size, int64_t shift, int64_t stride, bool drop, bool batches)
      : UnaryDataset(std::move(spec), std::move(input)), size(size), shift(shift), stride(stride), drop(drop), batches(batches) {}
  /// Of batches the number that TensorFlow gives, which counts windows by where they start.
  int64_t cardinality() const override {
    int64_t n = input->cardinality();
    return !batches ? kUnknown : n < 0 ? n : n / shift + (!drop && n % shift ? 1 : 0);
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<WindowDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        int64_t span = (dataset->size - 1) * dataset->stride + 1;
        Element one;
        while (!ended && static_cast<int64_t>(buffer.size()) < span) {
          auto any = input->next(one);
          if (!any.ok())
            return any.status();
          ended = !*any;
          if (!*any)
            break;
          if (absl::Status held = holding.add(one); !held.ok())
            return held;
          buffer.push_back(std::move(one));
        }
        int64_t have = static_cast<int64_t>(buffer.size());
        if (have == 0 || (dataset->drop && have < span))
          return false;
        std::vector<Element> chosen;
        for (int64_t i = 0; i < have && i < span; i += dataset->stride)
          chosen.push_back(buffer[i]);
        // what lies between windows is passed over
        for (int64_t i = have; !ended && i < dataset->shift; ++i) {
          auto any = input->next(one);
          if (!any.ok())
            return any.status();
          ended = !*any;
        }
        auto passed = buffer.begin() + std::min(have, dataset->shift);
        std::for_each(buffer.begin(), passed, [&](const Element &e) { holding.drop(e); });
        buffer.erase(buffer.begin(), passed);
        if (dataset->batches) {
          auto joined = batchElements(chosen);
          if (!joined.ok())
            return joined.status();
          element = *std::move(joined);
          return true;
        }
        element.clear();
        for (size_t c = 0; c < chosen[0].size(); ++c) {
          Spec spec{{chosen[0][c].dtype()}, {c < dataset->input->spec.shapes.size() ? dataset->input->spec.shapes[c] : PartialShape()}};
          std::vector<Element> column;
          for (const Element &e : chosen)
            column.push_back({e[c]});
          element.push_back(datasetTensor(makeList(std::move(spec), std::move(column))));
        }
        return true;
      }
      std::deque<Element> buffer;
      Holding holding;
      bool ended = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const int64_t size, shift, stride;
  const bool drop, batches;
};

class BatchNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    auto size = number(context, "batch_size");
    absl::StatusOr<bool> drop = false;
    if (context.node->inputRange("drop_remainder").count)
      drop = flag(context, "drop_remainder");
    for (const absl::Status &status : {input.status(), size.status(), drop.status()})
      if (!status.ok())
        return status;
    if (*size <= 0)
      return absl::InvalidArgumentError("Batch size must be greater than zero.");
    return makeBatch(spec, *std::move(input), *size, *drop);
  }
};

class PaddedNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    auto size = number(context, "batch_size");
    absl::StatusOr<bool> drop = false;
    if (context.node->inputRange("drop_remainder").count)
      drop = flag(context, "drop_remainder");
    for (const absl::Status &status : {input.status(), size.status(), drop.status()})
      if (!status.ok())
        return status;
    if (*size <= 0)
      return absl::InvalidArgumentError("Batch size must be greater than zero.");
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor &shape : context.inputList("padded_shapes")) {
      if (shape.rank() != 1)
        return absl::InvalidArgumentError("All padded shapes must be vectors");
      shapes.push_back(integers(shape));
    }
    Element padding = context.inputList("padding_values");
    const std::vector<DType> &types = (*input)->spec.types;
    if (shapes.size() != types.size() || padding.size() != types.size())
      return absl::InvalidArgumentError("Number of padded shapes and padding values must match the number of components in "
                                        "the input dataset's elements");
    for (size_t c = 0; c < types.size(); ++c)
      if (padding[c].numElements() != 1 || padding[c].dtype() != types[c])
        return absl::InvalidArgumentError("All padding values must be scalars of their component's type");
    return std::make_shared<BatchDataset>(
        spec, *std::move(input), *size, *drop, [shapes, padding](const std::vector<Element> &elements) -> absl::StatusOr<Element> {
          if (elements[0].size() != shapes.size())
            return absl::InvalidArgumentError("the elements have another number of components");
          return joinPadded(elements, shapes, padding);
        });
  }
};

absl::StatusOr<std::shared_ptr<Dataset>> unbatch(const Dataset::Spec &spec, DatasetPtr input, KernelContext &) {
  return std::make_shared<UnbatchDataset>(spec, std::move(input));
}

template <bool batches>
class WindowNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    auto size = number(context, batches ? "window_size" : "size"), shift = number(context, batches ? "window_shift" : "shift"),
         stride = number(context, batches ? "window_stride" : "stride");
    const bool *dropAttr = attrOf<bool>(*context.node, "drop_remainder"); // the experimental form drops
    absl::StatusOr<bool> drop = batches ? !dropAttr || *dropAttr : flag(context, "drop_remainder");
    for (const absl::Status &status : {input.status(), size.status(), shift.status(), stride.status(), drop.status()})
      if (!status.ok())
        return status;
    constexpr int64_t kMost = INT64_C(1) << 31;
    if (*size <= 0 || *shift <= 0 || *stride <= 0 || *size > kMost || *stride > kMost)
      return absl::InvalidArgumentError("Window size, shift and stride must be greater than zero.");
    return std::make_shared<WindowDataset>(spec, *std::move(input), *size, *shift, *stride, *drop, batches);
  }
};

/// Dense elements as one sparse tensor with all their values. A size of -1 is the largest of the batch.
absl::StatusOr<Element> joinSparse(const std::vector<Element> &elements, const std::vector<int64_t> &rowShape, const NodePtr &pack) {
  size_t rank = rowShape.size();
  std::vector<int64_t> dims = rowShape;
  int64_t total = 0;
  for (const Element &element : elements) {
    if (element.size() != 1)
      return invalid("DenseToSparseBatchDataset only supports inputs with a single component.");
    const Tensor &t = element[0];
    if (t.rank() != static_cast<int64_t>(rank) || t.dtype() != elements[0][0].dtype())
      return invalid("Input element had shape (", dimsToString(t.dims()), ") that is incompatible with the row shape (",
                     dimsToString(rowShape), ").");
    total += t.numElements();
    for (size_t d = 0; d < rank; ++d) {
      if (rowShape[d] == -1)
        dims[d] = std::max(dims[d], t.dim(d));
      else if (t.dim(d) > rowShape[d])
        return absl::DataLossError(absl::StrCat("Input element had shape (", dimsToString(t.dims()),
                                                ") that is larger than the row shape (", dimsToString(rowShape), ")."));
    }
  }
  LATHE_TRY_VALUE(indices, Tensor::tryAllocate(DType::Int64, {total, static_cast<int64_t>(rank) + 1}, kMaxTensorBytes));
  LATHE_TRY_VALUE(values, Tensor::tryAllocate(elements[0][0].dtype(), {total}, kMaxTensorBytes));
  int64_t at = 0, *index = indices.data<int64_t>();
  for (size_t row = 0; row < elements.size(); ++row) {
    const Tensor &t = elements[row][0];
    copyElements(values, at, t, 0, t.numElements());
    at += t.numElements();
    for (int64_t i = 0; i < t.numElements(); ++i, index += rank + 1) {
      index[0] = static_cast<int64_t>(row);
      for (int64_t d = static_cast<int64_t>(rank) - 1, rest = i; d >= 0; rest /= t.dim(d--))
        index[d + 1] = rest % t.dim(d);
    }
  }
  Tensor shape = Tensor::vector<int64_t>(DType::Int64, withDim(static_cast<int64_t>(elements.size()), dims));
  return pack->run({indices, values, shape}, {});
}

class SparseBatchNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    LATHE_TRY_VALUE(size, number(context, "batch_size"));
    Tensor given = context.input("row_shape");
    if (size <= 0)
      return invalid("Batch size must be greater than zero.");
    if (given.dtype() != DType::Int64 || given.rank() != 1)
      return invalid("row_shape must be a vector");
    std::vector<int64_t> rowShape = integers(given);
    for (int64_t d : rowShape)
      if (d < -1)
        return invalid("Dimensions of row_shape must be at least -1, found ", d);
    if (input->spec.types.size() != 1)
      return invalid("DenseToSparseBatchDataset only supports inputs with a single component.");
    LATHE_TRY_VALUE(pack, Node::make("SerializeSparse", {{"T", input->spec.types[0]}, {"out_type", DType::Variant}}));
    return std::make_shared<BatchDataset>(
        Dataset::Spec{{DType::Variant}, {PartialShape(std::vector<int64_t>{3})}}, input, size, false,
        [rowShape, node = pack](const std::vector<Element> &elements) { return joinSparse(elements, rowShape, node); });
  }
};

LATHE_HOST_KERNEL(DenseToSparseBatchDataset, SparseBatchNode);
LATHE_HOST_KERNEL(ExperimentalDenseToSparseBatchDataset, SparseBatchNode);
LATHE_HOST_KERNEL(BatchDataset, BatchNode);
LATHE_HOST_KERNEL(BatchDatasetV2, BatchNode);
LATHE_HOST_KERNEL(ParallelBatchDataset, BatchNode);
LATHE_HOST_KERNEL(PaddedBatchDataset, PaddedNode);
LATHE_HOST_KERNEL(PaddedBatchDatasetV2, PaddedNode);
LATHE_HOST_KERNEL(UnbatchDataset, UnaryNode<unbatch>);
LATHE_HOST_KERNEL(ExperimentalUnbatchDataset, UnaryNode<unbatch>);
LATHE_HOST_KERNEL(WindowDataset, WindowNode<false>);
LATHE_HOST_KERNEL(SlidingWindowDataset, WindowNode<true>);
LATHE_HOST_KERNEL(ExperimentalSlidingWindowDataset, WindowNode<true>);

} // namespace

absl::StatusOr<Element> batchElements(const std::vector<Element> &elements) {
  Element batch;
  for (size_t c = 0; c < elements[0].size(); ++c) {
    std::vector<Tensor> rows;
    for (size_t i = 0; i < elements.size(); ++i) {
      if (elements[i].size() != elements[0].size() || elements[i][c].dims() != elements[0][c].dims())
        return absl::InvalidArgumentError(absl::StrCat(
            "Cannot batch tensors with different shapes in component ", c, ". First element had shape ",
            dimsToString(elements[0][c].dims()), " and element ", i, " had shape ",
            c < elements[i].size() ? dimsToString(elements[i][c].dims()) : std::string("none"), "."));
      rows.push_back(elements[i][c]);
    }
    auto joined = stackRows(rows);
    if (!joined.ok())
      return joined.status();
    batch.push_back(*std::move(joined));
  }
  return batch;
}

std::shared_ptr<Dataset> makeBatch(Dataset::Spec spec, DatasetPtr input, int64_t size, bool drop) {
  return std::make_shared<BatchDataset>(std::move(spec), std::move(input), size, drop, batchElements);
}

} // namespace lathe::rt
