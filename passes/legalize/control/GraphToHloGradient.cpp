// SymbolicGradient: the function is translated once more in place, then its hlo ops are walked backwards, each giving its
// operands their share of what its result is worth.
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Numbers have gradients, integers too: the functions that TensorFlow makes do not ask.
bool hasGradient(Value v) {
  Type type = Emitter::elementType(v);
  return isa<FloatType, ComplexType>(type) || (isa<IntegerType>(type) && !type.isInteger(1));
}

class Backward {
public:
  explicit Backward(NodeContext &c) : c(c) {}

  LogicalResult run(ArrayRef<Value> arguments, ArrayRef<Operation *> forward);
  void give(Value v, Value gradient) {
    if (!gradient || !hasGradient(v))
      return;
    auto [it, isNew] = worth.try_emplace(v, gradient);
    if (!isNew)
      it->second = c.add(it->second, gradient);
  }
  Value of(Value v) { return worth.lookup(v); }

private:
  LogicalResult step(Operation *op, Value g);
  bool elementwise(Operation *op, Value g);
  LogicalResult product(hlo::DotGeneralOp op, Value g);
  LogicalResult reduction(hlo::ReduceOp op, Value g);
  Value conj(Value v) { return Emitter::isComplex(v) ? c.unary<hlo::ConjOp>(v) : v; }

  NodeContext &c;
  llvm::DenseMap<Value, Value> worth;
  llvm::DenseSet<Value> active; ///< depends on an argument
};

bool Backward::elementwise(Operation *op, Value g) {
  Value x = op->getOperand(0), y = op->getResult(0), z = op->getNumOperands() > 1 ? op->getOperand(1) : Value();
  auto one = [&](Value v) { return c.like(v, 1); };
  auto slope = [&](Value derivative) { give(x, c.mul(g, conj(derivative))); };
  if (isa<hlo::AddOp>(op))
    give(x, g), give(z, g);
  else if (isa<hlo::SubtractOp>(op))
    give(x, g), give(z, c.neg(g));
  else if (isa<hlo::MulOp>(op))
    give(x, c.mul(g, conj(z))), give(z, c.mul(g, conj(x)));
  else if (isa<hlo::DivOp>(op))
    give(x, c.div(g, conj(z))), give(z, c.neg(c.mul(g, conj(c.div(y, z)))));
  else if (isa<hlo::NegOp>(op))
    give(x, c.neg(g));
  else if (isa<hlo::ExpOp>(op))
    slope(y);
  else if (isa<hlo::Expm1Op>(op))
    slope(c.add(y, one(y)));
  else if (isa<hlo::LogOp>(op))
    give(x, c.div(g, conj(x)));
  else if (isa<hlo::Log1pOp>(op))
    give(x, c.div(g, conj(c.add(x, one(x)))));
  else if (isa<hlo::TanhOp>(op))
    slope(c.sub(one(y), c.mul(y, y)));
  else if (isa<hlo::LogisticOp>(op))
    slope(c.mul(y, c.sub(one(y), y)));
  else if (isa<hlo::SqrtOp>(op))
    give(x, c.div(c.mul(g, c.like(g, 0.5)), conj(y)));
  else if (isa<hlo::RsqrtOp>(op))
    slope(c.mul(c.mul(y, c.like(y, -0.5)), c.mul(y, y)));
  else if (isa<hlo::SineOp>(op))
    slope(c.unary<hlo::CosineOp>(x));
  else if (isa<hlo::CosineOp>(op))
    slope(c.neg(c.unary<hlo::SineOp>(x)));
  else if (isa<hlo::AbsOp>(op) && !Emitter::isComplex(x))
    slope(c.unary<hlo::SignOp>(x));
  else if (isa<hlo::ConjOp>(op))
    give(x, conj(g));
  else if (isa<hlo::PowOp>(op) && !Emitter::isComplex(x)) {
    give(x, c.mul(g, c.mul(z, c.binary<hlo::PowOp>(x, c.sub(z, one(z))))));
    Value safe = c.select(c.compare(Compare::GT, x, c.like(x, 0)), c.unary<hlo::LogOp>(x), c.like(x, 0));
    give(z, c.mul(g, c.mul(y, safe)));
  } else if (isa<hlo::MaxOp, hlo::MinOp>(op) && !Emitter::isComplex(x)) {
    // the first operand takes what both would
    Value first = c.compare(isa<hlo::MaxOp>(op) ? Compare::GE : Compare::LE, x, z);
    give(x, c.select(first, g, c.like(g, 0)));
    give(z, c.select(first, c.like(g, 0), g));
  } else if (auto select = dyn_cast<hlo::SelectOp>(op)) {
    give(select.getOnTrue(), c.select(select.getPred(), g, c.like(g, 0)));
    give(select.getOnFalse(), c.select(select.getPred(), c.like(g, 0), g));
  } else if (isa<hlo::ConvertOp>(op)) {
    if (hasGradient(x))
      give(x, c.convert(g, Emitter::elementType(x)));
  } else if (!isa<hlo::FloorOp, hlo::CeilOp, hlo::RoundOp, hlo::RoundNearestEvenOp, hlo::SignOp>(op)) { // flat
    return false;
  }
  return true;
}

LogicalResult Backward::product(hlo::DotGeneralOp op, Value g) {
  auto numbers = op.getDotDimensionNumbers();
  SmallVector<int64_t> batch[2] = {SmallVector<int64_t>(numbers.getLhsBatchingDimensions()),
                                   SmallVector<int64_t>(numbers.getRhsBatchingDimensions())};
  SmallVector<int64_t> contract[2] = {SmallVector<int64_t>(numbers.getLhsContractingDimensions()),
                                      SmallVector<int64_t>(numbers.getRhsContractingDimensions())};
  Value sides[2] = {op.getLhs(), op.getRhs()};
  SmallVector<int64_t> free[2];
  for (int s = 0; s < 2; ++s)
    for (int64_t d = 0; d < Emitter::rank(sides[s]); ++d)
      if (!llvm::is_contained(batch[s], d) && !llvm::is_contained(contract[s], d))
        free[s].push_back(d);
  int64_t nb = batch[0].size();
  for (int s = 0; s < 2; ++s) {
    if (!active.contains(sides[s]))
      continue;
    Value other = sides[1 - s];
    // the dimensions of the gradient that the other side made
    SmallVector<int64_t> gradBatch = llvm::to_vector(llvm::seq<int64_t>(0, nb)), made;
    int64_t from = nb + (s == 0 ? free[0].size() : 0);
    for (size_t i = 0; i < free[1 - s].size(); ++i)
      made.push_back(from + i);
    Value d = c.dot(g, conj(other), gradBatch, batch[1 - s], made, free[1 - s]);
    if (!d)
      return failure();
    // now batch, own free dimensions, then the other's contracted ones in its order
    SmallVector<int64_t> order(batch[s]);
    order.append(free[s]);
    SmallVector<int64_t> sorted(contract[1 - s]);
    llvm::sort(sorted);
    for (int64_t k : sorted)
      order.push_back(contract[s][llvm::find(contract[1 - s], k) - contract[1 - s].begin()]);
    SmallVector<int64_t> permutation(order.size());
    for (auto [i, k] : llvm::enumerate(order))
      permutation[k] = i;
    give(sides[s], c.transpose(d, permutation));
  }
  return success();
}

LogicalResult Backward::reduction(hlo::ReduceOp op, Value g) {
  if (op.getInputs().size() != 1)
    return failure();
  Value x = op.getInputs()[0];
  Operation *combine = op.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  SmallVector<int64_t> map;
  for (int64_t d = 0; d < Emitter::rank(x); ++d)
    if (!llvm::is_contained(op.getDimensions(), d))
      map.push_back(d);
  Value wide = c.broadcastInDim(g, c.dims(x), map);
  if (isa_and_nonnull<hlo::AddOp>(combine)) {
    give(x, wide);
    return success();
  }
  if (!isa_and_nonnull<hlo::MaxOp, hlo::MinOp>(combine))
    return failure();
  // shared among the elements that reach the extreme
  Value hit = c.convert(c.compare(Compare::EQ, x, c.broadcastInDim(op->getResult(0), c.dims(x), map)), Emitter::elementType(x));
  SmallVector<int64_t> axes(op.getDimensions());
  give(x, c.mul(wide, c.div(hit, c.broadcastInDim(c.reduceSum(hit, axes), c.dims(x), map))));
  return success();
}

LogicalResult Backward::step(Operation *op, Value g) {
  if (auto reduce = dyn_cast<hlo::ReduceOp>(op))
    return reduction(reduce, g);
  if (auto dot = dyn_cast<hlo::DotGeneralOp>(op))
    return product(dot, g);
  Value x = op->getOperand(0);
  int64_t rank = Emitter::rank(x);
  if (isa<hlo::ReshapeOp>(op)) {
    give(x, c.reshape(g, c.dims(x)));
    return success();
  }
  if (auto t = dyn_cast<hlo::TransposeOp>(op)) {
    SmallVector<int64_t> inverse(rank);
    for (auto [i, p] : llvm::enumerate(t.getPermutation()))
      inverse[p] = i;
    give(x, c.transpose(g, inverse));
    return success();
  }
  if (auto b = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    // sums over new dimensions and over those that were stretched
    SmallVector<int64_t> axes;
    auto map = b.getBroadcastDimensions();
    for (int64_t d = 0; d < Emitter::rank(g); ++d) {
      auto at = llvm::find(map, d);
      bool stretched = at == map.end() || (constantOf(c.dim(x, at - map.begin())) == int64_t(1) &&
                                           constantOf(c.dim(g, d)) != int64_t(1));
      if (stretched)
        axes.push_back(d);
    }
    Value sum = axes.empty() ? g : c.reduceSum(g, axes);
    // what is left follows `map`, which ascends
    if (!llvm::is_sorted(map))
      return failure();
    give(x, c.reshape(sum, c.dims(x)));
    return success();
  }
  if (auto s = dyn_cast<hlo::SliceOp>(op)) {
    SmallVector<int64_t> low(s.getStartIndices()), high, interior;
    for (int64_t d = 0; d < rank; ++d) {
      auto n = constantOf(c.dim(x, d)), m = constantOf(c.dim(g, d));
      if (!n || !m || low[d] < 0)
        return failure();
      interior.push_back(s.getStrides()[d] - 1);
      high.push_back(*n - low[d] - (*m ? (*m - 1) * s.getStrides()[d] + 1 : 0));
    }
    give(x, c.pad(g, c.scalar(0, Emitter::elementType(g)), low, high, interior));
    return success();
  }
  if (auto p = dyn_cast<hlo::ConcatenateOp>(op)) {
    AffineExpr at = c.size(0);
    for (Value v : p.getInputs()) {
      AffineExpr end = hlo::simplify(at + c.dim(v, p.getDimension()));
      give(v, c.sliceDim(g, p.getDimension(), at, end));
      at = end;
    }
    return success();
  }
  return success(elementwise(op, g));
}

LogicalResult Backward::run(ArrayRef<Value> arguments, ArrayRef<Operation *> forward) {
  active.insert(arguments.begin(), arguments.end());
  for (Operation *op : forward)
    if (llvm::any_of(op->getOperands(), [&](Value v) { return active.contains(v); }))
      active.insert(op->result_begin(), op->result_end());
  for (Operation *op : llvm::reverse(forward)) {
    if (op->getNumResults() == 0 || !active.contains(op->getResult(0)))
      continue;
    if (op->getNumResults() != 1) {
      if (llvm::none_of(op->getResults(), [&](Value v) { return of(v) != nullptr; }))
        continue;
      return c.error("the gradient of " + op->getName().stripDialect() + " is not supported");
    }
    Value g = of(op->getResult(0));
    if (g && failed(step(op, g)))
      return c.error("the gradient of " + op->getName().stripDialect() + " is not supported");
  }
  return success();
}

/// The gradient of a gradient doubles what it is made of: 20 of them, one in the other, are a million operations. Small ones
/// need no look at all of the function.
bool isTooLarge(NodeContext &c, size_t operations) {
  constexpr size_t looked = 1000, most = 300000;
  if (operations <= looked)
    return false;
  size_t all = 0;
  c.ctx.function.walk([&](Operation *) { return ++all > most ? WalkResult::interrupt() : WalkResult::advance(); });
  return all > most;
}

LogicalResult lowerGradient(NodeContext &c) {
  graph::FuncOp function = c.ctx.lookupFunction(c.attr("f"));
  if (!function)
    return c.error("the function is missing");
  unsigned n = function.getArgumentTypes().size(), m = function.getResultTypes().size();
  if (c.numInputs() != n + m || c.numResults() != n)
    return c.error("expected " + Twine(n + m) + " inputs and " + Twine(n) + " results");
  GraphValues arguments, results;
  SmallVector<Value> values;
  for (unsigned i = 0; i < n; ++i) {
    Value v = c.input(i);
    if (!v)
      return failure();
    // a value of its own for each argument, should one be passed twice
    values.push_back(hlo::ReshapeOp::create(c.b, c.loc, v.getType(), v));
    arguments.push_back(GraphValue::ofTensor(values.back()));
  }
  Operation *before = values.empty() ? nullptr : values.back().getDefiningOp();
  if (!before || failed(c.ctx.lowerBody(function, arguments, results)))
    return failure();
  SmallVector<Operation *> forward;
  for (Operation *op = before->getNextNode(); op && op != &*c.b.getInsertionPoint(); op = op->getNextNode())
    forward.push_back(op);
  if (isTooLarge(c, forward.size()))
    return c.error("the graph is too large once gradients of gradients are expanded");
  Backward backward(c);
  for (auto [k, result] : llvm::enumerate(results)) {
    Value y = c.ctx.materialize(result, c.loc), g = c.input(n + k);
    if (!y || !g)
      return failure();
    if (hasGradient(y))
      backward.give(y, g);
  }
  if (failed(backward.run(values, forward)))
    return failure();
  for (unsigned i = 0; i < n; ++i) {
    Value g = backward.of(values[i]);
    if (failed(c.setResult(i, g ? g : c.like(values[i], 0))))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// For
//===----------------------------------------------------------------------===//

/// for (i = start; i < limit; i += delta) state = body(i, state)
LogicalResult lowerFor(NodeContext &c) {
  graph::FuncOp body = c.ctx.lookupFunction(c.attr("body"));
  if (!body)
    return c.error("the body function is missing");
  unsigned n = c.numInputs() - 3;
  if (body.getArgumentTypes().size() != n + 1 || body.getResultTypes().size() != n || c.numResults() != n)
    return c.error("the body does not fit the loop's " + Twine(n) + " variables");
  Value start = c.input(0), limit = c.input(1), delta = c.input(2);
  if (!start || !limit || !delta)
    return failure();
  SmallVector<Value> init{start};
  SmallVector<int> slot; // position among the carried values, -1 for what is no tensor
  for (unsigned i = 0; i < n; ++i) {
    bool tensor = c.value(3 + i).kind == GraphValue::Kind::Tensor;
    slot.push_back(tensor ? int(init.size()) : -1);
    if (tensor)
      init.push_back(c.input(3 + i));
    if (!init.back())
      return failure();
  }
  auto before = c.ctx.state;
  bool ok = true;
  SmallVector<Value> done = whileLoop(
      c, init,
      [&](ValueRange v) {
        Value up = c.logicalAnd(c.compare(Compare::GT, delta, c.like(delta, 0)), c.compare(Compare::LT, v[0], limit));
        Value down = c.logicalAnd(c.compare(Compare::LT, delta, c.like(delta, 0)), c.compare(Compare::GT, v[0], limit));
        return c.logicalOr(up, down);
      },
      [&](ValueRange v) -> SmallVector<Value> {
        GraphValues arguments{GraphValue::ofTensor(v[0])}, results;
        for (unsigned i = 0; i < n; ++i)
          arguments.push_back(slot[i] < 0 ? c.value(3 + i) : GraphValue::ofTensor(v[slot[i]]));
        SmallVector<Value> next{c.add(v[0], delta)};
        ok = succeeded(c.ctx.lowerBody(body, arguments, results));
        for (unsigned i = 0; ok && i < n; ++i) {
          if (slot[i] < 0)
            continue;
          Value r = c.ctx.materialize(results[i], c.loc);
          ok = r && r.getType() == v[slot[i]].getType();
          next.push_back(r);
        }
        return ok ? next : SmallVector<Value>(v);
      });
  if (!ok)
    return c.error("what the loop carries does not keep its type");
  for (auto &[key, value] : c.ctx.state) {
    auto it = before.find(key);
    bool same = it != before.end() ? it->second.tensor == value.tensor && it->second.list.buffer == value.list.buffer
                                   : value.tensor && isa<BlockArgument>(value.tensor);
    if (!same)
      return c.error("a For whose body writes variables is not supported");
  }
  for (unsigned i = 0; i < n; ++i)
    if (failed(slot[i] < 0 ? c.setResult(i, c.value(3 + i)) : c.setResult(i, done[slot[i]])))
      return failure();
  return success();
}

} // namespace

void registerGradient(HandlerTable &t) {
  t.addAnyKind("SymbolicGradient", HandlerTable::atLeast(0), lowerGradient);
  t.addAnyKind("For", HandlerTable::atLeast(3), lowerFor);
}

} // namespace lathe::legalize
