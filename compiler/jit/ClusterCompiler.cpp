#include "compiler/jit/ClusterCompiler.h"

#include "compiler/export/ExportGraph.h"
#include "compiler/import/Structure.h"
#include "compiler/jit/ClusterDump.h"
#include "compiler/jit/ClusterFlags.h"
#include "compiler/jit/CompileCache.h"
#include "compiler/jit/CompileCluster.h"
#include "compiler/jit/Jit.h"
#include "compiler/support/Diagnostics.h"
#include "passes/cluster/Passes.h"
#include "passes/legalize/Legalize.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

#include <cstdlib>
#include <cstring>

using llvm::StringRef;

namespace lathe {
namespace {

/// What release_compiled deletes.
struct Held {
  std::shared_ptr<const LoadedCluster> cluster;
  std::string failedNode;
  std::vector<uint8_t> constant; ///< of a compilation that failed
};

void giveBytes(lathe_bytes *out, StringRef text) {
  if (!out)
    return;
  char *data = static_cast<char *>(std::malloc(text.size() + 1));
  if (!data) {
    *out = {nullptr, 0};
    return;
  }
  std::memcpy(data, text.data(), text.size());
  data[text.size()] = 0;
  *out = {data, text.size()};
}

int32_t giveError(lathe_bytes *error, int32_t code, StringRef message) {
  giveBytes(error, message);
  return code;
}

void releaseBytes(void *, lathe_bytes *bytes) {
  std::free(const_cast<char *>(bytes->data));
  *bytes = {nullptr, 0};
}

//===----------------------------------------------------------------------===//
// cluster
//===----------------------------------------------------------------------===//

int32_t clusterGraph(void *, const lathe_cluster_request *request, lathe_bytes *out, lathe_bytes *error) {
  auto source = std::make_shared<tf::GraphDef>();
  if (request->graph.size > INT32_MAX ||
      !source->ParseFromArray(request->graph.data, static_cast<int>(request->graph.size)))
    return giveError(error, LATHE_INVALID_ARGUMENT, "the graph does not parse");
  cluster::ClusteringOptions options;
  const lathe_cluster_options &o = *request->options;
  options.mode = static_cast<cluster::ClusteringMode>(o.mode);
  if (o.min_size > 0)
    options.minSize = static_cast<unsigned>(o.min_size);
  for (int32_t i = 0; i < o.num_host_ops; ++i)
    options.hostOps.push_back(o.host_ops[i]);
  std::string dump, problem;
  for (const char *flags : {static_cast<const char *>(std::getenv("LATHE_FLAGS")), o.flags})
    if (flags && !parseClusterFlags(flags, options, dump, problem))
      return giveError(error, LATHE_INVALID_ARGUMENT, problem);
  GraphUse use;
  use.feeds.assign(request->feeds, request->feeds + request->num_feeds);
  use.fetches.assign(request->fetches, request->fetches + request->num_fetches);
  use.targets.assign(request->targets, request->targets + request->num_targets);

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  CollectedDiagnostics diagnostics(context);
  auto failed = [&] {
    std::string text = diagnostics.text();
    return giveError(error, LATHE_INVALID_ARGUMENT, text.empty() ? "clustering failed without a message" : text);
  };
  auto module = importStructure(&context, *source, use);
  if (mlir::failed(module))
    return failed();
  mlir::PassManager pm(&context);
  cluster::buildClusteringPipeline(pm, options);
  if (mlir::failed(pm.run(**module)))
    return failed();
  llvm::Expected<tf::GraphDef> result = exportGraph(**module, *source);
  if (!result)
    return giveError(error, LATHE_INTERNAL, llvm::toString(result.takeError()));
  if (!dump.empty())
    dumpClusters(dump, *result, **module);
  std::string bytes;
  if (!result->SerializeToString(&bytes))
    return giveError(error, LATHE_RESOURCE_EXHAUSTED, "the clustered graph is too large");
  giveBytes(out, bytes);
  return LATHE_OK;
}

//===----------------------------------------------------------------------===//
// compile
//===----------------------------------------------------------------------===//

int32_t compile(void *context, const lathe_compile_request *request, lathe_compiled *compiled, lathe_bytes *error) {
  CompileCache &cache = *static_cast<CompileCache *>(context);
  auto held = std::make_unique<Held>();
  compiled->struct_size = sizeof(lathe_compiled);
  compiled->module = nullptr;
  compiled->constant = compiled->dynamic = nullptr;
  compiled->failed_node = nullptr;
  compiled->device = nullptr;
  compiled->num_args = request->num_args;
  CompileFailure failure;
  held->cluster = cache.get(*request, failure);
  int32_t code = LATHE_OK;
  if (held->cluster) {
    compiled->module = &held->cluster->module->abi();
    compiled->device = held->cluster->module->deviceModule();
    compiled->constant = held->cluster->constant.data();
    compiled->dynamic = held->cluster->dynamic.data();
  } else {
    held->failedNode = failure.failedNode;
    held->constant = std::move(failure.constant);
    held->constant.resize(request->num_args);
    compiled->constant = held->constant.data();
    if (!held->failedNode.empty())
      compiled->failed_node = held->failedNode.c_str();
    code = giveError(error, failure.code, failure.message);
  }
  compiled->owner = held.release();
  return code;
}

void releaseCompiled(void *, lathe_compiled *compiled) {
  delete static_cast<Held *>(compiled->owner);
  compiled->owner = nullptr;
  compiled->module = nullptr;
  compiled->device = nullptr;
}

} // namespace

bool parseClusterFlags(StringRef text, cluster::ClusteringOptions &options, std::string &dump, std::string &error) {
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ';', -1, false);
  for (StringRef part : parts) {
    auto [key, value] = part.trim().split('=');
    llvm::SmallVector<StringRef> names;
    value.split(names, ',', -1, false);
    std::vector<std::string> *list = key == "force"     ? &options.force
                                     : key == "forbid"  ? &options.forbid
                                     : key == "isolate" ? &options.isolate
                                                        : nullptr;
    if (list) {
      for (StringRef name : names)
        list->push_back(name.trim().str());
    } else if (key == "dump") {
      dump = value.str();
    } else if (key == "background") {
      // the session's
    } else {
      error = "unknown flag '" + key.str() + "' (there are force, forbid, isolate, dump and background)";
      return false;
    }
  }
  return true;
}

static int32_t compilesOp(void *, const char *op) { return op && legalize::hasHandler(op); }

const lathe_cluster_compiler *getClusterCompiler() {
  // never destroyed: modules that are on a device could only be unloaded there while the driver is, which ends in an order of its own
  static auto *cache = new CompileCache;
  static const lathe_cluster_compiler table = {sizeof(lathe_cluster_compiler),
                                               LATHE_CLUSTER_COMPILER_VERSION,
                                               cache,
                                               clusterGraph,
                                               compile,
                                               releaseCompiled,
                                               releaseBytes,
                                               compilesOp};
  return &table;
}

} // namespace lathe
