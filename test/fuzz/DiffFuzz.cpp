// diff-fuzz: random graphs, compiled in several ways, against the reference evaluator. A seed names a graph for good.
//   diff-fuzz [--seed S] [--count N] [--seconds T] [--batch N] [--kind K] [--cpu NAME] [--opt-level N] [--log FILE]
//             [--sanitize] [--print] [--mlir FILE [--features LIST] [--bf16]]
//   diff-fuzz --kernels [--form PREFIX] [--seed S] [--count N] [--seconds T] [--batch N] [--log FILE] [--sanitize] [--require] [--list]
// --mlir checks the functions of a file (a reproducer) on random inputs instead.
// --kernels makes graphs around one kernel each, and tells which answers of special forms they got, on which pairs of properties;
// --require fails if one has no graph; --list prints the answers that graphs stand for.
// Prints each failing graph reduced, appends a line to the log, exits 2 if one failed.
#include "Check.h"
#include "KernelCoverage.h"

#include "compiler/emit/Target.h"
#include "compiler/jit/Tune.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/hlo/Constants.h"
#include "dialects/kernel/Kernel.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <unistd.h>

using namespace lathe;
using namespace lathe::fuzz;

namespace {

volatile uint64_t currentSeed = 0;

void onSignal(int number) {
  char text[96];
  int n = snprintf(text, sizeof(text), "diff-fuzz: signal %d in the batch from --seed %llu\n", number, (unsigned long long)currentSeed);
  [[maybe_unused]] ssize_t w = write(STDERR_FILENO, text, n);
  signal(number, SIG_DFL);
  raise(number);
}

struct Args {
  uint64_t seed = 1, count = 1000;
  double seconds = 0;
  int batch = 8;
  std::string kind, cpu, log, mlir;
  int optLevel = 0;
  std::string form, features;
  bool bf16 = false;
  bool sanitize = false, print = false, kernels = false, require = false, list = false;
};

bool parse(int argc, char **argv, Args &a) {
  for (int i = 1; i < argc; ++i) {
    std::string o = argv[i];
    if (bool *flag = o == "--sanitize"  ? &a.sanitize
                     : o == "--print"   ? &a.print
                     : o == "--kernels" ? &a.kernels
                     : o == "--require" ? &a.require
                     : o == "--list"    ? &a.list
                     : o == "--bf16"    ? &a.bf16
                                        : nullptr) {
      *flag = true;
      continue;
    }
    if (++i == argc)
      return false;
    std::string v = argv[i];
    if (o == "--seed") a.seed = strtoull(v.c_str(), nullptr, 10);
    else if (o == "--count") a.count = strtoull(v.c_str(), nullptr, 10);
    else if (o == "--seconds") a.seconds = atof(v.c_str());
    else if (o == "--batch") a.batch = std::max(1, atoi(v.c_str()));
    else if (o == "--kind") a.kind = v;
    else if (o == "--cpu") a.cpu = v;
    else if (o == "--log") a.log = v;
    else if (o == "--form") a.form = v;
    else if (o == "--features") a.features = v;
    else if (o == "--mlir") a.mlir = v;
    else if (o == "--opt-level") a.optLevel = atoi(v.c_str());
    else return false;
  }
  return true;
}

std::unique_ptr<mlir::MLIRContext> makeContext() {
  auto context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  context->loadDialect<mlir::func::FuncDialect, hlo::HloDialect, kernel::KernelDialect>();
  context->printOpOnDiagnostic(false);
  return context;
}

int checkFile(const Args &args, const CheckOptions &options) {
  auto context = makeContext();
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(args.mlir, context.get());
  if (!module)
    return 1;
  Kind kind = args.kind == "exact" ? Kind::Exact : args.kind == "real" ? Kind::Real : Kind::Elementwise;
  std::mt19937_64 random(args.seed);
  std::vector<Graph> graphs;
  for (auto f : module->getOps<mlir::func::FuncOp>()) {
    Graph g{f, {}, kind};
    for (mlir::Type type : f.getArgumentTypes()) {
      auto t = mlir::cast<mlir::RankedTensorType>(type);
      g.inputs.push_back(Tensor::allocate(hlo::toDType(t.getElementType()), {t.getShape().begin(), t.getShape().end()}));
      fillRandom(g.inputs.back(), kind, 4, random);
    }
    graphs.push_back(std::move(g));
  }
  bool failed = false;
  for (const std::string &problem : checkGraphs(*module, graphs, options)) {
    printf("%s\n", problem.empty() ? "fine" : problem.c_str());
    failed |= !problem.empty();
  }
  return failed ? 2 : 0;
}

/// Prints what is wrong with a graph, reduced.
void printFailure(const Graph &graph, const CheckOptions &options, const std::string &problem) {
  llvm::outs() << "\nFAILED " << mlir::func::FuncOp(graph.function).getSymName() << " (--kind " << kindName(graph.kind) << " --cpu "
               << options.cpu;
  if (!options.features.empty())
    llvm::outs() << " --features " << options.features;
  llvm::outs() << (options.bf16 ? " --bf16" : "") << (options.simplify ? ", simplify" : "") << "): " << problem << "\n";
  llvm::outs().flush();
  Reduced r = reduceGraph(graph, options);
  llvm::outs() << "reduced: " << r.problem << "\n";
  r.module->print(llvm::outs());
  for (const Tensor &t : r.graph.inputs)
    llvm::outs() << "input " << describe(t) << "\n";
  llvm::outs().flush();
}

void finishLine(const Args &args, const std::string &text) {
  char date[32];
  time_t now = time(nullptr);
  strftime(date, sizeof(date), "%Y-%m-%d %H:%M ", gmtime(&now));
  const std::string line = date + text + (args.sanitize ? ", --sanitize" : "");
  printf("%s\n", line.c_str());
  if (!args.log.empty())
    std::ofstream(args.log, std::ios::app) << line << "\n";
}

/// Whether this machine runs what is compiled for a level.
bool runsHere(const KernelLevel &level) {
  EmitOptions options;
  options.cpu = level.cpu;
  options.features = level.features;
  options.bf16 = level.bf16;
  auto target = resolveTarget(options);
  if (target)
    return whyNotHere(*target).empty();
  llvm::consumeError(target.takeError());
  return false;
}

int fuzzKernels(const Args &args, llvm::function_ref<double()> elapsed) {
  llvm::SmallVector<bool> available;
  // Cases that few kinds of batches take come as often as all others together, so that a short run sees each.
  struct Batch {
    const KernelLevel *level;
    Kind kind;
    bool here;
    std::vector<const KernelCase *> rare, common;
    const KernelCase &caseOf(uint64_t n, uint64_t first) const {
      if (rare.empty() || common.empty())
        return *(rare.empty() ? common[(n + first) % common.size()] : rare[n % rare.size()]);
      return n % 2 ? *rare[n / 2 % rare.size()] : *common[(n / 2 + first) % common.size()];
    }
  };
  std::vector<Batch> kinds;
  for (const KernelLevel &level : kernelLevels()) {
    available.push_back(runsHere(level));
    for (Kind kind : {Kind::Exact, Kind::Real, Kind::Elementwise}) {
      if (level.bf16 && kind != Kind::Exact)
        continue;
      Batch batch{&level, kind, available.back(), {}, {}};
      for (const KernelCase &c : kernelCases())
        if (c.fits(level, kind) && llvm::StringRef(c.form).starts_with(args.form))
          (c.needs & (rounded | vnni | amx) ? batch.rare : batch.common).push_back(&c);
      kinds.push_back(batch);
    }
  }
  if (args.list) {
    for (const KernelCase &c : kernelCases())
      printf("%s: %s\n", c.form, *c.reason ? c.reason : "taken");
    return 0;
  }
  KernelCoverage coverage;
  std::unique_ptr<mlir::MLIRContext> context;
  uint64_t graphs = 0, failures = 0, batches = 0, last = args.seed;
  const uint64_t end = args.seed + args.count, most = 8;
  for (uint64_t seed = args.seed; seed < end && (args.seconds <= 0 || elapsed() < args.seconds);) {
    // eight seeds after each other are of one level and kind, each next one of the next case
    const uint64_t group = seed / most;
    const Batch &batch = kinds[group % kinds.size()];
    if (!batch.here || (batch.rare.empty() && batch.common.empty())) {
      seed = (group + 1) * most;
      continue;
    }
    if (batches++ % 32 == 0) {
      context = makeContext();
      coverage.listenTo(*context);
    }
    currentSeed = seed;
    CheckOptions options;
    options.cpu = batch.level->cpu;
    options.features = batch.level->features;
    options.bf16 = batch.level->bf16;
    options.optLevel = args.optLevel;
    options.exact = batch.kind == Kind::Exact;
    options.simplify = options.exact && group / kinds.size() % 3 == 2;
    options.sanitize = args.sanitize ? "address" : "";
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
    std::vector<Graph> made;
    for (int i = 0; i < args.batch && seed < end && seed / most == group; ++i, ++seed) {
      const KernelCase &c = batch.caseOf(group / kinds.size() * most + seed % most,
                                         group % kinds.size() * batch.common.size() / kinds.size());
      const std::string name = "g" + std::to_string(seed);
      KernelGraph g(*module, name, seed, batch.kind, *batch.level);
      if (!c.make(g)) { // what was drawn does not stay exact, or is too large
        g.function.erase();
        continue;
      }
      const std::string rank = g.cell[1];
      g.epilogue();
      g.join();
      g.cell[1] = rank;
      coverage.drawn(name, c, g.cell, *batch.level);
      made.push_back(g.finish());
    }
    if (args.print)
      module->print(llvm::outs());
    if (made.empty())
      continue;
    std::vector<std::string> problems = checkGraphs(*module, made, options);
    coverage.count();
    graphs += made.size();
    coverage.setListening(false);
    for (size_t i = 0; i < made.size(); ++i)
      if (!problems[i].empty()) {
        ++failures;
        printFailure(made[i], options, problems[i]);
      }
    coverage.setListening(true);
    last = seed;
  }
  const int missing = coverage.report(available, args.form);
  llvm::outs().flush();
  char text[160];
  snprintf(text, sizeof(text), "kernel code%s%s: graphs %llu-%llu, %llu of them compiled, %llu failed, %d answers without one, %.0f s",
           args.form.empty() ? "" : " ", args.form.c_str(), (unsigned long long)args.seed, (unsigned long long)(last - 1),
           (unsigned long long)graphs, (unsigned long long)failures, missing, elapsed());
  finishLine(args, text);
  return failures || (args.require && missing) ? 2 : 0;
}

} // namespace

int main(int argc, char **argv) {
  Args args;
  if (!parse(argc, argv, args)) {
    fprintf(stderr, "diff-fuzz: bad arguments; see the head of test/fuzz/DiffFuzz.cpp\n");
    return 1;
  }
  for (int s : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS})
    signal(s, onSignal);
  if (!args.mlir.empty()) {
    CheckOptions options;
    options.cpu = args.cpu.empty() ? "host" : args.cpu;
    options.features = args.features;
    options.bf16 = args.bf16;
    options.optLevel = args.optLevel;
    options.sanitize = args.sanitize ? "address" : "";
    options.simplify = options.exact = args.kind == "exact";
    return checkFile(args, options);
  }
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  if (args.kernels)
    return fuzzKernels(args, elapsed);
  uint64_t graphs = 0, failures = 0, ops = 0, byKind[3] = {};
  std::unique_ptr<mlir::MLIRContext> context;
  uint64_t end = args.seed + args.count;
  for (uint64_t seed = args.seed, batches = 0; seed < end && (args.seconds <= 0 || elapsed() < args.seconds); ++batches) {
    if (batches % 32 == 0)
      context = makeContext(); // attributes are never freed
    currentSeed = seed;
    // all of a batch hangs on its number, so that a graph is the same in a batch of any size
    uint64_t group = seed / 64;
    static const Kind kinds[] = {Kind::Exact, Kind::Elementwise, Kind::Exact, Kind::Real, Kind::Exact, Kind::Elementwise};
    Kind kind = kinds[group % std::size(kinds)];
    for (Kind k : kinds)
      if (args.kind == kindName(k))
        kind = k;
    CheckOptions options;
    static const char *cpus[] = {"host", "host", "host", "x86-64-v3", "host", "host", "x86-64-v2"};
    options.cpu = args.cpu.empty() ? cpus[group % std::size(cpus)] : args.cpu;
    options.optLevel = args.optLevel;
    options.simplify = kind == Kind::Exact && group % 4 != 2;
    options.exact = kind == Kind::Exact;
    options.sanitize = args.sanitize ? "address" : "";
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
    std::vector<Graph> batch;
    for (int i = 0; i < args.batch && seed < end && seed / 64 == group; ++i, ++seed)
      batch.push_back(generateGraph(*module, "g" + std::to_string(seed), seed, kind));
    if (args.print)
      module->print(llvm::outs());
    for (Graph &g : batch)
      ops += g.function.front().getOperations().size() - 1;
    std::vector<std::string> problems = checkGraphs(*module, batch, options);
    graphs += batch.size();
    byKind[int(kind)] += batch.size();
    for (size_t i = 0; i < batch.size(); ++i) {
      if (problems[i].empty())
        continue;
      ++failures;
      printFailure(batch[i], options, problems[i]);
    }
  }
  char line[256];
  snprintf(line, sizeof(line), "seeds %llu-%llu: %llu graphs (%llu exact, %llu elementwise, %llu real), %llu ops, %llu failed, %.0f s",
           (unsigned long long)args.seed, (unsigned long long)(args.seed + graphs - 1), (unsigned long long)graphs,
           (unsigned long long)byKind[0], (unsigned long long)byKind[1], (unsigned long long)byKind[2],
           (unsigned long long)ops, (unsigned long long)failures, elapsed());
  finishLine(args, line);
  return failures ? 2 : 0;
}
