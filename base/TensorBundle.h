// TensorFlow's checkpoint format: PREFIX.index, a sorted table from names to entries, and shards PREFIX.data-K-of-N.
#ifndef LATHE_BASE_TENSORBUNDLE_H
#define LATHE_BASE_TENSORBUNDLE_H

#include "base/Tensor.h"
#include "base/TensorSlice.h"

#include <cstdio>
#include <map>
#include <memory>
#include <string_view>

namespace lathe {

class TensorBundleReader {
public:
  using Slice = TensorSlice;
  struct Entry {
    DType dtype = DType::Invalid;
    std::vector<int64_t> dims;
    int64_t shard = 0, offset = 0, size = 0;
    uint32_t maskedCrc = 0;
    /// Parts of a partitioned tensor, stored under names of their own.
    std::vector<Slice> slices;
  };

  /// Reads the index. `maxIndexBytes` bounds its size once uncompressed.
  static absl::StatusOr<std::unique_ptr<TensorBundleReader>> open(const std::string &prefix,
                                                                  int64_t maxIndexBytes = INT64_C(1) << 31);

  /// How many data files there are, and their names.
  int64_t shardCount() const { return numShards; }
  std::string shardPath(int64_t shard) const;

  /// Names in sorted order, parts of partitioned tensors left out.
  const std::map<std::string, Entry> &entries() const { return named; }
  const Entry *find(const std::string &name) const;
  /// The parts of partitioned tensors, by sliceKey.
  const std::map<std::string, Entry> &partEntries() const { return parts; }

  /// Reads one tensor and checks its CRC; partitioned tensors are put together.
  absl::StatusOr<Tensor> read(const std::string &name) const;

private:
  absl::StatusOr<std::string> readBytes(const Entry &entry) const;
  absl::Status readInto(const Entry &entry, char *to) const;
  absl::StatusOr<Tensor> readEntry(const std::string &name, const Entry &entry) const;
  absl::StatusOr<Tensor> readSliced(const std::string &name, const Entry &entry) const;

  std::string prefix;
  int64_t numShards = 0;
  std::map<std::string, Entry> named;
  std::map<std::string, Entry> parts;
};

/// Writes a checkpoint of one shard: the data as tensors are added, the index at the end, both under temporary names
/// until then.
class TensorBundleWriter {
public:
  /// Creates the folder if need be.
  static absl::StatusOr<std::unique_ptr<TensorBundleWriter>> create(const std::string &prefix);
  ~TensorBundleWriter();

  /// ALREADY_EXISTS for a name added before; UNIMPLEMENTED for resources and variants.
  absl::Status add(const std::string &name, const Tensor &tensor);
  /// A part of a tensor of shape `full`.
  absl::Status addSlice(const std::string &name, const std::vector<int64_t> &full, const TensorSlice &slice,
                        const Tensor &part);
  absl::Status finish();

private:
  absl::Status append(TensorBundleReader::Entry &entry, const Tensor &tensor);
  absl::Status write(const void *data, size_t size);

  std::string prefix, dataPath, temporary;
  FILE *file = nullptr;
  int64_t offset = 0;
  std::map<std::string, TensorBundleReader::Entry> entries;
};

/// Puts checkpoints together under one prefix, as shards of it; their files are moved. NOT_FOUND for a missing one unless
/// `allowMissing`, INVALID_ARGUMENT when two hold the same tensor.
absl::Status mergeTensorBundles(const std::vector<std::string> &prefixes, const std::string &destination,
                                bool allowMissing);

} // namespace lathe

#endif
