// Sessions in Python. The GIL is released wherever kernels may run, wait or be compiled.
#include "runtime/python/PySession.h"

#include "runtime/cpu/CpuDevice.h"
#include "runtime/session/Core.h"

#include "absl/strings/str_cat.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace lathe::py {
namespace {

template <typename T>
void read(const nb::dict &options, const char *key, T *value) {
  if (options.contains(key))
    *value = nb::cast<T>(options[key]);
}

Session::Feeds pairs(const std::vector<std::string> &names, std::vector<Tensor> values) {
  Session::Feeds feeds;
  feeds.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    feeds.emplace_back(names[i], std::move(values[i]));
  return feeds;
}

void sameCount(size_t names, size_t values) {
  if (names != values)
    throw nb::value_error(absl::StrCat("expected ", names, " values to feed, got ", values).c_str());
}

nb::list statsOf(const RunMetadata &metadata) {
  nb::list list;
  for (const NodeExecStats &s : metadata.stepStats)
    list.append(nb::make_tuple(s.node, s.op, s.device, s.startMicros, s.elapsedNanos, s.thread));
  return list;
}

nb::object describe(const GraphInfo &info, const std::string &name) {
  absl::StatusOr<NodeSummary> node = info.node(name);
  if (node.status().code() == absl::StatusCode::kNotFound)
    return nb::none();
  check(node.status());
  std::vector<int> types;
  for (DType type : node->outputs)
    types.push_back(static_cast<int>(type));
  nb::object shape = node->shape ? nb::object(nb::tuple(nb::cast(*node->shape))) : nb::none();
  return nb::make_tuple(node->op, node->device, types, shape);
}

nb::list devicesOf(Session &session) {
  nb::list list;
  if (!session.devices())
    return list;
  for (auto &device : session.devices()->devices)
    list.append(nb::make_tuple(device->name(), device->parsedName().type.value_or(""), device->incarnation()));
  return list;
}

} // namespace

SessionOptions optionsFrom(const nb::dict &options) {
  SessionOptions o;
  read(options, "target", &o.target);
  read(options, "inter_op_threads", &o.interOpThreads);
  read(options, "threads", &o.intraOpThreads);
  read(options, "cpu_devices", &o.cpuDevices);
  read(options, "gpus", &o.gpus);
  read(options, "soft_placement", &o.allowSoftPlacement);
  read(options, "cluster_mode", &o.clusterMode);
  read(options, "min_cluster_size", &o.minClusterSize);
  read(options, "flags", &o.clusterFlags);
  read(options, "cache_dir", &o.clusterCacheDir);
  read(options, "dynamic", &o.dynamicClusters);
  read(options, "background", &o.backgroundCompile);
  read(options, "max_constant_bytes", &o.maxConstantBytes);
  int64_t compiler = 0;
  read(options, "compiler", &compiler);
  o.compiler = reinterpret_cast<const lathe_cluster_compiler *>(compiler);
  return o;
}

const GraphInfo &PySession::info() {
  std::lock_guard<std::mutex> lock(mutex);
  SharedGraph graph = session->graph();
  if (!graph)
    check(absl::FailedPreconditionError("the session has no graph"));
  if (graph != infoOf) {
    graphInfo = std::make_unique<GraphInfo>(graph);
    infoOf = graph;
  }
  return *graphInfo;
}

std::vector<Tensor> PySession::feed(const Names &names, const std::vector<PyTensor *> &values,
                                    std::vector<std::shared_ptr<void>> *borrowed) {
  sameCount(names.size(), values.size());
  std::vector<Tensor> feeds = fromPython(values, borrowed);
  if (module || !session->graph())
    return feeds; // a module keeps nothing
  for (size_t i = 0; i < feeds.size(); ++i)
    if (feeds[i].owner() && info().mayKeep(names[i]))
      feeds[i] = feeds[i].clone();
  return feeds;
}

PySession::Ran PySession::run(const Names &feeds, const std::vector<PyTensor *> &values, const Names &fetches, const Names &targets,
                              int64_t timeoutMs, int traceLevel, bool share) {
  RunOptions how;
  how.timeoutMs = timeoutMs;
  how.traceLevel = static_cast<RunOptions::TraceLevel>(traceLevel);
  std::vector<std::shared_ptr<void>> borrowed;
  std::vector<Tensor> tensors = feed(feeds, values, &borrowed);
  Ran ran;
  std::vector<Tensor> outputs;
  absl::Status status;
  {
    nb::gil_scoped_release release;
    status = session->Run(how, pairs(feeds, std::move(tensors)), fetches, targets, &outputs, &ran.metadata);
  }
  releaseDropped();
  check(status);
  if (share)
    borrowed.clear();
  ran.outputs = toPython(std::move(outputs), borrowed);
  return ran;
}

int64_t PySession::makeCallable(const Names &feeds, const Names &fetches, const Names &targets, int64_t timeoutMs) {
  CallableOptions options;
  options.feeds = feeds;
  options.fetches = fetches;
  options.targets = targets;
  options.runOptions.timeoutMs = timeoutMs;
  int64_t handle = 0;
  absl::Status status;
  {
    nb::gil_scoped_release release;
    status = session->MakeCallable(options, &handle);
  }
  check(status);
  std::lock_guard<std::mutex> lock(mutex);
  callables[handle] = std::make_shared<const Names>(feeds);
  return handle;
}

void PySession::releaseCallable(int64_t handle) {
  check(session->ReleaseCallable(handle));
  std::lock_guard<std::mutex> lock(mutex);
  callables.erase(handle);
}

std::vector<PyTensor> PySession::runCallable(int64_t handle, const std::vector<PyTensor *> &values, bool share) {
  std::shared_ptr<const Names> names;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (auto it = callables.find(handle); it != callables.end())
      names = it->second;
  }
  if (!names)
    check(absl::InvalidArgumentError("the callable was released"));
  std::vector<std::shared_ptr<void>> borrowed;
  std::vector<Tensor> tensors = feed(*names, values, &borrowed);
  std::vector<Tensor> outputs;
  absl::Status status;
  {
    nb::gil_scoped_release release;
    status = session->RunCallable(handle, tensors, &outputs);
    tensors.clear();
  }
  releaseDropped();
  check(status);
  if (share)
    borrowed.clear();
  return toPython(std::move(outputs), borrowed);
}

std::vector<PyTensor> PySession::partialRun(const std::string &handle, const Names &feeds, const std::vector<PyTensor *> &values,
                                            const Names &fetches) {
  sameCount(feeds.size(), values.size());
  // what is fed stays with the run until its last part
  std::vector<Tensor> tensors;
  for (PyTensor *value : values)
    tensors.push_back(value->tensor.owner() ? value->tensor.clone() : value->tensor);
  std::vector<Tensor> outputs;
  absl::Status status;
  {
    nb::gil_scoped_release release;
    status = session->PRun(handle, pairs(feeds, std::move(tensors)), fetches, &outputs);
  }
  check(status);
  return toPython(std::move(outputs), {});
}

void PySession::extend(const nb::bytes &graph) {
  std::string_view bytes(static_cast<const char *>(graph.data()), graph.size());
  absl::Status status;
  {
    nb::gil_scoped_release release;
    status = session->Extend(bytes);
  }
  check(status);
}

void PySession::close() {
  absl::Status status;
  {
    nb::gil_scoped_release release;
    status = session->Close();
  }
  check(status);
}

void addSession(nb::module_ &m) {
  nb::class_<PySession>(m, "Session")
      .def("__init__", [](PySession *self, const nb::dict &options) {
        std::unique_ptr<Session> session;
        check(NewSession(optionsFrom(options), &session));
        new (self) PySession(std::move(session));
      }, nb::arg("options"))
      .def("extend", &PySession::extend, nb::arg("graph"), "Adds the nodes and functions of a serialised GraphDef")
      .def("run", [](PySession &s, const PySession::Names &feeds, const std::vector<PyTensor *> &values, const PySession::Names &fetches,
                     const PySession::Names &targets, int64_t timeoutMs, int traceLevel, bool share) {
        PySession::Ran ran = s.run(feeds, values, fetches, targets, timeoutMs, traceLevel, share);
        return nb::make_tuple(nb::cast(std::move(ran.outputs)), statsOf(ran.metadata));
      }, nb::arg("feeds"), nb::arg("values"), nb::arg("fetches"), nb::arg("targets"), nb::arg("timeout_ms") = 0,
         nb::arg("trace_level") = 0, nb::arg("share") = false, "Tensors of the fetches, and what ran when")
      .def("make_callable", &PySession::makeCallable, nb::arg("feeds"), nb::arg("fetches"), nb::arg("targets"), nb::arg("timeout_ms") = 0,
           "The handle of a prepared run")
      .def("run_callable", &PySession::runCallable, nb::arg("handle"), nb::arg("values"), nb::arg("share") = false,
           "Runs what make_callable prepared")
      .def("release_callable", &PySession::releaseCallable, nb::arg("handle"),
           "Forgets a prepared run")
      .def("partial_setup", [](PySession &s, const PySession::Names &feeds, const PySession::Names &fetches, const PySession::Names &targets) {
        std::string handle;
        absl::Status status;
        {
          nb::gil_scoped_release release;
          status = s.get().PRunSetup(feeds, fetches, targets, &handle);
        }
        check(status);
        return handle;
      }, nb::arg("feeds"), nb::arg("fetches"), nb::arg("targets"), "Starts a run in parts")
      .def("partial_run", &PySession::partialRun, nb::arg("handle"), nb::arg("feeds"), nb::arg("values"), nb::arg("fetches"),
           "One part of it")
      .def("close", &PySession::close, "Cancels what runs, waits for it, and refuses further runs")
      .def("node", [](PySession &s, const std::string &name) { return describe(s.info(), name); }, nb::arg("name"),
           "Op, device, dtypes of the outputs and shape of a node; None where the graph lacks it")
      .def("nodes", [](PySession &s) { return s.info().nodes(); }, "Name and op of every node")
      .def("may_keep", [](PySession &s, const std::string &tensor) { return s.info().mayKeep(tensor); }, nb::arg("tensor"),
           "Whether state may hold on to what is fed as this tensor")
      .def("graph_bytes", [](PySession &s) {
        std::string bytes = take(s.info().serialize());
        return nb::bytes(bytes.data(), bytes.size());
      }, "The graph as a serialised GraphDef")
      .def("devices", [](PySession &s) { return devicesOf(s.get()); }, "Name, type and incarnation of each device");
}

} // namespace lathe::py
