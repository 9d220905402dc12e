// TensorFlow's own operators inside a TensorFlow Lite file ("FlexErf"): their custom options hold the node of the graph.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_FLEX_H
#define LATHE_COMPILER_FRONTEND_TFLITE_FLEX_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

bool isFlex(const ModelFile &file, const tfl::Operator &op);
/// Why such an operator cannot be translated, as far as the file alone tells; empty if it can.
std::string whyNotFlex(const tfl::Operator &op);
/// Translates it as the same node of a graph.
LogicalResult translateFlex(OpContext &c);

} // namespace lathe::tflite

#endif
