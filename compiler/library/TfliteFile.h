// Models as TensorFlow Lite files: what `--emit tflite` of the command line and of the library does.
#ifndef LATHE_COMPILER_LIBRARY_TFLITEFILE_H
#define LATHE_COMPILER_LIBRARY_TFLITEFILE_H

#include "compiler/driver/Compiler.h"
#include "compiler/quantize/Quantize.h"

namespace lathe {

/// The options of a compiler for such a file: every signature of a SavedModel with several becomes an entry, serving_default first, as it
/// then is the file's first subgraph.
CompilerOptions tfliteOptions(const CompilerOptions &given);

/// As Compiler::import(), but what is a quantized TensorFlow Lite file already stays as it is unless it is to be quantized in another way.
mlir::LogicalResult importForTflite(mlir::MLIRContext &context, Compiler &compiler);

struct TfliteFile {
  std::string bytes;
  std::optional<quantize::Report> quantized; ///< with options().quantize
};

/// The file of what has been imported; runs the phases that it takes. An error without text was told as a diagnostic.
llvm::Expected<TfliteFile> makeTfliteFile(Compiler &compiler);

} // namespace lathe

#endif
