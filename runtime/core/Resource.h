// Objects that outlive a step (variables, queues, tables, readers ...) and the handles by which tensors name them.
#ifndef LATHE_RUNTIME_CORE_RESOURCE_H
#define LATHE_RUNTIME_CORE_RESOURCE_H

#include "base/Tensor.h"

#include "absl/status/statusor.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>

namespace lathe::rt {

/// Something that outlives a step. Guards itself; destroyed when the last handle and the manager let go.
class Resource {
public:
  virtual ~Resource() = default;
  /// For messages: "FIFOQueue", "Variable".
  virtual std::string describe() const = 0;
};

/// The element of a Resource tensor.
class ResourceHandle : public Object {
public:
  ResourceHandle(std::string container, std::string name, std::shared_ptr<Resource> resource)
      : container(std::move(container)), name(std::move(name)), resource(std::move(resource)) {}
  std::string describe() const override { return "resource " + container + "/" + name; }

  const std::string container, name;
  const std::shared_ptr<Resource> resource;
};

/// A rank-0 Resource tensor.
Tensor makeHandle(std::string container, std::string name, std::shared_ptr<Resource> resource);

/// Resources by container and name. One per device set: sessions that share it share their resources. Every name holds
/// one resource; asking for another type under it is INVALID_ARGUMENT, as in TensorFlow.
class ResourceManager {
public:
  static constexpr const char *kDefaultContainer = "localhost";

  /// `create` runs under the manager's lock and only when the name is free.
  absl::StatusOr<std::shared_ptr<Resource>>
  lookupOrCreate(const std::string &container, const std::string &name, std::type_index type,
                 const std::function<absl::StatusOr<std::shared_ptr<Resource>>()> &create);
  /// NOT_FOUND when there is none.
  absl::StatusOr<std::shared_ptr<Resource>> lookup(const std::string &container, const std::string &name) const;
  /// NOT_FOUND when there is none.
  absl::Status remove(const std::string &container, const std::string &name);
  /// Removes all resources of a container.
  void clear(const std::string &container);
  void clearAll();

  template <typename T>
  absl::StatusOr<std::shared_ptr<T>> lookupOrCreate(const std::string &container, const std::string &name,
                                                    const std::function<absl::StatusOr<std::shared_ptr<T>>()> &create) {
    auto found = lookupOrCreate(container, name, std::type_index(typeid(T)),
                                [&]() -> absl::StatusOr<std::shared_ptr<Resource>> { return create(); });
    if (!found.ok())
      return found.status();
    return std::static_pointer_cast<T>(*std::move(found));
  }

private:
  struct Item {
    std::type_index type;
    std::shared_ptr<Resource> resource;
  };
  mutable std::mutex mutex;
  std::map<std::pair<std::string, std::string>, Item> items;
};

/// The value of a variable, of either kind: a reference tensor (Variable, VariableV2) is this cell itself, a resource
/// variable (VarHandleOp) a handle to it.
class Variable : public Resource {
public:
  explicit Variable(DType type) : dtype(type) {}
  std::string describe() const override { return "Variable"; }

  /// Held while the value is read or written; the value is invalid until the first assignment.
  std::mutex mutex;
  Tensor value;
  const DType dtype;

  /// The value with a buffer that no reader shares: reads hand out the buffer without a copy, so whoever writes in place
  /// asks for this first. Call with the mutex held and a valid value.
  Tensor &writable();
};

} // namespace lathe::rt

#endif
