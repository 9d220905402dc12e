#include "runtime/kernels/Wire.h"

#include "runtime/kernels/Common.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace lathe::rt {

bool WireReader::next() {
  if (bad || !reader.remaining())
    return false;
  uint64_t tag;
  bad = true;
  if (!reader.readVarint(tag) || tag >> 3 == 0 || tag >> 32)
    return false;
  number = static_cast<uint32_t>(tag >> 3);
  type = static_cast<int>(tag & 7);
  content = {};
  value = 0;
  switch (type) {
  case 0:
    bad = !reader.readVarint(value);
    break;
  case 1:
    bad = !reader.readLittle(8, value);
    break;
  case 2: {
    uint64_t size;
    bad = !reader.readVarint(size) || !reader.readBytes(size, content);
    break;
  }
  case 5:
    bad = !reader.readLittle(4, value);
    break;
  default: // groups are not in use
    break;
  }
  return !bad;
}

void writeVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void writeVarintField(std::string &out, uint32_t field, uint64_t value) {
  writeVarint(out, field << 3);
  writeVarint(out, value);
}

void writeBytesField(std::string &out, uint32_t field, std::string_view bytes) {
  writeVarint(out, field << 3 | 2);
  writeVarint(out, bytes.size());
  out += bytes;
}

bool appendVarints(const WireReader &field, std::vector<int64_t> &out) {
  if (field.wireType() == 0) {
    out.push_back(static_cast<int64_t>(field.bits()));
    return true;
  }
  if (field.wireType() != 2)
    return false;
  ByteReader packed(field.bytes());
  while (packed.remaining()) {
    uint64_t value;
    if (!packed.readVarint(value))
      return false;
    out.push_back(static_cast<int64_t>(value));
  }
  return true;
}

template <typename T, int kWireType>
static bool appendFixed(const WireReader &field, std::vector<T> &out) {
  auto push = [&](uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    out.push_back(value);
  };
  if (field.wireType() == kWireType) {
    push(field.bits());
    return true;
  }
  if (field.wireType() != 2 || field.bytes().size() % sizeof(T))
    return false;
  ByteReader packed(field.bytes());
  for (uint64_t bits; packed.readLittle(sizeof(T), bits);)
    push(bits);
  return true;
}

bool appendFloats(const WireReader &field, std::vector<float> &out) { return appendFixed<float, 5>(field, out); }
bool appendDoubles(const WireReader &field, std::vector<double> &out) { return appendFixed<double, 1>(field, out); }

namespace {

// fields of TensorProto
enum : uint32_t {
  kDType = 1,
  kShape = 2,
  kContent = 4,
  kFloat = 5,
  kDouble = 6,
  kInt = 7,
  kString = 8,
  kScomplex = 9,
  kInt64 = 10,
  kBool = 11,
  kDcomplex = 12,
  kHalf = 13,
  kUint32 = 16,
  kUint64 = 17,
  kFloat8 = 18,
};

absl::Status malformed() { return invalid("Could not parse the bytes as a TensorProto"); }

bool readShape(std::string_view bytes, std::vector<int64_t> &dims) {
  WireReader shape(bytes);
  while (shape.next()) {
    if (shape.field() == 3 && shape.bits())
      return false; // a tensor has a rank
    if (shape.field() != 2 || shape.wireType() != 2)
      continue;
    WireReader dim(shape.bytes());
    int64_t size = 0;
    while (dim.next())
      if (dim.field() == 1)
        size = static_cast<int64_t>(dim.bits());
    if (dim.failed() || dims.size() >= 254)
      return false;
    dims.push_back(size);
  }
  return !shape.failed();
}

/// Strings laid out as all their lengths, then all their bytes.
bool unpackStrings(std::string_view content, std::vector<std::string> &out) {
  ByteReader reader(content);
  std::vector<uint64_t> sizes(out.size());
  for (uint64_t &size : sizes)
    if (!reader.readVarint(size))
      return false;
  for (size_t i = 0; i < out.size(); ++i) {
    std::string_view bytes;
    if (!reader.readBytes(sizes[i], bytes))
      return false;
    out[i] = bytes;
  }
  return reader.remaining() == 0;
}

/// The repeated fields of a TensorProto.
struct Fields {
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::string_view> strings;
  std::string_view float8;
};

/// A short list repeats its last value to fill the tensor; an empty one means zeros.
template <typename T, typename From>
void fill(Tensor &t, const std::vector<From> &values, int64_t width = 1) {
  T *out = t.data<T>();
  int64_t n = static_cast<int64_t>(values.size()) / width;
  for (int64_t i = 0; i < t.numElements() && n; ++i)
    for (int64_t k = 0; k < width; ++k)
      out[i * width + k] = static_cast<T>(values[std::min(i, n - 1) * width + k]);
}

absl::Status fillFrom(Tensor &t, const Fields &fields) {
  switch (dtypeCarrier(t.dtype())) {
  case DType::Float32:
    fill<float>(t, fields.floats);
    break;
  case DType::Float64:
    fill<double>(t, fields.doubles);
    break;
  case DType::Complex64:
    fill<float>(t, fields.floats, 2);
    break;
  case DType::Complex128:
    fill<double>(t, fields.doubles, 2);
    break;
  case DType::String:
    for (int64_t i = 0, n = fields.strings.size(); i < t.numElements() && n; ++i)
      t.mutableStrings()[i] = fields.strings[std::min(i, n - 1)];
    break;
  case DType::Int64:
  case DType::UInt64:
    fill<int64_t>(t, fields.ints);
    break;
  case DType::Int32:
  case DType::UInt32:
    fill<int32_t>(t, fields.ints);
    break;
  case DType::Int16:
  case DType::UInt16:
  case DType::Float16:
  case DType::BFloat16:
    fill<int16_t>(t, fields.ints);
    break;
  case DType::Bool:
    fill<bool>(t, fields.ints);
    break;
  case DType::Int8:
  case DType::UInt8:
  case DType::Int4:
  case DType::UInt4:
    fill<int8_t>(t, fields.ints);
    break;
  default:
    if (dtypeSize(t.dtype()) == 1 && !isQuantized(t.dtype())) { // floats of 8 bits
      fill<char>(t, std::vector<char>(fields.float8.begin(), fields.float8.end()));
      break;
    }
    return invalid("a TensorProto of ", dtypeName(t.dtype()), " cannot be read");
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::string> writeTensor(const Tensor &t, bool contentStrings) {
  if (t.dtype() == DType::Resource || t.dtype() == DType::Variant)
    return absl::UnimplementedError("resources and variants have no serialised form");
  std::string out, shape;
  writeVarintField(out, kDType, static_cast<uint64_t>(t.dtype()));
  for (int64_t d : t.dims()) {
    std::string dim;
    if (d)
      writeVarintField(dim, 1, static_cast<uint64_t>(d));
    writeBytesField(shape, 2, dim);
  }
  writeBytesField(out, kShape, shape);
  if (t.dtype() != DType::String) {
    if (t.sizeBytes())
      writeBytesField(out, kContent, {t.data<char>(), static_cast<size_t>(t.sizeBytes())});
    return out;
  }
  if (!contentStrings) {
    for (const std::string &s : t.strings())
      writeBytesField(out, kString, s);
    return out;
  }
  std::string content;
  for (const std::string &s : t.strings())
    writeVarint(content, s.size());
  for (const std::string &s : t.strings())
    content += s;
  if (!content.empty())
    writeBytesField(out, kContent, content);
  return out;
}

absl::StatusOr<Tensor> readTensor(std::string_view bytes) {
  WireReader reader(bytes);
  uint64_t type = 0;
  std::vector<int64_t> dims;
  std::string_view content;
  Fields fields;
  while (reader.next()) {
    bool good = true;
    switch (reader.field()) {
    case kDType:
      type = reader.bits();
      break;
    case kShape:
      good = reader.wireType() == 2 && readShape(reader.bytes(), dims);
      break;
    case kContent:
      content = reader.bytes();
      break;
    case kFloat:
    case kScomplex:
      good = appendFloats(reader, fields.floats);
      break;
    case kDouble:
    case kDcomplex:
      good = appendDoubles(reader, fields.doubles);
      break;
    case kString:
      fields.strings.push_back(reader.bytes());
      break;
    case kFloat8:
      fields.float8 = reader.bytes();
      break;
    case kInt:
    case kInt64:
    case kBool:
    case kHalf:
    case kUint32:
    case kUint64:
      good = appendVarints(reader, fields.ints);
      break;
    default:
      break;
    }
    if (!good)
      return malformed();
  }
  std::optional<DType> dtype = type > 99 ? std::nullopt : dtypeFromNumber(static_cast<int64_t>(type));
  if (reader.failed() || !dtype)
    return malformed();
  auto made = Tensor::tryAllocate(*dtype, dims, kMaxTensorBytes);
  if (!made.ok())
    return invalid("a TensorProto cannot be read: ", made.status().message());
  if (content.empty()) {
    LATHE_TRY(fillFrom(*made, fields));
  } else if (*dtype == DType::String) {
    if (!unpackStrings(content, made->mutableStrings()))
      return malformed();
  } else {
    if (static_cast<int64_t>(content.size()) != made->sizeBytes())
      return malformed();
    std::memcpy(made->data(), content.data(), content.size());
  }
  return made;
}

} // namespace lathe::rt
