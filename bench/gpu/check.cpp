// The program of a GPU archive (pack): runs each compiled model on the cases beside it, compares with the outputs of CPU code, and
// measures. Linked with the models' objects, so that the machine with the GPU needs no compiler and no Python.
//
//   check [FOLDER] [--seconds S] [--device N] [--record FILE]
//
// A case is a folder with a file `case`: the model, the tolerance, then a line a tensor: in|out, the entry's number of it, its file,
// its dimensions. 0: all agree; 1: some do not, or could not run.
#include "bench/gpu/check.h"

#include "runtime/abi/cuda_abi.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct TensorFile {
  bool isInput = false;
  int number = 0;
  std::string file;
  std::vector<int64_t> dims;
  std::vector<char> bytes;
};

struct Case {
  std::string name, model;
  double tolerance = 0;
  std::vector<TensorFile> tensors;
};

struct Options {
  std::string folder = "cases", record;
  double seconds = 1;
  int device = 0;
};

bool readFile(const std::string &path, std::vector<char> &bytes) {
  std::ifstream in(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(in), {});
  return bool(in) || in.eof();
}

bool readCase(const std::string &folder, Case &c) {
  std::ifstream in(folder + "/case");
  in >> c.model >> c.tolerance;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string kind;
    TensorFile t;
    words >> kind >> t.number >> t.file;
    t.isInput = kind == "in";
    for (int64_t d; words >> d;)
      t.dims.push_back(d);
    if (t.file.empty() || !readFile(folder + "/" + t.file, t.bytes))
      return false;
    c.tensors.push_back(std::move(t));
  }
  return !c.tensors.empty();
}

/// One model on one case, with its tensors on the host and on the device.
class Bench {
public:
  Bench(const Model &model, const Case &c, int ordinal) : module(*model.module()), device(*model.device()), c(c) {
    std::memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    std::memset(&args, 0, sizeof(args));
    args.args.struct_size = sizeof(args);
    args.args.threads = 1;
    args.args.error = &error;
    failed(device.open(ordinal, &args.instance, &error));
  }
  ~Bench() {
    for (void *p : onDevice)
      if (p)
        device.release(args.instance, p, nullptr);
    if (args.instance)
      device.close(args.instance);
  }

  bool prepare();
  /// Runs once; results come to `results`.
  bool run(bool withDevice);
  bool agrees(double &worst);
  /// Microseconds: the median of runs.
  double median(bool withDevice, double seconds);
  const std::string &problem() const { return why; }

private:
  bool failed(int32_t code) {
    if (code && why.empty())
      why = "status " + std::to_string(code) + ": " + (error.message ? error.message : "");
    return code != 0;
  }
  bool refuse(const std::string &text) {
    why = text;
    return false;
  }

  const lathe_module &module;
  const lathe_device_module &device;
  const Case &c;
  lathe_error error;
  lathe_device_run_args args;
  std::vector<int64_t> sizes;
  std::vector<std::vector<char>> results;
  std::vector<const TensorFile *> inputFiles, outputFiles;
  std::vector<const void *> inputs, deviceInputs;
  std::vector<void *> outputs, deviceOutputs, variables, onDevice;
  std::vector<uint8_t> yes;
  std::string why;
};

bool Bench::prepare() {
  if (!why.empty())
    return false;
  const lathe_entry &e = *module.entries[0];
  inputFiles.resize(size_t(e.num_inputs));
  outputFiles.resize(size_t(e.num_outputs));
  for (const TensorFile &t : c.tensors) {
    auto &list = t.isInput ? inputFiles : outputFiles;
    if (t.number < 0 || size_t(t.number) >= list.size())
      return refuse("the case names a tensor that the model lacks");
    list[size_t(t.number)] = &t;
  }
  sizes.assign(size_t(module.num_symbols), 0);
  for (int i = 0; i < e.num_inputs; ++i) {
    const lathe_tensor_info &info = *e.inputs[i];
    if (!inputFiles[size_t(i)] || inputFiles[size_t(i)]->dims.size() != size_t(info.rank))
      return refuse(std::string("no input '") + info.name + "' of its rank");
    for (int d = 0; d < info.rank; ++d)
      if (info.dims[d] < 0 && info.dims[d] != LATHE_DIM_COMPUTED)
        sizes[size_t(-1 - info.dims[d])] = inputFiles[size_t(i)]->dims[size_t(d)];
  }
  const int64_t bytes = device.workspace_size[0](sizes.data());
  if (bytes < 0)
    return refuse("a size is out of range");
  if (failed(device.reserve(args.instance, bytes, &error)))
    return false;
  std::vector<int64_t> bounded = sizes;
  e.bound_sizes(bounded.data());
  int numDims = 0;
  for (int i = 0; i < e.num_inputs; ++i)
    numDims += e.inputs[i]->rank;
  std::vector<int64_t> dims(size_t(numDims) + 1);
  for (int i = 0; i < e.num_outputs; ++i)
    dims.resize(dims.size() + size_t(e.outputs[i]->rank));
  e.dims(bounded.data(), dims.data());
  auto allocate = [&](size_t size) {
    void *p = nullptr;
    failed(device.allocate(args.instance, &p, int64_t(std::max<size_t>(size, 1)), &error));
    onDevice.push_back(p);
    return p;
  };
  size_t at = 0;
  for (int i = 0; i < e.num_inputs; ++i) {
    const std::vector<char> &data = inputFiles[size_t(i)]->bytes;
    int64_t size = e.inputs[i]->element_size;
    for (int d = 0; d < e.inputs[i]->rank; ++d)
      size *= dims[at++];
    if (size != int64_t(data.size()))
      return refuse(std::string("input '") + e.inputs[i]->name + "' is of another size");
    inputs.push_back(data.data());
    void *there = allocate(data.size());
    if (!why.empty() || failed(device.copy(args.instance, there, 1, data.data(), 0, size, &error)))
      return false;
    deviceInputs.push_back(there);
  }
  for (int i = 0; i < e.num_outputs; ++i) {
    int64_t size = e.outputs[i]->element_size;
    for (int d = 0; d < e.outputs[i]->rank; ++d)
      size *= dims[at++];
    results.emplace_back(size_t(size));
    outputs.push_back(results.back().data());
    deviceOutputs.push_back(allocate(size_t(size)));
  }
  if (module.num_variables)
    return refuse("models with state are not measured");
  yes.assign(std::max(inputs.size(), outputs.size()) + 1, 1);
  args.args.sizes = sizes.data();
  return why.empty();
}

bool Bench::run(bool withDevice) {
  args.args.inputs = withDevice ? deviceInputs.data() : inputs.data();
  args.args.outputs = withDevice ? deviceOutputs.data() : outputs.data();
  args.inputs_on_device = args.outputs_on_device = withDevice ? yes.data() : nullptr;
  return !failed(module.entries[0]->run(&args.args));
}

/// The largest difference as a share of the largest expected value; integers must agree.
template <typename T>
double difference(const std::vector<char> &got, const std::vector<char> &want) {
  const size_t n = want.size() / sizeof(T);
  double largest = 0, worst = 0;
  for (size_t i = 0; i < n; ++i) {
    T g, w;
    std::memcpy(&g, got.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&w, want.data() + i * sizeof(T), sizeof(T));
    if (std::isnan(double(g)) != std::isnan(double(w)))
      return INFINITY;
    if (std::isnan(double(w)) || g == w)
      continue;
    largest = std::max(largest, std::fabs(double(w)));
    worst = std::max(worst, std::fabs(double(g) - double(w)));
  }
  for (size_t i = 0; i < n; ++i) {
    T w;
    std::memcpy(&w, want.data() + i * sizeof(T), sizeof(T));
    if (std::isfinite(double(w)))
      largest = std::max(largest, std::fabs(double(w)));
  }
  return worst / (largest + 1e-30);
}

bool Bench::agrees(double &worst) {
  const lathe_entry &e = *module.entries[0];
  for (size_t i = 0; i < outputFiles.size(); ++i) {
    if (!outputFiles[i])
      continue;
    const std::vector<char> &want = outputFiles[i]->bytes;
    std::vector<char> got(results[i].begin(), results[i].begin() + std::ptrdiff_t(std::min(want.size(), results[i].size())));
    double here = INFINITY;
    if (got.size() == want.size()) {
      const int32_t type = e.outputs[i]->dtype;
      here = type == LATHE_FLOAT32   ? difference<float>(got, want)
             : type == LATHE_FLOAT64 ? difference<double>(got, want)
             : got == want           ? 0
                                     : INFINITY;
    }
    worst = std::max(worst, here);
  }
  return worst <= c.tolerance;
}

double Bench::median(bool withDevice, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> us;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (us.size() < 3 || (Clock::now() < end && us.size() < 100000)) {
    Clock::time_point start = Clock::now();
    if (!run(withDevice))
      return NAN;
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(us.begin(), us.end());
  return us[us.size() / 2];
}

/// A line of the table, and the same for --record. Whether all is right.
bool runCase(const Case &c, const Options &options, std::FILE *record) {
  const Model *model = nullptr;
  for (int i = 0; i < numModels; ++i)
    if (c.model == models[i].name)
      model = &models[i];
  if (!model) {
    std::printf("%-28s FAILED: the program has no model '%s'\n", c.name.c_str(), c.model.c_str());
    return false;
  }
  Bench bench(*model, c, options.device);
  double worst = 0;
  bool right = bench.prepare();
  // call by call, then as graphs: the bits of both are compared with what is expected
  for (int32_t graphs : {0, 2})
    if (right) {
      lathe_cuda_graphs_2(graphs);
      right = bench.run(false) && bench.agrees(worst) && bench.run(false) && bench.agrees(worst);
    }
  if (!right) {
    std::printf("%-28s FAILED: %s\n", c.name.c_str(),
                bench.problem().empty() ? ("largest error " + std::to_string(worst)).c_str() : bench.problem().c_str());
    return false;
  }
  double us[4];
  for (int i = 0; i < 4; ++i) {
    lathe_cuda_graphs_2(i % 2);
    us[i] = bench.median(i >= 2, options.seconds);
  }
  std::printf("%-28s ok, largest error %.2g; host tensors %.1f us, with graphs %.1f; device tensors %.1f, with graphs %.1f\n",
              c.name.c_str(), worst, us[0], us[1], us[2], us[3]);
  if (record)
    std::fprintf(record, "{\"case\": \"%s\", \"error\": %.9g, \"host_us\": %.3f, \"host_graphs_us\": %.3f, \"device_us\": %.3f, \"device_graphs_us\": %.3f}\n",
                 c.name.c_str(), worst, us[0], us[1], us[2], us[3]);
  return true;
}

int usage(const char *program) {
  std::fprintf(stderr, "usage: %s [FOLDER] [--seconds S] [--device N] [--record FILE]\n", program);
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      options.folder = word;
      continue;
    }
    if (++i >= argc)
      return usage(argv[0]);
    if (word == "--seconds")
      options.seconds = std::atof(argv[i]);
    else if (word == "--device")
      options.device = std::atoi(argv[i]);
    else if (word == "--record")
      options.record = argv[i];
    else
      return usage(argv[0]);
  }
  std::vector<std::string> names;
  if (DIR *folder = opendir(options.folder.c_str())) {
    while (dirent *entry = readdir(folder))
      if (entry->d_name[0] != '.')
        names.push_back(entry->d_name);
    closedir(folder);
  }
  std::sort(names.begin(), names.end());
  std::FILE *record = options.record.empty() ? nullptr : std::fopen(options.record.c_str(), "w");
  if (!options.record.empty() && !record) {
    std::fprintf(stderr, "cannot write %s\n", options.record.c_str());
    return 1;
  }
  int wrong = names.empty();
  for (const std::string &name : names) {
    Case c;
    c.name = name;
    if (!readCase(options.folder + "/" + name, c)) {
      std::printf("%-28s FAILED: cannot read the case\n", name.c_str());
      ++wrong;
      continue;
    }
    wrong += !runCase(c, options, record);
    std::fflush(stdout);
  }
  if (record)
    std::fclose(record);
  std::printf("%zu cases, %d wrong\n", names.size(), wrong);
  return wrong != 0;
}
