// The functional tensor list: a variant whose value never changes once others may see it.
#ifndef LATHE_RUNTIME_KERNELS_LISTS_TENSORLIST_H
#define LATHE_RUNTIME_KERNELS_LISTS_TENSORLIST_H

#include "runtime/kernels/lists/Shapes.h"

namespace lathe::rt {

class TensorList : public VariantMath {
public:
  std::string describe() const override { return "tensor list"; }
  absl::StatusOr<ObjectPtr> zerosLike() const override;
  absl::StatusOr<ObjectPtr> plus(const Object &other) const override;

  DType type = DType::Invalid;
  PartialShape elementShape;
  int64_t most = -1;         ///< elements at most; none if negative
  std::vector<Tensor> items; ///< invalid where never set

  /// What the list, `given` and its elements say of the shape of those that were never set.
  absl::StatusOr<PartialShape> inferShape(const PartialShape &given) const;
  /// A value for item i: zeros of `shape` where it was never set.
  absl::StatusOr<Tensor> itemOrZeros(int64_t i, const PartialShape &shape) const;
};

/// The list that input i holds. With a type, INVALID_ARGUMENT for a list of others.
absl::StatusOr<std::shared_ptr<const TensorList>> listInput(const KernelContext &context, int i,
                                                            DType type = DType::Invalid);
/// A list to change: the input's own if nobody else can see it, else a copy.
absl::StatusOr<std::shared_ptr<TensorList>> takeList(KernelContext &context, int i);
inline Tensor listTensor(std::shared_ptr<TensorList> list) {
  return Tensor::fromObjects(DType::Variant, {}, {std::move(list)});
}
/// INVALID_ARGUMENT unless the tensor may become an element.
absl::Status checkItem(const TensorList &list, const Tensor &item);
/// Longest list that may be made.
constexpr int64_t kMostListItems = INT64_C(1) << 28;

} // namespace lathe::rt

#endif
