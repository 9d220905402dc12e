// What a session does around its compiler: in the background, once per size or once for all, and after failures. The compiler
// here counts, waits or fails before it hands on to the real one.
#include "compiler/jit/ClusterCompiler.h"
#include "proto/graph.pb.h"
#include "runtime/session/Session.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

namespace lathe {
namespace {

/// The real compiler behind a hook: `before` is given the nodes of the function to compile, and names one that it refuses.
class Watched {
public:
  using Hook = std::function<std::string(const std::vector<std::string> &)>;
  explicit Watched(Hook before = {}) : before(std::move(before)) {
    table = *getClusterCompiler();
    table.context = this;
    table.cluster = [](void *, const lathe_cluster_request *request, lathe_bytes *graph, lathe_bytes *error) {
      return getClusterCompiler()->cluster(getClusterCompiler()->context, request, graph, error);
    };
    table.compile = [](void *self, const lathe_compile_request *request, lathe_compiled *compiled, lathe_bytes *error) {
      return static_cast<Watched *>(self)->compile(request, compiled, error);
    };
    table.release_compiled = [](void *, lathe_compiled *compiled) {
      if (compiled->owner)
        getClusterCompiler()->release_compiled(getClusterCompiler()->context, compiled);
    };
  }
  lathe_cluster_compiler table;
  std::atomic<int> begun{0}, compiled{0};

private:
  int32_t compile(const lathe_compile_request *request, lathe_compiled *out, lathe_bytes *error) {
    ++begun;
    tf::GraphDef library;
    library.ParseFromArray(request->graph.data, static_cast<int>(request->graph.size));
    std::vector<std::string> nodes;
    for (const tf::FunctionDef &f : library.library().function())
      if (f.signature().name() == request->function)
        for (const tf::NodeDef &node : f.node_def())
          if (node.op() != "Const")
            nodes.push_back(node.name());
    refused = before ? before(nodes) : "";
    if (!refused.empty()) {
      out->owner = nullptr;
      out->failed_node = refused.c_str();
      *error = {strdup("refused"), 7};
      return LATHE_UNIMPLEMENTED;
    }
    int32_t code = getClusterCompiler()->compile(getClusterCompiler()->context, request, out, error);
    ++compiled;
    return code;
  }
  const Hook before;
  std::string refused;
};

tf::GraphDef graphOf(const std::string &text) {
  tf::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

/// A chain of unary ops on floats of shape [?, 3] behind the placeholder "x": each element is {name, op}.
tf::GraphDef chain(const std::vector<std::pair<std::string, std::string>> &ops) {
  tf::GraphDef graph = graphOf(R"pb(node {
    name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } })pb");
  std::string last = "x";
  for (auto &[name, op] : ops) {
    tf::NodeDef *node = graph.add_node();
    node->set_name(name);
    node->set_op(op);
    node->add_input(last);
    (*node->mutable_attr())["T"].set_type(tf::DT_FLOAT);
    last = name;
  }
  return graph;
}

Tensor ramp(int64_t rows) {
  Tensor t = Tensor::allocate(DType::Float32, {rows, 3});
  for (int64_t i = 0; i < t.numElements(); ++i)
    t.data<float>()[i] = static_cast<float>(i) - 2;
  return t;
}

SessionOptions with(const Watched &watched) {
  SessionOptions options;
  options.compiler = &watched.table;
  return options;
}

TEST(SessionClusters, TheFirstRunDoesNotWaitInTheBackground) {
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
  Watched watched([&](const auto &) {
    std::unique_lock<std::mutex> lock(mutex);
    opened.wait(lock, [&] { return open; });
    return "";
  });
  SessionOptions options = with(watched);
  options.backgroundCompile = true;
  options.clusterFlags = "force=t1,t2,t3";
  // ops that have host kernels too
  tf::GraphDef graph = graphOf(R"pb(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "turn" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: [ 1, 0 ] } } } }
    node { name: "twice" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: [ 2, 1 ] } } } }
    node { name: "t1" op: "Transpose" input: "x" input: "turn" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tperm" value { type: DT_INT32 } } }
    node { name: "t2" op: "Tile" input: "t1" input: "twice" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tmultiples" value { type: DT_INT32 } } }
    node { name: "t3" op: "Transpose" input: "t2" input: "turn" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tperm" value { type: DT_INT32 } } })pb");
  Session session(options);
  ASSERT_TRUE(session.Create(graph).ok());
  Tensor x = ramp(2);
  auto run = [&] {
    std::vector<Tensor> out;
    absl::Status ran = session.Run({{"x:0", x}}, {"t3:0"}, {}, &out);
    ASSERT_TRUE(ran.ok()) << ran;
    ASSERT_EQ(out[0].dims(), (std::vector<int64_t>{2, 6}));
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t k = 0; k < 6; ++k)
        EXPECT_EQ(out[0].data<float>()[r * 6 + k], x.data<float>()[r * 3 + k % 3]);
  };
  run(); // ends although nothing compiles yet
  EXPECT_EQ(watched.compiled, 0);
  run();
  {
    std::lock_guard<std::mutex> lock(mutex);
    open = true;
  }
  opened.notify_all();
  for (int i = 0; i < 600 && watched.compiled == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(watched.compiled, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  run();
  EXPECT_EQ(watched.begun, 1) << "one module serves all runs";
}

TEST(SessionClusters, ANewBatchSizeIsNoRecompile) {
  Watched watched;
  SessionOptions options = with(watched);
  options.dynamicClusters = true;
  Session session(options);
  ASSERT_TRUE(session.Create(chain({{"a", "Exp"}, {"b", "Neg"}, {"c", "Relu"}, {"d", "Exp"}})).ok());
  for (int64_t rows : {2, 5, 1, 64, 7}) {
    std::vector<Tensor> out;
    absl::Status ran = session.Run({{"x:0", ramp(rows)}}, {"d:0"}, {}, &out);
    ASSERT_TRUE(ran.ok()) << ran;
    ASSERT_EQ(out[0].dims(), (std::vector<int64_t>{rows, 3}));
    for (int64_t i = 0; i < out[0].numElements(); ++i)
      ASSERT_EQ(out[0].data<float>()[i], 1.0f) << i;
  }
  EXPECT_EQ(watched.begun, 1);
}

TEST(SessionClusters, FixedSizesCompileOnceEach) {
  Watched watched;
  Session session(with(watched));
  ASSERT_TRUE(session.Create(chain({{"a", "Exp"}, {"b", "Neg"}, {"c", "Relu"}, {"d", "Exp"}})).ok());
  std::vector<Tensor> out;
  for (int64_t rows : {2, 3, 2, 3, 2})
    ASSERT_TRUE(session.Run({{"x:0", ramp(rows)}}, {"d:0"}, {}, &out).ok());
  EXPECT_EQ(watched.begun, 2);
}

TEST(SessionClusters, WhatDoesNotCompileIsTakenOut) {
  std::vector<std::vector<std::string>> seen;
  Watched watched([&](const std::vector<std::string> &nodes) {
    seen.push_back(nodes);
    bool whole = nodes.size() > 1 && std::count(nodes.begin(), nodes.end(), "c");
    return whole ? "c" : "";
  });
  Session session(with(watched));
  ASSERT_TRUE(session.Create(chain({{"a", "Exp"}, {"b", "Neg"}, {"c", "Relu"}, {"d", "Exp"}, {"e", "Neg"}})).ok());
  std::vector<Tensor> out;
  for (int i = 0; i < 3; ++i) {
    absl::Status ran = session.Run({{"x:0", ramp(2)}}, {"e:0"}, {}, &out);
    ASSERT_TRUE(ran.ok()) << ran;
    for (int64_t k = 0; k < 6; ++k)
      ASSERT_EQ(out[0].data<float>()[k], -1.0f);
  }
  // the whole, then what lies before, the node itself, and what lies behind: once each
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].size(), 5u);
  EXPECT_EQ(seen[1], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(seen[2], (std::vector<std::string>{"c"}));
  EXPECT_EQ(seen[3], (std::vector<std::string>{"d", "e"}));
}

/// The body of a cluster that is taken apart takes its variables as references, as before.
TEST(SessionClusters, ReferencesSurviveTheFailureOfTheirCluster) {
  Watched watched([](const std::vector<std::string> &nodes) {
    return nodes.size() > 1 && std::count(nodes.begin(), nodes.end(), "a") ? "a" : "";
  });
  Session session(with(watched));
  tf::GraphDef graph = chain({{"a", "Exp"}, {"b", "Neg"}});
  graph.MergeFrom(graphOf(R"pb(
      node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
      node { name: "assign" op: "Assign" input: "v" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "add" op: "AssignAdd" input: "assign" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "sum" op: "Neg" input: "add" attr { key: "T" value { type: DT_FLOAT } } })pb"));
  ASSERT_TRUE(session.Create(graph).ok());
  std::vector<Tensor> out;
  absl::Status ran = session.Run({{"x:0", ramp(2)}}, {"sum:0"}, {}, &out);
  ASSERT_TRUE(ran.ok()) << ran;
  for (int64_t k = 0; k < 6; ++k)
    EXPECT_NEAR(out[0].data<float>()[k], std::exp(k - 2.0) - (k - 2.0), 1e-4);
}

TEST(SessionClusters, FailuresAreNotRepeated) {
  Watched watched([](const std::vector<std::string> &nodes) { return nodes.front(); });
  Session session(with(watched));
  ASSERT_TRUE(session.Create(chain({{"a", "Exp"}})).ok());
  std::vector<Tensor> out;
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(session.Run({{"x:0", ramp(2)}}, {"a:0"}, {}, &out).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(watched.begun, 1);
  EXPECT_FALSE(session.Run({{"x:0", ramp(3)}}, {"a:0"}, {}, &out).ok());
  EXPECT_EQ(watched.begun, 2) << "other sizes have another try";
}

/// Many threads update one variable through one cluster: no update is lost, whatever else reads it meanwhile.
TEST(SessionClusters, ManyThreadsOnOneCluster) {
  tf::GraphDef graph = graphOf(R"pb(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 3 } } } } }
    node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 0 } } } }
    node { name: "init" op: "AssignVariableOp" input: "v" input: "zero" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "n" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "p" op: "Neg" input: "n" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "add" op: "AssignAddVariableOp" input: "v" input: "p" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "read" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "twice" op: "AddV2" input: "read" input: "read" attr { key: "T" value { type: DT_FLOAT } } })pb");
  Watched watched;
  Session session(with(watched));
  ASSERT_TRUE(session.Create(graph).ok());
  ASSERT_TRUE(session.Run({}, {}, {"init"}, nullptr).ok());
  Tensor x = Tensor::allocate(DType::Float32, {3});
  for (int i = 0; i < 3; ++i)
    x.data<float>()[i] = 1;
  const int each = std::getenv("LATHE_SLOW_TESTS") ? 1000 : 100;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        std::vector<Tensor> out;
        if (t % 2) {
          wrong += !session.Run({{"x:0", x}}, {}, {"add"}, nullptr).ok();
          continue;
        }
        bool fine = session.Run({}, {"twice:0"}, {}, &out).ok();
        const float *v = fine ? out[0].data<float>() : nullptr;
        wrong += !fine || v[0] != v[1] || v[1] != v[2];
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(wrong, 0);
  std::vector<Tensor> out;
  ASSERT_TRUE(session.Run({}, {"twice:0"}, {}, &out).ok());
  EXPECT_EQ(out[0].data<float>()[0], 2.0f * 32 * each);
}

} // namespace
} // namespace lathe
