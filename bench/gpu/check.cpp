// The program of a GPU archive (pack): runs each compiled model on the cases beside it, compares with the outputs of CPU code, and
// measures. Linked with the models' objects, so that the machine with the GPU needs no compiler and no Python.
//
//   check [FOLDER] [--minutes M] [--seconds S] [--device N] [--record FILE]
//
// All cases are checked first; what is left of the minutes is shared by the cases' times. FILE gets JSON lines: the device and its
// peaks, results of single instructions for the emulated driver's tests, each case, each kernel. 0: all agree; 1: some do not, or
// could not run.
#include "bench/gpu/check.h"

#include "bench/gpu/kernels.h"
#include "bench/gpu/probes.h"
#include "bench/gpu/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <memory>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string folder = "cases", record;
  double minutes = 8, seconds = 1; ///< of the whole, and at most of one measurement
  int device = 0;
};

class Program {
public:
  explicit Program(const Options &options) : options(options), begin(Clock::now()) {}
  ~Program();
  int run();

private:
  bool start();
  void recordProbes();
  bool check(const Case &c);
  bool measure(const Case &c, double seconds);
  double left() const { return 60 * options.minutes - std::chrono::duration<double>(Clock::now() - begin).count(); }

  const Options &options;
  const Clock::time_point begin;
  const lathe_cuda_driver *driver = nullptr;
  lathe_cu_device device = 0;
  bool retained = false;
  Peaks peaks;
  std::FILE *record = nullptr;
};

} // namespace

static const Model *modelOf(const Case &c) {
  for (int i = 0; i < numModels; ++i)
    if (c.model == models[i].name)
      return &models[i];
  return nullptr;
}

Program::~Program() {
  if (record)
    std::fclose(record);
  if (retained) {
    lathe_cu_context context;
    forgetEvents();
    driver->cuCtxPopCurrent(&context);
    driver->cuDevicePrimaryCtxRelease(device);
  }
}

/// Finds the device. Without one, cases say so.
bool Program::start() {
  char message[256] = "";
  std::string why;
  driver = lathe_cuda_open(message, sizeof(message));
  if (!driver)
    return std::printf("no device: %s\n", message), false;
  lathe_cu_context context = nullptr;
  if (!readPeaks(*driver, options.device, peaks, why))
    return std::printf("no device: %s\n", why.c_str()), false;
  if (driver->cuDeviceGet(&device, options.device) || driver->cuDevicePrimaryCtxRetain(&context, device))
    return std::printf("no device: its context cannot be had\n"), false;
  retained = !driver->cuCtxPushCurrent(context);
  watchDriver(*driver);
  const double launch = emptyTime(*driver);
  std::printf("%s, sm_%d, %d multiprocessors, driver %d; by its attributes %.0f GB/s, TFLOP/s: %.1f of f32, %.1f of tf32, %.1f of f16 and bf16\n",
              peaks.name.c_str(), peaks.arch, peaks.multiprocessors, peaks.version, peaks.bytes / 1e9, peaks.operations("") / 1e12,
              peaks.operations("tf32") / 1e12, peaks.operations("f16") / 1e12);
  if (record)
    std::fprintf(record,
                 "{\"device\": \"%s\", \"arch\": %d, \"driver\": %d, \"bytes_per_second\": %.4g, \"flops_f32\": %.4g, \"flops_tf32\": %.4g, "
                 "\"flops_f16\": %.4g, \"launch_us\": %.3f}\n",
                 peaks.name.c_str(), peaks.arch, peaks.version, peaks.bytes, peaks.operations(""), peaks.operations("tf32"),
                 peaks.operations("f16"), launch);
  return retained;
}

void Program::recordProbes() {
  size_t done = 0;
  for (const Probe &probe : probes()) {
    std::vector<uint32_t> out;
    std::string why;
    if (!runProbe(*driver, probe, out, why)) {
      std::printf("not recorded: %s\n", why.c_str());
      continue;
    }
    std::fprintf(record, "{\"probe\": \"%s\", \"arch\": %d, \"result\": \"", probe.name.c_str(), peaks.arch);
    for (uint32_t w : out)
      std::fprintf(record, "%08x", unsigned(w));
    std::fprintf(record, "\"}\n");
    ++done;
  }
  std::printf("%zu of %zu results of instructions recorded\n", done, probes().size());
}

/// Call by call, then as graphs: the results of both are compared with what is expected.
bool Program::check(const Case &c) {
  const Model *model = modelOf(c);
  if (!model)
    return std::printf("%-32s FAILED: the program has no model '%s'\n", c.name.c_str(), c.model.c_str()), false;
  Runner runner(*model, c, options.device);
  double worst = 0;
  bool right = runner.prepare();
  for (int32_t graphs : {0, 2})
    if (right) {
      lathe_cuda_graphs_2(graphs);
      right = runner.run(false) && runner.agrees(worst) && runner.run(false) && runner.agrees(worst);
    }
  if (right)
    std::printf("%-32s ok, largest error %.2g\n", c.name.c_str(), worst);
  else
    std::printf("%-32s FAILED: %s\n", c.name.c_str(),
                runner.problem().empty() ? ("largest error " + std::to_string(worst)).c_str() : runner.problem().c_str());
  if (record)
    std::fprintf(record, "{\"checked\": \"%s\", \"right\": %s, \"error\": %.9g}\n", c.name.c_str(), right ? "true" : "false",
                 std::isfinite(worst) ? worst : -1.0);
  return right;
}

bool Program::measure(const Case &c, double seconds) {
  Runner runner(*modelOf(c), c, options.device);
  if (!runner.prepare())
    return false;
  const double each = std::min(options.seconds, seconds / 6);
  double us[4];
  for (int i = 0; i < 4; ++i) {
    lathe_cuda_graphs_2(i % 2 ? 2 : 0);
    us[i] = runner.median(i >= 2, each);
  }
  const auto [enqueued, queued] = runner.enqueue(each);
  lathe_cuda_graphs_2(0);
  const std::vector<KernelTime> kernels = timeKernels(runner, each);
  lathe_cuda_graphs_2(1);
  double sum = 0;
  for (const KernelTime &k : kernels)
    sum += k.us;
  std::printf("%-32s host tensors %.1f us, with graphs %.1f; device tensors %.1f, with graphs %.1f; enqueued in %.1f, done in %.1f; kernels %.1f\n",
              c.name.c_str(), us[0], us[1], us[2], us[3], enqueued, queued, sum);
  if (record)
    std::fprintf(record,
                 "{\"case\": \"%s\", \"host_us\": %.3f, \"host_graphs_us\": %.3f, \"device_us\": %.3f, \"device_graphs_us\": %.3f, "
                 "\"enqueue_us\": %.3f, \"queued_us\": %.3f, \"kernels_us\": %.3f}\n",
                 c.name.c_str(), us[0], us[1], us[2], us[3], enqueued, queued, sum);
  for (const KernelTime &k : kernels) {
    const double inSecond = k.us > 0 ? 1e6 / k.us : 0, peak = peaks.operations(k.kind);
    const double bandwidth = peaks.bytes > 0 ? double(k.bytes) * inSecond / peaks.bytes : 0;
    const double operations = peak > 0 ? double(k.flops) * inSecond / peak : 0;
    const char *kind = k.kind.empty() ? "f32" : k.kind.c_str();
    std::printf("  %-36s %5lld x %9.1f us  %9.2f MB, %3.0f %% of bandwidth  %9.2f MFLOP, %3.0f %% of %s\n", k.kernel.c_str(),
                static_cast<long long>(k.calls), k.us / double(k.calls), double(k.bytes) / 1e6, 100 * bandwidth, double(k.flops) / 1e6,
                100 * operations, kind);
    if (record)
      std::fprintf(record,
                   "{\"kernel\": \"%s\", \"of\": \"%s\", \"calls\": %lld, \"us\": %.3f, \"bytes\": %lld, \"flops\": %lld, "
                   "\"bandwidth_share\": %.4f, \"peak\": \"%s\", \"peak_share\": %.4f}\n",
                   k.kernel.c_str(), c.name.c_str(), static_cast<long long>(k.calls), k.us, static_cast<long long>(k.bytes),
                   static_cast<long long>(k.flops), bandwidth, kind, operations);
  }
  return std::isfinite(us[3]) && std::isfinite(enqueued);
}

int Program::run() {
  std::vector<std::string> names;
  if (DIR *folder = opendir(options.folder.c_str())) {
    while (dirent *entry = readdir(folder))
      if (entry->d_name[0] != '.')
        names.push_back(entry->d_name);
    closedir(folder);
  }
  std::sort(names.begin(), names.end());
  record = options.record.empty() ? nullptr : std::fopen(options.record.c_str(), "w");
  if (!options.record.empty() && !record) {
    std::fprintf(stderr, "cannot write %s\n", options.record.c_str());
    return 1;
  }
  const bool started = start();
  if (started && record)
    recordProbes();
  int wrong = names.empty();
  std::vector<std::unique_ptr<Case>> right;
  for (const std::string &name : names) {
    auto c = std::make_unique<Case>();
    c->name = name;
    const bool readable = readCase(options.folder + "/" + name, *c);
    if (!readable)
      std::printf("%-32s FAILED: cannot read the case\n", name.c_str());
    if (readable && check(*c)) {
      c->tensors.shrink_to_fit();
      right.push_back(std::move(c));
    } else {
      ++wrong;
    }
    std::fflush(stdout);
  }
  for (size_t i = 0; started && i < right.size(); ++i) {
    const double seconds = left() / double(right.size() - i);
    if (seconds <= 0) {
      std::printf("%-32s not measured: the time is over\n", right[i]->name.c_str());
      if (record)
        std::fprintf(record, "{\"not_measured\": \"%s\"}\n", right[i]->name.c_str());
      continue;
    }
    if (!measure(*right[i], seconds)) {
      std::printf("%-32s FAILED while it was measured\n", right[i]->name.c_str());
      ++wrong;
    }
    std::fflush(stdout);
  }
  std::printf("%zu cases, %d wrong, %.0f s\n", names.size(), wrong, 60 * options.minutes - left());
  return wrong != 0;
}

static int usage(const char *program) {
  std::fprintf(stderr, "usage: %s [FOLDER] [--minutes M] [--seconds S] [--device N] [--record FILE]\n", program);
  return 1;
}

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
    else if (word == "--minutes")
      options.minutes = std::atof(argv[i]);
    else if (word == "--device")
      options.device = std::atoi(argv[i]);
    else if (word == "--record")
      options.record = argv[i];
    else
      return usage(argv[0]);
  }
  return Program(options).run();
}
