// lathe::Session: runs any part of a graph by feeds, fetches and targets, over state that lives between runs. Names and
// semantics are TensorFlow's. Safe for any number of concurrent calls.
#ifndef LATHE_RUNTIME_SESSION_SESSION_H
#define LATHE_RUNTIME_SESSION_SESSION_H

#include "base/Tensor.h"
#include "runtime/abi/cluster_compiler.h"
#include "runtime/core/Cancellation.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe {

namespace tf {
class GraphDef;
}
namespace rt {
class GraphStore;
class DeviceSet;
class SessionCore;
} // namespace rt

/// A graph that grows, for sessions that share it.
using SharedGraph = std::shared_ptr<rt::GraphStore>;
/// Threads and resources (variables, queues, tables), for sessions that share them.
using SharedDevices = std::shared_ptr<rt::DeviceSet>;

struct SessionOptions {
  std::string target;             ///< "" is in-process, the only kind
  int interOpThreads = 0;         ///< that run nodes; 0: one a processor
  int intraOpThreads = 1;         ///< inside compiled clusters
  int cpuDevices = 1;
  /// NVIDIA devices, by the driver's numbers, that are /device:GPU:0, /device:GPU:1 ...: nodes that no device was given go to
  /// the first where it can run them. Without a driver, or so many devices, sessions refuse to be made.
  std::vector<int> gpus;
  bool allowSoftPlacement = true; ///< nodes placed on devices that are not there, or cannot run them, run on the first CPU
  SharedDevices devices;          ///< null: devices of its own
  /// Compiles clusters; null: only ops with host kernels run.
  const lathe_cluster_compiler *compiler = nullptr;
  int clusterMode = 1;            ///< 0 compiles what has no host kernel, 1 what is worth it, 2 node by node; see lathe_cluster_options
  int minClusterSize = 0;
  std::string clusterFlags;       ///< as LATHE_FLAGS
  std::string clusterCacheDir;    ///< compiled clusters on disk; "": none
  std::string clusterCpu;         ///< what clusters are compiled for, as `lathe compile --cpu`; "": this machine
  std::string clusterBackend;     ///< and by which backend, as `lathe compile --backend`; "": the default one
  bool dynamicClusters = false;   ///< a new leading size is no recompile
  /// Clusters whose nodes all have host kernels compile in the background; until then the host kernels run. LATHE_FLAGS has
  /// it as "background=1".
  bool backgroundCompile = false;
  int64_t maxConstantBytes = INT64_C(1) << 33; ///< largest constant of a graph
};

struct RunOptions {
  /// As TensorFlow numbers them; on CPUs all but the first give the same step stats.
  enum TraceLevel { NoTrace = 0, SoftwareTrace = 1, HardwareTrace = 2, FullTrace = 3 };
  TraceLevel traceLevel = NoTrace;
  int64_t timeoutMs = 0; ///< 0: none. DEADLINE_EXCEEDED afterwards
  rt::Cancellation *cancellation = nullptr; ///< CANCELLED when it is cancelled
};

struct NodeExecStats {
  std::string node, op, device;
  int64_t startMicros = 0, elapsedNanos = 0; ///< since the step's start
  uint64_t thread = 0;
};

struct RunMetadata {
  std::vector<NodeExecStats> stepStats; ///< with a trace level
};

struct CallableOptions {
  std::vector<std::string> feeds, fetches, targets;
  RunOptions runOptions;
};

class Session {
public:
  using CallableHandle = int64_t;
  using Feeds = std::vector<std::pair<std::string, Tensor>>;

  explicit Session(const SessionOptions &options = {});
  /// A session over a compiled module: its inputs and outputs are the tensors, its variables the state.
  explicit Session(const lathe_module *module, int threads = 1);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// The bytes of a GraphDef. ALREADY_EXISTS when there is a graph; a graph without nodes is none.
  absl::Status Create(std::string_view graphDef);
  absl::Status Create(const tf::GraphDef &graph);
  absl::Status Create(SharedGraph graph);
  /// Adds nodes and functions.
  absl::Status Extend(std::string_view graphDef);
  absl::Status Extend(const tf::GraphDef &graph);

  /// Runs what the fetches and targets need; outputs in the order of fetches.
  absl::Status Run(const Feeds &feeds, const std::vector<std::string> &fetches, const std::vector<std::string> &targets,
                   std::vector<Tensor> *outputs);
  absl::Status Run(const RunOptions &options, const Feeds &feeds, const std::vector<std::string> &fetches,
                   const std::vector<std::string> &targets, std::vector<Tensor> *outputs, RunMetadata *metadata);

  /// A run prepared once: feeds and outputs by position.
  absl::Status MakeCallable(const CallableOptions &options, CallableHandle *handle);
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor> &feeds, std::vector<Tensor> *outputs,
                           RunMetadata *metadata = nullptr);
  absl::Status ReleaseCallable(CallableHandle handle);

  /// A run in parts: each PRun gives some of the feeds and takes some of the fetches; what is ready runs in between.
  absl::Status PRunSetup(const std::vector<std::string> &feeds, const std::vector<std::string> &fetches,
                         const std::vector<std::string> &targets, std::string *handle);
  absl::Status PRun(const std::string &handle, const Feeds &feeds, const std::vector<std::string> &fetches,
                    std::vector<Tensor> *outputs);

  /// Cancels what runs, waits for it, and refuses further runs with CANCELLED.
  absl::Status Close();

  SharedGraph graph() const;
  SharedDevices devices() const;

private:
  std::shared_ptr<rt::SessionCore> core;
};

/// Sets *session, or says why the options are impossible.
absl::Status NewSession(const SessionOptions &options, std::unique_ptr<Session> *session);

/// An empty graph that several sessions may create themselves on.
SharedGraph NewSharedGraph(int64_t maxConstantBytes = INT64_C(1) << 33);
/// Adds nodes and functions for all of them, as Session::Extend does for one.
absl::Status ExtendSharedGraph(const SharedGraph &graph, const tf::GraphDef &more);
SharedDevices NewSharedDevices(const SessionOptions &options = {});

} // namespace lathe

#endif
