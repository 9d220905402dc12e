// Elements that ops move to places known when the code is made: which element of which operand it is.
#include "passes/codegen/element/ElementEmitter.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/Complex.h"
#include "passes/codegen/element/Expr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>
#include <utility>

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

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

} // namespace lathe::codegen
