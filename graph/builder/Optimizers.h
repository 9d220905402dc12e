// Training: variables, and optimizers as nodes. Rates that change are in Schedules.h, limits for gradients in Clip.h.
//
// Gradients of gathers come as rows (see Gradient in Scope.h). An optimizer updates those rows alone, as TensorFlow's sparse updates do,
// unless its comment says otherwise. Those that Keras alone has are in KerasOptimizers.h.
#ifndef LATHE_GRAPH_BUILDER_OPTIMIZERS_H
#define LATHE_GRAPH_BUILDER_OPTIMIZERS_H

#include "graph/builder/Schedules.h"
#include "graph/builder/Scope.h"

#include <functional>

namespace lathe::train {

/// A resource variable: its handle, the value that gradients are taken by, and the node that gives it its first value.
struct Variable {
  Output handle, value;
  Operation init;
};

/// A variable of this name in the scope. `initial` has its shape.
Variable MakeVariable(const Scope &scope, std::string_view name, const Input &initial, const std::vector<int64_t> &shape);
/// A variable that counts steps from 0, for schedules and Optimizer::Count.
Variable MakeGlobalStep(const Scope &scope);
/// Rows of a variable, read without the others.
Output EmbeddingLookup(const Scope &scope, const Variable &table, const Input &ids);

class Optimizer {
public:
  virtual ~Optimizer() = default;

  /// One step: gradients of `loss` by the variables, and an update of each. The operation is done when all are.
  /// INVALID_ARGUMENT in the scope for a variable that the loss does not depend on.
  Operation Minimize(const Scope &scope, const Output &loss, const std::vector<Variable> &variables);
  /// The first half of a step, for gradients that are to be clipped. Empty after an error.
  virtual std::vector<Gradient> ComputeGradients(const Scope &scope, const Output &loss, const std::vector<Variable> &variables);
  /// The second half: updates from gradients, one a variable.
  virtual Operation Apply(const Scope &scope, const std::vector<Gradient> &gradients, const std::vector<Variable> &variables);
  Operation Apply(const Scope &scope, const std::vector<Output> &gradients, const std::vector<Variable> &variables);
  /// Each step adds 1 to this variable when it is done.
  void Count(const Variable &globalStep) { counter = globalStep; }
  /// Each step first takes rate * part * variable from a variable, apart from its gradient: Keras' weight_decay.
  void DecayWeights(float part) { decay = part; }
  /// Variables whose name has `part` in it, biases say, do not decay.
  void Exclude(std::string_view part) { excluded.emplace_back(part); }
  /// What to run once before the first step, besides the variables' own `init`.
  const std::vector<Operation> &inits() const { return initials; }
  /// What the optimizer keeps between steps, to be saved with the variables; complete once a step is made. Names are those of
  /// TensorFlow's optimizers: w/Adam, w/Adam_1, beta1_power.
  const std::vector<Variable> &slots() const { return kept; }

protected:
  explicit Optimizer(Input rate) : rate(std::move(rate)) {}
  /// Updates one variable.
  virtual Operation step(const Scope &scope, const Output &gradient, const Variable &variable) = 0;
  /// Updates some rows of one. Indices may repeat; see `unique`.
  virtual Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable);
  /// What is done once a step before and after all variables.
  virtual void begin(const Scope &scope) {}
  virtual std::vector<Operation> finish(const Scope &scope) { return {}; }
  /// A variable beside `like`, with `initial` everywhere.
  Output slot(const Scope &scope, const Variable &like, std::string_view name, float initial = 0);
  /// One whose first value is `first`, which is computed when a step may still be far.
  using First = std::function<Output(const Scope &)>;
  Output slot(const Scope &scope, const Variable &like, std::string_view name, const First &first);
  Output number(const Scope &scope, std::string_view name, DType type, double value);
  /// What DecayWeights said, for this variable.
  virtual float decayOf(const Variable &variable) const { return decay; }

  Input rate;
  std::vector<Operation> initials;
  std::vector<Variable> kept;

private:
  Output keep(const Scope &scope, const Output &handle, DType type, const Operation &init);
  Scope decayed(const Scope &scope, const Gradient &gradient, const Variable &variable);
  Variable counter;
  float decay = 0;
  std::vector<std::string> excluded;
};

/// variable -= rate * gradient.
class GradientDescent : public Optimizer {
public:
  explicit GradientDescent(Input rate) : Optimizer(std::move(rate)) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;
};

class Momentum : public Optimizer {
public:
  Momentum(Input rate, float momentum, bool nesterov = false) : Optimizer(std::move(rate)), momentum(momentum), nesterov(nesterov) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;

private:
  float momentum;
  bool nesterov;
};

/// By the root of the sum of all squares.
class Adagrad : public Optimizer {
public:
  explicit Adagrad(Input rate, float initial = 0.1f) : Optimizer(std::move(rate)), initial(initial) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;

private:
  float initial;
};

/// Adagrad by dual averaging, which takes the number of steps done before.
class AdagradDA : public Optimizer {
public:
  AdagradDA(Input rate, Output globalStep, float initial = 0.1f, float l1 = 0, float l2 = 0)
      : Optimizer(std::move(rate)), globalStep(globalStep), initial(initial), l1(l1), l2(l2) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;

private:
  Output stepNumber(const Scope &scope) const;
  Output globalStep;
  float initial, l1, l2;
};

class Adadelta : public Optimizer {
public:
  explicit Adadelta(Input rate, float rho = 0.95f, float epsilon = 1e-8f) : Optimizer(std::move(rate)), rho(rho), epsilon(epsilon) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;

private:
  float rho, epsilon;
};

/// By the root of a running mean of squares; `centered`: of the variance. Keras' begins with 0, not 1, and has an epsilon of 1e-7.
class RMSProp : public Optimizer {
public:
  explicit RMSProp(Input rate, float decay = 0.9f, float momentum = 0, float epsilon = 1e-10f, bool centered = false, float initial = 1)
      : Optimizer(std::move(rate)), decay(decay), momentum(momentum), epsilon(epsilon), initial(initial), centered(centered) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;

private:
  float decay, momentum, epsilon, initial;
  bool centered;
};

/// Follow the regularised leader. `beta`, which Keras has, adds beta / (2 * rate) to l2.
class Ftrl : public Optimizer {
public:
  explicit Ftrl(Input rate, float ratePower = -0.5f, float initial = 0.1f, float l1 = 0, float l2 = 0, float l2Shrinkage = 0,
                float beta = 0)
      : Optimizer(std::move(rate)), ratePower(ratePower), initial(initial), l1(l1), l2(l2), l2Shrinkage(l2Shrinkage), beta(beta) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;

private:
  Output secondNorm(const Scope &scope, DType type) const;
  float ratePower, initial, l1, l2, l2Shrinkage, beta;
};

class ProximalGradientDescent : public Optimizer {
public:
  explicit ProximalGradientDescent(Input rate, float l1 = 0, float l2 = 0) : Optimizer(std::move(rate)), l1(l1), l2(l2) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;

private:
  float l1, l2;
};

class ProximalAdagrad : public Optimizer {
public:
  explicit ProximalAdagrad(Input rate, float initial = 0.1f, float l1 = 0, float l2 = 0)
      : Optimizer(std::move(rate)), initial(initial), l1(l1), l2(l2) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;

private:
  float initial, l1, l2;
};

/// Rows add to TensorFlow's moments of the whole variable: those of all rows decay and move the variable each step, so that a step
/// writes as much as one of whole gradients. LazyAdam does not. `amsgrad` divides by the root of the largest mean square so far.
class Adam : public Optimizer {
public:
  explicit Adam(Input rate, float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-8f, bool amsgrad = false)
      : Optimizer(std::move(rate)), beta1(beta1), beta2(beta2), epsilon(epsilon), amsgrad(amsgrad) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;
  void begin(const Scope &scope) override;
  std::vector<Operation> finish(const Scope &scope) override;
  /// The slots' name.
  virtual const char *kind() const { return "Adam"; }
  /// beta1 or beta2 to the power of the step, as a number of a variable's type.
  Output power1(const Scope &scope, DType type) const;
  Output power2(const Scope &scope, DType type) const;
  /// The rate with both moments' corrections.
  Output correctedRate(const Scope &scope, DType type);

  float beta1, beta2, epsilon;
  bool amsgrad;

private:
  Output handle1, handle2;
};

/// Adam that leaves rows without a gradient, and their moments, as they are.
class LazyAdam : public Adam {
public:
  using Adam::Adam;

protected:
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;
};

/// Adam with weights that decay.
class AdamW : public Adam {
public:
  explicit AdamW(Input rate, float weightDecay = 0.004f, float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-7f,
                 bool amsgrad = false)
      : Adam(std::move(rate), beta1, beta2, epsilon, amsgrad) {
    DecayWeights(weightDecay);
  }

protected:
  const char *kind() const override { return "AdamW"; }
};

/// Adam by the largest gradient in place of the mean square.
class Adamax : public Adam {
public:
  explicit Adamax(Input rate, float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-7f)
      : Adam(std::move(rate), beta1, beta2, epsilon) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;
  const char *kind() const override { return "Adamax"; }
};

/// Adam with Nesterov's momentum, whose weight changes by step. Rows are made whole.
class Nadam : public Adam {
public:
  explicit Nadam(Input rate, float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-7f)
      : Adam(std::move(rate), beta1, beta2, epsilon) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;
  void begin(const Scope &scope) override;
  std::vector<Operation> finish(const Scope &scope) override;
  const char *kind() const override { return "Nadam"; }

private:
  Output count, product; ///< handles: steps done, and the product of their weights
  Output now, next;      ///< weights of this step and the next
  Output productNow;
};

/// Adam whose step is as long as the variable. Rows are made whole, since its length is that of all.
class Lamb : public Adam {
public:
  explicit Lamb(Input rate, float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-7f)
      : Adam(std::move(rate), beta1, beta2, epsilon) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;
  Operation stepRows(const Scope &scope, const Gradient &rows, const Variable &variable) override;
  const char *kind() const override { return "Lamb"; }
};

/// Steps of the rate's length by the sign of the momentum. Rows are made whole.
class Lion : public Optimizer {
public:
  explicit Lion(Input rate, float beta1 = 0.9f, float beta2 = 0.99f) : Optimizer(std::move(rate)), beta1(beta1), beta2(beta2) {}

protected:
  Operation step(const Scope &scope, const Output &gradient, const Variable &variable) override;

private:
  float beta1, beta2;
};

/// Running means of variables: average -= (1 - decay) * (average - variable). With `numUpdates` the decay is at most
/// (1 + numUpdates) / (10 + numUpdates), so that the first steps count for more.
class ExponentialMovingAverage {
public:
  explicit ExponentialMovingAverage(float decay, Output numUpdates = Output()) : decay(decay), numUpdates(numUpdates) {}

  /// Updates the averages; to be run after a step, or made in a scope that depends on it.
  Operation Apply(const Scope &scope, const std::vector<Variable> &variables);
  /// In the order of Apply's variables. Their `init` takes the variables' values; they are saved like others.
  const std::vector<Variable> &averages() const { return kept; }

private:
  float decay;
  Output numUpdates;
  std::vector<Variable> kept;
};

} // namespace lathe::train

#endif
