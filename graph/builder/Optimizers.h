// Training: variables, optimizers and schedules of the learning rate, as nodes.
#ifndef LATHE_GRAPH_BUILDER_OPTIMIZERS_H
#define LATHE_GRAPH_BUILDER_OPTIMIZERS_H

#include "graph/builder/Scope.h"

namespace lathe::train {

/// A resource variable: its handle, the value that gradients are taken by, and the node that gives it its first value.
struct Variable {
  Output handle, value;
  Operation init;
};

/// A variable of this name in the scope. `initial` has its shape.
Variable MakeVariable(const Scope &scope, std::string_view name, const Input &initial, const std::vector<int64_t> &shape);

class Optimizer {
public:
  virtual ~Optimizer() = default;

  /// One step: gradients of `loss` by the variables' values, and an update of each variable. The operation is done when all are.
  /// INVALID_ARGUMENT in the scope for a variable that the loss does not depend on.
  Operation Minimize(const Scope &scope, const Output &loss, const std::vector<Variable> &variables);
  /// The same from gradients that are there, one a variable.
  Operation Apply(const Scope &scope, const std::vector<Output> &gradients, const std::vector<Variable> &variables);
  /// What to run once before the first step, besides the variables' own `init`.
  const std::vector<Operation> &inits() const { return initials; }
  /// What the optimizer keeps between steps, to be saved with the variables; complete once a step is made.
  const std::vector<Variable> &slots() const { return kept; }

protected:
  explicit Optimizer(Input rate) : rate(std::move(rate)) {}
  /// Updates one variable.
  virtual Operation step(const Scope &scope, const Output &gradient, const Variable &variable) = 0;
  /// What is done once a step, after all variables.
  virtual std::vector<Operation> finish(const Scope &scope) { return {}; }
  /// A variable beside `like`, of zeros.
  Output slot(const Scope &scope, const Variable &like, std::string_view name);
  Output number(const Scope &scope, std::string_view name, DType type, double value);

  Input rate;
  std::vector<Operation> initials;

private:
  Output keep(const Scope &scope, const Output &handle, DType type, const Operation &init);
  std::vector<Variable> kept;
};

/// variable -= rate * gradient.
class GradientDescent : public Optimizer {
public:
  explicit GradientDescent(Input rate) : Optimizer(std::move(rate)) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
};

class Momentum : public Optimizer {
public:
  Momentum(Input rate, float momentum, bool nesterov = false) : Optimizer(std::move(rate)), momentum(momentum), nesterov(nesterov) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;

private:
  float momentum;
  bool nesterov;
};

class Adam : public Optimizer {
public:
  explicit Adam(Input rate, float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-8f)
      : Optimizer(std::move(rate)), beta1(beta1), beta2(beta2), epsilon(epsilon) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  std::vector<Operation> finish(const Scope &scope) override;

private:
  float beta1, beta2, epsilon;
  Output power1, power2; ///< handles
};

// Rates by step, a scalar of any number type.

/// rate * decayRate ^ (step / decaySteps); with `staircase` the exponent is a whole number.
Output ExponentialDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float decayRate, bool staircase = false);
/// From rate to 0 along half a cosine over `decaySteps`, then 0.
Output CosineDecay(const Scope &scope, float rate, const Output &step, float decaySteps);

} // namespace lathe::train

#endif
