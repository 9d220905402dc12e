// What recurrent operators in float and in integers share: where their inputs are, and the loop over steps.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_RECURRENT_H
#define LATHE_COMPILER_FRONTEND_TFLITE_RECURRENT_H

#include "compiler/frontend/tflite/OpContext.h"
#include "compiler/frontend/tflite/Translator.h"

#include <tuple>

namespace lathe::tflite {

/// Where the parameters of one direction are among the inputs, and what the options say.
struct Lstm {
  unsigned weights = 1, recurrent = 5, peephole = 9, bias = 12, projection = 16, norm = 20, output = 18, cell = 19;
  bool hasNorm = true;
  Activation activation = Activation::TANH;
  float cellClip = 0, projectionClip = 0;
  bool asymmetric = false;
};

/// The results of a loop over steps: outputs put together along dimension 0, the state after the last step.
struct Scan {
  Value outputs;
  SmallVector<Value> state;
};
/// Runs `step` (rows of the sequences, state -> output, next state) over dimension 0 of `sequences`. Outputs have these sizes and
/// this element type. `everyStep`: all over again for each step, with the state that the time before left; the last time counts.
FailureOr<Scan> scan(OpContext &c, ArrayRef<Value> sequences, ArrayRef<Value> state, bool backward,
                     llvm::function_ref<std::pair<Value, SmallVector<Value>>(ArrayRef<Value>, ArrayRef<Value>)> step,
                     const Dims &outputDims, Type outputElement, bool everyStep = false);

/// Between [batch, time, ...] and [time, batch, ...].
inline Value swapTime(OpContext &c, Value v) { return c.transpose(v, {1, 0, 2}); }

/// Runs an LSTM's cell, in float or in integers: over dimension 0 of [time, batch, features], to the outputs put together, or once
/// for [batch, features]. Reads and writes its state. A Cell has
///   inputs(x)                    products of the gates (input, forget, cell, output) with x; null for a gate that is tied to another
///   step(gates, output, cell)    the next output and cell
template <typename Cell>
FailureOr<Value> runLstm(OpContext &c, const Lstm &l, Cell &lstm, Value x, bool isSequence, bool backward = false) {
  auto output = c.translator.readState(c, l.output), cell = c.translator.readState(c, l.cell);
  if (failed(output) || failed(cell))
    return failure();
  if (Emitter::rank(x) != 2 + isSequence || Emitter::rank(*output) != 2 || Emitter::rank(*cell) != 2 ||
      !c.ctx.unify(c.dim(x, isSequence), c.dim(*output, 0), c.nodeName))
    return c.error("the batch of the input is not that of the state");
  SmallVector<Value> gates = lstm.inputs(x), given;
  for (Value gate : gates)
    if (gate)
      given.push_back(gate);
  if (given.size() < 3)
    return failure();
  Value outputs, lastOutput, lastCell;
  if (!isSequence) {
    std::tie(lastOutput, lastCell) = lstm.step(gates, *output, *cell);
    outputs = lastOutput;
  } else {
    auto step = [&](ArrayRef<Value> now, ArrayRef<Value> state) {
      SmallVector<Value> all(now);
      if (all.size() == 3)
        all.insert(all.begin(), Value());
      auto [out, next] = lstm.step(all, state[0], state[1]);
      return std::pair<Value, SmallVector<Value>>(out, {out, next});
    };
    auto result = scan(c, given, {*output, *cell}, backward, step, c.dims(*output), Emitter::elementType(*output));
    if (failed(result))
      return failure();
    outputs = result->outputs;
    lastOutput = result->state[0];
    lastCell = result->state[1];
  }
  if (failed(c.translator.writeState(c, l.output, lastOutput)) || failed(c.translator.writeState(c, l.cell, lastCell)))
    return failure();
  return outputs;
}

/// The operators with whole-integer types.
LogicalResult integerLstm(OpContext &c, const Lstm &l, bool isSequence, bool timeMajor);
LogicalResult integerSvdf(OpContext &c);

} // namespace lathe::tflite

#endif
