// What sessions leave under way on /device:GPU:0 of the emulated driver, which runs streams as late and out of order as it may: where
// the host waits, what waits for what on the device, and what becomes of steps that fail. gpu-queue.test runs these with several
// seeds, the checks of memory, and calls of the driver that fail.
#include "compiler/jit/ClusterCompiler.h"
#include "runtime/session/Core.h"
#include "test/runtime/SessionTest.h"
#include "test/session/Samples.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <unistd.h>

namespace lathe {
namespace {

constexpr int kSize = 3000; // floats: more than stays on the host

Tensor filled(float value, int size = kSize) { return Tensor::vector<float>(DType::Float32, std::vector<float>(size, value)); }

bool allAre(const Tensor &t, float value) {
  for (int64_t i = 0; i < t.numElements(); ++i)
    if (t.data<float>()[i] != value)
      return false;
  return t.valid();
}

/// Before the first session of any test opens the driver, which reads them once.
[[maybe_unused]] const bool environment = [] {
  setenv("LATHE_CUDA_DRIVER", LATHE_EMULATED_CUDA, 1);
  setenv("LATHE_EMU_DEVICES", "2", 1);
  if (!std::getenv("LATHE_EMU_COUNTS")) {
    setenv("LATHE_EMU_COUNTS", (::testing::TempDir() + "gpu_queue_counts" + std::to_string(getpid())).c_str(), 1);
    std::atexit([] { std::remove(std::getenv("LATHE_EMU_COUNTS")); });
  }
  return true;
}();

class GpuQueue : public ::testing::Test {
protected:
  void start(const tf::GraphDef &graph, std::vector<int> gpus = {0}) {
    options.compiler = getClusterCompiler();
    options.gpus = std::move(gpus);
    options.allowSoftPlacement = false;
    session = std::make_unique<Session>(options);
    absl::Status made = session->Create(graph);
    ASSERT_TRUE(made.ok()) << made;
  }
  absl::StatusOr<std::vector<Tensor>> run(const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                                          const std::vector<std::string> &targets = {}) {
    std::vector<Tensor> out;
    absl::Status status = session->Run(feeds, fetches, targets, &out);
    if (!status.ok())
      return status;
    return out;
  }
  /// How often the driver's functions were called since the last context was gone; ends the session.
  std::map<std::string, int64_t> calls() {
    session.reset();
    std::map<std::string, int64_t> all;
    std::ifstream file(std::getenv("LATHE_EMU_COUNTS"));
    std::string name;
    for (int64_t n; file >> name >> n;)
      all[name] += n;
    std::remove(std::getenv("LATHE_EMU_COUNTS"));
    return all;
  }

  SessionOptions options;
  std::unique_ptr<Session> session;
};

tf::NodeDef &on(GraphBuilder &b, const char *device) {
  b.last().set_device(device);
  return b.last();
}

/// `name` = op(inputs) of floats on a device.
void floats(GraphBuilder &b, const char *device, const std::string &name, const std::string &op, const std::vector<std::string> &inputs) {
  b.add(name, op, inputs, DType::Float32);
  on(b, device);
}

constexpr const char *kGpu = "/gpu:0", *kCpu = "/cpu:0";

TEST_F(GpuQueue, OneWaitAStep) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  floats(b, kGpu, "a", "Tanh", {"x"});
  floats(b, kGpu, "b", "Neg", {"a"});
  floats(b, kGpu, "c", "Square", {"b"});
  options.clusterFlags = "forbid=b"; // so that there are three modules
  constexpr int kSteps = 20;
  std::map<std::string, int64_t> few, many;
  for (int steps : {1, kSteps}) {
    std::remove(std::getenv("LATHE_EMU_COUNTS"));
    start(b.graph);
    for (int i = 0; i < steps; ++i) {
      auto out = run({{"x", filled(0)}}, {"c"});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_TRUE(allAre((*out)[0], 0));
    }
    (steps == 1 ? few : many) = calls();
  }
  auto more = [&](const char *name) { return many[name] - few[name]; };
  EXPECT_EQ(more("cuLaunchKernel") + more("cuGraphLaunch"), 3 * (kSteps - 1));
  EXPECT_EQ(more("cuEventSynchronize"), kSteps - 1) << "the fetch, once a step";
  EXPECT_EQ(more("cuStreamSynchronize") + more("cuCtxSynchronize") + more("cuMemcpyDtoH") + more("cuMemcpyHtoD"), 0);
}

// A run reads what it was fed when its turn comes; once Run returns, the caller has it back.
TEST_F(GpuQueue, WhatIsFedIsTheCallersAgain) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  b.add("v", "VarHandleOp", {}, DType::Float32, "dtype").shape("shape", {kSize}).set("shared_name", std::string("v"));
  on(b, kGpu);
  floats(b, kGpu, "twice", "AddV2", {"x", "x"});
  b.add("set", "AssignVariableOp", {"v", "twice"}, DType::Float32, "dtype");
  on(b, kGpu);
  b.add("read", "ReadVariableOp", {"v"}, DType::Float32, "dtype");
  on(b, kGpu);
  floats(b, kGpu, "e", "Neg", {"read"});
  start(b.graph);
  for (int i = 1; i <= 3; ++i) {
    Tensor x = filled(static_cast<float>(i));
    auto ran = run({{"x", x}}, {}, {"set"});
    ASSERT_TRUE(ran.ok()) << ran.status();
    EXPECT_TRUE(x.isUnique()) << "nothing holds it";
    std::fill_n(x.data<float>(), kSize, 77.0f);
    auto out = run({}, {"e"});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(allAre((*out)[0], -2.0f * static_cast<float>(i)));
  }
}

// What arrives from the host gets a buffer that work under way still reads.
TEST_F(GpuQueue, ArrivalsWaitForTheLastUseOfTheirBuffer) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32).placeholder("h", DType::Float32);
  floats(b, kGpu, "a", "Exp", {"x"});  // lies in a buffer that is free once b has been asked for
  floats(b, kGpu, "b", "Neg", {"a"});
  floats(b, kCpu, "next", "Square", {"h"});
  b.last().add_input("^b");
  floats(b, kGpu, "c", "Mul", {"b", "next"}); // next was sent
  floats(b, kGpu, "d", "Sub", {"c", "next"});
  options.clusterFlags = "forbid=a,b,c,d";
  start(b.graph);
  for (int i = 2; i < 12; ++i) {
    auto h = static_cast<float>(i);
    auto out = run({{"x", filled(0)}, {"h", filled(h)}}, {"b", "d"});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(allAre((*out)[0], -1));
    EXPECT_TRUE(allAre((*out)[1], -2 * h * h)) << "step " << i;
  }
}

// Host kernels in between get what they read, and nodes behind them what they made.
TEST_F(GpuQueue, HostKernelsInBetween) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  std::string last = "x";
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    floats(b, kGpu, "g" + n, "AddV2", {last, "x"});
    floats(b, kCpu, "h" + n, "Neg", {"g" + n});
    last = "h" + n;
  }
  start(b.graph);
  for (int i = 1; i < 6; ++i) {
    auto x = static_cast<float>(i);
    auto out = run({{"x", filled(x)}}, {"h3", "g1"});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(allAre((*out)[0], x));
    EXPECT_TRUE(allAre((*out)[1], -x));
  }
}

// What a module takes from the host's memory stays there until it has been read.
TEST_F(GpuQueue, WhatLiesOnTheHostStays) {
  GraphBuilder b;
  b.placeholder("k", DType::Int32);
  auto ints = [&](const std::string &name, const std::string &op, const std::vector<std::string> &inputs) {
    b.add(name, op, inputs, DType::Int32);
    on(b, kCpu);
  };
  ints("n", "Neg", {"k"}); // is sent, and small: it stays with the host
  b.add("g", "Cast", {"n"}, DType::Int32, "SrcT").type("DstT", DType::Float32);
  on(b, kGpu);
  std::string last = "k";
  for (int i = 0; i < 8; ++i) { // gets the memory of n, if that is free
    ints("m" + std::to_string(i), "Square", {last, "^g"});
    last = "m" + std::to_string(i);
  }
  start(b.graph);
  for (int i = 1; i < 6; ++i) {
    auto out = run({{"k", Tensor::vector<int32_t>(DType::Int32, std::vector<int32_t>(200, i))}}, {"g", last});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(allAre((*out)[0], -static_cast<float>(i)));
  }
}

/// v gains rows of x, which lie at i.
tf::GraphDef gathers() {
  GraphBuilder b;
  b.placeholder("x", DType::Float32).placeholder("i", DType::Int32).constant("axis", 0);
  b.add("v", "VarHandleOp", {}, DType::Float32, "dtype").shape("shape", {kSize}).set("shared_name", std::string("v"));
  on(b, kGpu);
  b.add("init", "AssignVariableOp", {"v", "x"}, DType::Float32, "dtype");
  on(b, kGpu);
  b.add("g", "GatherV2", {"x", "i", "axis"}, DType::Float32, "Tparams").type("Tindices", DType::Int32).type("Taxis", DType::Int32);
  on(b, kGpu);
  floats(b, kGpu, "n", "Neg", {"g"});
  b.add("more", "AssignAddVariableOp", {"v", "n"}, DType::Float32, "dtype");
  on(b, kGpu);
  b.add("read", "ReadVariableOp", {"v"}, DType::Float32, "dtype");
  on(b, kGpu);
  floats(b, kGpu, "e", "Neg", {"read"});
  return b.graph;
}

// The node and the step that failed, and nothing behind it has happened.
TEST_F(GpuQueue, FailuresAreTheStepsOwn) {
  for (const char *flags : {"forbid=n", "forbid=more", ""}) {
    options.clusterFlags = flags;
    start(gathers());
    ASSERT_TRUE(run({{"x", filled(1)}}, {}, {"init"}).ok());
    const std::vector<int32_t> fifth(kSize, 5);
    Tensor good = Tensor::vector<int32_t>(DType::Int32, fifth), bad = Tensor::vector<int32_t>(DType::Int32, fifth);
    bad.data<int32_t>()[kSize / 2] = kSize;
    constexpr int kRuns = 8;
    auto step = [&](const Tensor &at, bool fails) {
      for (int i = 0; i < kRuns; ++i) {
        auto ran = run({{"x", filled(-1)}, {"i", at}}, {}, {"more"});
        EXPECT_EQ(ran.status().code(), fails ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kOk) << ran.status();
        if (fails)
          EXPECT_NE(std::string(ran.status().message()).find("node 'g' (GatherV2)"), std::string::npos) << ran.status();
      }
    };
    std::thread failing([&] { step(bad, true); });
    step(good, false);
    failing.join();
    auto out = run({}, {"e"});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(allAre((*out)[0], -1.0f - kRuns)) << flags;
  }
}

TEST_F(GpuQueue, ManySteps) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  floats(b, kGpu, "a", "AddV2", {"x", "x"});
  floats(b, kGpu, "b", "Mul", {"a", "x"});
  floats(b, kCpu, "h", "Neg", {"b"});
  floats(b, kGpu, "c", "Sub", {"h", "a"});
  options.clusterFlags = "forbid=b";
  start(b.graph);
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        auto x = static_cast<float>(t + 4 * (i % 3));
        auto out = run({{"x", filled(x)}}, {"c", "b"});
        ASSERT_TRUE(out.ok()) << out.status();
        EXPECT_TRUE(allAre((*out)[0], -2 * x * x - 2 * x));
        EXPECT_TRUE(allAre((*out)[1], 2 * x * x));
      }
    });
  for (std::thread &t : threads)
    t.join();
}

TEST_F(GpuQueue, FromDeviceToDevice) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  floats(b, "/gpu:0", "a", "Exp", {"x"});
  floats(b, "/gpu:1", "b", "Neg", {"a"});
  floats(b, "/gpu:0", "c", "Sub", {"b", "a"});
  floats(b, "/gpu:1", "d", "Mul", {"c", "b"});
  start(b.graph, {0, 1});
  for (int i = 0; i < 6; ++i) {
    auto out = run({{"x", filled(0)}}, {"d"});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(allAre((*out)[0], 2));
  }
}

// A step that ends early leaves nothing under way: buffers go, and the session goes on.
TEST_F(GpuQueue, FailedAndCancelledSteps) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  floats(b, kGpu, "a", "Exp", {"x"});
  floats(b, kGpu, "b", "Neg", {"a"});
  b.add("check", "CheckNumerics", {"x"}, DType::Float32).set("message", std::string("here"));
  on(b, kCpu);
  floats(b, kGpu, "c", "AddV2", {"b", "check"});
  b.add("queue", "FIFOQueueV2", {}, DType::Float32, "").types("component_types", {DType::Float32});
  on(b, kCpu);
  b.add("take", "QueueDequeueV2", {"queue"}, DType::Float32, "").types("component_types", {DType::Float32});
  on(b, kCpu);
  floats(b, kGpu, "never", "AddV2", {"b", "take"});
  start(b.graph);
  for (int i = 0; i < 4; ++i) {
    Tensor x = filled(NAN);
    EXPECT_EQ(run({{"x", x}}, {"c"}).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(x.isUnique());
    x = filled(0);
    RunOptions how;
    how.timeoutMs = 100;
    std::vector<Tensor> out;
    EXPECT_EQ(session->Run(how, {{"x", x}}, {"never"}, {}, &out, nullptr).code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(x.isUnique());
    auto fine = run({{"x", x}}, {"c"});
    ASSERT_TRUE(fine.ok()) << fine.status();
    EXPECT_TRUE(allAre((*fine)[0], -1));
  }
}

// Of what other tests show, in few calls of the driver: each of them fails in turn. A status, or right numbers.
TEST_F(GpuQueue, Steps) {
  tf::GraphDef graph = gathers();
  GraphBuilder b;
  floats(b, kGpu, "one", "Exp", {"x"});
  floats(b, kCpu, "two", "Neg", {"one"});
  floats(b, "/gpu:1", "three", "Mul", {"two", "one"});
  floats(b, kGpu, "four", "AddV2", {"three", "e"});
  graph.MergeFrom(b.graph);
  options.compiler = getClusterCompiler();
  options.gpus = {0, 1};
  options.clusterFlags = "forbid=n";
  auto steps = [&](Session &s) {
    absl::Status status = s.Create(graph);
    if (status.ok())
      status = s.Run({{"x", filled(0)}}, {}, {"init"}, nullptr);
    float v = 0;
    for (int i = 0; i < 3 && status.ok(); ++i, v -= 3) {
      Tensor at = Tensor::vector<int32_t>(DType::Int32, std::vector<int32_t>(kSize, i));
      status = s.Run({{"x", filled(3)}, {"i", at}}, {}, {"more"}, nullptr);
    }
    std::vector<Tensor> out;
    if (status.ok())
      status = s.Run({{"x", filled(0)}}, {"four", "e"}, {}, &out);
    if (status.ok() && (!allAre(out[0], -1 - v) || !allAre(out[1], -v)))
      std::abort();
    return status;
  };
  std::unique_ptr<Session> made;
  absl::Status status = NewSession(options, &made);
  if (status.ok())
    status = steps(*made);
  if (!status.ok())
    std::printf("status %d: %s\n", static_cast<int>(status.code()), std::string(status.message()).c_str());
  EXPECT_TRUE(status.ok());
}

} // namespace
} // namespace lathe
