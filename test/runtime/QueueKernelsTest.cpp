// Queues and barriers; the numbers of random_shuffle and priority are TensorFlow's.
#include "test/runtime/KernelTest.h"

#include <atomic>
#include <set>
#include <thread>

namespace lathe::rt {
namespace {

using Types = std::vector<DType>;
using Shapes = std::vector<PartialShape>;

/// A queue and the nodes that use it.
struct Fixture {
  Fixture(std::string kind, Types types, AttrMap attrs, bool v2 = true) : v2(v2), types(types) {
    attrs["component_types"] = types;
    KernelTest node(kind + (v2 ? "V2" : ""), attrs, resources);
    if (kind == "PriorityQueue")
      this->types.insert(this->types.begin(), DType::Int64);
    auto made = node.run({});
    status = made.status();
    if (made.ok())
      handle = (*made)[0];
  }

  absl::StatusOr<std::vector<Tensor>> run(std::string op, AttrMap attrs, std::vector<Tensor> inputs,
                                          Cancellation *cancellation = nullptr) const {
    KernelTest node(op + (v2 ? "V2" : ""), attrs, resources);
    node.cancellation = cancellation;
    std::vector<Value> values = {handle};
    values.insert(values.end(), inputs.begin(), inputs.end());
    return node.run(values);
  }
  absl::Status enqueue(std::vector<Tensor> t, Cancellation *c = nullptr) const {
    return run("QueueEnqueue", {{"Tcomponents", types}}, t, c).status();
  }
  absl::Status enqueueMany(std::vector<Tensor> t, Cancellation *c = nullptr) const {
    return run("QueueEnqueueMany", {{"Tcomponents", types}}, t, c).status();
  }
  absl::StatusOr<std::vector<Tensor>> dequeue(Cancellation *c = nullptr) const {
    return run("QueueDequeue", {{"component_types", types}}, {}, c);
  }
  absl::StatusOr<std::vector<Tensor>> dequeueMany(int n, Cancellation *c = nullptr) const {
    return run("QueueDequeueMany", {{"component_types", types}}, {int0(n)}, c);
  }
  absl::StatusOr<std::vector<Tensor>> dequeueUpTo(int n) const {
    return run("QueueDequeueUpTo", {{"component_types", types}}, {int0(n)});
  }
  absl::Status close(bool cancel = false) const {
    return run("QueueClose", {{"cancel_pending_enqueues", cancel}}, {}).status();
  }
  int size() const { return *(*run("QueueSize", {}, {}))[0].data<int32_t>(); }
  bool isClosed() const { return *(*run("QueueIsClosed", {}, {}))[0].data<bool>(); }

  bool v2;
  Types types;
  std::shared_ptr<ResourceManager> resources = std::make_shared<ResourceManager>();
  Tensor handle;
  absl::Status status;
};

PartialShape scalarShape() { return std::vector<int64_t>(); }

TEST(QueueKernels, fifoKeepsOrderInBothForms) {
  for (bool v2 : {false, true}) {
    Fixture q("FIFOQueue", {DType::Int32, DType::String}, {{"shapes", Shapes{scalarShape(), scalarShape()}}}, v2);
    ASSERT_TRUE(q.status.ok()) << q.status;
    ASSERT_TRUE(q.enqueueMany({ints({1, 2, 3}), strings({"a", "b", "c"})}).ok());
    ASSERT_TRUE(q.enqueue({int0(4), string0("d")}).ok());
    EXPECT_EQ(q.size(), 4);
    EXPECT_FALSE(q.isClosed());
    auto one = q.dequeue();
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(*(*one)[0].data<int32_t>(), 1);
    EXPECT_EQ((*one)[1].strings()[0], "a");
    auto many = q.dequeueMany(2);
    ASSERT_TRUE(many.ok()) << many.status();
    EXPECT_EQ(elements<int32_t>((*many)[0]), (std::vector<int32_t>{2, 3}));
    auto none = q.dequeueMany(0);
    ASSERT_TRUE(none.ok());
    EXPECT_EQ((*none)[1].dims(), std::vector<int64_t>{0});
    ASSERT_TRUE(q.close().ok());
    EXPECT_TRUE(q.isClosed());
    EXPECT_EQ(q.enqueue({int0(5), string0("e")}).code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(q.dequeueMany(2).status().code(), absl::StatusCode::kOutOfRange);
    auto rest = q.dequeueUpTo(2);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_EQ((*rest)[1].strings(), std::vector<std::string>{"d"});
    EXPECT_EQ(q.dequeue().status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(q.dequeueUpTo(2).status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(q.close().code(), absl::StatusCode::kCancelled);
  }
}

TEST(QueueKernels, refusesWhatDoesNotFit) {
  Fixture q("FIFOQueue", {DType::Int32}, {{"shapes", Shapes{std::vector<int64_t>{2}}}});
  EXPECT_EQ(q.enqueue({ints({1, 2, 3})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(q.enqueueMany({ints({1, 2})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(q.dequeueMany(-1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(q.run("QueueDequeue", {{"component_types", Types{DType::Float32}}}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  Fixture open("FIFOQueue", {DType::Int32}, {});
  EXPECT_TRUE(open.enqueue({ints({1, 2, 3})}).ok());
  EXPECT_EQ(open.dequeueMany(1).status().code(), absl::StatusCode::kInvalidArgument);
  Fixture two("FIFOQueue", {DType::Int32}, {{"shapes", Shapes{scalarShape(), scalarShape()}}});
  EXPECT_EQ(two.status.code(), absl::StatusCode::kInvalidArgument);
  // another queue under the name
  KernelTest other("FIFOQueueV2", {{"component_types", Types{DType::Int32}}, {"capacity", int64_t(3)}}, q.resources);
  EXPECT_EQ(other.run({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(QueueKernels, paddingFillsWithZeros) {
  Fixture q("PaddingFIFOQueue", {DType::Int32, DType::String},
            {{"shapes", Shapes{std::vector<int64_t>{-1}, std::vector<int64_t>{1, -1}}}});
  ASSERT_TRUE(q.status.ok()) << q.status;
  ASSERT_TRUE(q.enqueue({ints({1}), Tensor::fromStrings({1, 2}, {"a", "b"})}).ok());
  ASSERT_TRUE(q.enqueue({ints({2, 3, 4}), Tensor::fromStrings({1, 0}, {})}).ok());
  auto both = q.dequeueMany(2);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ((*both)[0].dims(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(elements<int32_t>((*both)[0]), (std::vector<int32_t>{1, 0, 0, 2, 3, 4}));
  EXPECT_EQ((*both)[1].dims(), (std::vector<int64_t>{2, 1, 2}));
  EXPECT_EQ((*both)[1].strings(), (std::vector<std::string>{"a", "b", "", ""}));
  auto none = q.dequeueMany(0);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ((*none)[0].dims(), (std::vector<int64_t>{0, 0}));
}

TEST(QueueKernels, shuffleIsTensorFlows) {
  Fixture q("RandomShuffleQueue", {DType::Int32},
            {{"shapes", Shapes{scalarShape()}},
             {"capacity", int64_t(20)},
             {"min_after_dequeue", int64_t(3)},
             {"seed", int64_t(87654321)},
             {"seed2", int64_t(7)}});
  ASSERT_TRUE(q.enqueueMany({ints({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}).ok());
  std::vector<int32_t> got;
  for (int i = 0; i < 3; ++i)
    got.push_back(*(*q.dequeue())[0].data<int32_t>());
  EXPECT_EQ(got, (std::vector<int32_t>{3, 10, 5}));
  EXPECT_EQ(elements<int32_t>((*q.dequeueMany(4))[0]), (std::vector<int32_t>{4, 0, 8, 7}));
  ASSERT_TRUE(q.close().ok());
  EXPECT_EQ(elements<int32_t>((*q.dequeueUpTo(9))[0]), (std::vector<int32_t>{6, 9, 1, 11, 2}));
}

TEST(QueueKernels, priorityOrderIsTensorFlows) {
  Fixture q("PriorityQueue", {DType::Int32}, {{"shapes", Shapes{scalarShape()}}});
  ASSERT_TRUE(q.status.ok()) << q.status;
  ASSERT_TRUE(q.enqueueMany({longs({3, 1, 3, 2, 1, 3, 1}), ints({0, 1, 2, 3, 4, 5, 6})}).ok());
  auto all = q.dequeueMany(7);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(elements<int64_t>((*all)[0]), (std::vector<int64_t>{1, 1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(elements<int32_t>((*all)[1]), (std::vector<int32_t>{1, 6, 4, 3, 5, 0, 2}));
}

TEST(QueueKernels, closeLetsPendingEnqueuesFinishUnlessCancelled) {
  for (bool cancel : {false, true}) {
    Fixture q("FIFOQueue", {DType::Int32}, {{"shapes", Shapes{scalarShape()}}, {"capacity", int64_t(2)}});
    absl::Status enqueued, closed;
    std::thread adder([&] { enqueued = q.enqueueMany({ints({1, 2, 3, 4})}); });
    while (q.size() < 2)
      std::this_thread::yield();
    std::thread closer([&] { closed = q.close(cancel); });
    if (cancel) {
      closer.join();
      adder.join();
      EXPECT_EQ(enqueued.code(), absl::StatusCode::kCancelled);
      EXPECT_EQ(elements<int32_t>((*q.dequeueUpTo(5))[0]), (std::vector<int32_t>{1, 2}));
    } else {
      auto four = q.dequeueMany(4);
      ASSERT_TRUE(four.ok()) << four.status();
      EXPECT_EQ(elements<int32_t>((*four)[0]), (std::vector<int32_t>{1, 2, 3, 4}));
      adder.join();
      closer.join();
      EXPECT_TRUE(enqueued.ok());
    }
    EXPECT_TRUE(closed.ok());
    EXPECT_EQ(q.dequeue().status().code(), absl::StatusCode::kOutOfRange);
  }
}

TEST(QueueKernels, cancelledDequeueGivesBackWhatItTook) {
  Fixture q("FIFOQueue", {DType::Int32}, {{"shapes", Shapes{scalarShape()}}});
  Cancellation step;
  absl::Status waiting;
  ASSERT_TRUE(q.enqueueMany({ints({1, 2})}).ok());
  std::thread taker([&] { waiting = q.dequeueMany(3, &step).status(); });
  while (q.size() > 0)
    std::this_thread::yield();
  step.cancel();
  taker.join();
  EXPECT_EQ(waiting.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(elements<int32_t>((*q.dequeueMany(2))[0]), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(q.dequeue(&step).status().code(), absl::StatusCode::kCancelled);
}

TEST(QueueKernels, manyProducersAndConsumersLoseNothing) {
  for (const char *kind : {"FIFOQueue", "RandomShuffleQueue", "PriorityQueue", "PaddingFIFOQueue"}) {
    bool priority = std::string(kind) == "PriorityQueue";
    Fixture q(kind, {DType::Int32}, {{"shapes", Shapes{scalarShape()}}, {"capacity", int64_t(7)}});
    constexpr int kThreads = 6, kEach = 200;
    std::mutex mutex;
    std::multiset<int32_t> got;
    std::vector<std::thread> producers, consumers;
    for (int t = 0; t < kThreads; ++t)
      producers.emplace_back([&, t] {
        for (int i = 0; i < kEach; i += 4) {
          int32_t v = t * kEach + i;
          std::vector<Tensor> batch = {ints({v, v + 1, v + 2})}, one = {int0(v + 3)};
          if (priority) {
            batch.insert(batch.begin(), longs({v, v, v}));
            one.insert(one.begin(), long0(v));
          }
          ASSERT_TRUE(q.enqueueMany(batch).ok());
          ASSERT_TRUE(q.enqueue(one).ok());
        }
      });
    for (int t = 0; t < kThreads; ++t)
      consumers.emplace_back([&, t] {
        for (;;) {
          auto r = t % 2 ? q.dequeue() : q.dequeueUpTo(3);
          if (!r.ok()) {
            EXPECT_EQ(r.status().code(), absl::StatusCode::kOutOfRange);
            return;
          }
          std::lock_guard<std::mutex> lock(mutex);
          for (int32_t v : elements<int32_t>(r->back()))
            got.insert(v);
        }
      });
    for (std::thread &t : producers)
      t.join();
    ASSERT_TRUE(q.close().ok());
    for (std::thread &t : consumers)
      t.join();
    ASSERT_EQ(got.size(), static_cast<size_t>(kThreads * kEach)) << kind;
    EXPECT_EQ(std::set<int32_t>(got.begin(), got.end()).size(), got.size()) << kind;
  }
}

TEST(QueueKernels, cancellingStepsWhileOthersRun) {
  Fixture q("FIFOQueue", {DType::Int32}, {{"shapes", Shapes{scalarShape()}}, {"capacity", int64_t(3)}});
  std::atomic<int> put{0}, taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        Cancellation step;
        std::thread killer([&] { step.cancel(); });
        if (t % 2) {
          put += q.enqueue({int0(i)}, &step).ok();
        } else {
          auto r = q.dequeueMany(2, &step);
          taken += r.ok() ? 2 : 0;
        }
        killer.join();
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(put - taken, q.size());
}

TEST(QueueKernels, barrierServesCompleteKeys) {
  auto resources = std::make_shared<ResourceManager>();
  Types types = {DType::Float32, DType::String};
  KernelTest node("Barrier", {{"component_types", types}, {"shapes", Shapes{scalarShape(), scalarShape()}}}, resources);
  Tensor handle = (*node.run({}))[0];
  auto insert = [&](int64_t component, std::vector<std::string> keys, Tensor values) {
    DType type = values.dtype();
    return KernelTest("BarrierInsertMany", {{"T", type}, {"component_index", component}}, resources)
        .run({handle, strings(std::move(keys)), values})
        .status();
  };
  auto take = [&](int n, bool small) {
    return KernelTest("BarrierTakeMany", {{"component_types", types}, {"allow_small_batch", small}}, resources)
        .run({handle, int0(n)});
  };
  auto size = [&](const char *op) { return *(*KernelTest(op, {}, resources).run({handle}))[0].data<int32_t>(); };
  ASSERT_TRUE(insert(0, {"a", "b", "c"}, floats({1, 2, 3})).ok());
  EXPECT_EQ(size("BarrierIncompleteSize"), 3);
  EXPECT_EQ(insert(0, {"a"}, floats({1})).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(insert(1, {"c", "a"}, strings({"x", "y"})).ok());
  EXPECT_EQ(size("BarrierReadySize"), 2);
  auto two = take(2, false);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(elements<int64_t>((*two)[0]), (std::vector<int64_t>{INT64_MIN, INT64_MIN}));
  EXPECT_EQ((*two)[1].strings(), (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(elements<float>((*two)[2]), (std::vector<float>{3, 1}));
  EXPECT_EQ((*two)[3].strings(), (std::vector<std::string>{"x", "y"}));
  auto close = [&] { return KernelTest("BarrierClose", {}, resources).run({handle}).status(); };
  ASSERT_TRUE(close().ok());
  EXPECT_EQ(insert(1, {"new"}, strings({"z"})).code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(insert(1, {"b"}, strings({"z"})).ok());
  auto last = take(5, true);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ((*last)[1].strings(), std::vector<std::string>{"b"});
  EXPECT_EQ(take(5, true).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(close().code(), absl::StatusCode::kCancelled);
}

} // namespace
} // namespace lathe::rt
