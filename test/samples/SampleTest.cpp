// Sample programs against what TensorFlow recorded: a TFRecord pipeline, plain and gzip, and training by variables.
#include "test/samples/SampleTest.h"

namespace lathe {
namespace {

void createFrom(Session &session, const std::string &path, const std::string &compression = "") {
  auto bytes = readFile(dataPath(path));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  tf::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(*bytes));
  for (auto &node : *graph.mutable_node())
    if (node.op() == "TFRecordReaderV2")
      (*node.mutable_attr())["compression_type"].set_s(compression);
  absl::Status created = session.Create(graph);
  ASSERT_TRUE(created.ok()) << created;
}

TEST(Samples, tfrecordPipeline) {
  std::map<std::string, Tensor> expected = npz("samples/tfrecord_pipeline/expected.npz");
  for (bool gzip : {false, true}) {
    Session session(compiling());
    createFrom(session, "samples/tfrecord_pipeline/graph.pb", gzip ? "GZIP" : "");
    std::string file = dataPath(gzip ? "samples/tfrecord_pipeline/digits.tfrecord.gz" : "samples/tfrecord_pipeline/digits.tfrecord");
    std::vector<Tensor> out;
    absl::Status run = session.Run({{"filenames:0", Tensor::fromStrings({1}, {file})}}, {}, {"enqueue"}, &out);
    ASSERT_TRUE(run.ok()) << run;
    run = session.Run({}, {}, {"close"}, &out);
    ASSERT_TRUE(run.ok()) << run;
    for (int n = 0; n < 200; ++n) {
      run = session.Run({}, {"label:0", "image:0"}, {}, &out);
      ASSERT_TRUE(run.ok()) << n << ": " << run;
      ASSERT_EQ(out[0].numElements(), 1);
      EXPECT_EQ(*out[0].data<int64_t>(), expected["labels"].data<int64_t>()[n]);
      ASSERT_EQ(out[1].numElements(), 64);
      for (int i = 0; i < 64; ++i)
        ASSERT_EQ(out[1].data<float>()[i], expected["images"].data<float>()[n * 64 + i]) << n;
    }
    EXPECT_EQ(session.Run({}, {"label:0"}, {}, &out).code(), absl::StatusCode::kOutOfRange);
  }
}

TEST(Samples, mnistSoftmaxTrain) {
  std::map<std::string, Tensor> expected = npz("samples/mnist_softmax_train/expected.npz");
  std::map<std::string, Tensor> digits = npz("samples/mnist_softmax_train/digits.npz");
  for (const auto &[key, tensor] : digits)
    ASSERT_TRUE(tensor.rank() >= 1) << key;
  Session session(compiling());
  createFrom(session, "samples/mnist_softmax_train/graph.pb");
  std::vector<Tensor> out;
  absl::Status run = session.Run({}, {}, {"init"}, &out);
  ASSERT_TRUE(run.ok()) << run;
  auto rows = [&](const char *key, int64_t from, int64_t count) {
    const Tensor &t = digits.at(key);
    int64_t row = t.numElements() / t.dim(0), size = static_cast<int64_t>(dtypeSize(t.dtype()));
    Tensor part = Tensor::allocate(t.dtype(), row == 1 ? std::vector<int64_t>{count} : std::vector<int64_t>{count, row});
    std::copy_n(t.data<char>() + from * row * size, count * row * size, part.data<char>());
    return part;
  };
  for (int i = 0; i < 300; ++i) {
    int64_t from = 64 * i % 1344;
    run = session.Run({{"x:0", rows("train_images", from, 64)}, {"y_:0", rows("train_labels", from, 64)}}, {"loss:0"}, {"train_step"}, &out);
    ASSERT_TRUE(run.ok()) << i << ": " << run;
    float loss = expected["losses"].data<float>()[i];
    ASSERT_NEAR(*out[0].data<float>(), loss, 1e-4 * loss) << i;
  }
  int64_t tests = digits.at("test_images").dim(0);
  run = session.Run({{"x:0", rows("test_images", 0, tests)}, {"y_:0", rows("test_labels", 0, tests)}}, {"accuracy:0"}, {}, &out);
  ASSERT_TRUE(run.ok()) << run;
  EXPECT_EQ(*out[0].data<float>(), *expected["accuracy"].data<float>());
  run = session.Run({}, {"W:0", "b:0"}, {}, &out);
  ASSERT_TRUE(run.ok()) << run;
  expectSame(out[0], expected["W"], 1e-4, "W");
  expectSame(out[1], expected["b"], 1e-4, "b");
}

} // namespace
} // namespace lathe
