//===- Portable.h - simplification for other runtimes -----------*- C++ -*-===//
#ifndef LATHE_PASSES_SIMPLIFY_PORTABLE_H
#define LATHE_PASSES_SIMPLIFY_PORTABLE_H

#include "passes/simplify/Passes.h"

namespace lathe::simplify {

/// buildSimplifyPipeline without what only our own kernels gain by: layers in parts of a batch, convolutions and loops in parts,
/// channels made of space.
void buildPortableSimplifyPipeline(mlir::OpPassManager &pm, const SimplifyOptions &options = {});

} // namespace lathe::simplify

#endif
