// One compiled model on one case: what the program of an archive checks and times.
#ifndef LATHE_BENCH_GPU_RUNNER_H
#define LATHE_BENCH_GPU_RUNNER_H

#include "bench/gpu/check.h"

#include "runtime/abi/cuda_abi.h"

#include <string>
#include <utility>
#include <vector>

struct TensorFile {
  bool isInput = false;
  int number = 0;
  std::string file;
  std::vector<int64_t> dims;
  std::vector<char> bytes;
};

/// A folder with a file `case`: the model and the tolerance, then a line a tensor: in|out, the entry's number of it, its file, its
/// dimensions.
struct Case {
  std::string name, model;
  double tolerance = 0; ///< of the largest magnitude of an output
  std::vector<TensorFile> tensors;
};
bool readCase(const std::string &folder, Case &c);

/// A model with a case's tensors on the host and on the device.
class Runner {
public:
  Runner(const Model &model, const Case &c, int ordinal);
  ~Runner();
  Runner(const Runner &) = delete;

  bool prepare();
  /// Runs once; results come to the host where tensors are there.
  bool run(bool withDevice);
  /// Compares the results on the host; `worst` keeps the largest error.
  bool agrees(double &worst);
  /// Microseconds: the median of runs in so many seconds.
  double median(bool withDevice, double seconds);
  /// Microseconds in which a run is left in a stream, for which nobody waits yet; and a run's share of several that are waited for together.
  std::pair<double, double> enqueue(double seconds);
  const std::string &problem() const { return why; }

  const lathe_module &module;

private:
  bool failed(int32_t code);
  bool refuse(const std::string &text);

  const lathe_device_module &device;
  const Case &c;
  lathe_error error;
  lathe_device_run_args args;
  std::vector<int64_t> sizes;
  std::vector<std::vector<char>> results;
  std::vector<const TensorFile *> inputFiles, outputFiles;
  std::vector<const void *> inputs, deviceInputs;
  std::vector<void *> outputs, deviceOutputs, onDevice;
  std::vector<uint8_t> yes;
  std::string why;
};

#endif
