// Entries of a hosted object whose nodes are those of a graph (graph/Graph.h) and compiled parts, as the bytes that runtime/hosted reads.
#ifndef LATHE_COMPILER_HOSTED_TFLITEBYTES_H
#define LATHE_COMPILER_HOSTED_TFLITEBYTES_H

#include "compiler/frontend/Model.h"
#include "graph/Graph.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/ArrayRef.h"

namespace lathe::hosted {

/// Nodes are numbered from the inputs on.
struct HostEndpoint {
  uint32_t node = 0, port = 0;
};

struct HostNode {
  const graphdef::Node *node = nullptr; ///< null: a compiled part
  std::string launch;                   ///< its entry in the compiled module
  std::vector<HostEndpoint> inputs;
  std::vector<uint32_t> controls;
  std::vector<DType> outputs;
};

struct HostEntry {
  std::string name;
  bool once = false; ///< runs when an instance is made
  std::vector<TensorSpec> inputs, outputs;
  std::vector<HostEndpoint> results;
  std::vector<HostNode> nodes;
};

/// Fails with diagnostics at nodes that cannot be written: attributes that are functions, constants of more than `maxBytes`, inputs that
/// nothing writes.
mlir::FailureOr<std::string> writeGraph(mlir::MLIRContext *context, llvm::ArrayRef<HostEntry> entries, int64_t maxBytes);

} // namespace lathe::hosted

#endif
