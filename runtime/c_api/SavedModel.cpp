// SavedModels as sessions.
#include "runtime/c_api/Import.h"
#include "runtime/c_api/Session.h"

#include "proto/saved_model.pb.h"
#include "runtime/session/SavedModel.h"

#include "absl/strings/str_cat.h"

using namespace lathe;
using namespace lathe::c_api;

extern "C" {

TF_Session *TF_LoadSessionFromSavedModel(const TF_SessionOptions *session_options, const TF_Buffer *run_options, const char *export_dir,
                                         const char *const *tags, int tags_len, TF_Graph *graph, TF_Buffer *meta_graph_def,
                                         TF_Status *status) {
  if (!present(status, "export_dir, graph", export_dir, graph))
    return nullptr;
  auto failed = [&](const absl::Status &s) -> TF_Session * {
    set(status, s);
    return nullptr;
  };
  if (tags_len < 0 || (tags_len > 0 && !tags))
    return failed(absl::InvalidArgumentError("the tags are missing"));
  std::vector<std::string> names;
  for (int i = 0; i < tags_len; ++i)
    names.push_back(textOf(tags[i]));
  if (meta_graph_def && meta_graph_def->data)
    return failed(absl::InvalidArgumentError("the buffer of the MetaGraphDef is not empty"));
  RunOptions options;
  if (absl::Status s = readRunOptions(run_options, &options); !s.ok())
    return failed(s);
  const Config &config = configOf(session_options);
  if (!config.target.empty() && config.target != "local")
    return failed(absl::NotFoundError(absl::StrCat("there is no session for the target '", config.target, "'")));
  std::lock_guard<std::mutex> lock(graph->mutex);
  if (graph->graph.numNodes() > 0)
    return failed(absl::InvalidArgumentError("the graph has operations already"));
  SavedModelBundle bundle;
  tf::MetaGraphDef meta;
  if (absl::Status s = LoadSavedModel(config.options, options, export_dir, names, &bundle, &meta); !s.ok())
    return failed(s);
  if (meta_graph_def) {
    giveMessage(meta, meta_graph_def, status);
    if (!isOk(status))
      return nullptr;
  }
  TF_ImportGraphDefResults results;
  if (absl::Status s = importGraph(*graph, std::move(*meta.mutable_graph_def()), TF_ImportGraphDefOptions(), &results); !s.ok())
    return failed(s);
  auto *session = new TF_Session{graph, std::move(bundle.session)};
  graph->store = session->session->graph();
  graph->storedNodes = graph->graph.maxId();
  graph->storedFunctions = graph->graph.library().all().size();
  graph->sessions[session];
  noteLive(session->session->devices(), session->session.get(), true);
  return session;
}

} // extern "C"
