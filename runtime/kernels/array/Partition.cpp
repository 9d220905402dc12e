// DynamicPartition, DynamicStitch, ListDiff, Unique and its forms, for every element type.
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace lathe::rt {
namespace {

using Dims = std::vector<int64_t>;

absl::Status dynamicPartition(KernelContext &context) {
  Tensor data = context.input(0), partitions = context.input(1);
  if (partitions.rank() > data.rank() ||
      !std::equal(partitions.dims().begin(), partitions.dims().end(), data.dims().begin()))
    return invalid("data.shape must start with partitions.shape, got data.shape = ", dimsToString(data.dims()),
                   ", partitions.shape = ", dimsToString(partitions.dims()));
  int64_t size = productOf(data.dims(), partitions.rank(), data.rank());
  std::vector<std::vector<int64_t>> from(context.numOutputs());
  for (int64_t i = 0; i < partitions.numElements(); ++i) {
    int64_t p = intAt(partitions, i);
    if (p < 0 || p >= context.numOutputs())
      return invalid("partitions[", i, "] = ", p, " is not in [0, ", context.numOutputs(), ")");
    for (int64_t k = 0; k < size; ++k)
      from[p].push_back(i * size + k);
  }
  for (int p = 0; p < context.numOutputs(); ++p) {
    int64_t rows = std::count_if(partitions.data<int32_t>(), partitions.data<int32_t>() + partitions.numElements(),
                                 [&](int32_t v) { return v == p; });
    Dims dims(data.dims().begin() + partitions.rank(), data.dims().end());
    dims.insert(dims.begin(), rows);
    LATHE_TRY_VALUE(out, pick(context, data, dims, from[p]));
    context.setOutput(p, out);
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DynamicPartition, dynamicPartition);

absl::Status dynamicStitch(KernelContext &context) {
  std::vector<Tensor> indices = context.inputList("indices"), data = context.inputList("data");
  int64_t largest = -1;
  Dims rest(data[0].dims().begin() + std::min(indices[0].rank(), data[0].rank()), data[0].dims().end());
  for (size_t t = 0; t < indices.size(); ++t) {
    const Tensor &index = indices[t];
    if (index.rank() > data[t].rank() || !std::equal(index.dims().begin(), index.dims().end(), data[t].dims().begin()) ||
        Dims(data[t].dims().begin() + index.rank(), data[t].dims().end()) != rest)
      return invalid("data[", t, "].shape = ", dimsToString(data[t].dims()), " does not start with indices[", t,
                     "].shape = ", dimsToString(index.dims()), " or ends otherwise than the first");
    for (int64_t i = 0; i < index.numElements(); ++i) {
      if (intAt(index, i) < 0)
        return invalid("indices[", t, "] is out of range: ", intAt(index, i));
      largest = std::max(largest, intAt(index, i));
    }
  }
  int64_t size = productOf(rest, 0, rest.size());
  rest.insert(rest.begin(), largest + 1);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, rest));
  for (size_t t = 0; t < indices.size(); ++t)
    for (int64_t i = 0; i < indices[t].numElements(); ++i)
      for (int64_t k = 0; k < size; ++k)
        copyElement(out, intAt(indices[t], i) * size + k, data[t], i * size + k);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DynamicStitch, dynamicStitch);
LATHE_HOST_FUNCTION(ParallelDynamicStitch, dynamicStitch);

/// The bytes by which elements [at, at + count) equal others: -0 as 0; a NaN equals nothing, so it gets its position.
std::string keyOf(const Tensor &t, const std::vector<int64_t> &positions) {
  std::string key;
  for (int64_t p : positions) {
    if (t.dtype() == DType::String) {
      const std::string &s = t.strings()[p];
      uint64_t n = s.size();
      key.append(reinterpret_cast<const char *>(&n), 8);
      key += s;
    } else if (isFloating(t.dtype())) {
      double v = realAt(t, p);
      if (v == 0)
        v = 0;
      key.append(reinterpret_cast<const char *>(&v), 8);
      if (v != v)
        key.append(reinterpret_cast<const char *>(&p), 8);
    } else {
      size_t size = dtypeSize(t.dtype());
      key.append(t.data<char>() + p * size, size);
    }
  }
  return key;
}

absl::Status listDiff(KernelContext &context) {
  Tensor x = context.input(0), y = context.input(1);
  if (x.rank() != 1 || y.rank() != 1)
    return invalid("x and y should be 1D vectors, found ", dimsToString(x.dims()), " and ", dimsToString(y.dims()));
  std::unordered_set<std::string> seen;
  for (int64_t i = 0; i < y.numElements(); ++i)
    seen.insert(keyOf(y, {i}));
  std::vector<int64_t> from;
  for (int64_t i = 0; i < x.numElements(); ++i)
    if (!seen.count(keyOf(x, {i})))
      from.push_back(i);
  LATHE_TRY_VALUE(out, pick(context, x, {static_cast<int64_t>(from.size())}, from));
  context.setOutput(0, out);
  context.setOutput(1, indexVector(context.node->outputTypes[1], from));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ListDiff, listDiff);

/// Unique slices along an axis, in order of first appearance. With a third output, how often each occurs.
absl::Status uniqueAlong(KernelContext &context, const Tensor &x, int64_t axis) {
  Dims dims = x.dims();
  int64_t outer = productOf(dims, 0, axis), count = dims[axis], inner = productOf(dims, axis + 1, dims.size());
  std::unordered_map<std::string, int64_t> found;
  std::vector<int64_t> firsts, ids, counts;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> positions;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k)
        positions.push_back((o * count + i) * inner + k);
    auto [it, isNew] = found.emplace(keyOf(x, positions), static_cast<int64_t>(firsts.size()));
    if (isNew) {
      firsts.push_back(i);
      counts.push_back(0);
    }
    ids.push_back(it->second);
    ++counts[it->second];
  }
  std::vector<int64_t> from;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t first : firsts)
      for (int64_t k = 0; k < inner; ++k)
        from.push_back((o * count + first) * inner + k);
  dims[axis] = static_cast<int64_t>(firsts.size());
  LATHE_TRY_VALUE(out, pick(context, x, dims, from));
  context.setOutput(0, out);
  context.setOutput(1, indexVector(context.node->outputTypes[1], ids));
  if (context.numOutputs() > 2)
    context.setOutput(2, indexVector(context.node->outputTypes[2], counts));
  return absl::OkStatus();
}

absl::Status unique(KernelContext &context) {
  Tensor x = context.input(0);
  if (x.rank() != 1)
    return invalid("unique expects a 1D vector.");
  return uniqueAlong(context, x, 0);
}

absl::Status uniqueV2(KernelContext &context) {
  Tensor x = context.input(0), axes = context.input(1);
  if (axes.rank() != 1 || axes.numElements() > 1)
    return invalid("axis expects a 1D vector of at most one element, found shape ", dimsToString(axes.dims()));
  if (axes.numElements() == 0)
    return unique(context);
  int64_t axis = intAt(axes, 0);
  if (axis < -x.rank() || axis >= x.rank())
    return invalid("axis ", axis, " is out of range for a tensor of rank ", x.rank());
  return uniqueAlong(context, x, axis < 0 ? axis + x.rank() : axis);
}
LATHE_HOST_FUNCTION(Unique, unique);
LATHE_HOST_FUNCTION(UniqueWithCounts, unique);
LATHE_HOST_FUNCTION(UniqueV2, uniqueV2);
LATHE_HOST_FUNCTION(UniqueWithCountsV2, uniqueV2);

} // namespace
} // namespace lathe::rt
