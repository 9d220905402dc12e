#include "bench/gpu/kernels.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

double Peaks::operations(const std::string &kind) const {
  // multiply-adds a cycle and multiprocessor, dense: of f32, and of f16 on tensor cores (with sums of f32), from NVIDIA's whitepapers.
  // Those of sm_90 and sm_100 take wgmma and tcgen05, which mma.sync does not reach.
  static const struct {
    int arch, single, half;
  } known[] = {{80, 64, 1024},  {86, 128, 256},   {87, 128, 512},   {89, 128, 256},
               {90, 128, 2048}, {100, 128, 4096}, {103, 128, 4096}, {120, 128, 256}};
  for (const auto &k : known)
    if (k.arch == arch) {
      const double adds = kind.empty() ? k.single : kind == "tf32" ? k.half / 2.0 : kind == "s8" ? 2.0 * k.half : k.half;
      return 2 * adds * multiprocessors * clock;
    }
  return 0;
}

bool readPeaks(const lathe_cuda_driver &driver, int ordinal, Peaks &peaks, std::string &why) {
  lathe_cu_device device = 0;
  char name[256] = "";
  int major = 0, minor = 0, clock = 0, memoryClock = 0, width = 0;
  const char *call = "cuDeviceGet";
  lathe_cu_result result = driver.cuDeviceGet(&device, ordinal);
  if (!result) {
    call = "cuDeviceGetName";
    result = driver.cuDeviceGetName(name, sizeof(name), device);
  }
  const std::pair<int *, lathe_cu_device_attribute> wanted[] = {
      {&major, LATHE_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},    {&minor, LATHE_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {&peaks.multiprocessors, LATHE_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT}, {&clock, LATHE_CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
      {&memoryClock, LATHE_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},     {&width, LATHE_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH}};
  for (const auto &[value, attribute] : wanted)
    if (!result) {
      call = "cuDeviceGetAttribute";
      result = driver.cuDeviceGetAttribute(value, attribute, device);
    }
  if (result) {
    char text[256];
    lathe_cuda_describe(&driver, call, result, text, sizeof(text));
    why = text;
    return false;
  }
  peaks.name = name;
  peaks.arch = 10 * major + minor;
  peaks.version = driver.version;
  peaks.clock = 1e3 * clock;
  peaks.bytes = 2e3 * memoryClock * width / 8;
  return true;
}

namespace {

struct Launch {
  lathe_cu_function function;
  lathe_cu_event before, after;
};

/// What is known of the driver's calls; one thread.
struct Watch {
  lathe_cuda_driver own; ///< the driver's functions
  std::map<lathe_cu_module, std::map<std::string, std::string>> modules; ///< kinds by name of kernel
  std::map<lathe_cu_function, std::pair<std::string, std::string>> functions; ///< name and kind
  bool timing = false;
  std::vector<Launch> launches;
  size_t used = 0;
  float launch = 0; ///< ms between events around a kernel that does nothing: no part of the others' times
} watch;

} // namespace

/// What each entry of PTX multiplies on tensor cores.
static std::map<std::string, std::string> kindsOf(const std::string &ptx) {
  std::map<std::string, std::string> kinds;
  for (size_t at = ptx.find(".entry "); at != std::string::npos;) {
    const size_t end = std::min(ptx.find(".entry ", at + 1), ptx.size()), name = at + 7;
    const std::string key = ptx.substr(name, ptx.find_first_of("( \n", name) - name);
    const size_t product = std::min(ptx.find("mma.sync.", at), ptx.find("wgmma.mma_async.", at));
    if (product < end) {
      const std::string text = ptx.substr(product, ptx.find(' ', product) - product) + ".";
      for (const char *kind : {"tf32", "bf16", "s8", "u8", "f16"})
        if (text.find("." + std::string(kind) + ".") != std::string::npos) {
          kinds[key] = kind[0] == 'u' ? "s8" : kind; // as fast
          break;
        }
    }
    at = end < ptx.size() ? end : std::string::npos;
  }
  return kinds;
}

static lathe_cu_result loadModule(lathe_cu_module *module, const void *image, unsigned count, lathe_cu_jit_option *options, void **values) {
  const lathe_cu_result result = watch.own.cuModuleLoadDataEx(module, image, count, options, values);
  const char *text = static_cast<const char *>(image);
  if (!result && (text[0] == '/' || text[0] == '.')) // machine code tells nothing
    watch.modules[*module] = kindsOf(text);
  return result;
}

static lathe_cu_result unloadModule(lathe_cu_module module) {
  watch.modules.erase(module);
  return watch.own.cuModuleUnload(module);
}

static lathe_cu_result getFunction(lathe_cu_function *function, lathe_cu_module module, const char *name) {
  const lathe_cu_result result = watch.own.cuModuleGetFunction(function, module, name);
  if (!result)
    watch.functions[*function] = {name, watch.modules[module][name]};
  return result;
}

static lathe_cu_result launchKernel(lathe_cu_function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                                    unsigned blockY, unsigned blockZ, unsigned shared, lathe_cu_stream stream, void **parameters,
                                    void **extra) {
  Launch *launch = nullptr;
  if (watch.timing) {
    if (watch.used == watch.launches.size()) {
      Launch made{};
      if (watch.own.cuEventCreate(&made.before, 0) || watch.own.cuEventCreate(&made.after, 0))
        return LATHE_CU_ERROR_OUT_OF_MEMORY;
      watch.launches.push_back(made);
    }
    launch = &watch.launches[watch.used++];
    launch->function = function;
    watch.own.cuEventRecord(launch->before, stream);
  }
  const lathe_cu_result result =
      watch.own.cuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, shared, stream, parameters, extra);
  if (launch)
    watch.own.cuEventRecord(launch->after, stream);
  return result;
}

void watchDriver(const lathe_cuda_driver &driver) {
  watch.own = driver;
  // the table is on the heap and the library's own: nothing else of it would show single launches
  auto &table = const_cast<lathe_cuda_driver &>(driver);
  table.cuModuleLoadDataEx = loadModule;
  table.cuModuleUnload = unloadModule;
  table.cuModuleGetFunction = getFunction;
  table.cuLaunchKernel = launchKernel;
}

std::vector<KernelTime> timeKernels(Runner &runner, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<float>> times; // by launch, then run
  std::vector<lathe_cu_function> functions;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    watch.used = 0;
    watch.timing = true;
    const bool right = runner.run(true);
    watch.timing = false;
    if (!right)
      return {};
    // runs of as many launches as the first
    if (functions.empty())
      for (size_t i = 0; i < watch.used; ++i)
        functions.push_back(watch.launches[i].function);
    times.resize(functions.size());
    for (size_t i = 0; watch.used == functions.size() && i < watch.used; ++i) {
      float ms = 0;
      if (!watch.own.cuEventElapsedTime(&ms, watch.launches[i].before, watch.launches[i].after))
        times[i].push_back(ms);
    }
  } while (Clock::now() < end && !times.empty() && times[0].size() < 1000);
  std::map<std::string, const lathe_step_info *> steps;
  for (int32_t i = 0; i < runner.module.num_steps; ++i)
    steps.emplace(runner.module.steps[i]->kernel, runner.module.steps[i]);
  std::vector<KernelTime> kernels;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < functions.size(); ++i) {
    const auto &[name, kind] = watch.functions[functions[i]];
    auto [place, isNew] = places.emplace(name, kernels.size());
    if (isNew) {
      kernels.emplace_back();
      kernels.back().kernel = name;
      kernels.back().kind = kind;
    }
    KernelTime &k = kernels[place->second];
    ++k.calls;
    std::vector<float> &ms = times[i];
    std::sort(ms.begin(), ms.end());
    k.us += ms.empty() ? 0 : 1e3 * std::max(double(ms[ms.size() / 2]) - double(watch.launch), 0.0);
    if (auto step = steps.find(name); step != steps.end()) {
      k.bytes += step->second->constant_bytes + step->second->other_bytes;
      k.flops += step->second->flops;
    }
  }
  return kernels;
}

void forgetEvents() {
  for (const Launch &launch : watch.launches) {
    watch.own.cuEventDestroy(launch.before);
    watch.own.cuEventDestroy(launch.after);
  }
  watch.launches.clear();
}

double emptyTime(const lathe_cuda_driver &driver) {
  static const char nothing[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
  std::vector<float> ms;
  lathe_cu_event before = nullptr, after = nullptr;
  lathe_cu_module module = nullptr;
  lathe_cu_function function = nullptr;
  if (!driver.cuEventCreate(&before, 0) && !driver.cuEventCreate(&after, 0) &&
      !watch.own.cuModuleLoadDataEx(&module, nothing, 0, nullptr, nullptr) && !watch.own.cuModuleGetFunction(&function, module, "nothing"))
    for (int i = 0; i < 101; ++i) {
      float time = 0;
      driver.cuEventRecord(before, nullptr);
      watch.own.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
      driver.cuEventRecord(after, nullptr);
      driver.cuEventSynchronize(after);
      if (!driver.cuEventElapsedTime(&time, before, after))
        ms.push_back(time);
    }
  if (module)
    watch.own.cuModuleUnload(module);
  for (lathe_cu_event event : {before, after})
    if (event)
      driver.cuEventDestroy(event);
  std::sort(ms.begin(), ms.end());
  watch.launch = ms.empty() ? 0 : ms[ms.size() / 2];
  return 1e3 * double(watch.launch);
}
