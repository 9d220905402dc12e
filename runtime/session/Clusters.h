// Compiled clusters: turning a graph into one with LatheLaunch nodes, and the kernel of such a node.
#ifndef LATHE_RUNTIME_SESSION_CLUSTERS_H
#define LATHE_RUNTIME_SESSION_CLUSTERS_H

#include "runtime/abi/cluster_compiler.h"
#include "runtime/session/Graph.h"
#include "runtime/session/ModuleCall.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace lathe::rt {

struct ClusterOptions {
  int mode = 1;          ///< see lathe_cluster_options
  int minSize = 0;
  std::string flags;     ///< as LATHE_FLAGS
  std::string cacheDir;
  bool dynamicDims = false;
  int threads = 1;
  IntraOp intraOp;
};

/// A module compiled for one signature of a cluster.
struct ClusterVariant;

/// Runs a cluster's function node by node where it does not compile as a whole; `failedNode` is where it failed, or empty.
class ClusterFallback {
public:
  virtual ~ClusterFallback() = default;
  virtual absl::StatusOr<std::vector<Tensor>> run(const FunctionRef &function, std::vector<Value> args, const std::string &failedNode,
                                                  KernelContext &context) = 0;
};

/// All variants of one function. Shared by sessions.
class Cluster {
public:
  Cluster(const lathe_cluster_compiler *compiler, std::string graph, std::string function, ClusterOptions options);
  ~Cluster();
  /// Runs on arguments and variables; those that `writes` does not name stay without a value if they had none.
  absl::Status run(const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables,
                   const std::vector<bool> &writes, std::vector<Tensor> *results, std::string *failedNode);
  /// How many modules there are, for tests.
  int numVariants() const;
  /// A compilation failed: run it node by node from now on.
  std::atomic<bool> doesNotCompile{false};

private:
  const ClusterVariant *find(const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables) const;
  absl::StatusOr<const ClusterVariant *> compile(const std::vector<Tensor> &args,
                                                 const std::vector<std::shared_ptr<Variable>> &variables, std::string *failedNode);

  const lathe_cluster_compiler *const compiler;
  const std::string graph, function;
  const ClusterOptions options;
  std::atomic<const ClusterVariant *> newest{nullptr}; ///< a list that only grows: readers need no lock
  std::mutex compiling;
};

/// The clusters of a process, by content.
class ClusterCache {
public:
  std::shared_ptr<Cluster> get(const lathe_cluster_compiler *compiler, std::string graph, const std::string &function,
                               const ClusterOptions &options);

private:
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Cluster>> clusters;
};

/// Replaces nodes without a host kernel by launches: by the compiler's own clustering, or where that does not serve (or
/// `singly` asks for it) each node alone. Gives the graph and its library.
absl::Status clusterGraph(const lathe_cluster_compiler *compiler, const ClusterOptions &options, Body *body,
                          std::shared_ptr<const Library> *library, const GraphLimits &limits, bool singly = false);

/// Each node without a host kernel as a cluster of its own.
absl::Status clusterSingly(tf::GraphDef *graph, tf::FunctionDefLibrary *functions, const Library &library, const GraphLimits &limits);

/// Whether a node needs a compiler.
bool needsCompiler(const tf::NodeDef &node, const Library &library);

/// The kernel of a LatheLaunch node.
absl::StatusOr<std::unique_ptr<HostKernel>> makeLaunchKernel(const NodeInfo &node, const lathe_cluster_compiler *compiler,
                                                             const Library &library, ClusterCache &cache, const ClusterOptions &options,
                                                             std::unique_ptr<ClusterFallback> fallback);

} // namespace lathe::rt

#endif
