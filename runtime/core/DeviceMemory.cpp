// Tensors of devices.
#include "runtime/device.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::rt {
namespace {

constexpr int64_t kMaxBytes = INT64_C(1) << 42;
constexpr int64_t kSmallBytes = 1024; // of integers that stay with the host

} // namespace

/// The deleter of a tensor's owner; that it is of this type marks tensors of devices.
struct DeviceMemory::GiveBack {
  std::shared_ptr<DeviceMemory> memory;
  int64_t bytes;
  void operator()(void *p) const { memory->giveBack(p, bytes); }
};

DeviceMemory *memoryOf(const Tensor &tensor) {
  auto *mark = std::get_deleter<DeviceMemory::GiveBack>(tensor.owner());
  return mark ? mark->memory.get() : nullptr;
}

bool hasDeviceForm(DType type) {
  return type != DType::String && type != DType::Resource && type != DType::Variant && dtypeSize(type) != 0;
}

absl::StatusOr<Tensor> hostTensor(const Tensor &tensor) {
  DeviceMemory *memory = memoryOf(tensor);
  if (!memory)
    return tensor;
  return memory->toHost(tensor);
}

absl::StatusOr<Tensor> DeviceMemory::allocate(DType type, std::vector<int64_t> dims) {
  auto count = checkedNumElements(dims);
  if (!count.ok())
    return count.status();
  if (!hasDeviceForm(type))
    return absl::InvalidArgumentError(absl::StrCat("no memory of ", deviceName(), " holds type ", dtypeName(type)));
  int64_t bytes;
  if (__builtin_mul_overflow(*count, static_cast<int64_t>(dtypeSize(type)), &bytes) || bytes > kMaxBytes)
    return absl::ResourceExhaustedError(absl::StrCat("a tensor of type ", dtypeName(type), " and shape ", dimsToString(dims), " is too large"));
  bytes = std::max<int64_t>(bytes, 1);
  auto memory = obtain(bytes);
  if (!memory.ok())
    return memory.status();
  return Tensor::wrap(type, std::move(dims), *memory, std::shared_ptr<void>(*memory, GiveBack{shared_from_this(), bytes}));
}

absl::StatusOr<Tensor> DeviceMemory::filled(absl::StatusOr<Tensor> made, Way way, const Tensor &from) {
  if (made.ok() && from.sizeBytes() > 0)
    if (absl::Status s = copy(way, made->data(), from.data(), from.sizeBytes()); !s.ok())
      return s;
  return made;
}

absl::StatusOr<Tensor> DeviceMemory::fromHost(const Tensor &tensor) {
  return filled(allocate(tensor.dtype(), tensor.dims()), Way::ToDevice, tensor);
}

absl::StatusOr<Tensor> DeviceMemory::toHost(const Tensor &tensor) {
  return filled(Tensor::tryAllocate(tensor.dtype(), tensor.dims(), kMaxBytes), Way::ToHost, tensor);
}

absl::StatusOr<Tensor> DeviceMemory::clone(const Tensor &tensor) {
  return filled(allocate(tensor.dtype(), tensor.dims()), Way::Within, tensor);
}

void Device::fromHost(const Tensor &tensor, Moved done) {
  std::shared_ptr<DeviceMemory> own = memory();
  bool small = tensor.sizeBytes() <= kSmallBytes && !isFloating(tensor.dtype()) && !isComplex(tensor.dtype());
  if (!own || !hasDeviceForm(tensor.dtype()) || small)
    return done(tensor);
  done(own->fromHost(tensor));
}

} // namespace lathe::rt
