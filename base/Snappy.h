// Snappy's raw format, reading only.
#ifndef LATHE_BASE_SNAPPY_H
#define LATHE_BASE_SNAPPY_H

#include "absl/status/statusor.h"

#include <string>
#include <string_view>

namespace lathe {

/// The uncompressed bytes; an error for a malformed stream or one that says it holds more than maxBytes.
absl::StatusOr<std::string> snappyUncompress(std::string_view input, uint64_t maxBytes);

} // namespace lathe

#endif
