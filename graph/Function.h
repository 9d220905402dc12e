// Functions of the library as graphs, and graphs as functions.
#ifndef LATHE_GRAPH_FUNCTION_H
#define LATHE_GRAPH_FUNCTION_H

#include "graph/Graph.h"

namespace lathe::graphdef {

/// A function's body as a graph: arguments are _Arg nodes, results _Retval nodes. It shares the library.
struct FunctionBody {
  std::unique_ptr<Graph> graph;
  std::vector<Node *> args, results; ///< in the order of the flat signature
  std::vector<Node *> controlResults;

  std::vector<DType> argTypes() const;
  std::vector<DType> resultTypes() const;
};

/// The body of `function` with its attributes put in. NOT_FOUND when there is no such function, INVALID_ARGUMENT naming function
/// and node when the body is malformed.
absl::StatusOr<FunctionBody> instantiate(const std::shared_ptr<Library> &library, const tf::NameAttrList &function);

/// What a body says, as a function named `name`. Arguments and results get the names of their nodes.
absl::StatusOr<tf::FunctionDef> toFunction(const FunctionBody &body, std::string_view name);

} // namespace lathe::graphdef

#endif
