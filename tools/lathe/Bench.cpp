// lathe bench: latencies of a model or a compiled shared library; compiling and loading are not in them.
#include "tools/lathe/Session.h"
#include "tools/lathe/Tensors.h"


#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace lathe::cli {
namespace {

struct BenchArgs {
  ModelArgs model;
  std::vector<std::string> feeds;
  std::string npz;
  double seconds = 2;
  int64_t size = 1;
  bool json = false, profile = false;
};

/// Time spent in each kernel call, from the trace hook of modules emitted for profiling.
struct Profile {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  std::vector<Clock::time_point> starts;

  explicit Profile(int steps) : seconds(steps), starts(steps) {}

  static void trace(void *ctx, int32_t step, int32_t phase) {
    Profile &p = *static_cast<Profile *>(ctx);
    if (phase == 0)
      p.starts[step] = Clock::now();
    else
      p.seconds[step] += std::chrono::duration<double>(Clock::now() - p.starts[step]).count();
  }

  void print(const lathe_module &m, size_t runs) const {
    std::vector<int> order;
    double total = 0;
    for (int i = 0; i < m.num_steps; ++i) {
      order.push_back(i);
      total += seconds[i];
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return seconds[a] > seconds[b]; });
    for (int i : order)
      printf("%10.1f us %5.1f %%  %-28s %s\n", seconds[i] / runs * 1e6, 100 * seconds[i] / total, m.steps[i]->kernel,
             m.steps[i]->nodes);
  }
};

int execute(BenchArgs &a) {
  using Clock = std::chrono::steady_clock;
  if (!a.model.finish())
    return BadInput;
  a.model.options.profile = a.profile;
  Loaded loaded;
  if (int status = load(a.model, loaded))
    return status;
  const lathe_entry &e = *loaded.module->abi().entries[0];
  auto inputs = inputsFrom(e, a.feeds, a.npz, a.size);
  if (!inputs.ok())
    return fail(std::string(inputs.status().message()));

  Runner runner(loaded.module, 0, a.model.options.threads);
  if (llvm::Error error = runner->prepare(*inputs))
    return fail(std::move(error));
  if (llvm::Error error = runner->run()) // touches every page once
    return fail(std::move(error));
  const lathe_module &m = loaded.module->abi();
  if (a.profile && !m.num_steps)
    return fail("bench --profile: the library was not compiled for profiling; give the model");
  Profile profile(m.num_steps);
  if (a.profile)
    runner->setTrace(Profile::trace, &profile);
  std::vector<double> us;
  Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(a.seconds));
  while (us.size() < 3 || (Clock::now() < end && us.size() < 1000000)) {
    Clock::time_point start = Clock::now();
    llvm::Error error = runner->run();
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    if (error)
      return fail(std::move(error));
  }
  if (a.profile)
    profile.print(m, us.size());
  if (a.json) {
    nlohmann::json j = {{"latency_us", us}, {"compile_s", loaded.compileSeconds}, {"threads", a.model.options.threads}};
    printf("%s\n", j.dump().c_str());
    return Fine;
  }
  std::sort(us.begin(), us.end());
  printf("%zu runs: fastest %.1f us, median %.1f us; compiled in %.2f s\n", us.size(), us.front(), us[us.size() / 2],
         loaded.compileSeconds);
  return Fine;
}

} // namespace

Command addBench(CLI::App &root) {
  auto a = std::make_shared<BenchArgs>();
  CLI::App *app = root.add_subcommand("bench", "Measure latencies of a model or a compiled .so");
  a->model.add(*app, "host", "A model, or a .so that lathe compile made");
  app->add_option("--feed", a->feeds, "Feed one input")->type_name("NAME=FILE.npy");
  app->add_option("--feeds", a->npz, "Inputs; without feeds seeded random floats and small integers")->type_name("FILE.npz");
  app->add_option("--seconds", a->seconds, "How long to measure")->capture_default_str();
  app->add_option("--unknown-size", a->size, "Value of unknown dimensions when nothing is fed")->capture_default_str();
  app->add_flag("--profile", a->profile, "Print the mean time of each kernel call, slowest first");
  app->add_flag("--json", a->json, "The last line of stdout is a JSON object with latency_us and compile_s");
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
