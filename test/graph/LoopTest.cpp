// Loops of Enter, Merge and NextIteration under gradients; values are compared in test/e2e/gradients.test.
#include "test/graph/Graphs.h"

#include "graph/Function.h"
#include "graph/gradients/Gradients.h"

using namespace lathe;
using namespace lathe::graphdef;
using lathe::testing::makeGraph;

namespace {

std::string node(const std::string &name, const std::string &op, const std::vector<std::string> &inputs, const std::string &attrs = "") {
  std::string text = "node { name: '" + name + "' op: '" + op + "'";
  for (const std::string &input : inputs)
    text += " input: '" + input + "'";
  return text + " attr { key: 'T' value { type: DT_FLOAT } } " + attrs + "}\n";
}

std::string placeholder(const std::string &name) {
  return "node { name: '" + name + "' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n";
}

/// while (v < limit) v = next, where `body` makes "next" of the Identity "v".
std::unique_ptr<Graph> loopOf(const std::string &body) {
  const std::string frame = "attr { key: 'frame_name' value { s: 'loop/frame' } } ";
  const std::string two = "attr { key: 'N' value { i: 2 } } ";
  return makeGraph(placeholder("x") + placeholder("limit") + node("enter", "Enter", {"x"}, frame) +
                   node("bound", "Enter", {"limit"}, frame + "attr { key: 'is_constant' value { b: true } } ") +
                   node("merge", "Merge", {"enter", "again"}, two) + node("less", "Less", {"merge", "bound"}) +
                   "node { name: 'cond' op: 'LoopCond' input: 'less' }\n" + node("switch", "Switch", {"merge", "cond"}) +
                   node("exit", "Exit", {"switch"}) + node("v", "Identity", {"switch:1"}) + body +
                   node("again", "NextIteration", {"next"}));
}

TEST(Loops, BecomeWhile) {
  auto g = loopOf(node("next", "Square", {"v"}));
  ASSERT_TRUE(g);
  Node *exit = g->find("exit");
  std::vector<Endpoint> grads;
  absl::Status s = addGradients(*g, {{exit, 0}}, {{g->find("x"), 0}}, {}, {}, &grads);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_TRUE(grads[0]);
  // the node is the one that it was, and reads the loop
  EXPECT_EQ(g->find("exit"), exit);
  EXPECT_EQ(exit->op(), "Identity");
  EXPECT_EQ(exit->input(0).node->op(), "While");
  EXPECT_TRUE(g->find("merge"));
  auto again = Graph::fromProto(g->toProto());
  EXPECT_TRUE(again.ok()) << again.status();
  // a second gradient finds it lifted
  s = addGradients(*g, {{exit, 0}}, {{g->find("x"), 0}}, {}, {}, &grads);
  EXPECT_TRUE(s.ok()) << s;
}

TEST(Loops, WithConditionalsOfTheFirstKind) {
  auto g = loopOf(node("small", "Less", {"v", "bound"}) + node("choose", "Switch", {"v", "small"}) + node("sin", "Sin", {"choose:1"}) +
                  node("neg", "Neg", {"choose"}) + node("next", "Merge", {"sin", "neg"}, "attr { key: 'N' value { i: 2 } } "));
  ASSERT_TRUE(g);
  std::vector<Endpoint> grads;
  absl::Status s = addGradients(*g, {{g->find("exit"), 0}}, {{g->find("x"), 0}}, {}, {}, &grads);
  ASSERT_TRUE(s.ok()) << s;
  // what Sin read is pushed where it ran: the push reads the list through a switch
  auto body = instantiate(g->sharedLibrary(), g->find("exit")->input(0).node->attr("body")->func());
  ASSERT_TRUE(body.ok()) << body.status();
  int pushes = 0, onOneSide = 0;
  for (const Node *n : body->graph->nodes())
    if (n->op() == "TensorListPushBack") {
      ++pushes;
      onOneSide += n->input(0).node->op() == "Switch" && n->uses(0).size() == 1 && n->uses(0)[0].node->op() == "Merge";
    }
  EXPECT_EQ(pushes, 2); // and the predicate, which is always there
  EXPECT_EQ(onOneSide, 1);
}

TEST(Loops, ThatReadBothSidesOfASwitchAreRefused) {
  auto g = loopOf(node("small", "Less", {"v", "bound"}) + node("choose", "Switch", {"v", "small"}) + node("both", "Mul", {"choose:1", "choose"}) +
                  node("sin", "Sin", {"both"}) + node("neg", "Neg", {"choose"}) +
                  node("next", "Merge", {"sin", "neg"}, "attr { key: 'N' value { i: 2 } } "));
  ASSERT_TRUE(g);
  std::vector<Endpoint> grads;
  absl::Status s = addGradients(*g, {{g->find("exit"), 0}}, {{g->find("x"), 0}}, {}, {}, &grads);
  EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(std::string(s.message()).find("node 'both' (Mul): reads both sides of a Switch"), std::string::npos) << s;
}

TEST(Loops, GradientsStartBehindThem) {
  auto g = loopOf(node("next", "Square", {"v"}));
  ASSERT_TRUE(g);
  std::vector<Endpoint> grads;
  absl::Status s = addGradients(*g, {{g->find("next"), 0}}, {{g->find("x"), 0}}, {}, {}, &grads);
  EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(std::string(s.message()).find("node 'merge' (Merge): it closes a loop"), std::string::npos) << s;
}

} // namespace
