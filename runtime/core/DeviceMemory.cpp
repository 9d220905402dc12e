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

bool staysOnHost(const Tensor &tensor) {
  bool small = tensor.sizeBytes() <= kSmallBytes && !isFloating(tensor.dtype()) && !isComplex(tensor.dtype());
  return small || !hasDeviceForm(tensor.dtype());
}

absl::StatusOr<Tensor> hostTensor(const Tensor &tensor) {
  DeviceMemory *memory = memoryOf(tensor);
  if (!memory)
    return tensor;
  return memory->toHost(tensor);
}

absl::Status valueToHost(Variable &variable) {
  if (!memoryOf(variable.value))
    return absl::OkStatus();
  auto host = hostTensor(variable.value);
  if (host.ok())
    variable.value = *std::move(host);
  return host.status();
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
    if (absl::Status s = copy(way, made->data(), from); !s.ok())
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

absl::StatusOr<Tensor> DeviceMemory::fromAny(const Tensor &tensor) {
  DeviceMemory *from = memoryOf(tensor);
  if (from == this)
    return tensor;
  if (!from)
    return fromHost(tensor);
  auto made = allocate(tensor.dtype(), tensor.dims());
  if (!made.ok() || tensor.sizeBytes() == 0)
    return made;
  absl::Status direct = copyFrom(*from, made->data(), tensor);
  if (direct.ok())
    return made;
  if (direct.code() != absl::StatusCode::kUnimplemented)
    return direct;
  auto host = from->toHost(tensor);
  return host.ok() ? filled(std::move(made), Way::ToDevice, *host) : host;
}

absl::Status DeviceMemory::copyFrom(DeviceMemory &other, void *, const Tensor &) {
  return absl::UnimplementedError(absl::StrCat("no copies from ", other.deviceName(), " to ", deviceName()));
}

void Device::receive(const Tensor &tensor, Moved done) {
  std::shared_ptr<DeviceMemory> own = memory();
  if (!own || staysOnHost(tensor))
    return done(hostTensor(tensor));
  done(own->fromAny(tensor));
}

} // namespace lathe::rt
