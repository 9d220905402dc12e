#include "runtime/tflite_api/GraphOps.h"

#include "runtime/core/Kernel.h"
#include "runtime/session/CompilerLibrary.h"
#include "runtime/session/Session.h"

#include "absl/strings/str_cat.h"

namespace lathe::tflite_api {
namespace {

tflgraph::Kernels kernels() {
  auto compiles = [](const std::string &op) -> absl::StatusOr<bool> {
    auto compiler = loadClusterCompiler();
    if (!compiler.ok())
      return compiler.status();
    return (*compiler)->compiles_op && (*compiler)->compiles_op((*compiler)->context, op.c_str());
  };
  return {[](const std::string &op) { return rt::findKernel(op) != nullptr; }, compiles};
}

} // namespace

NodeSession::NodeSession() = default;
NodeSession::~NodeSession() = default;

GraphOps::GraphOps(const tfl::Model &model, unsigned subgraph, NodeSession &shared)
    : nodes(model, subgraph, kernels(), shared.graphs ? absl::StrCat("graph", shared.graphs, "/") : ""), shared(shared) {
  ++shared.graphs;
}
GraphOps::~GraphOps() = default;

absl::StatusOr<std::vector<Tensor>> GraphOps::run(const tflgraph::NodePart &part, const std::vector<Tensor> &inputs) {
  std::unique_ptr<Session> &session = shared.session;
  if (!isAdded) {
    if (!session) {
      SessionOptions options;
      options.compiler = deferredClusterCompiler();
      options.clusterMode = 0; // what has a kernel for the host is not worth the compiler here
      session = std::make_unique<Session>(options);
    }
    if (absl::Status s = session->Extend(nodes.graph().toProto()); !s.ok())
      return s;
    isAdded = true;
  }
  auto namesOf = [](const std::vector<graphdef::Node *> &list) {
    std::vector<std::string> names;
    for (graphdef::Node *n : list)
      names.push_back(n->name());
    return names;
  };
  std::vector<Tensor> outputs;
  for (const tflgraph::OncePart &once : part.once)
    if (!once.targets.empty() && !shared.initialized.count(once.subgraph)) {
      if (absl::Status s = session->Run({}, {}, namesOf(once.targets), nullptr); !s.ok())
        return s;
      shared.initialized.insert(once.subgraph);
    }
  if (part.fetches.empty() && part.targets.empty())
    return outputs;
  Session::Feeds feeds;
  for (size_t i = 0; i < inputs.size(); ++i)
    feeds.emplace_back(part.feeds[i].name(), inputs[i]);
  std::vector<std::string> fetches;
  for (const graphdef::Endpoint &e : part.fetches)
    fetches.push_back(e.name());
  absl::Status s = session->Run(feeds, fetches, namesOf(part.targets), &outputs);
  if (!s.ok())
    return s;
  return outputs;
}

} // namespace lathe::tflite_api
