// TensorArray (V1-V3), TensorArrayGrad (V1-V3, WithShape), Read, Write, Size, Close.
#include "runtime/kernels/lists/TensorArray.h"

#include <atomic>

namespace lathe::rt {
namespace {

constexpr const char *kContainer = "_tensor_arrays";

Tensor flow(float value = 0) { return Tensor::scalar<float>(DType::Float32, value); }

/// Gives the handle in the form that the op's version has, and the flow if it has one.
void setHandle(KernelContext &context, const std::shared_ptr<TensorArray> &array, Tensor flowOut) {
  if (context.node->outputTypes[0] == DType::Resource) {
    context.setOutput(0, makeHandle(array->container, array->name, array));
  } else {
    Tensor names = Tensor::fromStrings({2}, {array->container, array->name});
    if (context.node->outputIsRef[0]) {
      auto ref = std::make_shared<Variable>(DType::String);
      ref->value = std::move(names);
      context.setRefOutput(0, std::move(ref));
    } else {
      context.setOutput(0, std::move(names));
    }
  }
  if (context.numOutputs() > 1)
    context.setOutput(1, std::move(flowOut));
}

/// Nodes may share a name.
int64_t serial() {
  static std::atomic<int64_t> next{0};
  return next++;
}

class ArrayNode : public HostKernel {
public:
  explicit ArrayNode(KernelInit &init) {
    options.type = init.attr<DType>("dtype");
    options.elementShape = init.attr<PartialShape>("element_shape");
    options.dynamicSize = init.attr<bool>("dynamic_size");
    options.clearAfterRead = init.attr<bool>("clear_after_read");
    if (init.hasAttr("identical_element_shapes"))
      options.identicalShapes = init.attr<bool>("identical_element_shapes");
    name = init.attr<std::string>("tensor_array_name");
    if (name.empty())
      name = init.node().name;
  }
  absl::Status compute(KernelContext &context) override {
    auto size = integerScalar(context.input(0), "size");
    if (!size.ok())
      return size.status();
    if (*size < 0)
      return absl::InvalidArgumentError(absl::StrCat("Size should be >= 0, but got ", *size));
    std::string unique = absl::StrCat(name, "_", serial());
    auto array = stepManager(context)->lookupOrCreate<TensorArray>(
        kContainer, unique, [&]() -> absl::StatusOr<std::shared_ptr<TensorArray>> {
          return std::make_shared<TensorArray>(kContainer, unique, *size, options);
        });
    if (!array.ok())
      return array.status();
    setHandle(context, *array, flow());
    return absl::OkStatus();
  }
  bool isExpensive() const override { return false; }

private:
  TensorArray::Options options;
  std::string name;
};

class GradNode : public HostKernel {
public:
  explicit GradNode(KernelInit &init) : source(init.attr<std::string>("source")) {}
  absl::Status compute(KernelContext &context) override {
    auto array = stepResource<TensorArray>(context, 0);
    if (!array.ok())
      return array.status();
    std::vector<int64_t> prepend;
    if (context.numInputs() > 2)
      prepend = integers(context.input(2));
    for (int64_t d : prepend)
      if (d < 0)
        return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " in shape_to_prepend"));
    std::string name = absl::StrCat((*array)->name, "@", source);
    auto gradient = stepManager(context)->lookupOrCreate<TensorArray>(
        kContainer, name, [&] { return (*array)->makeGradient(name, prepend); });
    if (!gradient.ok())
      return gradient.status();
    setHandle(context, *gradient, context.input(1));
    return absl::OkStatus();
  }
  bool isExpensive() const override { return false; }

private:
  std::string source;
};

absl::Status write(KernelContext &context) {
  auto array = stepResource<TensorArray>(context, 0);
  if (!array.ok())
    return array.status();
  auto index = integerScalar(context.input(1), "index");
  if (!index.ok())
    return index.status();
  if (absl::Status written = (*array)->write({*index}, {context.input(2)}); !written.ok())
    return written;
  context.setOutput(0, context.input(3));
  return absl::OkStatus();
}

absl::Status read(KernelContext &context) {
  auto array = stepResource<TensorArray>(context, 0);
  if (!array.ok())
    return array.status();
  auto index = integerScalar(context.input(1), "index");
  if (!index.ok())
    return index.status();
  if ((*array)->type() != context.node->outputTypes[0])
    return absl::InvalidArgumentError(absl::StrCat("TensorArray dtype is ", dtypeName((*array)->type()),
                                                   " but Op requested dtype ",
                                                   dtypeName(context.node->outputTypes[0]), "."));
  auto value = (*array)->read({*index});
  if (!value.ok())
    return value.status();
  context.setOutput(0, std::move((*value)[0]));
  return absl::OkStatus();
}

absl::Status size(KernelContext &context) {
  auto array = stepResource<TensorArray>(context, 0);
  if (!array.ok())
    return array.status();
  auto n = (*array)->size();
  if (!n.ok())
    return n.status();
  context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(*n)));
  return absl::OkStatus();
}

absl::Status close(KernelContext &context) {
  auto array = stepResource<TensorArray>(context, 0);
  if (!array.ok())
    return array.status();
  // in TensorFlow, closing again is fine
  (*array)->close();
  return absl::OkStatus();
}

LATHE_HOST_KERNEL(TensorArray, ArrayNode);
LATHE_HOST_KERNEL(TensorArrayV2, ArrayNode);
LATHE_HOST_KERNEL(TensorArrayV3, ArrayNode);
LATHE_HOST_KERNEL(TensorArrayGrad, GradNode);
LATHE_HOST_KERNEL(TensorArrayGradV2, GradNode);
LATHE_HOST_KERNEL(TensorArrayGradV3, GradNode);
LATHE_HOST_KERNEL(TensorArrayGradWithShape, GradNode);
LATHE_HOST_FUNCTION(TensorArrayWrite, write);
LATHE_HOST_FUNCTION(TensorArrayWriteV2, write);
LATHE_HOST_FUNCTION(TensorArrayWriteV3, write);
LATHE_HOST_FUNCTION(TensorArrayRead, read);
LATHE_HOST_FUNCTION(TensorArrayReadV2, read);
LATHE_HOST_FUNCTION(TensorArrayReadV3, read);
LATHE_HOST_FUNCTION(TensorArraySize, size);
LATHE_HOST_FUNCTION(TensorArraySizeV2, size);
LATHE_HOST_FUNCTION(TensorArraySizeV3, size);
LATHE_HOST_FUNCTION(TensorArrayClose, close);
LATHE_HOST_FUNCTION(TensorArrayCloseV2, close);
LATHE_HOST_FUNCTION(TensorArrayCloseV3, close);

} // namespace
} // namespace lathe::rt
