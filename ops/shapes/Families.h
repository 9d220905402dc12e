// The families of shape functions, each a list of ops and functions.
#ifndef LATHE_OPS_SHAPES_FAMILIES_H
#define LATHE_OPS_SHAPES_FAMILIES_H

#include "ops/Shapes.h"

#include <utility>

namespace lathe::ops {

/// Sets the shapes of the outputs, which come in as unknown.
using ShapeFunction = absl::Status (*)(const ShapeQuery &query, std::vector<PartialShape> *outputs);
using ShapeTable = std::vector<std::pair<std::string_view, ShapeFunction>>;

/// Gives a list of ops one function.
inline auto addsTo(ShapeTable *table) {
  return [table](std::initializer_list<const char *> ops, ShapeFunction f) {
    for (const char *op : ops)
      table->emplace_back(op, f);
  };
}

void addArrayShapes(ShapeTable *table);
void addSliceShapes(ShapeTable *table);
void addMathShapes(ShapeTable *table);
void addNnShapes(ShapeTable *table);
void addWindowShapes(ShapeTable *table);
void addQuantShapes(ShapeTable *table);
void addLinalgShapes(ShapeTable *table);
void addSparseShapes(ShapeTable *table);
void addHostShapes(ShapeTable *table);
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

/// Where batch, channels and spatial dimensions lie.
struct Layout {
  int64_t rank = 4;
  bool channelsFirst = false;
  int64_t channel() const { return channelsFirst ? 1 : rank - 1; }
  int64_t spatial(int64_t i) const { return channelsFirst ? i + 2 : i + 1; }
};

/// False for a format that is not laid out like that.
bool readLayout(const ShapeQuery &q, int64_t rank, Layout *layout);

/// The single integer that an input is, where it is known.
inline std::optional<int64_t> scalarValue(const ShapeQuery &q, int input) {
  PartialShape shape = q.inputShape(input);
  std::optional<PartialValues> values = q.inputValues(input);
  return values && values->size() == 1 && (!shape || shape->empty()) ? (*values)[0] : std::nullopt;
}

/// An axis counted from the front; INVALID_ARGUMENT outside [-rank, rank).
absl::StatusOr<int64_t> frontAxis(int64_t axis, int64_t rank);

/// What follows in a shape behind the dimensions that it shares with `first`; unknown where either is. INVALID_ARGUMENT, calling
/// `first` `what`, where they are not alike.
absl::StatusOr<PartialShape> restBehind(const PartialShape &data, const PartialShape &first, std::string_view what);

/// Refuses a vector or matrix whose elements are known. What is not known is for the kernel to check.
absl::Status expectScalarIfKnown(const ShapeQuery &q, int input, std::string_view what);
/// The number that an input is, -1 where it is not known. INVALID_ARGUMENT for a known vector and for a negative number.
absl::StatusOr<int64_t> sizeFrom(const ShapeQuery &q, int input, std::string_view what);

/// The shape that an input holds: INVALID_ARGUMENT for matrices and for sizes below -1 (which is unknown).
absl::StatusOr<PartialShape> heldShape(const ShapeQuery &q, int input);

/// The size of a dimension; -1 for an unknown one.
inline int64_t sizeAt(const PartialShape &shape, size_t i) { return shape && i < shape->size() ? (*shape)[i] : -1; }
/// Gives all outputs of an argument a shape.
inline void setOutputs(const ShapeQuery &q, std::string_view arg, const PartialShape &shape, Shapes *out) {
  auto [first, count] = q.outputRange(arg);
  for (int i = first; i < first + count; ++i)
    (*out)[static_cast<size_t>(i)] = shape;
}

/// Output 0 has the shape of input 0.
absl::Status sameShape(const ShapeQuery &q, Shapes *out);
/// Output 0 is what inputs 0 and 1 both say.
absl::Status mergedShape(const ShapeQuery &q, Shapes *out);
/// Output 0 is what inputs 0 and 1 broadcast to.
absl::Status broadcastShape(const ShapeQuery &q, Shapes *out);
absl::Status scalarShape(const ShapeQuery &q, Shapes *out);
/// Output 0 is a product of matrices that may be transposed.
absl::Status matrixProduct(const ShapeQuery &q, Shapes *out);
/// Input 0 without the axes that input 1 holds.
absl::Status reducedShape(const ShapeQuery &q, Shapes *out);
/// The shape that input 2 holds without the axes that input 3 holds.
absl::Status reducedSparseShape(const ShapeQuery &q, Shapes *out);
/// Inputs [first, first + n) joined along the axis that another input is.
absl::Status concatShape(const ShapeQuery &q, Shapes *out, int first, int n, int axisInput);
/// Output 0 is the shape that input 0 holds.
absl::Status shapeFromInput(const ShapeQuery &q, Shapes *out);

} // namespace lathe::ops

#endif
