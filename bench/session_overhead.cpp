// What a session adds to a compiled function: one feed, one cluster, one fetch, against the bare call of the module.
// Prints one JSON object with the median nanoseconds of each way.
#include "compiler/jit/ClusterCompiler.h"
#include "proto/graph.pb.h"
#include "runtime/session/ModuleCall.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

using namespace lathe;

namespace {

void setType(tf::AttrValue &a) { a.set_type(tf::DT_FLOAT); }

/// y = x * x + x
tf::GraphDef graph() {
  tf::GraphDef g;
  auto add = [&](const char *name, const char *op, std::vector<std::string> inputs) {
    tf::NodeDef *n = g.add_node();
    n->set_name(name);
    n->set_op(op);
    for (auto &i : inputs)
      n->add_input(i);
    setType((*n->mutable_attr())[inputs.empty() ? "dtype" : "T"]);
  };
  add("x", "Placeholder", {});
  add("m", "Mul", {"x", "x"});
  add("y", "AddV2", {"m", "x"});
  return g;
}

/// The same as a function, for the bare module.
tf::GraphDef library() {
  tf::GraphDef g;
  tf::FunctionDef *f = g.mutable_library()->add_function();
  f->mutable_signature()->set_name("f");
  auto *in = f->mutable_signature()->add_input_arg();
  in->set_name("x");
  in->set_type(tf::DT_FLOAT);
  auto *out = f->mutable_signature()->add_output_arg();
  out->set_name("y");
  out->set_type(tf::DT_FLOAT);
  auto add = [&](const char *name, const char *op, std::vector<std::string> inputs) {
    tf::NodeDef *n = f->add_node_def();
    n->set_name(name);
    n->set_op(op);
    for (auto &i : inputs)
      n->add_input(i);
    setType((*n->mutable_attr())["T"]);
  };
  add("m", "Mul", {"x", "x"});
  add("a", "AddV2", {"m:z:0", "x"});
  (*f->mutable_ret())["y"] = "a:z:0";
  return g;
}

double medianNanos(const std::function<void()> &run) {
  std::vector<double> rounds;
  for (int i = 0; i < 1000; ++i)
    run();
  for (int r = 0; r < 101; ++r) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i)
      run();
    rounds.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 1000);
  }
  std::nth_element(rounds.begin(), rounds.begin() + 50, rounds.end());
  return rounds[50];
}

int die(const absl::Status &status) {
  fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

} // namespace

int main() {
  const lathe_cluster_compiler *compiler = getClusterCompiler();
  Tensor x = Tensor::allocate(DType::Float32, {16});

  std::string text = library().SerializeAsString();
  int64_t dims[] = {16};
  lathe_cluster_arg arg = {};
  arg.struct_size = sizeof(arg);
  arg.dtype = LATHE_FLOAT32;
  arg.rank = 1;
  arg.dims = dims;
  const lathe_cluster_arg *args[] = {&arg};
  lathe_compile_request request = {};
  request.struct_size = sizeof(request);
  request.num_args = 1;
  request.graph = {text.data(), text.size()};
  request.function = "f";
  request.args = args;
  request.threads = 1;
  lathe_compiled compiled = {};
  compiled.struct_size = sizeof(compiled);
  lathe_bytes error = {};
  if (compiler->compile(compiler->context, &request, &compiled, &error)) {
    fprintf(stderr, "%.*s\n", static_cast<int>(error.size), error.data);
    return 1;
  }
  const lathe_entry &entry = *compiled.module->entries[0];
  Tensor y = Tensor::allocate(DType::Float32, {16}), space = Tensor::allocate(DType::UInt8, {1 << 16});
  const void *inputs[] = {x.data()};
  void *outputs[] = {y.data()};
  std::vector<int64_t> sizes(compiled.module->num_symbols + 1);
  lathe_run_args call = {};
  call.struct_size = sizeof(call);
  call.threads = 1;
  call.inputs = inputs;
  call.outputs = outputs;
  call.sizes = sizes.data();
  call.workspace = space.data();
  call.workspace_size = space.sizeBytes();
  double bare = medianNanos([&] { entry.run(&call); });

  rt::ModuleCall module(compiled.module, 0);
  std::vector<Tensor> out;
  const Tensor *in[] = {&x};
  double checked = medianNanos([&] { (void)module.run(in, nullptr, {}, &out).ok(); });

  SessionOptions options;
  options.compiler = compiler;
  Session session(options);
  if (absl::Status s = session.Create(graph()); !s.ok())
    return die(s);
  Session::Feeds feeds = {{"x:0", x}};
  std::vector<std::string> fetches = {"y:0"};
  if (absl::Status s = session.Run(feeds, fetches, {}, &out); !s.ok())
    return die(s);
  double run = medianNanos([&] { (void)session.Run(feeds, fetches, {}, &out).ok(); });
  Session::CallableHandle handle;
  if (absl::Status s = session.MakeCallable({{"x:0"}, {"y:0"}, {}, {}}, &handle); !s.ok())
    return die(s);
  std::vector<Tensor> fed = {x};
  double callable = medianNanos([&] { (void)session.RunCallable(handle, fed, &out).ok(); });
  printf("{\"bare_ns\": %.0f, \"module_call_ns\": %.0f, \"run_ns\": %.0f, \"callable_ns\": %.0f}\n", bare, checked, run, callable);
  return 0;
}
