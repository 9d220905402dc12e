#include "base/Memory.h"
#include "passes/codegen/Backend.h"
#include "tools/lathe/Commands.h"
#include "tools/lathe/Device.h"
#include "tools/lathe/Sanitize.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace lathe::cli {

int fail(const std::string &text) {
  fprintf(stderr, "lathe: error: %s\n", text.c_str());
  return BadInput;
}

void startTimeout(int seconds) {
  if (seconds <= 0)
    return;
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    fprintf(stderr, "lathe: error: timeout after %d s (DEADLINE_EXCEEDED)\n", seconds);
    _exit(BadInput);
  }).detach();
}

void limitMemory(int64_t bytes) {
  if (bytes == 0)
    bytes = defaultMemoryBudget();
  setMemoryBudget(bytes);
  if (hasSanitizer()) // shadow memory counts as data
    return;
  // allocations beyond it fail, which ends the process with status 1
  rlimit limit;
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(bytes));
  setrlimit(RLIMIT_DATA, &limit);
}

void addBackend(CLI::App &app, const std::string &names, std::string &backend) {
  std::vector<std::string> known;
  for (const codegen::BackendInfo &info : codegen::backends())
    known.push_back(info.name.str());
  backend = known.front();
  app.add_option(names, backend, "Who makes kernels: cpu; plain for loops of single elements, which are slow and simple; cuda for an NVIDIA device")
      ->check(CLI::IsMember(known))
      ->capture_default_str();
}

std::string nonNegative(const std::string &text) {
  char *end = nullptr;
  const double value = strtod(text.c_str(), &end);
  return !text.empty() && !*end && std::isfinite(value) && value >= 0 ? "" : "expected a number from 0 on, found '" + text + "'";
}

static void addQuantize(CLI::App &app, QuantizeOptions &q) {
  app.add_option("--quantize", q.kind, "Post-training quantization: int8, int16x8 (16-bit activations), or of weights alone: dynamic, float16")
      ->type_name("KIND")
      ->check(CLI::IsMember({"int8", "int16x8", "dynamic", "float16"}));
  app.add_option("--calibrate", q.calibrate,
                 "Inputs to quantize for: npz files, and folders of them; errors are measured on them, too. "
                 "KEY=PATH: those of one of several entries")
      ->type_name("[KEY=]FEEDS.npz|FOLDER");
  app.add_option("--io", q.io, "Element type of quantized inputs and outputs")->check(CLI::IsMember({"float", "int8", "uint8"}))->capture_default_str();
  app.add_option("--quantized-math", q.math, "Rounding of 8-bit results: tflite, bit for bit as TensorFlow Lite's reference kernels; fast, once in f32, at most one step off")
      ->check(CLI::IsMember({"tflite", "fast"}))
      ->capture_default_str();
  app.add_option("--observer", q.observer, "How calibration takes ranges: minmax, average (of each feed's lowest and highest), percentile or entropy (of a histogram)")
      ->check(CLI::IsMember({"minmax", "average", "percentile", "entropy"}))
      ->capture_default_str();
  app.add_option("--max-error", q.maxError, "Keep nodes float until no output is off by more than this share of its range")
      ->type_name("E")
      ->check(nonNegative);
  app.add_flag("--keep-faster", q.keepFaster, "Keep nodes float that are faster so, as measured on this machine with code for --cpu");
  app.add_option("--quantize-report", q.report, "Write the table of quantized nodes as JSON")->type_name("FILE");
}

/// What code is made, and how.
void ModelArgs::addCode(CLI::App &app, const std::string &command) {
  threadsOption = app.add_option("--threads", options.threads, "Most threads that the code will use")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  if (command == "compile")
    app.add_option("--weights", options.weights, "embed, or a file for the constants")->type_name("embed|FILE")->capture_default_str();
  else if (command == "run" || command == "bench")
    weightsOption = app.add_option("--weights", options.weights, "The constants of a .so that was compiled with --weights")->type_name("FILE");
  app.add_option("--precision", options.precision,
                 "Operands of products and convolutions: f32; bf16 with f32 sums, on a device or where --cpu has AVX512_BF16; tf32, on a device")
      ->check(CLI::IsMember({"f32", "bf16", "tf32"}))
      ->capture_default_str();
  app.add_option("--arch", options.archs, "With --backend cuda: images for these architectures too, beside the one that all devices take")
      ->delimiter(',')
      ->type_name("sm_NN,...");
  app.add_option("--cubin", options.cubins,
                 "With --backend cuda: machine code for these architectures too, by ptxas (LATHE_PTXAS, PATH, CUDA_HOME/bin)")
      ->delimiter(',')
      ->type_name("sm_NN,...");
  addQuantize(app, options.quantize);
  app.add_flag("--exact", options.exact, "No algorithm that trades accuracy for speed");
  app.add_flag("--no-fuse", noFuse, "One kernel an operation");
  if (command == "compile")
    app.add_flag("--allow-host", options.allowHost, "Where operations have no compiled form, make an object that runs them by host kernels");
  if (command != "inspect") {
    app.add_option("--tune-cache", options.tuneCache,
                   "Plans of kernels that --tune found: they are used instead of estimates, and nothing is measured")
        ->type_name("FILE");
    app.add_flag("--tune", options.tune,
                 "Measure on this machine how each product and convolution is fastest, and keep it in --tune-cache");
  }
  app.add_option("--sanitize", options.sanitize,
                 "address: instrument the code and give every buffer and constant a heap block of its own")
      ->type_name("KIND")
      ->check(CLI::IsMember({"address"}));
}

void ModelArgs::add(CLI::App &app, const std::string &defaultCpu, const std::string &modelHelp) {
  options.cpu = defaultCpu;
  const std::string &command = app.get_name();
  runsCode = command == "run" || command == "bench" || command == "verify";
  app.add_option("MODEL", options.model, modelHelp)->required();
  app.add_option("--input", inputs, "Feed NAME, a signature key, tensor or node, optionally with its shape "
                                    "(1x224x224x3; ? is any size, 1..64 a bounded one)")
      ->type_name("NAME[=SHAPE]");
  outputOption = app.add_option("--output", options.outputs, "Fetch NAME: a signature key, tensor (x:0) or node (x means x:0)")
      ->type_name("NAME");
  app.add_option("--signature", options.signature, "SavedModel signature (serving_default, else the only one)")
      ->type_name("KEY");
  app.add_option("--tag", options.tag, "SavedModel tag (serve, else the only one)")->type_name("TAG");
  app.add_option("--entry", entries, "An entry point over the module's state; a TARGETS part runs for its effects")
      ->type_name("NAME=FETCHES[/TARGETS]");
  app.add_flag("--keep-variables", options.keepVariables,
               "Keep variables as state of the instance (implied by --entry) instead of freezing them");
  // of run, --target names a node
  addBackend(app, command == "run" ? "--backend" : "--backend,--target", options.backend);
  if (runsCode)
    deviceOption = addDevice(app);
  app.add_option("--triple", options.triple, "Target triple (this machine's)")->type_name("TRIPLE");
  app.add_option("--cpu", options.cpu, "host, v2, v3, v4, x86-64-v2 ... or LLVM's name of a CPU")
      ->type_name("NAME")
      ->capture_default_str();
  if (command == "compile") {
    app.add_option("--class", options.className, "C++ class of the generated header")->type_name("ns::Name");
    app.add_option("--symbol-prefix", options.symbolPrefix, "Prefix of the C symbols (from --class, else the file name)")
        ->type_name("ID");
  }
  if (command != "check") // which makes no code
    addCode(app, command);
  app.add_flag("--unknown-leading", options.unknownLeading,
               "Make the leading dimension of every input a run-time size");
  memoryOption = app.add_option("--max-memory", options.maxMemory,
                                "Bytes that the process may hold (suffixes K, M, G; nine tenths of the machine's memory)")
                     ->transform(CLI::AsSizeValue(false));
  app.add_option("--max-fold-bytes", options.maxFoldBytes, "Bytes that constant folding may produce")
      ->transform(CLI::AsSizeValue(false));
  if (!runsCode)
    options.timeoutSeconds = 3600; // running may take as long as it likes
  timeoutOption = app.add_option("--timeout", options.timeoutSeconds, "Give up after so many seconds; 0 is never")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  if (command == "compile")
    app.add_option("--compile-to", compileTo, "Stop after a phase: import, cluster, legalize, simplify, fuse, prepare, lower, emit")
      ->type_name("PHASE");
  app.add_option("--dump-dir", options.dumpDir, "Write the IR after each phase to this folder")->type_name("DIR");
  if (command == "compile")
    app.add_flag("--profile", options.profile, "Keep the table of each kernel's work in the object, and call the caller's trace around each kernel");
  app.add_flag("--timing", options.timing, "Print the time of each phase, of its passes and of the kernels by group");
  of = &app;
  ownOptions = app.get_options().size();
}

bool ModelArgs::isLibrary() const { return llvm::StringRef(options.model).ends_with(".so"); }

bool ModelArgs::fitsLibrary() {
  if (deviceOption && deviceOption->count()) {
    fail("--device: a compiled .so runs on device 0");
    return false;
  }
  const std::vector<CLI::Option *> all = of->get_options();
  for (size_t i = 0; i < ownOptions; ++i)
    if (all[i]->count() && !all[i]->get_positional() &&
        !llvm::is_contained({threadsOption, weightsOption, memoryOption, timeoutOption}, all[i])) {
      fail(all[i]->get_name() + ": " + options.model + " is compiled already");
      return false;
    }
  return true;
}

bool ModelArgs::finish() {
  if (isLibrary() && !fitsLibrary())
    return false;
  if (!isLibrary() && weightsOption && weightsOption->count()) {
    fail("--weights: " + options.model + " has its constants inside; expected a .so that was compiled with --weights");
    return false;
  }
  if (deviceOption && deviceOption->count() && !codegen::launchesKernels(options.backend)) {
    fail("--device: the kernels of this backend are not launched on a device; see --backend cuda");
    return false;
  }
  if (options.sanitize == "address" && runsCode) {
    if (!codegen::launchesKernels(options.backend) && enterSanitizer() != Fine)
      return false;
    options.profile = true; // a report names the kernel
  }
  if (!entries.empty() && outputOption->count()) {
    fail("--output: not with --entry, which says what each entry fetches");
    return false;
  }
  auto take = [](auto parsed, auto &list) {
    if (!parsed.ok()) {
      fail(std::string(parsed.status().message()));
      return false;
    }
    list.push_back(*std::move(parsed));
    return true;
  };
  for (const std::string &text : inputs)
    if (!take(parseInput(text), options.inputs))
      return false;
  for (const std::string &text : entries)
    if (!take(parseEntry(text), options.entries))
      return false;
  if (options.tune && options.tuneCache.empty()) {
    fail("--tune: expected --tune-cache FILE, which keeps what is found");
    return false;
  }
  if (options.tune && (options.precision != "f32" || !options.sanitize.empty())) {
    fail("--tune: not with another --precision than f32 or --sanitize");
    return false;
  }
  if (absl::Status wrong = checkOptions(options); !wrong.ok()) {
    fail(std::string(wrong.message()));
    return false;
  }
  if (options.maxMemory < 0 || (memoryOption && memoryOption->count() && options.maxMemory == 0) || options.maxFoldBytes < 0) {
    fail(options.maxFoldBytes < 0 ? "--max-fold-bytes: expected 0 or more bytes" : "--max-memory: expected a number of bytes");
    return false;
  }
  if (const std::string &dir = options.dumpDir; !dir.empty()) {
    std::error_code error = llvm::sys::fs::create_directories(dir);
    if (!error && !llvm::sys::fs::is_directory(dir))
      error = std::make_error_code(std::errc::not_a_directory);
    if (!error)
      error = llvm::sys::fs::access(dir, llvm::sys::fs::AccessMode::Write);
    if (error) {
      fail("--dump-dir " + dir + ": " + error.message());
      return false;
    }
  }
  options.keepVariables |= !options.entries.empty();
  options.fuse = !noFuse;
  if (!compileTo.empty()) {
    std::optional<Phase> phase = parsePhase(compileTo);
    if (!phase) {
      fail("--compile-to " + compileTo + ": no such phase");
      return false;
    }
    options.compileTo = *phase;
  }
  options.progress = isatty(STDERR_FILENO);
  startTimeout(options.timeoutSeconds); // a thread, which takes memory
  if (memoryOption)
    limitMemory(memoryOption->count() ? options.maxMemory : 0);
  return true;
}

void ModelArgs::takeShapes(const NamedTensors &feeds) {
  for (auto &[name, tensor] : feeds)
    options.fedShapes.emplace_back(name, tensor.dims());
  // calibration feeds may be of other numbers of rows
  if (!options.quantize.kind.empty())
    for (auto &[name, dims] : options.fedShapes)
      if (!dims.empty())
        dims[0] = -1;
}

std::string ModelArgs::exampleInputs(const std::vector<ImportedModel::EntryInfo> &entries) const {
  // sizes that images and sequences often have; what the graph says stays
  auto shapeOf = [](const TensorSpec &input) {
    bool image = input.dims ? input.dims->size() >= 4 : input.dtype == DType::Float32;
    std::vector<int64_t> dims = input.dims ? *input.dims : image ? std::vector<int64_t>{-1, -1, -1, 3} : std::vector<int64_t>{-1, -1};
    std::string text;
    for (size_t i = 0; i < dims.size(); ++i)
      text += (i ? "x" : "") + std::to_string(dims[i] >= 0 ? dims[i] : i == 0 ? 1 : image ? 224 : 128);
    return text;
  };
  std::vector<std::string> seen;
  std::string text;
  for (const ImportedModel::EntryInfo &entry : entries)
    for (const TensorSpec &input : entry.inputs) {
      bool open = !input.dims || std::count_if(input.dims->begin(), input.dims->end(), [](int64_t d) { return d < 0; });
      if (!open || std::find(seen.begin(), seen.end(), input.name) != seen.end())
        continue;
      seen.push_back(input.name);
      text += " --input " + input.name + "=" + shapeOf(input);
    }
  return text;
}

} // namespace lathe::cli
