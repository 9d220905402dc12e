// Selects with hlo.shortcut: a condition that seldom holds, tested for whole vectors at once.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_SHORTCUT_H
#define LATHE_PASSES_CODEGEN_ELEMENT_SHORTCUT_H

#include "passes/codegen/element/ElementEmitter.h"

#include "dialects/hlo/Hlo.h"

namespace lathe::codegen {

bool isShortcut(mlir::Operation *op);
/// Whether there are any beneath the roots.
bool hasShortcuts(mlir::ArrayRef<mlir::Value> roots);

/// Whether the condition of a shortcut holds in a lane of one of `count` vectors; that it does not is expected. `emit` gives the elements
/// of a tensor in vector i.
mlir::FailureOr<mlir::Value> seldomAny(KernelBuilder &b, hlo::SelectOp shortcut, unsigned count,
                                       llvm::function_ref<mlir::FailureOr<mlir::Value>(mlir::Value tensor, unsigned i)> emit);

/// The values of `roots` in several vectors that lie anywhere: result [vector][root]. Shortcuts beneath the roots are tested for all of
/// them at once. `enter(i)` gives the index of vector i and makes the emitter's producers give what belongs to it; it is called again and again.
mlir::FailureOr<std::vector<mlir::SmallVector<mlir::Value>>>
emitTogether(ElementEmitter &emitter, mlir::ArrayRef<mlir::Value> roots, unsigned count, unsigned lanes,
             llvm::function_ref<mlir::ArrayRef<mlir::Value>(unsigned i)> enter);

} // namespace lathe::codegen

#endif
