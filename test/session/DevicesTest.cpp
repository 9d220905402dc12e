// Sessions over a device with a memory of its own: what goes where, and what is copied. The device is FAKE:0, whose tensors end
// the process when host code touches them.
#include "compiler/jit/ClusterCompiler.h"
#include "test/runtime/FakeDevice.h"
#include "test/runtime/SessionTest.h"

#include <thread>

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

TEST_F(Devices, WhatIsFedIsCopiedOnce) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  b.placeholder("n", DType::Int32);
  floats(b, "a", "Tanh", {"x"});
  floats(b, "b", "Mul", {"a", "x"});
  floats(b, "c", "Neg", {"b"});
  floats(b, "d", "Add", {"c", "x"});
  b.add("rows", "GatherV2", {"d", "n", "axis"}, DType::Float32, "Tparams").type("Tindices", DType::Int32).type("Taxis", DType::Int32);
  b.add("again", "GatherV2", {"a", "n", "axis"}, DType::Float32, "Tparams").type("Tindices", DType::Int32).type("Taxis", DType::Int32);
  b.constant("axis", 0);
  options.clusterFlags = "forbid=a,c"; // single nodes are modules too
  start(b.graph);
  Tensor at = Tensor::vector<int32_t>(DType::Int32, {kSize - 1});
  EXPECT_FLOAT_EQ(first({{"x", filled(1)}, {"n", at}}, "rows"), 1 - std::tanh(1.0f));
  EXPECT_GT(fake->runs, 2);
  EXPECT_EQ(fake->own->toDevice, 1) << "x, not the indices";
  auto out = run({{"x", filled(1)}, {"n", at}}, {"rows", "again"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_FLOAT_EQ(*(*out)[1].data<float>(), std::tanh(1.0f));
  EXPECT_EQ(fake->own->toDevice, 2);
}

/// A second FAKE whose memory knows a way from the first.
class NearFake : public FakeDevice {
public:
  class Memory : public FakeMemory {
  public:
    using FakeMemory::FakeMemory;
    int direct = 0;
    bool knowsAWay = true;

  protected:
    absl::Status copyFrom(rt::DeviceMemory &other, void *to, const Tensor &from) override {
      auto *source = dynamic_cast<FakeMemory *>(&other);
      if (!source || !knowsAWay)
        return FakeMemory::copyFrom(other, to, from);
      ++direct;
      open(to);
      source->open(from.data());
      std::memcpy(to, from.data(), static_cast<size_t>(from.sizeBytes()));
      source->close(from.data());
      close(to);
      return absl::OkStatus();
    }
  };
  NearFake() : FakeDevice(1) { own = near = std::make_shared<Memory>(name()); }
  std::shared_ptr<Memory> near;
};

TEST_F(Devices, BetweenTwoDevices) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  floats(b, "a", "Exp", {"x"}, "/device:FAKE:0");
  floats(b, "b", "Neg", {"a"}, "/device:FAKE:1");
  floats(b, "c", "Mul", {"a", "b"}, "/device:FAKE:0");
  options.devices = withFakeDevice(options, &fake);
  auto second = std::make_unique<NearFake>();
  NearFake *other = second.get();
  options.devices->devices.push_back(std::move(second));
  options.compiler = getClusterCompiler();
  options.allowSoftPlacement = false;
  session = std::make_unique<Session>(options);
  ASSERT_TRUE(session->Create(b.graph).ok());
  EXPECT_FLOAT_EQ(first({{"x", filled(0)}}, "c"), -1);
  EXPECT_EQ(other->near->direct, 1) << "a, from FAKE:0";
  EXPECT_EQ(fake->own->toHost, 1) << "c";
  EXPECT_EQ(other->own->toHost, 1) << "b: FAKE:0 knows no way from there";
  other->near->knowsAWay = false;
  EXPECT_FLOAT_EQ(first({{"x", filled(0)}}, "c"), -1);
  EXPECT_EQ(other->near->direct, 1);
  EXPECT_EQ(fake->own->live + other->own->live, 0);
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

// A kernel of the host reads what a module changes on the device at the same time: never in the device's memory.
TEST_F(Devices, HostKernelsBesideModules) {
  for (bool reference : {false, true}) {
    tf::GraphDef graph = variable(reference);
    GraphBuilder b;
    b.placeholder("at", DType::Int32).constant("axis", 0);
    if (reference)
      b.add("rows", "GatherV2", {"v", "at", "axis"}, DType::Float32, "Tparams").type("Tindices", DType::Int32).type("Taxis", DType::Int32);
    else
      b.add("rows", "ResourceGather", {"v", "at"}, DType::Float32, "dtype").type("Tindices", DType::Int32);
    graph.MergeFrom(b.graph);
    options.clusterFlags = "forbid=rows";
    start(graph);
    ASSERT_TRUE(run({{"x", filled(0)}}, {}, {"init"}).ok());
    constexpr int kRuns = 150;
    std::thread writer([&] {
      for (int i = 0; i < kRuns; ++i)
        EXPECT_TRUE(run({{"y", filled(1)}}, {}, {"more"}).ok());
    });
    float before = 0;
    for (int i = 0; i < kRuns; ++i) {
      auto out = run({{"at", Tensor::vector<int32_t>(DType::Int32, {0, kSize - 1})}}, {"rows"});
      ASSERT_TRUE(out.ok()) << out.status();
      const float *rows = (*out)[0].data<float>();
      EXPECT_EQ(rows[0], rows[1]);
      EXPECT_GE(rows[0], before);
      before = rows[0];
    }
    writer.join();
    EXPECT_FLOAT_EQ(first({}, "read"), kRuns);
    session.reset();
    options.devices.reset();
  }
}

TEST_F(Devices, BodiesOfFunctionsRunWhereTheirCallerIs) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  b.add("call", "PartitionedCall", {"x"}, DType::Float32, "")
      .types("Tin", {DType::Float32})
      .types("Tout", {DType::Float32})
      .function("f", "outer");
  b.last().set_device("/device:FAKE:0");
  auto body = [&](const char *name, const char *node, const char *result) {
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        std::string("signature { name: '") + name + "' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'r' type: DT_FLOAT } } " +
            "node_def { name: 'inside' input: 'a' " + node + " } ret { key: 'r' value: '" + result + "' }",
        b.graph.mutable_library()->add_function()));
  };
  body("outer", "op: 'PartitionedCall' attr { key: 'Tin' value { list { type: DT_FLOAT } } } "
                "attr { key: 'Tout' value { list { type: DT_FLOAT } } } "
                "attr { key: 'f' value { func { name: 'inner' } } }", "inside:output:0");
  body("inner", "op: 'Exp' attr { key: 'T' value { type: DT_FLOAT } } device: '/device:CPU:0'", "inside:y:0");
  start(b.graph, false);
  auto out = run({{"x", filled(0)}}, {"call"});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
  for (const char *part : {"node 'inside' (Exp)", "function 'inner'", "'/device:CPU:0'",
                           "its caller 'call' is on /job:localhost/replica:0/task:0/device:FAKE:0"})
    EXPECT_NE(std::string(out.status().message()).find(part), std::string::npos) << out.status();
  start(b.graph, true);
  EXPECT_FLOAT_EQ(first({{"x", filled(0)}}, "call"), 1);
  EXPECT_EQ(fake->runs, 1);
  b.graph.mutable_library()->mutable_function(1)->mutable_node_def(0)->set_device("/device:FAKE:*");
  start(b.graph, false);
  EXPECT_FLOAT_EQ(first({{"x", filled(0)}}, "call"), 1);
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
