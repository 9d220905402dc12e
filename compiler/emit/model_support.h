/* C++17 support for generated classes. Written once per program: headers of several models share it. */
#if defined(__cplusplus) && !defined(LATHE_CXX_V1)
#define LATHE_CXX_V1

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#ifdef LATHE_USE_MMAP
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace lathe {

/// Which buffers a model allocates: all, or only results and temporaries (arguments are then set by pointer).
enum class AllocMode { ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS, RESULTS_PROFILES_AND_TEMPS_ONLY };

/// Elements without a C++ type: their bits.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Float8 {
  uint8_t bits;
};

[[noreturn]] inline void indexOutOfBounds() {
  std::fputs("lathe: index out of bounds\n", stderr);
  std::abort();
}

/// A tensor in someone's memory: typed, shaped, and checked on access. Cheap to copy; valid while the model is, until
/// its sizes or pointers are changed.
template <typename T>
class View {
public:
  View(T *data, const int64_t *dims, size_t rank) : ptr(data), shape(dims), n(rank) {}
  T *data() const { return ptr; }
  size_t rank() const { return n; }
  int64_t dim(size_t i) const { return i < n ? shape[i] : (indexOutOfBounds(), 0); }
  size_t size() const {
    size_t count = 1;
    for (size_t i = 0; i < n; ++i)
      count *= static_cast<size_t>(shape[i]);
    return count;
  }
  T *begin() const { return ptr; }
  T *end() const { return ptr + size(); }
  /// The element at a full index; leaves the program when it is out of bounds.
  template <typename... Index>
  T &operator()(Index... index) const {
    const int64_t at[sizeof...(Index) + 1] = {static_cast<int64_t>(index)..., 0};
    if (sizeof...(Index) != n)
      indexOutOfBounds();
    int64_t offset = 0;
    for (size_t i = 0; i < n; ++i) {
      if (at[i] < 0 || at[i] >= shape[i])
        indexOutOfBounds();
      offset = offset * shape[i] + at[i];
    }
    return ptr[offset];
  }
  /// The element at a row-major position.
  T &operator[](size_t i) const { return i < size() ? ptr[i] : (indexOutOfBounds(), ptr[0]); }

private:
  T *ptr;
  const int64_t *shape;
  size_t n;
};

/// Memory aligned for any instruction; grows, keeps nothing when it does.
class AlignedBuffer {
public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer &&other) noexcept : ptr(other.ptr), bytes(other.bytes) {
    other.ptr = nullptr;
    other.bytes = 0;
  }
  AlignedBuffer(const AlignedBuffer &) = delete;
  AlignedBuffer &operator=(const AlignedBuffer &) = delete;
  ~AlignedBuffer() { release(); }
  /// False when there is no memory. New memory is zero.
  bool reserve(size_t size) {
    if (ptr && size <= bytes)
      return true;
    release();
    ptr = ::operator new(size ? size : 1, std::align_val_t(LATHE_ALIGNMENT), std::nothrow);
    bytes = ptr ? size : 0;
    if (ptr)
      std::memset(ptr, 0, size);
    return ptr != nullptr;
  }
  void *data() const { return ptr; }
  size_t size() const { return bytes; }

private:
  void release() {
    if (ptr)
      ::operator delete(ptr, std::align_val_t(LATHE_ALIGNMENT));
    ptr = nullptr;
    bytes = 0;
  }
  void *ptr = nullptr;
  size_t bytes = 0;
};

/// Binds external weights from a file, for the life of the program. Define LATHE_USE_MMAP to map the file (POSIX)
/// instead of reading it.
inline bool bindWeightsFile(const lathe_module *module, const char *path) {
  if (!module->bind_weights)
    return false;
#ifdef LATHE_USE_MMAP
  int fd = ::open(path, O_RDONLY);
  struct stat info;
  if (fd < 0)
    return false;
  if (::fstat(fd, &info) != 0 || info.st_size <= 0) {
    ::close(fd);
    return false;
  }
  size_t size = static_cast<size_t>(info.st_size);
  void *data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (data == MAP_FAILED)
    return false;
  if (module->bind_weights(data, size) == 0)
    return true;
  ::munmap(data, size);
  return false;
#else
  std::FILE *file = std::fopen(path, "rb");
  if (!file)
    return false;
  uint64_t size = LATHE_WEIGHTS_OFFSET + module->constants_size;
  void *data = ::operator new(static_cast<size_t>(size), std::align_val_t(4096), std::nothrow);
  bool ok = data && std::fread(data, 1, static_cast<size_t>(size), file) == size &&
            module->bind_weights(data, size) == 0;
  std::fclose(file);
  if (!ok && data)
    ::operator delete(data, std::align_val_t(4096));
  return ok;
#endif
}

/// What all generated classes are made of: buffers, sizes and the call. One instance is for one thread at a time; any
/// number of instances share the module's constants.
///
/// Pointers given to set_arg_data and set_result_data are used in place when they are aligned for their element type
/// (64 bytes is fastest). Others are copied on every Run; arg_is_copied and result_is_copied tell.
class CompiledModel {
public:
  using AllocMode = lathe::AllocMode;
  explicit CompiledModel(const lathe_module *m,
                         AllocMode mode = AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS)
      : mod(m) {
    initialize(mode);
  }
  virtual ~CompiledModel() = default;
  CompiledModel(const CompiledModel &) = delete;
  CompiledModel &operator=(const CompiledModel &) = delete;

  /// Runs the first entry. False on failure: see error_msg. Allocates nothing.
  bool Run() { return RunEntry(0); }
  /// Why the last Run failed; valid until the next.
  std::string error_msg() const { return message ? message : ""; }
  int error_code() const { return code; }

  static constexpr size_t kAlignment = LATHE_ALIGNMENT;
  const lathe_module *module() const { return mod; }
  int num_args() const { return static_cast<int>(args.size()); }
  int num_results() const { return static_cast<int>(outs.size()); }
  int num_variables() const { return mod->num_variables; }

  void *arg_data(size_t i) { return const_cast<void *>(args.at(i).visible()); }
  const void *arg_data(size_t i) const { return args.at(i).visible(); }
  void set_arg_data(size_t i, const void *data) { bind(args.at(i), const_cast<void *>(data)); }
  void *result_data(size_t i) { return outs.at(i).visible(); }
  const void *result_data(size_t i) const { return outs.at(i).visible(); }
  /// Where the result is written; null: into the model's own memory again.
  void set_result_data(size_t i, void *data) { bind(outs.at(i), data); }
  bool arg_is_copied(size_t i) const { return args.at(i).copied; }
  bool result_is_copied(size_t i) const { return outs.at(i).copied; }
  void **results() {
    for (size_t i = 0; i < outs.size(); ++i)
      resultPointers[i] = outs[i].visible();
    return resultPointers.data();
  }
  /// Bytes and elements at the present sizes (after Run: of what was written).
  int64_t arg_size(size_t i) const { return args.at(i).count() * args.at(i).info->element_size; }
  int64_t arg_count(size_t i) const { return args.at(i).count(); }
  int64_t result_size(size_t i) const { return outs.at(i).count() * outs.at(i).info->element_size; }
  int64_t result_count(size_t i) const { return outs.at(i).count(); }
  const int64_t *arg_dims(size_t i) const { return args.at(i).dims.data(); }
  const int64_t *result_dims(size_t i) const { return outs.at(i).dims.data(); }

  void *var_data(size_t i) { return variablePointers.at(i); }
  const void *var_data(size_t i) const { return variablePointers.at(i); }
  /// State in the caller's memory (aligned for its element type), null: the model's own again.
  void set_var_data(size_t i, void *data) { variablePointers.at(i) = data ? data : variables.at(i).data(); }
  int64_t var_size(size_t i) const {
    const lathe_tensor_info *t = mod->variables[i]->tensor;
    int64_t n = t->element_size;
    for (int32_t d = 0; d < t->rank; ++d)
      n *= t->dims[d];
    return n;
  }
  /// All variables, one after the other.
  int64_t state_size() const {
    int64_t n = 0;
    for (int i = 0; i < mod->num_variables; ++i)
      n += var_size(static_cast<size_t>(i));
    return n;
  }
  void save_state(void *to) const {
    char *p = static_cast<char *>(to);
    for (size_t i = 0; i < variablePointers.size(); p += var_size(i), ++i)
      std::memcpy(p, variablePointers[i], static_cast<size_t>(var_size(i)));
  }
  void load_state(const void *from) {
    const char *p = static_cast<const char *>(from);
    for (size_t i = 0; i < variablePointers.size(); p += var_size(i), ++i)
      std::memcpy(variablePointers[i], p, static_cast<size_t>(var_size(i)));
  }

  /// Index by name, -1 when there is none.
  int LookupArgIndex(const std::string &name) const { return lookup(args, name); }
  int LookupResultIndex(const std::string &name) const { return lookup(outs, name); }
  int LookupVariableIndex(const std::string &name) const {
    for (int i = 0; i < mod->num_variables; ++i)
      if (name == mod->variables[i]->tensor->name)
        return i;
    return -1;
  }

  /// Run-time sizes. Changing one may allocate; the content of the model's own buffers is lost. False when a size is out
  /// of range or there is no memory: see error_msg.
  bool set_size(size_t symbol, int64_t value) {
    sizes.at(symbol) = value;
    return prepare();
  }
  /// All sizes of this name: entries that take the same input have one each.
  bool set_size(const std::string &symbol, int64_t value) {
    bool found = false;
    for (int i = 0; i < mod->num_symbols; ++i)
      if (symbol == mod->symbols[i]->name) {
        sizes.at(static_cast<size_t>(i)) = value;
        found = true;
      }
    return found ? prepare() : refuse(LATHE_INVALID_ARGUMENT, "there is no run-time size of this name");
  }
  /// The first run-time size, most often the batch.
  bool set_batch(int64_t value) {
    for (int i = 0; i < mod->num_symbols; ++i)
      if (!mod->symbols[i]->is_data)
        return set_size(std::string(mod->symbols[i]->name), value);
    return refuse(LATHE_INVALID_ARGUMENT, "the model has no run-time size");
  }

  /// How kernels run in parallel, if the model was compiled for threads; otherwise it changes nothing.
  void set_thread_pool(lathe_parallel_for fn, void *ctx, int threads) {
    run.parallel_for = threads > 1 ? fn : nullptr;
    run.parallel_ctx = ctx;
    run.threads = threads > 1 ? threads : 1;
    prepare();
  }
  /// Anything callable as parallel_for(context, fn, begin, end) that calls fn(context, b, e) on ranges that cover
  /// [begin, end) and returns when all are done. Kept by reference.
  template <typename ParallelFor,
            typename = std::enable_if_t<std::is_invocable_v<ParallelFor &, void *, void (*)(void *, int64_t, int64_t),
                                                            int64_t, int64_t>>>
  void set_thread_pool(ParallelFor &parallelFor, int threads) {
    set_thread_pool(
        [](void *ctx, void (*fn)(void *, int64_t, int64_t), void *arg, int64_t n) -> int {
          (*static_cast<ParallelFor *>(ctx))(arg, fn, int64_t(0), n);
          return 0;
        },
        const_cast<void *>(static_cast<const void *>(&parallelFor)), threads);
  }
  /// Eigen's ThreadPoolDevice, and whatever has its numThreads() and parallelFor(n, cost, fn). Null: none.
  template <typename Device>
  void set_thread_pool(const Device *device) {
    if (!device)
      return set_thread_pool(nullptr, nullptr, 1);
    set_thread_pool(
        [](void *ctx, void (*fn)(void *, int64_t, int64_t), void *arg, int64_t n) -> int {
          // a cost that makes the pool take one index at a time
          static_cast<const Device *>(ctx)->parallelFor(
              n, {1e6, 1e6, 1e7}, [=](auto begin, auto end) { fn(arg, int64_t(begin), int64_t(end)); });
          return 0;
        },
        const_cast<void *>(static_cast<const void *>(device)), static_cast<int>(device->numThreads()));
  }

  /// Bytes of workspace at the present sizes, for models that borrow theirs.
  int64_t workspace_size() const {
    int64_t most = 0;
    for (int e = 0; e < mod->num_entries; ++e) {
      int64_t n = mod->entries[e]->workspace_size(sizes.data(), run.threads);
      if (n < 0)
        return -1;
      most = n > most ? n : most;
    }
    return most;
  }
  /// Memory of the caller, aligned to kAlignment; null: the model's own again. Run fails when it is too small.
  void set_workspace(void *memory, int64_t bytes) {
    borrowed = memory;
    run.workspace = memory;
    run.workspace_size = bytes;
    if (!memory)
      prepare();
  }

private:
  void initialize(AllocMode mode) {
    std::memset(&run, 0, sizeof(run));
    run.struct_size = sizeof(run);
    run.threads = 1;
    std::memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    run.error = &error;
    sizes.assign(static_cast<size_t>(mod->num_symbols), 1);
    bounds = sizes;
    size_t mostInputs = 0, mostOutputs = 0, mostDims = 0;
    entryArgs.resize(static_cast<size_t>(mod->num_entries));
    entryOuts.resize(entryArgs.size());
    for (int e = 0; e < mod->num_entries; ++e) {
      const lathe_entry *entry = mod->entries[e];
      size_t numDims = 0;
      for (int32_t i = 0; i < entry->num_inputs; ++i) {
        entryArgs[size_t(e)].push_back(add(args, entry->inputs[i]));
        numDims += size_t(entry->inputs[i]->rank);
      }
      for (int32_t i = 0; i < entry->num_outputs; ++i) {
        entryOuts[size_t(e)].push_back(add(outs, entry->outputs[i]));
        numDims += size_t(entry->outputs[i]->rank);
      }
      mostInputs = std::max(mostInputs, size_t(entry->num_inputs));
      mostOutputs = std::max(mostOutputs, size_t(entry->num_outputs));
      mostDims = std::max(mostDims, numDims);
    }
    inputPointers.resize(mostInputs + 1);
    outputPointers.resize(mostOutputs + 1);
    resultPointers.resize(outs.size() + 1);
    dimsScratch.resize(mostDims + 1);
    ownArgs = mode == AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS;
    run.inputs = inputPointers.data();
    run.outputs = outputPointers.data();
    run.sizes = sizes.data();
    const void *constants = mod->bound_weights ? *mod->bound_weights : mod->constants;
    for (int i = 0; i < mod->num_variables; ++i) {
      variables.emplace_back();
      size_t bytes = static_cast<size_t>(var_size(static_cast<size_t>(i)));
      if (!variables.back().reserve(bytes))
        memoryFailed = true;
      else if (mod->variables[i]->initial_offset >= 0 && constants)
        std::memcpy(variables.back().data(), static_cast<const char *>(constants) + mod->variables[i]->initial_offset,
                    bytes);
      variablePointers.push_back(variables.back().data());
    }
    run.variables = variablePointers.data();
    prepare();
  }

protected:
  bool RunEntry(int index) {
    message = nullptr;
    code = 0;
    if (!ready)
      return refuseSizes();
    const lathe_entry *entry = mod->entries[index];
    const std::vector<size_t> &in = entryArgs[size_t(index)], &out = entryOuts[size_t(index)];
    for (size_t i = 0; i < in.size(); ++i) {
      Slot &s = args[in[i]];
      if (!s.visible()) {
        message = "an argument has no data";
        code = LATHE_FAILED_PRECONDITION;
        return false;
      }
      if (s.copied)
        std::memcpy(s.own.data(), s.user, static_cast<size_t>(s.count() * s.info->element_size));
      inputPointers[i] = s.used();
    }
    for (size_t i = 0; i < out.size(); ++i)
      outputPointers[i] = outs[out[i]].used();
    code = entry->run(&run);
    if (code != 0) {
      message = error.message ? error.message : "failed";
      return false;
    }
    if (anyData)
      updateDims(index, sizes.data());
    for (size_t i : out)
      if (outs[i].copied)
        std::memcpy(outs[i].user, outs[i].own.data(), static_cast<size_t>(outs[i].count() * outs[i].info->element_size));
    return true;
  }

  template <typename T>
  View<T> argView(size_t i) {
    return View<T>(static_cast<T *>(arg_data(i)), args[i].dims.data(), args[i].dims.size());
  }
  template <typename T>
  View<const T> argView(size_t i) const {
    return View<const T>(static_cast<const T *>(arg_data(i)), args[i].dims.data(), args[i].dims.size());
  }
  template <typename T>
  View<T> resultView(size_t i) {
    return View<T>(static_cast<T *>(result_data(i)), outs[i].dims.data(), outs[i].dims.size());
  }
  template <typename T>
  View<const T> resultView(size_t i) const {
    return View<const T>(static_cast<const T *>(result_data(i)), outs[i].dims.data(), outs[i].dims.size());
  }
  template <typename T>
  View<T> varView(size_t i) {
    const lathe_tensor_info *t = mod->variables[i]->tensor;
    return View<T>(static_cast<T *>(var_data(i)), t->dims, static_cast<size_t>(t->rank));
  }

private:
  struct Slot {
    const lathe_tensor_info *info = nullptr;
    std::vector<int64_t> dims;
    AlignedBuffer own;
    void *user = nullptr;
    bool copied = false;
    int64_t capacity = 0; // bytes it must hold
    void *visible() const { return user ? user : own.data(); }
    void *used() const { return user && !copied ? user : own.data(); }
    int64_t count() const {
      int64_t n = 1;
      for (int64_t d : dims)
        n *= d;
      return n;
    }
  };

  // Entries share an argument (or a result) when name, type and shape are equal.
  static size_t add(std::vector<Slot> &slots, const lathe_tensor_info *info) {
    for (size_t i = 0; i < slots.size(); ++i) {
      const lathe_tensor_info *t = slots[i].info;
      if (std::strcmp(t->name, info->name) == 0 && t->dtype == info->dtype && t->rank == info->rank &&
          (t->rank == 0 || std::memcmp(t->dims, info->dims, sizeof(int64_t) * size_t(t->rank)) == 0))
        return i;
    }
    slots.emplace_back();
    slots.back().info = info;
    slots.back().dims.assign(size_t(info->rank), 0);
    return slots.size() - 1;
  }
  int lookup(const std::vector<Slot> &slots, const std::string &name) const {
    for (size_t i = 0; i < slots.size(); ++i)
      if (name == slots[i].info->name)
        return static_cast<int>(i);
    for (size_t i = 0; i < slots.size(); ++i)
      if (name == slots[i].info->tensor || name + ":0" == slots[i].info->tensor)
        return static_cast<int>(i);
    return -1;
  }
  void bind(Slot &s, void *data) {
    s.user = data;
    size_t align = static_cast<size_t>(s.info->element_size);
    if (s.info->dtype == LATHE_COMPLEX64 || s.info->dtype == LATHE_COMPLEX128)
      align /= 2;
    s.copied = data && reinterpret_cast<uintptr_t>(data) % align != 0;
    if (s.copied && !s.own.reserve(static_cast<size_t>(s.capacity)))
      memoryFailed = true, ready = false;
  }
  void updateDims(int e, const int64_t *at) {
    mod->entries[e]->dims(at, dimsScratch.data());
    const int64_t *d = dimsScratch.data();
    for (size_t i : entryArgs[size_t(e)])
      for (int64_t &dim : args[i].dims)
        dim = *d++;
    for (size_t i : entryOuts[size_t(e)])
      for (int64_t &dim : outs[i].dims)
        dim = *d++;
  }
  bool refuse(int32_t why, const char *text) {
    code = why;
    message = text;
    return false;
  }
  bool refuseSizes() {
    return memoryFailed ? refuse(LATHE_RESOURCE_EXHAUSTED, "out of memory") : refuse(LATHE_INVALID_ARGUMENT, "a run-time size is out of range");
  }
  bool prepare() {
    message = nullptr;
    code = 0;
    memoryFailed = false; // smaller sizes may have memory
    for (int i = 0; i < mod->num_variables; ++i)
      memoryFailed = memoryFailed || (!variables[size_t(i)].data() && var_size(size_t(i)) > 0);
    ready = !memoryFailed && prepareSizes();
    return ready || refuseSizes();
  }
  bool prepareSizes() {
    anyData = false;
    for (int i = 0; i < mod->num_symbols; ++i) {
      const lathe_symbol_info *s = mod->symbols[i];
      anyData = anyData || s->is_data;
      if (!s->is_data && (sizes[size_t(i)] < 0 || (s->bound >= 0 && sizes[size_t(i)] > s->bound)))
        return false;
    }
    int64_t need = workspace_size();
    if (need < 0)
      return false;
    for (int e = 0; e < mod->num_entries; ++e) {
      bounds = sizes;
      mod->entries[e]->bound_sizes(bounds.data());
      updateDims(e, bounds.data());
      for (size_t i : entryArgs[size_t(e)])
        if (!reserve(args[i], ownArgs))
          return false;
      for (size_t i : entryOuts[size_t(e)])
        if (!reserve(outs[i], true))
          return false;
    }
    if (!borrowed) {
      if (!workspace.reserve(static_cast<size_t>(need))) {
        memoryFailed = true;
        return false;
      }
      run.workspace = workspace.data();
      run.workspace_size = static_cast<int64_t>(workspace.size());
    }
    return true;
  }
  bool reserve(Slot &s, bool owned) {
    s.capacity = s.count() * s.info->element_size;
    if ((owned && !s.user) || s.copied)
      if (!s.own.reserve(static_cast<size_t>(s.capacity)))
        memoryFailed = true;
    return !memoryFailed;
  }

  const lathe_module *mod;
  lathe_run_args run;
  lathe_error error;
  const char *message = nullptr;
  int code = 0;
  bool ready = false, memoryFailed = false, ownArgs = true, anyData = false;
  std::vector<int64_t> sizes, bounds, dimsScratch;
  std::vector<Slot> args, outs;
  std::vector<std::vector<size_t>> entryArgs, entryOuts;
  std::vector<const void *> inputPointers;
  std::vector<void *> outputPointers, resultPointers, variablePointers;
  std::vector<AlignedBuffer> variables;
  AlignedBuffer workspace;
  void *borrowed = nullptr;
};

} // namespace lathe

#endif /* LATHE_CXX_V1 */
