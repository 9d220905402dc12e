#include "Mutator.h"

#include "ops/Registry.h"

#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pb = google::protobuf;

namespace lathe::fuzz {

static const int64_t badInts[] = {0,  1,  -1, 2,  3,  4,  7,  8,  16, 100, -2, 127, 128, 255, 65536, INT32_MAX, INT32_MIN, int64_t(1) << 32,
                                  int64_t(1) << 40, int64_t(1) << 62, INT64_MAX, INT64_MIN};
static const char *const badStrings[] = {"",      "^",       "x:",     ":0",      "x:99999999999", "^x:0",    "SAME",   "VALID", "NHWC",
                                         "NCHW",  "EXPLICIT", "../x",   "a/b/c",   "T",             "dtype",   "value",  "_class",
                                         "shape", "\xff\xfe", "loc:@x", "float32", "N",             "REFLECT", "SYMMETRIC", "bilinear"};
static const tf::DataType commonTypes[] = {tf::DT_FLOAT, tf::DT_FLOAT, tf::DT_INT32, tf::DT_INT64, tf::DT_BOOL, tf::DT_DOUBLE, tf::DT_HALF,
                                           tf::DT_BFLOAT16, tf::DT_UINT8, tf::DT_INT8, tf::DT_COMPLEX64, tf::DT_STRING, tf::DT_RESOURCE,
                                           tf::DT_QINT8, tf::DT_INT4, tf::DT_VARIANT};

int64_t Mutator::randomInt(int64_t old) {
  switch (below(4)) {
  case 0:
    return static_cast<int64_t>(static_cast<uint64_t>(old) + below(9) - 4);
  case 1:
    return old ^ (int64_t(1) << below(63));
  default:
    return badInts[below(std::size(badInts))];
  }
}

std::string Mutator::randomString(const std::string &old) {
  if (!strings.empty() && below(3)) {
    std::string s = strings[below(strings.size())];
    if (!below(8))
      s = "^" + s;
    if (!below(8))
      s += ":" + std::to_string(badInts[below(std::size(badInts))]);
    return s;
  }
  if (!below(3))
    return std::string(ops::allOps()[below(ops::allOps().size())].name);
  if (below(2))
    return badStrings[below(std::size(badStrings))];
  std::string s = old;
  mutateBytes(s);
  return s;
}

void Mutator::mutateBytes(std::string &bytes) {
  for (uint32_t i = 0, n = 1 + below(4); i < n; ++i) {
    size_t size = bytes.size(), at = below(static_cast<uint32_t>(size + 1));
    switch (below(7)) {
    case 0:
      bytes.insert(at, 1 + below(8), static_cast<char>(random()));
      break;
    case 1:
      bytes.erase(at, 1 + below(16));
      break;
    case 2:
      if (at < size)
        bytes[at] ^= static_cast<char>(1 << below(8));
      break;
    case 3:
      if (at < size)
        bytes[at] = static_cast<char>(random());
      break;
    case 4: { // a number
      int64_t v = badInts[below(std::size(badInts))];
      size_t length = std::min<size_t>(below(2) ? 4 : 8, size - std::min(at, size));
      for (size_t k = 0; k < length; ++k)
        bytes[at + k] = static_cast<char>(v >> (8 * k));
      break;
    }
    case 5: // a part of itself
      if (size) {
        size_t from = below(static_cast<uint32_t>(size));
        bytes.insert(at, bytes.substr(from, 1 + below(64)));
      }
      break;
    default:
      bytes.resize(at);
      if (below(4))
        bytes.resize(size);
      break;
    }
  }
}

void Mutator::collect(pb::Message &message) {
  messages.clear();
  strings.clear();
  messages.push_back(&message);
  for (size_t i = 0; i < messages.size() && messages.size() < 20000; ++i) {
    pb::Message &m = *messages[i];
    const pb::Reflection *r = m.GetReflection();
    std::vector<const pb::FieldDescriptor *> fields;
    r->ListFields(m, &fields);
    for (const pb::FieldDescriptor *f : fields) {
      if (f->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
        if (!f->is_repeated())
          messages.push_back(r->MutableMessage(&m, f));
        else
          for (int k = 0; k < r->FieldSize(m, f) && k < 2000; ++k)
            messages.push_back(r->MutableRepeatedMessage(&m, f, k));
      } else if (f->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING && strings.size() < 2000) {
        std::string s = f->is_repeated() ? (r->FieldSize(m, f) ? r->GetRepeatedString(m, f, 0) : "") : r->GetString(m, f);
        if (s.size() < 100)
          strings.push_back(s);
      }
    }
  }
}

void Mutator::mutateScalar(pb::Message &m, const pb::FieldDescriptor &field, int index) {
  const pb::Reflection *r = m.GetReflection();
  const pb::FieldDescriptor *f = &field;
  bool many = f->is_repeated();
  auto number = [&](int64_t old) { return randomInt(old); };
  switch (f->cpp_type()) {
  case pb::FieldDescriptor::CPPTYPE_INT32: {
    int32_t v = static_cast<int32_t>(number(many ? r->GetRepeatedInt32(m, f, index) : r->GetInt32(m, f)));
    many ? r->SetRepeatedInt32(&m, f, index, v) : r->SetInt32(&m, f, v);
    break;
  }
  case pb::FieldDescriptor::CPPTYPE_INT64: {
    int64_t v = number(many ? r->GetRepeatedInt64(m, f, index) : r->GetInt64(m, f));
    many ? r->SetRepeatedInt64(&m, f, index, v) : r->SetInt64(&m, f, v);
    break;
  }
  case pb::FieldDescriptor::CPPTYPE_UINT32: {
    uint32_t v = static_cast<uint32_t>(number(0));
    many ? r->SetRepeatedUInt32(&m, f, index, v) : r->SetUInt32(&m, f, v);
    break;
  }
  case pb::FieldDescriptor::CPPTYPE_UINT64: {
    uint64_t v = static_cast<uint64_t>(number(0));
    many ? r->SetRepeatedUInt64(&m, f, index, v) : r->SetUInt64(&m, f, v);
    break;
  }
  case pb::FieldDescriptor::CPPTYPE_FLOAT: {
    static const float values[] = {0, -0.0f, 1, -1, 0.5f, 1e30f, INFINITY, -INFINITY, NAN, 1e-40f};
    float v = values[below(std::size(values))];
    many ? r->SetRepeatedFloat(&m, f, index, v) : r->SetFloat(&m, f, v);
    break;
  }
  case pb::FieldDescriptor::CPPTYPE_DOUBLE: {
    double v = below(2) ? 1e300 : NAN;
    many ? r->SetRepeatedDouble(&m, f, index, v) : r->SetDouble(&m, f, v);
    break;
  }
  case pb::FieldDescriptor::CPPTYPE_BOOL: {
    bool v = below(2);
    many ? r->SetRepeatedBool(&m, f, index, v) : r->SetBool(&m, f, v);
    break;
  }
  case pb::FieldDescriptor::CPPTYPE_ENUM: {
    const pb::EnumDescriptor *e = f->enum_type();
    int v = below(3) ? (e->full_name() == "lathe.tf.DataType" ? int(commonTypes[below(std::size(commonTypes))])
                                                              : e->value(below(e->value_count()))->number())
                     : static_cast<int>(randomInt(0));
    many ? r->SetRepeatedEnumValue(&m, f, index, v) : r->SetEnumValue(&m, f, v);
    break;
  }
  case pb::FieldDescriptor::CPPTYPE_STRING: {
    std::string v = randomString(many ? r->GetRepeatedString(m, f, index) : r->GetString(m, f));
    // text fields must hold UTF-8 to be parsed again
    if (f->type() == pb::FieldDescriptor::TYPE_STRING)
      for (char &c : v)
        c &= 0x7f;
    many ? r->SetRepeatedString(&m, f, index, v) : r->SetString(&m, f, v);
    break;
  }
  default:
    break;
  }
}

void Mutator::mutateField(pb::Message &m, const pb::FieldDescriptor &field) {
  const pb::Reflection *r = m.GetReflection();
  const pb::FieldDescriptor *f = &field;
  bool isMessage = f->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
  // another message of the field's type; taken before anything changes, which may free it (oneof)
  std::string copy;
  for (int i = 0; isMessage && copy.empty() && i < 16; ++i) {
    pb::Message *other = messages[below(messages.size())];
    if (other->GetDescriptor() == f->message_type() && other->ByteSizeLong() < 4096)
      copy = other->SerializePartialAsString();
  }
  auto similar = [&](pb::Message &to) {
    if (!copy.empty())
      to.ParsePartialFromString(copy);
  };
  if (!f->is_repeated()) {
    if (r->HasField(m, f) && !below(6))
      return r->ClearField(&m, f);
    if (isMessage)
      return similar(*r->MutableMessage(&m, f));
    return mutateScalar(m, field, 0);
  }
  int n = r->FieldSize(m, f);
  switch (below(n ? 5 : 1)) {
  case 0:
    if (n > 3000)
      return;
    if (isMessage) {
      similar(*r->AddMessage(&m, f));
      return;
    }
    switch (f->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT32: r->AddInt32(&m, f, 0); break;
    case pb::FieldDescriptor::CPPTYPE_INT64: r->AddInt64(&m, f, 0); break;
    case pb::FieldDescriptor::CPPTYPE_UINT32: r->AddUInt32(&m, f, 0); break;
    case pb::FieldDescriptor::CPPTYPE_UINT64: r->AddUInt64(&m, f, 0); break;
    case pb::FieldDescriptor::CPPTYPE_FLOAT: r->AddFloat(&m, f, 0); break;
    case pb::FieldDescriptor::CPPTYPE_DOUBLE: r->AddDouble(&m, f, 0); break;
    case pb::FieldDescriptor::CPPTYPE_BOOL: r->AddBool(&m, f, false); break;
    case pb::FieldDescriptor::CPPTYPE_ENUM: r->AddEnumValue(&m, f, 1); break;
    default: r->AddString(&m, f, ""); break;
    }
    return mutateScalar(m, field, n);
  case 1:
    r->SwapElements(&m, f, below(n), n - 1);
    return r->RemoveLast(&m, f);
  case 2:
    return r->SwapElements(&m, f, below(n), below(n));
  default:
    if (isMessage)
      return similar(*r->MutableRepeatedMessage(&m, f, below(n)));
    return mutateScalar(m, field, below(n));
  }
}

void Mutator::mutate(pb::Message &message) {
  for (uint32_t i = 0, n = 1 + below(3); i < n; ++i) {
    collect(message); // a change invalidates pointers
    pb::Message &m = *messages[below(messages.size())];
    const pb::Descriptor *d = m.GetDescriptor();
    if (d->field_count())
      mutateField(m, *d->field(below(d->field_count())));
  }
}

void Mutator::sweep(tf::GraphDef &graph, const std::function<void()> &run) {
  auto tryInts = [&](auto &&get, auto &&set) {
    auto old = get();
    for (int64_t bad : badInts)
      if (static_cast<decltype(old)>(bad) != old) {
        set(static_cast<decltype(old)>(bad));
        run();
      }
    set(old);
  };
  auto tryList = [&](auto &list) {
    for (int i = 0; i < std::min(list.size(), 8); ++i)
      tryInts([&] { return list[i]; }, [&](auto v) { list[i] = v; });
  };
  auto tryType = [&](auto &&get, auto &&set) {
    tf::DataType old = get();
    for (tf::DataType type : commonTypes)
      if (type != old) {
        set(type);
        run();
      }
    set(old);
  };
  auto tryText = [&](std::string &s) {
    std::string old = s;
    for (const char *bad : badStrings) {
      s = bad;
      run();
    }
    s = old;
  };
  auto tryShape = [&](tf::TensorShapeProto &shape) {
    for (auto &dim : *shape.mutable_dim())
      tryInts([&] { return dim.size(); }, [&](int64_t v) { dim.set_size(v); });
    shape.add_dim()->set_size(1);
    run();
    shape.mutable_dim()->RemoveLast();
    if (shape.dim_size()) {
      auto *last = shape.mutable_dim()->ReleaseLast();
      run();
      shape.mutable_dim()->AddAllocated(last);
    }
  };
  auto tryTensor = [&](tf::TensorProto &t) {
    tryShape(*t.mutable_tensor_shape());
    tryList(*t.mutable_int_val());
    tryList(*t.mutable_int64_val());
    size_t width = t.dtype() == tf::DT_INT32 ? 4 : t.dtype() == tf::DT_INT64 ? 8 : 0;
    std::string &content = *t.mutable_tensor_content();
    for (size_t at = 0; width && at + width <= std::min<size_t>(content.size(), 8 * width); at += width) {
      std::string old = content;
      for (int64_t bad : badInts) {
        memcpy(&content[at], &bad, width);
        run();
      }
      content = old;
    }
  };
  for (tf::NodeDef &node : *graph.mutable_node())
    for (auto &attr : *node.mutable_attr()) {
      tf::AttrValue &value = attr.second;
      switch (value.value_case()) {
      case tf::AttrValue::kI: tryInts([&] { return value.i(); }, [&](int64_t v) { value.set_i(v); }); break;
      case tf::AttrValue::kB:
        value.set_b(!value.b());
        run();
        value.set_b(!value.b());
        break;
      case tf::AttrValue::kS: tryText(*value.mutable_s()); break;
      case tf::AttrValue::kType: tryType([&] { return value.type(); }, [&](tf::DataType t) { value.set_type(t); }); break;
      case tf::AttrValue::kShape: tryShape(*value.mutable_shape()); break;
      case tf::AttrValue::kTensor: tryTensor(*value.mutable_tensor()); break;
      case tf::AttrValue::kList: {
        auto &list = *value.mutable_list();
        tryList(*list.mutable_i());
        if (list.i_size()) {
          list.add_i(1);
          run();
          list.mutable_i()->RemoveLast();
          int64_t last = list.i(list.i_size() - 1);
          list.mutable_i()->RemoveLast();
          run();
          list.add_i(last);
        }
        for (int i = 0; i < std::min(list.type_size(), 4); ++i)
          tryType([&] { return list.type(i); }, [&](tf::DataType t) { list.set_type(i, t); });
        for (auto &shape : *list.mutable_shape())
          tryShape(shape);
        for (std::string &s : *list.mutable_s())
          tryText(s);
        break;
      }
      default: break;
      }
    }
}

void Mutator::fillTensor(tf::TensorProto &t, tf::DataType type) {
  static const int64_t dims[] = {0, 1, 1, 2, 2, 3, 4, 5, 8};
  t.set_dtype(type);
  int64_t n = 1;
  for (uint32_t i = below(4); i > 0; --i) {
    int64_t d = dims[below(std::size(dims))];
    n *= d;
    t.mutable_tensor_shape()->add_dim()->set_size(d);
  }
  t.mutable_tensor_shape();
  int64_t count = below(2) ? 1 : std::min<int64_t>(n, 64);
  for (int64_t i = 0; i < count; ++i) {
    int small = static_cast<int>(below(5)) - 1;
    switch (type) {
    case tf::DT_FLOAT: t.add_float_val(static_cast<float>(small)); break;
    case tf::DT_DOUBLE: t.add_double_val(small); break;
    case tf::DT_INT64: t.add_int64_val(small); break;
    case tf::DT_BOOL: t.add_bool_val(small > 0); break;
    case tf::DT_STRING: t.add_string_val("abc"); break;
    case tf::DT_HALF:
    case tf::DT_BFLOAT16: t.add_half_val(0x3c00 + small); break;
    case tf::DT_COMPLEX64: t.add_scomplex_val(1); t.add_scomplex_val(0); break;
    default: t.add_int_val(small); break;
    }
  }
}

void Mutator::fillAttr(tf::AttrValue &value, const ops::Attr &attr, const std::vector<tf::DataType> &types) {
  std::string_view type = attr.type;
  // mostly what the op's definition allows
  auto pickType = [&]() -> tf::DataType {
    tf::DataType wanted = types[below(types.size())];
    if (attr.types.empty() || !below(20) || std::count(attr.types.begin(), attr.types.end(), static_cast<DType>(wanted)))
      return wanted;
    return static_cast<tf::DataType>(attr.types[below(attr.types.size())]);
  };
  auto pickText = [&] { return attr.strings.empty() || !below(20) ? randomString("") : attr.strings[below(attr.strings.size())]; };
  if (type.substr(0, 5) == "list(") {
    std::string_view of = type.substr(5, type.size() - 6);
    auto *list = value.mutable_list();
    uint32_t least = below(20) ? static_cast<uint32_t>(std::min<int64_t>(attr.minimum.value_or(0), 8)) : 0;
    for (uint32_t i = least + below(least ? 2 : 5); i > 0; --i) {
      if (of == "int") list->add_i(below(4) ? 1 + below(3) : randomInt(0));
      else if (of == "float") list->add_f(1);
      else if (of == "bool") list->add_b(below(2));
      else if (of == "string") list->add_s(pickText());
      else if (of == "type") list->add_type(pickType());
      else if (of == "shape") list->add_shape()->add_dim()->set_size(below(5));
    }
    return;
  }
  if (type == "int") value.set_i(below(4) ? attr.minimum.value_or(0) + below(4) : randomInt(0));
  else if (type == "float") value.set_f(0.5f);
  else if (type == "bool") value.set_b(below(2));
  else if (type == "string") value.set_s(pickText());
  else if (type == "type") value.set_type(pickType());
  else if (type == "shape") {
    for (uint32_t i = below(4); i > 0; --i)
      value.mutable_shape()->add_dim()->set_size(static_cast<int64_t>(below(6)) - 1);
    value.mutable_shape();
  } else if (type == "tensor") fillTensor(*value.mutable_tensor(), types[below(types.size())]);
}

void Mutator::addNode(tf::GraphDef &graph) {
  const ops::OpInfo &op = ops::allOps()[below(ops::allOps().size())];
  // mostly one type for everything, so that more nodes fit
  tf::DataType main = commonTypes[below(std::size(commonTypes))];
  std::vector<tf::DataType> types = {main, main, main, main, commonTypes[below(std::size(commonTypes))], tf::DT_INT32};
  std::string name = "f" + std::to_string(graph.node_size()) + "_" + std::to_string(below(1000));
  tf::NodeDef node;
  node.set_name(name);
  node.set_op(std::string(op.name));
  auto &attrs = *node.mutable_attr();
  for (const ops::Attr &a : op.attrs)
    if (!a.hasDefault || !below(4))
      fillAttr(attrs[std::string(a.name)], a, types);
  std::vector<tf::NodeDef> constants;
  auto addInput = [&](tf::DataType type) {
    if (graph.node_size() && below(3)) {
      node.add_input(graph.node(below(graph.node_size())).name() + (below(8) ? "" : ":1"));
      return;
    }
    tf::NodeDef c;
    c.set_name(name + "_c" + std::to_string(constants.size()));
    c.set_op(below(4) ? "Const" : "Placeholder");
    (*c.mutable_attr())["dtype"].set_type(type);
    if (c.op() == "Const") {
      fillTensor(*(*c.mutable_attr())["value"].mutable_tensor(), type);
    } else {
      tf::TensorProto t;
      fillTensor(t, type);
      *(*c.mutable_attr())["shape"].mutable_shape() = t.tensor_shape();
    }
    node.add_input(c.name());
    constants.push_back(std::move(c));
  };
  for (const ops::Arg &arg : op.inputs) {
    if (!arg.typeListAttr.empty()) {
      auto *list = attrs[std::string(arg.typeListAttr)].mutable_list();
      for (int i = 0; i < list->type_size(); ++i)
        addInput(list->type(i));
      continue;
    }
    int64_t n = 1;
    if (!arg.numberAttr.empty()) {
      n = 1 + below(3);
      attrs[std::string(arg.numberAttr)].set_i(below(10) ? n : randomInt(n));
    }
    tf::DataType type = static_cast<tf::DataType>(arg.type);
    if (!arg.typeAttr.empty()) {
      auto it = attrs.find(std::string(arg.typeAttr));
      if (it != attrs.end())
        type = it->second.type();
      else if (const ops::Attr *a = op.findAttr(arg.typeAttr); a && a->hasDefault)
        type = static_cast<tf::DataType>(parseDType(a->defaultText).value_or(DType::Float32));
      else
        type = main;
    }
    for (int64_t i = 0; i < n; ++i)
      addInput(type);
  }
  for (tf::NodeDef &c : constants)
    *graph.add_node() = std::move(c);
  *graph.add_node() = std::move(node);
}

} // namespace lathe::fuzz
