#include "graph/builder/Optimizers.h"
#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/nn.h"
#include "graph/Graph.h"

#include <gtest/gtest.h>

using namespace lathe;

namespace {

TEST(Builder, NodesGetNamesAttributesAndInputs) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DType::Float32, ops::Placeholder::Shape(PartialShape({-1, 2})));
  Scope layer = root.NewSubScope("layer").WithDevice("/cpu:0");
  auto product = ops::MatMul(layer, x, {{1.0f, 2.0f}, {3.0f, 4.0f}}, ops::MatMul::TransposeB(true));
  Output sum = ops::Add(layer.WithOpName("sum").WithControlDependencies(x), product, 1.0f);
  ASSERT_TRUE(root.ok()) << root.status();
  graphdef::Node *node = product.node();
  EXPECT_EQ(node->name(), "layer/MatMul");
  EXPECT_TRUE(node->boolAttr("transpose_b"));
  EXPECT_EQ(node->typeAttr("T"), DType::Float32);
  EXPECT_EQ(node->input(0).node->name(), "x");
  EXPECT_EQ(node->input(1).node->op(), "Const");
  EXPECT_EQ(sum.name(), "layer/sum:0");
  EXPECT_EQ(sum.node()->device(), "/cpu:0");
  ASSERT_EQ(sum.node()->controls().size(), 1u);
  EXPECT_EQ(sum.node()->controls()[0]->name(), "x");
  EXPECT_EQ(root.NewSubScope("layer").GetUniqueNameForOp("a"), "layer_1/a");
}

TEST(Builder, ListsAndSeveralOutputs) {
  Scope root = Scope::NewRootScope();
  Output a = ops::Const(root, {1.0f, 2.0f}), b = ops::Const(root, {3.0f, 4.0f});
  auto all = ops::Concat(root, {a, b, ops::Mul(root, a, b)}, 0);
  auto parts = ops::Split(root, 0, all, 3);
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ(parts.output.size(), 3u);
  EXPECT_EQ(parts[2].name(), "Split:2");
  auto top = ops::TopK(root, all, 2);
  EXPECT_EQ(top.values.index(), 0);
  EXPECT_EQ(top.indices.type(), DType::Int32);
}

TEST(Builder, ConstantsOfAnyShape) {
  Scope root = Scope::NewRootScope();
  EXPECT_EQ(Initializer(3).tensor.dims().size(), 0u);
  EXPECT_EQ(Initializer({1.5, 2.5}).tensor.dtype(), DType::Float64);
  Initializer cube({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}});
  EXPECT_EQ(cube.tensor.dims(), (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(cube.tensor.data<int>()[5], 6);
  EXPECT_FALSE(Initializer({{1, 2}, {3}}).status.ok());
  EXPECT_EQ(Initializer({"a", "bc"}).tensor.strings()[1], "bc");
  ops::Const(root, 1.0f, {2, 3});
  EXPECT_TRUE(root.ok());
  ops::Const(root, {1, 2}, {5});
  EXPECT_FALSE(root.ok());
}

TEST(Builder, TheFirstErrorStaysAndNamesItsNode) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DType::Float32);
  Output bad = ops::MatMul(root.WithOpName("product"), x, 1);
  EXPECT_FALSE(root.ok());
  EXPECT_EQ(bad.node(), nullptr);
  std::string message(root.status().message());
  EXPECT_NE(message.find("node 'product' (MatMul): input 1 is of type int32, expected float32"), std::string::npos) << message;
  ops::Neg(root, bad);
  EXPECT_EQ(std::string(root.status().message()), message);
  std::string bytes;
  EXPECT_FALSE(root.ToGraphDef(&bytes).ok());
}

TEST(Builder, ShapesAreKnownAsTheGraphGrows) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root, DType::Float32, ops::Placeholder::Shape(PartialShape({-1, 2})));
  Output y = ops::MatMul(root, x, {{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  EXPECT_EQ(root.ShapeOf(y), PartialShape({-1, 3}));
  EXPECT_EQ(root.ShapeOf(ops::Sum(root, y, 0)), PartialShape({3}));
  EXPECT_EQ(root.ShapeOf(Output()), PartialShape());
  // so are sizes that are computed
  Output sizes = ops::FloorDiv(root, ops::GatherV2(root, ops::Shape(root, y), {1, 0}, 0), 2);
  EXPECT_EQ(root.ShapeOf(ops::Fill(root, sizes, 1.0f)), PartialShape({1, -1}));
  // nodes that gradients added are known, too
  std::vector<Output> grads;
  ASSERT_TRUE(AddSymbolicGradients(root, {y}, {x}, &grads).ok());
  EXPECT_EQ(root.ShapeOf(grads[0]), PartialShape({-1, 2}));
  // and a graph from elsewhere
  Scope other = Scope::ForGraph(root.shared_graph());
  EXPECT_EQ(other.ShapeOf(y), PartialShape({-1, 3}));
  // an error is at the call, and the node is not there
  Output square = ops::Const(root, {{1.0f, 2.0f}, {3.0f, 4.0f}});
  const size_t before = root.graph()->nodes().size();
  Output bad = ops::MatMul(root.WithOpName("bad"), y, square);
  EXPECT_EQ(bad.node(), nullptr);
  EXPECT_EQ(root.graph()->nodes().size(), before);
  EXPECT_NE(std::string(root.status().message()).find("node 'bad' (MatMul)"), std::string::npos) << root.status();
}

TEST(Builder, GradientsOfWhatIsBuilt) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DType::Float32), y = ops::Placeholder(root.WithOpName("y"), DType::Float32);
  std::vector<Output> grads;
  ASSERT_TRUE(AddSymbolicGradients(root, {ops::Square(root, x)}, {x, y}, &grads).ok());
  EXPECT_EQ(grads[0].type(), DType::Float32);
  EXPECT_EQ(grads[0].name().rfind("gradients/Square_grad/", 0), 0u);
  EXPECT_EQ(grads[1].node(), nullptr);
}

TEST(Builder, OptimizersUpdateEveryVariable) {
  for (int kind = 0; kind < 3; ++kind) {
    Scope root = Scope::NewRootScope();
    train::Variable w = train::MakeVariable(root, "w", {1.0f, 2.0f}, {2});
    Output loss = ops::L2Loss(root, w.value);
    std::unique_ptr<train::Optimizer> optimizer;
    if (kind == 0)
      optimizer = std::make_unique<train::GradientDescent>(0.1f);
    else if (kind == 1)
      optimizer = std::make_unique<train::Momentum>(0.1f, 0.9f);
    else
      optimizer = std::make_unique<train::Adam>(0.1f);
    Operation step = optimizer->Minimize(root, loss, {w});
    ASSERT_TRUE(root.ok()) << root.status();
    EXPECT_EQ(step.name(), "train");
    EXPECT_EQ(optimizer->inits().size(), kind == 0 ? 0u : kind == 1 ? 1u : 4u);
    if (kind == 2) { // named as TensorFlow's checkpoints have them
      EXPECT_EQ(optimizer->slots()[2].handle.op().name(), "w/Adam");
      EXPECT_EQ(optimizer->slots()[3].handle.op().name(), "w/Adam_1");
    }
    train::Variable unused = train::MakeVariable(root, "unused", {1.0f}, {1});
    optimizer->Minimize(root, loss, {unused});
    EXPECT_NE(std::string(root.status().message()).find("'unused' has no gradient"), std::string::npos) << root.status();
  }
}

TEST(Builder, WeightsDecayUnlessExcluded) {
  Scope root = Scope::NewRootScope();
  train::Variable w = train::MakeVariable(root, "w", {1.0f}, {1}), b = train::MakeVariable(root, "layer/bias", {1.0f}, {1});
  train::AdamW optimizer(0.1f);
  optimizer.Exclude("bias");
  optimizer.Minimize(root, ops::L2Loss(root, ops::Add(root, w.value, b.value)), {w, b});
  ASSERT_TRUE(root.ok()) << root.status();
  std::vector<std::string> decayed;
  for (graphdef::Node *node : root.graph()->nodes())
    if (node->op() == "AssignSubVariableOp")
      decayed.push_back(node->input(0).node->name());
  EXPECT_EQ(decayed, std::vector<std::string>{"w"});
  // slots are there before a step, whatever it waits for
  for (const Operation &init : optimizer.inits())
    EXPECT_TRUE(init.node()->controls().empty()) << init.name();
}

TEST(Views, ElementsByIndex) {
  Tensor t = Initializer({{1.0f, 2.0f}, {3.0f, 4.0f}}).tensor;
  EXPECT_EQ(t.matrix<float>()(1, 0), 3);
  EXPECT_EQ(t.flat<float>()(3), 4);
  t.matrix<float>()(0, 1) = 9;
  EXPECT_EQ(t.data<float>()[1], 9);
  const Tensor &read = t;
  EXPECT_EQ((read.tensor<float, 2>()(0, 1)), 9);
  EXPECT_EQ(read.flat<float>().size(), 4);
  EXPECT_EQ(read.reshaped({4}).vec<float>()(2), 3);
  Tensor s = Initializer("text").tensor;
  EXPECT_EQ(s.scalar<std::string>()(), "text");
}

} // namespace
