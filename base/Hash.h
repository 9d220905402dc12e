// The hash functions that graphs depend on, bit for bit.
#ifndef LATHE_BASE_HASH_H
#define LATHE_BASE_HASH_H

#include <array>
#include <cstdint>
#include <string_view>

namespace lathe {

/// FarmHash's portable 64-bit fingerprint: hash buckets ("fast"), crosses, Fingerprint.
uint64_t fingerprint64(std::string_view bytes);
/// How crosses combine two fingerprints.
uint64_t fingerprintCat64(uint64_t a, uint64_t b);
/// MurmurHash2's 64-bit form with TensorFlow's default seed: the hash buckets of StringToHashBucket.
uint64_t murmur64(std::string_view bytes, uint64_t seed = 0xDECAFCAFFEull);
/// SipHash-2-4 with a 128-bit key: hash buckets ("strong").
uint64_t sipHash24(std::array<uint64_t, 2> key, std::string_view bytes);

} // namespace lathe

#endif
