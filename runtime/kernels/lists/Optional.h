// A variant that holds a tuple of tensors, or nothing.
#ifndef LATHE_RUNTIME_KERNELS_LISTS_OPTIONAL_H
#define LATHE_RUNTIME_KERNELS_LISTS_OPTIONAL_H

#include "runtime/core/Kernel.h"
#include "runtime/core/VariantMath.h"

#include <optional>

namespace lathe::rt {

class OptionalValue : public VariantMath {
public:
  explicit OptionalValue(std::optional<std::vector<Tensor>> values) : values(std::move(values)) {}
  std::string describe() const override { return values ? "optional with a value" : "optional without a value"; }
  absl::StatusOr<ObjectPtr> zerosLike() const override;
  absl::StatusOr<ObjectPtr> plus(const Object &other) const override;
  const std::optional<std::vector<Tensor>> values;
};

inline Tensor makeOptional(std::optional<std::vector<Tensor>> values) {
  return Tensor::fromObjects(DType::Variant, {}, {std::make_shared<OptionalValue>(std::move(values))});
}

/// Whether a tuple has the types and shapes that a node's output_types and output_shapes promise.
absl::Status checkElement(const std::vector<Tensor> &values, const std::vector<DType> &types,
                          const std::vector<PartialShape> &shapes);

} // namespace lathe::rt

#endif
