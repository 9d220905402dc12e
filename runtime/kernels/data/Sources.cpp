// TensorDataset, TensorSliceDataset, RangeDataset.
#include "base/Float.h"
#include "runtime/kernels/data/Dataset.h"

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

LATHE_HOST_KERNEL(TensorDataset, TensorNode);
LATHE_HOST_KERNEL(TensorSliceDataset, SliceNode);
LATHE_HOST_KERNEL(RangeDataset, RangeNode);

} // namespace

std::shared_ptr<Dataset> makeList(Dataset::Spec spec, std::vector<Element> elements) {
  return std::make_shared<ListDataset>(std::move(spec), std::move(elements));
}

} // namespace lathe::rt
