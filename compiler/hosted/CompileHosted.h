// Objects that also call host kernels: clusters of what compiles, and the rest of the graph as a table that
// liblathe_host.a runs (runtime/hosted).
#ifndef LATHE_COMPILER_HOSTED_COMPILEHOSTED_H
#define LATHE_COMPILER_HOSTED_COMPILEHOSTED_H

#include "compiler/driver/Compiler.h"

namespace lathe {

struct HostedModel {
  CompiledArtifact artifact;
  std::string notes;                ///< of the importer
  std::vector<std::string> kernels; ///< host ops that are used, sorted
  int clusters = 0, hostNodes = 0;
};

/// Compiles the model of the options. `hostOps`: ops that have a host kernel; `executorOps`: those that the executor runs
/// itself. An error without text was told as diagnostics, one for each node that neither compiles nor has a kernel.
llvm::Expected<HostedModel> compileHosted(mlir::MLIRContext &context, const CompilerOptions &options,
                                          llvm::ArrayRef<std::string> hostOps, llvm::ArrayRef<std::string> executorOps,
                                          EmitWants wants = {});

/// What a header says of inputs or results.
std::vector<HostedPayload::Tensor> describeTensors(llvm::ArrayRef<TensorSpec> specs);

/// A module of hlo with an entry that does nothing, for objects without compiled parts: there is no module without entries.
mlir::OwningOpRef<mlir::ModuleOp> moduleOfNothing(mlir::MLIRContext &context);

/// Whether a file that did not compile may run by host kernels in part although its frontend gives no graph: one of TensorFlow Lite. `lines`:
/// as hostNodes() gives them, none where only operators could that have a compiled form too.
bool couldBeHosted(mlir::MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps, llvm::StringRef prefix,
                   std::string &lines);

/// Nodes of an imported graph that only a host kernel runs, a line each that begins with `prefix`, the first twenty of them: compiling
/// ends at the first. Ops that the executor itself runs are none.
std::string hostNodes(mlir::ModuleOp module, llvm::function_ref<bool(llvm::StringRef)> isExecutorOp, llvm::StringRef prefix);

} // namespace lathe

#endif
