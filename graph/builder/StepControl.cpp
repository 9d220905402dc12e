#include "graph/builder/StepControl.h"

#include "graph/builder/OptimizerParts.h"

#include "absl/strings/str_cat.h"

namespace lathe::train {
namespace {

/// x where the condition holds, else dead. The identity is dead as a control input, too, which a Switch is not.
Output gate(const Scope &scope, const Output &x, const Output &condition) {
  return x.node() ? Output(ops::Identity(scope, ops::Switch(scope, x, condition).output_true)) : x;
}

} // namespace

Operation ControlledOptimizer::applyIf(const Scope &scope, const Output &condition, const std::vector<Gradient> &gradients,
                                       const std::vector<Variable> &variables) {
  std::vector<Gradient> gated;
  for (const Gradient &g : gradients)
    gated.emplace_back(gate(scope, g.values, condition), gate(scope, g.indices, condition), gate(scope, g.dense_shape, condition));
  Operation done = inner.Apply(scope.NewSubScope("inner"), gated, variables);
  if (!scope.ok())
    return Operation();
  initials.insert(initials.end(), inner.inits().begin(), inner.inits().end());
  kept.insert(kept.end(), inner.slots().begin(), inner.slots().end());
  ops::Switch sides(scope, condition, condition);
  Output taken = ops::Identity(scope.WithControlDependencies(std::vector<Operation>{done}), sides.output_true);
  return ops::Merge(scope, {sides.output_false, taken}).operation;
}

Operation GradientAccumulation::Apply(const Scope &root, const std::vector<Gradient> &gradients, const std::vector<Variable> &variables) {
  if (steps < 1 || gradients.size() < variables.size()) {
    root.UpdateStatus(absl::InvalidArgumentError(
        steps < 1 ? absl::StrCat("gradients of ", steps, " runs cannot be summed up")
                  : absl::StrCat(variables.size(), " variables need a gradient each, found ", gradients.size())));
    return Operation();
  }
  Scope scope = root.NewSubScope("accumulation");
  Output handle = number(scope, "runs", DType::Int64, 0), one = ops::Const(scope, int64_t{1}), all = ops::Const(scope, steps);
  Output runs = ops::Add(scope, read(scope, handle, DType::Int64), one), last = ops::Equal(scope, runs, all);
  std::vector<Operation> done{ops::AssignVariableOp(scope, handle, ops::FloorMod(scope, runs, all))};
  std::vector<Gradient> means;
  for (size_t i = 0; i < variables.size() && scope.ok(); ++i) {
    const Variable &v = variables[i];
    if (!gradients[i]) {
      means.emplace_back(); // the inner optimizer says which
      continue;
    }
    DType type = v.value.type();
    Output sums = slot(scope, v, "gradient_accumulator");
    Output sum = ops::Add(scope, ConvertToTensor(scope, gradients[i]), read(scope, sums, type));
    done.push_back(ops::AssignVariableOp(scope, sums, ops::SelectV2(scope, last, ops::ZerosLike(scope, sum), sum)));
    means.push_back(Output(ops::RealDiv(scope, sum, constantOf(scope, type, static_cast<double>(steps)))));
  }
  done.push_back(applyIf(scope, last, means, variables));
  return scope.ok() ? Operation(ops::NoOp(root.WithOpName("train").WithControlDependencies(done))) : Operation();
}

Output LossScale::Scale(const Scope &scope) {
  if (!scale.node()) {
    handle = number(scope, "loss_scale", DType::Float32, initial);
    scale = read(scope.WithNoControlDependencies(), handle, DType::Float32);
  }
  return scale;
}

std::vector<Gradient> LossScale::ComputeGradients(const Scope &scope, const Output &loss, const std::vector<Variable> &variables) {
  Output scaled = ops::Multiply(scope, loss, rateOf(scope, Scale(scope), loss.type()));
  return inner.ComputeGradients(scope, scaled, variables);
}

Operation LossScale::Apply(const Scope &root, const std::vector<Gradient> &gradients, const std::vector<Variable> &variables) {
  Output now = Scale(root);
  Scope scope = root.NewSubScope("loss_scaling");
  std::vector<Gradient> unscaled = gradients;
  Output finite = ops::Const(scope, true);
  for (Gradient &g : unscaled)
    if (g) {
      Output fine = ops::IsFinite(scope, g.values);
      finite = ops::LogicalAnd(scope, finite, ops::All(scope, fine, ops::Range(scope, 0, ops::Rank(scope, fine), 1)));
      g.values = ops::RealDiv(scope, g.values, rateOf(scope, now, g.values.type()));
    }
  Output runsHandle = number(scope, "finite_runs", DType::Int64, 0);
  Output runs = ops::Add(scope, read(scope, runsHandle, DType::Int64), ops::Const(scope, int64_t{1}));
  Output grows = ops::LogicalAnd(scope, finite, ops::Equal(scope, runs, ops::Const(scope, growthSteps)));
  Output counts = ops::LogicalAnd(scope, finite, ops::LogicalNot(scope, grows));
  Output factor = ops::SelectV2(scope, grows, 2.0f, ops::SelectV2(scope, finite, 1.0f, 0.5f));
  std::vector<Operation> done{ops::AssignVariableOp(scope, handle, ops::Multiply(scope, now, factor)),
                              ops::AssignVariableOp(scope, runsHandle, ops::SelectV2(scope, counts, runs, ops::Const(scope, int64_t{0})))};
  done.push_back(applyIf(scope, finite, unscaled, variables));
  return scope.ok() ? Operation(ops::NoOp(root.WithOpName("train").WithControlDependencies(done))) : Operation();
}

} // namespace lathe::train
