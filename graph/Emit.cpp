#include "graph/Emit.h"

#include "base/Float.h"

#include "absl/strings/str_cat.h"

namespace lathe::graphdef {

std::vector<Val> Val::all() const {
  std::vector<Val> out;
  for (int i = 0; end && i < end.node->numOutputs(); ++i)
    out.push_back(at(i));
  return out;
}

Node *Emitter::node(const char *op, const std::vector<ArgVals> &args, const NamedAttrs &attrs, std::string_view name) {
  if (!status.ok())
    return nullptr;
  const ops::OpInfo *info = graph.findOp(op);
  NodeSpec spec;
  std::string base = scope.empty() ? std::string() : scope + "/";
  base += name.empty() ? std::string(op) : std::string(name);
  auto failed = [&](const absl::Status &s) {
    fail(atNode(base, op, s));
    return nullptr;
  };
  if (!info)
    return failed(absl::NotFoundError("op is not known"));
  std::vector<std::vector<Endpoint>> ends;
  for (const ArgVals &arg : args) {
    ends.emplace_back();
    for (const Val &v : arg.values) {
      if (!v)
        return failed(absl::InvalidArgumentError(absl::StrCat("argument ", ends.size() - 1, " has no value")));
      ends.back().push_back(v.end);
      spec.inputs.push_back(v.end);
    }
  }
  spec.def.set_op(op);
  spec.def.set_device(device);
  for (const NamedAttr &attr : attrs)
    (*spec.def.mutable_attr())[attr.name] = attr.value;
  if (absl::Status s = inferAttrs(*info, ends, &spec.def); !s.ok())
    return failed(s);
  spec.def.set_name(graph.uniqueName(base));
  spec.controls = controls;
  auto made = graph.add(std::move(spec));
  if (!made.ok())
    return failed(made.status());
  return *made;
}

Val Emitter::op(const char *op, const std::vector<ArgVals> &args, const NamedAttrs &attrs) {
  Node *made = node(op, args, attrs);
  return made ? Val(*this, {made, 0}) : Val();
}

Val Emitter::constant(const Tensor &value) {
  tf::AttrValue attr;
  fail(encodeTensor(value, attr.mutable_tensor()));
  return op("Const", {}, {{"dtype", value.dtype()}, {"value", attr}});
}

Tensor scalarTensor(DType type, double value) {
  switch (type) {
  case DType::Float32: return Tensor::scalar<float>(type, static_cast<float>(value));
  case DType::Float64: return Tensor::scalar<double>(type, value);
  case DType::Float16: return Tensor::scalar<uint16_t>(type, static_cast<uint16_t>(detail::encodeSmall<5, 10, false>(static_cast<float>(value))));
  case DType::BFloat16: return Tensor::scalar<uint16_t>(type, static_cast<uint16_t>(detail::encodeSmall<8, 7, false>(static_cast<float>(value))));
  case DType::Int64:
  case DType::UInt64: return Tensor::scalar<int64_t>(type, static_cast<int64_t>(value));
  case DType::Int32:
  case DType::QInt32:
  case DType::UInt32: return Tensor::scalar<int32_t>(type, static_cast<int32_t>(value));
  case DType::Int16:
  case DType::UInt16: return Tensor::scalar<int16_t>(type, static_cast<int16_t>(value));
  case DType::Int8:
  case DType::UInt8:
  case DType::Bool: return Tensor::scalar<int8_t>(type, static_cast<int8_t>(value));
  case DType::Complex64: {
    Tensor t = Tensor::allocate(type, {});
    t.data<float>()[0] = static_cast<float>(value);
    return t;
  }
  case DType::Complex128: {
    Tensor t = Tensor::allocate(type, {});
    t.data<double>()[0] = value;
    return t;
  }
  default: return Tensor();
  }
}

Val Emitter::scalar(DType type, double value) {
  Tensor t = scalarTensor(type, value);
  if (!t.valid()) {
    fail(absl::InvalidArgumentError(absl::StrCat("there is no number of type ", dtypeName(type))));
    return Val();
  }
  return constant(t);
}

Val Emitter::int32s(const std::vector<int32_t> &values) { return constant(Tensor::vector(DType::Int32, values)); }
Val Emitter::int32(int32_t value) { return constant(Tensor::scalar(DType::Int32, value)); }

Val call(const char *op, const std::vector<ArgVals> &args, const NamedAttrs &attrs) {
  for (const ArgVals &arg : args)
    for (const Val &v : arg.values)
      if (v.emitter)
        return v.emitter->op(op, args, attrs);
  return Val();
}

Val like(Val x, double value) { return x ? x.emitter->scalar(x.type(), value) : Val(); }

} // namespace lathe::graphdef
