// TensorFlow's checkpoint format: PREFIX.index, a sorted table from names to entries, and shards PREFIX.data-K-of-N.
#ifndef LATHE_BASE_TENSORBUNDLE_H
#define LATHE_BASE_TENSORBUNDLE_H

#include "base/Tensor.h"

#include <map>
#include <string_view>

namespace lathe {

class TensorBundleReader {
public:
  struct Slice {
    /// Start and length in each dimension; length -1 is the whole dimension.
    std::vector<int64_t> start, length;
  };
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

  /// Names in sorted order, parts of partitioned tensors left out.
  const std::map<std::string, Entry> &entries() const { return named; }
  const Entry *find(const std::string &name) const;

  /// Reads one tensor and checks its CRC; partitioned tensors are put together.
  absl::StatusOr<Tensor> read(const std::string &name) const;

private:
  absl::StatusOr<std::string> readBytes(const Entry &entry) const;
  absl::Status readInto(const Entry &entry, char *to) const;
  absl::StatusOr<Tensor> readEntry(const std::string &name, const Entry &entry) const;
  absl::StatusOr<Tensor> readSliced(const std::string &name, const Entry &entry) const;
  std::string shardPath(int64_t shard) const;

  std::string prefix;
  int64_t numShards = 0;
  std::map<std::string, Entry> named;
  std::map<std::string, Entry> parts;
};

} // namespace lathe

#endif
