// Generated shared objects: loaded, checked, and unloaded with their last user.
#ifndef LATHE_RUNTIME_SESSION_SHAREDMODULE_H
#define LATHE_RUNTIME_SESSION_SHAREDMODULE_H

#include "runtime/abi/module_abi.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>

namespace lathe {

/// A module in a shared object made by `lathe compile --emit so`. Loading runs nothing but the object's own initialisers; it is
/// code all the same, so load what you trust.
class SharedModule {
public:
  /// `weights` is the file of a module compiled with external weights, "" for others. NOT_FOUND where a file is missing,
  /// INVALID_ARGUMENT for files that hold no module, FAILED_PRECONDITION for a module of another ABI or without its weights.
  static absl::StatusOr<std::shared_ptr<SharedModule>> open(const std::string &path, const std::string &weights = "");
  ~SharedModule();
  SharedModule(const SharedModule &) = delete;
  SharedModule &operator=(const SharedModule &) = delete;

  const lathe_module &abi() const { return *module; }

private:
  SharedModule() = default;
  absl::Status bind(const std::string &path);

  void *library = nullptr;
  const lathe_module *module = nullptr;
};

} // namespace lathe

#endif
