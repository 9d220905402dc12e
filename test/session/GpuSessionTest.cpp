// Sessions on /device:GPU:0 of the emulated driver, against sessions on the CPU and TensorFlow's numbers.
#include "compiler/jit/ClusterCompiler.h"
#include "runtime/session/Core.h"
#include "test/runtime/SessionTest.h"
#include "test/session/Samples.h"

#include <cmath>
#include <cstdlib>
#include <set>

namespace lathe {
namespace {

using namespace lathe::test;

SessionOptions onGpu(bool gpu = true) {
  // before the first session opens it
  setenv("LATHE_CUDA_DRIVER", LATHE_EMULATED_CUDA, 1);
  setenv("LATHE_EMU_DEVICES", "2", 1);
  SessionOptions options;
  options.compiler = getClusterCompiler();
  if (gpu)
    options.gpus = {0};
  return options;
}

TEST(GpuSession, SoftmaxLearnsAsTensorFlow) {
  std::string dir = kSamples + "mnist_softmax_train/";
  NamedTensors digits = npz(dir + "digits.npz"), expected = npz(dir + "expected.npz");
  Tensor images = named(digits, "train_images"), labels = named(digits, "train_labels"), losses = named(expected, "losses");
  Session gpu(onGpu()), cpu(onGpu(false));
  for (Session *s : {&gpu, &cpu}) {
    absl::Status made = s->Create(readAll(dir + "graph.pb"));
    ASSERT_TRUE(made.ok()) << made;
    absl::Status init = s->Run({}, {}, {"init"}, nullptr);
    ASSERT_TRUE(init.ok()) << init;
  }
  for (int i = 0; i < 60; ++i) {
    int64_t from = 64 * i % 1344;
    Session::Feeds feeds = {{"x:0", rows(images, from, 64, true)}, {"y_:0", rows(labels, from, 64, false)}};
    std::vector<Tensor> out, same;
    RunOptions options;
    options.traceLevel = RunOptions::FullTrace;
    RunMetadata metadata;
    absl::Status ran = gpu.Run(options, feeds, {"loss:0"}, {"train_step"}, &out, &metadata);
    ASSERT_TRUE(ran.ok()) << ran;
    ASSERT_TRUE(cpu.Run(feeds, {"loss:0"}, {"train_step"}, &same).ok());
    float want = losses.data<float>()[i];
    ASSERT_NEAR(*out[0].data<float>(), want, 1e-4 * std::abs(want)) << "step " << i;
    ASSERT_NEAR(*out[0].data<float>(), *same[0].data<float>(), 1e-5 * std::abs(want)) << "step " << i;
    // what only says that something happened may be sent: nodes without tensors are on the CPU
    const std::set<std::string> moves = {"LatheLaunch", "VariableV2", "VarHandleOp", "ReadVariableOp", "Const", "Send", "Recv"};
    for (const NodeExecStats &node : metadata.stepStats)
      EXPECT_TRUE(moves.count(node.op)) << node.node << " is " << node.op << ", on the host";
  }
  for (const char *name : {"W:0", "b:0"}) {
    std::vector<Tensor> a, b;
    ASSERT_TRUE(gpu.Run({}, {name}, {}, &a).ok());
    ASSERT_TRUE(cpu.Run({}, {name}, {}, &b).ok());
    for (int64_t k = 0; k < a[0].numElements(); ++k)
      ASSERT_NEAR(a[0].data<float>()[k], b[0].data<float>()[k], 1e-5);
  }
}

TEST(GpuSession, DevicesAreListed) {
  Session s(onGpu());
  auto &devices = s.devices()->devices;
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1]->name(), "/job:localhost/replica:0/task:0/device:GPU:0");
}

TEST(GpuSession, TextBetweenTheDevices) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  b.add("sum", "AddV2", {"x", "x"}, DType::Float32);
  b.last().set_device("/gpu:0");
  b.add("text", "AsString", {"sum"}, DType::Float32);
  b.last().set_device("/cpu:0");
  b.join("long", {"text", "text"});
  b.add("number", "StringToNumber", {"long"}, DType::Float32, "out_type");
  b.add("twice", "AddV2", {"number", "sum"}, DType::Float32);
  b.last().set_device("/gpu:0");
  SessionOptions options = onGpu();
  options.allowSoftPlacement = false;
  Session s(options);
  ASSERT_TRUE(s.Create(b.graph).ok());
  std::vector<Tensor> out;
  // 4.000000 twice is no number
  absl::Status ran = s.Run({{"x", Tensor::scalar<float>(DType::Float32, 2)}}, {"long"}, {}, &out);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(textOf(out[0]), "4.0000004.000000");
  EXPECT_EQ(s.Run({{"x", Tensor::scalar<float>(DType::Float32, 2)}}, {"twice"}, {}, &out).code(), absl::StatusCode::kInvalidArgument);
  ran = s.Run({{"x", Tensor::scalar<float>(DType::Float32, 2)}, {"long", text("1.5")}}, {"twice"}, {}, &out);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(*out[0].data<float>(), 5.5f);
}

TEST(GpuSession, KernelErrorsNameTheNode) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32).placeholder("i", DType::Int32);
  b.add("g", "GatherV2", {"x", "i", "axis"}, DType::Float32, "Tparams").type("Tindices", DType::Int32).type("Taxis", DType::Int32);
  b.constant("axis", 0);
  Session s(onGpu());
  ASSERT_TRUE(s.Create(b.graph).ok());
  std::vector<Tensor> out;
  Tensor x = Tensor::vector<float>(DType::Float32, {1, 2, 3});
  absl::Status ran = s.Run({{"x", x}, {"i", Tensor::vector<int32_t>(DType::Int32, {2, 0})}}, {"g"}, {}, &out);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(out[0].data<float>()[0], 3);
  ran = s.Run({{"x", x}, {"i", Tensor::vector<int32_t>(DType::Int32, {7, 0})}}, {"g"}, {}, &out);
  EXPECT_EQ(ran.code(), absl::StatusCode::kInvalidArgument) << ran;
  EXPECT_NE(std::string(ran.message()).find("node 'g' (GatherV2)"), std::string::npos) << ran;
}

// Variables and values of one device used on the other, over devices that the driver copies between.
TEST(GpuSession, TwoDevices) {
  GraphBuilder b;
  b.placeholder("x", DType::Float32);
  b.add("double", "AddV2", {"x", "x"}, DType::Float32);
  b.last().set_device("/gpu:0");
  b.add("square", "Mul", {"double", "double"}, DType::Float32);
  b.last().set_device("/gpu:1");
  b.add("v", "VariableV2", {}, DType::Float32, "dtype").shape("shape", {1000});
  b.last().set_device("/gpu:1");
  b.add("set", "Assign", {"v", "square"}, DType::Float32);
  b.add("sum", "AddV2", {"v", "double"}, DType::Float32);
  b.last().set_device("/gpu:0");
  SessionOptions options = onGpu();
  options.gpus = {0, 1};
  options.allowSoftPlacement = false;
  Session s(options);
  absl::Status made = s.Create(b.graph);
  ASSERT_TRUE(made.ok()) << made;
  Tensor x = Tensor::vector<float>(DType::Float32, std::vector<float>(1000, 3));
  absl::Status ran = s.Run({{"x", x}}, {}, {"set"}, nullptr);
  ASSERT_TRUE(ran.ok()) << ran;
  for (int i = 0; i < 3; ++i) {
    std::vector<Tensor> out;
    ran = s.Run({{"x", x}}, {"sum", "square"}, {}, &out);
    ASSERT_TRUE(ran.ok()) << ran;
    EXPECT_EQ(out[0].data<float>()[999], 42);
    EXPECT_EQ(out[1].data<float>()[0], 36);
  }
}

TEST(GpuSession, MissingDevice) {
  SessionOptions options = onGpu();
  options.gpus = {9};
  std::unique_ptr<Session> s;
  absl::Status made = NewSession(options, &s);
  EXPECT_EQ(made.code(), absl::StatusCode::kInvalidArgument) << made;
  EXPECT_EQ(Session(options).Create(graphOf("node { name: 'a' op: 'NoOp' }")).code(), absl::StatusCode::kInvalidArgument);
}

} // namespace
} // namespace lathe
