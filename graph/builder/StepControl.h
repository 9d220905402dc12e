// Optimizers around other optimizers, whose steps come only at times: every so many runs, or where no gradient has overflowed. At other
// times nothing of the inner optimizer happens: no decay, no count, no moment.
#ifndef LATHE_GRAPH_BUILDER_STEPCONTROL_H
#define LATHE_GRAPH_BUILDER_STEPCONTROL_H

#include "graph/builder/Optimizers.h"

namespace lathe::train {

/// What both share. The inner optimizer must live as long as this one is used; its inits and slots are among these.
class ControlledOptimizer : public Optimizer {
protected:
  explicit ControlledOptimizer(Optimizer &inner) : Optimizer(0.0f), inner(inner) {}
  /// The inner step where `condition` holds; done either way.
  Operation applyIf(const Scope &scope, const Output &condition, const std::vector<Gradient> &gradients,
                    const std::vector<Variable> &variables);
  Operation step(const Scope &, const Output &, const Variable &) override { return Operation(); }

  Optimizer &inner;
};

/// Sums up gradients and hands their mean on in every `steps`-th run. Rows are made whole.
class GradientAccumulation : public ControlledOptimizer {
public:
  GradientAccumulation(Optimizer &inner, int64_t steps) : ControlledOptimizer(inner), steps(steps) {}
  using Optimizer::Apply;
  Operation Apply(const Scope &scope, const std::vector<Gradient> &gradients, const std::vector<Variable> &variables) override;

private:
  int64_t steps;
};

/// Keras' LossScaleOptimizer, for gradients of half precision: the loss is multiplied by a scale, gradients are divided by it. A run whose
/// gradients are not all finite changes no variable and halves the scale; after `growthSteps` runs that are it doubles.
class LossScale : public ControlledOptimizer {
public:
  explicit LossScale(Optimizer &inner, float initial = 32768, int64_t growthSteps = 2000)
      : ControlledOptimizer(inner), initial(initial), growthSteps(growthSteps) {}
  /// Of the scaled loss.
  std::vector<Gradient> ComputeGradients(const Scope &scope, const Output &loss, const std::vector<Variable> &variables) override;
  using Optimizer::Apply;
  /// Takes gradients of the scaled loss.
  Operation Apply(const Scope &scope, const std::vector<Gradient> &gradients, const std::vector<Variable> &variables) override;
  /// The scale in this run.
  Output Scale(const Scope &scope);

private:
  float initial;
  int64_t growthSteps;
  Output handle, scale;
};

} // namespace lathe::train

#endif
