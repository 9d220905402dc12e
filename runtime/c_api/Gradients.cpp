// Derivatives: nodes of graph/gradients in a caller's graph.
#include "runtime/c_api/Internal.h"

#include "graph/gradients/Gradients.h"

#include "absl/strings/str_cat.h"

using namespace lathe;
using namespace lathe::c_api;

namespace {

absl::Status endpoints(const TF_Graph *graph, const TF_Output *outputs, int n, const char *what, std::vector<Endpoint> *out) {
  if (n < 0 || (n > 0 && !outputs))
    return absl::InvalidArgumentError(absl::StrCat("the ", what, " are missing"));
  for (int i = 0; i < n; ++i) {
    auto e = checkedEndpoint(outputs[i], graph, absl::StrCat(what, " ", i));
    if (!e.ok())
      return absl::InvalidArgumentError(e.status().message());
    out->push_back(*e);
  }
  return absl::OkStatus();
}

/// Whether a node or a scope of the graph has the name.
bool isTaken(const TF_Graph &graph, const std::string &prefix) {
  for (const Node *node : graph.graph.nodes())
    if (node->name() == prefix || node->name().compare(0, prefix.size() + 1, prefix + "/") == 0)
      return true;
  return false;
}

absl::Status addGradientsTo(TF_Graph &graph, const char *prefix, const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs,
                            const std::vector<Endpoint> &dys, std::vector<Endpoint> *grads) {
  graphdef::GradientOptions options;
  if (prefix) {
    options.prefix = prefix;
    if (isTaken(graph, options.prefix))
      return absl::InvalidArgumentError(absl::StrCat("duplicate prefix '", options.prefix, "'"));
  }
  const int first = graph.graph.maxId();
  // functions that are called may get results for the gradients' sake
  std::map<Node *, std::pair<int, int>> before;
  for (Node *node : graph.graph.nodes())
    before[node] = {node->numInputs(), node->numOutputs()};
  absl::Status s = graphdef::addGradients(graph.graph, ys, xs, dys, options, grads);
  for (auto &[node, counts] : before)
    if (counts != std::pair<int, int>(node->numInputs(), node->numOutputs())) {
      noteChange(graph, node, "making its gradient");
      (void)graph.shapes.add(node);
    }
  // a shape that cannot be told is unknown
  for (int id = first; id < graph.graph.maxId(); ++id)
    if (Node *node = graph.graph.node(id))
      (void)graph.shapes.add(node);
  // what TensorFlow says of an op without a gradient
  return s.code() == absl::StatusCode::kUnimplemented ? absl::NotFoundError(s.message()) : s;
}

} // namespace

extern "C" {

void TF_AddGradients(TF_Graph *g, TF_Output *y, int ny, TF_Output *x, int nx, TF_Output *dx, TF_Status *status, TF_Output *dy) {
  TF_AddGradientsWithPrefix(g, nullptr, y, ny, x, nx, dx, status, dy);
}

void TF_AddGradientsWithPrefix(TF_Graph *g, const char *prefix, TF_Output *y, int ny, TF_Output *x, int nx, TF_Output *dx, TF_Status *status,
                               TF_Output *dy) {
  if (!present(status, "g, dy", g, dy))
    return;
  std::lock_guard<std::mutex> lock(g->mutex);
  std::vector<Endpoint> ys, xs, dys, grads;
  absl::Status s = endpoints(g, y, ny, "results", &ys);
  if (s.ok())
    s = endpoints(g, x, nx, "variables", &xs);
  if (s.ok() && dx)
    s = endpoints(g, dx, ny, "gradients of the results", &dys);
  if (s.ok())
    s = addGradientsTo(*g, prefix, ys, xs, dys, &grads);
  for (size_t i = 0; s.ok() && i < grads.size(); ++i)
    dy[i] = grads[i] ? outputOf(grads[i]) : TF_Output{nullptr, -1};
  set(status, s);
}

} // extern "C"
