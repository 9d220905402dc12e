// lathe compile: the files an application links.
#include "compiler/driver/WriteFiles.h"
#include "compiler/hosted/CompileHosted.h"
#include "compiler/library/TfliteFile.h"
#include "dialects/graph/Graph.h"
#include "passes/legalize/Legalize.h"
#include "runtime/session/Executable.h"
#include "tools/lathe/HostRun.h"
#include "tools/lathe/Quantizing.h"
#include "tools/lathe/Session.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <malloc.h>

#include <algorithm>
#include <set>

namespace lathe::cli {
namespace {

struct CompileArgs {
  ModelArgs model;
  std::string prefix;
  std::vector<std::string> emit = {"obj", "header"};
  bool json = false;
};

bool writeFile(const std::string &path, llvm::StringRef content) {
  llvm::Error error = writeTextFile(path, content);
  return !error || fail(std::move(error)) == Fine;
}

std::string printModule(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo();
  module.print(os, flags);
  return text;
}

/// Where the library lies whose kernels the object calls, when this program is in a build or installed tree.
std::string hostLibraryFolder() {
  std::string program = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  llvm::SmallString<128> folder(llvm::sys::path::parent_path(llvm::sys::path::parent_path(program)));
  llvm::sys::path::append(folder, "lib");
  return folder.str().str();
}

std::vector<std::string> hostKernels() {
  std::vector<std::string> kernels;
  for (std::string_view op : rt::allKernels())
    kernels.emplace_back(op);
  return kernels;
}

const char kNoDeviceCode[] = "--emit ptx: the kernels of this backend are not launched on a device; see --backend cuda";

/// What does not compile as a whole, with --allow-host.
int compileWithHost(CompileArgs &a, const std::set<std::string> &wanted) {
  for (const char *kind : {"so", "hlo", "graph", "kernel", "tflite"})
    if (wanted.count(kind))
      return fail(std::string("--emit ") + kind + ": not for a model with host operations; obj, header, a, asm, llvm and ptx are");
  if (a.model.options.weights != "embed")
    return fail("--weights FILE: not for a model with host operations");
  std::vector<std::string> kernels = hostKernels(), builtin;
  for (std::string_view op : rt::allExecutorOps())
    builtin.emplace_back(op);
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  auto model = compileHosted(*context, a.model.options, kernels, builtin, {wanted.count("asm") > 0, wanted.count("llvm") > 0});
  if (!model)
    return fail(model.takeError());
  if (!model->notes.empty())
    fprintf(stderr, "%s\n", model->notes.c_str());
  const CompiledArtifact &artifact = model->artifact;
  if (wanted.count("ptx") && !artifact.onDevice)
    return fail(kNoDeviceCode);
  if (llvm::Error error = writeArtifact(artifact, a.prefix, wanted, "embed"))
    return fail(std::move(error));
  std::string folder = hostLibraryFolder();
  if (a.json) {
    nlohmann::json j = {{"hosted", true}, {"clusters", model->clusters}, {"host_nodes", model->hostNodes}, {"host_kernels", model->kernels},
                        {"constant_bytes", artifact.report.constantBytes}, {"code_bytes", artifact.report.codeBytes},
                        {"kernels", artifact.report.kernels}, {"pkg_config", folder + "/pkgconfig/lathe_host.pc"}};
    printf("%s\n", j.dump().c_str());
  } else {
    fprintf(stderr, "%s: %d compiled clusters, %d nodes run on the host by %zu kernels\nlink with %s$(pkg-config --libs %s/pkgconfig/lathe_host.pc)%s\n",
            a.prefix.c_str(), model->clusters, model->hostNodes, model->kernels.size(),
            artifact.onDevice ? (folder + "/liblathe_cuda.a ").c_str() : "", folder.c_str(), artifact.onDevice ? " -ldl" : "");
  }
  return Fine;
}

/// Writes PREFIX.tflite and tells how it was quantized; an error without text was told.
llvm::Error writeTflite(Compiler &compiler, const CompileArgs &a) {
  auto file = makeTfliteFile(compiler);
  if (!file)
    return file.takeError();
  if (file->quantized && !tellQuantized(*file->quantized, compiler.options().quantize.report))
    return llvm::createStringError("");
  if (llvm::Error error = writeTextFile(a.prefix + ".tflite", file->bytes))
    return error;
  if (a.json)
    printf("{\"bytes\":%zu}\n", file->bytes.size());
  else
    fprintf(stderr, "%s.tflite: %.2f MB\n", a.prefix.c_str(), double(file->bytes.size()) / 1e6);
  return llvm::Error::success();
}

int execute(CompileArgs &a) {
  // weights go back to the system as soon as they are packed; by default the largest freed one raises the limit
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  static const std::set<std::string> known = {"obj", "header", "so", "a", "asm", "llvm", "ptx", "hlo", "graph", "kernel", "tflite"};
  std::set<std::string> wanted(a.emit.begin(), a.emit.end());
  for (const std::string &kind : wanted)
    if (!known.count(kind))
      return fail("--emit " + kind + ": expected obj, header, so, a, asm, llvm, ptx, hlo, kernel, graph or tflite");
  const bool tflite = wanted.count("tflite");
  if (tflite && (wanted.count("graph") + 1 != wanted.size()))
    return fail("--emit tflite: alone or with graph: everything else is made of a module that is simplified for our kernels");
  if (!namesFiles(a.prefix))
    return fail("-o '" + a.prefix + "': expected a path that ends in the name of the files");
  if (!a.model.finish())
    return BadInput;
  CompilerOptions &options = a.model.options;
  const Frontend &frontend = frontendOfFile(options.model);
  if (wanted.count("graph") && frontend.entersAfter() > Phase::Import)
    return fail("--emit graph: a model of " + frontend.name().str() + " enters as hlo");
  if (options.symbolPrefix.empty())
    options.symbolPrefix = makeIdentifier(options.className.empty() ? llvm::sys::path::filename(a.prefix).str()
                                                                    : options.className);

  // kept until it is clear that the message is not that the model needs host kernels
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  std::unique_ptr<mlir::MLIRContext> context = makeContext(&errorStream);
  CompilerOptions own = tflite ? tfliteOptions(options) : options;
  own.releaseConstants = true; // nothing else lives in this context
  Compiler compiler(*context, own);
  useMlirFlags(compiler);
  useTuning(compiler);
  useQuantizing(compiler);
  bool written = true;
  std::string needsHost;
  auto failed = [&](const std::string &message) -> int {
    std::string all = std::exchange(errors, std::string()) + (message.empty() ? "" : "lathe: error: " + message + "\n");
    if (compiler.options().entries.size() > options.entries.size())
      all += "note: --signature KEY writes one signature alone\n";
    if (needsHost.empty() && !isForSession(options.model, all) && !couldBeHosted(*context, options, hostKernels(), "error: ", needsHost)) {
      return failWith(a.model, compiler, all);
    }
    if (!options.allowHost) {
      llvm::SmallVector<llvm::StringRef> lines;
      llvm::StringRef(needsHost).split(lines, '\n', -1, false);
      for (llvm::StringRef line : lines) // every one, also where compiling ended before it came to them
        if (all.find(line.str()) == std::string::npos)
          all += line.str() + "\n";
      fprintf(stderr, "%s", all.c_str());
      if (!tflite) // of a file such operators are no part
        fprintf(stderr, "--allow-host makes an object that runs what has no compiled form by host kernels (liblathe_host.a)\n");
      return BadInput;
    }
    return compileWithHost(a, wanted);
  };
  compiler.afterPhase = [&](Phase phase, mlir::ModuleOp module) {
    if (phase == Phase::Import && wanted.count("graph"))
      written &= writeFile(a.prefix + ".graph.mlir", printModule(module));
    if (phase == Phase::Simplify && wanted.count("hlo"))
      written &= writeFile(a.prefix + ".hlo.mlir", printModule(module));
    if (phase == Phase::Fuse && wanted.count("kernel"))
      written &= writeFile(a.prefix + ".kernel.mlir", printModule(module));
  };
  if (mlir::failed(tflite ? importForTflite(*context, compiler) : compiler.import()))
    return failed("");
  needsHost = hostNodes(compiler.module(), [](llvm::StringRef op) { return rt::isExecutorOp(op.str()); }, "error: ");
  if (!compiler.model().notes.empty())
    fprintf(stderr, "%s\n", compiler.model().notes.c_str());

  // as far as what is asked for needs
  Phase last = Phase::Import;
  for (const std::string &kind : wanted)
    last = std::max(last, kind == "graph" ? Phase::Import : kind == "tflite" ? Phase::Legalize : kind == "hlo" ? Phase::Simplify : kind == "kernel" ? Phase::Fuse : Phase::Emit);
  last = std::min(last, options.compileTo);
  if (last < Phase::Emit) {
    if (tflite && last == Phase::Legalize) {
      if (llvm::Error error = writeTflite(compiler, a))
        return failed(llvm::toString(std::move(error)));
    } else if (mlir::failed(compiler.runUntil(last))) {
      return failed("");
    }
    fprintf(stderr, "%s", errors.c_str()); // warnings
    return written && tellQuantized(compiler) ? Fine : BadInput;
  }

  auto artifact = compiler.emit({wanted.count("asm") > 0, wanted.count("llvm") > 0});
  if (!artifact)
    return failed(llvm::toString(artifact.takeError()));
  fprintf(stderr, "%s", errors.c_str()); // warnings
  if (!written || !tellQuantized(compiler))
    return BadInput;
  if (wanted.count("ptx") && !artifact->onDevice)
    return fail(kNoDeviceCode);
  if (llvm::Error error = writeArtifact(*artifact, a.prefix, wanted, options.weights))
    return fail(std::move(error));

  const EmitReport &r = artifact->report;
  double seconds = 0;
  for (const PhaseTime &t : compiler.times())
    seconds += t.seconds;
  if (a.json) {
    printf("%s\n", reportJson(r, compiler.times()).c_str());
  } else {
    fprintf(stderr, "%s: %.1f s, %lld kernels in %lld calls, code %.1f KB, constants %.2f MB, workspace with scratch %.2f MB (buffers without reuse %.2f MB)\n",
            a.prefix.c_str(), seconds, (long long)r.kernels, (long long)r.kernelCalls, r.codeBytes / 1e3,
            r.constantBytes / 1e6, r.arenaBytes / 1e6, r.sumOfBuffers / 1e6);
  }
  return Fine;
}

} // namespace

Command addCompile(CLI::App &root) {
  auto a = std::make_shared<CompileArgs>();
  CLI::App *app = root.add_subcommand("compile", "Compile a model to an object file and a header");
  a->model.add(*app, "x86-64-v3", "GraphDef, MetaGraph, SavedModel folder or TensorFlow Lite file");
  app->add_option("-o,--out", a->prefix, "Path and stem of the files")->type_name("PREFIX")->required();
  app->add_option("--emit", a->emit, "What to write: obj, header, so, a, asm, llvm, ptx, kernel, hlo, graph, tflite")
      ->delimiter(',')
      ->type_name("KIND,...")
      ->capture_default_str();
  app->add_flag("--json", a->json, "Print the report as a JSON object on stdout");
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
