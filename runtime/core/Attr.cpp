#include "runtime/core/Attr.h"

#include "ops/Registry.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lathe::rt {

std::string shapeToString(const PartialShape &shape) {
  if (!shape)
    return "<unknown>";
  return absl::StrCat("[", absl::StrJoin(*shape, ",", [](std::string *out, int64_t d) {
    absl::StrAppend(out, d < 0 ? std::string("?") : std::to_string(d));
  }), "]");
}

bool isCompatible(const PartialShape &shape, const std::vector<int64_t> &dims) {
  if (!shape)
    return true;
  if (shape->size() != dims.size())
    return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if ((*shape)[i] >= 0 && (*shape)[i] != dims[i])
      return false;
  return true;
}

namespace {

absl::string_view view(std::string_view s) { return absl::string_view(s.data(), s.size()); }

bool parse(std::string_view text, int64_t &value) { return absl::SimpleAtoi(view(text), &value); }
bool parse(std::string_view text, float &value) { return absl::SimpleAtof(view(text), &value); }
bool parse(std::string_view text, bool &value) {
  value = text == "true";
  return value || text == "false";
}
bool parse(std::string_view text, std::string &value) {
  value = ops::unquote(text);
  return true;
}
bool parse(std::string_view text, DType &value) {
  value = parseDType(text).value_or(DType::Invalid);
  return value != DType::Invalid;
}
bool parse(std::string_view text, PartialShape &value) {
  value.reset();
  if (text == "unknown")
    return true;
  value.emplace();
  for (std::string_view part : ops::splitListText(text)) {
    int64_t size = -1;
    if (part != "?" && !parse(part, size))
      return false;
    value->push_back(size);
  }
  return true;
}

template <typename T>
bool parseOne(std::string_view text, AttrValue &value) {
  T one{};
  if (!parse(text, one))
    return false;
  value = AttrValue(std::in_place_type<T>, std::move(one));
  return true;
}

template <typename T>
bool parseList(std::string_view text, AttrValue &value) {
  std::vector<T> all;
  for (std::string_view part : ops::splitListText(text)) {
    T one{};
    if (!parse(part, one))
      return false;
    all.push_back(std::move(one));
  }
  value = AttrValue(std::in_place_type<std::vector<T>>, std::move(all));
  return true;
}

/// Whether the value holds a T; nothing at all becomes a T() when `listIfEmpty`.
template <typename T>
bool holds(AttrValue &value, bool listIfEmpty = false) {
  if (listIfEmpty && std::holds_alternative<std::monostate>(value))
    value = AttrValue(std::in_place_type<T>);
  return std::holds_alternative<T>(value);
}

} // namespace

bool parseAttr(std::string_view type, std::string_view text, AttrValue &value) {
  if (type == "int")
    return parseOne<int64_t>(text, value);
  if (type == "float")
    return parseOne<float>(text, value);
  if (type == "bool")
    return parseOne<bool>(text, value);
  if (type == "string")
    return parseOne<std::string>(text, value);
  if (type == "type")
    return parseOne<DType>(text, value);
  if (type == "shape")
    return parseOne<PartialShape>(text, value);
  if (type == "list(int)")
    return parseList<int64_t>(text, value);
  if (type == "list(float)")
    return parseList<float>(text, value);
  if (type == "list(bool)")
    return parseList<bool>(text, value);
  if (type == "list(string)")
    return parseList<std::string>(text, value);
  if (type == "list(type)")
    return parseList<DType>(text, value);
  if (type == "list(shape)")
    return parseList<PartialShape>(text, value);
  // functions and tensors have no other default than an empty list
  return ops::splitListText(text).empty() && fitsAttrType(type, value = std::monostate());
}

bool fitsAttrType(std::string_view type, AttrValue &value) {
  if (type == "int")
    return holds<int64_t>(value);
  if (type == "float")
    return holds<float>(value);
  if (type == "bool")
    return holds<bool>(value);
  if (type == "string")
    return holds<std::string>(value);
  if (type == "type")
    return holds<DType>(value);
  if (type == "shape")
    return holds<PartialShape>(value);
  if (type == "tensor")
    return holds<Tensor>(value);
  if (type == "func")
    return holds<FunctionRefPtr>(value);
  if (type == "list(int)")
    return holds<std::vector<int64_t>>(value, true);
  if (type == "list(float)")
    return holds<std::vector<float>>(value, true);
  if (type == "list(bool)")
    return holds<std::vector<bool>>(value, true);
  if (type == "list(string)")
    return holds<std::vector<std::string>>(value, true);
  if (type == "list(type)")
    return holds<std::vector<DType>>(value, true);
  if (type == "list(shape)")
    return holds<std::vector<PartialShape>>(value, true);
  if (type == "list(tensor)")
    return holds<std::vector<Tensor>>(value, true);
  if (type == "list(func)")
    return holds<std::vector<FunctionRefPtr>>(value, true);
  return false;
}

} // namespace lathe::rt
