#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {

ShapeFunction findShapeFunction(std::string_view op) {
  static const ShapeTable table = [] {
    ShapeTable all;
    for (auto add : {addArrayShapes, addSliceShapes, addMathShapes, addNnShapes, addStateShapes})
      add(&all);
    std::sort(all.begin(), all.end(), [](auto &a, auto &b) { return a.first < b.first; });
    return all;
  }();
  auto it = std::lower_bound(table.begin(), table.end(), op, [](auto &entry, std::string_view name) { return entry.first < name; });
  return it != table.end() && it->first == op ? it->second : nullptr;
}

absl::StatusOr<int64_t> frontAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is outside [", -rank, ", ", rank, ")"));
  return axis < 0 ? axis + rank : axis;
}

absl::Status sameShape(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.inputShape(0);
  return absl::OkStatus();
}

absl::Status mergedShape(const ShapeQuery &q, Shapes *out) {
  LATHE_ASSIGN((*out)[0], mergeShapes(q.inputShape(0), q.inputShape(1)));
  return absl::OkStatus();
}

absl::Status scalarShape(const ShapeQuery &, Shapes *out) {
  (*out)[0] = std::vector<int64_t>();
  return absl::OkStatus();
}

absl::Status shapeFromInput(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(0), 1, "the shape"));
  (*out)[0] = shapeOfValues(q.inputValues(0));
  return absl::OkStatus();
}

} // namespace lathe::ops
