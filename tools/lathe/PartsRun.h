// lathe run for TensorFlow Lite files that do not compile as a whole: their parts compiled, the rest by kernels for the host.
#ifndef LATHE_TOOLS_LATHE_PARTSRUN_H
#define LATHE_TOOLS_LATHE_PARTSRUN_H

#include "base/Npz.h"
#include "tools/lathe/Commands.h"

namespace lathe::cli {

/// Runs a signature of the file (its only one, or its first subgraph) once, by the interpreter of TensorFlow Lite's C interface.
/// Feeds and fetches are names of the signature or of tensors; without fetches all outputs are given. Says in `why` what is wrong,
/// which is empty where nothing is.
NamedTensors runInParts(const ModelArgs &args, const NamedTensors &feeds, const std::vector<std::string> &fetches, std::string &why);

} // namespace lathe::cli

#endif
