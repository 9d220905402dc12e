// What a caller may hand to a session, and what a graph may ask of it: refused with a status, in little memory and time.
#include "test/runtime/Budget.h"
#include "test/runtime/SessionTest.h"

#include <thread>

namespace lathe {
namespace {

using absl::StatusCode;

absl::StatusOr<std::vector<Tensor>> run(Session &s, const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                                        const std::vector<std::string> &targets = {}) {
  std::vector<Tensor> out;
  absl::Status status = s.Run(feeds, fetches, targets, &out);
  if (!status.ok())
    return status;
  return out;
}

TEST(HostileSession, Names) {
  GraphBuilder b;
  b.placeholder("x").join("y", {"x", "x"}).add("nothing", "NoOp", {}, DType::String, "");
  Session s;
  ASSERT_TRUE(s.Create(b.graph).ok());
  std::string withNul("y\0:0", 4), longName(1 << 20, 'y');
  for (const std::string &name : {std::string(), std::string(":"), std::string(":0"), std::string("y:"), std::string("y:-1"), std::string("y:1"),
                                  std::string("y:0:0"), std::string("y:99999999999999999999"), std::string("y:0x0"), std::string("y: 0"),
                                  std::string("^y"), std::string("^"), std::string("z"), std::string("nothing"), std::string("nothing:0"),
                                  std::string("y:2147483648"), std::string("y:4294967296"), std::string("\xff\xff"), withNul, longName, longName + ":0"}) {
    EXPECT_FALSE(run(s, {{"x", text("a")}}, {name}).ok()) << "fetch '" << name.substr(0, 40) << "'";
    EXPECT_FALSE(run(s, {{"x", text("a")}, {name, text("a")}}, {"y"}).ok()) << "feed '" << name.substr(0, 40) << "'";
    Session::CallableHandle handle;
    EXPECT_FALSE(s.MakeCallable({{"x"}, {name}, {}, {}}, &handle).ok());
    std::string partial;
    EXPECT_FALSE(s.PRunSetup({"x"}, {name}, {}, &partial).ok());
    std::vector<Tensor> out;
    EXPECT_FALSE(s.PRun(name, {}, {"y"}, &out).ok());
  }
  // targets are nodes: as in TensorFlow, a port or the mark of a control edge is read past
  for (const char *target : {"y", "y:0", "y:1", "y:00", "y:99", "^y"})
    EXPECT_TRUE(run(s, {{"x", text("a")}}, {}, {target}).ok()) << target;
  for (const char *target : {"", "z", "^", "y:", "y:-1", "y:x", "y:0x0", "y: 0", "y:0:0", "^y:0", "y:99999999999999999999"})
    EXPECT_EQ(run(s, {{"x", text("a")}}, {}, {target}).status().code(), StatusCode::kNotFound) << target;
  // a fed node that is a target runs all the same
  EXPECT_FALSE(run(s, {{"x", text("a")}}, {}, {"x"}).ok());
  auto out = run(s, {{"x", text("a")}}, std::vector<std::string>(10000, "y"));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->size(), 10000u);
  std::vector<Tensor> results;
  EXPECT_FALSE(s.RunCallable(12345, {}, &results).ok());
  EXPECT_FALSE(s.ReleaseCallable(-1).ok());
}

TEST(HostileSession, NamesThatLookLikeTwo) {
  GraphBuilder b;
  b.placeholder("a").placeholder("b").placeholder("a\1b").join("y", {"a", "b", "a\1b"}).add("z", "Identity", {"a\1b"});
  Session s;
  if (!s.Create(b.graph).ok())
    return;
  EXPECT_TRUE(run(s, {{"a\1b", text("a")}}, {"z"}).ok());
  EXPECT_FALSE(run(s, {{"a", text("a")}, {"b", text("b")}}, {"z"}).ok());
}

TEST(HostileSession, FedTensors) {
  Budget budget(256 << 20);
  GraphBuilder b;
  b.placeholder("s").placeholder("f", DType::Float32).placeholder("i", DType::Int32).placeholder("r", DType::Resource).placeholder("v", DType::Variant);
  b.join("join", {"s", "s"});
  b.add("reshaped", "Reshape", {"f", "i"}, DType::Float32);
  b.add("read", "ReadVariableOp", {"r"}, DType::Float32, "dtype");
  b.add("size", "TensorListLength", {"v"}, DType::Float32, "");
  b.add("tiled", "Tile", {"f", "i"}, DType::Float32);
  b.add("filled", "Fill", {"i", "f"}, DType::Float32);
  b.add("gathered", "Gather", {"f", "i"}, DType::Float32, "Tparams").type("Tindices", DType::Int32);
  b.add("sliced", "Slice", {"f", "i", "i"}, DType::Float32).type("Index", DType::Int32);
  Session session;
  ASSERT_TRUE(session.Create(b.graph).ok());
  Tensor floats = Tensor::vector<float>(DType::Float32, {1, 2, 3});
  // other types, and no type at all
  EXPECT_EQ(run(session, {{"s", floats}}, {"join"}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(session, {{"f", text("a")}, {"i", Tensor::vector<int32_t>(DType::Int32, {3})}}, {"reshaped"}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(run(session, {{"f", Tensor()}, {"i", Tensor()}}, {"reshaped"}).ok());
  // handles to nothing, and handles that are something else
  EXPECT_FALSE(run(session, {{"r", Tensor::fromObjects(DType::Resource, {}, {nullptr})}}, {"read"}).ok());
  EXPECT_FALSE(run(session, {{"r", Tensor::fromObjects(DType::Resource, {0}, {})}}, {"read"}).ok());
  EXPECT_FALSE(run(session, {{"v", Tensor::fromObjects(DType::Variant, {}, {nullptr})}}, {"size"}).ok());
  EXPECT_FALSE(run(session, {{"v", Tensor::fromObjects(DType::Variant, {2}, {nullptr, nullptr})}}, {"size"}).ok());
  // values as sizes and indices, of any rank
  const std::vector<std::vector<int32_t>> values = {{-1}, {-2}, {INT32_MAX}, {INT32_MIN}, {INT32_MAX, INT32_MAX, INT32_MAX}, {0}, {}, {-1, -1}, {INT32_MAX, 0}};
  for (const auto &v : values) {
    Tensor numbers = Tensor::vector<int32_t>(DType::Int32, v);
    Tensor deep = Tensor::allocate(DType::Int32, std::vector<int64_t>(200, 1));
    for (const char *fetch : {"reshaped", "tiled", "filled", "gathered", "sliced"}) {
      (void)run(session, {{"f", floats}, {"i", numbers}}, {fetch});
      (void)run(session, {{"f", Tensor::scalar<float>(DType::Float32, 1)}, {"i", numbers}}, {fetch});
      (void)run(session, {{"f", Tensor::allocate(DType::Float32, {0, 1 << 30})}, {"i", numbers}}, {fetch});
      (void)run(session, {{"f", Tensor::allocate(DType::Float32, std::vector<int64_t>(300, 1))}, {"i", deep}}, {fetch});
    }
  }
  EXPECT_FALSE(run(session, {{"f", Tensor::scalar<float>(DType::Float32, 1)}, {"i", Tensor::vector<int32_t>(DType::Int32, {INT32_MAX, INT32_MAX})}},
                   {"filled"})
                   .ok());
  EXPECT_FALSE(run(session, {{"f", floats}, {"i", Tensor::vector<int32_t>(DType::Int32, {INT32_MAX})}}, {"gathered"}).ok());
}

tf::GraphDef calls(const std::string &library, const char *f) {
  GraphBuilder b;
  b.graph = graphOf("library { " + library + " }");
  b.placeholder("x").add("call", "PartitionedCall", {"x"}, DType::String, "").types("Tin", {DType::String}).types("Tout", {DType::String}).function("f", f);
  return b.graph;
}

std::string function(const std::string &name, const std::string &nodes, const std::string &result) {
  return "function { signature { name: '" + name + "' input_arg { name: 'a' type: DT_STRING } output_arg { name: 'r' type: DT_STRING } } " + nodes +
         " ret { key: 'r' value: '" + result + "' } }";
}
std::string callOf(const std::string &node, const std::string &input, const std::string &f, const std::string &op = "PartitionedCall") {
  return "node_def { name: '" + node + "' op: '" + op + "' input: '" + input +
         "' attr { key: 'Tin' value { list { type: DT_STRING } } } attr { key: 'Tout' value { list { type: DT_STRING } } } attr { key: 'f' value { func { "
         "name: '" + f + "' } } } }";
}

TEST(HostileSession, FunctionsThatCallEachOther) {
  std::string circle = function("f", callOf("c", "a", "g"), "c:output:0") + function("g", callOf("c", "a", "f"), "c:output:0");
  EXPECT_EQ(runGraph(calls(circle, "f"), {{"x", text("a")}}, {"call"}).status().code(), StatusCode::kResourceExhausted);
  std::string self = function("f", callOf("c", "a", "f", "StatefulPartitionedCall"), "c:output:0");
  EXPECT_EQ(runGraph(calls(self, "f"), {{"x", text("a")}}, {"call"}).status().code(), StatusCode::kResourceExhausted);
  // a tree of 2^40 calls: deep is not the problem, only a timeout ends it
  std::string tree = function("f0", "", "a");
  for (int i = 0; i < 40; ++i)
    tree += function("f" + std::to_string(i + 1), callOf("c", "a", "f" + std::to_string(i)) + callOf("d", "c:output:0", "f" + std::to_string(i)), "d:output:0");
  EXPECT_EQ(runGraph(calls(tree, "f40"), {{"x", text("a")}}, {"call"}, 100).status().code(), StatusCode::kDeadlineExceeded);
}

TEST(HostileSession, BrokenFunctions) {
  EXPECT_FALSE(runGraph(calls("", "none"), {{"x", text("a")}}, {"call"}).ok());
  EXPECT_FALSE(runGraph(calls(function("f", "", "nothing"), "f"), {{"x", text("a")}}, {"call"}).ok());
  EXPECT_FALSE(runGraph(calls(function("f", "", "a:9:9"), "f"), {{"x", text("a")}}, {"call"}).ok());
  // a cycle among the nodes of a body
  std::string cycle = function("f", callOf("c", "d:output:0", "f") + callOf("d", "c:output:0", "f"), "d:output:0");
  EXPECT_FALSE(runGraph(calls(cycle, "f"), {{"x", text("a")}}, {"call"}).ok());
  // twice the same name, no name, no result
  EXPECT_FALSE(runGraph(calls(function("f", "", "a") + function("f", callOf("c", "a", "f"), "c:output:0"), "f"), {{"x", text("a")}}, {"call"}).ok());
  EXPECT_FALSE(runGraph(calls("function { signature { name: 'f' output_arg { name: 'r' type: DT_STRING } } }", "f"), {{"x", text("a")}}, {"call"}).ok());
  // attributes in attributes, 60 deep
  std::string attr = "attr { key: 'g' value { func { name: 'f' } } }";
  for (int i = 0; i < 60; ++i)
    attr = "attr { key: 'g' value { func { name: 'f' " + attr + " } } }";
  std::string deep = "node_def { name: 'c' op: 'PartitionedCall' input: 'a' attr { key: 'Tin' value { list { type: DT_STRING } } } attr { key: 'Tout' value { "
                     "list { type: DT_STRING } } } attr { key: 'f' value { func { name: 'f' " + attr + " } } } }";
  (void)runGraph(calls(function("f", deep, "c:output:0"), "f"), {{"x", text("a")}}, {"call"});
}

TEST(HostileSession, NodesThatAskForTooMuch) {
  auto refused = [](GraphBuilder &b, const std::string &fetch) {
    Session s;
    absl::Status status = s.Create(b.graph);
    std::vector<Tensor> out;
    if (status.ok())
      status = s.Run({{"x", text("a")}}, {fetch}, {}, &out);
    EXPECT_FALSE(status.ok());
  };
  GraphBuilder many;
  many.placeholder("x").node("y", "StringJoin", {"x"});
  many.set("N", INT64_MAX);
  refused(many, "y");
  GraphBuilder negative;
  negative.placeholder("x").node("y", "StringJoin", {"x"});
  negative.set("N", -1);
  refused(negative, "y");
  GraphBuilder split;
  split.placeholder("x").constant("d", 0).add("y", "Split", {"d", "x"}).set("num_split", int64_t(1) << 40);
  refused(split, "y:0");
  GraphBuilder unpack;
  unpack.placeholder("x").add("y", "Unpack", {"x"}).set("num", INT64_C(2000000000));
  refused(unpack, "y:1999999999");
  GraphBuilder list;
  list.placeholder("x").constant("shape", -1).constant("n", INT32_MAX);
  list.add("l", "TensorListReserve", {"shape", "n"}, DType::Float32, "element_dtype").type("shape_type", DType::Int32);
  list.add("y", "TensorListLength", {"l"}, DType::Float32, "");
  (void)runGraph(list.graph, {}, {"y"});
  GraphBuilder queue;
  queue.placeholder("x").add("q", "FIFOQueueV2", {}, DType::String, "").types("component_types", {DType::String});
  queue.constant("n", INT32_MAX).add("y", "QueueDequeueManyV2", {"q", "n"}, DType::String, "").types("component_types", {DType::String});
  EXPECT_FALSE(runGraph(queue.graph, {}, {"y"}, 100).ok());
}

TEST(HostileSession, LongChainsAndWideGraphs) {
  GraphBuilder b;
  b.placeholder("x").add("n0", "Identity", {"x"});
  constexpr int length = 50000;
  for (int i = 1; i < length; ++i)
    b.add("n" + std::to_string(i), "Identity", {"n" + std::to_string(i - 1)});
  std::vector<std::string> all;
  for (int i = 0; i < 20000; ++i)
    all.push_back("n" + std::to_string(i * 2));
  b.join("joined", all);
  auto out = runGraph(b.graph, {{"x", text("a")}}, {"joined", "n" + std::to_string(length - 1)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].strings()[0].size(), 20000u);
}

} // namespace
} // namespace lathe
