// What a device is to the session: a name, resources, the memory of its tensors, and how compiled code runs there. cpu/
// implements it for the host, cuda/device for NVIDIA devices; remote workers would be a further implementation.
//
// A tensor of a device's memory is a Tensor whose owner gives the memory back to it, and memoryOf() tells it from the host's:
// nothing but sizes and types may be asked of one elsewhere. On a device with a memory of its own a value may lie in either, so
// that small ones need not travel: compiled code takes both, whatever reads elements on the host asks for hostTensor() first.
// Copies and runs of one device happen in the order of the calls. They may still be under way when these return: a device waits for
// what it depends on, the host where it is to have elements (toHost), and with settle() at the end of a step.
#ifndef LATHE_RUNTIME_DEVICE_H
#define LATHE_RUNTIME_DEVICE_H

#include "runtime/abi/module_abi.h"

#include "runtime/abi/device_abi.h"
#include "runtime/core/Resource.h"

#include "absl/status/status.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::rt {

/// "/job:localhost/replica:0/task:0/device:CPU:0"; parts that are absent match any.
struct DeviceName {
  std::optional<std::string> job, type;
  std::optional<int64_t> replica, task, id;

  /// TensorFlow's forms: full names, "/cpu:0", "/device:GPU:1", "/CPU:*", "". INVALID_ARGUMENT for others.
  static absl::StatusOr<DeviceName> parse(std::string_view text);
  std::string text() const;
  /// Whether every part that this one has is the same in `full`.
  bool matches(const DeviceName &full) const;
};

/// Memory that host code must not touch. From any threads. Outlives its device as long as a tensor lies there.
class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
public:
  virtual ~DeviceMemory() = default;
  /// For messages.
  virtual const std::string &deviceName() const = 0;

  /// A tensor of unknown elements. RESOURCE_EXHAUSTED when there is no room, INVALID_ARGUMENT for bad dimensions or a type
  /// that has no elements in memory.
  absl::StatusOr<Tensor> allocate(DType type, std::vector<int64_t> dims);
  /// Copies of a tensor of the host, of this memory, and of this memory within it.
  absl::StatusOr<Tensor> fromHost(const Tensor &tensor);
  absl::StatusOr<Tensor> toHost(const Tensor &tensor);
  absl::StatusOr<Tensor> clone(const Tensor &tensor);
  /// The tensor itself where it lies in this memory, else a copy of it here: from the host, or from another device, directly
  /// where both know a way, else through the host.
  absl::StatusOr<Tensor> fromAny(const Tensor &tensor);
  /// Waits for all copies and runs that were asked for before. Nothing of them looks at memory of the host afterwards, also where
  /// the device failed meanwhile, which it tells.
  virtual absl::Status settle() { return absl::OkStatus(); }

protected:
  enum class Way { ToDevice, ToHost, Within };
  /// At least one byte, aligned to LATHE_ALIGNMENT.
  virtual absl::StatusOr<void *> obtain(int64_t bytes) = 0;
  /// What uses the memory may still be under way.
  virtual void giveBack(void *memory, int64_t bytes) = 0;
  /// All of `from`, which has at least one byte. Over when it returns where the host gets it; else it keeps `from` as long as it must.
  virtual absl::Status copy(Way way, void *to, const Tensor &from) = 0;
  /// The same from another device's memory; UNIMPLEMENTED where there is no direct way.
  virtual absl::Status copyFrom(DeviceMemory &other, void *to, const Tensor &from);

private:
  struct GiveBack;
  /// `made` with the elements of `from`.
  absl::StatusOr<Tensor> filled(absl::StatusOr<Tensor> made, Way way, const Tensor &from);
  friend DeviceMemory *memoryOf(const Tensor &tensor);
};

/// The memory that a tensor lies in; null for the host's.
DeviceMemory *memoryOf(const Tensor &tensor);
/// Whether a device could hold elements of the type: all but strings and objects.
bool hasDeviceForm(DType type);
/// Whether a value is rather left with the host on a device that takes both: strings and objects, and small integers, which are
/// sizes, indices and conditions.
bool staysOnHost(const Tensor &tensor);
/// The tensor itself, or a copy of it on the host.
absl::StatusOr<Tensor> hostTensor(const Tensor &tensor);

/// Brings a variable's value to the host, whose mutex the caller holds: before a kernel of the host looks at elements, in the same
/// critical section, since a module on a device may have taken the value there at any time before. No value is no error.
absl::Status valueToHost(Variable &variable);

/// What a device keeps of a compiled module for its runs. Goes before the module does; waits for them.
class DeviceRuns {
public:
  virtual ~DeviceRuns() = default;
};

/// Which pointers of lathe_run_args are addresses of a device: a byte each, 1 for those that are.
struct RunPlaces {
  const uint8_t *inputs = nullptr, *outputs = nullptr, *variables = nullptr;
  int numVariables = 0;
  const Tensor *const *tensors = nullptr; ///< the inputs
  DeviceRuns *runs = nullptr;             ///< the module's; null: none were made
};

class Device {
public:
  virtual ~Device() = default;
  virtual const std::string &name() const = 0; ///< full
  virtual const DeviceName &parsedName() const = 0;
  /// Tells two lives of one name apart; part of rendezvous keys.
  virtual uint64_t incarnation() const = 0;
  virtual ResourceManager &resources() = 0;
  /// Null: tensors lie in the host's memory.
  virtual std::shared_ptr<DeviceMemory> memory() { return nullptr; }
  /// What compiles for it, as `lathe compile --backend`; "": whatever the session compiles with.
  virtual std::string backend() const { return ""; }
  /// What runs of a module there need; null: nothing.
  virtual std::unique_ptr<DeviceRuns> prepareRuns(const lathe_device_module &) { return nullptr; }
  /// Runs an entry compiled for it; `places` says what lies in memory(). As lathe_entry's run() otherwise, but it may still be under way
  /// when this returns 0. What nodes can do wrong is known by then; a device that fails later says so at settle().
  virtual int32_t run(const lathe_entry &entry, const lathe_run_args &args, const RunPlaces &) { return entry.run(&args); }

  using Moved = std::function<void(absl::StatusOr<Tensor>)>;
  /// Makes a tensor of the host or of another device one that this device takes. Pre: the tensor is complete when this is called.
  /// Post: `done` is called once, from any thread; the result may share the buffer where both live in one memory, and lies on the host
  /// where staysOnHost() says so.
  virtual void receive(const Tensor &tensor, Moved done);
};

} // namespace lathe::rt

#endif
