// Attributes of operations that are being described.
#include "runtime/c_api/NewOperation.h"

#include "graph/Values.h"

#include "absl/strings/str_cat.h"

using namespace lathe;
using namespace lathe::c_api;

namespace {

/// An attribute that is a list of `n` values in arrays of the caller's; null, and the mistake kept, when one is missing.
template <typename... T>
tf::AttrValue::ListValue *newList(TF_OperationDescription *desc, const char *name, int n, const T *...arrays) {
  if (n < 0 || (n > 0 && !((arrays != nullptr) && ...))) {
    failAttr(desc, name, "its values are missing");
    return nullptr;
  }
  tf::AttrValue *value = newAttr(desc, name);
  return value ? value->mutable_list() : nullptr;
}

bool setShape(TF_OperationDescription *desc, const char *name, const int64_t *dims, int numDims, tf::TensorShapeProto *shape) {
  if (numDims < 0) {
    shape->set_unknown_rank(true);
    return true;
  }
  if (numDims > graphdef::kMaxRank || (numDims > 0 && !dims)) {
    failAttr(desc, name, "its dimensions are missing, or too many");
    return false;
  }
  for (int i = 0; i < numDims; ++i)
    shape->add_dim()->set_size(dims[i] < 0 ? -1 : dims[i]);
  return true;
}

absl::Status setTensor(const TF_Tensor &tensor, tf::TensorProto *proto) {
  auto value = toTensor(tensor);
  return value.ok() ? graphdef::encodeTensor(*value, proto) : value.status();
}

} // namespace

extern "C" {

void TF_SetAttrString(TF_OperationDescription *desc, const char *attr_name, const void *value, size_t length) {
  if (!value && length)
    return failAttr(desc, attr_name, "its value is missing");
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    attr->set_s(std::string(static_cast<const char *>(value), length));
}

void TF_SetAttrStringList(TF_OperationDescription *desc, const char *attr_name, const void *const *values, const size_t *lengths,
                          int num_values) {
  if (auto *list = newList(desc, attr_name, num_values, values, lengths))
    for (int i = 0; i < num_values; ++i)
      list->add_s(values[i] ? std::string(static_cast<const char *>(values[i]), lengths[i]) : std::string());
}

void TF_SetAttrInt(TF_OperationDescription *desc, const char *attr_name, int64_t value) {
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    attr->set_i(value);
}

void TF_SetAttrIntList(TF_OperationDescription *desc, const char *attr_name, const int64_t *values, int num_values) {
  if (auto *list = newList(desc, attr_name, num_values, values))
    for (int i = 0; i < num_values; ++i)
      list->add_i(values[i]);
}

void TF_SetAttrFloat(TF_OperationDescription *desc, const char *attr_name, float value) {
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    attr->set_f(value);
}

void TF_SetAttrFloatList(TF_OperationDescription *desc, const char *attr_name, const float *values, int num_values) {
  if (auto *list = newList(desc, attr_name, num_values, values))
    for (int i = 0; i < num_values; ++i)
      list->add_f(values[i]);
}

void TF_SetAttrBool(TF_OperationDescription *desc, const char *attr_name, unsigned char value) {
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    attr->set_b(value != 0);
}

void TF_SetAttrBoolList(TF_OperationDescription *desc, const char *attr_name, const unsigned char *values, int num_values) {
  if (auto *list = newList(desc, attr_name, num_values, values))
    for (int i = 0; i < num_values; ++i)
      list->add_b(values[i] != 0);
}

void TF_SetAttrType(TF_OperationDescription *desc, const char *attr_name, TF_DataType value) {
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    attr->set_type(static_cast<tf::DataType>(value));
}

void TF_SetAttrTypeList(TF_OperationDescription *desc, const char *attr_name, const TF_DataType *values, int num_values) {
  if (auto *list = newList(desc, attr_name, num_values, values))
    for (int i = 0; i < num_values; ++i)
      list->add_type(static_cast<tf::DataType>(values[i]));
}

void TF_SetAttrPlaceholder(TF_OperationDescription *desc, const char *attr_name, const char *placeholder) {
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    attr->set_placeholder(textOf(placeholder));
}

void TF_SetAttrFuncName(TF_OperationDescription *desc, const char *attr_name, const char *value, size_t length) {
  if (!value && length)
    return failAttr(desc, attr_name, "its value is missing");
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    attr->mutable_func()->set_name(std::string(value, length));
}

void TF_SetAttrShape(TF_OperationDescription *desc, const char *attr_name, const int64_t *dims, int num_dims) {
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    setShape(desc, attr_name, dims, num_dims, attr->mutable_shape());
}

void TF_SetAttrShapeList(TF_OperationDescription *desc, const char *attr_name, const int64_t *const *dims, const int *num_dims,
                         int num_shapes) {
  if (auto *list = newList(desc, attr_name, num_shapes, dims, num_dims))
    for (int i = 0; i < num_shapes; ++i)
      if (!setShape(desc, attr_name, dims[i], num_dims[i], list->add_shape()))
        return;
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription *desc, const char *attr_name, const void *proto, size_t proto_len,
                                TF_Status *status) {
  tf::TensorShapeProto shape;
  if (!present(status, "desc, attr_name", desc, attr_name) || !parseMessage(proto, proto_len, "TensorShapeProto", &shape, status))
    return;
  if (tf::AttrValue *attr = newAttr(desc, attr_name))
    *attr->mutable_shape() = std::move(shape);
}

void TF_SetAttrTensorShapeProtoList(TF_OperationDescription *desc, const char *attr_name, const void *const *protos,
                                    const size_t *proto_lens, int num_shapes, TF_Status *status) {
  if (!present(status, "desc, attr_name", desc, attr_name))
    return;
  if (num_shapes < 0 || (num_shapes > 0 && (!protos || !proto_lens)))
    return setInvalid(status, "the shapes are missing");
  tf::AttrValue value;
  value.mutable_list();
  for (int i = 0; i < num_shapes; ++i)
    if (!parseMessage(protos[i], proto_lens[i], "TensorShapeProto", value.mutable_list()->add_shape(), status))
      return;
  *newAttr(desc, attr_name) = std::move(value);
}

void TF_SetAttrTensor(TF_OperationDescription *desc, const char *attr_name, TF_Tensor *value, TF_Status *status) {
  if (!present(status, "desc, attr_name, value", desc, attr_name, value))
    return;
  tf::AttrValue attr;
  if (absl::Status s = setTensor(*value, attr.mutable_tensor()); !s.ok())
    return set(status, s);
  *newAttr(desc, attr_name) = std::move(attr);
}

void TF_SetAttrTensorList(TF_OperationDescription *desc, const char *attr_name, TF_Tensor *const *values, int num_values,
                          TF_Status *status) {
  if (!present(status, "desc, attr_name", desc, attr_name))
    return;
  if (num_values < 0 || (num_values > 0 && !values))
    return setInvalid(status, "the tensors are missing");
  tf::AttrValue attr;
  attr.mutable_list();
  for (int i = 0; i < num_values; ++i) {
    if (!values[i])
      return setInvalid(status, absl::StrCat("tensor ", i, " is missing"));
    if (absl::Status s = setTensor(*values[i], attr.mutable_list()->add_tensor()); !s.ok())
      return set(status, s);
  }
  *newAttr(desc, attr_name) = std::move(attr);
}

void TF_SetAttrValueProto(TF_OperationDescription *desc, const char *attr_name, const void *proto, size_t proto_len, TF_Status *status) {
  tf::AttrValue value;
  if (!present(status, "desc, attr_name", desc, attr_name) || !parseMessage(proto, proto_len, "AttrValue", &value, status))
    return;
  *newAttr(desc, attr_name) = std::move(value);
}

} // extern "C"
