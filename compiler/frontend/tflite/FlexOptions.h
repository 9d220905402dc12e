// Options of custom operators that are a map in a flexbuffer. Files that include this are compiled without the library's reading of
// numbers from text (CMakeLists.txt).
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_FLEXOPTIONS_H
#define LATHE_COMPILER_FRONTEND_TFLITE_FLEXOPTIONS_H

#include "proto/tflite_generated.h"

#include <flatbuffers/flexbuffers.h>

#include <vector>

namespace lathe::tflite {

/// Options in a flexbuffer that is a map. Invalid bytes are an empty map.
class FlexOptions {
public:
  explicit FlexOptions(const tfl::Operator &op) {
    constexpr size_t maxBytes = 1u << 20;
    std::vector<uint8_t> seen;
    if (auto *given = op.custom_options(); given && given->size() >= 3 && given->size() <= maxBytes)
      bytes.assign(given->begin(), given->end());
    if (!bytes.empty() && flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &seen))
      root = flexbuffers::GetRoot(bytes.data(), bytes.size());
  }
  bool isMap() const { return root.IsMap(); }
  bool has(const char *key) const { return isMap() && !root.AsMap()[key].IsNull(); }
  int64_t integer(const char *key, int64_t otherwise) const { return has(key) ? root.AsMap()[key].AsInt64() : otherwise; }
  float real(const char *key, float otherwise) const { return has(key) ? root.AsMap()[key].AsFloat() : otherwise; }
  /// The numbers of a vector; none where there is no vector of at most 2^16.
  std::vector<int64_t> integers(const char *key) const {
    std::vector<int64_t> result;
    if (!has(key))
      return result;
    const auto value = root.AsMap()[key];
    auto read = [&](const auto &list) {
      for (size_t i = 0; i < list.size() && list.size() <= 1u << 16; ++i)
        result.push_back(list[i].AsInt64());
    };
    if (value.IsTypedVector())
      read(value.AsTypedVector());
    else if (value.IsVector())
      read(value.AsVector());
    return result;
  }
  bool flag(const char *key, bool otherwise) const { return has(key) ? root.AsMap()[key].AsBool() : otherwise; }

private:
  std::vector<uint8_t> bytes;
  flexbuffers::Reference root;
};

} // namespace lathe::tflite

#endif
