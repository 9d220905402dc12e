//===- DimGroups.cpp - what a reshape does to runs of dimensions -------------===//

#include "passes/simplify/DimGroups.h"

#include "passes/simplify/Match.h"

using namespace mlir;
using namespace lathe;

static AffineExpr product(RankedTensorType type, ArrayRef<int64_t> dims, size_t first, size_t count) {
  AffineExpr result = hlo::getDim(type, dims[first]);
  for (size_t k = 1; k < count; ++k) {
    AffineExpr next = hlo::getDim(type, dims[first + k]);
    if (!result || !next)
      return {};
    result = result * next;
  }
  return result ? hlo::simplify(result) : result;
}

DimGroups::DimGroups(RankedTensorType from, RankedTensorType to) {
  SmallVector<int64_t> x = largeDims(from), y = largeDims(to);
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    size_t a = 0, b = 0;
    // the shortest runs with equal products
    for (size_t total = 2; total <= 8 && !a; ++total)
      for (size_t n = 1; n < total; ++n) {
        size_t m = total - n;
        if (i + n > x.size() || j + m > y.size())
          continue;
        if (hlo::equalDims(product(from, x, i, n), product(to, y, j, m))) {
          a = n;
          b = m;
          break;
        }
      }
    if (!a)
      return;
    Group group;
    group.from.assign(x.begin() + i, x.begin() + i + a);
    group.to.assign(y.begin() + j, y.begin() + j + b);
    groups.push_back(group);
    i += a;
    j += b;
  }
  valid = i == x.size() && j == y.size();
}
