// Protobuf's wire format without protobuf: bounded reading, and writing in TensorFlow's order of fields.
#ifndef LATHE_RUNTIME_KERNELS_WIRE_H
#define LATHE_RUNTIME_KERNELS_WIRE_H

#include "base/Bytes.h"
#include "base/Tensor.h"

#include "absl/status/statusor.h"

#include <string>
#include <string_view>

namespace lathe::rt {

/// Walks the fields of one message.
class WireReader {
public:
  explicit WireReader(std::string_view bytes) : reader(bytes) {}

  /// Moves to the next field; false at the end or when the bytes are malformed (then failed()).
  bool next();
  bool failed() const { return bad; }

  uint32_t field() const { return number; }
  int wireType() const { return type; }
  /// The value of a varint, or the bits of a fixed32 or fixed64.
  uint64_t bits() const { return value; }
  /// The bytes of a length-delimited field.
  std::string_view bytes() const { return content; }

private:
  ByteReader reader;
  uint32_t number = 0;
  int type = 0;
  uint64_t value = 0;
  std::string_view content;
  bool bad = false;
};

void writeVarint(std::string &out, uint64_t value);
/// A field of wire type 0.
void writeVarintField(std::string &out, uint32_t field, uint64_t value);
/// A field of wire type 2.
void writeBytesField(std::string &out, uint32_t field, std::string_view bytes);

/// Appends the numbers of a repeated int64 (varint) field in its present form: packed, or one alone. False when malformed.
bool appendVarints(const WireReader &field, std::vector<int64_t> &out);
/// The same for repeated float and double fields.
bool appendFloats(const WireReader &field, std::vector<float> &out);
bool appendDoubles(const WireReader &field, std::vector<double> &out);

/// A serialised TensorProto. `contentStrings` packs strings into tensor_content as TensorFlow's AsProtoTensorContent does;
/// else they are a repeated field. UNIMPLEMENTED for resources and variants.
absl::StatusOr<std::string> writeTensor(const Tensor &t, bool contentStrings);
/// The tensor of a serialised TensorProto; DATA_LOSS-free: INVALID_ARGUMENT when malformed or too large.
absl::StatusOr<Tensor> readTensor(std::string_view bytes);

} // namespace lathe::rt

#endif
