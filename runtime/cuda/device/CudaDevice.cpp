#include "runtime/cuda/device/CudaDevice.h"

#include "runtime/abi/cuda_abi.h"
#include "runtime/cuda/driver/driver.h"

#include "absl/strings/str_cat.h"

#include <map>

namespace lathe::rt {
namespace {

/// The present context of the thread, until the end of the block.
class Entered {
public:
  Entered(const lathe_cuda_driver *driver, lathe_cu_context context) : driver(driver), result(driver->cuCtxPushCurrent(context)) {}
  ~Entered() {
    lathe_cu_context own;
    if (result == LATHE_CU_SUCCESS)
      driver->cuCtxPopCurrent(&own);
  }
  Entered(const Entered &) = delete;
  Entered &operator=(const Entered &) = delete;

private:
  const lathe_cuda_driver *const driver;

public:
  const lathe_cu_result result;
};

absl::Status statusOf(const lathe_cuda_driver *driver, const char *call, lathe_cu_result result) {
  if (result == LATHE_CU_SUCCESS)
    return absl::OkStatus();
  char text[256];
  lathe_cuda_describe(driver, call, result, text, sizeof(text));
  return result == LATHE_CU_ERROR_OUT_OF_MEMORY ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

/// Memory in the primary context. Buffers that were given back are kept for tensors of the same size, since the driver waits
/// for the whole device when memory is freed.
class CudaMemory : public DeviceMemory {
public:
  CudaMemory(const lathe_cuda_driver *driver, lathe_cu_device device, std::string name) : driver(driver), device(device), name(std::move(name)) {}
  ~CudaMemory() override;
  /// Has to be called once, and to succeed, before anything else.
  absl::Status start();
  const std::string &deviceName() const override { return name; }

protected:
  absl::StatusOr<void *> obtain(int64_t bytes) override;
  void giveBack(void *memory, int64_t bytes) override;
  absl::Status copy(Way way, void *to, const void *from, int64_t bytes) override;
  absl::Status copyFrom(DeviceMemory &other, void *to, const void *from, int64_t bytes) override;

private:
  static constexpr int64_t kMostKept = INT64_C(256) << 20; // bytes
  void freeKept();                                         ///< under the mutex, in the context
  absl::Status issuedAndOver(const char *call, lathe_cu_result issued);

  const lathe_cuda_driver *const driver;
  const lathe_cu_device device;
  const std::string name;
  lathe_cu_context context = nullptr;
  lathe_cu_stream stream = nullptr;
  std::mutex mutex;
  std::multimap<int64_t, lathe_cu_deviceptr> kept; ///< by size
  int64_t keptBytes = 0;
};

absl::Status CudaMemory::start() {
  if (absl::Status s = statusOf(driver, "cuDevicePrimaryCtxRetain", driver->cuDevicePrimaryCtxRetain(&context, device)); !s.ok()) {
    context = nullptr;
    return s;
  }
  Entered entered(driver, context);
  if (entered.result != LATHE_CU_SUCCESS)
    return statusOf(driver, "cuCtxPushCurrent", entered.result);
  return statusOf(driver, "cuStreamCreate", driver->cuStreamCreate(&stream, LATHE_CU_STREAM_NON_BLOCKING));
}

CudaMemory::~CudaMemory() {
  if (!context)
    return;
  {
    Entered entered(driver, context);
    if (entered.result == LATHE_CU_SUCCESS) {
      freeKept();
      if (stream)
        driver->cuStreamDestroy(stream);
    }
  }
  driver->cuDevicePrimaryCtxRelease(device);
}

void CudaMemory::freeKept() {
  for (auto &[bytes, memory] : kept)
    driver->cuMemFree(memory);
  kept.clear();
  keptBytes = 0;
}

absl::StatusOr<void *> CudaMemory::obtain(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (auto it = kept.find(bytes); it != kept.end()) {
    lathe_cu_deviceptr memory = it->second;
    kept.erase(it);
    keptBytes -= bytes;
    return reinterpret_cast<void *>(memory);
  }
  Entered entered(driver, context);
  if (entered.result != LATHE_CU_SUCCESS)
    return statusOf(driver, "cuCtxPushCurrent", entered.result);
  lathe_cu_deviceptr memory = 0;
  lathe_cu_result result = driver->cuMemAlloc(&memory, static_cast<size_t>(bytes));
  if (result == LATHE_CU_ERROR_OUT_OF_MEMORY && !kept.empty()) {
    freeKept();
    result = driver->cuMemAlloc(&memory, static_cast<size_t>(bytes));
  }
  if (result == LATHE_CU_ERROR_OUT_OF_MEMORY)
    return absl::ResourceExhaustedError(absl::StrCat(name, " has no ", bytes, " bytes for a tensor"));
  if (absl::Status s = statusOf(driver, "cuMemAlloc", result); !s.ok())
    return s;
  return reinterpret_cast<void *>(memory);
}

void CudaMemory::giveBack(void *memory, int64_t bytes) {
  auto address = reinterpret_cast<lathe_cu_deviceptr>(memory);
  std::lock_guard<std::mutex> lock(mutex);
  if (keptBytes + bytes <= kMostKept) {
    kept.emplace(bytes, address);
    keptBytes += bytes;
    return;
  }
  Entered entered(driver, context);
  if (entered.result == LATHE_CU_SUCCESS)
    driver->cuMemFree(address);
}

absl::Status CudaMemory::copy(Way way, void *to, const void *from, int64_t bytes) {
  Entered entered(driver, context);
  if (entered.result != LATHE_CU_SUCCESS)
    return statusOf(driver, "cuCtxPushCurrent", entered.result);
  auto size = static_cast<size_t>(bytes);
  auto there = reinterpret_cast<lathe_cu_deviceptr>(to), source = reinterpret_cast<lathe_cu_deviceptr>(from);
  // Nothing may be under way on the host's memory when this returns, a failed wait included: all runs are over, so that no order
  // of a stream is needed either.
  switch (way) {
  case Way::ToDevice: return statusOf(driver, "cuMemcpyHtoD", driver->cuMemcpyHtoD(there, from, size));
  case Way::ToHost: return statusOf(driver, "cuMemcpyDtoH", driver->cuMemcpyDtoH(to, source, size));
  case Way::Within: break;
  }
  return issuedAndOver("cuMemcpyDtoDAsync", driver->cuMemcpyDtoDAsync(there, source, size, stream));
}

/// Between devices of one driver, which goes through the host itself where the two cannot reach each other.
absl::Status CudaMemory::copyFrom(DeviceMemory &other, void *to, const void *from, int64_t bytes) {
  auto *source = dynamic_cast<CudaMemory *>(&other);
  if (!source)
    return DeviceMemory::copyFrom(other, to, from, bytes);
  Entered entered(driver, context);
  if (entered.result != LATHE_CU_SUCCESS)
    return statusOf(driver, "cuCtxPushCurrent", entered.result);
  const auto there = reinterpret_cast<lathe_cu_deviceptr>(to), here = reinterpret_cast<lathe_cu_deviceptr>(from);
  return issuedAndOver("cuMemcpyPeerAsync",
                       driver->cuMemcpyPeerAsync(there, context, here, source->context, static_cast<size_t>(bytes), stream));
}

/// Waits for a call on the stream, also where it failed: nothing may be under way on what is freed next.
absl::Status CudaMemory::issuedAndOver(const char *call, lathe_cu_result issued) {
  absl::Status s = statusOf(driver, call, issued);
  lathe_cu_result result = driver->cuStreamSynchronize(stream);
  if (result != LATHE_CU_SUCCESS) // once more: a wait that failed has not waited
    driver->cuStreamSynchronize(stream);
  absl::Status waited = statusOf(driver, "cuStreamSynchronize", result);
  return s.ok() ? waited : s;
}

class CudaDevice : public Device {
public:
  CudaDevice(DeviceName parsed, int ordinal, uint64_t incarnation, std::shared_ptr<CudaMemory> memory)
      : parsed(std::move(parsed)), fullName(this->parsed.text()), ordinal(ordinal), life(incarnation), tensors(std::move(memory)) {}
  const std::string &name() const override { return fullName; }
  const DeviceName &parsedName() const override { return parsed; }
  uint64_t incarnation() const override { return life; }
  ResourceManager &resources() override { return all; }
  std::shared_ptr<DeviceMemory> memory() override { return tensors; }
  std::string backend() const override { return "cuda"; }
  int32_t run(const lathe_entry &entry, const lathe_run_args &args, const RunPlaces &places) override {
    lathe_device_run_args there = {};
    there.args = args;
    there.args.struct_size = sizeof(there);
    there.device = ordinal;
    there.inputs_on_device = places.inputs;
    there.outputs_on_device = places.outputs;
    there.variables_on_device = places.variables;
    return entry.run(&there.args);
  }

private:
  const DeviceName parsed;
  const std::string fullName;
  const int ordinal;
  const uint64_t life;
  const std::shared_ptr<CudaMemory> tensors;
  ResourceManager all;
};

} // namespace

absl::StatusOr<std::unique_ptr<Device>> makeCudaDevice(int64_t id, int ordinal, uint64_t incarnation) {
  DeviceName name;
  name.job = "localhost";
  name.replica = name.task = 0;
  name.type = "GPU";
  name.id = id;
  char message[512] = "";
  const lathe_cuda_driver *driver = lathe_cuda_open(message, sizeof(message));
  if (!driver)
    return absl::FailedPreconditionError(absl::StrCat("there is no ", name.text(), ": ", message));
  int count = 0;
  if (absl::Status s = statusOf(driver, "cuDeviceGetCount", driver->cuDeviceGetCount(&count)); !s.ok())
    return s;
  if (ordinal < 0 || ordinal >= count)
    return absl::InvalidArgumentError(absl::StrCat("there is no ", name.text(), ": the CUDA driver has ", count, " devices, asked for number ", ordinal));
  lathe_cu_device device;
  if (absl::Status s = statusOf(driver, "cuDeviceGet", driver->cuDeviceGet(&device, ordinal)); !s.ok())
    return s;
  auto memory = std::make_shared<CudaMemory>(driver, device, name.text());
  if (absl::Status s = memory->start(); !s.ok())
    return s;
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(name), ordinal, incarnation, std::move(memory)));
}

int countCudaDevices() {
  const lathe_cuda_driver *driver = lathe_cuda_open(nullptr, 0);
  int count = 0;
  return driver && driver->cuDeviceGetCount(&count) == LATHE_CU_SUCCESS ? count : 0;
}

} // namespace lathe::rt
