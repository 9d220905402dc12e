// What a device is to the session: a name, resources, and how tensors leave and enter it. cpu/ implements it for the host;
// CUDA devices and remote workers are further implementations.
#ifndef LATHE_RUNTIME_DEVICE_H
#define LATHE_RUNTIME_DEVICE_H

#include "runtime/core/Resource.h"

#include "absl/status/status.h"

#include <functional>
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

class Device {
public:
  virtual ~Device() = default;
  virtual const std::string &name() const = 0; ///< full
  virtual const DeviceName &parsedName() const = 0;
  /// Tells two lives of one name apart; part of rendezvous keys.
  virtual uint64_t incarnation() const = 0;
  virtual ResourceManager &resources() = 0;

  using Moved = std::function<void(absl::StatusOr<Tensor>)>;
  /// Makes a tensor of this device readable by the host, or the other way round. Pre: the tensor is complete when
  /// this is called. Post: `done` is called once, from any thread; the result may share the buffer where both live in one memory.
  virtual void toHost(const Tensor &tensor, Moved done) = 0;
  virtual void fromHost(const Tensor &tensor, Moved done) = 0;
};

} // namespace lathe::rt

#endif
