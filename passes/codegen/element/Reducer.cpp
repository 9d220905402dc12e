// See Reducer.h.
#include "passes/codegen/element/Reducer.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/LongSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

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
    if (isa<FloatType>(regType(this->elems[0])))
      extremum = &op;
  } else if (isa<hlo::AddOp, hlo::XorOp>(op)) {
    kind = Kind::Accumulate;
    addsUp = isa<hlo::AddOp>(op) && isa<FloatType, ComplexType>(this->elems[0]);
  } else if (isa<hlo::MulOp>(op)) {
    kind = Kind::Accumulate;
    identity = 1;
  }
}

void Reducer::loseNans() { losesNans = extremum && b.target.x86; }

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
  if (losesNans) { // one instruction of x86
    auto p = isa<hlo::MaxOp>(extremum) ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
    Value better = arith::CmpFOp::create(b, p, values[0], acc[0]);
    return SmallVector<Value>{arith::SelectOp::create(b, better, values[0], acc[0]).getResult()};
  }
  if (extremum) {
    // The value comes first: whether it is a NaN is found out beside the chain of accumulators, not in it. Which of
    // two zeros comes out may differ.
    auto f = arith::FastMathFlags::nsz;
    return SmallVector<Value>{isa<hlo::MaxOp>(extremum)
                                  ? arith::MaximumFOp::create(b, values[0], acc[0], f).getResult()
                                  : arith::MinimumFOp::create(b, values[0], acc[0], f).getResult()};
  }
  SmallVector<Value> args(acc);
  args.append(values.begin(), values.end());
  return emitScalarBody(b, body, args, lanes);
}

/// Vectors x and y (or x alone), each of pieces of 2 * half lanes: the lower halves of all pieces, those of x first, and
/// the upper ones.
static std::pair<Value, Value> halves(KernelBuilder &b, Value x, Value y, unsigned lanes, unsigned half) {
  SmallVector<int64_t> lower, upper;
  if (!y && lanes == 2) // scalars are no vectors of one
    return {vector::ExtractOp::create(b, x, int64_t(0)), vector::ExtractOp::create(b, x, int64_t(1))};
  for (unsigned i = 0; i < (y ? 2 * lanes : lanes); ++i)
    (i / half % 2 ? upper : lower).push_back(i);
  return {vector::ShuffleOp::create(b, x, y ? y : x, lower), vector::ShuffleOp::create(b, x, y ? y : x, upper)};
}

FailureOr<SmallVector<SmallVector<Value>>> Reducer::horizontal(SmallVector<SmallVector<Value>> rows, unsigned lanes) {
  // Each step halves the lanes of a row. Two vectors become one of full width as long as there are two; the partial
  // results of a row are combined in the same order in either case. order[v]: the rows whose pieces vector v holds.
  SmallVector<SmallVector<unsigned>> order;
  for (unsigned i = 0; i < rows.size(); ++i)
    order.push_back({i});
  SmallVector<SmallVector<Value>> vectors(rows);
  for (unsigned piece = lanes; piece > 1; piece /= 2) {
    SmallVector<SmallVector<Value>> next;
    SmallVector<SmallVector<unsigned>> nextOrder;
    for (unsigned i = 0; i < vectors.size();) {
      const unsigned width = lanesOf(vectors[i][0].getType());
      const bool pair = i + 1 < vectors.size() && lanesOf(vectors[i + 1][0].getType()) == width;
      SmallVector<Value> lo, hi;
      for (unsigned s = 0; s < vectors[i].size(); ++s) {
        auto [l, h] = halves(b, vectors[i][s], pair ? vectors[i + 1][s] : Value(), width, piece / 2);
        lo.push_back(l);
        hi.push_back(h);
      }
      auto r = combine(lo, hi, pair ? width : width / 2);
      if (failed(r))
        return failure();
      next.push_back(*r);
      nextOrder.push_back(order[i]);
      if (pair)
        nextOrder.back().append(order[i + 1]);
      i += 1 + pair;
    }
    vectors = std::move(next);
    order = std::move(nextOrder);
  }
  for (auto [vector, inside] : llvm::zip(vectors, order))
    for (auto [lane, row] : llvm::enumerate(inside))
      for (auto [v, to] : llvm::zip(vector, rows[row]))
        to = isa<VectorType>(v.getType()) ? vector::ExtractOp::create(b, v, int64_t(lane)).getResult() : v;
  return rows;
}

FailureOr<SmallVector<Value>> Reducer::finish(SmallVector<Value> acc, unsigned lanes) {
  if (kind != Kind::Accumulate)
    return acc;
  SmallVector<Value> first;
  for (auto [elem, init] : llvm::zip(elems, inits))
    first.push_back(b.splatElem(elem, init, lanes));
  return combine(first, acc, lanes);
}

SmallVector<Value> reduceLoop(KernelBuilder &b, const Reducer &r, Value lo, Value hi, int64_t step, int64_t perStep,
                              ValueRange inits, llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (!r.adds())
    return b.loop(lo, hi, b.i64(step), inits, body);
  SumBlocks how;
  how.perStep = perStep;
  return sumLoop(b, lo, hi, step, inits, how, body);
}

FailureOr<SmallVector<Value>>
reduceRow(KernelBuilder &b, Reducer &r, Value n, unsigned lanes, bool masked,
          llvm::function_ref<FailureOr<SmallVector<Value>>(Value, unsigned, Value)> values, ValueRange carried) {
  return reduceRows(
      b, r, 1, n, lanes, masked,
      [&](unsigned, Value at, unsigned width, Value mask) { return values(at, width, mask); }, carried);
}

FailureOr<SmallVector<Value>>
reduceRows(KernelBuilder &b, Reducer &r, unsigned rows, Value n, unsigned lanes, bool masked,
           llvm::function_ref<FailureOr<SmallVector<Value>>(unsigned, Value, unsigned, Value)> values, ValueRange carried) {
  LogicalResult ok = success();
  const unsigned k = r.size(), all = rows * k;
  // one step of an accumulator of each row; off lanes keep what they have
  auto step = [&](ValueRange acc, Value at, unsigned width, Value mask) -> SmallVector<Value> {
    SmallVector<Value> out;
    for (unsigned row = 0; row < rows; ++row) {
      ValueRange mine = acc.slice(row * k, k);
      auto v = values(row, at, width, mask);
      auto next = failed(v) ? FailureOr<SmallVector<Value>>() : r.combine(mine, *v, width);
      if (failed(next)) {
        ok = failure();
        return SmallVector<Value>(acc);
      }
      if (mask)
        for (auto [x, old] : llvm::zip(*next, mine))
          x = arith::SelectOp::create(b, mask, x, old);
      out.append(*next);
    }
    return out;
  };
  auto start = [&](unsigned width, unsigned count) {
    SmallVector<Value> acc;
    for (unsigned i = 0; i < count; ++i)
      acc.append(r.start(width));
    return acc;
  };
  auto merge = [&](SmallVector<Value> x, SmallVector<Value> y, unsigned width) -> SmallVector<Value> {
    auto m = r.combine(x, y, width);
    if (failed(m)) {
      ok = failure();
      return x;
    }
    return *m;
  };
  if (lanes == 1 || !r.reorderable()) {
    SmallVector<Value> scalarStart = carried.empty() ? start(1, rows) : SmallVector<Value>(carried);
    auto out = reduceLoop(b, r, b.i64(0), n, 1, 1, scalarStart,
                          [&](Value i, ValueRange acc) { return step(acc, i, 1, Value()); });
    if (failed(ok))
      return failure();
    return out;
  }
  Value big = b.sub(n, b.remU(n, b.i64(reduceChains * lanes))), whole = b.sub(n, b.remU(n, b.i64(lanes)));
  SmallVector<Value> acc = start(lanes, reduceChains * rows);
  acc = reduceLoop(b, r, b.i64(0), big, reduceChains * lanes, 1, acc, [&](Value i, ValueRange a) {
    SmallVector<Value> next;
    for (unsigned c = 0; c < reduceChains; ++c)
      next.append(step(a.slice(c * all, all), b.add(i, b.i64(c * lanes)), lanes, Value()));
    return next;
  });
  SmallVector<Value> first(ArrayRef<Value>(acc).take_front(all));
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
  SmallVector<SmallVector<Value>> vectors; // of each row, its states
  for (unsigned row = 0; row < rows; ++row) {
    auto chain = [&](unsigned c) {
      ArrayRef<Value> states = c ? ArrayRef<Value>(acc).slice(c * all, all) : ArrayRef<Value>(first);
      return SmallVector<Value>(states.slice(row * k, k));
    };
    vectors.push_back(merge(merge(chain(0), chain(1), lanes), merge(chain(2), chain(3), lanes), lanes));
  }
  auto scalars = r.horizontal(vectors, lanes);
  if (failed(scalars) || failed(ok))
    return failure();
  SmallVector<Value> out;
  for (SmallVector<Value> &s : *scalars)
    out.append(s);
  if (!masked)
    out = b.loop(whole, n, b.i64(1), out, [&](Value i, ValueRange a) { return step(a, i, 1, Value()); });
  if (!carried.empty())
    for (unsigned row = 0; row < rows; ++row) {
      SmallVector<Value> x(carried.slice(row * k, k)), y(ArrayRef<Value>(out).slice(row * k, k));
      llvm::copy(merge(x, y, 1), out.begin() + row * k);
    }
  if (failed(ok))
    return failure();
  return out;
}

} // namespace lathe::codegen
