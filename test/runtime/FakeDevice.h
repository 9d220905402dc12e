// FAKE:n, a device for tests: its code is the host's, its tensors lie in pages that nobody may touch but copies and runs. Host
// code that reads one ends the process.
#ifndef LATHE_TEST_RUNTIME_FAKEDEVICE_H
#define LATHE_TEST_RUNTIME_FAKEDEVICE_H

#include "runtime/device.h"
#include "runtime/session/Core.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

namespace lathe {

class FakeMemory : public rt::DeviceMemory {
public:
  explicit FakeMemory(std::string name) : name(std::move(name)) {}
  const std::string &deviceName() const override { return name; }

  /// Makes the buffer that starts at `data` accessible, until as many calls of close.
  void open(const void *data) { change(data, 1); }
  void close(const void *data) { change(data, -1); }

  std::atomic<int> toDevice{0}, toHost{0}, within{0}, live{0};
  std::atomic<int64_t> limit{INT64_MAX}; ///< bytes of one tensor

protected:
  absl::StatusOr<void *> obtain(int64_t bytes) override {
    if (bytes > limit)
      return absl::ResourceExhaustedError(absl::StrCat(name, " has no ", bytes, " bytes"));
    void *p = mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      return absl::ResourceExhaustedError("mmap");
    std::lock_guard<std::mutex> lock(mutex);
    buffers[p] = {bytes, 0};
    ++live;
    return p;
  }
  void giveBack(void *memory, int64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex);
    buffers.erase(memory);
    munmap(memory, static_cast<size_t>(bytes));
    --live;
  }
  absl::Status copy(Way way, void *to, const Tensor &tensor) override {
    const void *from = tensor.data();
    ++(way == Way::ToDevice ? toDevice : way == Way::ToHost ? toHost : within);
    if (way != Way::ToHost)
      open(to);
    if (way != Way::ToDevice)
      open(from);
    std::memcpy(to, from, static_cast<size_t>(tensor.sizeBytes()));
    if (way != Way::ToHost)
      close(to);
    if (way != Way::ToDevice)
      close(from);
    return absl::OkStatus();
  }

private:
  struct Buffer {
    int64_t bytes;
    int users;
  };
  void change(const void *data, int by) {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = buffers.find(data);
    if (it == buffers.end())
      std::abort(); // no address of this device
    int before = it->second.users;
    it->second.users += by;
    if (before == 0 || it->second.users == 0)
      mprotect(const_cast<void *>(data), static_cast<size_t>(it->second.bytes), by > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  const std::string name;
  std::mutex mutex;
  std::map<const void *, Buffer> buffers;
};

class FakeDevice : public rt::Device {
public:
  explicit FakeDevice(int64_t id) {
    parsed.job = "localhost";
    parsed.replica = parsed.task = 0;
    parsed.type = "FAKE";
    parsed.id = id;
    fullName = parsed.text();
    own = std::make_shared<FakeMemory>(fullName);
  }
  const std::string &name() const override { return fullName; }
  const rt::DeviceName &parsedName() const override { return parsed; }
  uint64_t incarnation() const override { return 77; }
  rt::ResourceManager &resources() override { return all; }
  std::shared_ptr<rt::DeviceMemory> memory() override { return own; }
  int32_t run(const lathe_entry &entry, const lathe_run_args &args, const rt::RunPlaces &places) override {
    ++runs;
    std::vector<const void *> opened;
    auto open = [&](const void *const *pointers, const uint8_t *there, int count) {
      for (int i = 0; i < count; ++i)
        if (there[i])
          own->open(pointers[i]), opened.push_back(pointers[i]);
    };
    open(args.inputs, places.inputs, entry.num_inputs);
    open(args.outputs, places.outputs, entry.num_outputs);
    open(args.variables, places.variables, args.variables ? places.numVariables : 0);
    int32_t code = entry.run(&args);
    for (const void *p : opened)
      own->close(p);
    return code;
  }

  std::shared_ptr<FakeMemory> own;
  std::atomic<int> runs{0};

private:
  rt::DeviceName parsed;
  std::string fullName;
  rt::ResourceManager all;
};

/// CPU:0 and FAKE:0.
inline SharedDevices withFakeDevice(const SessionOptions &options, FakeDevice **fake) {
  SharedDevices devices = NewSharedDevices(options);
  auto made = std::make_unique<FakeDevice>(0);
  *fake = made.get();
  devices->devices.push_back(std::move(made));
  return devices;
}

} // namespace lathe

#endif
