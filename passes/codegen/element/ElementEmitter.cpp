// Elements of tensors computed by hlo ops: what has been emitted already, buffers, lanes one by one, and which function knows an op.
#include "passes/codegen/element/ElementEmitter.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Marks.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/Complex.h"
#include "passes/codegen/element/Gelu.h"
#include "passes/codegen/element/HighProduct.h"
#include "passes/codegen/element/Shortcut.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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

/// The product that an addition takes as it is; null for other ops.
static Value contracted(KernelBuilder &b, Operation *op) {
  if (!b.target.fma || !isa<hlo::AddOp>(op) || !op->hasAttr(hlo::contractAttr) || !elementType(op->getResult(0)).isF32())
    return {};
  const int64_t rank = tensorType(op->getResult(0)).getRank();
  for (Value v : op->getOperands())
    if (auto mul = v.getDefiningOp<hlo::MulOp>(); mul && llvm::all_of(mul->getOperands(), [&](Value f) { return tensorType(f).getRank() == rank; }))
      return v;
  return {};
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
  if (std::optional<HighProduct> product; lanes > 1 && hasHighProduct(b, lanes) && (product = matchHighProduct(op))) {
    FailureOr<Value> x = emit(product->x, index, lanes), y = emit(product->y, index, lanes);
    return failed(x) || failed(y) ? FailureOr<Value>(failure()) : FailureOr<Value>(emitHighProduct(b, *x, *y));
  }
  if (isShortcut(op)) {
    auto select = cast<hlo::SelectOp>(op);
    if (lanes == 1 || tensorType(select.getPred()).getRank() != tensorType(tensor).getRank())
      return emit(select.getOnTrue(), index, lanes);
    FailureOr<Value> quick = emit(select.getOnFalse(), index, lanes),
                     any = seldomAny(b, select, 1, [&](Value v, unsigned) { return emit(v, index, lanes); });
    if (failed(quick) || failed(any))
      return failure();
    return branch(
        *any, quick->getType(), [&] { return emit(select.getOnTrue(), index, lanes); }, [&] { return quick; });
  }
  if (Value product = contracted(b, op)) {
    SmallVector<Value> in;
    auto mul = product.getDefiningOp<hlo::MulOp>();
    for (Value v : {mul->getOperand(0), mul->getOperand(1), op->getOperand(op->getOperand(0) == product ? 1 : 0)}) {
      FailureOr<Value> r = emit(v, index, lanes);
      if (failed(r))
        return failure();
      in.push_back(*r);
    }
    return Value(LLVM::FMAOp::create(b, in[0].getType(), in[0], in[1], in[2]));
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

} // namespace lathe::codegen
