// What gradients ask of variants: zeros like one, and the sum of two.
#ifndef LATHE_RUNTIME_CORE_VARIANTMATH_H
#define LATHE_RUNTIME_CORE_VARIANTMATH_H

#include "base/Tensor.h"

namespace lathe::rt {

/// A variant that ZerosLike and AddN take. Implemented by lists, maps and optionals.
class VariantMath : public Object {
public:
  virtual absl::StatusOr<ObjectPtr> zerosLike() const = 0;
  /// INVALID_ARGUMENT when the other is of another kind or does not fit.
  virtual absl::StatusOr<ObjectPtr> plus(const Object &other) const = 0;
};

/// Zeros of a tensor's type and shape (empty strings for strings); of a Variant tensor, element by element.
/// INVALID_ARGUMENT for variants that have none.
absl::StatusOr<Tensor> zerosLikeTensor(const Tensor &t);
/// a + b for numbers of any type and variants; INVALID_ARGUMENT for other types and for shapes that differ.
absl::StatusOr<Tensor> addTensors(const Tensor &a, const Tensor &b);

} // namespace lathe::rt

#endif
