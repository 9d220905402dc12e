// lathe: the command line. Subcommands live in files of their own; this one sets up what holds for all of them.
#include "compiler/driver/Compiler.h"
#include "tools/lathe/Commands.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace lathe::cli;

static void say(const char *text) {
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, text, strlen(text));
}

static void onSignal(int) {
  // libraries do not check every allocation: a crash where no more memory can be had is its end
  if (mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
    say("lathe: error: out of memory (RESOURCE_EXHAUSTED)\n");
    _exit(BadInput);
  }
  say("lathe: internal error: please report it with the model and the command\n");
  _exit(Internal);
}

static void onFatalError(void *, const char *reason, bool) {
  say("lathe: internal error: ");
  say(reason);
  say("\n");
  _exit(Internal);
}

static void onOutOfMemory(void *, const char *, bool) {
  say("lathe: error: out of memory (RESOURCE_EXHAUSTED)\n");
  _exit(BadInput);
}

static void onNewFailed() { onOutOfMemory(nullptr, nullptr, false); }

/// A command never ends by a signal: what would be one is status 3, out of memory is status 1.
static void installHandlers() {
  llvm::install_fatal_error_handler(onFatalError);
  llvm::install_bad_alloc_error_handler(onOutOfMemory);
  std::set_new_handler(onNewFailed);
  static char stack[64 * 1024]; // a stack overflow needs another one to be reported on
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK;
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(s, &action, nullptr);
}

/// Takes MLIR's own flags (--mlir-...) out of the arguments and hands them to LLVM's command line.
static std::vector<char *> takeMlirFlags(int argc, char **argv) {
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  std::vector<char *> ours = {argv[0]};
  std::vector<const char *> theirs = {argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (!strncmp(argv[i], "--mlir-", 7))
      theirs.push_back(argv[i]);
    else
      ours.push_back(argv[i]);
  }
  if (theirs.size() > 1)
    lathe::registerAllPasses(); // for the names that --mlir-print-ir-after and its like take
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  llvm::cl::ParseCommandLineOptions(int(theirs.size()), theirs.data(), "lathe\n");
  return ours;
}

int main(int argc, char **argv) {
  installHandlers();
  std::vector<char *> args = takeMlirFlags(argc, argv);

  CLI::App app{"Lathe compiles TensorFlow graphs ahead of time: a SavedModel or GraphDef in, an object file and a header out."};
  app.name("lathe");
  app.set_version_flag("--version", LATHE_VERSION);
  app.require_subcommand(1);
  app.footer("MODEL is a GraphDef (.pb, .pbtxt), a MetaGraph (.meta), a SavedModel folder or a TensorFlow Lite file, told apart by content.\n"
             "Exit status: 0 fine; 1 bad input or use; 2 verify found a difference; 3 a bug of ours.\n"
             "MLIR's debugging flags (--mlir-print-ir-after-change, --mlir-timing, ...) are accepted everywhere.\n\n"
             "Example:\n"
             "  lathe check model/\n"
             "  lathe compile model/ -o digits --class demo::Digits\n"
             "  lathe run model/ --feed image=digit.npy --out result.npz");
  std::vector<std::pair<std::string, Command>> commands = {
      {"compile", addCompile(app)}, {"run", addRun(app)},         {"bench", addBench(app)},
      {"check", addCheck(app)},     {"inspect", addInspect(app)}, {"verify", addVerify(app)},
      {"conform", addConform(app)}};
  try {
    app.parse(int(args.size()), args.data());
  } catch (const CLI::ParseError &e) {
    return app.exit(e) == 0 ? Fine : BadInput;
  }
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  llvm::InitializeAllAsmParsers();
  for (auto &[name, run] : commands)
    if (app.got_subcommand(name))
      return run();
  return BadInput;
}
