// Calls with tensors: everything about sizes and memory happens in prepare(), run() is the bare call.
#include "compiler/jit/Jit.h"
#include <cstring>

using namespace llvm;

namespace lathe {

LoadedModule::~LoadedModule() = default;

int LoadedModule::findEntry(StringRef name) const {
  for (int i = 0; i < module->num_entries; ++i)
    if (name == module->entries[i]->name)
      return i;
  return -1;
}

Error LoadedModule::bindWeights(const void *data, uint64_t size) {
  if (!module->bind_weights)
    return createStringError("the module has its weights inside");
  if (module->bind_weights(data, size) != 0)
    return createStringError("the weights do not belong to this module");
  return Error::success();
}

void *const *LoadedModule::variables() {
  if (variablePointers.empty() && module->num_variables > 0) {
    auto *constants =
        static_cast<const char *>(module->bound_weights ? *module->bound_weights : module->constants);
    for (int i = 0; i < module->num_variables; ++i) {
      const lathe_variable_info &info = *module->variables[i];
      const lathe_tensor_info &t = *info.tensor;
      variableTensors.push_back(
          Tensor::allocate(static_cast<DType>(t.dtype), std::vector<int64_t>(t.dims, t.dims + t.rank)));
      Tensor &v = variableTensors.back();
      if (info.initial_offset >= 0 && constants)
        std::memcpy(v.data(), constants + info.initial_offset, v.sizeBytes());
      variablePointers.push_back(v.data());
    }
  }
  return variablePointers.data();
}

struct ModuleRunner::Impl {
  std::shared_ptr<LoadedModule> module;
  const lathe_entry *entry;
  lathe_run_args args = {};
  lathe_error error = {};
  std::vector<int64_t> sizes, dims;
  std::vector<Tensor> inputs, outputs;
  std::vector<const void *> inputPointers;
  std::vector<void *> outputPointers;
  Tensor workspace;

  const lathe_module &abi() const { return module->abi(); }
};

ModuleRunner::ModuleRunner(std::shared_ptr<LoadedModule> module, int entry) : impl(new Impl) {
  impl->entry = module->abi().entries[entry];
  impl->module = std::move(module);
  impl->args.struct_size = sizeof(lathe_run_args);
  impl->args.threads = 1;
  impl->args.error = &impl->error;
  impl->error.struct_size = sizeof(lathe_error);
}
ModuleRunner::~ModuleRunner() = default;
ModuleRunner::ModuleRunner(ModuleRunner &&) noexcept = default;

const lathe_entry &ModuleRunner::entry() const { return *impl->entry; }

void ModuleRunner::setParallelFor(lathe_parallel_for fn, void *ctx, int threads) {
  impl->args.parallel_for = threads > 1 ? fn : nullptr;
  impl->args.parallel_ctx = ctx;
  impl->args.threads = threads;
}

void ModuleRunner::setTrace(lathe_trace fn, void *ctx) {
  impl->args.trace = fn;
  impl->args.trace_ctx = ctx;
}

static std::string describeDims(const std::vector<int64_t> &dims) { return dimsToString(dims); }

Error ModuleRunner::prepare(ArrayRef<Tensor> inputs) {
  Impl &s = *impl;
  const lathe_entry &e = *s.entry;
  if (inputs.size() != static_cast<size_t>(e.num_inputs))
    return createStringError("expected " + std::to_string(e.num_inputs) + " inputs, got " +
                             std::to_string(inputs.size()));
  // Symbols first, from the dimensions that are a symbol; then all dimensions are compared.
  size_t symbols = s.abi().num_symbols;
  s.sizes.assign(symbols, -1);
  size_t numDims = 0;
  auto problem = [&](const lathe_tensor_info &info, const std::string &what) {
    return createStringError("input '" + std::string(info.name) + "': " + what);
  };
  for (int i = 0; i < e.num_inputs; ++i) {
    const lathe_tensor_info &info = *e.inputs[i];
    const Tensor &t = inputs[i];
    if (static_cast<int32_t>(dtypeCarrier(t.dtype())) != info.dtype)
      return problem(info, std::string("expected ") + dtypeName(static_cast<DType>(info.dtype)) + ", got " +
                               dtypeName(t.dtype()));
    if (t.rank() != info.rank)
      return problem(info, "expected rank " + std::to_string(info.rank) + ", got " + describeDims(t.dims()));
    numDims += info.rank;
    for (int d = 0; d < info.rank; ++d) {
      int64_t dim = info.dims[d];
      if (dim < 0 && dim != LATHE_DIM_COMPUTED && s.sizes[-1 - dim] < 0)
        s.sizes[-1 - dim] = t.dim(d);
    }
  }
  for (size_t k = 0; k < symbols; ++k) {
    const lathe_symbol_info &symbol = *s.abi().symbols[k];
    if (symbol.is_data)
      continue;
    if (s.sizes[k] < 0)
      s.sizes[k] = 0; // used by another entry only
    if (symbol.bound >= 0 && s.sizes[k] > symbol.bound)
      return createStringError("size '" + std::string(symbol.name) + "' is " + std::to_string(s.sizes[k]) +
                               ", more than its bound " + std::to_string(symbol.bound));
  }
  e.bound_sizes(s.sizes.data());
  for (int i = 0; i < e.num_outputs; ++i)
    numDims += e.outputs[i]->rank;
  s.dims.assign(numDims + 1, 0);
  e.dims(s.sizes.data(), s.dims.data());
  const int64_t *d = s.dims.data();
  for (int i = 0; i < e.num_inputs; ++i) {
    const lathe_tensor_info &info = *e.inputs[i];
    std::vector<int64_t> want(d, d + info.rank);
    d += info.rank;
    if (inputs[i].dims() != want)
      return problem(info, "expected shape " + describeDims(want) + ", got " + describeDims(inputs[i].dims()));
  }
  int64_t bytes = e.workspace_size(s.sizes.data(), s.args.threads);
  if (bytes < 0)
    return createStringError("a run-time size is out of range");
  constexpr int64_t limit = int64_t(1) << 46;
  std::vector<Tensor> outputs;
  for (int i = 0; i < e.num_outputs; ++i) {
    const lathe_tensor_info &info = *e.outputs[i];
    auto t = Tensor::tryAllocate(static_cast<DType>(info.dtype), std::vector<int64_t>(d, d + info.rank), limit);
    if (!t.ok())
      return createStringError("output '" + std::string(info.name) + "': " + std::string(t.status().message()));
    outputs.push_back(std::move(*t));
    d += info.rank;
  }
  if (!s.workspace.valid() || s.workspace.sizeBytes() < bytes) {
    auto w = Tensor::tryAllocate(DType::UInt8, {bytes}, limit);
    if (!w.ok())
      return createStringError("workspace: " + std::string(w.status().message()));
    s.workspace = std::move(*w);
  }
  s.inputs.assign(inputs.begin(), inputs.end());
  s.outputs = std::move(outputs);
  s.inputPointers.clear();
  s.outputPointers.clear();
  for (const Tensor &t : s.inputs)
    s.inputPointers.push_back(t.data());
  for (Tensor &t : s.outputs)
    s.outputPointers.push_back(t.data());
  s.args.inputs = s.inputPointers.data();
  s.args.outputs = s.outputPointers.data();
  s.args.variables = s.module->variables();
  s.args.sizes = s.sizes.data();
  s.args.workspace = s.workspace.data();
  s.args.workspace_size = bytes;
  return Error::success();
}

Error ModuleRunner::run() {
  int32_t code = impl->entry->run(&impl->args);
  if (code == 0)
    return Error::success();
  return createStringError(impl->error.message ? impl->error.message : "the module failed");
}

std::vector<Tensor> ModuleRunner::outputs() const {
  const Impl &s = *impl;
  bool anyData = false;
  for (int k = 0; k < s.abi().num_symbols; ++k)
    anyData |= s.abi().symbols[k]->is_data != 0;
  if (!anyData)
    return s.outputs;
  // dense content of the real size lies at the start of the buffer
  std::vector<int64_t> dims(s.dims.size());
  s.entry->dims(s.sizes.data(), dims.data());
  const int64_t *d = dims.data();
  for (int i = 0; i < s.entry->num_inputs; ++i)
    d += s.entry->inputs[i]->rank;
  std::vector<Tensor> result;
  for (int i = 0; i < s.entry->num_outputs; ++i) {
    int32_t rank = s.entry->outputs[i]->rank;
    const Tensor &t = s.outputs[i];
    result.push_back(
        Tensor::wrap(t.dtype(), std::vector<int64_t>(d, d + rank), const_cast<void *>(t.data()), t.owner()));
    d += rank;
  }
  return result;
}

Expected<std::vector<Tensor>> ModuleRunner::call(ArrayRef<Tensor> inputs) {
  if (Error e = prepare(inputs))
    return std::move(e);
  if (Error e = run())
    return std::move(e);
  std::vector<Tensor> result;
  for (const Tensor &t : outputs())
    result.push_back(t.clone());
  return result;
}

} // namespace lathe
