// Resource variables: handles, reading, assigning. Arithmetic on them is in Update.cpp or compiled.
#include "runtime/kernels/state/Lookup.h"
#include "runtime/core/Kernel.h"
#include "runtime/device.h"

#include <atomic>

namespace lathe::rt {
namespace {

// what eager TensorFlow puts for "a variable of its own at every execution"
constexpr const char *kAnonymous = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

class VarHandleKernel : public HostKernel {
public:
  explicit VarHandleKernel(KernelInit &init)
      : container(init.attr<std::string>("container")), name(init.attr<std::string>("shared_name")),
        dtype(init.attr<DType>("dtype")) {
    if (name.empty())
      name = init.node().name;
    if (container.empty())
      container = ResourceManager::kDefaultContainer;
  }
  absl::Status compute(KernelContext &context) override {
    if (name == kAnonymous) {
      context.setOutput(0, makeHandle(container, name, std::make_shared<Variable>(dtype)));
      return absl::OkStatus();
    }
    auto variable = findVariable(context, container, name, dtype);
    if (!variable.ok())
      return variable.status();
    context.setOutput(0, makeHandle(container, name, *variable));
    return absl::OkStatus();
  }
  bool isExpensive() const override { return false; }

private:
  std::string container, name;
  const DType dtype;
};

class VariableKernel : public HostKernel {
public:
  explicit VariableKernel(KernelInit &) {}
  absl::Status compute(KernelContext &context) override {
    auto variable = context.resource<Variable>(0);
    return variable.ok() ? compute(context, **variable) : variable.status();
  }
  bool isExpensive() const override { return false; }

protected:
  virtual absl::Status compute(KernelContext &context, Variable &variable) = 0;
  /// The name behind a handle, for messages.
  static std::string nameOf(KernelContext &context) {
    Tensor handle = context.input(0);
    auto *h = handle.dtype() == DType::Resource ? dynamic_cast<ResourceHandle *>(handle.objects()[0].get()) : nullptr;
    return h ? h->name : "";
  }
  static absl::Status uninitialized(KernelContext &context) {
    return absl::FailedPreconditionError(absl::StrCat("Could not find variable ", nameOf(context), ": it is not initialized"));
  }
};

class ReadKernel : public VariableKernel {
public:
  using VariableKernel::VariableKernel;
  absl::Status compute(KernelContext &context, Variable &variable) override {
    std::lock_guard<std::mutex> lock(variable.mutex);
    if (!variable.value.valid())
      return uninitialized(context);
    if (variable.value.dtype() != context.node->outputTypes[0])
      return absl::InvalidArgumentError(absl::StrCat("the variable is of type ", dtypeName(variable.value.dtype()), ", read as ",
                                                     dtypeName(context.node->outputTypes[0])));
    context.setOutput(0, variable.value);
    return absl::OkStatus();
  }
};

class AssignKernel : public VariableKernel {
public:
  explicit AssignKernel(KernelInit &init) : VariableKernel(init), validate(init.attr<bool>("validate_shape")) {}
  absl::Status compute(KernelContext &context, Variable &variable) override {
    Tensor value = context.input(1);
    if (value.dtype() != variable.dtype)
      return absl::InvalidArgumentError(absl::StrCat("the variable is of type ", dtypeName(variable.dtype), ", the value of type ",
                                                     dtypeName(value.dtype())));
    std::lock_guard<std::mutex> lock(variable.mutex);
    if (validate && variable.value.valid() && variable.value.dims() != value.dims())
      return absl::InvalidArgumentError(absl::StrCat("Assign requires shapes of both tensors to match: the variable has ",
                                                     dimsToString(variable.value.dims()), ", the value ", dimsToString(value.dims())));
    context.inputs[1] = Value(); // so that the variable may own the buffer alone
    variable.value = std::move(value);
    return absl::OkStatus();
  }

private:
  const bool validate;
};

class IsInitializedKernel : public HostKernel {
public:
  explicit IsInitializedKernel(KernelInit &) {}
  absl::Status compute(KernelContext &context) override {
    bool initialized = false;
    if (auto variable = context.resource<Variable>(0); variable.ok()) {
      std::lock_guard<std::mutex> lock((*variable)->mutex);
      initialized = (*variable)->value.valid();
    }
    context.setOutput(0, Tensor::scalar<bool>(DType::Bool, initialized));
    return absl::OkStatus();
  }
  bool isExpensive() const override { return false; }
};

class ShapeKernel : public VariableKernel {
public:
  using VariableKernel::VariableKernel;
  absl::Status compute(KernelContext &context, Variable &variable) override {
    std::vector<int64_t> dims;
    {
      std::lock_guard<std::mutex> lock(variable.mutex);
      if (!variable.value.valid())
        return uninitialized(context);
      dims = variable.value.dims();
    }
    if (context.node->outputTypes[0] == DType::Int64)
      context.setOutput(0, Tensor::vector<int64_t>(DType::Int64, dims));
    else
      context.setOutput(0, Tensor::vector<int32_t>(DType::Int32, std::vector<int32_t>(dims.begin(), dims.end())));
    return absl::OkStatus();
  }
};

class DestroyKernel : public HostKernel {
public:
  explicit DestroyKernel(KernelInit &init) : ignore(init.attr<bool>("ignore_lookup_error")) {}
  absl::Status compute(KernelContext &context) override {
    Tensor handle = context.input(0);
    auto *h = handle.numElements() == 1 && handle.dtype() == DType::Resource
                  ? dynamic_cast<ResourceHandle *>(handle.objects()[0].get())
                  : nullptr;
    if (!h)
      return absl::InvalidArgumentError("input 0 is not the handle of a resource");
    absl::Status removed = context.resources->remove(h->container, h->name);
    return ignore ? absl::OkStatus() : removed;
  }
  bool isExpensive() const override { return false; }

private:
  const bool ignore;
};

absl::Status nothing(KernelContext &) { return absl::OkStatus(); }

/// Gives the variable's value and adds one, until it has reached the limit.
template <bool isRef>
class CountUpToKernel : public HostKernel {
public:
  explicit CountUpToKernel(KernelInit &init) : limit(init.attr<int64_t>("limit")) {}
  absl::Status compute(KernelContext &context) override {
    std::shared_ptr<Variable> variable;
    if (isRef) {
      variable = context.refInput(0);
    } else {
      auto found = context.resource<Variable>(0);
      if (!found.ok())
        return found.status();
      variable = *std::move(found);
    }
    std::lock_guard<std::mutex> lock(variable->mutex);
    if (!variable->value.valid())
      return absl::FailedPreconditionError("the variable is not initialized");
    if (variable->value.rank() != 0)
      return absl::InvalidArgumentError(absl::StrCat("input is not a scalar: ", dimsToString(variable->value.dims())));
    if (variable->value.dtype() != context.node->outputTypes[0])
      return absl::InvalidArgumentError("the variable is of another type");
    if (variable->value.dtype() != DType::Int64 && variable->value.dtype() != DType::Int32)
      return absl::InvalidArgumentError(absl::StrCat("counts int32 and int64, not ", dtypeName(variable->value.dtype())));
    if (absl::Status s = valueToHost(*variable); !s.ok())
      return s;
    return variable->value.dtype() == DType::Int64 ? count<int64_t>(context, *variable) : count<int32_t>(context, *variable);
  }
  bool isExpensive() const override { return false; }

private:
  template <typename T>
  absl::Status count(KernelContext &context, Variable &variable) {
    T now = *variable.value.data<T>();
    if (now >= limit)
      return absl::OutOfRangeError(absl::StrCat("Reached limit of ", limit));
    context.setOutput(0, Tensor::scalar<T>(variable.dtype, now));
    *variable.writable().template data<T>() = now + 1;
    return absl::OkStatus();
  }
  const int64_t limit;
};

LATHE_HOST_KERNEL(VarHandleOp, VarHandleKernel);
LATHE_HOST_KERNEL(ReadVariableOp, ReadKernel);
LATHE_HOST_KERNEL(AssignVariableOp, AssignKernel);
LATHE_HOST_KERNEL(VarIsInitializedOp, IsInitializedKernel);
LATHE_HOST_KERNEL(VariableShape, ShapeKernel);
LATHE_HOST_KERNEL(DestroyResourceOp, DestroyKernel);
LATHE_HOST_KERNEL(ResourceCountUpTo, CountUpToKernel<false>);
LATHE_HOST_KERNEL(CountUpTo, CountUpToKernel<true>);
LATHE_HOST_FUNCTION(DisableCopyOnRead, nothing);

} // namespace
} // namespace lathe::rt
