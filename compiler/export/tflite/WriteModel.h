//===- WriteModel.h - raised hlo as a .tflite file --------------*- C++ -*-===//
#ifndef LATHE_COMPILER_EXPORT_TFLITE_WRITEMODEL_H
#define LATHE_COMPILER_EXPORT_TFLITE_WRITEMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace lathe::tflwrite {

/// An entry of the module under the key that its signature gets.
struct SignatureName {
  std::string function, key;
};

/// The bytes of the file. Expects the passes of Passes.h to have run. Failure after a diagnostic for each op, element type or size
/// that the format cannot say. Entries without a name of their own get their function's.
mlir::FailureOr<std::string> writeModel(mlir::ModuleOp module, llvm::ArrayRef<SignatureName> signatures);

} // namespace lathe::tflwrite

#endif
