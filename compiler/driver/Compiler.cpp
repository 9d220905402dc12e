#include "compiler/driver/Compiler.h"
#include "compiler/driver/Cost.h"
#include "compiler/frontend/Recorded.h"
#include "compiler/quantize/Quantize.h"

#include "dialects/graph/Graph.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/cluster/Passes.h"
#include "passes/fusion/Passes.h"
#include "passes/legalize/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/quantize/Passes.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;

namespace lathe {

void registerDialects(DialectRegistry &registry) {
  registry.insert<graph::GraphDialect, hlo::HloDialect, kernel::KernelDialect, func::FuncDialect, scf::SCFDialect,
                  arith::ArithDialect, cf::ControlFlowDialect, math::MathDialect, vector::VectorDialect, DLTIDialect, quant::QuantDialect,
                  LLVM::LLVMDialect>();
  codegen::registerBackendDialects(registry);
}

void registerAllPasses() {
  cluster::registerClusterPhase();
  legalize::registerLegalizePhase();
  simplify::registerSimplifyPhase();
  quantize::registerQuantizePasses();
  fusion::registerFusionPhase();
  lower::registerLowerPhase();
  codegen::registerBackendPasses();
}

Compiler::Compiler(MLIRContext &context, CompilerOptions options) : context(context), opts(std::move(options)) {}

ImportOptions Compiler::importOptions() const {
  ImportOptions io;
  for (const InputSpec &input : opts.inputs) {
    std::optional<std::vector<int64_t>> dims;
    if (input.dims) {
      dims.emplace();
      for (const DimSpec &d : *input.dims)
        dims->push_back(d.size);
    }
    io.inputs.emplace_back(input.name, std::move(dims));
  }
  io.fedShapes = opts.fedShapes;
  io.outputs = opts.outputs;
  io.targets = opts.targets;
  for (const EntrySpec &e : opts.entries)
    io.entries.push_back({e.name, e.fetches, e.targets});
  io.signature = opts.signature;
  io.tag = opts.tag;
  io.fastQuantizedMath = opts.quantize.math == "fast";
  io.keepVariables = opts.keepVariables;
  io.withInit = opts.withInit;
  io.unknownLeading = opts.unknownLeading;
  io.onlyListedInputs = opts.onlyListedInputs;
  io.constantFeeds = opts.constantFeeds;
  io.maxBytes = opts.maxMemory;
  return io;
}

namespace {
struct Stopwatch {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};
} // namespace

/// One line on a terminal that each phase overwrites; `phase` is the one that begins, empty when all is done.
static void showProgress(bool wanted, llvm::StringRef phase) {
  if (wanted)
    llvm::errs() << "\r\033[K" << phase << (phase.empty() ? "" : " ...");
}

void Compiler::finishPhase(Phase phase, double seconds) {
  phaseTimes.push_back({phase, seconds});
  done = phase;
  showProgress(opts.progress, "");
  if (opts.timing)
    timing.print(phase, seconds);
  if (afterPhase)
    afterPhase(phase, module());
  if (!opts.dumpDir.empty() && phase >= imported.phase) // of a frontend that made hlo there is no earlier one
    dump(phase);
}

void Compiler::dump(Phase phase) {
  if (std::error_code error = llvm::sys::fs::create_directories(opts.dumpDir)) {
    emitError(UnknownLoc::get(&context)) << "cannot make folder " << opts.dumpDir << ": " << error.message();
    return;
  }
  if (phase == Phase::Emit) // an object has no module
    return;
  llvm::SmallString<128> path(opts.dumpDir);
  llvm::sys::path::append(path, std::to_string(int(phase)) + "-" + phaseName(phase) + ".mlir");
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error) {
    emitError(UnknownLoc::get(&context)) << "cannot write " << path << ": " << error.message();
    return;
  }
  OpPrintingFlags flags;
  flags.enableDebugInfo().elideLargeElementsAttrs(16).elideLargeResourceString(64);
  module().print(os, flags);
  CompilerOptions recorded = opts;
  if (target) {
    recorded.triple = target->triple;
    if (opts.cpu == "host") { // what it stands for here
      recorded.cpu = target->cpu;
      recorded.features = target->features;
    }
  }
  if (llvm::Error error = writeRecorded(module(), phase, recordOptions(recorded), (path + "bc").str()))
    emitError(UnknownLoc::get(&context)) << llvm::toString(std::move(error));
}

LogicalResult Compiler::importWith(llvm::function_ref<FailureOr<ImportedModel>()> read) {
  Stopwatch watch;
  showProgress(opts.progress, "import");
  FailureOr<ImportedModel> model = read();
  if (failed(model))
    return failure();
  imported = std::move(*model);
  haveModule = true;
  if (!imported.recorded.empty())
    return resume();
  finishPhase(Phase::Import, watch.seconds());
  if (imported.phase > Phase::Import) { // a frontend that made hlo
    boundInputs();
    finishPhase(imported.phase, 0);
  }
  if (opts.releaseConstants)
    releaseConstants();
  return success();
}

/// Goes on from a module that dump() wrote.
LogicalResult Compiler::resume() {
  if (absl::Status status = restoreOptions(imported.recorded, opts); !status.ok())
    return emitError(UnknownLoc::get(&context)) << std::string(status.message());
  done = imported.phase;
  showProgress(opts.progress, "");
  if (done < Phase::Prepare)
    return success();
  if (llvm::Error error = resolve())
    return emitError(UnknownLoc::get(&context)) << llvm::toString(std::move(error));
  eo = emitOptions();
  return success();
}

LogicalResult Compiler::import() {
  return importWith([&] { return frontendOfFile(opts.model).importFile(&context, opts.model, importOptions()); });
}

void Compiler::adopt(OwningOpRef<ModuleOp> module, Phase behind) {
  imported.module = std::move(module);
  done = behind;
  haveModule = true;
}

LogicalResult Compiler::importBytes(llvm::StringRef bytes) {
  return importWith([&] { return frontendOfBytes(bytes).importBytes(&context, bytes, "graph.pb", importOptions()); });
}

/// Hands the MAX of --input NAME=MIN..MAX to the symbol that stands for the size; Run() refuses more.
void Compiler::boundInputs() {
  for (auto function : module().getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto name = function.getArgAttrOfType<StringAttr>(i, "hlo.name");
      auto tensor = function.getArgAttrOfType<StringAttr>(i, "hlo.tensor");
      auto type = dyn_cast<RankedTensorType>(function.getArgument(i).getType());
      for (const InputSpec &input : opts.inputs) {
        bool same = (name && name.getValue() == input.name) ||
                    (tensor && (tensor.getValue() == input.name || tensor.getValue() == input.name + ":0"));
        if (!same || !type || !input.dims || input.dims->size() != size_t(type.getRank()))
          continue;
        for (auto [spec, dim] : llvm::zip_equal(*input.dims, hlo::getDims(type)))
          if (auto symbol = dyn_cast_or_null<AffineSymbolExpr>(dim))
            if (spec.maximum >= 0)
              hlo::setSymbolBound(module(), symbol.getPosition(), spec.maximum);
      }
    }
  }
}

/// Frees the blobs that the module held and holds no more: the context would keep them as long as it lives.
void Compiler::releaseConstants() {
  llvm::SetVector<AsmResourceBlob *> now;
  module()->walk([&](Operation *op) {
    op->getAttrDictionary().walk([&](DenseResourceElementsAttr value) {
      if (AsmResourceBlob *blob = value.getRawHandle().getBlob())
        now.insert(blob);
    });
  });
  for (AsmResourceBlob *blob : held)
    if (!now.contains(blob))
      *blob = AsmResourceBlob();
  held = std::move(now);
}

EmitOptions Compiler::emitOptions() const {
  EmitOptions o;
  o.backend = opts.backend;
  o.triple = opts.triple;
  o.cpu = opts.cpu;
  o.features = opts.features;
  if (!opts.symbolPrefix.empty())
    o.symbolPrefix = opts.symbolPrefix;
  o.className = opts.className;
  o.threads = opts.threads;
  o.optLevel = opts.optLevel;
  o.exact = opts.exact;
  o.sanitize = opts.sanitize;
  o.profile = opts.profile;
  o.releaseConstants = opts.releaseConstants;
  o.bf16 = opts.precision == "bf16";
  o.tf32 = opts.precision == "tf32";
  o.archs = opts.archs;
  o.cubins = opts.cubins;
  o.externalWeights = opts.weights != "embed";
  o.hosted = hosted;
  if (opts.timing)
    o.emitted = &timing.emitted;
  return o;
}

/// Resolves the options' target and notes it in the module.
llvm::Error Compiler::resolve() {
  if (!target) {
    auto resolved = resolveTarget(emitOptions());
    if (!resolved)
      return resolved.takeError();
    target = std::move(*resolved);
  }
  codegen::setTarget(module(), target->description(emitOptions()));
  return llvm::Error::success();
}

/// What preparation needs beside the module. Errors of options are no diagnostics: they belong to no node.
llvm::Error Compiler::beginPrepare() {
  if (llvm::Error error = resolve())
    return error;
  EmitOptions options = emitOptions();
  if (llvm::Error error = findPlans(options))
    return error;
  if (opts.profile)
    annotateCosts(module());
  eo = std::move(options);
  return llvm::Error::success();
}

/// The passes of a phase; false where it has none.
bool Compiler::addPasses(Phase phase, PassManager &pm) {
  switch (phase) {
  case Phase::Cluster:
    cluster::buildClusterPipeline(pm);
    return true;
  case Phase::Legalize:
    legalize::buildLegalizePipeline(pm, {opts.checkShapes});
    return true;
  case Phase::Simplify: {
    simplify::SimplifyOptions so;
    so.foldBytes = opts.maxFoldBytes;
    so.exact = opts.exact;
    so.threads = opts.threads;
    if (target) {
      const codegen::Properties properties = target->backend->properties();
      so.multiplyAdds = properties.multiplyAdds;
      so.imagesFirst = properties.imagesFirst;
      so.core = properties.model;
    }
    simplify::buildSimplifyPipeline(pm, so);
    return true;
  }
  case Phase::Fuse: {
    fusion::FusionOptions fo;
    fo.fuse = opts.fuse;
    fusion::buildFusionPipeline(pm, fo);
    return true;
  }
  case Phase::Prepare:
    buildPreparePipeline(pm, *target, *eo);
    return true;
  case Phase::Lower:
    buildLowerPipeline(pm, *eo);
    return true;
  case Phase::Import:
  case Phase::Emit:
    return false;
  }
  return false;
}

LogicalResult Compiler::runPhase(Phase phase) {
  Stopwatch watch;
  showProgress(opts.progress, phaseName(phase));
  PassManager pm(&context);
  if (configurePassManager && failed(configurePassManager(pm)))
    return failure();
  if (phase == Phase::Simplify) // passes ask what the target can do; an error is told when code is made
    llvm::consumeError(resolve());
  if (phase == Phase::Simplify && !opts.quantize.kind.empty() && failed(quantize()))
    return failure();
  if (!addPasses(phase, pm))
    return success();
  if (opts.timing)
    pm.addInstrumentation(makePassClock(timing.passes));
  if (failed(pm.run(module())))
    return failure();
  if (phase == Phase::Legalize)
    boundInputs();
  finishPhase(phase, watch.seconds());
  if (opts.releaseConstants && phase != Phase::Lower)
    releaseConstants();
  return success();
}

LogicalResult Compiler::quantize() {
  if (!makeRunnable)
    return emitError(UnknownLoc::get(&context)) << "--quantize: not here";
  quantize::Session session;
  session.options = opts.quantize;
  session.foldBytes = opts.maxFoldBytes;
  session.maxBytes = opts.maxMemory;
  session.makeRunnable = makeRunnable;
  session.configurePassManager = configurePassManager;
  session.progress = [&](const std::string &what) { showProgress(opts.progress, what); };
  auto made = quantize::quantizeModule(module(), session);
  if (failed(made))
    return failure();
  report = std::make_shared<quantize::Report>(std::move(*made));
  return success();
}

LogicalResult Compiler::runUntil(Phase last) {
  if (!haveModule && failed(import()))
    return failure();
  while (done < last && done < Phase::Lower) {
    const Phase next = static_cast<Phase>(static_cast<int>(done) + 1);
    if (next >= Phase::Prepare && !eo)
      if (llvm::Error error = beginPrepare()) {
        const std::string text = llvm::toString(std::move(error));
        return text.empty() ? failure() : emitError(UnknownLoc::get(&context), text);
      }
    if (failed(runPhase(next)))
      return failure();
  }
  return success();
}

/// Reads the plans of the tuning file, after a search for those it lacks if that is asked for.
llvm::Error Compiler::findPlans(EmitOptions &options) {
  if (opts.tuneCache.empty())
    return llvm::Error::success();
  if (opts.tune && !search)
    return llvm::createStringError("--tune: not for a model with host operations");
  std::string warnings;
  auto file = TuneFile::read(opts.tuneCache, opts.tune, warnings);
  if (!file)
    return file.takeError();
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(warnings).split(lines, '\n', -1, false);
  for (llvm::StringRef line : lines)
    emitWarning(UnknownLoc::get(&context)) << line;
  const std::string name = tuningTarget(*target);
  if (opts.tune) {
    if (llvm::Error error = search(module(), options, file->kernelsOf(name)))
      return error;
    if (llvm::Error error = file->write(opts.tuneCache))
      return error;
  }
  options.plans = file->plansFor(name);
  return llvm::Error::success();
}

llvm::Expected<CompiledArtifact> Compiler::emit(EmitWants wants) {
  if (failed(runUntil(Phase::Lower)))
    return llvm::createStringError(""); // said already, through diagnostics
  Stopwatch watch;
  showProgress(opts.progress, "emit");
  EmitOptions options = *eo;
  options.wantAsm = wants.assembly;
  options.wantLlvm = wants.llvm;
  if (opts.timing)
    options.optimized = &timing.optimized;
  auto artifact = emitLowered(module(), *target, options);
  if (!artifact)
    return artifact;
  timing.codegen = artifact->report.codegenSeconds;
  for (const PhaseTime &t : phaseTimes)
    if (t.phase == Phase::Lower)
      artifact->report.emitKernelsSeconds += t.seconds;
  finishPhase(Phase::Emit, watch.seconds());
  return artifact;
}

} // namespace lathe
