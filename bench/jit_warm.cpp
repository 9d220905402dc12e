// jit_warm GRAPH.pb CACHE_DIR FETCH... [--feed NAME=DTYPE:AxB]...: how long a session's compiler takes from a graph to code
// that runs, with the disk cache as it is. Prints milliseconds of clustering, and of compiling or loading all clusters.
#include "compiler/jit/ClusterCompiler.h"
#include "proto/graph.pb.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

/// Time of this thread's CPU, which a busy machine does not stretch, and by the wall, in milliseconds.
struct Clock {
  double cpu, wall;
  static Clock now() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    auto wall = std::chrono::steady_clock::now().time_since_epoch();
    return {double(t.tv_sec) * 1e3 + double(t.tv_nsec) / 1e6, std::chrono::duration<double, std::milli>(wall).count()};
  }
};
Clock since(Clock start) {
  Clock end = Clock::now();
  return {end.cpu - start.cpu, end.wall - start.wall};
}

struct Feed {
  int32_t dtype;
  std::vector<int64_t> dims;
  std::vector<char> data;
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: jit_warm GRAPH.pb CACHE_DIR FETCH... [--feed NAME=DTYPE:AxB]...\n");
    return 1;
  }
  std::ifstream file(argv[1], std::ios::binary);
  std::string graph((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> fetches;
  std::map<std::string, Feed> feeds;
  for (int i = 3; i < argc; ++i) {
    if (std::strcmp(argv[i], "--feed") || i + 1 == argc) {
      fetches.push_back(argv[i]);
      continue;
    }
    std::string text = argv[++i];
    size_t equals = text.find('='), colon = text.find(':', equals);
    Feed feed;
    feed.dtype = std::atoi(text.substr(equals + 1, colon - equals - 1).c_str());
    std::stringstream dims(text.substr(colon + 1));
    int64_t n = 1;
    for (std::string dim; std::getline(dims, dim, 'x');) {
      feed.dims.push_back(std::atoll(dim.c_str()));
      n *= feed.dims.back();
    }
    feed.data.assign(static_cast<size_t>(n) * 8, 0);
    feeds[text.substr(0, equals)] = feed;
  }
  const lathe_cluster_compiler &compiler = *lathe::getClusterCompiler();
  std::vector<const char *> feedNames, fetchNames;
  std::vector<std::string> feedTensors;
  for (auto &[name, feed] : feeds)
    feedTensors.push_back(name + ":0");
  for (const std::string &name : feedTensors)
    feedNames.push_back(name.c_str());
  for (const std::string &name : fetches)
    fetchNames.push_back(name.c_str());
  const char *hostOps[] = {"Assert", "Const", "Identity", "NoOp", "Placeholder"};
  lathe_cluster_options options = {sizeof(options), 1, 0, 5, hostOps, nullptr};
  lathe_cluster_request request = {};
  request.struct_size = sizeof(request);
  request.graph = {graph.data(), graph.size()};
  request.num_feeds = static_cast<int32_t>(feedNames.size());
  request.feeds = feedNames.data();
  request.num_fetches = static_cast<int32_t>(fetchNames.size());
  request.fetches = fetchNames.data();
  request.options = &options;
  lathe_bytes clustered = {}, error = {};
  auto start = Clock::now();
  if (compiler.cluster(compiler.context, &request, &clustered, &error)) {
    std::fprintf(stderr, "%s\n", error.data);
    return 1;
  }
  Clock clustering = since(start);
  lathe::tf::GraphDef result;
  result.ParseFromArray(clustered.data, static_cast<int>(clustered.size));
  Clock compiling = {0, 0};
  int launches = 0;
  for (const auto &node : result.node()) {
    if (node.op() != "LatheLaunch")
      continue;
    std::vector<lathe_cluster_arg> args;
    for (const std::string &input : node.input()) {
      auto feed = feeds.find(input);
      if (input[0] == '^')
        continue;
      if (feed == feeds.end()) {
        std::fprintf(stderr, "'%s' is not fed\n", input.c_str());
        return 1;
      }
      const Feed &f = feed->second;
      args.push_back({sizeof(lathe_cluster_arg), f.dtype, static_cast<int32_t>(f.dims.size()), 0, f.dims.data(), f.data.data(), 0});
    }
    std::vector<const lathe_cluster_arg *> pointers;
    for (const lathe_cluster_arg &arg : args)
      pointers.push_back(&arg);
    lathe_compile_request compile = {};
    compile.struct_size = sizeof(compile);
    compile.num_args = static_cast<int32_t>(args.size());
    compile.graph = clustered;
    std::string function = node.attr().at("function").func().name();
    compile.function = function.c_str();
    compile.args = pointers.data();
    compile.threads = 1;
    compile.cache_dir = argv[2];
    lathe_compiled compiled = {};
    start = Clock::now();
    int32_t code = compiler.compile(compiler.context, &compile, &compiled, &error);
    Clock took = since(start);
    compiling.cpu += took.cpu;
    compiling.wall += took.wall;
    ++launches;
    if (code) {
      std::fprintf(stderr, "%s\n", error.data);
      return 1;
    }
    start = Clock::now();
    lathe_compiled again = {};
    compiler.compile(compiler.context, &compile, &again, &error);
    std::printf("a hit in memory: %.3f ms of CPU\n", since(start).cpu);
  }
  std::printf("{\"cluster_ms\": %.2f, \"compile_ms\": %.2f, \"cluster_cpu_ms\": %.2f, \"compile_cpu_ms\": %.2f, \"clusters\": %d}\n",
              clustering.wall, compiling.wall, clustering.cpu, compiling.cpu, launches);
  return 0;
}
