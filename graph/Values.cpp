#include "graph/Values.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <cstring>

namespace lathe::graphdef {
namespace {

absl::string_view view(std::string_view s) { return absl::string_view(s.data(), s.size()); }

template <typename To, typename List>
std::vector<char> copyValues(const List &list) {
  std::vector<char> bytes(list.size() * sizeof(To));
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    To value = static_cast<To>(list.Get(i));
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

absl::Status fillStrings(const tf::TensorProto &proto, Tensor &t) {
  int64_t have = proto.string_val_size();
  if (t.numElements() == 0)
    return absl::OkStatus(); // what an empty tensor holds is ignored
  if (have > t.numElements())
    return absl::InvalidArgumentError(absl::StrCat("holds ", have, " strings, its shape needs ", t.numElements()));
  std::vector<std::string> &out = t.mutableStrings();
  for (int64_t i = 0; have && i < t.numElements(); ++i)
    out[i] = proto.string_val(static_cast<int>(std::min(i, have - 1)));
  return absl::OkStatus();
}

absl::Status fillNumbers(const tf::TensorProto &proto, Tensor &t) {
  if (t.numElements() == 0)
    return absl::OkStatus();
  std::vector<char> bytes = listedBytes(proto, t.dtype());
  const size_t size = dtypeSize(t.dtype());
  const int64_t have = static_cast<int64_t>(bytes.size() / size);
  if (have > t.numElements() || bytes.size() % size)
    return absl::InvalidArgumentError(absl::StrCat("holds ", have, " values, its shape ", dimsToString(t.dims()), " needs ", t.numElements()));
  if (have == 0)
    return absl::OkStatus(); // zeros
  char *out = t.data<char>();
  std::memcpy(out, bytes.data(), bytes.size());
  for (int64_t i = have; i < t.numElements(); ++i)
    std::memcpy(out + i * size, out + (have - 1) * size, size);
  return absl::OkStatus();
}

bool parseShapeText(std::string_view text, tf::TensorShapeProto *shape) {
  if (text == "unknown") {
    shape->set_unknown_rank(true);
    return true;
  }
  for (std::string_view dim : ops::splitListText(text)) {
    int64_t size = -1;
    if (dim != "?" && !absl::SimpleAtoi(view(dim), &size))
      return false;
    shape->add_dim()->set_size(size);
  }
  return true;
}

bool addElement(const tf::AttrValue &element, tf::AttrValue::ListValue *list) {
  switch (element.value_case()) {
  case tf::AttrValue::kS: list->add_s(element.s()); return true;
  case tf::AttrValue::kI: list->add_i(element.i()); return true;
  case tf::AttrValue::kF: list->add_f(element.f()); return true;
  case tf::AttrValue::kB: list->add_b(element.b()); return true;
  case tf::AttrValue::kType: list->add_type(element.type()); return true;
  case tf::AttrValue::kShape: *list->add_shape() = element.shape(); return true;
  default: return false;
  }
}

const char *listKind(const tf::AttrValue::ListValue &list) {
  return list.s_size()        ? "list(string)"
         : list.i_size()      ? "list(int)"
         : list.f_size()      ? "list(float)"
         : list.b_size()      ? "list(bool)"
         : list.type_size()   ? "list(type)"
         : list.shape_size()  ? "list(shape)"
         : list.tensor_size() ? "list(tensor)"
         : list.func_size()   ? "list(func)"
                              : "list()";
}

} // namespace

DType dtypeOf(int number) { return dtypeFromNumber(number).value_or(DType::Invalid); }

absl::StatusOr<PartialShape> decodeShape(const tf::TensorShapeProto &proto) {
  if (proto.unknown_rank())
    return PartialShape();
  if (proto.dim_size() > kMaxRank)
    return absl::InvalidArgumentError(absl::StrCat("a shape of rank ", proto.dim_size(), ", at most ", kMaxRank, " is possible"));
  std::vector<int64_t> dims;
  bool known = true;
  for (const auto &dim : proto.dim()) {
    if (dim.size() < -1)
      return absl::InvalidArgumentError(absl::StrCat("a dimension of size ", dim.size()));
    known &= dim.size() >= 0;
    dims.push_back(dim.size());
  }
  if (known && !checkedNumElements(dims).ok())
    return absl::InvalidArgumentError(absl::StrCat("the shape ", dimsToString(dims), " has more elements than 64 bits can count"));
  return PartialShape(std::move(dims));
}

void encodeShape(const PartialShape &shape, tf::TensorShapeProto *proto) {
  if (!shape) {
    proto->set_unknown_rank(true);
    return;
  }
  for (int64_t d : *shape)
    proto->add_dim()->set_size(d);
}

std::vector<char> listedBytes(const tf::TensorProto &p, DType type) {
  switch (type) {
  case DType::Float32: return copyValues<float>(p.float_val());
  case DType::Float64: return copyValues<double>(p.double_val());
  case DType::Int32:
  case DType::QInt32: return copyValues<int32_t>(p.int_val());
  case DType::Int16:
  case DType::QInt16: return copyValues<int16_t>(p.int_val());
  case DType::UInt16:
  case DType::QUInt16: return copyValues<uint16_t>(p.int_val());
  case DType::Int8:
  case DType::QInt8:
  case DType::Int4: return copyValues<int8_t>(p.int_val());
  case DType::UInt8:
  case DType::QUInt8:
  case DType::UInt4: return copyValues<uint8_t>(p.int_val());
  case DType::Int64: return copyValues<int64_t>(p.int64_val());
  case DType::UInt32: return copyValues<uint32_t>(p.uint32_val());
  case DType::UInt64: return copyValues<uint64_t>(p.uint64_val());
  case DType::Bool: return copyValues<uint8_t>(p.bool_val());
  case DType::Float16:
  case DType::BFloat16: return copyValues<uint16_t>(p.half_val());
  case DType::Complex64: return copyValues<float>(p.scomplex_val());
  case DType::Complex128: return copyValues<double>(p.dcomplex_val());
  default:
    if (dtypeSize(type) == 1) // floats of 8 bits
      return {p.float8_val().begin(), p.float8_val().end()};
    return {};
  }
}

absl::Status unpackStrings(std::string_view content, int64_t count, std::vector<std::string> *values) {
  const char *p = content.data(), *end = p + content.size();
  std::vector<uint64_t> lengths;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      if (p == end || shift > 63)
        return absl::InvalidArgumentError("string lengths are cut off");
      uint8_t byte = static_cast<uint8_t>(*p++);
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128))
        break;
    }
    lengths.push_back(value);
  }
  values->clear();
  for (uint64_t length : lengths) {
    if (length > static_cast<uint64_t>(end - p))
      return absl::InvalidArgumentError("strings are cut off");
    values->emplace_back(p, length);
    p += length;
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> decodeTensor(const tf::TensorProto &proto, int64_t maxBytes) {
  auto shape = decodeShape(proto.tensor_shape());
  if (!shape.ok())
    return shape.status();
  if (!*shape)
    return absl::InvalidArgumentError("a constant of unknown rank");
  DType type = dtypeOf(proto.dtype());
  if (type == DType::Invalid || type == DType::Resource || type == DType::Variant)
    return absl::InvalidArgumentError(absl::StrCat("a constant of type ", dtypeName(type), " is not supported"));
  auto t = Tensor::tryAllocate(type, **std::move(shape), maxBytes);
  if (!t.ok())
    return t.status();
  absl::Status filled;
  const std::string &content = proto.tensor_content();
  if (content.empty())
    filled = type == DType::String ? fillStrings(proto, *t) : fillNumbers(proto, *t);
  else if (type == DType::String)
    filled = unpackStrings(content, t->numElements(), &t->mutableStrings());
  else if (static_cast<int64_t>(content.size()) != t->sizeBytes())
    filled = absl::InvalidArgumentError(absl::StrCat("holds ", content.size(), " bytes, its shape ", dimsToString(t->dims()),
                                                     " needs ", t->sizeBytes()));
  else
    std::memcpy(t->data(), content.data(), content.size());
  if (!filled.ok())
    return filled;
  return t;
}

absl::Status encodeTensor(const Tensor &tensor, tf::TensorProto *proto) {
  proto->set_dtype(static_cast<tf::DataType>(tensor.dtype()));
  proto->mutable_tensor_shape();
  for (int64_t d : tensor.dims())
    proto->mutable_tensor_shape()->add_dim()->set_size(d);
  if (tensor.dtype() == DType::String)
    for (const std::string &s : tensor.strings())
      proto->add_string_val(s);
  else if (tensor.dtype() == DType::Resource || tensor.dtype() == DType::Variant || !tensor.valid())
    return absl::InvalidArgumentError("a resource or variant cannot be written to a message");
  else
    proto->set_tensor_content(tensor.data(), tensor.sizeBytes());
  return absl::OkStatus();
}

bool parseDefault(std::string_view type, std::string_view text, tf::AttrValue *value) {
  constexpr std::string_view kList = "list(";
  if (type.substr(0, kList.size()) == kList) {
    std::string_view element = type.substr(kList.size(), type.size() - kList.size() - 1);
    tf::AttrValue::ListValue *list = value->mutable_list();
    for (std::string_view part : ops::splitListText(text)) {
      tf::AttrValue v;
      if (!parseDefault(element, part, &v) || !addElement(v, list))
        return false;
    }
    return true;
  }
  if (type == "int") {
    int64_t integer;
    if (!absl::SimpleAtoi(view(text), &integer))
      return false;
    value->set_i(integer);
  } else if (type == "float") {
    double real;
    if (!absl::SimpleAtod(view(text), &real))
      return false;
    value->set_f(static_cast<float>(real));
  } else if (type == "bool") {
    value->set_b(text == "true");
  } else if (type == "string") {
    value->set_s(ops::unquote(text));
  } else if (type == "type") {
    value->set_type(static_cast<tf::DataType>(parseDType(text).value_or(DType::Invalid)));
  } else if (type == "shape") {
    return parseShapeText(text, value->mutable_shape());
  } else {
    return false;
  }
  return true;
}

bool hasAttrType(const tf::AttrValue &value, std::string_view type, std::string *found) {
  switch (value.value_case()) {
  case tf::AttrValue::kS: *found = "string"; break;
  case tf::AttrValue::kI: *found = "int"; break;
  case tf::AttrValue::kF: *found = "float"; break;
  case tf::AttrValue::kB: *found = "bool"; break;
  case tf::AttrValue::kType: *found = "type"; break;
  case tf::AttrValue::kShape: *found = "shape"; break;
  case tf::AttrValue::kTensor: *found = "tensor"; break;
  case tf::AttrValue::kFunc: *found = "func"; break;
  case tf::AttrValue::kPlaceholder: *found = "placeholder"; break;
  case tf::AttrValue::VALUE_NOT_SET: *found = "nothing"; break;
  case tf::AttrValue::kList: *found = listKind(value.list()); break;
  }
  return *found == type || (*found == "list()" && type.substr(0, 5) == "list(");
}

int64_t listSize(const tf::AttrValue::ListValue &list) {
  // only one of them has elements
  return int64_t(list.s_size()) + list.i_size() + list.f_size() + list.b_size() + list.type_size() + list.shape_size() +
         list.tensor_size() + list.func_size();
}

const tf::AttrValue *AttrLookup::find(std::string_view name) const {
  auto it = attrs.find(std::string(name));
  return it == attrs.end() ? nullptr : &it->second;
}

const tf::AttrValue *AttrLookup::find(std::string_view name, tf::AttrValue::ValueCase kind) const {
  const tf::AttrValue *value = find(name);
  return value && value->value_case() == kind ? value : nullptr;
}

std::optional<int64_t> AttrLookup::intAttr(std::string_view name) const {
  if (const tf::AttrValue *value = find(name, tf::AttrValue::kI))
    return value->i();
  return std::nullopt;
}

std::optional<DType> AttrLookup::typeAttr(std::string_view name) const {
  if (const tf::AttrValue *value = find(name, tf::AttrValue::kType))
    return dtypeOf(value->type());
  return std::nullopt;
}

std::optional<std::vector<DType>> AttrLookup::typeListAttr(std::string_view name) const {
  const tf::AttrValue *value = find(name, tf::AttrValue::kList);
  if (!value)
    return std::nullopt;
  std::vector<DType> types;
  for (int type : value->list().type())
    types.push_back(dtypeOf(type));
  return types;
}

std::optional<std::string> AttrLookup::stringAttr(std::string_view name) const {
  if (const tf::AttrValue *value = find(name, tf::AttrValue::kS))
    return value->s();
  return std::nullopt;
}

std::optional<int64_t> AttrLookup::listSize(std::string_view name) const {
  if (const tf::AttrValue *value = find(name, tf::AttrValue::kList))
    return graphdef::listSize(value->list());
  return std::nullopt;
}

} // namespace lathe::graphdef
