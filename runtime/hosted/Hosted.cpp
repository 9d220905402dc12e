// Instances of hosted objects: the executor of sessions over a graph that was made when compiling.
#include "runtime/abi/module_abi.h"
#include "runtime/abi/hosted_abi.h"

#include "runtime/cpu/ThreadPool.h"
#include "runtime/device.h"
#include "runtime/hosted/Devices.h"
#include "runtime/hosted/Graph.h"
#include "runtime/session/DeviceValues.h"
#include "runtime/session/ModuleCall.h"
#include "runtime/session/Step.h"

#include "absl/strings/str_cat.h"

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>

using namespace lathe;
using namespace lathe::rt;

namespace {

/// Where the compiled parts of an instance run, if not on the host.
struct Place {
  std::unique_ptr<Device> device; ///< null: on the host, or none could be had
  std::unique_ptr<DeviceRuns> runs;
  absl::Status status; ///< why none could
};

/// A compiled cluster as a kernel.
class ClusterKernel : public HostKernel {
public:
  ClusterKernel(const lathe_module *module, int entry, void *const *variables, const IntraOp &intraOp, const Place &place)
      : call(module, entry), variables(variables), intraOp(intraOp), place(place) {}
  absl::Status compute(KernelContext &context) override {
    if (!place.status.ok())
      return place.status;
    std::vector<Tensor> values;
    std::vector<const Tensor *> inputs;
    for (int i = 0; i < context.numInputs(); ++i)
      values.push_back(context.input(i));
    for (const Tensor &t : values)
      inputs.push_back(&t);
    std::vector<Tensor> results;
    if (static_cast<int>(inputs.size()) != call.entry().num_inputs)
      return absl::InternalError("the cluster takes another number of inputs");
    if (absl::Status s = call.run(inputs, variables, intraOp, &results, place.device.get(), place.runs.get()); !s.ok())
      return s;
    if (static_cast<int>(results.size()) != context.numOutputs())
      return absl::InternalError("the cluster gives another number of results");
    for (size_t i = 0; i < results.size(); ++i)
      context.setOutput(static_cast<int>(i), std::move(results[i]));
    return absl::OkStatus();
  }

private:
  const ModuleCall call;
  void *const *const variables; ///< of the instance; launches that use them run one after the other
  const IntraOp intraOp;
  const Place &place; ///< of the instance
};

struct Entry {
  std::string name;
  bool once = false;
  std::vector<HostedTensor> inputs, outputs;
  std::vector<lathe_hosted_info> inputInfos, outputInfos;
  std::shared_ptr<const Executable> executable;
};

std::vector<lathe_hosted_info> infosOf(const std::vector<HostedTensor> &tensors) {
  std::vector<lathe_hosted_info> infos;
  for (const HostedTensor &t : tensors)
    infos.push_back({sizeof(lathe_hosted_info), static_cast<int32_t>(t.dtype), t.shape ? static_cast<int32_t>(t.shape->size()) : -1, 0,
                     t.name.c_str(), t.tensor.c_str(), t.shape ? t.shape->data() : nullptr});
  return infos;
}

absl::StatusOr<Tensor> readTensor(const lathe_host_tensor &from, const HostedTensor &info) {
  auto bad = [&](const std::string &what) { return absl::InvalidArgumentError(absl::StrCat("input '", info.name, "': ", what)); };
  if (from.dtype != static_cast<int32_t>(info.dtype))
    return bad(absl::StrCat("expected type ", dtypeName(info.dtype)));
  if (from.rank < 0 || from.rank > 254 || (from.rank > 0 && !from.dims))
    return bad("has no shape");
  std::vector<int64_t> dims(from.dims, from.dims + from.rank);
  if (!isCompatible(info.shape, dims))
    return bad(absl::StrCat("expected shape ", shapeToString(info.shape), ", got ", dimsToString(dims)));
  auto made = Tensor::tryAllocate(info.dtype, dims, kMaxTensorBytes);
  if (!made.ok())
    return bad(std::string(made.status().message()));
  if (made->numElements() > 0 && !from.data)
    return bad("has no data");
  if (info.dtype == DType::String) {
    auto *texts = static_cast<const lathe_host_string *>(from.data);
    for (int64_t i = 0; i < made->numElements(); ++i)
      made->mutableStrings()[static_cast<size_t>(i)].assign(texts[i].data ? texts[i].data : "", texts[i].data ? texts[i].size : 0);
  } else if (made->sizeBytes()) {
    std::memcpy(made->data(), from.data, static_cast<size_t>(made->sizeBytes()));
  }
  return made;
}

std::atomic<int64_t> steps{1};

} // namespace

struct lathe_hosted {
  explicit lathe_hosted(int32_t threads) : intraOp(std::max(1, threads)) {
    if (threads > 1) {
      pool = std::make_unique<WorkerPool>(threads);
      parallel = {ThreadPool::parallelFor, &intraOp, threads};
    }
  }

  absl::Status load(const lathe_hosted_module &module, int32_t device);
  absl::Status choosePlace(const lathe_hosted_module &module, int32_t device);
  absl::Status makeVariables(const lathe_module &clusters);
  absl::Status run(const Entry &entry, std::vector<Tensor> args);
  int32_t finish(const absl::Status &status) {
    error = std::string(status.message());
    code = static_cast<int32_t>(status.code());
    return code;
  }

  std::unique_ptr<WorkerPool> pool;
  ThreadPool intraOp;
  IntraOp parallel;
  Place place; ///< first: what lies there goes before it
  ResourceManager resources;
  std::vector<Tensor> variableTensors;
  std::vector<void *> variables; ///< of the compiled parts
  std::vector<Entry> entries;
  bool usable = false;
  std::string error;
  int32_t code = 0;
  std::vector<Tensor> results;
  std::vector<std::vector<lathe_host_string>> texts; ///< of results
  std::vector<lathe_host_tensor> views;
};

/// A device that cannot be had is an error of the runs that come to a compiled part.
absl::Status lathe_hosted::choosePlace(const lathe_hosted_module &module, int32_t device) {
  if (module.struct_size <= offsetof(lathe_hosted_module, devices) || !module.device || !module.devices) {
    if (device == 0)
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("device ", device, ": the object was not compiled for devices"));
  }
  auto made = static_cast<const HostedDevices *>(module.devices)->make(device);
  if (!made.ok()) {
    place.status = made.status();
    return absl::OkStatus();
  }
  place.device = *std::move(made);
  place.runs = place.device->prepareRuns(*module.device());
  return absl::OkStatus();
}

absl::Status lathe_hosted::makeVariables(const lathe_module &clusters) {
  for (int i = 0; i < clusters.num_variables; ++i) {
    const lathe_variable_info &info = *clusters.variables[i];
    int64_t bytes = info.tensor->element_size;
    for (int d = 0; d < info.tensor->rank; ++d)
      bytes *= info.tensor->dims[d];
    auto memory = Tensor::tryAllocate(DType::UInt8, {bytes}, kMaxTensorBytes);
    if (!memory.ok())
      return memory.status();
    if (info.initial_offset >= 0 && bytes)
      std::memcpy(memory->data(), static_cast<const char *>(clusters.constants) + info.initial_offset, static_cast<size_t>(bytes));
    if (place.device)
      if (memory = place.device->memory()->fromHost(*memory); !memory.ok())
        return memory.status();
    variables.push_back(memory->data());
    variableTensors.push_back(*std::move(memory));
  }
  return absl::OkStatus();
}

absl::Status lathe_hosted::load(const lathe_hosted_module &module, int32_t device) {
  if (module.version != LATHE_HOSTED_VERSION)
    return absl::FailedPreconditionError("the object was made for another version of liblathe_host");
  const lathe_module *clusters = module.clusters ? module.clusters() : nullptr;
  if (clusters) {
    if (absl::Status s = choosePlace(module, device); !s.ok())
      return s;
    if (absl::Status s = makeVariables(*clusters); !s.ok())
      return s;
  }
  auto read = readHostedGraph(module.graph, module.graph_size);
  if (!read.ok())
    return read.status();
  for (HostedEntry &from : *read) {
    Entry entry;
    entry.name = std::move(from.name);
    entry.once = from.once;
    entry.inputs = std::move(from.inputs);
    entry.outputs = std::move(from.outputs);
    auto made = Executable::make(std::move(from.graph), [&](const NodeInfo &node) -> absl::StatusOr<std::shared_ptr<HostKernel>> {
      if (node.op == kLaunchOp) {
        const auto *wanted = attrOf<std::string>(node, "entry");
        for (int i = 0; wanted && clusters && i < clusters->num_entries; ++i)
          if (*wanted == clusters->entries[i]->name)
            return std::shared_ptr<HostKernel>(std::make_shared<ClusterKernel>(clusters, i, variables.data(), parallel, place));
        return absl::InvalidArgumentError("the object has no such cluster");
      }
      KernelInit init(node, &resources, nullptr);
      auto kernel = makeKernel(init);
      if (!kernel.ok())
        return kernel.status();
      return std::shared_ptr<HostKernel>(*std::move(kernel));
    });
    if (!made.ok())
      return made.status();
    entry.executable = *std::move(made);
    entries.push_back(std::move(entry));
  }
  for (Entry &entry : entries) { // the texts have their places now
    entry.inputInfos = infosOf(entry.inputs);
    entry.outputInfos = infosOf(entry.outputs);
  }
  usable = true;
  for (const Entry &entry : entries)
    if (entry.once)
      if (absl::Status s = run(entry, {}); !s.ok()) {
        usable = false;
        return s;
      }
  return absl::OkStatus();
}

absl::Status lathe_hosted::run(const Entry &entry, std::vector<Tensor> args) {
  results.clear();
  views.clear();
  texts.clear();
  SimpleCallFrame frame;
  frame.args = std::move(args);
  frame.results.resize(entry.outputs.size());
  ResourceManager stepResources;
  Cancellation cancellation;
  StepOptions o;
  o.pool = pool.get();
  o.device = place.device.get();
  o.resources = &resources;
  o.stepResources = &stepResources;
  o.cancellation = &cancellation;
  o.stepId = steps.fetch_add(1, std::memory_order_relaxed);
  Step step(entry.executable, o, frame);
  std::mutex mutex;
  std::condition_variable signal;
  bool isDone = false;
  absl::Status status;
  step.start([&](absl::Status s) {
    std::lock_guard<std::mutex> lock(mutex);
    status = std::move(s);
    isDone = true;
    signal.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  signal.wait(lock, [&] { return isDone; });
  if (status.ok() && place.device)
    status = bringToHost(frame.results);
  if (place.device) // also what failed leaves work there, which a failure of the device itself may be among
    if (absl::Status over = place.device->memory()->settle(); status.ok())
      status = over;
  if (!status.ok())
    return status;
  results = std::move(frame.results);
  texts.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor &t = results[i];
    if (!t.valid() || t.dtype() == DType::Resource || t.dtype() == DType::Variant) {
      results.clear();
      views.clear();
      return absl::InvalidArgumentError(absl::StrCat("output '", entry.outputs[i].name, "' has no value that a program can read"));
    }
    const void *data = t.data();
    if (t.dtype() == DType::String) {
      for (const std::string &s : t.strings())
        texts[i].push_back({s.data(), s.size()});
      data = texts[i].data();
    }
    views.push_back({sizeof(lathe_host_tensor), static_cast<int32_t>(t.dtype()), static_cast<int32_t>(t.rank()), 0, t.dims().data(), data});
  }
  return absl::OkStatus();
}

static const Entry *entryAt(const lathe_hosted *model, int32_t entry) {
  return model && entry >= 0 && entry < static_cast<int32_t>(model->entries.size()) ? &model->entries[static_cast<size_t>(entry)] : nullptr;
}

extern "C" {

lathe_hosted *lathe_hosted_new(const lathe_hosted_module *module, int32_t threads) { return lathe_hosted_new_on(module, threads, 0); }

lathe_hosted *lathe_hosted_new_on(const lathe_hosted_module *module, int32_t threads, int32_t device) {
  auto *model = new (std::nothrow) lathe_hosted(std::min(threads, 256));
  if (model)
    model->finish(model->load(*module, device));
  return model;
}

void lathe_hosted_delete(lathe_hosted *model) { delete model; }

const char *lathe_hosted_error(const lathe_hosted *model) { return model ? model->error.c_str() : "out of memory"; }

int32_t lathe_hosted_code(const lathe_hosted *model) { return model ? model->code : LATHE_RESOURCE_EXHAUSTED; }

int32_t lathe_hosted_num_entries(const lathe_hosted *model) { return static_cast<int32_t>(model->entries.size()); }

const char *lathe_hosted_entry_name(const lathe_hosted *model, int32_t entry) {
  const Entry *e = entryAt(model, entry);
  return e ? e->name.c_str() : nullptr;
}

int32_t lathe_hosted_num_inputs(const lathe_hosted *model, int32_t entry) {
  const Entry *e = entryAt(model, entry);
  return e ? static_cast<int32_t>(e->inputs.size()) : 0;
}

int32_t lathe_hosted_num_outputs(const lathe_hosted *model, int32_t entry) {
  const Entry *e = entryAt(model, entry);
  return e ? static_cast<int32_t>(e->outputs.size()) : 0;
}

const lathe_hosted_info *lathe_hosted_input(const lathe_hosted *model, int32_t entry, int32_t index) {
  const Entry *e = entryAt(model, entry);
  return e && index >= 0 && index < static_cast<int32_t>(e->inputInfos.size()) ? &e->inputInfos[static_cast<size_t>(index)] : nullptr;
}

const lathe_hosted_info *lathe_hosted_output(const lathe_hosted *model, int32_t entry, int32_t index) {
  const Entry *e = entryAt(model, entry);
  return e && index >= 0 && index < static_cast<int32_t>(e->outputInfos.size()) ? &e->outputInfos[static_cast<size_t>(index)] : nullptr;
}

int32_t lathe_hosted_run(lathe_hosted *model, int32_t entry, const lathe_host_tensor *const *inputs, int32_t numInputs) {
  const Entry *e = entryAt(model, entry);
  if (!model || (!model->usable && model->code))
    return lathe_hosted_code(model); // why it cannot run stays
  if (!e)
    return model->finish(absl::InvalidArgumentError("there is no such entry"));
  if (numInputs != static_cast<int32_t>(e->inputs.size()))
    return model->finish(absl::InvalidArgumentError(absl::StrCat("entry '", e->name, "' takes ", e->inputs.size(), " inputs, got ", numInputs)));
  std::vector<Tensor> args;
  for (int32_t i = 0; i < numInputs; ++i) {
    auto t = inputs[i] ? readTensor(*inputs[i], e->inputs[static_cast<size_t>(i)])
                       : absl::InvalidArgumentError(absl::StrCat("input '", e->inputs[static_cast<size_t>(i)].name, "' is not set"));
    if (!t.ok())
      return model->finish(t.status());
    args.push_back(*std::move(t));
  }
  return model->finish(model->run(*e, std::move(args)));
}

const lathe_host_tensor *lathe_hosted_result(const lathe_hosted *model, int32_t index) {
  return model && index >= 0 && index < static_cast<int32_t>(model->views.size()) ? &model->views[static_cast<size_t>(index)] : nullptr;
}

} // extern "C"
