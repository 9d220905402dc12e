//===- Frontend.h - bytes of some format into a module ----------*- C++ -*-===//
//
// A frontend reads one format and gives a module in a dialect of the pipeline, its entries with names and types, and the
// phase that the module has behind it. Which one reads a file is told from the content.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_FRONTEND_FRONTEND_H
#define LATHE_COMPILER_FRONTEND_FRONTEND_H

#include "compiler/frontend/Model.h"

namespace lathe {

class Frontend {
public:
  virtual ~Frontend() = default;
  /// "TensorFlow", "TensorFlow Lite", for messages.
  virtual llvm::StringRef name() const = 0;
  /// Whether a file that starts with these bytes (a few hundred, or all it has; none for a folder) is of this format.
  virtual bool recognizes(llvm::StringRef head) const = 0;
  /// The phase that imported modules have behind them. After Phase::Import the module is a graph that a session may run.
  virtual Phase entersAfter() const = 0;

  /// Imports a file. Problems are reported as diagnostics of `context`, all of them, with the node's location.
  virtual mlir::FailureOr<ImportedModel> importFile(mlir::MLIRContext *context, llvm::StringRef path,
                                                    const ImportOptions &options) const = 0;
  /// The same for bytes in memory. `name` stands for the file in messages.
  virtual mlir::FailureOr<ImportedModel> importBytes(mlir::MLIRContext *context, llvm::StringRef bytes,
                                                     llvm::StringRef name, const ImportOptions &options) const = 0;
};

/// The frontend for a file; that of TensorFlow's graphs (which says what is wrong) where no other knows it.
const Frontend &frontendOfFile(llvm::StringRef path);
const Frontend &frontendOfBytes(llvm::StringRef bytes);

/// GraphDef, MetaGraph and SavedModel.
const Frontend &graphFrontend();

} // namespace lathe

#endif
