// Session: pruning, feeds and fetches, errors, callables, partial runs, closing.
#include "test/runtime/SessionTest.h"

#include <thread>

namespace lathe {
namespace {

struct Ran {
  absl::Status status;
  std::vector<Tensor> out;
};

Ran run(Session &s, const Session::Feeds &feeds, const std::vector<std::string> &fetches, const std::vector<std::string> &targets = {}) {
  Ran r;
  r.status = s.Run(feeds, fetches, targets, &r.out);
  return r;
}

tf::GraphDef joined() {
  GraphBuilder b;
  b.placeholder("x").placeholder("y").join("xy", {"x", "y"}).join("xyx", {"xy", "x"}).constant("c", "c").join("xc", {"x:0", "c"});
  return b.graph;
}

TEST(Session, RunsAndPrunes) {
  Session s;
  ASSERT_TRUE(s.Create(joined()).ok());
  Ran r = run(s, {{"x:0", text("a")}, {"y", text("b")}}, {"xyx", "xy:0"});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(textOf(r.out[0]), "aba");
  EXPECT_EQ(textOf(r.out[1]), "ab");
  // y is not needed
  r = run(s, {{"x:0", text("a")}}, {"xc"});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(textOf(r.out[0]), "ac");
}

TEST(Session, FeedsAnyTensorAndFetchesFedOnes) {
  Session s;
  ASSERT_TRUE(s.Create(joined()).ok());
  Ran r = run(s, {{"xy:0", text("q")}, {"x", text("z")}}, {"xyx:0", "xy:0", "xy:0"});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(textOf(r.out[0]), "qz");
  EXPECT_EQ(textOf(r.out[2]), "q");
}

TEST(Session, SaysWhatIsWrong) {
  Session s;
  EXPECT_EQ(run(s, {}, {"x"}).status.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(s.Create(joined()).ok());
  EXPECT_EQ(s.Create(joined()).code(), absl::StatusCode::kAlreadyExists);
  Ran r = run(s, {}, {"xy"});
  EXPECT_EQ(r.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(r.status.message().substr(0, 23), "node 'x' (Placeholder):") << r.status;
  EXPECT_EQ(run(s, {}, {"nothing"}).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(s, {{"x", text("a")}}, {"x:7"}).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(s, {{"x", Tensor::scalar<float>(DType::Float32, 1)}}, {"xc"}).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(s, {{"x", text("a")}, {"x:0", text("a")}}, {"xc"}).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(s.Create("not a graph").code(), absl::StatusCode::kInvalidArgument);
  GraphBuilder twice;
  twice.constant("c", "c");
  EXPECT_EQ(s.Extend(twice.graph).code(), absl::StatusCode::kInvalidArgument);
  GraphBuilder dangling;
  dangling.join("d", {"none"});
  EXPECT_EQ(s.Extend(dangling.graph).code(), absl::StatusCode::kInvalidArgument);
  GraphBuilder unknown;
  unknown.add("u", "NoSuchOp");
  EXPECT_EQ(s.Extend(unknown.graph).code(), absl::StatusCode::kNotFound);
}

TEST(Session, RefusesCyclesAndWrongTypes) {
  GraphBuilder b;
  b.join("a", {"b"}).join("b", {"a"}).constant("t", true).join("wrong", {"t"}).join("many", {"t"}).set("N", 2);
  Session s;
  ASSERT_TRUE(s.Create(b.graph).ok());
  EXPECT_EQ(run(s, {}, {"a"}).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(s, {}, {"wrong"}).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(s, {}, {"many"}).status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Session, FunctionsAreNotRedefined) {
  auto withFunction = [](const char *inputs) {
    return graphOf(std::string(R"pb(library { function {
      signature { name: "f" input_arg { name: "a" type: DT_STRING } output_arg { name: "r" type: DT_STRING } }
      node_def { name: "j" op: "StringJoin" )pb") + inputs + R"pb( attr { key: "N" value { i: 2 } } }
      ret { key: "r" value: "j:output:0" } } })pb");
  };
  Session s;
  GraphBuilder b;
  b.placeholder("x");
  ASSERT_TRUE(s.Create(b.graph).ok());
  ASSERT_TRUE(s.Extend(withFunction("input: \"a\" input: \"a\"")).ok());
  EXPECT_TRUE(s.Extend(withFunction("input: \"a\" input: \"a\"")).ok()) << "the same again is no change";
  absl::Status other = s.Extend(withFunction("input: \"a\" input: \"a\" input: \"^a\""));
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(other.message()).find("a different function with the same name already exists"), std::string::npos);
}

TEST(Session, Extends) {
  Session s;
  ASSERT_TRUE(s.Create(joined()).ok());
  GraphBuilder more;
  more.join("again", {"xyx", "xyx"});
  ASSERT_TRUE(s.Extend(more.graph).ok());
  Ran r = run(s, {{"x:0", text("a")}, {"y", text("b")}}, {"again"});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(textOf(r.out[0]), "abaaba");
}

TEST(Session, Callables) {
  Session s;
  ASSERT_TRUE(s.Create(joined()).ok());
  Session::CallableHandle handle;
  ASSERT_TRUE(s.MakeCallable({{"x", "y"}, {"xy"}, {}, {}}, &handle).ok());
  std::vector<Tensor> out;
  ASSERT_TRUE(s.RunCallable(handle, {text("1"), text("2")}, &out).ok());
  EXPECT_EQ(textOf(out[0]), "12");
  EXPECT_FALSE(s.RunCallable(handle, {text("1")}, &out).ok());
  ASSERT_TRUE(s.ReleaseCallable(handle).ok());
  EXPECT_FALSE(s.RunCallable(handle, {text("1"), text("2")}, &out).ok());
}

TEST(Session, PartialRuns) {
  Session s;
  ASSERT_TRUE(s.Create(joined()).ok());
  std::string handle;
  ASSERT_TRUE(s.PRunSetup({"x", "y"}, {"xc", "xyx"}, {}, &handle).ok());
  std::vector<Tensor> out;
  EXPECT_EQ(s.PRun(handle, {}, {"xc"}, &out).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(s.PRun(handle, {{"x", text("a")}}, {"xc"}, &out).ok());
  EXPECT_EQ(textOf(out[0]), "ac");
  EXPECT_FALSE(s.PRun(handle, {{"x", text("b")}}, {"xyx"}, &out).ok());
  absl::Status last = s.PRun(handle, {{"y", text("b")}}, {"xyx"}, &out);
  ASSERT_TRUE(last.ok()) << last;
  EXPECT_EQ(textOf(out[0]), "aba");
  // one that never gets its feed
  ASSERT_TRUE(s.PRunSetup({"x", "y"}, {"xyx"}, {}, &handle).ok());
  ASSERT_TRUE(s.Close().ok());
  EXPECT_EQ(run(s, {}, {"c"}).status.code(), absl::StatusCode::kCancelled);
}

TEST(Session, Variables) {
  GraphBuilder b;
  b.add("v", "VariableV2", {}, DType::String, "dtype").shape("shape", {});
  b.constant("init", "i").add("assign", "Assign", {"v", "init"}).join("next", {"v", "init"}).add("step", "Assign", {"v", "next"});
  b.add("h", "VarHandleOp", {}, DType::String, "dtype").shape("shape", {});
  b.add("read", "ReadVariableOp", {"h"}, DType::String, "dtype");
  b.add("set", "AssignVariableOp", {"h", "v"}, DType::String, "dtype");
  b.add("is", "VarIsInitializedOp", {"h"}, DType::String, "");
  Session s;
  ASSERT_TRUE(s.Create(b.graph).ok());
  EXPECT_EQ(run(s, {}, {"v"}).status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(run(s, {}, {"read"}).status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(*run(s, {}, {"is"}).out[0].data<bool>());
  ASSERT_TRUE(run(s, {}, {}, {"assign"}).status.ok());
  Ran r = run(s, {}, {"step"});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(textOf(r.out[0]), "ii");
  ASSERT_TRUE(run(s, {}, {}, {"set"}).status.ok());
  EXPECT_EQ(textOf(run(s, {}, {"read"}).out[0]), "ii");
  // another session on the same devices sees the same variables
  SessionOptions options;
  options.devices = s.devices();
  Session other(options);
  ASSERT_TRUE(other.Create(s.graph()).ok());
  EXPECT_EQ(textOf(run(other, {}, {"read"}).out[0]), "ii");
  Session fresh;
  ASSERT_TRUE(fresh.Create(s.graph()).ok());
  EXPECT_FALSE(run(fresh, {}, {"read"}).status.ok());
}

// Rows of variables of any type: one update may serve all rows, indices out of range change nothing.
TEST(Session, RowsOfVariables) {
  GraphBuilder b;
  b.add("h", "VarHandleOp", {}, DType::String, "dtype").shape("shape", {2});
  b.add("first", "Placeholder", {}, DType::String, "dtype").add("indices", "Placeholder", {}, DType::Int32, "dtype");
  b.add("one", "Placeholder", {}, DType::String, "dtype");
  b.add("set", "AssignVariableOp", {"h", "first"}, DType::String, "dtype");
  b.add("update", "ResourceScatterUpdate", {"h", "indices", "one"}, DType::String, "dtype").type("Tindices", DType::Int32);
  b.add("rows", "ResourceGather", {"h", "indices"}, DType::String, "dtype").type("Tindices", DType::Int32);
  Session s;
  ASSERT_TRUE(s.Create(b.graph).ok());
  auto strings = [](std::vector<int64_t> dims, std::vector<std::string> values) {
    Tensor t = Tensor::allocate(DType::String, dims);
    t.mutableStrings() = std::move(values);
    return t;
  };
  ASSERT_TRUE(run(s, {{"first", strings({2}, {"a", "b"})}}, {}, {"set"}).status.ok());
  Session::Feeds feeds{{"indices", Tensor::vector<int32_t>(DType::Int32, {1})}, {"one", strings({}, {"x"})}};
  ASSERT_TRUE(run(s, feeds, {}, {"update"}).status.ok());
  feeds[0].second = Tensor::vector<int32_t>(DType::Int32, {1, 0, 1});
  Ran r = run(s, feeds, {"rows"});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(std::vector<std::string>(r.out[0].strings().begin(), r.out[0].strings().end()),
            (std::vector<std::string>{"x", "a", "x"}));
  feeds[0].second = Tensor::vector<int32_t>(DType::Int32, {0, 2});
  EXPECT_EQ(run(s, feeds, {}, {"update"}).status.code(), absl::StatusCode::kInvalidArgument);
  feeds[0].second = Tensor::vector<int32_t>(DType::Int32, {0});
  EXPECT_EQ(run(s, feeds, {"rows"}).out[0].strings()[0], "a");
}

TEST(Session, TracesNodes) {
  Session s;
  ASSERT_TRUE(s.Create(joined()).ok());
  RunOptions options;
  options.traceLevel = RunOptions::FullTrace;
  RunMetadata metadata;
  std::vector<Tensor> out;
  ASSERT_TRUE(s.Run(options, {{"x", text("a")}, {"y", text("b")}}, {"xyx"}, {}, &out, &metadata).ok());
  ASSERT_EQ(metadata.stepStats.size(), 2u);
  EXPECT_EQ(metadata.stepStats[0].node, "xy");
  EXPECT_EQ(metadata.stepStats[1].op, "StringJoin");
}

} // namespace
} // namespace lathe
