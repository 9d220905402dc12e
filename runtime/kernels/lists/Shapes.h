// Partial shapes of list elements, and resources that live for one step.
#ifndef LATHE_RUNTIME_KERNELS_LISTS_SHAPES_H
#define LATHE_RUNTIME_KERNELS_LISTS_SHAPES_H

#include "runtime/core/Elements.h"
#include "runtime/core/Kernel.h"
#include "runtime/core/VariantMath.h"

namespace lathe::rt {

/// What both shapes say; INVALID_ARGUMENT when they contradict each other.
absl::StatusOr<PartialShape> mergeShapes(const PartialShape &a, const PartialShape &b);
inline bool isKnown(const PartialShape &shape) {
  if (!shape)
    return false;
  for (int64_t d : *shape)
    if (d < 0)
      return false;
  return true;
}
/// A shape from a tensor: a vector with -1 for what is unknown, or the scalar -1 for an unknown rank.
absl::StatusOr<PartialShape> shapeFromTensor(const Tensor &t);
/// Zeros of a known shape; RESOURCE_EXHAUSTED when too large.
absl::StatusOr<Tensor> zeros(DType type, const PartialShape &shape);

/// Joins `parts` along their first dimension; `rest` are the dimensions after it. INVALID_ARGUMENT when a part does not
/// fit.
absl::StatusOr<Tensor> concatRows(DType type, const std::vector<int64_t> &rest, const std::vector<Tensor> &parts);

/// Resources of the step; without one (kernels on their own) the lasting ones.
inline ResourceManager *stepManager(const KernelContext &context) {
  return context.stepResources ? context.stepResources : context.resources;
}

/// Input i as a resource of the step: a handle, or the strings [container, name].
template <typename T>
absl::StatusOr<std::shared_ptr<T>> stepResource(const KernelContext &context, int i) {
  Tensor handle = context.input(i);
  if (handle.dtype() != DType::String)
    return context.resource<T>(i);
  if (handle.numElements() != 2)
    return absl::InvalidArgumentError(
        absl::StrCat("Tensor array handle must be 2-element vector, but had shape: ", dimsToString(handle.dims())));
  auto any = stepManager(context)->lookup(handle.strings()[0], handle.strings()[1]);
  if (!any.ok())
    return any.status();
  if (auto typed = std::dynamic_pointer_cast<T>(*any))
    return typed;
  return absl::InvalidArgumentError(absl::StrCat("input ", i, " is a ", (*any)->describe()));
}

} // namespace lathe::rt

#endif
