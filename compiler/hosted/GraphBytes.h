// The host part of a graph as the bytes that runtime/hosted reads (runtime/hosted/Graph.h has the layout).
#ifndef LATHE_COMPILER_HOSTED_GRAPHBYTES_H
#define LATHE_COMPILER_HOSTED_GRAPHBYTES_H

#include "compiler/import/Import.h"
#include "dialects/graph/Graph.h"

namespace lathe::hosted {

/// The public functions of a module whose compiled parts are launches. `entries` says what the user calls things. Fails with
/// diagnostics at nodes that cannot be written.
mlir::FailureOr<std::string> writeGraph(mlir::ModuleOp module, llvm::ArrayRef<ImportedModel::EntryInfo> entries);

} // namespace lathe::hosted

#endif
