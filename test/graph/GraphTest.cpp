#include "Graphs.h"

using namespace lathe;
using namespace lathe::graphdef;
using lathe::testing::makeGraph;
using lathe::testing::parseGraph;

namespace {

const char *kChain = R"(
  node { name: "c" op: "AddV2" input: "a" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "a" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "b" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "s" op: "Split" input: "axis" input: "c" attr { key: "T" value { type: DT_FLOAT } }
         attr { key: "num_split" value { i: 2 } } }
  node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
         attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
  node { name: "n" op: "Neg" input: "s:1" input: "^b" attr { key: "T" value { type: DT_FLOAT } } }
)";

TEST(Graph, ReadsEdgesWhateverTheOrder) {
  auto g = makeGraph(kChain);
  Node *c = g->find("c"), *s = g->find("s"), *n = g->find("n");
  EXPECT_EQ(c->input(0), Endpoint({g->find("a"), 0}));
  EXPECT_EQ(n->input(0), Endpoint({s, 1}));
  ASSERT_EQ(n->controls().size(), 1u);
  EXPECT_EQ(n->controls()[0], g->find("b"));
  ASSERT_EQ(s->uses(1).size(), 1u);
  EXPECT_EQ(s->uses(1)[0].node, n);
  EXPECT_TRUE(s->uses(0).empty());
  EXPECT_EQ(s->outputRange("output"), std::make_pair(0, 2));
  EXPECT_EQ(g->findEndpoint("s:1").name(), "s:1");
  EXPECT_FALSE(g->findEndpoint("s:2"));
  // the default was put in
  EXPECT_TRUE(g->find("a")->attr("shape")->shape().unknown_rank());
}

TEST(Graph, WritesWhatItRead) {
  auto g = makeGraph(kChain);
  auto again = Graph::fromProto(g->toProto());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->toProto().ShortDebugString(), g->toProto().ShortDebugString());
  EXPECT_EQ(g->find("n")->toProto().input(1), "^b");
}

TEST(Graph, RefusesNodesThatDoNotFit) {
  auto g = makeGraph(kChain);
  int before = g->numNodes();
  auto refused = [&](const std::string &node, const std::string &message) {
    absl::Status s = g->extend(parseGraph("node { name: 'fine' op: 'NoOp' } node { " + node + " }"));
    EXPECT_NE(std::string(s.message()).find(message), std::string::npos) << s;
    EXPECT_EQ(g->numNodes(), before);
    EXPECT_EQ(g->find("fine"), nullptr);
  };
  refused("name: 'a' op: 'NoOp'", "another node has the same name");
  refused("name: 'x y' op: 'NoOp'", "no valid node name");
  refused("name: 'x' op: 'Nope'", "op is not known");
  refused("name: 'x' op: 'Neg' input: 'a'", "attribute 'T' is missing");
  refused("name: 'x' op: 'Neg' input: 'a' attr { key: 'T' value { i: 1 } }", "attribute 'T' is int, expected type");
  refused("name: 'x' op: 'Neg' input: 'a' attr { key: 'T' value { type: DT_STRING } }", "attribute 'T' is string");
  refused("name: 'x' op: 'Neg' input: 'a' attr { key: 'T' value { type: DT_DOUBLE } }", "input 0 is of type float32, expected float64");
  refused("name: 'x' op: 'Neg' attr { key: 'T' value { type: DT_FLOAT } }", "expected 1 inputs, found 0");
  refused("name: 'x' op: 'Neg' input: 'a:1' attr { key: 'T' value { type: DT_FLOAT } }", "an output that 'a' does not have");
  refused("name: 'x' op: 'Neg' input: 'q' attr { key: 'T' value { type: DT_FLOAT } }", "input 'q' does not exist");
  refused("name: 'x' op: 'AssignAdd' input: 'a' input: 'b' attr { key: 'T' value { type: DT_FLOAT } }", "has to be a reference");
}

TEST(Graph, ChangesEdges) {
  auto g = makeGraph(kChain);
  Node *a = g->find("a"), *c = g->find("c"), *n = g->find("n"), *s = g->find("s");
  EXPECT_TRUE(g->setInput(n, 0, {a, 0}).ok());
  EXPECT_TRUE(s->uses(1).empty());
  EXPECT_EQ(a->uses(0).size(), 2u);
  EXPECT_FALSE(g->setInput(n, 0, {g->find("axis"), 0}).ok()); // int32
  EXPECT_EQ(n->input(0), Endpoint({a, 0}));
  EXPECT_TRUE(g->replaceUses({a, 0}, {g->find("b"), 0}).ok());
  EXPECT_EQ(c->input(0), Endpoint({g->find("b"), 0}));
  EXPECT_TRUE(a->uses(0).empty());
}

TEST(Graph, ChangesANodeInPlace) {
  auto g = makeGraph(kChain);
  Node *s = g->find("s"), *n = g->find("n");
  NodeSpec spec{s->toProto(), s->inputs(), {}};
  (*spec.def.mutable_attr())["num_split"].set_i(3);
  ASSERT_TRUE(g->change(s, spec).ok());
  EXPECT_EQ(s->numOutputs(), 3);
  EXPECT_EQ(s->uses(1)[0].node, n);
  EXPECT_EQ(g->find("s"), s);
  (*spec.def.mutable_attr())["num_split"].set_i(1);
  EXPECT_FALSE(g->change(s, spec).ok()); // n reads output 1
  EXPECT_EQ(s->numOutputs(), 3);
}

TEST(Graph, SortsAndFindsCycles) {
  auto g = makeGraph(kChain);
  auto order = topologicalOrder(*g);
  ASSERT_TRUE(order.ok());
  std::vector<int> at(g->maxId());
  for (size_t i = 0; i < order->size(); ++i)
    at[(*order)[i]->id()] = static_cast<int>(i);
  EXPECT_LT(at[g->find("a")->id()], at[g->find("c")->id()]);
  EXPECT_LT(at[g->find("b")->id()], at[g->find("n")->id()]);
  EXPECT_TRUE(g->setInput(g->find("c"), 0, {g->find("s"), 0}).ok());
  EXPECT_FALSE(topologicalOrder(*g).ok());
}

TEST(Graph, PrunesLoopsToo) {
  auto g = makeGraph(kChain);
  prune(*g, {g->find("c")});
  EXPECT_EQ(g->numNodes(), 3);
  EXPECT_EQ(g->find("n"), nullptr);
  ASSERT_TRUE(g->setInput(g->find("c"), 0, {g->find("c"), 0}).ok());
  prune(*g, {g->find("a")});
  EXPECT_EQ(g->numNodes(), 1);
}

TEST(Graph, NamesAsTensorFlowDoes) {
  auto g = makeGraph(kChain);
  EXPECT_EQ(g->uniqueName("x"), "x");
  EXPECT_EQ(g->uniqueName("a"), "a_1");
  EXPECT_EQ(g->uniqueName("a"), "a_2");
}

TEST(Graph, InfersAttributesFromInputs) {
  auto g = makeGraph(kChain);
  Endpoint a{g->find("a"), 0}, b{g->find("b"), 0}, axis{g->find("axis"), 0};
  NodeSpec spec{{}, {a, b, axis}, {}};
  spec.def.set_name("concat");
  spec.def.set_op("ConcatV2");
  ASSERT_TRUE(inferAttrs(*ops::findOp("ConcatV2"), {{a, b}, {axis}}, &spec.def).ok());
  EXPECT_EQ(spec.def.attr().at("N").i(), 2);
  auto node = g->add(spec);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ((*node)->typeAttr("T"), DType::Float32);
  EXPECT_EQ((*node)->inputRange("axis"), std::make_pair(2, 1));
  tf::NodeDef bad;
  EXPECT_FALSE(inferAttrs(*ops::findOp("Neg"), {{a, b}}, &bad).ok());
}

TEST(Graph, KnowsBackEdges) {
  auto g = makeGraph(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "e" op: "Enter" input: "x" attr { key: "T" value { type: DT_FLOAT } } attr { key: "frame_name" value { s: "f" } } }
    node { name: "m" op: "Merge" input: "e" input: "n" attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 2 } } }
    node { name: "n" op: "NextIteration" input: "m" attr { key: "T" value { type: DT_FLOAT } } }
  )");
  auto order = topologicalOrder(*g);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->back(), g->find("n"));
  prune(*g, {g->find("x")});
  EXPECT_EQ(g->numNodes(), 1);
}

} // namespace
