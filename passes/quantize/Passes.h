// The quantization room: float hlo to hlo that computes in integers of 8 bits, by what calibration says of its values.
#ifndef LATHE_PASSES_QUANTIZE_PASSES_H
#define LATHE_PASSES_QUANTIZE_PASSES_H

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>
#include <string>

namespace lathe::quantize {

#define GEN_PASS_DECL
#include "passes/quantize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/quantize/Passes.h.inc"

/// Simplification before ranges are taken and units are looked for.
void buildPreparePipeline(mlir::OpPassManager &pm, int64_t foldBytes);
/// What follows it: factors move into weights, also out of roundings to a range that were not taken.
void buildFoldPipeline(mlir::OpPassManager &pm, int64_t foldBytes);

} // namespace lathe::quantize

#endif
