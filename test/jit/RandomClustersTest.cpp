// No clustering of any graph makes a cycle: random graphs of host and compiled nodes, data and control edges.
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/ClusterAttrs.h"
#include "dialects/graph/Graph.h"
#include "dialects/graph/Types.h"
#include "passes/cluster/Cycles.h"
#include "passes/cluster/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseMap.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace lathe;

namespace {

/// A graph of up to `n` nodes over two arguments. Ops: compiled, of strings and back, blocking, with a host kernel.
OwningOpRef<ModuleOp> randomGraph(MLIRContext *context, std::mt19937 &random, unsigned n) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  Type f32 = UnrankedTensorType::get(builder.getF32Type());
  Type string = UnrankedTensorType::get(graph::StringType::get(context));
  auto func = graph::FuncOp::create(builder, builder.getUnknownLoc(), "main",
                                    builder.getFunctionType({f32, f32}, {}));
  Block &block = func.getBody().front();
  builder.setInsertionPointToEnd(&block);
  std::vector<Value> floats{block.getArgument(0), block.getArgument(1)}, controls;
  auto pick = [&](std::vector<Value> &list) { return list[random() % list.size()]; };
  for (unsigned i = 0; i < n; ++i) {
    SmallVector<Value> edges;
    while (!controls.empty() && random() % 4 == 0)
      edges.push_back(pick(controls));
    auto add = [&](StringRef op, ValueRange inputs, Type result, ValueRange after) {
      auto node = graph::NodeOp::create(builder, graph::makeNodeLoc(context, "n" + std::to_string(i), op), result, op,
                                        inputs, after, DictionaryAttr());
      if (random() % 16 == 0)
        node->setAttr(graph::kDeviceAttr, builder.getStringAttr("/cpu:" + std::to_string(random() % 2)));
      controls.push_back(node.getControl());
      return node;
    };
    switch (random() % 8) {
    case 0: {
      auto text = add("AsString", pick(floats), string, edges);
      floats.push_back(add("StringToNumber", text.getOutputs()[0], f32, {}).getOutputs()[0]);
      break;
    }
    case 1: floats.push_back(add("Identity", pick(floats), f32, edges).getOutputs()[0]); break;
    case 2: floats.push_back(add("Const", {}, f32, edges).getOutputs()[0]); break;
    case 3: floats.push_back(add("Neg", pick(floats), f32, edges).getOutputs()[0]); break;
    default: {
      Value inputs[2] = {pick(floats), pick(floats)};
      floats.push_back(add("AddV2", inputs, f32, edges).getOutputs()[0]);
    }
    }
  }
  SmallVector<Value> results{floats.back()};
  graph::ReturnOp::create(builder, builder.getUnknownLoc(), results, ValueRange(controls.back()));
  func.setFunctionType(builder.getFunctionType({f32, f32}, f32));
  return module;
}

/// Whether the nodes of the function can be put in an order, clusters (by `groupOf`) being one node.
bool isAcyclic(graph::FuncOp func, llvm::function_ref<Attribute(Operation *)> groupOf) {
  llvm::DenseMap<const void *, unsigned> numbers;
  auto numberOf = [&](Operation *op) {
    Attribute group = groupOf(op);
    const void *key = group ? group.getAsOpaquePointer() : static_cast<const void *>(op);
    return numbers.try_emplace(key, static_cast<unsigned>(numbers.size())).first->second;
  };
  std::vector<std::pair<unsigned, unsigned>> edges;
  for (Operation &op : func.getBody().front())
    for (Value operand : op.getOperands())
      if (Operation *from = operand.getDefiningOp(); from && numberOf(from) != numberOf(&op))
        edges.push_back({numberOf(from), numberOf(&op)});
  std::vector<std::vector<unsigned>> next(numbers.size());
  std::vector<unsigned> waiting(numbers.size()), ready;
  for (auto [from, to] : edges) {
    next[from].push_back(to);
    ++waiting[to];
  }
  for (unsigned i = 0; i < waiting.size(); ++i)
    if (!waiting[i])
      ready.push_back(i);
  size_t done = 0;
  for (; !ready.empty(); ++done) {
    unsigned i = ready.back();
    ready.pop_back();
    for (unsigned k : next[i])
      if (!--waiting[k])
        ready.push_back(k);
  }
  return done == numbers.size();
}

TEST(RandomClusters, NeverMakeACycle) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<graph::GraphDialect>();
  std::mt19937 random(20161121);
  unsigned clusters = 0;
  for (unsigned round = 0; round < 10'000; ++round) {
    OwningOpRef<ModuleOp> module = randomGraph(&context, random, 4 + random() % 40);
    auto func = *module->getOps<graph::FuncOp>().begin();
    cluster::ClusteringOptions options;
    options.mode = round % 3 == 0 ? cluster::ClusteringMode::Needed : cluster::ClusteringMode::Worthwhile;
    options.minSize = 1 + random() % 3;
    options.hostOps = {"Identity", "Const", "AsString", "StringToNumber"};
    if (round % 2) {
      PassManager pm(&context);
      cluster::MarkForCompilationOptions mark;
      mark.mode = options.mode;
      mark.minSize = options.minSize;
      mark.hostOps.assign(options.hostOps.begin(), options.hostOps.end());
      pm.addPass(cluster::createMarkForCompilation(mark));
      ASSERT_TRUE(succeeded(pm.run(*module)));
      ASSERT_TRUE(isAcyclic(func, [](Operation *op) { return op->getAttr(graph::kClusterAttr); })) << round;
    }
    PassManager pm(&context);
    cluster::buildClusteringPipeline(pm, options);
    ASSERT_TRUE(succeeded(pm.run(*module)));
    for (auto f : module->getOps<graph::FuncOp>()) {
      clusters += f.isPrivate();
      ASSERT_TRUE(isAcyclic(f, [](Operation *) { return Attribute(); })) << round;
    }
  }
  EXPECT_GT(clusters, 10'000u);
}

TEST(AcyclicGraph, MergesOnlyWhatNoPathLeadsAround) {
  cluster::AcyclicGraph graph(4);
  EXPECT_TRUE(graph.addEdge(0, 1));
  EXPECT_TRUE(graph.addEdge(1, 2));
  EXPECT_TRUE(graph.addEdge(0, 2));
  EXPECT_FALSE(graph.addEdge(2, 0));
  EXPECT_FALSE(graph.merge(0, 2));
  EXPECT_TRUE(graph.merge(0, 1));
  EXPECT_TRUE(graph.merge(2, 0));
  EXPECT_TRUE(graph.merge(3, 0));
  EXPECT_EQ(graph.find(3), graph.find(2));
}

TEST(AcyclicGraph, KeepsAnOrderUnderRandomMerges) {
  std::mt19937 random(7);
  for (int round = 0; round < 2'000; ++round) {
    unsigned n = 2 + random() % 30;
    cluster::AcyclicGraph graph(n);
    for (unsigned i = 0; i < 2 * n; ++i) {
      unsigned a = random() % n, b = random() % n;
      bool path = graph.find(a) != graph.find(b) && graph.reaches(b, a);
      EXPECT_EQ(graph.addEdge(a, b), !path);
    }
    for (unsigned i = 0; i < 2 * n; ++i) {
      graph.merge(random() % n, random() % n);
      ASSERT_TRUE(graph.isConsistent());
    }
  }
}

} // namespace
