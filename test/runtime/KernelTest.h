// Runs one host kernel on given inputs, without a session.
#ifndef LATHE_TEST_RUNTIME_KERNELTEST_H
#define LATHE_TEST_RUNTIME_KERNELTEST_H

#include "runtime/core/Kernel.h"

#include <gtest/gtest.h>

namespace lathe::rt {

/// A node of its own with the resources that its runs share.
class KernelTest {
public:
  KernelTest(std::string op, AttrMap attrs, std::shared_ptr<ResourceManager> shared = nullptr,
             std::shared_ptr<FunctionCaller> functions = nullptr)
      : resources(shared ? std::move(shared) : std::make_shared<ResourceManager>()) {
    node.name = "node";
    node.op = std::move(op);
    node.attrs = std::move(attrs);
    state = resolveNode(node);
    if (!state.ok())
      return;
    caller = std::move(functions);
    KernelInit init(node, resources.get(), caller);
    auto made = makeKernel(init);
    state = made.status();
    if (made.ok())
      kernel = *std::move(made);
  }

  /// The outputs as tensors (references by their value), or why it failed.
  absl::StatusOr<std::vector<Tensor>> run(std::vector<Value> inputs) {
    if (!state.ok())
      return state;
    KernelContext context;
    context.node = &node;
    context.inputs = std::move(inputs);
    context.outputs.resize(node.outputTypes.size());
    context.resources = resources.get();
    context.stepResources = step ? step : &ownStep;
    context.cancellation = cancellation;
    context.functions = caller.get();
    if (absl::Status status = kernel->compute(context); !status.ok())
      return status;
    std::vector<Tensor> tensors;
    for (const Value &value : context.outputs)
      tensors.push_back(value.ref ? value.ref->value : value.tensor);
    return tensors;
  }

  const NodeInfo &info() const { return node; }
  const std::shared_ptr<ResourceManager> resources;
  /// Of the runs that follow.
  Cancellation *cancellation = nullptr;
  /// Shared by the nodes of one step; null: the node's own.
  ResourceManager *step = nullptr;

private:
  NodeInfo node;
  ResourceManager ownStep;
  std::shared_ptr<FunctionCaller> caller;
  std::unique_ptr<HostKernel> kernel;
  absl::Status state;
};

inline Tensor strings(std::vector<std::string> values) {
  int64_t n = static_cast<int64_t>(values.size());
  return Tensor::fromStrings({n}, std::move(values));
}
template <typename T>
std::vector<T> elements(const Tensor &t) {
  return std::vector<T>(t.data<T>(), t.data<T>() + t.numElements());
}
inline Tensor ints(std::vector<int32_t> v) { return Tensor::vector<int32_t>(DType::Int32, v); }
inline Tensor longs(std::vector<int64_t> v) { return Tensor::vector<int64_t>(DType::Int64, v); }
inline Tensor floats(std::vector<float> v) { return Tensor::vector<float>(DType::Float32, v); }
inline Tensor int0(int32_t v) { return Tensor::scalar<int32_t>(DType::Int32, v); }
inline Tensor long0(int64_t v) { return Tensor::scalar<int64_t>(DType::Int64, v); }
inline Tensor float0(float v) { return Tensor::scalar<float>(DType::Float32, v); }
inline Tensor string0(std::string value) { return Tensor::fromStrings({}, {std::move(value)}); }

} // namespace lathe::rt

#endif
