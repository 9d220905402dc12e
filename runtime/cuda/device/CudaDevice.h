// NVIDIA devices as devices of sessions: "/device:GPU:n". Code of clusters is loaded and run by runtime/cuda/driver; here are
// their tensors.
#ifndef LATHE_RUNTIME_CUDA_DEVICE_CUDADEVICE_H
#define LATHE_RUNTIME_CUDA_DEVICE_CUDADEVICE_H

#include "runtime/device.h"

namespace lathe::rt {

/// The device that the driver counts as `ordinal`, under the name "/job:localhost/replica:0/task:0/device:GPU:<id>".
/// FAILED_PRECONDITION without a driver or a device, INVALID_ARGUMENT when there are fewer devices; the driver's own failures
/// name the call.
absl::StatusOr<std::unique_ptr<Device>> makeCudaDevice(int64_t id, int ordinal, uint64_t incarnation);

/// How many devices the driver has; 0 without one.
int countCudaDevices();

} // namespace lathe::rt

#endif
