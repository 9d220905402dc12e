// Schedules: rates of learning by step, as nodes. `step` is a scalar of any number type; what comes out is float32.
#ifndef LATHE_GRAPH_BUILDER_SCHEDULES_H
#define LATHE_GRAPH_BUILDER_SCHEDULES_H

#include "graph/builder/Scope.h"

namespace lathe::train {

/// rate * decayRate ^ (step / decaySteps); with `staircase` the exponent is a whole number.
Output ExponentialDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float decayRate, bool staircase = false);
/// rate * e ^ (-decayRate * step / decaySteps).
Output NaturalExpDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float decayRate, bool staircase = false);
/// rate / (1 + decayRate * step / decaySteps).
Output InverseTimeDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float decayRate, bool staircase = false);
/// values[i] up to boundaries[i], the last value after all. INVALID_ARGUMENT in the scope unless there is one value more.
Output PiecewiseConstantDecay(const Scope &scope, const Output &step, const std::vector<float> &boundaries,
                              const std::vector<float> &values);
/// From rate to endRate by (1 - step / decaySteps) ^ power. With `cycle` the steps are stretched to the next multiple of decaySteps.
Output PolynomialDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float endRate = 0.0001f, float power = 1,
                       bool cycle = false);
/// From rate to alpha * rate along half a cosine over `decaySteps`, then that.
Output CosineDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float alpha = 0);
/// Cosines one after the other, each `timesSteps` as long and `timesRate` as high as the one before.
Output CosineDecayRestarts(const Scope &scope, float rate, const Output &step, float firstDecaySteps, float timesSteps = 2,
                           float timesRate = 1, float alpha = 0);
/// A line times cosines: rate * ((alpha + 1 - step / decaySteps) * (1 + cos(2 pi numPeriods step / decaySteps)) / 2 + beta).
Output LinearCosineDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float numPeriods = 0.5f, float alpha = 0,
                         float beta = 0.001f);
/// The same with a random part of variance initialVariance / (1 + step) ^ varianceDecay; `seeds` are the two of a random operation.
Output NoisyLinearCosineDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float initialVariance = 1,
                              float varianceDecay = 0.55f, float numPeriods = 0.5f, float alpha = 0, float beta = 0.001f,
                              std::pair<int64_t, int64_t> seeds = {0, 0});
/// In a line from `from` to `to` over `warmupSteps`; after that `then`, a schedule of `step - warmupSteps`, say.
Output LinearWarmup(const Scope &scope, float from, float to, const Output &step, float warmupSteps, const Output &then);
/// LinearWarmup from rate to `target`, then CosineDecay from there.
Output WarmupCosineDecay(const Scope &scope, float rate, float target, const Output &step, float warmupSteps, float decaySteps,
                         float alpha = 0);

} // namespace lathe::train

#endif
