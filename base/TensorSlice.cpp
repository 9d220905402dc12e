#include "base/TensorSlice.h"

#include "base/ProtoWire.h"
#include "base/Tensor.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lathe {

/// TensorShapeProto.
bool parseShape(std::string_view bytes, std::vector<int64_t> &dims) {
  ByteReader in(bytes);
  ProtoField f;
  while (in.remaining()) {
    if (!readProtoField(in, f))
      return false;
    if (f.number == 3 && f.value)
      return false;
    if (f.number != 2 || f.wire != 2)
      continue;
    int64_t size = 0;
    ByteReader dim(f.bytes);
    ProtoField g;
    while (dim.remaining()) {
      if (!readProtoField(dim, g))
        return false;
      if (g.number == 1)
        size = static_cast<int64_t>(g.value);
    }
    dims.push_back(size);
  }
  return true;
}

/// TensorSliceProto: extents of start and an optional length, whose absence means the whole dimension.
bool parseSlice(std::string_view bytes, TensorSlice &slice) {
  ByteReader in(bytes);
  ProtoField f;
  while (in.remaining()) {
    if (!readProtoField(in, f))
      return false;
    if (f.number != 1 || f.wire != 2)
      continue;
    int64_t start = 0, length = -1;
    ByteReader extent(f.bytes);
    ProtoField g;
    while (extent.remaining()) {
      if (!readProtoField(extent, g))
        return false;
      if (g.number == 1)
        start = static_cast<int64_t>(g.value);
      else if (g.number == 2)
        length = static_cast<int64_t>(g.value);
    }
    slice.start.push_back(start);
    slice.length.push_back(length);
  }
  return true;
}

std::string encodeShape(const std::vector<int64_t> &dims) {
  std::string out;
  for (int64_t d : dims) {
    std::string dim;
    if (d)
      appendProtoNumber(dim, 1, static_cast<uint64_t>(d));
    appendProtoBytes(out, 2, dim);
  }
  return out;
}

std::string encodeSlice(const TensorSlice &slice) {
  std::string out;
  for (size_t d = 0; d < slice.start.size(); ++d) {
    std::string extent;
    if (slice.length[d] >= 0) {
      if (slice.start[d])
        appendProtoNumber(extent, 1, static_cast<uint64_t>(slice.start[d]));
      appendProtoNumber(extent, 2, static_cast<uint64_t>(slice.length[d]));
    }
    appendProtoBytes(out, 1, extent);
  }
  return out;
}

// Numbers whose bytes sort as they do.
static void appendOrdered(std::string &out, int64_t v) {
  if (v >= -64 && v < 64) {
    out.push_back(static_cast<char>(0x80 ^ v));
    return;
  }
  // a header of as many ones as there are bytes, inverted for negative numbers, over the big-endian number
  uint64_t magnitude = v < 0 ? ~static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  int length = 1;
  while (length < 10 && (length * 7 - 1 < 64) && (magnitude >> (length * 7 - 1)) != 0)
    ++length;
  std::string bytes(length, '\0');
  char fill = v < 0 ? '\xff' : '\0';
  for (int i = 0; i < length; ++i) {
    int shift = 8 * (length - 1 - i);
    bytes[i] = shift < 64 ? static_cast<char>(v >> shift) : fill;
  }
  uint16_t header = static_cast<uint16_t>(0xffff << (16 - length));
  bytes[0] ^= static_cast<char>(header >> 8);
  if (length > 8)
    bytes[1] ^= static_cast<char>(header);
  out += bytes;
}

std::string sliceKey(const std::string &name, const TensorSlice &slice) {
  std::string key;
  key.push_back('\0'); // the number 0 in the unsigned code
  for (char c : name) {
    key.push_back(c);
    if (c == '\0')
      key.push_back('\xff');
    else if (c == '\xff')
      key.push_back('\0');
  }
  key.append("\0\1", 2);
  // the number of dimensions, unsigned: a length byte, then big-endian bytes
  size_t rank = slice.start.size();
  if (rank == 0)
    key.push_back('\0');
  else {
    key.push_back('\1');
    key.push_back(static_cast<char>(rank));
  }
  for (size_t d = 0; d < rank; ++d) {
    appendOrdered(key, slice.start[d]);
    appendOrdered(key, slice.length[d]);
  }
  return key;
}

absl::StatusOr<std::vector<int64_t>> TensorSlice::apply(const std::vector<int64_t> &dims) const {
  bool fits = dims.size() == start.size();
  std::vector<int64_t> result = dims;
  for (size_t d = 0; fits && d < dims.size(); ++d) {
    if (length[d] < 0)
      continue;
    fits = start[d] >= 0 && start[d] <= dims[d] && length[d] <= dims[d] - start[d];
    result[d] = length[d];
  }
  if (!fits)
    return absl::InvalidArgumentError(absl::StrCat("the slice does not fit a tensor of shape ", dimsToString(dims)));
  return result;
}

absl::Status parseShapeAndSlice(const std::string &text, std::vector<int64_t> &shape, TensorSlice &slice) {
  auto bad = [&](const char *why) {
    return absl::InvalidArgumentError(absl::StrCat("shape_and_slice '", text, "': ", why));
  };
  std::vector<std::string> items = absl::StrSplit(text, ' ');
  if (items.size() < 2)
    return bad("expected dimensions and a slice");
  shape.clear();
  for (size_t i = 0; i + 1 < items.size(); ++i) {
    int64_t dim;
    if (!absl::SimpleAtoi(items[i], &dim) || dim < 0)
      return bad("a dimension is not a number");
    shape.push_back(dim);
  }
  slice = TensorSlice();
  for (const std::string &part : std::vector<std::string>(absl::StrSplit(items.back(), ':'))) {
    int64_t start = 0, length = -1;
    if (part != "-") {
      std::vector<std::string> numbers = absl::StrSplit(part, ',');
      if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &start) || !absl::SimpleAtoi(numbers[1], &length) ||
          start < 0 || length < 0)
        return bad("expected start,length or - for each dimension");
    }
    slice.start.push_back(start);
    slice.length.push_back(length);
  }
  if (slice.start.size() != shape.size())
    return bad("the slice has another rank than the shape");
  return slice.apply(shape).status();
}

} // namespace lathe
