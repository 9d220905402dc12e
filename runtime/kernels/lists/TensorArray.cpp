#include "runtime/kernels/lists/TensorArray.h"

namespace lathe::rt {

absl::Status TensorArray::bad(const std::string &what) const {
  return absl::InvalidArgumentError(absl::StrCat("TensorArray ", name, ": ", what));
}

absl::Status TensorArray::ifClosed() const {
  return closed ? bad("has already been closed.") : absl::OkStatus();
}

absl::Status TensorArray::writeOne(int64_t index, const Tensor &value) {
  constexpr int64_t kMostItems = INT64_C(1) << 31;
  if (index < 0 || (index >= static_cast<int64_t>(items.size()) && !options.dynamicSize))
    return bad(absl::StrCat("Tried to write to index ", index, " but array is not resizeable and size is: ", items.size()));
  if (index >= kMostItems)
    return bad(absl::StrCat("index ", index, " is too large"));
  if (value.dtype() != options.type)
    return bad(absl::StrCat("Could not write to TensorArray index ", index, " because the value dtype is ",
                            dtypeName(value.dtype()), " but TensorArray dtype is ", dtypeName(options.type), "."));
  if (!isCompatible(options.elementShape, value.dims()))
    return bad(absl::StrCat("Could not write to TensorArray index ", index, " because the value shape is ",
                            dimsToString(value.dims()), " which is incompatible with the TensorArray's element shape: ",
                            shapeToString(options.elementShape), "."));
  if (index >= static_cast<int64_t>(items.size()))
    items.resize(index + 1);
  Item &item = items[index];
  if (item.read)
    return bad(absl::StrCat("Could not write to TensorArray index ", index, " because it has already been read."));
  if (!options.aggregate && item.written)
    return bad(absl::StrCat("Could not write to TensorArray index ", index, " because it has already been written to."));
  if (options.identicalShapes && !isKnown(options.elementShape))
    options.elementShape = value.dims();
  if (item.written && !isCompatible(item.shape, value.dims()))
    return bad(absl::StrCat("Could not aggregate to TensorArray index ", index, " because the existing shape is ",
                            shapeToString(item.shape), " but the new input shape is ", dimsToString(value.dims()), "."));
  if (item.tensor.valid()) {
    auto sum = addTensors(item.tensor, value);
    if (!sum.ok())
      return sum.status();
    item.tensor = *std::move(sum);
    gradientsAllowed = false;
  } else {
    item.tensor = value;
  }
  item.shape = value.dims();
  item.written = true;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TensorArray::readOne(int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(items.size()))
    return bad(absl::StrCat("Tried to read from index ", index, " but array size is: ", items.size()));
  Item &item = items[index];
  if (!item.written) {
    if (!isKnown(options.elementShape))
      return bad(absl::StrCat("Could not read from TensorArray index ", index,
                              ".  Furthermore, the element shape is not fully defined: ",
                              shapeToString(options.elementShape),
                              ".  It is possible you are working with a resizeable TensorArray and stop_gradients is not "
                              "allowing the gradients to be written."));
    item.shape = options.elementShape;
    item.written = true;
  }
  if (item.cleared)
    return bad(absl::StrCat("Could not read index ", index,
                            " twice because it was cleared after a previous read (perhaps try setting clear_after_read = "
                            "false?)."));
  if (!item.tensor.valid()) {
    auto zero = zeros(options.type, item.shape);
    if (!zero.ok())
      return zero;
    item.tensor = *std::move(zero);
  }
  Tensor value = item.tensor;
  item.read = true;
  if (options.clearAfterRead) {
    item.tensor = Tensor();
    item.cleared = true;
  }
  return value;
}

absl::Status TensorArray::write(const std::vector<int64_t> &indices, const std::vector<Tensor> &values) {
  std::lock_guard<std::mutex> lock(mutex);
  absl::Status status = ifClosed();
  for (size_t i = 0; status.ok() && i < indices.size(); ++i)
    status = writeOne(indices[i], values[i]);
  return status;
}

absl::StatusOr<std::vector<Tensor>> TensorArray::read(const std::vector<int64_t> &indices) {
  std::lock_guard<std::mutex> lock(mutex);
  if (absl::Status status = ifClosed(); !status.ok())
    return status;
  std::vector<Tensor> values;
  for (int64_t index : indices) {
    auto value = readOne(index);
    if (!value.ok())
      return value.status();
    values.push_back(*std::move(value));
  }
  return values;
}

absl::StatusOr<int64_t> TensorArray::size() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (absl::Status status = ifClosed(); !status.ok())
    return status;
  return static_cast<int64_t>(items.size());
}

bool TensorArray::isDynamic() const {
  std::lock_guard<std::mutex> lock(mutex);
  return options.dynamicSize;
}

absl::StatusOr<PartialShape> TensorArray::refineShape(const PartialShape &shape) {
  std::lock_guard<std::mutex> lock(mutex);
  auto merged = mergeShapes(options.elementShape, shape);
  if (merged.ok())
    options.elementShape = *merged;
  return merged;
}

void TensorArray::close() {
  std::lock_guard<std::mutex> lock(mutex);
  items.clear();
  closed = true;
}

absl::StatusOr<std::shared_ptr<TensorArray>> TensorArray::makeGradient(std::string gradientName,
                                                                       const std::vector<int64_t> &prepend) {
  std::lock_guard<std::mutex> lock(mutex);
  if (absl::Status status = ifClosed(); !status.ok())
    return status;
  if (!gradientsAllowed)
    return bad("Unable to create a gradients TensorArray.  Perhaps you used the multiple_writes_aggregate flag on a "
               "previous write?");
  options.dynamicSize = false;
  auto prepended = [&](const PartialShape &shape) -> PartialShape {
    if (!shape)
      return shape;
    std::vector<int64_t> dims = prepend;
    dims.insert(dims.end(), shape->begin(), shape->end());
    return dims;
  };
  Options gradientOptions = options;
  gradientOptions.aggregate = gradientOptions.clearAfterRead = true;
  gradientOptions.elementShape = prepended(options.elementShape);
  auto gradient = std::make_shared<TensorArray>(container, std::move(gradientName), items.size(), gradientOptions);
  // what was written forward has a gradient of its shape, zero unless one comes
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].written) {
      gradient->items[i].shape = prepended(items[i].shape);
      gradient->items[i].written = true;
    }
  return gradient;
}

} // namespace lathe::rt
