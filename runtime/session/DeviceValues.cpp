#include "runtime/session/DeviceValues.h"

#include "runtime/device.h"

#include <map>

namespace lathe::rt {
namespace {

/// Handing a value on reads types and sizes alone.
const std::map<std::string_view, int> &handlers() {
  static const auto *all = new std::map<std::string_view, int>{
      {"Send", 0},          {"Recv", 0},
      {"Variable", 0},      {"VariableV2", 0},
      {"VarHandleOp", 0},   {"ReadVariableOp", 0},
      {"Assign", 0},        {"AssignVariableOp", 0},
      {"IsVariableInitialized", 0}, {"VarIsInitializedOp", 0},
      {"VariableShape", 0}, {"DestroyResourceOp", 0},
      {"IdentityN", 0},     {"Placeholder", 0},
      {"PartitionedCall", 0}, {"StatefulPartitionedCall", 0},
      {"If", 1},            {"StatelessIf", 1},
      {"Case", 1},          {"StatelessCase", 1},
      {"While", 0},         {"StatelessWhile", 0},
      {"For", 3},
  };
  return *all;
}

absl::Status replace(Tensor &tensor) {
  if (!memoryOf(tensor))
    return absl::OkStatus();
  auto host = hostTensor(tensor);
  if (host.ok())
    tensor = *std::move(host);
  return host.status();
}

/// A variable as it is now, for a kernel that takes no reference.
absl::StatusOr<Tensor> snapshot(Variable &variable) {
  std::lock_guard<std::mutex> lock(variable.mutex);
  if (absl::Status s = valueToHost(variable); !s.ok())
    return s;
  return variable.value;
}

} // namespace

std::optional<int> hostInputsOfHandler(std::string_view op) {
  auto it = handlers().find(op);
  return it == handlers().end() ? std::nullopt : std::optional<int>(it->second);
}

absl::Status bringInputsToHost(KernelContext &context) {
  size_t count = context.inputs.size();
  if (std::optional<int> read = hostInputsOfHandler(context.node->op))
    count = std::min<size_t>(count, *read);
  for (size_t i = 0; i < count; ++i) {
    Value &input = context.inputs[i];
    if (!input.ref) {
      if (absl::Status s = replace(input.tensor); !s.ok())
        return s;
    } else if (!context.node->inputIsRef[i]) {
      auto value = snapshot(*input.ref);
      if (!value.ok())
        return value.status();
      input = Value(*std::move(value));
    } // who takes a variable itself asks for its value under the lock
  }
  return absl::OkStatus();
}

absl::Status bringToHost(std::vector<Tensor> &tensors) {
  for (Tensor &t : tensors)
    if (absl::Status s = replace(t); !s.ok())
      return s;
  return absl::OkStatus();
}

FunctionCaller::Done withHostResults(FunctionCaller::Done done) {
  return [done = std::move(done)](absl::StatusOr<std::vector<Tensor>> results) {
    if (results.ok())
      if (absl::Status s = bringToHost(*results); !s.ok())
        return done(s);
    done(std::move(results));
  };
}

void HostResults::call(const FunctionRef &function, std::vector<Tensor> args, Cancellation *cancellation, Done done) {
  functions->call(function, std::move(args), cancellation, withHostResults(std::move(done)));
}

} // namespace lathe::rt
