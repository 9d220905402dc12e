// A CPU device: a name and resources over the process's memory.
#ifndef LATHE_RUNTIME_CPU_CPUDEVICE_H
#define LATHE_RUNTIME_CPU_CPUDEVICE_H

#include "runtime/device.h"

namespace lathe::rt {

class CpuDevice : public Device {
public:
  CpuDevice(int64_t id, uint64_t incarnation) : life(incarnation) {
    parsed.job = "localhost";
    parsed.replica = parsed.task = 0;
    parsed.type = "CPU";
    parsed.id = id;
    fullName = parsed.text();
  }
  const std::string &name() const override { return fullName; }
  const DeviceName &parsedName() const override { return parsed; }
  uint64_t incarnation() const override { return life; }
  ResourceManager &resources() override { return all; }

private:
  DeviceName parsed;
  std::string fullName;
  const uint64_t life;
  ResourceManager all;
};

} // namespace lathe::rt

#endif
