// The families of shape functions, each a list of ops and functions.
#ifndef LATHE_OPS_SHAPES_FAMILIES_H
#define LATHE_OPS_SHAPES_FAMILIES_H

#include "ops/Shapes.h"

#include <utility>

namespace lathe::ops {

/// Sets the shapes of the outputs, which come in as unknown.
using ShapeFunction = absl::Status (*)(const ShapeQuery &query, std::vector<PartialShape> *outputs);
using ShapeTable = std::vector<std::pair<std::string_view, ShapeFunction>>;

void addArrayShapes(ShapeTable *table);
void addSliceShapes(ShapeTable *table);
void addMathShapes(ShapeTable *table);
void addNnShapes(ShapeTable *table);
void addStateShapes(ShapeTable *table);

using Shapes = std::vector<PartialShape>;

/// No tensor has more dimensions.
constexpr int64_t kMaxRank = 254;

/// Assigns a StatusOr's value to `lhs`, or returns its status.
#define LATHE_ASSIGN(lhs, expr)                                                                                        \
  do {                                                                                                                 \
    auto result_ = (expr);                                                                                             \
    if (!result_.ok())                                                                                                 \
      return result_.status();                                                                                         \
    lhs = *std::move(result_);                                                                                         \
  } while (false)
#define LATHE_CHECK(expr)                                                                                              \
  do {                                                                                                                 \
    if (absl::Status status_ = (expr); !status_.ok())                                                                  \
      return status_;                                                                                                  \
  } while (false)

/// The single integer that an input is, where it is known.
inline std::optional<int64_t> scalarValue(const ShapeQuery &q, int input) {
  PartialShape shape = q.inputShape(input);
  std::optional<PartialValues> values = q.inputValues(input);
  return values && values->size() == 1 && (!shape || shape->empty()) ? (*values)[0] : std::nullopt;
}

/// An axis counted from the front; INVALID_ARGUMENT outside [-rank, rank).
absl::StatusOr<int64_t> frontAxis(int64_t axis, int64_t rank);

/// The shape that an input holds: unknown where the input may be a matrix, INVALID_ARGUMENT for sizes below -1 (which is unknown).
absl::StatusOr<PartialShape> heldShape(const ShapeQuery &q, int input);

/// Output 0 has the shape of input 0.
absl::Status sameShape(const ShapeQuery &q, Shapes *out);
/// Output 0 is what inputs 0 and 1 both say.
absl::Status mergedShape(const ShapeQuery &q, Shapes *out);
absl::Status scalarShape(const ShapeQuery &q, Shapes *out);
/// Output 0 is the shape that input 0 holds.
absl::Status shapeFromInput(const ShapeQuery &q, Shapes *out);

} // namespace lathe::ops

#endif
