// Allocation, copies, sets. Asynchronous ones read and write when they run, not when they are called.
#include "test/cuda/emulator/Device.h"

#include <algorithm>
#include <cstring>

using namespace lathe::emu;

namespace {

/// Host bytes of a device's memory, or null with a finding when the range is not in one allocation.
char *range(Device &device, Memory &memory, const char *call, uint64_t address, size_t bytes, Region **region = nullptr) {
  Region *r = memory.find(address, bytes);
  if (!r) {
    device.findings.add(Finding::Memcheck, call, static_cast<int>(device.calls),
                        std::string(call) + " of " + std::to_string(bytes) +
                            " bytes: " + memory.describe(address));
    return nullptr;
  }
  if (region)
    *region = r;
  return r->host + (address - r->begin);
}

char *range(Device &device, const char *call, uint64_t address, size_t bytes, Region **region = nullptr) {
  return range(device, *device.memory, call, address, bytes, region);
}

/// The memory of a device whose context is alive; null for others.
Memory *memoryOf(Device &device, lathe_cu_context context) {
  for (size_t d = 0; d < device.memories.size(); ++d)
    if (context == contextHandle(static_cast<int>(d)) && device.uses[d] > 0)
      return device.memories[d].get();
  return nullptr;
}

void written(Region *r, const char *to, size_t bytes) {
  if (r && !r->initialized.empty())
    std::fill_n(r->initialized.begin() + (to - r->host), bytes, 1);
}

enum Direction { ToDevice, ToHost, WithinDevice };

/// A copy from memory to memory, of one device or of two.
void between(Device &device, const char *call, Memory &to, uint64_t a, Memory &from, uint64_t b, size_t bytes) {
  Region *target = nullptr, *source = nullptr;
  char *p = range(device, to, call, a, bytes, &target);
  char *q = p ? range(device, from, call, b, bytes, &source) : nullptr;
  if (!q) {
    device.sticky = LATHE_CU_ERROR_ILLEGAL_ADDRESS;
    return;
  }
  std::memmove(p, q, bytes);
  if (!target->initialized.empty() && !source->initialized.empty())
    std::copy_n(source->initialized.begin() + (q - source->host), bytes, target->initialized.begin() + (p - target->host));
}

/// What a copy does when it runs. The ranges were checked by the call, and are again: memory may be gone
/// meanwhile.
void copy(Device &device, const char *call, Direction direction, void *host, uint64_t a, uint64_t b,
          size_t bytes) {
  if (direction == WithinDevice)
    return between(device, call, *device.memory, a, *device.memory, b, bytes);
  Region *target = nullptr;
  char *p = range(device, call, a, bytes, &target);
  if (!p) {
    device.sticky = LATHE_CU_ERROR_ILLEGAL_ADDRESS;
    return;
  }
  if (direction == ToDevice) {
    std::memcpy(p, host, bytes);
    written(target, p, bytes);
  } else {
    if (!target->initialized.empty()) {
      auto begin = target->initialized.begin() + (p - target->host);
      if (std::find(begin, begin + static_cast<long>(bytes), 0) != begin + static_cast<long>(bytes))
        device.findings.add(Finding::Initcheck, call, static_cast<int>(device.calls),
                            std::string(call) + " reads bytes that nobody has written");
    }
    std::memcpy(host, p, bytes);
  }
}

lathe_cu_result transfer(Device &device, const char *name, Direction direction, void *host, uint64_t a,
                         uint64_t b, size_t bytes, Stream *s, bool wait) {
  if (!s)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (bytes == 0)
    return LATHE_CU_SUCCESS;
  if (wait && device.breaksCapture())
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (!range(device, name, a, bytes) || (direction == WithinDevice ? !range(device, name, b, bytes) : !host))
    return LATHE_CU_ERROR_INVALID_VALUE;
  auto command = device.enqueue(*s, Node::Copy, [&device, name, direction, host, a, b, bytes] {
    copy(device, name, direction, host, a, b, bytes);
  });
  if (wait)
    device.complete(command);
  return wait ? device.sticky : LATHE_CU_SUCCESS;
}

lathe_cu_result fill(Device &device, const char *name, uint64_t to, unsigned value, size_t width,
                     size_t count, Stream *s) {
  if (!s)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (count == 0)
    return LATHE_CU_SUCCESS;
  if (to % width || !range(device, name, to, count * width))
    return LATHE_CU_ERROR_INVALID_VALUE;
  device.enqueue(*s, Node::Set, [&device, name, to, value, width, count] {
    Region *r = nullptr;
    char *p = range(device, name, to, count * width, &r);
    if (!p) {
      device.sticky = LATHE_CU_ERROR_ILLEGAL_ADDRESS;
      return;
    }
    for (size_t k = 0; k < count; ++k)
      std::memcpy(p + k * width, &value, width);
    written(r, p, count * width);
  });
  return LATHE_CU_SUCCESS;
}

} // namespace

extern "C" lathe_cu_result cuMemGetInfo(size_t *freeBytes, size_t *total) {
  LATHE_EMU_CALL("cuMemGetInfo", Call::Context);
  *total = device.memory->total;
  *freeBytes = device.memory->total - device.memory->used();
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuMemAlloc(lathe_cu_deviceptr *address, size_t bytes) {
  LATHE_EMU_CALL("cuMemAlloc", Call::Working);
  if (!address || !bytes)
    return LATHE_CU_ERROR_INVALID_VALUE;
  if (device.breaksCapture())
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Region *r = device.memory->allocate(bytes, 256, Region::Device, "an allocation");
  if (!r)
    return LATHE_CU_ERROR_OUT_OF_MEMORY;
  *address = r->begin;
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuMemFree(lathe_cu_deviceptr address) {
  LATHE_EMU_CALL("cuMemFree", Call::Context, true);
  if (!address)
    return call.finish();
  if (device.breaksCapture())
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  // it waits for all work that may still use the memory
  device.completeAll();
  return device.memory->release(address, Region::Device) ? call.finish() : LATHE_CU_ERROR_INVALID_VALUE;
}

extern "C" lathe_cu_result cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  LATHE_EMU_CALL("cuMemHostAlloc", Call::Working);
  if (!pointer || !bytes || flags & ~7u)
    return LATHE_CU_ERROR_INVALID_VALUE;
  if (device.breaksCapture())
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Region *r = device.memories[0]->allocatePinned(bytes);
  if (!r)
    return LATHE_CU_ERROR_OUT_OF_MEMORY;
  *pointer = r->host;
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuMemFreeHost(void *pointer) {
  LATHE_EMU_CALL("cuMemFreeHost", Call::Context, true);
  if (device.breaksCapture())
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  device.completeAll();
  return device.memories[0]->release(reinterpret_cast<uint64_t>(pointer), Region::Pinned)
             ? call.finish()
             : LATHE_CU_ERROR_INVALID_VALUE;
}

extern "C" lathe_cu_result cuMemHostGetDevicePointer(lathe_cu_deviceptr *address, void *pointer,
                                                     unsigned flags) {
  LATHE_EMU_CALL("cuMemHostGetDevicePointer", Call::Context);
  Region *r = device.memories[0]->find(reinterpret_cast<uint64_t>(pointer));
  if (!address || flags || !r || r->kind != Region::Pinned)
    return LATHE_CU_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<uint64_t>(pointer);
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuPointerGetAttribute(void *value, lathe_cu_pointer_attribute attribute,
                                                 lathe_cu_deviceptr address) {
  LATHE_EMU_CALL("cuPointerGetAttribute", Call::Initialized);
  Region *r = nullptr;
  int owner = 0;
  for (size_t d = 0; d < device.memories.size() && !r; ++d) {
    r = device.memories[d]->find(address);
    owner = static_cast<int>(d);
  }
  if (!value || !r)
    return LATHE_CU_ERROR_INVALID_VALUE;
  switch (attribute) {
  case LATHE_CU_POINTER_ATTRIBUTE_CONTEXT:
    *static_cast<lathe_cu_context *>(value) = contextHandle(owner);
    return LATHE_CU_SUCCESS;
  case LATHE_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *static_cast<unsigned *>(value) =
        r->kind == Region::Pinned ? LATHE_CU_MEMORYTYPE_HOST : LATHE_CU_MEMORYTYPE_DEVICE;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *static_cast<int *>(value) = owner;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    *static_cast<lathe_cu_deviceptr *>(value) = r->begin;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    *static_cast<size_t *>(value) = r->size;
    return LATHE_CU_SUCCESS;
  }
  return LATHE_CU_ERROR_INVALID_VALUE;
}

extern "C" lathe_cu_result cuMemcpyHtoD(lathe_cu_deviceptr to, const void *from, size_t bytes) {
  LATHE_EMU_CALL("cuMemcpyHtoD", Call::Working);
  return transfer(device, "cuMemcpyHtoD", ToDevice, const_cast<void *>(from), to, 0, bytes,
                  &device.nullStream(), true);
}
extern "C" lathe_cu_result cuMemcpyDtoH(void *to, lathe_cu_deviceptr from, size_t bytes) {
  LATHE_EMU_CALL("cuMemcpyDtoH", Call::Working);
  return transfer(device, "cuMemcpyDtoH", ToHost, to, from, 0, bytes, &device.nullStream(), true);
}
extern "C" lathe_cu_result cuMemcpyHtoDAsync(lathe_cu_deviceptr to, const void *from, size_t bytes,
                                             lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuMemcpyHtoDAsync", Call::Working);
  return transfer(device, "cuMemcpyHtoDAsync", ToDevice, const_cast<void *>(from), to, 0, bytes,
                  device.stream(stream), false);
}
extern "C" lathe_cu_result cuMemcpyDtoHAsync(void *to, lathe_cu_deviceptr from, size_t bytes,
                                             lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuMemcpyDtoHAsync", Call::Working);
  return transfer(device, "cuMemcpyDtoHAsync", ToHost, to, from, 0, bytes, device.stream(stream), false);
}
extern "C" lathe_cu_result cuMemcpyDtoDAsync(lathe_cu_deviceptr to, lathe_cu_deviceptr from, size_t bytes,
                                             lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuMemcpyDtoDAsync", Call::Working);
  return transfer(device, "cuMemcpyDtoDAsync", WithinDevice, nullptr, to, from, bytes, device.stream(stream),
                  false);
}
extern "C" lathe_cu_result cuMemcpyPeerAsync(lathe_cu_deviceptr to, lathe_cu_context toContext, lathe_cu_deviceptr from,
                                             lathe_cu_context fromContext, size_t bytes, lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuMemcpyPeerAsync", Call::Working);
  Memory *target = memoryOf(device, toContext), *source = memoryOf(device, fromContext);
  Stream *s = device.stream(stream);
  if (!target || !source)
    return LATHE_CU_ERROR_INVALID_CONTEXT;
  if (!s)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (bytes == 0)
    return LATHE_CU_SUCCESS;
  constexpr const char *name = "cuMemcpyPeerAsync";
  if (!range(device, *target, name, to, bytes) || !range(device, *source, name, from, bytes))
    return LATHE_CU_ERROR_INVALID_VALUE;
  device.enqueue(*s, Node::Copy, [&device, target, source, to, from, bytes] { between(device, name, *target, to, *source, from, bytes); });
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuMemsetD8Async(lathe_cu_deviceptr to, unsigned char value, size_t count,
                                           lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuMemsetD8Async", Call::Working);
  return fill(device, "cuMemsetD8Async", to, value, 1, count, device.stream(stream));
}
extern "C" lathe_cu_result cuMemsetD32Async(lathe_cu_deviceptr to, unsigned value, size_t count,
                                            lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuMemsetD32Async", Call::Working);
  return fill(device, "cuMemsetD32Async", to, value, 4, count, device.stream(stream));
}
