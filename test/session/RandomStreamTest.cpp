// Seeded random ops run three times: their numbers go on from run to run as TensorFlow's do, in a session and in a module
// compiled ahead of time. goldens/random_streams.json is TensorFlow's (make_random_streams.py).
#include "compiler/driver/Compiler.h"
#include "compiler/jit/ClusterCompiler.h"
#include "compiler/jit/Jit.h"
#include "proto/graph.pb.h"
#include "runtime/kernels/Common.h"
#include "runtime/session/Session.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Base64.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

namespace lathe {
namespace {

using Json = nlohmann::json;

std::vector<Json> cases() {
  std::ifstream file(LATHE_SOURCE_DIR "/test/session/goldens/random_streams.json");
  Json all = Json::parse(file, nullptr, false);
  return all.is_array() ? all.get<std::vector<Json>>() : std::vector<Json>();
}

std::string graphOf(const Json &c) {
  std::vector<char> bytes;
  llvm::cantFail(llvm::decodeBase64(c["graph"].get<std::string>(), bytes));
  return std::string(bytes.begin(), bytes.end());
}

void expectRun(const Json &want, const Tensor &got, const std::string &what) {
  ASSERT_EQ(got.numElements(), static_cast<int64_t>(want.size())) << what;
  double tolerance = got.dtype() == DType::BFloat16 ? 1e-2 : got.dtype() == DType::Float16 ? 2e-3 : 2e-6;
  for (int64_t i = 0; i < got.numElements(); ++i)
    EXPECT_NEAR(rt::realAt(got, i), want[i].get<double>(), tolerance * std::max(1.0, std::abs(want[i].get<double>()))) << what << ", element " << i;
}

TEST(RandomStreams, GoOnInASession) {
  ASSERT_FALSE(cases().empty());
  for (const Json &c : cases()) {
    SessionOptions options;
    options.compiler = getClusterCompiler();
    Session session(options);
    ASSERT_TRUE(session.Create(graphOf(c)).ok());
    for (const Json &run : c["runs"]) {
      std::vector<Tensor> out;
      absl::Status ran = session.Run({}, {c["fetch"]}, {}, &out);
      ASSERT_TRUE(ran.ok()) << c["name"] << ran;
      expectRun(run, out[0], c["name"]);
    }
  }
}

TEST(RandomStreams, GoOnInAModule) {
  int compiled = 0;
  for (const Json &c : cases()) {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
    CompilerOptions options;
    options.outputs = {c["fetch"]};
    options.cpu = "host";
    options.symbolPrefix = "random_stream";
    Compiler compiler(context, options);
    if (mlir::failed(compiler.importBytes(graphOf(c))))
      continue; // Gamma, Poisson and the like are host kernels only
    auto artifact = compiler.emit();
    if (!artifact) {
      llvm::consumeError(artifact.takeError());
      continue;
    }
    auto module = loadObject(artifact->object, artifact->prefix);
    ASSERT_TRUE(bool(module)) << c["name"];
    ModuleRunner runner(*module);
    for (const Json &run : c["runs"]) {
      auto out = runner.call({});
      ASSERT_TRUE(bool(out)) << c["name"];
      expectRun(run, (*out)[0], c["name"]);
    }
    ++compiled;
  }
  EXPECT_GE(compiled, 18);
}

} // namespace
} // namespace lathe
