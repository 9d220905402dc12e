// Compiled parts of a file as files of their own.
#ifndef LATHE_RUNTIME_TFLITE_API_PARTBYTES_H
#define LATHE_RUNTIME_TFLITE_API_PARTBYTES_H

#include "graph/tflite/Cut.h"
#include "runtime/tflite_api/Model.h"

namespace lathe::tflite_api {

/// The model with the operators, inputs and outputs of one step of `subgraph`, which is the first subgraph there, and without signatures.
/// UNIMPLEMENTED for files that cannot be changed so: subgraphs that share their operators, or that run the first one.
absl::StatusOr<std::string> partBytes(const Model &model, unsigned subgraph, const tflgraph::Step &step);

} // namespace lathe::tflite_api

#endif
