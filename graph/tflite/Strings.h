// TensorFlow Lite's strings: one buffer with their number, where each begins and the last ends (int32 from the buffer's start), and
// their bytes.
#ifndef LATHE_GRAPH_TFLITE_STRINGS_H
#define LATHE_GRAPH_TFLITE_STRINGS_H

#include "absl/status/statusor.h"

#include <cstddef>
#include <string>
#include <vector>

namespace lathe::tflgraph {

/// INVALID_ARGUMENT for a buffer that is none, or that does not have `count` strings.
absl::StatusOr<std::vector<std::string>> readStrings(const void *data, size_t bytes, int64_t count);

/// OUT_OF_RANGE above 2 GB, which offsets do not reach.
absl::StatusOr<std::string> writeStrings(const std::vector<std::string> &values);

} // namespace lathe::tflgraph

#endif
