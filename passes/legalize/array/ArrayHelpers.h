// What several families on arrays share: gathering, scattering, slicing with TensorFlow's rules and range checks.
#ifndef LATHE_PASSES_LEGALIZE_ARRAY_ARRAYHELPERS_H
#define LATHE_PASSES_LEGALIZE_ARRAY_ARRAYHELPERS_H

#include "passes/legalize/NodeContext.h"

namespace lathe::legalize {

/// Text of a size expression for messages.
std::string textOf(AffineExpr expr);

/// Makes the shapes of the values equal but for `except` (-1: none), with an error that names the first that differs.
bool sameDims(NodeContext &c, ArrayRef<Value> values, int64_t except = -1);

/// Fails at run time unless 0 <= indices < limit everywhere or, where it is given, the scalar `unless` is true; nothing is emitted
/// where constants show it.
void checkRange(NodeContext &c, Value indices, AffineExpr limit, StringRef what, Value unless = {});
/// The same for indices of which negative ones mean "none".
void checkBelow(NodeContext &c, Value indices, AffineExpr limit, StringRef what);

/// tf.gather: params[..., indices, ...] along `axis`, the first `batchDims` dimensions of both being parallel. With
/// `checked` off the indices are known to be in range (hlo clamps them).
Value gather(NodeContext &c, Value params, Value indices, int64_t axis, int64_t batchDims = 0, bool checked = true);
/// tf.gather_nd: the last dimension of `indices` holds coordinates.
Value gatherNd(NodeContext &c, Value params, Value indices, int64_t batchDims = 0, bool checked = true);

/// `operand` with `updates` combined into it at the coordinates in the last dimension of `indices`; without `combine`
/// they replace what was there. Coordinates out of range fail at run time where `checked`, else they are skipped.
Value scatterNd(NodeContext &c, Value operand, Value indices, Value updates, Combine combine, bool checked = true);
/// The same along dimension 0: row indices[i...] takes updates[i..., :].
Value scatterRows(NodeContext &c, Value operand, Value indices, Value updates, Combine combine, bool checked = true);

/// `input` with the part that a StridedSlice with begin, end and strides in three inputs from `firstSpecInput` on would
/// read replaced by `update`.
Value stridedSliceUpdate(NodeContext &c, Value input, unsigned firstSpecInput, Value update);

/// hlo.where of a bool tensor as [count, rank] i64; a constant where the mask is known.
Value whereTrue(NodeContext &c, Value mask);
/// Results of an op just made whose operands are known and whose size the data says: constants in its place. Nothing (and
/// the op stays) where something is not known.
std::optional<SmallVector<Value>> foldDataSized(NodeContext &c, mlir::Operation *op);

/// The rows (along dimension 0) of each value at the places where the 1-D mask is true: a run-time number of them.
SmallVector<Value> compress(NodeContext &c, Value mask, ArrayRef<Value> values);

/// `x` with `with` (a scalar) before and behind, by two sizes for each dimension from `from` on.
Value padBySizes(NodeContext &c, Value x, Value with, int64_t from, ArrayRef<std::pair<AffineExpr, AffineExpr>> amounts);
/// `x` with its border repeated, by the amounts in input `amounts` and the attribute `mode`; null and an error where they do not fit.
Value mirrorPad(NodeContext &c, Value x, unsigned amounts);
/// Images [batch, height, width, channels] in the size that input `size` gives, in f32 or f64, as ResizeBilinear has it.
Value resizeBilinear(NodeContext &c, Value x, unsigned size);

/// Sorts all values along an axis by the first one, equal ones in their order.
SmallVector<Value> sortBy(NodeContext &c, ArrayRef<Value> values, int64_t axis = 0, Compare direction = Compare::LT);

/// Running sums of a vector, each element included.
Value runningSum(NodeContext &c, Value v);

/// hlo.while over `init`; `condition` gives a scalar bool and `body` the next values, made at the context's insertion
/// point from the values of the round. The values keep their types.
SmallVector<Value> whileLoop(Emitter &c, ArrayRef<Value> init, llvm::function_ref<Value(ValueRange)> condition,
                             llvm::function_ref<SmallVector<Value>(ValueRange)> body);

Value combineAdd(OpBuilder &b, mlir::Location loc, Value x, Value y);
Value combineSub(OpBuilder &b, mlir::Location loc, Value x, Value y);
Value combineMul(OpBuilder &b, mlir::Location loc, Value x, Value y);
/// x where it is less (LT) or greater (GT) than y, else y, which so stands against a NaN in x and stands where it is one.
Value chooseUnless(OpBuilder &b, mlir::Location loc, Value x, Value y, Compare direction);
/// A NaN that is there stays, one that comes is left out, as TensorFlow's scatters have it.
Value combineMin(OpBuilder &b, mlir::Location loc, Value x, Value y);
Value combineMax(OpBuilder &b, mlir::Location loc, Value x, Value y);

} // namespace lathe::legalize

#endif
