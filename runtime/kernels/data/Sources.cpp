// TensorDataset, TensorSliceDataset, SparseTensorSliceDataset, RangeDataset, ListDataset, WindowOp; CompressElement, UncompressElement.
#include "base/Float.h"
#include "runtime/kernels/data/Dataset.h"

#include <algorithm>

namespace lathe::rt {
namespace {

class ListDataset : public Dataset {
public:
  ListDataset(Spec spec, std::vector<Element> elements) : Dataset(std::move(spec)), elements(std::move(elements)) {}
  int64_t cardinality() const override { return static_cast<int64_t>(elements.size()); }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<ListDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        if (at == dataset->elements.size())
          return false;
        element = dataset->elements[at++];
        return true;
      }
      size_t at = 0;
    };
    return IteratorPtr(new Iterator(this, env));
  }
  const std::vector<Element> elements;
};

class SliceDataset : public Dataset {
public:
  SliceDataset(Spec spec, Element tensors) : Dataset(std::move(spec)), tensors(std::move(tensors)) {}
  int64_t cardinality() const override { return tensors[0].dim(0); }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<SliceDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        if (at == dataset->cardinality())
          return false;
        element.clear();
        for (const Tensor &t : dataset->tensors)
          element.push_back(rowOf(t, at));
        ++at;
        return true;
      }
      int64_t at = 0;
    };
    return IteratorPtr(new Iterator(this, env));
  }
  const Element tensors;
};

class RangeDataset : public Dataset {
public:
  RangeDataset(Spec spec, int64_t start, int64_t stop, int64_t step)
      : Dataset(std::move(spec)), start(start), stop(stop), step(step) {}
  int64_t cardinality() const override {
    // as unsigned numbers the difference cannot overflow
    if (step > 0 ? start >= stop : start <= stop)
      return 0;
    uint64_t distance = step > 0 ? uint64_t(stop) - uint64_t(start) : uint64_t(start) - uint64_t(stop);
    uint64_t stride = step > 0 ? uint64_t(step) : uint64_t(0) - uint64_t(step);
    return static_cast<int64_t>((distance - 1) / stride + 1);
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<RangeDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        if (at == static_cast<uint64_t>(dataset->cardinality()))
          return false;
        uint64_t value = uint64_t(dataset->start) + at++ * uint64_t(dataset->step);
        return dataset->fill(element, static_cast<int64_t>(value));
      }
      uint64_t at = 0;
    };
    return IteratorPtr(new Iterator(this, env));
  }

  absl::StatusOr<bool> fill(Element &element, int64_t value) const {
    DType type = spec.types.empty() ? DType::Int64 : spec.types[0];
    if (dtypeSize(type) == 0 || isComplex(type) || isQuantized(type))
      return absl::InvalidArgumentError(absl::StrCat("Unsupported data type: ", dtypeName(type)));
    Tensor t = Tensor::allocate(type, {});
    switch (type) {
    case DType::Float32:
      *t.data<float>() = static_cast<float>(value);
      break;
    case DType::Float64:
      *t.data<double>() = static_cast<double>(value);
      break;
    case DType::Float16:
      *t.data<uint16_t>() = floatToHalf(static_cast<float>(value));
      break;
    case DType::BFloat16:
      *t.data<uint16_t>() = floatToBFloat16(static_cast<float>(value));
      break;
    case DType::Bool:
      *t.data<bool>() = value != 0;
      break;
    default: // integers keep their low bytes
      std::copy_n(reinterpret_cast<const char *>(&value), dtypeSize(type), t.data<char>());
    }
    element = {t};
    return true;
  }
  const int64_t start, stop, step;
};

class TensorNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    return makeList(spec, {context.inputList("components")});
  }
};

class SliceNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    Element tensors = context.inputList("components");
    if (tensors.empty())
      return absl::InvalidArgumentError("there is nothing to slice");
    for (const Tensor &t : tensors) {
      if (t.rank() == 0)
        return absl::InvalidArgumentError("All components must be at least 1-dimensional");
      if (t.dim(0) != tensors[0].dim(0))
        return absl::InvalidArgumentError("All components must have the same size in the 0th dimension");
    }
    return std::make_shared<SliceDataset>(spec, std::move(tensors));
  }
};

/// The rows of a sparse tensor along its first dimension, each as indices, values and shape.
class SparseSliceDataset : public Dataset {
public:
  SparseSliceDataset(Spec spec, Tensor indices, Tensor values, std::vector<int64_t> dims)
      : Dataset(std::move(spec)), indices(std::move(indices)), values(std::move(values)), dims(std::move(dims)) {}
  int64_t cardinality() const override { return dims[0]; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<SparseSliceDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        if (row == dataset->dims[0])
          return false;
        const int64_t *from = dataset->indices.data<int64_t>();
        int64_t rank = static_cast<int64_t>(dataset->dims.size()), start = at;
        while (at < dataset->values.dim(0) && from[at * rank] == row)
          ++at;
        Tensor indices = Tensor::allocate(DType::Int64, {at - start, rank - 1});
        for (int64_t i = start; i < at; ++i)
          std::copy_n(from + i * rank + 1, rank - 1, indices.data<int64_t>() + (i - start) * (rank - 1));
        std::vector<int64_t> rest(dataset->dims.begin() + 1, dataset->dims.end());
        element = {indices, rowsOf(dataset->values, start, at - start), Tensor::vector<int64_t>(DType::Int64, rest)};
        ++row;
        return true;
      }
      int64_t row = 0, at = 0;
    };
    return IteratorPtr(new Iterator(this, env));
  }
  const Tensor indices, values;
  const std::vector<int64_t> dims;
};

class SparseSliceNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    Tensor indices = context.input("indices"), values = context.input("values"), shape = context.input("dense_shape");
    if (indices.dtype() != DType::Int64 || indices.rank() != 2)
      return absl::InvalidArgumentError(absl::StrCat("Input indices must be a matrix. Got: ", dimsToString(indices.dims())));
    if (values.rank() != 1)
      return absl::InvalidArgumentError(absl::StrCat("Input values must be a vector. Got: ", dimsToString(values.dims())));
    if (shape.dtype() != DType::Int64 || shape.rank() != 1 || shape.dim(0) == 0)
      return absl::InvalidArgumentError(absl::StrCat("Input shape must be a vector with a number. Got: ", dimsToString(shape.dims())));
    if (values.dim(0) != indices.dim(0))
      return absl::InvalidArgumentError(absl::StrCat("Number of values must match first dimension of indices. Got ", values.dim(0),
                                                     " values, indices shape: ", dimsToString(indices.dims())));
    if (shape.dim(0) != indices.dim(1))
      return absl::InvalidArgumentError(absl::StrCat("Number of dimensions must match second dimension of indices. Got ", shape.dim(0),
                                                     " dimensions, indices shape: ", dimsToString(indices.dims())));
    std::vector<int64_t> dims = integers(shape);
    for (int64_t d : dims)
      if (d < 0)
        return absl::InvalidArgumentError("the dimensions of a sparse tensor must not be negative");
    const int64_t *from = indices.data<int64_t>();
    for (int64_t i = 0, previous = 0; i < indices.dim(0); previous = from[i++ * indices.dim(1)])
      if (from[i * indices.dim(1)] < previous)
        return absl::UnimplementedError("The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered "
                                        "input is not currently supported.");
    Dataset::Spec parts{{DType::Int64, values.dtype(), DType::Int64}, {PartialShape(), PartialShape(), PartialShape()}};
    return std::make_shared<SparseSliceDataset>(std::move(parts), std::move(indices), std::move(values), std::move(dims));
  }
};

/// Tensors in a row, as many an element as there are types; a last part that makes no element is passed over.
absl::StatusOr<std::shared_ptr<Dataset>> listOf(const Dataset::Spec &spec, const Element &tensors) {
  size_t width = spec.types.size();
  if (width == 0)
    return absl::InvalidArgumentError("there are no output_types");
  std::vector<Element> elements;
  for (size_t i = 0; i + width <= tensors.size(); i += width) {
    elements.emplace_back(tensors.begin() + static_cast<std::ptrdiff_t>(i), tensors.begin() + static_cast<std::ptrdiff_t>(i + width));
    for (size_t c = 0; c < width; ++c)
      if (elements.back()[c].dtype() != spec.types[c])
        return absl::InvalidArgumentError(absl::StrCat("tensor ", i + c, " is of type ", dtypeName(elements.back()[c].dtype()),
                                                       ", output_types say ", dtypeName(spec.types[c])));
  }
  return makeList(spec, std::move(elements));
}

class ListNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    return listOf(spec, context.inputList(context.node->op == "WindowOp" ? "inputs" : "tensors"));
  }
};

class RangeNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto start = number(context, "start"), stop = number(context, "stop"), step = number(context, "step");
    for (const absl::Status &status : {start.status(), stop.status(), step.status()})
      if (!status.ok())
        return status;
    if (*step == 0)
      return absl::InvalidArgumentError("step must be a non-zero integer.");
    return std::make_shared<RangeDataset>(spec, *start, *stop, *step);
  }
};

/// What CompressElement gives: the tensors as they are, since nothing reads the bytes.
class ElementObject : public Object {
public:
  explicit ElementObject(Element element) : element(std::move(element)) {}
  std::string describe() const override { return "element of a dataset"; }
  const Element element;
};

absl::Status compress(KernelContext &context) {
  auto object = std::make_shared<ElementObject>(context.inputList("components"));
  context.setOutput(0, Tensor::fromObjects(DType::Variant, {}, {std::move(object)}));
  return absl::OkStatus();
}

absl::Status uncompress(KernelContext &context) {
  Tensor t = context.input(0);
  const ElementObject *object =
      t.dtype() == DType::Variant && t.numElements() == 1 ? dynamic_cast<const ElementObject *>(t.objects()[0].get()) : nullptr;
  if (!object)
    return absl::InvalidArgumentError("Tensor does not contain a compressed element");
  const Element &element = object->element;
  if (element.size() != context.outputs.size())
    return absl::FailedPreconditionError(absl::StrCat("Got ", element.size(), " components for ", context.outputs.size(), " output types"));
  for (size_t i = 0; i < element.size(); ++i) {
    if (element[i].dtype() != context.node->outputTypes[i])
      return absl::FailedPreconditionError(absl::StrCat("component ", i, " is of type ", dtypeName(element[i].dtype()), ", expected ",
                                                        dtypeName(context.node->outputTypes[i])));
    context.setOutput(static_cast<int>(i), element[i]);
  }
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(CompressElement, compress);
LATHE_HOST_FUNCTION(UncompressElement, uncompress);
LATHE_HOST_KERNEL(TensorDataset, TensorNode);
LATHE_HOST_KERNEL(TensorSliceDataset, SliceNode);
LATHE_HOST_KERNEL(SparseTensorSliceDataset, SparseSliceNode);
LATHE_HOST_KERNEL(RangeDataset, RangeNode);
LATHE_HOST_KERNEL(ListDataset, ListNode);
LATHE_HOST_KERNEL(WindowOp, ListNode);

} // namespace

std::shared_ptr<Dataset> makeList(Dataset::Spec spec, std::vector<Element> elements) {
  return std::make_shared<ListDataset>(std::move(spec), std::move(elements));
}

} // namespace lathe::rt
