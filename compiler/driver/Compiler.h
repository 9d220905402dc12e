// Bytes in, artifacts out: the one pipeline that the command line, the conformance adapter and the JIT share.
#ifndef LATHE_COMPILER_DRIVER_COMPILER_H
#define LATHE_COMPILER_DRIVER_COMPILER_H

#include "compiler/driver/Options.h"
#include "compiler/driver/Runnable.h"
#include "compiler/driver/Timing.h"
#include "compiler/driver/TuneFile.h"
#include "compiler/emit/Target.h"
#include "compiler/frontend/Frontend.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>

namespace lathe {

namespace quantize {
struct Report;
}

struct PhaseTime {
  Phase phase;
  double seconds;
};

/// Texts that emit() makes beside the object.
struct EmitWants {
  bool assembly = false, llvm = false;
};

/// Compiles one model. Diagnostics go to the context's handler; every method returns failure after at least one error.
class Compiler {
public:
  Compiler(mlir::MLIRContext &context, CompilerOptions options);

  /// Reads the model of the options (or the bytes of a model) by the frontend that its content asks for.
  mlir::LogicalResult import();
  mlir::LogicalResult importBytes(llvm::StringRef bytes);
  /// Goes on from a module as import() leaves it.
  /// (or as the phase `behind` leaves it).
  void adopt(mlir::OwningOpRef<mlir::ModuleOp> module, Phase behind = Phase::Import);
  /// The object also holds this graph of host nodes; kept by pointer.
  void setHosted(const HostedPayload *payload) { hosted = payload; }
  /// Runs the phases after import up to and including `last`.
  mlir::LogicalResult runUntil(Phase last);
  /// Does what is left of runUntil(Phase::Lower), then emits. An error without text was told as a diagnostic.
  llvm::Expected<CompiledArtifact> emit(EmitWants wants = {});

  mlir::ModuleOp module() { return imported.module.get(); }
  const ImportedModel &model() const { return imported; }
  const CompilerOptions &options() const { return opts; }
  /// With options().quantize, after Phase::Simplify; else null.
  const quantize::Report *quantized() const { return report.get(); }
  /// What of the options frontends read.
  ImportOptions importOptions() const;
  llvm::ArrayRef<PhaseTime> times() const { return phaseTimes; }
  /// Called after each phase with the module as it then is (dumps, tests).
  std::function<void(Phase, mlir::ModuleOp)> afterPhase;
  /// Called on every pass manager before it runs (MLIR's debugging flags).
  std::function<mlir::LogicalResult(mlir::PassManager &)> configurePassManager;
  /// With options().tune: finds plans for the module's kernels and adds them (compiler/jit/Tune.h).
  std::function<llvm::Error(mlir::ModuleOp, const EmitOptions &, std::map<std::string, TunedKernel> &)> search;
  /// With options().quantize: makes a module of hlo (its only entry) ready to run on this machine (compiler/jit/RunModule.h).
  MakeRunnable makeRunnable;

private:
  mlir::LogicalResult quantize();
  llvm::Error findPlans(EmitOptions &options);
  EmitOptions emitOptions() const;
  llvm::Error resolve();
  llvm::Error beginPrepare();
  bool addPasses(Phase phase, mlir::PassManager &pm);
  mlir::LogicalResult runPhase(Phase phase);
  void finishPhase(Phase phase, double seconds);
  mlir::LogicalResult importWith(llvm::function_ref<mlir::FailureOr<ImportedModel>()> read);
  mlir::LogicalResult resume();
  void boundInputs();
  void releaseConstants();
  void dump(Phase phase);

  mlir::MLIRContext &context;
  CompilerOptions opts;
  ImportedModel imported;
  Phase done = Phase::Import;
  bool haveModule = false;
  const HostedPayload *hosted = nullptr;
  std::optional<ResolvedTarget> target;
  std::optional<EmitOptions> eo; ///< from the phase Prepare on
  std::shared_ptr<quantize::Report> report;
  std::vector<PhaseTime> phaseTimes;
  mutable Timing timing; ///< for --timing; no result depends on it
  llvm::SetVector<mlir::AsmResourceBlob *> held; ///< blobs of the module after the last phase
};

/// Registers every pass of the pipeline under its name, for MLIR's flags and lathe-opt. Once a process.
void registerAllPasses();
/// Registers the dialects that the pipeline uses.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace lathe

#endif
