// lathe run: one execution, npy/npz in and npz out. What does not compile as a whole runs in a session.
#include "tools/lathe/HostRun.h"
#include "tools/lathe/PartsRun.h"
#include "tools/lathe/Session.h"
#include "tools/lathe/Tensors.h"

#include "base/Npz.h"
#include "compiler/frontend/Frontend.h"

#include "llvm/Support/FileSystem.h"

namespace lathe::cli {
namespace {

struct RunArgs {
  ModelArgs model;
  std::vector<std::string> feeds, fetches, targets;
  std::string npz, out, entry;
  bool session = false;
};

/// Without --fetch: a signature's key, else (the name is the node's) the tensor's name.
std::string outputKey(const lathe_tensor_info &info) {
  std::string tensor = info.tensor;
  return tensor.substr(0, tensor.rfind(':')) == info.name ? tensor : info.name;
}

int write(const RunArgs &a, const NamedTensors &result) {
  if (!a.out.empty()) {
    absl::Status s = writeNpz(a.out, result);
    if (!s.ok())
      return fail(std::string(s.message()));
  } else {
    for (auto &[name, t] : result)
      printf("%s: %s%s\n", name.c_str(), dtypeName(t.dtype()), dimsToString(t.dims()).c_str());
  }
  return Fine;
}

/// Runs the model by host kernels and clusters; results under the names that compiled code would give them.
bool runsInSession(const RunArgs &a, const lathe_entry &entry, const NamedTensors &feeds, NamedTensors *result) {
  std::vector<std::string> fetches = a.fetches, keys = a.fetches;
  bool named = llvm::sys::fs::is_directory(a.model.options.model);
  for (int i = 0; a.fetches.empty() && i < entry.num_outputs; ++i) {
    keys.push_back(outputKey(*entry.outputs[i]));
    fetches.push_back(named ? keys.back() : entry.outputs[i]->tensor);
  }
  std::string why; // the compiled code's error is the one to show
  if (runInSession(a.model, feeds, fetches, a.targets, result, &why) != Fine || result->size() != keys.size())
    return false;
  for (size_t i = 0; i < keys.size(); ++i)
    (*result)[i].first = keys[i];
  return true;
}

int execute(RunArgs &a) {
  const bool isLibrary = a.model.isLibrary();
  if (!isLibrary)
    for (const std::string &f : a.fetches)
      a.model.options.outputs.push_back(f);
  a.model.options.targets = a.targets;
  if (!a.model.finish())
    return BadInput;
  auto feeds = readFeeds(a.feeds, a.npz);
  if (!feeds.ok())
    return fail(std::string(feeds.status().message()));
  a.model.takeShapes(*feeds);
  if (isLibrary && !a.targets.empty())
    return fail("--target runs a node of a graph, not of a compiled .so");
  if (a.session) {
    NamedTensors result;
    if (isLibrary)
      return fail("--session runs a graph, not a compiled .so");
    int ran = runInSession(a.model, *feeds, a.fetches, a.targets, &result);
    return ran == Fine ? write(a, result) : ran;
  }
  Loaded loaded;
  std::string why;
  if (int status = load(a.model, loaded, isLibrary ? nullptr : &why)) {
    NamedTensors result;
    if (!isLibrary && frontendOfFile(a.model.options.model).entersAfter() == Phase::Legalize) {
      // strings, tables, and sizes that depend on data in a way that has no bound
      std::string another;
      result = runInParts(a.model, *feeds, a.fetches, another);
      if (another.empty())
        return write(a, result);
      fprintf(stderr, "%s%s\n", why.c_str(), why.find(another) == std::string::npos ? ("run in parts: " + another).c_str() : "");
      return status;
    }
    std::string another; // a value that compiling wants to know is known to a session
    bool wantsValue = why.find("known at compile time") != std::string::npos || why.find("compile-time constant") != std::string::npos;
    if (!isForSession(a.model.options.model, why) && !(wantsValue && runInSession(a.model, *feeds, a.fetches, a.targets, &result, &another) == Fine)) {
      fprintf(stderr, "%s", why.c_str());
      return status;
    }
    int ran = isForSession(a.model.options.model, why) ? runInSession(a.model, *feeds, a.fetches, a.targets, &result) : Fine;
    return ran == Fine ? write(a, result) : ran;
  }
  const lathe_module &m = loaded.module->abi();
  int entry = 0;
  if (!a.entry.empty()) {
    for (entry = 0; entry < m.num_entries && a.entry != m.entries[entry]->name;)
      ++entry;
    if (entry == m.num_entries)
      return fail("no entry '" + a.entry + "'");
  }
  const lathe_entry &e = *m.entries[entry];

  auto inSession = [&](const std::string &error) {
    NamedTensors result;
    if (isLibrary || m.num_variables || !a.entry.empty() || !runsInSession(a, e, *feeds, &result))
      return fail(error);
    fprintf(stderr, "%s; ran in a session instead\n", error.c_str());
    return write(a, result);
  };
  auto inputs = orderInputs(e, *feeds);
  if (!inputs.ok()) // a session takes feeds of any tensor, those too that nothing fetched needs
    return inSession(std::string(inputs.status().message()));
  Runner runner(loaded.module, entry, a.model.options.threads);
  auto outputs = runner->call(*inputs);
  if (!outputs) // compiled code takes sizes for equal, and lists for bounded, that host kernels do not
    return inSession(llvm::toString(outputs.takeError()));

  NamedTensors result;
  if (a.fetches.empty()) {
    for (int i = 0; i < e.num_outputs; ++i)
      result.emplace_back(outputKey(*e.outputs[i]), (*outputs)[i]);
  }
  for (const std::string &f : a.fetches) {
    int i = findTensor(e.outputs, e.num_outputs, f);
    if (i < 0)
      return fail("fetch '" + f + "' is no output of the compiled module");
    result.emplace_back(f, (*outputs)[i]);
  }
  return write(a, result);
}

} // namespace

Command addRun(CLI::App &root) {
  auto a = std::make_shared<RunArgs>();
  CLI::App *app = root.add_subcommand("run", "Run a model or a compiled .so once on arrays from files");
  a->model.add(*app, "host", "A model, or a .so that lathe compile made");
  app->add_option("--feed", a->feeds, "Feed one input")->type_name("NAME=FILE.npy");
  app->add_option("--feeds", a->npz, "Feed every array of an npz, each under its own name")->type_name("FILE.npz");
  app->add_option("--fetch", a->fetches, "Fetch NAME: key, tensor or node; the key in --out is NAME as typed")
      ->type_name("NAME");
  app->add_option("--target", a->targets, "Run NODE for its effects")->type_name("NODE");
  app->add_flag("--session", a->session, "Run in a session, whether or not the graph compiles as a whole");
  app->add_option("--run-entry", a->entry, "Which entry of the module to run (the first)")->type_name("NAME");
  app->add_option("--out", a->out, "Write the results here; without it their shapes are printed")->type_name("FILE.npz");
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
