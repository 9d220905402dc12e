// What liblathe_host.a has for devices on which the compiled parts of objects run.
#ifndef LATHE_RUNTIME_HOSTED_DEVICES_H
#define LATHE_RUNTIME_HOSTED_DEVICES_H

#include "runtime/device.h"

namespace lathe::rt {

/// An object names the one of its backend, so that the linker takes it for such objects alone: lathe_hosted_devices_BACKEND.
struct HostedDevices {
  absl::StatusOr<std::unique_ptr<Device>> (*make)(int number);
};

} // namespace lathe::rt

#endif
