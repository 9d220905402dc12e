#include "compiler/jit/DiskCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

using llvm::StringRef;

namespace lathe {
namespace {

constexpr StringRef kMagic = "LATHEJC1";
// Variants of one key differ in values that were compiled in.
constexpr int kMaxVariants = 64;

class Writer {
public:
  void number(uint64_t value) { bytes.append(reinterpret_cast<const char *>(&value), sizeof(value)); }
  void text(StringRef value) {
    number(value.size());
    bytes.append(value.begin(), value.end());
  }
  std::string bytes;
};

/// Reads what Writer wrote; `ok` is false for good after the first thing that is not there.
class Reader {
public:
  explicit Reader(StringRef bytes) : rest(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    if (rest.size() < sizeof(value)) {
      ok = false;
      return 0;
    }
    std::memcpy(&value, rest.data(), sizeof(value));
    rest = rest.drop_front(sizeof(value));
    return value;
  }
  StringRef text() {
    uint64_t size = number();
    if (size > rest.size()) {
      ok = false;
      return {};
    }
    StringRef value = rest.take_front(size);
    rest = rest.drop_front(size);
    return value;
  }
  bool ok = true;
  StringRef rest;
};

std::string pathOf(StringRef folder, StringRef key, int variant) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, key + "-" + llvm::Twine(variant) + ".jit");
  return path.str().str();
}

/// A whole file that nobody else could have written: what it holds is run.
std::unique_ptr<llvm::MemoryBuffer> readOwnFile(const std::string &path) {
  int fd;
  if (llvm::sys::fs::openFileForRead(path, fd))
    return nullptr;
  llvm::sys::fs::file_status status;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  if (!llvm::sys::fs::status(fd, status) && status.type() == llvm::sys::fs::file_type::regular_file &&
      (status.getUser() == geteuid() || status.getUser() == 0) &&
      !(status.permissions() & (llvm::sys::fs::group_write | llvm::sys::fs::others_write)))
    if (auto file = llvm::MemoryBuffer::getOpenFile(fd, path, status.getSize(), false, true))
      buffer = std::move(*file);
  close(fd);
  return buffer;
}

std::string digest(StringRef bytes) {
  llvm::BLAKE3 hash;
  hash.update(bytes);
  return llvm::toHex(hash.final<16>(), true);
}

} // namespace

std::string cacheFolder(const char *given) {
  if (given && *given)
    return given;
  const char *folder = secure_getenv("LATHE_CACHE_DIR");
  return folder ? folder : "";
}

const std::string &buildIdentity() {
  static const std::string identity = [] {
    std::string text = LLVM_VERSION_STRING "|" + llvm::sys::getHostCPUName().str() + "|";
    llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
    std::vector<std::string> names;
    for (auto &feature : features)
      if (feature.getValue())
        names.push_back(feature.getKey().str());
    llvm::sort(names);
    text += llvm::join(names, ",");
    // the file that holds this code changes with every build of the compiler; a program may have been started under a name
    // that leads nowhere from the present folder
    Dl_info info;
    llvm::sys::fs::file_status status;
    StringRef file = "/proc/self/exe";
    if (dladdr(reinterpret_cast<void *>(&buildIdentity), &info) && info.dli_fname && StringRef(info.dli_fname).contains(".so"))
      file = info.dli_fname;
    if (llvm::sys::fs::status(file, status, true) || !status.getSize())
      return std::string();
    auto id = status.getUniqueID();
    for (uint64_t number : {static_cast<uint64_t>(status.getSize()), static_cast<uint64_t>(id.getDevice()), static_cast<uint64_t>(id.getFile()),
                            static_cast<uint64_t>(status.getLastModificationTime().time_since_epoch().count())})
      text += "|" + std::to_string(number);
    return text;
  }();
  return identity;
}

bool DiskCache::load(
    const std::string &key, size_t numArgs,
    llvm::function_ref<bool(const std::vector<std::string> &, const std::vector<uint8_t> &)> matches,
    CompiledObject &object, std::vector<std::string> &values) const {
  if (folder.empty() || buildIdentity().empty())
    return false;
  for (int variant = 0; variant < kMaxVariants; ++variant) {
    std::string path = pathOf(folder, key, variant);
    if (!llvm::sys::fs::exists(path))
      return false;
    auto file = readOwnFile(path);
    if (!file)
      continue;
    StringRef content = file->getBuffer();
    if (!content.consume_front(kMagic))
      continue;
    Reader reader(content);
    StringRef hash = reader.text(), body = reader.rest;
    if (!reader.ok || hash != digest(body) || reader.text() != key || reader.number() != numArgs)
      continue;
    std::vector<std::string> stored;
    std::vector<uint8_t> constant, dynamic;
    for (size_t i = 0; i < numArgs && reader.ok; ++i) {
      constant.push_back(reader.number() != 0);
      dynamic.push_back(reader.number() != 0);
      stored.push_back(reader.text().str());
    }
    StringRef prefix = reader.text(), bytes = reader.text();
    if (!reader.ok || !matches(stored, constant))
      continue;
    object.object = bytes.str();
    object.prefix = prefix.str();
    object.constant = std::move(constant);
    object.dynamic = std::move(dynamic);
    values = std::move(stored);
    return true;
  }
  return false;
}

void DiskCache::drop(const std::string &key) const {
  for (int variant = 0; !folder.empty() && variant < kMaxVariants; ++variant)
    llvm::sys::fs::remove(pathOf(folder, key, variant));
}

void DiskCache::store(const std::string &key, const CompiledObject &object,
                      const std::vector<std::string> &values) const {
  if (folder.empty() || buildIdentity().empty() ||
      llvm::sys::fs::create_directories(folder, true, llvm::sys::fs::owner_all))
    return;
  Writer body;
  body.text(key);
  body.number(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    body.number(object.constant[i]);
    body.number(object.dynamic[i]);
    body.text(values[i]);
  }
  body.text(object.prefix);
  body.text(object.object);
  Writer head;
  head.bytes = kMagic.str();
  head.text(digest(body.bytes));
  llvm::SmallString<256> model(folder), temporary;
  llvm::sys::path::append(model, "part-%%%%%%%%%%%%");
  int fd;
  if (llvm::sys::fs::createUniqueFile(model, fd, temporary, llvm::sys::fs::OF_None,
                                      llvm::sys::fs::owner_read | llvm::sys::fs::owner_write))
    return;
  bool ok;
  {
    llvm::raw_fd_ostream os(fd, true);
    os << head.bytes << body.bytes;
    os.flush();
    ok = !os.has_error();
    os.clear_error();
  }
  for (int variant = 0; ok && variant < kMaxVariants; ++variant) {
    std::string path = pathOf(folder, key, variant);
    if (llvm::sys::fs::exists(path))
      continue;
    if (!llvm::sys::fs::rename(temporary, path))
      return;
    break;
  }
  llvm::sys::fs::remove(temporary);
}

} // namespace lathe
