// Optimizer updates (Apply... and ResourceApply...): the formulas of TensorFlow's CPU kernels.
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/state/State.h"

#include <set>

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Variables first, then scalars and the gradient, as the op definitions list them.
class Update {
public:
  explicit Update(NodeContext &c) : c(c) {}
  NodeContext &c;

  bool read(unsigned variables) {
    for (unsigned i = 0; i < c.numInputs(); ++i) {
      Value v = i < variables ? readInput(c, i) : c.input(i);
      if (!v)
        return false;
      in.push_back(v);
    }
    return true;
  }
  LogicalResult write(ArrayRef<Value> values) {
    if (!llvm::all_of(values, [](Value v) { return bool(v); }))
      return failure();
    if (row) {
      next.assign(values.begin(), values.end());
      return success();
    }
    for (auto [i, v] : llvm::enumerate(values))
      if (failed(writeInput(c, i, v)))
        return failure();
    return returnReference(c, 0);
  }
  Value number(Value likeThis, double v) { return c.like(likeThis, v); }
  Value sq(Value x) { return c.mul(x, x); }
  Value sqrt(Value x) { return c.unary<hlo::SqrtOp>(x); }
  /// old * decay + now * (1 - decay)
  Value blend(Value old, Value now, Value decay) {
    return c.add(c.mul(old, decay), c.mul(now, c.sub(number(decay, 1), decay)));
  }
  SmallVector<Value> in;
  /// The update is one of a row, whose new values `next` takes.
  bool row = false;
  SmallVector<Value> next;
};

using ApplyFn = LogicalResult (*)(Update &);

void addApply(HandlerTable &t, StringRef name, int numInputs, unsigned variables, ApplyFn fn) {
  for (std::string prefix : {"Apply", "ResourceApply"})
    t.addAnyKind(prefix + name.str(), numInputs, [=](NodeContext &c) -> LogicalResult {
      Update u(c);
      return u.read(variables) ? fn(u) : failure();
    });
}

bool areDistinct(NodeContext &c, Value indices) {
  auto known = c.ctx.fold(indices);
  if (!known)
    return constantOf(c.dim(indices, 0)) == int64_t(1);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < known->numElements(); ++i)
    if (!seen.insert(known->dtype() == DType::Int64 ? known->data<int64_t>()[i] : known->data<int32_t>()[i]).second)
      return false;
  return true;
}

/// The rows that a vector of indices names, one after the other: an index that comes again starts from the row as it then
/// is. Distinct rows go all at once.
LogicalResult applyRows(NodeContext &c, unsigned variables, unsigned indicesAt, ApplyFn fn) {
  Value indices = c.input(indicesAt), grad = c.input(indicesAt - 1);
  if (!indices || !grad || failed(c.expectRank(indicesAt, 1)))
    return failure();
  SmallVector<Value> whole;
  for (unsigned i = 0; i < variables; ++i) {
    whole.push_back(readInput(c, i));
    if (!whole.back())
      return failure();
    if (Emitter::rank(whole.back()) < 1 || Emitter::rank(whole.back()) != Emitter::rank(grad))
      return c.error("variables and gradient must have one rank of 1 or more");
  }
  if (!c.ctx.unify(c.dim(grad, 0), c.dim(indices, 0), c.name()))
    return c.error("the gradient must have as many rows as there are indices");
  checkRange(c, indices, c.dim(whole[0], 0), "an index is out of range");
  /// The update of rows given by `take`; empty after an error.
  auto update = [&](llvm::function_ref<Value(unsigned)> take, Value gradient) {
    Update u(c);
    u.row = true;
    for (unsigned i = 0; i < c.numInputs(); ++i)
      if (i != indicesAt)
        u.in.push_back(i < variables ? take(i) : i + 1 == indicesAt ? gradient : c.input(i));
    if (!llvm::all_of(u.in, [](Value v) { return bool(v); }) || failed(fn(u)))
      return SmallVector<Value>();
    return u.next;
  };
  SmallVector<Value> results;
  if (areDistinct(c, indices)) {
    SmallVector<Value> rows = update([&](unsigned i) { return gather(c, whole[i], indices, 0, 0, false); }, grad);
    for (auto [i, v] : llvm::enumerate(rows))
      results.push_back(scatterRows(c, whole[i], indices, v, nullptr, /*checked=*/false));
  } else {
    Type i64 = c.b.getI64Type();
    Value places = c.convert(indices, i64), count = c.sizeValue(c.dim(indices, 0), i64);
    SmallVector<Value> init{c.scalarInt(0, i64)};
    init.append(whole);
    bool ok = true;
    results = whileLoop(
        c, init, [&](ValueRange v) { return c.compare(Compare::LT, v[0], count); },
        [&](ValueRange v) -> SmallVector<Value> {
          Value at = c.takeRow(places, v[0]);
          SmallVector<Value> rows = update([&](unsigned i) { return c.takeRow(v[1 + i], at); }, c.takeRow(grad, v[0]));
          ok = rows.size() == variables;
          if (!ok)
            return SmallVector<Value>(v);
          SmallVector<Value> next{c.add(v[0], c.scalarInt(1, i64))};
          for (unsigned i = 0; i < variables; ++i)
            next.push_back(c.putRow(v[1 + i], rows[i], at));
          return next;
        });
    if (!ok)
      return failure();
    results.erase(results.begin());
  }
  if (results.size() != variables)
    return failure();
  for (auto [i, v] : llvm::enumerate(results))
    if (!v || failed(writeInput(c, i, v)))
      return failure();
  return returnReference(c, 0);
}

/// The sparse form: indices after the gradient, which is input `gradient`.
void addSparse(HandlerTable &t, StringRef name, int numInputs, unsigned variables, unsigned gradient, ApplyFn fn) {
  for (std::string prefix : {"SparseApply", "ResourceSparseApply"})
    t.addAnyKind(prefix + name.str(), numInputs,
                 [=](NodeContext &c) { return applyRows(c, variables, gradient + 1, fn); });
}

LogicalResult gradientDescent(Update &u) {
  Value var = u.in[0], alpha = u.in[1], delta = u.in[2];
  return u.write({u.c.sub(var, u.c.mul(delta, alpha))});
}

LogicalResult momentum(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], accum = u.in[1], lr = u.in[2], grad = u.in[3], m = u.in[4];
  Value next = c.add(c.mul(accum, m), grad);
  Value step = c.mul(next, lr);
  if (c.attrBool("use_nesterov"))
    step = c.add(c.mul(grad, lr), c.mul(c.mul(next, m), lr));
  return u.write({c.sub(var, step), next});
}

LogicalResult kerasMomentum(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], accum = u.in[1], lr = u.in[2], grad = u.in[3], m = u.in[4];
  Value next = c.sub(c.mul(accum, m), c.mul(grad, lr));
  Value step = c.attrBool("use_nesterov") ? c.sub(c.mul(next, m), c.mul(grad, lr)) : next;
  return u.write({c.add(var, step), next});
}

LogicalResult adagrad(Update &u, Value epsilon, Value grad) {
  NodeContext &c = u.c;
  Value var = u.in[0], accum = u.in[1], lr = u.in[2];
  Value next = c.attrBool("update_slots", true) ? c.add(accum, u.sq(grad)) : accum;
  Value root = u.sqrt(next);
  Value step = epsilon ? c.div(c.mul(grad, lr), c.add(root, epsilon)) : c.div(c.mul(grad, lr), root);
  return u.write({c.sub(var, step), next});
}

LogicalResult adadelta(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], accum = u.in[1], accumUpdate = u.in[2], lr = u.in[3], rho = u.in[4], epsilon = u.in[5], grad = u.in[6];
  Value next = u.blend(accum, u.sq(grad), rho);
  Value update = c.mul(c.div(u.sqrt(c.add(accumUpdate, epsilon)), u.sqrt(c.add(next, epsilon))), grad);
  return u.write({c.sub(var, c.mul(update, lr)), next, u.blend(accumUpdate, u.sq(update), rho)});
}

LogicalResult adam(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], m = u.in[1], v = u.in[2], beta1Power = u.in[3], beta2Power = u.in[4], lr = u.in[5], beta1 = u.in[6],
        beta2 = u.in[7], epsilon = u.in[8], grad = u.in[9];
  Value one = u.number(beta1, 1);
  Value alpha = c.div(c.mul(lr, u.sqrt(c.sub(one, beta2Power))), c.sub(one, beta1Power));
  Value nextM = c.add(m, c.mul(c.sub(grad, m), c.sub(one, beta1)));
  Value nextV = c.add(v, c.mul(c.sub(u.sq(grad), v), c.sub(one, beta2)));
  Value top = c.attrBool("use_nesterov") ? c.add(c.mul(grad, c.sub(one, beta1)), c.mul(nextM, beta1)) : nextM;
  Value step = c.div(c.mul(top, alpha), c.add(u.sqrt(nextV), epsilon));
  return u.write({c.sub(var, step), nextM, nextV});
}

LogicalResult adamWithAmsgrad(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], m = u.in[1], v = u.in[2], vhat = u.in[3], beta1Power = u.in[4], beta2Power = u.in[5], lr = u.in[6],
        beta1 = u.in[7], beta2 = u.in[8], epsilon = u.in[9], grad = u.in[10];
  Value one = u.number(beta1, 1);
  Value alpha = c.div(c.mul(lr, u.sqrt(c.sub(one, beta2Power))), c.sub(one, beta1Power));
  Value nextM = c.add(m, c.mul(c.sub(grad, m), c.sub(one, beta1)));
  Value nextV = c.add(v, c.mul(c.sub(u.sq(grad), v), c.sub(one, beta2)));
  Value nextHat = c.max(vhat, nextV);
  Value step = c.div(c.mul(nextM, alpha), c.add(u.sqrt(nextHat), epsilon));
  return u.write({c.sub(var, step), nextM, nextV, nextHat});
}

LogicalResult adaMax(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], m = u.in[1], v = u.in[2], beta1Power = u.in[3], lr = u.in[4], beta1 = u.in[5], beta2 = u.in[6],
        epsilon = u.in[7], grad = u.in[8];
  Value one = u.number(beta1, 1);
  Value nextM = c.add(m, c.mul(c.sub(grad, m), c.sub(one, beta1)));
  Value nextV = c.max(c.mul(v, beta2), c.unary<hlo::AbsOp>(grad));
  Value step = c.mul(c.div(lr, c.sub(one, beta1Power)), c.div(nextM, c.add(nextV, epsilon)));
  return u.write({c.sub(var, step), nextM, nextV});
}

LogicalResult rmsProp(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], ms = u.in[1], mom = u.in[2], lr = u.in[3], rho = u.in[4], momentum = u.in[5], epsilon = u.in[6],
        grad = u.in[7];
  Value nextMs = c.add(ms, c.mul(c.sub(u.sq(grad), ms), c.sub(u.number(rho, 1), rho)));
  Value nextMom = c.add(c.mul(mom, momentum), c.div(c.mul(grad, lr), u.sqrt(c.add(nextMs, epsilon))));
  return u.write({c.sub(var, nextMom), nextMs, nextMom});
}

LogicalResult centeredRmsProp(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], mg = u.in[1], ms = u.in[2], mom = u.in[3], lr = u.in[4], rho = u.in[5], momentum = u.in[6],
        epsilon = u.in[7], grad = u.in[8];
  Value rest = c.sub(u.number(rho, 1), rho);
  Value nextMs = c.add(ms, c.mul(c.sub(u.sq(grad), ms), rest));
  Value nextMg = c.add(mg, c.mul(c.sub(grad, mg), rest));
  Value denominator = c.add(c.sub(nextMs, u.sq(nextMg)), epsilon);
  Value nextMom = c.add(c.mul(mom, momentum), c.div(c.mul(grad, lr), u.sqrt(denominator)));
  return u.write({c.sub(var, nextMom), nextMg, nextMs, nextMom});
}

LogicalResult ftrlWith(Update &u, Value shrinkage, Value power) {
  NodeContext &c = u.c;
  Value var = u.in[0], accum = u.in[1], linear = u.in[2], grad = u.in[3], lr = u.in[4], l1 = u.in[5], l2 = u.in[6];
  bool byLr = c.attrBool("multiply_linear_by_lr");
  auto raise = [&](Value x) { return c.binary<hlo::PowOp>(x, c.neg(power)); };
  Value shrunk = shrinkage ? c.add(grad, c.mul(c.mul(var, shrinkage), u.number(var, 2))) : grad;
  Value next = c.add(accum, u.sq(grad));
  Value sigma = c.sub(raise(next), raise(accum));
  Value nextLinear, quadratic, bound = l1;
  if (byLr) {
    nextLinear = c.add(linear, c.sub(c.mul(shrunk, lr), c.mul(sigma, var)));
    quadratic = c.add(raise(next), c.mul(c.mul(l2, lr), u.number(l2, 2)));
    bound = c.mul(l1, lr);
  } else {
    nextLinear = c.add(linear, c.sub(shrunk, c.mul(c.div(sigma, lr), var)));
    quadratic = c.add(c.div(raise(next), lr), c.mul(l2, u.number(l2, 2)));
  }
  Value clipped = c.min(c.max(nextLinear, c.neg(bound)), bound);
  Value solved = c.div(c.sub(clipped, nextLinear), quadratic);
  Value large = c.compare(Compare::GT, c.unary<hlo::AbsOp>(nextLinear), bound);
  return u.write({c.select(large, solved, u.number(var, 0)), next, nextLinear});
}

/// Soft thresholding: sign(p) * max(|p| - lr * l1, 0) / (1 + lr * l2).
Value proximal(Update &u, Value p, Value lr, Value l1, Value l2) {
  NodeContext &c = u.c;
  Value shrunk = c.max(c.sub(c.unary<hlo::AbsOp>(p), c.mul(lr, l1)), u.number(p, 0));
  Value scale = c.add(c.mul(lr, l2), u.number(lr, 1));
  Value positive = c.compare(Compare::GT, l1, u.number(l1, 0));
  return c.select(positive, c.div(c.mul(c.unary<hlo::SignOp>(p), shrunk), scale), c.div(p, scale));
}

LogicalResult proximalGradientDescent(Update &u) {
  Value var = u.in[0], lr = u.in[1], l1 = u.in[2], l2 = u.in[3], delta = u.in[4];
  return u.write({proximal(u, u.c.sub(var, u.c.mul(delta, lr)), lr, l1, l2)});
}

LogicalResult proximalAdagrad(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], accum = u.in[1], lr = u.in[2], l1 = u.in[3], l2 = u.in[4], grad = u.in[5];
  Value next = c.add(accum, u.sq(grad));
  Value rate = c.div(lr, u.sqrt(next));
  return u.write({proximal(u, c.sub(var, c.mul(grad, rate)), rate, l1, l2), next});
}

LogicalResult adagradDa(Update &u) {
  NodeContext &c = u.c;
  Value var = u.in[0], sum = u.in[1], squares = u.in[2], grad = u.in[3], lr = u.in[4], l1 = u.in[5], l2 = u.in[6], step = u.in[7];
  Value global = c.convert(step, Emitter::elementType(var));
  Value nextSum = c.add(sum, grad), nextSquares = c.add(squares, u.sq(grad));
  Value bound = c.mul(l1, global);
  Value soft = c.mul(c.unary<hlo::SignOp>(nextSum), c.max(c.sub(c.unary<hlo::AbsOp>(nextSum), bound), u.number(nextSum, 0)));
  Value top = c.select(c.compare(Compare::GT, l1, u.number(l1, 0)), soft, nextSum);
  Value below = c.add(c.mul(c.mul(l2, global), lr), u.sqrt(nextSquares));
  return u.write({c.div(c.mul(c.neg(lr), top), below), nextSum, nextSquares});
}

LogicalResult signUpdate(Update &u, bool power) {
  // (var, m, lr, logbase | alpha, sign_decay, beta, grad)
  NodeContext &c = u.c;
  Value var = u.in[0], m = u.in[1], lr = u.in[2], first = u.in[3], decay = u.in[4], beta = u.in[5], grad = u.in[6];
  Value next = u.blend(m, grad, beta);
  Value agreement = c.mul(c.mul(c.unary<hlo::SignOp>(grad), c.unary<hlo::SignOp>(next)), decay);
  Value factor = power ? c.unary<hlo::ExpOp>(c.mul(agreement, first)) : c.add(agreement, first);
  return u.write({c.sub(var, c.mul(c.mul(grad, factor), lr)), next});
}

} // namespace

void registerOptimizers(HandlerTable &t) {
  addApply(t, "GradientDescent", 3, 1, gradientDescent);
  addApply(t, "Momentum", 5, 2, momentum);
  addApply(t, "KerasMomentum", 5, 2, kerasMomentum);
  addApply(t, "Adagrad", 4, 2, [](Update &u) { return adagrad(u, {}, u.in[3]); });
  addApply(t, "AdagradV2", 5, 2, [](Update &u) { return adagrad(u, u.in[3], u.in[4]); });
  addApply(t, "Adadelta", 7, 3, adadelta);
  addApply(t, "Adam", 10, 3, adam);
  addApply(t, "AdamWithAmsgrad", 11, 4, adamWithAmsgrad);
  addApply(t, "AdaMax", 9, 3, adaMax);
  addApply(t, "RMSProp", 8, 3, rmsProp);
  addApply(t, "CenteredRMSProp", 9, 4, centeredRmsProp);
  addApply(t, "Ftrl", 8, 3, [](Update &u) { return ftrlWith(u, {}, u.in[7]); });
  addApply(t, "FtrlV2", 9, 3, [](Update &u) { return ftrlWith(u, u.in[7], u.in[8]); });
  addApply(t, "ProximalGradientDescent", 5, 1, proximalGradientDescent);
  addApply(t, "ProximalAdagrad", 6, 2, proximalAdagrad);
  addApply(t, "AdagradDA", 8, 3, adagradDa);
  addApply(t, "AddSign", 7, 2, [](Update &u) { return signUpdate(u, false); });
  addApply(t, "PowerSign", 7, 2, [](Update &u) { return signUpdate(u, true); });

  addSparse(t, "Momentum", 6, 2, 3, momentum);
  addSparse(t, "KerasMomentum", 6, 2, 3, kerasMomentum);
  addSparse(t, "Adagrad", 5, 2, 3, [](Update &u) { return adagrad(u, {}, u.in[3]); });
  addSparse(t, "AdagradV2", 6, 2, 4, [](Update &u) { return adagrad(u, u.in[3], u.in[4]); });
  addSparse(t, "Adadelta", 8, 3, 6, adadelta);
  addSparse(t, "RMSProp", 9, 3, 7, rmsProp);
  addSparse(t, "CenteredRMSProp", 10, 4, 8, centeredRmsProp);
  addSparse(t, "Ftrl", 9, 3, 3, [](Update &u) { return ftrlWith(u, {}, u.in[7]); });
  addSparse(t, "FtrlV2", 10, 3, 3, [](Update &u) { return ftrlWith(u, u.in[7], u.in[8]); });
  addSparse(t, "ProximalGradientDescent", 6, 1, 4, proximalGradientDescent);
  addSparse(t, "ProximalAdagrad", 7, 2, 5, proximalAdagrad);
  addSparse(t, "AdagradDA", 9, 3, 3, adagradDa);
}

} // namespace lathe::legalize
