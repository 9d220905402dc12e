// diff-fuzz: random graphs, compiled in several ways, against the reference evaluator. A seed names a graph for good.
//   diff-fuzz [--seed S] [--count N] [--seconds T] [--batch N] [--kind K] [--cpu NAME] [--opt-level N] [--log FILE]
//             [--sanitize] [--print] [--mlir FILE]
// --mlir checks the functions of a file (a reproducer) on random inputs instead.
// Prints each failing graph reduced, appends a line to the log, exits 2 if one failed.
#include "Check.h"

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
  bool sanitize = false, print = false;
};

bool parse(int argc, char **argv, Args &a) {
  for (int i = 1; i < argc; ++i) {
    std::string o = argv[i];
    if (o == "--sanitize" || o == "--print") {
      (o == "--print" ? a.print : a.sanitize) = true;
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
    options.optLevel = args.optLevel;
    options.sanitize = args.sanitize ? "address" : "";
    options.simplify = options.exact = args.kind == "exact";
    return checkFile(args, options);
  }
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
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
      llvm::outs() << "\nFAILED " << batch[i].function.getSymName() << " (" << kindName(kind) << ", cpu " << options.cpu
                   << (options.simplify ? ", simplify" : "") << "): " << problems[i] << "\n";
      llvm::outs().flush();
      Reduced r = reduceGraph(batch[i], options);
      llvm::outs() << "reduced: " << r.problem << "\n";
      r.module->print(llvm::outs());
      for (const Tensor &t : r.graph.inputs)
        llvm::outs() << "input " << describe(t) << "\n";
      llvm::outs().flush();
    }
  }
  char line[256];
  time_t now = time(nullptr);
  char date[32];
  strftime(date, sizeof(date), "%Y-%m-%d %H:%M", gmtime(&now));
  snprintf(line, sizeof(line), "%s seeds %llu-%llu: %llu graphs (%llu exact, %llu elementwise, %llu real), %llu ops, %llu failed, %.0f s%s",
           date, (unsigned long long)args.seed, (unsigned long long)(args.seed + graphs - 1), (unsigned long long)graphs,
           (unsigned long long)byKind[0], (unsigned long long)byKind[1], (unsigned long long)byKind[2],
           (unsigned long long)ops, (unsigned long long)failures, elapsed(), args.sanitize ? ", --sanitize" : "");
  printf("%s\n", line);
  if (!args.log.empty())
    std::ofstream(args.log, std::ios::app) << line << "\n";
  return failures ? 2 : 0;
}
