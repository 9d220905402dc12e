// Many threads on one session, many sessions on one graph, closing while running. Run under TSan and ASan by hand:
// cmake -S runtime -B build-tsan -DLATHE_SANITIZE=thread.
#include "test/runtime/SessionTest.h"

#include <atomic>
#include <thread>

namespace lathe {
namespace {

constexpr int kThreads = 64, kRuns = 1000;

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
      for (int i = 0; i < kRuns; ++i)
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
      for (int i = 0; i < 100; ++i) {
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
  for (int round = 0; round < 20; ++round) {
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

TEST(SessionStress, ProducersAndConsumers) {
  GraphBuilder b;
  b.placeholder("x");
  b.add("q", "FIFOQueueV2", {}, DType::String, "").types("component_types", {DType::String}).set("capacity", 10);
  b.add("put", "QueueEnqueueV2", {"q", "x"}, DType::String, "").types("Tcomponents", {DType::String});
  b.add("take", "QueueDequeueV2", {"q"}, DType::String, "").types("component_types", {DType::String});
  Session s;
  ASSERT_TRUE(s.Create(b.graph).ok());
  constexpr int kEach = 300, kPairs = 8;
  std::vector<std::atomic<int>> seen(kEach * kPairs);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kPairs; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i)
        if (!s.Run({{"x", text(std::to_string(t * kEach + i))}}, {}, {"put"}, nullptr).ok())
          ++wrong;
    });
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        std::vector<Tensor> out;
        if (s.Run({}, {"take"}, {}, &out).ok())
          ++seen[std::stoi(textOf(out[0]))];
        else
          ++wrong;
      }
    });
  }
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(wrong, 0);
  for (auto &n : seen)
    EXPECT_EQ(n, 1);
}

} // namespace
} // namespace lathe
