// GetSessionHandle(V2), GetSessionTensor, DeleteSessionTensor: tensors that stay in the session between runs, under handles of
// the form "node;number;device".
#include "runtime/kernels/Common.h"

#include <map>
#include <mutex>

namespace lathe::rt {
namespace {

class SessionTensors : public Resource {
public:
  std::string describe() const override { return "the session's tensors"; }
  std::string add(const KernelContext &context, Tensor value) {
    std::lock_guard<std::mutex> lock(mutex);
    std::string device = context.node->device.empty() ? "/job:localhost/replica:0/task:0/device:CPU:0" : context.node->device;
    std::string handle = absl::StrCat(context.node->name, ";", ++last, ";", device);
    tensors[handle] = std::move(value);
    return handle;
  }
  absl::StatusOr<Tensor> get(const std::string &handle) const {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = tensors.find(handle);
    if (found == tensors.end())
      return invalid("The tensor with handle '", handle, "' is not in the session store.");
    return found->second;
  }
  absl::Status remove(const std::string &handle) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!tensors.erase(handle))
      return invalid("Failed to delete tensor with handle '", handle, "': it is not in the session store.");
    return absl::OkStatus();
  }

private:
  mutable std::mutex mutex;
  std::map<std::string, Tensor> tensors;
  int64_t last = 0;
};

absl::StatusOr<std::shared_ptr<SessionTensors>> store(KernelContext &context) {
  // a container of its own, which no graph's resources are in
  return context.resources->lookupOrCreate<SessionTensors>("session tensors", "", [] { return std::make_shared<SessionTensors>(); });
}

absl::Status keep(KernelContext &context) {
  LATHE_TRY_VALUE(tensors, store(context));
  context.setOutput(0, Tensor::fromStrings({}, {tensors->add(context, context.input(0))}));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(GetSessionHandle, keep);

/// The handle as a resource, of the name that the other two take.
class Named : public Resource {
public:
  std::string describe() const override { return "session tensor"; }
};
absl::Status keepAsResource(KernelContext &context) {
  LATHE_TRY_VALUE(tensors, store(context));
  context.setOutput(0, makeHandle(ResourceManager::kDefaultContainer, tensors->add(context, context.input(0)), std::make_shared<Named>()));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(GetSessionHandleV2, keepAsResource);

absl::Status get(KernelContext &context) {
  LATHE_TRY_VALUE(tensors, store(context));
  LATHE_TRY_VALUE(handle, oneString(context.input(0), "handle"));
  LATHE_TRY_VALUE(value, tensors->get(handle));
  if (value.dtype() != context.node->outputTypes[0])
    return invalid("the tensor with handle '", handle, "' is of type ", dtypeName(value.dtype()), ", expected ",
                   dtypeName(context.node->outputTypes[0]));
  context.setOutput(0, value);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(GetSessionTensor, get);

absl::Status drop(KernelContext &context) {
  LATHE_TRY_VALUE(tensors, store(context));
  LATHE_TRY_VALUE(handle, oneString(context.input(0), "handle"));
  return tensors->remove(handle);
}
LATHE_HOST_FUNCTION(DeleteSessionTensor, drop);

} // namespace
} // namespace lathe::rt
