/* C++17 support for classes of objects with host kernels. Written once per program. */
#if defined(__cplusplus) && !defined(LATHE_HOSTED_CXX_V1)
#define LATHE_HOSTED_CXX_V1

#include <cstring>
#include <string>
#include <vector>

namespace lathe {

/// A model that also runs host kernels, linked with liblathe_host.a. Inputs take any shape that the graph takes; results are
/// views that are valid until the next Run. One instance is for one thread at a time and has tables and other state of its own.
class HostedModel {
public:
  explicit HostedModel(const lathe_hosted_module *module, int threads = 1) : HostedModel(lathe_hosted_new(module, threads)) {}
  /// Compiled parts run on the device with this number.
  HostedModel(const lathe_hosted_module *module, int threads, int device) : HostedModel(lathe_hosted_new_on(module, threads, device)) {}
  ~HostedModel() { lathe_hosted_delete(model); }
  HostedModel(const HostedModel &) = delete;
  HostedModel &operator=(const HostedModel &) = delete;

  /// Whether the object's graph and its initialiser were fine; if not, error_msg says why, and Run fails.
  bool ok() const { return ready; }
  /// Runs the first entry on the inputs that were set. False on failure: see error_msg.
  bool Run() { return RunEntry(0); }
  bool RunEntry(int entry) {
    std::vector<const lathe_host_tensor *> inputs;
    for (int i = 0; i < lathe_hosted_num_inputs(model, entry); ++i)
      inputs.push_back(args[static_cast<size_t>(i)].set ? &args[static_cast<size_t>(i)].tensor : nullptr);
    return model && lathe_hosted_run(model, entry, inputs.data(), static_cast<int32_t>(inputs.size())) == 0;
  }
  std::string error_msg() const { return lathe_hosted_error(model); }
  int error_code() const { return lathe_hosted_code(model); }

  int num_args(int entry = 0) const { return lathe_hosted_num_inputs(model, entry); }
  int num_results(int entry = 0) const { return lathe_hosted_num_outputs(model, entry); }
  /// Elements in the caller's memory, read by Run.
  void set_arg_data(size_t i, int32_t dtype, const void *data, std::vector<int64_t> dims) {
    Arg &a = args.at(i);
    a.dims = std::move(dims);
    a.values.clear();
    bind(a, dtype, data);
  }
  /// Texts, kept by the model.
  void set_arg_strings(size_t i, std::vector<std::string> values, std::vector<int64_t> dims) {
    Arg &a = args.at(i);
    a.dims = std::move(dims);
    a.values = std::move(values);
    a.views.clear();
    for (const std::string &s : a.values)
      a.views.push_back({s.data(), s.size()});
    bind(a, LATHE_STRING, a.views.data());
  }

  /// Shape of a result of the last Run.
  std::vector<int64_t> result_dims(size_t i) const {
    const lathe_host_tensor *t = lathe_hosted_result(model, static_cast<int32_t>(i));
    return t ? std::vector<int64_t>(t->dims, t->dims + t->rank) : std::vector<int64_t>();
  }
  /// A result of the last Run; empty when there is none.
  template <typename T>
  View<const T> resultView(size_t i) const {
    static const int64_t none[1] = {0};
    const lathe_host_tensor *t = lathe_hosted_result(model, static_cast<int32_t>(i));
    return t ? View<const T>(static_cast<const T *>(t->data), t->dims, static_cast<size_t>(t->rank)) : View<const T>(nullptr, none, 1);
  }
  std::vector<std::string> resultStrings(size_t i) const {
    std::vector<std::string> values;
    const lathe_host_tensor *t = lathe_hosted_result(model, static_cast<int32_t>(i));
    if (!t || t->dtype != LATHE_STRING)
      return values;
    int64_t n = 1;
    for (int32_t d = 0; d < t->rank; ++d)
      n *= t->dims[d];
    for (int64_t k = 0; k < n; ++k) {
      const lathe_host_string &s = static_cast<const lathe_host_string *>(t->data)[k];
      values.emplace_back(s.data, static_cast<size_t>(s.size));
    }
    return values;
  }

private:
  explicit HostedModel(lathe_hosted *made) : model(made) {
    ready = model && *lathe_hosted_error(model) == 0;
    int entries = model ? lathe_hosted_num_entries(model) : 0;
    int most = 0;
    for (int e = 0; e < entries; ++e)
      if (lathe_hosted_num_inputs(model, e) > most)
        most = lathe_hosted_num_inputs(model, e);
    args.resize(static_cast<size_t>(most));
  }
  struct Arg {
    lathe_host_tensor tensor = {};
    std::vector<int64_t> dims;
    std::vector<std::string> values;
    std::vector<lathe_host_string> views;
    bool set = false;
  };
  void bind(Arg &a, int32_t dtype, const void *data) {
    a.tensor.struct_size = sizeof(lathe_host_tensor);
    a.tensor.dtype = dtype;
    a.tensor.rank = static_cast<int32_t>(a.dims.size());
    a.tensor.dims = a.dims.data();
    a.tensor.data = data;
    a.set = true;
  }
  lathe_hosted *model;
  bool ready = false;
  std::vector<Arg> args;
};

} // namespace lathe

#endif /* LATHE_HOSTED_CXX_V1 */
