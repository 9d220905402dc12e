// What this machine can do at best, measured: the roofs that a profile compares kernels with.
#ifndef LATHE_TOOLS_LATHE_MACHINE_H
#define LATHE_TOOLS_LATHE_MACHINE_H

#include <cstdint>
#include <utility>
#include <vector>

namespace lathe::cli {

/// The instructions that the code under measurement may use: its peak is not that of wider ones.
struct MachineCode {
  int vectorBits = 512;
  bool fma = true;
};

struct Machine {
  double flops = 0; ///< f32 multiply-adds a second, counted as two, by the instructions of the code
  /// Bytes a second by size of the data, ascending: reading it, and copying (bytes read plus bytes written).
  std::vector<std::pair<int64_t, double>> reading, copying;

  double readRate(int64_t bytes) const { return rate(reading, bytes); }
  double copyRate(int64_t bytes) const { return rate(copying, bytes); }

  /// Seconds that a kernel needs at least: arithmetic, or weights from where all `allConstants` bytes of the model fit
  /// and the rest of the data from where it fits itself.
  double bound(double flopCount, double constants, double others, int64_t allConstants) const;

  /// Measures one thread in about a second and multiplies by the number of threads.
  static Machine measure(int threads, const MachineCode &code);

private:
  static double rate(const std::vector<std::pair<int64_t, double>> &table, int64_t bytes);
};

/// Seconds of processor time of the calling thread: other processes on a shared machine do not count.
double threadSeconds();

} // namespace lathe::cli

#endif
