// Defines a convolutional network for handwritten digits in C++, trains it, prints its accuracy, and writes two graphs for `lathe compile`:
// OUT.pb, the network with its weights, and OUT_step.pb, the training itself (step.cpp trains with that one compiled). The training's state
// is left in OUT_checkpoint/model-EPOCHS, the trained network in OUT_model, a SavedModel.
// train-digits DATA-FOLDER OUT [EPOCHS]
#include "examples/train/Digits.h"

#include "compiler/jit/ClusterCompiler.h"
#include "graph/builder/Optimizers.h"
#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/nn.h"
#include "graph/builder/ops/sparse.h"
#include "runtime/session/Saver.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>

using namespace lathe;

namespace {

/// Some digits as a batch.
void batch(const Digits &digits, const int *which, int count, Tensor *x, Tensor *y) {
  *x = Tensor::allocate(DType::Float32, {count, kSide, kSide, 1});
  *y = Tensor::allocate(DType::Int64, {count});
  digits.batch(which, count, x->data<float>(), y->data<int64_t>());
}

/// Weights of a layer, each from a normal distribution of He's width.
Tensor randomWeights(const std::vector<int64_t> &dims, int inputs, std::mt19937 &random) {
  Tensor t = Tensor::allocate(DType::Float32, dims);
  std::normal_distribution<float> normal(0, std::sqrt(2.0f / static_cast<float>(inputs)));
  for (int64_t i = 0; i < t.numElements(); ++i)
    t.flat<float>()(i) = normal(random);
  return t;
}

/// The layers over images, with parameters that `parameter` makes.
Output network(const Scope &s, const Output &images, const std::function<Output(const char *, std::vector<int64_t>, int)> &parameter) {
  auto conv = [&](const Output &x, const char *name, const char *bias, int64_t in, int64_t out) -> Output {
    Output w = parameter(name, {3, 3, in, out}, static_cast<int>(9 * in)), b = parameter(bias, {out}, 0);
    return ops::Relu(s, ops::BiasAdd(s, ops::Conv2D(s, x, w, {1, 1, 1, 1}, "SAME"), b));
  };
  auto pool = [&](const Output &x) -> Output { return ops::MaxPool(s, x, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID"); };
  Output x = pool(conv(images, "conv1", "bias1", 1, 16));
  x = pool(conv(x, "conv2", "bias2", 16, 32));
  x = ops::Reshape(s, x, {-1, 2 * 2 * 32});
  Output hidden = ops::MatMul(s, x, parameter("dense", {128, 64}, 128));
  hidden = ops::Relu(s, ops::BiasAdd(s, hidden, parameter("bias3", {64}, 0)));
  return ops::BiasAdd(s, ops::MatMul(s, hidden, parameter("logits", {64, kClasses}, 64)), parameter("bias4", {kClasses}, 0));
}

bool write(const std::string &bytes, const std::string &path) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << bytes).flush())
    std::fprintf(stderr, "cannot write '%s'\n", path.c_str());
  return static_cast<bool>(out);
}

bool check(const absl::Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok();
}

int countRight(const Tensor &digits, const Tensor &labels) {
  int right = 0;
  for (int64_t i = 0; i < labels.numElements(); ++i)
    right += digits.data<int64_t>()[i] == labels.data<int64_t>()[i];
  return right;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s DATA-FOLDER OUT [EPOCHS]\n", argv[0]);
    return 1;
  }
  const Digits train(argv[1], "train"), test(argv[1], "test");
  const int epochs = argc > 3 ? std::atoi(argv[3]) : 20;
  if (!train.valid() || !test.valid()) {
    std::fprintf(stderr, "expected %d bytes an image and one a label in '%s'\n", kPixels, argv[1]);
    return 1;
  }

  // the graph
  Scope root = Scope::NewRootScope();
  std::mt19937 random(1);
  std::vector<train::Variable> variables;
  Output images = ops::Placeholder(root.WithOpName("image"), DType::Float32, ops::Placeholder::Shape(PartialShape({-1, kSide, kSide, 1})));
  Output labels = ops::Placeholder(root.WithOpName("labels"), DType::Int64, ops::Placeholder::Shape(PartialShape(std::vector<int64_t>{-1})));
  Output logits = network(root, images, [&](const char *name, std::vector<int64_t> shape, int inputs) {
    Tensor first = inputs ? randomWeights(shape, inputs, random) : Tensor::allocate(DType::Float32, shape);
    variables.push_back(train::MakeVariable(root, name, first, shape));
    return variables.back().value;
  });
  auto losses = ops::SparseSoftmaxCrossEntropyWithLogits(root, logits, labels);
  Output loss = ops::Mean(root.WithOpName("loss"), losses.loss, 0);
  Output digit = ops::ArgMax(root.WithOpName("digit"), logits, 1);
  train::Adam optimizer(0.003f);
  Operation step = optimizer.Minimize(root, loss, variables);

  std::vector<Operation> inits;
  for (const train::Variable &v : variables)
    inits.push_back(v.init);
  Operation init = ops::NoOp(root.WithOpName("init").WithControlDependencies(inits));
  // reads the variables, so it is a run of its own
  Operation initOptimizer = ops::NoOp(root.WithOpName("init_optimizer").WithControlDependencies(optimizer.inits()));
  const std::string out = argv[2];
  std::string bytes;
  if (!check(root.ToGraphDef(&bytes)) || !write(bytes, out + "_step.pb"))
    return 1;
  Output scores = ops::Softmax(root.WithOpName("scores"), logits);
  Saver saver(root, variables);
  std::vector<train::Variable> whole = variables;
  whole.insert(whole.end(), optimizer.slots().begin(), optimizer.slots().end());
  Saver state(root.NewSubScope("state"), whole);

  // training
  SessionOptions options;
  options.compiler = getClusterCompiler();
  ClientSession session(root, options);
  if (!check(session.Run({}, {}, {init}, nullptr)) || !check(session.Run({}, {}, {initOptimizer}, nullptr)))
    return 1;
  std::vector<int> order(train.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<Tensor> results;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    float sum = 0;
    int steps = 0;
    for (int at = 0; at + kBatch <= train.size(); at += kBatch, ++steps) {
      Tensor x, y;
      batch(train, &order[at], kBatch, &x, &y);
      if (!check(session.Run({{images, x}, {labels, y}}, {loss}, {step}, &results)))
        return 1;
      sum += results[0].scalar<float>()();
    }
    std::printf("epoch %d: loss %.4f\n", epoch + 1, sum / static_cast<float>(steps));
  }
  std::vector<int> all(test.size());
  std::iota(all.begin(), all.end(), 0);
  Tensor x, y;
  batch(test, all.data(), test.size(), &x, &y);
  if (!check(session.Run({{images, x}}, {digit}, &results)))
    return 1;
  const int right = countRight(results[0], y);
  std::printf("accuracy %.4f (%d of %d digits)\n", static_cast<double>(right) / test.size(), right, test.size());

  // what was learnt: to go on training, to serve, and to compile
  SavedModelBuilder model(out + "_model");
  SavedModelBuilder::Signatures signatures{{"serving_default", {{{"image", images}}, {{"digit", digit}, {"scores", scores}}}}};
  std::filesystem::create_directories(out + "_checkpoint");
  if (!check(state.Save(session, out + "_checkpoint/model", epochs)) ||
      !check(model.AddMetaGraphAndVariables(session, saver, {"serve"}, signatures)) || !check(model.Save()) ||
      !check(FreezeGraph(session, {digit}, &bytes)) || !write(bytes, out + ".pb"))
    return 1;
  return right * 100 >= test.size() * 97 ? 0 : 1;
}
