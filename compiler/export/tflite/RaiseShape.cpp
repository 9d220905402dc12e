// Ops that move elements: RESHAPE, TRANSPOSE, BROADCAST_TO, CONCATENATION, SLICE, PAD, REVERSE_V2; sizes as data.
#include "compiler/export/tflite/Raiser.h"

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

using namespace mlir;

namespace lathe::tflwrite {
namespace {

RankedTensorType resultType(Operation *op) { return cast<RankedTensorType>(op->getResult(0).getType()); }

LogicalResult reshape(Operation *op, Raiser &r) { return r.replace(op, r.reshape(op->getOperand(0), resultType(op))); }

LogicalResult transpose(Operation *op, Raiser &r) {
  return r.replace(op, r.transpose(op->getOperand(0), cast<hlo::TransposeOp>(op).getPermutation()));
}

LogicalResult same(Operation *op, Raiser &r) { return r.replace(op, op->getOperands()); }

LogicalResult broadcast(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  if (type.getRank() > 8)
    return r.refuse("BROADCAST_TO takes at most 8 dimensions");
  Value x = r.narrow(op->getResult(0));
  if (x && hlo::tensorType(x) == type)
    return r.replace(op, x);
  return r.replace(op, x ? r.make("BROADCAST_TO", {x, r.sizes(hlo::getDims(type))}, type) : Value());
}

LogicalResult concatenate(Operation *op, Raiser &r) {
  auto concatenate = cast<hlo::ConcatenateOp>(op);
  return r.replace(op, r.make("CONCATENATION", op->getOperands(), resultType(op), {{"axis", r.number(concatenate.getDimension())}}));
}

LogicalResult slice(Operation *op, Raiser &r) {
  auto slice = cast<hlo::SliceOp>(op);
  return r.replace(op, r.slice(slice.getOperand(), slice.getStartExprs(), resultType(op), slice.getStrides()));
}

LogicalResult pad(Operation *op, Raiser &r) {
  auto pad = cast<hlo::PadOp>(op);
  Value x = pad.getOperand();
  if (llvm::any_of(pad.getInteriorPadding(), [](int64_t n) { return n != 0; })) {
    for (int64_t n : pad.getInteriorPadding())
      if (n < 0)
        return r.refuse("the padding within is negative");
    RankedTensorType type = hlo::tensorType(x);
    SmallVector<AffineExpr> dims;
    SmallVector<int64_t> dilations;
    for (auto [d, n] : llvm::enumerate(pad.getInteriorPadding())) {
      AffineExpr dim = hlo::getDim(type, d);
      if (type.isDynamicDim(d) && n != 0)
        return r.refuse("a size that is only known when the model runs");
      dims.push_back(n == 0 ? dim : r.expr(type.getDimSize(d) == 0 ? 0 : (type.getDimSize(d) - 1) * (n + 1) + 1));
      dilations.push_back(n + 1);
    }
    if (type.getRank() > 6)
      return r.refuse("DILATE takes at most 6 dimensions");
    x = r.make("DILATE", {x, r.numbers(dilations), pad.getPaddingValue()}, hlo::makeType(dims, type.getElementType()));
  }
  return r.replace(op, r.pad(x, pad.getEdgePaddingLow(), pad.getEdgePaddingHigh(), pad.getPaddingValue()));
}

LogicalResult reverse(Operation *op, Raiser &r) {
  return r.replace(op, r.reverse(op->getOperand(0), cast<hlo::ReverseOp>(op).getDimensions()));
}

LogicalResult iota(Operation *op, Raiser &r) {
  RankedTensorType type = resultType(op);
  const int64_t dim = cast<hlo::IotaOp>(op).getIotaDimension();
  AffineExpr size = hlo::getDim(type, dim);
  Type element = type.getElementType(), work = element;
  if (!element.isF32() && !element.isSignlessInteger(64))
    work = r.b.getI32Type();
  if (!size)
    return r.refuse("a size that is not known");
  Value end = r.size(size), none = Value();
  if (!end)
    return failure();
  ArrayRef<AffineExpr> scalar;
  end = r.cast(r.reshape(end, scalar), work);
  Value numbers = end ? r.make("RANGE", {r.scalar(0, work), end, r.scalar(1, work)}, hlo::makeType({size}, work)) : none;
  numbers = r.cast(numbers, element);
  if (!numbers || type.getRank() == 1)
    return r.replace(op, numbers);
  SmallVector<AffineExpr> dims(type.getRank() - dim, r.expr(1));
  dims[0] = size;
  numbers = r.reshape(numbers, dims);
  if (numbers && hlo::tensorType(numbers) == type)
    return r.replace(op, numbers);
  return r.replace(op, numbers ? r.make("BROADCAST_TO", {numbers, r.sizes(hlo::getDims(type))}, type) : none);
}

/// Sizes that the model computes with.
LogicalResult size(Operation *op, Raiser &r) {
  auto size = cast<hlo::SizeOp>(op);
  RankedTensorType type = resultType(op);
  Value v = r.sizes(size.getMap().getResults());
  return r.replace(op, r.cast(r.reshape(v, type.getRank() == 0 ? ArrayRef<AffineExpr>() : ArrayRef<AffineExpr>(hlo::getDims(type))), type.getElementType()));
}

LogicalResult setSize(Operation *op, Raiser &r) {
  if (!op->use_empty())
    return failure();
  return success(); // whoever asks for the size reads the operand
}

/// The operand under another name for its sizes.
LogicalResult assumeShape(Operation *op, Raiser &r) { return r.replace(op, r.reshape(op->getOperand(0), resultType(op))); }

LogicalResult bitcast(Operation *op, Raiser &r) {
  RankedTensorType from = hlo::tensorType(op->getOperand(0)), to = resultType(op);
  if (from.getElementTypeBitWidth() != to.getElementTypeBitWidth() || from.getElementTypeBitWidth() < 8)
    return r.refuse("the element types differ in width");
  return r.replace(op, r.make("BITCAST", op->getOperand(0), to));
}

} // namespace

void addShapeHandlers(HandlerTable &t) {
  const std::pair<const char *, Handler> all[] = {
      {"reshape", reshape}, {"transpose", transpose}, {"optimization_barrier", same}, {"broadcast_in_dim", broadcast},
      {"concatenate", concatenate}, {"slice", slice}, {"pad", pad}, {"reverse", reverse}, {"iota", iota}, {"size", size},
      {"set_size", setSize}, {"assume_shape", assumeShape}, {"bitcast_convert", bitcast}};
  for (auto &[name, handler] : all)
    t[name].push_back(handler);
}

} // namespace lathe::tflwrite
