//===- Types.cpp - TensorFlow types as MLIR types -------------------------===//
#include "dialects/graph/Types.h"

#include "dialects/graph/Graph.h"
#include "dialects/types/ElementTypes.h"

using namespace mlir;

namespace lathe::graph {

Type toMlirType(MLIRContext *context, DType dtype) {
  switch (dtype) {
  case DType::String: return StringType::get(context);
  case DType::Resource: return ResourceType::get(context);
  case DType::Variant: return VariantType::get(context);
  default: break;
  }
  if (Type type = toElementType(context, dtype))
    return type;
  // what is only carried (base/DType.cpp) is as opaque as a variant, and stays on the host as these do
  return dtypeSize(dtype) ? VariantType::get(context) : Type();
}

DType toDType(Type type) {
  if (isa<StringType>(type)) return DType::String;
  if (isa<ResourceType>(type)) return DType::Resource;
  if (isa<VariantType>(type)) return DType::Variant;
  return elementDType(type);
}

TensorType makeTensorType(Type elementType, const std::optional<std::vector<int64_t>> &dims) {
  if (!dims)
    return UnrankedTensorType::get(elementType);
  SmallVector<int64_t> shape;
  for (int64_t d : *dims)
    shape.push_back(d < 0 ? ShapedType::kDynamic : d);
  return RankedTensorType::get(shape, elementType);
}

Location makeNodeLoc(MLIRContext *context, StringRef name, StringRef op, StringRef function) {
  Location loc = UnknownLoc::get(context);
  auto wrap = [&](StringRef text) { loc = NameLoc::get(StringAttr::get(context, text), loc); };
  if (!function.empty())
    wrap(function);
  wrap(op);
  wrap(name);
  return loc;
}

/// The outermost NameLoc; locations nest as deep as passes fused them, so this walks with a list, not by recursion.
static NameLoc findNameLoc(Location loc) {
  SmallVector<Location> work{loc};
  while (!work.empty()) {
    Location l = work.pop_back_val();
    if (auto name = dyn_cast<NameLoc>(l))
      return name;
    if (auto fused = dyn_cast<FusedLoc>(l)) {
      for (Location part : llvm::reverse(fused.getLocations()))
        work.push_back(part);
    } else if (auto call = dyn_cast<CallSiteLoc>(l)) {
      work.push_back(call.getCaller());
      work.push_back(call.getCallee());
    }
  }
  return {};
}

static NameLoc findInner(Location loc, unsigned depth) {
  NameLoc name = findNameLoc(loc);
  for (; name && depth; --depth)
    name = dyn_cast<NameLoc>(name.getChildLoc());
  return name;
}

static StringRef nameOrEmpty(NameLoc loc) { return loc ? loc.getName().getValue() : StringRef(); }

StringRef getNodeName(Location loc) { return nameOrEmpty(findNameLoc(loc)); }
StringRef getNodeOp(Location loc) { return nameOrEmpty(findInner(loc, 1)); }
StringRef getNodeFunction(Location loc) { return nameOrEmpty(findInner(loc, 2)); }

} // namespace lathe::graph
