// --device: where modules of a backend that launches kernels run, and sessions that compile by one.
#ifndef LATHE_TOOLS_LATHE_DEVICE_H
#define LATHE_TOOLS_LATHE_DEVICE_H

#include "runtime/abi/cuda_abi.h"

#include "passes/codegen/Backend.h"
#include "runtime/session/Session.h"

#include <CLI/CLI.hpp>

namespace lathe::cli {

/// What --device said.
inline int &chosenDevice() {
  static int device = 0;
  return device;
}

/// Of a command that runs code. A device that is not there is an error of the run.
inline CLI::Option *addDevice(CLI::App &app) {
  return app.add_option_function<int>("--device", [](const int &n) {
                                 chosenDevice() = n;
                                 lathe_cuda_default_device_2(n);
                               },
                               "With --backend cuda: which device of this machine, counted from 0")
      ->check(CLI::Range(0, 1023))
      ->type_name("N");
}

/// A session by that backend: one for a device makes it /device:GPU:0, and what the host has to do is compiled for the host.
inline void useBackend(SessionOptions &options, const std::string &backend) {
  if (codegen::launchesKernels(backend))
    options.gpus = {chosenDevice()};
  else
    options.clusterBackend = backend;
}

} // namespace lathe::cli

#endif
