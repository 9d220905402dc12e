// Generated headers: they compile alone, and programs in C and C++ link with the object and run.
#include "CompileText.h"
#include <cstdlib>
#include <fstream>

using namespace lathe;

namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/lathe-header-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { EXPECT_EQ(std::system(("rm -rf " + path).c_str()), 0); }
  void write(const std::string &name, const std::string &text) { std::ofstream(path + "/" + name) << text; }
  int run(const std::string &command) { return std::system(("cd " + path + " && " + command).c_str()); }
};

const char *text = R"(
  module attributes {hlo.symbols = [{name = "batch", bound = 64 : i64, kind = "input"}],
      hlo.variables = [{name = "W", type = tensor<3xf32>, value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}]} {
  func.func @main(%x: tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>> {hlo.name = "x", hlo.tensor = "x:0"},
                  %k: tensor<2xf64> {hlo.name = "class"})
      -> (tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>> {hlo.name = "x"}, tensor<2xf64> {hlo.name = "k*/ \"sum\""}) {
    %0 = "hlo.add"(%x, %x) : (tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>, tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>) -> tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>
    %c = "hlo.constant"() {value = dense<[5.0, 6.0]> : tensor<2xf64>} : () -> tensor<2xf64>
    %1 = "hlo.add"(%k, %c) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    return %0, %1 : tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>, tensor<2xf64>
  }
  func.func @grow(%w: tensor<3xf32> {hlo.variable = "W"}) -> (tensor<3xf32> {hlo.variable = "W"}) {
    %0 = "hlo.add"(%w, %w) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }})";

const char *cProgram = R"(
#include "m.h"
#include <stdlib.h>
int main(void) {
  const lathe_module *m = m_module();
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
  double k[2] = {1, 2}, s[2];
  const void *in[2];
  void *out[2], *vars[1];
  int64_t sizes[1] = {2};
  float w[3];
  lathe_error error = {sizeof(lathe_error), 0, 0, 0, 0};
  lathe_run_args a = {0};
  in[0] = x, in[1] = k, out[0] = y, out[1] = s, vars[0] = w;
  a.struct_size = sizeof a;
  a.threads = 1;
  a.inputs = in;
  a.outputs = out;
  a.variables = vars;
  a.sizes = sizes;
  a.workspace_size = m_workspace_size(sizes, 1);
  a.workspace = aligned_alloc(64, (size_t)a.workspace_size + 64);
  a.error = &error;
  if (m->num_entries != 2 || m_run(&a) != 0)
    return 1;
  if (y[5] != 12 || s[1] != 8)
    return 2;
  sizes[0] = 65;
  if (m_run(&a) != LATHE_INVALID_ARGUMENT || error.code != LATHE_INVALID_ARGUMENT || !error.message)
    return 3;
  free(a.workspace);
  return 0;
}
)";

const char *cxxProgram = R"(
#include "m.h"
#include "n.h"
struct Device {
  struct Cost { Cost(double, double, double) {} };
  int numThreads() const { return 2; }
  template <class F> void parallelFor(long n, const Cost &, F f) const { f(0, n / 2); f(n / 2, n); }
};
int main() {
  my::app::Net net;
  n::Model other;
  static_assert(my::app::Net::kNumArgs == 2 && my::app::Net::kNumResults == 2);
  if (!net.set_batch(2) || net.set_batch(65) || net.error_msg() != "a run-time size is out of range") return 1;
  if (!net.set_batch(2) || !net.error_msg().empty()) return 1;
  for (int i = 0; i < 6; ++i) net.arg0_data()[i] = i;
  net.arg0(1, 2) = 50;
  net.arg_class(0) = 1;
  net.arg_feed_class(1) = 2;
  if (!net.Run()) return 2;
  if (net.result0(1, 2) != 100 || net.result_x_data()[1] != 2 || net.result1(1) != 8) return 3;
  if (net.LookupArgIndex("class") != 1 || net.LookupArgIndex("x:0") != 0 || net.LookupArgIndex("no") != -1) return 4;
  if (net.arg0_count() != 6 || net.arg0_size() != 24 || net.results()[1] != net.result1_data()) return 5;
  double mine[3];
  net.set_result1_data(reinterpret_cast<char *>(mine) + 1); // unaligned: copied
  if (!net.result_is_copied(1) || !net.Run()) return 6;
  double back;
  std::memcpy(&back, reinterpret_cast<char *>(mine) + 9, 8);
  if (back != 8) return 7;
  net.set_result1_data(mine);
  if (net.result_is_copied(1) || !net.Run() || mine[1] != 8) return 8;
  if (net.var_W(2) != 3 || !net.grow() || net.var_W(2) != 6 || net.W()[0] != 2) return 9;
  Device device;
  net.set_thread_pool(&device);
  if (!net.Run()) return 10;
  auto loop = [](void *ctx, void (*fn)(void *, int64_t, int64_t), int64_t b, int64_t e) { fn(ctx, b, e); };
  net.set_thread_pool(loop, 2);
  if (!net.Run()) return 11;
  if (net.x().rank() != 2 || net.x().dim(0) != 2 || net.x()(1, 2) != 50) return 12;
  my::app::Net lean(my::app::Net::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  if (lean.Run() || lean.error_msg().empty()) return 13;
  float x[3] = {1, 2, 3};
  double k[2] = {3, 4};
  lean.set_arg0_data(x);
  lean.set_arg_data(1, k);
  if (!lean.Run() || lean.result0(0, 2) != 6) return 14;
  char small[64];
  lean.set_workspace(small, -1);
  if (lean.Run()) return 15;
  return other.Run() ? 0 : 16;
}
)";

// The page in docs/generated-code.md, and code as users of tfcompile have it.
const char *shim = R"(
#include "m.h"
namespace tensorflow { using XlaCompiledCpuFunction = lathe::CompiledModel; }
)";
const char *tfcompileProgram = R"(
#include "shim.h"
#include <memory>
static bool drive(tensorflow::XlaCompiledCpuFunction *f, const float *x, const double *k) {
  f->set_arg_data(0, x);
  f->set_arg_data(1, k);
  if (!f->Run()) return false;
  return static_cast<const double *>(f->result_data(1))[1] == 8 && f->results()[1] == f->result_data(1);
}
int main() {
  alignas(64) float x[3] = {1, 2, 3};
  alignas(64) double k[2] = {1, 2};
  std::unique_ptr<tensorflow::XlaCompiledCpuFunction> f(
      new my::app::Net(tensorflow::XlaCompiledCpuFunction::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY));
  tensorflow::XlaCompiledCpuFunction g(my::app::Net::StaticData());
  return drive(f.get(), x, k) && drive(&g, x, k) ? 0 : 1;
}
)";

TEST(Header, CompilesAloneAndRuns) {
  EmitOptions options;
  options.symbolPrefix = "m";
  options.className = "my::app::Net";
  auto m = compile(text, options, false);
  options.symbolPrefix = "n";
  options.className = "";
  options.threads = 2;
  auto n = compile(text, options, false);
  ASSERT_TRUE(m && n);
  Folder f;
  f.write("m.h", m->artifact.header);
  f.write("m.o", m->artifact.object);
  f.write("n.h", n->artifact.header);
  f.write("n.o", n->artifact.object);
  f.write("c.c", cProgram);
  f.write("cxx.cpp", cxxProgram);
  const std::string strict = " -Wall -Wextra -Werror -pedantic ";
  for (const char *compiler : {"gcc -std=c11 -x c", "g++ -std=c++17 -x c++", "clang -std=c11 -x c", "clang++ -std=c++17 -x c++"}) {
    std::string name = compiler;
    if (f.run("command -v " + name.substr(0, name.find(' ')) + " > /dev/null") != 0)
      continue;
    EXPECT_EQ(f.run(compiler + strict + "-fsyntax-only m.h"), 0) << compiler;
  }
  ASSERT_EQ(f.run("cc -std=c11" + strict + "c.c m.o -o c && ./c"), 0);
  ASSERT_EQ(f.run("c++ -std=c++17" + strict + "cxx.cpp m.o n.o -o cxx"), 0);
  f.write("shim.h", shim);
  f.write("tf.cpp", tfcompileProgram);
  EXPECT_EQ(f.run("c++ -std=c++17" + strict + "tf.cpp m.o -o tf && ./tf"), 0);
  int status = f.run("./cxx");
  EXPECT_EQ(status >> 8, 0);
}

TEST(Header, SharedLibraryAndArchive) {
  EmitOptions options;
  options.symbolPrefix = "m";
  auto m = compile(text, options, false);
  ASSERT_TRUE(m);
  Folder f;
  std::string so = f.path + "/m.so";
  llvm::Error e = linkSharedLibrary(m->artifact, so);
  ASSERT_FALSE(bool(e)) << llvm::toString(std::move(e));
  auto loaded = loadSharedLibrary(so);
  ASSERT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
  EXPECT_STREQ((*loaded)->abi().name, "m");
  ModuleRunner runner(*loaded);
  Tensor x = Tensor::allocate(DType::Float32, {1, 3}), k = Tensor::allocate(DType::Float64, {2});
  x.data<float>()[2] = 4;
  auto r = runner.call({x, k});
  ASSERT_TRUE(bool(r)) << llvm::toString(r.takeError());
  EXPECT_EQ((*r)[0].data<float>()[2], 8.0f);
  f.write("libm.a", llvm::cantFail(makeArchive(m->artifact, "m.o")));
  f.write("m.h", m->artifact.header);
  f.write("c.c", cProgram);
  EXPECT_EQ(f.run("cc -std=c11 c.c -L. -l:libm.a -o c && ./c"), 0);
}

} // namespace
