// Placement, partition and the rendezvous.
#include "test/runtime/SessionTest.h"

#include "runtime/device.h"
#include "runtime/session/Rendezvous.h"

namespace lathe {
namespace {

using rt::DeviceName;

TEST(DeviceName, ReadsTensorFlowsForms) {
  DeviceName full = *DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(full.text(), "/job:localhost/replica:0/task:0/device:CPU:1");
  for (const char *text : {"", "/cpu:1", "CPU:1", "/device:CPU:*", "/job:localhost", "/device:*:1", "/cpu"})
    EXPECT_TRUE(DeviceName::parse(text)->matches(full)) << text;
  for (const char *text : {"/cpu:0", "/gpu:1", "/job:worker", "/device:GPU:*"})
    EXPECT_FALSE(DeviceName::parse(text)->matches(full)) << text;
  for (const char *text : {"/cpu:x", "nonsense", "/job", "/device:CPU:-1", "/task:1:2"})
    EXPECT_FALSE(DeviceName::parse(text).ok()) << text;
}

TEST(Rendezvous, KeysAreTensorFlows) {
  EXPECT_EQ(rt::rendezvousKey("/job:a/device:CPU:0", 1, "/job:a/device:CPU:1", "edge_0_x", "", 0),
            "/job:a/device:CPU:0;0000000000000001;/job:a/device:CPU:1;edge_0_x;0:0");
}

TEST(Rendezvous, SendsBeforeAndAfter) {
  rt::Rendezvous r;
  int got = 0;
  auto take = [&](absl::StatusOr<rt::Rendezvous::Item> item) { got += item.ok() ? 1 : 100; };
  EXPECT_TRUE(r.send("k", {text("a"), false}).ok());
  r.receive("k", take);
  EXPECT_EQ(got, 1);
  r.receive("k", take);
  EXPECT_TRUE(r.send("k", {text("b"), false}).ok());
  EXPECT_EQ(got, 2);
  r.receive("k", take);
  r.abort(absl::CancelledError("over"));
  EXPECT_EQ(got, 102);
  EXPECT_FALSE(r.send("k", {}).ok());
}

SessionOptions devices(int n, bool soft = true) {
  SessionOptions o;
  o.cpuDevices = n;
  o.allowSoftPlacement = soft;
  return o;
}

absl::StatusOr<std::vector<Tensor>> run(const SessionOptions &o, const tf::GraphDef &graph, const Session::Feeds &feeds,
                                        const std::vector<std::string> &fetches) {
  Session s(o);
  if (absl::Status created = s.Create(graph); !created.ok())
    return created;
  std::vector<Tensor> out;
  absl::Status status = s.Run(feeds, fetches, {}, &out);
  if (!status.ok())
    return status;
  return out;
}

tf::GraphDef spread() {
  GraphBuilder b;
  b.placeholder("x").placeholder("p", DType::Bool);
  b.join("a", {"x", "x"});
  b.last().set_device("/cpu:1");
  b.join("b", {"a", "x"});
  b.last().set_device("/device:CPU:2");
  b.join("c", {"a", "b", "^a"});
  b.add("s", "Switch", {"c", "p"});
  b.join("yes", {"s:1", "x"});
  b.last().set_device("/cpu:1");
  b.join("no", {"s:0"});
  b.last().set_device("/cpu:2");
  b.add("m", "Merge", {"no", "yes"}).set("N", 2);
  return b.graph;
}

TEST(Partition, RunsOnSeveralDevices) {
  for (int n : {1, 2, 3})
    for (bool p : {false, true}) {
      auto out = run(devices(n), spread(), {{"x", text("x")}, {"p", Tensor::scalar<bool>(DType::Bool, p)}}, {"m", "b"});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ(textOf((*out)[0]), p ? "xxxxxx" : "xxxxx");
      EXPECT_EQ(textOf((*out)[1]), "xxx");
    }
}

TEST(Partition, VariablesStayWhereTheyAre) {
  GraphBuilder b;
  b.placeholder("x");
  b.add("v", "VariableV2", {}, DType::String, "dtype").shape("shape", {});
  b.last().set_device("/cpu:1");
  b.add("assign", "Assign", {"v", "x"});
  b.join("twice", {"assign", "assign"});
  auto out = run(devices(2), b.graph, {{"x", text("x")}}, {"twice"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(textOf((*out)[0]), "xx");
}

TEST(Partition, PartialRunsOnSeveralDevices) {
  GraphBuilder b;
  b.placeholder("x").placeholder("y");
  b.join("xx", {"x", "x"});
  b.last().set_device("/cpu:1");
  b.join("xxy", {"xx", "y"});
  b.last().set_device("/cpu:2");
  b.join("all", {"xxy", "xx"});
  Session s(devices(3));
  ASSERT_TRUE(s.Create(b.graph).ok());
  for (int round = 0; round < 3; ++round) {
    std::string handle;
    absl::Status set = s.PRunSetup({"x", "y"}, {"xx", "xxy", "all"}, {}, &handle);
    ASSERT_TRUE(set.ok()) << set;
    std::vector<Tensor> out;
    EXPECT_EQ(s.PRun(handle, {}, {"xx"}, &out).code(), absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(s.PRun(handle, {{"x", text("a")}}, {"xx"}, &out).ok());
    EXPECT_EQ(textOf(out[0]), "aa");
    EXPECT_EQ(s.PRun(handle, {}, {"all"}, &out).code(), absl::StatusCode::kInvalidArgument) << "needs y, on two other devices";
    ASSERT_TRUE(s.PRun(handle, {{"y", text("b")}}, {"all", "xxy"}, &out).ok());
    EXPECT_EQ(textOf(out[0]), "aabaa");
    EXPECT_EQ(textOf(out[1]), "aab");
  }
  std::string abandoned;
  ASSERT_TRUE(s.PRunSetup({"x", "y"}, {"all"}, {}, &abandoned).ok());
  EXPECT_TRUE(s.Close().ok()) << "ends a run that nobody finishes";
}

TEST(Placement, HardPlacementNeedsTheDevice) {
  Session::Feeds feeds = {{"x", text("x")}, {"p", Tensor::scalar<bool>(DType::Bool, true)}};
  EXPECT_TRUE(run(devices(3, false), spread(), feeds, {"m"}).ok());
  auto out = run(devices(2, false), spread(), feeds, {"m"});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(out.status().message()).find("Cannot assign a device"), std::string::npos);
}

TEST(Placement, FailureOnOneDeviceEndsAll) {
  GraphBuilder b;
  b.placeholder("x").placeholder("missing");
  b.last().set_device("/cpu:1");
  b.join("a", {"missing", "x"});
  auto out = run(devices(2), b.graph, {{"x", text("x")}}, {"a"});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << out.status();
}

} // namespace
} // namespace lathe
