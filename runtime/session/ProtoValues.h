// Attributes, shapes and tensors of protobuf messages as the runtime's plain values. Messages come from files: every size
// is checked before memory is taken for it.
#ifndef LATHE_RUNTIME_SESSION_PROTOVALUES_H
#define LATHE_RUNTIME_SESSION_PROTOVALUES_H

#include "proto/graph.pb.h"
#include "runtime/core/Attr.h"

#include "absl/status/status.h"


namespace lathe::rt {

/// INVALID_ARGUMENT for impossible dimensions.
absl::StatusOr<PartialShape> readShapeProto(const tf::TensorShapeProto &proto);

/// The tensor that a message means; the last value of a list repeats. INVALID_ARGUMENT when values and shape disagree,
/// RESOURCE_EXHAUSTED above `maxBytes`.
absl::StatusOr<Tensor> readTensorProto(const tf::TensorProto &proto, int64_t maxBytes);

/// A tensor of numbers or strings as a message.
absl::Status writeTensorProto(const Tensor &tensor, tf::TensorProto *proto);

/// One attribute. Placeholders of function bodies must have been substituted.
absl::Status readAttrProto(const tf::AttrValue &proto, int64_t maxBytes, AttrValue *value, int depth = 0);

/// All attributes whose names do not begin with '_'; those are notes to compilers and placers, kept only where they are
/// plain strings, numbers or booleans.
absl::Status readNodeAttrs(const tf::NodeDef &node, int64_t maxBytes, AttrMap *attrs);

/// Writes an attribute back; variants of any content but resource and variant tensors.
absl::Status writeAttrProto(const AttrValue &value, tf::AttrValue *proto);

} // namespace lathe::rt

#endif
