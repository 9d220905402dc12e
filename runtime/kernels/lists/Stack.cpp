// Stack, StackPush, StackPop, StackClose, and their V2 forms.
#include "runtime/kernels/lists/Shapes.h"

#include <atomic>

namespace lathe::rt {
namespace {

constexpr const char *kContainer = "_stacks";

class Stack : public Resource {
public:
  Stack(std::string name, DType type, int64_t most) : name(std::move(name)), type(type), most(most) {}
  std::string describe() const override { return "Stack"; }
  const std::string name;
  const DType type;
  const int64_t most; ///< none if not positive

  absl::Status push(Tensor t) {
    std::lock_guard<std::mutex> lock(mutex);
    if (closed)
      return absl::InvalidArgumentError(absl::StrCat("Stack[", name, "] has already been closed."));
    if (t.dtype() != type)
      return absl::InvalidArgumentError(
          absl::StrCat("Must have type ", dtypeName(type), " but got ", dtypeName(t.dtype())));
    if (most > 0 && static_cast<int64_t>(items.size()) >= most)
      return absl::InvalidArgumentError(absl::StrCat("Stack[", name, "] overflowed its max_size (", most, ")"));
    items.push_back(std::move(t));
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> pop() {
    std::lock_guard<std::mutex> lock(mutex);
    if (closed)
      return absl::InvalidArgumentError(absl::StrCat("Stack[", name, "] has already been closed."));
    if (items.empty())
      return absl::InvalidArgumentError(absl::StrCat("Stack[", name, "] is empty when calling Pop()."));
    Tensor t = std::move(items.back());
    items.pop_back();
    return t;
  }
  void close() {
    std::lock_guard<std::mutex> lock(mutex);
    items.clear();
    closed = true;
  }

private:
  std::mutex mutex;
  std::vector<Tensor> items;
  bool closed = false;
};

/// Nodes may share a name.
int64_t serial() {
  static std::atomic<int64_t> next{0};
  return next++;
}

class StackNode : public HostKernel {
public:
  explicit StackNode(KernelInit &init)
      : type(init.attr<DType>("elem_type")), name(init.attr<std::string>("stack_name")) {
    if (name.empty())
      name = init.node().name;
  }
  absl::Status compute(KernelContext &context) override {
    int64_t most = -1;
    if (context.numInputs()) {
      auto given = integerScalar(context.input(0), "max_size");
      if (!given.ok())
        return given.status();
      most = *given;
    }
    std::string unique = absl::StrCat(name, "_", serial());
    auto stack = stepManager(context)->lookupOrCreate<Stack>(kContainer, unique,
                                                             [&]() -> absl::StatusOr<std::shared_ptr<Stack>> {
                                                               return std::make_shared<Stack>(unique, type, most);
                                                             });
    if (!stack.ok())
      return stack.status();
    if (!context.node->outputIsRef[0]) {
      context.setOutput(0, makeHandle(kContainer, unique, *stack));
      return absl::OkStatus();
    }
    auto ref = std::make_shared<Variable>(DType::String);
    ref->value = Tensor::fromStrings({2}, {kContainer, unique});
    context.setRefOutput(0, std::move(ref));
    return absl::OkStatus();
  }
  bool isExpensive() const override { return false; }

private:
  DType type;
  std::string name;
};

absl::Status push(KernelContext &context) {
  auto stack = stepResource<Stack>(context, 0);
  if (!stack.ok())
    return stack.status();
  Tensor value = context.input(1);
  if (absl::Status pushed = (*stack)->push(value); !pushed.ok())
    return pushed;
  context.setOutput(0, std::move(value));
  return absl::OkStatus();
}

absl::Status pop(KernelContext &context) {
  auto stack = stepResource<Stack>(context, 0);
  if (!stack.ok())
    return stack.status();
  if ((*stack)->type != context.node->outputTypes[0])
    return absl::InvalidArgumentError(absl::StrCat("the stack holds ", dtypeName((*stack)->type)));
  auto value = (*stack)->pop();
  if (!value.ok())
    return value.status();
  context.setOutput(0, *std::move(value));
  return absl::OkStatus();
}

absl::Status close(KernelContext &context) {
  auto stack = stepResource<Stack>(context, 0);
  if (!stack.ok())
    return stack.status();
  (*stack)->close();
  return absl::OkStatus();
}

LATHE_HOST_KERNEL(Stack, StackNode);
LATHE_HOST_KERNEL(StackV2, StackNode);
LATHE_HOST_FUNCTION(StackPush, push);
LATHE_HOST_FUNCTION(StackPushV2, push);
LATHE_HOST_FUNCTION(StackPop, pop);
LATHE_HOST_FUNCTION(StackPopV2, pop);
LATHE_HOST_FUNCTION(StackClose, close);
LATHE_HOST_FUNCTION(StackCloseV2, close);

} // namespace
} // namespace lathe::rt
