// Whole models in sessions with the JIT: training, text, input pipelines, TF1 loops, against TensorFlow's numbers.
#include "compiler/jit/ClusterCompiler.h"
#include "proto/graph.pb.h"
#include "runtime/session/SavedModel.h"
#include "test/session/Samples.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe {
namespace {

using namespace lathe::test;

double worst(const Tensor &a, const Tensor &b) {
  if (a.dims() != b.dims())
    return INFINITY;
  double most = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    most = std::max<double>(most, std::abs(a.data<float>()[i] - b.data<float>()[i]));
  return most;
}

SessionOptions jit(int mode) {
  SessionOptions options;
  options.compiler = getClusterCompiler();
  options.clusterMode = mode;
  return options;
}

class Training : public testing::TestWithParam<int> {};

TEST_P(Training, SoftmaxLearnsAsTensorFlow) {
  std::string dir = kSamples + "mnist_softmax_train/";
  NamedTensors digits = npz(dir + "digits.npz"), expected = npz(dir + "expected.npz");
  Session s(jit(GetParam()));
  ASSERT_TRUE(s.Create(readAll(dir + "graph.pb")).ok());
  absl::Status init = s.Run({}, {}, {"init"}, nullptr);
  ASSERT_TRUE(init.ok()) << init;
  Tensor images = named(digits, "train_images"), labels = named(digits, "train_labels"), losses = named(expected, "losses");
  for (int i = 0; i < 300; ++i) {
    int64_t from = 64 * i % 1344;
    std::vector<Tensor> out;
    absl::Status ran = s.Run({{"x:0", rows(images, from, 64, true)}, {"y_:0", rows(labels, from, 64, false)}}, {"loss:0"}, {"train_step"}, &out);
    ASSERT_TRUE(ran.ok()) << ran;
    float want = losses.data<float>()[i];
    ASSERT_NEAR(*out[0].data<float>(), want, 1e-4 * std::abs(want)) << "step " << i;
  }
  Tensor test = named(digits, "test_images"), truth = named(digits, "test_labels");
  std::vector<Tensor> out;
  absl::Status ran = s.Run({{"x:0", rows(test, 0, test.dim(0), true)}, {"y_:0", rows(truth, 0, truth.dim(0), false)}}, {"accuracy:0"}, {}, &out);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(*out[0].data<float>(), *named(expected, "accuracy").data<float>());
  for (const char *name : {"W", "b"}) {
    ASSERT_TRUE(s.Run({}, {std::string(name) + ":0"}, {}, &out).ok());
    EXPECT_LE(worst(out[0], named(expected, name)), 1e-4) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Training, testing::Values(0, 1, 2));

TEST(SessionModels, TextClassifier) {
  std::string dir = kSamples + "text_classifier/";
  SavedModelBundle bundle;
  absl::Status loaded = LoadSavedModel(jit(1), {}, dir + "saved_model", {"serve"}, &bundle);
  ASSERT_TRUE(loaded.ok()) << loaded;
  ASSERT_EQ(bundle.signatures.count("serving_default"), 1u);
  const ModelSignature &signature = bundle.signatures["serving_default"];
  ASSERT_EQ(signature.inputs.size(), 1u);
  Tensor text = Tensor::fromStrings({5}, {"The film was GREAT fun", "a dull boring plot", "loved the acting", "", "unknown words only here"});
  std::vector<std::pair<std::string, Tensor>> out;
  absl::Status ran = bundle.Run("serving_default", {{signature.inputs.begin()->first, text}}, &out);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_LE(worst(out[0].second, named(npz(dir + "expected.npz"), "probabilities")), 1e-6);
  EXPECT_FALSE(bundle.Run("no_such_signature", {}, &out).ok());
  EXPECT_FALSE(LoadSavedModel(jit(1), {}, dir + "saved_model", {"train"}, &bundle).ok());
}

/// Plain and with gzip, which is an attribute of the reader.
class Pipeline : public testing::TestWithParam<const char *> {};

TEST_P(Pipeline, GivesTensorFlowsRecords) {
  std::string dir = kSamples + "tfrecord_pipeline/";
  NamedTensors expected = npz(dir + "expected.npz");
  Tensor labels = named(expected, "labels"), images = named(expected, "images");
  Session s(jit(1));
  std::string compression = GetParam();
  tf::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(readAll(dir + "graph.pb")));
  int readers = 0;
  for (tf::NodeDef &node : *graph.mutable_node())
    if (node.op() == "TFRecordReaderV2") {
      (*node.mutable_attr())["compression_type"].set_s(compression);
      ++readers;
    }
  ASSERT_EQ(readers, 1);
  ASSERT_TRUE(s.Create(graph).ok());
  absl::Status fed = s.Run({{"filenames:0", Tensor::fromStrings({1}, {dir + (compression.empty() ? "digits.tfrecord" : "digits.tfrecord.gz")})}}, {}, {"enqueue"}, nullptr);
  ASSERT_TRUE(fed.ok()) << fed;
  ASSERT_TRUE(s.Run({}, {}, {"close"}, nullptr).ok());
  for (int i = 0; i < 200; ++i) {
    std::vector<Tensor> out;
    absl::Status ran = s.Run({}, {"label:0", "image:0"}, {}, &out);
    ASSERT_TRUE(ran.ok()) << i << ": " << ran;
    int64_t label = out[0].dtype() == DType::Int64 ? *out[0].data<int64_t>() : *out[0].data<int32_t>();
    ASSERT_EQ(label, labels.data<int64_t>()[i]);
    ASSERT_EQ(out[1].numElements(), 64);
    ASSERT_EQ(0, std::memcmp(out[1].data(), images.data<float>() + 64 * i, 256));
  }
  std::vector<Tensor> out;
  EXPECT_EQ(s.Run({}, {"label:0"}, {}, &out).code(), absl::StatusCode::kOutOfRange);
}

INSTANTIATE_TEST_SUITE_P(Compression, Pipeline, testing::Values("", "GZIP"));

TEST(SessionModels, WhileV1) {
  std::string dir = kSamples + "while_v1/";
  for (int mode : {0, 1, 2}) {
    Session s(jit(mode));
    ASSERT_TRUE(s.Create(readAll(dir + "graph.pb")).ok());
    NamedTensors inputs = npz(dir + "inputs.npz"), expected = npz(dir + "expected.npz");
    Session::Feeds feeds;
    std::vector<std::string> fetches;
    for (auto &[name, t] : inputs)
      feeds.emplace_back(name, t);
    for (auto &[name, t] : expected)
      fetches.push_back(name);
    std::vector<Tensor> out;
    absl::Status ran = s.Run(feeds, fetches, {}, &out);
    ASSERT_TRUE(ran.ok()) << ran;
    for (size_t i = 0; i < out.size(); ++i) {
      double scale = 1e-6;
      if (expected[i].second.dtype() != DType::Float32)
        continue;
      for (int64_t k = 0; k < expected[i].second.numElements(); ++k)
        scale = std::max<double>(scale, std::abs(expected[i].second.data<float>()[k]));
      EXPECT_LE(worst(out[i], expected[i].second), 1e-4 * scale) << fetches[i];
    }
  }
}

} // namespace
} // namespace lathe
