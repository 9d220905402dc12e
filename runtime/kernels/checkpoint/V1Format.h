// The checkpoints of Save and SaveSlices: one sorted table whose first entry describes the tensors and whose others hold
// a slice each, as typed fields of a TensorProto.
#ifndef LATHE_RUNTIME_KERNELS_CHECKPOINT_V1FORMAT_H
#define LATHE_RUNTIME_KERNELS_CHECKPOINT_V1FORMAT_H

#include "base/Tensor.h"
#include "base/TensorSlice.h"

#include <map>

namespace lathe::rt {

class V1Writer {
public:
  /// INVALID_ARGUMENT when the slice does not fit or the tensor was described otherwise before; UNIMPLEMENTED for types
  /// that the format lacks.
  absl::Status add(const std::string &name, const std::vector<int64_t> &shape, const TensorSlice &slice,
                   const Tensor &part);
  /// Under a temporary name first.
  absl::Status write(const std::string &path) const;

private:
  struct Described {
    DType type;
    std::vector<int64_t> shape;
    std::vector<TensorSlice> slices;
  };
  std::map<std::string, Described> tensors;
  std::map<std::string, std::string> data;
};

class V1Reader {
public:
  /// Reads all files that match the pattern; NOT_FOUND when none does, DATA_LOSS for damaged ones.
  static absl::StatusOr<V1Reader> open(const std::string &pattern);
  /// A whole tensor, or the slice of it; NOT_FOUND when it is not there or parts of it are missing.
  absl::StatusOr<Tensor> read(const std::string &name, const TensorSlice *slice) const;
  /// Null when there is no such tensor.
  const std::vector<int64_t> *shapeOf(const std::string &name) const;

private:
  struct Stored {
    DType type = DType::Invalid;
    std::vector<int64_t> shape;
    std::vector<std::pair<TensorSlice, std::string>> parts; ///< with the TensorProto's bytes
  };
  std::map<std::string, Stored> tensors;
};

} // namespace lathe::rt

#endif
