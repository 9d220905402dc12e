// The ends of epilogues that make bytes of numbers of 32 bits: saturating packs, four vectors to one.
#ifndef LATHE_PASSES_CODEGEN_CPU_PRODUCT_NARROWING_H
#define LATHE_PASSES_CODEGEN_CPU_PRODUCT_NARROWING_H

#include "passes/codegen/element/KernelBuilder.h"
#include "passes/codegen/cpu/Emit.h"

namespace lathe::cpu {

/// The last steps of an epilogue: `wide` (i32) clamped to what bytes hold and converted.
struct Narrowing {
  mlir::Value wide; ///< null where an epilogue ends otherwise
  bool isUnsigned = false; ///< the bytes that it becomes
  int64_t low = 0, high = 0;

  /// Those of a value, and of the first result of a region.
  static Narrowing of(mlir::Value bytes);
  static Narrowing of(mlir::Block &body);
  /// Whether the target packs vectors of so many lanes.
  static bool packs(const KernelTarget &target, unsigned lanes) { return target.x86 && lanes >= 4 && lanes <= 16; }

  /// Four vectors of `wide` as bytes. Of each 128 bits of the vectors in turn come four bytes of the first, of the second ...
  mlir::Value pack(KernelBuilder &b, mlir::ValueRange four) const;
  /// That with the vectors one behind the other.
  static mlir::Value inOrder(KernelBuilder &b, mlir::Value packed);
};

} // namespace lathe::cpu

#endif
