// The compiler as a library: a program without it loads it, and says what is wrong when it cannot.
#include "proto/graph.pb.h"
#include "runtime/session/CompilerLibrary.h"
#include "runtime/session/Session.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(CompilerLibrary, CompilesWhatHasNoHostKernel) {
  auto compiler = loadClusterCompiler({"/nowhere/liblathe_compiler.so", LATHE_COMPILER_LIBRARY});
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  tf::GraphDef graph;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "Softplus" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "z" op: "MatMul" input: "y" input: "x" attr { key: "T" value { type: DT_FLOAT } } })", &graph));
  auto run = [&](const lathe_cluster_compiler *with, std::vector<Tensor> *outputs) {
    SessionOptions options;
    options.compiler = with;
    Session session(options);
    EXPECT_TRUE(session.Create(graph).ok());
    Tensor x = Tensor::allocate(DType::Float32, {2, 2});
    for (int i = 0; i < 4; ++i)
      x.data<float>()[i] = static_cast<float>(40 + i); // softplus is the identity there
    return session.Run({{"x:0", x}}, {"z:0"}, {}, outputs);
  };
  std::vector<Tensor> outputs;
  EXPECT_FALSE(run(nullptr, &outputs).ok());
  absl::Status status = run(*compiler, &outputs);
  ASSERT_TRUE(status.ok()) << status;
  const float *z = outputs.at(0).data<float>();
  EXPECT_FLOAT_EQ(z[0], 40 * 40 + 41 * 42);
  EXPECT_FLOAT_EQ(z[3], 42 * 41 + 43 * 43);
}

TEST(CompilerLibrary, AbsentIsUnimplemented) {
  auto compiler = loadClusterCompiler({"/nowhere/liblathe_compiler.so", "/nowhere/too.so"});
  EXPECT_EQ(compiler.status().code(), absl::StatusCode::kUnimplemented);
  std::string message(compiler.status().message());
  EXPECT_NE(message.find("liblathe_compiler.so could not be loaded"), std::string::npos) << message;
  EXPECT_NE(message.find("/nowhere/too.so"), std::string::npos) << message;
}

TEST(CompilerLibrary, AnotherLibraryIsRefused) {
  auto compiler = loadClusterCompiler({"libz.so.1"});
  EXPECT_EQ(compiler.status().code(), absl::StatusCode::kFailedPrecondition) << compiler.status();
}

TEST(CompilerLibrary, LooksBesideTheProgramFirst) {
  std::vector<std::string> paths = compilerLibraryPaths();
  ASSERT_EQ(paths.size(), 3u);
  EXPECT_NE(paths[0].find("/bin/tests/liblathe_compiler.so"), std::string::npos) << paths[0];
  EXPECT_EQ(paths[2], "liblathe_compiler.so");
}

// What a session says where the library is absent is c_api/no-compiler.test's.
TEST(CompilerLibrary, SessionsLoadItWhenTheyNeedIt) {
  tf::GraphDef graph;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
    node { name: "y" op: "StringLength" input: "x" }
    node { name: "f" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "z" op: "MatMul" input: "f" input: "f" attr { key: "T" value { type: DT_FLOAT } } })", &graph));
  SessionOptions options;
  options.compiler = deferredClusterCompiler();
  Session session(options);
  ASSERT_TRUE(session.Create(graph).ok());
  std::vector<Tensor> outputs;
  absl::Status status = session.Run({{"x:0", Tensor::fromStrings({}, {"four"})}}, {"y:0"}, {}, &outputs);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*outputs.at(0).data<int32_t>(), 4);
  Tensor f = Tensor::allocate(DType::Float32, {1, 1});
  *f.data<float>() = 3;
  // the linker's own search finds it in the build's folder of libraries
  status = session.Run({{"f:0", f}}, {"z:0"}, {}, &outputs);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*outputs.at(0).data<float>(), 9);
}

} // namespace
} // namespace lathe
