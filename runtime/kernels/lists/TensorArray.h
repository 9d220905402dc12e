// The TF1 tensor array: tensors by index, each written once (gradient arrays add up) and, by default, read once.
#ifndef LATHE_RUNTIME_KERNELS_LISTS_TENSORARRAY_H
#define LATHE_RUNTIME_KERNELS_LISTS_TENSORARRAY_H

#include "runtime/kernels/lists/Shapes.h"

namespace lathe::rt {

class TensorArray : public Resource {
public:
  struct Options {
    DType type = DType::Invalid;
    PartialShape elementShape;
    bool dynamicSize = false, clearAfterRead = true, identicalShapes = false, aggregate = false;
  };
  TensorArray(std::string container, std::string name, int64_t size, Options options)
      : container(std::move(container)), name(std::move(name)), options(std::move(options)), items(size) {}
  std::string describe() const override { return "TensorArray"; }

  const std::string container, name;
  DType type() const { return options.type; }

  /// INVALID_ARGUMENT for indices out of range, second writes and reads, other types and shapes, and closed arrays.
  absl::Status write(const std::vector<int64_t> &indices, const std::vector<Tensor> &values);
  absl::StatusOr<std::vector<Tensor>> read(const std::vector<int64_t> &indices);
  absl::StatusOr<int64_t> size() const;
  /// Whether an index past the end makes the array grow.
  bool isDynamic() const;
  /// The element shape with what a node knows of it added.
  absl::StatusOr<PartialShape> refineShape(const PartialShape &shape);
  void close();
  /// The options and the elements' shapes of the array of gradients, whose elements have `prepend` before theirs; fixes
  /// the size of this one.
  absl::StatusOr<std::shared_ptr<TensorArray>> makeGradient(std::string gradientName, const std::vector<int64_t> &prepend);

private:
  struct Item {
    Tensor tensor;
    PartialShape shape; ///< known once written
    bool written = false, read = false, cleared = false;
  };
  absl::Status writeOne(int64_t index, const Tensor &value);
  absl::StatusOr<Tensor> readOne(int64_t index);
  absl::Status bad(const std::string &what) const;
  absl::Status ifClosed() const;

  mutable std::mutex mutex;
  Options options;
  std::vector<Item> items;
  bool closed = false, gradientsAllowed = true;
};

} // namespace lathe::rt

#endif
