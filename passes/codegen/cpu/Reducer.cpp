// See Reducer.h.
#include "passes/codegen/cpu/Reducer.h"

#include "dialects/hlo/Hlo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

// An arg-extremum that looks at the positions for ties may be evaluated in any order.
static bool comparesPositions(Block &body) {
  if (body.getNumArguments() != 4)
    return false;
  for (Operation &op : body) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (!isa<hlo::CompareOp, hlo::SelectOp, hlo::OrOp, hlo::AndOp, hlo::NotOp, hlo::MinOp, hlo::MaxOp, hlo::XorOp,
             hlo::ConstantOp, hlo::IsNanOp>(op))
      return false;
  }
  auto a = body.getArgument(1), c = body.getArgument(3);
  for (Operation *user : a.getUsers())
    if (isa<hlo::CompareOp, hlo::MinOp, hlo::MaxOp>(user) && llvm::is_contained(user->getOperands(), c))
      return true;
  return false;
}

Reducer::Reducer(KernelBuilder &b, Block &body, SmallVector<Type> elems, SmallVector<Value> inits)
    : b(b), body(body), elems(std::move(elems)), inits(std::move(inits)) {
  if (comparesPositions(body)) {
    kind = Kind::Select;
    return;
  }
  auto ops = body.without_terminator();
  if (body.getNumArguments() != 2 || !llvm::hasSingleElement(ops))
    return;
  Operation &op = *ops.begin();
  if (op.getNumOperands() != 2 || op.getOperand(0) == op.getOperand(1) || !isa<BlockArgument>(op.getOperand(0)) ||
      !isa<BlockArgument>(op.getOperand(1)) || body.getTerminator()->getOperand(0) != op.getResult(0))
    return;
  bool isBool = this->elems[0].isInteger(1);
  if (isa<hlo::MaxOp, hlo::MinOp, hlo::AndOp, hlo::OrOp>(op) || (isBool && isa<hlo::AddOp, hlo::MulOp>(op))) {
    kind = Kind::Select;
  } else if (isa<hlo::AddOp, hlo::XorOp>(op)) {
    kind = Kind::Accumulate;
  } else if (isa<hlo::MulOp>(op)) {
    kind = Kind::Accumulate;
    identity = 1;
  }
}

SmallVector<Value> Reducer::start(unsigned lanes) {
  SmallVector<Value> r;
  for (auto [elem, init] : llvm::zip(elems, inits)) {
    if (kind != Kind::Accumulate) {
      r.push_back(b.splatElem(elem, init, lanes));
    } else if (isa<ComplexType>(elem) && identity == 1) {
      auto v = cast<VectorType>(regType(elem));
      Value one = b.cst(v.getElementType(), 1), zero = b.cst(v.getElementType(), 0);
      r.push_back(b.splatElem(elem, vector::FromElementsOp::create(b, v, ValueRange{one, zero}), lanes));
    } else {
      Type t = regType(elem, lanes);
      // -0 is the true identity of float addition
      bool floatSum = isa<FloatType>(elem) && identity == 0;
      r.push_back(floatSum ? b.cst(t, -0.0) : b.cstI(t, identity));
    }
  }
  return r;
}

FailureOr<SmallVector<Value>> Reducer::combine(ValueRange acc, ValueRange values, unsigned lanes) {
  SmallVector<Value> args(acc);
  args.append(values.begin(), values.end());
  return emitScalarBody(b, body, args, lanes);
}

FailureOr<SmallVector<Value>> Reducer::horizontal(SmallVector<Value> acc, unsigned lanes) {
  while (lanes > 1) {
    unsigned half = lanes / 2;
    SmallVector<Value> lo, hi;
    for (Value v : acc) {
      if (half == 1) {
        lo.push_back(vector::ExtractOp::create(b, v, int64_t(0)));
        hi.push_back(vector::ExtractOp::create(b, v, int64_t(1)));
        continue;
      }
      SmallVector<int64_t> first(half), second(half);
      for (unsigned i = 0; i < half; ++i) {
        first[i] = i;
        second[i] = half + i;
      }
      lo.push_back(vector::ShuffleOp::create(b, v, v, first));
      hi.push_back(vector::ShuffleOp::create(b, v, v, second));
    }
    auto r = combine(lo, hi, half);
    if (failed(r))
      return failure();
    acc = *r;
    lanes = half;
  }
  return acc;
}

FailureOr<SmallVector<Value>> Reducer::finish(SmallVector<Value> acc, unsigned lanes) {
  if (kind != Kind::Accumulate)
    return acc;
  SmallVector<Value> first;
  for (auto [elem, init] : llvm::zip(elems, inits))
    first.push_back(b.splatElem(elem, init, lanes));
  return combine(first, acc, lanes);
}

FailureOr<SmallVector<Value>>
reduceRow(KernelBuilder &b, Reducer &r, Value n, unsigned lanes, bool masked,
          llvm::function_ref<FailureOr<SmallVector<Value>>(Value, unsigned, Value)> values, ValueRange carried) {
  LogicalResult ok = success();
  // one step of an accumulator; off lanes keep what they have
  auto step = [&](ValueRange acc, Value at, unsigned width, Value mask) -> SmallVector<Value> {
    auto v = values(at, width, mask);
    if (failed(v)) {
      ok = failure();
      return SmallVector<Value>(acc);
    }
    auto next = r.combine(acc, *v, width);
    if (failed(next)) {
      ok = failure();
      return SmallVector<Value>(acc);
    }
    if (mask)
      for (auto [x, old] : llvm::zip(*next, acc))
        x = arith::SelectOp::create(b, mask, x, old);
    return *next;
  };
  unsigned k = r.size();
  SmallVector<Value> scalarStart = carried.empty() ? r.start(1) : SmallVector<Value>(carried);
  if (lanes == 1 || !r.reorderable()) {
    auto out = b.loop(b.i64(0), n, b.i64(1), scalarStart,
                      [&](Value i, ValueRange acc) { return step(acc, i, 1, Value()); });
    if (failed(ok))
      return failure();
    return out;
  }
  constexpr unsigned chains = 4;
  SmallVector<Value> acc;
  for (unsigned c = 0; c < chains; ++c)
    acc.append(r.start(lanes));
  Value big = b.sub(n, b.remU(n, b.i64(chains * lanes))), whole = b.sub(n, b.remU(n, b.i64(lanes)));
  acc = b.loop(b.i64(0), big, b.i64(chains * lanes), acc, [&](Value i, ValueRange a) {
    SmallVector<Value> next;
    for (unsigned c = 0; c < chains; ++c)
      next.append(step(a.slice(c * k, k), b.add(i, b.i64(c * lanes)), lanes, Value()));
    return next;
  });
  SmallVector<Value> first(ArrayRef<Value>(acc).take_front(k));
  first = b.loop(big, whole, b.i64(lanes), first,
                 [&](Value i, ValueRange a) { return step(a, i, lanes, Value()); });
  if (masked) {
    SmallVector<Type> types;
    for (Value v : first)
      types.push_back(v.getType());
    first = b.ifElse(b.lt(whole, n), types,
                     [&] { return step(first, whole, lanes, b.tailMask(b.sub(n, whole), lanes)); },
                     [&] { return first; });
  }
  auto merge = [&](SmallVector<Value> x, SmallVector<Value> y) -> SmallVector<Value> {
    auto m = r.combine(x, y, lanes);
    if (failed(m)) {
      ok = failure();
      return x;
    }
    return *m;
  };
  auto chain = [&](unsigned c) { return SmallVector<Value>(ArrayRef<Value>(acc).slice(c * k, k)); };
  SmallVector<Value> sum = merge(merge(first, chain(1)), merge(chain(2), chain(3)));
  auto scalar = r.horizontal(sum, lanes);
  if (failed(scalar) || failed(ok))
    return failure();
  if (!masked) {
    *scalar = b.loop(whole, n, b.i64(1), *scalar,
                     [&](Value i, ValueRange a) { return step(a, i, 1, Value()); });
  }
  if (!carried.empty()) {
    scalar = r.combine(carried, *scalar, 1);
    if (failed(scalar))
      return failure();
  }
  if (failed(ok))
    return failure();
  return scalar;
}

} // namespace lathe::cpu
