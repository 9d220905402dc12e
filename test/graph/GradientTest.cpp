// The walk and what it promises; values are compared with TensorFlow's in test/e2e/gradients.test and test/tools/gradients.py.
#include "graph/gradients/Gradients.h"

#include "graph/Emit.h"
#include "graph/Function.h"

#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::graphdef;

namespace {

struct Fixture {
  Graph graph;
  Emitter e{graph};
  Val x = input("x"), y = input("y");

  Val input(const char *name) {
    Node *node = e.node("Placeholder", {}, {{"dtype", DType::Float32}}, name);
    return Val(e, node->output(0));
  }
  absl::StatusOr<std::vector<Endpoint>> gradients(std::vector<Val> ys, std::vector<Val> xs, std::vector<Val> stop = {}) {
    auto ends = [](const std::vector<Val> &list) {
      std::vector<Endpoint> out;
      for (const Val &v : list)
        out.push_back(v.end);
      return out;
    };
    GradientOptions options;
    options.stop = ends(stop);
    std::vector<Endpoint> grads;
    if (absl::Status s = addGradients(graph, ends(ys), ends(xs), {}, options, &grads); !s.ok())
      return s;
    return grads;
  }
};

TEST(Gradients, NoneWhereNothingFlows) {
  Fixture f;
  auto grads = f.gradients({call("Square", {f.x})}, {f.x, f.y});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_TRUE((*grads)[0]);
  EXPECT_FALSE((*grads)[1]);
  // whole numbers and StopGradient carry none
  Val whole = call("Cast", {f.y}, {{"DstT", DType::Int32}});
  auto cut = f.gradients({call("StopGradient", {f.x}), call("Cast", {whole}, {{"DstT", DType::Float32}})}, {f.x, f.y});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_FALSE((*cut)[0]);
  EXPECT_FALSE((*cut)[1]);
}

TEST(Gradients, SumsWhatComesTogether) {
  Fixture f;
  Val a = call("Neg", {f.x}), b = call("Square", {f.x}), c = call("Exp", {f.x});
  auto grads = f.gradients({call("AddN", {std::vector<Val>{a, b, c}})}, {f.x});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_EQ((*grads)[0].node->op(), "AddN");
  EXPECT_EQ((*grads)[0].node->numInputs(), 3);
  EXPECT_EQ((*grads)[0].node->name().rfind("gradients/", 0), 0u);
  // the second set has its own names
  auto again = f.gradients({a}, {f.x});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)[0].node->name().rfind("gradients_1/", 0), 0u);
}

TEST(Gradients, StopsWhereAsked) {
  Fixture f;
  Val middle = call("Square", {f.x});
  auto grads = f.gradients({call("Exp", {middle})}, {f.x, middle}, {middle});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_FALSE((*grads)[0]);
  EXPECT_TRUE((*grads)[1]);
}

TEST(Gradients, NamesTheNodeWithoutGradient) {
  Fixture g;
  Node *warp = g.e.node("HSVToRGB", {g.x}, {}, "colours");
  auto fine = g.gradients({Val(g.e, warp->output(0))}, {g.x});
  ASSERT_TRUE(fine.ok()) << fine.status(); // known to have none
  EXPECT_FALSE((*fine)[0]);
  Node *hue = g.e.node("AdjustHue", {g.x, g.y}, {}, "hue");
  auto missing = g.gradients({Val(g.e, hue->output(0))}, {g.x});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(std::string(missing.status().message()).find("node 'hue' (AdjustHue): has no gradient"), std::string::npos) << missing.status();
}

TEST(Gradients, RefusesWrongUse) {
  Fixture f;
  std::vector<Endpoint> grads;
  Val square = call("Square", {f.x});
  EXPECT_FALSE(addGradients(f.graph, {square.end}, {f.x.end}, {square.end, square.end}, {}, &grads).ok());
  EXPECT_FALSE(addGradients(f.graph, {square.end}, {Endpoint()}, {}, {}, &grads).ok());
  EXPECT_FALSE(addGradients(f.graph, {square.end}, {{f.x.end.node, 3}}, {}, {}, &grads).ok());
  Val complex = call("Complex", {f.x, f.y});
  EXPECT_FALSE(addGradients(f.graph, {complex.end}, {f.x.end}, {}, {}, &grads).ok());
  Val wide = call("Cast", {f.x}, {{"DstT", DType::Float64}});
  EXPECT_FALSE(addGradients(f.graph, {square.end}, {f.x.end}, {wide.end}, {}, &grads).ok());
}

TEST(Gradients, CallsKeepTheirNodesAndGiveMore) {
  Fixture f;
  tf::FunctionDef def;
  def.mutable_signature()->set_name("f");
  auto arg = [](tf::OpDef::ArgDef *a, const char *name) {
    a->set_name(name);
    a->set_type(tf::DT_FLOAT);
  };
  arg(def.mutable_signature()->add_input_arg(), "a");
  arg(def.mutable_signature()->add_output_arg(), "r");
  tf::NodeDef *exp = def.add_node_def();
  exp->set_name("exp");
  exp->set_op("Exp");
  exp->add_input("a");
  (*exp->mutable_attr())["T"].set_type(tf::DT_FLOAT);
  (*def.mutable_ret())["r"] = "exp:y:0";
  ASSERT_TRUE(f.graph.library().add(def).ok());
  Node *node = f.e.node("f", {f.x}, {}, "call");
  ASSERT_TRUE(node) << f.e.status;
  auto grads = f.gradients({Val(f.e, node->output(0))}, {f.x});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_EQ(f.graph.find("call"), node);
  EXPECT_EQ(node->op(), "PartitionedCall");
  EXPECT_EQ(node->numOutputs(), 2); // exp is captured
  EXPECT_EQ((*grads)[0].node->op(), "PartitionedCall");
  auto again = Graph::fromProto(f.graph.toProto());
  EXPECT_TRUE(again.ok()) << again.status();
}

/// Gradients of a conditional whose branches multiply x by what a stateful op gives.
absl::Status throughBranchesOf(const tf::NodeDef &stateful, const std::string &result) {
  Fixture f;
  tf::FunctionDef def;
  def.mutable_signature()->set_name("branch");
  auto arg = [](tf::OpDef::ArgDef *a, const char *name, tf::DataType type) {
    a->set_name(name);
    a->set_type(type);
  };
  arg(def.mutable_signature()->add_input_arg(), "handle", tf::DT_RESOURCE);
  arg(def.mutable_signature()->add_input_arg(), "numbers", tf::DT_INT32);
  arg(def.mutable_signature()->add_input_arg(), "x", tf::DT_FLOAT);
  arg(def.mutable_signature()->add_output_arg(), "r", tf::DT_FLOAT);
  *def.add_node_def() = stateful;
  tf::NodeDef *product = def.add_node_def();
  product->set_name("product");
  product->set_op("Mul");
  product->add_input(stateful.name() + ":" + result + ":0");
  product->add_input("x");
  (*product->mutable_attr())["T"].set_type(tf::DT_FLOAT);
  (*def.mutable_ret())["r"] = "product:z:0";
  if (absl::Status s = f.graph.library().add(def); !s.ok())
    return s;
  Node *handle = f.e.node("VarHandleOp", {}, {{"dtype", DType::Float32}, {"shape", PartialShape({4})}}, "v");
  tf::AttrValue branch;
  branch.mutable_func()->set_name("branch");
  Node *node = f.e.node("If", {call("Greater", {f.x, f.y}), std::vector<Val>{Val(f.e, handle->output(0)), f.e.int32s({1}), f.x}},
                        {{"then_branch", branch}, {"else_branch", branch}, {"Tout", std::vector<DType>{DType::Float32}}}, "if");
  if (!node)
    return f.e.status;
  return f.gradients({Val(f.e, node->output(0))}, {f.x}).status();
}

TEST(Gradients, BranchesRunAgainWhereThatGivesTheSame) {
  tf::NodeDef node;
  node.set_name("stateful");
  node.set_op("RandomStandardNormal");
  node.add_input("numbers");
  (*node.mutable_attr())["T"].set_type(tf::DT_INT32);
  (*node.mutable_attr())["dtype"].set_type(tf::DT_FLOAT);
  absl::Status s = throughBranchesOf(node, "output");
  EXPECT_NE(s.message().find("stateful"), std::string::npos) << s;
  node.Clear();
  node.set_name("read");
  node.add_input("handle");
  (*node.mutable_attr())["dtype"].set_type(tf::DT_FLOAT);
  node.set_op("ReadVariableOp");
  s = throughBranchesOf(node, "value");
  EXPECT_TRUE(s.ok()) << s;
  node.add_input("numbers");
  (*node.mutable_attr())["Tindices"].set_type(tf::DT_INT32);
  for (const char *op : {"ResourceGather", "ResourceGatherNd"}) {
    node.set_op(op);
    s = throughBranchesOf(node, "output");
    EXPECT_TRUE(s.ok()) << op << ": " << s;
  }
}

TEST(Gradients, PassSwitchesOfReferences) {
  Fixture f;
  Node *variable = f.e.node("VariableV2", {}, {{"dtype", DType::Float32}, {"shape", PartialShape({2})}}, "v");
  ASSERT_TRUE(variable) << f.e.status;
  Val v(f.e, variable->output(0)), yes = call("Greater", {f.x, f.y});
  Val sides = f.e.op("RefSwitch", {v, yes});
  Val merged = call("Merge", {std::vector<Val>{call("Neg", {sides}), call("Square", {sides.at(1)})}});
  auto grads = f.gradients({merged}, {v});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_EQ((*grads)[0].node->op(), "Merge");
}

/// The gradients by xs of the sum of ys, rows or not.
std::vector<Gradient> rowGradients(Fixture &f, const std::vector<Val> &ys, const std::vector<Val> &xs) {
  std::vector<Endpoint> yEnds, xEnds;
  for (const Val &v : ys)
    yEnds.push_back(v.end);
  for (const Val &v : xs)
    xEnds.push_back(v.end);
  std::vector<Gradient> grads;
  absl::Status s = addGradients(f.graph, yEnds, xEnds, {}, {}, &grads);
  EXPECT_TRUE(s.ok()) << s;
  return grads;
}

Val gatherAt(Val params, Val indices, int axis) { return call("GatherV2", {params, indices, params.emitter->int32(axis)}); }

TEST(GradientRows, OfGathersAlongTheFirstDimension) {
  Fixture f;
  Val indices = f.e.int32s({2, 0, 2});
  std::vector<Gradient> grads = rowGradients(f, {gatherAt(call("Identity", {f.x}), indices, 0), gatherAt(f.y, indices, 1)}, {f.x, f.y});
  ASSERT_EQ(grads.size(), 2u);
  EXPECT_TRUE(grads[0].isRows());
  EXPECT_EQ(grads[0].indices.type(), DType::Int32);
  EXPECT_TRUE(grads[1]);
  EXPECT_FALSE(grads[1].isRows());
  // the same by endpoints alone is a tensor
  auto whole = f.gradients({gatherAt(f.x, indices, 0)}, {f.x});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ((*whole)[0].node->op(), "UnsortedSegmentSum");
}

TEST(GradientRows, OneAfterTheOtherOrWholeBesideATensor) {
  Fixture f;
  Val narrow = f.e.int32s({1}), wide = call("Cast", {narrow}, {{"DstT", DType::Int64}});
  std::vector<Gradient> both = rowGradients(f, {gatherAt(f.x, narrow, 0), call("Gather", {f.x, wide})}, {f.x});
  ASSERT_TRUE(both.size() == 1 && both[0].isRows());
  EXPECT_EQ(both[0].values.node->op(), "ConcatV2");
  EXPECT_EQ(both[0].indices.type(), DType::Int64);
  std::vector<Gradient> mixed = rowGradients(f, {gatherAt(f.x, narrow, 0), call("Square", {f.x})}, {f.x});
  ASSERT_EQ(mixed.size(), 1u);
  EXPECT_FALSE(mixed[0].isRows());
  EXPECT_EQ(mixed[0].values.node->op(), "AddN");
  // what computes with rows gets a tensor
  std::vector<Gradient> through = rowGradients(f, {gatherAt(call("Exp", {f.x}), narrow, 0)}, {f.x});
  EXPECT_TRUE(through.size() == 1 && through[0] && !through[0].isRows());
}

TEST(GradientRows, OfVariablesByTheirHandles) {
  Fixture f;
  Node *node = f.e.node("VarHandleOp", {}, {{"dtype", DType::Float32}, {"shape", PartialShape({100, 4})}}, "table");
  ASSERT_TRUE(node) << f.e.status;
  Val table(f.e, node->output(0)), indices = f.e.int32s({7, 3});
  Val read = call("ReadVariableOp", {table}, {{"dtype", DType::Float32}});
  Val direct = call("ResourceGather", {table, indices}, {{"dtype", DType::Float32}});
  std::vector<Gradient> grads = rowGradients(f, {gatherAt(read, indices, 0), direct}, {table, read});
  ASSERT_EQ(grads.size(), 2u);
  EXPECT_TRUE(grads[0].isRows() && grads[1].isRows());
  EXPECT_EQ(grads[0].values.node->op(), "ConcatV2");
  // the shape comes from the handle
  EXPECT_EQ(grads[1].shape.node->op(), "VariableShape");
}

TEST(GradientRows, ComeOutOfCalls) {
  Fixture f;
  tf::FunctionDef def;
  def.mutable_signature()->set_name("look_up");
  auto arg = [](tf::OpDef::ArgDef *a, const char *name, tf::DataType type) {
    a->set_name(name);
    a->set_type(type);
  };
  arg(def.mutable_signature()->add_input_arg(), "params", tf::DT_FLOAT);
  arg(def.mutable_signature()->add_input_arg(), "indices", tf::DT_INT32);
  arg(def.mutable_signature()->add_output_arg(), "r", tf::DT_FLOAT);
  tf::NodeDef *node = def.add_node_def();
  node->set_name("gather");
  node->set_op("Gather");
  node->add_input("params");
  node->add_input("indices");
  (*node->mutable_attr())["Tparams"].set_type(tf::DT_FLOAT);
  (*node->mutable_attr())["Tindices"].set_type(tf::DT_INT32);
  (*def.mutable_ret())["r"] = "gather:output:0";
  ASSERT_TRUE(f.graph.library().add(def).ok());
  Node *called = f.e.node("look_up", {f.x, f.e.int32s({1, 0})}, {}, "call");
  ASSERT_TRUE(called) << f.e.status;
  std::vector<Gradient> grads = rowGradients(f, {Val(f.e, called->output(0))}, {f.x});
  ASSERT_TRUE(grads.size() == 1 && grads[0].isRows());
  EXPECT_EQ(grads[0].values.node, grads[0].indices.node);
  EXPECT_EQ(grads[0].values.node->op(), "PartitionedCall");
  auto again = Graph::fromProto(f.graph.toProto());
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST(Gradients, TheTableIsConsistent) {
  int yes = 0, none = 0, missing = 0;
  for (const ops::OpInfo &op : ops::allOps()) {
    GradientInfo info = gradientInfo(op.name);
    yes += info.kind == GradientInfo::Differentiable;
    none += info.kind == GradientInfo::NotDifferentiable;
    missing += info.kind == GradientInfo::Missing;
    EXPECT_EQ(info.kind == GradientInfo::NotDifferentiable || info.kind == GradientInfo::Missing, !info.reason.empty()) << op.name;
  }
  EXPECT_GE(yes, 330);
  EXPECT_GE(none, 180);
  EXPECT_LE(missing, 15);
}

} // namespace
