// TensorLists as tensors [length, element...]: what the list, TensorArray and stack ops and loops share.
#ifndef LATHE_PASSES_LEGALIZE_CONTROL_LISTS_H
#define LATHE_PASSES_LEGALIZE_CONTROL_LISTS_H

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

/// A length or a number of items as a size; its error if it is not known.
FailureOr<AffineExpr> lengthInput(NodeContext &c, unsigned i);
/// An index as an integer scalar.
Value indexInput(NodeContext &c, unsigned i);
/// The items in use as one tensor. A list that grew at run time gets a size of its own.
Value itemsOf(NodeContext &c, ListValue &list);
/// Sets (or adds to) one item.
LogicalResult setItem(NodeContext &c, ListValue &list, Value index, Value item, bool accumulate = false);
/// Makes room for a constant index beyond the end (resizing lists, dynamic TensorArrays).
void growFor(NodeContext &c, ListValue &list, unsigned indexInput);
/// Room for a list whose number of items nothing bounds, or which may need as much as `wanted`: more are a run-time error.
int64_t roomFor(const ListValue &list, int64_t wanted = 0);
/// Sets the item that input `input` names in a list that writes past its end make longer.
LogicalResult setGrowing(NodeContext &c, ListValue &list, unsigned input, Value item);
/// An error for a constant index outside the list, a check at run time for others.
LogicalResult checkIndex(NodeContext &c, const ListValue &list, unsigned input);
/// The same for a vector of indices.
void checkIndices(NodeContext &c, const ListValue &list, Value indices);
/// Adds an item at the end, making room where that is known to be missing.
LogicalResult pushItem(NodeContext &c, ListValue &list, Value item);
/// Takes the last item off.
LogicalResult popItem(NodeContext &c, ListValue &list, Value &item);
/// Rows of `x` named by a vector of indices.
Value gatherRows(NodeContext &c, Value x, Value indices);
/// `x` with the rows named by a vector of indices replaced, or added to.
Value putRows(NodeContext &c, Value x, Value indices, Value rows, bool accumulate);
/// Sets (or adds to) the items named by a vector of indices.
LogicalResult scatterItems(NodeContext &c, ListValue &list, Value indices, Value rows, bool accumulate);
/// All items one after the other along their first dimension, and their lengths.
LogicalResult setConcat(NodeContext &c, ListValue &list, Type lengthType);
/// A tensor cut into items of equal length.
LogicalResult splitInto(NodeContext &c, ListValue &list, Value x, unsigned lengthsInput);

void registerArraysAndStacks(HandlerTable &t);

} // namespace lathe::legalize

#endif
