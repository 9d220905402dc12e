// Sessions over a device with a memory of its own: what goes where, and what is copied. The device is FAKE:0, whose tensors end
// the process when host code touches them.
#include "compiler/jit/ClusterCompiler.h"
#include "test/runtime/FakeDevice.h"
#include "test/runtime/SessionTest.h"

namespace lathe {
namespace {

constexpr int kSize = 3000; // floats: more than stays on the host, or is fetched so that a compiler may look

Tensor filled(float value, int size = kSize) { return Tensor::vector<float>(DType::Float32, std::vector<float>(size, value)); }

class Devices : public ::testing::Test {
protected:
  void start(const tf::GraphDef &graph, bool soft = true) {
    options.compiler = getClusterCompiler();
    options.allowSoftPlacement = soft;
    options.devices = withFakeDevice(options, &fake);
    session = std::make_unique<Session>(options);
    absl::Status created = session->Create(graph);
    ASSERT_TRUE(created.ok()) << created;
  }
  absl::StatusOr<std::vector<Tensor>> run(const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                                          const std::vector<std::string> &targets = {}) {
    std::vector<Tensor> out;
    absl::Status status = session->Run(feeds, fetches, targets, &out);
    if (!status.ok())
      return status;
    for (const Tensor &t : out)
      EXPECT_EQ(rt::memoryOf(t), nullptr);
    return out;
  }
  float first(const Session::Feeds &feeds, const std::string &fetch) {
    auto out = run(feeds, {fetch});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *(*out)[0].data<float>() : NAN;
  }

  FakeDevice *fake = nullptr;
  SessionOptions options;
  std::unique_ptr<Session> session;
};

GraphBuilder &floats(GraphBuilder &b, const std::string &name, const std::string &op, const std::vector<std::string> &inputs,
                     const std::string &device = "") {
  b.add(name, op, inputs, DType::Float32);
  b.last().set_device(device);
  return b;
}

TEST_F(Devices, TensorsStayBetweenClusters) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  floats(b, "a", "Tanh", {"x"});
  floats(b, "b", "Exp", {"a"});
  floats(b, "c", "Neg", {"b"});
  options.clusterFlags = "forbid=b"; // so that there are three modules
  start(b.graph);
  EXPECT_FLOAT_EQ(first({{"x", filled(0)}}, "c"), -1);
  EXPECT_EQ(fake->runs, 3);
  EXPECT_EQ(fake->own->toDevice, 0) << "modules take what is fed from the host";
  EXPECT_EQ(fake->own->toHost, 1) << "the result";
  EXPECT_EQ(fake->own->live, 0);
}

TEST_F(Devices, MixedPlacement) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  floats(b, "a", "Exp", {"x"}, "/device:FAKE:0");
  floats(b, "h", "Neg", {"a"}, "/cpu:0");
  b.add("text", "AsString", {"h"}, DType::Float32);
  b.join("both", {"text", "text"});
  floats(b, "d", "Mul", {"h", "a"}, "/device:FAKE:0");
  start(b.graph, false);
  for (int round = 1; round <= 2; ++round) {
    auto out = run({{"x", filled(0)}}, {"d", "both"});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_FLOAT_EQ((*out)[0].data<float>()[kSize - 1], -1);
    EXPECT_EQ((*out)[1].strings()[0], "-1.000000-1.000000");
    EXPECT_EQ(fake->own->toHost, 2 * round) << "a and d";
    EXPECT_EQ(fake->own->toDevice, round) << "h";
  }
}

TEST_F(Devices, ExplicitPlacementOfWhatIsHostOnly) {
  GraphBuilder b;
  b.placeholder("x");
  b.join("both", {"x", "x"});
  b.last().set_device("/device:FAKE:0");
  start(b.graph, false);
  auto out = run({{"x", text("a")}}, {"both"});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
  for (const char *part : {"node 'both' (StringJoin)", "Could not satisfy explicit device specification '/device:FAKE:0'", "FAKE devices"})
    EXPECT_NE(std::string(out.status().message()).find(part), std::string::npos) << out.status();
  start(b.graph, true);
  out = run({{"x", text("a")}}, {"both"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(textOf((*out)[0]), "aa");
}

tf::GraphDef variable(bool reference) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  b.placeholder("y", DType::Float32);
  if (reference) {
    b.add("v", "VariableV2", {}, DType::Float32, "dtype").shape("shape", {kSize});
    floats(b, "init", "Assign", {"v", "x"});
    floats(b, "more", "AssignAdd", {"v", "y"});
    floats(b, "read", "Identity", {"v"});
  } else {
    b.add("v", "VarHandleOp", {}, DType::Float32, "dtype").shape("shape", {kSize}).set("shared_name", std::string("v"));
    b.add("init", "AssignVariableOp", {"v", "x"}, DType::Float32, "dtype");
    b.add("more", "AssignAddVariableOp", {"v", "y"}, DType::Float32, "dtype");
    b.add("read", "ReadVariableOp", {"v"}, DType::Float32, "dtype");
  }
  floats(b, "e", "Neg", {"read"});
  return b.graph;
}

TEST_F(Devices, VariablesStayOverRuns) {
  for (bool reference : {false, true}) {
    start(variable(reference));
    ASSERT_TRUE(run({{"x", filled(1)}}, {}, {"init"}).ok());
    for (int i = 0; i < 5; ++i) {
      auto s = run({{"y", filled(2)}}, {}, {"more"});
      ASSERT_TRUE(s.ok()) << s.status();
    }
    EXPECT_EQ(fake->own->toHost, 0);
    EXPECT_EQ(fake->own->toDevice, 1) << "the initial value, once";
    EXPECT_EQ(fake->own->live, 1);
    EXPECT_FLOAT_EQ(first({}, "e"), -11);
    EXPECT_FLOAT_EQ(first({}, "read"), 11);
    EXPECT_EQ(fake->runs, 6);
    session.reset();
    options.devices.reset();
  }
}

TEST_F(Devices, ConditionsOnTheDevice) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32).placeholder("at", DType::Int32);
  floats(b, "e", "Exp", {"x"});
  b.add("max", "Max", {"e", "at"}, DType::Float32).type("Tidx", DType::Int32);
  floats(b, "positive", "Greater", {"max", "x0"});
  b.placeholder("x0", DType::Float32);
  floats(b, "s", "Switch", {"e", "positive"});
  floats(b, "yes", "Neg", {"s:1"});
  floats(b, "no", "Exp", {"s:0"});
  floats(b, "m", "Merge", {"no", "yes"}).set("N", 2);
  options.clusterFlags = "forbid=s,m";
  start(b.graph);
  Session::Feeds feeds{{"x", filled(0)}, {"at", Tensor::vector<int32_t>(DType::Int32, {0})}, {"x0", Tensor::scalar<float>(DType::Float32, 0)}};
  EXPECT_FLOAT_EQ(first(feeds, "m"), -1);
  *feeds[2].second.data<float>() = 5;
  EXPECT_FLOAT_EQ(first(feeds, "m"), std::exp(1.0f));
}

TEST_F(Devices, NoRoomIsAStatus) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  floats(b, "a", "Exp", {"x"});
  start(b.graph);
  EXPECT_FLOAT_EQ(first({{"x", filled(0)}}, "a"), 1);
  fake->own->limit = 100;
  auto out = run({{"x", filled(0)}}, {"a"});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
}

} // namespace
} // namespace lathe
