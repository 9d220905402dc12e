#include "graph/builder/Schedules.h"

#include "graph/builder/ops/array.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/random.h"

#include "absl/strings/str_cat.h"

#include <cmath>

namespace lathe::train {
namespace {

constexpr float kPi = 3.14159265f;

/// How much of `decaySteps` is over, in whole ones with `staircase`.
Output portion(const Scope &s, const Output &step, float decaySteps, bool staircase) {
  Output over = ops::RealDiv(s, ops::Cast(s, step, DType::Float32), decaySteps);
  return staircase ? Output(ops::Floor(s, over)) : over;
}

/// (1 + cos(pi * part)) / 2 between alpha and 1.
Output cosine(const Scope &s, const Output &part, float alpha) {
  Output half = ops::Multiply(s, ops::Add(s, ops::Cos(s, ops::Multiply(s, part, kPi)), 1.0f), 0.5f * (1.0f - alpha));
  return ops::Add(s, half, alpha);
}

} // namespace

Output ExponentialDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float decayRate, bool staircase) {
  Scope s = scope.NewSubScope("exponential_decay");
  return ops::Multiply(s, ops::Pow(s, decayRate, portion(s, step, decaySteps, staircase)), rate);
}

Output NaturalExpDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float decayRate, bool staircase) {
  Scope s = scope.NewSubScope("natural_exp_decay");
  return ops::Multiply(s, ops::Exp(s, ops::Multiply(s, portion(s, step, decaySteps, staircase), -decayRate)), rate);
}

Output InverseTimeDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float decayRate, bool staircase) {
  Scope s = scope.NewSubScope("inverse_time_decay");
  return ops::RealDiv(s, rate, ops::Add(s, ops::Multiply(s, portion(s, step, decaySteps, staircase), decayRate), 1.0f));
}

Output PiecewiseConstantDecay(const Scope &scope, const Output &step, const std::vector<float> &boundaries,
                              const std::vector<float> &values) {
  if (values.size() != boundaries.size() + 1) {
    scope.UpdateStatus(absl::InvalidArgumentError(
        absl::StrCat(boundaries.size(), " boundaries part ", boundaries.size() + 1, " values, found ", values.size())));
    return Output();
  }
  Scope s = scope.NewSubScope("piecewise_constant_decay");
  Output at = ops::Cast(s, step, DType::Float32), rate = ops::Const(s, values.back());
  for (size_t i = boundaries.size(); i-- > 0;)
    rate = ops::SelectV2(s, ops::LessEqual(s, at, boundaries[i]), values[i], rate);
  return rate;
}

Output PolynomialDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float endRate, float power, bool cycle) {
  Scope s = scope.NewSubScope("polynomial_decay");
  Output at = ops::Cast(s, step, DType::Float32), length = ops::Const(s, decaySteps);
  if (cycle) // the first step is in the first stretch
    length = ops::Multiply(s, length, ops::Maximum(s, ops::Ceil(s, ops::RealDiv(s, at, decaySteps)), 1.0f));
  else
    at = ops::Minimum(s, at, decaySteps);
  Output left = ops::Subtract(s, 1.0f, ops::RealDiv(s, at, length));
  return ops::Add(s, ops::Multiply(s, ops::Pow(s, left, power), rate - endRate), endRate);
}

Output CosineDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float alpha) {
  Scope s = scope.NewSubScope("cosine_decay");
  return ops::Multiply(s, cosine(s, ops::Minimum(s, portion(s, step, decaySteps, false), 1.0f), alpha), rate);
}

Output CosineDecayRestarts(const Scope &scope, float rate, const Output &step, float firstDecaySteps, float timesSteps, float timesRate,
                           float alpha) {
  Scope s = scope.NewSubScope("cosine_decay_restarts");
  Output over = portion(s, step, firstDecaySteps, false), restarts, part;
  if (timesSteps == 1) {
    restarts = ops::Floor(s, over);
    part = ops::Subtract(s, over, restarts);
  } else {
    // the first n of them take (timesSteps^n - 1) / (timesSteps - 1) of the first one's steps
    Output grown = ops::Add(s, ops::Multiply(s, over, timesSteps - 1.0f), 1.0f);
    restarts = ops::Floor(s, ops::RealDiv(s, ops::Log(s, grown), std::log(timesSteps)));
    Output factor = ops::Pow(s, timesSteps, restarts);
    Output before = ops::RealDiv(s, ops::Subtract(s, factor, 1.0f), timesSteps - 1.0f);
    part = ops::RealDiv(s, ops::Subtract(s, over, before), factor);
  }
  Output height = ops::Pow(s, timesRate, restarts);
  Output half = ops::Multiply(s, ops::Add(s, ops::Cos(s, ops::Multiply(s, part, kPi)), 1.0f), 0.5f * (1.0f - alpha));
  return ops::Multiply(s, ops::Add(s, ops::Multiply(s, half, height), alpha), rate);
}

Output LinearCosineDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float numPeriods, float alpha, float beta) {
  Scope s = scope.NewSubScope("linear_cosine_decay");
  Output part = ops::Minimum(s, portion(s, step, decaySteps, false), 1.0f);
  Output line = ops::Subtract(s, 1.0f + alpha, part);
  Output waves = cosine(s, ops::Multiply(s, part, 2.0f * numPeriods), 0);
  return ops::Multiply(s, ops::Add(s, ops::Multiply(s, line, waves), beta), rate);
}

Output NoisyLinearCosineDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float initialVariance,
                              float varianceDecay, float numPeriods, float alpha, float beta, std::pair<int64_t, int64_t> seeds) {
  Scope s = scope.NewSubScope("noisy_linear_cosine_decay");
  Output at = ops::Minimum(s, ops::Cast(s, step, DType::Float32), decaySteps);
  Output line = ops::RealDiv(s, ops::Subtract(s, decaySteps, at), decaySteps);
  Output variance = ops::RealDiv(s, initialVariance, ops::Pow(s, ops::Add(s, at, 1.0f), varianceDecay));
  Output random = ops::RandomStandardNormal(s, ops::Const(s, Tensor::allocate(DType::Int32, {0})), DType::Float32,
                                            ops::RandomStandardNormal::Seed(seeds.first).Seed2(seeds.second));
  Output noisy = ops::Add(s, ops::Add(s, line, ops::Multiply(s, random, ops::Sqrt(s, variance))), alpha);
  Output waves = cosine(s, ops::Multiply(s, ops::RealDiv(s, at, decaySteps), 2.0f * numPeriods), 0);
  return ops::Multiply(s, ops::Add(s, ops::Multiply(s, noisy, waves), beta), rate);
}

Output LinearWarmup(const Scope &scope, float from, float to, const Output &step, float warmupSteps, const Output &then) {
  Scope s = scope.NewSubScope("linear_warmup");
  Output at = ops::Cast(s, step, DType::Float32);
  Output line = ops::Add(s, ops::Multiply(s, ops::RealDiv(s, at, warmupSteps), to - from), from);
  return ops::SelectV2(s, ops::Less(s, at, warmupSteps), line, then);
}

Output WarmupCosineDecay(const Scope &scope, float rate, float target, const Output &step, float warmupSteps, float decaySteps,
                         float alpha) {
  Scope s = scope.NewSubScope("warmup_cosine_decay");
  Output later = ops::Subtract(s, ops::Cast(s, step, DType::Float32), warmupSteps);
  return LinearWarmup(s, rate, target, step, warmupSteps, CosineDecay(s, target, later, decaySteps, alpha));
}

} // namespace lathe::train
