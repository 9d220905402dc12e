// Symbolic gradients: nodes that compute the derivatives of endpoints by endpoints.
#ifndef LATHE_GRAPH_GRADIENTS_GRADIENTS_H
#define LATHE_GRAPH_GRADIENTS_GRADIENTS_H

#include "graph/Graph.h"

#include <set>

namespace lathe::graphdef {

struct GradientOptions {
  /// New nodes are called `prefix`/NODE_grad/OP.
  std::string prefix = "gradients";
  /// Endpoints that count as constants.
  std::vector<Endpoint> stop;
};

/// A gradient: an endpoint or, as a gather has it, *rows* of one that is zero elsewhere (TensorFlow's IndexedSlices). Row indices[i] of
/// it gets values[i], those of equal indices add up; `shape` is the shape of the whole.
struct Gradient {
  Endpoint values, indices, shape;
  explicit operator bool() const { return static_cast<bool>(values); }
  bool isRows() const { return static_cast<bool>(indices); }
};

/// Adds nodes that compute, for each of `xs`, the sum over all `ys` of dy times the derivative of y by x. `dys` is empty or has
/// one entry a y; an entry without a node is ones. (*grads)[i] is none where no y depends on x in a differentiable way.
///
/// Functions that are called and loops may get results and arguments that hold what the gradients need: their nodes then change
/// in place, with new functions.
/// UNIMPLEMENTED naming the node when an op on the way has no gradient, INVALID_ARGUMENT for a complex y without dy.
absl::Status addGradients(Graph &graph, const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs,
                          const std::vector<Endpoint> &dys, const GradientOptions &options, std::vector<Endpoint> *grads);
/// The same with rows where all of a gradient comes from gathers of rows, so that no node is as large as what was gathered from.
absl::Status addGradients(Graph &graph, const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs,
                          const std::vector<Endpoint> &dys, const GradientOptions &options, std::vector<Gradient> *grads);

/// What is known of an op's gradient.
struct GradientInfo {
  /// Missing: TensorFlow has a gradient and Lathe does not.
  enum Kind { Differentiable, NotDifferentiable, Missing, Unknown } kind = Unknown;
  std::string_view reason; ///< why there is none
};
GradientInfo gradientInfo(std::string_view op);

/// Whether gradients flow through endpoints of this type.
bool isDifferentiable(DType type);

} // namespace lathe::graphdef

#endif
