#include "runtime/core/Resource.h"

#include "absl/strings/str_cat.h"

namespace lathe::rt {

Tensor makeHandle(std::string container, std::string name, std::shared_ptr<Resource> resource) {
  return Tensor::fromObjects(DType::Resource, {},
                             {std::make_shared<ResourceHandle>(std::move(container), std::move(name), std::move(resource))});
}

absl::StatusOr<std::shared_ptr<Resource>>
ResourceManager::lookupOrCreate(const std::string &container, const std::string &name, std::type_index type,
                                const std::function<absl::StatusOr<std::shared_ptr<Resource>>()> &create) {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = items.find({container, name});
  if (it == items.end()) {
    auto made = create();
    if (!made.ok())
      return made.status();
    it = items.emplace(std::make_pair(container, name), Item{type, *std::move(made)}).first;
  }
  if (it->second.type != type)
    return absl::InvalidArgumentError(absl::StrCat("resource ", container, "/", name, " exists already and is a ",
                                                   it->second.resource->describe()));
  return it->second.resource;
}

absl::StatusOr<std::shared_ptr<Resource>> ResourceManager::lookup(const std::string &container,
                                                                  const std::string &name) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = items.find({container, name});
  if (it == items.end())
    return absl::NotFoundError(absl::StrCat("resource ", container, "/", name, " does not exist"));
  return it->second.resource;
}

absl::Status ResourceManager::remove(const std::string &container, const std::string &name) {
  std::shared_ptr<Resource> last; // destroyed after the lock is gone
  std::lock_guard<std::mutex> lock(mutex);
  auto it = items.find({container, name});
  if (it == items.end())
    return absl::NotFoundError(absl::StrCat("resource ", container, "/", name, " does not exist"));
  last = std::move(it->second.resource);
  items.erase(it);
  return absl::OkStatus();
}

void ResourceManager::clear(const std::string &container) {
  std::vector<std::shared_ptr<Resource>> last;
  std::lock_guard<std::mutex> lock(mutex);
  for (auto it = items.begin(); it != items.end();) {
    if (it->first.first != container) {
      ++it;
      continue;
    }
    last.push_back(std::move(it->second.resource));
    it = items.erase(it);
  }
}

void ResourceManager::clearAll() {
  std::map<std::pair<std::string, std::string>, Item> last;
  std::lock_guard<std::mutex> lock(mutex);
  last.swap(items);
}

Tensor &Variable::writable() {
  if (!value.isUnique())
    value = value.clone();
  return value;
}

} // namespace lathe::rt
