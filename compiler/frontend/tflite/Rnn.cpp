// Recurrent operators: the products with the input are made for all steps at once, a loop has the rest. Weights may be int8 with
// float inputs (Hybrid.h).
#include "compiler/frontend/tflite/Hybrid.h"
#include "compiler/frontend/tflite/Recurrent.h"
#include "compiler/frontend/tflite/Translator.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::tflite {

FailureOr<Scan> scan(OpContext &c, ArrayRef<Value> sequences, ArrayRef<Value> state, bool backward,
                     llvm::function_ref<std::pair<Value, SmallVector<Value>>(ArrayRef<Value>, ArrayRef<Value>)> step,
                     const Dims &outputDims, Type outputElement, bool everyStep) {
  Type i32 = c.b.getI32Type();
  Value length = c.sizeValue(c.dim(sequences[0], 0), i32), steps = everyStep ? c.mul(length, length) : length;
  Dims all{c.dim(sequences[0], 0)};
  all.append(outputDims.begin(), outputDims.end());
  SmallVector<Value> init{c.scalarInt(0, i32), c.splatInt(0, all, outputElement)};
  init.append(state.begin(), state.end());
  bool ok = true;
  SmallVector<Value> done = legalize::whileLoop(
      c, init, [&](ValueRange v) { return c.compare(Compare::LT, v[0], steps); },
      [&](ValueRange v) {
        Value at = everyStep ? c.binary<hlo::RemOp>(v[0], length) : Value(v[0]);
        if (backward)
          at = c.sub(c.sub(length, at), c.likeInt(at, 1));
        SmallVector<Value> now, carried(v.begin() + 2, v.end());
        for (Value s : sequences)
          now.push_back(c.takeRow(s, at));
        auto [output, next] = step(now, carried);
        SmallVector<Value> result{c.add(v[0], c.likeInt(v[0], 1)), output ? c.putRow(v[1], output, at) : Value(v[1])};
        result.append(next);
        for (auto [given, wanted] : llvm::zip(result, v))
          if (!given || given.getType() != wanted.getType()) {
            ok = false;
            given = wanted;
          }
        return result;
      });
  if (!ok)
    return c.error("the sizes of its weights and state do not fit");
  return Scan{done[1], SmallVector<Value>(done.begin() + 2, done.end())};
}

namespace {

using Op = tfl::BuiltinOperator;

/// x [..., k] times the weights [n, k] of an input, [..., n].
Value product(OpContext &c, Value x, unsigned weightsInput, bool asymmetric) {
  Value weights = c.input(weightsInput);
  if (!x || !weights)
    return {};
  const int64_t last = Emitter::rank(x) - 1;
  if (Emitter::rank(weights) != 2 || !c.ctx.unify(c.dim(x, last), c.dim(weights, 1), c.nodeName)) {
    (void)c.error("input " + Twine(weightsInput) + " does not fit: expected a matrix with as many columns as its operand");
    return {};
  }
  auto numbers = hlo::DotDimensionNumbersAttr::get(c.b.getContext(), {}, {}, {last}, {1});
  if (!c.isQuantized(weightsInput))
    return c.make<hlo::DotGeneralOp>(x, c.convert(weights, c.b.getF32Type()), numbers, c.b.getF32Type());
  auto q = quantizeRows(c, x, {last}, asymmetric);
  auto scales = weightScales(c, weightsInput, 0, last);
  if (failed(scales))
    return {};
  Type i32 = c.b.getI32Type();
  Value sums = c.make<hlo::DotGeneralOp>(q.values, weights, numbers, i32);
  if (asymmetric)
    sums = c.sub(sums, c.mul(q.zeroPoints, c.reduceSum(c.convert(weights, i32), {1})));
  return scaleSums(c, sums, q.scales, *scales);
}

Value clip(OpContext &c, Value v, float limit) {
  return v && limit > 0 ? c.max(c.min(v, c.like(v, limit)), c.like(v, -limit)) : v;
}

class LstmCell {
public:
  LstmCell(OpContext &c, const Lstm &l) : c(c), l(l) {
    cifg = !c.hasInput(l.weights);
    normalized = l.hasNorm && c.hasInput(l.norm + 1);
  }

  /// Products of the gates (input, forget, cell, output) with x; null for an input gate that is tied to the forget gate.
  SmallVector<Value> inputs(Value x) {
    SmallVector<Value> gates;
    for (unsigned g = 0; g < 4; ++g) {
      Value v = g || !cifg ? product(c, x, l.weights + g, l.asymmetric) : Value();
      if (v && !normalized && c.hasInput(l.bias + g))
        v = c.add(v, c.input(l.bias + g));
      gates.push_back(v);
    }
    return gates;
  }

  /// One step: from the gates' input parts to the next output and cell.
  std::pair<Value, Value> step(ArrayRef<Value> gates, Value output, Value cell) {
    Value forget = sigmoid(gate(1, gates, output, cell));
    Value in = cifg ? c.sub(c.like(forget, 1), forget) : sigmoid(gate(0, gates, output, cell));
    Value fresh = c.activate(gate(2, gates, output, {}), l.activation);
    Value next = clip(c, c.add(c.mul(forget, cell), c.mul(in, fresh)), l.cellClip);
    Value out = sigmoid(gate(3, gates, output, next));
    Value result = c.mul(out, c.activate(next, l.activation));
    if (c.hasInput(l.projection)) {
      result = product(c, result, l.projection, l.asymmetric);
      if (c.hasInput(l.projection + 1))
        result = c.add(result, c.input(l.projection + 1));
      result = clip(c, result, l.projectionClip);
    }
    return {result, next};
  }

private:
  Value sigmoid(Value v) { return v ? c.unary<hlo::LogisticOp>(v) : v; }

  Value gate(unsigned g, ArrayRef<Value> gates, Value output, Value cell) {
    Value v = c.add(gates[g], product(c, output, l.recurrent + g, l.asymmetric));
    const unsigned peephole = l.peephole + (g == 3 ? 2 : g);
    if (cell && g != 2 && c.hasInput(peephole))
      v = c.add(v, c.mul(cell, realInput(c, peephole)));
    if (!normalized || !v)
      return v;
    const int64_t last = Emitter::rank(v) - 1;
    auto n = constantOf(c.dim(v, last));
    if (!n) {
      (void)c.error("the number of cells must be known at compile time");
      return {};
    }
    auto mean = [&](Value x) {
      Value sum = c.keepDims(c.reduceSum(x, {last}), {last}, last + 1);
      return c.mul(sum, c.like(sum, 1.0 / double(*n)));
    };
    Value m = mean(v), variance = c.sub(mean(c.mul(v, v)), c.mul(m, m));
    Value normal = c.mul(c.sub(v, m), c.unary<hlo::RsqrtOp>(c.add(variance, c.like(variance, 1e-8))));
    Value scaled = c.mul(normal, realInput(c, l.norm + g));
    return c.hasInput(l.bias + g) ? c.add(scaled, c.input(l.bias + g)) : scaled;
  }

  OpContext &c;
  const Lstm &l;
  bool cifg, normalized;
};

/// The input of a sequence operator, of rank 3; null after an error.
Value sequenceInput(OpContext &c) {
  Value x = c.input(0);
  if (x && Emitter::rank(x) != 3) {
    (void)c.error("expected an input of rank 3");
    return {};
  }
  return x;
}

/// One direction over [time, batch, features], backward or not, to [time, batch, units].
using Direction = llvm::function_ref<FailureOr<Value>(Value x, bool backward)>;

LogicalResult oneDirection(OpContext &c, Value x, bool timeMajor, Direction run) {
  auto result = run(timeMajor ? x : swapTime(c, x), false);
  return failed(result) ? failure() : c.setResult(0, timeMajor ? *result : swapTime(c, *result));
}

/// Both directions of an operator whose auxiliary inputs are [firstAuxiliary, endAuxiliary).
LogicalResult bothDirections(OpContext &c, unsigned firstAuxiliary, unsigned endAuxiliary, bool timeMajor, bool merge, Direction run) {
  for (unsigned i = firstAuxiliary; i < endAuxiliary; ++i)
    if (c.hasInput(i))
      return c.error("auxiliary inputs are not supported");
  Value x = sequenceInput(c);
  if (!x)
    return failure();
  if (!timeMajor)
    x = swapTime(c, x);
  SmallVector<Value> outputs;
  for (bool backward : {false, true}) {
    auto result = run(x, backward);
    if (failed(result))
      return failure();
    outputs.push_back(timeMajor ? *result : swapTime(c, *result));
  }
  if (merge)
    return c.setResult(0, c.concat(outputs, 2));
  return failed(c.setResult(0, outputs[0])) ? failure() : c.setResult(1, outputs[1]);
}

template <typename Options>
Lstm lstmOf(OpContext &c, const Options &o) {
  Lstm l;
  l.activation = o.fused_activation_function();
  l.cellClip = o.cell_clip();
  l.projectionClip = o.proj_clip();
  l.asymmetric = o.asymmetric_quantize_inputs();
  l.hasNorm = c.numInputs() >= 24;
  return l;
}

LogicalResult unidirectionalLstm(OpContext &c) {
  const auto &o = c.options<tfl::UnidirectionalSequenceLSTMOptions>();
  const Lstm l = lstmOf(c, o);
  if (o.diagonal_recurrent_tensors())
    return c.error("diagonal recurrent weights are not supported");
  Value x = sequenceInput(c);
  if (!x)
    return failure();
  if (c.isQuantized(0))
    return integerLstm(c, l, true, o.time_major());
  LstmCell cell(c, l);
  return oneDirection(c, x, o.time_major(), [&](Value x, bool backward) { return runLstm(c, l, cell, x, true, backward); });
}

LogicalResult bidirectionalLstm(OpContext &c) {
  const auto &o = c.options<tfl::BidirectionalSequenceLSTMOptions>();
  return bothDirections(c, 39, 48, o.time_major(), o.merge_outputs(), [&](Value x, bool backward) {
    const unsigned first = backward ? 18 : 1;
    const Lstm l{first, first + 4, first + 8, first + 11, first + 15, 0, backward ? 37u : 35u, backward ? 38u : 36u, false,
                 o.fused_activation_function(), o.cell_clip(), o.proj_clip(), o.asymmetric_quantize_inputs()};
    LstmCell cell(c, l);
    return runLstm(c, l, cell, x, true, backward);
  });
}

/// A step without a loop: the old kernel with all gates in one matrix, or the parameters of the sequence operator.
LogicalResult lstmStep(OpContext &c) {
  const auto &o = c.options<tfl::LSTMOptions>();
  Value x = c.input(0);
  if (!x)
    return failure();
  if (o.kernel_type() == tfl::LSTMKernelType::BASIC) {
    if (c.isQuantized(0))
      return c.typeError(0);
    Value output = c.input(1), cell = c.input(4), joined = c.concat({x, output}, 1), bias = c.input(3);
    if (!output || !cell || !bias)
      return failure();
    Value all = product(c, joined, 2, false);
    if (!all)
      return failure();
    all = c.add(all, bias);
    auto units = constantOf(c.dim(cell, 1));
    if (!units)
      return c.error("the number of cells must be known at compile time");
    auto part = [&](int64_t k) { return c.sliceDim(all, 1, c.size(k * *units), c.size((k + 1) * *units)); };
    Value in = c.unary<hlo::LogisticOp>(part(0)), fresh = c.unary<hlo::TanhOp>(part(1));
    Value forget = c.unary<hlo::LogisticOp>(part(2)), out = c.unary<hlo::LogisticOp>(part(3));
    Value next = c.add(c.mul(in, fresh), c.mul(forget, cell));
    if (failed(c.setResult(0, c.mul(out, c.unary<hlo::TanhOp>(next)))) || failed(c.setResult(1, next)) ||
        failed(c.setResult(2, joined)))
      return failure();
    return c.setResult(3, all);
  }
  const Lstm l = lstmOf(c, o);
  if (c.isQuantized(0))
    return integerLstm(c, l, false, true);
  LstmCell cell(c, l);
  auto result = runLstm(c, l, cell, x, /*isSequence=*/false);
  return failed(result) ? failure() : c.setResult(0, *result);
}

/// One direction over [time, batch, features], from the input that holds its weights on; the hidden state lies 3 behind.
FailureOr<Value> rnnSequence(OpContext &c, Value x, unsigned weights, Activation activation, bool asymmetric, bool backward,
                             bool everyStep = false) {
  Value bias = c.input(weights + 2);
  auto state = c.translator.readState(c, weights + 3);
  if (!bias || failed(state))
    return failure();
  if (!c.ctx.unify(c.dim(x, 1), c.dim(*state, 0), c.nodeName))
    return c.error("the batch of the input is not that of the state");
  Value in = c.add(product(c, x, weights, asymmetric), bias);
  auto result = scan(c, {in}, {*state}, backward, [&](ArrayRef<Value> now, ArrayRef<Value> before) {
    Value v = c.activate(c.add(now[0], product(c, before[0], weights + 1, asymmetric)), activation);
    return std::pair<Value, SmallVector<Value>>(v, {v});
  }, c.dims(*state), c.b.getF32Type(), everyStep);
  if (failed(result) || failed(c.translator.writeState(c, weights + 3, result->state[0])))
    return failure();
  return result->outputs;
}

LogicalResult unidirectionalRnn(OpContext &c) {
  const auto &o = c.options<tfl::SequenceRNNOptions>();
  Value x = sequenceInput(c);
  if (!x)
    return failure();
  return oneDirection(c, x, o.time_major(), [&](Value x, bool backward) {
    return rnnSequence(c, x, 1, o.fused_activation_function(), o.asymmetric_quantize_inputs(), backward);
  });
}

LogicalResult bidirectionalRnn(OpContext &c) {
  const auto &o = c.options<tfl::BidirectionalSequenceRNNOptions>();
  // The kernel for int8 weights runs a time-major sequence once for each of its steps, each time from the state that the time
  // before has left: files that were made for it are used with these numbers.
  const bool everyStep = o.time_major() && c.isQuantized(1);
  return bothDirections(c, 9, 12, o.time_major(), o.merge_outputs(), [&](Value x, bool backward) {
    return rnnSequence(c, x, backward ? 5 : 1, o.fused_activation_function(), o.asymmetric_quantize_inputs(), backward, everyStep);
  });
}

LogicalResult rnnStep(OpContext &c) {
  const auto &o = c.options<tfl::RNNOptions>();
  Value x = c.input(0), bias = c.input(3);
  auto state = c.translator.readState(c, 4);
  if (!x || !bias || failed(state))
    return failure();
  if (Emitter::rank(x) != 2 || !c.ctx.unify(c.dim(x, 0), c.dim(*state, 0), c.nodeName))
    return c.error("expected an input of rank 2 with the batch of the state");
  const bool asymmetric = o.asymmetric_quantize_inputs();
  Value in = c.add(product(c, x, 1, asymmetric), bias);
  Value v = c.activate(c.add(in, product(c, *state, 2, asymmetric)), o.fused_activation_function());
  return failed(c.translator.writeState(c, 4, v)) ? failure() : c.setResult(0, v);
}

/// A filter over features, then one over time on a window of past activations, summed over ranks.
LogicalResult svdf(OpContext &c) {
  if (c.isQuantized(0))
    return integerSvdf(c);
  const auto &o = c.options<tfl::SVDFOptions>();
  Value x = c.input(0), time = c.input(2);
  auto state = c.translator.readState(c, 4);
  if (!x || !time || failed(state))
    return failure();
  auto filters = constantOf(c.dim(time, 0)), memory = constantOf(c.dim(time, 1));
  auto batch = constantOf(c.dim(*state, 0));
  if (!filters || !memory || !batch || Emitter::rank(x) != 2 || o.rank() <= 0 || *filters % o.rank() ||
      !c.ctx.unify(c.dim(x, 0), c.size(*batch), c.nodeName))
    return c.error("the sizes of its inputs do not fit");
  Value fresh = product(c, x, 1, o.asymmetric_quantize_inputs());
  if (!fresh)
    return failure();
  Value past = c.reshape(*state, {*batch, *filters, *memory});
  past = c.concat({c.sliceDim(past, 2, c.size(1), c.size(*memory)), c.reshape(fresh, {*batch, *filters, 1})}, 2);
  if (failed(c.translator.writeState(c, 4, c.reshape(past, {*batch, *filters * *memory}))))
    return failure();
  Value weighted = c.reduceSum(c.mul(past, realInput(c, 2)), {2});
  Value sums = c.reduceSum(c.reshape(weighted, {*batch, *filters / o.rank(), o.rank()}), {2});
  if (c.hasInput(3))
    sums = c.add(sums, c.input(3));
  return c.setResult(0, c.activate(sums, o.fused_activation_function()));
}

} // namespace

void registerRnn(OpTable &t) {
  t.add(Op::UNIDIRECTIONAL_SEQUENCE_LSTM, 20, 24, 4, Float32 | Quant8, unidirectionalLstm);
  t.add(Op::BIDIRECTIONAL_SEQUENCE_LSTM, 39, 48, 3, Float32, bidirectionalLstm);
  t.add(Op::LSTM, 5, 24, 4, Float32 | Quant8, lstmStep);
  t.add(Op::SVDF, 5, 5, 4, Float32 | Quant8, svdf);
  t.add(Op::RNN, 5, 5, 3, Float32, rnnStep);
  t.add(Op::UNIDIRECTIONAL_SEQUENCE_RNN, 5, 5, 3, Float32, unidirectionalRnn);
  t.add(Op::BIDIRECTIONAL_SEQUENCE_RNN, 12, 12, 3, Float32, bidirectionalRnn);
}

} // namespace lathe::tflite
