// Reading and writing protocol buffer fields by hand, for the few messages inside checkpoints and records.
#ifndef LATHE_BASE_PROTOWIRE_H
#define LATHE_BASE_PROTOWIRE_H

#include "base/Bytes.h"

namespace lathe {

/// One field of a message: number, wire type, and either a number or bytes.
struct ProtoField {
  uint64_t number = 0;
  int wire = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

/// The next field; false at the end or when the bytes are damaged (groups count as damage).
inline bool readProtoField(ByteReader &in, ProtoField &f) {
  uint64_t tag, length;
  if (!in.readVarint(tag))
    return false;
  f.number = tag >> 3;
  f.wire = static_cast<int>(tag & 7);
  switch (f.wire) {
  case 0:
    return in.readVarint(f.value);
  case 1:
    return in.readLittle(8, f.value);
  case 2:
    return in.readVarint(length) && in.readBytes(length, f.bytes);
  case 5:
    return in.readLittle(4, f.value);
  default:
    return false;
  }
}

inline void appendVarint(std::string &out, uint64_t v) {
  for (; v >= 0x80; v >>= 7)
    out.push_back(static_cast<char>(v | 0x80));
  out.push_back(static_cast<char>(v));
}

inline void appendLittle(std::string &out, uint64_t v, int size) {
  for (int i = 0; i < size; ++i)
    out.push_back(static_cast<char>(v >> (8 * i)));
}

inline void appendProtoNumber(std::string &out, int field, uint64_t v) {
  appendVarint(out, static_cast<uint64_t>(field) << 3);
  appendVarint(out, v);
}

inline void appendProtoFixed32(std::string &out, int field, uint32_t v) {
  appendVarint(out, static_cast<uint64_t>(field) << 3 | 5);
  appendLittle(out, v, 4);
}

inline void appendProtoBytes(std::string &out, int field, std::string_view bytes) {
  appendVarint(out, static_cast<uint64_t>(field) << 3 | 2);
  appendVarint(out, bytes.size());
  out.append(bytes.data(), bytes.size());
}

} // namespace lathe

#endif
