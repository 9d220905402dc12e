// Which node of a graph stands for an operator of a TensorFlow Lite file.
#ifndef LATHE_GRAPH_TFLITE_NODETABLE_H
#define LATHE_GRAPH_TFLITE_NODETABLE_H

#include "graph/Emit.h"
#include "proto/tflite_generated.h"

namespace lathe::tflgraph {

using graphdef::Emitter;
using graphdef::Val;

/// "GATHER", or a custom operator's own name.
std::string nameOf(const tfl::OperatorCode &code);
tfl::BuiltinOperator builtinOf(const tfl::OperatorCode &code);
/// The type of a tensor in the file as ours; Invalid for those that graphs do not have.
DType dtypeOf(tfl::TensorType type);

/// Nodes for an operator with these inputs (none for a tensor that is left out); its results, as many as the operator has.
/// UNIMPLEMENTED for operators without such nodes, INVALID_ARGUMENT for options that are missing.
absl::StatusOr<std::vector<Val>> translate(Emitter &e, const tfl::OperatorCode &code, const tfl::Operator &op, const std::vector<Val> &inputs);

/// The node that a Flex operator holds. INVALID_ARGUMENT where its options are something else.
absl::StatusOr<tf::NodeDef> flexNode(const tfl::Operator &op);

} // namespace lathe::tflgraph

#endif
