// The models that a GPU archive's program is linked with; `pack` writes the table.
#ifndef LATHE_BENCH_GPU_CHECK_H
#define LATHE_BENCH_GPU_CHECK_H

#include "runtime/abi/module_abi.h"

#include "runtime/abi/device_abi.h"

struct Model {
  const char *name;
  const lathe_module *(*module)();
  const lathe_device_module *(*device)();
};
extern const Model models[];
extern const int numModels;

#endif
