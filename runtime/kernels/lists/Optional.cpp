// OptionalFromValue, OptionalNone, OptionalHasValue, OptionalGetValue.
#include "runtime/kernels/lists/Optional.h"

namespace lathe::rt {

absl::Status checkElement(const std::vector<Tensor> &values, const std::vector<DType> &types,
                          const std::vector<PartialShape> &shapes) {
  if (values.size() != types.size() || values.size() != shapes.size())
    return absl::InvalidArgumentError(
        absl::StrCat("the element has ", values.size(), " components, the node expects ", types.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].dtype() != types[i])
      return absl::InvalidArgumentError(absl::StrCat("component ", i, " has type ", dtypeName(values[i].dtype()),
                                                     ", the node expects ", dtypeName(types[i])));
    if (!isCompatible(shapes[i], values[i].dims()))
      return absl::InvalidArgumentError(absl::StrCat("component ", i, " has shape ", dimsToString(values[i].dims()),
                                                     ", the node expects ", shapeToString(shapes[i])));
  }
  return absl::OkStatus();
}

absl::StatusOr<ObjectPtr> OptionalValue::zerosLike() const {
  if (!values)
    return ObjectPtr(std::make_shared<OptionalValue>(std::nullopt));
  std::vector<Tensor> zero;
  for (const Tensor &value : *values) {
    auto z = zerosLikeTensor(value);
    if (!z.ok())
      return z.status();
    zero.push_back(*std::move(z));
  }
  return ObjectPtr(std::make_shared<OptionalValue>(std::move(zero)));
}

absl::StatusOr<ObjectPtr> OptionalValue::plus(const Object &o) const {
  const auto *other = dynamic_cast<const OptionalValue *>(&o);
  if (!other || values.has_value() != other->values.has_value() || (values && values->size() != other->values->size()))
    return absl::InvalidArgumentError("Cannot add optionals because one has a value and the other doesn't.");
  if (!values)
    return ObjectPtr(std::make_shared<OptionalValue>(std::nullopt));
  std::vector<Tensor> sum;
  for (size_t i = 0; i < values->size(); ++i) {
    auto added = addTensors((*values)[i], (*other->values)[i]);
    if (!added.ok())
      return added.status();
    sum.push_back(*std::move(added));
  }
  return ObjectPtr(std::make_shared<OptionalValue>(std::move(sum)));
}

namespace {

absl::StatusOr<std::shared_ptr<OptionalValue>> optionalInput(KernelContext &context) {
  Tensor t = context.input(0);
  if (t.dtype() == DType::Variant && t.numElements() == 1)
    if (auto value = std::dynamic_pointer_cast<OptionalValue>(t.objects()[0]))
      return value;
  return absl::InvalidArgumentError("the input is not an optional");
}

absl::Status fromValue(KernelContext &context) {
  context.setOutput(0, makeOptional(context.inputList("components")));
  return absl::OkStatus();
}

absl::Status none(KernelContext &context) {
  context.setOutput(0, makeOptional(std::nullopt));
  return absl::OkStatus();
}

absl::Status hasValue(KernelContext &context) {
  auto value = optionalInput(context);
  if (!value.ok())
    return value.status();
  context.setOutput(0, Tensor::scalar<bool>(DType::Bool, (*value)->values.has_value()));
  return absl::OkStatus();
}

absl::Status getValue(KernelContext &context) {
  auto value = optionalInput(context);
  if (!value.ok())
    return value.status();
  if (!(*value)->values)
    return absl::InvalidArgumentError("The given optional does not have a value.");
  const std::vector<Tensor> &values = *(*value)->values;
  if (absl::Status fits = checkElement(values, *attrOf<std::vector<DType>>(*context.node, "output_types"),
                                       *attrOf<std::vector<PartialShape>>(*context.node, "output_shapes"));
      !fits.ok())
    return fits;
  for (size_t i = 0; i < values.size(); ++i)
    context.setOutput(static_cast<int>(i), values[i]);
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(OptionalFromValue, fromValue);
LATHE_HOST_FUNCTION(OptionalNone, none);
LATHE_HOST_FUNCTION(OptionalHasValue, hasValue);
LATHE_HOST_FUNCTION(OptionalGetValue, getValue);

} // namespace
} // namespace lathe::rt
