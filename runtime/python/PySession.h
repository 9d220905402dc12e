// A session as Python holds it.
#ifndef LATHE_RUNTIME_PYTHON_PYSESSION_H
#define LATHE_RUNTIME_PYTHON_PYSESSION_H

#include "runtime/python/Bindings.h"
#include "runtime/session/GraphInfo.h"
#include "runtime/session/SharedModule.h"

#include <mutex>
#include <optional>
#include <unordered_map>

namespace lathe::py {

/// What the package gives as the keyword arguments of a session.
SessionOptions optionsFrom(const nanobind::dict &options);

class PySession {
public:
  /// Over a graph, or a module that the session keeps.
  PySession(std::shared_ptr<Session> session, std::shared_ptr<SharedModule> module = nullptr)
      : module(std::move(module)), session(std::move(session)) {}

  struct Ran {
    std::vector<PyTensor> outputs;
    RunMetadata metadata;
  };
  using Names = std::vector<std::string>;

  Ran run(const Names &feeds, const std::vector<PyTensor *> &values, const Names &fetches, const Names &targets, int64_t timeoutMs,
          int traceLevel, bool share);
  int64_t makeCallable(const Names &feeds, const Names &fetches, const Names &targets, int64_t timeoutMs);
  std::vector<PyTensor> runCallable(int64_t handle, const std::vector<PyTensor *> &values, bool share);
  std::vector<PyTensor> partialRun(const std::string &handle, const Names &feeds, const std::vector<PyTensor *> &values,
                                   const Names &fetches);
  void releaseCallable(int64_t handle);
  void extend(const nanobind::bytes &graph);
  void close();
  const GraphInfo &info();
  Session &get() { return *session; }

private:
  /// The tensors to feed; those that state may hold on to are copied. `borrowed` gets the memory of the others.
  std::vector<Tensor> feed(const Names &names, const std::vector<PyTensor *> &values, std::vector<std::shared_ptr<void>> *borrowed);

  std::shared_ptr<SharedModule> module; ///< goes after the session that runs its code
  std::shared_ptr<Session> session;
  std::mutex mutex;                     ///< guards what follows
  std::unique_ptr<GraphInfo> graphInfo;
  SharedGraph infoOf;
  std::unordered_map<int64_t, std::shared_ptr<const Names>> callables; ///< the feeds of each
};

} // namespace lathe::py

#endif
