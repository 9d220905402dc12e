// A conformance step by the reference evaluator instead of compiled code: tells the front end's mistakes from the
// kernels'.
#ifndef LATHE_TOOLS_LATHE_REFERENCE_H
#define LATHE_TOOLS_LATHE_REFERENCE_H

#include "base/Npz.h"
#include "compiler/driver/Compiler.h"

namespace lathe::cli {

/// Runs the phases up to `phase` (at least Legalize) on a GraphDef and evaluates what they made. `variables` holds the
/// state from step to step.
llvm::Expected<std::vector<Tensor>> evaluateStep(const CompilerOptions &options, const std::string &graph, Phase phase,
                                                 const NamedTensors &feeds, NamedTensors &variables);

} // namespace lathe::cli

#endif
