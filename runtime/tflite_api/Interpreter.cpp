#include "runtime/tflite_api/HostGraph.h"

#include "proto/tflite_generated.h"
#include "runtime/session/CompilerLibrary.h"
#include "runtime/tflite_api/Delegates.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

namespace lathe::tflite_api {

void Reporter::report(const absl::Status &status) const {
  const std::string text(status.message());
  auto call = [](decltype(function) f, void *user, const char *format, ...) {
    va_list args;
    va_start(args, format);
    f(user, format, args);
    va_end(args);
  };
  if (function)
    call(function, user, "%s", text.c_str());
  else
    std::fprintf(stderr, "ERROR: %s\n", text.c_str());
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Slot::Slot(const Port &port) : port(port) {
  tensor.type = port.type;
  tensor.name = port.tensor.c_str();
  tensor.params = port.quantization;
  // strings have as many bytes as they need, in memory that the program may replace (TfLiteTensorRealloc)
  tensor.allocation_type = port.type == kTfLiteString ? kTfLiteDynamic : kTfLiteArenaRw;
  tensor.buffer_handle = kTfLiteNullBufferHandle;
  if (!port.signature.empty()) {
    TfLiteIntArray *signature = TfLiteIntArrayCreate(static_cast<int>(port.signature.size()));
    std::copy(port.signature.begin(), port.signature.end(), signature->data);
    tensor.dims_signature = signature;
  }
  std::vector<int64_t> dims(port.dims.begin(), port.dims.end());
  (void)resize(dims.data(), static_cast<int>(dims.size()));
}

Slot::~Slot() {
  if (tensor.allocation_type == kTfLiteDynamic)
    std::free(tensor.data.data);
  std::free(memory);
  TfLiteIntArrayFree(const_cast<TfLiteIntArray *>(tensor.dims_signature));
}

absl::Status Slot::resize(const int64_t *dims, int rank) {
  int64_t bytes = static_cast<int64_t>(elementSize(port.type));
  for (int i = 0; i < rank; ++i)
    if (dims[i] < 0 || dims[i] > INT32_MAX || __builtin_mul_overflow(bytes, dims[i], &bytes))
      return absl::InvalidArgumentError(absl::StrCat("tensor '", port.tensor, "': bad size ", dims[i]));
  sizes.assign(sizeof(TfLiteIntArray) + sizeof(int) * static_cast<size_t>(rank), 0);
  tensor.dims = reinterpret_cast<TfLiteIntArray *>(sizes.data());
  tensor.dims->size = rank;
  for (int i = 0; i < rank; ++i)
    tensor.dims->data[i] = static_cast<int>(dims[i]);
  if (port.type != kTfLiteString)
    tensor.bytes = static_cast<size_t>(bytes);
  return absl::OkStatus();
}

absl::Status Slot::use(void *data, size_t bytes, bool checked) {
  if (!data)
    return absl::InvalidArgumentError(absl::StrCat("there is no memory for tensor '", port.tensor, "'"));
  if (checked && reinterpret_cast<uintptr_t>(data) % LATHE_ALIGNMENT)
    return absl::InvalidArgumentError(absl::StrCat("memory for tensor '", port.tensor, "' is not aligned to ", LATHE_ALIGNMENT, " bytes"));
  given = data;
  givenBytes = bytes;
  tensor.allocation_type = kTfLiteCustom;
  tensor.data.data = bytes < tensor.bytes ? nullptr : given;
  return absl::OkStatus();
}

absl::Status Slot::allocate(size_t bytes) {
  if (tensor.allocation_type == kTfLiteDynamic) {
    if (bytes != tensor.bytes && TfLiteTensorRealloc(bytes, &tensor) != kTfLiteOk)
      return absl::ResourceExhaustedError(absl::StrCat("out of memory for tensor '", port.tensor, "' of ", bytes, " bytes"));
    return absl::OkStatus();
  }
  if (given) {
    tensor.data.data = given;
    return bytes <= givenBytes ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("the program's memory for tensor '", port.tensor, "' is too small"));
  }
  if (!memory || bytes > capacity) {
    std::free(memory);
    memory = nullptr;
    const size_t rounded = (std::max<size_t>(bytes, 1) + LATHE_ALIGNMENT - 1) / LATHE_ALIGNMENT * LATHE_ALIGNMENT;
    if (posix_memalign(&memory, LATHE_ALIGNMENT, rounded) != 0) {
      memory = nullptr;
      tensor.data.data = nullptr;
      return absl::ResourceExhaustedError(absl::StrCat("out of memory for tensor '", port.tensor, "' of ", bytes, " bytes"));
    }
    std::memset(memory, 0, rounded);
    capacity = rounded;
  }
  tensor.data.data = memory;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Subgraphs
//===----------------------------------------------------------------------===//

Runner::Runner(Interpreter &owner, const Callable &callable) : owner(owner), callable(callable) {
  for (const Port &port : callable.inputs)
    inputs.push_back(std::make_unique<Slot>(port));
  for (const Port &port : callable.outputs)
    outputs.push_back(std::make_unique<Slot>(port));
}

absl::Status Runner::resizeInput(size_t i, const int *given, int rank) {
  if (i >= inputs.size())
    return absl::InvalidArgumentError(absl::StrCat("there is no input ", i));
  if (rank < 0 || (rank > 0 && !given))
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " has no sizes"));
  std::vector<int64_t> wanted(given, given + rank);
  const TfLiteIntArray &now = *inputs[i]->tensor.dims;
  if (rank == now.size && std::equal(wanted.begin(), wanted.end(), now.data))
    return absl::OkStatus();
  if (absl::Status s = inputs[i]->resize(wanted.data(), rank); !s.ok())
    return s;
  inputs[i]->forget();
  isAllocated = false;
  owner.isStale = true;
  return absl::OkStatus();
}

absl::Status Runner::allocate() {
  if (owner.hosted.empty()) {
    if (!owner.isStale && isAllocated)
      return absl::OkStatus();
    absl::Status s = owner.isStale ? owner.compile() : absl::OkStatus();
    // operators that do not compile as they stand here may still have a kernel
    if (s.ok() || owner.isPart || !owner.hostNamed(std::string(s.message())))
      return s.ok() ? bind(*owner.loaded.module) : s;
  }
  const size_t number = owner.numberOf(callable);
  absl::Status s = owner.hosted[number]->allocate(*this);
  while (!s.ok() && owner.hostMore(number, owner.hosted[number]->refused()))
    s = owner.hosted[number]->allocate(*this);
  isAllocated = s.ok();
  return s;
}

absl::Status Runner::bind(const lathe_module &module) {
  // One entry is called main; several have their signatures' keys, made symbols, in the order of the file.
  entry = nullptr;
  size_t at = 0;
  for (const Callable &c : owner.file->callables) {
    if (&c == &callable && at < static_cast<size_t>(module.num_entries))
      entry = module.entries[at];
    ++at;
  }
  if (!entry || entry->num_inputs + fixed.size() != inputs.size() || entry->num_outputs != static_cast<int>(outputs.size()))
    return absl::InternalError("the compiled model has other inputs and outputs than its file");
  sizes.assign(static_cast<size_t>(module.num_symbols) + 1, 0);
  int numDims = 0;
  for (int i = 0; i < entry->num_inputs; ++i)
    numDims += entry->inputs[i]->rank;
  for (int i = 0; i < entry->num_outputs; ++i)
    numDims += entry->outputs[i]->rank;
  dims.assign(static_cast<size_t>(numDims) + 1, 0);
  entry->bound_sizes(sizes.data());
  entry->dims(sizes.data(), dims.data());
  const int64_t *d = dims.data();
  int next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (fixed.count(i))
      continue;
    const lathe_tensor_info &info = *entry->inputs[next++];
    const TfLiteIntArray &is = *inputs[i]->tensor.dims;
    if (info.rank != is.size || !std::equal(is.data, is.data + is.size, d))
      return absl::InternalError(absl::StrCat("input '", info.name, "' was compiled for another shape"));
    d += is.size;
    if (absl::Status s = inputs[i]->allocate(inputs[i]->tensor.bytes); !s.ok())
      return s;
  }
  for (int i = 0; i < entry->num_outputs; ++i) {
    absl::Status s = outputs[i]->resize(d, entry->outputs[i]->rank);
    if (s.ok())
      s = outputs[i]->allocate(outputs[i]->tensor.bytes);
    if (!s.ok())
      return s;
    d += entry->outputs[i]->rank;
  }
  scratchBytes = entry->workspace_size(sizes.data(), owner.pool ? owner.pool->threads() : 1);
  if (scratchBytes < 0 || scratchBytes > INT64_C(1) << 40)
    return absl::InvalidArgumentError("a size is out of range");
  workspace.assign(static_cast<size_t>(scratchBytes) + LATHE_ALIGNMENT, 0);
  auto address = reinterpret_cast<uintptr_t>(workspace.data());
  scratch = reinterpret_cast<void *>((address + LATHE_ALIGNMENT - 1) / LATHE_ALIGNMENT * LATHE_ALIGNMENT);
  isAllocated = true;
  return absl::OkStatus();
}

absl::Status Runner::invoke() {
  if (!isAllocated)
    return absl::FailedPreconditionError("tensors are not allocated: call AllocateTensors first");
  if (!owner.hosted.empty()) {
    const size_t number = owner.numberOf(callable);
    // parts behind a node are compiled when its sizes are known; where one does not, those before it have run, and run again
    std::map<std::string, std::vector<char>> before;
    if (owner.hosted[number]->hasLateParts())
      before = owner.shared->variables;
    absl::Status s = owner.hosted[number]->invoke(*this);
    while (!s.ok() && owner.hostMore(number, owner.hosted[number]->refused())) {
      owner.shared->restore(before);
      s = owner.hosted[number]->allocate(*this);
      if (s.ok())
        s = owner.hosted[number]->invoke(*this);
    }
    return s;
  }
  std::vector<const void *> in;
  std::vector<void *> out;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!fixed.count(i))
      in.push_back(inputs[i]->tensor.data.data);
  for (auto &slot : outputs)
    out.push_back(slot->tensor.data.data);
  entry->bound_sizes(sizes.data());
  lathe_error error = {};
  error.struct_size = sizeof(error);
  lathe_run_args args = {};
  args.struct_size = sizeof(args);
  args.threads = owner.pool ? owner.pool->threads() : 1;
  args.inputs = in.data();
  args.outputs = out.data();
  args.variables = owner.variables.data();
  args.sizes = sizes.data();
  args.workspace = scratch;
  args.workspace_size = scratchBytes;
  args.parallel_for = owner.pool ? ThreadPool::parallelFor : nullptr;
  args.parallel_ctx = owner.pool.get();
  args.error = &error;
  if (int32_t code = entry->run(&args))
    return absl::Status(static_cast<absl::StatusCode>(code), error.message ? error.message : "the model failed");
  // sizes that depend on data
  entry->dims(sizes.data(), dims.data());
  const int64_t *d = dims.data();
  for (int i = 0; i < entry->num_inputs; ++i)
    d += entry->inputs[i]->rank;
  for (int i = 0; i < entry->num_outputs; ++i) {
    if (absl::Status s = outputs[i]->resize(d, entry->outputs[i]->rank); !s.ok())
      return s;
    d += entry->outputs[i]->rank;
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The compiled model
//===----------------------------------------------------------------------===//

Interpreter::Interpreter(std::shared_ptr<const Model> model, int threads, Reporter reporter, CompileOptions options, std::shared_ptr<SharedState> part)
    : file(std::move(model)), report(reporter), runners(file->callables.size()), compileOptions(std::move(options)), shared(std::move(part)),
      isPart(shared != nullptr) {
  if (threads > 1)
    pool = std::make_unique<ThreadPool>(threads);
}

Interpreter::~Interpreter() { release(); }

absl::Status Interpreter::host(const OperatorTable &given) {
  operators = given;
  return hosts();
}

absl::StatusOr<std::unique_ptr<HostGraph>> Interpreter::graphOf(size_t callable, bool always) {
  if (!shared)
    shared = std::make_shared<SharedState>();
  const unsigned subgraph = file->callables[callable].subgraph;
  return HostGraph::make(subgraph, {file, operators, pool ? pool->threads() : 1, report, compileOptions, shared}, apart[subgraph], always);
}

/// The graphs of all callables, where one of them has operators that are not compiled.
absl::Status Interpreter::hosts() {
  std::vector<std::unique_ptr<HostGraph>> graphs;
  bool any = false;
  for (size_t i = 0; i < file->callables.size(); ++i) {
    auto graph = graphOf(i, false);
    if (!graph.ok())
      return graph.status();
    any |= *graph != nullptr;
    graphs.push_back(*std::move(graph));
  }
  hosted.clear();
  if (!any)
    return absl::OkStatus();
  for (size_t i = 0; i < graphs.size(); ++i)
    if (!graphs[i]) {
      auto graph = graphOf(i, true);
      if (!graph.ok())
        return graph.status();
      graphs[i] = *std::move(graph);
    }
  for (auto &runner : runners)
    if (runner)
      runner->isAllocated = false;
  hosted = std::move(graphs);
  return absl::OkStatus();
}

/// Sets operators apart of a model that did not compile as a whole: those that a message names, else all of TensorFlow's own.
bool Interpreter::hostNamed(const std::string &why) {
  std::map<unsigned, tflgraph::CouldBe> could;
  bool named = false, any = false;
  NodeSession none;
  for (const Callable &c : file->callables) {
    auto &found = could[c.subgraph] =
        tflgraph::couldBe(GraphOps(*tfl::GetModel(file->data), c.subgraph, none).nodes, 0, UINT_MAX, why);
    named |= !found.named.empty();
  }
  for (auto &[subgraph, found] : could)
    any |= apart[subgraph].add(named ? found.named : tflgraph::Apart{found.flex, {}});
  return any && hosts().ok() && !hosted.empty();
}

/// Sets more operators of a graph apart; false where that changes nothing.
bool Interpreter::hostMore(size_t callable, const tflgraph::Apart &more) {
  if (!apart[file->callables[callable].subgraph].add(more))
    return false;
  auto graph = graphOf(callable, true);
  if (graph.ok())
    hosted[callable] = *std::move(graph);
  return graph.ok();
}

absl::Status Interpreter::prepareDelegate(TfLiteDelegate *delegate) {
  auto *d = reinterpret_cast<Delegate *>(delegate);
  const bool isOpaque = d && d->builder && d->builder->Prepare;
  if (!d || !(isOpaque || d->prepare))
    return absl::InvalidArgumentError(d ? "the delegate has no Prepare" : "there is no delegate");
  std::set<unsigned> seen;
  for (size_t i = 0; i < file->callables.size(); ++i) {
    if (!seen.insert(file->callables[i].subgraph).second)
      continue;
    HostGraph *graph = hosted.empty() ? shown[i].get() : hosted[i].get();
    if (!graph) {
      auto made = graphOf(i, true);
      if (!made.ok())
        return made.status();
      graph = (shown[i] = *std::move(made)).get(); // it keeps the context
    }
    TfLiteContext *context = graph->forDelegates();
    auto *opaque = reinterpret_cast<TfLiteOpaqueContext *>(context);
    const TfLiteStatus status = isOpaque ? d->builder->Prepare(opaque, delegate, d->builder->data) : d->prepare(context, delegate);
    if (status != kTfLiteOk)
      return absl::InternalError(absl::StrCat("the delegate's Prepare failed with status ", static_cast<int>(status),
                                              ": operators are compiled, and none is left to a delegate"));
  }
  return absl::OkStatus();
}

void Interpreter::release() {
  if (!loaded.owner)
    return;
  auto function = compilerFunction("lathe_release_model");
  if (function.ok())
    reinterpret_cast<lathe_release_model_fn>(*function)(&loaded);
  loaded = {};
}

Runner &Interpreter::of(size_t callable) {
  if (!runners[callable])
    runners[callable] = std::make_unique<Runner>(*this, file->callables[callable]);
  return *runners[callable];
}

Runner *Interpreter::main() {
  for (size_t i = 0; i < file->callables.size(); ++i)
    if (file->callables[i].subgraph == 0)
      return &of(i);
  return nullptr;
}

Runner *Interpreter::runner(const std::string &key) {
  for (size_t i = 0; i < file->callables.size(); ++i)
    if (file->hasSignatures && file->callables[i].key == key)
      return &of(i);
  return nullptr;
}

namespace {
/// Values of inputs as a request has them.
class FixedValues {
public:
  void add(const Slot &slot) {
    const TfLiteTensor &t = slot.tensor;
    dims.emplace_back(t.dims->data, t.dims->data + t.dims->size);
    lathe_cluster_arg &arg = args.emplace_back();
    arg.struct_size = sizeof(arg);
    arg.dtype = slot.port.dtype;
    arg.rank = t.dims->size;
    arg.dims = dims.back().data();
    arg.data = t.data.data;
    pointers.push_back(&arg);
    names.push_back(slot.port.tensor.c_str());
  }
  void putInto(lathe_load_request &request) const {
    request.num_values = static_cast<int32_t>(names.size());
    request.value_names = names.data();
    request.values = pointers.data();
  }

private:
  std::deque<std::vector<int64_t>> dims;
  std::deque<lathe_cluster_arg> args;
  std::vector<const lathe_cluster_arg *> pointers;
  std::vector<const char *> names;
};

int64_t variableBytes(const lathe_tensor_info &info) {
  int64_t bytes = info.element_size;
  for (int i = 0; i < info.rank; ++i)
    bytes *= std::max<int64_t>(info.dims[i], 0);
  return bytes;
}

/// Whether it is a tensor of a recurrent operator, not a variable of VAR_HANDLE.
bool isState(const lathe_tensor_info &variable) { return std::strncmp(variable.name, "state/", 6) == 0; }

/// Whether some operator keeps its state in a tensor.
bool hasStates(const Model &file) {
  for (const tfl::SubGraph *graph : *tfl::GetModel(file.data)->subgraphs())
    if (graph->tensors())
      for (const tfl::Tensor *tensor : *graph->tensors())
        if (tensor->is_variable())
          return true;
  return false;
}

/// The bytes of all variables by name.
std::map<std::string, std::string> valuesOf(const lathe_loaded_model &m) {
  std::map<std::string, std::string> values;
  for (int i = 0; m.module && i < m.module->num_variables; ++i) {
    const lathe_tensor_info &info = *m.module->variables[i]->tensor;
    values[info.name] = std::string(static_cast<const char *>(m.variables[i]), static_cast<size_t>(variableBytes(info)));
  }
  return values;
}
} // namespace

absl::Status Interpreter::compile() {
  auto table = loadClusterCompiler();
  if (!table.ok())
    return table.status();
  auto load = compilerFunction("lathe_load_model");
  if (!load.ok())
    return load.status();
  std::vector<std::string> texts{"threads", absl::StrCat(pool ? pool->threads() : 1)};
  for (auto &[name, value] : compileOptions) {
    texts.push_back(name);
    texts.push_back(value);
  }
  std::map<std::string, int> uses;
  for (const Callable &c : file->callables)
    for (const Port &p : c.inputs)
      ++uses[p.tensor];
  for (size_t i = 0; i < runners.size(); ++i)
    for (auto &slot : of(i).inputs) {
      const TfLiteIntArray &dims = *slot->tensor.dims;
      std::vector<int> now(dims.data, dims.data + dims.size);
      if (!slot->port.isOpen && now == slot->port.dims)
        continue;
      texts.push_back("input");
      texts.push_back(absl::StrCat(uses[slot->port.tensor] == 1 ? slot->port.tensor : slot->port.name, "=", absl::StrJoin(now, "x")));
    }
  std::vector<const char *> options;
  for (const std::string &t : texts)
    options.push_back(t.c_str());
  lathe_load_request request = {};
  request.struct_size = sizeof(request);
  request.num_options = static_cast<int32_t>(options.size() / 2);
  request.options = options.data();
  request.model = {static_cast<const char *>(file->data), file->size};
  FixedValues values;
  for (auto &runner : runners)
    for (size_t i : runner->fixed)
      values.add(*runner->inputs[i]);
  values.putInto(request);
  lathe_loaded_model fresh = {};
  fresh.struct_size = sizeof(fresh);
  lathe_bytes messages = {};
  const int32_t code = reinterpret_cast<lathe_load_model_fn>(*load)(&request, &fresh, &messages);
  std::string text = messages.data ? std::string(messages.data, messages.size) : "";
  (*table)->release_bytes((*table)->context, &messages);
  if (code != LATHE_OK)
    return absl::Status(static_cast<absl::StatusCode>(code), text);
  // variables keep their values when inputs are resized
  auto kept = valuesOf(loaded);
  for (int i = 0; i < fresh.module->num_variables; ++i) {
    const lathe_tensor_info &info = *fresh.module->variables[i]->tensor;
    auto at = kept.find(info.name);
    if (at != kept.end() && static_cast<int64_t>(at->second.size()) == variableBytes(info))
      std::memcpy(fresh.variables[i], at->second.data(), at->second.size());
  }
  release();
  loaded = fresh;
  // subgraphs whose inputs are as they were stay allocated
  std::vector<Runner *> ready;
  for (auto &runner : runners)
    if (std::exchange(runner->isAllocated, false))
      ready.push_back(runner.get());
  absl::Status s = shareVariables();
  for (Runner *runner : ready)
    if (s.ok())
      s = runner->bind(*loaded.module);
  isStale = !s.ok();
  return s;
}

/// Variables of VAR_HANDLE lie in memory that all parts share; the first part that has one gives its first value.
absl::Status Interpreter::shareVariables() {
  variables.assign(loaded.variables, loaded.variables + loaded.module->num_variables);
  for (size_t i = 0; isPart && i < variables.size(); ++i) {
    const lathe_tensor_info &info = *loaded.module->variables[i]->tensor;
    if (isState(info))
      continue;
    const auto bytes = static_cast<size_t>(variableBytes(info));
    auto [at, isNew] = shared->variables.try_emplace(info.name, bytes + LATHE_ALIGNMENT);
    if (at->second.size() != bytes + LATHE_ALIGNMENT)
      return absl::UnimplementedError(absl::StrCat("variable '", info.name, "' has other sizes in one part than in another"));
    const auto address = reinterpret_cast<uintptr_t>(at->second.data());
    auto *memory = reinterpret_cast<char *>((address + LATHE_ALIGNMENT - 1) / LATHE_ALIGNMENT * LATHE_ALIGNMENT);
    if (isNew && bytes)
      std::memcpy(memory, variables[i], bytes);
    variables[i] = memory;
  }
  return absl::OkStatus();
}

absl::Status Interpreter::resetVariables() {
  for (auto &graph : hosted)
    if (absl::Status s = graph->resetVariables(); !s.ok())
      return s;
  if (!hosted.empty())
    return absl::OkStatus();
  if (!loaded.module)
    return hasStates(*file) ? absl::FailedPreconditionError("tensors are not allocated") : absl::OkStatus();
  for (int i = 0; i < loaded.module->num_variables; ++i) {
    const lathe_variable_info &v = *loaded.module->variables[i];
    // those of VAR_HANDLE keep their values, as in an interpreter
    if (!isState(*v.tensor))
      continue;
    const size_t bytes = static_cast<size_t>(variableBytes(*v.tensor));
    if (v.initial_offset >= 0)
      std::memcpy(loaded.variables[i], static_cast<const char *>(loaded.module->constants) + v.initial_offset, bytes);
    else
      std::memset(loaded.variables[i], 0, bytes);
  }
  return absl::OkStatus();
}

} // namespace lathe::tflite_api
