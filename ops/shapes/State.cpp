// Variables, optimizers, control flow, queues and iterators.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

namespace lathe::ops {
namespace {

absl::Status shapeAttr(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.shapeAttr("shape");
  return absl::OkStatus();
}

/// A variable of rank 0 may be one that was made before scalars could be told from what is not known.
absl::Status variableV1(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.shapeAttr("shape");
  if (shape && !shape->empty())
    (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status assign(const ShapeQuery &q, Shapes *out) {
  if (!q.boolAttr("validate_shape")) {
    (*out)[0] = q.inputShape(1);
    return absl::OkStatus();
  }
  return mergedShape(q, out);
}

absl::Status assignVariable(const ShapeQuery &q, Shapes *) {
  return mergeShapes(q.handleShape(0), q.inputShape(1)).status();
}

/// What all inputs agree on; a back edge of a loop is not known yet and says nothing.
absl::Status mergeShapesOf(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  for (int i = 1; i < q.numInputs() && shape; ++i) {
    PartialShape next = q.inputShape(i);
    if (!next || next->size() != shape->size()) {
      shape.reset();
      break;
    }
    for (size_t k = 0; k < shape->size(); ++k)
      if ((*shape)[k] != (*next)[k])
        (*shape)[k] = -1;
  }
  (*out)[0] = shape;
  (*out)[1] = std::vector<int64_t>();
  return absl::OkStatus();
}

absl::Status oneToOne(const ShapeQuery &q, Shapes *out) {
  for (int i = 0; i < q.numOutputs() && i < q.numInputs(); ++i)
    (*out)[i] = q.inputShape(i);
  return absl::OkStatus();
}

absl::Status outputShapes(const ShapeQuery &q, Shapes *out) {
  std::vector<PartialShape> shapes = q.shapesAttr("output_shapes");
  if (static_cast<int>(shapes.size()) == q.numOutputs())
    *out = shapes;
  return absl::OkStatus();
}

/// A function of each row; results have the shapes that an attribute tells.
absl::Status mapDefun(const ShapeQuery &q, Shapes *out) {
  auto [first, count] = q.inputRange("arguments");
  int64_t rows = -1;
  for (int i = first; i < first + count; ++i) {
    PartialShape shape = q.inputShape(i);
    LATHE_CHECK(expectRankAtLeast(shape, 1, absl::StrCat("input ", i)));
    std::optional<int64_t> merged = mergeSizes(rows, sizeAt(shape, 0));
    if (!merged)
      return absl::InvalidArgumentError(absl::StrCat("arguments of ", rows, " and ", sizeAt(shape, 0), " rows"));
    rows = *merged;
  }
  std::vector<PartialShape> shapes = q.shapesAttr("output_shapes");
  for (size_t i = 0; i < out->size() && i < shapes.size(); ++i) {
    if (shapes[i])
      shapes[i]->insert(shapes[i]->begin(), rows);
    (*out)[i] = shapes[i];
  }
  return absl::OkStatus();
}

/// Known where all inputs have one shape, all of it known.
absl::Status refSelect(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(0), 0, "the index"));
  PartialShape shape = q.inputShape(1);
  bool isCertain = numElements(shape) >= 0;
  for (int i = 2; i < q.numInputs(); ++i)
    isCertain &= q.inputShape(i) == shape;
  (*out)[0] = isCertain ? shape : std::nullopt;
  return absl::OkStatus();
}

/// An attribute, too, tells of elements, whose first dimensions are joined.
absl::Status listConcat(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.shapeAttr("element_shape");
  LATHE_CHECK(expectRankAtLeast(shape, 1, "element_shape"));
  LATHE_CHECK(mergeShapes(q.handleShape(0), shape).status());
  if (shape)
    (*shape)[0] = -1;
  LATHE_ASSIGN((*out)[0], mergeShapes((*out)[0], shape));
  return absl::OkStatus();
}

/// Elements are the tensor's rows.
absl::Status listFromTensor(const ShapeQuery &q, Shapes *) {
  PartialShape rows = q.inputShape(0), held;
  if (rows && !rows->empty())
    rows->erase(rows->begin());
  LATHE_ASSIGN(held, heldShape(q, 1));
  return mergeShapes(rows, held).status();
}

/// An item is like the list's elements; where those are not known, it tells nothing of the others.
absl::Status listSetItem(const ShapeQuery &q, Shapes *) { return mergeShapes(q.handleShape(0), q.inputShape(2)).status(); }

absl::Status listConcatV2(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.handleShape(0), given;
  LATHE_ASSIGN(given, heldShape(q, 1));
  LATHE_CHECK(mergeShapes(shape, given).status());
  if (!shape || shape->empty())
    return absl::OkStatus();
  (*shape)[0] = -1;
  LATHE_ASSIGN((*out)[0], mergeShapes((*out)[0], shape));
  return absl::OkStatus();
}

} // namespace

void addStateShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"VariableV2", "TemporaryVariable"}, shapeAttr);
  all({"Variable"}, variableV1);
  all({"IsVariableInitialized", "VarIsInitializedOp", "MutexLock", "StringFormat"}, scalarShape);
  all({"Assign"}, assign);
  all({"AssignAdd", "AssignSub"}, mergedShape);
  all({"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}, assignVariable);
  all({"DestroyTemporaryVariable"}, sameShape);
  all({"MapDefun"}, mapDefun);
  all({"RefSelect"}, refSelect);
  all({"TensorListConcat"}, listConcat);
  all({"TensorListFromTensor"}, listFromTensor);
  all({"TensorListSetItem"}, listSetItem);
  all({"TensorListConcatV2"}, listConcatV2);
  all({"Merge", "RefMerge"}, mergeShapesOf);
  all({"IdentityN"}, oneToOne);
  all({"If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "IteratorGetNext", "IteratorGetNextSync"}, outputShapes);
}

} // namespace lathe::ops
