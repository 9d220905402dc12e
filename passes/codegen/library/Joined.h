// What a concatenate copies: which pieces of which rows.
#ifndef LATHE_PASSES_CODEGEN_LIBRARY_JOINED_H
#define LATHE_PASSES_CODEGEN_LIBRARY_JOINED_H

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::codegen {

/// A row is what lies in the dimension that is put together and in those behind it. All sizes are in words, of `carrier`. What lies in the
/// result already is no piece.
struct Joined {
  Joined(hlo::ConcatenateOp op, KernelBuilder &b);

  struct Piece {
    mlir::Value source;
    mlir::AffineExpr size, distance; ///< of a row, and from one row to the next
    mlir::AffineExpr offset, begin;  ///< in a row of the result, and among what a row copies
  };
  mlir::Type carrier;
  int64_t wordBytes;
  mlir::AffineExpr rows, resultRow, copied; ///< rows; from one of the result to the next; what a row copies
  mlir::SmallVector<Piece> pieces;
};

} // namespace lathe::codegen

#endif
