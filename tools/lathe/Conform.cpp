// lathe conform: the adapter of the conformance corpus. Every case is compiled (once per distinct step), run step by step
// over one state, and its fetches are written beside it. A case that does not compile as a whole runs in a session: host
// kernels with compiled clusters between them.
#include "tools/lathe/Device.h"
#include "tools/lathe/Reference.h"
#include "tools/lathe/Sanitize.h"
#include "tools/lathe/Session.h"
#include "tools/lathe/Tensors.h"

#include "compiler/jit/ClusterCompiler.h"
#include "compiler/jit/Tune.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"
#include "passes/codegen/Backend.h"
#include "runtime/abi/cuda_abi.h"
#include "runtime/cuda/driver/driver.h"
#include "runtime/session/Session.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>

namespace lathe::cli {
namespace {

using Json = nlohmann::json;

struct ConformArgs {
  std::string cases, report;
  std::vector<std::string> single; ///< graph.pb feeds.npz out.npz FETCH...
  bool unknownShapes = false, constFeeds = false, noFuse = false, checkShapes = false;
  int threads = 1, optLevel = 1;
  int64_t maxFoldBytes = CompilerOptions().maxFoldBytes;
  bool session = false, noSession = false;
  int clusterMode = 1;
  std::string sanitize, backend, cpu = "host";
  std::string lacking;   ///< why this machine does not run code for `cpu`: it is compiled alone
  std::string reference; ///< evaluate after this phase instead of compiling
};

/// How a case ended.
struct Outcome {
  std::string status = "ok", message;
  std::string ran; ///< of its steps the one with the least compiled: "whole", "clusters" or "host"
  int64_t kernels = 0; ///< in the objects that its steps made
  std::set<std::string> fallbacks; ///< special forms that these lack, and why
};

/// What the ops without a compiled form say; see LegalizeContext.
bool saysUnsupported(const std::string &message) {
  return message.find("no compiled form") != std::string::npos || message.find("not supported") != std::string::npos ||
         message.find("UNIMPLEMENTED") != std::string::npos;
}

/// How the message of a case begins that is compiled for a level which this machine lacks.
constexpr const char *skipped = "compiled, but not run: ";

class Case {
public:
  Case(const ConformArgs &args, std::string graph) : args(args), graph(std::move(graph)) {}

  /// One execution; outputs in fetch order.
  llvm::Expected<std::vector<Tensor>> step(const NamedTensors &feeds, const std::vector<std::string> &fetches,
                                           const std::vector<std::string> &targets);

  /// What the steps so far ran on; as Outcome::ran.
  llvm::StringRef ran() const { return hostOnly ? "host" : session ? "clusters" : "whole"; }

  /// How many kernels the objects of the steps so far hold. A graph that only hands on constants and what it is fed has none.
  int64_t kernels() const { return heldKernels; }
  /// Special forms that kernels of the objects would have, and what each lacks.
  const std::set<std::string> &fallbacks() const { return foundFallbacks; }

private:
  struct Step {
    NamedTensors feeds;
    std::vector<std::string> fetches, targets;
  };
  llvm::Expected<std::vector<Tensor>> compiledStep(const Step &s);
  llvm::Expected<std::vector<Tensor>> sessionStep(const Step &s);
  llvm::Error startSession();

  CompilerOptions makeOptions(const NamedTensors &feeds, const std::vector<std::string> &fetches,
                              const std::vector<std::string> &targets, bool fixShapes) const;
  struct Compiled {
    std::string key;
    std::shared_ptr<LoadedModule> module;
  };
  llvm::Expected<std::shared_ptr<LoadedModule>> compile(const NamedTensors &feeds, const std::vector<std::string> &fetches,
                                                        const std::vector<std::string> &targets, bool fixShapes);

  const ConformArgs &args;
  std::string graph;
  std::vector<Compiled> compiled;
  NamedTensors variables; ///< by name, carried from step to step
  std::vector<Step> past; ///< for a session that takes over later
  std::unique_ptr<lathe::Session> session;
  bool hostOnly = false; ///< a step of the session launched no compiled cluster
  int64_t heldKernels = 0;
  std::set<std::string> foundFallbacks;
};

/// Small integers: what shapes, axes and permutations are fed as.
bool mayBeShape(const Tensor &t) {
  return isInteger(t.dtype()) && t.numElements() <= 1024;
}

/// Says that an operand fixes a shape and is not known when compiling.
bool wantsConstant(const std::string &message) {
  return message.find("compile-time constant") != std::string::npos ||
         message.find("known at compile time") != std::string::npos;
}

CompilerOptions Case::makeOptions(const NamedTensors &feeds, const std::vector<std::string> &fetches,
                                  const std::vector<std::string> &targets, bool fixShapes) const {
  CompilerOptions o;
  for (auto &[name, tensor] : feeds) {
    if (args.constFeeds || (fixShapes && mayBeShape(tensor))) {
      o.constantFeeds.emplace_back(name, tensor);
      continue;
    }
    InputSpec input;
    input.name = name;
    input.dims.emplace();
    for (int64_t d : tensor.dims()) {
      DimSpec dim;
      dim.size = args.unknownShapes ? -1 : d;
      input.dims->push_back(dim);
    }
    o.inputs.push_back(std::move(input));
  }
  o.outputs = fetches;
  o.targets = targets;
  o.keepVariables = true;
  o.onlyListedInputs = true;
  o.backend = args.backend;
  o.cpu = args.cpu;
  o.fuse = !args.noFuse;
  o.checkShapes = args.checkShapes;
  o.optLevel = args.optLevel;
  o.threads = args.threads;
  o.maxFoldBytes = args.maxFoldBytes;
  o.sanitize = args.sanitize;
  o.profile = !args.sanitize.empty();
  o.symbolPrefix = "conform_case";
  o.maxMemory = int64_t(4) << 30;
  return o;
}

llvm::Expected<std::shared_ptr<LoadedModule>> Case::compile(const NamedTensors &feeds,
                                                            const std::vector<std::string> &fetches,
                                                            const std::vector<std::string> &targets, bool fixShapes) {
  CompilerOptions o = makeOptions(feeds, fetches, targets, fixShapes);
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  CollectedDiagnostics diagnostics(*context);
  Compiler compiler(*context, o);
  auto failed = [&](llvm::Error error) -> llvm::Error {
    std::string text = diagnostics.text();
    if (error) {
      std::string more = llvm::toString(std::move(error));
      if (text.empty())
        text = more;
    }
    return llvm::createStringError(text.empty() ? std::string("failed without a message") : text);
  };
  if (mlir::failed(compiler.importBytes(graph)))
    return failed(llvm::Error::success());
  auto artifact = compiler.emit();
  if (!artifact)
    return failed(artifact.takeError());
  heldKernels += artifact->report.kernels;
  for (const auto &[form, kernels] : artifact->report.fallbacks)
    foundFallbacks.insert(form);
  return loadObject(artifact->object, artifact->prefix);
}

llvm::Error toError(const absl::Status &status) {
  // without the payloads, which ToString prints
  return llvm::createStringError(absl::StatusCodeToString(status.code()) + ": " + std::string(status.message()));
}

/// A session in the state after the steps so far.
llvm::Error Case::startSession() {
  SessionOptions options;
  options.compiler = getClusterCompiler();
  options.clusterMode = args.clusterMode;
  options.intraOpThreads = args.threads;
  options.interOpThreads = 2;
  options.clusterCpu = args.cpu;
  useBackend(options, args.backend);
  session = std::make_unique<lathe::Session>(options);
  absl::Status created = session->Create(graph);
  if (!created.ok())
    return toError(created);
  for (const Step &s : past)
    if (auto done = sessionStep(s); !done)
      return done.takeError();
  return llvm::Error::success();
}

llvm::Expected<std::vector<Tensor>> Case::sessionStep(const Step &s) {
  std::vector<Tensor> outputs;
  RunOptions options;
  options.traceLevel = RunOptions::SoftwareTrace;
  RunMetadata metadata;
  absl::Status status = session->Run(options, s.feeds, s.fetches, s.targets, &outputs, &metadata);
  if (!status.ok())
    return toError(status);
  hostOnly |= std::none_of(metadata.stepStats.begin(), metadata.stepStats.end(),
                           [](const NodeExecStats &node) { return node.op == "LatheLaunch"; });
  return outputs;
}

llvm::Expected<std::vector<Tensor>> Case::step(const NamedTensors &feeds, const std::vector<std::string> &fetches,
                                               const std::vector<std::string> &targets) {
  Step s{feeds, fetches, targets};
  // programs compiled ahead of time take every variable for initialised; here a step may ask before it is
  bool asks = !args.noSession && args.reference.empty() && (graph.find("VarIsInitializedOp") != std::string::npos ||
                                                            graph.find("IsVariableInitialized") != std::string::npos);
  if (!asks && !session && !args.session) {
    auto outputs = compiledStep(s);
    if (outputs || args.noSession || !args.lacking.empty() || !args.reference.empty()) {
      past.push_back(std::move(s));
      return outputs;
    }
    std::string why = llvm::toString(outputs.takeError());
    llvm::Error begun = startSession();
    auto hosted = begun ? llvm::Expected<std::vector<Tensor>>(std::move(begun)) : sessionStep(s);
    if (!hosted)
      return llvm::createStringError(llvm::toString(hosted.takeError()) + " (compiled as a whole: " + why + ")");
    return hosted;
  }
  if (!session)
    if (llvm::Error begun = startSession())
      return std::move(begun);
  return sessionStep(s);
}

llvm::Expected<std::vector<Tensor>> Case::compiledStep(const Step &s) {
  const NamedTensors &feeds = s.feeds;
  const std::vector<std::string> &fetches = s.fetches, &targets = s.targets;
  if (auto phase = parsePhase(args.reference))
    return evaluateStep(makeOptions(feeds, fetches, targets, false), graph, *phase, feeds, variables);
  // Fed shapes and axes become constants of the module where it cannot do without, as in any ahead-of-time use.
  auto keyOf = [&](bool fixShapes) {
    std::string key = fixShapes ? "fixed;" : "";
    for (auto &[name, t] : feeds) {
      key += name + dtypeName(t.dtype()) + (args.unknownShapes ? std::to_string(t.rank()) : dimsToString(t.dims())) + ";";
      if (args.constFeeds || (fixShapes && mayBeShape(t)))
        key.append(static_cast<const char *>(t.data()), t.sizeBytes());
    }
    for (const std::string &f : fetches)
      key += "|" + f;
    for (const std::string &t : targets)
      key += "^" + t;
    return key;
  };
  std::shared_ptr<LoadedModule> module;
  for (bool fixShapes : {false, true}) {
    std::string key = keyOf(fixShapes);
    for (Compiled &c : compiled)
      if (c.key == key)
        module = c.module;
    if (module)
      break;
    auto made = compile(feeds, fetches, targets, fixShapes);
    if (made) {
      module = *made;
      compiled.push_back({key, module});
      break;
    }
    std::string message = llvm::toString(made.takeError());
    if (fixShapes || args.constFeeds || !wantsConstant(message))
      return llvm::createStringError(message);
  }

  if (!args.lacking.empty())
    return llvm::createStringError(skipped + args.lacking);
  const lathe_module &m = module->abi();
  const lathe_entry &e = *m.entries[0];
  std::vector<Tensor> inputs(e.num_inputs);
  for (int i = 0; i < e.num_inputs; ++i) {
    for (auto &[name, t] : feeds)
      if (name == e.inputs[i]->name || name == e.inputs[i]->tensor)
        inputs[i] = t;
    if (!inputs[i].valid())
      return llvm::createStringError(std::string("input '") + e.inputs[i]->name + "' is not fed");
  }

  // the state lives here, since each step may have a module of its own
  void *const *slots = module->variables();
  auto find = [&](int i) {
    return std::find_if(variables.begin(), variables.end(),
                        [&](auto &v) { return v.first == m.variables[i]->tensor->name; });
  };
  auto bytesOf = [&](int i) {
    const lathe_tensor_info &t = *m.variables[i]->tensor;
    int64_t n = t.element_size;
    for (int d = 0; d < t.rank; ++d)
      n *= t.dims[d];
    return n;
  };
  for (int i = 0; i < m.num_variables; ++i) {
    const lathe_tensor_info &t = *m.variables[i]->tensor;
    if (std::any_of(t.dims, t.dims + t.rank, [](int64_t d) { return d < 0; }))
      return llvm::createStringError(std::string("variable '") + t.name + "' has no fixed shape (UNIMPLEMENTED)");
    auto v = find(i);
    if (v == variables.end())
      continue;
    if (v->second.sizeBytes() != bytesOf(i))
      return llvm::createStringError(std::string("variable '") + v->first + "' changed its shape between steps");
    std::memcpy(slots[i], v->second.data(), v->second.sizeBytes());
  }
  Runner runner(module, 0, args.threads);
  auto outputs = runner->call(inputs);
  for (int i = 0; i < m.num_variables; ++i) {
    const lathe_tensor_info &t = *m.variables[i]->tensor;
    auto v = find(i);
    if (v == variables.end()) {
      std::vector<int64_t> dims(t.dims, t.dims + t.rank);
      variables.emplace_back(t.name, Tensor::allocate(static_cast<DType>(t.dtype), dims));
      v = variables.end() - 1;
    }
    std::memcpy(v->second.data(), slots[i], v->second.sizeBytes());
  }
  return outputs;
}

std::string readText(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

Outcome runCase(const ConformArgs &args, const std::string &dir) {
  Outcome outcome;
  auto failWith = [&](const std::string &message) {
    outcome.status = llvm::StringRef(message).starts_with(skipped) ? "skipped" : saysUnsupported(message) ? "unsupported" : "error";
    outcome.message = message.substr(0, 2000);
    return outcome;
  };
  Json meta = Json::parse(readText(dir + "/case.json"), nullptr, false);
  if (meta.is_discarded() || !meta.contains("steps"))
    return failWith("case.json does not parse");
  Case c(args, readText(dir + "/graph.pb"));
  int s = 0;
  for (const Json &step : meta["steps"]) {
    NamedTensors feeds;
    for (auto &[name, file] : step["feeds"].items()) {
      std::string f = file.get<std::string>();
      auto t = readTensorFile(dir + "/" + f, parseDType(meta["dtypes"].value(f, std::string("float32"))));
      if (!t.ok())
        return failWith(std::string(t.status().message()));
      feeds.emplace_back(name, *std::move(t));
    }
    auto fetches = step["fetches"].get<std::vector<std::string>>();
    auto outputs = c.step(feeds, fetches, step.value("targets", std::vector<std::string>()));
    if (!outputs)
      return failWith(llvm::toString(outputs.takeError()));
    for (size_t i = 0; i < fetches.size(); ++i) {
      std::string stem = dir + "/actual_" + std::to_string(s) + "_" + std::to_string(i);
      absl::Status written = writeTensorFile(stem, (*outputs)[i]);
      if (!written.ok())
        return failWith(std::string(written.message()));
    }
    ++s;
  }
  outcome.ran = c.ran();
  outcome.kernels = c.kernels();
  outcome.fallbacks = c.fallbacks();
  return outcome;
}

/// Keeps the first device's context between cases, each of which would make it and give it back. Without a device the cases tell.
class HeldContext {
public:
  HeldContext() {
    char message[256];
    const lathe_cuda_driver *found = lathe_cuda_open(message, sizeof(message));
    lathe_cu_context context = nullptr;
    if (found && !found->cuDeviceGet(&device, 0) && !found->cuDevicePrimaryCtxRetain(&context, device))
      driver = found;
  }
  HeldContext(const HeldContext &) = delete;
  HeldContext &operator=(const HeldContext &) = delete;
  ~HeldContext() {
    if (driver)
      driver->cuDevicePrimaryCtxRelease(device);
  }

private:
  const lathe_cuda_driver *driver = nullptr;
  lathe_cu_device device = 0;
};

int runBatch(const ConformArgs &args) {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(args.cases, error), end; it != end && !error; it.increment(error))
    if (llvm::sys::fs::exists(it->path() + "/case.json"))
      names.push_back(llvm::sys::path::filename(it->path()).str());
  if (error)
    return fail("cannot read " + args.cases + ": " + error.message());
  std::sort(names.begin(), names.end());
  std::ofstream report(args.report, std::ios::app);
  if (!report)
    return fail("cannot write " + args.report);
  std::optional<HeldContext> held;
  if (codegen::launchesKernels(args.backend))
    held.emplace();
  auto say = [&](const Json &line) { report << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl; };
  for (const std::string &name : names) {
    say({{"name", name}, {"status", "start"}});
    const int64_t launches = lathe_cuda_launches_2();
    Outcome o = runCase(args, args.cases + "/" + name);
    Json line = {{"name", name}, {"status", o.status}};
    if (!o.message.empty())
      line["message"] = o.message;
    if (!o.ran.empty())
      line["ran"] = o.ran;
    if (!o.fallbacks.empty())
      line["fallbacks"] = o.fallbacks;
    if (codegen::launchesKernels(args.backend)) {
      line["launches"] = lathe_cuda_launches_2() - launches;
      if (o.ran == "whole")
        line["kernels"] = o.kernels;
    }
    say(line);
  }
  return Fine;
}

int runSingle(const ConformArgs &args) {
  if (args.single.size() < 4)
    return fail("conform: expected --cases DIR --report FILE, or GRAPH FEEDS OUT FETCH...");
  auto feeds = readNpz(args.single[1]);
  if (!feeds.ok())
    return fail(std::string(feeds.status().message()));
  Case c(args, readText(args.single[0]));
  std::vector<std::string> fetches(args.single.begin() + 3, args.single.end());
  auto outputs = c.step(*feeds, fetches, {});
  if (!outputs)
    return fail(outputs.takeError());
  NamedTensors named;
  for (size_t i = 0; i < fetches.size(); ++i)
    named.emplace_back(fetches[i], (*outputs)[i]);
  absl::Status written = writeNpz(args.single[2], named);
  return written.ok() ? Fine : fail(std::string(written.message()));
}

} // namespace

Command addConform(CLI::App &root) {
  auto a = std::make_shared<ConformArgs>();
  CLI::App *app = root.add_subcommand("conform", "Run conformance cases (the adapter of the corpus' runner)");
  app->add_option("--cases", a->cases, "Folder of case folders")->type_name("DIR");
  app->add_option("--report", a->report, "Append a JSON line per case to this file")->type_name("FILE");
  app->add_option("SINGLE", a->single, "Single mode: GRAPH.pb FEEDS.npz OUT.npz FETCH...");
  app->add_flag("--unknown-shapes", a->unknownShapes, "Compile with every fed dimension unknown");
  app->add_flag("--const-feeds", a->constFeeds, "Compile the fed values in as constants");
  app->add_flag("--no-fuse", a->noFuse, "One kernel an operation");
  app->add_flag("--check-shapes", a->checkShapes, "Compare what nodes become with what their shape functions say");
  app->add_option("--reference", a->reference, "Evaluate what this phase makes of the graph, without compiling")
      ->check(CLI::IsMember({"legalize", "simplify", "fuse"}));
  app->add_flag("--session", a->session, "Run every case in a session");
  app->add_flag("--no-session", a->noSession, "Do not fall back to a session where a case does not compile as a whole");
  app->add_option("--cluster-mode", a->clusterMode, "Of sessions: 0 compiles what has no host kernel, 1 what is worth it, 2 node by node")
      ->check(CLI::Range(0, 2));
  app->add_option("--cpu", a->cpu, "Level or LLVM's name, for clusters of sessions too; cases for one that this machine lacks are compiled, and skipped")
      ->capture_default_str();
  app->add_option("--sanitize", a->sanitize, "address: run instrumented code, buffers apart")
      ->check(CLI::IsMember({"address"}));
  addBackend(*app, "--backend", a->backend);
  addDevice(*app);
  app->add_option("--max-fold-bytes", a->maxFoldBytes, "Bytes that constant folding may produce")
      ->transform(CLI::AsSizeValue(false));
  app->add_option("--threads", a->threads, "Threads")->check(CLI::Range(1, 64));
  app->add_option("--opt-level", a->optLevel, "LLVM's optimisation level")->check(CLI::Range(0, 3))->capture_default_str();
  return [a] {
    EmitOptions level;
    level.cpu = a->cpu;
    auto target = resolveTarget(level);
    if (!target)
      return fail(target.takeError());
    a->lacking = whyNotHere(*target);
    if (!a->sanitize.empty() && !codegen::launchesKernels(a->backend))
      if (int status = enterSanitizer())
        return status;
    limitMemory(0);
    return a->cases.empty() ? runSingle(*a) : runBatch(*a);
  };
}

} // namespace lathe::cli
