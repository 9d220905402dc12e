// EmptyTensorMap, TensorMapInsert, Lookup, Erase, HasKey, Size, StackKeys: a variant from tensors to tensors.
#include "runtime/kernels/lists/Shapes.h"

#include <cstring>
#include <unordered_map>

namespace lathe::rt {
namespace {

/// Type, shape and bytes of a key. Floats count by their value: both zeros are one key.
std::string keyOf(const Tensor &t) {
  std::string key = absl::StrCat(static_cast<int>(t.dtype()), dimsToString(t.dims()));
  if (t.dtype() == DType::String) {
    for (const std::string &s : t.strings())
      absl::StrAppend(&key, s.size(), ":", s);
    return key;
  }
  size_t at = key.size();
  key.resize(at + t.sizeBytes());
  std::memcpy(&key[at], t.data(), t.sizeBytes());
  auto dropSign = [&](auto zero) {
    for (size_t i = at; i < key.size(); i += sizeof(zero))
      if (decltype(zero) v; std::memcpy(&v, &key[i], sizeof(v)), v == zero)
        std::memset(&key[i], 0, sizeof(v));
  };
  if (t.dtype() == DType::Float32 || t.dtype() == DType::Complex64)
    dropSign(0.0f);
  else if (t.dtype() == DType::Float64 || t.dtype() == DType::Complex128)
    dropSign(0.0);
  return key;
}

/// Entries in the order of their insertion.
class TensorMap : public VariantMath {
public:
  std::string describe() const override { return "tensor map"; }
  struct Entry {
    Tensor key, value;
  };
  std::vector<Entry> entries;
  std::unordered_map<std::string, size_t> index;

  absl::StatusOr<ObjectPtr> zerosLike() const override {
    auto zero = std::make_shared<TensorMap>(*this);
    for (Entry &entry : zero->entries) {
      auto z = zerosLikeTensor(entry.value);
      if (!z.ok())
        return z.status();
      entry.value = *std::move(z);
    }
    return ObjectPtr(std::move(zero));
  }
  /// A key that only one has keeps its value.
  absl::StatusOr<ObjectPtr> plus(const Object &o) const override {
    const auto *other = dynamic_cast<const TensorMap *>(&o);
    if (!other)
      return absl::InvalidArgumentError("a map can only be added to a map");
    auto sum = std::make_shared<TensorMap>(*this);
    for (const Entry &entry : other->entries) {
      const Tensor *own = find(entry.key);
      if (!own) {
        sum->insert(entry.key, entry.value);
        continue;
      }
      auto added = addTensors(*own, entry.value);
      if (!added.ok())
        return added.status();
      sum->insert(entry.key, *std::move(added));
    }
    return ObjectPtr(std::move(sum));
  }

  const Tensor *find(const Tensor &key) const {
    auto it = index.find(keyOf(key));
    return it == index.end() ? nullptr : &entries[it->second].value;
  }
  void insert(Tensor key, Tensor value) {
    auto [it, isNew] = index.emplace(keyOf(key), entries.size());
    if (isNew)
      entries.push_back({std::move(key), std::move(value)});
    else
      entries[it->second].value = std::move(value);
  }
  bool erase(const Tensor &key) {
    auto it = index.find(keyOf(key));
    if (it == index.end())
      return false;
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(it->second));
    index.clear();
    for (size_t i = 0; i < entries.size(); ++i)
      index.emplace(keyOf(entries[i].key), i);
    return true;
  }
};

absl::StatusOr<std::shared_ptr<const TensorMap>> mapInput(const KernelContext &context) {
  Tensor t = context.input(0);
  std::shared_ptr<TensorMap> map;
  if (t.dtype() == DType::Variant && t.numElements() == 1)
    map = std::dynamic_pointer_cast<TensorMap>(t.objects()[0]);
  if (!map)
    return absl::InvalidArgumentError("Input handle is not a map.");
  return std::shared_ptr<const TensorMap>(map);
}

Tensor mapTensor(std::shared_ptr<TensorMap> map) { return Tensor::fromObjects(DType::Variant, {}, {std::move(map)}); }

absl::Status empty(KernelContext &context) {
  context.setOutput(0, mapTensor(std::make_shared<TensorMap>()));
  return absl::OkStatus();
}

absl::Status size(KernelContext &context) {
  auto map = mapInput(context);
  if (!map.ok())
    return map.status();
  context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>((*map)->entries.size())));
  return absl::OkStatus();
}

absl::Status insert(KernelContext &context) {
  auto map = mapInput(context);
  if (!map.ok())
    return map.status();
  auto changed = std::make_shared<TensorMap>(**map);
  changed->insert(context.input(1), context.input(2));
  context.setOutput(0, mapTensor(std::move(changed)));
  return absl::OkStatus();
}

absl::Status lookup(KernelContext &context) {
  auto map = mapInput(context);
  if (!map.ok())
    return map.status();
  const Tensor *value = (*map)->find(context.input(1));
  if (!value)
    return absl::InvalidArgumentError("Trying to lookup non-existent key. Could not find key in the map.");
  if (value->dtype() != context.node->outputTypes[0])
    return absl::InvalidArgumentError(absl::StrCat("the value is of type ", dtypeName(value->dtype()), ", not ",
                                                   dtypeName(context.node->outputTypes[0])));
  context.setOutput(0, *value);
  return absl::OkStatus();
}

absl::Status erase(KernelContext &context) {
  auto map = mapInput(context);
  if (!map.ok())
    return map.status();
  auto changed = std::make_shared<TensorMap>(**map);
  if (!changed->erase(context.input(1)))
    return absl::InvalidArgumentError("Trying to erase non-existent item. Could not find key in the map.");
  context.setOutput(0, mapTensor(std::move(changed)));
  return absl::OkStatus();
}

absl::Status hasKey(KernelContext &context) {
  auto map = mapInput(context);
  if (!map.ok())
    return map.status();
  context.setOutput(0, Tensor::scalar<bool>(DType::Bool, (*map)->find(context.input(1)) != nullptr));
  return absl::OkStatus();
}

absl::Status stackKeys(KernelContext &context) {
  auto map = mapInput(context);
  if (!map.ok())
    return map.status();
  if ((*map)->entries.empty())
    return absl::InvalidArgumentError("TensorMapStackKeys cannot be called on empty map.");
  std::vector<Tensor> keys;
  for (const TensorMap::Entry &entry : (*map)->entries) {
    if (entry.key.dtype() != context.node->outputTypes[0])
      return absl::InvalidArgumentError("Key does not match requested dtype.");
    keys.push_back(entry.key);
  }
  auto out = stackRows(keys);
  if (!out.ok())
    return out.status();
  context.setOutput(0, *std::move(out));
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(EmptyTensorMap, empty);
LATHE_HOST_FUNCTION(TensorMapSize, size);
LATHE_HOST_FUNCTION(TensorMapInsert, insert);
LATHE_HOST_FUNCTION(TensorMapLookup, lookup);
LATHE_HOST_FUNCTION(TensorMapErase, erase);
LATHE_HOST_FUNCTION(TensorMapHasKey, hasKey);
LATHE_HOST_FUNCTION(TensorMapStackKeys, stackKeys);

} // namespace
} // namespace lathe::rt
