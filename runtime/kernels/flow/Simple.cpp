// Small control flow ops that the executor does not run itself.
#include "runtime/core/Kernel.h"

namespace lathe::rt {
namespace {

class CheapKernel : public HostKernel {
public:
  explicit CheapKernel(KernelInit &) {}
  bool isExpensive() const override { return false; }
};

class IdentityNKernel : public CheapKernel {
public:
  using CheapKernel::CheapKernel;
  absl::Status compute(KernelContext &context) override {
    for (int i = 0; i < context.numInputs(); ++i)
      context.setOutput(i, context.input(i));
    return absl::OkStatus();
  }
};

class PlaceholderKernel : public CheapKernel {
public:
  using CheapKernel::CheapKernel;
  absl::Status compute(KernelContext &context) override {
    return absl::InvalidArgumentError(absl::StrCat("You must feed a value for placeholder tensor '", context.node->name,
                                                   "' with dtype ", dtypeName(context.node->outputTypes[0])));
  }
};

/// Stands for a result that a branch does not have; no one looks at the value.
class FakeParamKernel : public HostKernel {
public:
  explicit FakeParamKernel(KernelInit &init) : shape(init.attr<PartialShape>("shape")) {}
  absl::Status compute(KernelContext &context) override {
    std::vector<int64_t> dims = shape.value_or(std::vector<int64_t>{0});
    for (int64_t &d : dims)
      d = std::max<int64_t>(d, 0);
    return context.allocateOutput(0, std::move(dims)).status();
  }
  bool isExpensive() const override { return false; }

private:
  const PartialShape shape;
};

class DeviceIndexKernel : public HostKernel {
public:
  explicit DeviceIndexKernel(KernelInit &init) : names(init.attr<std::vector<std::string>>("device_names")) {}
  absl::Status compute(KernelContext &context) override {
    size_t i = 0;
    while (i < names.size() && names[i] != "CPU")
      ++i;
    context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(i)));
    return absl::OkStatus();
  }
  bool isExpensive() const override { return false; }

private:
  const std::vector<std::string> names;
};

class RefSelectKernel : public CheapKernel {
public:
  using CheapKernel::CheapKernel;
  absl::Status compute(KernelContext &context) override {
    Tensor index = context.input(0);
    if (index.rank() != 0)
      return absl::InvalidArgumentError("the index has to be a scalar");
    int64_t i = *index.data<int32_t>();
    if (i < 0 || i + 1 >= context.numInputs())
      return absl::InvalidArgumentError(absl::StrCat("index ", i, " is not in [0, ", context.numInputs() - 1, ")"));
    context.setRefOutput(0, context.refInput(static_cast<int>(i) + 1));
    return absl::OkStatus();
  }
  bool allowsUninitialized(int) const override { return true; }
};

LATHE_HOST_KERNEL(IdentityN, IdentityNKernel);
LATHE_HOST_KERNEL(Placeholder, PlaceholderKernel);
LATHE_HOST_KERNEL(PlaceholderV2, PlaceholderKernel);
LATHE_HOST_KERNEL(FakeParam, FakeParamKernel);
LATHE_HOST_KERNEL(DeviceIndex, DeviceIndexKernel);
LATHE_HOST_KERNEL(RefSelect, RefSelectKernel);

} // namespace
} // namespace lathe::rt
