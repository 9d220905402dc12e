// Tensors in numpy's files: .npy, .npz, and the .strings.json beside them that hold string tensors.
// Types that numpy lacks are stored as their carriers (bfloat16 as uint16, float8 and 4-bit types as uint8, quantised types as
// integers); an npz names them in an entry `__dtypes__`, a rank-0 text array with a JSON object from entry to type. There a
// string tensor is a rank-0 text array with the JSON {"shape": [...], "values": [base64, ...]}.
#ifndef LATHE_BASE_NPZ_H
#define LATHE_BASE_NPZ_H

#include "base/Tensor.h"

#include <optional>
#include <string_view>
#include <utility>

namespace lathe {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Reads one .npy. `as` is the real type where the header holds a carrier. Text and byte-string arrays become String tensors.
absl::StatusOr<Tensor> parseNpy(std::string_view bytes, std::optional<DType> as = std::nullopt);
std::string npyBytes(const Tensor &tensor);

absl::StatusOr<Tensor> readNpy(const std::string &path, std::optional<DType> as = std::nullopt);
absl::Status writeNpy(const std::string &path, const Tensor &tensor);

/// The JSON form of string tensors.
absl::StatusOr<Tensor> parseStringsJson(std::string_view text);
std::string stringsJson(const Tensor &tensor);

/// All arrays of an npz in file order, `__dtypes__` applied and left out.
absl::StatusOr<NamedTensors> readNpz(const std::string &path, int64_t maxBytes = INT64_C(1) << 40);
absl::StatusOr<NamedTensors> parseNpz(std::string_view bytes, int64_t maxBytes = INT64_C(1) << 40);
/// Stored, not deflated; the bytes depend on the tensors only.
absl::Status writeNpz(const std::string &path, const NamedTensors &tensors);
absl::StatusOr<std::string> npzBytes(const NamedTensors &tensors);

/// A tensor file of a conformance case: .npy with its type given from outside, or .strings.json.
absl::StatusOr<Tensor> readTensorFile(const std::string &path, std::optional<DType> as = std::nullopt);
/// Writes STEM.npy or, for strings, STEM.strings.json.
absl::Status writeTensorFile(const std::string &stem, const Tensor &tensor);

} // namespace lathe

#endif
