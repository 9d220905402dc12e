// lathe compile: the files an application links.
#include "tools/lathe/Session.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <set>
#include <sys/resource.h>

namespace lathe::cli {
namespace {

struct CompileArgs {
  ModelArgs model;
  std::string prefix;
  std::vector<std::string> emit = {"obj", "header"};
  bool json = false;
};

bool writeFile(const std::string &path, llvm::StringRef content) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << content;
    os.close();
    error = os.error();
  }
  if (!error)
    return true;
  os.clear_error();
  fail("cannot write " + path + ": " + error.message());
  return false;
}

std::string printModule(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo();
  module.print(os, flags);
  return text;
}

int execute(CompileArgs &a) {
  static const std::set<std::string> known = {"obj", "header", "so", "a", "asm", "llvm", "hlo", "graph", "kernel"};
  std::set<std::string> wanted(a.emit.begin(), a.emit.end());
  for (const std::string &kind : wanted)
    if (!known.count(kind))
      return fail("--emit " + kind + ": expected obj, header, so, a, asm, llvm, hlo, kernel or graph");
  if (!a.model.finish())
    return BadInput;
  CompilerOptions &options = a.model.options;
  if (options.symbolPrefix.empty())
    options.symbolPrefix = makeIdentifier(options.className.empty() ? llvm::sys::path::filename(a.prefix).str()
                                                                    : options.className);

  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  Compiler compiler(*context, options);
  useMlirFlags(compiler);
  bool written = true;
  compiler.afterPhase = [&](Phase phase, mlir::ModuleOp module) {
    if (phase == Phase::Import && wanted.count("graph"))
      written &= writeFile(a.prefix + ".graph.mlir", printModule(module));
    if (phase == Phase::Simplify && wanted.count("hlo"))
      written &= writeFile(a.prefix + ".hlo.mlir", printModule(module));
    if (phase == Phase::Fuse && wanted.count("kernel"))
      written &= writeFile(a.prefix + ".kernel.mlir", printModule(module));
  };
  if (failed(compiler.import()))
    return BadInput;
  if (!compiler.model().notes.empty())
    fprintf(stderr, "%s\n", compiler.model().notes.c_str());

  // as far as what is asked for needs
  Phase last = Phase::Import;
  for (const std::string &kind : wanted)
    last = std::max(last, kind == "graph" ? Phase::Import : kind == "hlo" ? Phase::Simplify : kind == "kernel" ? Phase::Fuse : Phase::Emit);
  last = std::min(last, options.compileTo);
  if (last < Phase::Lower)
    return succeeded(compiler.runUntil(last)) && written ? Fine : BadInput;

  auto artifact = compiler.emit({wanted.count("asm") > 0, wanted.count("llvm") > 0});
  if (!artifact)
    return fail(artifact.takeError());
  if (wanted.count("obj"))
    written &= writeFile(a.prefix + ".o", artifact->object);
  if (wanted.count("header"))
    written &= writeFile(a.prefix + ".h", artifact->header);
  if (wanted.count("asm"))
    written &= writeFile(a.prefix + ".s", artifact->assembly);
  if (wanted.count("llvm"))
    written &= writeFile(a.prefix + ".ll", artifact->llvmIr);
  if (options.weights != "embed")
    written &= writeFile(options.weights, artifact->weights);
  if (wanted.count("a")) {
    auto archive = makeArchive(*artifact, llvm::sys::path::filename(a.prefix).str() + ".o");
    if (!archive)
      return fail(archive.takeError());
    written &= writeFile(a.prefix + ".a", *archive);
  }
  if (wanted.count("so"))
    if (llvm::Error error = linkSharedLibrary(*artifact, a.prefix + ".so"))
      return fail(std::move(error));
  if (!written)
    return BadInput;

  const EmitReport &r = artifact->report;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  double seconds = 0;
  for (const PhaseTime &t : compiler.times())
    seconds += t.seconds;
  if (a.json) {
    nlohmann::json times;
    for (const PhaseTime &t : compiler.times())
      times[phaseName(t.phase)] = t.seconds;
    nlohmann::json j = {{"compile_s", seconds}, {"phases_s", times}, {"peak_memory_bytes", usage.ru_maxrss * 1024},
                        {"arena_bytes", r.arenaBytes}, {"sum_of_buffers_bytes", r.sumOfBuffers},
                        {"constant_bytes", r.constantBytes}, {"code_bytes", r.codeBytes}, {"kernels", r.kernels},
                        {"kernel_calls", r.kernelCalls}, {"copies", r.copies}};
    printf("%s\n", j.dump().c_str());
  } else {
    fprintf(stderr, "%s: %.1f s, %lld kernels in %lld calls, code %.1f KB, constants %.2f MB, workspace %.2f MB (sum of buffers %.2f MB)\n",
            a.prefix.c_str(), seconds, (long long)r.kernels, (long long)r.kernelCalls, r.codeBytes / 1e3,
            r.constantBytes / 1e6, r.arenaBytes / 1e6, r.sumOfBuffers / 1e6);
  }
  return Fine;
}

} // namespace

Command addCompile(CLI::App &root) {
  auto a = std::make_shared<CompileArgs>();
  CLI::App *app = root.add_subcommand("compile", "Compile a model to an object file and a header");
  a->model.add(*app, "x86-64-v3", "GraphDef, MetaGraph or SavedModel folder");
  app->add_option("-o,--out", a->prefix, "Path and stem of the files")->type_name("PREFIX")->required();
  app->add_option("--emit", a->emit, "What to write: obj, header, so, a, asm, llvm, kernel, hlo, graph")
      ->delimiter(',')
      ->type_name("KIND,...")
      ->capture_default_str();
  app->add_flag("--json", a->json, "Print the report as a JSON object on stdout");
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
