// DecodeRaw, DecodePaddedRaw, SerializeTensor, ParseTensor.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/Wire.h"

#include <algorithm>
#include <cstring>

namespace lathe::rt {
namespace {

/// Reverses the bytes of each number of big-endian data.
void swapBytes(Tensor &t) {
  size_t size = dtypeSize(t.dtype());
  if (isComplex(t.dtype()))
    size /= 2;
  char *data = t.data<char>();
  for (int64_t at = 0; at < t.sizeBytes(); at += static_cast<int64_t>(size))
    std::reverse(data + at, data + at + size);
}

absl::Status decodeRaw(KernelContext &context) {
  Tensor in = context.input(0);
  DType type = context.node->outputTypes[0];
  int64_t size = static_cast<int64_t>(dtypeSize(type)), bytes = -1;
  if (!size)
    return invalid("out_type ", dtypeName(type), " has no bytes");
  for (int64_t i = 0; i < in.numElements(); ++i) {
    int64_t n = static_cast<int64_t>(in.strings()[i].size());
    if (bytes >= 0 && n != bytes)
      return invalid("DecodeRaw requires input strings to all be the same size, but element ", i, " has size ", bytes, " != ", n);
    bytes = n;
  }
  std::vector<int64_t> dims = in.dims();
  dims.push_back(std::max<int64_t>(bytes, 0) / size);
  if (bytes > 0 && bytes % size)
    return invalid("Input to DecodeRaw has length ", bytes, " that is not a multiple of ", size, ", the size of ", dtypeName(type));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (int64_t i = 0; i < in.numElements(); ++i)
    std::memcpy(out.data<char>() + i * bytes, in.strings()[i].data(), bytes);
  if (!*attrOf<bool>(*context.node, "little_endian"))
    swapBytes(out);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DecodeRaw, decodeRaw);

absl::Status decodePaddedRaw(KernelContext &context) {
  Tensor in = context.input(0);
  DType type = context.node->outputTypes[0];
  LATHE_TRY_VALUE(length, oneInt(context.input(1), "k"));
  int64_t size = static_cast<int64_t>(dtypeSize(type));
  if (!size)
    return invalid("out_type ", dtypeName(type), " has no bytes");
  if (length <= 0 || length % size)
    return invalid("fixed_length (", length, ") must be greater than zero and a multiple of the size of ", dtypeName(type));
  std::vector<int64_t> dims = in.dims();
  dims.push_back(length / size);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (int64_t i = 0; i < in.numElements(); ++i) {
    const std::string &s = in.strings()[i];
    std::memcpy(out.data<char>() + i * length, s.data(), std::min<size_t>(s.size(), length));
  }
  if (!*attrOf<bool>(*context.node, "little_endian"))
    swapBytes(out);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DecodePaddedRaw, decodePaddedRaw);

absl::Status serializeTensor(KernelContext &context) {
  LATHE_TRY_VALUE(bytes, writeTensor(context.input(0), false));
  context.setOutput(0, Tensor::fromStrings({}, {bytes}));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SerializeTensor, serializeTensor);

absl::Status parseTensor(KernelContext &context) {
  LATHE_TRY_VALUE(bytes, oneString(context.input(0), "Expected `serialized`"));
  LATHE_TRY_VALUE(t, readTensor(bytes));
  if (t.dtype() != context.node->outputTypes[0])
    return invalid("Type mismatch between parsed tensor (", dtypeName(t.dtype()), ") and dtype (",
                   dtypeName(context.node->outputTypes[0]), ")");
  context.setOutput(0, t);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ParseTensor, parseTensor);

} // namespace
} // namespace lathe::rt
