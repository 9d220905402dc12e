// Descriptions of protobuf messages as a FileDescriptorSet has them: names, numbers and types of fields, and their defaults.
#ifndef LATHE_RUNTIME_KERNELS_PARSING_DESCRIPTOR_H
#define LATHE_RUNTIME_KERNELS_PARSING_DESCRIPTOR_H

#include "runtime/kernels/Common.h"

#include <map>

namespace lathe::rt {

/// The types of fields, by their numbers in descriptor.proto.
enum class FieldType {
  Double = 1, Float, Int64, UInt64, Int32, Fixed64, Fixed32, Bool, String, Group, Message, Bytes, UInt32, Enum, SFixed32, SFixed64,
  SInt32, SInt64
};

struct FieldDescription {
  std::string name, typeName, defaultText;
  uint32_t number = 0;
  FieldType type = FieldType::Int32;
  bool isRepeated = false, isPacked = false;
};

/// The wire type of a field's values that stand alone: 0 varint, 1 and 5 fixed, 2 with a length, 3 a group.
int wireTypeOf(FieldType type);
/// Whether a tensor of the type can have the field's values.
bool holdsField(DType tensor, FieldType field);

class MessageDescriptions {
public:
  /// From "bytes://" and a FileDescriptorSet, or a file that has one.
  static absl::StatusOr<MessageDescriptions> read(const std::string &source);
  /// The fields of a message, in the order of their names as given; INVALID_ARGUMENT for a name that there is not.
  absl::StatusOr<std::vector<FieldDescription>> fieldsOf(const std::string &message, const std::vector<std::string> &names) const;
  /// What a field that is missing has, as a scalar of the type.
  absl::StatusOr<Tensor> defaultOf(const FieldDescription &field, DType type) const;

private:
  absl::Status addFile(std::string_view bytes);
  absl::Status addMessage(std::string_view bytes, const std::string &scope, bool packs, int depth);
  absl::Status addEnum(std::string_view bytes, const std::string &scope);
  std::map<std::string, std::vector<FieldDescription>> messages;
  std::map<std::string, std::vector<std::pair<std::string, int32_t>>> enums;
};

} // namespace lathe::rt

#endif
