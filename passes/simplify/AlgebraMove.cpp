//===- AlgebraMove.cpp - slices, pads, concatenations, updates --------------===//

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Algebra.h"
#include "passes/simplify/Match.h"

#include <limits>

using namespace mlir;
using namespace lathe;

namespace {

constexpr int64_t symbolic = std::numeric_limits<int64_t>::min();

bool isStatic(hlo::SliceOp op) {
  return !llvm::is_contained(op.getStartIndices(), symbolic) && !llvm::is_contained(op.getLimitIndices(), symbolic) &&
         cast<RankedTensorType>(op.getType()).hasStaticShape();
}

bool allEqual(ArrayRef<int64_t> values, int64_t value) {
  return llvm::all_of(values, [&](int64_t v) { return v == value; });
}

Value makeSlice(PatternRewriter &r, Location loc, RankedTensorType type, Value v, ArrayRef<int64_t> starts,
                ArrayRef<int64_t> limits, ArrayRef<int64_t> strides) {
  return hlo::SliceOp::create(r, loc, type, v, r.getDenseI64ArrayAttr(starts), r.getDenseI64ArrayAttr(limits),
                              r.getDenseI64ArrayAttr(strides), AffineMapAttr(), AffineMapAttr());
}

LogicalResult simplifySlice(hlo::SliceOp op, PatternRewriter &r) {
  Value operand = op.getOperand();
  auto type = cast<RankedTensorType>(op.getType());
  // all of it: nothing can start elsewhere and still have every size
  if (operand.getType() == type && hlo::hasKnownDims(type) && allEqual(op.getStrides(), 1) &&
      allEqual(op.getStartIndices(), 0)) {
    r.replaceOp(op, operand);
    return success();
  }
  if (Attribute element = splatElement(operand)) {
    r.replaceOp(op, makeSplatLike(r, op.getLoc(), type, element));
    return success();
  }
  if (!isStatic(op))
    return failure();
  ArrayRef<int64_t> starts = op.getStartIndices(), limits = op.getLimitIndices(), strides = op.getStrides();
  if (auto inner = operand.getDefiningOp<hlo::SliceOp>(); inner && isStatic(inner)) {
    SmallVector<int64_t> s, l, t;
    for (int64_t i = 0, e = type.getRank(); i < e; ++i) {
      int64_t step = inner.getStrides()[i];
      s.push_back(inner.getStartIndices()[i] + starts[i] * step);
      t.push_back(strides[i] * step);
      int64_t count = type.getDimSize(i);
      if (count == 0)
        s.back() = 0; // nothing of it: anywhere will do, but inside
      l.push_back(count ? s.back() + (count - 1) * t.back() + 1 : 0);
    }
    r.replaceOp(op, makeSlice(r, op.getLoc(), type, inner.getOperand(), s, l, t));
    return success();
  }
  if (auto concat = operand.getDefiningOp<hlo::ConcatenateOp>()) {
    int64_t dim = concat.getDimension(), offset = 0;
    for (Value part : concat.getInputs()) {
      auto partType = cast<RankedTensorType>(part.getType());
      if (partType.isDynamicDim(dim))
        return failure();
      int64_t size = partType.getDimSize(dim);
      if (starts[dim] >= offset && limits[dim] <= offset + size) {
        SmallVector<int64_t> s(starts), l(limits);
        s[dim] -= offset;
        l[dim] -= offset;
        r.replaceOp(op, makeSlice(r, op.getLoc(), type, part, s, l, strides));
        return success();
      }
      offset += size;
    }
    return failure();
  }
  if (auto broadcast = operand.getDefiningOp<hlo::BroadcastInDimOp>()) {
    // dimensions that come from the operand in full size are sliced there
    auto from = cast<RankedTensorType>(broadcast.getOperand().getType());
    auto full = cast<RankedTensorType>(operand.getType());
    if (!from.hasStaticShape())
      return failure();
    SmallVector<int64_t> s, l, t, sizes;
    bool whole = true;
    for (auto [i, d] : llvm::enumerate(broadcast.getBroadcastDimensions())) {
      bool spread = from.getDimSize(i) == 1 && full.getDimSize(d) != 1;
      s.push_back(spread ? 0 : starts[d]);
      l.push_back(spread ? 1 : limits[d]);
      t.push_back(spread ? 1 : strides[d]);
      sizes.push_back(spread ? 1 : type.getDimSize(d));
      whole &= sizes.back() == from.getDimSize(i);
    }
    Value v = broadcast.getOperand();
    if (!whole)
      v = makeSlice(r, op.getLoc(), RankedTensorType::get(sizes, from.getElementType()), v, s, l, t);
    r.replaceOpWithNewOp<hlo::BroadcastInDimOp>(op, type, v, broadcast.getBroadcastDimensionsAttr());
    return success();
  }
  return failure();
}

LogicalResult simplifyConcat(hlo::ConcatenateOp op, PatternRewriter &r) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t dim = op.getDimension();
  if (op.getInputs().size() == 1 && op.getInputs().front().getType() == type) {
    r.replaceOp(op, op.getInputs().front());
    return success();
  }
  // one splat everywhere
  Attribute first = splatElement(op.getInputs().front());
  if (first && llvm::all_of(op.getInputs(), [&](Value v) { return splatElement(v) == first; })) {
    r.replaceOp(op, makeSplatLike(r, op.getLoc(), type, first));
    return success();
  }
  SmallVector<Value> parts;
  bool changed = false;
  for (Value v : op.getInputs()) {
    auto part = cast<RankedTensorType>(v.getType());
    if (part.getDimSize(dim) == 0) {
      changed = true;
      continue;
    }
    auto inner = v.getDefiningOp<hlo::ConcatenateOp>();
    if (inner && static_cast<int64_t>(inner.getDimension()) == dim && inner->hasOneUse() &&
        parts.size() + inner.getInputs().size() <= 256) {
      llvm::append_range(parts, inner.getInputs());
      changed = true;
      continue;
    }
    // neighbouring slices of one tensor
    auto slice = v.getDefiningOp<hlo::SliceOp>();
    auto before = parts.empty() ? hlo::SliceOp() : parts.back().getDefiningOp<hlo::SliceOp>();
    if (slice && before && isStatic(slice) && isStatic(before) && slice.getOperand() == before.getOperand() &&
        allEqual(slice.getStrides(), 1) && allEqual(before.getStrides(), 1)) {
      bool adjacent = true;
      for (int64_t i = 0; i < type.getRank(); ++i)
        adjacent &= i == dim ? before.getLimitIndices()[i] == slice.getStartIndices()[i]
                             : before.getStartIndices()[i] == slice.getStartIndices()[i] &&
                                   before.getLimitIndices()[i] == slice.getLimitIndices()[i];
      if (adjacent) {
        SmallVector<int64_t> shape(cast<RankedTensorType>(before.getType()).getShape());
        shape[dim] += part.getDimSize(dim);
        parts.back() = makeSlice(r, op.getLoc(), RankedTensorType::get(shape, type.getElementType()),
                                 slice.getOperand(), before.getStartIndices(), slice.getLimitIndices(),
                                 slice.getStrides());
        changed = true;
        continue;
      }
    }
    parts.push_back(v);
  }
  if (!changed)
    return failure();
  if (parts.empty())
    parts.push_back(op.getInputs().front());
  if (parts.size() == 1 && parts.front().getType() == type)
    r.replaceOp(op, parts.front());
  else
    r.replaceOpWithNewOp<hlo::ConcatenateOp>(op, TypeRange{type}, parts, op->getAttrs());
  return success();
}

LogicalResult simplifyPad(hlo::PadOp op, PatternRewriter &r) {
  auto type = cast<RankedTensorType>(op.getType());
  if (allEqual(op.getEdgePaddingLow(), 0) && allEqual(op.getEdgePaddingHigh(), 0) &&
      allEqual(op.getInteriorPadding(), 0) && op.getOperand().getType() == type) {
    r.replaceOp(op, op.getOperand());
    return success();
  }
  Attribute value = splatElement(op.getPaddingValue());
  if (value && splatElement(op.getOperand()) == value) {
    r.replaceOp(op, makeSplatLike(r, op.getLoc(), type, value));
    return success();
  }
  // cutting only is a slice
  auto from = cast<RankedTensorType>(op.getOperand().getType());
  auto notAbove = [](ArrayRef<int64_t> list) { return llvm::all_of(list, [](int64_t v) { return v <= 0; }); };
  if (allEqual(op.getInteriorPadding(), 0) && notAbove(op.getEdgePaddingLow()) && notAbove(op.getEdgePaddingHigh()) &&
      from.hasStaticShape()) {
    SmallVector<int64_t> starts, limits, strides(from.getRank(), 1);
    for (int64_t i = 0; i < from.getRank(); ++i) {
      starts.push_back(-op.getEdgePaddingLow()[i]);
      limits.push_back(from.getDimSize(i) + op.getEdgePaddingHigh()[i]);
      if (limits.back() < starts.back())
        return failure();
    }
    r.replaceOp(op, makeSlice(r, op.getLoc(), type, op.getOperand(), starts, limits, strides));
    return success();
  }
  // pad of pad with the same value
  auto inner = op.getOperand().getDefiningOp<hlo::PadOp>();
  auto notBelow = [](ArrayRef<int64_t> list) { return llvm::all_of(list, [](int64_t v) { return v >= 0; }); };
  if (inner && value && splatElement(inner.getPaddingValue()) == value && allEqual(op.getInteriorPadding(), 0) &&
      allEqual(inner.getInteriorPadding(), 0) && notBelow(op.getEdgePaddingLow()) && notBelow(op.getEdgePaddingHigh()) &&
      notBelow(inner.getEdgePaddingLow()) && notBelow(inner.getEdgePaddingHigh())) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < type.getRank(); ++i) {
      low.push_back(op.getEdgePaddingLow()[i] + inner.getEdgePaddingLow()[i]);
      high.push_back(op.getEdgePaddingHigh()[i] + inner.getEdgePaddingHigh()[i]);
    }
    r.replaceOpWithNewOp<hlo::PadOp>(op, type, inner.getOperand(), op.getPaddingValue(), r.getDenseI64ArrayAttr(low),
                                     r.getDenseI64ArrayAttr(high), op.getInteriorPaddingAttr());
    return success();
  }
  return failure();
}

LogicalResult simplifyReverse(hlo::ReverseOp op, PatternRewriter &r) {
  auto type = cast<RankedTensorType>(op.getType());
  if (llvm::all_of(op.getDimensions(), [&](int64_t d) { return isOne(type, d); }) || splatElement(op.getOperand())) {
    r.replaceOp(op, op.getOperand());
    return success();
  }
  auto inner = op.getOperand().getDefiningOp<hlo::ReverseOp>();
  if (inner && inner.getDimensions() == op.getDimensions()) {
    r.replaceOp(op, inner.getOperand());
    return success();
  }
  return failure();
}

/// The start of a dynamic slice along one dimension when it is known.
std::optional<int64_t> startOf(Value v) {
  std::optional<double> number = splatNumber(v);
  if (!number || *number < -9e15 || *number > 9e15)
    return std::nullopt;
  return static_cast<int64_t>(*number);
}

LogicalResult simplifyDynamicSlice(hlo::DynamicSliceOp op, PatternRewriter &r) {
  auto from = cast<RankedTensorType>(op.getOperand().getType()), type = cast<RankedTensorType>(op.getType());
  if (from == type && hlo::hasKnownDims(type)) {
    r.replaceOp(op, op.getOperand());
    return success();
  }
  if (Attribute element = splatElement(op.getOperand())) {
    r.replaceOp(op, makeSplatLike(r, op.getLoc(), type, element));
    return success();
  }
  if (!from.hasStaticShape() || !type.hasStaticShape())
    return failure();
  SmallVector<int64_t> starts, limits, strides(from.getRank(), 1);
  for (auto [i, v] : llvm::enumerate(op.getStartIndices())) {
    int64_t room = from.getDimSize(i) - type.getDimSize(i);
    std::optional<int64_t> start = room == 0 ? 0 : startOf(v);
    if (!start)
      return failure();
    starts.push_back(std::clamp<int64_t>(*start, 0, room));
    limits.push_back(starts.back() + type.getDimSize(i));
  }
  r.replaceOp(op, makeSlice(r, op.getLoc(), type, op.getOperand(), starts, limits, strides));
  return success();
}

LogicalResult simplifyDynamicUpdateSlice(hlo::DynamicUpdateSliceOp op, PatternRewriter &r) {
  auto type = cast<RankedTensorType>(op.getType());
  if (op.getUpdate().getType() == type && hlo::hasKnownDims(type)) {
    r.replaceOp(op, op.getUpdate());
    return success();
  }
  if (cast<RankedTensorType>(op.getUpdate().getType()).hasStaticShape() &&
      cast<RankedTensorType>(op.getUpdate().getType()).getNumElements() == 0) {
    r.replaceOp(op, op.getOperand());
    return success();
  }
  return failure();
}

/// A number line with one entry is zero; lines along one dimension are broadcasts of a vector.
LogicalResult simplifyIota(hlo::IotaOp op, PatternRewriter &r) {
  auto type = cast<RankedTensorType>(op.getType());
  if (isa<ComplexType>(type.getElementType()) || !isOne(type, op.getIotaDimension()))
    return failure();
  r.replaceOp(op, hlo::makeSplat(r, op.getLoc(), 0.0, type));
  return success();
}

} // namespace

void lathe::populateMovePatterns(RewritePatternSet &patterns) {
  patterns.add(simplifySlice);
  patterns.add(simplifyConcat);
  patterns.add(simplifyPad);
  patterns.add(simplifyReverse);
  patterns.add(simplifyDynamicSlice);
  patterns.add(simplifyDynamicUpdateSlice);
  patterns.add(simplifyIota);
}
