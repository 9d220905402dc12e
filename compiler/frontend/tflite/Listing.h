// The operators of a .tflite file as text.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_LISTING_H
#define LATHE_COMPILER_FRONTEND_TFLITE_LISTING_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

#include <string>

namespace lathe::tflite {

/// A line for each subgraph, its inputs and outputs, and each operator in order: results, name and version, operands, options.
/// Constants are written as their type. Fails after diagnostics for bytes that are no sound file.
mlir::FailureOr<std::string> listOperators(mlir::MLIRContext *context, llvm::StringRef bytes, llvm::StringRef name);

/// A line for each operator of the schema: its name, the newest version that is translated ("-" for operators that are not), and the
/// types of its first input ("any" for all). Custom operators follow, with "custom" as their version.
std::string listKnownOperators();

} // namespace lathe::tflite

#endif
