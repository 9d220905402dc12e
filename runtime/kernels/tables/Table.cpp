#include "runtime/kernels/tables/Table.h"

#include "base/Hash.h"

#include <algorithm>
#include <cstring>

namespace lathe::rt {

std::string Table::keyAt(const Tensor &keys, int64_t i) const {
  int64_t n = keySize();
  if (keyType == DType::String && n == 1)
    return keys.strings()[i];
  std::string bytes;
  if (keyType == DType::String) {
    for (int64_t k = 0; k < n; ++k) {
      const std::string &s = keys.strings()[i * n + k];
      uint64_t size = s.size();
      bytes.append(reinterpret_cast<const char *>(&size), 8);
      bytes += s;
    }
    return bytes;
  }
  if (isFloating(keyType)) {
    // equal numbers have one key: -0 is 0
    for (int64_t k = 0; k < n; ++k) {
      double v = realAt(keys, i * n + k) + 0.0;
      bytes.append(reinterpret_cast<const char *>(&v), 8);
    }
    return bytes;
  }
  int64_t size = static_cast<int64_t>(dtypeSize(keyType)) * n;
  return std::string(keys.data<char>() + i * size, size);
}

size_t Table::KeyHash::operator()(const std::string &bytes) const {
  if (!scalar)
    return std::hash<std::string>()(bytes);
  auto integer = [&](auto v) {
    std::memcpy(&v, bytes.data(), sizeof v);
    return std::hash<decltype(v)>()(v);
  };
  switch (type) {
  case DType::String:
    return murmur64(bytes);
  case DType::Int64:
    return integer(int64_t());
  case DType::Int32:
    return integer(int32_t());
  case DType::Float32: { // the bytes are those of a double
    double v;
    std::memcpy(&v, bytes.data(), sizeof v);
    return std::hash<float>()(static_cast<float>(v));
  }
  case DType::Float64:
    return integer(double());
  default:
    return std::hash<std::string>()(bytes);
  }
}

absl::Status Table::checkKeys(const Tensor &keys, std::vector<int64_t> *lead) const {
  if (keys.dtype() != keyType)
    return invalid("Key must be type ", dtypeName(keyType), " but got ", dtypeName(keys.dtype()));
  size_t own = keyDims.size();
  if (keys.dims().size() < own || !std::equal(keyDims.begin(), keyDims.end(), keys.dims().end() - own))
    return invalid("Input key shape ", dimsToString(keys.dims()), " must end with the table's key shape ", dimsToString(keyDims));
  lead->assign(keys.dims().begin(), keys.dims().end() - own);
  return absl::OkStatus();
}

Table::Entry Table::entryOf(const Tensor &keys, const Tensor &values, int64_t i) const {
  Entry entry{Tensor::allocate(keyType, keyDims), Tensor::allocate(valueType, valueDims)};
  for (int64_t k = 0, n = keySize(); k < n; ++k)
    copyElement(entry.key, k, keys, i * n + k);
  for (int64_t k = 0, n = valueSize(); k < n; ++k)
    copyElement(entry.value, k, values, i * n + k);
  return entry;
}

absl::Status Table::checkNotReserved(const std::string &key, const char *what) const {
  if (kind != Kind::Dense)
    return absl::OkStatus();
  if (key == keyAt(emptyKey, 0))
    return invalid("Using the empty_key as a table key is not allowed: ", what);
  if (deletedKey.valid() && key == keyAt(deletedKey, 0))
    return invalid("Using the deleted_key as a table key is not allowed: ", what);
  return absl::OkStatus();
}

uint64_t Table::hashOf(const Tensor &keys, int64_t i) const {
  auto one = [&](int64_t at) {
    if (keyType == DType::String)
      return murmur64(keys.strings()[at]);
    return isFloating(keyType) ? static_cast<uint64_t>(realAt(keys, at)) : static_cast<uint64_t>(intAt(keys, at));
  };
  if (keyDims.empty())
    return one(i);
  uint64_t hash = 0;
  for (int64_t k = 0, n = keySize(); k < n; ++k)
    hash ^= one(i * n + k) + 0x9e3779b97f4a7800u + (hash << 10) + (hash >> 4);
  return hash;
}

void Table::makeBuckets(int64_t count) {
  buckets.assign(count, Bucket());
  for (Bucket &bucket : buckets)
    bucket.key = keyAt(emptyKey, 0);
}

void Table::placeInBucket(uint64_t hash, const std::string &key, const Entry &entry) {
  std::string empty = keyAt(emptyKey, 0), deleted = deletedKey.valid() ? keyAt(deletedKey, 0) : empty;
  uint64_t mask = buckets.size() - 1;
  for (uint64_t at = hash & mask, probes = 0; probes < buckets.size(); at = (at + ++probes) & mask) {
    Bucket &bucket = buckets[at];
    if (bucket.key == key || bucket.key == empty || bucket.key == deleted) {
      bucket = {key, hash, entry};
      return;
    }
  }
}

void Table::growBuckets(int64_t added) {
  if (buckets.empty())
    makeBuckets(initialBuckets);
  double wanted = static_cast<double>(live + added);
  size_t count = buckets.size();
  while (wanted > static_cast<double>(count) * maxLoad)
    count *= 2;
  if (count == buckets.size())
    return;
  std::string empty = keyAt(emptyKey, 0), deleted = deletedKey.valid() ? keyAt(deletedKey, 0) : empty;
  std::vector<Bucket> old = std::move(buckets);
  makeBuckets(static_cast<int64_t>(count));
  for (const Bucket &bucket : old)
    if (bucket.key != empty && bucket.key != deleted)
      placeInBucket(bucket.hash, bucket.key, bucket.entry);
}

absl::Status Table::find(const KernelContext &context, const Tensor &keys, const Tensor &rest, Tensor *values) const {
  std::vector<int64_t> lead;
  LATHE_TRY(checkKeys(keys, &lead));
  if (rest.dtype() != valueType)
    return invalid("Default value must be type ", dtypeName(valueType), " but got ", dtypeName(rest.dtype()));
  std::vector<int64_t> dims = lead;
  dims.insert(dims.end(), valueDims.begin(), valueDims.end());
  int64_t count = productOf(lead, 0, lead.size()), n = valueSize();
  bool each = rest.dims() == dims && kind == Kind::Mutable;
  if (!each && rest.dims() != valueDims)
    return invalid("Expected shape ", dimsToString(valueDims), " for default value, got ", dimsToString(rest.dims()));
  LATHE_TRY_VALUE(out, context.allocate(valueType, dims));
  std::lock_guard<std::mutex> lock(mutex);
  if (kind == Kind::Fixed && !initialized)
    return absl::FailedPreconditionError("Table not initialized.");
  for (int64_t i = 0; i < count; ++i) {
    std::string key = keyAt(keys, i);
    LATHE_TRY(checkNotReserved(key, "find"));
    auto it = places.find(key);
    for (int64_t k = 0; k < n; ++k)
      if (it != places.end())
        copyElement(out, i * n + k, entries[it->second].value, k);
      else
        copyElement(out, i * n + k, rest, each ? i * n + k : k);
  }
  *values = out;
  return absl::OkStatus();
}

absl::Status Table::insert(const Tensor &keys, const Tensor &values, bool clear) {
  if (kind == Kind::Fixed)
    return absl::UnimplementedError("Insert not supported by InitializableLookupTable implementations");
  std::vector<int64_t> lead;
  LATHE_TRY(checkKeys(keys, &lead));
  std::vector<int64_t> dims = lead;
  dims.insert(dims.end(), valueDims.begin(), valueDims.end());
  if (values.dtype() != valueType || values.dims() != dims)
    return invalid("Expected values of ", dtypeName(valueType), " and shape ", dimsToString(dims), ", got ",
                   dtypeName(values.dtype()), " and ", dimsToString(values.dims()));
  int64_t count = productOf(lead, 0, lead.size());
  if (!clear || kind != Kind::Dense)
    for (int64_t i = 0; i < count; ++i)
      LATHE_TRY(checkNotReserved(keyAt(keys, i), "insert"));
  std::lock_guard<std::mutex> lock(mutex);
  if (clear) {
    places.clear();
    entries.clear();
    live = 0;
    // an import brings its own buckets; a number that is no power of two cannot be probed, so it is rounded up
    int64_t rows = 4;
    while (rows < count)
      rows *= 2;
    if (kind == Kind::Dense)
      makeBuckets(rows);
  }
  if (kind == Kind::Dense)
    growBuckets(clear ? 0 : count);
  for (int64_t i = 0; i < count; ++i) {
    std::string key = keyAt(keys, i);
    // an import may hold the free places of the table it was exported from
    if (clear && kind == Kind::Dense && !checkNotReserved(key, "import").ok())
      continue;
    auto [it, isNew] = places.emplace(key, static_cast<int64_t>(entries.size()));
    if (isNew) {
      entries.push_back(entryOf(keys, values, i));
      ++live;
    } else {
      entries[it->second] = entryOf(keys, values, i);
    }
    if (kind != Kind::Dense)
      continue;
    if (clear) // where the exported table had it
      buckets[i] = {key, hashOf(keys, i), entries[it->second]};
    else
      placeInBucket(hashOf(keys, i), key, entries[it->second]);
  }
  return absl::OkStatus();
}

absl::Status Table::initialize(const Tensor &keys, const Tensor &values) {
  if (kind != Kind::Fixed)
    return invalid("only a table without inserts is initialised");
  if (keys.dtype() != keyType || values.dtype() != valueType)
    return invalid("Table of ", dtypeName(keyType), " to ", dtypeName(valueType), " cannot be initialised from ",
                   dtypeName(keys.dtype()), " and ", dtypeName(values.dtype()));
  if (keys.numElements() != values.numElements())
    return invalid("Keys and values must have the same size ", keys.numElements(), " vs ", values.numElements());
  std::lock_guard<std::mutex> lock(mutex);
  decltype(places) newPlaces(0, places.hash_function());
  std::vector<Entry> newEntries;
  for (int64_t i = 0; i < keys.numElements(); ++i) {
    Entry entry = entryOf(keys, values, i);
    auto [it, isNew] = newPlaces.emplace(keyAt(keys, i), static_cast<int64_t>(newEntries.size()));
    if (isNew) {
      newEntries.push_back(entry);
      continue;
    }
    const Tensor &old = newEntries[it->second].value;
    bool same = valueType == DType::String ? old.strings() == entry.value.strings()
                                           : !memcmp(old.data(), entry.value.data(), old.sizeBytes());
    if (!same)
      return invalid("HashTable has different value for same key. Key ", summarize(entry.key, 1, false), " has ",
                     summarize(old, 1, false), " and trying to add value ", summarize(entry.value, 1, false));
  }
  if (initialized) {
    // initialising again with the same contents is no error
    if (newPlaces.size() == places.size())
      return absl::OkStatus();
    return absl::FailedPreconditionError("Table already initialized.");
  }
  places = std::move(newPlaces);
  entries = std::move(newEntries);
  live = static_cast<int64_t>(entries.size());
  initialized = true;
  return absl::OkStatus();
}

absl::Status Table::remove(const Tensor &keys) {
  if (kind == Kind::Fixed)
    return absl::UnimplementedError("Remove not supported by InitializableLookupTable implementations");
  std::vector<int64_t> lead;
  LATHE_TRY(checkKeys(keys, &lead));
  std::lock_guard<std::mutex> lock(mutex);
  for (int64_t i = 0, n = productOf(lead, 0, lead.size()); i < n; ++i) {
    std::string key = keyAt(keys, i);
    LATHE_TRY(checkNotReserved(key, "remove"));
    auto it = places.find(key);
    if (it == places.end())
      continue;
    entries[it->second] = Entry();
    places.erase(it);
    --live;
    for (Bucket &bucket : buckets)
      if (bucket.key == key)
        bucket.key = keyAt(deletedKey.valid() ? deletedKey : emptyKey, 0);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Table::size() const {
  std::lock_guard<std::mutex> lock(mutex);
  return live;
}

absl::Status Table::exportAll(const KernelContext &context, Tensor *keys, Tensor *values) const {
  std::lock_guard<std::mutex> lock(mutex);
  if (kind == Kind::Fixed && !initialized)
    return absl::FailedPreconditionError("Table not initialized.");
  int64_t rows = live;
  if (kind == Kind::Dense)
    rows = buckets.empty() ? initialBuckets : static_cast<int64_t>(buckets.size());
  std::vector<int64_t> keyShape = {rows}, valueShape = {rows};
  keyShape.insert(keyShape.end(), keyDims.begin(), keyDims.end());
  valueShape.insert(valueShape.end(), valueDims.begin(), valueDims.end());
  if (kind == Kind::Dense) {
    keyShape = {rows, keySize()};
    valueShape = {rows, valueSize()};
  }
  LATHE_TRY_VALUE(allKeys, context.allocate(keyType, keyShape));
  LATHE_TRY_VALUE(allValues, context.allocate(valueType, valueShape));
  auto store = [&](int64_t at, const Tensor &key, const Tensor &value) {
    for (int64_t k = 0, n = keySize(); k < n; ++k)
      copyElement(allKeys, at * n + k, key, k);
    for (int64_t k = 0, n = valueSize(); k < n && value.valid(); ++k)
      copyElement(allValues, at * n + k, value, k);
  };
  int64_t at = 0;
  if (kind == Kind::Dense) {
    std::string empty = keyAt(emptyKey, 0);
    for (; at < rows; ++at) {
      const Bucket *bucket = buckets.empty() ? nullptr : &buckets[at];
      if (!bucket || bucket->key == empty)
        store(at, emptyKey, bucket ? bucket->entry.value : Tensor());
      else if (deletedKey.valid() && bucket->key == keyAt(deletedKey, 0))
        store(at, deletedKey, bucket->entry.value);
      else
        store(at, bucket->entry.key, bucket->entry.value);
    }
  }
  if (kind == Kind::Mutable)
    for (auto &[key, place] : places)
      store(at++, entries[place].key, entries[place].value);
  for (const Entry &entry : entries)
    if (kind == Kind::Fixed && entry.key.valid())
      store(at++, entry.key, entry.value);
  *keys = allKeys;
  *values = allValues;
  return absl::OkStatus();
}

} // namespace lathe::rt
