// Parts of tensors in checkpoints: extents, the key under which a part is stored, and the messages that describe them.
#ifndef LATHE_BASE_TENSORSLICE_H
#define LATHE_BASE_TENSORSLICE_H

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

struct TensorSlice {
  /// Start and length in each dimension; length -1 is the whole dimension.
  std::vector<int64_t> start, length;

  bool operator==(const TensorSlice &o) const { return start == o.start && length == o.length; }
  /// The dimensions of the part of a tensor; INVALID_ARGUMENT when it does not lie inside.
  absl::StatusOr<std::vector<int64_t>> apply(const std::vector<int64_t> &dims) const;
};

/// The key of a part: an order-preserving code of the tensor's name and the extents.
std::string sliceKey(const std::string &name, const TensorSlice &slice);

/// Reads "4 8 0,2:-", the shape of a whole tensor and the part of it. INVALID_ARGUMENT when it does not parse or fit.
absl::Status parseShapeAndSlice(const std::string &text, std::vector<int64_t> &shape, TensorSlice &slice);

/// TensorShapeProto and TensorSliceProto. The parsers return false for damaged bytes and unknown ranks.
std::string encodeShape(const std::vector<int64_t> &dims);
std::string encodeSlice(const TensorSlice &slice);
bool parseShape(std::string_view bytes, std::vector<int64_t> &dims);
bool parseSlice(std::string_view bytes, TensorSlice &slice);

} // namespace lathe

#endif
