// Optimizers that Keras has and tf.compat.v1.train has not, by Keras' numbers. All make rows whole, and keep what they have between steps
// beside the variables as those of Optimizers.h do.
#ifndef LATHE_GRAPH_BUILDER_KERASOPTIMIZERS_H
#define LATHE_GRAPH_BUILDER_KERASOPTIMIZERS_H

#include "graph/builder/Optimizers.h"

namespace lathe::train {

/// Gradient descent whose momentum has the rate in it, so that a rate that changes counts from its step on. Momentum multiplies all of it.
class SGD : public Optimizer {
public:
  explicit SGD(Input rate, float momentum = 0, bool nesterov = false)
      : Optimizer(std::move(rate)), momentum(momentum), nesterov(nesterov) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;

private:
  float momentum;
  bool nesterov;
};

/// Mean squares of matrices kept as those of their rows and columns; of more dimensions the last two count. The rate is at most
/// 1 / sqrt(step) and grows with the root of the variable's mean square.
class Adafactor : public Optimizer {
public:
  explicit Adafactor(Input rate, float beta2Decay = -0.8f, float epsilon1 = 1e-30f, float epsilon2 = 1e-3f, float clipThreshold = 1)
      : Optimizer(std::move(rate)), beta2Decay(beta2Decay), epsilon1(epsilon1), epsilon2(epsilon2), clipThreshold(clipThreshold) {}

protected:
  void begin(const Scope &scope) override;
  std::vector<Operation> finish(const Scope &scope) override;
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;

private:
  float beta2Decay, epsilon1, epsilon2, clipThreshold;
  Output handle, now; ///< steps done, and the number of this one
};

/// Momentum of matrices made orthogonal by Newton's iterations; AdamW for other variables and for those that UseAdam names, at first
/// whatever has "embedding" in its name. Matrices must be of known sizes.
class Muon : public AdamW {
public:
  explicit Muon(Input rate, float momentum = 0.95f, float weightDecay = 0.004f, float adamWeightDecay = 0.004f, float rmsRate = 0.2f,
                int iterations = 5, bool nesterov = true)
      : AdamW(std::move(rate), adamWeightDecay), momentum(momentum), weightDecay(weightDecay), rmsRate(rmsRate), iterations(iterations),
        nesterov(nesterov) {}
  /// Variables whose name has `part` in it are not orthogonalised: embeddings and the last layer, say.
  void UseAdam(std::string_view part) { byAdam.emplace_back(part); }

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;
  float decayOf(const Variable &variable) const override;
  const char *kind() const override { return "Muon"; }

private:
  bool usesAdam(const Variable &variable) const;
  Output orthogonal(const Scope &scope, const Output &x, bool tall) const;
  float momentum, weightDecay, rmsRate;
  int iterations;
  bool nesterov;
  std::vector<std::string> byAdam{"embedding"};
};

/// AdamW in need of no schedule: a variable is between the weights that move and their average, which is to be read for evaluation.
class ScheduleFreeAdamW : public Adam {
public:
  explicit ScheduleFreeAdamW(Input rate, float weightDecay = 0, float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-8f,
                             int warmupSteps = 0)
      : Adam(std::move(rate), beta1, beta2, epsilon), warmupSteps(warmupSteps) {
    DecayWeights(weightDecay);
  }
  /// The average, of a variable that steps update.
  Output Average(const Scope &scope, const Variable &variable) const;

protected:
  void begin(const Scope &scope) override;
  std::vector<Operation> finish(const Scope &scope) override;
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;
  const char *kind() const override { return "ScheduleFreeAdamW"; }

private:
  int warmupSteps;
  Output count, now; ///< steps done, and the number of this one
  std::vector<std::pair<Output, Output>> moving; ///< handles of variables and of their weights that move
};

} // namespace lathe::train

#endif
