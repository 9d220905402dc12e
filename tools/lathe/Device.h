// --device: where modules of a backend that launches kernels run.
#ifndef LATHE_TOOLS_LATHE_DEVICE_H
#define LATHE_TOOLS_LATHE_DEVICE_H

#include "runtime/abi/cuda_abi.h"

#include <CLI/CLI.hpp>

namespace lathe::cli {

/// Of a command that runs code. A device that is not there is an error of the run.
inline void addDevice(CLI::App &app) {
  app.add_option_function<int>("--device", [](const int &n) { lathe_cuda_default_device_2(n); },
                               "With --backend cuda: which device of this machine, counted from 0")
      ->check(CLI::Range(0, 1023))
      ->type_name("N");
}

} // namespace lathe::cli

#endif
