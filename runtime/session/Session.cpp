#include "runtime/session/Session.h"

#include "runtime/session/Core.h"
#include "runtime/session/ModuleSession.h"

#include "absl/strings/str_cat.h"

#include <climits>

namespace lathe {

namespace {

absl::Status parse(std::string_view bytes, tf::GraphDef *graph) {
  if (bytes.size() > INT_MAX || !graph->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::InvalidArgumentError("the bytes are not a GraphDef");
  return absl::OkStatus();
}

} // namespace

Session::Session(const SessionOptions &options) : core(std::make_shared<rt::SessionCore>(options)) {}
Session::Session(const lathe_module *module, int threads) : core(rt::makeModuleSession(module, threads)) {}
Session::~Session() { (void)Close(); }

absl::Status Session::Create(std::string_view bytes) {
  tf::GraphDef graph;
  absl::Status s = parse(bytes, &graph);
  return s.ok() ? core->create(graph) : s;
}
absl::Status Session::Create(const tf::GraphDef &graph) { return core->create(graph); }
absl::Status Session::Create(SharedGraph graph) { return core->adopt(std::move(graph)); }
absl::Status Session::Extend(std::string_view bytes) {
  tf::GraphDef graph;
  absl::Status s = parse(bytes, &graph);
  return s.ok() ? core->extend(graph) : s;
}
absl::Status Session::Extend(const tf::GraphDef &graph) { return core->extend(graph); }

absl::Status Session::Run(const Feeds &feeds, const std::vector<std::string> &fetches, const std::vector<std::string> &targets,
                          std::vector<Tensor> *outputs) {
  return core->run({}, feeds, fetches, targets, outputs, nullptr);
}
absl::Status Session::Run(const RunOptions &options, const Feeds &feeds, const std::vector<std::string> &fetches,
                          const std::vector<std::string> &targets, std::vector<Tensor> *outputs, RunMetadata *metadata) {
  return core->run(options, feeds, fetches, targets, outputs, metadata);
}
absl::Status Session::MakeCallable(const CallableOptions &options, CallableHandle *handle) { return core->makeCallable(options, handle); }
absl::Status Session::RunCallable(CallableHandle handle, const std::vector<Tensor> &feeds, std::vector<Tensor> *outputs,
                                  RunMetadata *metadata) {
  return core->runCallable(handle, feeds, outputs, metadata);
}
absl::Status Session::ReleaseCallable(CallableHandle handle) { return core->releaseCallable(handle); }
absl::Status Session::PRunSetup(const std::vector<std::string> &feeds, const std::vector<std::string> &fetches,
                                const std::vector<std::string> &targets, std::string *handle) {
  return core->partialSetup(feeds, fetches, targets, handle);
}
absl::Status Session::PRun(const std::string &handle, const Feeds &feeds, const std::vector<std::string> &fetches,
                           std::vector<Tensor> *outputs) {
  return core->partialRun(handle, feeds, fetches, outputs);
}
absl::Status Session::Close() { return core->close(); }
SharedGraph Session::graph() const { return core->graph; }
SharedDevices Session::devices() const { return core->devices; }

absl::Status NewSession(const SessionOptions &options, std::unique_ptr<Session> *session) {
  if (!options.target.empty())
    return absl::NotFoundError(absl::StrCat("no session for target '", options.target, "': only \"\", in-process, is there"));
  if (options.cpuDevices < 1 || options.cpuDevices > 1024)
    return absl::InvalidArgumentError(absl::StrCat(options.cpuDevices, " CPU devices, expected 1 to 1024"));
  auto made = std::make_unique<Session>(options);
  if (const absl::Status &s = made->devices()->status; !s.ok())
    return s;
  *session = std::move(made);
  return absl::OkStatus();
}

SharedGraph NewSharedGraph(int64_t maxConstantBytes) {
  rt::GraphLimits limits;
  limits.maxConstantBytes = maxConstantBytes;
  return std::make_shared<rt::GraphStore>(limits);
}

absl::Status ExtendSharedGraph(const SharedGraph &graph, const tf::GraphDef &more) { return graph->extend(more); }

SharedDevices NewSharedDevices(const SessionOptions &options) { return std::make_shared<rt::DeviceSet>(options); }

} // namespace lathe
