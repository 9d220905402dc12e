// Input pipelines as TensorFlow's Python front end builds them, with its functions compiled: the elements are those that
// TensorFlow got (make_pipelines.py).
#include "test/samples/SampleTest.h"

namespace lathe {
namespace {

void replay(const std::string &name, int numFetches) {
  auto bytes = readFile(dataPath("pipelines/" + name + ".pb"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  tf::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(*bytes));
  std::map<std::string, Tensor> expected = npz("pipelines/" + name + ".npz");
  Session session(compiling());
  absl::Status created = session.Create(graph);
  ASSERT_TRUE(created.ok()) << created;
  std::vector<Tensor> out;
  bool initialised = false;
  for (const auto &node : graph.node())
    initialised |= node.name() == "init";
  if (initialised) {
    absl::Status run = session.Run({}, {}, {"init"}, &out);
    ASSERT_TRUE(run.ok()) << run;
  }
  std::vector<std::string> fetches;
  for (int i = 0; i < numFetches; ++i)
    fetches.push_back("out" + std::to_string(i) + ":0");
  int64_t count = *expected["count"].data<int64_t>();
  for (int64_t n = 0; n < count; ++n) {
    absl::Status run = session.Run({}, fetches, {}, &out);
    ASSERT_TRUE(run.ok()) << name << " element " << n << ": " << run;
    for (int i = 0; i < numFetches; ++i) {
      std::string key = std::to_string(n) + "/" + std::to_string(i);
      expectSame(out[i], expected[key], 1e-6, name + " " + key);
    }
  }
  if (count > 1) {
    EXPECT_EQ(session.Run({}, fetches, {}, &out).code(), absl::StatusCode::kOutOfRange);
  }
}

TEST(Pipeline, shuffledMappedFilteredBatched) { replay("mapped", 2); }
TEST(Pipeline, interleavedAndPadded) { replay("nested", 1); }
TEST(Pipeline, windowedCachedZipped) { replay("windows", 2); }
TEST(Pipeline, reducedAndScanned) { replay("reduced", 3); }

} // namespace
} // namespace lathe
