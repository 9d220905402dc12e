// What is behind a Session: graph, devices, prepared runs, function calls.
#ifndef LATHE_RUNTIME_SESSION_CORE_H
#define LATHE_RUNTIME_SESSION_CORE_H

#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/session/Clusters.h"
#include "runtime/session/DeviceValues.h"
#include "runtime/session/Partition.h"
#include "runtime/session/Rendezvous.h"
#include "runtime/session/Session.h"
#include "runtime/session/Step.h"

#include <condition_variable>
#include <shared_mutex>

namespace lathe::rt {

/// Threads and resources.
class DeviceSet {
public:
  /// What the options ask for and the machine lacks is told by `status`; then the CPUs alone are there.
  explicit DeviceSet(const SessionOptions &options);
  absl::Status status;
  std::vector<std::unique_ptr<Device>> devices;
  ResourceManager &resources; ///< of the first device, on which functions run
  WorkerPool pool;
  ThreadPool intraOp;
  ClusterCache clusters;
  PlacedResources placed;
};

/// Makes bodies executable.
class Builder {
public:
  /// `depth`: how many nodes that do not compile were taken out of the cluster already.
  /// `device`: whose memory values lie in; null: the host's.
  Builder(const SessionOptions &options, std::shared_ptr<DeviceSet> devices, GraphLimits limits, Device *device, int depth = 0);
  /// `segment` keeps the kernels of stateful nodes from one signature to the next; null: none are kept.
  using Segment = std::unordered_map<std::string, std::shared_ptr<HostKernel>>;
  absl::StatusOr<std::shared_ptr<const Executable>> build(Body body, std::shared_ptr<const Library> library,
                                                          std::shared_ptr<FunctionCaller> functions, Segment *segment,
                                                          bool singly = false, ResourceManager *resources = nullptr);

private:
  absl::StatusOr<std::shared_ptr<HostKernel>> makeKernel(const NodeInfo &node, const std::shared_ptr<const Library> &library,
                                                         const std::shared_ptr<FunctionCaller> &functions, Segment *segment, bool singly,
                                                         ResourceManager *resources);
  const SessionOptions options;
  const lathe_cluster_compiler *compiler;
  ClusterOptions clusterOptions;
  const std::shared_ptr<DeviceSet> devices;
  const GraphLimits limits;
  const int depth;
};

/// Calls functions of one library. Outlives the session as long as something (an iterator) holds it.
class Functions : public FunctionCaller, public std::enable_shared_from_this<Functions> {
public:
  /// Bodies run wholly on `device` (null: the first one), their values lie in its memory.
  Functions(std::shared_ptr<const Library> library, SessionOptions options, std::shared_ptr<DeviceSet> devices, GraphLimits limits,
            Device *device = nullptr);
  /// For what outlives a step: results are on the host.
  void call(const FunctionRef &function, std::vector<Tensor> args, Cancellation *cancellation, Done done) override;
  /// Without `stepResources` the call has its own.
  void callAt(int depth, StepStats *stats, ResourceManager *stepResources, const FunctionRef &function, std::vector<Tensor> args,
              Cancellation *cancellation, Done done);
  absl::Status signature(const FunctionRef &function, std::vector<DType> *args, std::vector<DType> *results) override;

private:
  struct Callee {
    std::shared_ptr<const Executable> executable;
    std::vector<DType> args, results;
  };
  absl::StatusOr<std::shared_ptr<const Callee>> find(const FunctionRef &function);

  const std::shared_ptr<const Library> library;
  const SessionOptions options;
  const std::shared_ptr<DeviceSet> devices;
  const GraphLimits limits;
  Device *const device;
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Callee>> callees;
  std::mutex building;
};

/// Functions as one step calls them: knows how deep the calls are.
class StepFunctions : public FunctionCaller {
public:
  /// Functions share the resources of the step that calls them: an array made outside of a loop has one gradient in all iterations.
  StepFunctions(Functions *functions, int depth, StepStats *stats, ResourceManager *stepResources)
      : onHost(this), functions(functions), depth(depth), stats(stats), stepResources(stepResources) {}
  HostResults onHost; ///< for kernels that read results
  void call(const FunctionRef &function, std::vector<Tensor> args, Cancellation *cancellation, Done done) override {
    functions->callAt(depth, stats, stepResources, function, std::move(args), cancellation, std::move(done));
  }
  absl::Status signature(const FunctionRef &function, std::vector<DType> *args, std::vector<DType> *results) override {
    return functions->signature(function, args, results);
  }

private:
  Functions *const functions;
  const int depth;
  StepStats *const stats;
  ResourceManager *const stepResources;
};

/// A signature made ready to run.
struct Prepared {
  struct OnDevice {
    std::shared_ptr<const Executable> executable;
    ResourceManager *resources;
    Device *device; ///< null: its values are the host's
    std::shared_ptr<Functions> functions;
  };
  std::vector<OnDevice> parts; ///< one a device that takes part
  std::vector<DType> argTypes;
  std::vector<std::string> feeds;
  int numResults = 0;
};

/// Ends a step on its devices: see DeviceMemory::settle.
absl::Status settle(const Prepared &prepared);

class PartialRun;

class SessionCore : public std::enable_shared_from_this<SessionCore> {
public:
  explicit SessionCore(const SessionOptions &options);
  virtual ~SessionCore();

  absl::Status create(const tf::GraphDef &graph);
  absl::Status adopt(SharedGraph graph);
  absl::Status extend(const tf::GraphDef &graph);
  virtual absl::Status run(const RunOptions &options, const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                           const std::vector<std::string> &targets, std::vector<Tensor> *outputs, RunMetadata *metadata);
  absl::Status makeCallable(const CallableOptions &options, int64_t *handle);
  absl::Status runCallable(int64_t handle, const std::vector<Tensor> &feeds, std::vector<Tensor> *outputs, RunMetadata *metadata);
  absl::Status releaseCallable(int64_t handle);
  absl::Status partialSetup(const std::vector<std::string> &feeds, const std::vector<std::string> &fetches,
                            const std::vector<std::string> &targets, std::string *handle);
  absl::Status partialRun(const std::string &handle, const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                          std::vector<Tensor> *outputs);
  absl::Status close();

  SharedGraph graph;
  const SharedDevices devices;

private:
  friend class PartialRun;
  /// `inParts`: for a run whose feeds come one after the other, so that no cluster may wait for more than one node does.
  absl::StatusOr<std::shared_ptr<const Prepared>> prepare(const std::vector<std::string> &feeds, const std::vector<std::string> &fetches,
                                                          const std::vector<std::string> &targets, bool inParts = false);
  absl::Status execute(const Prepared &prepared, const RunOptions &options, SimpleCallFrame &frame, RunMetadata *metadata);
  absl::Status beginStep();
  void endStep();

  const SessionOptions options;
  std::shared_mutex mutex; ///< guards what is prepared
  std::unordered_map<std::string, std::shared_ptr<const Prepared>> prepared;
  std::shared_ptr<const GraphSnapshot> preparedFor; ///< functions are of this snapshot
  std::map<Device *, std::shared_ptr<Functions>> functions; ///< null: of those whose values are the host's
  std::mutex building; ///< one signature is prepared at a time
  std::map<int, Builder::Segment> segments; ///< by device
  struct Callable {
    std::shared_ptr<const Prepared> prepared;
    RunOptions options;
  };
  std::unordered_map<int64_t, std::shared_ptr<const Callable>> callables;
  int64_t nextHandle = 1;
  std::unordered_map<std::string, std::shared_ptr<PartialRun>> partial;

  // steps that run, so that Close can wait for them; counted without a lock
  static constexpr int64_t kClosed = INT64_C(1) << 40;
  std::atomic<int64_t> running{0};
  Cancellation closing;
  std::mutex idleMutex;
  std::condition_variable idle;
};

/// The key of a function with attributes.
std::string functionKey(const FunctionRef &function);

} // namespace lathe::rt

#endif
