// kernel.pool: windows over images with the lanes along the channels (see Window.h).
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Window.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;

namespace lathe::cpu {
namespace {

enum class Kind { Max, MaxNumber, Min, Sum, Average };

class PoolEmitter : WindowKernel {
public:
  PoolEmitter(Operation *op, KernelBuilder &b) : WindowKernel(op, b) {}
  void readPool(kernel::PoolOp pool);
  LogicalResult emit();

private:
  void emitPixel(Value x, Value channel, unsigned vecs, unsigned lanes);
  Value initial(unsigned lanes);
  Value combine(Value acc, Value x);

  Kind kind = Kind::Max;
};

void PoolEmitter::readPool(kernel::PoolOp pool) {
  input = cast<RankedTensorType>(pool.getInput().getType());
  StringRef name = pool.getKind();
  kind = name == "max"   ? Kind::Max
         : name == "max_number" ? Kind::MaxNumber
         : name == "min" ? Kind::Min
         : name == "sum" ? Kind::Sum
                         : Kind::Average;
  for (int64_t i = 0; i + 2 < input.getRank(); ++i) {
    WindowDim d;
    d.taps = b.i64(pool.getWindow()[i]);
    d.stride = pool.getStrides()[i];
    d.padLow = pool.getPadding()[2 * i];
    d.dilation = pool.getWindowDilation()[i];
    dims.push_back(d);
  }
  readTypes(1);
}

Value PoolEmitter::initial(unsigned lanes) {
  Type t = regType(accElem, lanes);
  if (kind == Kind::MaxNumber)
    return b.cst(t, APFloat::getLargest(cast<FloatType>(aElem).getFloatSemantics(), /*Negative=*/true).convertToDouble());
  if (kind != Kind::Max && kind != Kind::Min)
    return b.cst(t, 0.0);
  bool isMax = kind == Kind::Max;
  if (isa<FloatType>(getElementTypeOrSelf(t)))
    return b.cst(t, isMax ? -INFINITY : INFINITY);
  unsigned width = getElementTypeOrSelf(t).getIntOrFloatBitWidth();
  APInt v = isUnsignedElem(accElem) ? (isMax ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                                    : (isMax ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
  return b.cstI(t, v.getSExtValue());
}

Value PoolEmitter::combine(Value a, Value x) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(a.getType())), isUnsigned = isUnsignedElem(accElem);
  switch (kind) {
  case Kind::MaxNumber: // one instruction
    return arith::SelectOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, a), x, a);
  case Kind::Max:
    if (isFloat)
      return arith::MaximumFOp::create(b, a, x);
    return isUnsigned ? arith::MaxUIOp::create(b, a, x).getResult() : arith::MaxSIOp::create(b, a, x);
  case Kind::Min:
    if (isFloat)
      return arith::MinimumFOp::create(b, a, x);
    return isUnsigned ? arith::MinUIOp::create(b, a, x).getResult() : arith::MinSIOp::create(b, a, x);
  default:
    return isFloat ? arith::AddFOp::create(b, a, x).getResult() : arith::AddIOp::create(b, a, x);
  }
}

void PoolEmitter::emitPixel(Value x, Value channel, unsigned vecs, unsigned lanes) {
  setPosition(dims.back(), x);
  SmallVector<Value> accs(vecs, initial(lanes));
  accs = overTaps(dims.size(), accs, imageOffset, b.i64(0), [&](Value offset, Value, SmallVector<Value> now) {
    for (unsigned v = 0; v < vecs; ++v) {
      Value c = b.add(channel, b.i64(v * lanes));
      Value in = loadInput(offset, c, lanes);
      now[v] = combine(now[v], in);
    }
    return now;
  });
  if (kind == Kind::Average) {
    Value count = b.i64(1);
    for (WindowDim &d : dims)
      count = b.mul(count, b.max(b.sub(d.position.lastTap, d.position.firstTap), b.i64(0)));
    count = b.max(count, b.i64(1));
    bool isFloat = isa<FloatType>(regType(accElem));
    Value divisor = isFloat ? arith::SIToFPOp::create(b, regType(accElem), count).getResult()
                            : arith::TruncIOp::create(b, regType(accElem), count);
    for (Value &a : accs)
      a = isFloat ? arith::DivFOp::create(b, a, b.splat(divisor, lanes)).getResult()
                  : arith::DivSIOp::create(b, a, b.splat(divisor, lanes));
  }
  auto index = [&](Value) {
    SmallVector<Value> at(outIndex);
    at.append({x, channel});
    return at;
  };
  if (failed(epilogue.emitTile({1, vecs, lanes}, accs, acc.getRank() - 1, Value(), index)))
    ok = failure();
}

LogicalResult PoolEmitter::emit() {
  int64_t taps = 1;
  for (WindowDim &d : dims)
    taps *= d.tapSize.value_or(3);
  b.setWork(2 * taps * channelCount.value_or(64) * (dims.empty() ? 1 : dims.back().outSize.value_or(64)));
  prepareRows();
  b.units([&](Value unit) {
    setRow(unit);
    forEachChannel(4, [&](Value c, unsigned vecs, unsigned lanes) {
      b.loop(b.i64(0), dims.back().out, [&](Value x) { emitPixel(x, c, vecs, lanes); });
    });
  });
  return ok;
}

} // namespace

LogicalResult emitPool(Operation *op, KernelBuilder &b) {
  auto pool = cast<kernel::PoolOp>(op);
  if (isa<ComplexType>(pool.getAccType().getElementType()))
    return op->emitOpError("pooling of complex numbers is not supported on CPUs");
  if (pool.getAccType().getRank() < 3)
    return op->emitOpError("pooling needs a spatial dimension");
  PoolEmitter emitter(op, b);
  emitter.readPool(pool);
  return emitter.emit();
}

} // namespace lathe::cpu
