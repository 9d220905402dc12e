//===- MatchResize.h - bilinear resizes found in the ops that they became ---===//

#ifndef LATHE_PASSES_SIMPLIFY_MATCHRESIZE_H
#define LATHE_PASSES_SIMPLIFY_MATCHRESIZE_H

#include "dialects/hlo/Hlo.h"

#include <optional>

namespace lathe {

/// Images [n, h, w, c] of f32 at another height and width: each pixel from the two rows and columns around its place, as TensorFlow's
/// ResizeBilinear reads them.
struct BilinearResize {
  mlir::Value image;
  int64_t height = 0, width = 0; ///< of the result
  bool alignCorners = false, halfPixelCenters = false;
  llvm::SmallVector<mlir::Operation *> ops; ///< that compute it and nothing else, in order; the last one makes the result, [n, height, width, c]
                                            ///< or [n, height, width * c]
};

/// The resize whose result `last` makes: columns, then rows are combined, each as gather * weight + gather * weight. Null for anything else,
/// and where others read what is between. One of the two directions may keep its size.
std::optional<BilinearResize> matchBilinearResize(mlir::Operation *last);

} // namespace lathe

#endif
