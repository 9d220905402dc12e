// Objects with host kernels from TensorFlow Lite files: what graph/tflite cuts out as nodes runs by kernels, each part between is an
// entry of the compiled module.
#ifndef LATHE_COMPILER_HOSTED_COMPILETFLITE_H
#define LATHE_COMPILER_HOSTED_COMPILETFLITE_H

#include "compiler/hosted/CompileHosted.h"

namespace lathe::hosted {

/// compileHosted() for such a file.
llvm::Expected<HostedModel> compileTflite(mlir::MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps,
                                          llvm::ArrayRef<std::string> executorOps, EmitWants wants);

/// couldBeHosted() for such a file.
bool findTfliteNodes(mlir::MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps, llvm::StringRef prefix,
                     std::string &lines);

} // namespace lathe::hosted

#endif
