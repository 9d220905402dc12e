//===- Import.h - TensorFlow models into the graph dialect ------*- C++ -*-===//
//
// Words as in compiler/frontend/Model.h. An entry is one public graph.func, from feeds to fetches.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_IMPORT_IMPORT_H
#define LATHE_COMPILER_IMPORT_IMPORT_H

#include "compiler/frontend/Model.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace lathe {

/// Imports a GraphDef (binary or text), a MetaGraph or a SavedModel folder, told apart by content. Problems are
/// reported as diagnostics of `context`, all of them, with the node's location.
mlir::FailureOr<ImportedModel> importModel(mlir::MLIRContext *context, llvm::StringRef path,
                                           const ImportOptions &options = {});

/// The same for bytes in memory. `name` stands for the file in messages; checkpoints are not looked for.
mlir::FailureOr<ImportedModel> importModelBytes(mlir::MLIRContext *context, llvm::StringRef bytes,
                                                llvm::StringRef name, const ImportOptions &options = {});

/// What `lathe inspect` shows of a file without importing it: its signatures.
mlir::FailureOr<std::vector<SignatureInfo>> readSignatures(mlir::MLIRContext *context, llvm::StringRef path,
                                                           const ImportOptions &options = {});

} // namespace lathe

#endif
