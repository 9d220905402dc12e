#include "runtime/session/ClientSession.h"

#include "graph/Graph.h"

namespace lathe {

ClientSession::ClientSession(const Scope &scope, const SessionOptions &options)
    : built(scope), inner(std::make_unique<Session>(options)) {}

absl::Status ClientSession::extend() {
  const graphdef::Graph &graph = *built.graph();
  std::lock_guard<std::mutex> lock(extending);
  if (graph.maxId() == sent)
    return absl::OkStatus();
  if (sent && graph.changes() != changes)
    return absl::FailedPreconditionError("a node that the session has run was changed since; make a new session");
  tf::GraphDef more;
  for (const graphdef::Node *node : graph.nodes())
    if (node->id() >= sent)
      *more.add_node() = node->toProto();
  *more.mutable_library() = built.shared_graph()->library().toProto();
  if (more.node_size() == 0)
    return absl::OkStatus();
  absl::Status s = sent ? inner->Extend(more) : inner->Create(more);
  if (s.ok()) {
    sent = graph.maxId();
    changes = graph.changes();
  }
  return s;
}

absl::Status ClientSession::Run(const std::vector<Output> &fetches, std::vector<Tensor> *outputs) { return Run({}, fetches, {}, outputs); }

absl::Status ClientSession::Run(const Feeds &feeds, const std::vector<Output> &fetches, std::vector<Tensor> *outputs) {
  return Run(feeds, fetches, {}, outputs);
}

absl::Status ClientSession::Run(const Feeds &feeds, const std::vector<Output> &fetches, const std::vector<Operation> &targets,
                                std::vector<Tensor> *outputs) {
  if (!built.ok())
    return built.status();
  if (absl::Status s = extend(); !s.ok())
    return s;
  Session::Feeds values;
  for (auto &[output, value] : feeds) {
    if (!value.status.ok())
      return value.status;
    values.push_back({output.name(), value.tensor});
  }
  std::vector<std::string> fetched, run;
  for (const Output &output : fetches)
    fetched.push_back(output.name());
  for (const Operation &op : targets)
    run.push_back(op.name());
  std::vector<Tensor> unused;
  return inner->Run(values, fetched, run, outputs ? outputs : &unused);
}

} // namespace lathe
