// Staging areas and conditional accumulators; sums and means of rows are TensorFlow's.
#include "test/runtime/KernelTest.h"

#include <thread>

namespace lathe::rt {
namespace {

using Types = std::vector<DType>;

struct Staging {
  explicit Staging(AttrMap extra = {}) : attrs(std::move(extra)) { attrs["shared_name"] = std::string("area"); }
  absl::StatusOr<std::vector<Tensor>> run(std::string op, std::vector<Tensor> inputs, AttrMap more = {},
                                          Cancellation *cancellation = nullptr) {
    AttrMap all = attrs;
    for (auto &[name, value] : more)
      all[name] = value;
    KernelTest node(op, all, resources);
    node.cancellation = cancellation;
    return node.run({inputs.begin(), inputs.end()});
  }
  int size(const char *op) { return *(*run(op, {}))[0].data<int32_t>(); }
  AttrMap attrs;
  std::shared_ptr<ResourceManager> resources = std::make_shared<ResourceManager>();
};

TEST(StageKernels, isALineOfTuples) {
  Staging area({{"dtypes", Types{DType::Int32, DType::String}}});
  ASSERT_TRUE(area.run("Stage", {int0(1), string0("a")}).ok());
  ASSERT_TRUE(area.run("Stage", {int0(2), string0("b")}).ok());
  EXPECT_EQ(area.size("StageSize"), 2);
  EXPECT_EQ((*area.run("StagePeek", {int0(1)}))[1].strings()[0], "b");
  EXPECT_EQ(*(*area.run("Unstage", {}))[0].data<int32_t>(), 1);
  ASSERT_TRUE(area.run("StageClear", {}).ok());
  EXPECT_EQ(area.size("StageSize"), 0);
  // waits for what comes
  std::thread later([&] { ASSERT_TRUE(area.run("Stage", {int0(3), string0("c")}).ok()); });
  EXPECT_EQ(*(*area.run("Unstage", {}))[0].data<int32_t>(), 3);
  later.join();
  Cancellation step;
  std::thread killer([&] { step.cancel(); });
  EXPECT_EQ(area.run("Unstage", {}, {}, &step).status().code(), absl::StatusCode::kCancelled);
  killer.join();
}

TEST(StageKernels, boundsHold) {
  Staging area({{"dtypes", Types{DType::Int32}}, {"capacity", int64_t(1)}, {"memory_limit", int64_t(8)}});
  EXPECT_EQ(area.run("Stage", {ints({1, 2, 3})}).status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(area.run("Stage", {ints({1})}).ok());
  std::thread second([&] { ASSERT_TRUE(area.run("Stage", {ints({2})}).ok()); });
  EXPECT_EQ(*(*area.run("Unstage", {}))[0].data<int32_t>(), 1);
  second.join();
  EXPECT_EQ(*(*area.run("Unstage", {}))[0].data<int32_t>(), 2);
}

TEST(StageKernels, mapsTakePartsAndOrder) {
  for (bool ordered : {false, true}) {
    std::string prefix = ordered ? "Ordered" : "";
    Staging area({{"dtypes", Types{DType::Int32, DType::Float32}}});
    AttrMap both = {{"fake_dtypes", Types{DType::Int32, DType::Float32}}};
    auto put = [&](int64_t key) {
      return area.run(prefix + "MapStage", {long0(key), ints({0, 1}), int0(int32_t(key)), float0(float(key))}, both);
    };
    ASSERT_TRUE(put(7).ok());
    ASSERT_TRUE(put(3).ok());
    ASSERT_TRUE(
        area.run(prefix + "MapStage", {long0(5), ints({1}), float0(50)}, {{"fake_dtypes", Types{DType::Float32}}}).ok());
    EXPECT_EQ(area.size((prefix + "MapSize").c_str()), 2);
    EXPECT_EQ(area.size((prefix + "MapIncompleteSize").c_str()), 1);
    EXPECT_EQ(area.run(prefix + "MapStage", {long0(5), ints({1}), float0(50)}, {{"fake_dtypes", Types{DType::Float32}}})
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(
        area.run(prefix + "MapStage", {long0(5), ints({0}), int0(5)}, {{"fake_dtypes", Types{DType::Int32}}}).ok());
    auto peek = area.run(prefix + "MapPeek", {long0(5), ints({0, 1})});
    ASSERT_TRUE(peek.ok()) << peek.status();
    EXPECT_EQ(*(*peek)[1].data<float>(), 50);
    if (ordered) {
      auto first = area.run("OrderedMapUnstageNoKey", {ints({0, 1})});
      ASSERT_TRUE(first.ok()) << first.status();
      EXPECT_EQ(*(*first)[0].data<int64_t>(), 3);
    }
    auto five = area.run(prefix + "MapUnstage", {long0(5), ints({0, 1})});
    ASSERT_TRUE(five.ok()) << five.status();
    EXPECT_EQ(*(*five)[0].data<int32_t>(), 5);
    ASSERT_TRUE(area.run(prefix + "MapClear", {}).ok());
    EXPECT_EQ(area.size((prefix + "MapSize").c_str()), 0);
    EXPECT_EQ(area.run(prefix + "MapUnstage", {long0(5), ints({0, 2})}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

PartialShape shape(std::vector<int64_t> dims) { return dims; }

TEST(Accumulators, denseMeanInBothForms) {
  for (std::string prefix : {"", "Resource"}) {
    auto resources = std::make_shared<ResourceManager>();
    KernelTest node(prefix + "ConditionalAccumulator", {{"dtype", DType::Float16}, {"shape", shape({3})}}, resources);
    Tensor handle = (*node.run({}))[0];
    KernelTest apply(prefix + "AccumulatorApplyGradient", {{"dtype", DType::Float16}}, resources);
    KernelTest take(prefix + "AccumulatorTakeGradient", {{"dtype", DType::Float16}}, resources);
    KernelTest count(prefix + "AccumulatorNumAccumulated", {}, resources);
    KernelTest step(prefix + "AccumulatorSetGlobalStep", {}, resources);
    auto half = [](std::vector<uint16_t> v) { return Tensor::vector<uint16_t>(DType::Float16, v); };
    // [1 2 3], [.1 .2 .3] and [4 5 7]
    absl::StatusOr<std::vector<Tensor>> mean = absl::UnknownError("");
    std::thread taker([&] { mean = take.run({handle, int0(3)}); });
    ASSERT_TRUE(apply.run({handle, long0(0), half({0x3c00, 0x4000, 0x4200})}).ok());
    ASSERT_TRUE(apply.run({handle, long0(0), half({0x2e66, 0x3266, 0x34cd})}).ok());
    EXPECT_EQ(*(*count.run({handle}))[0].data<int32_t>(), 2);
    EXPECT_EQ(apply.run({handle, long0(0), half({1})}).status().code(), absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(apply.run({handle, long0(0), half({0x4400, 0x4500, 0x4700})}).ok());
    taker.join();
    ASSERT_TRUE(mean.ok()) << mean.status();
    EXPECT_EQ(elements<uint16_t>((*mean)[0]), (std::vector<uint16_t>{16077, 16589, 17117}));
    // taking moved the step on: gradients of step 0 are stale now
    ASSERT_TRUE(apply.run({handle, long0(0), half({0, 0, 0})}).ok());
    EXPECT_EQ(*(*count.run({handle}))[0].data<int32_t>(), 0);
    ASSERT_TRUE(step.run({handle, long0(5)}).ok());
    ASSERT_TRUE(apply.run({handle, long0(4), half({0, 0, 0})}).ok());
    ASSERT_TRUE(apply.run({handle, long0(5), half({0, 0, 0})}).ok());
    EXPECT_EQ(*(*count.run({handle}))[0].data<int32_t>(), 1);
    EXPECT_EQ(take.run({handle, int0(0)}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Accumulators, sparseRowsAreDividedByTheirOwnCount) {
  for (bool mean : {true, false}) {
    auto resources = std::make_shared<ResourceManager>();
    KernelTest node("SparseConditionalAccumulator",
                    {{"dtype", DType::Float32},
                     {"shape", shape({mean ? -1 : 6, 2})},
                     {"reduction_type", std::string(mean ? "MEAN" : "SUM")}},
                    resources);
    Tensor handle = (*node.run({}))[0];
    KernelTest apply("SparseAccumulatorApplyGradient", {{"dtype", DType::Float32}, {"has_known_shape", false}}, resources);
    KernelTest take("SparseAccumulatorTakeGradient", {{"dtype", DType::Float32}}, resources);
    ASSERT_TRUE(apply.run({handle, long0(0), longs({0, 2, 5}), floats({1, 2, 3, 4, 5, 6}).reshaped({3, 2}), longs({})}).ok());
    ASSERT_TRUE(apply.run({handle, long0(0), longs({1, 2}), floats({10, 20, 30, 40}).reshaped({2, 2}), longs({})}).ok());
    EXPECT_EQ(apply.run({handle, long0(0), longs({1}), floats({10}).reshaped({1, 1}), longs({})}).status().code(),
              absl::StatusCode::kInvalidArgument);
    if (!mean) {
      EXPECT_EQ(apply.run({handle, long0(0), longs({6}), floats({1, 1}).reshaped({1, 2}), longs({})}).status().code(),
                absl::StatusCode::kInvalidArgument);
    }
    auto out = take.run({handle, int0(2)});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(elements<int64_t>((*out)[0]), (std::vector<int64_t>{0, 1, 2, 5}));
    EXPECT_EQ(elements<float>((*out)[1]), (mean ? std::vector<float>{1, 2, 10, 20, 16.5, 22, 5, 6}
                                                : std::vector<float>{1, 2, 10, 20, 33, 44, 5, 6}));
    EXPECT_EQ(elements<int64_t>((*out)[2]), (std::vector<int64_t>{mean ? -1 : 6, 2}));
  }
}

} // namespace
} // namespace lathe::rt
