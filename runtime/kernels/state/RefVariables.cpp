// Reference variables of TF1: the tensor on the edge is the variable itself.
#include "runtime/kernels/state/Lookup.h"
#include "runtime/core/Kernel.h"

namespace lathe::rt {
namespace {

class VariableV2Kernel : public HostKernel {
public:
  explicit VariableV2Kernel(KernelInit &init)
      : container(init.attr<std::string>("container")), name(init.attr<std::string>("shared_name")),
        dtype(init.attr<DType>("dtype")) {
    if (name.empty())
      name = init.node().name;
    if (container.empty())
      container = ResourceManager::kDefaultContainer;
  }
  absl::Status compute(KernelContext &context) override {
    auto variable = findVariable(context, container, name, dtype);
    if (!variable.ok())
      return variable.status();
    context.setRefOutput(0, *std::move(variable));
    return absl::OkStatus();
  }
  bool isExpensive() const override { return false; }

private:
  std::string container, name;
  const DType dtype;
};

class RefKernel : public HostKernel {
public:
  explicit RefKernel(KernelInit &) {}
  bool isExpensive() const override { return false; }
  bool allowsUninitialized(int) const override { return true; }
};

class AssignRefKernel : public RefKernel {
public:
  explicit AssignRefKernel(KernelInit &init) : RefKernel(init), validate(init.attr<bool>("validate_shape")) {}
  absl::Status compute(KernelContext &context) override {
    const std::shared_ptr<Variable> &variable = context.refInput(0);
    Tensor value = context.input(1);
    if (!value.valid())
      return absl::FailedPreconditionError("Attempting to use uninitialized value");
    std::lock_guard<std::mutex> lock(variable->mutex);
    if (validate && variable->value.valid() && variable->value.dims() != value.dims())
      return absl::InvalidArgumentError(absl::StrCat("Assign requires shapes of both tensors to match. lhs shape= ",
                                                     dimsToString(variable->value.dims()), " rhs shape= ", dimsToString(value.dims())));
    context.inputs[1] = Value();
    variable->value = std::move(value);
    context.setRefOutput(0, variable);
    return absl::OkStatus();
  }

private:
  const bool validate;
};

class IsVariableInitializedKernel : public RefKernel {
public:
  using RefKernel::RefKernel;
  absl::Status compute(KernelContext &context) override {
    const std::shared_ptr<Variable> &variable = context.refInput(0);
    std::lock_guard<std::mutex> lock(variable->mutex);
    context.setOutput(0, Tensor::scalar<bool>(DType::Bool, variable->value.valid()));
    return absl::OkStatus();
  }
};

// Temporary variables live in the step, by name.
std::string temporaryName(KernelInit &init) {
  std::string name = init.attr<std::string>("var_name");
  return name.empty() ? init.node().name : name;
}
constexpr const char *kTemporaries = "tmp_var";

/// Frame and iteration are part of the name: each iteration of a loop has its own.
std::string inFrame(const KernelContext &context, const std::string &name) {
  return context.frame.empty() ? name : absl::StrCat(name, "/", context.frame, ":", context.iteration);
}

class TemporaryVariableKernel : public HostKernel {
public:
  explicit TemporaryVariableKernel(KernelInit &init)
      : name(temporaryName(init)), shape(init.attr<PartialShape>("shape")), dtype(init.attr<DType>("dtype")) {}
  absl::Status compute(KernelContext &context) override {
    std::vector<int64_t> dims = shape.value_or(std::vector<int64_t>());
    if (!shape || std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
      return absl::InvalidArgumentError("a temporary variable needs a fixed shape");
    auto value = context.allocate(dtype, dims);
    if (!value.ok())
      return value.status();
    bool isNew = false;
    auto variable = context.stepResources->lookupOrCreate<Variable>(
        kTemporaries, inFrame(context, name), [&]() -> absl::StatusOr<std::shared_ptr<Variable>> {
          isNew = true;
          auto made = std::make_shared<Variable>(dtype);
          made->value = *std::move(value);
          return made;
        });
    if (!variable.ok())
      return variable.status();
    if (!isNew)
      return absl::AlreadyExistsError(absl::StrCat("temporary variable '", name, "' exists already"));
    context.setRefOutput(0, *std::move(variable));
    return absl::OkStatus();
  }

private:
  const std::string name;
  const PartialShape shape;
  const DType dtype;
};

class DestroyTemporaryVariableKernel : public HostKernel {
public:
  explicit DestroyTemporaryVariableKernel(KernelInit &init) : name(temporaryName(init)) {}
  absl::Status compute(KernelContext &context) override {
    context.setOutput(0, context.input(0));
    return context.stepResources->remove(kTemporaries, inFrame(context, name));
  }

private:
  const std::string name;
};

LATHE_HOST_KERNEL(Variable, VariableV2Kernel);
LATHE_HOST_KERNEL(VariableV2, VariableV2Kernel);
LATHE_HOST_KERNEL(Assign, AssignRefKernel);
LATHE_HOST_KERNEL(IsVariableInitialized, IsVariableInitializedKernel);
LATHE_HOST_KERNEL(TemporaryVariable, TemporaryVariableKernel);
LATHE_HOST_KERNEL(DestroyTemporaryVariable, DestroyTemporaryVariableKernel);

} // namespace
} // namespace lathe::rt
