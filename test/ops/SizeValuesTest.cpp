#include "ops/SizeValues.h"

#include "gtest/gtest.h"

using namespace lathe::ops;

namespace {
using Size = std::optional<int64_t>;
using Sizes = std::optional<SizeTensor<Size>>;
constexpr Size unknown;

/// A node whose inputs are given; those without a value are not followed.
struct TestNode : PartialElements {
  TestNode(std::string_view name, std::vector<Sizes> inputs, std::map<std::string, int64_t, std::less<>> ints = {})
      : name(name), inputs(std::move(inputs)), ints(std::move(ints)) {}
  size_t limit() const { return 20; }
  std::string_view op() const { return name; }
  int numInputs() const { return static_cast<int>(inputs.size()); }
  int numOutputs() const { return outputs; }
  int64_t intAttr(std::string_view attr) const { return ints.count(attr) ? ints.find(attr)->second : 0; }
  bool boolAttr(std::string_view attr) const { return intAttr(attr) != 0; }
  std::vector<int64_t> intsAttr(std::string_view) const { return axes; }
  Sizes input(int i) const { return inputs[static_cast<size_t>(i)]; }
  Sizes constant() const { return value; }
  std::optional<std::vector<Size>> dims(int) const { return sizes; }
  std::optional<std::vector<int64_t>> outputShape() const { return shape; }

  std::string_view name;
  std::vector<Sizes> inputs;
  std::map<std::string, int64_t, std::less<>> ints;
  int outputs = 1;
  std::vector<int64_t> axes;
  Sizes value;
  std::optional<std::vector<Size>> sizes;
  std::optional<std::vector<int64_t>> shape;
};

Sizes scalar(Size value) { return SizeTensor<Size>{{value}, {}}; }
Sizes list(std::vector<Size> values) {
  const auto n = static_cast<int64_t>(values.size());
  return SizeTensor<Size>{std::move(values), {n}};
}
Sizes tensor(std::vector<int64_t> shape, std::vector<Size> values) { return SizeTensor<Size>{std::move(values), std::move(shape)}; }

/// "[2,?]{1,?}": shape and elements.
std::string text(const Sizes &value) {
  if (!value)
    return "none";
  std::string out = "[";
  for (int64_t d : value->shape)
    out += std::to_string(d) + ",";
  out += "]{";
  for (Size e : value->elements)
    out += (e ? std::to_string(*e) : "?") + ",";
  return out + "}";
}
std::string text(TestNode node, int output = 0) { return text(sizeValue(node, output)); }
} // namespace

TEST(SizeValues, SizesOfShapes) {
  TestNode node("Shape", {Sizes()});
  EXPECT_EQ(text(node), "none");
  node.sizes = {{2, unknown, 3}};
  EXPECT_EQ(text(node), "[3,]{2,?,3,}");
  node.name = "Rank";
  EXPECT_EQ(text(node), "[]{3,}");
  node.name = "Size";
  EXPECT_EQ(text(node), "[]{?,}");
  node.sizes = {{2, 0, 3}};
  EXPECT_EQ(text(node), "[]{0,}");
  node.sizes = {{INT64_MAX, 3}};
  EXPECT_EQ(text(node), "[]{?,}"); // no number of 64 bits
}

TEST(SizeValues, Arithmetic) {
  EXPECT_EQ(text({"Mul", {list({2, unknown, 3}), scalar(4)}}), "[3,]{8,?,12,}");
  EXPECT_EQ(text({"AddV2", {scalar(1), list({})}}), "[0,]{}");
  EXPECT_EQ(text({"Sub", {scalar(1), list({5})}}), "[1,]{-4,}");
  EXPECT_EQ(text({"Mul", {list({1, 2}), list({1, 2, 3})}}), "none");
  EXPECT_EQ(text({"Mul", {tensor({1, 1}, {2}), list({1, 2})}}), "none"); // the result has two dimensions
  EXPECT_EQ(text({"Mul", {tensor({1, 2}, {2, 3}), list({4})}}), "[1,2,]{8,12,}");
  EXPECT_EQ(text({"FloorDiv", {list({-7, 7, 7, 1}), list({2, -2, 2, 0})}}), "[4,]{-4,-4,3,?,}");
  EXPECT_EQ(text({"TruncateDiv", {list({-7, INT64_MIN}), list({2, -1})}}), "[2,]{-3,?,}");
  EXPECT_EQ(text({"FloorMod", {list({-7, 7, -8}), list({2, -2, 2})}}), "[3,]{1,-1,0,}");
  EXPECT_EQ(text({"Mod", {list({-7, 7}), list({2, -2})}}), "[2,]{-1,1,}");
  EXPECT_EQ(text({"Maximum", {list({1, unknown}), scalar(2)}}), "[2,]{2,?,}");
  EXPECT_EQ(text({"Neg", {list({1, INT64_MIN})}}), "[2,]{-1,?,}");
  EXPECT_EQ(text({"OnesLike", {list({unknown, 4})}}), "[2,]{1,1,}");
  EXPECT_EQ(text({"Prod", {list({2, 3, 4}), scalar(0)}}), "[]{24,}");
  EXPECT_EQ(text({"Prod", {list({2, 3}), list({-1})}, {{"keep_dims", 1}}}), "[1,]{6,}");
  EXPECT_EQ(text({"Prod", {list({}), scalar(0)}}), "[]{1,}");
  EXPECT_EQ(text({"Sum", {list({}), scalar(0)}}), "[]{0,}");
  EXPECT_EQ(text({"Max", {list({}), scalar(0)}}), "none");
  EXPECT_EQ(text({"Min", {list({3, -2}), scalar(0)}}), "[]{-2,}");
  EXPECT_EQ(text({"Sum", {list({1}), scalar(1)}}), "none");
}

TEST(SizeValues, Pieces) {
  EXPECT_EQ(text({"Pack", {scalar(1), scalar(unknown)}}), "[2,]{1,?,}");
  EXPECT_EQ(text({"Pack", {list({1, 2}), list({3, 4})}, {{"axis", -1}}}), "[2,2,]{1,3,2,4,}");
  EXPECT_EQ(text({"Pack", {list({1, 2}), list({3, 4})}, {{"axis", 2}}}), "none");
  EXPECT_EQ(text({"Pack", {list({}), list({})}}), "[2,0,]{}");
  TestNode unpack("Unpack", {list({5, unknown})});
  unpack.outputs = 2;
  EXPECT_EQ(text(unpack), "[]{5,}");
  EXPECT_EQ(text(unpack, 1), "[]{?,}");
  TestNode split("Split", {scalar(0), list({5, unknown, 6, 7})});
  split.outputs = 2;
  EXPECT_EQ(text(split), "[2,]{5,?,}");
  EXPECT_EQ(text(split, 1), "[2,]{6,7,}");
  split.outputs = 3;
  EXPECT_EQ(text(split), "none");
  TestNode splitV("SplitV", {list({5, unknown, 6, 7}), list({1, -1, 0}), scalar(-1)});
  splitV.outputs = 3;
  EXPECT_EQ(text(splitV), "[1,]{5,}");
  EXPECT_EQ(text(splitV, 1), "[3,]{?,6,7,}");
  EXPECT_EQ(text(splitV, 2), "[0,]{}");
  for (std::vector<Size> sizes : {std::vector<Size>{1, 2, 0}, {-1, -1, 4}, {5, -1, 0}, {-2, 3, 3}, {1, 3}, {1, unknown, 3}}) {
    splitV.inputs[1] = list(sizes);
    EXPECT_EQ(text(splitV, 1), "none");
  }
  EXPECT_EQ(text({"ConcatV2", {list({1}), list({2, 3}), scalar(0)}}), "[3,]{1,2,3,}");
  EXPECT_EQ(text({"Concat", {scalar(0), list({1}), list({2, 3})}}), "[3,]{1,2,3,}");
  EXPECT_EQ(text({"ConcatV2", {list({1}), scalar(2), scalar(0)}}), "none");
  EXPECT_EQ(text({"ConcatV2", {list(std::vector<Size>(15)), list(std::vector<Size>(15)), scalar(0)}}), "none"); // above the limit
  EXPECT_EQ(text({"GatherV2", {list({4, 5, 6}), list({2, 0}), scalar(0)}}), "[2,]{6,4,}");
  EXPECT_EQ(text({"Gather", {list({4, 5, 6}), scalar(3)}}), "none");
  EXPECT_EQ(text({"GatherV2", {list({4, 5}), list({unknown}), scalar(0)}}), "none");
  EXPECT_EQ(text({"DynamicStitch", {list({0, 2}), list({1, 0}), list({5, 6}), list({7, 8})}}), "[3,]{8,7,6,}");
  EXPECT_EQ(text({"DynamicStitch", {list({0, 2}), list({5, 6})}}), "none"); // a hole
  EXPECT_EQ(text({"DynamicStitch", {list({INT64_MAX}), list({5})}}), "none");
  EXPECT_EQ(text({"InvertPermutation", {list({2, 0, 1})}}), "[3,]{1,2,0,}");
  EXPECT_EQ(text({"InvertPermutation", {list({1, 1})}}), "none");
  EXPECT_EQ(text({"Slice", {list({1, 2, 3}), list({1}), list({-1})}}), "[2,]{2,3,}");
  EXPECT_EQ(text({"Slice", {list({1, 2, 3}), list({1}), list({INT64_MAX})}}), "none");
}

TEST(SizeValues, StridedSlices) {
  const Sizes of = list({1, 2, 3, 4});
  EXPECT_EQ(text({"StridedSlice", {of, list({1}), list({3}), list({1})}}), "[2,]{2,3,}");
  EXPECT_EQ(text({"StridedSlice", {of, list({-1}), list({unknown}), list({1})}, {{"shrink_axis_mask", 1}}}), "[]{4,}");
  EXPECT_EQ(text({"StridedSlice", {of, list({unknown}), list({2}), list({1})}, {{"begin_mask", 1}}}), "[2,]{1,2,}");
  EXPECT_EQ(text({"StridedSlice", {of, list({unknown}), list({2}), list({1})}}), "none");
  EXPECT_EQ(text({"StridedSlice", {of, list({0}), list({0}), list({-2})}, {{"begin_mask", 1}, {"end_mask", 1}}}), "[2,]{4,2,}");
  EXPECT_EQ(text({"StridedSlice", {of, list({0}), list({4}), list({INT64_MAX})}}), "[1,]{1,}");
  EXPECT_EQ(text({"StridedSlice", {of, list({0}), list({4}), list({0})}}), "none");
  EXPECT_EQ(text({"StridedSlice", {of, list({4}), list({5}), list({1})}, {{"shrink_axis_mask", 1}}}), "none");
  EXPECT_EQ(text({"StridedSlice", {list({}), list({0}), list({0}), list({-1})}, {{"begin_mask", 1}, {"end_mask", 1}}}), "[0,]{}");
  const Sizes square = tensor({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(text({"StridedSlice", {square, list({1}), list({2}), list({1})}, {{"shrink_axis_mask", 1}}}), "[2,]{3,4,}");
  EXPECT_EQ(text({"StridedSlice", {of, list({0, 0}), list({1, 1}), list({1, 1})}}), "none");
}

TEST(SizeValues, Shapes) {
  const Sizes of = list({1, 2, 3, unknown});
  EXPECT_EQ(text({"Reshape", {of, list({2, -1})}}), "[2,2,]{1,2,3,?,}");
  for (std::vector<Size> dims : {std::vector<Size>{3, -1}, {-1, -1}, {-2, -2}, {INT64_MAX, INT64_MAX}, {5}})
    EXPECT_EQ(text({"Reshape", {of, list(dims)}}), "none");
  TestNode reshape("Reshape", {of, list({unknown})});
  EXPECT_EQ(text(reshape), "none");
  reshape.shape = {{-1}};
  EXPECT_EQ(text(reshape), "[4,]{1,2,3,?,}");
  EXPECT_EQ(text({"Reshape", {list({}), list({0, -1})}}), "[0,0,]{}");
  EXPECT_EQ(text({"ExpandDims", {list({1, 2}), scalar(-1)}}), "[2,1,]{1,2,}");
  EXPECT_EQ(text({"ExpandDims", {list({1, 2}), scalar(INT64_MIN)}}), "none");
  TestNode squeeze("Squeeze", {tensor({1, 2, 1}, {5, 6})});
  EXPECT_EQ(text(squeeze), "[2,]{5,6,}");
  squeeze.axes = {-1};
  EXPECT_EQ(text(squeeze), "[1,2,]{5,6,}");
  squeeze.axes = {1};
  EXPECT_EQ(text(squeeze), "none");
  EXPECT_EQ(text({"Fill", {list({2, 2}), scalar(unknown)}}), "[2,2,]{?,?,?,?,}");
  EXPECT_EQ(text({"Fill", {list({INT64_MAX, INT64_MAX}), scalar(1)}}), "none");
  EXPECT_EQ(text({"Range", {scalar(5), scalar(0), scalar(-2)}}), "[3,]{5,3,1,}");
  EXPECT_EQ(text({"Range", {scalar(0), scalar(21), scalar(1)}}), "none");
  EXPECT_EQ(text({"Range", {scalar(INT64_MAX - 1), scalar(INT64_MAX), scalar(2)}}), "[1,]{9223372036854775806,}");
}

TEST(SizeValues, TooFewInputsAndOtherOps) {
  for (const char *op : {"Mul", "Pack", "StridedSlice", "GatherV2", "Range", "Reshape", "NoSuchOp", "MatMul"})
    EXPECT_EQ(text({op, {}}), "none") << op;
  EXPECT_EQ(text({"Identity", {list({3})}}), "[1,]{3,}");
  EXPECT_EQ(text({"IdentityN", {list({3}), list({4})}}, 1), "[1,]{4,}");
  TestNode constant("Const", {});
  constant.value = list({9});
  EXPECT_EQ(text(constant), "[1,]{9,}");
}
