// Attributes of a node as kernels see them: plain values, no protobuf, so that hosted objects link without it.
#ifndef LATHE_RUNTIME_CORE_ATTR_H
#define LATHE_RUNTIME_CORE_ATTR_H

#include "base/Tensor.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lathe::rt {

/// A shape that may lack its rank (nullopt) or some sizes (-1).
using PartialShape = std::optional<std::vector<int64_t>>;

/// "[2,?]" or "<unknown>".
std::string shapeToString(const PartialShape &shape);
/// Whether dimensions known on both sides agree.
bool isCompatible(const PartialShape &shape, const std::vector<int64_t> &dims);

struct FunctionRef;
using FunctionRefPtr = std::shared_ptr<const FunctionRef>;

/// One attribute value. An empty list of any type is whichever list is asked for.
using AttrValue =
    std::variant<std::monostate, int64_t, float, bool, std::string, DType, PartialShape, Tensor, FunctionRefPtr,
                 std::vector<int64_t>, std::vector<float>, std::vector<bool>, std::vector<std::string>, std::vector<DType>,
                 std::vector<PartialShape>, std::vector<Tensor>, std::vector<FunctionRefPtr>>;

using AttrMap = std::map<std::string, AttrValue, std::less<>>;

/// A function of the graph's library with the attributes that instantiate it.
struct FunctionRef {
  std::string name;
  AttrMap attrs;
};

/// Reads a default of the op table ("1", "[2,?]", "\"NHWC\"" ...; see ops/Registry.h) for an attribute of `type`
/// ("int", "list(type)" ...). False when it cannot be read.
bool parseAttr(std::string_view type, std::string_view text, AttrValue &value);

/// Whether the value is of the op table's attribute type; an empty list without a type becomes an empty list of it.
bool fitsAttrType(std::string_view type, AttrValue &value);

} // namespace lathe::rt

#endif
