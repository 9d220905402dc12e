#include "tools/lathe/Session.h"

#include "compiler/driver/WriteFiles.h"
#include "compiler/jit/Tune.h"
#include "compiler/support/Diagnostics.h"
#include "tools/lathe/Quantizing.h"
#include "tools/lathe/Sanitize.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <unistd.h>

namespace lathe::cli {

int fail(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  // a phase that reported through diagnostics leaves an empty text
  return text.empty() ? static_cast<int>(BadInput) : fail(text);
}

std::unique_ptr<mlir::MLIRContext> makeContext(llvm::raw_ostream *errors) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false); // messages name the node
  installDiagnosticPrinter(*context, errors ? *errors : llvm::errs());
  return context;
}

Runner::Runner(std::shared_ptr<LoadedModule> module, int entry, int threads) : runner(module, entry) {
  if (hasSanitizer() && module->abi().num_steps)
    runner.setTrace(noteStep, const_cast<lathe_module *>(&module->abi()));
  if (threads > 1) {
    pool = std::make_unique<ThreadPool>(threads);
    runner.setParallelFor(ThreadPool::parallelFor, pool.get(), threads);
  }
}

void useMlirFlags(Compiler &compiler) {
  compiler.configurePassManager = [](mlir::PassManager &pm) { return mlir::applyPassManagerCLOptions(pm); };
}

void useTuning(Compiler &compiler) {
  compiler.search = [](mlir::ModuleOp module, const EmitOptions &options, std::map<std::string, TunedKernel> &known) -> llvm::Error {
    const bool terminal = isatty(STDERR_FILENO);
    auto report = tuneKernels(module, options, known, [&](const std::string &name) {
      if (terminal)
        fprintf(stderr, "\r\033[Ktuning %s ...", name.c_str());
    });
    if (terminal)
      fprintf(stderr, "\r\033[K");
    if (!report)
      return report.takeError();
    fprintf(stderr, "tuned %u kernels, %u of them differently from the estimates: %.0f us instead of %.0f us for one call of each\n",
            report->searched, report->improved, report->us, report->estimatedUs);
    return llvm::Error::success();
  };
}

bool tellQuantized(const quantize::Report &report, const std::string &path) {
  fprintf(stderr, "%s", report.text().c_str());
  if (path.empty())
    return true;
  llvm::Error error = writeTextFile(path, report.json() + "\n");
  return !error || fail(std::move(error)) == Fine;
}

bool tellQuantized(const Compiler &compiler) {
  const quantize::Report *report = compiler.quantized();
  return !report || tellQuantized(*report, compiler.options().quantize.report);
}

std::string sizesHint(const ModelArgs &args, Compiler &compiler, const std::string &why) {
  bool ofSizes = false;
  for (const char *sign : {"known at compile time", "compile-time constant", "unknown rank", "of unknown size", "not known"})
    ofSizes |= why.find(sign) != std::string::npos;
  std::string inputs = ofSizes ? args.exampleInputs(compiler.model().entries) : "";
  if (inputs.empty())
    return "";
  return "the model leaves sizes of its inputs open; options that say them all, with sizes of your own:" + inputs + "\n";
}

int failWith(const ModelArgs &args, Compiler &compiler, const std::string &why) {
  fprintf(stderr, "%s%s", why.c_str(), sizesHint(args, compiler, why).c_str());
  return BadInput;
}

/// The file that --weights names goes to a library that has left its constants out.
static int bindWeights(const ModelArgs &args, Loaded &out) {
  const bool given = args.weightsOption && args.weightsOption->count();
  if (!given)
    return out.module->abi().bind_weights ? fail(args.options.model + " has left its constants out: expected --weights FILE") : int(Fine);
  auto file = llvm::MemoryBuffer::getFile(args.options.weights, /*IsText=*/false, /*RequiresNullTerminator=*/false, /*IsVolatile=*/false,
                                            llvm::Align(LATHE_ALIGNMENT));
  if (!file)
    return fail("--weights " + args.options.weights + ": " + file.getError().message());
  out.weights = std::move(*file);
  if (llvm::Error error = out.module->bindWeights(out.weights->getBufferStart(), out.weights->getBufferSize()))
    return fail("--weights " + args.options.weights + ": " + llvm::toString(std::move(error)));
  return Fine;
}

int load(ModelArgs &args, Loaded &out, std::string *errors) {
  llvm::StringRef model = args.options.model;
  if (model.ends_with(".so")) {
    auto module = loadSharedLibrary(model);
    if (!module)
      return fail(module.takeError());
    out.module = *module;
    return bindWeights(args, out);
  }
  auto start = std::chrono::steady_clock::now();
  std::string own, &all = errors ? *errors : own;
  llvm::raw_string_ostream text(all);
  std::unique_ptr<mlir::MLIRContext> context = makeContext(&text);
  Compiler compiler(*context, args.options);
  auto failed = [&](llvm::Error error) {
    std::string more = llvm::toString(std::move(error));
    if (!more.empty())
      text << "lathe: error: " << more << "\n";
    text << sizesHint(args, compiler, all);
    if (!errors)
      fprintf(stderr, "%s", all.c_str());
    return static_cast<int>(BadInput);
  };
  useMlirFlags(compiler);
  useTuning(compiler);
  useQuantizing(compiler);
  if (mlir::failed(compiler.import()))
    return failed(llvm::Error::success());
  auto artifact = compiler.emit();
  if (!artifact)
    return failed(artifact.takeError());
  if (!tellQuantized(compiler))
    return BadInput;
  out.artifact = std::move(*artifact);
  auto module = loadObject(out.artifact.object, out.artifact.prefix);
  if (!module)
    return failed(module.takeError());
  out.module = *module;
  fprintf(stderr, "%s", own.c_str()); // warnings
  out.compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Fine;
}

} // namespace lathe::cli
