#include "compiler/jit/CompileCache.h"

#include "compiler/jit/DiskCache.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

using llvm::StringRef;

namespace lathe {
namespace {

/// Map fields in a fixed order, which the default serialisation does not promise.
std::string serialize(const google::protobuf::MessageLite &message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

int64_t argBytes(const lathe_cluster_arg &arg) {
  int64_t n = static_cast<int64_t>(dtypeSize(static_cast<DType>(arg.dtype)));
  for (int32_t d = 0; d < arg.rank; ++d)
    n *= arg.dims[d];
  return n;
}

StringRef argValue(const lathe_cluster_arg &arg) {
  return arg.data && arg.rank >= 0 ? StringRef(static_cast<const char *>(arg.data), static_cast<size_t>(argBytes(arg)))
                                   : StringRef();
}

/// Whether a variant's fixed values are those of the request.
bool holds(const LoadedCluster &cluster, const lathe_compile_request &request) {
  for (int32_t i = 0; i < request.num_args; ++i)
    if (cluster.constant[i] && StringRef(cluster.values[i]) != argValue(*request.args[i]))
      return false;
  return true;
}

/// A text at the end of a request. Sessions that were built before requests had it have shorter ones.
StringRef textOf(const lathe_compile_request &request, const char *const &field, StringRef otherwise) {
  auto end = static_cast<uint32_t>(reinterpret_cast<const char *>(&field + 1) - reinterpret_cast<const char *>(&request));
  return request.struct_size >= end && field ? StringRef(field) : otherwise;
}

StringRef cpuOf(const lathe_compile_request &request) { return textOf(request, request.cpu, "host"); }
StringRef backendOf(const lathe_compile_request &request) { return textOf(request, request.backend, ""); }

/// What a request says, but for the values of its arguments.
std::string requestKeyOf(const lathe_compile_request &request) {
  llvm::BLAKE3 hash;
  auto number = [&](int64_t value) {
    hash.update(StringRef(reinterpret_cast<const char *>(&value), sizeof(value)));
  };
  auto text = [&](StringRef value) {
    number(static_cast<int64_t>(value.size()));
    hash.update(value);
  };
  text(StringRef(request.graph.data, request.graph.size));
  text(request.function);
  text(cpuOf(request));
  text(backendOf(request));
  number(request.threads);
  number(request.dynamic_dims);
  number(request.num_args);
  for (int32_t i = 0; i < request.num_args; ++i) {
    const lathe_cluster_arg &arg = *request.args[i];
    bool hasSame = arg.struct_size >= sizeof(lathe_cluster_arg);
    for (int64_t value : {int64_t(arg.dtype), int64_t(arg.rank), int64_t(arg.is_variable),
                          int64_t(hasSame ? arg.same_as : 0)})
      number(value);
    for (int32_t d = 0; d < arg.rank; ++d)
      number(arg.dims[d]);
  }
  return llvm::toHex(hash.final<16>(), true);
}

std::string keyOf(const LaunchGraph &cluster, const lathe_compile_request &request) {
  llvm::BLAKE3 hash;
  auto number = [&](int64_t value) {
    hash.update(StringRef(reinterpret_cast<const char *>(&value), sizeof(value)));
  };
  std::string bytes = serialize(cluster.graph);
  number(static_cast<int64_t>(bytes.size()));
  hash.update(bytes);
  for (const auto *list : {&cluster.results, &cluster.targets}) {
    number(static_cast<int64_t>(list->size()));
    for (const std::string &name : *list) {
      number(static_cast<int64_t>(name.size()));
      hash.update(name);
    }
  }
  // dtypes and sizes are in the graph's nodes, but for sizes that are left open
  number(request.threads);
  number(request.dynamic_dims);
  for (const std::string &text : {buildIdentity(), cpuOf(request).str(), backendOf(request).str()}) {
    number(static_cast<int64_t>(text.size()));
    hash.update(text);
  }
  return llvm::toHex(hash.final<16>(), true);
}

llvm::Expected<std::shared_ptr<LoadedCluster>> loadCluster(const CompiledObject &object, const std::vector<std::string> &values) {
  auto module = loadObject(object.object, object.prefix);
  if (!module)
    return module.takeError();
  auto loaded = std::make_shared<LoadedCluster>();
  loaded->module = *module;
  loaded->constant = object.constant;
  loaded->dynamic = object.dynamic;
  loaded->values = values;
  return loaded;
}

} // namespace

std::shared_ptr<const LoadedCluster> CompileCache::get(const lathe_compile_request &request, CompileFailure &failure) {
  failure.code = LATHE_INVALID_ARGUMENT;
  llvm::ArrayRef<const lathe_cluster_arg *> args(request.args, static_cast<size_t>(request.num_args));
  for (const lathe_cluster_arg *arg : args)
    if (arg->rank > 0 && !arg->dims) {
      failure.message = "an argument has no sizes";
      return nullptr;
    }
  std::string requestKey = requestKeyOf(request);
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (auto known = keys.find(requestKey); known != keys.end())
      for (const auto &variant : entries[known->second].variants)
        if (holds(*variant, request))
          return variant;
  }
  tf::GraphDef library;
  if (request.graph.size > INT32_MAX ||
      !library.ParseFromArray(request.graph.data, static_cast<int>(request.graph.size))) {
    failure.message = "the graph does not parse";
    return nullptr;
  }
  llvm::Expected<LaunchGraph> cluster = buildLaunchGraph(library, request.function, args);
  if (!cluster) {
    failure.message = llvm::toString(cluster.takeError());
    return nullptr;
  }
  std::string key = keyOf(*cluster, request);

  std::unique_lock<std::mutex> lock(mutex);
  keys[requestKey] = key;
  Entry &entry = entries[key]; // entries are never erased, and std::map keeps them in place
  auto find = [&]() -> std::shared_ptr<const LoadedCluster> {
    for (const auto &variant : entry.variants)
      if (holds(*variant, request))
        return variant;
    return nullptr;
  };
  for (;;) {
    if (auto found = find())
      return found;
    if (!entry.busy)
      break;
    changed.wait(lock);
  }
  entry.busy = true;
  lock.unlock();

  DiskCache disk(cacheFolder(request.cache_dir));
  CompiledObject object;
  std::vector<std::string> values(args.size());
  auto matches = [&](const std::vector<std::string> &stored, const std::vector<uint8_t> &constant) {
    for (size_t i = 0; i < args.size(); ++i)
      if (constant[i] && StringRef(stored[i]) != argValue(*args[i]))
        return false;
    return true;
  };
  std::shared_ptr<LoadedCluster> loaded;
  if (disk.load(key, args.size(), matches, object, values)) {
    // a file whose object cannot be linked is as good as none
    if (auto stored = loadCluster(object, values)) {
      loaded = *std::move(stored);
    } else {
      llvm::consumeError(stored.takeError());
      disk.drop(key);
    }
  }
  if (!loaded) {
    ClusterCompileOptions options;
    options.threads = std::max(1, request.threads);
    options.dynamicDims = request.dynamic_dims != 0;
    options.cpu = cpuOf(request).str();
    options.backend = backendOf(request).str();
    object = {};
    if (compileCluster(*cluster, args, options, object, failure)) {
      values.assign(args.size(), "");
      for (size_t i = 0; i < args.size(); ++i)
        if (object.constant[i])
          values[i] = argValue(*args[i]).str();
      if (auto made = loadCluster(object, values)) {
        disk.store(key, object, values);
        loaded = *std::move(made);
      } else {
        failure.code = LATHE_INTERNAL;
        failure.message = llvm::toString(made.takeError());
      }
    }
  }
  lock.lock();
  entry.busy = false;
  if (loaded)
    entry.variants.push_back(loaded);
  changed.notify_all();
  return loaded;
}

} // namespace lathe
