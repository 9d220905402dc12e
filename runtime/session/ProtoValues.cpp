#include "runtime/session/ProtoValues.h"

#include "absl/strings/str_cat.h"

#include <cstring>

namespace lathe::rt {
namespace {

constexpr int kMaxRank = 254;  // TensorFlow's own limit
constexpr int kMaxFuncDepth = 16; // functions in attributes of functions in attributes ...

DType typeOf(int number) { return dtypeFromNumber(number).value_or(DType::Invalid); }

template <typename To, typename List>
absl::Status fill(const List &list, int valuesPerElement, Tensor &t) {
  int64_t have = list.size(), need = t.numElements() * valuesPerElement;
  if (need == 0)
    return absl::OkStatus(); // TensorFlow ignores what an empty tensor holds
  if (have > need || have % valuesPerElement)
    return absl::InvalidArgumentError(absl::StrCat("holds ", have, " values, its shape ", dimsToString(t.dims()), " needs ", need));
  To *out = t.data<To>();
  for (int64_t i = 0; i < have; ++i)
    out[i] = static_cast<To>(list.Get(static_cast<int>(i)));
  if (have == 0)
    return absl::OkStatus(); // zeros
  for (int64_t i = have; i < need; ++i)
    out[i] = out[i - valuesPerElement];
  return absl::OkStatus();
}

absl::Status fillFrom(const tf::TensorProto &p, Tensor &t) {
  switch (t.dtype()) {
  case DType::Float32: return fill<float>(p.float_val(), 1, t);
  case DType::Float64: return fill<double>(p.double_val(), 1, t);
  case DType::Int32:
  case DType::QInt32: return fill<int32_t>(p.int_val(), 1, t);
  case DType::Int16:
  case DType::QInt16: return fill<int16_t>(p.int_val(), 1, t);
  case DType::UInt16:
  case DType::QUInt16: return fill<uint16_t>(p.int_val(), 1, t);
  case DType::Int8:
  case DType::QInt8:
  case DType::Int4: return fill<int8_t>(p.int_val(), 1, t);
  case DType::UInt8:
  case DType::QUInt8:
  case DType::UInt4: return fill<uint8_t>(p.int_val(), 1, t);
  case DType::Int64: return fill<int64_t>(p.int64_val(), 1, t);
  case DType::UInt32: return fill<uint32_t>(p.uint32_val(), 1, t);
  case DType::UInt64: return fill<uint64_t>(p.uint64_val(), 1, t);
  case DType::Bool: return fill<uint8_t>(p.bool_val(), 1, t);
  case DType::Float16:
  case DType::BFloat16: return fill<uint16_t>(p.half_val(), 1, t);
  case DType::Complex64: return fill<float>(p.scomplex_val(), 2, t);
  case DType::Complex128: return fill<double>(p.dcomplex_val(), 2, t);
  case DType::Float8E5M2:
  case DType::Float8E4M3FN: {
    int64_t have = static_cast<int64_t>(p.float8_val().size()), need = t.numElements();
    if (have > need)
      return absl::InvalidArgumentError(absl::StrCat("holds ", have, " values, its shape needs ", need));
    auto *out = t.data<char>();
    if (have)
      std::memcpy(out, p.float8_val().data(), have);
    for (int64_t i = have; have && i < need; ++i)
      out[i] = out[have - 1];
    return absl::OkStatus();
  }
  case DType::String: {
    std::vector<std::string> &out = t.mutableStrings();
    int have = p.string_val_size();
    if (t.numElements() == 0)
      return absl::OkStatus();
    if (have > t.numElements())
      return absl::InvalidArgumentError(absl::StrCat("holds ", have, " strings, its shape needs ", t.numElements()));
    for (int i = 0; i < have; ++i)
      out[i] = p.string_val(i);
    for (int64_t i = have; have && i < t.numElements(); ++i)
      out[i] = p.string_val(have - 1);
    return absl::OkStatus();
  }
  default:
    return absl::InvalidArgumentError(absl::StrCat("a constant of type ", dtypeName(t.dtype()), " is not supported"));
  }
}

/// TensorFlow packs strings as varint lengths, then the bytes.
absl::Status unpackStrings(const std::string &content, Tensor &t) {
  const char *p = content.data(), *end = p + content.size();
  std::vector<uint64_t> lengths;
  for (int64_t i = 0; i < t.numElements(); ++i) {
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
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > static_cast<uint64_t>(end - p))
      return absl::InvalidArgumentError("strings are cut off");
    t.mutableStrings()[i].assign(p, lengths[i]);
    p += lengths[i];
  }
  return absl::OkStatus();
}

template <typename T, typename List>
std::vector<T> listOf(const List &list) {
  return std::vector<T>(list.begin(), list.end());
}

absl::StatusOr<FunctionRefPtr> readFunction(const tf::NameAttrList &proto, int64_t maxBytes, int depth) {
  if (depth >= kMaxFuncDepth)
    return absl::InvalidArgumentError("functions in attributes are nested too deeply");
  auto ref = std::make_shared<FunctionRef>();
  ref->name = proto.name();
  for (auto &[name, attr] : proto.attr())
    if (absl::Status s = readAttrProto(attr, maxBytes, &ref->attrs[name], depth + 1); !s.ok())
      return s;
  return FunctionRefPtr(std::move(ref));
}

absl::Status readList(const tf::AttrValue::ListValue &list, int64_t maxBytes, AttrValue *value, int depth) {
  if (list.i_size())
    *value = listOf<int64_t>(list.i());
  else if (list.f_size())
    *value = listOf<float>(list.f());
  else if (list.b_size())
    *value = listOf<bool>(list.b());
  else if (list.s_size())
    *value = listOf<std::string>(list.s());
  else if (list.type_size()) {
    std::vector<DType> types;
    for (int t : list.type())
      types.push_back(typeOf(t));
    *value = std::move(types);
  } else if (list.shape_size()) {
    std::vector<PartialShape> shapes;
    for (const auto &s : list.shape()) {
      auto shape = readShapeProto(s);
      if (!shape.ok())
        return shape.status();
      shapes.push_back(*std::move(shape));
    }
    *value = std::move(shapes);
  } else if (list.tensor_size()) {
    std::vector<Tensor> tensors;
    for (const auto &p : list.tensor()) {
      auto t = readTensorProto(p, maxBytes);
      if (!t.ok())
        return t.status();
      tensors.push_back(*std::move(t));
    }
    *value = std::move(tensors);
  } else if (list.func_size()) {
    std::vector<FunctionRefPtr> functions;
    for (const auto &f : list.func()) {
      auto ref = readFunction(f, maxBytes, depth);
      if (!ref.ok())
        return ref.status();
      functions.push_back(*std::move(ref));
    }
    *value = std::move(functions);
  } else {
    *value = std::monostate(); // whichever list is asked for
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<PartialShape> readShapeProto(const tf::TensorShapeProto &proto) {
  if (proto.unknown_rank())
    return PartialShape();
  if (proto.dim_size() > kMaxRank)
    return absl::InvalidArgumentError(absl::StrCat("a shape of rank ", proto.dim_size(), ", at most 254 is possible"));
  std::vector<int64_t> dims;
  bool known = true;
  for (const auto &dim : proto.dim()) {
    if (dim.size() < -1)
      return absl::InvalidArgumentError(absl::StrCat("a dimension of size ", dim.size()));
    known &= dim.size() >= 0;
    dims.push_back(dim.size());
  }
  if (known)
    if (auto n = checkedNumElements(dims); !n.ok())
      return n.status();
  return PartialShape(std::move(dims));
}

absl::StatusOr<Tensor> readTensorProto(const tf::TensorProto &proto, int64_t maxBytes) {
  auto shape = readShapeProto(proto.tensor_shape());
  if (!shape.ok())
    return shape.status();
  if (!*shape)
    return absl::InvalidArgumentError("a constant of unknown rank");
  DType type = typeOf(proto.dtype());
  if (type == DType::Invalid || type == DType::Resource || type == DType::Variant)
    return absl::InvalidArgumentError(absl::StrCat("a constant of type ", dtypeName(type), " is not supported"));
  auto t = Tensor::tryAllocate(type, **std::move(shape), maxBytes);
  if (!t.ok())
    return t.status();
  absl::Status filled;
  if (proto.tensor_content().empty())
    filled = fillFrom(proto, *t);
  else if (type == DType::String)
    filled = unpackStrings(proto.tensor_content(), *t);
  else if (static_cast<int64_t>(proto.tensor_content().size()) != t->sizeBytes())
    filled = absl::InvalidArgumentError(absl::StrCat("holds ", proto.tensor_content().size(), " bytes, its shape ",
                                                     dimsToString(t->dims()), " needs ", t->sizeBytes()));
  else
    std::memcpy(t->data(), proto.tensor_content().data(), proto.tensor_content().size());
  if (!filled.ok())
    return filled;
  return t;
}

absl::Status writeTensorProto(const Tensor &tensor, tf::TensorProto *proto) {
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

absl::Status readAttrProto(const tf::AttrValue &proto, int64_t maxBytes, AttrValue *value, int depth) {
  switch (proto.value_case()) {
  case tf::AttrValue::kList: return readList(proto.list(), maxBytes, value, depth);
  case tf::AttrValue::kS: *value = proto.s(); break;
  case tf::AttrValue::kI: *value = static_cast<int64_t>(proto.i()); break;
  case tf::AttrValue::kF: *value = proto.f(); break;
  case tf::AttrValue::kB: *value = proto.b(); break;
  case tf::AttrValue::kType: *value = typeOf(proto.type()); break;
  case tf::AttrValue::kShape: {
    auto shape = readShapeProto(proto.shape());
    if (!shape.ok())
      return shape.status();
    *value = *std::move(shape);
    break;
  }
  case tf::AttrValue::kTensor: {
    auto t = readTensorProto(proto.tensor(), maxBytes);
    if (!t.ok())
      return t.status();
    *value = *std::move(t);
    break;
  }
  case tf::AttrValue::kFunc: {
    auto ref = readFunction(proto.func(), maxBytes, depth);
    if (!ref.ok())
      return ref.status();
    *value = *std::move(ref);
    break;
  }
  case tf::AttrValue::kPlaceholder:
    return absl::InvalidArgumentError(absl::StrCat("the attribute stands for '", proto.placeholder(), "' of a function"));
  case tf::AttrValue::VALUE_NOT_SET: *value = std::monostate(); break;
  }
  return absl::OkStatus();
}

absl::Status readNodeAttrs(const tf::NodeDef &node, int64_t maxBytes, AttrMap *attrs) {
  for (auto &[name, attr] : node.attr()) {
    if (!name.empty() && name[0] == '_') {
      auto kind = attr.value_case();
      if (kind != tf::AttrValue::kS && kind != tf::AttrValue::kI && kind != tf::AttrValue::kF && kind != tf::AttrValue::kB)
        continue;
    }
    AttrValue value;
    if (absl::Status s = readAttrProto(attr, maxBytes, &value); !s.ok())
      return absl::Status(s.code(), absl::StrCat("attribute '", name, "': ", s.message()));
    attrs->emplace(name, std::move(value));
  }
  return absl::OkStatus();
}

namespace {

void writeShape(const PartialShape &shape, tf::TensorShapeProto *proto) {
  if (!shape) {
    proto->set_unknown_rank(true);
    return;
  }
  for (int64_t d : *shape)
    proto->add_dim()->set_size(d);
}

absl::Status writeFunction(const FunctionRef &ref, tf::NameAttrList *proto) {
  proto->set_name(ref.name);
  for (auto &[name, value] : ref.attrs)
    if (absl::Status s = writeAttrProto(value, &(*proto->mutable_attr())[name]); !s.ok())
      return s;
  return absl::OkStatus();
}

struct AttrWriter {
  tf::AttrValue *out;
  absl::Status operator()(std::monostate) {
    out->mutable_list();
    return absl::OkStatus();
  }
  absl::Status operator()(int64_t v) { return out->set_i(v), absl::OkStatus(); }
  absl::Status operator()(float v) { return out->set_f(v), absl::OkStatus(); }
  absl::Status operator()(bool v) { return out->set_b(v), absl::OkStatus(); }
  absl::Status operator()(const std::string &v) { return out->set_s(v), absl::OkStatus(); }
  absl::Status operator()(DType v) { return out->set_type(static_cast<tf::DataType>(v)), absl::OkStatus(); }
  absl::Status operator()(const PartialShape &v) { return writeShape(v, out->mutable_shape()), absl::OkStatus(); }
  absl::Status operator()(const Tensor &v) { return writeTensorProto(v, out->mutable_tensor()); }
  absl::Status operator()(const FunctionRefPtr &v) { return writeFunction(*v, out->mutable_func()); }
  absl::Status operator()(const std::vector<int64_t> &v) {
    for (int64_t x : v)
      out->mutable_list()->add_i(x);
    return absl::OkStatus();
  }
  absl::Status operator()(const std::vector<float> &v) {
    for (float x : v)
      out->mutable_list()->add_f(x);
    return absl::OkStatus();
  }
  absl::Status operator()(const std::vector<bool> &v) {
    for (bool x : v)
      out->mutable_list()->add_b(x);
    return absl::OkStatus();
  }
  absl::Status operator()(const std::vector<std::string> &v) {
    for (const std::string &x : v)
      out->mutable_list()->add_s(x);
    return absl::OkStatus();
  }
  absl::Status operator()(const std::vector<DType> &v) {
    out->mutable_list();
    for (DType x : v)
      out->mutable_list()->add_type(static_cast<tf::DataType>(x));
    return absl::OkStatus();
  }
  absl::Status operator()(const std::vector<PartialShape> &v) {
    for (const PartialShape &x : v)
      writeShape(x, out->mutable_list()->add_shape());
    return absl::OkStatus();
  }
  absl::Status operator()(const std::vector<Tensor> &v) {
    for (const Tensor &x : v)
      if (absl::Status s = writeTensorProto(x, out->mutable_list()->add_tensor()); !s.ok())
        return s;
    return absl::OkStatus();
  }
  absl::Status operator()(const std::vector<FunctionRefPtr> &v) {
    for (const FunctionRefPtr &x : v)
      if (absl::Status s = writeFunction(*x, out->mutable_list()->add_func()); !s.ok())
        return s;
    return absl::OkStatus();
  }
};

} // namespace

absl::Status writeAttrProto(const AttrValue &value, tf::AttrValue *proto) { return std::visit(AttrWriter{proto}, value); }

} // namespace lathe::rt
