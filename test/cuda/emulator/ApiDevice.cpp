// cuInit, devices, the primary context, errors, cuGetProcAddress.
#include "test/cuda/emulator/Device.h"

#include <cstring>

namespace lathe::emu {
namespace {
thread_local std::vector<lathe_cu_context> stack;
int contextObjects[Device::mostDevices];
} // namespace

lathe_cu_context contextHandle(int ordinal) { return reinterpret_cast<lathe_cu_context>(&contextObjects[ordinal]); }
int currentOrdinal() {
  for (int d = 0; d < Device::mostDevices; ++d)
    if (!stack.empty() && stack.back() == contextHandle(d) && Device::get().uses[d] > 0)
      return d;
  return -1;
}
bool hasContext() { return currentOrdinal() >= 0; }

} // namespace lathe::emu

using namespace lathe::emu;

#define LATHE_CU(name, version, parameters) extern "C" lathe_cu_result name parameters;
#include "runtime/cuda/driver/functions.def"
#undef LATHE_CU

extern "C" lathe_cu_result cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
  static const struct {
    const char *name;
    int version;
    void *function;
  } functions[] = {
#define LATHE_CU(name, version, parameters) {#name, version, reinterpret_cast<void *>(&name)},
#include "runtime/cuda/driver/functions.def"
#undef LATHE_CU
  };
  if (!name || !function)
    return LATHE_CU_ERROR_INVALID_VALUE;
  *function = nullptr;
  int driver = Config::read().driver;
  // a later version would be another form of the function, which this driver does not have
  for (const auto &f : functions)
    if (!std::strcmp(f.name, name) && f.version <= driver && version == f.version) {
      *function = f.function;
      return LATHE_CU_SUCCESS;
    }
  return LATHE_CU_ERROR_NOT_FOUND;
}

extern "C" lathe_cu_result cuInit(unsigned flags) {
  LATHE_EMU_CALL("cuInit", Call::Nothing);
  if (flags)
    return LATHE_CU_ERROR_INVALID_VALUE;
  device.configure();
  if (device.config.noDevice)
    return LATHE_CU_ERROR_NO_DEVICE;
  if (!device.contextUses)
    device.calls = 1;
  return device.config.failCall == 1 && device.calls == 1 ? device.config.failResult : LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuDriverGetVersion(int *version) {
  LATHE_EMU_CALL("cuDriverGetVersion", Call::Nothing);
  if (!version)
    return LATHE_CU_ERROR_INVALID_VALUE;
  *version = device.initialized ? device.config.driver : Config::read().driver;
  return LATHE_CU_SUCCESS;
}

namespace {
struct ErrorText {
  lathe_cu_result result;
  const char *name, *text;
};
const ErrorText errors[] = {
    {LATHE_CU_SUCCESS, "CUDA_SUCCESS", "no error"},
    {LATHE_CU_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {LATHE_CU_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {LATHE_CU_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {LATHE_CU_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no device"},
    {LATHE_CU_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {LATHE_CU_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "invalid kernel image"},
    {LATHE_CU_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {LATHE_CU_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for the device"},
    {LATHE_CU_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "PTX that does not compile"},
    {LATHE_CU_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "PTX of a later version"},
    {LATHE_CU_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {LATHE_CU_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {LATHE_CU_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {LATHE_CU_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access"},
    {LATHE_CU_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {LATHE_CU_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out"},
    {LATHE_CU_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "illegal instruction"},
    {LATHE_CU_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "launch failure"},
    {LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "not permitted while a stream is captured"},
    {LATHE_CU_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "the capture is invalid"},
    {LATHE_CU_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "the capture began on another stream"},
    {LATHE_CU_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "a captured stream was not joined"},
    {LATHE_CU_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "the event is of a capture"},
    {LATHE_CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph cannot be updated"},
    {LATHE_CU_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"}};
const ErrorText *find(lathe_cu_result result) {
  for (const ErrorText &e : errors)
    if (e.result == result)
      return &e;
  return nullptr;
}
} // namespace

// not counted as calls: a program asks for texts after another call has failed
extern "C" lathe_cu_result cuGetErrorName(lathe_cu_result result, const char **text) {
  const ErrorText *e = find(result);
  *text = e ? e->name : nullptr;
  return e ? LATHE_CU_SUCCESS : LATHE_CU_ERROR_INVALID_VALUE;
}
extern "C" lathe_cu_result cuGetErrorString(lathe_cu_result result, const char **text) {
  const ErrorText *e = find(result);
  *text = e ? e->text : nullptr;
  return e ? LATHE_CU_SUCCESS : LATHE_CU_ERROR_INVALID_VALUE;
}

extern "C" lathe_cu_result cuDeviceGetCount(int *count) {
  LATHE_EMU_CALL("cuDeviceGetCount", Call::Initialized);
  *count = device.config.devices;
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuDeviceGet(lathe_cu_device *out, int ordinal) {
  LATHE_EMU_CALL("cuDeviceGet", Call::Initialized);
  if (ordinal < 0 || ordinal >= device.config.devices)
    return LATHE_CU_ERROR_INVALID_DEVICE;
  *out = ordinal;
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuDeviceGetName(char *name, int size, lathe_cu_device d) {
  LATHE_EMU_CALL("cuDeviceGetName", Call::Initialized);
  if (d < 0 || d >= device.config.devices || !name || size < 1)
    return LATHE_CU_ERROR_INVALID_DEVICE;
  std::string text = "emulated sm_" + std::to_string(device.config.arch);
  std::strncpy(name, text.c_str(), static_cast<size_t>(size) - 1);
  name[size - 1] = 0;
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuDeviceTotalMem(size_t *bytes, lathe_cu_device d) {
  LATHE_EMU_CALL("cuDeviceTotalMem", Call::Initialized);
  if (d < 0 || d >= device.config.devices)
    return LATHE_CU_ERROR_INVALID_DEVICE;
  *bytes = device.config.memory;
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuDeviceGetAttribute(int *value, lathe_cu_device_attribute attribute,
                                                lathe_cu_device d) {
  LATHE_EMU_CALL("cuDeviceGetAttribute", Call::Initialized);
  if (d < 0 || d >= device.config.devices)
    return LATHE_CU_ERROR_INVALID_DEVICE;
  switch (attribute) {
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    *value = 1024;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    *value = 64;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    *value = 0x7fffffff;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    *value = 65535;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    *value = 49152;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = static_cast<int>(device.sharedOptin());
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    *value = static_cast<int>(device.sharedPerSm());
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    *value = 65536;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    *value = 32;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = static_cast<int>(device.config.sms);
    return LATHE_CU_SUCCESS;
  // of no device in particular: nothing here takes the time that they say
  case LATHE_CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
  case LATHE_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    *value = 1000000;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    *value = 4096;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    *value = 1;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    *value = 2048;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = device.config.arch / 10;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = device.config.arch % 10;
    return LATHE_CU_SUCCESS;
  }
  return LATHE_CU_ERROR_INVALID_VALUE;
}

extern "C" lathe_cu_result cuDevicePrimaryCtxRetain(lathe_cu_context *context, lathe_cu_device d) {
  LATHE_EMU_CALL("cuDevicePrimaryCtxRetain", Call::Initialized);
  if (d < 0 || d >= device.config.devices || !context)
    return LATHE_CU_ERROR_INVALID_DEVICE;
  ++device.contextUses;
  ++device.uses[d];
  *context = contextHandle(d);
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuDevicePrimaryCtxRelease(lathe_cu_device d) {
  LATHE_EMU_CALL("cuDevicePrimaryCtxRelease", Call::Initialized, true);
  if (d < 0 || d >= device.config.devices)
    return LATHE_CU_ERROR_INVALID_DEVICE;
  if (device.uses[d] == 0)
    return LATHE_CU_ERROR_INVALID_CONTEXT;
  --device.uses[d];
  if (--device.contextUses == 0)
    device.reset();
  return call.finish();
}
extern "C" lathe_cu_result cuCtxGetCurrent(lathe_cu_context *context) {
  LATHE_EMU_CALL("cuCtxGetCurrent", Call::Initialized);
  *context = stack.empty() ? nullptr : stack.back();
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuCtxPushCurrent(lathe_cu_context context) {
  LATHE_EMU_CALL("cuCtxPushCurrent", Call::Initialized);
  bool known = false;
  for (int d = 0; d < device.config.devices; ++d)
    known |= context == contextHandle(d) && device.uses[d] > 0;
  if (!known)
    return LATHE_CU_ERROR_INVALID_CONTEXT;
  stack.push_back(context);
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuCtxPopCurrent(lathe_cu_context *context) {
  LATHE_EMU_CALL("cuCtxPopCurrent", Call::Initialized, true);
  if (stack.empty())
    return LATHE_CU_ERROR_INVALID_CONTEXT;
  if (context)
    *context = stack.back();
  stack.pop_back();
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuCtxGetDevice(lathe_cu_device *out) {
  LATHE_EMU_CALL("cuCtxGetDevice", Call::Context);
  *out = device.ordinal;
  return LATHE_CU_SUCCESS;
}
extern "C" lathe_cu_result cuCtxSynchronize(void) {
  LATHE_EMU_CALL("cuCtxSynchronize", Call::Working);
  if (device.breaksCapture())
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  device.completeAll();
  return call.finish();
}
