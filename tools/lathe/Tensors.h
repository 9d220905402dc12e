// Feeds and results of the command line: files in and out, names looked up as design demands.
#ifndef LATHE_TOOLS_LATHE_TENSORS_H
#define LATHE_TOOLS_LATHE_TENSORS_H

#include "base/Npz.h"
#include "runtime/abi/module_abi.h"

#include "absl/status/statusor.h"

#include <map>
#include <string>
#include <vector>

namespace lathe::cli {



/// Reads --feed NAME=FILE.npy options and one --feeds FILE.npz (may be empty).
absl::StatusOr<NamedTensors> readFeeds(const std::vector<std::string> &feeds, const std::string &npz);

/// Index of the tensor that `name` means: by key, then tensor ("x:0"), then node ("x" is "x:0"); -1 when none.
int findTensor(const lathe_tensor_info *const *infos, int count, const std::string &name);

/// The inputs of `entry` in order; INVALID_ARGUMENT lists what is missing and what has no place.
absl::StatusOr<std::vector<Tensor>> orderInputs(const lathe_entry &entry, const NamedTensors &feeds);

/// Seeded random floats in [-1, 1) and small integers for every input; symbols count as `unknownSize`.
absl::StatusOr<std::vector<Tensor>> makeInputs(const lathe_entry &entry, int64_t unknownSize);

/// The inputs of `entry` from what is fed, or made by makeInputs when nothing is.
absl::StatusOr<std::vector<Tensor>> inputsFrom(const lathe_entry &entry, const NamedTensors &feeds, int64_t unknownSize);

} // namespace lathe::cli

#endif
