// lathe bench: latencies of a model or a compiled shared library; compiling and loading are not in them.
#include "tools/lathe/Profile.h"
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

int execute(BenchArgs &a) {
  using Clock = std::chrono::steady_clock;
  if (!a.model.finish())
    return BadInput;
  a.model.options.profile |= a.profile;
  auto feeds = readFeeds(a.feeds, a.npz);
  if (!feeds.ok())
    return fail(std::string(feeds.status().message()));
  a.model.takeShapes(*feeds);
  Loaded loaded;
  if (int status = load(a.model, loaded))
    return status;
  const lathe_entry &e = *loaded.module->abi().entries[0];
  auto inputs = inputsFrom(e, *feeds, a.size);
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
  Profile profile(m, a.model.options.threads, {loaded.artifact.vectorBits, loaded.artifact.fma});
  if (a.profile)
    runner->setTrace(Profile::trace, &profile);
  std::vector<double> us;
  Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(a.seconds, 1e9)));
  while (us.size() < 3 || (Clock::now() < end && us.size() < 1000000)) {
    Clock::time_point start = Clock::now();
    llvm::Error error = runner->run();
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    if (error)
      return fail(std::move(error));
  }
  if (a.profile)
    profile.print(us.size());
  if (a.json) {
    nlohmann::json j = {{"latency_us", us}, {"compile_s", loaded.compileSeconds}, {"threads", a.model.options.threads}};
    if (a.profile)
      j["kernels"] = profile.json(us.size());
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
  app->add_option("--seconds", a->seconds, "How long to measure")->check(nonNegative)->capture_default_str();
  app->add_option("--unknown-size", a->size, "Value of unknown dimensions when nothing is fed")->check(nonNegative)->capture_default_str();
  app->add_flag("--profile", a->profile, "Print the fastest time of each kernel call, its GFLOP/s, GB/s and share of what the machine can do");
  app->add_flag("--json", a->json, "The last line of stdout is a JSON object with latency_us and compile_s");
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
