#include "runtime/kernels/parsing/Descriptor.h"

#include "base/Bytes.h"
#include "runtime/kernels/Wire.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

#include <algorithm>

namespace lathe::rt {
namespace {

constexpr int kMostNesting = 32;

absl::Status damaged() { return invalid("the descriptor is no FileDescriptorSet"); }

bool isPackable(FieldType type) { return wireTypeOf(type) != 2 && wireTypeOf(type) != 3; }

} // namespace

int wireTypeOf(FieldType type) {
  switch (type) {
  case FieldType::Double:
  case FieldType::Fixed64:
  case FieldType::SFixed64:
    return 1;
  case FieldType::Float:
  case FieldType::Fixed32:
  case FieldType::SFixed32:
    return 5;
  case FieldType::String:
  case FieldType::Message:
  case FieldType::Bytes:
    return 2;
  case FieldType::Group:
    return 3;
  default:
    return 0;
  }
}

bool holdsField(DType tensor, FieldType field) {
  switch (field) {
  case FieldType::Double: return tensor == DType::Float64;
  case FieldType::Float: return tensor == DType::Float32 || tensor == DType::Float64;
  case FieldType::Int64:
  case FieldType::SFixed64:
  case FieldType::SInt64: return tensor == DType::Int64;
  case FieldType::UInt64:
  case FieldType::Fixed64: return tensor == DType::UInt64;
  case FieldType::Int32:
  case FieldType::SFixed32:
  case FieldType::SInt32: return tensor == DType::Int32 || tensor == DType::Int64;
  case FieldType::UInt32:
  case FieldType::Fixed32: return tensor == DType::UInt32 || tensor == DType::UInt64;
  case FieldType::Bool: return tensor == DType::Bool;
  case FieldType::Enum: return tensor == DType::Int32;
  case FieldType::String:
  case FieldType::Bytes:
  case FieldType::Message: return tensor == DType::String;
  case FieldType::Group: return false;
  }
  return false;
}

absl::StatusOr<MessageDescriptions> MessageDescriptions::read(const std::string &source) {
  constexpr std::string_view kBytes = "bytes://";
  std::string bytes;
  if (source.empty() || source == "local://")
    return absl::UnimplementedError("messages of TensorFlow's own are not known here: give a FileDescriptorSet as descriptor_source");
  if (source.compare(0, kBytes.size(), kBytes) == 0) {
    bytes = source.substr(kBytes.size());
  } else {
    auto file = readFile(source, 1 << 26);
    if (!file.ok())
      return invalid(source, "; ", file.status().message());
    bytes = *std::move(file);
  }
  MessageDescriptions made;
  WireReader reader(bytes);
  while (reader.next())
    if (reader.field() == 1 && reader.wireType() == 2)
      LATHE_TRY(made.addFile(reader.bytes()));
  if (reader.failed())
    return damaged();
  return made;
}

absl::Status MessageDescriptions::addFile(std::string_view bytes) {
  std::string package, syntax;
  for (WireReader reader(bytes); reader.next();) {
    if (reader.field() == 2 && reader.wireType() == 2)
      package = std::string(reader.bytes());
    if (reader.field() == 12 && reader.wireType() == 2)
      syntax = std::string(reader.bytes());
  }
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.field() == 4 && reader.wireType() == 2)
      LATHE_TRY(addMessage(reader.bytes(), package, syntax == "proto3", 0));
    if (reader.field() == 5 && reader.wireType() == 2)
      LATHE_TRY(addEnum(reader.bytes(), package));
  }
  return reader.failed() ? damaged() : absl::OkStatus();
}

absl::Status MessageDescriptions::addMessage(std::string_view bytes, const std::string &scope, bool packs, int depth) {
  if (depth > kMostNesting)
    return invalid("messages are nested more than ", kMostNesting, " deep");
  std::string name;
  std::vector<FieldDescription> fields;
  for (WireReader reader(bytes); reader.next();)
    if (reader.field() == 1 && reader.wireType() == 2)
      name = std::string(reader.bytes());
  name = scope.empty() ? name : scope + "." + name;
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.wireType() != 2)
      continue;
    if (reader.field() == 3)
      LATHE_TRY(addMessage(reader.bytes(), name, packs, depth + 1));
    if (reader.field() == 4)
      LATHE_TRY(addEnum(reader.bytes(), name));
    if (reader.field() != 2)
      continue;
    FieldDescription field;
    std::optional<bool> packed;
    WireReader parts(reader.bytes());
    while (parts.next())
      switch (parts.field()) {
      case 1: field.name = std::string(parts.bytes()); break;
      case 3: field.number = static_cast<uint32_t>(parts.bits()); break;
      case 4: field.isRepeated = parts.bits() == 3; break;
      case 5:
        if (parts.bits() < 1 || parts.bits() > 18)
          return damaged();
        field.type = static_cast<FieldType>(parts.bits());
        break;
      case 6: field.typeName = std::string(parts.bytes()); break;
      case 7: field.defaultText = std::string(parts.bytes()); break;
      case 8:
        for (WireReader options(parts.bytes()); options.next();)
          if (options.field() == 2)
            packed = options.bits() != 0;
        break;
      }
    if (parts.failed() || field.number == 0)
      return damaged();
    field.isPacked = field.isRepeated && isPackable(field.type) && packed.value_or(packs);
    fields.push_back(std::move(field));
  }
  messages[name] = std::move(fields);
  return reader.failed() ? damaged() : absl::OkStatus();
}

absl::Status MessageDescriptions::addEnum(std::string_view bytes, const std::string &scope) {
  std::string name;
  std::vector<std::pair<std::string, int32_t>> values;
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.wireType() != 2)
      continue;
    if (reader.field() == 1)
      name = std::string(reader.bytes());
    if (reader.field() != 2)
      continue;
    values.emplace_back();
    for (WireReader parts(reader.bytes()); parts.next();) {
      if (parts.field() == 1)
        values.back().first = std::string(parts.bytes());
      if (parts.field() == 2)
        values.back().second = static_cast<int32_t>(parts.bits());
    }
  }
  enums["." + (scope.empty() ? name : scope + "." + name)] = std::move(values);
  return reader.failed() ? damaged() : absl::OkStatus();
}

absl::StatusOr<std::vector<FieldDescription>> MessageDescriptions::fieldsOf(const std::string &message,
                                                                            const std::vector<std::string> &names) const {
  auto found = messages.find(message);
  if (found == messages.end())
    return invalid("No descriptor found for message type ", message);
  std::vector<FieldDescription> fields;
  for (const std::string &name : names) {
    auto field = std::find_if(found->second.begin(), found->second.end(), [&](const FieldDescription &f) { return f.name == name; });
    if (field == found->second.end())
      return invalid("Unknown field: ", name, " in message type ", message);
    fields.push_back(*field);
  }
  return fields;
}

absl::StatusOr<Tensor> MessageDescriptions::defaultOf(const FieldDescription &field, DType type) const {
  Tensor t = Tensor::allocate(type, {});
  const std::string &text = field.defaultText;
  if (field.type == FieldType::Enum) {
    auto values = enums.find(field.typeName);
    if (values == enums.end() || values->second.empty())
      return t;
    *t.data<int32_t>() = values->second[0].second;
    for (auto &[name, number] : values->second)
      if (!text.empty() && name == text)
        *t.data<int32_t>() = number;
    return t;
  }
  if (text.empty())
    return t;
  bool good = true;
  switch (type) {
  case DType::String: {
    std::string out = text;
    if (field.type == FieldType::Bytes)
      good = absl::CUnescape(text, &out);
    t.mutableStrings()[0] = field.type == FieldType::Message ? std::string() : out;
    break;
  }
  case DType::Bool: *t.data<bool>() = text == "true"; break;
  case DType::Float32: good = absl::SimpleAtof(text, t.data<float>()); break;
  case DType::Float64: good = absl::SimpleAtod(text, t.data<double>()); break;
  case DType::Int32: good = absl::SimpleAtoi(text, t.data<int32_t>()); break;
  case DType::Int64: good = absl::SimpleAtoi(text, t.data<int64_t>()); break;
  case DType::UInt32: good = absl::SimpleAtoi(text, t.data<uint32_t>()); break;
  case DType::UInt64: good = absl::SimpleAtoi(text, t.data<uint64_t>()); break;
  default: good = false;
  }
  if (!good)
    return invalid("the default of field ", field.name, " is no ", dtypeName(type), ": ", text);
  return t;
}

} // namespace lathe::rt
