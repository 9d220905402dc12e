// Compiled clusters: turning a graph into one with LatheLaunch nodes, and the kernel of such a node.
#ifndef LATHE_RUNTIME_SESSION_CLUSTERS_H
#define LATHE_RUNTIME_SESSION_CLUSTERS_H

#include "runtime/abi/cluster_compiler.h"
#include "runtime/session/Graph.h"
#include "runtime/session/ModuleCall.h"
#include "runtime/session/WorkerPool.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace lathe::rt {

struct ClusterOptions {
  int mode = 1;          ///< see lathe_cluster_options
  int minSize = 0;
  std::string flags;     ///< as LATHE_FLAGS
  std::string cacheDir;
  std::string cpu;       ///< as lathe_compile_request's; "": this machine
  std::string backend;   ///< as lathe_compile_request's; "": the default one
  bool dynamicDims = false;
  bool background = false; ///< host kernels run while a cluster compiles
  int threads = 1;
  IntraOp intraOp;
  Device *device = nullptr; ///< with a memory of its own; null: the host
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

/// How Cluster::run ended, apart from its status.
struct ClusterOutcome {
  bool notCompiled = false; ///< nothing has run: the cluster does not compile for these arguments, or not yet
  bool pending = false;     ///< it compiles in the background
  std::string failedNode;   ///< where compiling failed, if that is known
};

/// All variants of one function. Shared by sessions.
class Cluster : public std::enable_shared_from_this<Cluster> {
public:
  Cluster(const lathe_cluster_compiler *compiler, std::string graph, std::string function, ClusterOptions options);
  ~Cluster();
  /// Runs on arguments and variables; those that `writes` does not name stay without a value if they had none. With
  /// `background`, what is not compiled yet is compiled there and nothing runs now.
  absl::Status run(const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables,
                   const std::vector<bool> &writes, WorkerPool *background, std::vector<Tensor> *results, ClusterOutcome *outcome);
  /// How many modules there are, for tests.
  int numVariants() const;

private:
  const ClusterVariant *find(const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables) const;
  absl::StatusOr<const ClusterVariant *> compile(const std::vector<Tensor> &args,
                                                 const std::vector<std::shared_ptr<Variable>> &variables, std::string *failedNode);
  absl::Status runOn(const ClusterVariant &variant, const std::vector<Tensor> &args, void *const *pointers,
                     std::vector<Tensor> *results) const;
  absl::Status prepareVariable(Variable &variable, const lathe_tensor_info &info) const;
  struct Failure;
  /// The failure of an earlier attempt with these types, sizes and small values, which is not repeated.
  std::shared_ptr<const Failure> findFailure(const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables) const;

  const lathe_cluster_compiler *const compiler;
  const std::string graph, function;
  const ClusterOptions options;
  std::atomic<const ClusterVariant *> newest{nullptr}; ///< a list that only grows: readers need no lock
  std::mutex compiling;
  mutable std::mutex failuresMutex;
  std::vector<std::shared_ptr<const Failure>> failures;
  std::atomic<bool> anyFailure{false}, inBackground{false};
};

/// The clusters of a process, by content.
class ClusterCache {
public:
  std::shared_ptr<Cluster> get(const lathe_cluster_compiler *compiler, std::string graph, const std::string &function,
                               const ClusterOptions &options);
  /// The thread that compiles clusters while host kernels run; started when first asked for.
  WorkerPool &background();

private:
  std::once_flag started;
  std::unique_ptr<WorkerPool> pool;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Cluster>> clusters;
};

/// Replaces nodes without a host kernel by launches: by the compiler's own clustering, or where that does not serve (or
/// `singly` asks for it) each node alone. Gives the graph and its library.
absl::Status clusterGraph(const lathe_cluster_compiler *compiler, const ClusterOptions &options, Body *body,
                          std::shared_ptr<const Library> *library, const GraphLimits &limits, bool singly = false);

/// Each node without a host kernel as a cluster of its own. With `everything`, of the others those too that a module can
/// take the place of: host kernels would have to fetch their inputs from a device.
absl::Status clusterSingly(tf::GraphDef *graph, tf::FunctionDefLibrary *functions, const Library &library, const GraphLimits &limits,
                           const lathe_cluster_compiler *everything = nullptr);

/// Whether the compiler has a form of the op.
bool compilesOp(const lathe_cluster_compiler *compiler, const std::string &op);

/// Whether a node needs a compiler.
bool needsCompiler(const tf::NodeDef &node, const Library &library);

/// The functions that a node calls, by its op or by attributes, and all that these call.
std::set<std::string> functionsBehind(const Library &library, const tf::NodeDef &node);

/// The kernel of a LatheLaunch node.
absl::StatusOr<std::unique_ptr<HostKernel>> makeLaunchKernel(const NodeInfo &node, const lathe_cluster_compiler *compiler,
                                                             const Library &library, ClusterCache &cache, const ClusterOptions &options,
                                                             std::unique_ptr<ClusterFallback> fallback);

} // namespace lathe::rt

#endif
