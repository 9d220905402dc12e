#include "runtime/session/ModuleSession.h"

#include "absl/strings/str_cat.h"

#include <cstring>

namespace lathe::rt {
namespace {

bool isNamed(const lathe_tensor_info &info, const std::string &name) {
  if (name == info.name || name == info.tensor || name == absl::StrCat(info.name, ":0"))
    return true;
  size_t n = std::strlen(info.tensor);
  return n > 2 && std::strcmp(info.tensor + n - 2, ":0") == 0 && name == std::string(info.tensor, n - 2);
}

SessionOptions optionsFor(int threads) {
  SessionOptions options;
  options.intraOpThreads = threads;
  options.interOpThreads = 2;
  return options;
}

class ModuleSession : public SessionCore {
public:
  ModuleSession(const lathe_module *module, int threads) : SessionCore(optionsFor(threads)), module(module) {
    if (threads > 1)
      intraOp = {ThreadPool::parallelFor, &devices->intraOp, threads};
    for (int i = 0; i < module->num_entries; ++i)
      calls.emplace_back(module, i);
    auto *constants = static_cast<const char *>(module->bound_weights ? *module->bound_weights : module->constants);
    for (int i = 0; i < module->num_variables; ++i) {
      const lathe_variable_info &info = *module->variables[i];
      const lathe_tensor_info &t = *info.tensor;
      Tensor v = Tensor::allocate(static_cast<DType>(t.dtype), std::vector<int64_t>(t.dims, t.dims + t.rank));
      if (info.initial_offset >= 0 && constants)
        std::memcpy(v.data(), constants + info.initial_offset, v.sizeBytes());
      pointers.push_back(v.data());
      variables.push_back(std::move(v));
    }
  }

  absl::Status run(const RunOptions &, const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                   const std::vector<std::string> &targets, std::vector<Tensor> *outputs, RunMetadata *) override;

private:
  absl::StatusOr<const ModuleCall *> find(const std::vector<std::string> &fetches, const std::vector<std::string> &targets) const;

  const lathe_module *const module;
  IntraOp intraOp;
  std::vector<ModuleCall> calls;
  std::mutex mutex; ///< runs of a module with state follow each other
  std::vector<Tensor> variables;
  std::vector<void *> pointers;
};

absl::StatusOr<const ModuleCall *> ModuleSession::find(const std::vector<std::string> &fetches,
                                                       const std::vector<std::string> &targets) const {
  std::string missing;
  for (const ModuleCall &call : calls) {
    bool fits = true;
    for (const std::string &target : targets)
      fits &= target == call.entry().name;
    for (const std::string &fetch : fetches) {
      bool has = false;
      for (int i = 0; i < call.entry().num_outputs; ++i)
        has |= isNamed(*call.entry().outputs[i], fetch);
      if (!has)
        missing = fetch;
      fits &= has;
    }
    if (fits)
      return &call;
  }
  return absl::NotFoundError(absl::StrCat("module '", module->name, "' has no entry that gives this",
                                          missing.empty() ? "" : absl::StrCat(": output '", missing, "'")));
}

absl::Status ModuleSession::run(const RunOptions &, const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                                const std::vector<std::string> &targets, std::vector<Tensor> *outputs, RunMetadata *) {
  auto call = find(fetches, targets);
  if (!call.ok())
    return call.status();
  const lathe_entry &entry = (*call)->entry();
  std::vector<const Tensor *> inputs(entry.num_inputs);
  for (auto &[name, value] : feeds) {
    bool used = false;
    for (int i = 0; i < entry.num_inputs; ++i)
      if (isNamed(*entry.inputs[i], name)) {
        inputs[i] = &value;
        used = true;
      }
    if (!used)
      return absl::NotFoundError(absl::StrCat("module '", module->name, "' has no input '", name, "'"));
  }
  for (int i = 0; i < entry.num_inputs; ++i)
    if (!inputs[i])
      return absl::InvalidArgumentError(absl::StrCat("input '", entry.inputs[i]->name, "' is not fed"));
  std::vector<Tensor> results;
  absl::Status status;
  if (pointers.empty()) {
    status = (*call)->run(inputs, nullptr, intraOp, &results);
  } else {
    std::lock_guard<std::mutex> lock(mutex);
    status = (*call)->run(inputs, pointers.data(), intraOp, &results);
  }
  if (!status.ok() || !outputs)
    return status;
  outputs->clear();
  for (const std::string &fetch : fetches)
    for (int i = 0; i < entry.num_outputs; ++i)
      if (isNamed(*entry.outputs[i], fetch)) {
        outputs->push_back(results[i]);
        break;
      }
  return absl::OkStatus();
}

} // namespace

std::shared_ptr<SessionCore> makeModuleSession(const lathe_module *module, int threads) {
  return std::make_shared<ModuleSession>(module, threads);
}

} // namespace lathe::rt
