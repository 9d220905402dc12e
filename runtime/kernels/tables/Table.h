// Lookup tables: keys of any scalar or row type to values that are scalars or rows.
#ifndef LATHE_RUNTIME_KERNELS_TABLES_TABLE_H
#define LATHE_RUNTIME_KERNELS_TABLES_TABLE_H

#include "runtime/kernels/Common.h"

#include <mutex>
#include <unordered_map>

namespace lathe::rt {

/// A map from the bytes of a key to the place of its value. Exports of a Mutable table have TensorFlow's order, which is that
/// of a std::unordered_map of the keys themselves.
class Table : public Resource {
public:
  enum class Kind { Fixed, Mutable, Dense };

  Table(Kind kind, DType keyType, DType valueType, std::vector<int64_t> keyDims, std::vector<int64_t> valueDims)
      : kind(kind), keyType(keyType), valueType(valueType), keyDims(std::move(keyDims)), valueDims(std::move(valueDims)),
        places(0, KeyHash{keyType, this->keyDims.empty()}) {}
  std::string describe() const override { return "lookup table"; }

  /// values[i] is that of keys[i], else the default: one value, or as many as keys. FAILED_PRECONDITION before a fixed
  /// table is initialised.
  absl::Status find(const KernelContext &context, const Tensor &keys, const Tensor &rest, Tensor *values) const;
  /// Adds entries, replacing those of equal keys; `clear` first drops what is there (import).
  absl::Status insert(const Tensor &keys, const Tensor &values, bool clear);
  /// Fills a fixed table once; the same entries again are accepted, others under the same key are refused.
  absl::Status initialize(const Tensor &keys, const Tensor &values);
  absl::Status remove(const Tensor &keys);
  absl::StatusOr<int64_t> size() const;
  /// All entries; a Dense table gives its buckets as rows of two matrices, free ones with the empty or deleted key.
  absl::Status exportAll(const KernelContext &context, Tensor *keys, Tensor *values) const;

  /// Of Dense tables: keys that stand for free places. Set before use.
  Tensor emptyKey, deletedKey;
  int64_t initialBuckets = 0;
  double maxLoad = 0.8;

  const Kind kind;
  const DType keyType, valueType;
  const std::vector<int64_t> keyDims, valueDims;

private:
  int64_t keySize() const { return productOf(keyDims, 0, keyDims.size()); }
  int64_t valueSize() const { return productOf(valueDims, 0, valueDims.size()); }
  std::string keyAt(const Tensor &keys, int64_t i) const;
  absl::Status checkKeys(const Tensor &keys, std::vector<int64_t> *lead) const;
  absl::Status checkNotReserved(const std::string &key, const char *what) const;
  struct Entry {
    Tensor key, value;
  };
  Entry entryOf(const Tensor &keys, const Tensor &values, int64_t i) const;

  // Dense tables keep TensorFlow's layout of buckets, which exports show: probing is quadratic from the key's hash.
  uint64_t hashOf(const Tensor &keys, int64_t i) const;
  void placeInBucket(uint64_t hash, const std::string &key, const Entry &entry);
  void growBuckets(int64_t added);
  void makeBuckets(int64_t count);
  struct Bucket {
    std::string key; ///< bytes; those of the empty or the deleted key where it is free
    uint64_t hash = 0;
    Entry entry; ///< invalid where nothing ever was
  };
  std::vector<Bucket> buckets;

  mutable std::mutex mutex;
  /// Hashes the bytes of a key as TensorFlow does the key.
  struct KeyHash {
    DType type;
    bool scalar;
    size_t operator()(const std::string &bytes) const;
  };
  std::unordered_map<std::string, int64_t, KeyHash> places; ///< into entries
  std::vector<Entry> entries;                      ///< an invalid key marks a removed entry
  int64_t live = 0;
  bool initialized = false;
};

} // namespace lathe::rt

#endif
