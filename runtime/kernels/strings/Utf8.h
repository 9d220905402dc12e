// Characters of UTF-8 strings, where every byte that is no continuation starts one (as TensorFlow counts).
#ifndef LATHE_RUNTIME_KERNELS_STRINGS_UTF8_H
#define LATHE_RUNTIME_KERNELS_STRINGS_UTF8_H

#include <string_view>

namespace lathe::rt {

inline bool startsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

inline size_t utf8Length(std::string_view s) {
  size_t n = 0;
  for (char c : s)
    n += startsCharacter(c);
  return n;
}

/// The byte where character `index` starts; the size when there are fewer.
inline size_t utf8Position(std::string_view s, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < s.size(); --index) {
    ++at;
    while (at < s.size() && !startsCharacter(s[at]))
      ++at;
  }
  return at;
}

} // namespace lathe::rt

#endif
