/* C++17 support for classes of objects for devices, upon that of model_support.h of any version. Written once per program. */
#if defined(__cplusplus) && !defined(LATHE_DEVICE_CXX_V2)
#define LATHE_DEVICE_CXX_V2

#include <vector>

namespace lathe {

/// A module's tables with another run(): CompiledModel calls it, and it finds the model in parallel_ctx.
struct DeviceTables {
  DeviceTables(const lathe_module *m, int32_t (*run)(const lathe_run_args *)) : tables(*m) {
    tables.struct_size = sizeof(tables);
    for (int32_t e = 0; e < m->num_entries; ++e) {
      entries.push_back(*m->entries[e]);
      entries.back().struct_size = sizeof(lathe_entry);
      entries.back().run = run;
    }
    for (const lathe_entry &e : entries)
      pointers.push_back(&e);
    tables.entries = pointers.data();
  }
  lathe_module tables;
  std::vector<lathe_entry> entries;
  std::vector<const lathe_entry *> pointers;
};

/// What generated classes of objects for devices are made of. As CompiledModel, and: arguments, results and variables may lie
/// in the device's memory, each by itself; runs may be left in a stream; there is a device to choose. Accessors of single
/// elements and views are for what lies in the host's memory. One instance is for one thread at a time.
class DeviceModel : private DeviceTables, public CompiledModel {
public:
  using AllocMode = lathe::AllocMode;
  /// Loads the module on that device, if no other instance has; where it cannot, Run says why.
  DeviceModel(const lathe_module *m, const lathe_device_module *d, AllocMode mode, int ordinal)
      : DeviceTables(m, &DeviceModel::enter), CompiledModel(&tables, mode), real(m), functions(d), number(ordinal),
        symbols(static_cast<size_t>(m->num_symbols), 1) {
    CompiledModel::set_thread_pool(nullptr, this, 1);
    for (int32_t e = 0; e < m->num_entries; ++e) {
      entryInputs.emplace_back();
      entryOutputs.emplace_back();
      for (int32_t i = 0; i < m->entries[e]->num_inputs; ++i)
        entryInputs.back().push_back(add(inputInfos, m->entries[e]->inputs[i]));
      for (int32_t i = 0; i < m->entries[e]->num_outputs; ++i)
        entryOutputs.back().push_back(add(outputInfos, m->entries[e]->outputs[i]));
    }
    deviceArgs.resize(inputInfos.size());
    deviceResults.resize(outputInfos.size());
    deviceVariables.resize(static_cast<size_t>(m->num_variables));
    kept.resize(deviceVariables.size());
    const size_t most = inputInfos.size() + outputInfos.size() + deviceVariables.size() + 1;
    in.resize(most);
    out.resize(most);
    variables.resize(most);
    inFlags.resize(most);
    outFlags.resize(most);
    variableFlags.resize(most);
    shown.resize(most);
    std::memset(&failure, 0, sizeof(failure));
    failure.struct_size = sizeof(failure);
    (void)(open(nullptr) && reserve());
  }
  ~DeviceModel() override { close(); }

  /// Runs the first entry. False on failure: see error_msg. After set_stream it returns when all is in the stream.
  bool Run() { return RunEntry(0); }
  /// Waits for runs in a stream. False when one failed since the last Wait: see error_msg. Later runs do not heal it.
  bool Wait() { return !instance || told(functions->wait(instance, fresh())); }
  std::string error_msg() const { return ownCode ? (failure.message ? failure.message : "failed") : CompiledModel::error_msg(); }
  int error_code() const { return ownCode ? ownCode : CompiledModel::error_code(); }
  const lathe_module *module() const { return real; }

  /// From now on Run leaves its work in this stream (a CUstream or cudaStream_t of the device's primary context; null is the
  /// default stream). Until Wait, host memory of arguments must not change and that of results and variables holds nothing
  /// yet. Up to 8 runs wait there; one more waits for the oldest. Where the host must know a value (If, While, sizes that
  /// depend on data), Run waits for it.
  void set_stream(void *s) {
    stream = s;
    enqueues = true;
  }
  /// Run waits again, in a stream of the model's own.
  void clear_stream() { enqueues = false; }
  /// Goes to another device, with the variables that were kept on the old one. False when it cannot: see error_msg.
  bool set_device(int ordinal) {
    if (ordinal == number && instance)
      return true;
    std::vector<char> state;
    const bool had = keeps;
    if (had) {
      state.resize(static_cast<size_t>(state_size()));
      if (!save_state(state.data()))
        return false;
      for (size_t i = 0; i < kept.size(); ++i)
        if (kept[i])
          set_var_device(i, nullptr);
      load_state(state.data());
    }
    close();
    number = ordinal;
    return told(open(fresh()) ? 0 : failure.code) && told(reserve() ? 0 : failure.code) && (!had || keep_state_on_device());
  }
  int device() const { return number; }

  /// Memory of the device, null: the host's again. Used in place when aligned to kAlignment, else copied in every Run.
  void set_arg_device(size_t i, const void *data) {
    deviceArgs.at(i) = data;
    CompiledModel::set_arg_data(i, data ? placeholder() : nullptr);
  }
  void set_result_device(size_t i, void *data) {
    deviceResults.at(i) = data;
    CompiledModel::set_result_data(i, data ? placeholder() : nullptr);
  }
  void set_var_device(size_t i, void *data) {
    deviceVariables.at(i) = data;
    CompiledModel::set_var_data(i, data ? placeholder() : nullptr);
    forget(i);
  }
  /// Moves all variables to memory on the device that the model owns: runs copy none of them. False when there is too little.
  bool keep_state_on_device() {
    if (!told(open(fresh()) ? 0 : failure.code))
      return false;
    for (size_t i = 0; i < kept.size(); ++i) {
      void *memory = nullptr;
      if (deviceVariables[i])
        continue;
      const int64_t bytes = var_size(i);
      int32_t c = functions->allocate(instance, &memory, bytes, fresh());
      if (!c)
        c = functions->copy(instance, memory, 1, CompiledModel::var_data(i), 0, bytes, &failure);
      if (c) {
        functions->release(instance, memory, nullptr);
        return told(c);
      }
      set_var_device(i, memory);
      kept[i] = memory;
    }
    keeps = true;
    return true;
  }

  void *arg_data(size_t i) { return deviceArgs.at(i) ? const_cast<void *>(deviceArgs[i]) : CompiledModel::arg_data(i); }
  const void *arg_data(size_t i) const { return deviceArgs.at(i) ? deviceArgs[i] : CompiledModel::arg_data(i); }
  void set_arg_data(size_t i, const void *data) {
    deviceArgs.at(i) = nullptr;
    CompiledModel::set_arg_data(i, data);
  }
  void *result_data(size_t i) { return deviceResults.at(i) ? deviceResults[i] : CompiledModel::result_data(i); }
  const void *result_data(size_t i) const { return deviceResults.at(i) ? deviceResults[i] : CompiledModel::result_data(i); }
  void set_result_data(size_t i, void *data) {
    deviceResults.at(i) = nullptr;
    CompiledModel::set_result_data(i, data);
  }
  void **results() {
    for (size_t i = 0; i < outputInfos.size(); ++i)
      shown[i] = result_data(i);
    return shown.data();
  }
  void *var_data(size_t i) { return deviceVariables.at(i) ? deviceVariables[i] : CompiledModel::var_data(i); }
  const void *var_data(size_t i) const { return deviceVariables.at(i) ? deviceVariables[i] : CompiledModel::var_data(i); }
  void set_var_data(size_t i, void *data) {
    deviceVariables.at(i) = nullptr;
    CompiledModel::set_var_data(i, data);
    forget(i);
  }
  /// All variables, one after the other, wherever they lie. False when a copy fails: see error_msg.
  bool save_state(void *to) {
    char *p = static_cast<char *>(to);
    for (size_t i = 0; i < deviceVariables.size(); p += var_size(i), ++i)
      if (!move(p, 0, var_data(i), deviceVariables[i] != nullptr, var_size(i)))
        return false;
    return true;
  }
  bool load_state(const void *from) {
    const char *p = static_cast<const char *>(from);
    for (size_t i = 0; i < deviceVariables.size(); p += var_size(i), ++i)
      if (!move(var_data(i), deviceVariables[i] != nullptr, p, 0, var_size(i)))
        return false;
    return true;
  }

  /// As in CompiledModel; memory on the device is made ready too.
  bool set_size(size_t symbol, int64_t value) {
    symbols.at(symbol) = value;
    ownCode = 0;
    return CompiledModel::set_size(symbol, value) && told(reserve() ? 0 : failure.code);
  }
  bool set_size(const std::string &symbol, int64_t value) {
    for (size_t i = 0; i < symbols.size(); ++i)
      if (symbol == real->symbols[i]->name)
        symbols[i] = value;
    ownCode = 0;
    return CompiledModel::set_size(symbol, value) && told(reserve() ? 0 : failure.code);
  }
  bool set_batch(int64_t value) {
    for (int32_t i = 0; i < real->num_symbols; ++i)
      if (!real->symbols[i]->is_data)
        return set_size(std::string(real->symbols[i]->name), value);
    return CompiledModel::set_batch(value); // which says that there is none
  }
  /// Kernels run on the device; it changes nothing.
  template <typename... Args>
  void set_thread_pool(Args &&...) {}

protected:
  bool RunEntry(int index) {
    ownCode = 0;
    if (enqueues)
      for (size_t i : entryOutputs[size_t(index)])
        if (!deviceResults[i] && result_is_copied(i)) {
          fresh()->message = "a result that a run in a stream writes must be aligned to its elements";
          return told(LATHE_FAILED_PRECONDITION);
        }
    entry = index;
    const bool ok = CompiledModel::RunEntry(index);
    entry = 0;
    return ok;
  }
  template <typename T>
  View<T> argView(size_t i) {
    return View<T>(static_cast<T *>(arg_data(i)), arg_dims(i), size_t(inputInfos[i]->rank));
  }
  template <typename T>
  View<const T> argView(size_t i) const {
    return View<const T>(static_cast<const T *>(arg_data(i)), arg_dims(i), size_t(inputInfos[i]->rank));
  }
  template <typename T>
  View<T> resultView(size_t i) {
    return View<T>(static_cast<T *>(result_data(i)), result_dims(i), size_t(outputInfos[i]->rank));
  }
  template <typename T>
  View<const T> resultView(size_t i) const {
    return View<const T>(static_cast<const T *>(result_data(i)), result_dims(i), size_t(outputInfos[i]->rank));
  }
  template <typename T>
  View<T> varView(size_t i) {
    const lathe_tensor_info *t = real->variables[i]->tensor;
    return View<T>(static_cast<T *>(var_data(i)), t->dims, size_t(t->rank));
  }

private:
  static int32_t enter(const lathe_run_args *args) { return static_cast<DeviceModel *>(args->parallel_ctx)->call(args); }

  // With the pointers of the device in their places; the host's go on as they were given, aligned or not.
  int32_t call(const lathe_run_args *args) {
    if (!open(args->error))
      return args->error->code;
    const std::vector<size_t> &inputs = entryInputs[size_t(entry)], &outputs = entryOutputs[size_t(entry)];
    for (size_t i = 0; i < inputs.size(); ++i) {
      in[i] = arg_data(inputs[i]);
      inFlags[i] = deviceArgs[inputs[i]] != nullptr;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      outFlags[i] = deviceResults[outputs[i]] != nullptr;
      out[i] = outFlags[i] ? deviceResults[outputs[i]] : args->outputs[i];
    }
    for (size_t i = 0; i < deviceVariables.size(); ++i) {
      variableFlags[i] = deviceVariables[i] != nullptr;
      variables[i] = var_data(i);
    }
    lathe_device_run_args a;
    std::memset(&a, 0, sizeof(a));
    a.args = *args;
    a.args.struct_size = sizeof(a);
    a.args.inputs = in.data();
    a.args.outputs = out.data();
    a.args.variables = variables.data();
    a.args.parallel_ctx = nullptr;
    a.instance = instance;
    a.device = number;
    a.enqueue = enqueues;
    a.stream = stream;
    a.inputs_on_device = inFlags.data();
    a.outputs_on_device = outFlags.data();
    a.variables_on_device = variableFlags.data();
    return real->entries[entry]->run(&a.args);
  }

  // Numbers as CompiledModel gives them.
  static size_t add(std::vector<const lathe_tensor_info *> &known, const lathe_tensor_info *info) {
    for (size_t i = 0; i < known.size(); ++i)
      if (std::strcmp(known[i]->name, info->name) == 0 && known[i]->dtype == info->dtype && known[i]->rank == info->rank &&
          (info->rank == 0 || std::memcmp(known[i]->dims, info->dims, sizeof(int64_t) * size_t(info->rank)) == 0))
        return i;
    known.push_back(info);
    return known.size() - 1;
  }
  /// What CompiledModel has for a pointer that is not the host's; it never looks there.
  static void *placeholder() {
    alignas(LATHE_ALIGNMENT) static char nothing[LATHE_ALIGNMENT];
    return nothing;
  }
  lathe_error *fresh() {
    failure.code = 0;
    failure.site = -1;
    failure.message = nullptr;
    return &failure;
  }
  bool told(int32_t c) {
    ownCode = c;
    return c == 0;
  }
  bool open(lathe_error *error) { return instance || functions->open(number, &instance, error) == 0; }
  bool reserve() {
    int64_t most = 0;
    for (int32_t e = 0; e < functions->num_entries; ++e)
      most = std::max(most, functions->workspace_size[e](symbols.data()));
    return !instance || functions->reserve(instance, most, fresh()) == 0;
  }
  bool move(void *to, int32_t toDevice, const void *from, int32_t fromDevice, int64_t bytes) {
    if (!toDevice && !fromDevice)
      return std::memcpy(to, from, static_cast<size_t>(bytes)), true;
    return told(open(fresh()) ? functions->copy(instance, to, toDevice, from, fromDevice, bytes, &failure) : failure.code);
  }
  void forget(size_t i) {
    if (kept[i] && instance)
      functions->release(instance, kept[i], nullptr);
    kept[i] = nullptr;
  }
  void close() {
    for (size_t i = 0; i < kept.size(); ++i)
      forget(i);
    keeps = false;
    functions->close(instance);
    instance = nullptr;
  }

  const lathe_module *real;
  const lathe_device_module *functions;
  lathe_device_instance *instance = nullptr;
  int number, entry = 0;
  bool enqueues = false, keeps = false;
  void *stream = nullptr;
  lathe_error failure;
  int32_t ownCode = 0;
  std::vector<int64_t> symbols;
  std::vector<const lathe_tensor_info *> inputInfos, outputInfos;
  std::vector<std::vector<size_t>> entryInputs, entryOutputs;
  std::vector<const void *> deviceArgs, in;
  std::vector<void *> deviceResults, deviceVariables, kept, out, variables, shown;
  std::vector<uint8_t> inFlags, outFlags, variableFlags;
};

} // namespace lathe

#endif /* LATHE_DEVICE_CXX_V2 */
