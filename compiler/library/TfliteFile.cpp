#include "compiler/library/TfliteFile.h"

#include "compiler/export/tflite/Passes.h"
#include "compiler/export/tflite/WriteModel.h"
#include "compiler/frontend/tflite/Tflite.h"
#include "compiler/import/Import.h"
#include "compiler/jit/CompileCluster.h"
#include "compiler/support/Diagnostics.h"
#include "passes/simplify/Portable.h"

namespace lathe {

CompilerOptions tfliteOptions(const CompilerOptions &given) {
  CompilerOptions options = given;
  if (given.model.empty() || &frontendOfFile(given.model) != &graphFrontend() || !given.signature.empty() || !given.outputs.empty() ||
      !given.entries.empty() || !given.targets.empty())
    return options;
  std::unique_ptr<mlir::MLIRContext> context = makeCompileContext();
  CollectedDiagnostics unsaid(*context); // the import says what is wrong
  Compiler compiler(*context, given);
  auto signatures = readSignatures(context.get(), given.model, compiler.importOptions());
  if (mlir::failed(signatures) || signatures->size() < 2)
    return options;
  auto isDefault = [](const SignatureInfo &signature) { return signature.key == "serving_default"; };
  std::stable_partition(signatures->begin(), signatures->end(), isDefault);
  for (const SignatureInfo &signature : *signatures)
    options.entries.push_back({signature.key, {}, {}});
  return options;
}

mlir::LogicalResult importForTflite(mlir::MLIRContext &context, Compiler &compiler) {
  const CompilerOptions &options = compiler.options();
  if (&frontendOfFile(options.model) != &tflite::frontend() || !options.quantize.kind.empty())
    return compiler.import();
  auto model = tflite::importForWriting(&context, options.model, compiler.importOptions());
  if (mlir::failed(model))
    return mlir::failure();
  compiler.adopt(std::move(model->module), model->phase);
  return mlir::success();
}

llvm::Expected<TfliteFile> makeTfliteFile(Compiler &compiler) {
  const CompilerOptions &options = compiler.options();
  TfliteFile file;
  if (mlir::failed(compiler.runUntil(Phase::Legalize)))
    return llvm::createStringError("");
  mlir::PassManager pm(compiler.module().getContext());
  if (compiler.configurePassManager && mlir::failed(compiler.configurePassManager(pm)))
    return llvm::createStringError("");
  const QuantizeOptions &how = options.quantize;
  if (how.kind.empty()) {
    simplify::SimplifyOptions simple;
    simple.foldBytes = options.maxFoldBytes;
    simple.exact = options.exact;
    simplify::buildPortableSimplifyPipeline(pm, simple);
  } else {
    // which simplifies as far as that goes, and says on the ops how they are quantized
    quantize::Session session;
    session.options = how;
    session.foldBytes = options.maxFoldBytes;
    session.maxBytes = options.maxMemory;
    session.annotate = true;
    session.makeRunnable = compiler.makeRunnable;
    session.configurePassManager = compiler.configurePassManager;
    auto report = quantize::quantizeModule(compiler.module(), session);
    if (mlir::failed(report))
      return llvm::createStringError("");
    file.quantized = std::move(*report);
  }
  tflwrite::buildTflitePipeline(pm, how.io, quantize::isWeightsOnly(how.kind) ? how.kind : "");
  if (mlir::failed(pm.run(compiler.module())))
    return llvm::createStringError("");
  // one entry alone is called main, whatever its signature; several have their keys
  std::vector<tflwrite::SignatureName> names;
  if (options.entries.empty())
    names.push_back({"main", options.signature.empty() ? "serving_default" : options.signature});
  auto bytes = tflwrite::writeModel(compiler.module(), names);
  if (mlir::failed(bytes))
    return llvm::createStringError("");
  file.bytes = std::move(*bytes);
  return file;
}

} // namespace lathe
