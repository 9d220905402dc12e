#include "runtime/session/ModuleCall.h"

#include "runtime/core/Status.h"
#include "runtime/device.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdlib>

namespace lathe::rt {
namespace {

constexpr int64_t kMaxBytes = INT64_C(1) << 42;

/// Scratch that stays with its thread: steady state allocates nothing. Kernels of a module never start another module on the
/// same thread, so one is enough.
struct Workspace {
  Tensor memory;
  bool busy = false;
};
thread_local Workspace workspace;

/// Buffers of outputs that were dropped on this thread, by size: a caller that replaces the outputs of one run by those of the next
/// gets the same memory again, warm, and modules write every element, so nothing is cleared.
struct OutputBuffers {
  static constexpr size_t kMost = 16;
  static constexpr int64_t kLargest = INT64_C(1) << 21;
  struct Item {
    int64_t bytes = 0;
    void *data = nullptr;
  };
  Item items[kMost];
  size_t next = 0;
  ~OutputBuffers();
};
thread_local bool buffersEnded = false;
thread_local OutputBuffers outputBuffers;
OutputBuffers::~OutputBuffers() {
  buffersEnded = true;
  for (Item &item : items)
    std::free(item.data);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LATHE_PLAIN_BUFFERS 1
#endif
#endif

void dropBuffer(void *data, int64_t bytes) {
#ifdef LATHE_PLAIN_BUFFERS
  (void)bytes;
#else
  if (bytes <= OutputBuffers::kLargest && !buffersEnded) {
    OutputBuffers::Item &item = outputBuffers.items[outputBuffers.next++ % OutputBuffers::kMost];
    std::swap(item.data, data);
    item.bytes = bytes;
  }
#endif
  std::free(data);
}

absl::StatusOr<Tensor> makeOutput(DType type, std::vector<int64_t> dims, DeviceMemory *memory) {
  if (memory)
    return memory->allocate(type, std::move(dims));
  auto count = checkedNumElements(dims);
  if (!count.ok())
    return count.status();
  int64_t bytes;
  if (dtypeSize(type) == 0 || __builtin_mul_overflow(*count, static_cast<int64_t>(dtypeSize(type)), &bytes) || bytes > kMaxBytes)
    return absl::ResourceExhaustedError(absl::StrCat("an output of type ", dtypeName(type), " and shape ", dimsToString(dims), " is too large"));
  void *data = nullptr;
#ifndef LATHE_PLAIN_BUFFERS
  if (!buffersEnded)
    for (OutputBuffers::Item &item : outputBuffers.items)
      if (item.data && item.bytes == bytes) {
        std::swap(data, item.data);
        break;
      }
#endif
  if (!data && posix_memalign(&data, LATHE_ALIGNMENT, static_cast<size_t>(std::max<int64_t>(bytes, 1))) != 0)
    return absl::ResourceExhaustedError(absl::StrCat("out of memory for an output of ", bytes, " bytes"));
  return Tensor::wrap(type, std::move(dims), data, std::shared_ptr<void>(data, [bytes](void *p) { dropBuffer(p, bytes); }));
}

std::vector<int64_t> dimsOf(const int64_t *dims, int rank) { return std::vector<int64_t>(dims, dims + rank); }

} // namespace

absl::Status moduleStatus(int32_t code, const char *message) {
  return absl::Status(static_cast<absl::StatusCode>(code), message ? message : "the module failed");
}

ModuleCall::ModuleCall(const lathe_module *m, int entry) : module(m), e(m->entries[entry]) {
  for (int k = 0; k < m->num_symbols; ++k)
    hasDataSymbols |= m->symbols[k]->is_data != 0;
  for (int i = 0; i < e->num_inputs; ++i)
    numDims += e->inputs[i]->rank;
  outputDims = numDims;
  for (int i = 0; i < e->num_outputs; ++i)
    numDims += e->outputs[i]->rank;
}

absl::Status ModuleCall::solve(absl::Span<const Tensor *const> inputs, int64_t *sizes) const {
  for (int i = 0; i < e->num_inputs; ++i) {
    const lathe_tensor_info &info = *e->inputs[i];
    const Tensor &t = *inputs[i];
    if (static_cast<int32_t>(dtypeCarrier(t.dtype())) != info.dtype)
      return absl::InvalidArgumentError(absl::StrCat("input '", info.name, "' is of type ", dtypeName(t.dtype()), ", expected ",
                                                     dtypeName(static_cast<DType>(info.dtype))));
    if (t.rank() != info.rank)
      return absl::InvalidArgumentError(absl::StrCat("input '", info.name, "' has shape ", dimsToString(t.dims()), ", expected rank ",
                                                     info.rank));
    for (int d = 0; d < info.rank; ++d) {
      int64_t dim = info.dims[d];
      if (dim < 0 && dim != LATHE_DIM_COMPUTED && sizes[-1 - dim] < 0)
        sizes[-1 - dim] = t.dim(d);
    }
  }
  for (int k = 0; k < module->num_symbols; ++k) {
    const lathe_symbol_info &symbol = *module->symbols[k];
    if (symbol.is_data)
      continue;
    if (sizes[k] < 0)
      sizes[k] = 0; // used by another entry only
    if (symbol.bound >= 0 && sizes[k] > symbol.bound)
      return absl::InvalidArgumentError(absl::StrCat("size '", symbol.name, "' is ", sizes[k], ", more than its bound ", symbol.bound));
  }
  return absl::OkStatus();
}

absl::Status ModuleCall::check(absl::Span<const Tensor *const> inputs, const int64_t *dims) const {
  for (int i = 0; i < e->num_inputs; ++i) {
    const lathe_tensor_info &info = *e->inputs[i];
    for (int d = 0; d < info.rank; ++d)
      if (inputs[i]->dim(d) != dims[d])
        return absl::InvalidArgumentError(absl::StrCat("input '", info.name, "' has shape ", dimsToString(inputs[i]->dims()), ", expected ",
                                                       dimsToString(dimsOf(dims, info.rank))));
    dims += info.rank;
  }
  return absl::OkStatus();
}

int32_t ModuleCall::runThere(Device &device, DeviceRuns *runs, const DeviceMemory *memory, absl::Span<const Tensor *const> inputs,
                             const lathe_run_args &args) const {
  absl::InlinedVector<uint8_t, 16> inputPlaces(e->num_inputs + 1), others(std::max(e->num_outputs, module->num_variables) + 1, 1);
  for (int i = 0; i < e->num_inputs; ++i)
    inputPlaces[i] = memoryOf(*inputs[i]) == memory;
  return device.run(*e, args, {inputPlaces.data(), others.data(), others.data(), module->num_variables, inputs.data(), runs});
}

absl::Status ModuleCall::run(absl::Span<const Tensor *const> inputs, void *const *variables, const IntraOp &intraOp,
                             std::vector<Tensor> *outputs, Device *device, DeviceRuns *runs) const {
  if (static_cast<int>(inputs.size()) != e->num_inputs)
    return absl::InvalidArgumentError(absl::StrCat("expected ", e->num_inputs, " inputs, got ", inputs.size()));
  absl::InlinedVector<int64_t, 16> sizes(module->num_symbols + 1, -1);
  if (absl::Status s = solve(inputs, sizes.data()); !s.ok())
    return s;
  e->bound_sizes(sizes.data());
  absl::InlinedVector<int64_t, 64> dims(numDims + 1, 0);
  e->dims(sizes.data(), dims.data());
  if (absl::Status s = check(inputs, dims.data()); !s.ok())
    return s;
  int threads = intraOp.parallelFor ? intraOp.threads : 1;
  int64_t bytes = e->workspace_size(sizes.data(), threads);
  if (bytes < 0 || bytes > kMaxBytes)
    return absl::InvalidArgumentError("a run-time size is out of range");

  absl::InlinedVector<const void *, 16> in(e->num_inputs);
  absl::InlinedVector<void *, 16> out(e->num_outputs);
  for (int i = 0; i < e->num_inputs; ++i)
    in[i] = inputs[i]->data();
  std::shared_ptr<DeviceMemory> memory = device ? device->memory() : nullptr;
  outputs->resize(e->num_outputs);
  const int64_t *d = dims.data() + outputDims;
  for (int i = 0; i < e->num_outputs; ++i) {
    const lathe_tensor_info &info = *e->outputs[i];
    auto t = makeOutput(static_cast<DType>(info.dtype), dimsOf(d, info.rank), memory.get());
    if (!t.ok())
      return t.status();
    (*outputs)[i] = *std::move(t);
    out[i] = (*outputs)[i].data();
    d += info.rank;
  }
  Tensor own;
  Tensor *scratch = workspace.busy ? &own : &workspace.memory;
  if (!scratch->valid() || scratch->sizeBytes() < bytes) {
    *scratch = Tensor(); // first away with the old one
    auto w = Tensor::tryAllocate(DType::UInt8, {bytes}, kMaxBytes);
    if (!w.ok())
      return w.status();
    *scratch = *std::move(w);
  }
  lathe_error error = {};
  error.struct_size = sizeof(error);
  lathe_run_args args = {};
  args.struct_size = sizeof(args);
  args.threads = threads;
  args.inputs = in.data();
  args.outputs = out.data();
  args.variables = variables;
  args.sizes = sizes.data();
  args.workspace = scratch->data();
  args.workspace_size = bytes;
  args.parallel_for = threads > 1 ? intraOp.parallelFor : nullptr;
  args.parallel_ctx = intraOp.context;
  args.error = &error;
  bool wasBusy = workspace.busy;
  workspace.busy = true;
  int32_t code = memory ? runThere(*device, runs, memory.get(), inputs, args) : e->run(&args);
  workspace.busy = wasBusy;
  if (code != 0) {
    absl::Status s = moduleStatus(code, error.message);
    if (error.site >= 0 && error.site < module->num_sites)
      setStatusNode(s, module->sites[error.site]->node, module->sites[error.site]->op);
    return s;
  }
  if (!hasDataSymbols)
    return absl::OkStatus();
  // dense content of the real size lies at the start of the buffer
  e->dims(sizes.data(), dims.data());
  d = dims.data() + outputDims;
  for (Tensor &t : *outputs) {
    std::vector<int64_t> real = dimsOf(d, static_cast<int>(t.rank()));
    d += t.rank();
    if (real != t.dims())
      t = Tensor::wrap(t.dtype(), std::move(real), t.data(), t.owner());
  }
  return absl::OkStatus();
}

} // namespace lathe::rt
