// TensorLists as tensors [length, element...]: what the list, TensorArray and stack ops and loops share.
#ifndef LATHE_PASSES_LEGALIZE_LISTS_H
#define LATHE_PASSES_LEGALIZE_LISTS_H

#include "passes/legalize/NodeContext.h"

namespace lathe::legalize {

/// All sizes of the element known.
bool knowsElement(const ListValue &list);
/// Gives the list its buffer of zeros, if it has none yet, for elements of this shape (the list's own if empty).
LogicalResult typeList(Emitter &e, ListValue &list, std::optional<Dims> elementDims);
/// Makes the list one that grows at run time, with room for `capacity` items.
LogicalResult makeCounted(Emitter &e, ListValue &list, AffineExpr capacity);
/// The number of items in use, as an i32 scalar.
Value listCount(Emitter &e, const ListValue &list);

} // namespace lathe::legalize

#endif
