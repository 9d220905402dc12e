// The part of lathe inspect that shows what a session would compile.
#ifndef LATHE_TOOLS_LATHE_INSPECTCLUSTERS_H
#define LATHE_TOOLS_LATHE_INSPECTCLUSTERS_H

#include "compiler/jit/ClusterReport.h"
#include "tools/lathe/Commands.h"

#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

namespace lathe::cli {

/// Clusters of the model with the session's host kernels, under LATHE_FLAGS; false and a message otherwise.
bool findClusters(const ModelArgs &args, ClusterReport &report, std::string &error);
void writeClusters(llvm::raw_ostream &html, const ClusterReport &report);
nlohmann::json clustersJson(const ClusterReport &report);
std::string escapeHtml(const std::string &text);

} // namespace lathe::cli

#endif
