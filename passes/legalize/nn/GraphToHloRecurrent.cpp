// The fused LSTM ops: one cell, a whole sequence as a loop, and their gradients.
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// What all steps share. Gates lie side by side in the columns of the weights: input, cell, forget, output in the first
/// version of the ops, input, forget, cell, output in the second.
struct Lstm {
  NodeContext &c;
  Value w, wci, wcf, wco, bias;
  AffineExpr cells;
  double forgetBias = 0, clip = 0;
  bool peephole = false, forgetSecond = false;
  Type narrow, wide;

  /// Reads the weights from five inputs on from `first`; half-width floats are computed in f32.
  LogicalResult read(unsigned first, bool second) {
    narrow = Emitter::elementType(c.input(first));
    auto f = dyn_cast<FloatType>(narrow);
    if (!f)
      return c.error("expected floating point numbers");
    wide = f.getWidth() < 32 ? Type(c.b.getF32Type()) : narrow;
    Value *inputs[] = {&w, &wci, &wcf, &wco, &bias};
    for (unsigned i = 0; i < 5; ++i)
      *inputs[i] = widen(c.input(first + i));
    if (c.rank(w) != 2 || c.rank(bias) != 1)
      return c.error("expected a matrix of weights and a vector of biases");
    peephole = c.attrBool("use_peephole");
    forgetSecond = second;
    return success();
  }
  Value widen(Value v) { return c.convert(v, wide); }
  LogicalResult setCells(Value state) {
    if (c.rank(state) != 2)
      return c.error("expected a state of rank 2, found rank " + Twine(c.rank(state)));
    cells = c.dim(state, 1);
    AffineExpr four = c.dim(w, 1);
    if (!c.ctx.unify(four, hlo::simplify(cells * 4), c.name()) || !c.ctx.unify(c.dim(bias, 0), four, c.name()))
      return c.error("the weights are not those of " + textOf(cells) + " cells");
    return success();
  }
  Value dot(Value a, Value b) { return c.dot(a, b, {}, {}, {1}, {0}); }
  /// Column block k of the gates.
  Value gate(Value gates, int64_t k) { return c.sliceDim(gates, 1, hlo::simplify(cells * k), hlo::simplify(cells * (k + 1))); }
  int64_t cellGate() const { return forgetSecond ? 2 : 1; }
  int64_t forgetGate() const { return forgetSecond ? 1 : 2; }
  Value one(Value v) { return c.like(v, 1); }
  Value sigmoid(Value v) { return c.unary<hlo::LogisticOp>(v); }
  Value tanh(Value v) { return c.unary<hlo::TanhOp>(v); }
  /// d sigmoid and d tanh from their values
  Value sigmoidSlope(Value s) { return c.mul(s, c.sub(one(s), s)); }
  Value tanhSlope(Value t) { return c.sub(one(t), c.mul(t, t)); }

  /// i, cs, f, o, ci, co, h
  SmallVector<Value> step(Value x, Value csPrev, Value hPrev) {
    Value gates = c.add(dot(c.concat({x, hPrev}, 1), w), bias);
    if (!gates)
      return {};
    Value i = gate(gates, 0), ci = gate(gates, cellGate()), f = gate(gates, forgetGate()), o = gate(gates, 3);
    f = c.add(f, c.like(f, forgetBias));
    if (peephole) {
      i = c.add(i, c.mul(csPrev, wci));
      f = c.add(f, c.mul(csPrev, wcf));
    }
    i = sigmoid(i);
    f = sigmoid(f);
    ci = tanh(ci);
    Value cs = c.add(c.mul(ci, i), c.mul(csPrev, f));
    if (clip > 0 && cs)
      cs = c.min(c.max(cs, c.like(cs, -clip)), c.like(cs, clip));
    if (peephole)
      o = c.add(o, c.mul(cs, wco));
    o = sigmoid(o);
    Value co = tanh(cs);
    return {i, cs, f, o, ci, co, c.mul(co, o)};
  }

  struct Gradient {
    Value csPrev, gates, wci, wcf, wco;
  };
  Gradient back(Value csPrev, Value i, Value cs, Value f, Value o, Value ci, Value co, Value csGrad, Value hGrad) {
    Value dO = c.mul(c.mul(sigmoidSlope(o), hGrad), co);
    Value dCs = c.add(c.mul(c.mul(tanhSlope(co), hGrad), o), csGrad);
    if (peephole)
      dCs = c.add(dCs, c.mul(dO, wco));
    Value dCi = c.mul(c.mul(tanhSlope(ci), dCs), i);
    Value dF = c.mul(c.mul(sigmoidSlope(f), dCs), csPrev);
    Value dI = c.mul(c.mul(sigmoidSlope(i), dCs), ci);
    Gradient g;
    g.csPrev = c.mul(dCs, f);
    g.gates = c.concat(forgetSecond ? SmallVector<Value>{dI, dF, dCi, dO} : SmallVector<Value>{dI, dCi, dF, dO}, 1);
    if (peephole) {
      g.csPrev = c.add(g.csPrev, c.add(c.mul(dI, wci), c.mul(dF, wcf)));
      g.wci = c.reduceSum(c.mul(dI, csPrev), {0});
      g.wcf = c.reduceSum(c.mul(dF, csPrev), {0});
      g.wco = c.reduceSum(c.mul(dO, cs), {0});
    } else {
      g.wci = g.wcf = g.wco = c.like(wci, 0);
    }
    return g;
  }
};

LogicalResult lowerCell(NodeContext &c) {
  Lstm l{c};
  if (failed(l.read(3, false)) || failed(l.setCells(c.input(1))))
    return failure();
  l.forgetBias = c.attrFloat("forget_bias", 1);
  l.clip = c.attrFloat("cell_clip", 3);
  SmallVector<Value> results = l.step(l.widen(c.input(0)), l.widen(c.input(1)), l.widen(c.input(2)));
  if (results.empty())
    return failure();
  for (auto [k, v] : llvm::enumerate(results))
    if (failed(c.setResult(k, v ? c.convert(v, l.narrow) : v)))
      return failure();
  return success();
}

LogicalResult lowerCellGrad(NodeContext &c) {
  Lstm l{c};
  if (failed(l.read(3, false)) || failed(l.setCells(c.input(1))))
    return failure();
  auto in = [&](unsigned k) { return l.widen(c.input(k)); };
  Lstm::Gradient g = l.back(in(1), in(8), in(9), in(10), in(11), in(12), in(13), in(14), in(15));
  for (auto [k, v] : llvm::enumerate(SmallVector<Value>{g.csPrev, g.gates, g.wci, g.wcf, g.wco}))
    if (failed(c.setResult(k, v ? c.convert(v, l.narrow) : v)))
      return failure();
  return success();
}

/// Common to the two ops on sequences: [time, batch, ...] inputs and the number of steps to take.
LogicalResult readSequence(NodeContext &c, Lstm &l, bool second) {
  if (failed(l.read(4, second)) || failed(l.setCells(c.input(2))) || failed(c.expectRank(0, 0)) ||
      failed(c.expectRank(1, 3)))
    return failure();
  Value steps = c.input(0);
  c.check(c.compare(Compare::LE, steps, c.sizeValue(c.dim(c.input(1), 0), Emitter::elementType(steps))),
          "seq_len_max exceeds the length of x");
  return success();
}

LogicalResult lowerSequence(NodeContext &c, bool second) {
  Lstm l{c};
  if (failed(readSequence(c, l, second)))
    return failure();
  if (!second)
    l.forgetBias = c.attrFloat("forget_bias", 1);
  l.clip = c.attrFloat("cell_clip", second ? 0 : 3);
  Value steps = c.input(0), x = l.widen(c.input(1)), cs = l.widen(c.input(2)), h = l.widen(c.input(3));
  Dims sequence{c.dim(x, 0), c.dim(x, 1), l.cells};
  SmallVector<Value> init{c.scalarInt(0, Emitter::elementType(steps)), cs, h};
  for (int k = 0; k < 7; ++k)
    init.push_back(c.splat(0, sequence, l.wide));
  bool ok = true;
  SmallVector<Value> done = whileLoop(
      c, init, [&](ValueRange v) { return c.compare(Compare::LT, v[0], steps); },
      [&](ValueRange v) -> SmallVector<Value> {
        SmallVector<Value> now = l.step(c.takeRow(x, v[0]), v[1], v[2]);
        ok = !now.empty() && llvm::all_of(now, [](Value r) { return bool(r); });
        if (!ok)
          return SmallVector<Value>(v);
        SmallVector<Value> next{c.add(v[0], c.likeInt(v[0], 1)), now[1], now[6]};
        for (int k = 0; k < 7; ++k)
          next.push_back(c.putRow(v[3 + k], now[k], v[0]));
        return next;
      });
  if (!ok)
    return failure();
  for (int k = 0; k < 7; ++k)
    if (failed(c.setResult(k, c.convert(done[3 + k], l.narrow))))
      return failure();
  return success();
}

LogicalResult lowerSequenceGrad(NodeContext &c, bool second) {
  Lstm l{c};
  if (failed(readSequence(c, l, second)))
    return failure();
  Value steps = c.input(0);
  auto in = [&](unsigned k) { return l.widen(c.input(k)); };
  Value x = in(1), cs0 = in(2), h0 = in(3), csGrads = in(16), hGrads = in(17);
  SmallVector<Value> saved; // i, cs, f, o, ci, co, h
  for (unsigned k = 9; k < 16; ++k)
    saved.push_back(in(k));
  Type index = Emitter::elementType(steps);
  AffineExpr features = c.dim(x, 2);
  SmallVector<Value> init{c.sub(steps, c.scalarInt(1, index)), c.like(x, 0),     c.like(cs0, 0),   c.like(h0, 0),
                          c.like(l.w, 0),                      c.like(l.wci, 0), c.like(l.wcf, 0), c.like(l.wco, 0),
                          c.like(l.bias, 0)};
  bool ok = true;
  SmallVector<Value> done = whileLoop(
      c, init, [&](ValueRange v) { return c.compare(Compare::GE, v[0], c.likeInt(v[0], 0)); },
      [&](ValueRange v) -> SmallVector<Value> {
        Value t = v[0], before = c.max(c.sub(t, c.likeInt(t, 1)), c.likeInt(t, 0));
        Value isFirst = c.compare(Compare::EQ, t, c.likeInt(t, 0));
        Value csPrev = c.select(isFirst, cs0, c.takeRow(saved[1], before));
        Value hPrev = c.select(isFirst, h0, c.takeRow(saved[6], before));
        SmallVector<Value> s;
        for (int k = 0; k < 6; ++k)
          s.push_back(c.takeRow(saved[k], t));
        Lstm::Gradient g = l.back(csPrev, s[0], s[1], s[2], s[3], s[4], s[5], c.add(c.takeRow(csGrads, t), v[2]),
                                  c.add(c.takeRow(hGrads, t), v[3]));
        ok = g.csPrev && g.gates && g.wci && g.wcf && g.wco;
        if (!ok)
          return SmallVector<Value>(v);
        Value both = c.dot(g.gates, l.w, {}, {}, {1}, {1}), row = c.takeRow(x, t);
        Value weights = c.dot(c.concat({row, hPrev}, 1), g.gates, {}, {}, {0}, {0});
        Value xGrad = c.sliceDim(both, 1, c.size(0), features);
        Value hGrad = c.sliceDim(both, 1, features, hlo::simplify(features + l.cells));
        return {c.sub(t, c.likeInt(t, 1)), c.putRow(v[1], xGrad, t), g.csPrev,        hGrad,
                c.add(v[4], weights),      c.add(v[5], g.wci),       c.add(v[6], g.wcf), c.add(v[7], g.wco),
                c.add(v[8], c.reduceSum(g.gates, {0}))};
      });
  if (!ok)
    return failure();
  for (int k = 0; k < 8; ++k)
    if (failed(c.setResult(k, c.convert(done[1 + k], l.narrow))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// GRU
//===----------------------------------------------------------------------===//

/// r and u gates from one product, the candidate from another: h = u h_prev + (1 - u) c.
LogicalResult lowerGru(NodeContext &c) {
  Type narrow = Emitter::elementType(c.input(0));
  if (!isa<FloatType>(narrow))
    return c.error("expected a floating-point type");
  Type wide = cast<FloatType>(narrow).getWidth() < 32 ? Type(c.b.getF32Type()) : narrow;
  auto in = [&](unsigned k) { return c.convert(c.input(k), wide); };
  Value x = in(0), h = in(1), wRu = in(2), wC = in(3), bRu = in(4), bC = in(5);
  for (unsigned k : {0u, 1u, 2u, 3u})
    if (failed(c.expectRank(k, 2)))
      return failure();
  AffineExpr cells = c.dim(h, 1);
  Value gates = c.unary<hlo::LogisticOp>(c.add(c.dot(c.concat({x, h}, 1), wRu, {}, {}, {1}, {0}), bRu));
  if (!gates || !c.ctx.unify(c.dim(gates, 1), hlo::simplify(cells * 2), c.name()))
    return c.error("the weights are not those of " + textOf(cells) + " cells");
  Value r = c.sliceDim(gates, 1, c.size(0), cells), u = c.sliceDim(gates, 1, cells, hlo::simplify(cells * 2));
  Value candidate = c.unary<hlo::TanhOp>(c.add(c.dot(c.concat({x, c.mul(r, h)}, 1), wC, {}, {}, {1}, {0}), bC));
  Value next = c.add(c.mul(u, h), c.mul(c.sub(c.like(u, 1), u), candidate));
  for (auto [k, v] : llvm::enumerate(SmallVector<Value>{r, u, candidate, next}))
    if (failed(c.setResult(k, v ? c.convert(v, narrow) : v)))
      return failure();
  return success();
}

LogicalResult lowerGruGrad(NodeContext &c) {
  Type narrow = Emitter::elementType(c.input(0));
  if (!isa<FloatType>(narrow))
    return c.error("expected a floating-point type");
  Type wide = cast<FloatType>(narrow).getWidth() < 32 ? Type(c.b.getF32Type()) : narrow;
  auto in = [&](unsigned k) { return c.convert(c.input(k), wide); };
  Value h = in(1), wRu = in(2), wC = in(3), r = in(6), u = in(7), cand = in(8), dH = in(9);
  for (unsigned k : {0u, 1u, 2u, 3u})
    if (failed(c.expectRank(k, 2)))
      return failure();
  AffineExpr features = c.dim(c.input(0), 1), cells = c.dim(h, 1), all = hlo::simplify(features + cells);
  auto rest = [&](Value v) { return c.sub(c.like(v, 1), v); };
  Value dC = c.mul(c.mul(dH, rest(u)), c.sub(c.like(cand, 1), c.mul(cand, cand)));
  Value dU = c.mul(c.mul(dH, c.sub(h, cand)), c.mul(u, rest(u)));
  Value second = c.dot(dC, wC, {}, {}, {1}, {1}); // towards x and r * h
  Value dRh = c.sliceDim(second, 1, features, all);
  Value dR = c.mul(c.mul(dRh, h), c.mul(r, rest(r)));
  Value gates = c.concat({dR, dU}, 1), first = c.dot(gates, wRu, {}, {}, {1}, {1});
  Value dX = c.add(c.sliceDim(first, 1, c.size(0), features), c.sliceDim(second, 1, c.size(0), features));
  Value dPrev = c.add(c.add(c.mul(dH, u), c.mul(dRh, r)), c.sliceDim(first, 1, features, all));
  for (auto [k, v] : llvm::enumerate(SmallVector<Value>{dX, dPrev, dC, gates}))
    if (failed(c.setResult(k, v ? c.convert(v, narrow) : v)))
      return failure();
  return success();
}

} // namespace

void registerRecurrent(HandlerTable &t) {
  t.add("LSTMBlockCell", 8, lowerCell);
  t.add("LSTMBlockCellGrad", 16, lowerCellGrad);
  t.add("BlockLSTM", 9, [](NodeContext &c) { return lowerSequence(c, false); });
  t.add("BlockLSTMV2", 9, [](NodeContext &c) { return lowerSequence(c, true); });
  t.add("BlockLSTMGrad", 18, [](NodeContext &c) { return lowerSequenceGrad(c, false); });
  t.add("BlockLSTMGradV2", 18, [](NodeContext &c) { return lowerSequenceGrad(c, true); });
  t.add("GRUBlockCell", 6, lowerGru);
  t.add("GRUBlockCellGrad", 10, lowerGruGrad);
}

} // namespace lathe::legalize
