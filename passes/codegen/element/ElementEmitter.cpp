// Elements of tensors computed by hlo ops: index arithmetic for the ops that move data, emitElementwise for the rest.
#include "passes/codegen/element/Complex.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/Gelu.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/LongSums.h"
#include "passes/codegen/element/NarrowFloat.h"
#include "passes/codegen/element/Reducer.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

void ElementEmitter::clearCache() {
  cache.clear();
  order.clear();
}

void ElementEmitter::forgetFrom(size_t mark) {
  while (order.size() > mark) {
    cache.erase(order.back());
    order.pop_back();
  }
}

bool ElementEmitter::canVectorize(Value root) {
  SmallVector<Value> work{root};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (!seen.insert(v).second)
      continue;
    auto t = dyn_cast<RankedTensorType>(v.getType());
    if (!t)
      return false;
    Operation *op = v.getDefiningOp();
    auto isComplex = [](Value v) { return isa<ComplexType>(elementType(v)); };
    if (op && (isComplex(v) || llvm::any_of(op->getOperands(), isComplex)) &&
        (isElementwise(op)
             ? !hasVectors(op)
             : !isa<hlo::BroadcastInDimOp, hlo::BroadcastOp, hlo::ReshapeOp, hlo::SliceOp,
                    hlo::DynamicSliceOp, hlo::TransposeOp, hlo::PadOp, hlo::ReverseOp, hlo::ConcatenateOp,
                    hlo::GatherOp, hlo::ConstantOp, hlo::OptimizationBarrierOp, hlo::AssumeShapeOp>(op)))
      return false;
    if (op)
      work.append(op->operand_begin(), op->operand_end());
  }
  return true;
}

FailureOr<Value> ElementEmitter::emit(Value tensor, Index index, unsigned lanes) {
  Key key{tensor, {}};
  for (Value i : index)
    key.second.push_back(i.getAsOpaquePointer());
  key.second.push_back(reinterpret_cast<void *>(uintptr_t(lanes)));
  key.second.push_back(mask ? mask.getAsOpaquePointer() : nullptr);
  if (auto it = cache.find(key); it != cache.end())
    return it->second;
  FailureOr<Value> r = compute(tensor, index, lanes);
  if (failed(r))
    return failure();
  if (!*r) { // consecutive elements are not consecutive further up
    if (lanes == 1)
      return emitError(b.getLoc()) << "no CPU code for an element of " << tensor.getType();
    r = laneByLane(tensor, index, lanes);
    if (failed(r))
      return failure();
  }
  cache[key] = *r;
  order.push_back(key);
  return r;
}

FailureOr<Value> ElementEmitter::emitSplat(Value tensor, unsigned lanes) {
  SmallVector<Value> zero(tensorType(tensor).getRank(), b.i64(0));
  Value m = std::exchange(mask, Value());
  FailureOr<Value> r = emit(tensor, zero, 1);
  mask = m;
  if (failed(r))
    return failure();
  return b.splatElem(elementType(tensor), *r, lanes);
}

FailureOr<Value> ElementEmitter::laneByLane(Value tensor, Index index, unsigned lanes) {
  Type elem = elementType(tensor);
  Value buffer = b.alloca(lanes * elemBytes(elem));
  Value m = std::exchange(mask, Value());
  Value maskBuffer;
  if (m) {
    maskBuffer = b.alloca(lanes);
    Type boolType = b.getI1Type();
    b.storeElem(boolType, m, maskBuffer, b.i64(0));
    b.storeElem(elem, b.cstI(regType(elem, lanes), 0), buffer, b.i64(0));
  }
  LogicalResult ok = success();
  b.loop(b.i64(0), b.i64(lanes), [&](Value lane) {
    auto one = [&] {
      Scope scope(*this);
      SmallVector<Value> at(index);
      at.back() = b.add(at.back(), lane);
      FailureOr<Value> v = emit(tensor, at, 1);
      if (failed(v)) {
        ok = failure();
        return;
      }
      b.storeElem(elem, *v, buffer, lane);
    };
    if (!m)
      return one();
    b.ifThen(b.loadElem(b.getI1Type(), maskBuffer, lane), one);
  });
  mask = m;
  if (failed(ok))
    return failure();
  return b.loadElem(elem, buffer, b.i64(0), lanes);
}

FailureOr<Value> ElementEmitter::branch(Value cond, Type type, llvm::function_ref<FailureOr<Value>()> then,
                                        llvm::function_ref<FailureOr<Value>()> otherwise) {
  LogicalResult ok = success();
  auto run = [&](llvm::function_ref<FailureOr<Value>()> f) {
    Scope scope(*this);
    FailureOr<Value> v = f();
    if (failed(v)) {
      ok = failure();
      return SmallVector<Value>{b.cstI(type, 0)};
    }
    return SmallVector<Value>{*v};
  };
  SmallVector<Value> r = b.ifElse(cond, type, [&] { return run(then); }, [&] { return run(otherwise); });
  if (failed(ok))
    return failure();
  return r[0];
}

FailureOr<Value> ElementEmitter::loadBuffer(Value tensor, const Buffer &buffer, Index index, unsigned lanes) {
  Type elem = elementType(tensor);
  if (index.empty() && lanes > 1)
    return emitSplat(tensor, lanes);
  SmallVector<Value> dims = b.rowDims(tensorType(tensor), buffer.row);
  return b.loadElem(elem, buffer.ptr, b.linearize(index, dims), lanes, mask);
}

FailureOr<Value> ElementEmitter::compute(Value tensor, Index index, unsigned lanes) {
  if (auto it = producers.find(tensor); it != producers.end())
    return it->second(index, lanes);
  if (auto it = buffers.find(tensor); it != buffers.end())
    return loadBuffer(tensor, it->second, index, lanes);
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return emitError(b.getLoc()) << "no CPU code: a region argument is bound to nothing";
  if (std::optional<Gelu> gelu = matchGelu(op); gelu && hasGelu(b, lanes)) {
    FailureOr<Value> x = emit(gelu->x, index, lanes);
    return failed(x) ? x : FailureOr<Value>(emitGelu(b, *x, *gelu));
  }
  if (Value x = matchSwish(op); x && hasSwish(b, lanes)) {
    FailureOr<Value> v = emit(x, index, lanes);
    return failed(v) ? v : FailureOr<Value>(emitSwish(b, *v));
  }
  if (isElementwise(op)) {
    SmallVector<Value> in;
    for (Value v : op->getOperands()) {
      bool scalar = tensorType(v).getRank() == 0 && !index.empty();
      FailureOr<Value> r = scalar ? emitSplat(v, lanes) : emit(v, index, lanes);
      if (failed(r))
        return failure();
      in.push_back(*r);
    }
    return emitElementwise(b, op, in, lanes);
  }
  return llvm::TypeSwitch<Operation *, FailureOr<Value>>(op)
      .Case<hlo::ConstantOp>([&](auto) { return constant(op, index, lanes); })
      .Case<hlo::BroadcastInDimOp, hlo::BroadcastOp>([&](auto) { return broadcast(op, index, lanes); })
      .Case<hlo::ReshapeOp>([&](auto) { return reshape(op, index, lanes); })
      .Case<hlo::TransposeOp>([&](auto) { return transpose(op, index, lanes); })
      .Case<hlo::SliceOp>([&](auto) { return slice(op, index, lanes); })
      .Case<hlo::DynamicSliceOp>([&](auto) { return dynamicSlice(op, index, lanes); })
      .Case<hlo::DynamicUpdateSliceOp>([&](auto) { return dynamicUpdateSlice(op, index, lanes); })
      .Case<hlo::PadOp>([&](auto) { return pad(op, index, lanes); })
      .Case<hlo::ConcatenateOp>([&](auto) { return concatenate(op, index, lanes); })
      .Case<hlo::IotaOp>([&](auto) { return iota(op, index, lanes); })
      .Case<hlo::ReverseOp>([&](auto) { return reverse(op, index, lanes); })
      .Case<hlo::GatherOp>([&](auto) { return gather(op, index, lanes); })
      .Case<hlo::ReduceOp>([&](auto) { return reduce(tensor, index, lanes); })
      .Case<hlo::SizeOp, hlo::GetDimensionSizeOp>([&](auto) { return size(op, index, lanes); })
      .Case<hlo::OptimizationBarrierOp>([&](auto) {
        return emit(op->getOperand(cast<OpResult>(tensor).getResultNumber()), index, lanes);
      })
      .Case<hlo::BitcastConvertOp>([&](auto) { return bitcast(op, index, lanes); })
      .Case<hlo::AssumeShapeOp>([&](auto) { return emit(op->getOperand(0), index, lanes); })
      .Case<hlo::MapOp>([&](hlo::MapOp m) -> FailureOr<Value> {
        SmallVector<Value> in;
        for (Value v : m.getInputs()) {
          FailureOr<Value> r = emit(v, index, lanes);
          if (failed(r))
            return failure();
          in.push_back(*r);
        }
        auto out = emitScalarBody(b, m.getComputation().front(), in, lanes);
        if (failed(out))
          return failure();
        return out->front();
      })
      .Default([&](Operation *o) -> FailureOr<Value> {
        return o->emitError() << "no elementwise CPU code for " << o->getName();
      });
}

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

FailureOr<Value> ElementEmitter::broadcast(Operation *op, Index index, unsigned lanes) {
  Value x = op->getOperand(0);
  auto in = tensorType(x), out = tensorType(op->getResult(0));
  SmallVector<int64_t> map;
  if (auto bid = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    map.assign(bid.getBroadcastDimensions().begin(), bid.getBroadcastDimensions().end());
  } else {
    for (int64_t i = 0; i < in.getRank(); ++i)
      map.push_back(out.getRank() - in.getRank() + i);
  }
  auto inDims = hlo::getDims(in), outDims = hlo::getDims(out);
  SmallVector<Value> at;
  int along = -1; // operand dimension that follows the result's last
  for (int64_t i = 0; i < in.getRank(); ++i) {
    bool one = hlo::constantValue(inDims[i]) == 1;
    at.push_back(one ? b.i64(0) : index[map[i]]);
    if (!one && map[i] == out.getRank() - 1)
      along = i;
  }
  if (lanes == 1)
    return emit(x, at, 1);
  if (along < 0) {
    Value m = std::exchange(mask, Value());
    FailureOr<Value> r = emit(x, at, 1);
    mask = m;
    if (failed(r))
      return failure();
    return b.splatElem(elementType(x), *r, lanes);
  }
  if (along == in.getRank() - 1)
    return emit(x, at, lanes);
  return Value();
}

FailureOr<Value> ElementEmitter::reshape(Operation *op, Index index, unsigned lanes) {
  Value x = op->getOperand(0);
  auto in = tensorType(x), out = tensorType(op->getResult(0));
  auto inDims = hlo::getDims(in), outDims = hlo::getDims(out);
  if (in.getRank() == 0)
    return lanes == 1 ? emit(x, {}, 1) : emitSplat(x, lanes);
  // equal trailing sizes keep their indices; dimensions of size 1 are skipped on either side
  int64_t i = in.getRank() - 1, o = out.getRank() - 1;
  SmallVector<Value> at(in.getRank());
  int64_t lastIn = -1; // operand dimension that gets the result's last index
  while (i >= 0 && o >= 0) {
    if (hlo::equalDims(inDims[i], outDims[o])) {
      at[i] = index[o];
      if (o == out.getRank() - 1)
        lastIn = i;
      --i;
      --o;
    } else if (hlo::constantValue(inDims[i]) == 1) {
      at[i--] = b.i64(0);
    } else if (hlo::constantValue(outDims[o]) == 1) {
      --o;
    } else {
      break;
    }
  }
  while (i >= 0 && hlo::constantValue(inDims[i]) == 1)
    at[i--] = b.i64(0);
  if (i >= 0) {
    SmallVector<Value> od, id;
    for (int64_t k = 0; k <= o; ++k)
      od.push_back(b.dim(outDims[k]));
    for (int64_t k = 0; k <= i; ++k)
      id.push_back(b.dim(inDims[k]));
    Value linear = b.linearize(index.take_front(o + 1), od);
    SmallVector<Value> lead = b.delinearize(linear, id);
    for (int64_t k = 0; k <= i; ++k)
      at[k] = lead[k];
  }
  if (lanes == 1)
    return emit(x, at, 1);
  bool consecutive = lastIn == in.getRank() - 1;
  // a dense buffer is consecutive whatever its shape
  if (auto buffer = buffers.find(x);
      consecutive || (buffer != buffers.end() && !buffer->second.row && !producers.count(x)))
    return emit(x, at, lanes);
  return Value();
}

FailureOr<Value> ElementEmitter::transpose(Operation *op, Index index, unsigned lanes) {
  auto t = cast<hlo::TransposeOp>(op);
  ArrayRef<int64_t> perm = t.getPermutation();
  SmallVector<Value> at(perm.size());
  for (auto [i, p] : llvm::enumerate(perm))
    at[p] = index[i];
  if (lanes > 1 && !perm.empty() && perm.back() != int64_t(perm.size()) - 1)
    return Value();
  return emit(t.getOperand(), at, lanes);
}

FailureOr<Value> ElementEmitter::slice(Operation *op, Index index, unsigned lanes) {
  auto s = cast<hlo::SliceOp>(op);
  auto starts = s.getStartExprs();
  ArrayRef<int64_t> strides = s.getStrides();
  if (lanes > 1 && strides.back() != 1)
    return Value();
  SmallVector<Value> at;
  for (auto [i, v] : llvm::enumerate(index))
    at.push_back(b.add(b.mul(v, b.i64(strides[i])), b.dim(starts[i])));
  return emit(s.getOperand(), at, lanes);
}

/// An index operand's value as i64.
static Value asI64(KernelBuilder &b, Type elem, Value v) {
  if (v.getType().getIntOrFloatBitWidth() == 64)
    return v;
  return isUnsignedElem(elem) ? Value(arith::ExtUIOp::create(b, b.getI64Type(), v))
                              : Value(arith::ExtSIOp::create(b, b.getI64Type(), v));
}

FailureOr<Value> ElementEmitter::dynamicSlice(Operation *op, Index index, unsigned lanes) {
  auto s = cast<hlo::DynamicSliceOp>(op);
  SmallVector<Value> dims = b.dims(tensorType(s.getOperand())), sizes = b.dims(tensorType(s.getResult()));
  SmallVector<Value> at;
  for (auto [i, start] : llvm::enumerate(s.getStartIndices())) {
    FailureOr<Value> v = emitSplat(start, 1);
    if (failed(v))
      return failure();
    Value from = b.max(b.min(asI64(b, elementType(start), *v), b.sub(dims[i], sizes[i])), b.i64(0));
    at.push_back(b.add(from, index[i]));
  }
  return emit(s.getOperand(), at, lanes);
}

FailureOr<Value> ElementEmitter::dynamicUpdateSlice(Operation *op, Index index, unsigned lanes) {
  auto s = cast<hlo::DynamicUpdateSliceOp>(op);
  auto in = tensorType(s.getOperand()), up = tensorType(s.getUpdate());
  if (in.getRank() == 0)
    return emit(s.getUpdate(), index, lanes);
  bool wholeRows = hlo::equalDims(hlo::getDims(in).back(), hlo::getDims(up).back());
  if (lanes > 1 && !wholeRows)
    return Value();
  SmallVector<Value> dims = b.dims(in), sizes = b.dims(up), at;
  Value inside = b.cstI(b.getI1Type(), 1);
  for (auto [i, start] : llvm::enumerate(s.getStartIndices())) {
    if (wholeRows && i + 1 == index.size()) {
      at.push_back(index[i]);
      break;
    }
    FailureOr<Value> v = emitSplat(start, 1);
    if (failed(v))
      return failure();
    Value from = b.max(b.min(asI64(b, elementType(start), *v), b.sub(dims[i], sizes[i])), b.i64(0));
    at.push_back(b.sub(index[i], from));
    inside = b.both(inside, b.inRange(at.back(), b.i64(0), sizes[i]));
  }
  return branch(inside, regType(elementType(op->getResult(0)), lanes),
                [&] { return emit(s.getUpdate(), at, lanes); },
                [&] { return emit(s.getOperand(), index, lanes); });
}

FailureOr<Value> ElementEmitter::pad(Operation *op, Index index, unsigned lanes) {
  auto p = cast<hlo::PadOp>(op);
  auto in = tensorType(p.getOperand());
  int64_t rank = in.getRank();
  if (rank == 0)
    return emit(p.getOperand(), index, lanes);
  SmallVector<Value> dims = b.dims(in), at;
  Value inside; // uniform part
  Value lastMask;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t low = p.getEdgePaddingLow()[i], high = p.getEdgePaddingHigh()[i], gap = p.getInteriorPadding()[i];
    Value pos = b.sub(index[i], b.i64(low));
    if (low <= 0 && high <= 0 && gap == 0) {
      at.push_back(pos);
      continue;
    }
    if (lanes > 1 && i == rank - 1) {
      if (gap)
        return Value();
      // lane l is inside when 0 <= pos + l < n
      SmallVector<int64_t> iota(lanes);
      for (unsigned l = 0; l < lanes; ++l)
        iota[l] = l;
      auto vec = VectorType::get({int64_t(lanes)}, b.getI64Type());
      E lane(b, arith::ConstantOp::create(b, vec, DenseElementsAttr::get(vec, ArrayRef<int64_t>(iota))));
      E where = lane + E(b, b.splat(pos, lanes));
      E valid = cmpI(arith::CmpIPredicate::ult, where, E(b, b.splat(dims[i], lanes)));
      lastMask = mask ? valid & E(b, mask) : valid;
      at.push_back(pos);
      continue;
    }
    Value ok = b.ge(pos, b.i64(0));
    if (gap) {
      Value step = b.i64(gap + 1);
      // pos may be negative: the remainder is only used when it is not
      Value rem = arith::RemUIOp::create(b, pos, step);
      ok = b.both(ok, b.eq(rem, b.i64(0)));
      pos = arith::DivUIOp::create(b, pos, step);
    }
    ok = b.both(ok, b.lt(pos, dims[i]));
    inside = inside ? b.both(inside, ok) : ok;
    at.push_back(pos);
  }
  auto whole = [&]() -> FailureOr<Value> {
    if (!lastMask)
      return emit(p.getOperand(), at, lanes);
    FailureOr<Value> fill = emitSplat(p.getPaddingValue(), lanes);
    Value m = std::exchange(mask, lastMask);
    FailureOr<Value> v = emit(p.getOperand(), at, lanes);
    mask = m;
    if (failed(v) || failed(fill))
      return failure();
    if (isa<ComplexType>(in.getElementType()))
      return selectComplex(b, lastMask, *v, *fill);
    return Value(arith::SelectOp::create(b, lastMask, *v, *fill));
  };
  if (!inside)
    return whole();
  return branch(inside, regType(in.getElementType(), lanes), whole,
                [&] { return emitSplat(p.getPaddingValue(), lanes); });
}

FailureOr<Value> ElementEmitter::concatenate(Operation *op, Index index, unsigned lanes) {
  auto c = cast<hlo::ConcatenateOp>(op);
  int64_t d = c.getDimension();
  bool alongLast = d == int64_t(index.size()) - 1;
  Type type = regType(elementType(op->getResult(0)), lanes);
  Value pos = index[d], offset = b.i64(0);
  // tried in order; with lanes along the dimension a vector may straddle two inputs
  std::function<FailureOr<Value>(unsigned, Value)> from = [&](unsigned k, Value start) -> FailureOr<Value> {
    auto inputs = c.getInputs();
    auto one = [&]() -> FailureOr<Value> {
      SmallVector<Value> at(index);
      at[d] = b.sub(pos, start);
      return emit(inputs[k], at, lanes);
    };
    bool vectors = lanes > 1 && alongLast;
    if (k + 1 == inputs.size() && !vectors)
      return one();
    Value end = b.add(start, b.dim(hlo::getDim(tensorType(inputs[k]), d)));
    Value cond = b.lt(pos, end);
    if (vectors)
      cond = b.both(b.ge(pos, start), b.ge(end, b.add(pos, b.i64(lanes))));
    return branch(cond, type, one, [&]() -> FailureOr<Value> {
      if (k + 1 == inputs.size())
        return laneByLane(op->getResult(0), index, lanes);
      return from(k + 1, end);
    });
  };
  return from(0, offset);
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

FailureOr<Value> ElementEmitter::reverse(Operation *op, Index index, unsigned lanes) {
  auto r = cast<hlo::ReverseOp>(op);
  SmallVector<Value> dims = b.dims(tensorType(r.getOperand())), at(index);
  bool last = false;
  for (int64_t d : r.getDimensions()) {
    if (lanes > 1 && d == int64_t(index.size()) - 1) {
      last = true;
      continue;
    }
    at[d] = b.sub(b.sub(dims[d], b.i64(1)), index[d]);
  }
  if (!last)
    return emit(r.getOperand(), at, lanes);
  if (mask)
    return Value();
  at.back() = b.sub(b.sub(dims.back(), b.i64(lanes)), index.back());
  FailureOr<Value> v = emit(r.getOperand(), at, lanes);
  if (failed(v))
    return failure();
  SmallVector<int64_t> pick;
  for (int l = lanes - 1; l >= 0; --l)
    pick.push_back(l);
  if (lanesOf(v->getType()) > lanes) // imaginary parts
    for (int l = lanes - 1; l >= 0; --l)
      pick.push_back(lanes + l);
  return Value(vector::ShuffleOp::create(b, *v, *v, pick));
}

FailureOr<Value> ElementEmitter::gather(Operation *op, Index index, unsigned lanes) {
  auto g = cast<hlo::GatherOp>(op);
  auto d = g.getDimensionNumbers();
  auto in = tensorType(g.getOperand()), starts = tensorType(g.getStartIndices());
  int64_t rank = in.getRank(), outRank = index.size();
  SmallVector<int64_t> kept; // operand dimensions that have an offset dimension
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(d.getCollapsedSliceDims(), i) && !llvm::is_contained(d.getOperandBatchingDims(), i))
      kept.push_back(i);
  bool lastIsOffset = !d.getOffsetDims().empty() && d.getOffsetDims().back() == outRank - 1;
  if (lanes > 1 && !(lastIsOffset && kept.back() == rank - 1))
    return Value();
  SmallVector<Value> batch;
  for (int64_t i = 0; i < outRank; ++i)
    if (!llvm::is_contained(d.getOffsetDims(), i))
      batch.push_back(index[i]);
  SmallVector<Value> dims = b.dims(in), outDims = b.dims(tensorType(g.getResult())), at(rank, b.i64(0));
  int64_t vectorDim = d.getIndexVectorDim();
  // start_indices position of the batch index
  auto startAt = [&](Value k) {
    SmallVector<Value> p;
    unsigned next = 0;
    for (int64_t i = 0; i < starts.getRank(); ++i)
      p.push_back(i == vectorDim ? k : batch[next++]);
    return p;
  };
  auto sliceSize = [&](int64_t dim) -> Value {
    int64_t s = g.getSliceSizes()[dim];
    return s == ShapedType::kDynamic ? dims[dim] : b.i64(s);
  };
  for (auto [k, dim] : llvm::enumerate(d.getStartIndexMap())) {
    Value m = std::exchange(mask, Value());
    FailureOr<Value> v = emit(g.getStartIndices(), startAt(b.i64(k)), 1);
    mask = m;
    if (failed(v))
      return failure();
    Value s = asI64(b, starts.getElementType(), *v);
    at[dim] = b.max(b.min(s, b.sub(dims[dim], sliceSize(dim))), b.i64(0));
  }
  for (auto [i, dim] : llvm::enumerate(d.getOperandBatchingDims())) {
    int64_t sd = d.getStartIndicesBatchingDims()[i];
    at[dim] = batch[sd > vectorDim ? sd - 1 : sd];
  }
  for (auto [i, dim] : llvm::enumerate(kept))
    at[dim] = b.add(at[dim], index[d.getOffsetDims()[i]]);
  return emit(g.getOperand(), at, lanes);
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
