#include "graph/tflite/Strings.h"

#include "absl/strings/str_cat.h"

#include <climits>
#include <cstdint>
#include <cstring>

namespace lathe::tflgraph {

absl::StatusOr<std::vector<std::string>> readStrings(const void *data, size_t bytes, int64_t count) {
  const char *base = static_cast<const char *>(data);
  auto number = [&](size_t i) {
    int32_t n;
    std::memcpy(&n, base + 4 * i, 4);
    return static_cast<int64_t>(n);
  };
  if (!data || bytes < 8 || number(0) < 0 || static_cast<uint64_t>(number(0)) > bytes / 4 - 2)
    return absl::InvalidArgumentError("a tensor of strings has no list of strings");
  if (number(0) != count)
    return absl::InvalidArgumentError(absl::StrCat("a tensor of ", count, " strings has ", number(0)));
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(count));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const int64_t from = number(1 + i), to = number(2 + i);
    if (from < 0 || to < from || static_cast<uint64_t>(to) > bytes)
      return absl::InvalidArgumentError(absl::StrCat("string ", i, " of a tensor lies outside of its buffer"));
    values.emplace_back(base + from, base + to);
  }
  return values;
}

absl::StatusOr<std::string> writeStrings(const std::vector<std::string> &values) {
  size_t total = 4 * (values.size() + 2);
  for (const std::string &v : values)
    total += v.size();
  if (total > INT_MAX)
    return absl::OutOfRangeError("the strings of a tensor are longer than 2 GB");
  std::string buffer;
  buffer.reserve(total);
  auto number = [&](size_t n) {
    const int32_t value = static_cast<int32_t>(n);
    buffer.append(reinterpret_cast<const char *>(&value), 4);
  };
  size_t at = 4 * (values.size() + 2);
  number(values.size());
  number(at);
  for (const std::string &v : values)
    number(at += v.size());
  for (const std::string &v : values)
    buffer += v;
  return buffer;
}

} // namespace lathe::tflgraph
