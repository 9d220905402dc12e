// Defines a convolutional network for handwritten digits in C++, trains it, prints its accuracy, and writes it as a graph with its
// weights that `lathe compile` turns into an object: train DATA-FOLDER OUT.pb [EPOCHS].
#include "compiler/jit/ClusterCompiler.h"
#include "graph/builder/Optimizers.h"
#include "graph/builder/Views.h"
#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/nn.h"
#include "graph/builder/ops/sparse.h"
#include "runtime/session/ClientSession.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>

using namespace lathe;

namespace {

constexpr int kSide = 8, kPixels = kSide * kSide, kClasses = 10, kBatch = 64;

std::vector<unsigned char> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Digits {
  std::vector<unsigned char> images, labels;

  Digits(const std::string &folder, const std::string &kind)
      : images(readFile(folder + "/" + kind + "_images.u8")), labels(readFile(folder + "/" + kind + "_labels.u8")) {}
  int size() const { return static_cast<int>(labels.size()); }
  bool valid() const { return size() > 0 && images.size() == labels.size() * kPixels; }

  /// Some of them as a batch; pixels have 17 grey levels.
  void batch(const int *which, int count, Tensor *x, Tensor *y) const {
    *x = Tensor::allocate(DType::Float32, {count, kSide, kSide, 1});
    *y = Tensor::allocate(DType::Int64, {count});
    for (int i = 0; i < count; ++i) {
      for (int p = 0; p < kPixels; ++p)
        flat<float>(*x)(i * kPixels + p) = images[which[i] * kPixels + p] / 16.0f;
      flat<int64_t>(*y)(i) = labels[which[i]];
    }
  }
};

/// Weights of a layer, each from a normal distribution of He's width.
Tensor randomWeights(const std::vector<int64_t> &dims, int inputs, std::mt19937 &random) {
  Tensor t = Tensor::allocate(DType::Float32, dims);
  std::normal_distribution<float> normal(0, std::sqrt(2.0f / static_cast<float>(inputs)));
  for (int64_t i = 0; i < t.numElements(); ++i)
    flat<float>(t)(i) = normal(random);
  return t;
}

/// The layers over images, with parameters that `parameter` gives: variables in training, constants afterwards.
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
    std::fprintf(stderr, "usage: %s DATA-FOLDER OUT.pb [EPOCHS]\n", argv[0]);
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
  std::vector<std::string> names;
  Output images = ops::Placeholder(root.WithOpName("images"), DType::Float32, ops::Placeholder::Shape(PartialShape({-1, kSide, kSide, 1})));
  Output labels = ops::Placeholder(root.WithOpName("labels"), DType::Int64, ops::Placeholder::Shape(PartialShape(std::vector<int64_t>{-1})));
  Output logits = network(root, images, [&](const char *name, std::vector<int64_t> shape, int inputs) {
    Tensor first = inputs ? randomWeights(shape, inputs, random) : Tensor::allocate(DType::Float32, shape);
    variables.push_back(train::MakeVariable(root, name, first, shape));
    names.push_back(name);
    return variables.back().value;
  });
  auto losses = ops::SparseSoftmaxCrossEntropyWithLogits(root, logits, labels);
  Output loss = ops::Mean(root, losses.loss, 0);
  Output digit = ops::ArgMax(root, logits, 1);
  train::Adam optimizer(0.003f);
  Operation step = optimizer.Minimize(root, loss, variables);

  // training
  SessionOptions options;
  options.compiler = getClusterCompiler();
  ClientSession session(root, options);
  std::vector<Operation> inits;
  for (const train::Variable &v : variables)
    inits.push_back(v.init);
  if (!check(session.Run({}, {}, inits, nullptr)) || !check(session.Run({}, {}, optimizer.inits(), nullptr)))
    return 1;
  std::vector<int> order(train.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<Tensor> out;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    float sum = 0;
    int steps = 0;
    for (int at = 0; at + kBatch <= train.size(); at += kBatch, ++steps) {
      Tensor x, y;
      train.batch(&order[at], kBatch, &x, &y);
      if (!check(session.Run({{images, x}, {labels, y}}, {loss}, {step}, &out)))
        return 1;
      sum += scalar<float>(out[0])();
    }
    std::printf("epoch %d: loss %.4f\n", epoch + 1, sum / static_cast<float>(steps));
  }
  std::vector<int> all(test.size());
  std::iota(all.begin(), all.end(), 0);
  Tensor x, y;
  test.batch(all.data(), test.size(), &x, &y);
  if (!check(session.Run({{images, x}}, {digit}, &out)))
    return 1;
  const int right = countRight(out[0], y);
  std::printf("accuracy %.4f (%d of %d digits)\n", static_cast<double>(right) / test.size(), right, test.size());

  // the same layers over what was learnt
  std::vector<Output> values;
  for (const train::Variable &v : variables)
    values.push_back(v.value);
  std::vector<Tensor> weights;
  if (!check(session.Run(values, &weights)))
    return 1;
  Scope frozen = Scope::NewRootScope();
  Output image = ops::Placeholder(frozen.WithOpName("image"), DType::Float32, ops::Placeholder::Shape(PartialShape({-1, kSide, kSide, 1})));
  size_t next = 0;
  Output scores = network(frozen, image, [&](const char *name, std::vector<int64_t>, int) {
    return ops::Const(frozen.WithOpName(name), weights[next++]);
  });
  ops::Identity(frozen.WithOpName("digit"), ops::ArgMax(frozen, scores, 1));
  std::string bytes;
  if (!check(frozen.ToGraphDef(&bytes)))
    return 1;
  std::ofstream(argv[2], std::ios::binary) << bytes;
  return right * 100 >= test.size() * 97 ? 0 : 1;
}
