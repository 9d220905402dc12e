// Kernels that stay as they are in the region of one op, which runs them part by part.
#ifndef LATHE_PASSES_CODEGEN_CPU_PASSES_PARTS_H
#define LATHE_PASSES_CODEGEN_CPU_PASSES_PARTS_H

#include "mlir/IR/Builders.h"

namespace lathe::cpu {

/// Puts `create`'s op, of the results of the last of `parts` and of what they read of others, in their place:
/// each of them is read by others only in the list, the last one apart. `keptBytes` of what they move stay in
/// the cache.
void joinParts(mlir::ArrayRef<mlir::Operation *> parts, int64_t keptBytes,
               llvm::function_ref<mlir::Operation *(mlir::OpBuilder &, mlir::Location, mlir::TypeRange,
                                                    mlir::ValueRange)>
                   create);

/// The same by an op that is made of a number beside these.
template <typename Op>
void joinParts(mlir::ArrayRef<mlir::Operation *> parts, int64_t keptBytes, int64_t number) {
  joinParts(parts, keptBytes,
            [&](mlir::OpBuilder &b, mlir::Location loc, mlir::TypeRange results, mlir::ValueRange inputs) {
              return Op::create(b, loc, results, inputs, number).getOperation();
            });
}

} // namespace lathe::cpu

#endif
