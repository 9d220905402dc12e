#include "test/runtime/KernelTest.h"

namespace lathe::rt {
namespace {

TEST(StringJoin, BroadcastsScalars) {
  KernelTest join("StringJoin", {{"N", int64_t(3)}, {"separator", std::string("-")}});
  auto out = join.run({strings({"a", "b"}), string0("x"), strings({"", "d"})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].strings(), (std::vector<std::string>{"a-x-", "b-x-d"}));
}

TEST(StringJoin, RefusesOtherShapes) {
  KernelTest join("StringJoin", {{"N", int64_t(2)}});
  auto out = join.run({strings({"a", "b"}), strings({"c"})});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
}

// Sizes that a tensor names are no reason to take all memory (found by fuzzing).
TEST(RaggedTensorToTensor, hugePartitions) {
  auto run = [](std::vector<std::string> kinds, std::vector<Value> partitions) {
    int64_t n = static_cast<int64_t>(kinds.size());
    KernelTest kernel("RaggedTensorToTensor", {{"T", DType::Float32},
                                               {"Tindex", DType::Int64},
                                               {"Tshape", DType::Int64},
                                               {"num_row_partition_tensors", n},
                                               {"row_partition_types", std::move(kinds)}});
    std::vector<Value> inputs{long0(-1), floats({1, 2}), float0(0)};
    inputs.insert(inputs.end(), partitions.begin(), partitions.end());
    return kernel.run(std::move(inputs)).status().code();
  };
  EXPECT_EQ(run({"ROW_SPLITS"}, {longs({0, int64_t(1) << 33})}), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(run({"FIRST_DIM_SIZE", "VALUE_ROWIDS"}, {long0(int64_t(1) << 40), longs({0, 0})}), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(run({"ROW_SPLITS"}, {longs({0, 2})}), absl::StatusCode::kOk);
}

TEST(ArrayKernels, refusesWhatDoesNotFit) {
  KernelTest pack("Pack", {{"N", int64_t(2)}, {"T", DType::Int32}, {"axis", int64_t(1)}});
  EXPECT_EQ(pack.run({ints({1, 2}), ints({1, 2, 3})}).status().code(), absl::StatusCode::kInvalidArgument);
  KernelTest split("Split", {{"num_split", int64_t(0)}, {"T", DType::Int32}});
  EXPECT_FALSE(split.run({int0(0), ints({1, 2})}).ok());
}

TEST(StringNGrams, hugeWidths) {
  auto run = [](int64_t width, int64_t pad) {
    KernelTest grams("StringNGrams", {{"separator", std::string("|")},
                                      {"ngram_widths", std::vector<int64_t>{width}},
                                      {"left_pad", std::string("l")},
                                      {"right_pad", std::string("r")},
                                      {"pad_width", pad},
                                      {"preserve_short_sequences", false},
                                      {"Tsplits", DType::Int64}});
    return grams.run({strings({"a", "b"}), longs({0, 2})}).status().code();
  };
  EXPECT_EQ(run(2, 1), absl::StatusCode::kOk);
  EXPECT_EQ(run(int64_t(1) << 40, -1), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(run(int64_t(1) << 62, int64_t(1) << 62), absl::StatusCode::kResourceExhausted);
}

TEST(ParseExampleV2, refusesOtherNumberOfOutputs) {
  KernelTest parse("ParseExampleV2", {{"Tdense", std::vector<DType>()},
                                      {"num_sparse", int64_t(0)},
                                      {"sparse_types", std::vector<DType>{DType::String, DType::String}},
                                      {"ragged_value_types", std::vector<DType>()},
                                      {"ragged_split_types", std::vector<DType>()},
                                      {"dense_shapes", std::vector<PartialShape>()}});
  auto out = parse.run({strings({""}), strings({}), strings({"a", "b"}), strings({}), strings({})});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
}

} // namespace
} // namespace lathe::rt
