// Kernels with state that belong to no larger family: mutexes, samplers that learn, handles of a session's tensors.
#include "base/Memory.h"
#include "test/runtime/KernelTest.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace lathe::rt {
namespace {

using Code = absl::StatusCode;

struct Mutexes : testing::Test {
  absl::StatusOr<Tensor> lock(Cancellation *cancellation = nullptr) {
    KernelTest node("MutexLock", {}, resources);
    node.cancellation = cancellation;
    auto made = node.run({mutex});
    return made.ok() ? absl::StatusOr<Tensor>((*made)[0]) : made.status();
  }
  absl::Status consume(const Tensor &held) { return KernelTest("ConsumeMutexLock", {}, resources).run({held}).status(); }
  std::shared_ptr<ResourceManager> resources = std::make_shared<ResourceManager>();
  Tensor mutex = (*KernelTest("MutexV2", {}, resources).run({}))[0];
};

TEST_F(Mutexes, oneHolderAtATime) {
  absl::StatusOr<Tensor> first = lock();
  ASSERT_TRUE(first.ok()) << first.status();
  std::atomic<int> got{0};
  std::thread waits([&] {
    absl::StatusOr<Tensor> second = lock();
    EXPECT_TRUE(second.ok());
    ++got;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(got, 0);
  EXPECT_TRUE(consume(*first).ok());
  waits.join(); // its lock ends with the tensor
  EXPECT_EQ(got, 1);
  EXPECT_TRUE(consume(*first).ok()); // once more says nothing: another one may hold it now
  absl::StatusOr<Tensor> third = lock();
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(consume(long0(1)).code(), Code::kInvalidArgument);
  EXPECT_EQ(consume(mutex).code(), Code::kInvalidArgument);
}

TEST_F(Mutexes, whoWaitsCanBeCancelled) {
  absl::StatusOr<Tensor> held = lock();
  Cancellation cancellation;
  std::thread waits([&] { EXPECT_EQ(lock(&cancellation).status().code(), Code::kCancelled); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cancellation.cancel();
  waits.join();
  EXPECT_EQ(lock(&cancellation).status().code(), Code::kCancelled);
  *held = Tensor();
  EXPECT_TRUE(lock().ok());
}

TEST(Samplers, learnWhatTheyAreShown) {
  KernelTest node("LearnedUnigramCandidateSampler",
                  {{"num_true", int64_t(2)},
                   {"num_sampled", int64_t(4)},
                   {"unique", false},
                   {"range_max", int64_t(6)},
                   {"seed", int64_t(5)},
                   {"seed2", int64_t(7)}});
  Tensor classes = longs({1, 1, 1, 2}).reshaped({2, 2});
  // TensorFlow's
  const std::vector<std::vector<int64_t>> drawn = {{4, 1, 1, 2}, {2, 5, 1, 4}, {1, 1, 1, 1}, {2, 2, 1, 1}};
  const std::vector<std::vector<float>> expected = {
      {2 / 3.0f, 2 / 3.0f, 2 / 3.0f, 2 / 3.0f}, {1.6f, 1.6f, 1.6f, 0.8f}, {2, 2, 2, 6 / 7.0f}, {20 / 9.0f, 20 / 9.0f, 20 / 9.0f, 8 / 9.0f}};
  for (size_t step = 0; step < drawn.size(); ++step) {
    auto out = node.run({classes});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(elements<int64_t>((*out)[0]), drawn[step]) << step;
    for (size_t i = 0; i < 4; ++i)
      EXPECT_FLOAT_EQ((*out)[1].data<float>()[i], expected[step][i]) << step;
  }
}

TEST(Samplers, refuseWhatNobodyCanKeep) {
  AttrMap attrs = {{"num_true", int64_t(1)}, {"num_sampled", int64_t(1)}, {"unique", false}, {"range_max", INT64_MAX}};
  EXPECT_EQ(KernelTest("LearnedUnigramCandidateSampler", attrs).run({longs({0}).reshaped({1, 1})}).status().code(), Code::kInvalidArgument);
  const int64_t budget = memoryBudget();
  setMemoryBudget(int64_t(1) << 24);
  attrs["range_max"] = int64_t(INT32_MAX) - 1;
  EXPECT_EQ(KernelTest("LearnedUnigramCandidateSampler", attrs).run({longs({0}).reshaped({1, 1})}).status().code(), Code::kResourceExhausted);
  attrs["num_reserved_ids"] = int64_t(INT32_MAX) - 2;
  attrs["unigrams"] = std::vector<float>{1};
  EXPECT_EQ(KernelTest("FixedUnigramCandidateSampler", attrs).run({longs({0}).reshaped({1, 1})}).status().code(), Code::kResourceExhausted);
  setMemoryBudget(budget);
  attrs["num_reserved_ids"] = INT64_MAX;
  attrs["unigrams"] = std::vector<float>{1, 2};
  attrs["range_max"] = int64_t(2);
  EXPECT_EQ(KernelTest("FixedUnigramCandidateSampler", attrs).run({longs({0}).reshaped({1, 1})}).status().code(), Code::kInvalidArgument);
}

TEST(SessionTensors, aHandleMayBeAResource) {
  auto resources = std::make_shared<ResourceManager>();
  auto made = KernelTest("GetSessionHandleV2", {{"T", DType::Float32}}, resources).run({float0(2.5f)});
  ASSERT_TRUE(made.ok()) << made.status();
  const auto &handle = static_cast<const ResourceHandle &>(*(*made)[0].objects()[0]);
  auto value = KernelTest("GetSessionTensor", {{"dtype", DType::Float32}}, resources).run({string0(handle.name)});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*(*value)[0].data<float>(), 2.5f);
}

TEST(Abort, endsTheStepOnly) {
  absl::Status status = KernelTest("Abort", {{"error_msg", std::string("on purpose")}}).run({}).status();
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_EQ(status.message(), "Abort_op intentional failure; on purpose");
  EXPECT_EQ(KernelTest("Abort", {{"exit_without_error", true}}).run({}).status().code(), Code::kAborted);
  EXPECT_EQ((*KernelTest("Fact", {}).run({}))[0].strings()[0], "0! == 1");
}

} // namespace
} // namespace lathe::rt
