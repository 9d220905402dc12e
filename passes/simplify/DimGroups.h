//===- DimGroups.h - what a reshape does to runs of dimensions ---------------===//

#ifndef LATHE_PASSES_SIMPLIFY_DIMGROUPS_H
#define LATHE_PASSES_SIMPLIFY_DIMGROUPS_H

#include "dialects/hlo/Hlo.h"

namespace lathe {

/// Runs of dimensions of one shape that hold the same elements as runs of another. Dimensions of size one are
/// in none.
struct DimGroups {
  struct Group {
    llvm::SmallVector<int64_t, 2> from, to;
  };
  llvm::SmallVector<Group> groups;
  bool valid = false;

  DimGroups(mlir::RankedTensorType from, mlir::RankedTensorType to);
};

} // namespace lathe

#endif
