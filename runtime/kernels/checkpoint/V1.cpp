// Save, SaveSlices, Restore, RestoreSlice.
#include "runtime/core/Elements.h"
#include "runtime/core/Kernel.h"
#include "runtime/kernels/checkpoint/V1Format.h"

namespace lathe::rt {
namespace {

template <bool slices>
absl::Status save(KernelContext &context) {
  auto path = stringScalar(context.input(0), "filename");
  if (!path.ok())
    return path.status();
  Tensor names = context.input(1);
  std::vector<Tensor> tensors = context.inputList("data");
  Tensor specs = slices ? context.input(2) : Tensor();
  if (names.numElements() != static_cast<int64_t>(tensors.size()) || (slices && specs.numElements() != names.numElements()))
    return absl::InvalidArgumentError(absl::StrCat("there are ", names.numElements(), " names for ", tensors.size(),
                                                   " tensors"));
  V1Writer writer;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<int64_t> shape = tensors[i].dims();
    TensorSlice slice{std::vector<int64_t>(shape.size(), 0), std::vector<int64_t>(shape.size(), -1)};
    if (slices && !specs.strings()[i].empty())
      if (absl::Status parsed = parseShapeAndSlice(specs.strings()[i], shape, slice); !parsed.ok())
        return parsed;
    if (absl::Status added = writer.add(names.strings()[i], shape, slice, tensors[i]); !added.ok())
      return added;
  }
  return writer.write(*path);
}

absl::Status restore(KernelContext &context) {
  auto pattern = stringScalar(context.input(0), "file_pattern");
  auto name = stringScalar(context.input(1), "tensor_name");
  for (const absl::Status &status : {pattern.status(), name.status()})
    if (!status.ok())
      return status;
  auto reader = V1Reader::open(*pattern);
  if (!reader.ok())
    return reader.status();
  TensorSlice slice;
  bool sliced = false;
  if (context.numInputs() > 2) {
    auto spec = stringScalar(context.input(2), "shape_and_slice");
    if (!spec.ok())
      return spec.status();
    if (!spec->empty()) {
      std::vector<int64_t> shape;
      if (absl::Status parsed = parseShapeAndSlice(*spec, shape, slice); !parsed.ok())
        return parsed;
      const std::vector<int64_t> *stored = reader->shapeOf(*name);
      if (stored && *stored != shape)
        return absl::InvalidArgumentError(absl::StrCat("Shape in shape_and_slice spec does not match the shape in the save file: ",
                                                       dimsToString(shape), ", save file shape: ", dimsToString(*stored)));
      sliced = true;
    }
  }
  auto tensor = reader->read(*name, sliced ? &slice : nullptr);
  if (!tensor.ok())
    return tensor.status();
  if (tensor->dtype() != context.node->outputTypes[0])
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint holds '", *name, "' as ", dtypeName(tensor->dtype()),
                                                   ", not ", dtypeName(context.node->outputTypes[0])));
  context.setOutput(0, *std::move(tensor));
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(Save, save<false>);
LATHE_HOST_FUNCTION(SaveSlices, save<true>);
LATHE_HOST_FUNCTION(Restore, restore);
LATHE_HOST_FUNCTION(RestoreSlice, restore);

} // namespace
} // namespace lathe::rt
