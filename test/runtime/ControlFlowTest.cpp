// Control flow in the executor: Switch and Merge, frames, functions, cancellation.
#include "test/runtime/SessionTest.h"

#include <thread>

namespace lathe {
namespace {

Tensor flag(bool b) { return Tensor::scalar<bool>(DType::Bool, b); }

tf::GraphDef conditional() {
  GraphBuilder b;
  b.placeholder("x").placeholder("p", DType::Bool).add("s", "Switch", {"x", "p"}).constant("t", "true").constant("f", "false");
  b.join("yes", {"s:1", "t"}).join("no", {"s", "f"}).join("no2", {"no", "no"});
  b.add("m", "Merge", {"no2", "yes"}).set("N", 2);
  return b.graph;
}

TEST(ControlFlow, TakesOneBranch) {
  auto out = runGraph(conditional(), {{"x", text("x")}, {"p", flag(true)}}, {"m", "m:1"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(textOf((*out)[0]), "xtrue");
  EXPECT_EQ(*(*out)[1].data<int32_t>(), 1);
  out = runGraph(conditional(), {{"x", text("x")}, {"p", flag(false)}}, {"m"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(textOf((*out)[0]), "xfalsexfalse");
  EXPECT_EQ(runGraph(conditional(), {{"x", text("x")}, {"p", flag(false)}}, {"yes"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ControlFlow, TakesOneOfManyBranches) {
  GraphBuilder b;
  b.placeholder("x").placeholder("i", DType::Int32).add("s", "_SwitchN", {"x", "i"}).set("num_outs", 3).constant("a", "a").constant("b", "b");
  b.join("first", {"s", "a"}).join("second", {"s:1", "b"}).add("m", "Merge", {"first", "second", "s:2"}).set("N", 3);
  using Case = std::tuple<int32_t, const char *, int32_t>;
  for (auto [index, result, which] : {Case(0, "xa", 0), Case(1, "xb", 1), Case(2, "x", 2), Case(3, "x", 2), Case(-1, "x", 2)}) {
    auto out = runGraph(b.graph, {{"x", text("x")}, {"i", Tensor::scalar<int32_t>(DType::Int32, index)}}, {"m", "m:1"});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(textOf((*out)[0]), result);
    EXPECT_EQ(*(*out)[1].data<int32_t>(), which);
  }
}

TEST(ControlFlow, LoopsOverOneVariable) {
  // arithmetic is for compiled clusters; this loop is told to go on once
  GraphBuilder b;
  b.placeholder("x").constant("a", "a").constant("go", true);
  b.add("enter", "Enter", {"x"}).set("frame_name", "loop");
  b.add("a_in", "Enter", {"a"}).set("frame_name", "loop").flag("is_constant", true);
  b.add("first", "Enter", {"go"}, DType::Bool).set("frame_name", "loop");
  b.add("merge", "Merge", {"enter", "next"}).set("N", 2);
  b.add("again", "Merge", {"first", "stop_next"}, DType::Bool).set("N", 2);
  b.add("cond", "LoopCond", {"again"}, DType::Bool, "");
  b.add("switch", "Switch", {"merge", "cond"}).add("switch_again", "Switch", {"again", "cond"}, DType::Bool);
  b.join("grown", {"switch:1", "a_in"}).add("next", "NextIteration", {"grown"});
  b.add("turn", "Identity", {"switch_again:1"}, DType::Bool).constant("no", false);
  b.last().add_input("^turn");
  b.add("stop_next", "NextIteration", {"no"}, DType::Bool);
  b.add("exit", "Exit", {"switch"});
  b.join("after", {"exit", "late"}).join("late", {"x", "a"});
  auto out = runGraph(b.graph, {{"x", text("x")}}, {"exit", "after"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(textOf((*out)[0]), "xa");
  EXPECT_EQ(textOf((*out)[1]), "xaxa");
  // the exit is dead in the iterations before the last, which no one behind the loop may see
  b.join("slow", {"late", "exit"}).join("slower", {"slow", "exit", "after"});
  out = runGraph(b.graph, {{"x", text("x")}}, {"slower"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(textOf((*out)[0]), "xaxaxaxaxa");
}

TEST(ControlFlow, RefusesBrokenFrames) {
  GraphBuilder b;
  b.placeholder("x").add("in", "Enter", {"x"}).set("frame_name", "loop").join("mixed", {"in", "x"}).add("out", "Exit", {"mixed"});
  EXPECT_EQ(runGraph(b.graph, {{"x", text("x")}}, {"out"}).status().code(), absl::StatusCode::kInvalidArgument);
  GraphBuilder outside;
  outside.placeholder("x").add("out", "Exit", {"x"});
  EXPECT_EQ(runGraph(outside.graph, {{"x", text("x")}}, {"out"}).status().code(), absl::StatusCode::kInvalidArgument);
}

const char *kLibrary = R"pb(
  library {
    function {
      signature { name: "twice" input_arg { name: "a" type: DT_STRING } output_arg { name: "r" type: DT_STRING } }
      node_def { name: "j" op: "StringJoin" input: "a" input: "a" attr { key: "N" value { i: 2 } } }
      ret { key: "r" value: "j:output:0" }
    }
    function {
      signature { name: "generic" input_arg { name: "a" type_attr: "T" } output_arg { name: "r" type_attr: "T" }
                  attr { name: "T" type: "type" } }
      node_def { name: "i" op: "Identity" input: "a" attr { key: "T" value { placeholder: "T" } } }
      ret { key: "r" value: "i:output:0" }
    }
    function {
      signature { name: "forever" input_arg { name: "a" type: DT_STRING } output_arg { name: "r" type: DT_STRING } }
      node_def { name: "f" op: "forever" input: "a" }
      ret { key: "r" value: "f:r:0" }
    }
    function {
      signature { name: "last" input_arg { name: "a" type: DT_STRING } input_arg { name: "b" type: DT_STRING }
                  input_arg { name: "c" type: DT_STRING } input_arg { name: "d" type: DT_STRING }
                  input_arg { name: "e" type: DT_STRING } output_arg { name: "r" type: DT_STRING } }
      ret { key: "r" value: "e" }
    }
    function {
      signature { name: "yes" input_arg { name: "a" type: DT_STRING } output_arg { name: "r" type: DT_BOOL } }
      node_def { name: "c" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
                 attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape {} bool_val: true } } } }
      ret { key: "r" value: "c:output:0" }
    }
    function {
      signature { name: "same" input_arg { name: "a" type: DT_STRING } output_arg { name: "r" type: DT_STRING } }
      ret { key: "r" value: "a" }
    }
  }
)pb";

TEST(Functions, CallByOpAndByAttribute) {
  GraphBuilder b;
  b.graph = graphOf(kLibrary);
  b.placeholder("x").add("direct", "twice", {"x"}, DType::String, "");
  b.add("call", "PartitionedCall", {"direct"}, DType::String, "").types("Tin", {DType::String}).types("Tout", {DType::String}).function("f", "twice");
  b.add("any", "generic", {"call"});
  b.placeholder("p", DType::Bool);
  b.add("if", "If", {"p", "any"}, DType::Bool, "Tcond").types("Tin", {DType::String}).types("Tout", {DType::String});
  b.function("then_branch", "twice").function("else_branch", "same");
  auto out = runGraph(b.graph, {{"x", text("a")}, {"p", flag(true)}}, {"any", "if"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(textOf((*out)[0]), "aaaa");
  EXPECT_EQ(textOf((*out)[1]), "aaaaaaaa");
}

TEST(Functions, MoreArgumentsThanNodes) {
  GraphBuilder b;
  b.graph = graphOf(kLibrary);
  b.placeholder("x").placeholder("y").add("f", "last", {"x", "x", "x", "x", "y"}, DType::String, "");
  auto out = runGraph(b.graph, {{"x", text("a")}, {"y", text("b")}}, {"f"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(textOf((*out)[0]), "b");
}

TEST(Functions, RecursionEnds) {
  GraphBuilder b;
  b.graph = graphOf(kLibrary);
  b.placeholder("x").add("f", "forever", {"x"}, DType::String, "");
  EXPECT_EQ(runGraph(b.graph, {{"x", text("a")}}, {"f"}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Functions, EndlessLoopIsStoppedByTimeout) {
  GraphBuilder b;
  b.graph = graphOf(kLibrary);
  b.placeholder("x").add("w", "While", {"x"}, DType::String, "").types("T", {DType::String}).function("cond", "yes").function("body", "same");
  EXPECT_EQ(runGraph(b.graph, {{"x", text("a")}}, {"w"}, 50).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Functions, LoopConditionIsAScalar) {
  GraphBuilder b;
  b.graph = graphOf(kLibrary);
  b.placeholder("x").add("w", "While", {"x"}, DType::String, "").types("T", {DType::String}).function("cond", "same").function("body", "same");
  auto out = runGraph(b.graph, {{"x", Tensor::fromStrings({2}, {"a", "b"})}}, {"w"});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << out.status();
  EXPECT_TRUE(runGraph(b.graph, {{"x", text("")}}, {"w"}).ok());
}

TEST(Functions, ForCountsAndChecks) {
  GraphBuilder b;
  b.graph = graphOf(kLibrary);
  tf::FunctionDef &f = *b.graph.mutable_library()->add_function();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"pb(
    signature { name: "body" input_arg { name: "i" type: DT_INT32 } input_arg { name: "a" type: DT_STRING }
                output_arg { name: "r" type: DT_STRING } }
    node_def { name: "k" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
               attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape {} string_val: "." } } } }
    node_def { name: "j" op: "StringJoin" input: "a" input: "k:output:0" attr { key: "N" value { i: 2 } } }
    ret { key: "r" value: "j:output" })pb", &f));
  b.placeholder("x").constant("start", 0).constant("limit", 5000).constant("delta", 1);
  b.add("for", "For", {"start", "limit", "delta", "x"}, DType::String, "").types("T", {DType::String}).function("body", "body");
  auto out = runGraph(b.graph, {{"x", text("")}}, {"for"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].strings()[0].size(), 5000u);
  EXPECT_FALSE(runGraph(b.graph, {{"x", text("")}, {"delta", Tensor::scalar<int32_t>(DType::Int32, 0)}}, {"for"}).ok());
}

} // namespace
} // namespace lathe
