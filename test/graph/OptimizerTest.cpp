// Optimizers, averages, limits of gradients and schedules against TensorFlow's numbers, which test/tools/optimizers.py recorded; and
// that gradients of gathers stay rows on their way into a variable.
#include "compiler/jit/ClusterCompiler.h"
#include "graph/Graph.h"
#include "graph/builder/Clip.h"
#include "graph/builder/KerasOptimizers.h"
#include "graph/builder/Optimizers.h"
#include "graph/builder/StepControl.h"
#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/nn.h"
#include "graph/builder/ops/state.h"
#include "runtime/session/ClientSession.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

using namespace lathe;

namespace {

constexpr int kSteps = 25;
constexpr int64_t kRows = 6, kColumns = 2;

std::map<std::string, std::vector<float>> readExpected() {
  std::map<std::string, std::vector<float>> out;
  std::ifstream in(LATHE_SOURCE_DIR "/test/data/optimizers/expected.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (float x; words >> x;)
      out[name].push_back(x);
  }
  return out;
}

// the formulas of test/tools/optimizers.py

Tensor numbers(const std::vector<int64_t> &dims, int by, int over, int offset, int scale) {
  Tensor t = Tensor::allocate(DType::Float32, dims);
  for (int i = 0; i < t.numElements(); ++i)
    t.data<float>()[i] = static_cast<float>((i * by + offset) % over - over / 2) / static_cast<float>(scale);
  return t;
}
Tensor start() { return numbers({kRows, kColumns}, 7, 11, 0, 10); }
Tensor whole(int t) { return numbers({kRows, kColumns}, 5, 13, 3 * t, 8); }
Tensor rowValues(int t) { return numbers({3, kColumns}, 5, 13, 3 * t + 1, 8); }
Tensor rowIndices(int t) {
  Tensor i = Tensor::allocate(DType::Int32, {3});
  i.data<int32_t>()[0] = i.data<int32_t>()[2] = t % 6;
  i.data<int32_t>()[1] = (3 * t + 1) % 6;
  return i;
}

SessionOptions compiling() {
  SessionOptions options;
  options.compiler = getClusterCompiler();
  return options;
}

/// All operations as one.
Operation together(const Scope &root, const char *name, const std::vector<Operation> &operations) {
  return ops::NoOp(root.WithOpName(name).WithControlDependencies(operations));
}

void expectNear(const std::string &name, const Tensor &got, const std::vector<float> &want, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(got.numElements()), want.size()) << name;
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got.data<float>()[i], want[i], tolerance * std::max(1.0f, std::abs(want[i]))) << name << " at " << i;
}

class Recorded : public ::testing::Test {
protected:
  std::map<std::string, std::vector<float>> expected = readExpected();
  std::set<std::string> seen;

  void expect(const std::string &name, const Tensor &got, double tolerance = 2e-6) {
    seen.insert(name);
    ASSERT_TRUE(expected.count(name)) << name;
    expectNear(name, got, expected[name], tolerance);
  }
};

using Make = std::function<std::unique_ptr<train::Optimizer>(const Scope &, const Output &step)>;

template <typename T, typename... Args>
Make optimizer(Args... args) {
  return [=](const Scope &, const Output &) { return std::make_unique<T>(args...); };
}

/// One around another that it keeps.
template <typename T>
struct Around : T {
  template <typename... Args>
  explicit Around(std::unique_ptr<train::Optimizer> inner, Args... args) : T(*inner, args...), kept(std::move(inner)) {}
  std::unique_ptr<train::Optimizer> kept;
};

const std::vector<std::pair<std::string, Make>> &optimizers() {
  using namespace train;
  static const std::vector<std::pair<std::string, Make>> all{
      {"descent", optimizer<GradientDescent>(0.1f)},
      {"momentum", optimizer<Momentum>(0.1f, 0.9f)},
      {"nesterov", optimizer<Momentum>(0.1f, 0.9f, true)},
      {"adagrad", optimizer<Adagrad>(0.1f)},
      {"adagrad_da", [](const Scope &, const Output &step) { return std::make_unique<AdagradDA>(0.1f, step, 0.1f, 0.01f, 0.02f); }},
      {"adadelta", optimizer<Adadelta>(0.5f)},
      {"rmsprop", optimizer<RMSProp>(0.01f, 0.9f, 0.5f)},
      {"rmsprop_centered", optimizer<RMSProp>(0.01f, 0.9f, 0.5f, 1e-10f, true)},
      {"ftrl", optimizer<Ftrl>(0.1f, -0.5f, 0.1f, 0.01f, 0.02f)},
      {"ftrl_shrinkage", optimizer<Ftrl>(0.1f, -0.5f, 0.1f, 0.01f, 0.02f, 0.03f)},
      {"proximal_descent", optimizer<ProximalGradientDescent>(0.1f, 0.01f, 0.02f)},
      {"proximal_adagrad", optimizer<ProximalAdagrad>(0.1f, 0.1f, 0.01f, 0.02f)},
      {"adam", optimizer<Adam>(0.01f)},
      {"lazy_adam", optimizer<LazyAdam>(0.01f)},
      {"adamw", optimizer<AdamW>(0.01f, 0.1f)},
      {"adamax", optimizer<Adamax>(0.01f)},
      {"nadam", optimizer<Nadam>(0.01f)},
      {"lamb", optimizer<Lamb>(0.01f)},
      {"lion", optimizer<Lion>(0.01f)},
      {"amsgrad", optimizer<Adam>(0.01f, 0.9f, 0.999f, 1e-7f, true)},
      {"adamw_amsgrad", optimizer<AdamW>(0.01f, 0.1f, 0.9f, 0.999f, 1e-7f, true)},
      {"sgd", [](const Scope &s, const Output &step) { return std::make_unique<SGD>(ExponentialDecay(s, 0.1f, step, 2, 0.8f), 0.9f); }},
      {"sgd_nesterov",
       [](const Scope &s, const Output &step) { return std::make_unique<SGD>(ExponentialDecay(s, 0.1f, step, 2, 0.8f), 0.9f, true); }},
      {"sgd_decay",
       [](const Scope &, const Output &) {
         auto made = std::make_unique<SGD>(0.1f);
         made->DecayWeights(0.02f);
         return made;
       }},
      {"keras_rmsprop", optimizer<RMSProp>(0.01f, 0.9f, 0.5f, 1e-7f, true, 0.0f)},
      {"keras_adagrad", optimizer<Adagrad>(0.1f)},
      {"keras_adadelta", optimizer<Adadelta>(0.5f, 0.95f, 1e-6f)},
      {"keras_adam", optimizer<Adam>(0.01f, 0.9f, 0.999f, 1e-7f)},
      {"keras_adamax", optimizer<Adamax>(0.01f)},
      {"keras_ftrl", optimizer<Ftrl>(0.1f, -0.5f, 0.1f, 0.01f, 0.02f, 0.03f, 0.04f)},
      {"adafactor", optimizer<Adafactor>(0.1f)},
      {"muon", optimizer<Muon>(0.01f, 0.95f, 0.1f, 0.2f)},
      {"schedule_free", optimizer<ScheduleFreeAdamW>(0.01f, 0.1f, 0.9f, 0.999f, 1e-8f, 4)},
      {"accumulated",
       [](const Scope &, const Output &) {
         auto adam = std::make_unique<Adam>(0.01f, 0.9f, 0.999f, 1e-7f);
         adam->DecayWeights(0.1f);
         return std::make_unique<Around<GradientAccumulation>>(std::move(adam), 3);
       }},
      {"loss_scale",
       [](const Scope &, const Output &) {
         auto adam = std::make_unique<Adam>(0.01f, 0.9f, 0.999f, 1e-7f);
         adam->DecayWeights(0.1f);
         return std::make_unique<Around<LossScale>>(std::move(adam), 1024, 3);
       }},
      {"decaying",
       [](const Scope &s, const Output &step) { return std::make_unique<GradientDescent>(ExponentialDecay(s, 0.1f, step, 2, 0.5f)); }},
  };
  return all;
}

TEST_F(Recorded, OptimizersGiveTensorFlowsValues) {
  // all in one graph: each updates one variable by whole gradients and one by rows, some also those of other shapes
  const std::map<std::string, std::vector<const char *>> more{{"adafactor", {"flat", "cube"}}, {"muon", {"flat", "wide"}}};
  const std::map<std::string, std::vector<int64_t>> shapes{{"flat", {12}}, {"cube", {2, 3, 2}}, {"wide", {2, 6}}};
  Scope root = Scope::NewRootScope();
  Output all = ops::Placeholder(root, DType::Float32), values = ops::Placeholder(root, DType::Float32);
  Output indices = ops::Placeholder(root, DType::Int32);
  Output shape = ops::Const(root, {static_cast<int32_t>(kRows), static_cast<int32_t>(kColumns)});
  std::vector<Operation> first, second, steps;
  std::vector<std::string> names;
  std::vector<train::Variable> variables;
  std::vector<std::unique_ptr<train::Optimizer>> kept;
  Output scaled = ops::Placeholder(root, DType::Float32), scale;
  for (auto &[name, make] : optimizers()) {
    std::vector<const char *> kinds{name == "loss_scale" ? "scaled" : "whole"};
    if (name != "loss_scale" && name.rfind("keras_", 0) != 0) // whose rows are TensorFlow's
      kinds.push_back("rows");
    if (more.count(name))
      kinds.insert(kinds.end(), more.at(name).begin(), more.at(name).end());
    for (const std::string kind : kinds) {
      Scope scope = root.NewSubScope(name + "_" + kind);
      train::Variable count = train::MakeGlobalStep(scope);
      const std::vector<int64_t> dims = shapes.count(kind) ? shapes.at(kind) : std::vector<int64_t>{kRows, kColumns};
      variables.push_back(train::MakeVariable(scope, "w", start().reshaped(dims), dims));
      kept.push_back(make(scope, count.value));
      kept.back()->Count(count);
      Gradient gradient = kind == "scaled" ? Gradient(scaled) : kind == "rows" ? Gradient(values, indices, shape) : Gradient(all);
      if (shapes.count(kind)) {
        Tensor sizes = Tensor::allocate(DType::Int64, {static_cast<int64_t>(dims.size())});
        std::copy(dims.begin(), dims.end(), sizes.data<int64_t>());
        gradient = Gradient(ops::Reshape(scope, all, sizes));
      }
      if (auto *scaling = dynamic_cast<train::LossScale *>(kept.back().get()))
        scale = scaling->Scale(scope);
      steps.push_back(kept.back()->Apply(scope, std::vector<Gradient>{gradient}, {variables.back()}));
      first.insert(first.end(), {count.init, variables.back().init});
      second.insert(second.end(), kept.back()->inits().begin(), kept.back()->inits().end());
      names.push_back(name + "/" + kind);
    }
  }
  Operation init = together(root, "init", first), initSlots = together(root, "init_slots", second), step = together(root, "step", steps);
  ASSERT_TRUE(root.ok()) << root.status();
  ClientSession session(root, compiling());
  for (const Operation &op : {init, initSlots}) {
    absl::Status s = session.Run({}, {}, {op}, nullptr);
    ASSERT_TRUE(s.ok()) << s;
  }
  std::vector<Output> fetches;
  for (const train::Variable &v : variables)
    fetches.push_back(v.value);
  std::vector<Tensor> out;
  Tensor scales = Tensor::allocate(DType::Float32, {kSteps});
  for (int t = 0; t < kSteps; ++t) {
    absl::Status s = session.Run({scale}, &out);
    ASSERT_TRUE(s.ok()) << s;
    const float by = scales.data<float>()[t] = out[0].data<float>()[0];
    Tensor large = whole(t).clone();
    for (int64_t i = 0; i < large.numElements(); ++i)
      large.data<float>()[i] = t % 7 == 3 ? INFINITY : large.data<float>()[i] * by;
    s = session.Run({{all, whole(t)}, {scaled, large}, {values, rowValues(t)}, {indices, rowIndices(t)}}, {}, {step}, nullptr);
    ASSERT_TRUE(s.ok()) << s;
    s = session.Run(fetches, &out);
    ASSERT_TRUE(s.ok()) << s;
    for (size_t i = 0; i < names.size(); ++i)
      if (t == 0 || t == 4 || t == kSteps - 1)
        expect(names[i] + "@" + std::to_string(t), out[i]);
  }
  expect("loss_scale/scales", scales);
  for (const auto &[name, numbers] : expected)
    if (name.find('@') != std::string::npos) {
      EXPECT_TRUE(seen.count(name)) << name;
    }
}

TEST_F(Recorded, AveragesOfVariables) {
  Scope root = Scope::NewRootScope();
  Output gradient = ops::Placeholder(root, DType::Float32);
  train::Variable count = train::MakeGlobalStep(root), w = train::MakeVariable(root, "w", start(), {kRows, kColumns});
  train::GradientDescent descent(0.1f);
  descent.Count(count);
  Operation step = descent.Apply(root, std::vector<Output>{gradient}, {w});
  Scope after = root.WithControlDependencies({step});
  train::ExponentialMovingAverage plain(0.9f), bySteps(0.9f, ops::ReadVariableOp(after, count.handle, DType::Int64));
  Operation update = together(root, "update", {plain.Apply(after, {w}), bySteps.Apply(after, {w})});
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(plain.averages()[0].handle.op().name(), "w/ExponentialMovingAverage");
  ClientSession session(root, compiling());
  ASSERT_TRUE(session.Run({}, {}, {count.init, w.init}, nullptr).ok());
  ASSERT_TRUE(session.Run({}, {}, {plain.averages()[0].init, bySteps.averages()[0].init}, nullptr).ok());
  for (int t = 0; t < kSteps; ++t) {
    absl::Status s = session.Run({{gradient, whole(t)}}, {}, {update}, nullptr);
    ASSERT_TRUE(s.ok()) << s;
  }
  std::vector<Tensor> out;
  ASSERT_TRUE(session.Run({plain.averages()[0].value, bySteps.averages()[0].value}, &out).ok());
  expect("average", out[0]);
  expect("average_by_steps", out[1]);
}

TEST_F(Recorded, LimitsOfGradients) {
  Scope root = Scope::NewRootScope();
  Gradient g{ops::Const(root, whole(1))};
  Gradient rows{ops::Const(root, rowValues(2)), ops::Const(root, rowIndices(2)), ops::Const(root, {6, 2})};
  Output norm;
  std::vector<Gradient> together = train::ClipByGlobalNorm(root, {g, Gradient(), rows}, 1.5f, &norm);
  ASSERT_EQ(together.size(), 3u);
  EXPECT_FALSE(together[1]);
  EXPECT_TRUE(together[2].is_rows());
  std::vector<std::pair<const char *, Output>> all{
      {"value", train::ClipByValue(root, g, -0.3f, 0.4f).values},
      {"value_rows", train::ClipByValue(root, rows, -0.3f, 0.4f).values},
      {"norm", train::ClipByNorm(root, g, 1.0f).values},
      {"norm_axes", train::ClipByNorm(root, g, 0.5f, {1}).values},
      {"norm_above", train::ClipByNorm(root, g, 100.0f).values},
      {"norm_rows", train::ClipByNorm(root, rows, 1.0f).values},
      {"average", train::ClipByAverageNorm(root, g, 0.05f).values},
      {"global", norm},
      {"global_0", together[0].values},
      {"global_2", together[2].values}};
  // an infinite gradient leaves no number
  Gradient infinite{ops::Const(root, {1.0f, INFINITY})};
  Output lost = train::ClipByGlobalNorm(root, {infinite}, 1.0f)[0].values;
  ASSERT_TRUE(root.ok()) << root.status();
  std::vector<Output> fetches{lost};
  for (auto &[name, output] : all)
    fetches.push_back(output);
  ClientSession session(root, compiling());
  std::vector<Tensor> out;
  absl::Status s = session.Run(fetches, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_TRUE(std::isnan(out[0].data<float>()[0]));
  for (size_t i = 0; i < all.size(); ++i)
    expect(std::string("clip/") + all[i].first, out[1 + i]);
}

TEST_F(Recorded, Schedules) {
  using namespace train;
  Scope root = Scope::NewRootScope();
  Output n = ops::Placeholder(root, DType::Int64);
  ASSERT_EQ(expected["seeds/noisy"].size(), 2u);
  const std::pair<int64_t, int64_t> seeds(expected["seeds/noisy"][0], expected["seeds/noisy"][1]);
  std::vector<std::pair<const char *, Output>> all{
      {"exponential", ExponentialDecay(root, 0.1f, n, 20, 0.7f)},
      {"exponential_stairs", ExponentialDecay(root, 0.1f, n, 20, 0.7f, true)},
      {"natural", NaturalExpDecay(root, 0.1f, n, 20, 0.7f)},
      {"natural_stairs", NaturalExpDecay(root, 0.1f, n, 20, 0.7f, true)},
      {"inverse", InverseTimeDecay(root, 0.1f, n, 20, 0.7f)},
      {"inverse_stairs", InverseTimeDecay(root, 0.1f, n, 20, 0.7f, true)},
      {"piecewise", PiecewiseConstantDecay(root, n, {5, 37, 60}, {0.5f, 0.25f, 0.1f, 0.05f})},
      {"polynomial", PolynomialDecay(root, 0.1f, n, 50, 0.01f, 2)},
      {"polynomial_cycle", PolynomialDecay(root, 0.1f, n, 30, 0.01f, 2, true)},
      {"cosine", CosineDecay(root, 0.1f, n, 50, 0.1f)},
      {"restarts", CosineDecayRestarts(root, 0.1f, n, 22, 2, 0.8f, 0.1f)},
      {"restarts_even", CosineDecayRestarts(root, 0.1f, n, 22, 1, 0.8f, 0.1f)},
      {"linear_cosine", LinearCosineDecay(root, 0.1f, n, 50, 1.5f, 0.1f, 0.02f)},
      {"noisy", NoisyLinearCosineDecay(root, 0.1f, n, 50, 0.5f, 0.4f, 1.5f, 0.1f, 0.02f, seeds)},
      {"warmup", WarmupCosineDecay(root, 0.01f, 0.1f, n, 10, 50, 0.1f)}};
  ASSERT_TRUE(root.ok()) << root.status();
  std::vector<Output> fetches;
  for (auto &[name, output] : all)
    fetches.push_back(output);
  ClientSession session(root, compiling());
  const std::vector<int64_t> at{0, 1, 5, 10, 25, 37, 60, 99, 130};
  std::vector<std::vector<float>> got(all.size());
  for (int64_t k : at) {
    std::vector<Tensor> out;
    absl::Status s = session.Run({{n, k}}, fetches, &out);
    ASSERT_TRUE(s.ok()) << s;
    for (size_t i = 0; i < all.size(); ++i)
      got[i].push_back(out[i].data<float>()[0]);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string name = std::string("rate/") + all[i].first;
    ASSERT_EQ(got[i].size(), expected[name].size()) << name;
    for (size_t k = 0; k < at.size(); ++k)
      EXPECT_NEAR(got[i][k], expected[name][k], 1e-7) << name << " at step " << at[k];
  }
  PiecewiseConstantDecay(root, n, {5}, {0.5f});
  EXPECT_EQ(root.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Optimizers, TheAverageOfWeightsThatNeedNoSchedule) {
  // after one step the average is the weights that moved, and so is what lies between them
  Scope root = Scope::NewRootScope();
  train::Variable w = train::MakeVariable(root, "w", start(), {kRows, kColumns}), other = train::MakeVariable(root, "v", 1.0f, {});
  train::ScheduleFreeAdamW optimizer(0.01f);
  Operation step = optimizer.Apply(root, std::vector<Output>{ops::Const(root, whole(1))}, {w});
  Output average = optimizer.Average(root, w);
  ASSERT_TRUE(root.ok()) << root.status();
  ClientSession session(root, compiling());
  ASSERT_TRUE(session.Run({}, {}, {w.init}, nullptr).ok());
  ASSERT_TRUE(session.Run({}, {}, optimizer.inits(), nullptr).ok());
  ASSERT_TRUE(session.Run({}, {}, {step}, nullptr).ok());
  std::vector<Tensor> out;
  ASSERT_TRUE(session.Run({average, w.value}, &out).ok());
  std::vector<float> want(out[1].data<float>(), out[1].data<float>() + out[1].numElements());
  expectNear("average", out[0], want, 1e-6);
  optimizer.Average(root, other);
  EXPECT_EQ(root.status().code(), absl::StatusCode::kInvalidArgument) << root.status();
}

TEST(Optimizers, WhatCannotBeUpdatedIsAnErrorThatNamesTheVariable) {
  auto errorOf = [](train::Optimizer &&optimizer, std::vector<int64_t> dims) {
    Scope root = Scope::NewRootScope();
    train::Variable w = train::MakeVariable(root, "weights", start(), dims);
    optimizer.Apply(root, std::vector<Output>{ops::Placeholder(root, DType::Float32)}, {w});
    EXPECT_EQ(root.status().code(), absl::StatusCode::kInvalidArgument) << root.status();
    return std::string(root.status().message());
  };
  EXPECT_NE(errorOf(train::Muon(0.1f), {-1, 2}).find("'weights'"), std::string::npos);
  train::Adam adam(0.1f);
  EXPECT_NE(errorOf(train::GradientAccumulation(adam, 0), {6, 2}).find("0 runs"), std::string::npos);
  Scope root = Scope::NewRootScope();
  train::Variable w = train::MakeVariable(root, "weights", start(), {kRows, kColumns});
  train::LossScale(adam).Minimize(root, ops::Const(root, 1.0f), {w});
  EXPECT_EQ(root.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(root.status().message().find("'weights'"), std::string::npos) << root.status();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

constexpr int64_t kWords = 100000, kWidth = 64, kBatch = 32;

/// A table of words, of which a batch is looked up twice, and a loss.
struct Words {
  Scope root = Scope::NewRootScope();
  Output ids = ops::Placeholder(root, DType::Int32, ops::Placeholder::Shape(PartialShape({kBatch})));
  train::Variable table = train::MakeVariable(root, "table", ops::Fill(root, {static_cast<int32_t>(kWords), static_cast<int32_t>(kWidth)}, 0.5f),
                                              {kWords, kWidth});
  Output loss = ops::AddN(root, {ops::L2Loss(root, train::EmbeddingLookup(root, table, ids)),
                                 ops::L2Loss(root, ops::GatherV2(root, table.value, ops::FloorDiv(root, ids, 2), 0))});
};

const std::set<std::string> kWholeTable{"adam", "adamw", "nadam", "lamb", "lion", "amsgrad", "adamw_amsgrad", "sgd", "sgd_nesterov",
                                        "sgd_decay", "keras_adam", "adafactor", "muon", "schedule_free", "accumulated", "loss_scale"};

/// Nodes that a step needs and one of whose results has as many rows as the table or may have, the table's value aside.
std::vector<std::string> largeNodes(const Words &w, const Operation &step) {
  std::vector<std::string> large;
  auto order = graphdef::topologicalOrder(*w.root.graph());
  EXPECT_TRUE(order.ok()) << order.status();
  std::vector<bool> needed = graphdef::ancestors(*w.root.graph(), {step.node()});
  for (graphdef::Node *node : *order)
    for (int i = 0; i < node->numOutputs() && needed[node->id()] && node != w.table.value.node(); ++i) {
      PartialShape shape = w.root.ShapeOf(Output(node, i));
      if (!shape || (!shape->empty() && (*shape)[0] == kWords))
        large.push_back(node->name() + " (" + node->op() + ")");
    }
  return large;
}

TEST(Rows, NoNodeOfAStepIsAsLargeAsTheTable) {
  for (auto &[name, make] : optimizers()) {
    Words w;
    train::Variable count = train::MakeGlobalStep(w.root);
    Operation step = make(w.root, count.value)->Minimize(w.root, w.loss, {w.table});
    ASSERT_TRUE(w.root.ok()) << name << ": " << w.root.status();
    std::vector<std::string> large = largeNodes(w, step);
    EXPECT_EQ(!large.empty(), kWholeTable.count(name) == 1) << name << (large.empty() ? "" : ": " + large.front());
  }
  // a whole gradient is
  Words w;
  std::vector<Output> gradients;
  ASSERT_TRUE(AddSymbolicGradients(w.root, {w.loss}, {w.table.handle}, &gradients).ok());
  EXPECT_FALSE(largeNodes(w, train::GradientDescent(0.1f).Apply(w.root, gradients, {w.table})).empty());
}

TEST(Rows, AStepChangesTheRowsOfItsBatchAlone) {
  Words w;
  train::Adagrad optimizer(0.1f);
  Operation step = optimizer.Minimize(w.root, w.loss, {w.table});
  ASSERT_TRUE(w.root.ok()) << w.root.status();
  ClientSession session(w.root, compiling());
  ASSERT_TRUE(session.Run({}, {}, {w.table.init}, nullptr).ok());
  ASSERT_TRUE(session.Run({}, {}, optimizer.inits(), nullptr).ok());
  Tensor ids = Tensor::allocate(DType::Int32, {kBatch});
  std::set<int64_t> touched;
  for (int i = 0; i < kBatch; ++i) {
    ids.data<int32_t>()[i] = static_cast<int32_t>(i * 7919 % kWords);
    touched.insert({i * 7919 % kWords, i * 7919 % kWords / 2});
  }
  absl::Status s = session.Run({{w.ids, ids}}, {}, {step}, nullptr);
  ASSERT_TRUE(s.ok()) << s;
  std::vector<Tensor> out;
  ASSERT_TRUE(session.Run({w.table.value, optimizer.slots()[0].value}, &out).ok());
  int64_t changed = 0;
  for (int64_t row = 0; row < kWords; ++row) {
    const bool moved = out[0].data<float>()[row * kWidth + 3] != 0.5f;
    changed += moved;
    ASSERT_EQ(moved, touched.count(row) == 1) << row;
    ASSERT_EQ(out[1].data<float>()[row * kWidth + 3] != 0.1f, moved) << row;
  }
  EXPECT_EQ(changed, static_cast<int64_t>(touched.size()));
}

/// The shortest of some steps over a table of so many rows, in ms.
double stepTime(int32_t count, const Make &make, bool reads) {
  Scope root = Scope::NewRootScope();
  Output ids = ops::Placeholder(root, DType::Int32, ops::Placeholder::Shape(PartialShape({kBatch})));
  train::Variable table = train::MakeVariable(root, "table", ops::Fill(root, {count, static_cast<int32_t>(kWidth)}, 0.5f), {count, kWidth});
  Output rows = reads ? Output(ops::GatherV2(root, table.value, ids, 0)) : train::EmbeddingLookup(root, table, ids);
  train::Variable steps = train::MakeGlobalStep(root);
  std::unique_ptr<train::Optimizer> optimizer = make(root, steps.value);
  Operation step = optimizer->Minimize(root, ops::L2Loss(root, rows), {table});
  EXPECT_TRUE(root.ok()) << root.status();
  ClientSession session(root, compiling());
  EXPECT_TRUE(session.Run({}, {}, {table.init, steps.init}, nullptr).ok());
  EXPECT_TRUE(optimizer->inits().empty() || session.Run({}, {}, optimizer->inits(), nullptr).ok());
  double best = 1e9;
  for (int t = 0; t < 30; ++t) {
    Tensor batch = Tensor::allocate(DType::Int32, {kBatch});
    for (int i = 0; i < kBatch; ++i)
      batch.data<int32_t>()[i] = (i * 7919 + t) % count;
    auto begin = std::chrono::steady_clock::now();
    absl::Status s = session.Run({{ids, batch}}, {}, {step}, nullptr);
    EXPECT_TRUE(s.ok()) << s;
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

TEST(Rows, AStepTakesNoLongerForALargeTable) {
  // to write the table takes some 10 ms
  for (auto &[name, make] : optimizers())
    if (name == "descent" || name == "adagrad" || name == "lazy_adam")
      for (bool reads : {false, true})
        EXPECT_LT(stepTime(kWords, make, reads), 5 * stepTime(1000, make, reads) + 2) << name;
}

} // namespace
