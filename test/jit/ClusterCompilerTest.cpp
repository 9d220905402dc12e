// The compiler through its C table, as a session calls it.
#include "compiler/jit/ClusterCompiler.h"
#include "compiler/jit/DiskCache.h"
#include "google/protobuf/text_format.h"
#include "proto/graph.pb.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using lathe::tf::GraphDef;
using lathe::tf::NodeDef;

GraphDef parse(const std::string &text) {
  GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

std::string text(lathe_bytes &bytes) {
  std::string s(bytes.data ? bytes.data : "", bytes.size);
  lathe::getClusterCompiler()->release_bytes(nullptr, &bytes);
  return s;
}

struct Clustering {
  int32_t mode = 1, minSize = 1;
  std::vector<std::string> hostOps = {"Const", "Identity", "NoOp", "VarHandleOp", "ReadVariableOp", "AssignVariableOp",
                                      "_Arg", "_Retval"};
  std::vector<std::string> feeds, fetches, targets;
  std::string flags;
};

/// cluster() on a graph; a message of an error comes in `error`.
GraphDef cluster(const GraphDef &graph, const Clustering &c, std::string *error = nullptr) {
  auto pointers = [](const std::vector<std::string> &names) {
    std::vector<const char *> list;
    for (const std::string &name : names)
      list.push_back(name.c_str());
    return list;
  };
  auto hostOps = pointers(c.hostOps), feeds = pointers(c.feeds), fetches = pointers(c.fetches),
       targets = pointers(c.targets);
  lathe_cluster_options options = {sizeof(options), c.mode, c.minSize, int32_t(hostOps.size()), hostOps.data(),
                                   c.flags.empty() ? nullptr : c.flags.c_str()};
  std::string bytes = graph.SerializeAsString();
  lathe_cluster_request request = {sizeof(request),         int32_t(feeds.size()), int32_t(fetches.size()),
                                   int32_t(targets.size()), {bytes.data(), bytes.size()}, feeds.data(), fetches.data(),
                                   targets.data(),          &options};
  lathe_bytes out = {}, message = {};
  int32_t code = lathe::getClusterCompiler()->cluster(lathe::getClusterCompiler()->context, &request, &out, &message);
  GraphDef result;
  std::string problem = text(message);
  if (error)
    *error = problem;
  else
    EXPECT_EQ(code, 0) << problem;
  if (code == 0)
    EXPECT_TRUE(result.ParseFromString(text(out)));
  return result;
}

const NodeDef *find(const GraphDef &graph, const std::string &name) {
  for (const NodeDef &node : graph.node())
    if (node.name() == name)
      return &node;
  return nullptr;
}

const NodeDef *findOp(const GraphDef &graph, const std::string &op) {
  for (const NodeDef &node : graph.node())
    if (node.op() == op)
      return &node;
  return nullptr;
}

/// An argument for compile().
struct Arg {
  int32_t dtype = LATHE_FLOAT32;
  std::vector<int64_t> dims;
  const void *data = nullptr;
  bool isVariable = false;
};

struct Compiled {
  lathe_compiled c = {};
  int32_t code = 0;
  std::string error;
  ~Compiled() { lathe::getClusterCompiler()->release_compiled(lathe::getClusterCompiler()->context, &c); }
};

void compile(const GraphDef &graph, const std::string &function, const std::vector<Arg> &args, Compiled &out,
             bool dynamic = false, const char *cacheDir = nullptr) {
  std::vector<lathe_cluster_arg> list;
  std::vector<const lathe_cluster_arg *> pointers;
  for (const Arg &a : args)
    list.push_back({sizeof(lathe_cluster_arg), a.dtype, int32_t(a.dims.size()), a.isVariable, a.dims.data(), a.data, 0});
  for (const lathe_cluster_arg &a : list)
    pointers.push_back(&a);
  std::string bytes = graph.SerializeAsString();
  lathe_compile_request request = {sizeof(request), int32_t(args.size()), {bytes.data(), bytes.size()},
                                   function.c_str(), pointers.data(), 1, dynamic, cacheDir};
  lathe_bytes message = {};
  out.code = lathe::getClusterCompiler()->compile(lathe::getClusterCompiler()->context, &request, &out.c, &message);
  out.error = text(message);
}

/// Runs the one entry of a module without run-time sizes.
int32_t run(const lathe_module &m, std::vector<const void *> inputs, std::vector<void *> outputs,
            std::vector<void *> variables = {}) {
  const lathe_entry &e = *m.entries[0];
  EXPECT_EQ(size_t(e.num_inputs), inputs.size());
  EXPECT_EQ(size_t(e.num_outputs), outputs.size());
  EXPECT_EQ(size_t(m.num_variables), variables.size());
  std::vector<char> workspace(size_t(e.workspace_size(nullptr, 1)) + 64);
  auto at = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
  lathe_run_args args = {};
  args.struct_size = sizeof(args);
  args.threads = 1;
  args.inputs = inputs.data();
  args.outputs = outputs.data();
  args.variables = variables.data();
  args.workspace = reinterpret_cast<void *>(at);
  args.workspace_size = int64_t(workspace.size()) - 64;
  return e.run(&args);
}

const char *const kArgs = R"(
  node { name: "x" op: "_Arg" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } }
  node { name: "y" op: "_Arg" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 1 } } }
)";

TEST(Cluster, OneClusterFromArgumentsToResult) {
  GraphDef graph = parse(std::string(kArgs) + R"(
    node { name: "sum" op: "AddV2" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "product" op: "Mul" input: "sum" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "out" op: "_Retval" input: "product" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } })");
  Clustering c;
  c.targets = {"out"};
  GraphDef clustered = cluster(graph, c);
  const NodeDef *launch = findOp(clustered, "LatheLaunch");
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->input_size(), 2);
  EXPECT_EQ(clustered.node_size(), 4);
  EXPECT_EQ(find(clustered, "out")->input(0), launch->name());
  ASSERT_EQ(clustered.library().function_size(), 1);

  Compiled compiled;
  compile(clustered, launch->attr().at("function").func().name(), {{LATHE_FLOAT32, {2}}, {LATHE_FLOAT32, {2}}}, compiled);
  ASSERT_EQ(compiled.code, 0) << compiled.error;
  const lathe_module &m = *compiled.c.module;
  EXPECT_STREQ(m.entries[0]->inputs[0]->name, "arg0");
  EXPECT_STREQ(m.entries[0]->inputs[1]->name, "arg1");
  float x[2] = {1, 2}, y[2] = {3, 5}, z[2];
  ASSERT_EQ(run(m, {x, y}, {z}), 0);
  EXPECT_EQ(z[0], 12);
  EXPECT_EQ(z[1], 35);
}

const char *const kVariable = R"(
  node { name: "x" op: "_Arg" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } }
  node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape { dim { size: 2 } } } } attr { key: "shared_name" value { s: "v" } } }
  node { name: "read" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "sum" op: "AddV2" input: "read" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "update" op: "AssignAddVariableOp" input: "v" input: "sum" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "after" op: "ReadVariableOp" input: "v" input: "^update" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "out" op: "_Retval" input: "after" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } }
)";

TEST(Cluster, VariablesAreReadAndUpdatedInPlace) {
  Clustering c;
  c.targets = {"out"};
  GraphDef clustered = cluster(parse(kVariable), c);
  const NodeDef *launch = findOp(clustered, "LatheLaunch");
  ASSERT_TRUE(launch);
  ASSERT_EQ(launch->input_size(), 2);
  EXPECT_EQ(launch->input(0), "x");
  EXPECT_EQ(launch->input(1), "v");
  EXPECT_EQ(launch->attr().at("variables").i(), 1);
  EXPECT_TRUE(launch->attr().at("reads").list().b(0));
  EXPECT_FALSE(launch->attr().at("writes").list().b(0));

  Compiled compiled;
  compile(clustered, launch->attr().at("function").func().name(),
          {{LATHE_FLOAT32, {2}}, {LATHE_FLOAT32, {2}, nullptr, true}}, compiled);
  ASSERT_EQ(compiled.code, 0) << compiled.error;
  EXPECT_STREQ(compiled.c.module->variables[0]->tensor->name, "arg1");
  float x[2] = {1, 2}, v[2] = {10, 20}, z[2];
  ASSERT_EQ(run(*compiled.c.module, {x}, {z}, {v}), 0);
  EXPECT_EQ(v[0], 21);
  EXPECT_EQ(v[1], 42);
  EXPECT_EQ(z[1], 42);
}

TEST(Cluster, TargetsKeepTheirNames) {
  GraphDef graph = parse(kVariable);
  Clustering c;
  c.targets = {"update", "out"};
  GraphDef clustered = cluster(graph, c);
  const NodeDef *update = find(clustered, "update");
  ASSERT_TRUE(update);
  EXPECT_EQ(update->op(), "NoOp");
  EXPECT_EQ(update->input(0), "^" + findOp(clustered, "LatheLaunch")->name());
}

TEST(Cluster, FetchesKeepTheirNames) {
  GraphDef graph = parse(std::string(kArgs) + R"(
    node { name: "sum" op: "AddV2" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "moments" op: "Unpack" input: "sum" attr { key: "T" value { type: DT_FLOAT } } attr { key: "num" value { i: 2 } } })");
  Clustering c;
  c.feeds = {"x:0"};
  c.fetches = {"sum:0", "moments:1"};
  GraphDef clustered = cluster(graph, c);
  EXPECT_EQ(find(clustered, "sum")->op(), "Identity");
  EXPECT_EQ(find(clustered, "moments")->op(), "IdentityN");
  EXPECT_EQ(find(clustered, "moments")->input_size(), 2);
}

TEST(Cluster, HostOpsSplitClusters) {
  GraphDef graph = parse(std::string(kArgs) + R"(
    node { name: "a" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "s" op: "AsString" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "n" op: "StringToNumber" input: "s" attr { key: "out_type" value { type: DT_FLOAT } } }
    node { name: "b" op: "AddV2" input: "a" input: "n" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "out" op: "_Retval" input: "b" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } })");
  Clustering c;
  c.targets = {"out"};
  GraphDef clustered = cluster(graph, c);
  EXPECT_EQ(clustered.library().function_size(), 2);
  EXPECT_TRUE(find(clustered, "s"));
  EXPECT_FALSE(find(clustered, "a"));
}

const char *const kReshape = R"(
  node { name: "x" op: "_Arg" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } }
  node { name: "shape" op: "_Arg" attr { key: "T" value { type: DT_INT32 } } attr { key: "index" value { i: 1 } } }
  node { name: "labels" op: "_Arg" attr { key: "T" value { type: DT_INT32 } } attr { key: "index" value { i: 2 } } }
  node { name: "r" op: "Reshape" input: "x" input: "shape" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tshape" value { type: DT_INT32 } } }
  node { name: "n" op: "Neg" input: "labels" attr { key: "T" value { type: DT_INT32 } } }
  node { name: "o0" op: "_Retval" input: "r" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } }
  node { name: "o1" op: "_Retval" input: "n" attr { key: "T" value { type: DT_INT32 } } attr { key: "index" value { i: 1 } } }
)";

TEST(Compile, FixesOnlyTheValuesThatItNeeds) {
  Clustering c;
  c.targets = {"o0", "o1"};
  GraphDef clustered = cluster(parse(kReshape), c);
  const NodeDef *launch = findOp(clustered, "LatheLaunch");
  ASSERT_TRUE(launch);
  std::map<std::string, Arg> byName;
  int32_t shape[2] = {2, 3}, labels[1] = {7};
  byName["x"] = {LATHE_FLOAT32, {6}};
  byName["shape"] = {LATHE_INT32, {2}, shape};
  byName["labels"] = {LATHE_INT32, {1}, labels};
  std::vector<Arg> args;
  for (const std::string &input : launch->input())
    args.push_back(byName[input]);
  std::string function = launch->attr().at("function").func().name();
  Compiled compiled;
  compile(clustered, function, args, compiled);
  ASSERT_EQ(compiled.code, 0) << compiled.error;
  for (int i = 0; i < launch->input_size(); ++i)
    EXPECT_EQ(compiled.c.constant[i] != 0, launch->input(i) == "shape") << launch->input(i);
  // another value is another module, the same value the same one
  Compiled same, other;
  compile(clustered, function, args, same);
  EXPECT_EQ(same.c.module, compiled.c.module);
  int32_t otherShape[2] = {3, 2};
  for (Arg &arg : args)
    if (arg.data == shape)
      arg.data = otherShape;
  compile(clustered, function, args, other);
  ASSERT_EQ(other.code, 0) << other.error;
  EXPECT_NE(other.c.module, compiled.c.module);
}

TEST(Compile, FixesTheSameOperandOfAllNodesAndNoData) {
  const char *type = " attr { key: \"T\" value { type: DT_FLOAT } }", *shapeType = " attr { key: \"Tshape\" value { type: DT_INT32 } }";
  auto argument = [](const std::string &name, const char *kind, int index) {
    return "node { name: \"" + name + "\" op: \"_Arg\" attr { key: \"T\" value { type: " + kind + " } } attr { key: \"index\" value { i: " + std::to_string(index) + " } } }\n";
  };
  // rows that `ids` chooses, reshaped by more shapes than there are attempts, at last as `ids` is
  std::string nodes = argument("x", "DT_FLOAT", 0) + argument("ids", "DT_INT32", 1) + R"(
    node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
    node { name: "rows" op: "GatherV2" input: "x" input: "ids" input: "zero" attr { key: "Tparams" value { type: DT_FLOAT } } attr { key: "Tindices" value { type: DT_INT32 } } attr { key: "Taxis" value { type: DT_INT32 } } }
    node { name: "size" op: "Shape" input: "ids" attr { key: "T" value { type: DT_INT32 } } attr { key: "out_type" value { type: DT_INT32 } } }
)";
  std::string last = "rows";
  const int count = 24;
  for (int i = 0; i < count; ++i) {
    std::string shape = i + 1 < count ? "s" + std::to_string(i) : "size", next = "r" + std::to_string(i);
    if (i + 1 < count)
      nodes += argument(shape, "DT_INT32", 2 + i);
    nodes += "node { name: \"" + next + "\" op: \"Reshape\" input: \"" + last + "\" input: \"" + shape + "\"" + type + shapeType + " }\n";
    last = next;
  }
  nodes += "node { name: \"out\" op: \"_Retval\" input: \"" + last + "\"" + type + " attr { key: \"index\" value { i: 0 } } }\n";
  Clustering c;
  c.targets = {"out"};
  GraphDef clustered = cluster(parse(nodes), c);
  const NodeDef *launch = findOp(clustered, "LatheLaunch");
  ASSERT_TRUE(launch);
  int32_t ids[2] = {1, 0}, shapes[count][2];
  std::vector<Arg> args;
  for (const std::string &input : launch->input()) {
    int i = args.size();
    shapes[i][0] = i % 2 ? 1 : 2, shapes[i][1] = i % 2 ? 2 : 1;
    args.push_back(input == "x" ? Arg{LATHE_FLOAT32, {2}} : input == "ids" ? Arg{LATHE_INT32, {2}, ids} : Arg{LATHE_INT32, {2}, shapes[i]});
  }
  Compiled compiled;
  compile(clustered, launch->attr().at("function").func().name(), args, compiled);
  ASSERT_EQ(compiled.code, 0) << compiled.error;
  for (int i = 0; i < launch->input_size(); ++i)
    EXPECT_EQ(compiled.c.constant[i] != 0, launch->input(i)[0] == 's') << launch->input(i);
}

TEST(Compile, FailuresNameTheNode) {
  GraphDef graph = parse(std::string(kArgs) + R"(
    node { name: "p" op: "MatMul" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "out" op: "_Retval" input: "p" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } })");
  Clustering c;
  c.targets = {"out"};
  GraphDef clustered = cluster(graph, c);
  Compiled compiled;
  compile(clustered, findOp(clustered, "LatheLaunch")->attr().at("function").func().name(),
          {{LATHE_FLOAT32, {2, 3}}, {LATHE_FLOAT32, {4, 5}}}, compiled);
  EXPECT_EQ(compiled.code, LATHE_INVALID_ARGUMENT);
  ASSERT_TRUE(compiled.c.failed_node);
  EXPECT_STREQ(compiled.c.failed_node, "p");
  EXPECT_NE(compiled.error.find("node 'p' (MatMul)"), std::string::npos) << compiled.error;
  // no value had a part in it
  ASSERT_TRUE(compiled.c.constant);
  EXPECT_EQ(compiled.c.constant[0] + compiled.c.constant[1], 0);
}

TEST(Compile, LeadingSizesMayStayOpen) {
  GraphDef graph = parse(std::string(kArgs) + R"(
    node { name: "sum" op: "AddV2" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "out" op: "_Retval" input: "sum" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } })");
  Clustering c;
  c.targets = {"out"};
  GraphDef clustered = cluster(graph, c);
  Compiled compiled;
  compile(clustered, findOp(clustered, "LatheLaunch")->attr().at("function").func().name(),
          {{LATHE_FLOAT32, {4, 3}}, {LATHE_FLOAT32, {4, 3}}}, compiled, true);
  ASSERT_EQ(compiled.code, 0) << compiled.error;
  EXPECT_TRUE(compiled.c.dynamic[0]);
  EXPECT_LT(compiled.c.module->entries[0]->inputs[0]->dims[0], 0);
}

TEST(Compile, ObjectsAreKeptInAFolder) {
  std::string folder = ::testing::TempDir() + "lathe-jit-" + std::to_string(getpid());
  GraphDef graph = parse(std::string(kArgs) + R"(
    node { name: "kept" op: "AddV2" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "out" op: "_Retval" input: "kept" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } })");
  Clustering c;
  c.targets = {"out"};
  GraphDef clustered = cluster(graph, c);
  Compiled compiled;
  compile(clustered, findOp(clustered, "LatheLaunch")->attr().at("function").func().name(),
          {{LATHE_FLOAT32, {5}}, {LATHE_FLOAT32, {5}}}, compiled, false, folder.c_str());
  ASSERT_EQ(compiled.code, 0) << compiled.error;
  size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().extension(), ".jit");
    ++files;
  }
  EXPECT_EQ(files, 1u);

  // another cache in the place of another process
  std::vector<std::string> values;
  std::string key;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    key = entry.path().stem().string();
  key = key.substr(0, key.rfind('-'));
  auto all = [](const std::vector<std::string> &, const std::vector<uint8_t> &) { return true; };
  lathe::CompiledObject object;
  EXPECT_TRUE(lathe::DiskCache(folder).load(key, 2, all, object, values));
  EXPECT_FALSE(object.object.empty());
  // files that were cut or changed are no objects
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file.put('x');
  }
  EXPECT_FALSE(lathe::DiskCache(folder).load(key, 2, all, object, values));
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    std::filesystem::resize_file(entry.path(), 100);
  EXPECT_FALSE(lathe::DiskCache(folder).load(key, 2, all, object, values));
  std::filesystem::remove_all(folder);
}

TEST(Cluster, BadGraphsAreErrors) {
  GraphDef graph = parse(R"(node { name: "a" op: "Neg" input: "b" attr { key: "T" value { type: DT_FLOAT } } })");
  std::string error;
  cluster(graph, {}, &error);
  EXPECT_NE(error.find("'b' does not exist"), std::string::npos) << error;
  graph = parse(R"(node { name: "a" op: "NoSuchOp" })");
  cluster(graph, {}, &error);
  EXPECT_NE(error.find("unknown op type"), std::string::npos) << error;
}

} // namespace
