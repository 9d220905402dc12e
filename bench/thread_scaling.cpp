// thread_scaling [--threads N] [--seconds S] [--kernels] DIR...: how models scale over threads, judged only where the machine
// itself does. A DIR holds graph.pb and inputs.npz. Both ways take turns within slices of some tenths of a second; a loop of
// multiply-adds runs on one core and on all of them before and after each, and a slice in which all together reach less than
// 0.975 of N times one, or the hypervisor took time away, is left out. Prints the median over the slices that are kept, and
// with --kernels each call's fastest times, those first that lose most.
#include "bench/bench_model.h"
#include "runtime/cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

using namespace lathe;

namespace {

using Clock = std::chrono::steady_clock;

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  return all[all.size() / 2];
}

/// Ticks that the hypervisor took from all cores since the start; 0 where the system does not tell.
long stolen() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  long fields[8] = {};
  file >> cpu;
  for (long &field : fields)
    file >> field;
  return fields[7];
}

/// Some milliseconds of multiply-adds at the core's peak: two threads that share the units of one core must show.
constexpr int64_t calibrationSteps = 500000;
#if defined(__x86_64__)
#define LATHE_CALIBRATION(NAME, TARGET, BYTES, CONSTRAINT)                                                             \
  __attribute__((target(TARGET), noinline)) void NAME() {                                                              \
    typedef float Vec __attribute__((vector_size(BYTES)));                                                             \
    Vec acc[12] = {}, x = {0.37f, 0.44f, 0.51f, 0.58f}, y = {0.91f, 0.78f, 0.65f, 0.52f};                              \
    for (int64_t i = 0; i < calibrationSteps; ++i)                                                                     \
      for (Vec &a : acc)                                                                                               \
        asm volatile("vfmadd231ps %1, %2, %0" : "+" CONSTRAINT(a) : CONSTRAINT(x), CONSTRAINT(y));                     \
  }
LATHE_CALIBRATION(calibrate512, "avx512f,fma", 64, "v")
LATHE_CALIBRATION(calibrate256, "avx2,fma", 32, "x")
#undef LATHE_CALIBRATION
#endif

void calibrationLoop(void *, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
      calibrate512();
      continue;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      calibrate256();
      continue;
    }
#endif
    typedef float Vec __attribute__((vector_size(16)));
    Vec acc[12] = {}, x = {0.37f, 0.44f, 0.51f, 0.58f}, y = {0.91f, 0.78f, 0.65f, 0.52f};
    for (int64_t i = 0; i < calibrationSteps; ++i) {
      asm volatile("" : : "r"(&x) : "memory");
      for (Vec &a : acc)
        a += x * y;
    }
    asm volatile("" : : "r"(acc) : "memory");
  }
}

/// How many times as much all threads together do as one. All come last, so that they are awake for what follows.
double machineScales(ThreadPool &pool) {
  std::vector<double> one, all;
  auto time = [](auto &&run) {
    const double start = now();
    run();
    return now() - start;
  };
  for (int i = 0; i < 4; ++i)
    one.push_back(time([] { calibrationLoop(nullptr, 0, 1); }));
  for (int i = 0; i < 6; ++i) {
    const double t = time([&] { ThreadPool::parallelFor(&pool, calibrationLoop, nullptr, pool.threads()); });
    if (i > 1) // the first wakes them
      all.push_back(t);
  }
  return pool.threads() * median(one) / median(all);
}

/// The fastest time of each step.
struct Steps {
  std::vector<double> start, best;

  static void trace(void *ctx, int32_t step, int32_t phase) {
    auto &s = *static_cast<Steps *>(ctx);
    if (phase == 0)
      s.start[step] = now();
    else
      s.best[step] = std::min(s.best[step], now() - s.start[step]);
  }
};

struct Model {
  std::shared_ptr<LoadedModule> module;
  std::unique_ptr<ModuleRunner> runner;
  Steps steps;

  llvm::Error load(const std::string &graph, const NamedTensors &given, int threads, bool profile,
                   ThreadPool &pool) {
    CompilerOptions options;
    options.threads = threads;
    options.profile = profile;
    auto loaded = compileModel(graph, given, options);
    if (!loaded)
      return loaded.takeError();
    module = *loaded;
    auto inputs = inputsOf(*module, given);
    if (!inputs)
      return inputs.takeError();
    runner = std::make_unique<ModuleRunner>(module, 0);
    if (threads > 1)
      runner->setParallelFor(ThreadPool::parallelFor, &pool, threads);
    if (profile) {
      steps.start.resize(module->abi().num_steps);
      steps.best.assign(module->abi().num_steps, 1e9);
      runner->setTrace(Steps::trace, &steps);
    }
    if (llvm::Error error = runner->prepare(*inputs))
      return error;
    return runner->run();
  }

  /// Seconds of a run, the median over about `seconds` of them: now and then something else takes a core for milliseconds.
  double time(double seconds) {
    std::vector<double> all;
    const double start = now();
    for (double last = start; all.empty() || last - start < seconds;) {
      llvm::cantFail(runner->run());
      const double t = now();
      all.push_back(t - last);
      last = t;
    }
    return median(all);
  }
};

/// Steps of one thread and of many by their nodes and their place among those.
void printKernels(const Model &one, const Model &many, int threads) {
  struct Line {
    const lathe_step_info *info;
    double one, many;
  };
  std::vector<Line> lines;
  auto named = [](const Model &m) {
    std::map<std::pair<std::string, int>, int> steps;
    std::map<std::string, int> seen;
    for (int i = 0; i < m.module->abi().num_steps; ++i) {
      std::string nodes = m.module->abi().steps[i]->nodes;
      int place = seen[nodes]++;
      if (m.steps.best[i] < 1e8)
        steps[{nodes, place}] = i;
    }
    return steps;
  };
  const auto left = named(one), right = named(many);
  double sumOne = 0, sumMany = 0;
  for (auto &[name, i] : left)
    sumOne += one.steps.best[i];
  for (auto &[name, i] : right) {
    sumMany += many.steps.best[i];
    auto it = left.find(name);
    lines.push_back({many.module->abi().steps[i], it == left.end() ? 0 : one.steps.best[it->second], many.steps.best[i]});
  }
  auto lost = [&](const Line &l) { return l.many - l.one / threads; };
  std::sort(lines.begin(), lines.end(), [&](const Line &a, const Line &b) { return lost(a) > lost(b); });
  std::printf("%9s %9s %8s %8s  kernel\n", "one us", "all us", "scaling", "lost us");
  for (const Line &l : lines)
    std::printf("%9.1f %9.1f %8.2f %8.1f  %s %s\n", l.one * 1e6, l.many * 1e6, l.one / l.many, lost(l) * 1e6, l.info->kernel, l.info->nodes);
  std::printf("%9.1f %9.1f %8.2f  sum of the fastest calls\n", sumOne * 1e6, sumMany * 1e6, sumOne / sumMany);
}

int measure(const std::string &dir, int threads, double seconds, bool kernels) {
  std::string graph = readAll(dir + "/graph.pb");
  auto given = readNpz(dir + "/inputs.npz");
  if (graph.empty() || !given.ok())
    return die(dir + ": no graph.pb and inputs.npz");
  ThreadPool pool(threads);
  Model one, many;
  if (llvm::Error error = one.load(graph, *given, 1, kernels, pool))
    return die(llvm::toString(std::move(error)));
  if (llvm::Error error = many.load(graph, *given, threads, kernels, pool))
    return die(llvm::toString(std::move(error)));
  constexpr double slice = 0.1;
  const double least = 0.975 * threads;
  std::vector<double> ones, manys, ratios, machine;
  int slices = 0;
  const double end = now() + seconds;
  double before = machineScales(pool);
  for (; now() < end; ++slices) {
    const long steal = stolen();
    const double b = many.time(slice), a = one.time(slice), after = machineScales(pool);
    machine.push_back(after);
    if (std::min(before, after) >= least && stolen() == steal) {
      ones.push_back(a);
      manys.push_back(b);
      ratios.push_back(a / b);
    }
    before = after;
  }
  const std::string name = dir.substr(dir.find_last_of('/') + 1);
  if (ratios.empty()) {
    std::printf("%-20s the machine was too busy in all %d slices (it scales %.2f)\n", name.c_str(), slices, median(machine));
  } else {
    std::sort(ratios.begin(), ratios.end());
    std::printf("%-20s %10.1f us %10.1f us with %d  scaling %.2f (middle half %.2f-%.2f)  %zu of %d slices; the machine %.2f\n",
                name.c_str(), median(ones) * 1e6, median(manys) * 1e6, threads, median(ratios), ratios[ratios.size() / 4],
                ratios[ratios.size() * 3 / 4], ratios.size(), slices, median(machine));
  }
  if (kernels)
    printKernels(one, many, threads);
  std::fflush(stdout);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  int threads = 2, done = 0;
  double seconds = 10;
  bool kernels = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--threads") && i + 1 < argc) {
      threads = std::max(2, std::atoi(argv[++i]));
    } else if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (!std::strcmp(argv[i], "--kernels")) {
      kernels = true;
    } else {
      if (int status = measure(argv[i], threads, seconds, kernels))
        return status;
      ++done;
    }
  }
  return done ? 0 : die("usage: thread_scaling [--threads N] [--seconds S] [--kernels] DIR...");
}
