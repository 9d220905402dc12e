// session_models DIR...: models through a session against the same models compiled ahead of time, alternating in one run.
// A DIR holds graph.pb and inputs.npz. Prints a JSON object a model: median microseconds of the bare module (its run
// function on prepared buffers), the module called with tensors, Session::Run, and a callable.
#include "bench/bench_model.h"
#include "compiler/jit/ClusterCompiler.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>

using namespace lathe;

namespace {

/// Ways take turns in rounds of about two milliseconds, so that a slow moment of the machine meets all of them; time is that of
/// this thread's CPU (all of it runs on this thread), which a busy machine does not stretch.
std::vector<double> medians(const std::vector<std::function<void()>> &ways) {
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
  };
  auto timed = [&](const std::function<void()> &run, int n) {
    double start = now();
    for (int i = 0; i < n; ++i)
      run();
    return (now() - start) / n;
  };
  std::vector<std::vector<double>> rounds(ways.size());
  for (auto &run : ways)
    timed(run, 20);
  int n = std::clamp(static_cast<int>(2000 / std::max(timed(ways[0], 20), 1.0)), 1, 2000);
  for (int r = 0; r < 301; ++r)
    for (size_t w = 0; w < ways.size(); ++w)
      rounds[w].push_back(timed(ways[w], n));
  std::vector<double> out;
  for (auto &round : rounds) {
    std::nth_element(round.begin(), round.begin() + round.size() / 2, round.end());
    out.push_back(round[round.size() / 2]);
  }
  return out;
}

int measure(const std::string &dir) {
  std::string graph = readAll(dir + "/graph.pb");
  auto given = readNpz(dir + "/inputs.npz");
  if (graph.empty() || !given.ok())
    return die(dir + ": no graph.pb and inputs.npz");
  auto module = compileModel(graph, *given);
  if (!module)
    return die(llvm::toString(module.takeError()));
  auto inputs = inputsOf(**module, *given);
  if (!inputs)
    return die(dir + ": " + llvm::toString(inputs.takeError()));
  const lathe_entry &entry = *(*module)->abi().entries[0];
  std::vector<Tensor> out;
  Session::Feeds feeds;
  CallableOptions names;
  for (int i = 0; i < entry.num_inputs; ++i) {
    names.feeds.push_back(entry.inputs[i]->tensor);
    feeds.emplace_back(names.feeds.back(), (*inputs)[i]);
  }
  for (int i = 0; i < entry.num_outputs; ++i)
    names.fetches.push_back(entry.outputs[i]->tensor);
  ModuleRunner bare(*module), tensors(*module);
  if (llvm::Error error = bare.prepare(*inputs))
    return die(llvm::toString(std::move(error)));

  SessionOptions how;
  how.compiler = getClusterCompiler();
  Session session(how);
  if (absl::Status s = session.Create(graph); !s.ok())
    return die(s.ToString());
  Session::CallableHandle handle;
  if (absl::Status s = session.MakeCallable(names, &handle); !s.ok())
    return die(s.ToString());
  if (absl::Status s = session.Run(feeds, names.fetches, {}, &out); !s.ok())
    return die(s.ToString());
  auto reference = tensors.call(*inputs);
  if (!reference)
    return die(llvm::toString(reference.takeError()));
  double worst = 0;
  for (size_t k = 0; k < out.size(); ++k)
    for (int64_t i = 0; out[k].dtype() == DType::Float32 && i < out[k].numElements(); ++i)
      worst = std::max<double>(worst, std::abs(out[k].data<float>()[i] - (*reference)[k].data<float>()[i]));
  std::vector<double> us = medians({[&] { llvm::consumeError(bare.run()); },
                                    [&] { llvm::consumeError(tensors.call(*inputs).takeError()); },
                                    [&] { (void)session.Run(feeds, names.fetches, {}, &out).ok(); },
                                    [&] { (void)session.RunCallable(handle, *inputs, &out).ok(); }});
  std::printf("{\"model\": \"%s\", \"module_us\": %.2f, \"module_tensors_us\": %.2f, \"session_us\": %.2f, \"callable_us\": %.2f, "
              "\"session_over_module\": %.3f, \"largest_difference\": %.2g}\n",
              dir.substr(dir.find_last_of('/') + 1).c_str(), us[0], us[1], us[2], us[3], us[2] / us[0], worst);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (int status = measure(argv[i]))
      return status;
  return argc > 1 ? 0 : die("usage: session_models DIR...");
}
