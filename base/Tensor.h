// A dense host tensor: element type, dimensions and a shared row-major buffer (or strings). Copies share the buffer.
#ifndef LATHE_BASE_TENSOR_H
#define LATHE_BASE_TENSOR_H

#include "base/DType.h"
#include "base/TensorView.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace lathe {

/// Product of the dimensions; an error when one is negative or the product overflows.
absl::StatusOr<int64_t> checkedNumElements(const std::vector<int64_t> &dims);

/// "[2,3]" for messages.
std::string dimsToString(const std::vector<int64_t> &dims);

/// An element of a Resource or Variant tensor: immutable, or guarding itself.
class Object {
public:
  virtual ~Object() = default;
  /// For messages.
  virtual std::string describe() const = 0;
};
using ObjectPtr = std::shared_ptr<Object>;

class Tensor {
public:
  /// No type, no elements.
  Tensor() = default;

  /// Zero-filled, 64-byte aligned. The dimensions must have passed checkedNumElements, and the memory must be there:
  /// use tryAllocate for sizes that come from a file.
  static Tensor allocate(DType type, std::vector<int64_t> dims);

  /// The same with errors for bad dimensions, a type without elements in memory, or more than maxBytes.
  static absl::StatusOr<Tensor> tryAllocate(DType type, std::vector<int64_t> dims, int64_t maxBytes);

  /// A tensor over memory that someone else keeps alive through `owner`; `data` is `sizeBytes` bytes long.
  static Tensor wrap(DType type, std::vector<int64_t> dims, void *data, std::shared_ptr<void> owner);

  static Tensor fromStrings(std::vector<int64_t> dims, std::vector<std::string> values);

  /// A Resource or Variant tensor; a null element is an empty variant.
  static Tensor fromObjects(DType type, std::vector<int64_t> dims, std::vector<ObjectPtr> values);

  /// A rank-0 tensor of one value.
  template <typename T>
  static Tensor scalar(DType type, T value) {
    Tensor t = allocate(type, {});
    *t.data<T>() = value;
    return t;
  }

  /// A rank-1 tensor of the values.
  template <typename T>
  static Tensor vector(DType type, const std::vector<T> &values) {
    Tensor t = allocate(type, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i)
      t.data<T>()[i] = values[i];
    return t;
  }

  DType dtype() const { return type; }
  const std::vector<int64_t> &dims() const { return shape; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t dim(int64_t i) const { return shape[i]; }
  int64_t numElements() const { return count; }
  /// Bytes of the buffer, 0 for strings and objects.
  int64_t sizeBytes() const { return count * static_cast<int64_t>(dtypeSize(type)); }
  bool valid() const { return type != DType::Invalid; }

  void *data() { return buffer.get(); }
  const void *data() const { return buffer.get(); }
  template <typename T>
  T *data() {
    return static_cast<T *>(buffer.get());
  }
  template <typename T>
  const T *data() const {
    return static_cast<const T *>(buffer.get());
  }

  /// The elements by index, as TensorFlow's accessors of these names give them: t.matrix<float>()(i, j). The tensor keeps the memory, and
  /// its type must be T's: half and bfloat16 are uint16_t, strings std::string.
  template <typename T>
  TensorView<T, 1> flat();
  /// Of a tensor of rank `Rank`.
  template <typename T, int Rank>
  TensorView<T, Rank> tensor();
  template <typename T>
  TensorView<T, 1> vec() {
    return tensor<T, 1>();
  }
  template <typename T>
  TensorView<T, 2> matrix() {
    return tensor<T, 2>();
  }
  /// t.scalar<T>()() is the value of a tensor with one element.
  template <typename T>
  TensorView<T, 0> scalar() {
    assert(count == 1 && "a tensor of more than one element");
    return {flat<T>().data(), {}};
  }
  template <typename T>
  TensorView<const T, 1> flat() const {
    return {const_cast<Tensor *>(this)->flat<T>().data(), {count}};
  }
  template <typename T, int Rank>
  TensorView<const T, Rank> tensor() const {
    return {flat<T>().data(), dimsOfRank<Rank>()};
  }
  template <typename T>
  TensorView<const T, 1> vec() const {
    return tensor<T, 1>();
  }
  template <typename T>
  TensorView<const T, 2> matrix() const {
    return tensor<T, 2>();
  }
  template <typename T>
  TensorView<const T, 0> scalar() const {
    return {const_cast<Tensor *>(this)->scalar<T>().data(), {}};
  }

  /// The elements of a String tensor, row-major; empty for other types.
  const std::vector<std::string> &strings() const;
  /// Writable; shared by the copies of this tensor like the buffer.
  std::vector<std::string> &mutableStrings();

  /// The elements of a Resource or Variant tensor, row-major; empty for other types.
  const std::vector<ObjectPtr> &objects() const;
  std::vector<ObjectPtr> &mutableObjects();

  /// Whether no other tensor shares the elements.
  bool isUnique() const { return buffer.use_count() <= 1 && values.use_count() <= 1 && things.use_count() <= 1; }

  /// What keeps the buffer alive, for handing it on without a copy.
  const std::shared_ptr<void> &owner() const { return buffer; }

  /// The same elements under other dimensions (equal number of elements) and type (equal element size).
  Tensor reshaped(std::vector<int64_t> dims) const;
  Tensor bitcast(DType type) const;
  /// A copy with its own buffer.
  Tensor clone() const;

private:
  template <int Rank>
  std::array<int64_t, Rank> dimsOfRank() const {
    assert(rank() == Rank && "a tensor of another rank");
    std::array<int64_t, Rank> dims;
    for (int i = 0; i < Rank; ++i)
      dims[i] = shape[i];
    return dims;
  }

  DType type = DType::Invalid;
  std::vector<int64_t> shape;
  int64_t count = 0;
  std::shared_ptr<void> buffer;
  std::shared_ptr<std::vector<std::string>> values;
  std::shared_ptr<std::vector<ObjectPtr>> things;
};

template <typename T>
TensorView<T, 1> Tensor::flat() {
  if constexpr (std::is_same_v<T, std::string>) {
    return {mutableStrings().data(), {count}};
  } else {
    assert(dtypeSize(type) == sizeof(T) && "elements of another size");
    return {data<T>(), {count}};
  }
}

template <typename T, int Rank>
TensorView<T, Rank> Tensor::tensor() {
  return {flat<T>().data(), dimsOfRank<Rank>()};
}

} // namespace lathe

#endif
