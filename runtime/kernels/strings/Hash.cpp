// StringToHashBucket in its three forms, Fingerprint.
#include "base/Hash.h"
#include "runtime/kernels/Common.h"

#include <cstring>

namespace lathe::rt {
namespace {

template <typename Hash>
absl::Status buckets(KernelContext &context, Hash hash) {
  int64_t count = *attrOf<int64_t>(*context.node, "num_buckets");
  if (count < 1)
    return invalid("num_buckets must be at least 1, found ", count);
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  for (int64_t i = 0; i < in.numElements(); ++i)
    out.template data<int64_t>()[i] = static_cast<int64_t>(hash(in.strings()[i]) % static_cast<uint64_t>(count));
  return absl::OkStatus();
}

absl::Status legacy(KernelContext &context) {
  return buckets(context, [](const std::string &s) { return murmur64(s); });
}
absl::Status fast(KernelContext &context) {
  return buckets(context, [](const std::string &s) { return fingerprint64(s); });
}
absl::Status strong(KernelContext &context) {
  const auto &key = *attrOf<std::vector<int64_t>>(*context.node, "key");
  if (key.size() != 2)
    return invalid("Key must have 2 elements");
  std::array<uint64_t, 2> words = {static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])};
  return buckets(context, [&](const std::string &s) { return sipHash24(words, s); });
}
LATHE_HOST_FUNCTION(StringToHashBucket, legacy);
LATHE_HOST_FUNCTION(StringToHashBucketFast, fast);
LATHE_HOST_FUNCTION(StringToHashBucketStrong, strong);

absl::Status fingerprint(KernelContext &context) {
  Tensor in = context.input("data"), method = context.input("method");
  if (method.rank() != 0)
    return invalid("`method` should be a scalar string: ", dimsToString(method.dims()));
  if (method.strings()[0] != "farmhash64")
    return invalid("Unsupported fingerprint method: ", method.strings()[0]);
  if (in.rank() < 1)
    return invalid("`data` should have at least one dimension: ", dimsToString(in.dims()));
  int64_t rows = in.dim(0), size = rows ? in.numElements() / rows : 0;
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {rows, 8}));
  for (int64_t i = 0; i < rows; ++i) {
    uint64_t hash;
    if (in.dtype() == DType::String) {
      // a row of several strings hashes their hashes
      std::string row;
      if (size == 1) {
        hash = fingerprint64(in.strings()[i]);
      } else {
        for (int64_t j = 0; j < size; ++j) {
          uint64_t one = fingerprint64(in.strings()[i * size + j]);
          row.append(reinterpret_cast<const char *>(&one), 8);
        }
        hash = fingerprint64(row);
      }
    } else {
      int64_t bytes = size * static_cast<int64_t>(dtypeSize(in.dtype()));
      hash = fingerprint64({in.data<char>() + i * bytes, static_cast<size_t>(bytes)});
    }
    std::memcpy(out.data<char>() + 8 * i, &hash, 8);
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Fingerprint, fingerprint);

} // namespace
} // namespace lathe::rt
