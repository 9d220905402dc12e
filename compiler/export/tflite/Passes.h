//===- Passes.h - hlo to TensorFlow Lite's operators ------------*- C++ -*-===//
#ifndef LATHE_COMPILER_EXPORT_TFLITE_PASSES_H
#define LATHE_COMPILER_EXPORT_TFLITE_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace lathe::tflwrite {

#define GEN_PASS_DECL
#include "compiler/export/tflite/Passes.h.inc"

/// The passes in order: raise, fuse activations.
void buildTflitePipeline(mlir::OpPassManager &pm);

/// Registers the passes and the pipeline `lathe-tflite`.
void registerTflitePhase();

} // namespace lathe::tflwrite

#endif
