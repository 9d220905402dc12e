//===- Match.h - questions that simplifications ask -------------------------===//

#ifndef LATHE_PASSES_SIMPLIFY_MATCH_H
#define LATHE_PASSES_SIMPLIFY_MATCH_H

#include "dialects/hlo/Hlo.h"

#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace lathe {

/// The elements of an hlo.constant; null for any other value.
mlir::ElementsAttr constantValue(mlir::Value v);

/// The one element value of a splat constant, looked for through broadcasts and reshapes; null if there is none.
mlir::Attribute splatElement(mlir::Value v);

/// True for a tensor of this number in every element (compared after conversion to the element type).
bool isSplat(mlir::Value v, double number);

/// The number in every element of a real tensor.
std::optional<double> splatNumber(mlir::Value v);

/// A constant of the type with `element` everywhere.
mlir::Value makeSplatLike(mlir::OpBuilder &b, mlir::Location loc, mlir::RankedTensorType type, mlir::Attribute element);

/// The op again with other operands and the shape of `type` (its own element type stays).
mlir::Operation *rebuild(mlir::OpBuilder &b, mlir::Operation *op, mlir::ValueRange operands,
                         mlir::RankedTensorType shape);

/// Type with the sizes of `shape` and another element type.
mlir::RankedTensorType shapeLike(mlir::RankedTensorType shape, mlir::Type element);

/// Equal sizes, symbolic ones included.
bool sameSizes(mlir::Type a, mlir::Type b);

/// True when a size is known to be one.
inline bool isOne(mlir::RankedTensorType type, int64_t dim) { return type.getDimSize(dim) == 1; }

/// The dimensions of `type` that are not known to be one.
llvm::SmallVector<int64_t> largeDims(mlir::RankedTensorType type);

/// True when the two types differ in dimensions of size one only, so that their large dimensions correspond in order.
bool sameLargeDims(mlir::RankedTensorType a, mlir::RankedTensorType b);

/// The layout of the kernels: images [b, 0, 1, ..., f], filters [0, 1, ..., i, o].
hlo::ConvDimensionNumbersAttr plainConvDimensions(mlir::MLIRContext *context, int64_t rank);

/// The op of a reduction's body that combines its two arguments, or null if there is more to it.
mlir::Operation *simpleCombiner(mlir::Region &body);

/// The bytes of a tensor, for estimates: run-time sizes count as one, and the result is at most 2^40.
int64_t bytesOf(mlir::Type tensor);

/// How often a loop's body runs, when its condition compares a counter with a number.
std::optional<int64_t> tripCount(hlo::WhileOp loop);

/// A constant that lies along one dimension of `type`'s shape (dim), or everywhere the same (dim = -1).
struct ChannelConstant {
  mlir::Value value; ///< 1-D of that dimension's size, or a splat of any shape
  int64_t dim = -1;
};
std::optional<ChannelConstant> matchChannelConstant(mlir::Value v);

} // namespace lathe

#endif
