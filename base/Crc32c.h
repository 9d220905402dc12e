// CRC-32C (Castagnoli) and the masked form that LevelDB tables, TensorBundles and TFRecord files store.
#ifndef LATHE_BASE_CRC32C_H
#define LATHE_BASE_CRC32C_H

#include <cstddef>
#include <cstdint>

namespace lathe {

/// Continues a CRC over more bytes; start with 0.
uint32_t crc32cExtend(uint32_t crc, const void *data, size_t size);
inline uint32_t crc32c(const void *data, size_t size) { return crc32cExtend(0, data, size); }

/// A CRC stored beside data that itself holds CRCs is rotated and offset, so that the two do not interfere.
inline uint32_t crc32cMask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t crc32cUnmask(uint32_t masked) {
  uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

} // namespace lathe

#endif
