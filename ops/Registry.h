// The TensorFlow ops that Lathe knows: names, inputs, outputs, attributes with their defaults, and flags. Importer, checker,
// session and documentation all read this table.
//
// The tables are the *.def files, one op per entry, continued on indented lines:
//   Name(input:kind, ...) -> (output:kind, ...) {attr:type=default, ...} flag...
// A kind is a type name (float32), a type attribute (T), an int attribute times one of these (N*T), or a list of types (Tin...);
// & after it marks a reference to a variable. What an attribute may be follows its type in brackets: types and named sets of them
// ("index" is int32 and int64), strings, and "1.." for the least number or length of a list. Flags: stateful; host (works on strings, files, queues: never compiled).
#ifndef LATHE_OPS_REGISTRY_H
#define LATHE_OPS_REGISTRY_H

#include "base/DType.h"

#include "absl/status/statusor.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::ops {

struct Arg {
  std::string_view name;
  /// Invalid when an attribute gives it.
  DType type = DType::Invalid;
  /// Empty where they do not apply. A list of types stands alone.
  std::string_view typeAttr, numberAttr, typeListAttr;
  bool isRef = false;
};

struct Attr {
  std::string_view name;
  /// "int" "float" "bool" "string" "type" "shape" "tensor" "func" or "list(...)" of one of these.
  std::string_view type;
  bool hasDefault = false;
  /// The least number, or elements of a list.
  std::optional<int64_t> minimum;
  /// What a type or string, or each of a list, may be; empty for anything.
  std::vector<DType> types;
  std::vector<std::string> strings;
  /// The same as in the table: index,int16.
  std::string_view allowedText;
  /// As in the table: 1, 0.5, true, "NHWC" (quoted, C escapes), float32, [2,?] or unknown for shapes, [a,b] for lists.
  std::string_view defaultText;
};

struct OpInfo {
  std::string_view name;
  std::vector<Arg> inputs, outputs;
  std::vector<Attr> attrs;
  bool isStateful = false;
  bool isHost = false;

  const Attr *findAttr(std::string_view name) const;
  /// Has an argument that is a resource or a reference, so it may read or write a variable or another shared object.
  bool touchesResources() const;
};

/// Null for an op that is not in the table.
const OpInfo *findOp(std::string_view name);

/// All ops in the order of their names.
const std::vector<OpInfo> &allOps();

/// The elements of a list default "[a,b]" as texts; nested brackets and quotes stay whole.
std::vector<std::string_view> splitListText(std::string_view text);
/// The bytes of a quoted default.
std::string unquote(std::string_view text);

/// Where resolveTypes and checkAttrs look up a node's attributes. Nullopt where there is none of that type.
class AttrSource {
public:
  virtual ~AttrSource() = default;
  virtual std::optional<int64_t> intAttr(std::string_view name) const = 0;
  virtual std::optional<DType> typeAttr(std::string_view name) const = 0;
  virtual std::optional<std::vector<DType>> typeListAttr(std::string_view name) const = 0;
  virtual std::optional<std::string> stringAttr(std::string_view name) const = 0;
  /// Elements of a list of any type.
  virtual std::optional<int64_t> listSize(std::string_view name) const = 0;
};

/// Refuses attributes that the op's definition does not allow, as TensorFlow does before a graph runs. Those that a node lacks
/// are not looked at.
absl::Status checkAttrs(const OpInfo &op, const AttrSource &attrs);

/// The types of a node's flat inputs or outputs. An attribute that the node lacks is taken from the op's default. With
/// `counts`, also how many of them each argument has.
absl::StatusOr<std::vector<DType>> resolveTypes(const OpInfo &op, const std::vector<Arg> &args, const AttrSource &attrs,
                                                std::vector<int64_t> *counts = nullptr);

} // namespace lathe::ops

#endif
