// Finds the function or the rule of an op.
#include "ops/shapes/Rules.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

constexpr std::string_view kRules[] = {
#include "ops/shapes/ArrayRules.def"
    ,
#include "ops/shapes/MathRules.def"
    ,
#include "ops/shapes/NnRules.def"
    ,
#include "ops/shapes/QuantRules.def"
    ,
#include "ops/shapes/SparseRules.def"
    ,
#include "ops/shapes/StateRules.def"
    ,
#include "ops/shapes/DataRules.def"
    ,
#include "ops/shapes/HostRules.def"
};

struct Tables {
  std::map<std::string, ShapeFunction, std::less<>> functions;
  RuleTable rules;
  absl::Status status;

  Tables() {
    for (auto add : {addArrayShapes, addSliceShapes, addMathShapes, addNnShapes, addWindowShapes, addQuantShapes, addLinalgShapes, addSparseShapes,
                     addHostShapes, addStateShapes})
      fill(add, &functions);
    for (std::string_view text : kRules)
      status.Update(addRules(text, &rules));
  }

  void fill(void (*add)(ShapeTable *), std::map<std::string, ShapeFunction, std::less<>> *out) {
    ShapeTable all;
    add(&all);
    for (auto &[op, function] : all) {
      if (!findOp(op))
        status.Update(absl::InvalidArgumentError(absl::StrCat("a function for the unknown op ", std::string(op))));
      if (!out->emplace(std::string(op), function).second)
        status.Update(absl::InvalidArgumentError(absl::StrCat("a second function for op ", std::string(op))));
    }
  }
};

const Tables &tables() {
  static const Tables all;
  return all;
}

} // namespace

absl::Status checkShapeFunctions() { return tables().status; }

bool hasShapeFunction(std::string_view op) { return tables().functions.count(op) || tables().rules.count(op); }

absl::StatusOr<InferredShapes> inferShapes(const ShapeQuery &q) {
  InferredShapes out;
  const size_t n = static_cast<size_t>(q.numOutputs());
  out.outputs.resize(n);
  out.handles.resize(n);
  const std::string_view op = q.op().name;
  if (auto rule = tables().rules.find(op); rule != tables().rules.end())
    LATHE_CHECK(applyRule(*rule->second, q, &out));
  if (auto function = tables().functions.find(op); function != tables().functions.end())
    LATHE_CHECK(function->second(q, &out.outputs));
  out.outputs.resize(n);
  out.handles.resize(n);
  return out;
}

absl::StatusOr<int64_t> frontAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is outside [", -rank, ", ", rank, ")"));
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<int64_t> sizeFrom(const ShapeQuery &q, int input, std::string_view what) {
  LATHE_CHECK(expectScalarIfKnown(q, input, what));
  std::optional<int64_t> value = scalarValue(q, input);
  if (value && *value < 0)
    return absl::InvalidArgumentError(absl::StrCat(std::string(what), " is ", *value, ", and a size cannot be negative"));
  return value.value_or(-1);
}

absl::Status expectScalarIfKnown(const ShapeQuery &q, int input, std::string_view what) {
  std::optional<PartialValues> values = q.inputValues(input);
  const bool isKnown = values && std::all_of(values->begin(), values->end(), [](auto &value) { return value.has_value(); });
  return isKnown || q.matrixValues(input) ? expectRank(q.inputShape(input), 0, what) : absl::OkStatus();
}

absl::StatusOr<PartialShape> restBehind(const PartialShape &data, const PartialShape &first, std::string_view what) {
  if (!data || !first)
    return PartialShape();
  LATHE_CHECK(expectRankAtLeast(data, static_cast<int64_t>(first->size()), "the data"));
  for (size_t i = 0; i < first->size(); ++i)
    if (!mergeSizes((*data)[i], (*first)[i]))
      return absl::InvalidArgumentError(absl::StrCat("data ", shapeToString(data), " and ", std::string(what), " ", shapeToString(first)));
  return PartialShape(std::vector<int64_t>(data->begin() + static_cast<int64_t>(first->size()), data->end()));
}

absl::StatusOr<PartialShape> heldShape(const ShapeQuery &q, int input) {
  PartialShape shape = q.inputShape(input);
  std::optional<PartialValues> values = q.inputValues(input);
  if (!shape)
    return PartialShape();
  if (shape->size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("a shape is given by a tensor of shape ", shapeToString(shape), ", expected a vector"));
  if (!values) // so many sizes, each unknown
    return shape->size() == 1 && (*shape)[0] >= 0 && (*shape)[0] <= kMaxRank ? unknownOfRank((*shape)[0]) : PartialShape();
  if (shape->empty()) // a scalar -1 says nothing
    return (*values)[0].value_or(-1) == -1 ? absl::StatusOr<PartialShape>(PartialShape())
                                           : absl::InvalidArgumentError("a shape that is a scalar has to be -1");
  for (const std::optional<int64_t> &value : *values)
    if (value && *value < -1)
      return absl::InvalidArgumentError(absl::StrCat("a shape has the size ", *value));
  return shapeOfValues(values);
}

absl::Status sameShape(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.inputShape(0);
  return absl::OkStatus();
}

absl::Status mergedShape(const ShapeQuery &q, Shapes *out) {
  LATHE_ASSIGN((*out)[0], mergeShapes(q.inputShape(0), q.inputShape(1)));
  return absl::OkStatus();
}

absl::Status broadcastShape(const ShapeQuery &q, Shapes *out) {
  LATHE_ASSIGN((*out)[0], broadcastShapes(q.inputShape(0), q.inputShape(1)));
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
