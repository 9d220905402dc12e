//===- Passes.h - hlo to TensorFlow Lite's operators ------------*- C++ -*-===//
#ifndef LATHE_COMPILER_EXPORT_TFLITE_PASSES_H
#define LATHE_COMPILER_EXPORT_TFLITE_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace lathe::tflwrite {

#define GEN_PASS_DECL
#include "compiler/export/tflite/Passes.h.inc"

/// The passes in order: raise what is quantized (inputs and results as `io` says), raise, fuse activations, and with `weights`
/// (dynamic or float16) store weights in fewer bits.
void buildTflitePipeline(mlir::OpPassManager &pm, const std::string &io = "float", const std::string &weights = "");

/// Registers the passes and the pipeline `lathe-tflite`.
void registerTflitePhase();

} // namespace lathe::tflwrite

#endif
