#include "runtime/session/SharedModule.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lathe {

absl::StatusOr<std::shared_ptr<SharedModule>> SharedModule::open(const std::string &path, const std::string &weights) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return absl::NotFoundError(absl::StrCat("cannot read '", path, "': ", std::strerror(errno)));
  // a name without a slash would be searched for elsewhere
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  std::shared_ptr<SharedModule> m(new SharedModule);
  m->library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!m->library)
    return absl::InvalidArgumentError(absl::StrCat("cannot load '", path, "': ", dlerror()));
  auto query = reinterpret_cast<lathe_module_query_fn>(dlsym(m->library, "lathe_module_query"));
  m->module = query ? query() : nullptr;
  if (!m->module)
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' holds no module: it exports no lathe_module_query"));
  if (m->module->abi_version != LATHE_ABI_VERSION)
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' is of version ", m->module->abi_version, " of the module ABI, expected ",
                                                      LATHE_ABI_VERSION));
  if (m->module->bind_weights) {
    if (weights.empty() && !*m->module->bound_weights)
      return absl::FailedPreconditionError(absl::StrCat("'", path, "' was compiled with its weights in a file, which is not given"));
    if (!*m->module->bound_weights)
      if (absl::Status s = m->bind(weights); !s.ok())
        return s;
  } else if (!weights.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' holds its weights itself; '", weights, "' is not used"));
  }
  return m;
}

absl::Status SharedModule::bind(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    absl::Status s = absl::NotFoundError(absl::StrCat("cannot read '", path, "': ", std::strerror(errno)));
    if (fd >= 0)
      close(fd);
    return s;
  }
  void *data = info.st_size ? mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (data == MAP_FAILED)
    return absl::InvalidArgumentError(absl::StrCat("cannot map '", path, "'"));
  if (module->bind_weights(data, static_cast<uint64_t>(info.st_size)) == 0)
    return absl::OkStatus(); // mapped from now on: the module is the process's, and others may have loaded it too
  munmap(data, static_cast<size_t>(info.st_size));
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' does not hold this module's weights"));
}

SharedModule::~SharedModule() {
  if (library)
    dlclose(library);
}

} // namespace lathe
