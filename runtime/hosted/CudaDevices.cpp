#include "runtime/cuda/device/CudaDevice.h"
#include "runtime/hosted/Devices.h"

extern "C" const lathe::rt::HostedDevices lathe_hosted_devices_cuda;
extern "C" const lathe::rt::HostedDevices lathe_hosted_devices_cuda = {
    [](int number) { return lathe::rt::makeCudaDevice(number, number, /*incarnation=*/1); }};
