#include "runtime/cuda/device/CudaDevice.h"

#include "runtime/abi/cuda_abi.h"
#include "runtime/cuda/driver/driver.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>

namespace lathe::rt {
namespace {

/// The present context of the thread, until the end of the block. `insist`: to wait or to give back, which nobody else will; a context
/// that cannot be entered is tried again.
class Entered {
public:
  Entered(const lathe_cuda_driver *driver, lathe_cu_context context, bool insist = false)
      : driver(driver), result(enter(driver, context, insist)) {}
  ~Entered() {
    lathe_cu_context own;
    if (result == LATHE_CU_SUCCESS)
      driver->cuCtxPopCurrent(&own);
  }
  Entered(const Entered &) = delete;
  Entered &operator=(const Entered &) = delete;

private:
  static lathe_cu_result enter(const lathe_cuda_driver *driver, lathe_cu_context context, bool insist) {
    lathe_cu_result result = driver->cuCtxPushCurrent(context);
    return result != LATHE_CU_SUCCESS && insist ? driver->cuCtxPushCurrent(context) : result;
  }
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

/// Memory in the primary context, and the order of what is done with it. Runs and copies within the device go to one stream, `work`.
/// Copies from the host or another device have a stream of their own, and so have those to the host: the latter begin behind the
/// work there is, the former behind the last use of the memory that they fill, and work that is asked for later waits for them.
/// So whatever lies in `work` has behind it all that came before, and one event there tells that all of it is over.
///
/// Buffers that were given back are kept for tensors of the same size, since the driver waits for the whole device when memory is
/// freed. Work that uses one may still be under way: in `work` the next user comes after it anyway.
class CudaMemory : public DeviceMemory {
public:
  CudaMemory(const lathe_cuda_driver *driver, lathe_cu_device device, std::string name) : driver(driver), device(device), name(std::move(name)) {}
  ~CudaMemory() override;
  /// Has to be called once, and to succeed, before anything else.
  absl::Status start();
  const std::string &deviceName() const override { return name; }
  absl::Status settle() override;

  lathe_cu_stream runs() const { return work; }
  /// After something was put into `work` from elsewhere, which reads these tensors of the host.
  absl::Status queued(std::vector<Tensor> fromHost);

protected:
  absl::StatusOr<void *> obtain(int64_t bytes) override;
  void giveBack(void *memory, int64_t bytes) override;
  absl::Status copy(Way way, void *to, const Tensor &from) override;
  absl::Status copyFrom(DeviceMemory &other, void *to, const Tensor &from) override;

private:
  static constexpr int64_t kMostKept = INT64_C(256) << 20; // bytes
  /// A point in `work`, and what has to stay until it is reached.
  struct Mark {
    lathe_cu_event event;
    uint64_t upTo; ///< of what `issued` counts
    std::vector<Tensor> held;
  };
  struct Kept {
    lathe_cu_deviceptr memory;
    uint64_t usedUpTo;
  };
  using Gone = std::vector<Mark>; // dropped without the mutex: tensors give their memory back

  absl::Status check(const char *call, lathe_cu_result result) const { return statusOf(driver, call, result); }
  // all of these under the mutex, in the context
  absl::StatusOr<lathe_cu_event> event();
  absl::Status mark(std::vector<Tensor> held);
  void reap(Gone &gone);
  void passed(uint64_t upTo, Gone &gone);
  absl::Status fill(lathe_cu_deviceptr to, const Tensor &from, const std::function<absl::Status()> &copy);
  void freeKept();
  // not under the mutex
  absl::Status toHost(void *to, const Tensor &from);
  absl::Status waitFor(lathe_cu_event event, lathe_cu_stream stream);

  const lathe_cuda_driver *const driver;
  const lathe_cu_device device;
  const std::string name;
  lathe_cu_context context = nullptr;
  lathe_cu_stream work = nullptr, arrivals = nullptr, departures = nullptr;
  lathe_cu_event between = nullptr; ///< from stream to stream: a stream that was told to wait does so for what it was then
  std::mutex mutex;
  uint64_t issued = 0, over = 0; ///< things in `work`; how many of them are known to be over
  std::deque<Mark> marks;
  std::vector<lathe_cu_event> idle;
  std::multimap<int64_t, Kept> kept;                 ///< by size
  std::map<lathe_cu_deviceptr, uint64_t> usedBefore; ///< of buffers that serve again
  int64_t keptBytes = 0;
};

absl::Status CudaMemory::start() {
  if (absl::Status s = check("cuDevicePrimaryCtxRetain", driver->cuDevicePrimaryCtxRetain(&context, device)); !s.ok()) {
    context = nullptr;
    return s;
  }
  Entered entered(driver, context);
  if (entered.result != LATHE_CU_SUCCESS)
    return check("cuCtxPushCurrent", entered.result);
  for (lathe_cu_stream *stream : {&work, &arrivals, &departures})
    if (absl::Status s = check("cuStreamCreate", driver->cuStreamCreate(stream, LATHE_CU_STREAM_NON_BLOCKING)); !s.ok()) {
      *stream = nullptr;
      return s;
    }
  absl::Status s = check("cuEventCreate", driver->cuEventCreate(&between, LATHE_CU_EVENT_DISABLE_TIMING));
  if (!s.ok())
    between = nullptr;
  return s;
}

CudaMemory::~CudaMemory() {
  if (!context)
    return;
  {
    Entered entered(driver, context, /*insist=*/true);
    if (entered.result == LATHE_CU_SUCCESS) {
      for (lathe_cu_stream stream : {work, arrivals, departures})
        if (stream) {
          driver->cuStreamSynchronize(stream);
          driver->cuStreamDestroy(stream);
        }
      for (Mark &m : marks)
        idle.push_back(m.event);
      if (between)
        idle.push_back(between);
      for (lathe_cu_event e : idle)
        driver->cuEventDestroy(e);
      freeKept();
    }
  }
  driver->cuDevicePrimaryCtxRelease(device);
}

absl::StatusOr<lathe_cu_event> CudaMemory::event() {
  lathe_cu_event made = nullptr;
  if (!idle.empty()) {
    made = idle.back();
    idle.pop_back();
    return made;
  }
  if (absl::Status s = check("cuEventCreate", driver->cuEventCreate(&made, LATHE_CU_EVENT_DISABLE_TIMING)); !s.ok())
    return s;
  return made;
}

/// Where `work` is now. What is to be held stays even where that fails: then it is waited for here.
absl::Status CudaMemory::mark(std::vector<Tensor> held) {
  auto made = event();
  absl::Status s = made.status();
  if (s.ok()) {
    if (s = check("cuEventRecord", driver->cuEventRecord(*made, work)); s.ok()) {
      marks.push_back({*made, issued, std::move(held)});
      return s;
    }
    idle.push_back(*made);
  }
  if (driver->cuStreamSynchronize(work) != LATHE_CU_SUCCESS) // once more: a wait that failed has not waited
    driver->cuStreamSynchronize(work);
  return s;
}

/// What is over, up to a point in `work`.
void CudaMemory::passed(uint64_t upTo, Gone &gone) {
  over = std::max(over, upTo);
  while (!marks.empty() && marks.front().upTo <= over) {
    idle.push_back(marks.front().event);
    gone.push_back(std::move(marks.front()));
    marks.pop_front();
  }
}

/// As far as that is known without waiting.
void CudaMemory::reap(Gone &gone) {
  while (!marks.empty() && driver->cuEventQuery(marks.front().event) == LATHE_CU_SUCCESS)
    passed(marks.front().upTo, gone);
}

absl::Status CudaMemory::waitFor(lathe_cu_event event, lathe_cu_stream stream) {
  lathe_cu_result result = driver->cuEventSynchronize(event);
  if (result != LATHE_CU_SUCCESS) // by another way: whoever waits takes for over what is before it, and drops its memory
    driver->cuStreamSynchronize(stream);
  return check("cuEventSynchronize", result);
}

absl::Status CudaMemory::settle() {
  Gone gone;
  Entered entered(driver, context, /*insist=*/true);
  if (entered.result != LATHE_CU_SUCCESS)
    return check("cuCtxPushCurrent", entered.result);
  std::unique_lock<std::mutex> lock(mutex);
  if (over == issued)
    return absl::OkStatus();
  if (marks.empty() || marks.back().upTo < issued)
    if (absl::Status s = mark({}); !s.ok()) {
      passed(issued, gone);
      lock.unlock(); // `gone` goes without it
      return s;
    }
  const lathe_cu_event last = marks.back().event;
  const uint64_t upTo = marks.back().upTo;
  lock.unlock();
  absl::Status s = waitFor(last, work);
  lock.lock();
  passed(upTo, gone);
  lock.unlock();
  return s;
}

absl::Status CudaMemory::queued(std::vector<Tensor> fromHost) {
  Gone gone;
  Entered entered(driver, context, /*insist=*/true);
  std::unique_lock<std::mutex> lock(mutex);
  ++issued;
  absl::Status s = check("cuCtxPushCurrent", entered.result);
  if (s.ok() && !fromHost.empty()) {
    reap(gone);
    s = mark(std::move(fromHost));
  }
  lock.unlock();
  return s;
}

void CudaMemory::freeKept() {
  for (auto &[bytes, buffer] : kept)
    driver->cuMemFree(buffer.memory);
  kept.clear();
  keptBytes = 0;
}

absl::StatusOr<void *> CudaMemory::obtain(int64_t bytes) {
  Gone gone;
  std::unique_lock<std::mutex> lock(mutex);
  if (auto it = kept.find(bytes); it != kept.end()) {
    const Kept buffer = it->second;
    kept.erase(it);
    keptBytes -= bytes;
    if (buffer.usedUpTo > over)
      usedBefore[buffer.memory] = buffer.usedUpTo;
    return reinterpret_cast<void *>(buffer.memory);
  }
  Entered entered(driver, context);
  if (entered.result != LATHE_CU_SUCCESS)
    return check("cuCtxPushCurrent", entered.result);
  lathe_cu_deviceptr memory = 0;
  lathe_cu_result result = driver->cuMemAlloc(&memory, static_cast<size_t>(bytes));
  if (result == LATHE_CU_ERROR_OUT_OF_MEMORY) {
    // what is held for work that is over by now goes too
    if (driver->cuStreamSynchronize(work) == LATHE_CU_SUCCESS)
      passed(issued, gone);
    lock.unlock();
    gone.clear();
    lock.lock();
    freeKept();
    result = driver->cuMemAlloc(&memory, static_cast<size_t>(bytes));
  }
  lock.unlock();
  if (result == LATHE_CU_ERROR_OUT_OF_MEMORY)
    return absl::ResourceExhaustedError(absl::StrCat(name, " has no ", bytes, " bytes for a tensor"));
  if (absl::Status s = check("cuMemAlloc", result); !s.ok())
    return s;
  return reinterpret_cast<void *>(memory);
}

void CudaMemory::giveBack(void *memory, int64_t bytes) {
  auto address = reinterpret_cast<lathe_cu_deviceptr>(memory);
  std::lock_guard<std::mutex> lock(mutex);
  usedBefore.erase(address);
  if (keptBytes + bytes <= kMostKept) {
    kept.emplace(bytes, Kept{address, issued});
    keptBytes += bytes;
    return;
  }
  Entered entered(driver, context, /*insist=*/true);
  if (entered.result == LATHE_CU_SUCCESS)
    driver->cuMemFree(address); // which waits for what uses it
}

absl::Status CudaMemory::copy(Way way, void *to, const Tensor &from) {
  if (way == Way::ToHost)
    return toHost(to, from);
  const auto size = static_cast<size_t>(from.sizeBytes());
  const auto there = reinterpret_cast<lathe_cu_deviceptr>(to);
  Gone gone;
  Entered entered(driver, context);
  if (entered.result != LATHE_CU_SUCCESS)
    return check("cuCtxPushCurrent", entered.result);
  std::unique_lock<std::mutex> lock(mutex);
  reap(gone);
  absl::Status s;
  if (way == Way::ToDevice) {
    s = fill(there, from, [&] { return check("cuMemcpyHtoDAsync", driver->cuMemcpyHtoDAsync(there, from.data(), size, arrivals)); });
  } else {
    s = check("cuMemcpyDtoDAsync", driver->cuMemcpyDtoDAsync(there, reinterpret_cast<lathe_cu_deviceptr>(from.data()), size, work));
    ++issued;
  }
  lock.unlock();
  return s;
}

/// A copy into a buffer by the stream of arrivals.
absl::Status CudaMemory::fill(lathe_cu_deviceptr to, const Tensor &from, const std::function<absl::Status()> &copy) {
  if (auto it = usedBefore.find(to); it != usedBefore.end()) {
    const uint64_t upTo = it->second;
    usedBefore.erase(it);
    if (upTo > over) {
      if (marks.empty() || marks.back().upTo < upTo)
        if (absl::Status s = mark({}); !s.ok())
          return s;
      auto after = std::find_if(marks.begin(), marks.end(), [&](const Mark &m) { return m.upTo >= upTo; });
      if (absl::Status s = check("cuStreamWaitEvent", driver->cuStreamWaitEvent(arrivals, after->event, 0)); !s.ok())
        return s;
    }
  }
  absl::Status s = copy();
  if (s.ok())
    s = check("cuEventRecord", driver->cuEventRecord(between, arrivals));
  if (s.ok())
    s = check("cuStreamWaitEvent", driver->cuStreamWaitEvent(work, between, 0));
  if (s.ok()) {
    ++issued;
    return mark({from});
  }
  // nobody will wait for it: its memory may go when this returns
  if (driver->cuStreamSynchronize(arrivals) != LATHE_CU_SUCCESS)
    driver->cuStreamSynchronize(arrivals);
  return s;
}

absl::Status CudaMemory::toHost(void *to, const Tensor &from) {
  Gone gone;
  Entered entered(driver, context);
  if (entered.result != LATHE_CU_SUCCESS)
    return check("cuCtxPushCurrent", entered.result);
  std::unique_lock<std::mutex> lock(mutex);
  auto done = event();
  if (!done.ok())
    return done.status();
  const uint64_t upTo = issued;
  absl::Status s = check("cuEventRecord", driver->cuEventRecord(between, work));
  if (s.ok())
    s = check("cuStreamWaitEvent", driver->cuStreamWaitEvent(departures, between, 0));
  if (s.ok()) {
    s = check("cuMemcpyDtoHAsync", driver->cuMemcpyDtoHAsync(to, reinterpret_cast<lathe_cu_deviceptr>(from.data()),
                                                            static_cast<size_t>(from.sizeBytes()), departures));
    if (s.ok())
      s = check("cuEventRecord", driver->cuEventRecord(*done, departures));
    if (!s.ok() && driver->cuStreamSynchronize(departures) != LATHE_CU_SUCCESS)
      driver->cuStreamSynchronize(departures);
  }
  lock.unlock();
  if (s.ok())
    s = waitFor(*done, departures);
  lock.lock();
  idle.push_back(*done);
  if (s.ok())
    passed(upTo, gone);
  lock.unlock();
  return s;
}

/// Between devices of one driver, which goes through the host itself where the two cannot reach each other.
absl::Status CudaMemory::copyFrom(DeviceMemory &other, void *to, const Tensor &from) {
  auto *source = dynamic_cast<CudaMemory *>(&other);
  if (!source)
    return DeviceMemory::copyFrom(other, to, from);
  lathe_cu_event there = nullptr; // where the other one's work is
  {
    Entered entered(driver, source->context);
    if (entered.result != LATHE_CU_SUCCESS)
      return check("cuCtxPushCurrent", entered.result);
    std::lock_guard<std::mutex> lock(source->mutex);
    auto taken = source->event();
    if (!taken.ok())
      return taken.status();
    if (absl::Status s = check("cuEventRecord", driver->cuEventRecord(*taken, source->work)); !s.ok()) {
      source->idle.push_back(*taken);
      return s;
    }
    there = *taken;
  }
  Gone gone;
  absl::Status s;
  {
    Entered entered(driver, context);
    s = check("cuCtxPushCurrent", entered.result);
    std::lock_guard<std::mutex> lock(mutex);
    if (s.ok()) {
      reap(gone);
      const auto address = reinterpret_cast<lathe_cu_deviceptr>(to);
      s = fill(address, from, [&] {
        absl::Status waits = check("cuStreamWaitEvent", driver->cuStreamWaitEvent(arrivals, there, 0));
        return !waits.ok() ? waits
                           : check("cuMemcpyPeerAsync",
                                   driver->cuMemcpyPeerAsync(address, context, reinterpret_cast<lathe_cu_deviceptr>(from.data()),
                                                             source->context, static_cast<size_t>(from.sizeBytes()), arrivals));
      });
    }
  }
  std::lock_guard<std::mutex> lock(source->mutex);
  source->idle.push_back(there);
  return s;
}

/// Places for runs of a module, each for one run after the other. What is put into the stream of work stays there; where kernels can
/// fail, the host has to know whether they did before anything that comes after may have an effect.
class CudaRuns : public DeviceRuns {
public:
  CudaRuns(const lathe_device_module &module, int ordinal, std::shared_ptr<CudaMemory> memory)
      : module(module), ordinal(ordinal), memory(std::move(memory)) {}
  ~CudaRuns() override {
    for (lathe_device_instance *instance : idle)
      module.close(instance);
  }

  int32_t run(const lathe_entry &entry, lathe_device_run_args &args, const RunPlaces &places) {
    lathe_device_instance *instance = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!idle.empty()) { // the one used last: it has graphs of what it did
        instance = idle.back();
        idle.pop_back();
      }
    }
    if (!instance)
      if (int32_t code = module.open(ordinal, &instance, args.args.error))
        return code;
    args.instance = instance;
    args.enqueue = 1;
    args.stream = memory->runs();
    int32_t code = entry.run(&args.args);
    std::vector<Tensor> fromHost;
    for (int i = 0; i < entry.num_inputs; ++i)
      if (!places.inputs[i])
        fromHost.push_back(*places.tensors[i]);
    absl::Status queued = memory->queued(std::move(fromHost));
    if (!code && canFail())
      code = module.wait(instance, args.args.error);
    {
      std::lock_guard<std::mutex> lock(mutex);
      idle.push_back(instance);
    }
    if (code || queued.ok())
      return code;
    message = std::string(queued.message());
    if (args.args.error) {
      args.args.error->code = static_cast<int32_t>(queued.code());
      args.args.error->site = -1;
      args.args.error->message = message.c_str();
    }
    return static_cast<int32_t>(queued.code());
  }

private:
  bool canFail() const {
    return module.struct_size <= offsetof(lathe_device_module, num_cells) || module.num_cells > 0;
  }

  static thread_local std::string message; ///< stays until the thread's next one, as the error's
  const lathe_device_module &module;
  const int ordinal;
  const std::shared_ptr<CudaMemory> memory;
  std::mutex mutex;
  std::vector<lathe_device_instance *> idle;
};

thread_local std::string CudaRuns::message;

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
  std::unique_ptr<DeviceRuns> prepareRuns(const lathe_device_module &module) override {
    return std::make_unique<CudaRuns>(module, ordinal, tensors);
  }
  int32_t run(const lathe_entry &entry, const lathe_run_args &args, const RunPlaces &places) override {
    lathe_device_run_args there = {};
    there.args = args;
    there.args.struct_size = sizeof(there);
    there.device = ordinal;
    there.inputs_on_device = places.inputs;
    there.outputs_on_device = places.outputs;
    there.variables_on_device = places.variables;
    auto *runs = static_cast<CudaRuns *>(places.runs);
    if (!runs) { // it would not be behind what it depends on
      if (args.error)
        *args.error = {sizeof(lathe_error), LATHE_INTERNAL, -1, 0, "the module was not made for this device"};
      return LATHE_INTERNAL;
    }
    return runs->run(entry, there, places);
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
