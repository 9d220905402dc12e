//===- AlgebraShape.cpp - reshapes, transposes and broadcasts ---------------===//

#include "passes/simplify/Algebra.h"
#include "passes/simplify/Match.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace lathe;

namespace {

/// An elements attribute under another shape; big ones share their blob.
Attribute reshapeElements(ElementsAttr value, RankedTensorType type) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return dense.isSplat() ? dense.resizeSplat(type) : dense.reshape(type);
  return {};
}

LogicalResult simplifyReshape(hlo::ReshapeOp op, PatternRewriter &r) {
  Value operand = op.getOperand();
  auto type = cast<RankedTensorType>(op.getType());
  if (operand.getType() == type) {
    r.replaceOp(op, operand);
    return success();
  }
  if (auto inner = operand.getDefiningOp<hlo::ReshapeOp>()) {
    r.replaceOpWithNewOp<hlo::ReshapeOp>(op, type, inner.getOperand());
    return success();
  }
  if (ElementsAttr value = constantValue(operand); value && type.hasStaticShape())
    if (auto reshaped = dyn_cast_or_null<ElementsAttr>(reshapeElements(value, type))) {
      r.replaceOpWithNewOp<hlo::ConstantOp>(op, type, reshaped);
      return success();
    }
  if (Attribute element = splatElement(operand)) {
    r.replaceOp(op, makeSplatLike(r, op.getLoc(), type, element));
    return success();
  }
  // a broadcast in another arrangement of ones
  if (auto broadcast = operand.getDefiningOp<hlo::BroadcastInDimOp>()) {
    auto from = cast<RankedTensorType>(operand.getType());
    if (!sameLargeDims(from, type))
      return failure();
    SmallVector<int64_t> before = largeDims(from), after = largeDims(type);
    auto source = cast<RankedTensorType>(broadcast.getOperand().getType());
    SmallVector<int64_t> dims, kept;
    for (auto [i, d] : llvm::enumerate(broadcast.getBroadcastDimensions())) {
      auto it = llvm::find(before, d);
      if (it == before.end())
        continue; // of size one on both sides
      kept.push_back(i);
      dims.push_back(after[it - before.begin()]);
    }
    Value v = broadcast.getOperand();
    if (static_cast<int64_t>(kept.size()) != source.getRank()) {
      SmallVector<AffineExpr> sizes;
      for (int64_t k : kept)
        sizes.push_back(hlo::getDim(source, k));
      v = hlo::ReshapeOp::create(r, op.getLoc(), hlo::makeType(sizes, source.getElementType()), v);
    }
    r.replaceOpWithNewOp<hlo::BroadcastInDimOp>(op, type, v, r.getDenseI64ArrayAttr(dims));
    return success();
  }
  return failure();
}

LogicalResult simplifyBroadcast(hlo::BroadcastInDimOp op, PatternRewriter &r) {
  Value operand = op.getOperand();
  auto type = cast<RankedTensorType>(op.getType());
  auto from = cast<RankedTensorType>(operand.getType());
  ArrayRef<int64_t> dims = op.getBroadcastDimensions();
  if (Attribute element = splatElement(operand); element && (type.hasStaticShape() || from.getRank() > 0)) {
    r.replaceOp(op, makeSplatLike(r, op.getLoc(), type, element));
    return success();
  }
  // same sizes: a reshape, a transpose or nothing
  if (from == type && llvm::is_sorted(dims)) {
    r.replaceOp(op, operand);
    return success();
  }
  if (llvm::is_sorted(dims) && sameLargeDims(from, type)) {
    r.replaceOpWithNewOp<hlo::ReshapeOp>(op, type, operand);
    return success();
  }
  if (auto inner = operand.getDefiningOp<hlo::BroadcastInDimOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t d : inner.getBroadcastDimensions())
      composed.push_back(dims[d]);
    r.replaceOpWithNewOp<hlo::BroadcastInDimOp>(op, type, inner.getOperand(), r.getDenseI64ArrayAttr(composed));
    return success();
  }
  // a transpose that the broadcast undoes
  if (auto inner = operand.getDefiningOp<hlo::TransposeOp>()) {
    SmallVector<int64_t> composed(dims.size());
    for (auto [i, d] : llvm::enumerate(inner.getPermutation()))
      composed[d] = dims[i];
    if (llvm::is_sorted(composed)) {
      r.replaceOpWithNewOp<hlo::BroadcastInDimOp>(op, type, inner.getOperand(),
                                                  r.getDenseI64ArrayAttr(composed));
      return success();
    }
  }
  // Ones that are spread say nothing: drop them, and with them the reshape that may have put them there. Ones that stay
  // ones are only dropped from constants, since the ops that make other operands have them too.
  SmallVector<int64_t> large;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (!isOne(from, i) || (isOne(type, dims[i]) && !constantValue(operand)))
      large.push_back(i);
  if (static_cast<int64_t>(large.size()) < from.getRank()) {
    SmallVector<AffineExpr> sizes;
    SmallVector<int64_t> kept;
    for (int64_t d : large) {
      sizes.push_back(hlo::getDim(from, d));
      kept.push_back(dims[d]);
    }
    RankedTensorType squeezed = hlo::makeType(sizes, from.getElementType());
    Value v = hlo::ReshapeOp::create(r, op.getLoc(), squeezed, operand);
    r.replaceOpWithNewOp<hlo::BroadcastInDimOp>(op, type, v, r.getDenseI64ArrayAttr(kept));
    return success();
  }
  return failure();
}

LogicalResult simplifyTranspose(hlo::TransposeOp op, PatternRewriter &r) {
  Value operand = op.getOperand();
  auto type = cast<RankedTensorType>(op.getType());
  auto from = cast<RankedTensorType>(operand.getType());
  ArrayRef<int64_t> permutation = op.getPermutation();
  if (llvm::is_sorted(permutation) && from == type) {
    r.replaceOp(op, operand);
    return success();
  }
  if (auto inner = operand.getDefiningOp<hlo::TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t d : permutation)
      composed.push_back(inner.getPermutation()[d]);
    r.replaceOpWithNewOp<hlo::TransposeOp>(op, type, inner.getOperand(), r.getDenseI64ArrayAttr(composed));
    return success();
  }
  if (Attribute element = splatElement(operand)) {
    r.replaceOp(op, makeSplatLike(r, op.getLoc(), type, element));
    return success();
  }
  if (auto inner = operand.getDefiningOp<hlo::BroadcastInDimOp>()) {
    SmallVector<int64_t> where(permutation.size()), dims;
    for (auto [i, d] : llvm::enumerate(permutation))
      where[d] = i;
    for (int64_t d : inner.getBroadcastDimensions())
      dims.push_back(where[d]);
    r.replaceOpWithNewOp<hlo::BroadcastInDimOp>(op, type, inner.getOperand(), r.getDenseI64ArrayAttr(dims));
    return success();
  }
  if (auto iota = operand.getDefiningOp<hlo::IotaOp>()) {
    int64_t dim =
        llvm::find(permutation, static_cast<int64_t>(iota.getIotaDimension())) - permutation.begin();
    r.replaceOpWithNewOp<hlo::IotaOp>(op, type, dim);
    return success();
  }
  // only ones change their place
  SmallVector<int64_t> large;
  for (int64_t d : permutation)
    if (!isOne(from, d))
      large.push_back(d);
  if (llvm::is_sorted(large)) {
    r.replaceOpWithNewOp<hlo::ReshapeOp>(op, type, operand);
    return success();
  }
  return failure();
}

/// hlo.dot is a dot_general, hlo.broadcast a broadcast_in_dim.
LogicalResult simplifyDot(hlo::DotOp op, PatternRewriter &r) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  auto dims = hlo::DotDimensionNumbersAttr::get(op.getContext(), {}, {}, {lhs.getRank() - 1}, {0});
  auto made = hlo::DotGeneralOp::create(r, op.getLoc(), op.getType(), op.getLhs(), op.getRhs(), dims,
                                        op.getPrecisionConfigAttr());
  r.replaceOp(op, made.getResult());
  return success();
}

LogicalResult simplifyOldBroadcast(hlo::BroadcastOp op, PatternRewriter &r) {
  SmallVector<int64_t> dims;
  int64_t added = op.getBroadcastSizes().size();
  for (int64_t i = 0, e = cast<RankedTensorType>(op.getOperand().getType()).getRank(); i < e; ++i)
    dims.push_back(i + added);
  r.replaceOpWithNewOp<hlo::BroadcastInDimOp>(op, op.getType(), op.getOperand(), r.getDenseI64ArrayAttr(dims));
  return success();
}

/// Elementwise ops on broadcasts of equal form work on the small operands: broadcast(a) + broadcast(b).
struct HoistAboveBroadcast : RewritePattern {
  HoistAboveBroadcast(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &r) const override {
    if (!op->hasTrait<hlo::HloElementwise>() || op->getNumOperands() == 0)
      return failure();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    hlo::BroadcastInDimOp model;
    for (Value v : op->getOperands()) {
      if (!sameSizes(v.getType(), type))
        return failure();
      if (auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>()) {
        if (!model) {
          model = broadcast;
        } else if (!sameSizes(broadcast.getOperand().getType(), model.getOperand().getType()) ||
                   broadcast.getBroadcastDimensions() != model.getBroadcastDimensions()) {
          return failure();
        }
      } else if (!splatElement(v)) {
        return failure();
      }
    }
    if (!model)
      return failure();
    auto small = cast<RankedTensorType>(model.getOperand().getType());
    SmallVector<Value> operands;
    for (Value v : op->getOperands()) {
      if (auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>())
        operands.push_back(broadcast.getOperand());
      else
        operands.push_back(makeSplatLike(r, v.getLoc(), shapeLike(small, getElementTypeOrSelf(v.getType())),
                                         splatElement(v)));
    }
    Operation *made = rebuild(r, op, operands, small);
    r.replaceOpWithNewOp<hlo::BroadcastInDimOp>(op, type, made->getResult(0), model.getBroadcastDimensionsAttr());
    return success();
  }
};

} // namespace

void lathe::populateShapePatterns(RewritePatternSet &patterns) {
  patterns.add(simplifyReshape);
  patterns.add(simplifyBroadcast);
  patterns.add(simplifyTranspose);
  patterns.add(simplifyDot);
  patterns.add(simplifyOldBroadcast);
  patterns.add<HoistAboveBroadcast>(patterns.getContext());
}
