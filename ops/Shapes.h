// What is known of the shapes of an op's outputs before it runs. No MLIR and no protobuf: legalisation, hosted objects, sessions and
// the C interface can ask the same functions.
//
// A *partial shape* may lack its rank (nullopt) or some sizes (-1). A function never says what a run could contradict; where it knows
// nothing it says nothing.
#ifndef LATHE_OPS_SHAPES_H
#define LATHE_OPS_SHAPES_H

#include "ops/Registry.h"

#include <optional>
#include <string_view>
#include <vector>

namespace lathe::ops {

using PartialShape = std::optional<std::vector<int64_t>>;
/// Elements of an integer tensor of rank 0 or 1, where they are known.
using PartialValues = std::vector<std::optional<int64_t>>;

/// A node whose shapes are asked for.
class ShapeQuery {
public:
  virtual ~ShapeQuery() = default;
  /// What the registry says of it; the name of a function that a graph's library has where it is a call.
  virtual const OpInfo &op() const = 0;
  virtual int numInputs() const = 0;
  virtual int numOutputs() const = 0;
  /// First flat input (output) of an argument, and how many it has; {-1, 0} for an unknown name.
  virtual std::pair<int, int> inputRange(std::string_view arg) const = 0;
  virtual std::pair<int, int> outputRange(std::string_view arg) const = 0;
  virtual DType inputType(int i) const = 0;
  virtual DType outputType(int i) const = 0;
  virtual PartialShape inputShape(int i) const = 0;
  /// The elements of an integer input of rank 0 or 1, as far as they are known; nullopt when not even their number is.
  virtual std::optional<PartialValues> inputValues(int i) const = 0;
  /// The elements of a constant matrix of integers, row by row; nullopt for all else.
  virtual std::optional<std::vector<int64_t>> matrixValues(int i) const = 0;
  /// A constant scalar of any real type.
  virtual std::optional<double> numberValue(int i) const = 0;
  /// Shape behind a handle: of a variable, of a list's elements.
  virtual PartialShape handleShape(int input) const = 0;
  // Attributes; defaults are filled in. Those that are absent or of another type are zero or empty.
  virtual int64_t intAttr(std::string_view name) const = 0;
  virtual bool boolAttr(std::string_view name) const = 0;
  virtual std::string stringAttr(std::string_view name) const = 0;
  virtual std::vector<std::string> stringsAttr(std::string_view name) const = 0;
  virtual std::vector<int64_t> intsAttr(std::string_view name) const = 0;
  virtual double floatAttr(std::string_view name) const = 0;
  virtual std::vector<float> floatsAttr(std::string_view name) const = 0;
  virtual PartialShape shapeAttr(std::string_view name) const = 0;
  virtual std::vector<PartialShape> shapesAttr(std::string_view name) const = 0;
  /// Of a tensor attribute.
  virtual PartialShape tensorShapeAttr(std::string_view name) const = 0;
};

/// Of each output, and of what is behind it where it is a handle.
struct InferredShapes {
  std::vector<PartialShape> outputs, handles;
};

/// The shapes of the outputs, unknown for an op without a shape function. INVALID_ARGUMENT when the inputs cannot go together.
absl::StatusOr<InferredShapes> inferShapes(const ShapeQuery &query);
bool hasShapeFunction(std::string_view op);
/// The tables have no entry for an op that is not there, and none twice. For tests.
absl::Status checkShapeFunctions();

// What shape functions are made of.

/// What both say; INVALID_ARGUMENT when they contradict each other.
absl::StatusOr<PartialShape> mergeShapes(const PartialShape &a, const PartialShape &b);
/// The size that both say; nullopt when they differ.
std::optional<int64_t> mergeSizes(int64_t a, int64_t b);
/// "[2,?]", "unknown".
std::string shapeToString(const PartialShape &shape);
/// By numpy's rules.
absl::StatusOr<PartialShape> broadcastShapes(const PartialShape &a, const PartialShape &b);
/// Refuses a shape of another rank.
absl::Status expectRank(const PartialShape &shape, int64_t rank, std::string_view what);
absl::Status expectRankAtLeast(const PartialShape &shape, int64_t rank, std::string_view what);
/// A shape of `rank` unknown sizes.
PartialShape unknownOfRank(int64_t rank);
/// -1 where it is not known.
int64_t numElements(const PartialShape &shape);
/// The elements as a shape: negative and unknown ones are unknown sizes.
PartialShape shapeOfValues(const std::optional<PartialValues> &values);

} // namespace lathe::ops

#endif
