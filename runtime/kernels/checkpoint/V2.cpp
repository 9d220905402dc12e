// SaveV2, RestoreV2, MergeV2Checkpoints: TensorBundles. RestoreV2 reads the older format too.
#include "base/TensorBundle.h"
#include "runtime/core/Elements.h"
#include "runtime/core/Kernel.h"
#include "runtime/kernels/checkpoint/V1Format.h"

#include <filesystem>

namespace lathe::rt {
namespace {

absl::Status checkNames(const Tensor &names, const Tensor &specs, int64_t tensors) {
  if (names.rank() != 1 || specs.rank() != 1 || names.numElements() != tensors || specs.numElements() != tensors)
    return absl::InvalidArgumentError(absl::StrCat("tensor_names and shape_and_slices must be vectors of ", tensors,
                                                   " elements, found shapes ", dimsToString(names.dims()), " and ",
                                                   dimsToString(specs.dims())));
  return absl::OkStatus();
}

absl::Status save(KernelContext &context) {
  auto prefix = stringScalar(context.input(0), "prefix");
  if (!prefix.ok())
    return prefix.status();
  Tensor names = context.input(1), specs = context.input(2);
  std::vector<Tensor> tensors = context.inputList("tensors");
  if (absl::Status fits = checkNames(names, specs, static_cast<int64_t>(tensors.size())); !fits.ok())
    return fits;
  auto writer = TensorBundleWriter::create(*prefix);
  if (!writer.ok())
    return writer.status();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string &name = names.strings()[i], &spec = specs.strings()[i];
    absl::Status added;
    if (spec.empty()) {
      added = (*writer)->add(name, tensors[i]);
    } else {
      std::vector<int64_t> shape;
      TensorSlice slice;
      added = parseShapeAndSlice(spec, shape, slice);
      if (added.ok())
        added = (*writer)->addSlice(name, shape, slice, tensors[i]);
    }
    if (!added.ok())
      return added;
  }
  return (*writer)->finish();
}

absl::StatusOr<Tensor> sliceOf(const Tensor &whole, const TensorSlice &slice) {
  auto dims = slice.apply(whole.dims());
  if (!dims.ok())
    return dims.status();
  std::vector<int64_t> start = slice.start;
  for (size_t d = 0; d < start.size(); ++d)
    if (slice.length[d] < 0)
      start[d] = 0;
  Tensor part = Tensor::allocate(whole.dtype(), *dims);
  copyBox(part, std::vector<int64_t>(start.size(), 0), whole, start, *dims);
  return part;
}

absl::Status restore(KernelContext &context) {
  auto prefix = stringScalar(context.input(0), "prefix");
  if (!prefix.ok())
    return prefix.status();
  Tensor names = context.input(1), specs = context.input(2);
  if (absl::Status fits = checkNames(names, specs, context.numOutputs()); !fits.ok())
    return fits;
  std::unique_ptr<TensorBundleReader> bundle;
  V1Reader old;
  std::error_code ignored;
  if (!std::filesystem::exists(*prefix + ".index", ignored) && std::filesystem::exists(*prefix, ignored)) {
    auto opened = V1Reader::open(*prefix);
    if (!opened.ok())
      return opened.status();
    old = *std::move(opened);
  } else {
    auto opened = TensorBundleReader::open(*prefix);
    if (absl::IsNotFound(opened.status()))
      return absl::NotFoundError(absl::StrCat("Unsuccessful TensorSliceReader constructor: Failed to find any matching "
                                              "files for ",
                                              *prefix));
    if (!opened.ok())
      return opened.status();
    bundle = *std::move(opened);
  }
  for (int64_t i = 0; i < names.numElements(); ++i) {
    const std::string &name = names.strings()[i], &spec = specs.strings()[i];
    const std::vector<int64_t> *shape = nullptr;
    if (bundle) {
      const TensorBundleReader::Entry *entry = bundle->find(name);
      shape = entry ? &entry->dims : nullptr;
    } else {
      shape = old.shapeOf(name);
    }
    if (!shape)
      return absl::NotFoundError(absl::StrCat("Key ", name, " not found in checkpoint"));
    TensorSlice slice;
    if (!spec.empty()) {
      std::vector<int64_t> expected;
      if (absl::Status parsed = parseShapeAndSlice(spec, expected, slice); !parsed.ok())
        return parsed;
      if (expected != *shape)
        return absl::InvalidArgumentError(absl::StrCat("tensor_name = ", name, "; shape in shape_and_slice spec ",
                                                       dimsToString(expected),
                                                       " does not match the shape stored in checkpoint: ",
                                                       dimsToString(*shape)));
    }
    absl::StatusOr<Tensor> tensor = bundle ? bundle->read(name) : old.read(name, spec.empty() ? nullptr : &slice);
    if (tensor.ok() && bundle && !spec.empty())
      tensor = sliceOf(*tensor, slice);
    if (!tensor.ok())
      return tensor.status();
    DType expected = context.node->outputTypes[i];
    if (tensor->dtype() != expected)
      return absl::InvalidArgumentError(absl::StrCat("tensor_name = ", name, "; expected dtype ", dtypeName(expected),
                                                     " does not equal original dtype ", dtypeName(tensor->dtype())));
    context.setOutput(static_cast<int>(i), *std::move(tensor));
  }
  return absl::OkStatus();
}

class Merge : public HostKernel {
public:
  explicit Merge(KernelInit &init)
      : deleteFolders(init.attr<bool>("delete_old_dirs")), allowMissing(init.attr<bool>("allow_missing_files")) {}
  absl::Status compute(KernelContext &context) override {
    auto destination = stringScalar(context.input(1), "destination_prefix");
    if (!destination.ok())
      return destination.status();
    Tensor prefixes = context.input(0);
    if (prefixes.rank() != 1 || prefixes.numElements() == 0)
      return absl::InvalidArgumentError("checkpoint_prefixes must be a vector that is not empty");
    if (absl::Status merged = mergeTensorBundles(prefixes.strings(), *destination, allowMissing); !merged.ok())
      return merged;
    if (!deleteFolders)
      return absl::OkStatus();
    std::filesystem::path kept = std::filesystem::path(*destination).parent_path();
    for (const std::string &prefix : prefixes.strings()) {
      std::error_code notEmpty; // then it stays
      std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
      if (folder != kept && !folder.empty())
        std::filesystem::remove(folder, notEmpty);
    }
    return absl::OkStatus();
  }

private:
  bool deleteFolders, allowMissing;
};

LATHE_HOST_FUNCTION(SaveV2, save);
LATHE_HOST_FUNCTION(RestoreV2, restore);
LATHE_HOST_KERNEL(MergeV2Checkpoints, Merge);

} // namespace
} // namespace lathe::rt
