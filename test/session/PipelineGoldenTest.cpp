// tf.data graphs, readers and queue runners in a session, element by element against goldens/pipelines.json, which
// make_pipelines.py had TensorFlow write.
#include "compiler/jit/ClusterCompiler.h"
#include "proto/graph.pb.h"
#include "runtime/session/QueueRunner.h"

#include "llvm/Support/Base64.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace lathe {
namespace {

using Json = nlohmann::json;

const std::string kGoldens = LATHE_SOURCE_DIR "/test/session/goldens/";

std::vector<Json> cases() {
  std::ifstream file(kGoldens + "pipelines.json");
  Json all = Json::parse(file, nullptr, false);
  return all.is_array() ? all.get<std::vector<Json>>() : std::vector<Json>();
}

/// JSON has the bytes as characters up to 255.
std::string bytesOf(const std::string &utf8) {
  std::string out;
  for (size_t i = 0; i < utf8.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(utf8[i]);
    out += c < 0x80 ? utf8[i] : static_cast<char>((c & 3) << 6 | (static_cast<unsigned char>(utf8[++i]) & 63));
  }
  return out;
}

void expectTensor(const Json &want, const Tensor &got) {
  ASSERT_EQ(std::string(dtypeName(got.dtype())), want["dtype"].get<std::string>());
  ASSERT_EQ(got.dims(), want["dims"].get<std::vector<int64_t>>());
  for (int64_t i = 0; i < got.numElements(); ++i) {
    const Json &w = want["data"][static_cast<size_t>(i)];
    switch (got.dtype()) {
    case DType::String:
      ASSERT_EQ(got.strings()[i], bytesOf(w.get<std::string>())) << i;
      break;
    case DType::Int64:
      ASSERT_EQ(got.data<int64_t>()[i], w.get<int64_t>()) << i;
      break;
    case DType::Int32:
      ASSERT_EQ(got.data<int32_t>()[i], w.get<int32_t>()) << i;
      break;
    case DType::Float32:
      ASSERT_EQ(got.data<float>()[i], w.get<float>()) << i;
      break;
    default:
      FAIL() << "no comparison for " << dtypeName(got.dtype());
    }
  }
}

class Pipelines : public testing::TestWithParam<Json> {};

TEST_P(Pipelines, GivesWhatTensorFlowGave) {
  const Json &c = GetParam();
  std::vector<char> bytes;
  llvm::cantFail(llvm::decodeBase64(c["graph"].get<std::string>(), bytes));
  SessionOptions options;
  options.compiler = getClusterCompiler();
  options.interOpThreads = 4;
  Session session(options);
  absl::Status created = session.Create(std::string_view(bytes.data(), bytes.size()));
  ASSERT_TRUE(created.ok()) << created;
  auto names = c["files"].get<std::vector<std::string>>();
  for (std::string &name : names)
    name = kGoldens + name;
  if (std::string init = c["init"]; !init.empty()) {
    absl::Status done = session.Run({{"files:0", Tensor::fromStrings({static_cast<int64_t>(names.size())}, names)}}, {}, {init}, nullptr);
    ASSERT_TRUE(done.ok()) << done;
  }
  std::vector<QueueRunnerDef> runners;
  for (const Json &runner : c["runners"]) {
    QueueRunnerDef def;
    def.enqueueOps = runner["enqueue"].get<std::vector<std::string>>();
    def.closeOp = runner["close"].get<std::string>();
    runners.push_back(def);
  }
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(runners, &session, &coordinator).ok());
  auto fetches = c["fetches"].get<std::vector<std::string>>();
  size_t step = 0;
  for (const Json &want : c["steps"]) {
    std::vector<Tensor> out;
    absl::Status ran = session.Run({}, fetches, {}, &out);
    EXPECT_TRUE(ran.ok()) << "step " << step << ": " << ran;
    for (size_t i = 0; ran.ok() && i < out.size(); ++i)
      expectTensor(want[i], out[i]);
    if (HasFailure())
      break;
    ++step;
  }
  if (c.value("ends", false) && !HasFailure()) {
    std::vector<Tensor> out;
    EXPECT_EQ(session.Run({}, fetches, {}, &out).code(), absl::StatusCode::kOutOfRange);
  }
  EXPECT_TRUE(session.Close().ok());
  coordinator.RequestStop();
  absl::Status joined = coordinator.Join();
  EXPECT_TRUE(joined.ok() || !c.value("ends", false)) << joined;
}

INSTANTIATE_TEST_SUITE_P(Goldens, Pipelines, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param["name"].template get<std::string>(); });

} // namespace
} // namespace lathe
