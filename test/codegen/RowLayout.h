// How the tensors of a kernel under test lie in memory.
#ifndef LATHE_TEST_CODEGEN_ROWLAYOUT_H
#define LATHE_TEST_CODEGEN_ROWLAYOUT_H

#include "passes/codegen/cpu/Emit.h"

#include <cstring>

namespace lathe::test {

/// In bytes: rows of the last dimension, perhaps apart (`row` elements, 0: dense) and then not aligned.
struct RowLayout {
  int64_t count, length, distance, start = 0;
  RowLayout(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> dims, int64_t row) {
    const int64_t elem = codegen::elemBytes(type.getElementType());
    int64_t elements = 1;
    for (int64_t d : dims)
      elements *= d;
    const int64_t last = dims.empty() ? 1 : dims.back();
    length = (row ? last : elements) * elem;
    count = row ? (last ? elements / last : 0) : 1;
    distance = row * elem;
    if (row)
      start = 5 * elem;
  }
  int64_t bytes() const { return start + (count ? (count - 1) * distance + length : 0); }
  /// Copies a dense tensor to where its rows lie in `memory`.
  void place(const void *dense, void *memory) const {
    for (int64_t i = 0; i < count && length; ++i)
      std::memcpy(static_cast<char *>(memory) + start + i * distance,
                  static_cast<const char *>(dense) + i * length, length);
  }
};

} // namespace lathe::test

#endif
