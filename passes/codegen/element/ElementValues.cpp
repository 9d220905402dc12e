// Elements that ops make rather than move: constants, numbers of places, sizes, bits read as another type, reductions.
#include "passes/codegen/element/ElementEmitter.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/LongSums.h"
#include "passes/codegen/element/NarrowFloat.h"
#include "passes/codegen/element/Reducer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cstring>
#include <functional>

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

FailureOr<Value> ElementEmitter::constant(Operation *op, Index index, unsigned lanes) {
  ElementsAttr attr = cast<hlo::ConstantOp>(op).getValue();
  Type elem = elementType(op->getResult(0));
  // one element of a splat says all; spread out it would take the size of the tensor, for every use
  if (auto dense = dyn_cast<DenseElementsAttr>(attr); dense && dense.isSplat() && dense.getNumElements() > 1)
    attr = dense.resizeSplat(RankedTensorType::get({1}, dense.getElementType()));
  FailureOr<Tensor> data = hlo::readConstant(attr);
  if (failed(data))
    return op->emitError() << "constant of unknown storage";
  const char *bytes = static_cast<const char *>(data->data());
  int64_t size = elemBytes(elem), count = data->numElements();
  bool uniform = attr.isSplat() || count == 1;
  if (!uniform) {
    uniform = true;
    for (int64_t i = 1; i < count && uniform; ++i)
      uniform = std::memcmp(bytes, bytes + i * size, size) == 0;
  }
  if (!uniform || isa<ComplexType>(elem)) {
    Value ptr = b.constantData(llvm::StringRef(bytes, uniform && count ? size : size * count));
    if (uniform)
      return b.splatElem(elem, b.loadElem(elem, ptr, b.i64(0)), lanes);
    bindBuffer(op->getResult(0), ptr);
    return loadBuffer(op->getResult(0), {ptr, 0}, index, lanes);
  }
  Type t = regType(elem, lanes);
  if (count == 0)
    return b.cstI(t, 0);
  if (isa<IntegerType>(elem)) {
    int64_t v = 0;
    std::memcpy(&v, bytes, size);
    return b.cstI(t, elem.isInteger(1) ? v != 0 : v);
  }
  // the bits as a number of the type, exactly widened to the register's
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, size);
  auto f = cast<FloatType>(elem);
  APFloat value(f.getFloatSemantics(), APInt(f.getWidth(), bits));
  bool lost;
  auto reg = cast<FloatType>(getElementTypeOrSelf(t));
  value.convert(reg.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  return b.cstBits(t, value.bitcastToAPInt().getZExtValue());
}

FailureOr<Value> ElementEmitter::iota(Operation *op, Index index, unsigned lanes) {
  int64_t d = cast<hlo::IotaOp>(op).getIotaDimension();
  Type elem = elementType(op->getResult(0));
  if (lanes == 1 || d != int64_t(index.size()) - 1) {
    Value v = emitConvert(b, index[d], b.getI64Type(), elem);
    return b.splatElem(elem, v, lanes);
  }
  SmallVector<int64_t> lane(lanes);
  for (unsigned l = 0; l < lanes; ++l)
    lane[l] = l;
  auto vec = VectorType::get({int64_t(lanes)}, b.getI64Type());
  E base(b, b.splat(index[d], lanes));
  E v = base + E(b, arith::ConstantOp::create(b, vec, DenseElementsAttr::get(vec, ArrayRef<int64_t>(lane))));
  return emitConvert(b, v, b.getI64Type(), elem);
}

FailureOr<Value> ElementEmitter::reduce(Value result, Index index, unsigned lanes) {
  auto r = cast<hlo::ReduceOp>(result.getDefiningOp());
  if (lanes > 1 && llvm::is_contained(r.getDimensions(), tensorType(r.getInputs()[0]).getRank() - 1))
    return Value();
  FailureOr<SmallVector<Value>> all = emitReduction(r, index, lanes);
  if (failed(all))
    return failure();
  return (*all)[cast<OpResult>(result).getResultNumber()];
}

FailureOr<SmallVector<Value>> ElementEmitter::emitReduction(hlo::ReduceOp r, Index index, unsigned lanes) {
  auto in = tensorType(r.getInputs()[0]);
  ArrayRef<int64_t> reduced = r.getDimensions();
  SmallVector<Value> dims = b.dims(in), at(in.getRank());
  unsigned next = 0;
  SmallVector<int64_t> over;
  for (int64_t i = 0; i < in.getRank(); ++i) {
    if (llvm::is_contained(reduced, i))
      over.push_back(i);
    else
      at[i] = index[next++];
  }
  SmallVector<Value> acc;
  for (Value init : r.getInitValues()) {
    FailureOr<Value> v = emitSplat(init, lanes);
    if (failed(v))
      return failure();
    acc.push_back(*v);
  }
  LogicalResult ok = success();
  SmallVector<Type> elems;
  for (Value v : r.getInputs())
    elems.push_back(elementType(v));
  const Reducer reducer(b, r.getBody().front(), elems, acc);
  std::function<SmallVector<Value>(unsigned, ValueRange)> nest = [&](unsigned level, ValueRange acc) {
    if (level < over.size()) {
      SmallVector<Value> inner;
      for (int64_t d : ArrayRef<int64_t>(over).drop_front(level + 1))
        inner.push_back(dims[d]);
      return reduceLoop(b, reducer, b.i64(0), dims[over[level]], 1, additionsIn(inner), acc, [&](Value iv, ValueRange a) {
        at[over[level]] = iv;
        return nest(level + 1, a);
      });
    }
    Scope scope(*this);
    SmallVector<Value> args(acc);
    for (Value x : r.getInputs()) {
      FailureOr<Value> v = emit(x, at, lanes);
      if (failed(v)) {
        ok = failure();
        return SmallVector<Value>(acc);
      }
      args.push_back(*v);
    }
    auto out = emitScalarBody(b, r.getBody().front(), args, lanes);
    if (failed(out)) {
      ok = failure();
      return SmallVector<Value>(acc);
    }
    return *out;
  };
  SmallVector<Value> out = nest(0, acc);
  if (failed(ok))
    return failure();
  return out;
}

FailureOr<Value> ElementEmitter::bitcast(Operation *op, Index index, unsigned lanes) {
  Type in = elementType(op->getOperand(0)), out = elementType(op->getResult(0));
  if (isa<ComplexType>(in) != isa<ComplexType>(out) ||
      (!isa<ComplexType>(in) && in.getIntOrFloatBitWidth() != out.getIntOrFloatBitWidth()) ||
      (isa<ComplexType>(in) && in != out))
    return op->emitError() << "no elementwise CPU code for a bitcast from " << in << " to " << out;
  FailureOr<Value> v = emit(op->getOperand(0), index, lanes);
  if (failed(v) || in == out)
    return v;
  auto narrow = [](Type t) { return isa<FloatType>(t) && t.getIntOrFloatBitWidth() < 32; };
  Value bits = *v;
  if (narrow(in))
    bits = f32ToNarrow(b, cast<FloatType>(in), bits);
  else if (isa<FloatType>(in))
    bits = E(b, bits).bits();
  if (narrow(out))
    return narrowToF32(b, cast<FloatType>(out), bits);
  if (isa<FloatType>(out))
    return E(b, bits).asFloat().v;
  return bits;
}

FailureOr<Value> ElementEmitter::size(Operation *op, Index index, unsigned lanes) {
  Type elem = elementType(op->getResult(0));
  Value v;
  if (auto g = dyn_cast<hlo::GetDimensionSizeOp>(op)) {
    v = b.dim(hlo::getDim(tensorType(g.getOperand()), g.getDimension()));
  } else {
    AffineMap map = cast<hlo::SizeOp>(op).getMap();
    if (lanes > 1 && !index.empty())
      return Value();
    v = b.dim(map.getResult(0));
    for (unsigned i = 1; i < map.getNumResults(); ++i)
      v = b.select(b.eq(index[0], b.i64(i)), b.dim(map.getResult(i)), v);
  }
  return b.splatElem(elem, emitConvert(b, v, b.getI64Type(), elem), lanes);
}

} // namespace lathe::codegen
