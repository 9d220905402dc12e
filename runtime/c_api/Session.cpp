// Sessions over a caller's graph.
#include "runtime/c_api/Session.h"

#include "proto/config.pb.h"
#include "runtime/session/CompilerLibrary.h"
#include "runtime/session/SavedModel.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace lathe;
using namespace lathe::c_api;

namespace {

/// Brings the session up to its graph, unless a change forbids it to go on.
absl::Status update(TF_Session &session) {
  std::lock_guard<std::mutex> lock(session.graph->mutex);
  const std::string &why = session.graph->sessions[&session];
  if (!why.empty())
    return absl::FailedPreconditionError(why);
  return extendStore(*session.graph);
}

absl::Status names(const TF_Output *outputs, int n, const TF_Graph *graph, const char *what, std::vector<std::string> *out) {
  if (n < 0 || (n > 0 && !outputs))
    return absl::InvalidArgumentError(absl::StrCat("the ", what, "s are missing"));
  for (int i = 0; i < n; ++i) {
    auto e = checkedEndpoint(outputs[i], graph, absl::StrCat(what, " ", i));
    if (!e.ok())
      return absl::InvalidArgumentError(e.status().message());
    out->push_back(tensorName(*e));
  }
  return absl::OkStatus();
}

absl::Status names(const TF_Operation *const *opers, int n, const TF_Graph *graph, std::vector<std::string> *out) {
  if (n < 0 || (n > 0 && !opers))
    return absl::InvalidArgumentError("the targets are missing");
  for (int i = 0; i < n; ++i) {
    if (!opers[i] || graphOf(nodeOf(opers[i])) != graph)
      return absl::InvalidArgumentError(absl::StrCat("target ", i, " is missing, or in another graph"));
    out->push_back(nodeOf(opers[i])->name());
  }
  return absl::OkStatus();
}

/// The names of a run in terms of the session's graph.
absl::Status namesOf(const TF_Session &session, const TF_Output *inputs, int ninputs, const TF_Output *outputs, int noutputs,
                     const TF_Operation *const *targets, int ntargets, RunNames *names_) {
  std::lock_guard<std::mutex> lock(session.graph->mutex);
  absl::Status s = names(inputs, ninputs, session.graph, "input", &names_->inputs);
  if (s.ok())
    s = names(outputs, noutputs, session.graph, "output", &names_->outputs);
  if (s.ok())
    s = names(targets, ntargets, session.graph, &names_->targets);
  return s;
}

void deleteHandle(const char *handle) { std::free(const_cast<char *>(handle)); }

} // namespace

struct TF_SessionOptions {
  Config config;
};

namespace lathe::c_api {

Config defaultConfig() {
  Config config;
  config.options.allowSoftPlacement = false;
  config.options.compiler = deferredClusterCompiler();
  config.options.dynamicClusters = true;
  return config;
}

const Config &configOf(const TF_SessionOptions *options) {
  static const Config defaults = defaultConfig();
  return options ? options->config : defaults;
}

absl::StatusOr<std::unique_ptr<Session>> makeSession(const TF_SessionOptions *options) {
  const Config &config = configOf(options);
  if (!config.target.empty() && config.target != "local")
    return absl::NotFoundError(absl::StrCat("there is no session for the target '", config.target, "'; this process is \"\""));
  std::unique_ptr<Session> session;
  absl::Status s = NewSession(config.options, &session);
  if (!s.ok())
    return s;
  return session;
}

absl::Status readRunOptions(const TF_Buffer *buffer, RunOptions *options) {
  if (!buffer)
    return absl::OkStatus();
  tf::RunOptions proto;
  TF_Status status;
  if (!parseMessage(buffer->data, buffer->length, "RunOptions", &proto, &status))
    return absl::InvalidArgumentError(status.message);
  options->timeoutMs = proto.timeout_in_ms();
  options->traceLevel = static_cast<RunOptions::TraceLevel>(std::clamp<int>(proto.trace_level(), 0, 3));
  return absl::OkStatus();
}

void writeRunMetadata(const RunMetadata &metadata, TF_Buffer *buffer, TF_Status *status) {
  tf::RunMetadata proto;
  std::map<std::string, tf::DeviceStepStats *> devices;
  for (const NodeExecStats &stats : metadata.stepStats) {
    tf::DeviceStepStats *&device = devices[stats.device];
    if (!device) {
      device = proto.mutable_step_stats()->add_dev_stats();
      device->set_device(stats.device);
    }
    tf::NodeExecStats *node = device->add_node_stats();
    node->set_node_name(stats.node);
    node->set_timeline_label(absl::StrCat(stats.node, " = ", stats.op));
    node->set_all_start_micros(stats.startMicros);
    node->set_all_start_nanos(stats.startMicros * 1000);
    node->set_op_end_rel_micros(stats.elapsedNanos / 1000);
    node->set_all_end_rel_micros(stats.elapsedNanos / 1000);
    node->set_op_end_rel_nanos(stats.elapsedNanos);
    node->set_all_end_rel_nanos(stats.elapsedNanos);
    node->set_thread_id(static_cast<uint32_t>(stats.thread));
  }
  giveMessage(proto, buffer, status);
}

absl::Status readFeeds(const std::vector<std::string> &inputs, TF_Tensor *const *values, Session::Feeds *feeds) {
  if (!inputs.empty() && !values)
    return absl::InvalidArgumentError("the input values are missing");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!values[i])
      return absl::InvalidArgumentError(absl::StrCat("the value of input '", inputs[i], "' is missing"));
    auto tensor = toTensor(*values[i]);
    if (!tensor.ok())
      return absl::Status(tensor.status().code(), absl::StrCat("the value of input '", inputs[i], "': ", tensor.status().message()));
    feeds->emplace_back(inputs[i], *std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status writeOutputs(const std::vector<Tensor> &results, TF_Tensor **outputs) {
  for (size_t i = 0; i < results.size(); ++i)
    if (!(outputs[i] = fromTensor(results[i]))) {
      for (size_t k = 0; k < i; ++k) {
        TF_DeleteTensor(outputs[k]);
        outputs[k] = nullptr;
      }
      return absl::ResourceExhaustedError("no memory for the outputs");
    }
  return absl::OkStatus();
}

absl::Status runNamed(Session &session, const TF_Buffer *runOptions, const RunNames &names, TF_Tensor *const *inputs, TF_Tensor **outputs,
                      TF_Buffer *runMetadata, TF_Status *status) {
  RunOptions options;
  Session::Feeds feeds;
  if (!names.outputs.empty() && !outputs)
    return absl::InvalidArgumentError("no place for the outputs");
  std::fill(outputs, outputs + names.outputs.size(), nullptr);
  if (runMetadata && runMetadata->data)
    return absl::InvalidArgumentError("the buffer of the metadata is not empty");
  absl::Status s = readRunOptions(runOptions, &options);
  if (s.ok())
    s = readFeeds(names.inputs, inputs, &feeds);
  std::vector<Tensor> results;
  RunMetadata metadata;
  if (s.ok())
    s = session.Run(options, feeds, names.outputs, names.targets, &results, runMetadata ? &metadata : nullptr);
  if (s.ok() && runMetadata) {
    writeRunMetadata(metadata, runMetadata, status);
    if (!isOk(status))
      return absl::Status(static_cast<absl::StatusCode>(status->code), status->message);
  }
  return s.ok() ? writeOutputs(results, outputs) : s;
}

absl::Status giveHandle(const std::string &text, const char **handle) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    return absl::ResourceExhaustedError("no memory for a handle");
  std::memcpy(copy, text.c_str(), text.size() + 1);
  *handle = copy;
  return absl::OkStatus();
}

absl::Status partialNamed(Session &session, const char *handle, const RunNames &names, TF_Tensor *const *inputs, TF_Tensor **outputs) {
  if (!handle)
    return absl::InvalidArgumentError("the handle is missing");
  if (!names.outputs.empty() && !outputs)
    return absl::InvalidArgumentError("no place for the outputs");
  std::fill(outputs, outputs + names.outputs.size(), nullptr);
  Session::Feeds feeds;
  std::vector<Tensor> results;
  absl::Status s = readFeeds(names.inputs, inputs, &feeds);
  if (s.ok())
    s = session.PRun(handle, feeds, names.outputs, &results);
  return s.ok() ? writeOutputs(results, outputs) : s;
}

/// The driver's numbers of the GPUs that are asked for: `visible_device_list` names them, else they are the first.
static absl::StatusOr<std::vector<int>> gpusOf(const tf::ConfigProto &config) {
  auto wanted = config.device_count().find("GPU");
  const int count = wanted == config.device_count().end() ? 0 : std::clamp(wanted->second, 0, 64);
  std::vector<int> gpus;
  for (absl::string_view text : absl::StrSplit(config.gpu_options().visible_device_list(), ',', absl::SkipWhitespace())) {
    int ordinal;
    if (!absl::SimpleAtoi(text, &ordinal) || ordinal < 0)
      return absl::InvalidArgumentError(absl::StrCat("Could not parse entry in 'visible_device_list': '", text, "'"));
    gpus.push_back(ordinal);
  }
  const bool listed = !gpus.empty();
  for (int i = 0; i < count && !listed; ++i)
    gpus.push_back(i);
  if (static_cast<int>(gpus.size()) > count)
    gpus.resize(count);
  return gpus;
}

} // namespace lathe::c_api

extern "C" {

TF_SessionOptions *TF_NewSessionOptions(void) { return new TF_SessionOptions{defaultConfig()}; }
void TF_DeleteSessionOptions(TF_SessionOptions *options) { delete options; }

void TF_SetTarget(TF_SessionOptions *options, const char *target) {
  if (options)
    options->config.target = textOf(target);
}

void TF_SetConfig(TF_SessionOptions *options, const void *proto, size_t proto_len, TF_Status *status) {
  tf::ConfigProto config;
  if (!present(status, "options", options) || !parseMessage(proto, proto_len, "ConfigProto", &config, status))
    return;
  SessionOptions &o = options->config.options;
  o.allowSoftPlacement = config.allow_soft_placement();
  o.interOpThreads = std::max(0, config.inter_op_parallelism_threads());
  o.intraOpThreads = std::clamp(config.intra_op_parallelism_threads(), 1, 1024);
  auto cpus = config.device_count().find("CPU");
  o.cpuDevices = cpus == config.device_count().end() ? 1 : std::clamp(cpus->second, 1, 1024);
  absl::StatusOr<std::vector<int>> gpus = gpusOf(config);
  if (gpus.ok())
    o.gpus = *std::move(gpus);
  set(status, gpus.status());
}

TF_Session *TF_NewSession(TF_Graph *graph, const TF_SessionOptions *opts, TF_Status *status) {
  if (!present(status, "graph", graph))
    return nullptr;
  auto session = makeSession(opts);
  if (!session.ok()) {
    set(status, session.status());
    return nullptr;
  }
  auto made = std::make_unique<TF_Session>();
  made->graph = graph;
  made->session = *std::move(session);
  std::lock_guard<std::mutex> lock(graph->mutex);
  if (!graph->store)
    graph->store = NewSharedGraph();
  absl::Status s = made->session->Create(graph->store);
  set(status, s);
  if (!s.ok())
    return nullptr;
  graph->sessions[made.get()];
  noteLive(made->session->devices(), made->session.get(), true);
  return made.release();
}

void TF_CloseSession(TF_Session *session, TF_Status *status) {
  if (present(status, "session", session))
    set(status, session->session->Close());
}

void TF_DeleteSession(TF_Session *session, TF_Status *status) {
  setOk(status);
  if (!session)
    return;
  TF_Graph *graph = session->graph;
  {
    std::lock_guard<std::mutex> lock(graph->mutex);
    graph->sessions.erase(session);
  }
  noteLive(nullptr, session->session.get(), false);
  delete session;
  release(graph);
}

void TF_ExtendSession(TF_Session *session, TF_Status *status) {
  if (present(status, "session", session))
    set(status, update(*session));
}

void TF_SessionRun(TF_Session *session, const TF_Buffer *run_options, const TF_Output *inputs, TF_Tensor *const *input_values, int ninputs,
                   const TF_Output *outputs, TF_Tensor **output_values, int noutputs, const TF_Operation *const *target_opers, int ntargets,
                   TF_Buffer *run_metadata, TF_Status *status) {
  if (!present(status, "session", session))
    return;
  RunNames names;
  absl::Status s = update(*session);
  if (s.ok())
    s = namesOf(*session, inputs, ninputs, outputs, noutputs, target_opers, ntargets, &names);
  if (s.ok())
    s = runNamed(*session->session, run_options, names, input_values, output_values, run_metadata, status);
  set(status, s);
}

void TF_SessionPRunSetup(TF_Session *session, const TF_Output *inputs, int ninputs, const TF_Output *outputs, int noutputs,
                         const TF_Operation *const *target_opers, int ntargets, const char **handle, TF_Status *status) {
  if (!present(status, "session, handle", session, handle))
    return;
  *handle = nullptr;
  RunNames names;
  std::string text;
  absl::Status s = update(*session);
  if (s.ok())
    s = namesOf(*session, inputs, ninputs, outputs, noutputs, target_opers, ntargets, &names);
  if (s.ok())
    s = session->session->PRunSetup(names.inputs, names.outputs, names.targets, &text);
  if (s.ok())
    s = giveHandle(text, handle);
  set(status, s);
}

void TF_SessionPRun(TF_Session *session, const char *handle, const TF_Output *inputs, TF_Tensor *const *input_values, int ninputs,
                    const TF_Output *outputs, TF_Tensor **output_values, int noutputs, const TF_Operation *const *target_opers, int ntargets,
                    TF_Status *status) {
  if (!present(status, "session", session))
    return;
  RunNames names;
  absl::Status s = namesOf(*session, inputs, ninputs, outputs, noutputs, target_opers, ntargets, &names);
  if (s.ok())
    s = partialNamed(*session->session, handle, names, input_values, output_values);
  set(status, s);
}

void TF_DeletePRunHandle(const char *handle) { deleteHandle(handle); }

} // extern "C"
