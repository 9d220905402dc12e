// Small kernels in PTX whose results on a device say whether the emulated driver computes as one does. `check --record` keeps them,
// CudaEmulatorTests compares.
#ifndef LATHE_BENCH_GPU_PROBES_H
#define LATHE_BENCH_GPU_PROBES_H

#include "runtime/cuda/driver/driver.h"

#include <cstdint>
#include <string>
#include <vector>

struct Probe {
  std::string name, ptx;                  ///< entry `k`: pointers to the inputs, then to the output
  unsigned blocks = 1, threads = 32;
  std::vector<std::vector<uint32_t>> inputs;
  size_t words = 0;      ///< of the output
  /// 0: bits are the same on any device. Else results are f32, and may differ by so much of the largest magnitude that a thread's
  /// operands let them have (sums on tensor cores), or where `relative`, of themselves (approximate functions).
  double tolerance = 0;
  bool relative = false;
};
const std::vector<Probe> &probes();

/// Runs it in the current context; false with a reason.
bool runProbe(const lathe_cuda_driver &driver, const Probe &probe, std::vector<uint32_t> &out, std::string &why);
/// How results differ; empty if they agree.
std::string compareProbe(const Probe &probe, const std::vector<uint32_t> &one, const std::vector<uint32_t> &other);

#endif
