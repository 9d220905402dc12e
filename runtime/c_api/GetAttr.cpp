// Values of an operation's attributes.
#include "runtime/c_api/Internal.h"

#include "base/Memory.h"
#include "graph/Values.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace lathe;
using namespace lathe::c_api;

namespace {

using Case = tf::AttrValue::ValueCase;

/// The attribute; null with INVALID_ARGUMENT when there is none or `places` lacks one.
template <typename... T>
const tf::AttrValue *find(TF_Operation *oper, const char *name, TF_Status *status, const T *...places) {
  if (!present(status, "oper, attr_name, value", oper, name, places...))
    return nullptr;
  const tf::AttrValue *value = nodeOf(oper)->attr(name);
  if (!value)
    setInvalid(status, absl::StrCat("operation '", nodeOf(oper)->name(), "' has no attribute '", name, "'"));
  return value;
}

template <typename... T>
const tf::AttrValue *findOf(Case kind, const char *what, TF_Operation *oper, const char *name, TF_Status *status, const T *...places) {
  const tf::AttrValue *value = find(oper, name, status, places...);
  if (!value || value->value_case() == kind)
    return value;
  setInvalid(status, absl::StrCat("attribute '", name, "' of operation '", nodeOf(oper)->name(), "' is not ", what));
  return nullptr;
}

/// A list of at most `most` elements of `field` written by `write`. An empty list is one of any type.
template <typename Field, typename Write, typename... T>
void getList(Field field, const char *what, TF_Operation *oper, const char *name, int most, TF_Status *status, Write write, const T *...places) {
  const tf::AttrValue *value = findOf(tf::AttrValue::kList, "a list", oper, name, status, places...);
  if (!value)
    return;
  const auto &elements = (value->list().*field)();
  if (elements.empty() && graphdef::listSize(value->list()) > 0)
    return setInvalid(status, absl::StrCat("attribute '", name, "' of operation '", nodeOf(oper)->name(), "' is not a list of ", what));
  for (int i = 0; i < std::min<int>(most, static_cast<int>(elements.size())) && isOk(status); ++i)
    write(i, elements.Get(i));
}

using List = tf::AttrValue::ListValue;

/// The kind of a list's elements: by what it holds, and for an empty one by the op.
bool listType(const Node *node, const char *name, const List &list, TF_AttrType *type) {
  struct Kind {
    int size;
    const char *text;
    TF_AttrType type;
  } kinds[] = {{list.s_size(), "list(string)", TF_ATTR_STRING}, {list.i_size(), "list(int)", TF_ATTR_INT},
               {list.f_size(), "list(float)", TF_ATTR_FLOAT},   {list.b_size(), "list(bool)", TF_ATTR_BOOL},
               {list.type_size(), "list(type)", TF_ATTR_TYPE},  {list.shape_size(), "list(shape)", TF_ATTR_SHAPE},
               {list.tensor_size(), "list(tensor)", TF_ATTR_TENSOR}, {list.func_size(), "list(func)", TF_ATTR_FUNC}};
  const ops::Attr *attr = node->info().findAttr(name);
  for (const Kind &kind : kinds)
    if (kind.size > 0) {
      *type = kind.type;
      return true;
    }
  for (const Kind &kind : kinds)
    if (attr && attr->type == kind.text) {
      *type = kind.type;
      return true;
    }
  return false;
}

int64_t rankOf(const tf::TensorShapeProto &shape) { return shape.unknown_rank() ? -1 : shape.dim_size(); }

} // namespace

extern "C" {

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation *oper, const char *attr_name, TF_Status *status) {
  TF_AttrMetadata m = {0, -1, TF_ATTR_STRING, -1};
  const tf::AttrValue *value = find(oper, attr_name, status);
  if (!value)
    return m;
  switch (value->value_case()) {
  case tf::AttrValue::kS: m.type = TF_ATTR_STRING; m.total_size = static_cast<int64_t>(value->s().size()); break;
  case tf::AttrValue::kI: m.type = TF_ATTR_INT; break;
  case tf::AttrValue::kF: m.type = TF_ATTR_FLOAT; break;
  case tf::AttrValue::kB: m.type = TF_ATTR_BOOL; break;
  case tf::AttrValue::kType: m.type = TF_ATTR_TYPE; break;
  case tf::AttrValue::kShape: m.type = TF_ATTR_SHAPE; m.total_size = rankOf(value->shape()); break;
  case tf::AttrValue::kTensor: m.type = TF_ATTR_TENSOR; break;
  case tf::AttrValue::kFunc: m.type = TF_ATTR_FUNC; break;
  case tf::AttrValue::kPlaceholder: m.type = TF_ATTR_PLACEHOLDER; break;
  case tf::AttrValue::kList: {
    const List &list = value->list();
    m.is_list = 1;
    m.list_size = graphdef::listSize(list);
    if (!listType(nodeOf(oper), attr_name, list, &m.type))
      setInvalid(status, absl::StrCat("the elements of attribute '", attr_name, "' are of no known type"));
    if (m.type == TF_ATTR_STRING || m.type == TF_ATTR_SHAPE)
      m.total_size = 0;
    for (const std::string &s : list.s())
      m.total_size += static_cast<int64_t>(s.size());
    for (const tf::TensorShapeProto &shape : list.shape())
      m.total_size += std::max<int64_t>(rankOf(shape), 0);
    break;
  }
  case tf::AttrValue::VALUE_NOT_SET: setInvalid(status, absl::StrCat("attribute '", attr_name, "' has no value")); break;
  }
  return m;
}

void TF_OperationGetAttrString(TF_Operation *oper, const char *attr_name, void *value, size_t max_length, TF_Status *status) {
  if (auto *attr = findOf(tf::AttrValue::kS, "a string", oper, attr_name, status))
    if (size_t size = std::min(max_length, attr->s().size())) {
      if (!value)
        return setInvalid(status, "no place for the string");
      std::memcpy(value, attr->s().data(), size);
    }
}

void TF_OperationGetAttrStringList(TF_Operation *oper, const char *attr_name, void **values, size_t *lengths, int max_values,
                                   void *storage, size_t storage_size, TF_Status *status) {
  char *place = static_cast<char *>(storage);
  using Strings = const google::protobuf::RepeatedPtrField<std::string> &(List::*)() const;
  getList(static_cast<Strings>(&List::s), "strings", oper, attr_name, max_values, status, [&](int i, const std::string &s) {
    if (s.size() > storage_size || (!place && !s.empty()))
      return setInvalid(status, absl::StrCat("not enough storage for the strings of attribute '", attr_name, "'"));
    values[i] = place;
    lengths[i] = s.size();
    if (!s.empty())
      std::memcpy(place, s.data(), s.size());
    place += s.size();
    storage_size -= s.size();
  }, values, lengths);
}

#define LATHE_GET(NAME, TYPE, KIND, FIELD, WHAT)                                                                       \
  void TF_OperationGetAttr##NAME(TF_Operation *oper, const char *attr_name, TYPE *value, TF_Status *status) {          \
    if (auto *attr = findOf(tf::AttrValue::KIND, WHAT, oper, attr_name, status, value))                                \
      *value = static_cast<TYPE>(attr->FIELD());                                                                       \
  }
#define LATHE_GET_LIST(NAME, TYPE, FIELD, ELEMENT, WHAT)                                                               \
  void TF_OperationGetAttr##NAME##List(TF_Operation *oper, const char *attr_name, TYPE *values, int max_values, TF_Status *status) { \
    using Elements = const google::protobuf::RepeatedField<ELEMENT> &(List::*)() const;                                \
    getList(static_cast<Elements>(&List::FIELD), WHAT, oper, attr_name, max_values, status,                            \
            [&](int i, auto v) { values[i] = static_cast<TYPE>(v); }, values);                                         \
  }
LATHE_GET(Int, int64_t, kI, i, "an int")
LATHE_GET(Float, float, kF, f, "a float")
LATHE_GET(Bool, unsigned char, kB, b, "a bool")
LATHE_GET(Type, TF_DataType, kType, type, "a type")
LATHE_GET_LIST(Int, int64_t, i, int64_t, "ints")
LATHE_GET_LIST(Float, float, f, float, "floats")
LATHE_GET_LIST(Bool, unsigned char, b, bool, "bools")
LATHE_GET_LIST(Type, TF_DataType, type, int, "types")
#undef LATHE_GET
#undef LATHE_GET_LIST

void TF_OperationGetAttrShape(TF_Operation *oper, const char *attr_name, int64_t *value, int num_dims, TF_Status *status) {
  if (auto *attr = findOf(tf::AttrValue::kShape, "a shape", oper, attr_name, status))
    for (int i = 0; i < std::min(num_dims, attr->shape().dim_size()); ++i) {
      if (!value)
        return setInvalid(status, "no place for the dimensions");
      value[i] = attr->shape().dim(i).size();
    }
}

using ShapeField = const google::protobuf::RepeatedPtrField<tf::TensorShapeProto> &(List::*)() const;
constexpr ShapeField kShapes = static_cast<ShapeField>(&List::shape);
using TensorField = const google::protobuf::RepeatedPtrField<tf::TensorProto> &(List::*)() const;

void TF_OperationGetAttrShapeList(TF_Operation *oper, const char *attr_name, int64_t **dims, int *num_dims, int num_shapes,
                                  int64_t *storage, int storage_size, TF_Status *status) {
  getList(kShapes, "shapes", oper, attr_name, num_shapes, status, [&](int i, const tf::TensorShapeProto &shape) {
    num_dims[i] = static_cast<int>(rankOf(shape));
    dims[i] = storage;
    if (num_dims[i] > storage_size || (num_dims[i] > 0 && !storage))
      return setInvalid(status, absl::StrCat("not enough storage for the shapes of attribute '", attr_name, "'"));
    for (int k = 0; k < num_dims[i]; ++k)
      storage[k] = shape.dim(k).size();
    storage += std::max(num_dims[i], 0);
    storage_size -= std::max(num_dims[i], 0);
  }, dims, num_dims);
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation *oper, const char *attr_name, TF_Buffer *value, TF_Status *status) {
  if (auto *attr = findOf(tf::AttrValue::kShape, "a shape", oper, attr_name, status, value))
    giveMessage(attr->shape(), value, status);
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation *oper, const char *attr_name, TF_Buffer **values, int max_values,
                                             TF_Status *status) {
  int made = 0;
  getList(kShapes, "shapes", oper, attr_name, max_values, status, [&](int i, const tf::TensorShapeProto &shape) {
    values[i] = TF_NewBuffer();
    ++made;
    giveMessage(shape, values[i], status);
  }, values);
  for (int i = 0; !isOk(status) && i < made; ++i) {
    TF_DeleteBuffer(values[i]);
    values[i] = nullptr;
  }
}

void TF_OperationGetAttrTensor(TF_Operation *oper, const char *attr_name, TF_Tensor **value, TF_Status *status) {
  auto *attr = findOf(tf::AttrValue::kTensor, "a tensor", oper, attr_name, status, value);
  if (!attr)
    return;
  *value = nullptr;
  auto tensor = graphdef::decodeTensor(attr->tensor(), memoryBudget());
  if (!tensor.ok())
    return set(status, tensor.status());
  *value = fromTensor(*tensor);
}

void TF_OperationGetAttrTensorList(TF_Operation *oper, const char *attr_name, TF_Tensor **values, int max_values, TF_Status *status) {
  int made = 0;
  getList(static_cast<TensorField>(&List::tensor), "tensors", oper, attr_name, max_values, status, [&](int i, const tf::TensorProto &proto) {
    auto tensor = graphdef::decodeTensor(proto, memoryBudget());
    values[i] = tensor.ok() ? fromTensor(*tensor) : nullptr;
    ++made;
    if (!tensor.ok())
      set(status, tensor.status());
  }, values);
  for (int i = 0; !isOk(status) && i < made; ++i) {
    TF_DeleteTensor(values[i]);
    values[i] = nullptr;
  }
}

void TF_OperationGetAttrValueProto(TF_Operation *oper, const char *attr_name, TF_Buffer *output_attr_value, TF_Status *status) {
  if (auto *attr = find(oper, attr_name, status, output_attr_value))
    giveMessage(*attr, output_attr_value, status);
}

} // extern "C"
