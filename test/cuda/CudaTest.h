// A device for tests: the emulated driver behind the loader that the product uses, one context for a test.
#ifndef LATHE_TEST_CUDA_CUDATEST_H
#define LATHE_TEST_CUDA_CUDATEST_H

#include "runtime/cuda/driver/driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace lathe::test {

/// How the emulated device poses and what it checks: LATHE_EMU_ variables without that prefix.
using Setting = std::map<std::string, std::string>;

/// A primary context, current while this lives. Findings go to a file that findings() reads.
class CudaDevice {
public:
  explicit CudaDevice(const Setting &setting = {});
  ~CudaDevice();
  CudaDevice(const CudaDevice &) = delete;

  const lathe_cuda_driver &operator*() const { return *driver; }
  const lathe_cuda_driver *operator->() const { return driver; }
  bool ok() const { return current; }

  /// What was found so far, a line each.
  std::vector<std::string> findings() const;
  /// Releases the context, so that what was left behind is found too; the rest of the device is then
  /// unusable.
  std::vector<std::string> close();

  /// Loads PTX, which has to be accepted (by ptxas too where it is installed), and keeps the module.
  lathe_cu_module load(const std::string &ptx);
  lathe_cu_function function(lathe_cu_module module, const char *name);
  /// One allocation with that content, freed at the end.
  lathe_cu_deviceptr upload(const void *data, size_t bytes);
  template <class T>
  lathe_cu_deviceptr upload(const std::vector<T> &v) {
    return upload(v.data(), v.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> download(lathe_cu_deviceptr from, size_t n) {
    std::vector<T> v(n);
    EXPECT_EQ(driver->cuMemcpyDtoH(v.data(), from, n * sizeof(T)), 0);
    return v;
  }
  /// Runs a kernel on 64-bit parameters and waits: the driver's result.
  lathe_cu_result run(lathe_cu_function f, unsigned grid, unsigned block, std::vector<uint64_t> parameters,
                      unsigned shared = 0);

private:
  const lathe_cuda_driver *driver = nullptr;
  std::string log;
  bool current = false;
  std::vector<lathe_cu_module> modules;
  std::vector<lathe_cu_deviceptr> memory;
};

/// The text of an LLVM module as PTX, as the product makes it: sm_80, ISA 7.0, -O3.
std::string compileIr(const std::string &ir, const char *cpu = "sm_80", const char *features = "+ptx70");

/// "" when ptxas takes it or is not installed, else what it says.
std::string assemble(const std::string &ptx);

/// A PTX module of one entry `k` with these 64-bit parameters p0, p1, ... and that body.
std::string entry(unsigned parameters, const std::string &body, const std::string &directives = "",
                  const std::string &globals = "", const char *target = "sm_80", const char *version = "7.0");

/// Whether one of the lines holds all the words.
bool holds(const std::vector<std::string> &lines, std::initializer_list<const char *> words);

/// The bits of a number as f16, and as bf16, cut off.
inline uint16_t half(float v) {
  _Float16 h = static_cast<_Float16>(v);
  uint16_t r;
  std::memcpy(&r, &h, 2);
  return r;
}
inline uint16_t bfloat(float v) {
  uint32_t r;
  std::memcpy(&r, &v, 4);
  return static_cast<uint16_t>(r >> 16);
}

} // namespace lathe::test

#endif
