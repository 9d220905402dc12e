// Times of single kernels, and what a device could reach at most.
#ifndef LATHE_BENCH_GPU_KERNELS_H
#define LATHE_BENCH_GPU_KERNELS_H

#include "bench/gpu/runner.h"

#include "runtime/cuda/driver/driver.h"

#include <functional>
#include <string>
#include <vector>

/// What the driver's attributes say: clocks times width. Operations by what is multiplied, 0 where the architecture is not known here.
struct Peaks {
  std::string name;
  int arch = 0, multiprocessors = 0, version = 0; ///< 80 for sm_80; version: the driver's
  double bytes = 0;                               ///< a second
  /// Operations a second of `kind`: "" for f32 without tensor cores, else "f16", "bf16", "tf32" or "s8".
  double operations(const std::string &kind) const;
  double clock = 0; ///< of multiprocessors, in Hz
};
bool readPeaks(const lathe_cuda_driver &driver, int ordinal, Peaks &peaks, std::string &why);

struct KernelTime {
  std::string kernel, kind; ///< kind: see Peaks::operations
  int64_t calls = 0;        ///< in a run
  double us = 0;            ///< of all of them: the sum of medians
  int64_t bytes = 0, flops = 0; ///< of all of them, as the object's table of steps says; 0 where it does not
};

/// Stands between liblathe_cuda.a and the driver from now on, and sees which kernels a program loads. Before the first model is opened.
void watchDriver(const lathe_cuda_driver &driver);
/// Events around each launch of some runs in `seconds`, which must be issued call by call; the device's context is current.
std::vector<KernelTime> timeKernels(Runner &runner, double seconds);
/// Gives back the events, in the current context.
void forgetEvents();
/// Microseconds between two events around a kernel that does nothing, after watchDriver: no part of what timeKernels tells.
double emptyTime(const lathe_cuda_driver &driver);

#endif
