// How a GraphDef is imported, and what came of it.
#ifndef LATHE_RUNTIME_C_API_IMPORT_H
#define LATHE_RUNTIME_C_API_IMPORT_H

#include "runtime/c_api/Internal.h"

#include <deque>

struct TF_ImportGraphDefOptions {
  std::string prefix, device;
  bool uniquifyNames = false, uniquifyPrefix = false;
  std::map<std::pair<std::string, int>, TF_Output> inputs; ///< names of the GraphDef to outputs of the graph
  std::map<std::string, TF_Operation *> controls;
  std::vector<TF_Operation *> runAfter;
  std::vector<std::pair<std::string, int>> returnOutputs;
  std::vector<std::string> returnOperations;
};

struct TF_ImportGraphDefResults {
  std::vector<TF_Output> outputs;
  std::vector<TF_Operation *> operations;
  std::vector<const char *> missing;
  std::vector<int> missingIndexes;

  void addMissing(const std::string &name, int index) {
    texts.push_back(name);
    missing.push_back(texts.back().c_str());
    missingIndexes.push_back(index);
  }

private:
  std::deque<std::string> texts; ///< which keep their places
};

namespace lathe::c_api {

/// Imports with the graph's mutex held; nothing is added on an error.
absl::Status importGraph(TF_Graph &graph, tf::GraphDef def, const TF_ImportGraphDefOptions &options, TF_ImportGraphDefResults *results);

} // namespace lathe::c_api

#endif
