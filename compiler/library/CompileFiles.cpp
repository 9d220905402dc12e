// lathe_compile_files and lathe_compiles_op: ahead-of-time compilation for programs that loaded the compiler, as `lathe compile` does it.
#include "compiler/driver/WriteFiles.h"
#include "compiler/hosted/CompileHosted.h"
#include "compiler/jit/CompileCluster.h"
#include "compiler/jit/RunModule.h"
#include "compiler/library/TfliteFile.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"
#include "passes/legalize/Legalize.h"
#include "runtime/abi/compile_files.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <cstring>

namespace lathe {
namespace {

void give(lathe_bytes *out, llvm::StringRef text) {
  char *data = static_cast<char *>(std::malloc(text.size() + 1));
  if (data)
    std::memcpy(data, text.data(), text.size());
  *out = {data, data ? text.size() : 0};
}

/// Everything that one request needs.
struct Request {
  CompilerOptions options;
  std::string prefix;
  std::set<std::string> wanted;
  llvm::StringRef bytes;
  std::vector<std::string> hostOps, executorOps;
};

llvm::Error invalid(const llvm::Twine &text) { return llvm::createStringError(std::make_error_code(std::errc::invalid_argument), text); }

llvm::Error read(const lathe_files_request &r, Request &out) {
  out.prefix = r.prefix;
  if (!namesFiles(out.prefix))
    return invalid("prefix '" + out.prefix + "': expected a path that ends in the name of the files");
  llvm::SmallVector<llvm::StringRef> kinds;
  llvm::StringRef(r.emit).split(kinds, ',', -1, false);
  for (llvm::StringRef kind : kinds) {
    if (!llvm::is_contained({"obj", "header", "so", "a", "asm", "llvm", "ptx", "tflite"}, kind))
      return invalid("emit '" + kind + "': expected obj, header, so, a, asm, llvm, ptx or tflite");
    out.wanted.insert(kind.str());
  }
  if (out.wanted.empty())
    return invalid("emit names nothing to write");
  if (out.wanted.count("tflite") && out.wanted.size() > 1)
    return invalid("emit 'tflite': alone: everything else is made of a module that is simplified for our kernels");
  for (int32_t i = 0; i < r.num_options; ++i)
    if (absl::Status s = setOption(out.options, r.options[2 * i], r.options[2 * i + 1]); !s.ok())
      return invalid(std::string(s.message()));
  if (absl::Status s = checkOptions(out.options); !s.ok())
    return invalid(std::string(s.message()));
  if (r.path)
    out.options.model = r.path;
  else
    out.bytes = {r.model.data, r.model.size};
  if (out.options.symbolPrefix.empty())
    out.options.symbolPrefix =
        makeIdentifier(out.options.className.empty() ? llvm::sys::path::filename(out.prefix).str() : out.options.className);
  out.hostOps.assign(r.host_ops, r.host_ops + r.num_host_ops);
  out.executorOps.assign(r.executor_ops, r.executor_ops + r.num_executor_ops);
  return llvm::Error::success();
}

/// `report` with the table of what was quantized, which is written to the file of the options, too.
llvm::Expected<std::string> withTable(std::string report, const quantize::Report *quantized, const CompilerOptions &options) {
  if (!quantized)
    return report;
  const std::string table = quantized->json();
  if (!options.quantize.report.empty())
    if (llvm::Error error = writeTextFile(options.quantize.report, table + "\n"))
      return std::move(error);
  auto object = llvm::json::parse(report), part = llvm::json::parse(table);
  if (!object || !part)
    return llvm::joinErrors(object ? llvm::Error::success() : object.takeError(), part ? llvm::Error::success() : part.takeError());
  object->getAsObject()->insert({"quantized", std::move(*part)});
  return llvm::formatv("{0}", *object).str();
}

llvm::Expected<std::string> compileTflite(Compiler &compiler, const Request &r) {
  auto file = makeTfliteFile(compiler);
  if (!file)
    return file.takeError();
  if (llvm::Error error = writeTextFile(r.prefix + ".tflite", file->bytes))
    return std::move(error);
  llvm::json::Value facts = llvm::json::Object{{"bytes", static_cast<int64_t>(file->bytes.size())}};
  return withTable(llvm::formatv("{0}", facts).str(), file->quantized ? &*file->quantized : nullptr, r.options);
}

/// Compiles and writes; the report. Diagnostics go to the context's handler.
llvm::Expected<std::string> compilePure(mlir::MLIRContext &context, const Request &r) {
  const bool tflite = r.wanted.count("tflite");
  CompilerOptions options = tflite ? tfliteOptions(r.options) : r.options;
  options.releaseConstants = true; // nothing else lives in this context
  Compiler compiler(context, options);
  useQuantizing(compiler);
  if (mlir::failed(!r.bytes.empty() ? compiler.importBytes(r.bytes) : tflite ? importForTflite(context, compiler) : compiler.import()))
    return llvm::createStringError("");
  std::string needsHost = hostNodes(
      compiler.module(), [&](llvm::StringRef op) { return llvm::is_contained(r.executorOps, op.str()); }, "");
  auto withHost = [&](llvm::Error error) {
    if (needsHost.empty())
      return error;
    llvm::consumeError(std::move(error));
    return llvm::createStringError(llvm::StringRef(needsHost).rtrim());
  };
  if (tflite) {
    auto report = compileTflite(compiler, r);
    return report ? std::move(report) : withHost(report.takeError());
  }
  auto artifact = compiler.emit({r.wanted.count("asm") > 0, r.wanted.count("llvm") > 0});
  if (!artifact)
    return withHost(artifact.takeError());
  if (r.wanted.count("ptx") && !artifact->onDevice)
    return invalid("emit 'ptx': the kernels of this backend are not launched on a device");
  if (llvm::Error error = writeArtifact(*artifact, r.prefix, r.wanted, options.weights))
    return std::move(error);
  return withTable(reportJson(artifact->report, compiler.times()), compiler.quantized(), options);
}

llvm::Expected<std::string> compileWithHost(mlir::MLIRContext &context, const Request &r) {
  for (const char *kind : {"so", "ptx", "tflite"})
    if (r.wanted.count(kind))
      return invalid(llvm::Twine("emit '") + kind + "': not for a model with host operations; obj, header, a, asm and llvm are");
  if (r.options.weights != "embed")
    return invalid("weights in a file: not for a model with host operations");
  if (!r.bytes.empty())
    return invalid("a model with host operations is compiled from a file");
  auto model = compileHosted(context, r.options, r.hostOps, r.executorOps, {r.wanted.count("asm") > 0, r.wanted.count("llvm") > 0});
  if (!model)
    return model.takeError();
  if (llvm::Error error = writeArtifact(model->artifact, r.prefix, r.wanted, "embed"))
    return std::move(error);
  llvm::json::Object j{{"hosted", true},
                       {"clusters", model->clusters},
                       {"host_nodes", model->hostNodes},
                       {"host_kernels", llvm::json::Array(model->kernels)},
                       {"constant_bytes", model->artifact.report.constantBytes},
                       {"code_bytes", model->artifact.report.codeBytes},
                       {"kernels", model->artifact.report.kernels}};
  return llvm::formatv("{0}", llvm::json::Value(std::move(j))).str();
}

int32_t compileFiles(const lathe_files_request &request, lathe_bytes *report, lathe_bytes *messages) {
  Request r;
  if (llvm::Error error = read(request, r)) {
    give(messages, llvm::toString(std::move(error)));
    return LATHE_INVALID_ARGUMENT;
  }
  auto attempt = [&](auto compile, std::string *text) -> llvm::Expected<std::string> {
    std::unique_ptr<mlir::MLIRContext> context = makeCompileContext();
    CollectedDiagnostics diagnostics(*context);
    llvm::Expected<std::string> result = compile(*context, r);
    *text = result ? llvm::join(diagnostics.warnings(), "\n") : diagnostics.text();
    return result;
  };
  std::string text;
  llvm::Expected<std::string> result = attempt(compilePure, &text);
  if (!result && r.options.allowHost) {
    llvm::consumeError(result.takeError());
    result = attempt(compileWithHost, &text);
  }
  if (result) {
    give(report, *result);
    give(messages, text);
    return LATHE_OK;
  }
  std::string more = llvm::toString(result.takeError());
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(more).split(lines, '\n', -1, false);
  for (llvm::StringRef line : lines)
    if (text.find(line.str()) == std::string::npos)
      text += (text.empty() ? "" : "\n") + line.str();
  give(messages, text.empty() ? "compiling failed without a message" : text);
  return text.find("no compiled form") != std::string::npos ? LATHE_UNIMPLEMENTED : LATHE_INVALID_ARGUMENT;
}

} // namespace
} // namespace lathe

extern "C" int32_t lathe_compiles_op(const char *op) { return op && lathe::legalize::hasHandler(op); }

extern "C" int32_t lathe_compile_files(const lathe_files_request *request, lathe_bytes *report, lathe_bytes *messages) {
  *report = *messages = {nullptr, 0};
  return lathe::compileFiles(*request, report, messages);
}
