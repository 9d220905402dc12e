// What operators of a TensorFlow Lite file refer to; for files whose indices nobody has checked yet.
#ifndef LATHE_GRAPH_TFLITE_OPERATORS_H
#define LATHE_GRAPH_TFLITE_OPERATORS_H

#include "proto/tflite_generated.h"

namespace lathe::tflgraph {

using Op = tfl::BuiltinOperator;

/// Null where the index is out of range.
inline const tfl::OperatorCode *codeOf(const tfl::Model &model, const tfl::Operator &op) {
  auto *codes = model.operator_codes();
  return codes && op.opcode_index() < codes->size() ? codes->Get(op.opcode_index()) : nullptr;
}

/// Null for numbers that are out of range, -1 (an input that is left out) among them.
inline const tfl::Tensor *tensorOf(const tfl::SubGraph &graph, int index) {
  return index >= 0 && graph.tensors() && static_cast<unsigned>(index) < graph.tensors()->size() ? graph.tensors()->Get(static_cast<unsigned>(index)) : nullptr;
}

inline const tfl::SubGraph *subgraphOf(const tfl::Model &model, int index) {
  return index >= 0 && static_cast<unsigned>(index) < model.subgraphs()->size() ? model.subgraphs()->Get(static_cast<unsigned>(index)) : nullptr;
}

/// The subgraph that a CALL_ONCE names.
inline const tfl::SubGraph *calledOnce(const tfl::Model &model, const tfl::Operator &op) {
  const auto *o = op.builtin_options_as_CallOnceOptions();
  return o ? subgraphOf(model, o->init_subgraph_index()) : nullptr;
}

/// Operators of variables.
inline bool isState(Op op) { return op == Op::VAR_HANDLE || op == Op::READ_VARIABLE || op == Op::ASSIGN_VARIABLE; }

} // namespace lathe::tflgraph

#endif
