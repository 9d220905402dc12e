// Many threads on one session, many sessions on one graph, queues with many ends, closing while running. Short here; at full
// size with LATHE_SLOW_TESTS=1, which scripts/test-full does under ThreadSanitizer and AddressSanitizer with leaks.
#include "test/runtime/SessionTest.h"

#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
/// The counts of shared statuses go down inside the installed absl, which is not instrumented: who deletes the last one seems to race
/// with those that counted before.
extern "C" const char *__tsan_default_suppressions() { return "race:absl::*Status::Unref*\n"; }
#endif
#endif

namespace lathe {
namespace {

constexpr int kThreads = 64;
bool isFull() { return std::getenv("LATHE_SLOW_TESTS") != nullptr; }
int runs() { return isFull() ? 1000 : 50; }

/// Starts `count` threads and waits for them.
template <typename Fn>
void together(int count, Fn fn) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&fn, t] { fn(t); });
  for (std::thread &t : threads)
    t.join();
}

/// A wide graph over a function, a conditional and a variable.
tf::GraphDef busy() {
  GraphBuilder b;
  b.graph = graphOf(R"pb(
    library { function {
      signature { name: "twice" input_arg { name: "a" type: DT_STRING } output_arg { name: "r" type: DT_STRING } }
      node_def { name: "j" op: "StringJoin" input: "a" input: "a" attr { key: "N" value { i: 2 } } }
      ret { key: "r" value: "j:output:0" } } })pb");
  b.placeholder("x").placeholder("p", DType::Bool);
  b.add("v", "VariableV2", {}, DType::String, "dtype").shape("shape", {});
  b.add("assign", "Assign", {"v", "x"});
  std::vector<std::string> parts;
  for (int i = 0; i < 6; ++i) {
    std::string n = std::to_string(i);
    b.join("a" + n, {"x", "x"}).add("f" + n, "twice", {"a" + n}, DType::String, "").join("c" + n, {"f" + n, "x"});
    parts.push_back("c" + n);
  }
  b.join("all", parts).add("s", "Switch", {"all", "p"}).join("yes", {"s:1", "x"}).add("no", "Identity", {"s:0"});
  b.add("m", "Merge", {"no", "yes"}).set("N", 2);
  return b.graph;
}

absl::Status once(Session &s, int i) {
  bool p = i % 2;
  std::vector<Tensor> out;
  absl::Status status = s.Run({{"x", text(i % 3 ? "ab" : "c")}, {"p", Tensor::scalar<bool>(DType::Bool, p)}}, {"m"}, {}, &out);
  size_t unit = i % 3 ? 2 : 1;
  if (status.ok() && textOf(out[0]).size() != unit * (6 * 5 + p))
    return absl::InternalError("wrong result " + textOf(out[0]));
  return status;
}

TEST(SessionStress, OneSession) {
  Session s;
  ASSERT_TRUE(s.Create(busy()).ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < runs(); ++i)
        if (!once(s, t + i).ok())
          ++wrong;
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SessionStress, ManySessionsOnOneGraph) {
  Session first;
  ASSERT_TRUE(first.Create(busy()).ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      SessionOptions options;
      options.interOpThreads = 2;
      if (t % 2)
        options.devices = first.devices();
      Session s(options);
      if (!s.Create(first.graph()).ok())
        ++wrong;
      for (int i = 0; i < (isFull() ? 100 : 10); ++i) {
        std::vector<Tensor> out;
        if (!once(s, t + i).ok() || !s.Run({{"x", text("v")}}, {"assign"}, {}, &out).ok() || textOf(out[0]) != "v")
          ++wrong;
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SessionStress, CloseWhileRunning) {
  for (int round = 0; round < (isFull() ? 20 : 4); ++round) {
    auto s = std::make_unique<Session>();
    ASSERT_TRUE(s->Create(busy()).ok());
    std::atomic<int> wrong{0}, done{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0;; ++i) {
          absl::Status status = once(*s, t + i);
          if (status.code() == absl::StatusCode::kCancelled)
            return;
          ++done;
          if (!status.ok())
            ++wrong;
        }
      });
    while (done < 50)
      std::this_thread::yield();
    EXPECT_TRUE(s->Close().ok());
    for (std::thread &t : threads)
      t.join();
    EXPECT_EQ(wrong, 0);
  }
}

/// Blocked operations let go when the session closes.
TEST(SessionStress, CloseWakesQueues) {
  GraphBuilder b;
  b.add("q", "FIFOQueueV2", {}, DType::String, "").types("component_types", {DType::String});
  b.add("take", "QueueDequeueV2", {"q"}, DType::String, "").types("component_types", {DType::String});
  Session s;
  ASSERT_TRUE(s.Create(b.graph).ok());
  std::vector<std::thread> threads;
  std::atomic<int> cancelled{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      std::vector<Tensor> out;
      if (s.Run({}, {"take"}, {}, &out).code() == absl::StatusCode::kCancelled)
        ++cancelled;
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(s.Close().ok());
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(cancelled, 8);
}

/// A queue of one string component under an op name, with "put", "putMany", "take", "takeMany" and "close".
tf::GraphDef queueGraph(const std::string &op) {
  GraphBuilder b;
  b.placeholder("x");
  bool shuffles = op == "RandomShuffleQueueV2";
  b.add("q", op, {}, DType::String, "").types("component_types", {DType::String}).set("capacity", 16);
  auto *shapes = (*b.last().mutable_attr())["shapes"].mutable_list();
  shapes->add_shape();
  if (shuffles)
    b.set("min_after_dequeue", 4).set("seed", 3).set("seed2", 4);
  b.add("put", "QueueEnqueueV2", {"q", "x"}, DType::String, "").types("Tcomponents", {DType::String});
  b.add("putMany", "QueueEnqueueManyV2", {"q", "x"}, DType::String, "").types("Tcomponents", {DType::String});
  b.add("take", "QueueDequeueV2", {"q"}, DType::String, "").types("component_types", {DType::String});
  b.constant("three", int32_t(3)).add("takeMany", "QueueDequeueUpToV2", {"q", "three"}, DType::String, "").types("component_types", {DType::String});
  b.add("close", "QueueCloseV2", {"q"}, DType::String, "");
  return b.graph;
}

/// Elements go in by ones and by fives and come out by ones and by threes: each of them once.
void producersAndConsumers(const std::string &op) {
  Session s;
  ASSERT_TRUE(s.Create(queueGraph(op)).ok());
  const int each = isFull() ? 1000 : 60, ends = 16;
  std::vector<std::atomic<int>> seen(static_cast<size_t>(each) * ends);
  std::atomic<int> wrong{0}, producing{ends};
  together(2 * ends, [&](int t) {
    if (t < ends) {
      for (int i = 0; i < each;) {
        int n = t % 2 ? 5 : 1;
        Tensor x = n == 1 ? text(std::to_string(t * each + i)) : Tensor::fromStrings({n}, std::vector<std::string>(n));
        for (int k = 0; n > 1 && k < n; ++k)
          x.mutableStrings()[k] = std::to_string(t * each + i + k);
        wrong += !s.Run({{"x", x}}, {}, {n == 1 ? "put" : "putMany"}, nullptr).ok();
        i += n;
      }
      if (--producing == 0)
        wrong += !s.Run({}, {}, {"close"}, nullptr).ok();
      return;
    }
    for (;;) {
      std::vector<Tensor> out;
      absl::Status status = s.Run({}, {t % 2 ? "take" : "takeMany"}, {}, &out);
      if (status.code() == absl::StatusCode::kOutOfRange)
        return;
      if (!status.ok()) {
        ++wrong;
        return;
      }
      for (const std::string &v : out[0].strings())
        ++seen[std::stoi(v)];
    }
  });
  EXPECT_EQ(wrong, 0);
  for (auto &n : seen)
    ASSERT_EQ(n, 1);
}

TEST(SessionStress, FifoQueue) { producersAndConsumers("FIFOQueueV2"); }
TEST(SessionStress, ShufflingQueue) { producersAndConsumers("RandomShuffleQueueV2"); }
TEST(SessionStress, PaddingQueue) { producersAndConsumers("PaddingFIFOQueueV2"); }

/// Producers and consumers that run when the session closes end, all of them, with CANCELLED.
TEST(SessionStress, CloseUnderQueues) {
  for (int round = 0; round < (isFull() ? 20 : 4); ++round) {
    Session s;
    ASSERT_TRUE(s.Create(queueGraph("FIFOQueueV2")).ok());
    std::atomic<int> moved{0}, other{0};
    std::thread closer([&] {
      while (moved < 100)
        std::this_thread::yield();
      s.Close().IgnoreError();
    });
    together(12, [&](int t) {
      for (;;) {
        std::vector<Tensor> out;
        absl::Status status = t % 3 ? s.Run({{"x", text("e")}}, {}, {"put"}, nullptr) : s.Run({}, {"take"}, {}, &out);
        if (status.code() == absl::StatusCode::kCancelled)
          return;
        other += !status.ok();
        ++moved;
      }
    });
    closer.join();
    EXPECT_EQ(other, 0);
  }
}

/// Numbers of one generator are given out once each, whoever draws.
TEST(SessionStress, RandomNumbersAreGivenOutOnce) {
  GraphBuilder b;
  b.constant("size", int32_t(2));
  (*b.last().mutable_attr())["value"].mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1);
  b.add("r", "RandomUniform", {"size"}, DType::Float64, "dtype").type("T", DType::Int32).set("seed", 7).set("seed2", 9);
  Session s, again;
  ASSERT_TRUE(s.Create(b.graph).ok());
  ASSERT_TRUE(again.Create(b.graph).ok());
  const int threads = 16, each = isFull() ? 500 : 50;
  std::vector<std::vector<double>> drawn(threads);
  together(threads, [&](int t) {
    for (int i = 0; i < each; ++i) {
      std::vector<Tensor> out;
      if (s.Run({}, {"r"}, {}, &out).ok())
        drawn[t].insert(drawn[t].end(), out[0].data<double>(), out[0].data<double>() + 2);
    }
  });
  std::set<double> all, expected;
  for (auto &list : drawn)
    all.insert(list.begin(), list.end());
  for (int i = 0; i < threads * each; ++i) {
    std::vector<Tensor> out;
    ASSERT_TRUE(again.Run({}, {"r"}, {}, &out).ok());
    expected.insert(out[0].data<double>(), out[0].data<double>() + 2);
  }
  EXPECT_EQ(all.size(), 2u * threads * each);
  EXPECT_EQ(all, expected);
}

/// Iterators whose prefetching threads call functions go away with the step, on the executor's few threads.
TEST(SessionStress, DroppedIterators) {
  tf::GraphDef graph = graphOf(R"pb(
    library { function {
      signature { name: "f" input_arg { name: "x" type: DT_INT64 } output_arg { name: "r" type: DT_STRING } }
      node_def { name: "s" op: "AsString" input: "x" attr { key: "T" value { type: DT_INT64 } } }
      node_def { name: "j" op: "StringJoin" input: "s:output:0" input: "s:output:0" attr { key: "N" value { i: 2 } } }
      ret { key: "r" value: "j:output:0" } } }
    node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
      attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 0 } } } }
    node { name: "many" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
      attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 1000000 } } } }
    node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
      attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 1 } } } }
    node { name: "range" op: "RangeDataset" input: "zero" input: "many" input: "one"
      attr { key: "output_types" value { list { type: DT_INT64 } } } attr { key: "output_shapes" value { list { shape {} } } } }
    node { name: "map" op: "MapDataset" input: "range" attr { key: "f" value { func { name: "f" } } } attr { key: "Targuments" value { list {} } }
      attr { key: "output_types" value { list { type: DT_STRING } } } attr { key: "output_shapes" value { list { shape {} } } } }
    node { name: "pre" op: "PrefetchDataset" input: "map" input: "one"
      attr { key: "output_types" value { list { type: DT_STRING } } } attr { key: "output_shapes" value { list { shape {} } } } }
    node { name: "it" op: "AnonymousIteratorV2"
      attr { key: "output_types" value { list { type: DT_STRING } } } attr { key: "output_shapes" value { list { shape {} } } } }
    node { name: "make" op: "MakeIterator" input: "pre" input: "it" }
    node { name: "next" op: "IteratorGetNext" input: "it" input: "^make"
      attr { key: "output_types" value { list { type: DT_STRING } } } attr { key: "output_shapes" value { list { shape {} } } } })pb");
  SessionOptions options;
  options.interOpThreads = 2;
  Session s(options);
  ASSERT_TRUE(s.Create(graph).ok());
  std::atomic<int> wrong{0};
  together(8, [&](int) {
    for (int i = 0; i < (isFull() ? 100 : 20); ++i) {
      std::vector<Tensor> out;
      absl::Status status = s.Run({}, {"next"}, {}, &out);
      wrong += !status.ok() || textOf(out[0]) != "00";
    }
  });
  EXPECT_EQ(wrong, 0);
}

} // namespace
} // namespace lathe
