// Checkpoints, SavedModels and frozen graphs of graphs that are built in C++. What is computed has host kernels: no compiler is linked.
#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/state.h"
#include "runtime/session/SavedModel.h"
#include "runtime/session/Saver.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace lathe;

namespace {

/// Two variables, and the rows of the first that are asked for, beside the second.
struct Model {
  Scope root = Scope::NewRootScope();
  std::vector<train::Variable> variables;
  Output rows, picked, both, gathered;
  Operation init, change;

  Model() {
    variables.push_back(train::MakeVariable(root, "table", {{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}, {3, 2}));
    variables.push_back(train::MakeVariable(root, "names", {"a", "bc"}, {2}));
    rows = ops::Placeholder(root.WithOpName("rows"), DType::Int32, ops::Placeholder::Shape(PartialShape(std::vector<int64_t>{-1})));
    picked = ops::GatherV2(root.WithOpName("picked"), variables[0].value, rows, 0);
    gathered = ops::ResourceGather(root.WithOpName("gathered"), variables[0].handle, rows, DType::Float32);
    both = ops::Concat(root.WithOpName("both"), {picked, gathered}, 0);
    init = ops::NoOp(root.WithOpName("init").WithControlDependencies(std::vector<Operation>{variables[0].init, variables[1].init}));
    change = ops::AssignVariableOp(root.WithOpName("change"), variables[0].handle, {{0.0f, 7.0f}, {8.0f, 9.0f}, {1.0f, 1.0f}});
  }
};

std::vector<float> floats(const Tensor &t) { return {t.data<float>(), t.data<float>() + t.numElements()}; }

class SaverTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder = ::testing::TempDir() + "saver_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  std::string folder;
  std::vector<Tensor> out;
};

TEST_F(SaverTest, RestoresWhatItSaved) {
  std::string path;
  {
    Model m;
    Saver saver(m.root, m.variables);
    ASSERT_TRUE(m.root.ok()) << m.root.status();
    ClientSession session(m.root);
    EXPECT_EQ(saver.Save(session, folder + "/model").code(), absl::StatusCode::kFailedPrecondition);
    ASSERT_TRUE(session.Run({}, {}, {m.init}, nullptr).ok());
    ASSERT_TRUE(session.Run({}, {}, {m.change}, nullptr).ok());
    absl::Status s = saver.Save(session, folder + "/model", 12, &path);
    ASSERT_TRUE(s.ok()) << s;
    EXPECT_EQ(path, folder + "/model-12");
  }
  std::ifstream state(folder + "/checkpoint");
  std::string line;
  std::getline(state, line);
  EXPECT_EQ(line, "model_checkpoint_path: \"model-12\"");
  Model m;
  Saver saver(m.root, m.variables);
  ClientSession session(m.root);
  absl::Status s = saver.Restore(session, path);
  ASSERT_TRUE(s.ok()) << s;
  s = session.Run({{m.rows, {1, 0}}}, {m.both, m.variables[1].value}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(floats(out[0]), (std::vector<float>{8, 9, 0, 7, 8, 9, 0, 7}));
  EXPECT_EQ(out[1].strings(), (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(saver.Restore(session, folder + "/other").code(), absl::StatusCode::kNotFound);
}

TEST_F(SaverTest, SavedModelsLoad) {
  Model m;
  Operation ready = ops::NoOp(m.root.WithOpName("ready"));
  Saver saver(m.root, m.variables);
  ClientSession session(m.root);
  ASSERT_TRUE(session.Run({}, {}, {m.init}, nullptr).ok());
  SavedModelBuilder builder(folder + "/model");
  EXPECT_EQ(builder.Save().code(), absl::StatusCode::kFailedPrecondition);
  SavedModelBuilder::Signatures signatures{{"serving_default", {{{"rows", m.rows}}, {{"both", m.both}}}}};
  EXPECT_EQ(builder.AddMetaGraphAndVariables(session, saver, {}, signatures).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(builder.AddMetaGraphAndVariables(session, saver, {"serve"}, {{"s", {{}, {{"none", Output()}}}}}).code(),
            absl::StatusCode::kInvalidArgument);
  absl::Status s = builder.AddMetaGraphAndVariables(session, saver, {"serve"}, signatures, ready);
  ASSERT_TRUE(s.ok()) << s;
  ASSERT_TRUE(builder.AddMetaGraph(m.root, saver, {"serve", "again"}, {}).ok());
  ASSERT_TRUE(builder.Save().ok());
  EXPECT_EQ(SavedModelBuilder(folder + "/model").AddMetaGraphAndVariables(session, saver, {"serve"}, {}).code(), absl::StatusCode::kAlreadyExists);

  SavedModelBundle bundle;
  s = LoadSavedModel({}, {}, folder + "/model", {"serve"}, &bundle);
  ASSERT_TRUE(s.ok()) << s;
  std::vector<std::pair<std::string, Tensor>> results;
  s = bundle.Run("serving_default", {{"rows", Tensor::vector<int32_t>(DType::Int32, {2})}}, &results);
  ASSERT_TRUE(s.ok()) << s;
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(floats(results[0].second), (std::vector<float>{5, 6, 5, 6}));
}

TEST_F(SaverTest, FrozenGraphsHoldTheValues) {
  Model m;
  ClientSession session(m.root);
  ASSERT_TRUE(session.Run({}, {}, {m.init}, nullptr).ok());
  ASSERT_TRUE(session.Run({}, {}, {m.change}, nullptr).ok());
  std::string bytes;
  absl::Status s = FreezeGraph(session, {m.both}, &bytes);
  ASSERT_TRUE(s.ok()) << s;
  auto file = ParseGraphFile(bytes, "frozen");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(bytes.find("VarHandleOp"), std::string::npos);
  EXPECT_EQ(bytes.find("Assign"), std::string::npos);
  Session plain{SessionOptions()};
  ASSERT_TRUE(plain.Create(bytes).ok());
  s = plain.Run({{"rows:0", Tensor::vector<int32_t>(DType::Int32, {1})}}, {"both:0"}, {}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(floats(out[0]), (std::vector<float>{8, 9, 8, 9}));
  // what writes a variable is no part of a frozen graph
  Output after = ops::Identity(m.root.WithOpName("after").WithControlDependencies(std::vector<Operation>{m.change}), m.rows);
  s = FreezeGraph(session, {after}, &bytes);
  EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(s.message().find("node 'change' (AssignVariableOp)"), std::string::npos) << s;
}

} // namespace
