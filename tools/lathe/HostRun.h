// lathe run for models with host operations: one session, one run.
#ifndef LATHE_TOOLS_LATHE_HOSTRUN_H
#define LATHE_TOOLS_LATHE_HOSTRUN_H

#include "base/Npz.h"
#include "tools/lathe/Commands.h"

namespace lathe::cli {

/// Runs a GraphDef (binary or text) or a SavedModel in a session. Without fetches a SavedModel gives its signature's outputs;
/// a graph needs fetches or targets. Prints why not (into `why`, if given) and returns an exit status.
int runInSession(const ModelArgs &args, const NamedTensors &feeds, const std::vector<std::string> &fetches,
                 const std::vector<std::string> &targets, NamedTensors *results, std::string *why = nullptr);

/// Whether a failure of compiling is one that a session may do better: operations of a graph without a compiled form.
bool isForSession(const std::string &model, const std::string &message);

} // namespace lathe::cli

#endif
