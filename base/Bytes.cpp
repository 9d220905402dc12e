#include "base/Bytes.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>

namespace lathe {

using File = std::unique_ptr<FILE, int (*)(FILE *)>;

absl::StatusOr<std::string> readFile(const std::string &path, uint64_t maxBytes) {
  // opening a pipe would wait for its writer
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  File file(fd < 0 ? nullptr : fdopen(fd, "rb"), std::fclose);
  if (!file)
    return absl::NotFoundError(absl::StrCat("cannot open '", path, "': ", std::strerror(errno)));
  struct stat st;
  if (fstat(fileno(file.get()), &st) != 0 || !S_ISREG(st.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no regular file"));
  if (static_cast<uint64_t>(st.st_size) > maxBytes)
    return absl::ResourceExhaustedError(absl::StrCat("'", path, "' is larger than ", maxBytes, " bytes"));
  std::string bytes(static_cast<size_t>(st.st_size), '\0');
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size())
    return absl::DataLossError(absl::StrCat("cannot read all of '", path, "'"));
  return bytes;
}

absl::Status writeFile(const std::string &path, std::string_view bytes) {
  File file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file)
    return absl::NotFoundError(absl::StrCat("cannot create '", path, "': ", std::strerror(errno)));
  bool ok = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  ok &= std::fclose(file.release()) == 0;
  if (!ok)
    return absl::DataLossError(absl::StrCat("cannot write '", path, "': ", std::strerror(errno)));
  return absl::OkStatus();
}

} // namespace lathe
