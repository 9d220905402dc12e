#include "base/Crc32c.h"
#include "base/ProtoWire.h"
#include "base/SortedTable.h"
#include "base/TensorBundle.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace lathe {
namespace {

using Entry = TensorBundleReader::Entry;

std::string encodeEntry(const Entry &entry) {
  std::string out;
  appendProtoNumber(out, 1, static_cast<uint64_t>(entry.dtype));
  appendProtoBytes(out, 2, encodeShape(entry.dims));
  if (entry.shard)
    appendProtoNumber(out, 3, static_cast<uint64_t>(entry.shard));
  if (entry.offset)
    appendProtoNumber(out, 4, static_cast<uint64_t>(entry.offset));
  if (entry.size)
    appendProtoNumber(out, 5, static_cast<uint64_t>(entry.size));
  if (entry.maskedCrc)
    appendProtoFixed32(out, 6, entry.maskedCrc);
  for (const TensorSlice &slice : entry.slices)
    appendProtoBytes(out, 7, encodeSlice(slice));
  return out;
}

absl::Status writeIndex(const std::string &path, const std::map<std::string, Entry> &entries, int64_t shards) {
  TableEntries table;
  std::string header, version;
  appendProtoNumber(header, 1, static_cast<uint64_t>(shards));
  appendProtoNumber(version, 1, 1); // producer
  appendProtoBytes(header, 3, version);
  table.emplace_back("", header);
  for (const auto &[name, entry] : entries)
    table.emplace_back(name, encodeEntry(entry));
  return writeFile(path, writeSortedTable(table));
}

absl::Status rename(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) == 0)
    return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("cannot rename '", from, "' to '", to, "': ", std::strerror(errno)));
}

absl::Status makeFolder(const std::string &prefix) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
  if (!folder.empty())
    std::filesystem::create_directories(folder, error);
  if (error)
    return absl::NotFoundError(absl::StrCat("cannot create '", folder.string(), "': ", error.message()));
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::unique_ptr<TensorBundleWriter>> TensorBundleWriter::create(const std::string &prefix) {
  if (absl::Status made = makeFolder(prefix); !made.ok())
    return made;
  static std::atomic<uint64_t> serial{0};
  auto writer = std::make_unique<TensorBundleWriter>();
  writer->prefix = prefix;
  writer->temporary = absl::StrCat(".tempstate", getpid(), "-", serial++);
  writer->dataPath = prefix + ".data-00000-of-00001";
  std::string path = writer->dataPath + writer->temporary;
  writer->file = std::fopen(path.c_str(), "wb");
  if (!writer->file)
    return absl::NotFoundError(absl::StrCat("cannot create '", path, "': ", std::strerror(errno)));
  return writer;
}

TensorBundleWriter::~TensorBundleWriter() {
  if (!file)
    return;
  std::fclose(file);
  std::remove((dataPath + temporary).c_str());
}

absl::Status TensorBundleWriter::write(const void *data, size_t size) {
  if (size && std::fwrite(data, 1, size, file) != size)
    return absl::DataLossError(absl::StrCat("cannot write '", dataPath, "': ", std::strerror(errno)));
  offset += static_cast<int64_t>(size);
  return absl::OkStatus();
}

absl::Status TensorBundleWriter::append(Entry &entry, const Tensor &tensor) {
  entry.dtype = tensor.dtype();
  entry.dims = tensor.dims();
  entry.offset = offset;
  uint32_t crc = 0;
  absl::Status status;
  if (tensor.dtype() == DType::String) {
    // the lengths are summed as numbers, not as the varints they are stored as
    std::string lengths;
    for (const std::string &s : tensor.strings()) {
      uint64_t length = s.size();
      appendVarint(lengths, length);
      crc = crc32cExtend(crc, &length, length > UINT32_MAX ? 8 : 4);
    }
    uint32_t masked = crc32cMask(crc);
    appendLittle(lengths, masked, 4);
    crc = crc32cExtend(crc, &masked, 4);
    status = write(lengths.data(), lengths.size());
    for (const std::string &s : tensor.strings()) {
      crc = crc32cExtend(crc, s.data(), s.size());
      if (status.ok())
        status = write(s.data(), s.size());
    }
  } else if (dtypeSize(tensor.dtype()) == 0) {
    return absl::UnimplementedError(absl::StrCat("tensors of type ", dtypeName(tensor.dtype()), " cannot be saved"));
  } else {
    crc = crc32c(tensor.data(), static_cast<size_t>(tensor.sizeBytes()));
    status = write(tensor.data(), static_cast<size_t>(tensor.sizeBytes()));
  }
  entry.size = offset - entry.offset;
  entry.maskedCrc = crc32cMask(crc);
  return status;
}

absl::Status TensorBundleWriter::add(const std::string &name, const Tensor &tensor) {
  if (name.empty() || name[0] == '\0')
    return absl::InvalidArgumentError("a tensor in a checkpoint needs a name");
  if (entries.count(name))
    return absl::AlreadyExistsError(absl::StrCat("tensor '", name, "' was already added"));
  Entry entry;
  if (absl::Status written = append(entry, tensor); !written.ok())
    return written;
  entries.emplace(name, std::move(entry));
  return absl::OkStatus();
}

absl::Status TensorBundleWriter::addSlice(const std::string &name, const std::vector<int64_t> &full,
                                          const TensorSlice &slice, const Tensor &part) {
  auto dims = slice.apply(full);
  if (!dims.ok())
    return dims.status();
  if (*dims != part.dims())
    return absl::InvalidArgumentError(absl::StrCat("the slice of '", name, "' has shape ", dimsToString(*dims),
                                                   ", the tensor ", dimsToString(part.dims())));
  auto [whole, isNew] = entries.try_emplace(name);
  if (isNew) {
    whole->second.dtype = part.dtype();
    whole->second.dims = full;
  } else if (whole->second.slices.empty() || whole->second.dims != full || whole->second.dtype != part.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat("the slices of '", name, "' disagree about shape or type"));
  }
  std::string key = sliceKey(name, slice);
  if (entries.count(key))
    return absl::AlreadyExistsError(absl::StrCat("a slice of '", name, "' was already added"));
  Entry entry;
  if (absl::Status written = append(entry, part); !written.ok())
    return written;
  whole->second.slices.push_back(slice);
  entries.emplace(std::move(key), std::move(entry));
  return absl::OkStatus();
}

absl::Status TensorBundleWriter::finish() {
  bool closed = std::fclose(file) == 0;
  file = nullptr;
  if (!closed)
    return absl::DataLossError(absl::StrCat("cannot write '", dataPath, "': ", std::strerror(errno)));
  if (absl::Status moved = rename(dataPath + temporary, dataPath); !moved.ok())
    return moved;
  std::string index = prefix + ".index";
  if (absl::Status written = writeIndex(index + temporary, entries, 1); !written.ok())
    return written;
  return rename(index + temporary, index);
}

absl::Status mergeTensorBundles(const std::vector<std::string> &prefixes, const std::string &destination,
                                bool allowMissing) {
  if (absl::Status made = makeFolder(destination); !made.ok())
    return made;
  std::map<std::string, Entry> merged;
  std::vector<std::string> shards;
  for (const std::string &prefix : prefixes) {
    auto reader = TensorBundleReader::open(prefix);
    if (!reader.ok()) {
      if (allowMissing && absl::IsNotFound(reader.status()))
        continue;
      return reader.status();
    }
    int64_t first = static_cast<int64_t>(shards.size());
    for (const auto *part : {&(*reader)->entries(), &(*reader)->partEntries()})
      for (auto [name, entry] : *part) {
        auto it = merged.find(name);
        if (it == merged.end()) {
          if (entry.slices.empty())
            entry.shard += first;
          merged.emplace(name, std::move(entry));
        } else if (it->second.slices.empty() || entry.slices.empty() || it->second.dims != entry.dims ||
                   it->second.dtype != entry.dtype) {
          return absl::InvalidArgumentError(absl::StrCat("duplicate tensor '", name, "' in the checkpoints"));
        } else {
          it->second.slices.insert(it->second.slices.end(), entry.slices.begin(), entry.slices.end());
        }
      }
    for (int64_t shard = 0; shard < (*reader)->shardCount(); ++shard)
      shards.push_back((*reader)->shardPath(shard));
  }
  if (shards.empty())
    return absl::NotFoundError("there is no checkpoint to merge");
  for (size_t i = 0; i < shards.size(); ++i) {
    std::string to = absl::StrFormat("%s.data-%05d-of-%05d", destination, i, shards.size());
    if (absl::Status moved = rename(shards[i], to); !moved.ok())
      return moved;
  }
  if (absl::Status written = writeIndex(destination + ".index", merged, static_cast<int64_t>(shards.size()));
      !written.ok())
    return written;
  for (const std::string &prefix : prefixes)
    if (prefix != destination)
      std::remove((prefix + ".index").c_str());
  return absl::OkStatus();
}

} // namespace lathe
