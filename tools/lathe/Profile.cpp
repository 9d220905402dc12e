#include "tools/lathe/Profile.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace lathe::cli {

// Under threads the caller waits for others, so only the wall clock tells.
double Profile::now() const {
  return threads > 1 ? std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()
                     : threadSeconds();
}

Profile::Profile(const lathe_module &module, int threads, const MachineCode &code)
    : module(module), threads(threads), code(code), steps(module.num_steps) {
  overhead = 1;
  for (int i = 0; i < 100; ++i) {
    double a = now(), b = now();
    overhead = std::min(overhead, b - a);
  }
}

void Profile::trace(void *ctx, int32_t step, int32_t phase) {
  Profile &p = *static_cast<Profile *>(ctx);
  Step &s = p.steps[step];
  if (phase == 0) {
    s.start = p.now();
    return;
  }
  s.best = std::min(s.best, std::max(p.now() - s.start - p.overhead, 1e-9));
  ++s.calls;
}

const Machine &Profile::peak() const {
  if (!machine)
    machine = Machine::measure(threads, code);
  return *machine;
}

std::vector<Profile::Line> Profile::lines(size_t runs) const {
  const Machine &machine = peak();
  std::vector<Line> all;
  for (int i = 0; i < module.num_steps; ++i) {
    const Step &s = steps[i];
    const lathe_step_info &info = *module.steps[i];
    if (!s.calls)
      continue;
    double bytes = static_cast<double>(info.constant_bytes + info.other_bytes);
    double bound = bytes > 0 ? machine.bound(static_cast<double>(info.flops), static_cast<double>(info.constant_bytes),
                                             static_cast<double>(info.other_bytes), static_cast<int64_t>(module.constants_size))
                             : 0;
    all.push_back({i, s.best, bound, s.best * static_cast<double>(s.calls) / static_cast<double>(runs)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Line &a, const Line &b) { return a.perRun > b.perRun; });
  return all;
}

void Profile::print(size_t runs) const {
  std::vector<Line> all = lines(runs);
  double total = 0;
  for (const Line &l : all)
    total += l.perRun;
  printf("peak of the code's instructions: %.1f GFLOP/s\n", peak().flops * 1e-9);
  printf("%10s %7s %10s %9s %9s %8s  %-26s %s\n", "us", "share", "MFLOP", "GFLOP/s", "GB/s", "of roof", "kernel", "nodes");
  auto row = [&](const Line &l) {
    const lathe_step_info &info = *module.steps[l.step];
    double flops = static_cast<double>(info.flops), bytes = static_cast<double>(info.constant_bytes + info.other_bytes);
    printf("%10.1f %6.1f%% ", l.perRun * 1e6, 100 * l.perRun / total);
    if (l.bound > 0)
      printf("%10.2f %9.1f %9.1f %7.0f%%", flops * 1e-6, flops / l.seconds * 1e-9, bytes / l.seconds * 1e-9, 100 * l.bound / l.seconds);
    else
      printf("%10s %9s %9s %8s", "-", "-", "-", "-"); // sizes that are known at run time only
    printf("  %-26s %s\n", info.kernel, info.nodes);
  };
  for (const Line &l : all)
    row(l);
  std::stable_sort(all.begin(), all.end(), [](const Line &a, const Line &b) {
    auto lost = [](const Line &l) { return l.bound > 0 ? l.perRun * (1 - l.bound / l.seconds) : 0; };
    return lost(a) > lost(b);
  });
  printf("furthest from the machine's limits:\n");
  for (size_t i = 0; i < all.size() && i < 10; ++i)
    row(all[i]);
  printf("sum of the fastest calls: %.1f us\n", total * 1e6);
}

nlohmann::json Profile::json(size_t runs) const {
  nlohmann::json list = nlohmann::json::array();
  for (const Line &l : lines(runs)) {
    const lathe_step_info &info = *module.steps[l.step];
    list.push_back({{"kernel", info.kernel},
                    {"nodes", info.nodes},
                    {"us", l.seconds * 1e6},
                    {"us_per_run", l.perRun * 1e6},
                    {"flops", info.flops},
                    {"bytes", info.constant_bytes + info.other_bytes},
                    {"winograd", std::strstr(info.kernel, "winograd") != nullptr},
                    {"strassen", std::strstr(info.kernel, "strassen") != nullptr},
                    {"bound_us", l.bound * 1e6}});
  }
  return list;
}

} // namespace lathe::cli
