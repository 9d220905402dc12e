// Tensors, shapes and attributes of protobuf messages: the one place that reads and writes them. Messages come from files:
// every size is checked before memory is taken for it.
#ifndef LATHE_GRAPH_VALUES_H
#define LATHE_GRAPH_VALUES_H

#include "base/Tensor.h"
#include "ops/Registry.h"
#include "proto/graph.pb.h"

#include "absl/status/statusor.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::graphdef {

/// TensorFlow's own limit.
constexpr int kMaxRank = 254;

/// A shape that may lack its rank (nullopt) or some sizes (-1).
using PartialShape = std::optional<std::vector<int64_t>>;

/// TensorFlow's number as our type; a reference type gives the type it refers to, unknown numbers Invalid.
DType dtypeOf(int number);

/// INVALID_ARGUMENT for impossible dimensions and for more elements than 64 bits count.
absl::StatusOr<PartialShape> decodeShape(const tf::TensorShapeProto &proto);
void encodeShape(const PartialShape &shape, tf::TensorShapeProto *proto);

/// The tensor that a message means; the last value of a list repeats, an empty list is zeros, strings may be packed.
/// INVALID_ARGUMENT when values and shape disagree, RESOURCE_EXHAUSTED above `maxBytes`.
absl::StatusOr<Tensor> decodeTensor(const tf::TensorProto &proto, int64_t maxBytes);

/// A tensor of numbers or strings as a message; INVALID_ARGUMENT for resources and variants.
absl::Status encodeTensor(const Tensor &tensor, tf::TensorProto *proto);

/// The values of a message's list of numbers as they lie in memory, nothing repeated. Empty for strings.
std::vector<char> listedBytes(const tf::TensorProto &proto, DType type);

/// Strings in the packed form: `count` lengths, then the bytes.
absl::Status unpackStrings(std::string_view content, int64_t count, std::vector<std::string> *values);

/// A default as the op registry writes it ("1", "0.5", "true", "\"NHWC\"", "float32", "[1,2]", "[2,?]", "unknown") for an
/// attribute of `type` ("int", "list(type)" ...). False when it cannot be read.
bool parseDefault(std::string_view type, std::string_view text, tf::AttrValue *value);

/// Whether the value is of the registry's attribute type; otherwise what it is, for a message.
bool hasAttrType(const tf::AttrValue &value, std::string_view type, std::string *found);

/// Elements of a list of any type.
int64_t listSize(const tf::AttrValue::ListValue &list);

/// A node's attributes as the registry asks for them.
class AttrLookup : public ops::AttrSource {
public:
  using Map = google::protobuf::Map<std::string, tf::AttrValue>;
  explicit AttrLookup(const Map &attrs) : attrs(attrs) {}

  /// Null when there is none.
  const tf::AttrValue *find(std::string_view name) const;

  std::optional<int64_t> intAttr(std::string_view name) const override;
  std::optional<DType> typeAttr(std::string_view name) const override;
  std::optional<std::vector<DType>> typeListAttr(std::string_view name) const override;
  std::optional<std::string> stringAttr(std::string_view name) const override;
  std::optional<int64_t> listSize(std::string_view name) const override;

private:
  const tf::AttrValue *find(std::string_view name, tf::AttrValue::ValueCase kind) const;

  const Map &attrs;
};

} // namespace lathe::graphdef

#endif
