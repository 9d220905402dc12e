#include "runtime/session/ProtoValues.h"

#include "graph/Values.h"

#include "absl/strings/str_cat.h"

namespace lathe::rt {
namespace {

constexpr int kMaxFuncDepth = 16; // functions in attributes of functions in attributes ...

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
      types.push_back(graphdef::dtypeOf(t));
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

absl::StatusOr<PartialShape> readShapeProto(const tf::TensorShapeProto &proto) { return graphdef::decodeShape(proto); }

absl::StatusOr<Tensor> readTensorProto(const tf::TensorProto &proto, int64_t maxBytes) {
  return graphdef::decodeTensor(proto, maxBytes);
}

absl::Status writeTensorProto(const Tensor &tensor, tf::TensorProto *proto) { return graphdef::encodeTensor(tensor, proto); }

absl::Status readAttrProto(const tf::AttrValue &proto, int64_t maxBytes, AttrValue *value, int depth) {
  switch (proto.value_case()) {
  case tf::AttrValue::kList: return readList(proto.list(), maxBytes, value, depth);
  case tf::AttrValue::kS: *value = proto.s(); break;
  case tf::AttrValue::kI: *value = static_cast<int64_t>(proto.i()); break;
  case tf::AttrValue::kF: *value = proto.f(); break;
  case tf::AttrValue::kB: *value = proto.b(); break;
  case tf::AttrValue::kType: *value = graphdef::dtypeOf(proto.type()); break;
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
  absl::Status operator()(const PartialShape &v) { return graphdef::encodeShape(v, out->mutable_shape()), absl::OkStatus(); }
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
      graphdef::encodeShape(x, out->mutable_list()->add_shape());
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
