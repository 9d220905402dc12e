// What recurrent operators in float and in integers share: where their inputs are, and the loop over steps.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_RECURRENT_H
#define LATHE_COMPILER_FRONTEND_TFLITE_RECURRENT_H

#include "compiler/frontend/tflite/OpContext.h"

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
/// this element type.
FailureOr<Scan> scan(OpContext &c, ArrayRef<Value> sequences, ArrayRef<Value> state, bool backward,
                     llvm::function_ref<std::pair<Value, SmallVector<Value>>(ArrayRef<Value>, ArrayRef<Value>)> step,
                     const Dims &outputDims, Type outputElement);

/// Between [batch, time, ...] and [time, batch, ...].
inline Value swapTime(OpContext &c, Value v) { return c.transpose(v, {1, 0, 2}); }

/// The operators with whole-integer types.
LogicalResult integerLstm(OpContext &c, const Lstm &l, bool isSequence, bool timeMajor);
LogicalResult integerSvdf(OpContext &c);

} // namespace lathe::tflite

#endif
