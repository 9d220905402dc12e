// DecodeJSONExample: Example messages from their JSON form to bytes.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/Wire.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

namespace lathe::rt {
namespace {

using Json = nlohmann::json;

/// A message is nested five levels deep; more is no Example, and deep texts must not overflow the parser's stack.
bool tooDeep(const std::string &text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > 64)
        return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

/// Member `name` of an object, or of its other spelling; null when absent.
const Json *member(const Json &object, const char *name, const char *other = nullptr) {
  for (const char *key : {name, other})
    if (key)
      if (auto it = object.find(key); it != object.end() && !it->is_null())
        return &*it;
  return nullptr;
}

bool appendBytes(const Json &value, std::string &list) {
  if (!value.is_string())
    return false;
  std::string bytes;
  const std::string &text = value.get_ref<const std::string &>();
  if (!absl::Base64Unescape(text, &bytes) && !absl::WebSafeBase64Unescape(text, &bytes))
    return false;
  writeBytesField(list, 1, bytes);
  return true;
}

bool appendFloat(const Json &value, std::string &list) {
  double number;
  if (value.is_number())
    number = value.get<double>();
  else if (!value.is_string() || !absl::SimpleAtod(value.get_ref<const std::string &>(), &number))
    return false;
  float f = static_cast<float>(number);
  char raw[4];
  std::memcpy(raw, &f, 4);
  list += '\x0d'; // field 1, four bytes
  list.append(raw, 4);
  return true;
}

bool appendInt(const Json &value, std::string &list) {
  int64_t number;
  if (value.is_number_integer())
    number = value.get<int64_t>();
  else if (value.is_number_float() && std::abs(value.get<double>()) < 9e15 && std::floor(value.get<double>()) == value.get<double>())
    number = static_cast<int64_t>(value.get<double>());
  else if (!value.is_string() || !absl::SimpleAtoi(value.get_ref<const std::string &>(), &number))
    return false;
  writeVarintField(list, 1, static_cast<uint64_t>(number));
  return true;
}

bool appendFeature(const Json &feature, std::string &out) {
  if (!feature.is_object())
    return false;
  struct Kind {
    const char *name, *other;
    uint32_t field;
    bool (*append)(const Json &, std::string &);
  };
  static const Kind kinds[] = {{"bytesList", "bytes_list", 1, appendBytes},
                               {"floatList", "float_list", 2, appendFloat},
                               {"int64List", "int64_list", 3, appendInt}};
  for (const Kind &kind : kinds) {
    const Json *list = member(feature, kind.name, kind.other);
    if (!list)
      continue;
    if (!list->is_object())
      return false;
    // every value is a field of its own, as TensorFlow writes them
    std::string message;
    if (const Json *items = member(*list, "value")) {
      if (!items->is_array())
        return false;
      for (const Json &item : *items)
        if (!kind.append(item, message))
          return false;
    }
    writeBytesField(out, kind.field, message);
  }
  return true;
}

bool convert(const std::string &text, std::string &out) {
  if (tooDeep(text))
    return false;
  // features are written in the order of the text, which the parsed object does not keep
  std::vector<std::string> order;
  Json json = Json::parse(
      text,
      [&](int depth, Json::parse_event_t event, Json &key) {
        if (event == Json::parse_event_t::key && depth == 3)
          order.push_back(key.get<std::string>());
        return true;
      },
      false);
  if (!json.is_object())
    return false;
  const Json *features = member(json, "features");
  if (!features)
    return true;
  if (!features->is_object())
    return false;
  std::string entries;
  if (const Json *map = member(*features, "feature")) {
    if (!map->is_object())
      return false;
    std::set<std::string_view> written;
    for (const std::string &name : order) {
      auto value = map->find(name);
      if (value == map->end() || !written.insert(name).second)
        continue;
      std::string feature, entry;
      if (!appendFeature(*value, feature))
        return false;
      writeBytesField(entry, 1, name);
      writeBytesField(entry, 2, feature);
      writeBytesField(entries, 1, entry);
    }
  }
  writeBytesField(out, 1, entries);
  return true;
}

absl::Status decodeJson(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  for (int64_t i = 0; i < in.numElements(); ++i)
    if (!convert(in.strings()[i], out.mutableStrings()[i]))
      return invalid("Error while parsing JSON: element ", i, " is no Example");
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DecodeJSONExample, decodeJson);

} // namespace
} // namespace lathe::rt
