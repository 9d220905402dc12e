// The frontend of TensorFlow Lite's files: from flatbuffers to hlo (docs/tflite.md).
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_TFLITE_H
#define LATHE_COMPILER_FRONTEND_TFLITE_TFLITE_H

#include "compiler/frontend/Frontend.h"
#include "compiler/import/Problems.h"

#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <memory>

namespace lathe::tflite {

const Frontend &frontend();

/// A file as the frontend reads it, but with the operators on integers with scales as they are: what --emit tflite writes again.
mlir::FailureOr<ImportedModel> importForWriting(mlir::MLIRContext *context, llvm::StringRef path, const ImportOptions &options);

/// The bytes of a file; null after problems, which are reported.
std::unique_ptr<llvm::MemoryBuffer> readFile(llvm::StringRef path, const ImportOptions &options, import::Problems &problems);

/// What of a file compiles, operator by operator, without an end at the first that does not.
struct Problem {
  /// Name of the operator's first result, op as in the schema ("CONV_2D"; custom ones by their code), subgraph, reason.
  std::string node, op, subgraph, reason;
};
struct Report {
  struct Count {
    int64_t count = 0, unsupported = 0;
  };
  std::map<std::string, Count> ops;
  std::vector<Problem> problems;
  std::vector<ImportedModel::EntryInfo> entries;
};

/// The report of a file; failure with diagnostics where it is malformed.
mlir::FailureOr<Report> checkFile(mlir::MLIRContext *context, llvm::StringRef path, const ImportOptions &options);

} // namespace lathe::tflite

#endif
